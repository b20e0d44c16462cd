//! The zones that debugging puts around an object: their places, their contents, and the checks of their
//! contents.
//!
//! ```text
//! start                                                                                    start + size
//! | left red zone | object | right red zone | link | two records of users | size asked | padding |
//! ```
//!
//! If the requested size is recorded, the right red zone of an allocated object begins after that many bytes
//! of the object.
//!
//! Sizes are the kernel's (docs/theory/slub.md 7), byte for byte those of a 6.1 booted with
//! `slub_debug=FZPU`. docs/debugging.md describes other releases. The objects of every engine get equal
//! zones. The engine knows only the start of the slot, its size, and the place of the link, as if a caller
//! had requested such objects.

use crate::cache::{CacheFlags, CacheSpec, LinkPlace, SlotLayout, WORD, alignment};
use crate::release::Release;
use crate::report::{Overwritten, User, Zone};
use core::fmt;
use slablab_platform::{CpuId, Platform};

/// The checks of `slub_debug`, by letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Letters {
    /// F: checks that an object belongs to the cache, and whether it is free.
    pub checks: bool,
    /// Z: red zones.
    pub red_zone: bool,
    /// P: poison.
    pub poison: bool,
    /// U: records of the users that allocated and freed an object.
    pub users: bool,
    /// O: no debugging for caches whose slabs would need a higher order.
    pub keep_orders: bool,
}

impl Letters {
    /// No checks.
    pub const NONE: Letters =
        Letters { checks: false, red_zone: false, poison: false, users: false, keep_orders: false };
    /// All letters, as [`Letters::parse`] accepts them.
    pub const ALL: &'static str = "FZPUO";

    /// Parses at least one letter, in any order and either case. `off` and `-` mean none.
    pub fn parse(text: &str) -> Option<Letters> {
        if matches!(text, "off" | "-") {
            return Some(Letters::NONE);
        }
        let bit = |letter: char| Letters::ALL.find(letter.to_ascii_uppercase()).map(|index| 1 << index);
        let bits = text.chars().try_fold(0, |bits, letter| Some(bits | bit(letter)?))?;
        (bits > 0).then(|| Letters::from_bits(bits))
    }

    /// The letters whose bits are set, in the order of [`Letters::ALL`].
    pub const fn from_bits(bits: u64) -> Letters {
        Letters {
            checks: bits & 1 != 0,
            red_zone: bits & 2 != 0,
            poison: bits & 4 != 0,
            users: bits & 8 != 0,
            keep_orders: bits & 16 != 0,
        }
    }

    /// The letters as a set of bits.
    pub const fn bits(self) -> u64 {
        let Letters { checks, red_zone, poison, users, keep_orders } = self;
        checks as u64
            | (red_zone as u64) << 1
            | (poison as u64) << 2
            | (users as u64) << 3
            | (keep_orders as u64) << 4
    }

    /// Whether any letter other than `O` is set.
    pub fn is_on(self) -> bool {
        self.checks || self.widens()
    }

    /// Whether objects need more memory. Such a cache does not share slabs with other caches.
    pub fn widens(self) -> bool {
        self.red_zone || self.poison || self.users
    }
}

impl fmt::Display for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bits() == 0 {
            return f.write_str("off");
        }
        let mut given = Letters::ALL.chars().enumerate().filter(|(index, _)| self.bits() >> index & 1 == 1);
        given.try_for_each(|(_, letter)| write!(f, "{letter}"))
    }
}

/// The contents of free objects.
pub const POISON_FREE: u8 = 0x6b;
/// The last byte of free objects.
pub const POISON_END: u8 = 0xa5;
/// The contents of the padding.
pub const PADDING: u8 = 0x5a;
/// The contents of red zones of free objects.
pub const RED_INACTIVE: u8 = 0xbb;
/// The contents of red zones of allocated objects.
pub const RED_ACTIVE: u8 = 0xcc;

/// Bytes of a user's record: address, stack handle, CPU, process, time. Until 5.17 a record also has the
/// whole stack.
const RECORD: u32 = 32;
const RECORD_WITH_STACK: u32 = 152;
const STACK_DEPOT_SINCE: Release = Release::new(5, 18, 0);
const LEFT_RED_ZONE_SINCE: Release = Release::new(4, 7, 0);
const SIZE_ASKED_SINCE: Release = Release::new(6, 1, 0);

/// Whether the sizes are known for the release, and not assumed from another one.
pub fn sizes_are_known(release: Release) -> bool {
    release >= SIZE_ASKED_SINCE
}

