//! Several values of several knobs: every combination is a change.

use super::capacity::SheafCapacity;
use super::change::Change;
use super::config::Config;
use super::layout::Debug;
use super::policy::Policy;
use slablab_report::error::{Error, Result};
use slablab_slabs::Preset;

/// Values for each knob; an empty list leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// Engines or releases.
    pub engines: Vec<Preset>,
    /// Order rules, or CPUs that they count.
    pub policies: Vec<Policy>,
    /// `slub_max_order`.
    pub max_orders: Vec<u8>,
    /// `slub_min_order`.
    pub min_orders: Vec<u8>,
    /// `slub_min_objects`.
    pub min_objects: Vec<u32>,
    /// Bytes in a page.
    pub page_sizes: Vec<u64>,
    /// CPUs.
    pub cpus: Vec<u32>,
    /// Whether caches share slabs.
    pub merge: Vec<bool>,
    /// Debugging of all caches.
    pub debug: Vec<Debug>,
    /// Objects in a sheaf.
    pub sheaf_capacities: Vec<SheafCapacity>,
    /// The kernel's configuration.
    pub configs: Vec<Config>,
}

/// Combinations at most: a table of more is not readable.
const MOST: usize = 1024;

impl Grid {
    /// Every combination; the knob given last here varies fastest.
    ///
    /// # Errors
    /// More combinations than can be read.
    pub fn changes(&self) -> Result<Vec<Change>> {
        let mut changes = vec![Change::default()];
        vary(&mut changes, &self.engines, |change, engine| change.engine = Some(engine))?;
        vary(&mut changes, &self.policies, |change, policy| change.policy = Some(policy))?;
        vary(&mut changes, &self.merge, |change, on| change.merge = Some(on))?;
        vary(&mut changes, &self.debug, |change, debug| change.debug = Some(debug))?;
        vary(&mut changes, &self.sheaf_capacities, |change, capacity| {
            change.sheaf_capacity = Some(capacity);
        })?;
        vary(&mut changes, &self.configs, |change, config| change.config = Some(config))?;
        vary(&mut changes, &self.cpus, |change, cpus| change.cpus = Some(cpus))?;
        vary(&mut changes, &self.page_sizes, |change, bytes| change.page_size = Some(bytes))?;
        vary(&mut changes, &self.min_objects, |change, objects| change.min_objects = Some(objects))?;
        vary(&mut changes, &self.min_orders, |change, order| change.min_order = Some(order))?;
        vary(&mut changes, &self.max_orders, |change, order| change.max_order = Some(order))?;
        Ok(changes)
    }
}

fn vary<T: Copy>(changes: &mut Vec<Change>, values: &[T], set: fn(&mut Change, T)) -> Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    if changes.len() * values.len() > MOST {
        return Err(Error::new("whatif", format!("more than {MOST} combinations of the lists")));
    }
    let with = |change: &Change| {
        let change = *change;
        values.iter().map(move |value| {
            let mut changed = change;
            set(&mut changed, *value);
            changed
        })
    };
    *changes = changes.iter().flat_map(with).collect();
    Ok(())
}

/// A switch of the command line.
///
/// # Errors
/// Another word; the error says what is expected.
pub fn on_off(text: &str) -> std::result::Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".into()),
    }
}
