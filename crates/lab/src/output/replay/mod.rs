//! A replay as text, JSON, CSV and a page.

mod columns;
mod csv;
mod json;
mod page;
mod table;
mod violations;

pub use csv::{cache_csv, caches_csv};
pub use json::{cache_json, replay_json};
pub(in crate::output) use page::facts;
pub use page::replay_page;
pub(crate) use table::busiest;
pub use table::{cache_table, caches_table, engines_table, remarks};

use crate::replay::Replay;
use crate::replay::outcome::{LOCKS, Outcome, Split};
use slablab_platform::Event;

/// One figure of an engine.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// A number of things.
    Count(u64),
    /// Percent; `None` where there was nothing to count.
    Percent(Option<f64>),
    /// Bytes.
    Bytes(u64),
    /// A heading.
    Heading,
}

/// The figures of a run, each with the name for people and the key for machines.
pub fn figures(outcome: &Outcome) -> Vec<(String, String, Figure)> {
    let total = outcome.total();
    let traffic = outcome.traffic();
    let mut rows: Vec<(String, String, Figure)> = Vec::new();
    let mut add = |name: &str, key: &str, figure: Figure| rows.push((name.into(), key.into(), figure));
    add("allocations", "allocs", Figure::Count(traffic.allocs));
    add("  fast", "allocs_fast_percent", Figure::Percent(total.fast_allocs_percent()));
    add("frees", "frees", Figure::Count(traffic.frees));
    add("  fast", "frees_fast_percent", Figure::Percent(total.fast_frees_percent()));
    add("  by another CPU", "frees_other_cpu", Figure::Count(traffic.other_cpu));
    add("  by another node", "frees_other_node", Figure::Count(traffic.other_node));
    add("slabs taken", "slabs_taken", Figure::Count(total.get(Event::AllocSlab)));
    for (order, (taken, _)) in outcome.slabs_by_order().into_iter().enumerate().filter(|(_, both)| both.0 > 0)
    {
        add(&format!("  of order {order}"), &format!("slabs_taken_order_{order}"), Figure::Count(taken));
    }
    let pages = |(order, (taken, _)): (usize, (u64, u64))| taken << order;
    let pages_taken = outcome.slabs_by_order().into_iter().enumerate().map(pages).sum();
    add("  pages", "slab_pages_taken", Figure::Count(pages_taken));
    add("slabs returned", "slabs_returned", Figure::Count(total.get(Event::FreeSlab)));
    for (order, (_, returned)) in
        outcome.slabs_by_order().into_iter().enumerate().filter(|(_, both)| both.1 > 0)
    {
        add(
            &format!("  of order {order}"),
            &format!("slabs_returned_order_{order}"),
            Figure::Count(returned),
        );
    }
    add("large kmallocs", "large_allocs", Figure::Count(outcome.large.allocs));
    if total.get(Event::SlobPagesWalked) > 0 {
        add("pages walked", "slob_pages_walked", Figure::Count(total.get(Event::SlobPagesWalked)));
        add("free blocks walked", "slob_blocks_walked", Figure::Count(total.get(Event::SlobBlocksWalked)));
    }
    add("slab memory", "", Figure::Heading);
    add("  start", "slab_start_bytes", Figure::Bytes(outcome.start_frames * outcome.page_size));
    add("  peak", "slab_peak_bytes", Figure::Bytes(outcome.peak_frames * outcome.page_size));
    add("  end", "slab_end_bytes", Figure::Bytes(outcome.end_frames * outcome.page_size));
    let Split { live, parked, free, tail, .. } = outcome.split();
    add("    live objects", "live_bytes", Figure::Bytes(live));
    add("    parked at CPUs", "parked_bytes", Figure::Bytes(parked));
    add("    free in slabs", "free_bytes", Figure::Bytes(free));
    if outcome.shared.frames > 0 {
        add("      of these no cache's", "shared_free_bytes", Figure::Bytes(outcome.shared.free_bytes));
    }
    add("    tail of slabs", "tail_bytes", Figure::Bytes(tail));
    add("locks taken", "", Figure::Heading);
    for lock in LOCKS.into_iter().filter(|lock| total.get(*lock) > 0) {
        let name = lock.name().trim_start_matches("lock_");
        add(&format!("  {name}"), lock.name(), Figure::Count(total.get(lock)));
    }
    add("  zone", "lock_zone", Figure::Count(outcome.global.get(Event::LockZone)));
    add("failed allocations", "allocs_failed", Figure::Count(traffic.failed + outcome.large.failed));
    add("assumed", "", Figure::Heading);
    add("  frees of older objects", "frees_old", Figure::Count(traffic.old));
    add("  untraced allocations", "allocs_assumed", Figure::Count(traffic.bulk));
    add("  untraced frees", "frees_implied", Figure::Count(traffic.implied));
    add("  frees of unknown caches", "frees_unknown", Figure::Count(outcome.unknown_frees));
    if outcome.elsewhere.rows > 0 {
        add("  rows of CPUs that were off", "rows_elsewhere", Figure::Count(outcome.elsewhere.rows));
    }
    rows
}

/// The figures of all engines by name: rows are those of any engine, in the order of the first that has them;
/// `None` is an engine that has no such figure, since nothing of the kind happened.
pub(crate) fn side_by_side(replay: &Replay) -> Vec<(String, Vec<Option<Figure>>)> {
    let columns: Vec<_> = replay.outcomes.iter().map(figures).collect();
    let mut keys: Vec<(String, String)> = Vec::new();
    for column in &columns {
        let mut after = 0;
        for (name, key, _) in column {
            match keys.iter().position(|known| known == &(name.clone(), key.clone())) {
                Some(at) => after = at + 1,
                None => {
                    after += keys[after..].iter().take_while(|known| is_lower(&known.1, key)).count();
                    keys.insert(after, (name.clone(), key.clone()));
                    after += 1;
                }
            }
        }
    }
    let cell = |column: &Vec<(String, String, Figure)>, (name, key): &(String, String)| {
        let found = column.iter().find(|(other, same, _)| other == name && same == key);
        found.map(|(_, _, figure)| figure.clone())
    };
    keys.iter().map(|key| (key.0.clone(), columns.iter().map(|column| cell(column, key)).collect())).collect()
}

/// Whether a row is of a lower order than another of its kind: `slabs_taken_order_2` and
/// `slabs_taken_order_10`.
fn is_lower(one: &str, other: &str) -> bool {
    let stem = |key: &str| key.trim_end_matches(|digit: char| digit.is_ascii_digit()).len();
    let (of_one, of_other) = (stem(one), stem(other));
    of_one < one.len() && one[..of_one] == other[..of_other] && (one.len(), one) < (other.len(), other)
}

/// Percent of a cache's events that must rest on assumptions before it is marked.
pub const MARK_ABOVE_PERCENT: f64 = 1.0;
