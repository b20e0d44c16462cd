//! Large blocks: page frames between two that are inaccessible.
//!
//! ```text
//! guard | requested bytes | slack: zeros | tail | guard        kind Both: alignments of a page at most
//!         requested bytes | slack: zeros | tail | guard        kind Behind: larger alignments
//!         requested bytes | slack: zeros | tail                kind Plain: none left, or the kernel refuses
//! ```
//!
//! A freed block becomes inaccessible as a whole and stays so for a while ([`freed_blocks`]). Each guard is
//! a mapping of its own to the kernel, which allows a process 65,530: beyond [`GUARDED_MOST`] blocks at a
//! time further ones have none, and a line on standard error says so once.

use super::bytes;
use super::found;
use super::tail::{Says, TAIL};
use super::{Hardened, UNSAID};
use crate::freed_blocks;
use crate::heap::{double_free_of_block, not_here};
use crate::kept_blocks;
use crate::mappings;
use crate::shared;
use crate::signals;
use crate::world::Native;
use slablab_native::report::misuse;
use slablab_native::{Location, Object, system};
use slablab_pages::Pages;
use slablab_platform::{Frames, Gfp, Pfn, Topology};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Most blocks with guards at a time. Each has two mappings: the block and, with its neighbour's, the guard.
const GUARDED_MOST: u32 = 16_384;
/// Blocks of at most so many frames are filled with zeros and keep their memory when they are freed, 1 MiB on
/// pages of 4 KiB. The memory of larger ones goes back to the system.
const WARM_FRAMES: u32 = 256;
/// Blocks with guards now.
static GUARDED: AtomicU32 = AtomicU32::new(0);

/// The owner number of the first kind. The number of a block whose free is deferred is one more.
const FIRST: u32 = kept_blocks::LAST + 1;

/// The guards of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Plain,
    Both,
    Behind,
}

const KINDS: [Kind; 3] = [Kind::Plain, Kind::Both, Kind::Behind];

impl Kind {
    fn before(self) -> u32 {
        u32::from(self == Kind::Both)
    }
    fn guards(self) -> u32 {
        self.before() + u32::from(self != Kind::Plain)
    }
    fn owner(self) -> u32 {
        FIRST + 2 * self as u32
    }
}

/// A live block, or one whose free is deferred.
pub(super) struct Block {
    kind: Kind,
    /// The user's first frame.
    start: Pfn,
    /// The user's frames.
    frames: u32,
    is_deferred: bool,
}

impl Block {
    /// The first frame, with the guard.
    fn head(&self) -> Pfn {
        Pfn(self.start.0 - self.kind.before())
    }
    fn object(&self) -> Object {
        Native::address(self.start, 0)
    }
    /// Bytes before the tail.
    fn room(&self) -> usize {
        room(self.frames)
    }
    fn behind(&self) -> Pfn {
        self.start.plus(self.frames)
    }
}

fn room(frames: u32) -> usize {
    ((frames as usize) << Native::page_shift()) - TAIL
}

/// Frames for a request; `None` if there are too many.
fn frames_for(bytes: usize) -> Option<u32> {
    let shift = Native::page_shift();
    u32::try_from(bytes.checked_add(TAIL + (1 << shift) - 1)? >> shift).ok()
}

/// Reserves the guards of a further block. `false` if there are too many, which is said once.
fn reserve_guards() -> bool {
    static SAID: AtomicBool = AtomicBool::new(false);
    if GUARDED.fetch_add(1, Relaxed) < GUARDED_MOST {
        return true;
    }
    GUARDED.fetch_sub(1, Relaxed);
    if !SAID.swap(true, Relaxed) {
        shared::say(format_args!(
            "harden=on: {GUARDED_MOST} large blocks have guard pages; further ones at the same time have none"
        ));
    }
    false
}

impl Hardened {
    /// The block that `location` is in; `None` for slabs and others' blocks.
    pub(super) fn block_at(&self, location: Location) -> Option<Block> {
        let number = location.cache.checked_sub(FIRST)?;
        let kind = *KINDS.get(number as usize / 2)?;
        let head = Pfn(location.slab.0 - kind.before());
        let frames = Pages::<Native>::exact_frames(head) - kind.guards();
        Some(Block { kind, start: location.slab, frames, is_deferred: number % 2 == 1 })
    }

