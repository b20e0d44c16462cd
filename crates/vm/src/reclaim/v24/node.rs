//! A run of reclaim of the kernels with three lists, kswapd, and what it does each second.

use super::lru::ACTIVE;
use super::policy::{Background, Balance, Kswapd, Lists, Vfs, Walk};
use super::{Caller, V24};
use crate::replacement::Freed;
use crate::vm::{Host, Vm};

/// A pass is a part of a list or of a cache: one of so many, as a power of two (`DEF_PRIORITY`).
const PRIORITY: u32 = 6;
/// Passes of one run (`1 << DEF_PRIORITY`).
const TRIES: u32 = 1 << PRIORITY;
/// Passes that an allocation makes over the active list in 2.4.8.
const USER_TRIES: u32 = 6;
/// Runs in a row without success after which kswapd returns to its host. The kernel looks for a task to kill
/// and goes on; here the host wakes kswapd again at the next allocation or second. Assumed.
const SPINS: u32 = 16;

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Pages cleaned or freed.
    pub pages: u32,
    /// What the kernel returns.
    pub success: bool,
}

impl Ran {
    pub(super) fn freed(self) -> Freed {
        Freed { pages: self.pages, progress: self.success, page: None }
    }
}

impl V24 {
    /// `do_try_to_free_pages` (docs/theory/vm.md 5.7).
    pub fn try_to_free(&self, vm: &Vm, host: &dyn Host, caller: &Caller) -> Ran {
        match self.choices.balance {
            Balance::LaunderFirst => self.launder_first(vm, host, caller),
            Balance::RefillFirst => self.refill_first(vm, host, caller),
            Balance::Gated => self.gated(vm, host, caller),
            Balance::FreeShortage => {
                if self.free_shortage(vm, host) == 0 {
                    return Ran { pages: 0, success: true };
                }
                self.gated(vm, host, caller)
            }
            Balance::Priority => {
                let (pages, success) = self.free_class(vm, host, caller, &mut None);
                Ran { pages, success }
            }
        }
    }

    /// 2.4.8.
    fn launder_first(&self, vm: &Vm, host: &dyn Host, caller: &Caller) -> Ran {
        let mut pages = self.launder_short(vm, host, caller);
        if caller.fs {
            self.shrink_vfs(vm, host, PRIORITY);
        }
        let cluster = vm.with(|state| 1 << state.settings.page_cluster);
        let shortage = self.global_shortage(vm, host) as u32;
        let (mut wanted, mut tries) = refill_of_run(caller.kswapd, shortage, cluster);
        while wanted > 0 && tries > 0 && self.inactive_shortage(vm, host) > 0 {
            wanted -= self.walk_and_refill(vm, host, caller, wanted);
            tries -= 1;
        }
        let mut tries = TRIES;
        while tries > 0 && (self.zone_shortages(vm, host) > 0 || self.needs_walk(vm, host)) {
            self.walk_and_refill(vm, host, caller, u32::MAX);
            tries -= 1;
        }
        pages += host.reap_slabs() as u32;
        Ran { pages, success: pages > 0 }
    }

    /// 2.4.9.
    fn refill_first(&self, vm: &Vm, host: &dyn Host, caller: &Caller) -> Ran {
        let mut pages = 0;
        for _ in 0..TRIES {
            self.walk_and_refill(vm, host, caller, u32::MAX);
            if self.free_shortage(vm, host) > 0 {
                pages += self.launder_short(vm, host, caller);
            }
            if self.is_short(vm, host) {
                if caller.fs {
                    self.shrink_vfs(vm, host, PRIORITY);
                }
                pages += host.reap_slabs() as u32;
            }
            host.resched();
            if !self.is_short(vm, host) {
                return Ran { pages, success: true };
            }
        }
        Ran { pages, success: false }
    }

    /// -ac.
    fn gated(&self, vm: &Vm, host: &dyn Host, caller: &Caller) -> Ran {
        let mut pages = 0;
        if self.free_shortage(vm, host) > 0 {
            pages += self.launder_short(vm, host, caller);
            if caller.fs {
                self.shrink_vfs(vm, host, PRIORITY);
            }
        }
        let mut tries = TRIES;
        while tries > 0 && (self.inactive_shortage(vm, host) > 0 || self.needs_walk(vm, host)) {
            self.walk_and_refill(vm, host, caller, u32::MAX);
            tries -= 1;
        }
        pages += host.reap_slabs() as u32;
        Ran { pages, success: pages > 0 }
    }

    /// Two lists have inactive pages that are mapped, which laundering cannot take: enough inactive pages do
    /// not mean that no walk is due. As 2.4.10 does, a run walks while free pages are short. (A mix: the
    /// kernels whose runs these are have three lists.; docs/theory/vm.md 5.10).
    fn needs_walk(&self, vm: &Vm, host: &dyn Host) -> bool {
        self.choices.lists == Lists::Two && self.free_shortage(vm, host) > 0
    }

