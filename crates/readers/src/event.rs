//! The vocabulary every recording reader speaks: events, losses, and what is known about the recording.
//!
//! A reader is a [`Source`]: a pull stream of [`Item`]s in time order, with the [`Header`] and the interned
//! [`Names`] beside it. An event is a small `Copy` value; every text in it is a [`Name`], looked up in the
//! source's table. What a recording does not say is `None`, never a guess: 6.18's `kmalloc` has no cache
//! name, a text trace has no irq context, a reader of either does not invent one.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::gfp::GfpTable;

/// `kmalloc(0)` returns this address; the kernel frees it without touching a cache.
pub const ZERO_SIZE_PTR: u64 = 16;

/// The largest block that a page allocator of Linux ever had: 512 MiB, order 13 of 64K pages. An allocation
/// of more bytes is none of a kernel: the event is damaged.
pub const LARGEST_BLOCK_BYTES: u64 = 512 << 20;

/// A text of the recording (a task's comm, a cache, a symbol), as an index into the source's [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(NonZeroU32);

impl Name {
    /// A dense index from 0, for tables indexed by name.
    #[inline]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The interned texts of one recording. Names are never removed, so a [`Name`] stays valid while the table
/// lives.
///
/// At most [`Names::LIMIT`] texts of [`Names::BYTES_LIMIT`] bytes together are kept, so that a hostile file
/// cannot grow the table without end; further texts all become the name of [`Names::OVERFLOW`]. The hash is
/// the standard one, whose collisions a file cannot aim at.
#[derive(Clone, Debug, Default)]
pub struct Names {
    texts: Vec<Arc<str>>,
    index: HashMap<Arc<str>, Name>,
    bytes: usize,
}

impl Names {
    /// The largest number of distinct texts kept.
    pub const LIMIT: usize = 1 << 20;
    /// The largest sum of their lengths.
    pub const BYTES_LIMIT: usize = 64 << 20;
    /// What a text becomes when the table is full.
    pub const OVERFLOW: &str = "(too many names)";

    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// The name of `text`, new or known.
    pub fn intern(&mut self, text: &str) -> Name {
        if let Some(&name) = self.index.get(text) {
            return name;
        }
        let full = self.texts.len() >= Self::LIMIT || self.bytes + text.len() > Self::BYTES_LIMIT;
        if full && text != Self::OVERFLOW {
            return self.intern(Self::OVERFLOW);
        }
        let text: Arc<str> = text.into();
        self.bytes += text.len();
        self.texts.push(text.clone());
        let name =
            Name(NonZeroU32::new(self.texts.len() as u32).expect("just pushed, so the length is not 0"));
        self.index.insert(text, name);
        name
    }

    /// The name of `text` if it has one.
    pub fn find(&self, text: &str) -> Option<Name> {
        self.index.get(text).copied()
    }

    /// The text of `name`. A name of another table gives an empty text or a wrong one.
    pub fn text(&self, name: Name) -> &str {
        self.texts.get(name.index()).map_or("", |text| text)
    }

    /// The text of `name` as a shared string, for callers that keep it longer than the table.
    pub fn shared(&self, name: Name) -> Arc<str> {
        self.texts.get(name.index()).cloned().unwrap_or_else(|| "".into())
    }

    /// All texts, at their [`Name::index`].
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }
}

/// One recorded event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Nanoseconds on the recording's clock ([`Header::clock`]); the origin is the clock's own.
    pub time_ns: u64,
    /// The CPU it happened on.
    pub cpu: u32,
    /// The task (the kernel's pid: what user space calls a thread id); 0 is the idle task.
    pub pid: i32,
    /// The task's name at that time.
    pub comm: Option<Name>,
    /// Interrupt context, where the recording has it.
    pub context: Option<Context>,
    /// The kernel's call chain, where the recording has it: frames as addresses (`0x...`) or symbols, from
    /// the outermost to the innermost, joined by `;`.
    pub stack: Option<Name>,
    /// What happened.
    pub kind: Kind,
}

/// What happened. The older `_node` events arrive as `Kmalloc` and `CacheAlloc` with a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `kmalloc`, and `kmalloc_node` of older kernels.
    Kmalloc(Alloc),
    /// `kmem_cache_alloc`, and `kmem_cache_alloc_node` of older kernels.
    CacheAlloc(Alloc),
    /// `kfree`: of any cache's object, of a page-backed object, of [`ZERO_SIZE_PTR`], or of NULL (`ptr` is
    /// `None`).
    Kfree(Free),
    /// `kmem_cache_free`.
    CacheFree(Free),
    /// An object went into a sheaf of `kfree_rcu`, where it waits for readers to end. Seen by a probe.
    KfreeRcu(Free),
    /// `mm_page_alloc`.
    PageAlloc(PageAlloc),
    /// `mm_page_free`.
    PageFree(PageFree),
    /// A text written into the recording by the tracing program.
    Mark(Name),
}

