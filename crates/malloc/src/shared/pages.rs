//! The page allocator that all heaps and object caches of the process share.

use crate::world::Native;
use crate::{freed_blocks, kept_blocks};
use slablab_native::{Sleep, Start, Wishes};
use slablab_pages::Pages;
use slablab_pages::policy::{MinFree, PagesPolicy, PcpRule, ZoneRule};
use std::sync::OnceLock;

static PAGES: OnceLock<Pages<Native>> = OnceLock::new();
/// Held by the thread that gives back freed blocks because there is no memory. A second thread waits, and finds
/// what the first one gave back.
static RELEASING: Sleep<()> = Sleep::new(());

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
    // One label for all: nothing here can be moved.
    pages.max_order = Some(Native::largest_order());
    pages.pageblock_order = pages.max_order;
    Native::on_reclaim(release_kept);
    PAGES.set(Pages::new(pages)).is_ok()
}

/// Gives the page allocator all freed blocks that stay for a while; returns their frames.
fn release_kept() -> u32 {
    let Some(pages) = pages() else { return 0 };
    let _releasing = RELEASING.lock();
    let frames = kept_blocks::release_all(pages) + freed_blocks::release_all(pages);
    frames.try_into().unwrap_or(u32::MAX)
}
