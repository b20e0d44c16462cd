//! The policies of a tree: which tree, and the boot parameters that are set.

use super::attributes::Attributes;
use slablab_slabs::Release;
use slablab_slabs::knob::{Knob, Policy, Table, knob};
use slablab_slabs::release::ZoneReclaimMode;
use std::any::Any;
use std::path::PathBuf;

/// A tree whose allocator was built.
#[derive(Debug)]
pub struct Tree {
    /// The file of the image without reports of accesses.
    pub plain: PathBuf,
    /// The file of the image that reports them.
    pub instrumented: PathBuf,
    /// The tree's release.
    pub release: Release,
    /// What is written to files of single caches.
    pub attributes: Attributes,
}

/// A tree, and its boot parameters.
#[derive(Clone, Copy, Debug)]
pub struct LinuxPolicy {
    /// `None` for the policies of no tree, which the grammar alone knows.
    pub(super) tree: Option<&'static Tree>,
    max_order: Option<u8>,
    min_order: Option<u8>,
    min_objects: Option<u16>,
}

impl PartialEq for LinuxPolicy {
    fn eq(&self, other: &LinuxPolicy) -> bool {
        let tree = |policy: &LinuxPolicy| policy.tree.map(std::ptr::from_ref);
        tree(self) == tree(other) && self.parameters() == other.parameters()
    }
}

impl LinuxPolicy {
    const NONE: LinuxPolicy = LinuxPolicy { tree: None, max_order: None, min_order: None, min_objects: None };

    /// What is set of the boot line, by the names of the kernel's parameters. Both names of a parameter: a
    /// tree has one of them.
    pub(super) fn parameters(&self) -> Vec<(&'static [&'static str], String)> {
        let mut set: Vec<(&'static [&'static str], String)> = Vec::new();
        let mut number = |names: &'static [&'static str], value: Option<u64>| {
            set.extend(value.map(|value| (names, value.to_string())));
        };
        number(&["slab_max_order", "slub_max_order"], self.max_order.map(u64::from));
        number(&["slab_min_order", "slub_min_order"], self.min_order.map(u64::from));
        number(&["slab_min_objects", "slub_min_objects"], self.min_objects.map(u64::from));
        // Which caches are one is the recording's or the experiment's to say, which know their names.
        set.push((&["slab_nomerge"], String::new()));
        set
    }
}

impl Policy for LinuxPolicy {
    const NAME: &'static str = "linux";
    const PRESETS: &'static [LinuxPolicy] = &[LinuxPolicy::NONE];
    const KNOBS: &'static [Knob<LinuxPolicy>] = &[
        knob!("slab_max_order", "boot parameter slab_max_order, slub_max_order before 6.9", max_order: auto or 0 to 10),
        knob!("slab_min_order", "boot parameter slab_min_order, slub_min_order before 6.9", min_order: auto or 0 to 10),
        knob!(
            "slab_min_objects",
            "boot parameter slab_min_objects, slub_min_objects before 6.9",
            min_objects: auto or 0 to 4096
        ),
    ];

    fn release(&self) -> Release {
        self.tree.map_or(Release::new(0, 0, 0), |tree| tree.release)
    }

    fn zone_reclaim(&self) -> ZoneReclaimMode {
        ZoneReclaimMode::Boot
    }

    fn with_tables(self, tables: &'static [&'static Table]) -> LinuxPolicy {
        let tree = tables.iter().find_map(|table| (*table as &dyn Any).downcast_ref::<Tree>());
        LinuxPolicy { tree, ..self }
    }
}
