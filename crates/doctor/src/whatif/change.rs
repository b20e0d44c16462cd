//! What is asked: the knobs that are not as today.

use super::capacity::SheafCapacity;
use super::config::Config;
use super::layout::Debug;
use super::policy::Policy;
use slablab_slabs::Preset;
use std::fmt;

/// What is different; `None` is as today.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Another engine or release.
    pub engine: Option<Preset>,
    /// Another order rule, or other CPUs for it.
    pub policy: Option<Policy>,
    /// `slub_max_order`.
    pub max_order: Option<u8>,
    /// `slub_min_order`.
    pub min_order: Option<u8>,
    /// `slub_min_objects`.
    pub min_objects: Option<u32>,
    /// Bytes in a page.
    pub page_size: Option<u64>,
    /// CPUs.
    pub cpus: Option<u32>,
    /// Whether caches share slabs.
    pub merge: Option<bool>,
    /// Debugging of all caches.
    pub debug: Option<Debug>,
    /// Objects in a sheaf.
    pub sheaf_capacity: Option<SheafCapacity>,
    /// The kernel's configuration.
    pub config: Option<Config>,
}

impl fmt::Display for Change {
    /// The knobs that are not as today, as `max_order=0 page_size=4096`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |name: &str, value: Option<u64>| value.map(|value| format!("{name}={value}"));
        let words = [
            self.engine.map(|engine| format!("engine={engine}")),
            self.policy.map(|policy| format!("policy={}", policy.name())),
            number("max_order", self.max_order.map(u64::from)),
            number("min_order", self.min_order.map(u64::from)),
            number("min_objects", self.min_objects.map(u64::from)),
            self.page_size.map(|bytes| format!("page_size={}K", bytes >> 10)),
            number("cpus", self.cpus.map(u64::from)),
            self.merge.map(|on| format!("merge={}", if on { "on" } else { "off" })),
            self.debug.map(|debug| format!("debug={debug}")),
            self.sheaf_capacity.map(|capacity| format!("sheaf_capacity={capacity}")),
            self.config.map(|config| config.to_string()),
        ];
        let said: Vec<String> = words.into_iter().flatten().collect();
        f.write_str(if said.is_empty() { "as today" } else { "" })?;
        f.write_str(&said.join(" "))
    }
}
