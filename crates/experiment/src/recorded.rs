//! A recording as the tasks of a closed program (docs/theory/kernel.md 10).

use slablab_replay::import::{self, Input};
use slablab_report::error::{At, Error, Result};
use slablab_sim::heap::Named;
use slablab_sim::recorded::{Recorded, Script, ScriptTask, Step, What};
use slablab_slabs::CacheSpec;
use slablab_trace::{Batch, Columns, EventKind, NONE, Reader, Row, Texts, flags};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Caches that opted into sheaves in 6.18, and the capacity they asked for (docs/theory/sheaves.md 2).
const OPT_IN_SHEAVES: [&str; 2] = ["vm_area_struct", "maple_node"];
const OPT_IN_CAPACITY: u32 = 32;

/// A task of the recording: its pid, and for the idle task, pid 0, its CPU.
type TaskKey = (i32, u16);

#[derive(Default)]
struct Builder {
    out: Recorded,
    script: Script,
    tasks: BTreeMap<TaskKey, usize>,
    caches: BTreeMap<String, u16>,
    /// By the recording's dense id: the object's number.
    numbers: Vec<u32>,
    /// By the object's number: the CPU that allocated it.
    allocated_on: Vec<u16>,
    /// Time of the last row, and its task, by CPU.
    on_cpu: BTreeMap<u16, (u64, TaskKey)>,
    /// Time of the last row by task.
    of_task: BTreeMap<TaskKey, u64>,
    first: Option<u64>,
    last: u64,
}

/// Reads a recording.
///
/// # Errors
/// What cannot be read or is no recording; one without allocations.
pub fn recorded(path: &Path) -> Result<Recorded> {
    let reader = import::open(Input { path, recording: None, formats: None }, &mut |_| ())?;
    let mut builder = Builder::new(&reader);
    let columns = Columns::REPLAY | Columns::PID | Columns::COMM;
    let mut batches = reader.batches(columns);
    let mut batch = Batch::default();
    while batches.next(&mut batch).at(path)? {
        for at in 0..batch.len() {
            builder.row(&batch.row(at), batches.texts());
        }
    }
    if builder.script.objects == 0 {
        return Err(Error::new(path, "the recording has no allocation: expected events kmem:*"));
    }
    Ok(builder.finish())
}

impl Builder {
    fn new(reader: &Reader) -> Builder {
        let ids = reader.metadata().statistics.object_ids as usize;
        Builder { numbers: vec![NONE; ids], ..Builder::default() }
    }

    fn finish(self) -> Recorded {
        let elapsed_ns = self.last - self.first.unwrap_or(self.last);
        Recorded { script: Arc::new(self.script), elapsed_ns, ..self.out }
    }

    fn row(&mut self, row: &Row, texts: &Texts) {
        let Some(event) = EventKind::from_u8(row.event) else { return };
        if matches!(event, EventKind::Lost | EventKind::Mark) {
            return;
        }
        let key = self.key(row);
        // What the CPU did since its last event, it did for this task, if the task was not on another CPU.
        let cpu_last = self.on_cpu.get(&row.cpu).map(|(at, _)| *at);
        let since = cpu_last.max(self.of_task.get(&key).copied());
        let gap = since.map_or(0, |since| row.time_ns.saturating_sub(since));
        let gap_ns = u32::try_from(gap).unwrap_or(u32::MAX);
        self.on_cpu.insert(row.cpu, (row.time_ns, key));
        self.of_task.insert(key, row.time_ns);
        self.first.get_or_insert(row.time_ns);
        self.last = self.last.max(row.time_ns);
        let no_object = row.flags & (flags::NULL | flags::ZERO_SIZE) != 0 || row.object == NONE;
        let step = match no_object {
            true => None,
            false if event.is_alloc() => self.alloc(row, texts),
            false if event.is_free() => self.free(row),
            false => None,
        };
        if let Some((object, what)) = step {
            let place = self.script.steps;
            self.script.steps += 1;
            let task = self.task(key, row, texts);
            self.script.tasks[task].steps.push(Step { place, object, gap_ns, cpu: row.cpu, what });
        }
    }

    /// The task of a row. A row without one is of the task that this CPU ran last.
    fn key(&self, row: &Row) -> TaskKey {
        match row.pid {
            0 => (0, row.cpu),
            pid if pid > 0 => (pid, 0),
            pid => self.on_cpu.get(&row.cpu).map_or((pid, row.cpu), |(_, key)| *key),
        }
    }

    fn task(&mut self, key: TaskKey, row: &Row, texts: &Texts) -> usize {
        *self.tasks.entry(key).or_insert_with(|| {
            let name = match (key.0, texts.comm.get(row.comm)) {
                (0, _) => format!("idle, CPU {}", key.1),
                (pid, Some(comm)) if pid > 0 => format!("{comm}-{pid}"),
                (pid, None) if pid > 0 => format!("task {pid}"),
                _ => format!("CPU {}", key.1),
            };
            self.script.tasks.push(ScriptTask { name, steps: Vec::new() });
            self.script.tasks.len() - 1
        })
    }

    /// An allocation. `None` if its size is not known: its free is left out too.
    fn alloc(&mut self, row: &Row, texts: &Texts) -> Option<(u32, What)> {
        let number = &mut self.numbers[row.object as usize];
        *number = NONE;
        let cache = texts.cache.get(row.cache).filter(|_| row.event == EventKind::CacheAlloc as u8);
        let bytes = if row.bytes_req > 0 { row.bytes_req } else { row.bytes_alloc };
        let what = match cache {
            Some(name) => What::Alloc(cache_of(&mut self.caches, &mut self.script, name, row.bytes_alloc)?),
            None if bytes > 0 => What::Kmalloc(bytes),
            None => return None,
        };
        *number = self.script.objects;
        self.script.objects += 1;
        self.allocated_on.push(row.cpu);
        Some((*number, what))
    }

    fn free(&mut self, row: &Row) -> Option<(u32, What)> {
        let unseen = row.flags & flags::UNSEEN != 0;
        let number = std::mem::replace(&mut self.numbers[row.object as usize], NONE);
        if unseen || number == NONE {
            self.out.left_out += 1;
            return None;
        }
        self.out.frees += 1;
        self.out.elsewhere += u64::from(self.allocated_on[number as usize] != row.cpu);
        Some((number, What::Free))
    }
}

/// The place of a named cache.
fn cache_of(places: &mut BTreeMap<String, u16>, script: &mut Script, name: &str, bytes: u32) -> Option<u16> {
    if let Some(place) = places.get(name) {
        return Some(*place);
    }
    let place = u16::try_from(script.caches.len()).ok().filter(|_| bytes > 0)?;
    let sheaf_capacity = if OPT_IN_SHEAVES.contains(&name) { OPT_IN_CAPACITY } else { 0 };
    let spec = CacheSpec { known_size: bytes, sheaf_capacity, ..CacheSpec::of_size(bytes) };
    script.caches.push(Named { name: name.into(), spec });
    places.insert(name.into(), place);
    Some(place)
}
