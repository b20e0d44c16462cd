//! The presets and their knobs: `vm@6.1,lru_gen`.

use super::Generations;
use super::policy::*;
use crate::knob::{Knob, Policy, Preset, knob};
use crate::settings::Settings;
use crate::vm::Replacement;

impl Policy for Rules {
    const WORD: &'static str = "lru_gen";

    const PRESETS: &'static [Preset<Rules>] = &[
        Preset {
            release: "6.1",
            kernel: [6, 1, 0],
            what: "generations; kswapd ages before each round",
            settings: Settings::USUAL,
            policies: Rules::V6_1,
        },
        Preset {
            release: "6.12",
            kernel: [6, 12, 0],
            what: "generations; eviction ages, kswapd estimates its priority, all refaults are counted",
            settings: Settings::USUAL,
            policies: Rules::V6_12,
        },
        Preset {
            release: "6.18",
            kernel: [6, 18, 0],
            what: "generations; four of them always, types move apart, a second look promotes",
            settings: Settings::USUAL,
            policies: Rules::V6_18,
        },
        Preset {
            release: "7.2",
            kernel: [7, 2, 0],
            what: "6.18, and passes count down a budget, dirty files are evicted as under the classic lists",
            settings: Settings::USUAL,
            policies: Rules::V7_2,
        },
    ];

    const KNOBS: &'static [Knob<Rules>] = &[
        knob!(
            "placement",
            "where a page enters that no fault brought",
            placement: Placement["oldest" = Oldest, "second" = SecondOldest, "workingset" = Workingset]
        ),
        knob!(
            "promotion",
            "the accessed bit moves a page to the youngest generation at once, or when it is found again",
            promotion: Promotion["once" = AtOnce, "twice" = SecondLook]
        ),
        knob!(
            "types",
            "the type to evict: the older one, then by refaults of the first tiers; or by those of all tiers",
            types: TypeRule["first" = FirstTier, "all" = AllTiers]
        ),
        knob!(
            "oldest",
            "the oldest generations of both types move together or apart",
            oldest: Oldest["coupled" = Coupled, "apart" = Apart]
        ),
        knob!(
            "aging",
            "a generation begins when pages are spread unevenly over three, or whenever there are not four",
            aging: Aging["spread" = Spread, "full" = Full]
        ),
        knob!(
            "ager",
            "kswapd ages before each of its rounds, or as eviction needs it",
            ager: Ager["round" = Round, "eviction" = Eviction]
        ),
        knob!(
            "stop",
            "eviction goes on to its share of pages, or stops when it has enough",
            stop: Stop["late" = Late, "enough" = Enough]
        ),
        knob!(
            "first_priority",
            "the priority that kswapd begins with",
            first_priority: FirstPriority["default" = Default, "estimated" = Estimated]
        ),
        knob!(
            "margin",
            "how much more than the first tier another may refault: half as much, or twice",
            margin: Margin["half" = Half, "double" = Double]
        ),
        knob!(
            "recent",
            "refaults that count: into the oldest generation, or within four of the youngest",
            recent: Recent["oldest" = Oldest, "window" = Window]
        ),
        knob!(
            "counted",
            "what workingset_refault counts: recent ones, or all; and workingset_activate",
            counted: Counted["recent" = Recent, "all" = All, "faults" = Faults]
        ),
        knob!(
            "flushers",
            "who wakes the flushers: nobody, a pass that met only dirty files, or a batch of dirty pages alone",
            flushers: Flushers["asleep" = Asleep, "woken" = Woken, "batch" = Batch]
        ),
        knob!(
            "budget",
            "a pass computes its pages before each batch, or once and counts each page that it looks at",
            budget: Budget["each" = Each, "once" = Once]
        ),
        knob!("look", "most pages that a batch looks at", look: number 64 to 4096),
        knob!(
            "after_aging",
            "a pass that began a generation ends, evicts a batch more, or goes on",
            after_aging: AfterAging["stops" = Stops, "batch" = Batch, "goes" = Goes]
        ),
        knob!(
            "dirty",
            "dirty files that the scan meets get into the next generation, or are isolated and made active",
            dirty: DirtyFiles["next" = Next, "isolated" = Isolated]
        ),
        knob!("congestion", "pages under writeback hold reclaimers up", congestion: no or yes),
        knob!("no_io_is_file", "without I/O, files are evicted first", no_io_is_file: no or yes),
        knob!("walks", "aging walks page tables (lru_gen/enabled, 0x2)", walks: no or yes),
        knob!("skips_tables", "the walk skips tables that are not accessed (0x4)", skips_tables: no or yes),
        knob!(
            "min_ttl_ms",
            "milliseconds in which a generation is the working set",
            min_ttl_ms: number 0 to 3600000
        ),
        knob!("boost", "raised watermarks make kswapd reclaim without writes", boost: no or yes),
        knob!("throttle", "reclaimers sleep when reclaim does not succeed", throttle: no or yes),
        knob!("kswapd_order", "kswapd reclaims for the order that was asked for", kswapd_order: no or yes),
        knob!("slabs", "slab caches are shrunk along with the lists", slabs: no or yes),
    ];

    fn build(self, name: String) -> Box<dyn Replacement> {
        Box::new(Generations::new(self, name))
    }
}
