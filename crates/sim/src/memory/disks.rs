//! The disks, where files lie on them, and loop devices.

use super::disk::{BlockDisk, PAGE_SECTORS};
use super::guest::Guest;
use super::loopback::Loop;
use crate::kernel::Kernel;
use slablab_vm::{MappingId, Place, Vm};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Places of the disks in [`Disks::all`].
const SWAP: usize = 0;
const DATA: usize = 1;

/// The disks.
pub struct Disks {
    all: [BlockDisk; 2],
    /// Where swap begins on the disk with files, in sectors; `None`: it has a disk of its own.
    swap_at: Option<u64>,
    /// The first sector of each file, and the first free one.
    extents: RefCell<(BTreeMap<MappingId, u64>, u64)>,
    loops: RefCell<Vec<Rc<Loop>>>,
}

impl Disks {
    pub(super) fn new(guest: &Guest) -> Disks {
        let (extents, loops) = (RefCell::default(), RefCell::default());
        Disks { all: guest.disks(), swap_at: guest.swap_at, extents, loops }
    }

    /// The disk with swap, then the one with files.
    pub(super) fn all(&self) -> &[BlockDisk; 2] {
        &self.all
    }

    /// The number of the disk that has a page.
    pub(super) fn number_of(&self, place: Place) -> usize {
        match place {
            Place::Swap(_) if self.swap_at.is_none() => SWAP,
            _ => DATA,
        }
    }

    /// The sector of a page. Files lie one after the other, each in one piece.
    pub(super) fn sector_of(&self, vm: &Vm, place: Place) -> u64 {
        match place {
            Place::Swap(slot) => self.swap_at.unwrap_or(0) + u64::from(slot) * PAGE_SECTORS,
            Place::Mapping(mapping, index) => {
                let (extents, next) = &mut *self.extents.borrow_mut();
                let first = *extents.entry(mapping).or_insert_with(|| {
                    let pages = vm.with(|state| state.mappings.get(mapping).pages());
                    std::mem::replace(next, *next + u64::from(pages) * PAGE_SECTORS)
                });
                first + u64::from(index) * PAGE_SECTORS
            }
        }
    }

    /// A loop device is there from now on.
    pub(super) fn add_loop(&self, device: Rc<Loop>) {
        self.loops.borrow_mut().push(device);
    }

    /// The loop device that has the page.
    pub(super) fn loop_of(&self, place: Place) -> Option<Rc<Loop>> {
        let Place::Mapping(mapping, _) = place else { return None };
        self.loops.borrow().iter().find(|device| device.has(mapping)).cloned()
    }

    /// Whether a page of a file is a block of a loop device that is of no use.
    pub(super) fn is_garbage(&self, mapping: MappingId, index: u32) -> bool {
        let is_garbage = |device: &Rc<Loop>| device.backing == mapping && device.is_garbage(index);
        self.loops.borrow().iter().any(is_garbage)
    }

    /// Loop devices end when they have no work left.
    pub(super) fn stop_loops(&self, kernel: &Kernel) {
        self.loops.borrow().iter().for_each(|device| device.stop(kernel));
    }

    /// Whether no I/O is under way.
    pub(super) fn are_idle(&self) -> bool {
        self.all.iter().all(BlockDisk::is_idle)
    }

    /// /sys/block/DISK/stat of each.
    pub(super) fn stats(&self) -> Vec<(&'static str, [u64; 17])> {
        self.all.iter().map(|disk| (disk.name, disk.stat())).collect()
    }

    /// KiB that were read from the disk with files.
    pub fn file_reads(&self) -> u64 {
        self.all[DATA].stat()[2] / 2
    }
}
