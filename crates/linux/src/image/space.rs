//! Address space: where an image, its machine's memory and what describes it lie in the process. `unsafe`:
//! maps memory, copies the image into it.
#![allow(unsafe_code)]

use super::elf::Program;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap};
use slablab_report::error::{Error, Result};
use std::ffi::c_void;
use std::path::Path;
use std::ptr::NonNull;

/// A piece of address space, zero until touched.
#[derive(Debug)]
pub(crate) struct Area {
    start: NonNull<c_void>,
    bytes: usize,
}

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

impl Area {
    /// Reserves `bytes` bytes; memory is committed as it is touched.
    pub(crate) fn reserve(what: &str, bytes: u64) -> Result<Area> {
        let bytes = usize::try_from(bytes.max(4096)).expect("64 bits");
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let start =
            unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let start = start.map_err(|error| {
            Error::new(Path::new("linux:"), format!("no address space for {bytes} bytes of {what}: {error}"))
        })?;
        if bytes >= HUGE {
            // Calls touch objects all over it: with pages of 4 KiB a translation is missing at most of them.
            // A system without huge pages refuses, and does without. SAFETY: the mapping is new and whole;
            // the advice changes no contents.
            let _ = unsafe { madvise(start, bytes, Advice::LinuxHugepage) };
        }
        Ok(Area { start: NonNull::new(start).expect("mmap gives no null"), bytes })
    }

    /// The first address.
    pub(crate) fn start(&self) -> u64 {
        self.start.as_ptr().addr() as u64
    }

    /// The size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes as u64
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing refers to it any more: images drop their
        // areas last.
        let _ = unsafe { munmap(self.start.as_ptr(), self.bytes) };
    }
}

/// Where images may lie: the kernel's code model wants addresses that fit 31 bits.
const LOWEST: u64 = 0x1000_0000;
const HIGHEST: u64 = 0x7000_0000;
/// Distance between two tries.
const STEP: u64 = 1 << 20;

/// An image in memory, at the place that was free.
#[derive(Debug)]
pub(crate) struct Placed {
    area: Area,
    /// How far it lies from where it was linked.
    pub(crate) delta: i64,
}

impl Placed {
    /// Copies the program into the lowest place that is free, and moves it there.
    pub(crate) fn new(program: &Program, path: &Path) -> Result<Placed> {
        let (first, end) = program.span();
        let bytes = (end - first).next_multiple_of(4096) as usize;
        let area = (LOWEST..HIGHEST).step_by(STEP as usize).find_map(|at| fixed(at, bytes));
        let Some(area) = area else {
            return Err(Error::new(path, "no place below 2 GiB is free for another image"));
        };
        let delta = area.start().wrapping_sub(first) as i64;
        let at = |address: u64| address.wrapping_add_signed(delta) as usize as *mut u8;
        for segment in &program.segments {
            // SAFETY: the area spans all segments; it is writable, and nobody else knows it yet.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    segment.contents.as_ptr(),
                    at(segment.address),
                    segment.contents.len(),
                );
            }
        }
        program.relocate(delta, |place, size, delta| {
            // SAFETY: relocations are of allocated sections, which the area holds.
            unsafe {
                if size == 8 {
                    let word = at(place).cast::<i64>();
                    word.write_unaligned(word.read_unaligned().wrapping_add(delta));
                } else {
                    let word = at(place).cast::<i32>();
                    word.write_unaligned(word.read_unaligned().wrapping_add(delta as i32));
                }
            }
        });
        for segment in program.segments.iter().filter(|segment| segment.is_code) {
            let bytes = (segment.bytes as usize).next_multiple_of(4096);
            // SAFETY: the pages are the area's; code begins on a page of its own, by the linker script.
            unsafe {
                mprotect(
                    at(segment.address).cast(),
                    bytes,
                    rustix::mm::MprotectFlags::READ | rustix::mm::MprotectFlags::EXEC,
                )
            }
            .map_err(|error| Error::new(path, format!("its code cannot be made executable: {error}")))?;
        }
        Ok(Placed { area, delta })
    }

    /// The first address, and the one after the last.
    pub(crate) fn span(&self) -> (u64, u64) {
        (self.area.start(), self.area.start() + self.area.bytes())
    }
}

fn fixed(at: u64, bytes: usize) -> Option<Area> {
    let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
    // SAFETY: FIXED_NOREPLACE maps nothing over another mapping.
    let start = unsafe {
        mmap_anonymous(at as usize as *mut c_void, bytes, ProtFlags::READ | ProtFlags::WRITE, flags)
    };
    let area = Area { start: NonNull::new(start.ok()?)?, bytes };
    // A kernel before 4.17 takes the address as a wish.
    (area.start() == at).then_some(area)
}

/// Copies bytes within the process: parts of an image, or what an image is given.
pub(crate) fn copy(from: u64, to: u64, bytes: u64) {
    // SAFETY: callers in `image` name parts of one image's segments and areas, which do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(from as usize as *const u8, to as usize as *mut u8, bytes as usize)
    };
}

/// A word of an image.
pub(crate) fn read(address: u64) -> u64 {
    // SAFETY: the address is that of a symbol of a placed image.
    unsafe { (address as usize as *const u64).read_unaligned() }
}

/// Writes the table of the program's functions.
pub(crate) fn write_table(address: u64, table: &[u64]) {
    copy(table.as_ptr().addr() as u64, address, size_of_val(table) as u64);
}
