//! `kbuild`: make of a kernel.

use super::kernel::{KERNEL, rows, sample, with_kernel};

const SUITE: &[Pair] =
    &[Pair { machine: "laptop", parameters: "objects = 16", why: "a build, in which nothing should differ" }];
use crate::experiment::workload::{
    Estimate, Kind, Metric, Object, Observed, Pair, Parameter, Values, Workload, ppm, ps,
};
use slablab_model::MachineSpec;
use slablab_platform::Event;
use slablab_sim::objects::Object as Kernel;
use slablab_sim::programs::kbuild::{self, Kbuild};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::{CacheTally, Failed, Outcome};
use slablab_slabs::Release;
use slablab_stats::table::Better;

/// The workload.
pub(super) const KBUILD: Workload = Workload {
    name: "kbuild",
    about: "make of a kernel: for each object six programs, 450 lookups of paths, and their files",
    parameters: PARAMETERS,
    metrics: &METRICS,
    objects,
    ignores: |_| false,
    check,
    estimate,
    observe,
    suite: SUITE,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "objects",
        about: "objects that are compiled",
        source: "2.6.28, defconfig: 1,500 to 2,000 (from memory)",
        kind: Kind::Number { least: 1, most: 100_000, defaults: [16, 64, 1_750] },
    },
    Parameter {
        name: "jobs",
        about: "objects at a time: make -j",
        source: "no mail says it",
        kind: Kind::Number { least: 1, most: 10_000, defaults: [8; 3] },
    },
    Parameter {
        name: "lookups",
        about: "paths that are looked up for an object, opens included",
        source: "300 to 600 (from memory of builds of 2.6.2x): the middle",
        kind: Kind::Number { least: 90, most: 10_000, defaults: [450; 3] },
    },
    Parameter {
        name: "opens",
        about: "opens of an object, those in vain included",
        source: "250 to 400 (from memory of builds of 2.6.2x): the middle",
        kind: Kind::Number { least: Kbuild::LEAST.0 as u64, most: 10_000, defaults: [325; 3] },
    },
    Parameter {
        name: "heap_mib",
        about: "heap of the compiler in MiB",
        source: "15 to 40 (from memory of builds of 2.6.2x): the middle",
        kind: Kind::Number { least: 1, most: 1_000, defaults: [27; 3] },
    },
    Parameter {
        name: "user_us",
        about: "CPU time of an object's programs in themselves",
        source: "Zhang Yanmin, 5 February 2009: 91 s a build; over 1,450 objects (assumed)",
        kind: Kind::Number { least: 0, most: 10_000_000, defaults: [63_000; 3] },
    },
    Parameter {
        name: "flush_ms",
        about: "time between two rounds of the flusher",
        source: "dirty_writeback_centisecs: 500; shorter in shorter runs, so that they have some",
        kind: Kind::Number { least: 1, most: 1_000_000, defaults: [50, 200, 5_000] },
    },
];

/// A number of a cache's objects for each 1,000 names.
const fn per_name(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about, better: None, unit: "1", per_unit: 1.0, decimals: 0 }
}

const METRICS: [Metric; 2 + 17 + KERNEL.len()] = with_kernel([
    Metric {
        name: "elapsed_ps",
        about: "time of the build",
        better: Some(Better::Lower),
        unit: "s",
        per_unit: 1e12,
        decimals: 4,
    },
    Metric {
        name: "cpu_ps",
        about: "CPU time of an object, of the kernel and of programs",
        better: Some(Better::Lower),
        unit: "ms",
        per_unit: 1e9,
        decimals: 3,
    },
    per_name("filp_names", "filp for each 1,000 names_cache"),
    per_name("vma_names", "vm_area_struct for each 1,000 names_cache"),
    per_name("buffer_names", "buffer_head for each 1,000 names_cache"),
    per_name("bio_names", "bio for each 1,000 names_cache"),
    per_name("handle_names", "journal_handle for each 1,000 names_cache"),
    Metric::percent("name_allocs_ppm", "fast allocations of names_cache", None),
    Metric::percent("name_frees_ppm", "fast frees of names_cache", None),
    Metric::percent("filp_allocs_ppm", "fast allocations of filp", None),
    Metric::percent("filp_frees_ppm", "fast frees of filp", None),
    Metric::percent("vma_allocs_ppm", "fast allocations of vm_area_struct", None),
    Metric::percent("vma_frees_ppm", "fast frees of vm_area_struct", None),
    Metric::percent("buffer_allocs_ppm", "fast allocations of buffer_head", None),
    Metric::percent("buffer_frees_ppm", "fast frees of buffer_head", None),
    Metric::percent("bio_allocs_ppm", "fast allocations of bio", None),
    Metric::percent("bio_frees_ppm", "fast frees of bio", None),
    Metric::percent("handle_allocs_ppm", "fast allocations of journal_handle", None),
    Metric::percent("handle_frees_ppm", "fast frees of journal_handle", None),
]);

/// The caches of the published table: the object; its metrics by [`METRICS`]' names.
const CACHES: [(Kernel, Option<&str>, &str, &str); 6] = [
    (Kernel::Name, None, "name_allocs_ppm", "name_frees_ppm"),
    (Kernel::File, Some("filp_names"), "filp_allocs_ppm", "filp_frees_ppm"),
    (Kernel::Vma, Some("vma_names"), "vma_allocs_ppm", "vma_frees_ppm"),
    (Kernel::BufferHead, Some("buffer_names"), "buffer_allocs_ppm", "buffer_frees_ppm"),
    (Kernel::Bio, Some("bio_names"), "bio_allocs_ppm", "bio_frees_ppm"),
    (Kernel::JournalHandle, Some("handle_names"), "handle_allocs_ppm", "handle_frees_ppm"),
];

