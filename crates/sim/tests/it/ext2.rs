//! Where ext2 puts files, and that every block is used once; the source tree that is put there.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use slablab_sim::fs::ext2::{BLOCKS_PER_GROUP, Ext2, Format, Full, Ino};
use slablab_sim::programs::tree::{Role, Size, Tree};
use std::collections::BTreeSet;

const FORMAT: Format = Format { blocks: 4 * BLOCKS_PER_GROUP, bytes_per_inode: 16_384, inode_bytes: 256 };

fn write(fs: &mut Ext2, dir: Ino, blocks: u32, pid: u32) -> Ino {
    let file = fs.create(dir, &mut Vec::new()).unwrap();
    for _ in 0..blocks {
        fs.append(file, pid, &mut Vec::new()).unwrap();
    }
    fs.close(file);
    file
}

#[test]
fn one_writer_packs_and_many_scatter() {
    let mut fs = Ext2::new(FORMAT);
    let dir = fs.make_dir(Ext2::ROOT, 2, &mut Vec::new()).unwrap();
    // One task: the second file's window starts where the first one's ended.
    let (first, second) = (write(&mut fs, dir, 5, 0), write(&mut fs, dir, 3, 0));
    let (first, second) = (fs.inode(first).blocks.clone(), fs.inode(second).blocks.clone());
    let row: Vec<u32> = (first[0]..first[0] + 5).collect();
    assert_eq!(first, row);
    // The directory's own block has a byte of the bitmap for itself, and is in the way.
    let between = fs.inode(dir).blocks[0];
    let mut row: Vec<u32> = (first[4] + 1..first[4] + 5).filter(|block| *block != between).collect();
    row.truncate(3);
    assert_eq!(second, row);
    // Another task's colour is a sixteenth of the group away.
    let other = write(&mut fs, dir, 1, 3);
    let start = first[0] / BLOCKS_PER_GROUP * BLOCKS_PER_GROUP;
    assert_eq!(fs.inode(other).blocks, vec![start + 3 * (BLOCKS_PER_GROUP / 16)]);
}

#[test]
fn files_that_grow_together_have_windows() {
    let mut fs = Ext2::new(FORMAT);
    let dir = fs.make_dir(Ext2::ROOT, 0, &mut Vec::new()).unwrap();
    let files = [fs.create(dir, &mut Vec::new()).unwrap(), fs.create(dir, &mut Vec::new()).unwrap()];
    for _ in 0..8 {
        for file in files {
            fs.append(file, 1, &mut Vec::new()).unwrap();
        }
    }
    // Eight blocks each, in a row, although they were written in turn.
    for file in files {
        let blocks = &fs.inode(file).blocks;
        assert!(blocks.windows(2).all(|pair| pair[1] == pair[0] + 1), "{blocks:?}");
    }
}

/// Packed, a file gets the lowest free blocks, also those of a removed file; by ext2's rules it is placed
/// near its directory.
#[test]
fn packed_files_get_the_lowest_free_blocks() {
    for is_packed in [false, true] {
        let mut fs = Ext2::new(FORMAT).packed(is_packed);
        let dir = fs.make_dir(Ext2::ROOT, 2, &mut Vec::new()).unwrap();
        let lowest = |fs: &Ext2| (0..FORMAT.blocks).find(|block| !fs.is_used(*block)).unwrap();
        let first = lowest(&fs);
        let file = write(&mut fs, dir, 4, 3);
        let own = fs.inode(file).blocks.clone();
        assert_eq!(own == (first..first + 4).collect::<Vec<u32>>(), is_packed, "{own:?}");
        let other = write(&mut fs, dir, 3, 3);
        fs.remove(file, &mut Vec::new());
        let next = write(&mut fs, dir, 4, 3);
        assert!(!is_packed || fs.inode(next).blocks == own, "{:?}", fs.inode(next).blocks);
        assert_eq!(fs.inode(other).blocks.len(), 3);
    }
}

#[test]
fn a_removed_files_blocks_are_met_again() {
    let mut fs = Ext2::new(FORMAT);
    let dir = fs.make_dir(Ext2::ROOT, 1, &mut Vec::new()).unwrap();
    let first = write(&mut fs, dir, 13, 0);
    let blocks = fs.inode(first).blocks.clone();
    assert_eq!(fs.inode(first).indirect.len(), 1);
    let freed = fs.remove(first, &mut Vec::new());
    assert_eq!(freed, blocks);
    let second = write(&mut fs, dir, 13, 0);
    assert_eq!(fs.inode(second).blocks, blocks);
}

