//! How many pages are wanted: shortages, the inactive target, memory pressure, zones with plenty.

use super::V24;
use super::lru::{ACTIVE, INACTIVE, clean_list};
use super::policy::{Lists, Plenty, Target};
use crate::counters::Counter;
use crate::host::Mark;
use crate::state::State;
use crate::vm::{Host, Vm};

/// Nanoseconds of a second.
pub(super) const SECOND: u64 = 1_000_000_000;
/// Seconds over which memory pressure is averaged.
const AVERAGED: u64 = 64;
/// Processors below which pressure does not fall by frees. One processor is assumed.
const NR_CPUS: u64 = 1;

/// Free pages and marks of a zone, as the host said at the start of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    free: u64,
    low: u64,
    high: u64,
}

/// Those of all zones.
pub(super) fn levels(vm: &Vm, host: &dyn Host) -> Vec<Level> {
    let zones = vm.with(|state| state.zones.len());
    let level = |zone| Level {
        free: host.free_pages(zone),
        low: host.mark(zone, Mark::Low),
        high: host.mark(zone, Mark::High),
    };
    (0..zones).map(level).collect()
}

impl V24 {
    /// Pages in the inactive list of a zone rise or fall.
    pub(super) fn count_inactive(&self, zone: usize, by: i64) {
        let mut counts = self.data.inactive.borrow_mut();
        if counts.len() <= zone {
            counts.resize(zone + 1, 0);
        }
        counts[zone] = counts[zone].checked_add_signed(by as i32).expect("a zone has the inactive page");
    }

    /// Pages of a zone in the inactive list.
    pub fn inactive_of(&self, zone: usize) -> u64 {
        self.data.inactive.borrow().get(zone).copied().unwrap_or(0).into()
    }

    /// Pages of a zone in its `inactive_clean` list.
    pub(super) fn clean_of(&self, state: &State, zone: usize) -> u64 {
        match self.choices.lists {
            Lists::Three => state.lists.len(clean_list(zone)).into(),
            Lists::Two => 0,
        }
    }

    /// Free and clean pages of a zone.
    fn ready(&self, state: &State, levels: &[Level], zone: usize) -> u64 {
        levels[zone].free + self.clean_of(state, zone)
    }

    /// Free, clean and inactive pages of a zone.
    fn usable(&self, state: &State, levels: &[Level], zone: usize) -> u64 {
        self.ready(state, levels, zone) + self.inactive_of(zone)
    }

    /// A zone has so many inactive pages that the walk and refill spare its pages (`zone_inactive_plenty`).
    /// With two lists inactive pages may be mapped, and nothing but the walk unmaps them: only free pages
    /// count.
    pub(super) fn inactive_plenty(&self, state: &State, levels: &[Level], zone: usize) -> bool {
        let size = state.zones[zone].managed;
        let most = match self.choices.plenty {
            Plenty::Third => size / 3,
            Plenty::TwoFifths => size * 2 / 5,
        };
        match self.choices.lists {
            Lists::Three => self.usable(state, levels, zone) > most,
            Lists::Two => self.ready(state, levels, zone) > most,
        }
    }

    /// A zone has so many free and clean pages that laundering spares its pages (`zone_free_plenty`).
    pub(super) fn free_plenty(&self, state: &State, levels: &[Level], zone: usize) -> bool {
        has_free_plenty(self.ready(state, levels, zone), levels[zone].high)
    }

    /// Free and clean pages that are missing: those of zones below low, else those of the machine below the
    /// sum of high (docs/theory/vm.md 5.5).
    pub fn free_shortage(&self, vm: &Vm, host: &dyn Host) -> u64 {
        let levels = levels(vm, host);
        let ready: Vec<u64> =
            vm.with(|state| (0..levels.len()).map(|zone| self.ready(state, &levels, zone)).collect());
        let zones = levels.iter().zip(&ready);
        let missing: u64 = zones.map(|(level, ready)| level.low.saturating_sub(*ready)).sum();
        let high: u64 = levels.iter().map(|level| level.high).sum();
        if missing > 0 { missing } else { high.saturating_sub(ready.iter().sum()) }
    }

    /// Inactive pages that are missing: those of zones below high, else those of the machine below the sum of
    /// high and the target (docs/theory/vm.md 5.5).
    pub fn inactive_shortage(&self, vm: &Vm, host: &dyn Host) -> u64 {
        let zones = self.zone_shortages(vm, host);
        if zones > 0 { zones } else { self.global_shortage(vm, host) }
    }