fn objects(release: Release) -> Vec<Object> {
    let objects = [
        (Kernel::Name, "1 for each lookup of a path"),
        (Kernel::File, "1 for each open, in vain or not"),
        (Kernel::Vma, "about 250 for an object: 20 for each of 6 forks and of 6 execs"),
        (Kernel::BufferHead, "52 for an object: 205 KiB are written"),
        (
            Kernel::JournalHandle,
            "ext3: 1 for each page that is written; 1 for each file that is made or removed",
        ),
        (Kernel::Bio, "ext3: 1 for each page that the flusher writes; later 1 for each file"),
        (Kernel::Task, "6 for an object"),
        (Kernel::Mm, "12 for an object"),
    ];
    rows(release, &objects)
}

fn check(_machine: &MachineSpec, values: &Values) -> Result<(), String> {
    let (opens, lookups) = (values.number("opens"), values.number("lookups"));
    let least = opens + u64::from(Kbuild::LEAST.1);
    match lookups >= least {
        true => Ok(()),
        false => Err(format!("lookups = {lookups}: expected at least {least} for opens = {opens}")),
    }
}

fn estimate(machine: &MachineSpec, values: &Values) -> Estimate {
    /// A page of the heap, a lookup, a millisecond of computing, six programs (measured).
    const PAGE_NS: u64 = 1_300;
    const LOOKUP_NS: u64 = 4_000;
    const COMPUTED_NS: u64 = 10_000;
    const PROGRAMS_NS: u64 = 700_000;
    let pages = (values.number("heap_mib") << 20) >> machine.page_shift;
    let object = pages * PAGE_NS
        + values.number("lookups") * LOOKUP_NS
        + values.number("user_us") / 1_000 * COMPUTED_NS
        + PROGRAMS_NS;
    let memory = values.number("jobs").saturating_mul(values.number("heap_mib") << 20);
    let slabs = Estimate::of_operations(machine, 0, memory + (64 << 20));
    Estimate { host_ns: values.number("objects").saturating_mul(object), ..slabs }
}

/// A repeat draws headers, the lengths of pieces of work, and what the scheduler draws.
fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let number = |name: &str| values.number(name) as u32;
    let load = Kbuild {
        objects: number("objects"),
        jobs: number("jobs"),
        lookups: number("lookups"),
        opens: number("opens"),
        heap_mib: number("heap_mib"),
        user: ps(values.number("user_us") * 1_000),
        flush_every: ps(values.number("flush_ms") * 1_000_000),
    };
    let outcome = kbuild::run_recorded(setup, &load, seed, recorder)?;
    let mut own = caches(&outcome);
    let busy: u64 = outcome.spent.iter().flatten().sum();
    own.extend([("elapsed_ps", outcome.elapsed), ("cpu_ps", busy / outcome.messages.max(1))]);
    Ok(Observed { sample: sample(&METRICS, &outcome, &own), profile: Some(outcome.profile) })
}

/// The published table's numbers. A cache that was not used has zeros.
fn caches(outcome: &Outcome) -> Vec<(&'static str, u64)> {
    let of = |object: Kernel| {
        let is_of = |cache: &&CacheTally| {
            slablab_sim::objects::ROWS.iter().any(|row| row.object == object && row.name == cache.name)
        };
        outcome.caches.iter().find(is_of)
    };
    let names = of(Kernel::Name).map_or(1, |cache| cache.allocs.max(1));
    let mut numbers = Vec::new();
    for (object, per_name, fast_allocs, fast_frees) in CACHES {
        let cache = of(object);
        let count = |event: Event| {
            let events = cache.map_or(&[][..], |cache| &cache.events[..]);
            events.iter().find(|(one, _)| *one == event).map_or(0, |(_, count)| *count)
        };
        let share = |fast, slow| ppm(count(fast), count(fast) + count(slow));
        numbers.extend(per_name.map(|name| (name, cache.map_or(0, |cache| cache.allocs * 1_000 / names))));
        numbers.push((fast_allocs, share(Event::AllocFastpath, Event::AllocSlowpath)));
        numbers.push((fast_frees, share(Event::FreeFastpath, Event::FreeSlowpath)));
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::workload::{Size, Value, Valued};

    #[test]
    fn lookups_hold_the_opens_and_those_of_the_programs() {
        #[track_caller]
        fn check(opens: u64, lookups: u64, expected: Result<(), &str>) {
            let mut values: std::collections::BTreeMap<_, _> =
                PARAMETERS.iter().map(|parameter| (parameter.name, parameter.default(Size::Quick))).collect();
            values.insert("opens", Value::Number(opens));
            values.insert("lookups", Value::Number(lookups));
            let found = super::check(&MachineSpec::uniform(1, 1, 1 << 30), &Values(values));
            assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|text| *text));
        }
        check(325, 450, Ok(()));
        check(35, 84, Ok(()));
        check(325, 373, Err("lookups = 373: expected at least 374 for opens = 325"));
    }
}
