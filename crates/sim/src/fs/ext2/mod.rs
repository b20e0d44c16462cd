//! Where ext2 of 2.6.29 puts files: groups, inodes, blocks, and which blocks of its own data change.
//!
//! ```text
//! make_dir ── orlov: top level: a random group's neighbourhood; below: near the parent ── inode
//! create   ── parent's group, else by a hash ── inode
//! append   ── goal ── window of the inode, else the group's bitmap ── block
//! remove   ── bits are cleared, and nothing else: the data stay where they are
//! ```
//!
//! There are no data here, and no time. A block has 4 KiB, so a block's number is also the index of its page
//! on the device. Functions that change the file system's own blocks add each number once to a list:
//! bitmaps, descriptors, tables of inodes, directories, indirect blocks.
//!
//! Rules: docs/theory/files.md. The number of inodes and their size are mke2fs's of 2008 (from memory).

mod blocks;
mod groups;

pub use blocks::Window;

use groups::Group;
use std::collections::BTreeMap;

/// Blocks of a group: one bitmap block of bits.
pub const BLOCKS_PER_GROUP: u32 = 32_768;
/// Bytes of a block.
pub const BLOCK: u32 = 4_096;
/// Pointers in an inode, and in an indirect block.
const DIRECT: u32 = 12;
const POINTERS: u32 = BLOCK / 4;
/// Bytes of a directory's entry: a name of 12 on average (assumed).
const ENTRY_BYTES: u32 = 20;

/// How a file system is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Blocks of the device.
    pub blocks: u32,
    /// Bytes of the device for each inode: 8192 until e2fsprogs 1.40, then 16384 (from memory).
    pub bytes_per_inode: u32,
    /// Bytes of an inode: 128, later 256 (from memory).
    pub inode_bytes: u32,
}

/// The number of an inode, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ino(pub u32);

/// An inode: a file or a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its number.
    pub ino: Ino,
    /// The directory that holds it; the root holds itself.
    pub parent: Ino,
    /// It is a directory.
    pub is_dir: bool,
    /// Its blocks, by index; 0: a hole.
    pub blocks: Vec<u32>,
    /// Its indirect blocks, in the order of the data that they point to.
    pub indirect: Vec<u32>,
    /// Entries, of a directory.
    entries: u32,
    /// Blocks that are kept for it while it is open for writing.
    window: Option<Window>,
    /// The index and the number of the block that it got last.
    last: Option<(u32, u32)>,
}

/// A file system.
#[derive(Debug)]
pub struct Ext2 {
    format: Format,
    groups: Vec<Group>,
    inodes_per_group: u32,
    inodes: Vec<Option<Inode>>,
    /// A bit a block: it is used.
    used: Vec<u64>,
    /// Windows of all inodes: first block, and last.
    windows: BTreeMap<u32, u32>,
    dirs: u32,
    /// Files get the lowest free blocks.
    is_packed: bool,
}