/// An object's allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alloc {
    /// Who asked.
    pub call_site: Site,
    /// The object's address; `None` when the allocation failed.
    pub ptr: Option<u64>,
    /// The cache's name in the event. It may be an alias: for a merged cache, the event has the name that the
    /// allocating code uses.
    pub cache: Option<Name>,
    /// The cache's directory in /sys/kernel/slab, where the recorder joined it.
    pub dir: Option<Name>,
    /// Bytes asked for.
    pub bytes_req: u64,
    /// Bytes the cache gives for it; for a large kmalloc, whole pages.
    pub bytes_alloc: u64,
    /// Allocation flags.
    pub gfp: Gfp,
    /// The node asked for, -1 for any; `None` when the event has no such field.
    pub node: Option<i32>,
    /// Whether the memory is charged to a cgroup: from the event's own field, or from `__GFP_ACCOUNT`.
    pub accounted: Option<bool>,
}

/// An object's free.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Free {
    /// Who freed.
    pub call_site: Site,
    /// The address; `None` for NULL.
    pub ptr: Option<u64>,
    /// The cache's name, where the event has it.
    pub cache: Option<Name>,
    /// The cache's directory in /sys/kernel/slab, where the recorder joined it.
    pub dir: Option<Name>,
}

/// A page block's allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageAlloc {
    /// The first frame's number; `None` when the allocation failed.
    pub pfn: Option<u64>,
    /// The block is `2^order` frames.
    pub order: u32,
    /// Allocation flags.
    pub gfp: Gfp,
    /// The migrate type by its number in that kernel.
    pub migratetype: Option<i32>,
}

/// A page block's free.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageFree {
    /// The first frame's number.
    pub pfn: u64,
    /// The block is `2^order` frames.
    pub order: u32,
}

/// A place in the kernel's text: an address, a symbol with offset (`getname_flags+0x24`), or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Site {
    /// The return address.
    pub addr: Option<u64>,
    /// Symbol and offset, where the recording is text.
    pub symbol: Option<Name>,
}

/// Allocation flags as recorded. Bits move between kernels: read them with [`Header::gfp`], never with
/// constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gfp {
    /// The number in the recording kernel's bits.
    pub raw: Option<u64>,
    /// The flag names, joined by `|`, where the recording is text.
    pub names: Option<Name>,
}

/// `common_flags` and `common_preempt_count`: where the task stood when the event happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Context {
    /// The bits as recorded (`TRACE_FLAG_*`).
    pub flags: u8,
    /// Low four bits: preempt-disable depth; high four (since 5.15): migrate-disable depth.
    pub preempt: u8,
}

impl Context {
    /// Interrupts were off.
    pub fn irqs_off(self) -> bool {
        self.flags & 0x01 != 0
    }

    /// Inside a hardware interrupt.
    pub fn hardirq(self) -> bool {
        self.flags & 0x08 != 0
    }

    /// Serving a softirq.
    pub fn softirq(self) -> bool {
        self.flags & 0x10 != 0
    }

    /// Inside a non-maskable interrupt.
    pub fn nmi(self) -> bool {
        self.flags & 0x40 != 0
    }

    /// Preempt-disable depth, 0 to 15. A recorder that runs with preemption off, such as perf, adds one.
    pub fn preempt_depth(self) -> u8 {
        self.preempt & 0x0f
    }

    /// A task, not an interrupt of any kind.
    pub fn task(self) -> bool {
        !(self.hardirq() || self.softirq() || self.nmi())
    }
}

/// Events the recorder dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The CPU whose buffer overran, if the record says so.
    pub cpu: Option<u32>,
    /// When the loss was noticed (the lost events are before it), if the record says so.
    pub time_ns: Option<u64>,
    /// Byte offset of the loss record in the (decompressed) recording.
    pub offset: u64,
    /// How many events; 0 when the record says only that some were dropped.
    pub count: u64,
    /// What kind of record reported it.
    pub kind: LossKind,
}

/// How a loss was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossKind {
    /// The ring buffer was full; reported when there was room again.
    Ring,
    /// The kernel's own count of one event's lost samples. Since 6.1 perf writes it at the end of a
    /// recording, where it repeats what the ring's records said.
    Samples,
    /// The event was switched off for a while because it fired too often; how many were missed is not known.
    Throttled,
}

/// One step of a [`Source`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item {
    /// An event; times never go back except where [`Tally::late`] counts it.
    Event(Event),
    /// A loss, at the place where it was noticed.
    Lost(Lost),
}

