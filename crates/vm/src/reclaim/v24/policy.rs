//! The choices in which the kernels of 2.4 differ: one enum a choice, one knob a field of [`Choices`].
//!
//! A choice names what a kernel does, not which kernel does it: presets are in [`super::presets`].

use crate::knob::{Knob, Values};

/// A type of choices: its values, and the index of each.
pub trait Choice: Copy {
    /// The allowed values.
    const VALUES: Values;
    /// A number, or the index of a word.
    fn value(self) -> u64;
    /// The choice of a value.
    fn of(value: u64) -> Self;
}

impl Choice for u32 {
    const VALUES: Values = Values::Number(0, 1_000_000);
    fn value(self) -> u64 {
        self.into()
    }
    fn of(value: u64) -> u32 {
        value as u32
    }
}

impl Choice for bool {
    const VALUES: Values = Values::Words(&["no", "yes"]);
    fn value(self) -> u64 {
        self.into()
    }
    fn of(value: u64) -> bool {
        value == 1
    }
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident: $($variant:ident $word:literal $about:literal,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $(#[doc = $about] $variant),* }

        impl Choice for $name {
            const VALUES: Values = Values::Words(&[$($word),*]);
            fn value(self) -> u64 {
                self as u64
            }
            fn of(value: u64) -> $name {
                [$($name::$variant),*][value as usize]
            }
        }
    };
}

choice! {
    /// Which lists there are.
    Lists:
    Three "three" "active and inactive_dirty of the machine, inactive_clean of each zone.",
    Two "two" "active and inactive of the machine.",
}
choice! {
    /// How a page's age rises and falls (sysctl of -ac, `page_aging_tactic`).
    Age:
    None "none" "No ages: one referenced bit.",
    Bit "bit" "Up by the step, down to 0.",
    Exponential "exponential" "Up by the step, down to a half.",
    Linear "linear" "Up by the step, down by the step.",
    Doubling "doubling" "Up to the double, down by the step.",
}
choice! {
    /// Where a page of a file enters.
    Start:
    Inactive "inactive" "The head of the inactive list, age 0.",
    Active "active" "The head of the active list, with the age of a new page.",
}
choice! {
    /// What a read, or a fault on a page of a file, does to a page (use-once).
    Touch:
    Age "age" "A read of a page of age 0 gives it an age, and no reference.",
    Second "second" "So on the first read of an inactive page; the second one activates.",
    Lookup "lookup" "A lookup of an active page references, of an inactive one activates.",
    Explicit "explicit" "A read or fault activates an inactive_clean page, and references others.",
    Referenced "referenced" "References; an inactive page that is referenced is activated instead.",
}
choice! {
    /// What a write by a system call does to a page.
    Write:
    AsRead "as-read" "What a read does.",
    Drop "drop" "What a read does; a write to the end of the page deactivates it.",
    References "references" "Only references.",
}
choice! {
    /// What read-ahead does to the pages of the window before.
    DropBehind:
    No "no" "Nothing.",
    Window "window" "Deactivates them, back to the first page that is not in memory.",
    UntilInactive "until-inactive" "Deactivates them, back to the first that is not active.",
}
choice! {
    /// When an anonymous page enters a list.
    Anon:
    AtSlot "at-slot" "With its swap slot: it is on no list before.",
    AtFault "at-fault" "At the fault that makes it, as in 2.4.14.",
}
choice! {
    /// Which page table entries the walk unmaps.
    Victims:
    Idle "idle" "All that were not accessed since the last look.",
    Old "old" "Those of pages of age 0; a look at an entry of a page that is not active ages the page.",
    Inactive "inactive" "Not accessed, of pages that are neither active nor inactive and referenced.",
}
choice! {
    /// Which zones the walk spares.
    ZoneTest:
    No "no" "None.",
    First "first" "Those with plenty of inactive pages, before it looks at the entry.",
    AfterAge "after-age" "Those with plenty of inactive pages, after the page was aged.",
    Class "class" "Those that do not help the asking allocation.",
}
choice! {
    /// A zone's inactive_dirty, inactive_clean and free pages are plenty above this part of the zone.
    Plenty:
    Third "third" "A third.",
    TwoFifths "two-fifths" "Two fifths.",
}
choice! {
    /// How far one walk goes.
    Walk:
    Quarter "quarter" "A quarter of the spaces and one, of each 1/32 of its pages, at least 8.",
    Half "half" "Half of the spaces and one, of each 1/32 of its pages, at least 8.",
    Class "class" "Spaces / priority and one, each to its end, until enough pages can be freed.",
    Raced "raced" "So, but a space that another walk left meanwhile counts nothing.",
}
choice! {
    /// How many pages are to be inactive.
    Target:
    No "no" "No target.",
    Pressure "pressure" "A 64th of the memory pressure, at most a quarter of memory.",
    Quarter "quarter" "A quarter of memory.",
    TwiceActive "twice-active" "Twice the active ones.",
    Balance "balance" "A third of both lists: the wanted pages are scaled by active / (2 (inactive + 1)).",
}
choice! {
    /// How inactive pages are cleaned and freed.
    Launder:
    TwoLoops "two-loops" "The whole list without writes; if free pages stay short, again with 64.",
    OnePass "one-pass" "A 64th of the list, with writes.",
    Hysteresis "hysteresis" "The whole list; writes while the part of pages that need them is high.",
    Cache "cache" "Inactive / priority pages of the inactive list.",
    BothLists "both-lists" "Pages of the inactive and of the active list in turn.",
}
choice! {
    /// Which pages go round again if their zone has plenty of free pages.
    Rotate:
    All "all" "All.",
    Dirty "dirty" "Dirty ones and those of no file; clean ones become inactive_clean.",
}
choice! {
    /// Which parts of the page cache are deactivated above a limit.
    Limits:
    No "no" "None.",
    Buffers "buffers" "Pages of block devices above 10 % of memory.",
    Cache "cache" "So, and unmapped pages of files while the page cache is above 50 % of memory.",
}
choice! {
    /// What one run of reclaim does, in which order.
    Balance:
    LaunderFirst "launder-first" "Launder, shrink, then refill until the inactive target is met.",
    RefillFirst "refill-first" "64 times: walk and refill; launder on shortage of free pages; shrink.",
    Gated "gated" "Launder and shrink on shortage of free pages; then refill on shortage of inactive ones.",
    FreeShortage "free-shortage" "Nothing without shortage of free pages; else launder, shrink, refill.",
    Priority "priority" "From priority 6 to 1: slabs, refill, cache, dentries and inodes; else walk.",
}
choice! {
    /// When kswapd works, and when it sleeps.
    Kswapd:
    Shortage "shortage" "On a shortage; sleeps when one of the two is gone.",
    Always "always" "Whenever it wakes, once a second at least; after a failure again without sleep.",
    FreeShortage "free-shortage" "On a shortage of free pages; sleeps when one of the two is gone.",
    Zones "zones" "Balances the zones that allocations asked for; after a failure sleeps 5 s.",
    ZonesAwake "zones-awake" "So, without that sleep.",
}
choice! {
    /// Active pages that kswapd looks at once a second.
    Background:
    No "no" "None.",
    Sixteenth "sixteenth" "A 16th.",
    SixtyFourth "sixty-fourth" "A 64th.",
}
choice! {
    /// Unused dentries and inodes that one pass frees; 0 by division frees all.
    Vfs:
    SixtyFourth "sixty-fourth" "A 64th.",
    All "all" "All.",
    Priority "priority" "A part: 1 / priority.",
}
choice! {
    /// When a page that was read from swap gives its slot up.
    Slots:
    UntilFull "until-full" "When more than 80 % of swap is used.",
    Exclusive "exclusive" "At once, if no other user of the slot is left.",
}
choice! {
    /// Who waits in reclaim for a write of buffers.
    Waits:
    Users "users" "Allocations that freed nothing, after 64 writes.",
    Always "always" "Everybody, kswapd too.",
    Mask "mask" "Allocations that may enter file systems.",
}

macro_rules! choices {
    ($($(#[doc = $what:literal])* $field:ident: $type:ty,)*) => {
        /// All choices: a policy of replacement.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Choices {
            $($(#[doc = $what])* pub $field: $type,)*
        }

        /// The knobs, in the order of the fields.
        pub const KNOBS: &[Knob<Choices>] = &[$(Knob {
            name: stringify!($field),
            what: concat!($($what),*).trim_ascii(),
            values: <$type as Choice>::VALUES,
            get: |choices| choices.$field.value(),
            set: |choices, value| choices.$field = Choice::of(value),
        }),*];
    };
}

choices! {
    /// The lists.
    lists: Lists,
    /// The rule of ages.
    age: Age,
    /// The age of a new page, and the least of an activated one.
    age_start: u32,
    /// What an access adds to the age.
    age_advance: u32,
    /// What a look without access takes from it.
    age_decline: u32,
    /// The highest age.
    age_max: u32,
    /// Where pages of files enter.
    start: Start,
    /// What a read does.
    touch: Touch,
    /// A fault on a page of a file activates it.
    fault_activates: bool,
    /// What a write does.
    write: Write,
    /// What read-ahead does to the pages before its window.
    drop_behind: DropBehind,
    /// When anonymous pages enter a list.
    anon: Anon,
    /// What the walk unmaps.
    victims: Victims,
    /// What the walk spares.
    zone_test: ZoneTest,
    /// What that test calls plenty.
    plenty: Plenty,
    /// How far a walk goes.
    walk: Walk,
    /// A walk begins with the asking task's own space.
    own_first: bool,
    /// Pages that a walk over zones looks for.
    walk_want: u32,
    /// A walk that found enough counts as progress of reclaim.
    walk_counts: bool,
    /// The inactive target.
    target: Target,
    /// Laundering.
    launder: Launder,
    /// Laundering activates pages with an age.
    launder_ages: bool,
    /// The percentage of pages in need of a write from which on laundering writes.
    write_above: u32,
    /// The percentage below which it writes no more.
    write_below: u32,
    /// Laundering activates mapped pages that it meets (with two lists; with three it always does).
    activate_mapped: bool,
    /// Pages that go round in zones with plenty of free pages.
    rotate: Rotate,
    /// Mapped pages can be deactivated.
    deactivate_mapped: bool,
    /// Pages that refill deactivates begin referenced.
    refill_references: bool,
    /// Limits of the page cache.
    limits: Limits,
    /// A run of reclaim.
    balance: Balance,
    /// kswapd.
    kswapd: Kswapd,
    /// Its periodic scan.
    background: Background,
    /// Dentries and inodes.
    vfs: Vfs,
    /// Slots after a read from swap.
    slots: Slots,
    /// Who waits for writes of buffers.
    waits: Waits,
    /// A page with dirty buffers is left alone the first time that laundering meets it (with two lists).
    free_pass: bool,
    /// Writes to swap in flight are limited: above 8 clusters the writer waits for its page.
    limit_writes: bool,
    /// A page freed by the asking task itself is handed over to it.
    hands_over: bool,
}