    /// Inactive pages that zones miss below their high mark.
    pub(super) fn zone_shortages(&self, vm: &Vm, host: &dyn Host) -> u64 {
        let levels = levels(vm, host);
        let missing = |state: &mut State, zone: usize| {
            levels[zone].high.saturating_sub(self.usable(state, &levels, zone))
        };
        vm.with(|state| (0..levels.len()).map(|zone| missing(state, zone)).sum())
    }

    /// Inactive pages that the machine misses below the sum of the high marks and the target.
    pub(super) fn global_shortage(&self, vm: &Vm, host: &dyn Host) -> u64 {
        let (levels, target) = (levels(vm, host), self.inactive_target(vm, host));
        let usable = |state: &mut State| -> u64 {
            (0..levels.len()).map(|zone| self.usable(state, &levels, zone)).sum()
        };
        let high: u64 = levels.iter().map(|level| level.high).sum();
        (high + target).saturating_sub(vm.with(usable))
    }

    /// Pages that should be inactive, beside the marks (docs/theory/vm.md 5.5).
    pub fn inactive_target(&self, vm: &Vm, host: &dyn Host) -> u64 {
        let quarter = vm.with(|state| managed(state)) / 4;
        match self.choices.target {
            Target::No | Target::TwiceActive | Target::Balance => 0,
            Target::Quarter => quarter,
            Target::Pressure => (self.pressure(vm, host) / AVERAGED).min(quarter),
        }
    }

    /// Memory pressure: allocations and stolen clean pages less frees, averaged over about a minute
    /// (docs/theory/vm.md 5.5).
    ///
    /// The kernel counts at each event, and loses a 64th a second; here the counters of events since the last
    /// look are added. A second's loss is taken when it is over.
    pub fn pressure(&self, vm: &Vm, host: &dyn Host) -> u64 {
        let seen =
            vm.with(|state| [Counter::PgAlloc, Counter::PgFree].map(|event| state.counters.get(event)));
        let last = self.data.seen.replace(seen);
        let mut pressure = self.data.pressure.get() + (seen[0] - last[0]) + self.data.stolen.take();
        pressure = pressure.saturating_sub(seen[1] - last[1]).max(pressure.min(NR_CPUS));
        let now = host.now() / SECOND;
        let seconds = now - self.data.second.replace(now);
        for _ in 0..seconds.min(AVERAGED * 32) {
            pressure -= pressure / AVERAGED;
        }
        self.data.pressure.set(pressure);
        pressure
    }

    /// With two lists: how many active pages a pass looks at for `wanted` pages (docs/theory/vm.md 5.5).
    pub(super) fn refill_of(&self, state: &State, wanted: u32) -> u32 {
        let (active, inactive) = (state.lists.len(ACTIVE), state.lists.len(INACTIVE));
        match self.choices.target {
            Target::TwiceActive if inactive < 2 * active => wanted,
            Target::Balance => {
                let scaled = u64::from(wanted) * u64::from(active) / (2 * (u64::from(inactive) + 1));
                scaled as u32
            }
            Target::No | Target::TwiceActive | Target::Pressure | Target::Quarter => 0,
        }
    }

    /// Pages of files in the lists, tmpfs not counted; and pages of block devices among them.
    pub(super) fn cache_pages(&self) -> (u64, u64) {
        let sizes = self.data.sizes.get();
        (sizes.active_file + sizes.inactive_file, self.data.devices.get())
    }
}

/// Whether so many free and clean pages are plenty: more than twice the high mark (docs/theory/vm.md 5.5).
fn has_free_plenty(ready: u64, high: u64) -> bool {
    ready > 2 * high
}

/// Pages of the machine.
pub(super) fn managed(state: &State) -> u64 {
    state.zones.iter().map(|zone| zone.managed).sum()
}

#[cfg(test)]
mod tests {
    use super::has_free_plenty;

    #[test]
    fn more_than_twice_the_high_mark_is_plenty() {
        for (ready, high, expected) in [(60, 30, false), (61, 30, true), (0, 0, false), (1, 0, true)] {
            assert_eq!(has_free_plenty(ready, high), expected, "{ready} of {high}");
        }
    }
}