    /// A block of `bytes` zeros, or a mapping: null without memory. The caller has a pass.
    pub(super) fn alloc_block(&self, bytes: usize, align: usize) -> Option<*mut u8> {
        if bytes.max(align) <= Native::largest_block() {
            let guarded = reserve_guards().then(|| self.take_guarded(bytes, align)).flatten();
            if let Some(block) = guarded.or_else(|| self.take_frames(Kind::Plain, bytes, align)) {
                shared::note_used(self.heap.pages);
                Native::map_slab(block.start, 0, 0, block.kind.owner());
                self.set_tail(&block, bytes);
                return Some(block.object().as_ptr());
            }
        }
        mappings::alloc(bytes, align)
    }

    /// A block with its guards, which were reserved. `None` without memory, or if the kernel refuses.
    fn take_guarded(&self, bytes: usize, align: usize) -> Option<Block> {
        let is_small = align <= system::page_size();
        let block = self.take_frames(if is_small { Kind::Both } else { Kind::Behind }, bytes, align);
        let guarded = block.filter(|block| {
            let done = (block.kind.before() == 0 || Native::hide(block.head(), 1))
                && Native::hide(block.behind(), 1);
            if !done {
                self.give_frames(block);
            }
            done
        });
        if guarded.is_none() {
            GUARDED.fetch_sub(1, Relaxed);
        }
        guarded
    }

    /// Frames for a block and its guards, all accessible.
    fn take_frames(&self, kind: Kind, bytes: usize, align: usize) -> Option<Block> {
        let frames = frames_for(bytes)?;
        let all = frames.checked_add(kind.guards())?;
        let align_order = (align >> Native::page_shift()).max(1).ilog2() as u8;
        let node = Native::cpu_memory_node(Native::cpu());
        let pages = self.heap.pages;
        let (head, _) = pages.alloc_exact(Gfp::KERNEL, all, align_order, node)?;
        kept_blocks::allow_huge_pages(head, all);
        Some(Block { kind, start: head.plus(kind.before()), frames, is_deferred: false })
    }

    /// Gives frames back that hold zeros, or the end of a block's life. If the kernel refuses to make the
    /// guards accessible, the block is lost: its next owner could not use it.
    fn give_frames(&self, block: &Block) {
        if block.kind == Kind::Plain || Native::permit(block.head(), block.frames + block.kind.guards()) {
            self.heap.pages.free_exact(block.head());
        }
    }

    fn set_tail(&self, block: &Block, requested: usize) {
        let (object, room) = (block.object(), block.room());
        bytes::set_word(object, room, self.guards.keys.tail(object, room, requested));
    }

    /// The requested bytes of the live block that starts at `object`. Anything else ends the process with a
    /// report that names `call`.
    pub(super) fn live_block(&self, call: &str, block: &Block, object: Object, offset: u32) -> usize {
        if offset != 0 {
            misuse(format_args!(
                "{call} of {object:?}: not the start of an allocation: {offset} bytes into a large block"
            ));
        }
        if block.is_deferred && call == "free" {
            double_free_of_block(object);
        }
        if block.is_deferred {
            misuse(format_args!("{call} of {object:?}: already freed (a large block)"));
        }
        let room = block.room();
        match self.guards.keys.read(object, room, system::page_size()) {
            Says::Live(requested) if bytes::are_zeros(object, requested, room) => requested,
            Says::Live(requested) => found::block_damaged(call, object, room, Some(requested)),
            _ => found::block_damaged(call, object, room, None),
        }
    }

    /// Frees the block that starts at `object`. Without a pass its free is deferred.
    pub(super) fn free_block_sized(
        &self,
        block: &Block,
        object: Object,
        at: Location,
        said: usize,
        align: usize,
    ) {
        let requested = self.live_block("free", block, object, at.offset);
        if said != UNSAID && said != requested {
            misuse(format_args!(
                "sized free of {object:?}: given {said} bytes, expected {requested} (a large block)"
            ));
        }
        if !object.addr().is_multiple_of(align) {
            misuse(format_args!(
                "sized free of {object:?}: given an alignment of {align} bytes, expected less"
            ));
        }
        let Some(_pass) = Native::pass() else {
            Native::map_slab(block.start, 0, 0, block.kind.owner() + 1);
            return signals::defer_free(object);
        };
        self.free_deferred();
        self.put_block(block);
        shared::upkeep();
    }

