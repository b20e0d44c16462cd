//! What a machine of level `cost` keeps: clocks, lines, prices, and where time went.

use crate::calls::Calls;
use crate::coherence::{self, Caches, Source};
use crate::hardware::{Hardware, Ps};
use crate::level::{Access, Place};
use crate::spec::{BadSpec, MachineSpec};
use crate::tlb::Tlbs;
use crate::walks::Walks;
use slablab_platform::{CpuId, Event, NodeId, Pfn, Reclaim, Reclaimed};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

/// What an engine's operations cost beside the lines they touch, by its release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// An allocation from the CPU's free list.
    pub list_pop: Ps,
    /// A free to the CPU's free list.
    pub list_push: Ps,
    /// An allocation from the CPU's array.
    pub array_pop: Ps,
    /// A free to the CPU's array.
    pub array_push: Ps,
    /// The way into a slow path.
    pub hold: Ps,
    /// An exchange of a slab's word: a locked exchange of 16 bytes, or the bit lock around two writes.
    pub exchange: Ps,
    /// Taking a free spinlock whose line this CPU has, and giving it back; with interrupts off, that too.
    pub lock: Ps,
    /// Whether the links of free objects are in the slab's descriptor (SLAB's bufctl) and not in the objects.
    pub links_in_descriptor: bool,
}

/// Kinds of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Spent {
    /// Instructions, and lines that were in the CPU's caches.
    Compute = 0,
    /// Lines that other CPUs' caches had.
    Transfer = 1,
    /// Lines that memory had.
    Memory = 2,
    /// Waiting for locks.
    LockWait = 3,
}

impl Spent {
    /// Number of kinds.
    pub const COUNT: usize = 4;
}

/// What a machine's locks of one rank did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockTimes {
    /// How often one was taken.
    pub taken: u64,
    /// How often a call waited for it.
    pub waited: u64,
    /// How long calls waited.
    pub wait: Ps,
    /// How long calls held it.
    pub hold: Ps,
}

impl std::ops::Sub for LockTimes {
    type Output = LockTimes;

    fn sub(self, earlier: LockTimes) -> LockTimes {
        LockTimes {
            taken: self.taken - earlier.taken,
            waited: self.waited - earlier.waited,
            wait: self.wait - earlier.wait,
            hold: self.hold - earlier.hold,
        }
    }
}

/// The words of the lines of an object that is storage.
pub(crate) type Lines = Box<[Cell<u64>]>;

/// What a machine does for requests that find no page.
pub trait ReclaimPolicy {
    /// [`slablab_platform::Hooks::reclaim`]. It runs in the call that asks, and may park it.
    fn reclaim(&self, ask: Reclaim) -> Reclaimed;
    /// A block of this order is requested of the page allocator: before anything is looked for.
    fn requested(&self, _order: u8) {}
    /// [`slablab_platform::Hooks::clean_frames`].
    fn clean_frames(&self, _node: NodeId, _zone: u8) -> u64 {
        0
    }
    /// [`slablab_platform::Hooks::keeps_freed`].
    fn keeps_freed(&self, _pfn: Pfn, _order: u8) -> bool {
        false
    }
}

/// A function that serves requests, without clean pages and without task-local ones.
pub(crate) struct Serves<F>(pub(crate) F);

impl<F: Fn(Reclaim) -> Reclaimed> ReclaimPolicy for Serves<F> {
    fn reclaim(&self, ask: Reclaim) -> Reclaimed {
        self.0(ask)
    }
}

/// A wait for a lock that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// The CPU whose call waited.
    pub cpu: CpuId,
    /// The level of the lock's rank.
    pub level: u8,
    /// When the call came to the lock.
    pub from: Ps,
    /// When the call had it.
    pub to: Ps,
}

/// What hears of each wait for a lock.
type LockWatch = Rc<dyn Fn(LockWait)>;

/// What hears of each event that an engine counts.
type EventWatch = Rc<dyn Fn(Event)>;

/// A number of a cache line that holds words of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineId(pub(crate) u32);

/// A line of memory that no frame has, and who has read it since it was written.
#[derive(Debug)]
struct OwnLine {
    line: LineId,
    /// The line's word when it was last touched here.
    word: u64,
    /// A bit for each CPU.
    sharers: Box<[u64]>,
}

