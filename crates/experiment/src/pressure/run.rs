//! A script under one policy, once for each seed.

use super::guests::{CPU_SPEED, DISK_SPEED, Facts, Stream};
use super::looked::Looked;
use super::records;
use super::scenario::Settings;
use slablab_engines as engines;
use slablab_machines::Machine;
use slablab_model::NodeSpec;
use slablab_model::disk::DiskKind;
use slablab_readers::vmrecord::Record;
use slablab_report::error::{At, Error, Result};
use slablab_report::nearest::nearest;
use slablab_sim::heap::Simulated;
use slablab_sim::memory::Killed;
use slablab_sim::programs::script as sim;
use slablab_sim::record::Recorder;
use slablab_sim::setup::{Boot, Setup};
pub use slablab_sim::tally::Failed;
use slablab_slabs::Preset;
use slablab_trace::script::{PAGE_BYTES, Script};
use slablab_vm::mm::{Rules, SwapReadAhead};
use slablab_vm::preset::Preset as VmPreset;
use std::path::Path;
use std::sync::Arc;

/// Page replacement, machine and seed of a run that names none.
pub const VM_USUALLY: &str = "vm@6.1";
/// As [`VM_USUALLY`].
pub const MACHINE_USUALLY: &str = "vm-guest";
/// As [`VM_USUALLY`].
pub const SEED_USUALLY: u64 = 1;

/// A whole run in what progress counts.
pub const RUN: u64 = 1_000;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The memory's policy.
    pub vm: VmPreset,
    /// The slab engine.
    pub engine: Preset,
    /// The machine: CPUs and costs.
    pub machine: Machine,
    /// Memory and settings.
    pub facts: Facts,
    /// How the scenario's machine was set up beside the defaults.
    pub settings: Settings,
}

/// A run that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// Each process's name, empty for the main one, and its record.
    pub records: Vec<(String, Record)>,
    /// Processes that were killed because no page was free.
    pub killed: Vec<Killed>,
    /// Accesses of pages.
    pub accesses: u64,
    /// Its memory over time.
    pub looked: Looked,
}

/// Facts of the machine that can be changed.
const FACTS: [&str; 3] = ["free", "managed", "min_free_kib"];

/// Whether scripts can run on a machine: pages of 4 KiB, and both disks.
fn check_machine(machine: &Machine) -> std::result::Result<(), String> {
    let (bytes, page) = (1_u64 << machine.spec.page_shift, PAGE_BYTES);
    if bytes != page {
        return Err(format!("its pages have {bytes} bytes: expected {page}, those of scripts"));
    }
    match ["swap", "data"].into_iter().find(|name| machine.disk(name).is_none()) {
        Some(name) => {
            Err(format!("it has no [disk.{name}]: expected [disk.swap] and [disk.data], as vm-guest"))
        }
        None => Ok(()),
    }
}

/// The series of a release, in which page allocator and slabs fit page replacement.
fn series(release: &str) -> &'static str {
    match release {
        release if release.starts_with("2.4") => "2.4",
        // SLQB's presets are named by their years.
        release if release.starts_with("2.") || release.starts_with("2009") => "2.6",
        _ => "3.0 or later",
    }
}

/// The slab allocator that is the usual one of a VM's kernel.
///
/// # Errors
/// `vm` is no preset.
pub fn usual_engine(vm: &str) -> Result<&'static str> {
    let vm = VmPreset::parse(vm).map_err(|error| Error::new("--vm", error))?;
    Ok(match series(vm.release) {
        "2.4" => "slab@2.4",
        "2.6" => "slub@2.6.29",
        _ => "slub@6.1",
    })
}

impl Options {
    /// Whether slab allocator and VM are of one era: the allocator's preset brings the page allocator.
    ///
    /// # Errors
    /// Both, and what is expected.
    pub fn check_era(&self) -> Result<()> {
        let engine = self.engine.to_string();
        let release = engine.split_once('@').map_or("", |(_, release)| release);
        let (ours, theirs) = (series(self.vm.release), series(release));
        if ours == theirs {
            return Ok(());
        }
        let usual = usual_engine(&self.vm.to_string())?;
        let text = format!("{engine} is of {theirs}, but {} of {ours}: expected perhaps {usual}", self.vm);
        Err(Error::new("--engine", text))
    }

