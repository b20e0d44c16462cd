//! One process of a script: its commands, its objects, its phases.

use super::family::{Awaited, Child};
use super::own::Own;
use super::record::{ObjectUse, Pages, Phase, Usage};
use super::settings;
use super::shared::{Queue, Shared, Tmpfs};
use crate::kernel::objects::Held;
use crate::kernel::tally::Failed;
use crate::kernel::{Task, Waiting};
use crate::memory::Here;
use crate::memory::views::Snapshot;
use slablab_model::{Ps, Timed};
use slablab_trace::script::{self, Command, Object, ObjectId, ObjectKind, Script};
use slablab_vm::ahead::FileAhead;
use slablab_vm::mm::{self, OpenFile};
use slablab_vm::{MappingId, RegionId, SpaceId};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const MS: Ps = 1_000_000_000;

/// What a fork copies or shares, beside the generator.
pub(super) struct Forked {
    space: SpaceId,
    tmpfs: Vec<Rc<Tmpfs>>,
    queue: Option<Queue>,
    pipes: Vec<Rc<Option<Held>>>,
    records: [bool; 2],
}

/// An object that is open.
pub(super) struct Open {
    pub(super) region: RegionId,
    pub(super) file: Option<OpenFile>,
    mapping: Option<MappingId>,
    tmpfs: Option<Rc<Tmpfs>>,
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
    /// Files of tmpfs that its parent had mapped at the fork.
    inherited: Vec<Rc<Tmpfs>>,
    /// Made by the first message.
    pub(super) queue: Option<Queue>,
    /// Rings of pipes, which forks share.
    pub(super) pipes: Vec<Rc<Option<Held>>>,
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

impl Process<'_> {
    /// Starts a process.
    pub(super) fn start(
        shared: &Rc<Shared>,
        parent: Option<(&Task, Forked)>,
        name: &str,
        script: &Arc<Script>,
        walk: script::Process,
        me: Option<Rc<Child>>,
    ) {
        let record = shared.new_record(name);
        let (parent, forked) = parent.unzip();
        shared.running.set(shared.running.get() + 1);
        let (shared, script, name) = (shared.clone(), script.clone(), name.to_string());
        let kernel = shared.memory.kernel.clone();
        let program = move |task: &Task| {
            task.call_it(|| format!("script {name}"));
            let forked = forked.unwrap_or_else(|| {
                let space = shared.memory.vm.with(|state| state.spaces.create());
                Forked { space, tmpfs: Vec::new(), queue: None, pipes: Vec::new(), records: [false; 2] }
            });
            let Forked { space, tmpfs, queue, pipes, records } = forked;
            let [records_slabs, records_fragmentation] = records;
            shared.memory.processes.adopt(&name, task.id, space);
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
                inherited: tmpfs,
                queue,
                pipes,
                own: Own::default(),
                records_slabs,
                records_fragmentation,
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
        let memory = &self.shared.memory;
        self.own.lock(memory, self.task, memory.guest.locked[usize::from(self.me.is_some())]);
        for (at, line) in script.commands.iter().enumerate() {
            if self.me.is_none() {
                self.shared.memory.kernel.has_done(at as u64, script.commands.len() as u64);
            }
            self.command(&script, &line.command)?;
            if self.shared.memory.processes.is_killed(self.task.id) {
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
        std::mem::take(&mut self.own).unlock(&memory, self.task);
        let here = Here::new(&memory, self.task);
        mm::exit(&memory.vm, &here, self.space);
        let objects = std::mem::take(&mut self.objects);
        let tmpfs = objects.into_iter().flatten().filter_map(|open| open.tmpfs);
        for file in tmpfs.chain(std::mem::take(&mut self.inherited)) {
            file.close(&memory, &here);
        }
        memory.processes.disown(&memory.kernel, self.task.id);
        if let Some(me) = &self.me {
            me.has_ended.set(true);
        }
        memory.wake_processes();
        self.shared.running.set(self.shared.running.get() - 1);
        if self.shared.running.get() == 0 {
            self.shared.clear(self.task);
            memory.stop();
        }
    }

    fn command(&mut self, script: &Script, command: &Command) -> Result<(), Killed> {
        let memory = self.shared.memory.clone();
        let here = Here::new(&memory, self.task);
        match command {
            Command::Seed(seed) => self.walk.borrow_mut().seed(*seed),
            Command::FlushEvery(every) => {
                let every = if *every == 0 { u32::MAX } else { *every };
                memory.vm.with(|state| state.spaces.space_mut(self.space).flush_every = every);
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
                    if let Some(file) = open.tmpfs {
                        self.shared.tmpfs.borrow_mut().remove(&script.object(*object).name);
                        file.unlink();
                        file.close(&memory, &here);
                    }
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
                settings::drop_caches(&memory, &here, 3);
            }),
            Command::Set { path, value } => settings::set(&memory, self.task, path, value),
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
                match self.fork() {
                    Some(fork) => {
                        let parent = Some((self.task, fork));
                        Process::start(&self.shared, parent, &of.name, &of.script, walk, Some(state));
                    }
                    None => {
                        self.shared.new_record(&of.name);
                        state.has_ended.set(true);
                    }
                }
            }
            Command::Ready => {
                self.end_phase();
                let me = self.me.clone().expect("the parser allows ready in spawned scripts alone");
                me.ready.set(me.ready.get() + 1);
                memory.wake_processes();
                self.sleep_until(Awaited::Go(me.clone()))?;
                me.go.set(me.go.get() - 1);
            }
            Command::Until(child) => {
                let child = self.children[usize::from(child.0)].clone();
                self.sleep_until(Awaited::Ready(child.clone()))?;
                child.ready.set(child.ready.get().saturating_sub(1));
            }
            Command::Go(child) => {
                let child = &self.children[usize::from(child.0)];
                child.go.set(child.go.get() + 1);
                memory.wake_processes();
            }
            Command::Join(child) => {
                let child = self.children[usize::from(child.0)].clone();
                self.sleep_until(Awaited::End(child))?;
            }
            Command::Stat(stat) => self.stat(stat)?,
            Command::Messages { count, bytes } => self.send(*count, *bytes)?,
            Command::FreeMessages(of) => self.receive(*of),
            Command::Pipes { count, slots } => self.make_pipes(*count, *slots)?,
            Command::FreePipes => self.close_pipes(),
        }
        Ok(())
    }

    /// Sleeps until another process has done something. If every process sleeps so, the run has failed.
    fn sleep_until(&self, awaited: Awaited) -> Result<(), Killed> {
        let (memory, sleepers) = (&self.shared.memory, &self.shared.sleepers);
        let waiting = Waiting { what: awaited.what(), number: self.record as u32 };
        let mut result = Ok(());
        while !awaited.has_come() {
            if memory.processes.is_killed(self.task.id) {
                result = Err(Killed);
                break;
            }
            sleepers.borrow_mut().insert(self.record, (self.task.id, awaited.clone()));
            if let Some(stuck) = self.shared.stuck() {
                memory.kernel.fail(Failed::Stuck(stuck));
                self.task.preemption_point();
            }
            memory.sleep(self.task, waiting);
        }
        sleepers.borrow_mut().remove(&self.record);
        result
    }

    /// What a child has of this process. `None`: no memory.
    fn fork(&self) -> Option<Forked> {
        let memory = &self.shared.memory;
        let space = mm::fork(&memory.vm, &Here::new(memory, self.task), self.space)?;
        let opened = self.objects.iter().flatten().filter_map(|open| open.tmpfs.as_ref());
        let tmpfs: Vec<Rc<Tmpfs>> = opened.chain(&self.inherited).cloned().collect();
        tmpfs.iter().for_each(|file| file.open());
        let records = [self.records_slabs, self.records_fragmentation];
        let (queue, pipes) = (self.queue.clone(), self.pipes.clone());
        Some(Forked { space, tmpfs, queue, pipes, records })
    }

    fn open(&mut self, id: ObjectId, object: &Object) {
        let vm = &self.shared.memory.vm;
        let tmpfs = (object.kind == ObjectKind::Shm).then(|| self.shared.open_tmpfs(object));
        let mapping = match (object.kind, &tmpfs) {
            (ObjectKind::File, _) => Some(self.shared.file(object)),
            (_, tmpfs) => tmpfs.as_ref().map(|file| file.mapping),
        };
        let region = match mapping {
            None => mm::anon(vm, self.space, object.pages),
            Some(mapping) => mm::map_first(vm, self.space, mapping, object.pages),
        };
        let ahead = vm.with(|state| {
            let ahead = FileAhead::opened(state.settings.read_ahead_pages);
            state.spaces.region_mut(region).ahead = ahead;
            ahead
        });
        let file = mapping.map(|mapping| OpenFile { ahead, ..OpenFile::new(mapping) });
        self.objects[usize::from(id.0)] = Some(Open { region, file, mapping, tmpfs });
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
        let Open { region, mapping, file, .. } = *self.opened(object);
        let pages = self.script.object(object).pages;
        self.task.syscall(|| mm::unmap(&memory.vm, &Here::new(&memory, self.task), region));
        let region = match mapping {
            None => mm::anon(&memory.vm, self.space, pages),
            Some(mapping) => mm::map_first(&memory.vm, self.space, mapping, pages),
        };
        let most = file.and_then(|file| file.ahead.most);
        memory.vm.with(|state| state.spaces.region_mut(region).ahead = FileAhead::opened(most));
        if let Some(open) = &mut self.objects[usize::from(object.0)] {
            open.region = region;
        }
    }

    /// Faults and blocks of the process so far.
    pub(super) fn used(&self) -> Usage {
        let blocks = self.shared.memory.accounts.blocks_of(self.task.id);
        Usage { read: blocks.read, written: blocks.written, ..self.usage }
    }

    fn begin_phase(&mut self, label: String) {
        let unused = |object: &Object| ObjectUse { name: object.name.clone(), ..ObjectUse::default() };
        self.uses = self.script.objects.iter().map(unused).collect();
        self.counts = [0; 3];
        self.shared.memory.record_names(false);
        let (user, usage) = (self.user, self.used());
        let snapshot = self.shared.memory.snapshot();
        self.begin = Some(Begin { label, at: Timed::clock(), user, usage, snapshot });
    }

    /// Ends a phase, if there is one.
    fn end_phase(&mut self) {
        let Some(begin) = self.begin.take() else { return };
        let memory = &self.shared.memory;
        memory.record_names(true);
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
