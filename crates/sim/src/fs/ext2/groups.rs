//! Groups: their tables, and in which one a new inode is.

use super::{BLOCK, BLOCKS_PER_GROUP, Ext2, Ino, Inode};

/// What a block and an inode cost a directory's debt, in blocks and inodes (from memory).
const BLOCK_COST: u32 = 256;
const INODE_COST: u32 = 64;

/// One group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) free_blocks: u32,
    pub(super) free_inodes: u32,
    pub(super) dirs: u32,
    /// Directories that were made here lately and have got no files yet.
    debt: u32,
}

/// Where a group's own blocks are.
pub(super) struct Tables {
    /// The block of all groups' descriptors that has this group's.
    pub(super) descriptor: u32,
    pub(super) block_bitmap: u32,
    pub(super) inode_bitmap: u32,
    /// The first block of its inodes.
    pub(super) inodes: u32,
    /// The first block after them.
    pub(super) end: u32,
}

impl Group {
    pub(super) fn new(inodes: u32) -> Group {
        Group { free_blocks: 0, free_inodes: inodes, dirs: 0, debt: 0 }
    }
}

/// Whether a group has a copy of the superblock and the descriptors: 0, 1, and powers of 3, 5 and 7.
fn has_super(group: u32) -> bool {
    let is_power = |of: u32| std::iter::successors(Some(of), |n| n.checked_mul(of)).any(|n| n == group);
    group < 2 || [3, 5, 7].into_iter().any(|of| group.is_multiple_of(of) && is_power(of))
}

impl Ext2 {
    pub(super) fn tables(&self, group: u32) -> Tables {
        let descriptors = (self.groups.len() as u32 * 32).div_ceil(BLOCK);
        let start = group * BLOCKS_PER_GROUP;
        let block_bitmap = start + if has_super(group) { 1 + descriptors } else { 0 };
        let inodes = block_bitmap + 2;
        let table = (self.inodes_per_group * self.format.inode_bytes).div_ceil(BLOCK);
        Tables {
            descriptor: 1 + group * 32 / BLOCK,
            block_bitmap,
            inode_bitmap: block_bitmap + 1,
            inodes,
            end: inodes + table,
        }
    }

    /// The blocks of a group's tables are used.
    pub(super) fn reserve_tables(&mut self, group: u32) {
        let (start, end) = (group * BLOCKS_PER_GROUP, self.tables(group).end);
        let last = (start + BLOCKS_PER_GROUP).min(self.format.blocks);
        assert!(end <= last, "group {group} has no room for its tables: {end} of {last} blocks");
        for block in start..end {
            self.used[block as usize / 64] |= 1 << (block % 64);
        }
        self.groups[group as usize].free_blocks = last - end;
    }

    /// The first free inode of a group becomes a file or a directory of `parent`.
    pub(super) fn take_inode(&mut self, group: u32, parent: Ino, is_dir: bool) -> Ino {
        let first = group * self.inodes_per_group;
        let of_group = first..first + self.inodes_per_group;
        let free = of_group.into_iter().find(|ino| self.inodes[*ino as usize].is_none());
        let ino = Ino(free.expect("the group has a free inode"));
        self.inodes[ino.0 as usize] = Some(Inode {
            ino,
            parent,
            is_dir,
            blocks: Vec::new(),
            indirect: Vec::new(),
            entries: 0,
            window: None,
            last: None,
        });
        let of = &mut self.groups[group as usize];
        of.free_inodes -= 1;
        of.dirs += u32::from(is_dir);
        of.debt = if is_dir { (of.debt + 1).min(255) } else { of.debt.saturating_sub(1) };
        self.dirs += u32::from(is_dir);
        ino
    }

    /// The group of a new directory (Orlov's rules).
    pub(super) fn group_of_dir(&self, parent: Ino, random: u32) -> Option<u32> {
        let groups = self.groups.len() as u32;
        let average_inodes = self.free_inodes() / groups;
        let average_blocks = self.free_blocks() / groups;
        let from = |first: u32| (0..groups).map(move |at| (first + at) % groups);
        let of = |group: u32| &self.groups[group as usize];
        let is_average = |group: &u32| {
            of(*group).free_inodes >= average_inodes.max(1) && of(*group).free_blocks >= average_blocks
        };
        let found = if parent == Self::ROOT {
            // The one with the fewest directories; the first of equals.
            from(random % groups).filter(is_average).min_by_key(|group| of(*group).dirs)
        } else {
            let most_dirs = self.dirs / groups + self.inodes_per_group / 16;
            let least_inodes = average_inodes.saturating_sub(self.inodes_per_group / 4).max(1);
            let least_blocks = average_blocks.saturating_sub(BLOCKS_PER_GROUP / 4);
            let most_debt = self.most_debt();
            from(self.group_of(parent)).find(|group| {
                let group = of(*group);
                group.debt < most_debt
                    && group.dirs < most_dirs
                    && group.free_inodes >= least_inodes
                    && group.free_blocks >= least_blocks
            })
        };
        let any =
            |least: u32| from(self.group_of(parent)).find(|group| of(*group).free_inodes >= least.max(1));
        found.or_else(|| any(average_inodes)).or_else(|| any(1))
    }

    fn most_debt(&self) -> u32 {
        let used = self.format.blocks - self.free_blocks();
        let per_dir = used / self.dirs.max(1);
        let most = BLOCKS_PER_GROUP / per_dir.max(BLOCK_COST);
        most.min(self.inodes_per_group / INODE_COST).clamp(1, 255)
    }

    /// The group of a new file.
    pub(super) fn group_of_file(&self, parent: Ino) -> Option<u32> {
        let groups = self.groups.len() as u32;
        let of = |group: u32| &self.groups[group as usize];
        let has_room = |group: &u32| of(*group).free_inodes > 0 && of(*group).free_blocks > 0;
        let own = self.group_of(parent);
        // The parent's, then by a hash that doubles its step, then each in turn.
        let steps = std::iter::successors(Some(1_u32), |step| step.checked_mul(2));
        let hashed = steps.take_while(|step| *step < groups).scan((own + parent.0) % groups, |at, step| {
            *at = (*at + step) % groups;
            Some(*at)
        });
        let mut linear = (0..groups).map(|at| (own + at) % groups);
        std::iter::once(own)
            .chain(hashed)
            .find(has_room)
            .or_else(|| linear.find(|group| of(*group).free_inodes > 0))
    }
}
