//! Arrays of accounting that come with a change, or go: objects of kmalloc (docs/theory/slub.md 7.1).

use super::case::{Case, Keeping};
use super::figures::Row;
use crate::measure::accounting::{Charging, Place};
use crate::state::Cache;
use slablab_slabs::accounting::{Accounting, Profiling};
use std::collections::BTreeMap;

/// What the kernel keeps beside objects: today, and with the change.
#[derive(Clone, Copy)]
struct Both {
    today: Charging,
    then: Charging,
}

impl Both {
    /// `None` where the input does not tell its release, or another engine is asked for.
    fn of(case: &Case) -> Option<Both> {
        let today = Charging::of(case.state)?;
        if matches!(case.kept, Keeping::Unknown(_)) {
            return None;
        }
        let profiling = case.change.config.map_or(today.kernel.profiling, |config| config.0);
        let kernel = Accounting { release: case.release(), profiling, ..today.kernel };
        Some(Both { today, then: Charging { kernel, ..today } })
    }
}

/// Objects of kmalloc by bytes, fewer ones below 0. `rows` are the caches of the state, in their order.
pub(super) fn arrays(case: &Case, rows: &[Row]) -> Vec<(u64, f64)> {
    let caches = &case.state.caches;
    let Some(both) = Both::of(case).filter(|both| both.today != both.then && rows.len() == caches.len())
    else {
        return Vec::new();
    };
    let mut objects: BTreeMap<u64, f64> = BTreeMap::new();
    for (cache, row) in caches.iter().zip(rows) {
        let whatif = &row.whatif;
        let after = Cache {
            size: whatif.size,
            order: whatif.order,
            objects_per_slab: whatif.objects_per_slab,
            slabs: whatif.slabs,
            ..cache.clone()
        };
        for (charging, cache, times) in [(both.today, cache, -1.0), (both.then, &after, 1.0)] {
            let words = charging.words(cache, case.state).filter(|words| words.place == Place::Array);
            if let Some(words) = words {
                *objects.entry(words.array).or_default() += times * cache.slabs as f64;
            }
        }
    }
    objects.into_iter().filter(|(_, objects)| *objects != 0.0).collect()
}

/// Why a configuration's cost is not known, if it is not.
pub(super) fn unknown(case: &Case) -> Option<&'static str> {
    case.change.config?;
    let Some(both) = Both::of(case) else {
        return Some(
            "the input does not tell its kernel's release, on which the bytes beside an object depend",
        );
    };
    let may_charge = both.today.kernel.cgroups && both.today.in_use.is_none();
    let widens = both.today.kernel != both.then.kernel && both.then.kernel.profiling != Profiling::On;
    (may_charge && widens).then_some(
        "whether memory cgroups charge objects is not in the input (/proc/cgroups, /sys/fs/cgroup), and only \
         charged objects have more bytes beside them then",
    )
}

/// What is assumed of accounting with this change, if it is asked about or changes anything.
pub(super) fn assumed(case: &Case) -> Option<String> {
    let both = Both::of(case).filter(|both| both.today.kernel != both.then.kernel)?;
    let charged = match both.today.in_use {
        // Without a question about it, only what is predicted is said.
        None | Some(false) if case.change.config.is_none() => return None,
        _ if !both.today.kernel.cgroups => "the kernel charges nothing to memory cgroups",
        Some(true) => "caches that sysfs or their names tell as charged are charged in all their slabs",
        Some(false) => "there is no memory cgroup beside the root, so nothing is charged",
        None => "whether memory cgroups charge objects is not in the input, and is taken for no",
    };
    Some(format!("Accounting: {charged}."))
}
