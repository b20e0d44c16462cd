//! The choices of 6.x's classic policy, and what the releases chose.

use super::Classic;
use crate::knob::{Knob, Policy, Preset, knob};
use crate::pageout::FileWrites;
use crate::settings::Settings;
use crate::vm::Replacement;

/// Where a new anonymous page starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// On the inactive list (since 5.9).
    Inactive,
    /// On the active list.
    Active,
}

/// What an eviction costs its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Refaults of the working set and pages written.
    Io,
    /// These, 32 times, and pages scanned in vain once (since 6.2; from memory).
    IoAndRotations,
}

/// How pages to scan are divided between anonymous pages and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// By cost and swappiness.
    Cost,
    /// By size alone.
    Equal,
}

/// When sums over memory groups are brought up to date: the sizes of lists and the refaults by which a pass
/// and a refault judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// Before each pass.
    EachPass,
    /// Every two seconds (since 6.12; from memory).
    Periodic,
}

/// The choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// Where a new anonymous page starts.
    pub start: Start,
    /// The refault distance activates pages.
    pub workingset: bool,
    /// What an eviction costs its type.
    pub cost: Cost,
    /// When sums over memory groups are brought up to date.
    pub sums: Sums,
    /// How pages to scan are divided.
    pub balance: Balance,
    /// Few files: only anonymous pages are scanned (`file_is_tiny`).
    pub tiny: bool,
    /// Many cold files: only these are scanned (`cache_trim_mode`).
    pub trim: bool,
    /// kswapd scans without `trim` once it has failed with it (since 6.10; from memory).
    pub trim_ends: bool,
    /// Active pages for one inactive page; `None`: by the size of the lists.
    pub inactive_ratio: Option<u32>,
    /// Program text stays on the active list while it is used.
    pub keep_text: bool,
    /// Who writes dirty pages of files.
    pub file_writes: FileWrites,
    /// Raised watermarks make kswapd reclaim, without writes.
    pub boost: bool,
    /// Reclaimers sleep for the reasons of `reclaim_throttle`.
    pub throttle: bool,
    /// kswapd goes on for the order that was asked for; if not, only for single pages.
    pub kswapd_order: bool,
    /// Slab caches are shrunk along with the lists.
    pub slabs: bool,
}

const V6_1: Choices = Choices {
    start: Start::Inactive,
    workingset: true,
    cost: Cost::Io,
    sums: Sums::EachPass,
    balance: Balance::Cost,
    tiny: true,
    trim: true,
    trim_ends: false,
    inactive_ratio: None,
    keep_text: true,
    file_writes: FileWrites::Kswapd,
    boost: true,
    throttle: true,
    kswapd_order: true,
    slabs: true,
};

const V6_12: Choices = Choices {
    cost: Cost::IoAndRotations,
    sums: Sums::Periodic,
    trim_ends: true,
    file_writes: FileWrites::Flusher,
    ..V6_1
};

const V6_18: Choices = V6_12;

impl Policy for Choices {
    const PRESETS: &'static [Preset<Choices>] = &[
        Preset {
            release: "6.1",
            kernel: [6, 1, 0],
            what: "active and inactive lists, refault distance, pressure by cost",
            settings: Settings::USUAL,
            policies: V6_1,
        },
        Preset {
            release: "6.12",
            kernel: [6, 12, 0],
            what: "6.1, and pages scanned in vain cost; reclaim judges by sums up to 2 s old, writes no files",
            settings: Settings::USUAL,
            policies: V6_12,
        },
        Preset {
            release: "6.18",
            kernel: [6, 18, 0],
            what: "as 6.12",
            settings: Settings::USUAL,
            policies: V6_18,
        },
        Preset {
            release: "7.2",
            kernel: [7, 2, 0],
            what: "as 6.12",
            settings: Settings::USUAL,
            policies: V6_18,
        },
    ];

    const KNOBS: &'static [Knob<Choices>] = &[
        knob!(
            "start",
            "where a new anonymous page starts",
            start: Start["inactive" = Inactive, "active" = Active]
        ),
        knob!("workingset", "a page that comes back early enough is active at once", workingset: no or yes),
        knob!(
            "cost",
            "what raises a type's cost: refaults and writes, or pages scanned in vain too",
            cost: Cost["io" = Io, "rotations" = IoAndRotations]
        ),
        knob!(
            "sums",
            "when the sizes and refaults by which a pass judges lists are brought up to date",
            sums: Sums["pass" = EachPass, "periodic" = Periodic]
        ),
        knob!(
            "balance",
            "how scanning is divided between anonymous pages and files",
            balance: Balance["cost" = Cost, "equal" = Equal]
        ),
        knob!("tiny", "few files and little free: only anonymous pages are scanned", tiny: no or yes),
        knob!("trim", "many cold files: only these are scanned", trim: no or yes),
        knob!("trim_ends", "kswapd gives up `trim` once it failed with it", trim_ends: no or yes),
        knob!(
            "inactive_ratio",
            "active pages for one inactive page; auto: by the size of the lists",
            inactive_ratio: auto or 1 to 1000
        ),
        knob!("keep_text", "program text in use stays active", keep_text: no or yes),
        knob!(
            "file_writes",
            "who writes dirty pages of files",
            file_writes: FileWrites["reclaim" = Reclaim, "kswapd" = Kswapd, "flusher" = Flusher]
        ),
        knob!("boost", "raised watermarks make kswapd reclaim without writes", boost: no or yes),
        knob!("throttle", "reclaimers sleep when reclaim does not succeed", throttle: no or yes),
        knob!("kswapd_order", "kswapd reclaims for the order that was asked for", kswapd_order: no or yes),
        knob!("slabs", "slab caches are shrunk along with the lists", slabs: no or yes),
    ];

    fn build(self, name: String) -> Box<dyn Replacement> {
        Box::new(Classic::new(self, name))
    }
}
