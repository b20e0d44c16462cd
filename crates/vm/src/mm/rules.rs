//! What releases do differently.

/// How files are read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAheadRule {
    /// 2.4: windows of 3 to 31 pages that double; the next is read when the reader enters the last one.
    Doubling,
    /// From 2.6.23 on: windows by demand, with a marked page that starts the next one.
    OnDemand,
}

/// Which neighbours a read from swap brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapReadAhead {
    /// 2.4: the aligned block from its start up to the first free slot.
    Block,
    /// 2.6.29: the used slots around the wanted one in the aligned block.
    Run,
    /// 6.x, rotating disks: the used slots of an aligned block, whose size follows the hits.
    Window,
    /// 6.x, other disks: the pages around in the region; the size follows the hits.
    Region,
}

/// How writers are held back, and what a flusher writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirtyRule {
    /// 2.4: above 30 % of the base a writer writes 32 pages; above 60 % it waits for them too.
    Buffers,
    /// 2.6.29: 5 % and 10 % of what could be dirty; writers write themselves.
    Share,
    /// 6.x: 10 % and 20 %; writers sleep, and a flusher writes.
    Pauses,
}

/// What a release does. Each is a field of its own, so that one can be changed alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A first read of anonymous memory maps the page of zeros; if not, it allocates a page.
    pub zero_page: bool,
    /// Pages of the aligned window around a read fault on a file that are mapped if they are cached; 1: none.
    pub fault_around: u32,
    /// A fault that was tried again is a major one of its task, not of the machine.
    pub retried_is_major: bool,
    /// How files are read ahead.
    pub read_ahead: ReadAheadRule,
    /// Most pages of one window of a file.
    pub read_ahead_pages: u32,
    /// A fault that maps pages around it counts no hit for those of the working set: if they were evicted
    /// before, the file is read at random.
    pub refaults_are_misses: bool,
    /// How swap is read ahead.
    pub swap_read_ahead: SwapReadAhead,
    /// A read from swap maps a page that is its task's alone writable.
    pub swap_in_writable: bool,
    /// A write to a page that is its task's alone gives the page's slot up.
    pub reuse_frees_slot: bool,
    /// A clean page of a file is mapped read-only, so that its first write is a fault (from 2.6.19 on).
    pub write_notify: bool,
    /// A read of the same page as the last one of the open file is an access too.
    pub repeats_access: bool,
    /// A write of a whole page of tmpfs that is in swap reads it first.
    pub reads_overwritten: bool,
    /// A read of a page of tmpfs that is in swap gives its slot up, and makes it dirty.
    pub tmpfs_read_frees_slot: bool,
    /// Pages of tmpfs in frames count as dirty in the limits of writers, who write to tmpfs too. No release
    /// does this: no flusher writes such pages. To ask what it does.
    pub tmpfs_counts_dirty: bool,
    /// A write of a page of a file by a system call is an access (until 4.6).
    pub writes_access: bool,
    /// A write of a page of tmpfs by a system call is an access, and marks a new page referenced.
    pub new_tmpfs_referenced: bool,
    /// Pages of files that are read get buffer heads; if not, only those that are written.
    pub buffers_on_read: bool,
    /// How writers are held back.
    pub dirty: DirtyRule,
    /// Active pages count in the base of the dirty limits (not before 2.4.10).
    pub dirty_active: bool,
}

/// A release as one number.
const fn release(major: u32, minor: u32, patch: u32) -> u32 {
    (major * 1000 + minor) * 1000 + patch
}

impl Rules {
    /// The rules of a release, with disks that rotate.
    pub const fn of(major: u32, minor: u32, patch: u32) -> Rules {
        let this = release(major, minor, patch);
        let is_24 = this < release(2, 5, 0);
        Rules {
            // From memory: gone in 2.6.24, back in 2.6.32.
            zero_page: this < release(2, 6, 24) || this >= release(2, 6, 32),
            // From memory: 3.15.
            fault_around: if this >= release(3, 15, 0) { 16 } else { 1 },
            // From memory: 5.9, and until 6.4, where the first try holds only its region's lock.
            retried_is_major: this >= release(5, 9, 0) && this < release(6, 4, 0),
            read_ahead: if is_24 { ReadAheadRule::Doubling } else { ReadAheadRule::OnDemand },
            read_ahead_pages: if is_24 { 31 } else { 32 },
            // From memory: 6.10.
            refaults_are_misses: this >= release(6, 10, 0),
            // From memory: the window follows the hits from 3.14 on.
            swap_read_ahead: if is_24 {
                SwapReadAhead::Block
            } else if this < release(3, 14, 0) {
                SwapReadAhead::Run
            } else {
                SwapReadAhead::Window
            },
            // From memory: 2.4.10 and 6.11.
            swap_in_writable: is_24 && this >= release(2, 4, 10) || this >= release(6, 11, 0),
            // From memory: from 5.19 on a page knows that it is one task's alone.
            reuse_frees_slot: this < release(5, 19, 0),
            write_notify: this >= release(2, 6, 19),
            repeats_access: is_24,
            reads_overwritten: true,
            tmpfs_read_frees_slot: true,
            tmpfs_counts_dirty: false,
            // From memory.
            writes_access: this < release(4, 7, 0),
            new_tmpfs_referenced: this >= release(2, 6, 37),
            buffers_on_read: is_24,
            dirty_active: this >= release(2, 4, 10),
            dirty: if is_24 {
                DirtyRule::Buffers
            } else if this < release(3, 2, 0) {
                DirtyRule::Share
            } else {
                DirtyRule::Pauses
            },
        }
    }
}
