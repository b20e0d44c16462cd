//! The contract as checks that every world must pass.
//!
//! ```text
//! for check in conformance::checks::<MyWorld>() {
//!     enter_a_fresh_world(|| check.run())?;        // Err(Broken) names the check and the operands
//! }
//! ```
//!
//! Each check wants a world on which nothing was allocated yet, leaves no slab mapped and no work waiting,
//! and allocates nothing itself, so that the suite also runs inside a kernel. Some checks need the world to
//! do something no allocator asks for (go to another CPU, let time pass, run two pieces of code at once):
//! that is [`Testable`].
//!
//! What the suite cannot show: orderings, unless the world explores schedules (`race.*` under loom); reports
//! of misuse (a lock taken out of order, a link outside a slab), which panic; speed. docs/porting.md says the
//! same in prose.

mod arrays;
mod lists;
mod memory;
mod races;
mod slots;
mod time;
mod topology;
mod words;

use crate::{CpuId, Event, Field, NodeId, Pfn, Platform, Word, Work};
use core::fmt::{self, Display, Write};
use core::marker::PhantomData;

/// What a world does for its checks. No allocator asks for it.
pub trait Testable: Platform {
    /// Whether events are counted; a native world may compile it out.
    const COUNTS: bool = true;
    /// Whether an idle slot is served; `false` for a world that always refuses.
    const SERVES: bool = true;
    /// Whether nothing else runs between two calls, so that every idle slot may be claimed.
    const STANDS_STILL: bool = false;
    /// Whether distances are the same both ways. Firmware may state others.
    const SYMMETRIC: bool = true;

    /// Whether a slot can be claimed while its CPU uses it: a world that stops the CPU for it.
    fn claims_live() -> bool {
        Self::STANDS_STILL
    }
    /// Runs `f` on a CPU, and comes back.
    fn on_cpu<R>(cpu: CpuId, f: impl FnOnce() -> R) -> R;
    /// Takes a CPU up or down.
    fn set_online(cpu: CpuId, online: bool);
    /// Runs `f` while every other CPU stands still.
    fn still<R>(f: impl FnOnce() -> R) -> R;
    /// Lets at least `ns` pass.
    fn advance(ns: u64);
    /// Lets every reader that runs now end.
    fn end_grace_period();
    /// Takes the next deferred work that is due now, and the CPU it is for.
    fn due() -> Option<(CpuId, Work)>;
    /// How often [`Hooks::count`](crate::Hooks::count) counted an event.
    fn counted(event: Event) -> u64;
    /// Runs `first` and `second` at once on their CPUs, in every schedule the world explores, then `last`,
    /// which sees what both did. A world that cannot runs them one after the other.
    fn race<S: 'static>(shared: S, first: Racer<S>, second: Racer<S>, last: fn(&S) -> Verdict) -> Verdict;
}

/// One side of a race: where it runs, and what.
pub type Racer<S> = (CpuId, fn(&S) -> Verdict);

/// What a check's body says: nothing, or what it found.
pub type Verdict = Result<(), Text>;

/// A check that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The check's name.
    pub check: &'static str,
    /// What was found, with the operands.
    pub text: Text,
}

impl Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.text)
    }
}

/// What a check wants of a world before it applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// Slots that are served: [`Testable::SERVES`].
    Slots,
    /// Counters: [`Testable::COUNTS`].
    Counts,
    /// Both.
    CountedSlots,
}

/// A named rule of the contract, and how to see that a world keeps it.
#[derive(Debug)]
pub struct Check<P> {
    /// `group.rule`.
    pub name: &'static str,
    /// The rule, one sentence.
    pub what: &'static str,
    needs: Need,
    body: fn() -> Verdict,
    world: PhantomData<fn() -> P>,
}

impl<P: Testable> Check<P> {
    /// Whether this world promises what the check is about.
    pub fn applies(&self) -> bool {
        match self.needs {
            Need::Nothing => true,
            Need::Slots => P::SERVES,
            Need::Counts => P::COUNTS,
            Need::CountedSlots => P::SERVES && P::COUNTS,
        }
    }

    /// Runs the check on the fresh world that was entered.
    ///
    /// # Errors
    /// The rule is broken.
    pub fn run(&self) -> Result<(), Broken> {
        (self.body)().map_err(|text| Broken { check: self.name, text })
    }
}

/// All checks, simplest first: a world under construction passes a growing head of the list.
pub fn checks<P: Testable>() -> &'static [Check<P>] {
    Suite::<P>::CHECKS
}

struct Suite<P>(PhantomData<fn() -> P>);

macro_rules! suite {
    ($($module:ident.$rule:ident $needs:ident: $what:literal;)*) => {
        impl<P: Testable> Suite<P> {
            const CHECKS: &'static [Check<P>] = &[$(Check {
                name: concat!(stringify!($module), ".", stringify!($rule)),
                what: $what,
                needs: Need::$needs,
                body: $module::$rule::<P>,
                world: PhantomData,
            },)*];
        }
    };
}