#[test]
fn directories_at_the_top_spread_over_groups() {
    let mut fs = Ext2::new(FORMAT);
    let dirs: Vec<Ino> = (0..4).map(|_| fs.make_dir(Ext2::ROOT, 0, &mut Vec::new()).unwrap()).collect();
    let groups: BTreeSet<u32> = dirs.iter().map(|dir| fs.inode(*dir).blocks[0] / BLOCKS_PER_GROUP).collect();
    assert_eq!(groups.len(), 4);
    // Below, they stay with their parent.
    let below = fs.make_dir(dirs[2], 0, &mut Vec::new()).unwrap();
    let group = |ino: Ino| fs.inode(ino).blocks[0] / BLOCKS_PER_GROUP;
    assert_eq!(group(below), group(dirs[2]));
}

#[test]
fn random_programs_use_every_block_once() {
    for seed in 0..3 {
        random_program(seed);
    }
}

fn random_program(seed: u64) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut draw = |bound: usize| (random.next_u64() % bound.max(1) as u64) as usize;
    let small = Format { blocks: BLOCKS_PER_GROUP / 8, ..FORMAT };
    let mut fs = Ext2::new(small);
    let empty = (fs.free_blocks(), fs.free_inodes());
    let (mut dirs, mut files): (Vec<Ino>, Vec<Ino>) = (vec![Ext2::ROOT], Vec::new());
    let mut changed = Vec::new();
    let mut was_full = false;
    for _ in 0..6_000 {
        match draw(10) {
            0 => dirs.extend(fs.make_dir(dirs[draw(dirs.len())], draw(1 << 20) as u32, &mut changed)),
            1 | 2 => files.extend(fs.create(dirs[draw(dirs.len())], &mut changed)),
            3 if !files.is_empty() => {
                let file = files.swap_remove(draw(files.len()));
                fs.remove(file, &mut changed);
            }
            4 if !files.is_empty() => fs.close(files[draw(files.len())]),
            _ if !files.is_empty() => {
                let (file, pid) = (files[draw(files.len())], draw(40) as u32);
                for _ in 0..draw(20) {
                    was_full |= fs.append(file, pid, &mut changed) == Err(Full);
                }
            }
            _ => {}
        }
        changed.clear();
    }
    assert!(was_full, "seed {seed}: the device was never full");
    let held = |ino: &Ino| [fs.inode(*ino).blocks.clone(), fs.inode(*ino).indirect.clone()].concat();
    let held: Vec<u32> = files.iter().chain(&dirs).flat_map(held).collect();
    let different: BTreeSet<u32> = held.iter().copied().collect();
    assert_eq!(different.len(), held.len(), "seed {seed}: a block has two owners");
    assert!(held.iter().all(|block| fs.is_used(*block)));
    assert_eq!(fs.free_blocks() as usize + held.len(), empty.0 as usize);
    // The children come after their parents, so they go first.
    for ino in files.iter().chain(dirs.iter().skip(1).rev()) {
        fs.remove(*ino, &mut changed);
    }
    let root = fs.inode(Ext2::ROOT).blocks.len() as u32;
    assert_eq!((fs.free_blocks() + root, fs.free_inodes()), empty, "seed {seed}");
}

#[test]
fn the_tree_has_what_was_counted() {
    let tree = Tree::new(Size::LINUX, 1);
    assert_eq!((tree.files.len(), tree.dirs.len()), (26_700, 1_676));
    assert_eq!((tree.sources.len(), tree.headers.len()), (1_450, 1_020));
    let within = |value: u64, counted: u64, percent: u64| {
        assert!(value.abs_diff(counted) * 100 <= counted * percent, "{value} and {counted}");
    };
    within(tree.files.iter().map(|file| u64::from(file.bytes)).sum(), 315_000_000, 3);
    within(tree.pages(), 361 * 256, 3);
    within(tree.linked.len() as u64, 219, 10);
    let role =
        |role| tree.files.iter().filter(move |file| file.role == role).map(|file| u64::from(file.bytes));
    within(role(Role::Header).sum(), 12_000_000, 10);
    assert_eq!(tree.includes(7, 300, 180).len(), 300);
    assert_ne!(tree.includes(7, 300, 180), tree.includes(8, 300, 180));
    assert_eq!(Tree::new(Size::LINUX, 1), tree);
}