/// No free inode, or no free block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Ext2 {
    /// A file system with an empty root.
    ///
    /// # Panics
    /// A device without room for one group's tables.
    pub fn new(format: Format) -> Ext2 {
        let groups = format.blocks.div_ceil(BLOCKS_PER_GROUP);
        let inodes = (u64::from(format.blocks) * u64::from(BLOCK) / u64::from(format.bytes_per_inode)) as u32;
        let per_block = BLOCK / format.inode_bytes;
        let inodes_per_group = inodes.div_ceil(groups).next_multiple_of(per_block).min(8 * BLOCK);
        let mut ext2 = Ext2 {
            format,
            groups: (0..groups).map(|_| Group::new(inodes_per_group)).collect(),
            inodes_per_group,
            inodes: vec![None; (inodes_per_group * groups) as usize],
            used: vec![0; format.blocks.div_ceil(64) as usize],
            windows: BTreeMap::new(),
            dirs: 0,
            is_packed: false,
        };
        for group in 0..groups {
            ext2.reserve_tables(group);
        }
        ext2.take_inode(0, Ino(0), true);
        ext2
    }

    /// The file system in which files get the lowest free blocks, if so: no ext2 does that.
    pub fn packed(self, is_packed: bool) -> Ext2 {
        Ext2 { is_packed, ..self }
    }

    /// The root.
    pub const ROOT: Ino = Ino(0);

    /// An inode.
    ///
    /// # Panics
    /// It is free.
    pub fn inode(&self, ino: Ino) -> &Inode {
        self.inodes[ino.0 as usize].as_ref().expect("the inode is used")
    }

    fn inode_mut(&mut self, ino: Ino) -> &mut Inode {
        self.inodes[ino.0 as usize].as_mut().expect("the inode is used")
    }

    /// Free blocks.
    pub fn free_blocks(&self) -> u32 {
        self.groups.iter().map(|group| group.free_blocks).sum()
    }

    /// Free inodes.
    pub fn free_inodes(&self) -> u32 {
        self.groups.iter().map(|group| group.free_inodes).sum()
    }

    /// Whether a block is used.
    pub fn is_used(&self, block: u32) -> bool {
        self.used[block as usize / 64] >> (block % 64) & 1 != 0
    }

    /// Makes a directory. `random`: what the kernel's generator gives. Adds changed blocks to `changed`.
    ///
    /// # Errors
    /// The file system is full.
    pub fn make_dir(&mut self, parent: Ino, random: u32, changed: &mut Vec<u32>) -> Result<Ino, Full> {
        let group = self.group_of_dir(parent, random).ok_or(Full)?;
        let ino = self.take_inode(group, parent, true);
        self.change_inodes(ino, changed);
        // "." and ".." are in the first block.
        if self.append(ino, 0, changed).is_err() || self.enter(parent, changed).is_err() {
            self.give_back(ino, changed);
            return Err(Full);
        }
        Ok(ino)
    }

    /// Makes a file. Adds changed blocks to `changed`.
    ///
    /// # Errors
    /// The file system is full.
    pub fn create(&mut self, parent: Ino, changed: &mut Vec<u32>) -> Result<Ino, Full> {
        let group = self.group_of_file(parent).ok_or(Full)?;
        let ino = self.take_inode(group, parent, false);
        self.change_inodes(ino, changed);
        if self.enter(parent, changed).is_err() {
            self.give_back(ino, changed);
            return Err(Full);
        }
        Ok(ino)
    }

    /// An entry is written into a directory.
    fn enter(&mut self, parent: Ino, changed: &mut Vec<u32>) -> Result<(), Full> {
        let dir = self.inode(parent);
        let needed = ((dir.entries + 3) * ENTRY_BYTES).div_ceil(BLOCK);
        if needed > dir.blocks.len() as u32 {
            self.append(parent, 0, changed)?;
        }
        let dir = self.inode_mut(parent);
        dir.entries += 1;
        dir.blocks.last().into_iter().for_each(|block| add(changed, *block));
        self.change_inode(parent, changed);
        Ok(())
    }

    /// Gives an inode a block after its last. `pid`: of the task that writes. Returns the block.
    ///
    /// # Errors
    /// The file system is full.
    pub fn append(&mut self, ino: Ino, pid: u32, changed: &mut Vec<u32>) -> Result<u32, Full> {
        let index = self.inode(ino).blocks.len() as u32;
        let needs_indirect = index >= DIRECT && (index - DIRECT).is_multiple_of(POINTERS);
        if needs_indirect {
            let goal = self.goal(ino, index, pid);
            let block = self.take_block(ino, goal, changed)?;
            let inode = self.inode_mut(ino);
            inode.indirect.push(block);
            inode.last = Some((index.wrapping_sub(1), block));
        }
        let goal = self.goal(ino, index, pid);
        let block = self.take_block(ino, goal, changed)?;
        let inode = self.inode_mut(ino);
        inode.blocks.push(block);
        inode.last = Some((index, block));
        if index >= DIRECT {
            inode.indirect.last().into_iter().for_each(|block| add(changed, *block));
        }
        self.change_inode(ino, changed);
        Ok(block)
    }

    /// Where the block of an index would be best.
    fn goal(&self, ino: Ino, index: u32, pid: u32) -> u32 {
        let inode = self.inode(ino);
        if let Some((last, block)) = inode.last
            && last.wrapping_add(1) == index
        {
            return block + 1;
        }
        let near = inode.blocks.iter().rev().find(|block| **block != 0).or(inode.indirect.last());
        near.copied().unwrap_or_else(|| {
            let start = self.group_of(ino) * BLOCKS_PER_GROUP;
            start + pid % 16 * (BLOCKS_PER_GROUP / 16)
        })
    }

    /// The last writer closes a file: its window is dropped.
    pub fn close(&mut self, ino: Ino) {
        if let Some(window) = self.inode_mut(ino).window.take() {
            self.windows.remove(&window.first);
        }
    }

    /// Removes a file, or a directory without entries. Its blocks are free, and keep their data. Returns
    /// them.
    ///
    /// # Panics
    /// A directory with entries, or the root.
    pub fn remove(&mut self, ino: Ino, changed: &mut Vec<u32>) -> Vec<u32> {
        self.close(ino);
        let Inode { parent, entries, .. } = *self.inode(ino);
        assert!(entries == 0 && ino != Self::ROOT, "{ino:?} cannot be removed");
        let dir = self.inode_mut(parent);
        dir.entries -= 1;
        // The entry may be in any block; in the middle one on average.
        let at = dir.blocks.len() / 2;
        dir.blocks.get(at).into_iter().for_each(|block| add(changed, *block));
        self.give_back(ino, changed)
    }

    /// An inode that no directory holds is free, and its blocks with it. Returns them.
    fn give_back(&mut self, ino: Ino, changed: &mut Vec<u32>) -> Vec<u32> {
        self.change_inodes(ino, changed);
        let inode = self.inodes[ino.0 as usize].take().expect("the inode is used");
        for block in inode.blocks.iter().chain(&inode.indirect).copied() {
            self.free_block(block, changed);
        }
        let group = self.group_of(ino);
        let of = &mut self.groups[group as usize];
        of.free_inodes += 1;
        of.dirs -= u32::from(inode.is_dir);
        self.dirs -= u32::from(inode.is_dir);
        inode.blocks
    }

    fn group_of(&self, ino: Ino) -> u32 {
        ino.0 / self.inodes_per_group
    }

    /// The block of a group's table that has the inode.
    fn block_of(&self, ino: Ino) -> u32 {
        let (group, at) = (self.group_of(ino), ino.0 % self.inodes_per_group);
        self.tables(group).inodes + at / (BLOCK / self.format.inode_bytes)
    }

    /// The blocks that a lookup of a file reads: of its directory, whose entry of the file is in the middle
    /// on average, and of the table of inodes.
    pub fn lookup_blocks(&self, ino: Ino) -> (u32, u32) {
        let dir = self.inode(self.inode(ino).parent);
        (dir.blocks[dir.blocks.len() / 2], self.block_of(ino))
    }

    /// The block of the group's table that has the inode changes.
    fn change_inode(&self, ino: Ino, changed: &mut Vec<u32>) {
        add(changed, self.block_of(ino));
    }

    /// The same, and the bitmap of the group's inodes, and its descriptor: an inode is taken, or free.
    fn change_inodes(&self, ino: Ino, changed: &mut Vec<u32>) {
        let tables = self.tables(self.group_of(ino));
        add(changed, tables.inode_bitmap);
        add(changed, tables.descriptor);
        self.change_inode(ino, changed);
    }
}

/// Adds a block to a list that has each once.
fn add(list: &mut Vec<u32>, block: u32) {
    if !list.contains(&block) {
        list.push(block);
    }
}
