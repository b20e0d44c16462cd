//! The rules of 2.4 (docs/theory/pagealloc.md 8), and releases by name.

use crate::policy::{
    Compaction, Gap, Harder, Kswapd, MinFree, OrderCheck, PagesPolicy, PcpRule, Reserve, Retries, Search,
    Steal, ZoneReclaim,
};

impl PagesPolicy {
    /// The rules of 2.4.10 (`classzone`), or of 2.4.8 and 2.4.9, which have the same ones.
    pub(crate) const fn of_2_4(classzone: bool) -> PagesPolicy {
        let search = match classzone {
            true => Search::Classzone { keeps_freed: true },
            false => Search::FreeAndClean { steals: true },
        };
        PagesPolicy {
            search,
            zone_reclaim: ZoneReclaim::Off,
            grouping: false,
            counts_pressure: !classzone,
            order_check: OrderCheck::Halving,
            gap: Gap::Multiples,
            min_free: MinFree::ZoneRatio(if classzone { 20 } else { 10 }),
            min_free_cap_kib: 65536,
            pcp: PcpRule::NONE,
            steal: Steal::Largest,
            no_fragment: false,
            reserve: Reserve::None,
            merge_to_tail: false,
            resident_first: false,
            begins_anywhere: false,
            kswapd: Kswapd::Always,
            harder: Harder::CannotWait,
            compaction: Compaction::None,
            this_node_gives_up: false,
            zones: None,
            max_order: Some(9),
            pageblock_order: None,
            lowmem_reserve_ratio: 0,
            retries: Retries::Bounded(16),
        }
    }

    /// The rules of a kernel by its name: the numbers of a release, and for 2.4 what stands behind them:
    /// `2.4.9-ac14`, `2.4.9-ac14+aging`, `2.4.10-pre11`. `None` if it does not begin with three numbers, or
    /// two from 3.0 on.
    ///
    /// A pre-release before 2.4.10-pre11 has the rules of 2.4.9. `+aging`, and -ac from 15 on, count no
    /// `memory_pressure`.
    pub fn named(name: &str) -> Option<PagesPolicy> {
        let end = name.find(['-', '+']).unwrap_or(name.len());
        let (release, behind) = name.split_at(end);
        let mut numbers = release.split('.').map(|number| number.parse::<u32>().ok());
        let (major, minor) = (numbers.next()??, numbers.next()??);
        let patch = match numbers.next() {
            Some(patch) => patch?,
            None if major > 2 => 0,
            None => return None,
        };
        if numbers.next().is_some() {
            return None;
        }
        let number =
            |mark: &str| behind.split(['-', '+']).find_map(|word| word.strip_prefix(mark)?.parse().ok());
        let before: Option<u32> = number("pre").filter(|pre| *pre < 11);
        let patch = match (major, minor, patch, before) {
            (2, 4, 10, Some(_)) => 9,
            _ => patch,
        };
        let policy = PagesPolicy::for_release(major, minor, patch);
        let aging =
            number("ac").is_some_and(|ac: u32| ac >= 15) || behind.split('+').any(|word| word == "aging");
        Some(PagesPolicy { counts_pressure: policy.counts_pressure && !aging, ..policy })
    }
}
