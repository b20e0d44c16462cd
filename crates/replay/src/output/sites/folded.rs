//! Folded stacks: a line for each path, for flamegraph.pl, speedscope and their like; and flame graphs.

use crate::sites::Recorded;
use slablab_report::html::chart::{Flame, Scale};
use slablab_report::visible;
use std::collections::BTreeMap;

/// What the width of a frame means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Bytes that live at the end.
    #[default]
    Live,
    /// Live bytes that nobody requested; of a program, free bytes in the pages of live blocks.
    Waste,
    /// Bytes that lived when most did; of a kernel, live bytes.
    Peak,
    /// Allocations.
    Allocs,
}

impl Weight {
    /// In words.
    pub(super) fn name(self) -> &'static str {
        match self {
            Weight::Live | Weight::Peak => "live bytes",
            Weight::Waste => "live bytes that nobody requested",
            Weight::Allocs => "allocations",
        }
    }

    /// In words, of a program.
    pub(super) fn of_program(self) -> &'static str {
        match self {
            Weight::Live => "live bytes at the end",
            Weight::Waste => "free bytes in pages of live blocks",
            Weight::Peak => "live bytes at the peak",
            Weight::Allocs => "allocations",
        }
    }

    fn scale(self) -> Scale {
        match self {
            Weight::Live | Weight::Waste | Weight::Peak => Scale::Bytes,
            Weight::Allocs => Scale::Whole,
        }
    }
}

/// Paths from the cache to the call site, with the callers between them if the recording has call chains.
fn paths(sites: &Recorded, weight: Weight) -> Vec<(Vec<String>, u64)> {
    let mut all: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    let mut add = |cache: &str, frames: &[String], value: u64| {
        let (site, callers) = frames.split_last().expect("a path ends in its call site");
        let callers = callers.iter().map(|frame| function(frame));
        let path = std::iter::once(cache.to_string()).chain(callers).chain([site.clone()]).collect();
        *all.entry(path).or_default() += value;
    };
    // What has no chain hangs from its cache alone.
    let mut chained: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for stack in &sites.stacks {
        let value = match weight {
            Weight::Live | Weight::Peak => stack.live_bytes,
            Weight::Waste => stack.waste_bytes,
            Weight::Allocs => stack.allocs,
        };
        add(&stack.cache, &stack.frames, value);
        if let Some(site) = stack.frames.last() {
            *chained.entry((&stack.cache, site)).or_default() += value;
        }
    }
    for site in &sites.sites {
        let value = match weight {
            Weight::Live | Weight::Peak => site.live_bytes,
            Weight::Waste => site.waste_bytes,
            Weight::Allocs => site.allocs,
        };
        let chained = chained.entry((&site.cache, &site.name)).or_default();
        let (with, without) = ((*chained).min(value), value.saturating_sub(*chained));
        *chained -= with;
        add(&site.cache, std::slice::from_ref(&site.name), without);
    }
    all.into_iter().filter(|(_, value)| *value > 0).collect()
}

/// A caller without the offset of its call: a function is one frame, from wherever in it the call was.
fn function(frame: &str) -> String {
    match (frame.starts_with(['0', '[']), frame.split_once("+0x")) {
        (false, Some((name, rest))) => {
            let module = rest.split_once(' ').map_or(String::new(), |(_, module)| format!(" {module}"));
            format!("{name}{module}")
        }
        _ => frame.into(),
    }
}

/// The flame graph of a recording.
pub(super) fn flame(sites: &Recorded, weight: Weight) -> Flame {
    flame_of(paths(sites, weight), weight, weight.name())
}

/// The flame graph of paths, each with its value.
pub(super) fn flame_of(paths: Vec<(Vec<String>, u64)>, weight: Weight, name: &'static str) -> Flame {
    let paths = paths.iter().map(|(path, value)| (path.iter().map(String::as_str), *value as f64));
    Flame::new(name, weight.scale(), paths)
}

/// A line for each path: frames joined by `;`, a blank, the value.
pub(super) fn folded(sites: &Recorded, weight: Weight) -> String {
    lines_of(paths(sites, weight))
}

/// The lines of paths, each with its value.
pub(super) fn lines_of(paths: Vec<(Vec<String>, u64)>) -> String {
    let line = |(path, value): (Vec<String>, u64)| {
        let frames: Vec<String> =
            path.iter().map(|frame| visible::name(&frame.replace([';', '\n'], "_")).into_owned()).collect();
        format!("{} {value}\n", frames.join(";"))
    };
    paths.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::function;

    #[test]
    fn callers_are_functions() {
        for (frame, expected) in [
            ("do_syscall_64+0x71", "do_syscall_64"),
            ("ext4_new+0x1/0x2 [ext4]", "ext4_new [ext4]"),
            ("vfs_open", "vfs_open"),
            ("0xffffffff81000130", "0xffffffff81000130"),
            ("[ext4]+0x18", "[ext4]+0x18"),
        ] {
            assert_eq!(function(frame), expected);
        }
    }
}
