//! Actions on the whole machine, which act now: the caches of files.

use super::offer::{Action, Offer};
use crate::find::Kind;
use crate::measure::reclaim::Reclaim;
use crate::measure::{Line, named};
use crate::words::listed;

/// Directory entries and inodes alone, or with the page cache and what goes with it.
pub(super) fn drop_caches(offer: &Offer) -> Vec<Action> {
    let (Some(knob), Some(finding)) = (offer.knob("drop_caches"), offer.finding(Kind::Reclaimable)) else {
        return Vec::new();
    };
    let (with_pages, bytes) = with_page_cache(offer);
    let (without, held) = held(offer);
    let freed = finding.bytes.saturating_sub(held);
    let action = |what: u8, saves: u64, basis: String, cost: &str| Action {
        optional: false,
        knob: knob.key,
        way: knob.way,
        command: format!("sync; echo {what} > /proc/sys/vm/drop_caches"),
        because: vec![Kind::Reclaimable],
        saves: (0, saves as i64),
        basis,
        cost: cost.into(),
    };
    let stay = "files that are open, and slabs with one object in use, stay";
    let inodes = action(
        2,
        freed.saturating_sub(bytes),
        format!("SReclaimable{without}{with_pages}; {stay}, as may inodes with cached pages"),
        "files are looked up on disk again, and the caches grow back",
    );
    let all = action(
        3,
        freed,
        format!("SReclaimable{without}; {stay}"),
        "the page cache is dropped too: files are read from disk again, and the caches grow back",
    );
    [(inodes, true), (all, bytes >= offer.worth)]
        .into_iter()
        .filter_map(|(action, offered)| (offered && action.saves.1 > 0).then_some(action))
        .collect()
}

/// A stronger preference for the caches of files when the kernel needs memory.
pub(super) fn cache_pressure(offer: &Offer) -> Option<Action> {
    let (knob, finding) = (offer.knob("cache_pressure")?, offer.finding(Kind::Reclaimable)?);
    let (with_pages, bytes) = with_page_cache(offer);
    let (without, held) = held(offer);
    let saves = finding.bytes.saturating_sub(bytes).saturating_sub(held);
    (saves > 0).then(|| Action {
        optional: false,
        knob: knob.key,
        way: knob.way,
        command: "sysctl vm.vfs_cache_pressure=200".into(),
        because: vec![Kind::Reclaimable],
        saves: (0, saves as i64),
        basis: format!("SReclaimable{without}{with_pages}; acts only when the kernel needs memory"),
        cost: "under memory pressure, files are looked up on disk more often".into(),
    })
}

/// The names and the bytes of caches counted as reclaimable whose objects only their holder frees, and of
/// the growth of others that is held with them.
fn held(offer: &Offer) -> (String, u64) {
    let lines: Vec<&Line> =
        offer.measured.lines.iter().filter(|line| line.reclaim == Reclaim::Holder).collect();
    let mut names: Vec<String> =
        lines.iter().filter(|line| line.split.bytes >= offer.worth).map(|line| named(line)).collect();
    let mut bytes: u64 = lines.iter().map(|line| line.split.bytes).sum();
    for line in offer.measured.grown.iter().filter(|group| !group.benign).flat_map(|group| &group.lines) {
        let line = &offer.measured.lines[*line];
        let grown = line.growth.as_ref().map_or(0, |growth| growth.bytes.max(0) as u64);
        if matches!(line.reclaim, Reclaim::Shrinker | Reclaim::PageCache) && grown > 0 {
            bytes = bytes.saturating_add(grown);
            if grown >= offer.worth {
                names.push(format!("the growth of {}", named(line)));
            }
        }
    }
    let without = if names.is_empty() {
        String::new()
    } else {
        format!(" less {} (no shrinker frees them)", listed(&names))
    };
    (without, bytes)
}

/// The names and the bytes of the reclaimable caches that shrink only with the page cache, as buffer
/// heads do.
fn with_page_cache(offer: &Offer) -> (String, u64) {
    let goes_with_pages = |line: &&Line| line.reclaim == Reclaim::PageCache;
    let lines: Vec<&Line> = offer.measured.lines.iter().filter(goes_with_pages).collect();
    let names: Vec<String> =
        lines.iter().filter(|line| line.split.bytes >= offer.worth).map(|line| named(line)).collect();
    let without = if names.is_empty() {
        String::new()
    } else {
        format!(" less {} (they go with the page cache)", listed(&names))
    };
    (without, lines.iter().map(|line| line.split.bytes).sum())
}