/// The places of an object's zones, in bytes from the slot's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zones {
    /// Bytes from one slot to the next.
    pub size: u32,
    /// The start of the object, which is the end of the left red zone.
    pub left: u32,
    /// Bytes of the object.
    pub object_size: u32,
    /// The place of the link in a free object.
    pub link: u32,
    /// The end of the right red zone, which begins after the object.
    red_end: u32,
    /// The start of the padding, which ends with the slot.
    padding: u32,
    red_zone: bool,
    /// The place of the records, and the bytes of one; `None` without records.
    records: Option<(u32, u32)>,
    /// Whether the requested size is recorded, in the word before the padding.
    sized: bool,
    contents: Contents,
}

/// The content of a free object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// Any bytes: contents survive a free, or no check reads them.
    Kept,
    /// Poison.
    Poison,
    /// Zeros (`init_on_free`).
    Zeros,
}

/// The two records of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Track {
    /// The last user that allocated the object.
    Alloc = 0,
    /// The last user that freed the object.
    Free = 1,
}

impl Zones {
    /// The zones of a cache's objects; `None` if the letters ask for none.
    ///
    /// `place` is the link's place without debugging. A size that is known from a real kernel is not used,
    /// because it may be a size with debugging or without.
    pub fn new(spec: &CacheSpec, place: LinkPlace, letters: Letters, release: Release) -> Option<Zones> {
        if !letters.widens() {
            return None;
        }
        let object_size = spec.object_size.max(1);
        let align = alignment(spec);
        let rounded = object_size.next_multiple_of(WORD);
        let has_left = letters.red_zone && release >= LEFT_RED_ZONE_SINCE;
        let left = if has_left { WORD.next_multiple_of(align) } else { 0 };
        let gap = if letters.red_zone && rounded == object_size { WORD } else { 0 };
        let red_end = left + rounded + gap;
        let survives = spec.flags.keeps_contents();
        let no_room = letters.red_zone && object_size < WORD;
        let (link, mut end) = match place {
            _ if survives || letters.poison || no_room => (red_end, red_end + WORD),
            LinkPlace::Start => (left, red_end),
            LinkPlace::Middle => (left + object_size / 2 / WORD * WORD, red_end),
        };
        let record = if release < STACK_DEPOT_SINCE { RECORD_WITH_STACK } else { RECORD };
        let records = letters.users.then_some((end, record));
        if letters.users {
            end += 2 * record;
        }
        let sized = letters.users && spec.flags.has(CacheFlags::KMALLOC) && release >= SIZE_ASKED_SINCE;
        end += if sized { WORD } else { 0 };
        // One more word, so that a write past the records is found before it reaches the next object.
        let size = (end + if letters.red_zone { WORD } else { 0 }).next_multiple_of(align);
        let contents = if letters.poison && !survives { Contents::Poison } else { Contents::Kept };
        let red_zone = letters.red_zone;
        Some(Zones {
            size,
            left,
            object_size,
            link,
            red_end,
            padding: end,
            red_zone,
            records,
            sized,
            contents,
        })
    }

    /// These zones for a cache whose free objects are zeroed instead of poisoned.
    pub fn zeroing(self) -> Zones {
        let contents = if self.contents == Contents::Poison { Contents::Zeros } else { self.contents };
        Zones { contents, ..self }
    }

    /// The slot that the engine must provide.
    pub fn slot(&self) -> SlotLayout {
        SlotLayout { size: self.size, left: self.left, link: self.link }
    }

    /// Whether the bytes of a free object are known, so that a write to it can be found.
    pub fn knows_contents(&self) -> bool {
        self.contents != Contents::Kept
    }

    /// Writes all zones of a slot for a free object that was never allocated.
    pub fn make<P: Platform>(&self, start: P::Ptr) {
        let at = |offset: u32| ahead::<P>(start, offset);
        P::fill(at(self.padding), self.size - self.padding, PADDING);
        if let Some((records, _)) = self.records {
            for track in [Track::Alloc, Track::Free] {
                P::set_word(at(records + self.record_of(track) + 8), 0);
            }
        }
        self.set_free::<P>(start);
    }

    /// Writes the zones of an object that is allocated for a request of `bytes` bytes.
    pub fn set_allocated<P: Platform>(&self, start: P::Ptr, bytes: u32) {
        self.set_red::<P>(start, RED_ACTIVE);
        if !self.sized {
            return;
        }
        P::set_word(ahead::<P>(start, self.padding - WORD), bytes as u64);
        if self.red_zone && bytes < self.object_size {
            P::fill(ahead::<P>(start, self.left + bytes), self.object_size - bytes, RED_ACTIVE);
        }
    }

    /// The requested bytes of an allocated object if they are recorded, else the object's size.
    pub fn asked<P: Platform>(&self, start: P::Ptr) -> u32 {
        // A caller that writes past its object can overwrite the recorded size.
        let noted = self.sized.then(|| P::word(ahead::<P>(start, self.padding - WORD)));
        let bytes = noted.and_then(|bytes| u32::try_from(bytes).ok());
        bytes.filter(|bytes| *bytes <= self.object_size).unwrap_or(self.object_size)
    }