/// A hash of numbers of lines, which are no one's to choose.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }
    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ mixed >> 32;
    }
}

/// Bytes of a word of the allocator's own data.
const WORD_BYTES: u32 = 8;
/// Levels of ranks.
const RANKS: usize = 128;

/// What a machine of level `cost` keeps.
pub struct Clocks {
    pub(crate) clock: Vec<Cell<Ps>>,
    pub(crate) caches: Caches,
    pub(crate) hardware: Hardware,
    pub(crate) paths: Paths,
    pub(crate) calls: Calls,
    /// Words of lines, and where the next word goes.
    pub(crate) lines: RefCell<Vec<Cell<u64>>>,
    words_left: Cell<u32>,
    /// The line that words lie on which are being made, in the place of a line of their own.
    line_given: Cell<Option<LineId>>,
    /// Places in `own` of lines of memory that no frame has, by their numbers in the addresses of the code
    /// whose memory it is.
    own_places: RefCell<HashMap<u64, u32, BuildHasherDefault<Mixed>>>,
    own: RefCell<Vec<OwnLine>>,
    /// Code that is no engine reports what it touches: lines of objects are kept one by one.
    pub(crate) keeps_lines: Cell<bool>,
    /// The home of the lines of the group whose words are being made.
    group: Cell<Option<u16>>,
    /// For each node the nearest node with memory.
    memory_of: Vec<u16>,
    tlbs: Tlbs,
    /// The walk over independent objects that the running call is in.
    pub(crate) walks: Walks,
    pub(crate) reclaim: RefCell<Option<Rc<dyn ReclaimPolicy>>>,
    pub(crate) watch: RefCell<Option<LockWatch>>,
    /// Whether `events` has a watch.
    pub(crate) watches_events: Cell<bool>,
    pub(crate) events: RefCell<Option<EventWatch>>,
    pub(crate) locks: RefCell<Vec<LockTimes>>,
    pub(crate) spent: Vec<[Cell<Ps>; Spent::COUNT]>,
    pub(crate) moved: Cell<u64>,
    /// Waits for locks by CPU and rank, for the heat map.
    pub(crate) waits: RefCell<Vec<Vec<Ps>>>,
    /// The random stream of unfair locks.
    pub(crate) random: Cell<u64>,
}

impl std::fmt::Debug for Clocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clocks")
            .field("calls", &self.calls)
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}

impl Clocks {
    /// Untouched lines, and clocks at 0.
    pub(crate) fn new(spec: &MachineSpec, hardware: Hardware, paths: Paths) -> Result<Clocks, BadSpec> {
        let cpus = spec.cpu_node.len();
        Ok(Clocks {
            clock: vec![Cell::new(0); cpus],
            caches: Caches::new(spec, &hardware)?,
            tlbs: Tlbs::new(cpus, &hardware.costs),
            walks: Walks::new(&hardware.costs),
            hardware,
            paths,
            calls: Calls::default(),
            lines: RefCell::default(),
            words_left: Cell::new(0),
            line_given: Cell::new(None),
            own_places: RefCell::default(),
            own: RefCell::default(),
            keeps_lines: Cell::new(false),
            group: Cell::new(None),
            memory_of: (0..spec.nodes.len() as u16).map(|node| spec.nearest_memory(node)).collect(),
            reclaim: RefCell::new(None),
            watch: RefCell::new(None),
            watches_events: Cell::new(false),
            events: RefCell::new(None),
            locks: RefCell::new(vec![LockTimes::default(); RANKS]),
            spent: (0..cpus).map(|_| Default::default()).collect(),
            moved: Cell::new(0),
            waits: RefCell::new(vec![vec![0; RANKS]; cpus]),
            random: Cell::new(!spec.seed),
        })
    }

    #[inline]
    pub(crate) fn charge(&self, cpu: CpuId, ps: Ps, kind: Spent) {
        if self.calls.running().is_some() {
            self.spend(cpu, ps, kind);
        }
    }

    /// Charges the running call.
    #[inline]
    fn spend(&self, cpu: CpuId, ps: Ps, kind: Spent) {
        let clock = &self.clock[cpu.0 as usize];
        clock.set(clock.get() + ps);
        let spent = &self.spent[cpu.0 as usize][kind as usize];
        spent.set(spent.get() + ps);
    }

