//! The page cache: for each file, where each of its pages is.

use crate::ids::{Frame, MappingId, RegionId};

/// Where a page is, as one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Nowhere: it was never read or written, or it was dropped without a shadow.
    Absent,
    /// In this frame.
    Frame(Frame),
    /// In this swap slot: a page of tmpfs.
    Slot(u32),
    /// It was evicted; the policy's word for a later refault, 30 bits.
    Shadow(u32),
}

const TAG: u32 = 3 << 30;
const FRAME: u32 = 1 << 30;
const SLOT: u32 = 2 << 30;
const SHADOW: u32 = 3 << 30;

impl Entry {
    /// The entry of a stored word.
    #[inline]
    pub const fn unpack(word: u32) -> Entry {
        let value = word & !TAG;
        match word & TAG {
            FRAME => Entry::Frame(Frame(value)),
            SLOT => Entry::Slot(value),
            SHADOW => Entry::Shadow(value),
            _ => Entry::Absent,
        }
    }

    /// The word of an entry.
    #[inline]
    pub const fn pack(self) -> u32 {
        match self {
            Entry::Absent => 0,
            Entry::Frame(Frame(frame)) => FRAME | frame,
            Entry::Slot(slot) => SLOT | slot,
            Entry::Shadow(shadow) => SHADOW | shadow & !TAG,
        }
    }

    /// The frame, if the page is in one.
    #[inline]
    pub const fn frame(self) -> Option<Frame> {
        match self {
            Entry::Frame(frame) => Some(frame),
            _ => None,
        }
    }
}

/// What a mapping is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file of a disk's file system.
    File,
    /// A file of tmpfs: its pages are in frames or in swap.
    Tmpfs,
    /// A block device's own pages: metadata of its file system.
    Device,
    /// Pages that cannot be evicted: ramfs.
    Pinned,
}

/// The pages of one file.
#[derive(Debug)]
pub struct Mapping {
    /// What it is.
    pub kind: Kind,
    /// One word for each page.
    entries: Vec<u32>,
    /// Pages in frames.
    pub frames: u32,
    /// Pages in swap slots.
    pub slots: u32,
    /// One bit a page: it is dirty.
    dirty: Vec<u64>,
    /// Dirty pages.
    pub dirtied: u32,
    /// When the first of the dirty pages was dirtied, in nanoseconds; meaningless without one.
    pub dirtied_at: u64,
    /// Regions that map it.
    pub regions: Vec<RegionId>,
    /// The contents of each page on the disk, for checks.
    stored: Vec<u32>,
}