suite! {
    topology.numbers Nothing: "There are CPUs, nodes and pages, and the current CPU is one of the CPUs.";
    topology.cpu_nodes Nothing: "A CPU is on a node that exists. Its memory node has memory, or is its own node.";
    topology.memory_node_is_nearest Nothing: "A memory node with memory is the nearest to its CPU. CPUs without memory answer all alike.";
    topology.distances Nothing: "A node is at distance 10 from itself and farther from every other.";
    topology.node_frames Nothing: "Nodes' frames start at multiples of the largest block and do not overlap.";
    topology.on_cpu Nothing: "Code that was put on a CPU runs there, in a task.";

    words.word Nothing: "A word keeps what was stored, by either store, for either load.";
    words.compare_exchange Nothing: "It stores and answers Ok(old) when equal, else leaves alone and answers Err(found).";
    words.field Nothing: "A field keeps what was set.";
    words.try_lock Nothing: "A held lock cannot be taken; a dropped guard lets go; the value persists.";
    words.locks_nest Nothing: "Locks of ascending level can be held together.";
    words.lock_counts Counts: "Taking a lock counts its rank's event, once, and a refusal nothing.";
    words.per_node_once Nothing: "A node's value is made when asked for, once, and nodes do not share one.";
    words.cpu_shared_once Nothing: "A CPU's shared value is made when asked for, once, and CPUs do not share one.";

    memory.frames_distinct Nothing: "Frames start as zero, are distinct by number, and keep their words.";
    memory.maps Nothing: "The words of frames' maps are distinct, and keep what was stored.";
    memory.address_locate Nothing: "locate() undoes address(), in the first frame of a block and in later ones.";
    memory.addresses_differ Nothing: "Objects of a block have distinct addresses, in its frame's number and its head's.";
    memory.links Nothing: "Every object of a slab of any size has a link of its own.";
    memory.link_offset Nothing: "A link is found at the offset it was written at, whatever that is.";
    memory.halves Nothing: "Each 16 bits of a block mapped for objects of 8 bytes keep what was written, whatever is beside.";
    memory.slabs_independent Nothing: "Links of neighbouring slabs of different sizes do not touch.";
    memory.remap Nothing: "A block mapped again, for another size, serves again.";
    memory.storage Nothing: "Storage starts as none, keeps each word, and is none again when attached again.";
    memory.bytes Nothing: "Bytes keep what they were filled with, to the byte, and the first other one is found.";
    memory.whole_words Nothing: "A word keeps what was written; its lowest byte is at the lowest address.";
    memory.bytes_and_links Nothing: "Bytes beside a link and the link leave each other alone.";
    memory.marks Nothing: "Each object has a mark of its own, unmarked at first, apart from its bytes.";
    memory.storage_neighbours Nothing: "Storage and zeroing leave the neighbours' links alone.";

    lists.last_in_first_out Slots: "A hot list pops in the reverse order of the pushes and then refuses.";
    lists.links_in_objects Slots: "A hot list is the chain of links in its objects, none at the end.";
    lists.count Slots: "The count is what was pushed minus what was popped.";
    lists.tag_met Slots: "pop_if and push_if serve exactly when the tag meets the condition.";
    lists.limit Slots: "push_if serves below the limit, not at it, up to the largest count.";
    lists.set_list Slots: "A list given by the owner is served, and read back as it was left.";
    lists.private Slots: "A CPU's list is not another's, nor another cache's.";
    arrays.bounds Slots: "A hot array pops what was pushed last, and refuses when empty, full or absent.";
    arrays.storage Slots: "A hot array keeps its addresses in the storage, behind the header.";
    arrays.swap Slots: "An array taken out and given back is served where it was left.";

    slots.local_excludes_hot Slots: "While a slot is held its hot part refuses, without effect.";
    slots.local_excludes_local Slots: "A slot is held once at a time; dropping it lets go.";
    slots.cold_persists Slots: "A slot starts as the default, keeps its state, and each CPU has its own.";
    slots.claim_held Nothing: "A slot that somebody holds cannot be claimed.";
    slots.claim_live Nothing: "A slot of a CPU that is up cannot be claimed while the world moves.";
    slots.claim_offline Slots: "The slot of a CPU that is down can be claimed, with what it holds.";
    slots.claim_still Slots: "When the world stands still every slot can be claimed.";
    slots.ask Slots: "An owner is told once that it was asked, and nobody else is.";
    slots.counts Counts: "Counts add up per CPU and event, for every event.";
    slots.hot_counts CountedSlots: "A hot operation counts its event when it serves and nothing when it refuses.";
    slots.used Slots: "A slot that was held is used; one never used has counted nothing.";

    time.now_never_back Nothing: "Time does not go back, and passes when it is let.";
    time.not_early Nothing: "Deferred work is not due before its delay, and is after.";
    time.in_order Nothing: "Deferred work comes in the order of its time, on its CPU, with its argument.";
    time.once Nothing: "A work waiting on a CPU is not queued twice; one that ran may be queued again.";
    time.grace_period Nothing: "Work after a grace period is not due at once, and is after the readers ended.";
    time.random_varies Nothing: "random() is not always the same.";
    time.secret Nothing: "The secret is the same on every CPU and at any time.";
    time.counts Counts: "Events outside caches add up.";

    race.word_release Nothing: "What was written before store_release is seen after a load_acquire of it.";
    race.exchange_releases Nothing: "What was written before a compare_exchange is seen after a load_acquire of it.";
    race.exchange_acquires Nothing: "A compare_exchange sees what was written before the one it follows.";
    race.exchange_atomic Nothing: "Of two compare_exchange from one value, one succeeds.";
    race.marks Nothing: "Of two CPUs that take an object's mark away at once, one does.";
    race.lock_excludes Nothing: "Two holders of a lock do not overlap, and each sees what the other did.";
    race.per_node Nothing: "Two CPUs that ask for a node's value at once get the same one.";
    race.cpu_shared Nothing: "A CPU that asks for another's shared value at once gets the same one.";
    race.lists_private Slots: "Two CPUs that push and pop at once each get their own objects.";
    race.hot_same_cpu Slots: "Two tasks of one CPU that pop at once do not get the same object.";
    race.local_same_cpu Slots: "Two tasks of one CPU do not hold its slot at once.";
    race.local_against_pop Slots: "An object is either popped or in the list the owner took, not both.";
    race.ask Slots: "Of an ask and the owner's look, the ask is found then or later, once.";
}