    pub(crate) fn clock(&self, cpu: CpuId) -> Ps {
        self.clock[cpu.0 as usize].get()
    }

    /// A CPU's clock goes to `at`, never back. Returns the clock.
    pub(crate) fn advance(&self, cpu: u16, at: Ps) -> Ps {
        let clock = &self.clock[cpu as usize];
        clock.set(clock.get().max(at));
        clock.get()
    }

    // Inlined into the few functions that touch a word, a link or an object: nearly all touches hit.
    #[inline(always)]
    fn touch(&self, word: &Cell<u64>, cpu: CpuId, lines: u64, access: Access, most: Ps) {
        if self.calls.running().is_none() {
            return;
        }
        let (after, price, source) = self.caches.touch(word.get(), cpu.0, lines, access);
        word.set(after);
        if source == Source::Hit {
            return self.spend(cpu, price.min(most), Spent::Compute);
        }
        let kind = if source == Source::Transfer { Spent::Transfer } else { Spent::Memory };
        self.moved.set(self.moved.get() + lines);
        self.spend(cpu, self.walks.waits(price.min(most)), kind);
    }

    /// CPU `cpu` touches a line of the allocator's words.
    #[inline(always)]
    pub(crate) fn line(&self, cpu: CpuId, line: LineId, access: Access) {
        self.touch(&self.lines.borrow()[line.0 as usize], cpu, 1, access, Ps::MAX);
    }

    /// Lets calls with earlier clocks than CPU `cpu`'s go first.
    #[inline]
    pub(crate) fn turn(&self, cpu: CpuId) {
        // Other calls run now, and a lock comes after a turn: its locked instruction waits for all lines.
        self.walks.end();
        self.calls.turn(self.clock(cpu), cpu);
    }

    /// An object's or a page's lines are touched, from its first one on.
    #[inline]
    pub(crate) fn object(&self, cpu: CpuId, beside: &Cell<u64>, at: Place, bytes: u32, access: Access) {
        if self.calls.running().is_none() {
            return;
        }
        if self.tlbs.misses(cpu.0, at.address) {
            self.charge(cpu, self.hardware.costs.tlb_miss, Spent::Memory);
        }
        // The links of a slab that was given back served other frames since.
        if !coherence::is_of(beside.get(), at.home) {
            beside.set(coherence::untouched(at.home));
        }
        let lines = bytes.div_ceil(self.caches.line_bytes()).max(1) as u64;
        let most = match access {
            // A line that is overwritten whole is not read first.
            Access::Zero => (bytes as Ps * self.hardware.costs.zero_kib).div_ceil(1024),
            _ => Ps::MAX,
        };
        self.touch(beside, cpu, lines, access, most);
    }

    /// The lines of storage of `words` words.
    pub(crate) fn storage_lines(&self, words: u32, home: u16) -> Lines {
        let lines = words.div_ceil(self.caches.line_bytes() / WORD_BYTES);
        (0..lines).map(|_| Cell::new(coherence::untouched(home))).collect()
    }

    /// Word `index` of storage is touched.
    #[inline]
    pub(crate) fn storage(&self, cpu: CpuId, lines: &Lines, index: u32, access: Access) {
        let line = index / (self.caches.line_bytes() / WORD_BYTES);
        self.touch(&lines[line as usize], cpu, 1, access, Ps::MAX);
    }

    /// The line of a word of the allocator that is made now by a CPU of node `node`: the next word of the
    /// group that is being made, or a line of its own.
    pub(crate) fn new_word(&self, node: u16) -> LineId {
        if let Some(line) = self.line_given.get() {
            return line;
        }
        let home = self.group.get();
        if home.is_none() || self.words_left.get() == 0 {
            let home = home.unwrap_or_else(|| self.memory_of(node));
            self.lines.borrow_mut().push(Cell::new(coherence::untouched(home)));
            self.words_left.set(self.caches.line_bytes() / WORD_BYTES);
        }
        self.words_left.set(self.words_left.get() - 1);
        LineId(self.lines.borrow().len() as u32 - 1)
    }

