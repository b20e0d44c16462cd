//! Null models, and what of a change has no events.
//!
//! A kernel frees in bulk (`kmem_cache_free_bulk`, `kvfree_rcu`, nodes of maple trees) without an event, and
//! some caches have no event at all. What the recording does not have, no engine can predict: caches are
//! judged in three groups beside the whole.

use super::moved::{Change, Tracing, null_skill, skill};
use super::pages::ByOrder;

/// Caches with the same tracing that changed, or should have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    /// Which of their allocations and frees have events.
    pub tracing: Tracing,
    /// How many caches.
    pub caches: usize,
    /// Bytes of slabs by which they changed, each cache's sign aside.
    pub real_bytes: u64,
    /// Bytes of slabs by which the prediction is wrong.
    pub error_bytes: u64,
    /// Skill of the prediction and of the recording's own balance, in bytes of slabs; `None` if no byte
    /// changed.
    pub skills: Option<(f64, f64)>,
}

/// The groups of caches, those with all events first.
pub fn groups(changes: &[Change]) -> [Group; 3] {
    [Tracing::All, Tracing::Some, Tracing::None].map(|tracing| {
        let of: Vec<Change> = changes.iter().filter(|change| change.tracing == tracing).cloned().collect();
        let real_bytes: u64 = of.iter().map(|change| change.real.slab_bytes.unsigned_abs()).sum();
        let moved = |change: &&Change| change.real.slab_bytes != 0 || change.error_bytes() != 0;
        Group {
            tracing,
            caches: of.iter().filter(moved).count(),
            real_bytes,
            error_bytes: of.iter().map(Change::error_bytes).sum(),
            skills: (real_bytes > 0).then(|| (skill(&of).slabs, null_skill(&of).slabs)),
        }
    })
}

/// Sentences: skill where all is traced, and what has no events. `read`: whether snapshots say how much is
/// traced.
pub fn shares(groups: &[Group; 3], read: bool) -> Vec<String> {
    let [all, some, none] = groups;
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let changed = |group: &Group| percent(group.real_bytes, groups.iter().map(|one| one.real_bytes).sum());
    let wrong = |group: &Group| percent(group.error_bytes, groups.iter().map(|one| one.error_bytes).sum());
    let mut said = Vec::new();
    if let Some((skill, balance)) = all.skills {
        said.push(format!(
            "over {} caches whose events are {} traced: skill {skill:.3} in bytes of slabs, own balance \
             {balance:.3}",
            all.caches,
            if read { "99 % or more" } else { "all" }
        ));
    }
    said.push(format!(
        "of the bytes that changed, {:.1} % are of caches without an event and {:.1} % of caches with untraced \
         allocations or frees (bulk, RCU); of the bytes predicted wrong, {:.1} % and {:.1} %",
        changed(none),
        changed(some),
        wrong(none),
        wrong(some)
    ));
    said
}

/// Slabs that the recording's own balance takes and returns, by order.
pub(super) fn own_balance(changes: &[Change], page_size: u64) -> ByOrder {
    let mut orders = ByOrder::default();
    for change in changes {
        let order = (change.bytes.0 / page_size.max(1)).max(1).ilog2() as usize;
        let Some(both) = orders.get_mut(order) else { continue };
        let slabs = change.balance.slabs.unsigned_abs();
        if change.balance.slabs > 0 { both.0 += slabs } else { both.1 += slabs }
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::super::moved::Moved;
    use super::*;

    fn change(tracing: Tracing, real: i64, predicted: i64, balance: i64) -> Change {
        let moved = |slabs| Moved { slabs, slab_bytes: slabs * 8192, active: 0 };
        Change {
            name: "filp".into(),
            start: (10, 100),
            real: moved(real),
            predicted: moved(predicted),
            balance: moved(balance),
            tracing,
            bytes: (8192, 256),
            cause: String::new(),
        }
    }

    #[test]
    fn caches_are_judged_by_what_has_events() {
        let changes = [
            change(Tracing::All, -10, -8, -5),
            change(Tracing::Some, 5, -5, 0),
            change(Tracing::None, 5, 0, 0),
            change(Tracing::None, 0, 0, 0),
        ];
        let groups = groups(&changes);
        assert_eq!(groups[0].skills, Some((0.8, 0.5)));
        assert_eq!(groups.map(|group| group.caches), [1, 1, 1], "a cache that stays is none");
        assert_eq!(groups[1].skills, Some((-1.0, 0.0)));
        let said = shares(&groups, false).join("\n");
        assert!(said.contains("25.0 % are of caches without an event and 25.0 % of caches with"), "{said}");
        assert!(said.contains("predicted wrong, 29.4 % and 58.8 %"), "{said}");
    }

    #[test]
    fn the_own_balance_counts_by_order() {
        let changes = [change(Tracing::All, 0, 0, 3), change(Tracing::All, 0, 0, -2)];
        assert_eq!(own_balance(&changes, 4096)[1], (3, 2));
    }
}
