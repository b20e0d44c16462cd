//! Blocks: goals, windows, and the search of bitmaps.

use super::{BLOCKS_PER_GROUP, Ext2, Full, Ino, add};

/// Blocks of a first window, and of the largest.
const WINDOW: u32 = 8;
const WINDOW_MOST: u32 = 1_027;

/// Blocks that are kept for one inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first block.
    pub first: u32,
    /// The last block.
    pub last: u32,
    /// Blocks that the inode took from it.
    hits: u32,
    /// Blocks that it was asked to have.
    goal: u32,
}

impl Ext2 {
    /// Takes the free block that is best for `goal`. Files take from their window.
    pub(super) fn take_block(&mut self, ino: Ino, goal: u32, changed: &mut Vec<u32>) -> Result<u32, Full> {
        let goal = if goal < self.format.blocks { goal } else { 0 };
        let found = match self.inode(ino).is_dir {
            _ if self.is_packed => self.first_free(0, self.format.blocks),
            true => self.search(goal),
            false => self.take_from_window(ino, goal).or_else(|| self.search(goal)),
        };
        let block = found.ok_or(Full)?;
        assert!(!self.is_used(block), "block {block} is used");
        self.used[block as usize / 64] |= 1 << (block % 64);
        self.groups[(block / BLOCKS_PER_GROUP) as usize].free_blocks -= 1;
        self.change_bitmap(block, changed);
        Ok(block)
    }

    pub(super) fn free_block(&mut self, block: u32, changed: &mut Vec<u32>) {
        if block == 0 {
            return;
        }
        assert!(self.is_used(block), "block {block} is free");
        self.used[block as usize / 64] &= !(1 << (block % 64));
        self.groups[(block / BLOCKS_PER_GROUP) as usize].free_blocks += 1;
        self.change_bitmap(block, changed);
    }

    fn change_bitmap(&self, block: u32, changed: &mut Vec<u32>) {
        let tables = self.tables(block / BLOCKS_PER_GROUP);
        add(changed, tables.block_bitmap);
        add(changed, tables.descriptor);
    }

    /// A block of the inode's window; a new window if it has none, or none that is of use.
    fn take_from_window(&mut self, ino: Ino, goal: u32) -> Option<u32> {
        if let Some(window) = self.inode(ino).window {
            let from = if (window.first..=window.last).contains(&goal) { goal } else { window.first };
            let fits = goal >= window.first && goal <= window.last + 1;
            if let Some(block) = self.first_free(from, window.last + 1).filter(|_| fits) {
                self.inode_mut(ino).window.as_mut().expect("it has a window").hits += 1;
                return Some(block);
            }
        }
        let window = self.new_window(ino, goal)?;
        let block = self.first_free(window.first, window.last + 1)?;
        self.inode_mut(ino).window = Some(Window { hits: 1, ..window });
        Some(block)
    }

    /// Drops the inode's window, and enters a new one with a free block at or after `goal`, else anywhere.
    fn new_window(&mut self, ino: Ino, goal: u32) -> Option<Window> {
        let old = self.inode_mut(ino).window.take();
        if let Some(old) = old {
            self.windows.remove(&old.first);
        }
        let size = match old {
            // It doubles while more than half of it was used.
            Some(old) if old.hits * 2 > old.last - old.first + 1 => (old.goal * 2).min(WINDOW_MOST),
            Some(old) => old.goal,
            None => WINDOW,
        };
        let first = self.gap(goal, self.format.blocks, size).or_else(|| self.gap(0, goal, size))?;
        let last = (first + size - 1).min(self.format.blocks - 1);
        self.windows.insert(first, last);
        Some(Window { first, last, hits: 0, goal: size })
    }

    /// The first block of a gap of `size` blocks between windows, in `from..end`, that has a free block.
    fn gap(&self, from: u32, end: u32, size: u32) -> Option<u32> {
        let mut at = from;
        while at < end {
            if let Some((_, last)) = self.windows.range(..=at).next_back()
                && *last >= at
            {
                at = last + 1;
                continue;
            }
            let next = self.windows.range(at..).next().map_or(u32::MAX, |(first, _)| *first);
            if next - at < size {
                at = next;
                continue;
            }
            let free = self.first_free(at, end)?;
            if free < at + size {
                return Some(at);
            }
            at = free;
        }
        None
    }

    /// The first free block of `from..end`.
    fn first_free(&self, from: u32, end: u32) -> Option<u32> {
        let end = end.min(self.format.blocks);
        let mut at = from;
        while at < end {
            let free = !self.used[at as usize / 64] >> (at % 64);
            if free != 0 {
                let block = at + free.trailing_zeros();
                return (block < end).then_some(block);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// Without a window: the goal, a block up to the next boundary of 64, a free byte of the bitmap, any
    /// block; in the goal's group, then in the others.
    fn search(&self, goal: u32) -> Option<u32> {
        let group = goal / BLOCKS_PER_GROUP;
        let end = ((group + 1) * BLOCKS_PER_GROUP).min(self.format.blocks);
        let near = self.first_free(goal, (goal / 64 + 1) * 64);
        let in_group = || self.free_byte(goal, end).or_else(|| self.first_free(goal, end));
        let others = || {
            let groups = self.groups.len() as u32;
            (0..groups).map(|at| (group + at) % groups).find_map(|group| {
                let start = group * BLOCKS_PER_GROUP;
                let end = (start + BLOCKS_PER_GROUP).min(self.format.blocks);
                self.free_byte(start, end).or_else(|| self.first_free(start, end))
            })
        };
        near.or_else(in_group).or_else(others)
    }

    /// The first block of eight free ones that share a byte of the bitmap.
    fn free_byte(&self, from: u32, end: u32) -> Option<u32> {
        let free = |block: &u32| self.used[*block as usize / 64] >> (block % 64) & 0xff == 0;
        (from.next_multiple_of(8)..end.saturating_sub(7)).step_by(8).find(free)
    }
}
