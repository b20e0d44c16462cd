//! The kernels, each as the one before it and what changed.

use super::V24;
use super::policy::*;
use crate::knob::{Knob, Policy, Preset};
use crate::settings::Settings;
use crate::vm::Replacement;

/// 2.4.8.
pub const V2_4_8: Choices = Choices {
    lists: Lists::Three,
    age: Age::Exponential,
    age_start: 2,
    age_advance: 3,
    age_decline: 1,
    age_max: 64,
    start: Start::Inactive,
    touch: Touch::Age,
    fault_activates: false,
    write: Write::AsRead,
    drop_behind: DropBehind::No,
    anon: Anon::AtSlot,
    victims: Victims::Idle,
    zone_test: ZoneTest::First,
    plenty: Plenty::Third,
    walk: Walk::Quarter,
    own_first: true,
    walk_want: 128,
    walk_counts: false,
    target: Target::Pressure,
    launder: Launder::TwoLoops,
    launder_ages: false,
    write_above: 25,
    write_below: 10,
    activate_mapped: true,
    rotate: Rotate::All,
    deactivate_mapped: false,
    refill_references: false,
    limits: Limits::No,
    balance: Balance::LaunderFirst,
    kswapd: Kswapd::Shortage,
    background: Background::Sixteenth,
    vfs: Vfs::SixtyFourth,
    slots: Slots::UntilFull,
    waits: Waits::Users,
    free_pass: false,
    limit_writes: true,
    hands_over: false,
};

/// 2.4.9.
pub const V2_4_9: Choices = Choices {
    touch: Touch::Second,
    launder: Launder::OnePass,
    balance: Balance::RefillFirst,
    kswapd: Kswapd::Always,
    background: Background::No,
    waits: Waits::Always,
    ..V2_4_8
};

/// 2.4.9-ac14: 2.4.8 with tunable ages, drop-behind, and inactive pages that a lookup activates.
pub const AC14: Choices = Choices {
    touch: Touch::Lookup,
    write: Write::Drop,
    drop_behind: DropBehind::Window,
    launder_ages: true,
    rotate: Rotate::Dirty,
    limits: Limits::Buffers,
    balance: Balance::Gated,
    background: Background::SixtyFourth,
    vfs: Vfs::All,
    ..V2_4_8
};

/// 2.4.9-ac14 with Rik van Riel's "page aging fixed" of 23 September 2001.
pub const AC14_AGING: Choices = Choices {
    age: Age::Linear,
    age_start: 5,
    touch: Touch::Explicit,
    write: Write::AsRead,
    drop_behind: DropBehind::UntilInactive,
    victims: Victims::Old,
    zone_test: ZoneTest::AfterAge,
    walk: Walk::Half,
    target: Target::Quarter,
    deactivate_mapped: true,
    limits: Limits::Cache,
    kswapd: Kswapd::FreeShortage,
    limit_writes: false,
    ..AC14
};

/// 2.4.9-ac14 with Rik van Riel's launder patch for ac12.
pub const AC14_LAUNDER: Choices = Choices { launder: Launder::Hysteresis, ..AC14 };

/// 2.4.9-ac15 with "page aging + launder" of 24 September 2001.
pub const AC15_AGING_LAUNDER: Choices =
    Choices { launder: Launder::Hysteresis, balance: Balance::FreeShortage, ..AC14_AGING };

/// 2.4.10-pre10: the last one before the new VM, taken for 2.4.9 (assumed).
pub const PRE10: Choices = V2_4_9;

/// 2.4.10: Andrea Arcangeli's VM.
pub const V2_4_10: Choices = Choices {
    lists: Lists::Two,
    age: Age::None,
    touch: Touch::Referenced,
    write: Write::References,
    zone_test: ZoneTest::No,
    walk: Walk::Class,
    own_first: false,
    walk_counts: true,
    target: Target::TwiceActive,
    launder: Launder::Cache,
    activate_mapped: false,
    balance: Balance::Priority,
    kswapd: Kswapd::Zones,
    vfs: Vfs::Priority,
    slots: Slots::Exclusive,
    waits: Waits::Mask,
    free_pass: true,
    deactivate_mapped: true,
    hands_over: true,
    ..V2_4_9
};

/// 2.4.10-pre11: the same VM at its first appearance.
pub const PRE11: Choices = Choices {
    zone_test: ZoneTest::Class,
    walk: Walk::Raced,
    walk_want: 32,
    walk_counts: false,
    target: Target::No,
    launder: Launder::BothLists,
    activate_mapped: true,
    kswapd: Kswapd::ZonesAwake,
    ..V2_4_10
};

/// 2.4.10 with Andrea Arcangeli's vm-tweaks-1 and -2 of 26 September 2001.
pub const TWEAKS: Choices = Choices {
    fault_activates: true,
    victims: Victims::Inactive,
    target: Target::Balance,
    activate_mapped: true,
    refill_references: true,
    ..V2_4_10
};

/// What was set: a read from swap brings 16 pages, as with 32 MB and more.
const SETTINGS: Settings = Settings { page_cluster: 4, ..Settings::USUAL };

const fn column(
    release: &'static str,
    kernel: [u32; 3],
    what: &'static str,
    policies: Choices,
) -> Preset<Choices> {
    Preset { release, kernel, what, settings: SETTINGS, policies }
}

impl Policy for Choices {
    const PRESETS: &'static [Preset<Choices>] = &[
        column("2.4.8", [2, 4, 8], "walk over page tables, page ages, three lists", V2_4_8),
        column("2.4.9", [2, 4, 9], "2.4.8 with another use-once and launder", V2_4_9),
        column("2.4.9-ac14", [2, 4, 9], "Alan Cox's tree: drop-behind, all dentries at once", AC14),
        column("2.4.9-ac14+aging", [2, 4, 9], "linear ages, also of anonymous pages", AC14_AGING),
        column("2.4.9-ac14+launder", [2, 4, 9], "writes in bursts", AC14_LAUNDER),
        column("2.4.9-ac15+aging+launder", [2, 4, 9], "both", AC15_AGING_LAUNDER),
        column("2.4.10-pre10", [2, 4, 9], "taken for 2.4.9", PRE10),
        column("2.4.10-pre11", [2, 4, 10], "2.4.10 at its first appearance", PRE11),
        column(
            "2.4.10",
            [2, 4, 10],
            "two lists without ages, and no more pages than one request wants",
            V2_4_10,
        ),
        column("2.4.10+tweaks", [2, 4, 10], "the walk spares pages in use", TWEAKS),
    ];
    const KNOBS: &'static [Knob<Choices>] = KNOBS;

    fn build(self, name: String) -> Box<dyn Replacement> {
        Box::new(V24::new(self, name))
    }
}