/// What is known about a recording. A stream may fill it in while it is read; see each reader.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// `uname -r` of the recording machine.
    pub release: Option<String>,
    /// `uname -m`.
    pub arch: Option<String>,
    /// Bytes in a page.
    pub page_size: Option<u64>,
    /// Number of CPUs online when recording.
    pub cpus_online: Option<u32>,
    /// Number of CPUs the recorder knew (`nrcpus avail`: configured).
    pub cpus_available: Option<u32>,
    /// The memory nodes and their CPUs; empty if the recording does not say.
    pub nodes: Vec<NodeOf>,
    /// The clock of `time_ns`, by name.
    pub clock: Option<String>,
    /// The command that recorded.
    pub command: Vec<String>,
    /// Flag names of the recording kernel.
    pub gfp: GfpTable,
    /// The text of each tracepoint format the recording carries, as found.
    pub formats: Vec<FormatText>,
    /// Where the kernel and its modules lay in memory; symbols themselves are not in a perf.data.
    pub maps: Vec<KernelMap>,
    /// The kernel's build id in hexadecimal.
    pub build_id: Option<String>,
    /// Whether the addresses of objects are hashed, as a kernel's text shows them: equal ones are equal, but
    /// they say nothing of pages and nodes. Known when the first object has been delivered.
    pub hashed_addresses: bool,
    /// Where the recording was cut off. Known when `next` has returned `None`.
    pub cut_off: Option<CutOff>,
    /// What a user of this recording should be told, in sentences.
    pub warnings: Vec<String>,
}

/// The end of a recording that was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutOff {
    /// Bytes that are there (decompressed).
    pub at: u64,
    /// Bytes that the recording should have, if it says so.
    pub of: Option<u64>,
}

/// A memory node of the recording machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeOf {
    /// Its number.
    pub node: u32,
    /// Its memory in bytes.
    pub bytes: u64,
    /// Its CPUs.
    pub cpus: Vec<u32>,
}

/// One tracepoint's format text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatText {
    /// The event system (`kmem`).
    pub system: String,
    /// The text as in tracefs.
    pub text: String,
}

/// A mapping of kernel text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelMap {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// As recorded: `[kernel.kallsyms]_text`, `[nf_tables]`, or a module's path.
    pub name: String,
}

/// What a source has delivered so far; complete when `next` has returned `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events delivered.
    pub events: u64,
    /// Events lost, as far as the recording says: the larger of the next two, as perf reports the same loss
    /// in both.
    pub lost: u64,
    /// Events lost by records of [`LossKind::Ring`].
    pub lost_ring: u64,
    /// Events lost by records of [`LossKind::Samples`].
    pub lost_samples: u64,
    /// Loss records.
    pub loss_records: u64,
    /// Events lost by CPU, for losses that say where; index is the CPU.
    pub lost_by_cpu: Vec<u64>,
    /// Events delivered after a later one, because sorting them would have needed too much memory or the
    /// recording's own round marks were wrong.
    pub late: u64,
    /// Records of other events, which this vocabulary has no word for.
    pub skipped: u64,
}

impl Tally {
    /// The highest CPU number kept in `lost_by_cpu`; a corrupt record cannot make the table larger.
    const CPU_LIMIT: u32 = 1 << 16;

    /// Counts an event that is delivered. `last_ns` is the latest time of the events before it.
    pub(crate) fn event(&mut self, time_ns: u64, last_ns: &mut u64) {
        self.events += 1;
        self.late += u64::from(time_ns < *last_ns);
        *last_ns = (*last_ns).max(time_ns);
    }

    pub(crate) fn lost(&mut self, lost: &Lost) {
        self.loss_records += 1;
        match lost.kind {
            LossKind::Ring => self.lost_ring = self.lost_ring.saturating_add(lost.count),
            LossKind::Samples => self.lost_samples = self.lost_samples.saturating_add(lost.count),
            LossKind::Throttled => {}
        }
        self.lost = self.lost_ring.max(self.lost_samples);
        if let Some(cpu) = lost.cpu.filter(|&cpu| cpu < Self::CPU_LIMIT) {
            let cpu = cpu as usize;
            if self.lost_by_cpu.len() <= cpu {
                self.lost_by_cpu.resize(cpu + 1, 0);
            }
            self.lost_by_cpu[cpu] = self.lost_by_cpu[cpu].saturating_add(lost.count);
        }
    }

    /// Whether the recording is known to miss events.
    pub fn incomplete(&self) -> bool {
        self.loss_records > 0
    }
}

/// A recording being read: a pull stream in time order. It holds a window of the recording, never all of it.
pub trait Source {
    /// The reader's error.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The next event or loss; `None` at the end. After an error, the stream has ended.
    fn next(&mut self) -> Result<Option<Item>, Self::Error>;

    /// Header, texts and counts, as far as they are known after the items delivered so far.
    fn state(&self) -> (&Header, &Names, &Tally);

    /// The facts about the recording.
    fn header(&self) -> &Header {
        self.state().0
    }

    /// The texts that the delivered events refer to.
    fn names(&self) -> &Names {
        self.state().1
    }

    /// The counts of delivered and lost events.
    fn tally(&self) -> &Tally {
        self.state().2
    }
}