impl Mapping {
    /// Pages of the file.
    pub fn pages(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Where a page is; absent beyond the end.
    #[inline]
    pub fn entry(&self, index: u32) -> Entry {
        self.entries.get(index as usize).map_or(Entry::Absent, |word| Entry::unpack(*word))
    }

    /// Says where a page is. Returns where it was.
    pub fn set(&mut self, index: u32, entry: Entry) -> Entry {
        if index as usize >= self.entries.len() {
            self.entries.resize(index as usize + 1, 0);
        }
        let old = Entry::unpack(std::mem::replace(&mut self.entries[index as usize], entry.pack()));
        match old {
            Entry::Frame(_) => self.frames -= 1,
            Entry::Slot(_) => self.slots -= 1,
            Entry::Absent | Entry::Shadow(_) => {}
        }
        match entry {
            Entry::Frame(_) => self.frames += 1,
            Entry::Slot(_) => self.slots += 1,
            Entry::Absent | Entry::Shadow(_) => {}
        }
        old
    }

    /// Makes the file `pages` pages long. Pages beyond are gone before.
    pub fn resize(&mut self, pages: u32) {
        let cut = self.entries.get(pages as usize..).unwrap_or_default();
        assert!(cut.iter().all(|word| !matches!(Entry::unpack(*word), Entry::Frame(_) | Entry::Slot(_))));
        self.entries.resize(pages as usize, 0);
    }

    /// Marks a page dirty or clean. Returns whether that changed it.
    pub fn set_dirty(&mut self, index: u32, dirty: bool) -> bool {
        let (word, bit) = (index as usize / 64, 1_u64 << (index % 64));
        if word >= self.dirty.len() {
            self.dirty.resize(word + 1, 0);
        }
        let changed = (self.dirty[word] & bit != 0) != dirty;
        if changed {
            self.dirty[word] ^= bit;
            self.dirtied = if dirty { self.dirtied + 1 } else { self.dirtied - 1 };
        }
        changed
    }

    /// The contents of a page on the disk.
    pub fn stored(&self, index: u32) -> u32 {
        self.stored.get(index as usize).copied().unwrap_or(0)
    }

    /// Changes the contents of a page on the disk.
    pub fn store(&mut self, index: u32, content: u32) {
        if content != 0 && index as usize >= self.stored.len() {
            self.stored.resize(index as usize + 1, 0);
        }
        if let Some(stored) = self.stored.get_mut(index as usize) {
            *stored = content;
        }
    }

    /// The first dirty page at or after `from`.
    pub fn next_dirty(&self, from: u32) -> Option<u32> {
        let first = from as usize / 64;
        let masked = |at: usize, word: u64| if at == first { word & (!0 << (from % 64)) } else { word };
        let words = self.dirty.iter().enumerate().skip(first);
        words
            .map(|(at, word)| (at, masked(at, *word)))
            .find(|(_, word)| *word != 0)
            .map(|(at, word)| at as u32 * 64 + word.trailing_zeros())
    }
}

/// All mappings of a machine.
#[derive(Debug, Default)]
pub struct Mappings {
    all: Vec<Option<Mapping>>,
    free: Vec<u32>,
}

/// Changes the shadows among packed entries.
pub(crate) fn change_shadows(entries: &mut [u32], change: impl Fn(u32) -> u32) {
    for word in entries {
        if let Entry::Shadow(shadow) = Entry::unpack(*word) {
            *word = Entry::Shadow(change(shadow)).pack();
        }
    }
}

impl Mappings {
    /// A mapping of `pages` pages, all absent.
    pub fn create(&mut self, kind: Kind, pages: u32) -> MappingId {
        let mapping = Mapping {
            kind,
            entries: vec![0; pages as usize],
            frames: 0,
            slots: 0,
            dirty: Vec::new(),
            dirtied: 0,
            dirtied_at: 0,
            regions: Vec::new(),
            stored: Vec::new(),
        };
        if let Some(id) = self.free.pop() {
            self.all[id as usize] = Some(mapping);
            return MappingId(id);
        }
        self.all.push(Some(mapping));
        MappingId(self.all.len() as u32 - 1)
    }

    /// A mapping without pages is forgotten.
    pub fn end(&mut self, id: MappingId) {
        let mapping = self.all[id.0 as usize].take().expect("the mapping exists");
        assert!(mapping.frames == 0 && mapping.slots == 0 && mapping.regions.is_empty());
        self.free.push(id.0);
    }

    /// A mapping.
    #[inline]
    pub fn get(&self, id: MappingId) -> &Mapping {
        self.all[id.0 as usize].as_ref().expect("the mapping exists")
    }

    /// A mapping, to change.
    #[inline]
    pub fn get_mut(&mut self, id: MappingId) -> &mut Mapping {
        self.all[id.0 as usize].as_mut().expect("the mapping exists")
    }

    /// Whether there is such a mapping.
    pub fn exists(&self, id: MappingId) -> bool {
        self.all.get(id.0 as usize).is_some_and(Option::is_some)
    }

    /// Changes the shadows of all files.
    pub(crate) fn change_shadows(&mut self, change: impl Fn(u32) -> u32) {
        self.all.iter_mut().flatten().for_each(|mapping| change_shadows(&mut mapping.entries, &change));
    }

    /// All mappings, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (MappingId, &Mapping)> {
        self.all
            .iter()
            .enumerate()
            .filter_map(|(id, mapping)| Some((MappingId(id as u32), mapping.as_ref()?)))
    }
}
