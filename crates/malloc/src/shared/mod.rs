//! What all heaps and object caches of the process share.
//!
//! A *tenant* is a heap or an object cache. It has [`NUMBERS`] cache numbers from `tenant * NUMBERS` on, so
//! the cache number that a page frame carries leads to its tenant. The process's own heap is tenant 0 or 1.
//!
//! | module | what |
//! |---|---|
//! | `tenants` | the registry: register, publish, withdraw, release |
//! | `pages` | the one page allocator |
//! | `signal_frees` | objects that signal handlers freed in the middle of malloc |
//! | `works` | deferred work |
//! | `upkeep` | shrinking in turns, memory back to the system |
//! | `purge` | all memory that no object needs goes back, that of all threads |
//! | `limit`, `cgroup` | a limit of memory, and what a cgroup says of its own |
//! | `decide` | when: the decisions of `upkeep`, without reading or writing anything |
//! | `helper` | a thread for the upkeep of a process that sleeps |
//! | `stats` | totals |
//! | `columns`, `json` | the same and all caches, as a table and as JSON |
//! | `note`, `directory` | where another process finds the same |

mod cgroup;
mod columns;
mod decide;
mod directory;
pub(crate) mod helper;
mod inside;
mod json;
pub(crate) mod limit;
pub mod note;
mod pages;
mod purge;
mod signal_frees;
mod stats;
#[expect(unsafe_code, reason = "calls tenants that may leave")]
mod tenants;
mod upkeep;
mod works;

pub use crate::env::choice;
pub(crate) use columns::print as print_stats;
pub(crate) use directory::open as open_directory;
pub use helper::upkeep;
pub(crate) use helper::{after_free, before_block};
pub use pages::pages;
pub(crate) use pages::{empty_caches, start};
pub use purge::{Purged, purge};
pub use signal_frees::SignalFrees;
pub(crate) use stats::METADATA_BYTES;
pub use stats::{Totals, totals};
pub use tenants::{
    EachCache, NUMBERS, Named, Registration, Tenant, is_own, leak, publish, publish_static, register,
    release, withdraw,
};
pub(crate) use tenants::{OWN, register_own, write_cache_name};
pub use upkeep::trim;
pub(crate) use upkeep::{end_epoch, give_back, note_block_free, note_used};
pub use works::end as end_works;

use crate::env::{Settings, Stats};
use crate::world::Native;
use slablab_native::Sleep;
use slablab_native::report::{self, Line};
use slablab_platform::CpuId;
use std::fmt;

/// Prints every cache when the process ends, as the environment asks.
pub(crate) fn print_stats_to(engine: &dyn fmt::Display, settings: &Settings) {
    match settings.stats {
        Stats::Off => {}
        Stats::Columns => columns::print(engine),
        Stats::Json => json::print(engine),
        Stats::File => json::write_file(engine, settings.stats_path.as_str()),
    }
}

/// In a fork's child: the other threads are not there.
pub(crate) fn forget_other_threads() {
    helper::forget();
    tenants::forget_other_threads();
    let hook = *ON_CHILD.lock();
    if let Some(hook) = hook {
        hook();
    }
}

/// The function that [`forget_other_threads`] calls last.
static ON_CHILD: Sleep<Option<fn()>> = Sleep::new(None);

/// Has `hook` called in every fork's child. There is one hook: a second call replaces it.
pub fn on_child(hook: fn()) {
    *ON_CHILD.lock() = Some(hook);
}

/// After a thread ended: has every tenant free what a slot without a thread holds, if there is one to empty.
pub(crate) fn thread_exit(slot: Option<CpuId>) {
    slot.inspect(|slot| tenants::each(|tenant| tenant.thread_exit(*slot)));
    upkeep::after_thread(Native::threads());
}

/// Ends the process with a report of what a caller did wrong.
#[cold]
pub fn misuse(what: fmt::Arguments<'_>) -> ! {
    report::misuse(what)
}

/// Writes `slablab: ...` to standard error.
pub fn say(what: fmt::Arguments<'_>) {
    Line::say(what);
}
