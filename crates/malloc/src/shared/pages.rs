//! The page allocator that all heaps and object caches of the process share.

use super::tenants;
use crate::world::Native;
use crate::{freed_blocks, kept_blocks};
use slablab_native::{Sleep, Start, Wishes};
use slablab_pages::Pages;
use slablab_pages::policy::{MinFree, PagesPolicy, PcpRule, Reserve, ZoneRule};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static PAGES: OnceLock<Pages<Native>> = OnceLock::new();
/// Held, before all other locks, by the thread that gives back freed blocks because there is no memory.
static RELEASING: Sleep<()> = Sleep::new(());
/// Frames that were given back so, in all.
static RELEASED: AtomicU64 = AtomicU64::new(0);

/// The page allocator; `None` before the process's heap started.
#[inline]
pub fn pages() -> Option<&'static Pages<Native>> {
    PAGES.get()
}

/// Starts the native world and the page allocator, and answers whether there is memory. The thread that
/// starts the process's heap calls it, again if its last try failed.
pub(crate) fn start(wanted: Wishes) -> bool {
    if PAGES.get().is_some() {
        return true;
    }
    if Native::start_with(wanted) != Start::Runs {
        return false;
    }
    let mut pages = PagesPolicy::for_release(6, 18, 0);
    pages.pcp = PcpRule::NONE;
    pages.zones = Some(ZoneRule::One);
    pages.min_free = MinFree::Kib(0);
    // Untouched memory is a page fault each.
    pages.resident_first = true;
    // The world's first node begins with a small block.
    pages.begins_anywhere = true;
    // One kind of memory: nothing here can be moved, and no block waits for atomic requests.
    pages.grouping = false;
    pages.reserve = Reserve::None;
    pages.max_order = Some(Native::largest_order());
    pages.pageblock_order = pages.max_order;
    Native::on_reclaim(release_kept);
    PAGES.set(Pages::new(pages)).is_ok()
}

/// Gives the page allocator all freed blocks that stay for a while; returns their frames, and those of other
/// threads that did so meanwhile.
fn release_kept() -> u32 {
    let Some(pages) = pages() else { return 0 };
    let before = RELEASED.load(Relaxed);
    let _releasing = RELEASING.lock();
    RELEASED.fetch_add(kept_blocks::release_all(pages) + freed_blocks::release_all(pages), Relaxed);
    (RELEASED.load(Relaxed) - before).try_into().unwrap_or(u32::MAX)
}

/// Has all caches give back what they keep for later, for a request that found no memory and tries again. The
/// caller holds no lock and no slot.
#[cold]
pub(crate) fn empty_caches() {
    tenants::each(|tenant| tenant.shrink_all());
}
