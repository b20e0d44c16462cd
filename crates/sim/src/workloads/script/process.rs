//! One process of a script: its commands, its objects, its phases.

use super::Shared;
use super::own::Own;
use super::record::{ObjectUse, Pages, Phase, Record, Usage};
use crate::kernel::{Task, Waiting};
use crate::memory::Here;
use crate::memory::views::Snapshot;
use crate::objects::Held;
use crate::tally::Failed;
use slablab_model::{Ps, Timed};
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile};
use slablab_vm::{MappingId, RegionId, Settings, SpaceId};
use slablab_workloads::script::{
    self, Batches, Command, Distribution, Group, Line, Mode, Object, ObjectId, ObjectKind, Script,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

const MS: Ps = 1_000_000_000;

/// What parent and child tell each other.
#[derive(Default)]
pub(super) struct Child {
    is_ready: Cell<bool>,
    may_go: Cell<bool>,
    has_ended: Cell<bool>,
}

/// An object that is open.
pub(super) struct Open {
    pub(super) region: RegionId,
    pub(super) file: Option<OpenFile>,
    mapping: Option<MappingId>,
    kind: ObjectKind,
}

/// The process was killed, or the run failed.
pub(super) struct Killed;

/// A process.
pub(super) struct Process<'a> {
    pub(super) shared: Rc<Shared>,
    pub(super) task: &'a Task,
    pub(super) walk: Rc<RefCell<script::Process>>,
    pub(super) script: Arc<Script>,
    space: SpaceId,
    pub(super) objects: Vec<Option<Open>>,
    children: Vec<Rc<Child>>,
    pub(super) me: Option<Rc<Child>>,
    /// Its place among the records.
    record: usize,
    /// Faults so far; blocks are the task's.
    pub(super) usage: Usage,
    pub(super) user: Ps,
    pub(super) uses: Vec<ObjectUse>,
    pub(super) counts: [u64; 3],
    /// Messages with their types.
    pub(super) messages: Vec<(u32, Held)>,
    /// Rings of pipes.
    pub(super) pipes: Vec<Held>,
    pub(super) own: Own,
    records_slabs: bool,
    records_fragmentation: bool,
    begin: Option<Begin>,
}

/// The begin of a phase.
struct Begin {
    label: String,
    at: Ps,
    user: Ps,
    usage: Usage,
    snapshot: Snapshot,
}

/// A setting that can be changed: its path, and how.
type Setting = (&'static str, fn(&mut Settings, u32));

const SETTINGS: [Setting; 3] = [
    ("/proc/sys/vm/swappiness", |settings, value| settings.swappiness = value),
    ("/proc/sys/vm/page-cluster", |settings, value| settings.page_cluster = value),
    ("/proc/sys/vm/vfs_cache_pressure", |settings, value| settings.vfs_cache_pressure = value),
];

fn setting(path: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|(known, _)| *known == path)
}