    /// The line of an address that no frame has, on node `node`.
    pub(crate) fn own_line(&self, address: u64, node: u16) -> LineId {
        let place = self.own_place(address, node);
        self.own.borrow()[place as usize].line
    }

    fn own_place(&self, address: u64, node: u16) -> u32 {
        let number = address / u64::from(self.caches.line_bytes());
        *self.own_places.borrow_mut().entry(number).or_insert_with(|| {
            let (mut lines, mut own) = (self.lines.borrow_mut(), self.own.borrow_mut());
            // The group that is being made goes on behind it, on a new line.
            self.words_left.set(0);
            lines.push(Cell::new(coherence::untouched(self.memory_of(node))));
            let sharers = vec![0; self.clock.len().div_ceil(64)].into();
            own.push(OwnLine { line: LineId(lines.len() as u32 - 1), word: 0, sharers });
            own.len() as u32 - 1
        })
    }

    /// CPU `cpu` touches the line of an address that no frame has. All CPUs read their own copy that have
    /// read the line since it was last written.
    pub(crate) fn own(&self, cpu: CpuId, address: u64, node: u16, access: Access) {
        let place = self.own_place(address, node);
        let own = &mut self.own.borrow_mut()[place as usize];
        let (word, bit) = (cpu.0 as usize / 64, 1 << (cpu.0 % 64));
        let lines = self.lines.borrow();
        let line = &lines[own.line.0 as usize];
        // A lock that lies on the line was taken meanwhile.
        if line.get() != own.word || access != Access::Read {
            own.sharers.fill(0);
        }
        if own.sharers[word] & bit != 0 && !coherence::is_last(line.get(), cpu.0) {
            return self.spend(cpu, self.caches.between(cpu.0, cpu.0), Spent::Compute);
        }
        self.touch(line, cpu, 1, access, Ps::MAX);
        own.sharers[word] |= bit;
        own.word = line.get();
    }

    /// Makes words that lie on `line`.
    pub(crate) fn on_line<T>(&self, line: LineId, make: impl FnOnce() -> T) -> T {
        let outer = self.line_given.replace(Some(line));
        let made = make();
        self.line_given.set(outer);
        made
    }

    /// A line of an object is touched together with the one before it: lines are fetched in parallel.
    pub(crate) fn next_line(&self, cpu: CpuId, beside: &Cell<u64>, at: Place, bytes: u32, access: Access) {
        if self.calls.running().is_none() {
            return;
        }
        if !coherence::is_of(beside.get(), at.home) {
            beside.set(coherence::untouched(at.home));
        }
        let (after, price, source) = self.caches.touch(beside.get(), cpu.0, 1, access);
        beside.set(after);
        let price = match access {
            Access::Zero => price.min((bytes as Ps * self.hardware.costs.zero_kib).div_ceil(1024)),
            _ if source == Source::Hit => price,
            _ => self.caches.next_of(price),
        };
        let kind = match source {
            Source::Hit => Spent::Compute,
            Source::Transfer => Spent::Transfer,
            Source::Memory => Spent::Memory,
        };
        self.moved.set(self.moved.get() + u64::from(source != Source::Hit));
        self.spend(cpu, price, kind);
    }

    /// Makes words that lie together on node `node`, from the start of a line on.
    pub(crate) fn group<T>(&self, node: u16, make: impl FnOnce() -> T) -> T {
        self.words_left.set(0);
        let outer = self.group.replace(Some(self.memory_of(node)));
        let made = make();
        self.group.set(outer);
        // The next word of the outer group starts a line.
        self.words_left.set(0);
        made
    }

    /// Where memory for a node is: there, or on the nearest node that has memory.
    fn memory_of(&self, node: u16) -> u16 {
        self.memory_of[node as usize]
    }

    pub(crate) fn bytes(&self) -> usize {
        let cpus = self.clock.len();
        cpus * (size_of::<Ps>() * (2 + Spent::COUNT + RANKS))
            + self.lines.borrow().capacity() * size_of::<u64>()
            + self.tlbs.bytes()
            + self.caches.bytes()
    }

    pub(crate) fn lock_times(&self, level: u8, change: impl FnOnce(&mut LockTimes)) {
        change(&mut self.locks.borrow_mut()[level as usize]);
    }
}
