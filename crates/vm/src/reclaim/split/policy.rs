//! The choices of 2.6.29, each with a knob.

use super::Split;
use crate::knob::{Knob, Policy, Preset, knob};
use crate::pageout::FileWrites;
use crate::settings::Settings;
use crate::vm::Replacement;

/// How pages to scan are divided between anonymous pages and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// By the share of scanned pages that were in use, and swappiness (`get_scan_ratio`).
    Ratio,
    /// By size alone.
    Equal,
}

/// Where new pages of a kind start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// On the inactive list.
    Inactive,
    /// On the active list.
    Active,
}

/// When the active list of files is scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActiveFiles {
    /// Always by its share.
    Always,
    /// If the inactive list is shorter (2.6.31).
    Low,
}

/// Which neighbours of a page come along when a block is wanted: pages of its aligned block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lumpy {
    /// None.
    No,
    /// Those of the page's list; for a block above order 3, or below priority 10, active ones of its type
    /// too.
    Type,
    /// As [`Lumpy::Type`], but in the second case pages of both types.
    All,
}

/// The choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// Where a new anonymous page starts.
    pub start: Start,
    /// Where a new page of tmpfs starts.
    pub tmpfs_start: Start,
    /// How pages to scan are divided.
    pub balance: Balance,
    /// When the active list of files is scanned.
    pub active_files: ActiveFiles,
    /// For a block, neighbours by frame number go along.
    pub lumpy: Lumpy,
    /// kswapd goes on for the order that was asked for; if not, only for single pages.
    pub kswapd_order: bool,
    /// kswapd leaves a zone alone that has so many times its high mark free.
    pub enough: u32,
    /// A zone that was scanned six times over in vain is left alone (`all_unreclaimable`).
    pub gives_up: bool,
    /// The first visit gives a page of tmpfs its slot, and only the second writes it.
    pub tmpfs_two_visits: bool,
    /// Who writes dirty pages of files.
    pub file_writes: FileWrites,
    /// Reclaimers sleep while disks are busy.
    pub throttle: bool,
    /// Percent of swap in use above which a page that was read back gives its slot up.
    pub swap_full: u32,
    /// Slab caches are shrunk along with the lists.
    pub slabs: bool,
}

const V2_6_29: Choices = Choices {
    start: Start::Active,
    tmpfs_start: Start::Active,
    balance: Balance::Ratio,
    active_files: ActiveFiles::Always,
    lumpy: Lumpy::Type,
    kswapd_order: true,
    enough: 8,
    gives_up: true,
    tmpfs_two_visits: true,
    file_writes: FileWrites::Reclaim,
    throttle: true,
    swap_full: 50,
    slabs: true,
};

impl Policy for Choices {
    const PRESETS: &'static [Preset<Choices>] = &[Preset {
        release: "2.6.29",
        kernel: [2, 6, 29],
        what: "split lists, pressure by use, lumpy reclaim for blocks",
        settings: Settings::USUAL,
        policies: V2_6_29,
    }];

    const KNOBS: &'static [Knob<Choices>] = &[
        knob!(
            "start",
            "where a new anonymous page starts",
            start: Start["inactive" = Inactive, "active" = Active]
        ),
        knob!(
            "tmpfs_start",
            "where a new page of tmpfs starts",
            tmpfs_start: Start["inactive" = Inactive, "active" = Active]
        ),
        knob!(
            "balance",
            "how scanning is divided between anonymous pages and files",
            balance: Balance["ratio" = Ratio, "equal" = Equal]
        ),
        knob!(
            "active_files",
            "when the active list of files is scanned",
            active_files: ActiveFiles["always" = Always, "low" = Low]
        ),
        knob!(
            "lumpy",
            "for a block, neighbours by frame number are reclaimed too: of the page's type, or of both",
            lumpy: Lumpy["no" = No, "type" = Type, "all" = All]
        ),
        knob!("kswapd_order", "kswapd reclaims for the order that was asked for", kswapd_order: no or yes),
        knob!("enough", "kswapd leaves zones alone above this many high marks", enough: number 1 to 1000),
        knob!("gives_up", "a zone that was scanned six times in vain is left alone", gives_up: no or yes),
        knob!("tmpfs_two_visits", "tmpfs pages are written at the second visit", tmpfs_two_visits: no or yes),
        knob!(
            "file_writes",
            "who writes dirty pages of files",
            file_writes: FileWrites["reclaim" = Reclaim, "kswapd" = Kswapd, "flusher" = Flusher]
        ),
        knob!("throttle", "reclaimers sleep while disks are busy", throttle: no or yes),
        knob!("swap_full", "percent of swap in use above which slots are given up", swap_full: number 0 to 100),
        knob!("slabs", "slab caches are shrunk along with the lists", slabs: no or yes),
    ];

    fn build(self, name: String) -> Box<dyn Replacement> {
        Box::new(Split::new(self, name))
    }
}
