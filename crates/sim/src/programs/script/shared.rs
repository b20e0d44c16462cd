//! What the processes of a script share: files, names, message queues, records.

use super::family::Awaited;
use super::plan::Plan;
use super::record::Record;
use crate::kernel::Task;
use crate::kernel::objects::Held;
use crate::memory::caches::Tree;
use crate::memory::{Here, Memory};
use crate::sched::TaskId;
use slablab_trace::script::Object;
use slablab_vm::mappings::Kind;
use slablab_vm::{MappingId, mm};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A message queue: messages with their types. It outlives its processes.
pub(super) type Queue = Rc<RefCell<Vec<(u32, Vec<Held>)>>>;

/// What the processes of a script share.
pub(super) struct Shared {
    pub(super) memory: Rc<Memory>,
    pub(super) plan: Plan,
    /// Files of the data disk by name.
    files: RefCell<BTreeMap<String, MappingId>>,
    /// Files of tmpfs by name.
    pub(super) tmpfs: RefCell<BTreeMap<String, Rc<Tmpfs>>>,
    /// Names by folder.
    pub(super) trees: RefCell<BTreeMap<String, Rc<Tree>>>,
    /// Where the caches of names are among the guest's.
    pub(super) caches: u16,
    queues: RefCell<Vec<Queue>>,
    pub(super) records: RefCell<Vec<Record>>,
    pub(super) accesses: Cell<u64>,
    /// Processes that have not ended.
    pub(super) running: Cell<u32>,
    /// Those of them that sleep until another one does something, by their records.
    pub(super) sleepers: RefCell<BTreeMap<usize, (TaskId, Awaited)>>,
}

/// A file of tmpfs. It goes when it has no name and no process has it mapped.
pub(super) struct Tmpfs {
    pub(super) mapping: MappingId,
    users: Cell<u32>,
    has_name: Cell<bool>,
}

impl Tmpfs {
    /// A process maps it.
    pub(super) fn open(&self) {
        self.users.set(self.users.get() + 1);
    }

    /// It loses its name.
    pub(super) fn unlink(&self) {
        self.has_name.set(false);
    }

    /// A process has unmapped it.
    pub(super) fn close(&self, memory: &Rc<Memory>, here: &Here) {
        self.users.set(self.users.get() - 1);
        self.end(memory, here);
    }

    fn end(&self, memory: &Rc<Memory>, here: &Here) {
        if self.users.get() == 0 && !self.has_name.get() {
            mm::unlink(&memory.vm, here, self.mapping);
        }
    }
}

impl Shared {
    pub(super) fn new(memory: &Rc<Memory>, plan: Plan, caches: u16) -> Rc<Shared> {
        Rc::new(Shared {
            memory: memory.clone(),
            plan,
            files: RefCell::default(),
            tmpfs: RefCell::default(),
            trees: RefCell::default(),
            caches,
            queues: RefCell::default(),
            records: RefCell::default(),
            accesses: Cell::new(0),
            running: Cell::new(0),
            sleepers: RefCell::default(),
        })
    }

    /// A new process's place among the records.
    pub(super) fn new_record(&self, process: &str) -> usize {
        let mut records = self.records.borrow_mut();
        records.push(Record { process: process.into(), ..Record::default() });
        records.len() - 1
    }

    /// A file of the data disk: it was there before, as large as the process says that needs most of it.
    pub(super) fn file(&self, object: &Object) -> MappingId {
        let pages = self.plan.files[&object.name];
        let create = || self.memory.vm.with(|state| state.mappings.create(Kind::File, pages));
        *self.files.borrow_mut().entry(object.name.clone()).or_insert_with(create)
    }

    /// A file of tmpfs, which is made if there is none of this name.
    pub(super) fn open_tmpfs(&self, object: &Object) -> Rc<Tmpfs> {
        let create = || {
            let mapping = self.memory.vm.with(|state| state.mappings.create(Kind::Tmpfs, object.pages));
            Rc::new(Tmpfs { mapping, users: Cell::new(0), has_name: Cell::new(true) })
        };
        let file = self.tmpfs.borrow_mut().entry(object.name.clone()).or_insert_with(create).clone();
        file.open();
        file
    }

    /// If every process sleeps until another one does something, and none of them has what it sleeps for or
    /// was killed: the processes, and what each waits for. Nothing can wake them.
    pub(super) fn stuck(&self) -> Option<Vec<String>> {
        let sleepers = self.sleepers.borrow();
        let goes_on = |(task, awaited): &(TaskId, Awaited)| {
            awaited.has_come() || self.memory.processes.is_killed(*task)
        };
        if sleepers.len() < self.running.get() as usize || sleepers.values().any(goes_on) {
            return None;
        }
        let records = self.records.borrow();
        let text = |(record, (_, awaited)): (&usize, &(TaskId, Awaited))| {
            let name = Some(records[*record].process.as_str()).filter(|name| !name.is_empty());
            format!("{}: {}", name.unwrap_or("the script's first process"), awaited.command())
        };
        Some(sleepers.iter().map(text).collect())
    }

    /// A new message queue.
    pub(super) fn new_queue(&self) -> Queue {
        let queue = Queue::default();
        self.queues.borrow_mut().push(queue.clone());
        queue
    }

    /// No process is left: what outlived them goes.
    pub(super) fn clear(&self, task: &Task) {
        for queue in self.queues.take() {
            queue.take().into_iter().flat_map(|(_, parts)| parts).for_each(|held| task.free(held));
        }
        let here = Here::new(&self.memory, task);
        for file in self.tmpfs.take().into_values() {
            file.unlink();
            file.end(&self.memory, &here);
        }
    }
}