    /// The choices by their names. `set`: `KNOB=VALUE` of the VM, or of the machine's facts.
    ///
    /// # Errors
    /// An unknown name with the nearest ones; a machine file that cannot be used.
    pub fn of(vm: &str, engine: &str, machine: &Path, set: &[String]) -> Result<Options> {
        let name_of = |set: &str| set.split('=').next().unwrap_or_default().to_string();
        let is_fact = |set: &&String| FACTS.contains(&name_of(set).as_str());
        let (facts, knobs): (Vec<&String>, Vec<&String>) = set.iter().partition(is_fact);
        let mut name = vm.to_string();
        let mut vm = VmPreset::parse(vm).map_err(|error| Error::new("--vm", error))?;
        for knob in knobs {
            name += &format!(",{knob}");
            vm = VmPreset::parse(&name).map_err(|error| {
                let facts = nearest(&name_of(knob), FACTS.into_iter(), 1);
                let facts = facts.iter().map(|fact| format!("; or {fact}, a fact of the machine"));
                Error::new("--set", format!("{error}{}", facts.collect::<String>()))
            })?;
        }
        let engine =
            engines::parse_with::<Simulated>(engine).map_err(|error| Error::new("--engine", error))?;
        let found = slablab_machines::find(machine)?.machine().at(machine)?;
        check_machine(&found).at(machine)?;
        let mut known = Facts::of(vm.kernel);
        facts.iter().try_for_each(|set| known.change(set))?;
        known.check()?;
        Ok(Options { vm, engine, machine: found, facts: known, settings: Settings::default() })
    }

    /// Runs a script once.
    ///
    /// # Errors
    /// A machine or a script that cannot be modelled, a livelock, tasks that wait for ever.
    pub fn run(&self, script: &Arc<Script>, seed: u64) -> std::result::Result<Run, Failed> {
        self.run_recorded(script, seed, &Recorder::default())
    }

    /// Shares the managed pages of the guest among the machine's nodes, as the machine's memory is.
    fn share(&self, nodes: &mut [NodeSpec], page_shift: u32) {
        let whole: u64 = nodes.iter().map(|node| node.bytes).sum();
        for node in nodes {
            let pages = u128::from(self.facts.managed) * u128::from(node.bytes) / u128::from(whole);
            node.bytes = (pages as u64) << page_shift;
        }
    }

    /// Runs a script once, and tells `recorder` what happens.
    ///
    /// # Errors
    /// A machine or a script that cannot be modelled, a livelock, tasks that wait for ever.
    pub fn run_recorded(
        &self,
        script: &Arc<Script>,
        seed: u64,
        recorder: &Recorder,
    ) -> std::result::Result<Run, Failed> {
        let mut spec = self.machine.spec.clone();
        self.share(&mut spec.nodes, spec.page_shift);
        if self.facts.cpus > 1 {
            spec.nodes.truncate(1);
            spec.nodes[0].bytes = self.facts.managed << spec.page_shift;
            spec.cpu_node = vec![0; usize::from(self.facts.cpus)];
        }
        spec.seed = seed;
        let mut speeds = Stream::of(seed, "speeds");
        let [disk_speed, cpu_speed] = [DISK_SPEED, CPU_SPEED].map(|range| speeds.between(range));
        let mut hardware = self.machine.hardware.clone();
        hardware.costs.page_fault = hardware.costs.page_fault * cpu_speed / 1_000;
        let setup = Setup { spec, hardware, preset: self.engine, boot: Boot::default(), placement: None };
        let [major, minor, patch] = self.vm.kernel;
        let mut guest = self.facts.guest(seed);
        guest.settings = self.vm.settings;
        for (place, name) in ["swap", "data"].into_iter().enumerate() {
            if let Some(disk) = self.machine.disk(name) {
                guest.disk[place] = disk.clone();
            }
            if let DiskKind::Fixed(fixed) = &mut guest.disk[place].kind {
                fixed.request = fixed.request * disk_speed / 1_000;
                fixed.kib = fixed.kib * disk_speed / 1_000;
            }
        }
        for (disk, limit) in guest.disk.iter_mut().zip(self.settings.write_limits) {
            if let DiskKind::Fixed(fixed) = &mut disk.kind {
                fixed.write_limit = limit.or(fixed.write_limit);
            }
        }
        guest.swap_pages = self.settings.swap_pages.unwrap_or(guest.swap_pages);
        if self.settings.no_swap {
            guest.swap_pages = 0;
        }
        guest.set.clone_from(&self.settings.set);
        let mut rules = Rules::of(major, minor, patch);
        if let Some(kib) = self.settings.read_ahead_kib {
            rules.read_ahead_pages = (kib / 4) as u32;
        }
        if self.settings.swap_is_flash {
            guest.disk[0].rotational = false;
            rules.swap_read_ahead = SwapReadAhead::Region;
        }
        let policy = sim::policy_for(&self.vm, script);
        let answer = sim::run_recorded(&setup, seed, recorder, &guest, policy, rules, script)?;
        let looked = Looked::new(&answer.records, answer.samples);
        let records = answer.records.iter().map(|record| (record.process.clone(), records::convert(record)));
        let records = records.collect();
        Ok(Run { seed, records, killed: answer.killed, accesses: answer.accesses, looked })
    }
}