    /// A walk, and a look at a part of the active pages, until `wanted` of them are inactive. Returns how
    /// many are.
    fn walk_and_refill(&self, vm: &Vm, host: &dyn Host, caller: &Caller, wanted: u32) -> u32 {
        self.walk_once(vm, host, caller, PRIORITY);
        self.refill(vm, host, self.part(vm, PRIORITY), wanted)
    }

    /// Cleans as many pages as are short.
    fn launder_short(&self, vm: &Vm, host: &dyn Host, caller: &Caller) -> u32 {
        let missing = self.free_shortage(vm, host) as u32;
        self.launder(vm, host, caller, missing)
    }

    /// One walk, of the kind that is chosen. Returns whether it found enough pages.
    pub fn walk_once(&self, vm: &Vm, host: &dyn Host, caller: &Caller, priority: u32) -> bool {
        match self.choices.walk {
            Walk::Quarter | Walk::Half => self.walk(vm, host, caller) > 0,
            Walk::Class | Walk::Raced => self.walk_class(vm, host, caller, priority),
        }
    }

    /// Looks at a part of the active pages, if inactive ones are short.
    pub(super) fn refill_on_shortage(&self, vm: &Vm, host: &dyn Host, priority: u32) {
        if self.inactive_shortage(vm, host) > 0 {
            self.refill(vm, host, self.part(vm, priority), u32::MAX);
        }
    }

    /// Active pages of one pass.
    fn part(&self, vm: &Vm, priority: u32) -> u32 {
        vm.with(|state| state.lists.len(ACTIVE)) >> priority
    }

    fn is_short(&self, vm: &Vm, host: &dyn Host) -> bool {
        self.free_shortage(vm, host) > 0 || self.inactive_shortage(vm, host) > 0
    }

    /// Shrinks dentries, inodes and what else can shrink. A count of 0 frees everything: the kernel counts
    /// down before it compares with 0 (docs/theory/vm.md 5.7).
    pub fn shrink_vfs(&self, vm: &Vm, host: &dyn Host, priority: u32) {
        for shrinker in 0..host.shrinkers().len() {
            let unused = host.shrinkable(shrinker);
            let part = match self.choices.vfs {
                Vfs::SixtyFourth => unused >> PRIORITY,
                Vfs::All => unused,
                Vfs::Priority => unused / u64::from(priority),
            };
            if unused > 0 {
                host.shrink(vm, shrinker, if part == 0 { unused } else { part });
            }
        }
    }

    /// kswapd was woken (docs/theory/vm.md 5.7).
    pub(super) fn balance(&self, vm: &Vm, host: &dyn Host) {
        let caller = Caller::kswapd(0, u8::MAX);
        for _ in 0..SPINS {
            self.pressure(vm, host);
            let is_wanted = match self.choices.kswapd {
                Kswapd::Always => true,
                Kswapd::FreeShortage => self.free_shortage(vm, host) > 0,
                Kswapd::Shortage | Kswapd::Zones | Kswapd::ZonesAwake => self.is_short(vm, host),
            };
            let ran = if is_wanted { self.try_to_free(vm, host, &caller) } else { Ran::default() };
            let can_sleep = match self.choices.kswapd {
                Kswapd::Always => ran.success,
                _ => self.free_shortage(vm, host) == 0 || self.inactive_shortage(vm, host) == 0,
            };
            if can_sleep {
                return;
            }
            host.resched();
        }
    }

    /// A second went by: pressure falls, active pages age, kswapd wakes.
    pub(super) fn each_second(&self, vm: &Vm, host: &dyn Host) {
        self.pressure(vm, host);
        let active = vm.with(|state| state.lists.len(ACTIVE));
        let scan = match self.choices.background {
            Background::No => 0,
            Background::Sixteenth => active >> 4,
            Background::SixtyFourth => active >> PRIORITY,
        };
        if scan > 0 {
            self.refill(vm, host, scan, u32::MAX);
        }
        if !matches!(self.choices.kswapd, Kswapd::Zones | Kswapd::ZonesAwake) {
            self.balance(vm, host);
        }
    }
}

/// Pages that a run of 2.4.8 deactivates for a shortage of inactive pages, and the passes for that: an
/// allocation at most a cluster in six (docs/theory/vm.md 5.7).
fn refill_of_run(kswapd: bool, shortage: u32, cluster: u32) -> (u32, u32) {
    if kswapd { (shortage, TRIES) } else { (shortage.min(cluster), USER_TRIES) }
}

#[cfg(test)]
mod tests {
    use super::refill_of_run;

    #[test]
    fn an_allocation_deactivates_a_cluster() {
        for (kswapd, shortage, expected) in
            [(true, 100, (100, 64)), (true, 3, (3, 64)), (false, 100, (16, 6)), (false, 3, (3, 6))]
        {
            assert_eq!(refill_of_run(kswapd, shortage, 16), expected, "kswapd {kswapd}, {shortage}");
        }
    }
}
