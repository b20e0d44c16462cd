//! What a script needs, known before it runs: lines that can be run, sizes of files.

use super::settings::{self, Known};
use crate::kernel::tally::Failed;
use slablab_trace::script::{
    self, Batches, Command, Distribution, Group, Line, Mode, Object, ObjectKind, Script,
};
use std::collections::BTreeMap;

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

/// Whether a script, or one that it starts, writes a file.
pub(super) fn writes(script: &Script, file: &str) -> bool {
    let is_it = |command: &Command| matches!(command, Command::Set { path, .. } if path == file);
    script.commands.iter().any(|line| is_it(&line.command))
        || script.children.iter().any(|child| writes(&child.script, file))
}

impl Plan {
    /// Whether every line of a script, and of those that it spawns, can be run; and what they need.
    ///
    /// # Errors
    /// The file, the line, and what is not modelled.
    pub(super) fn of(script: &Script, known: &Known) -> Result<Plan, Failed> {
        let mut plan = Plan::default();
        plan.add(script, known)?;
        Ok(plan)
    }

    fn add(&mut self, script: &Script, known: &Known) -> Result<(), Failed> {
        for line in &script.commands {
            let what = match &line.command {
                Command::Set { path, value } => settings::check(path, value, known),
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
        script.children.iter().try_for_each(|child| self.add(&child.script, known))
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
