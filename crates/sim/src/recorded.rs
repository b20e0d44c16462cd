//! A recording as the tasks of a closed program: data, which a reader of recordings makes.

use crate::heap::Named;
use std::sync::Arc;

/// A recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Its tasks.
    pub script: Arc<Script>,
    /// Nanoseconds from its first event to its last.
    pub elapsed_ns: u64,
    /// Frees of the script, and those on another CPU than that of the allocation.
    pub frees: u64,
    /// Frees on another CPU than that of the allocation.
    pub elsewhere: u64,
    /// Frees that are left out: of objects from before the recording, or of unknown size.
    pub left_out: u64,
}

/// A recording's tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The recording's named caches.
    pub caches: Vec<Named>,
    /// The tasks.
    pub tasks: Vec<ScriptTask>,
    /// Objects that the steps allocate: their numbers are below this.
    pub objects: u32,
    /// Steps of all tasks.
    pub steps: u32,
}

/// A task of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptTask {
    /// Its name.
    pub name: String,
    /// What it does, in the recording's order.
    pub steps: Vec<Step>,
}

/// An allocation or a free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its place among the steps of all tasks.
    pub place: u32,
    /// The object's number.
    pub object: u32,
    /// Nanoseconds before it in which the recording has no event of its CPU or task.
    pub gap_ns: u32,
    /// The CPU that did it in the recording.
    pub cpu: u16,
    /// What it does.
    pub what: What,
}

/// What a step does with its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Allocates it from the named cache at this place.
    Alloc(u16),
    /// Allocates it with kmalloc, so many bytes.
    Kmalloc(u32),
    /// Frees it.
    Free,
}

impl Script {
    /// One above the largest number of a CPU.
    pub fn cpus(&self) -> u16 {
        let steps = self.tasks.iter().flat_map(|task| &task.steps);
        steps.map(|step| step.cpu + 1).max().unwrap_or(0)
    }
}