    /// Frees a block for good. The caller has a pass.
    pub(super) fn put_block(&self, block: &Block) {
        Native::unmap_slab(block.start, 0);
        if block.kind != Kind::Plain {
            GUARDED.fetch_sub(1, Relaxed);
        }
        let (pages, all) = (self.heap.pages, block.frames + block.kind.guards());
        if block.frames <= WARM_FRAMES {
            bytes::clear_frames(block.start, block.frames);
            if !freed_blocks::keep_resident(pages, block.head()) {
                self.give_frames(block);
            }
        } else if !freed_blocks::keep(pages, block.head()) {
            if !Native::forbid(block.head(), all) {
                bytes::clear_frames(block.start, block.frames);
                self.give_frames(block);
            } else if Native::permit(block.head(), all) {
                pages.free_exact_discarded(block.head());
            }
        }
        shared::give_back(shared::end_epoch());
    }

    /// Gives the block of `before` bytes another size in place, above the classes. `false` if that cannot be
    /// done: then nothing changed. The caller has a pass, and looked at the tail.
    pub(super) fn resize_block(&self, block: &Block, before: usize, bytes: usize) -> bool {
        let Some(frames) = frames_for(bytes).filter(|_| bytes <= Native::largest_block()) else {
            return false;
        };
        let resized = Block { frames, ..*block };
        let old_tail = bytes::behind(block.object(), block.room());
        let done = match frames.cmp(&block.frames) {
            std::cmp::Ordering::Equal => true,
            std::cmp::Ordering::Greater => self.grow(block, &resized),
            std::cmp::Ordering::Less => self.shrink_block(block, &resized),
        };
        if !done {
            return false;
        }
        if frames >= block.frames {
            bytes::set_word(old_tail, 0, 0);
        }
        if bytes < before {
            let end = before.min(resized.room());
            bytes::clear_new(block.object().as_ptr().wrapping_add(bytes), end.saturating_sub(bytes));
        }
        self.set_tail(&resized, bytes);
        shared::note_used(self.heap.pages);
        shared::give_back(shared::end_epoch());
        true
    }

    fn grow(&self, block: &Block, to: &Block) -> bool {
        let (pages, head, guards) = (self.heap.pages, block.head(), block.kind.guards());
        if !pages.resize_exact(head, to.frames + guards) {
            return false;
        }
        let moved = block.kind == Kind::Plain || {
            let done = Native::permit(block.behind(), 1) && Native::hide(to.behind(), 1);
            if !done {
                // A guard again, if the kernel lets it.
                Native::hide(block.behind(), 1);
            }
            done
        };
        if !moved {
            pages.resize_exact(head, block.frames + guards);
        }
        moved
    }

    fn shrink_block(&self, block: &Block, to: &Block) -> bool {
        let (guards, is_guarded) = (block.kind.guards(), block.kind != Kind::Plain);
        if is_guarded && !Native::forbid(to.behind(), 1) {
            return false;
        }
        if is_guarded && !Native::permit(block.behind(), 1) {
            // The frame that was the guard for a moment reads as zeros now; the caller copies what it keeps.
            return false;
        }
        let first = to.behind().plus(u32::from(is_guarded));
        bytes::clear_frames(first, block.behind().0.saturating_sub(first.0));
        self.heap.pages.resize_exact(block.head(), to.frames + guards)
    }

    /// Frees what is in no slab and no block: the reserve for signal handlers, mappings.
    pub(super) fn free_elsewhere(&self, object: Object) {
        match signals::free(object.as_ptr()) {
            signals::Freed::Yes => return,
            signals::Freed::Not => misuse(format_args!(
                "free of {object:?}: in the signal-handler reserve, but not allocated (double free?)"
            )),
            signals::Freed::Elsewhere => {}
        }
        if mappings::free(object.as_ptr()) {
            return;
        }
        if let (Some(_), Some(_pass)) = (Native::pagemap(object.as_ptr()), Native::pass()) {
            let (pfn, offset) = Native::locate(object);
            if freed_blocks::is_kept((pfn, offset)) || freed_blocks::is_kept((Pfn(pfn.0.max(1) - 1), offset))
            {
                double_free_of_block(object);
            }
        }
        not_here("free", object.as_ptr());
    }
}
