//! What a script needs, known before it runs: lines that can be run, sizes of files.

use crate::memory::Memory;
use crate::tally::Failed;
use slablab_vm::Settings;
use slablab_workloads::script::{
    self, Batches, Command, Distribution, Group, Line, Mode, Object, ObjectKind, Script,
};
use std::collections::BTreeMap;

/// Drops caches, and is no setting.
pub(super) const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// A setting that can be changed: its path, and how.
type Setting = (&'static str, fn(&mut Settings, u32));

const SETTINGS: [Setting; 7] = [
    ("/proc/sys/vm/swappiness", |settings, value| settings.swappiness = value.min(200)),
    ("/proc/sys/vm/page-cluster", |settings, value| settings.page_cluster = value.min(8)),
    ("/proc/sys/vm/vfs_cache_pressure", |settings, value| settings.vfs_cache_pressure = value),
    ("/proc/sys/vm/dirty_ratio", |settings, value| settings.dirty_ratio = Some(value.min(100))),
    ("/proc/sys/vm/dirty_background_ratio", |settings, value| {
        settings.dirty_background_ratio = Some(value.min(100));
    }),
    ("/proc/sys/vm/dirty_expire_centisecs", |settings, value| {
        settings.dirty_expire = u64::from(value) * 10_000_000;
    }),
    ("/sys/kernel/mm/lru_gen/min_ttl_ms", |settings, value| settings.min_ttl_ms = Some(value)),
];

/// Whether a script can write this file, `drop_caches` aside.
pub fn is_setting(path: &str) -> bool {
    setting(path).is_some()
}

pub(super) fn setting(path: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|(known, _)| *known == path)
}

/// Writes the settings that the guest has before the script.
pub(super) fn boot(memory: &Memory) -> Result<(), Failed> {
    for (path, value) in &memory.guest.set {
        let unknown = || Failed::Machine(format!("{path} is not modelled"));
        let (_, set) = setting(path).ok_or_else(unknown)?;
        memory.vm.with(|state| set(&mut state.settings, *value));
    }
    Ok(())
}

/// Sizes that a script and those that it spawns name together.
#[derive(Default)]
pub(super) struct Plan {
    /// Pages of each file of the disk: the most that a process names.
    pub(super) files: BTreeMap<String, u32>,
    /// Pages of each tmpfs file: all processes name as many.
    tmpfs: BTreeMap<String, u32>,
    /// Directories and files in each, of each folder.
    pub(super) trees: BTreeMap<String, (u32, u32)>,
}

impl Plan {
    /// Whether every line of a script, and of those that it spawns, can be run; and what they need.
    ///
    /// # Errors
    /// The file, the line, and what is not modelled.
    pub(super) fn of(script: &Script) -> Result<Plan, Failed> {
        let mut plan = Plan::default();
        plan.add(script)?;
        Ok(plan)
    }

    fn add(&mut self, script: &Script) -> Result<(), Failed> {
        for line in &script.commands {
            let what = match &line.command {
                Command::Set { path, value } => check_setting(path, value),
                Command::Open(object) => self.open(script.object(*object)),
                Command::Stat(stat) => {
                    let (directories, files) = self.trees.entry(stat.directory.clone()).or_default();
                    *directories = stat.directories.max(*directories);
                    *files = stat.files.max(*files);
                    // A number of an inode has 32 bits.
                    let inodes = u64::from(*directories) * (u64::from(*files) + 1);
                    let expected = || format!("{inodes} inodes: expected at most {MOST_INODES}");
                    if inodes > MOST_INODES { Err(expected()) } else { Ok(()) }
                }
                _ => Ok(()),
            };
            what.map_err(|what| Failed::Machine(format!("{}:{}: {what}", script.file, line.number)))?;
        }
        check_ends(script)?;
        script.children.iter().try_for_each(|child| self.add(&child.script))
    }

    fn open(&mut self, object: &Object) -> Result<(), String> {
        if object.pages > MOST_PAGES {
            let gib = MOST_PAGES >> 18;
            return Err(format!("{} has {} pages: expected at most {gib} GiB", object.name, object.pages));
        }
        let pages = match object.kind {
            ObjectKind::Anon => return Ok(()),
            ObjectKind::File => self.files.entry(object.name.clone()).or_insert(0),
            ObjectKind::Shm => self.tmpfs.entry(object.name.clone()).or_insert(object.pages),
        };
        if object.kind == ObjectKind::Shm && *pages != object.pages {
            let other = format!("another process opens it with {pages}");
            return Err(format!("a tmpfs file that changes its size: {} pages, {other}", object.pages));
        }
        *pages = object.pages.max(*pages);
        Ok(())
    }
}

/// Pages of an object: a machine has no more address space to spare (assumed).
const MOST_PAGES: u32 = 1 << 26;
/// Inodes of a tree, which are 256 bytes on its disk.
const MOST_INODES: u64 = 1 << 26;

fn check_setting(path: &str, value: &str) -> Result<(), String> {
    if path != DROP_CACHES && setting(path).is_none() {
        let known: Vec<&str> = SETTINGS.iter().map(|(path, _)| *path).chain([DROP_CACHES]).collect();
        return Err(format!("{path} is not modelled: expected {}", known.join(", ")));
    }
    match value.parse::<u32>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("{path} is a number, but {value:?} is none")),
    }
}

/// A stride that is longer than its object leaves it; a mapped access there has no page.
fn check_ends(script: &Script) -> Result<(), Failed> {
    let is_long = |group: &Group| match group.distribution {
        Distribution::Stride(stride) => stride > script.object(group.object).pages,
        _ => false,
    };
    let groups = |line: &Line| match &line.command {
        Command::Access { rounds, groups } => Some((*rounds, groups.clone())),
        _ => None,
    };
    if !script.commands.iter().filter_map(groups).any(|(_, groups)| groups.iter().any(is_long)) {
        return Ok(());
    }
    let mut walk = script::Process::new(script);
    for line in &script.commands {
        if let Command::Rewind(object) = line.command {
            walk.rewind(object);
        }
        let Some((rounds, groups)) = groups(line) else { continue };
        let mut batches = Batches::new(rounds, &groups);
        while let Some(batch) = batches.next(&mut walk) {
            let Object { name, pages, .. } = script.object(batch.object);
            let behind = batch.pages.iter().find(|page| *page >= pages);
            if let (Mode::Mapped, Some(page)) = (batch.mode, behind) {
                let text = format!("page {page} is behind the end of {name}, which has {pages} pages");
                return Err(Failed::Machine(format!("{}:{}: {text}", script.file, line.number)));
            }
        }
    }
    Ok(())
}