use races as race;

/// What a check found, cut at [`Text::MAX`] bytes: checks allocate nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text {
    bytes: [u8; Text::MAX],
    len: u8,
}

impl Text {
    /// Bytes kept. With the check's name a failure stays below the 128 bytes that clippy allows an error.
    pub const MAX: usize = 103;

    /// The text of a message.
    pub fn new(message: fmt::Arguments<'_>) -> Text {
        let mut text = Text { bytes: [0; Text::MAX], len: 0 };
        // The only error is that the buffer is full: the head of the message is what matters.
        let _ = text.write_fmt(message);
        text
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        let bytes = &self.bytes[..self.len as usize];
        match str::from_utf8(bytes) {
            Ok(text) => text,
            Err(cut) => str::from_utf8(&bytes[..cut.valid_up_to()]).unwrap_or(""),
        }
    }
}

impl Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let start = self.len as usize;
        let fits = part.len().min(Text::MAX - start);
        self.bytes[start..start + fits].copy_from_slice(&part.as_bytes()[..fits]);
        self.len += fits as u8;
        if fits == part.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

impl Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Leaves the check with a message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::conformance::Text::new(format_args!($($message)+)));
        }
    };
}
use ensure;

/// Leaves the check unless both sides are equal.
macro_rules! ensure_eq {
    ($found:expr, $expected:expr, $what:literal $($argument:tt)*) => {{
        let (found, expected) = ($found, $expected);
        $crate::conformance::ensure!(
            found == expected,
            "{}: {found:?}, expected {expected:?}",
            format_args!($what $($argument)*)
        );
    }};
}
use ensure_eq;

/// A mapped slab of the checks' own: unmapped when dropped.
struct Slab<P: Platform> {
    pfn: Pfn,
    order: u8,
    size: u32,
    world: PhantomData<fn() -> P>,
}

impl<P: Platform> Slab<P> {
    /// The `nth` slab of objects of `size` bytes at the start of the first node with memory.
    fn new(nth: u32, size: u32) -> Result<Slab<P>, Text> {
        let page = 1u32 << P::page_shift();
        let order = (0..8).find(|order| page << order >= 2 * size).unwrap_or(8);
        let node = first_memory::<P>()?;
        let (first, count) = P::node_frames(node);
        ensure!(
            (nth + 1) << order <= count,
            "{node:?} has {count} frames: the check needs {}",
            (nth + 1) << order
        );
        let pfn = first.plus(nth << order);
        let committed = P::commit_descriptors(pfn, 1 << order) && P::commit_frames(pfn, 1 << order);
        ensure!(committed, "no memory for 2^{order} frames from {pfn:?} on");
        P::map_slab(pfn, order, size, 0);
        Ok(Slab { pfn, order, size, world: PhantomData })
    }

    fn objects(&self) -> u32 {
        (1 << (P::page_shift() + self.order as u32)) / self.size
    }

    fn object(&self, index: u32) -> P::Ptr {
        P::address(self.pfn, index as u64 * self.size as u64)
    }
}

impl<P: Platform> Drop for Slab<P> {
    fn drop(&mut self) {
        P::unmap_slab(self.pfn, self.order);
    }
}

fn first_memory<P: Platform>() -> Result<NodeId, Text> {
    let with_memory = |node: &NodeId| P::node_frames(*node).1 > 0;
    (0..P::nodes()).map(NodeId).find(with_memory).ok_or(Text::new(format_args!("no node has memory")))
}

/// Another CPU than the first; the first when there is no other.
fn second_cpu<P: Platform>() -> CpuId {
    CpuId(1.min(P::cpus() - 1))
}

/// A word and the field it publishes.
struct Pair<P: Platform> {
    word: P::Word,
    field: P::Field,
}

impl<P: Platform> Default for Pair<P> {
    fn default() -> Self {
        Pair { word: P::Word::new(0), field: P::Field::new(0) }
    }
}
