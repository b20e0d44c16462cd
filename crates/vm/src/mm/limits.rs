//! How many pages of files may be dirty.

use super::{DirtyRule, Rules};
use crate::host::Mark;
use crate::settings::DirtyLimit;
use crate::vm::{Host, Vm};

/// Pages that may be dirty.
pub(super) struct Limits {
    /// A flusher writes until fewer are dirty.
    pub background: u64,
    /// Writers are held back so that no more are dirty.
    pub limit: u64,
    /// Pages of the machine that could be dirty.
    pub base: u64,
}

impl Limits {
    /// The limits now (docs/theory/vm.md 2.14).
    pub(super) fn of(vm: &Vm, host: &dyn Host, rules: &Rules) -> Limits {
        let zones = vm.with(|state| state.zones.len());
        let free: u64 = (0..zones).map(|zone| host.free_pages(zone)).sum();
        let reserve: u64 = (0..zones).map(|zone| host.mark(zone, Mark::High)).sum();
        let sizes = vm.with(|state| vm.policy.sizes(state));
        let inactive = sizes.inactive_anon + sizes.inactive_file;
        let active = sizes.active_anon + sizes.active_file;
        let (base, background, limit) = match rules.dirty {
            DirtyRule::Buffers if rules.dirty_active => (free + inactive + active, 30, 60),
            DirtyRule::Buffers => ((free + inactive).max(reserve), 30, 60),
            DirtyRule::Share => (free + inactive + active, 5, 10),
            DirtyRule::Pauses => {
                (free.saturating_sub(reserve) + sizes.inactive_file + sizes.active_file, 10, 20)
            }
        };
        let settings = vm.with(|state| state.settings);
        let limit = settings.dirty_limit.unwrap_or(DirtyLimit::Percent(limit));
        let background = settings.dirty_background.unwrap_or(DirtyLimit::Percent(background));
        let (background, limit) = (background.of(base), limit.of(base));
        Limits { background: below(background, limit), limit, base }
    }
}

/// A background limit that is not below the other one is half of it (`domain_dirty_limits`;
/// docs/theory/vm.md 2.14).
fn below(background: u64, limit: u64) -> u64 {
    if background >= limit { limit / 2 } else { background }
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn the_background_limit_is_below_the_limit() {
        for (background, limit, expected) in
            [(99, 100, 99), (100, 100, 50), (101, 100, 50), (0, 1, 0), (0, 0, 0)]
        {
            assert_eq!(below(background, limit), expected, "{background} and {limit}");
        }
    }
}