/// Whether every line of a script, and of those that it spawns, can be run.
///
/// # Errors
/// The file, the line, and what is not modelled.
pub(super) fn check(script: &Script) -> Result<(), Failed> {
    for line in &script.commands {
        let refuse = |text: String| Err(Failed::Machine(format!("{}:{}: {text}", script.file, line.number)));
        if let Command::Set { path, value } = &line.command {
            if setting(path).is_none() {
                let known: Vec<&str> = SETTINGS.iter().map(|(path, _)| *path).collect();
                return refuse(format!("{path} is not modelled: expected {}", known.join(", ")));
            }
            if value.parse::<u32>().is_err() {
                return refuse(format!("{path} is a number, but {value:?} is none"));
            }
        }
    }
    check_ends(script)?;
    script.children.iter().try_for_each(|child| check(&child.script))
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

impl Process<'_> {
    /// Starts a process.
    pub(super) fn start(
        shared: &Rc<Shared>,
        parent: Option<&Task>,
        name: &str,
        script: &Arc<Script>,
        walk: script::Process,
        me: Option<Rc<Child>>,
    ) {
        let record = {
            let mut records = shared.records.borrow_mut();
            records.push(Record { process: name.into(), ..Record::default() });
            records.len() - 1
        };
        shared.running.set(shared.running.get() + 1);
        let (shared, script, name) = (shared.clone(), script.clone(), name.to_string());
        let kernel = shared.memory.kernel.clone();
        let program = move |task: &Task| {
            task.call_it(|| format!("script {name}"));
            let space = shared.memory.vm.with(|state| state.spaces.create());
            shared.memory.adopt(&name, task.id, space);
            let objects = script.objects.iter().map(|_| None).collect();
            let uses = vec![ObjectUse::default(); script.objects.len()];
            let mut process = Process {
                shared: shared.clone(),
                task,
                walk: Rc::new(RefCell::new(walk)),
                script,
                space,
                objects,
                children: Vec::new(),
                me,
                record,
                usage: Usage::default(),
                user: 0,
                uses,
                counts: [0; 3],
                messages: Vec::new(),
                pipes: Vec::new(),
                own: Own::default(),
                records_slabs: false,
                records_fragmentation: false,
                begin: None,
            };
            let ended = process.run();
            process.end(ended.is_ok());
        };
        match parent {
            Some(parent) => parent.fork(program),
            None => kernel.start(kernel.new_process(), None, program),
        };
    }

    fn run(&mut self) -> Result<(), Killed> {
        let script = self.script.clone();
        self.lock(self.shared.memory.guest.locked[usize::from(self.me.is_some())]);
        for line in &script.commands {
            self.command(&script, &line.command)?;
            if self.shared.memory.is_killed(self.task.id) {
                return Err(Killed);
            }
        }
        self.end_phase();
        Ok(())
    }

    /// The process ends, by itself or killed.
    fn end(&mut self, is_complete: bool) {
        let memory = self.shared.memory.clone();
        self.shared.records.borrow_mut()[self.record].is_complete = is_complete;
        self.close_pipes();
        self.receive(0);
        self.unlock();
        mm::exit(&memory.vm, &Here::new(&memory, self.task), self.space);
        let objects = std::mem::take(&mut self.objects);
        objects.iter().flatten().for_each(|open| self.unlink(open));
        memory.disown(self.task.id);
        if let Some(me) = &self.me {
            me.has_ended.set(true);
        }
        memory.wake_processes();
        self.shared.running.set(self.shared.running.get() - 1);
        if self.shared.running.get() == 0 {
            memory.stop();
        }
    }

    /// A tmpfs file goes with its last user; files of the disk stay in the page cache.
    fn unlink(&self, open: &Open) {
        if let (ObjectKind::Shm, Some(mapping)) = (open.kind, open.mapping) {
            let memory = &self.shared.memory;
            mm::unlink(&memory.vm, &Here::new(memory, self.task), mapping);
        }
    }

    fn command(&mut self, script: &Script, command: &Command) -> Result<(), Killed> {
        let memory = self.shared.memory.clone();
        let here = Here::new(&memory, self.task);
        match command {
            Command::Seed(seed) => self.walk.borrow_mut().seed(*seed),
            Command::FlushEvery(every) => {
                let every = if *every == 0 { u32::MAX } else { *every };
                memory.vm.with(|state| state.settings.flush_every = every);
            }
            Command::Open(object) => self.open(*object, script.object(*object)),
            Command::Phase(label) => {
                self.end_phase();
                self.begin_phase(label.clone());
            }
            Command::Rewind(object) => self.walk.borrow_mut().rewind(*object),
            Command::Access { rounds, groups } => self.access(*rounds, groups)?,
            Command::Punch { object, group, keep } => self.punch(*object, *group, *keep),
            Command::Unmap(object) => self.unmap(*object),
            Command::Free(object) => {
                if let Some(open) = self.objects[usize::from(object.0)].take() {
                    self.task.syscall(|| mm::unmap(&memory.vm, &here, open.region));
                    self.unlink(&open);
                }
            }
            Command::Fsync(object) => {
                if let Some(mapping) = self.opened(*object).mapping {
                    self.task.syscall(|| mm::fsync(&memory.vm, &here, &memory.rules, mapping));
                }
            }
            Command::Sync => self.task.syscall(|| mm::sync(&memory.vm, &here, &memory.rules)),
            Command::DropCaches => self.task.syscall(|| {
                mm::sync(&memory.vm, &here, &memory.rules);
                mm::drop_pagecache(&memory.vm, &here);
            }),
            Command::Set { path, value } => {
                let (_, set) = setting(path).expect("settings are checked before the run");
                let value = value.parse().expect("settings are checked before the run");
                memory.vm.with(|state| set(&mut state.settings, value));
            }
            Command::Compute(ms) => {
                self.task.compute(ms * MS);
                self.user += ms * MS;
            }
            Command::Sleep(ms) => self.task.sleep(ms * MS),
            Command::RecordSlabs(is_on) => self.records_slabs = *is_on,
            Command::RecordFragmentation(is_on) => self.records_fragmentation = *is_on,
            Command::Spawn(child) => {
                let state = Rc::new(Child::default());
                let of = script.child(*child);
                let walk = self.walk.borrow().spawn(&of.script);
                self.children.resize_with(script.children.len(), Rc::default);
                self.children[usize::from(child.0)] = state.clone();
                Process::start(&self.shared, Some(self.task), &of.name, &of.script, walk, Some(state));
            }
            Command::Ready => {
                self.end_phase();
                let me = self.me.clone().expect("the parser allows ready in spawned scripts alone");
                me.is_ready.set(true);
                memory.wake_processes();
                self.sleep_until("for its parent, process", || me.may_go.get())?;
            }
            Command::Until(child) => {
                let child = self.children[usize::from(child.0)].clone();
                self.sleep_until("for a child to be ready, process", || {
                    child.is_ready.get() || child.has_ended.get()
                })?;
            }
            Command::Go(child) => {
                self.children[usize::from(child.0)].may_go.set(true);
                memory.wake_processes();
            }
            Command::Join(child) => {
                let child = self.children[usize::from(child.0)].clone();
                self.sleep_until("for the end of a child, process", || child.has_ended.get())?;
            }
            Command::Stat(stat) => self.stat(stat)?,
            Command::Messages { count, bytes } => self.send(*count, *bytes)?,
            Command::FreeMessages(of) => self.receive(*of),
            Command::Pipes { count, slots } => self.make_pipes(*count, *slots)?,
            Command::FreePipes => self.close_pipes(),
        }
        Ok(())
    }

    /// Sleeps until another process has done something.
    fn sleep_until(&self, what: &'static str, is_so: impl Fn() -> bool) -> Result<(), Killed> {
        let memory = &self.shared.memory;
        while !is_so() {
            if memory.is_killed(self.task.id) {
                return Err(Killed);
            }
            memory.sleep(self.task, Waiting { what, number: self.record as u32 });
        }
        Ok(())
    }

    fn open(&mut self, id: ObjectId, object: &Object) {
        let vm = &self.shared.memory.vm;
        let mapping = match object.kind {
            ObjectKind::Anon => None,
            ObjectKind::File => Some(self.file(object)),
            ObjectKind::Shm => Some(vm.with(|state| state.mappings.create(Kind::Tmpfs, object.pages))),
        };
        let region = match mapping {
            None => mm::anon(vm, self.space, object.pages),
            Some(mapping) => mm::map(vm, self.space, mapping),
        };
        let file = mapping.map(OpenFile::new);
        self.objects[usize::from(id.0)] = Some(Open { region, file, mapping, kind: object.kind });
    }

    /// A file of the data disk: it was there before, as large as the first process that opens it says.
    fn file(&self, object: &Object) -> MappingId {
        let mut files = self.shared.files.borrow_mut();
        let create = || self.shared.memory.vm.with(|state| state.mappings.create(Kind::File, object.pages));
        *files.entry(object.name.clone()).or_insert_with(create)
    }

    fn opened(&self, object: ObjectId) -> &Open {
        self.objects[usize::from(object.0)].as_ref().expect("the parser opens objects before their use")
    }

    fn punch(&self, object: ObjectId, group: u32, keep: u32) {
        let (memory, open) = (&self.shared.memory, self.opened(object));
        let pages = self.script.object(object).pages;
        let what = match open.mapping {
            Some(mapping) => mm::Punched::Mapping(mapping),
            None => mm::Punched::Region(open.region),
        };
        for first in (0..pages).step_by(group as usize) {
            let range = (first + keep).min(pages)..(first + group).min(pages);
            self.task.syscall(|| mm::punch(&memory.vm, &Here::new(memory, self.task), what, range));
        }
    }

    fn unmap(&mut self, object: ObjectId) {
        let memory = self.shared.memory.clone();
        let Open { region, mapping, .. } = *self.opened(object);
        let pages = self.script.object(object).pages;
        self.task.syscall(|| mm::unmap(&memory.vm, &Here::new(&memory, self.task), region));
        let region = match mapping {
            None => mm::anon(&memory.vm, self.space, pages),
            Some(mapping) => mm::map(&memory.vm, self.space, mapping),
        };
        if let Some(open) = &mut self.objects[usize::from(object.0)] {
            open.region = region;
        }
    }

    /// Faults and blocks of the process so far.
    pub(super) fn used(&self) -> Usage {
        let blocks = self.shared.memory.blocks_of(self.task.id);
        Usage { read: blocks.read, written: blocks.written, ..self.usage }
    }

    fn begin_phase(&mut self, label: String) {
        let unused = |object: &Object| ObjectUse { name: object.name.clone(), ..ObjectUse::default() };
        self.uses = self.script.objects.iter().map(unused).collect();
        self.counts = [0; 3];
        let (user, usage) = (self.user, self.used());
        let snapshot = self.shared.memory.snapshot();
        self.begin = Some(Begin { label, at: Timed::clock(), user, usage, snapshot });
    }

    /// Ends a phase, if there is one.
    fn end_phase(&mut self) {
        let Some(begin) = self.begin.take() else { return };
        let memory = &self.shared.memory;
        let objects = self.script.objects.iter().zip(&self.objects);
        let residency = objects.filter_map(|(object, open)| {
            let open = open.as_ref()?;
            let pages = match open.mapping {
                None => Pages::of_region(memory, open.region),
                Some(mapping) => Pages::of_mapping(memory, mapping, object.pages),
            };
            Some((object.name.clone(), pages))
        });
        let phase = Phase {
            label: begin.label,
            elapsed_ns: (Timed::clock() - begin.at) / 1_000,
            uptime_ns: Timed::clock() / 1_000,
            usage: self.used().since(begin.usage),
            user_ns: (self.user - begin.user) / 1_000,
            counts: self.counts,
            objects: self.uses.iter().filter(|of| of.accesses > 0).cloned().collect(),
            residency: residency.collect(),
            begin: begin.snapshot,
            slabs: self.records_slabs.then(|| memory.slabinfo()),
            fragmentation: self.records_fragmentation.then(|| memory.fragmentation()),
            end: memory.snapshot(),
        };
        self.shared.records.borrow_mut()[self.record].phases.push(phase);
    }
}