    /// Writes the zones of a free object.
    pub fn set_free<P: Platform>(&self, start: P::Ptr) {
        self.set_red::<P>(start, RED_INACTIVE);
        let object = ahead::<P>(start, self.left);
        match self.contents {
            Contents::Kept => {}
            Contents::Zeros => P::fill(object, self.object_size, 0),
            Contents::Poison => {
                P::fill(object, self.object_size - 1, POISON_FREE);
                P::fill(ahead::<P>(object, self.object_size - 1), 1, POISON_END);
            }
        }
    }

    fn set_red<P: Platform>(&self, start: P::Ptr, value: u8) {
        if self.red_zone {
            P::fill(start, self.left, value);
            let behind = self.left + self.object_size;
            P::fill(ahead::<P>(start, behind), self.red_end - behind, value);
        }
    }

    /// Writes the zones that never change, after a report. The records stay.
    pub fn repair<P: Platform>(&self, start: P::Ptr) {
        P::fill(ahead::<P>(start, self.padding), self.size - self.padding, PADDING);
    }

    /// Checks all zones of an allocated object.
    pub fn check_allocated<P: Platform>(&self, start: P::Ptr) -> Option<Overwritten> {
        self.check_around::<P>(start, self.asked::<P>(start), RED_ACTIVE)
    }

    /// Checks all zones of a free object, and its contents if they are known.
    pub fn check_free<P: Platform>(&self, start: P::Ptr) -> Option<Overwritten> {
        let contents = || {
            let last = self.object_size - 1;
            let (from, bytes) = (self.left, self.object_size);
            match self.contents {
                Contents::Kept => None,
                Contents::Zeros => self.look::<P>(start, Zone::Poison, from, bytes, 0),
                Contents::Poison => self
                    .look::<P>(start, Zone::Poison, from, last, POISON_FREE)
                    .or_else(|| self.look::<P>(start, Zone::Poison, from + last, 1, POISON_END)),
            }
        };
        self.check_around::<P>(start, self.object_size, RED_INACTIVE).or_else(contents)
    }

    fn check_around<P: Platform>(&self, start: P::Ptr, bytes: u32, red: u8) -> Option<Overwritten> {
        let behind = self.left + bytes;
        let red = |zone, from, bytes| {
            if self.red_zone { self.look::<P>(start, zone, from, bytes, red) } else { None }
        };
        red(Zone::LeftRedZone, 0, self.left)
            .or_else(|| red(Zone::RightRedZone, behind, self.red_end - behind))
            .or_else(|| {
                let bytes = self.size - self.padding;
                self.look::<P>(start, Zone::Padding, self.padding, bytes, PADDING)
            })
    }

    fn look<P: Platform>(
        &self,
        start: P::Ptr,
        zone: Zone,
        from: u32,
        bytes: u32,
        expected: u8,
    ) -> Option<Overwritten> {
        let (at, found) = P::differs(ahead::<P>(start, from), bytes, expected)?;
        Some(Overwritten { zone, offset: (from + at) as i32 - self.left as i32, found, expected })
    }

    /// Whether users are recorded.
    pub fn has_records(&self) -> bool {
        self.records.is_some()
    }

    fn record_of(&self, track: Track) -> u32 {
        self.records.map_or(0, |(_, bytes)| track as u32 * bytes)
    }

    /// Records a user, if users are recorded.
    pub fn set_user<P: Platform>(&self, start: P::Ptr, track: Track, user: User) {
        let Some((records, _)) = self.records else { return };
        let at = ahead::<P>(start, records + self.record_of(track));
        P::set_word(at, user.site);
        // The CPU's number plus one: 0 means that there is no user.
        P::set_word(ahead::<P>(at, 8), user.cpu.0 as u64 + 1);
        P::set_word(ahead::<P>(at, 16), user.at_ns);
    }

    /// The user that was recorded last; `None` if there is none, or if users are not recorded.
    pub fn user<P: Platform>(&self, start: P::Ptr, track: Track) -> Option<User> {
        let (records, _) = self.records?;
        let at = ahead::<P>(start, records + self.record_of(track));
        let cpu = P::word(ahead::<P>(at, 8)).checked_sub(1)?;
        Some(User { site: P::word(at), cpu: CpuId(cpu as u16), at_ns: P::word(ahead::<P>(at, 16)) })
    }
}

/// The address `bytes` bytes after `at`, in the same block.
pub fn ahead<P: Platform>(at: P::Ptr, bytes: u32) -> P::Ptr {
    let (pfn, offset) = P::locate(at);
    P::address(pfn, offset as u64 + bytes as u64)
}
