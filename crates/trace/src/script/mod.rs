//! The script language of page accesses: what each process of a memory pressure test does, line by line.
//!
//! A script names objects (anonymous memory, files, tmpfs files), and says which of their pages are
//! accessed, in which order, by a load or store of a mapping or by a system call. The order follows from the
//! script alone, so that a real kernel and a model can be given the same accesses. docs/pressure.md has the
//! language.
//!
//! ```text
//! text ── parse ── Script (commands, objects, children)
//!                    └── Process (generator, a cursor per object) ── Batches ── pages, up to 1024 at a time
//! ```
//!
//! ```
//! use slablab_trace::script::{Batches, Command, Process, Script};
//!
//! let text = "seed 31\nanon a 1\nphase fill\nacc x1 a seq m w\nacc 4 a uni m r\n";
//! let script = Script::parse("fill.t", text, &mut |_| Err("no other file".into()))?;
//! let mut process = Process::new(&script);
//! let mut pages = Vec::new();
//! for line in &script.commands {
//!     match &line.command {
//!         Command::Seed(seed) => process.seed(*seed),
//!         Command::Access { rounds, groups } => {
//!             let mut batches = Batches::new(*rounds, groups);
//!             while let Some(batch) = batches.next(&mut process) {
//!                 pages.extend_from_slice(batch.pages);
//!             }
//!         }
//!         _ => {}
//!     }
//! }
//! assert_eq!(pages[..256], std::array::from_fn::<u32, 256, _>(|page| page as u32));
//! assert_eq!(pages.len(), 260);
//! # Ok::<(), slablab_trace::script::ScriptError>(())
//! ```

mod access;
mod error;
mod fuzz;
mod generator;
mod parse;
mod steps;
mod words;
mod zipf;

pub use access::{Access, BATCH_PAGES, Batch, Batches, Process};
pub use error::ScriptError;
pub use fuzz::fuzz;
pub use generator::Generator;
pub use parse::Load;
pub use zipf::Exponent;

use std::sync::Arc;

/// Bytes of a page of a script.
pub const PAGE_BYTES: u64 = 4096;

/// What one process does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The file it was read from, as it was named.
    pub file: String,
    /// The commands in the order of the file.
    pub commands: Vec<Line>,
    /// The objects in the order of their declarations. An [`ObjectId`] is an index.
    pub objects: Vec<Object>,
    /// The processes that it starts, in the order of their `spawn` lines. A [`ChildId`] is an index.
    pub children: Vec<Child>,
}

/// A command and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line of the file, from 1.
    pub number: u32,
    /// What it says.
    pub command: Command,
}

/// An index of [`Script::objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u16);

/// An index of [`Script::children`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChildId(pub u16);

/// Memory that a process accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its name, which also seeds the permutation of [`Distribution::Zipf`].
    pub name: String,
    /// What backs it.
    pub kind: ObjectKind,
    /// Its size.
    pub pages: u32,
}

/// What backs an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A private anonymous mapping.
    Anon,
    /// An existing file of the data disk, mapped shared and opened.
    File,
    /// A new sparse file of a tmpfs, mapped shared and opened.
    Shm,
}

/// A process that a script starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// Its name: the record of its phases has it.
    pub name: String,
    /// What it does.
    pub script: Arc<Script>,
}

/// One line of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `seed N`: sets the process's generator.
    Seed(u64),
    /// `flushevery N`: flush the TLB after every N mapped accesses of the process; 0: never.
    FlushEvery(u32),
    /// `anon NAME MiB`, `file NAME MiB`, `shm NAME MiB`: creates or opens an object.
    Open(ObjectId),
    /// `phase LABEL`: ends the phase before it, and begins a new one.
    Phase(String),
    /// `rewind NAME`: sets the object's cursor to 0.
    Rewind(ObjectId),
    /// `acc COUNT NAME DIST MODE RW` (one round of one group) and `inter ROUNDS {K NAME DIST MODE RW}+`.
    Access {
        /// How often the groups follow one another.
        rounds: u64,
        /// The accesses of a round.
        groups: Vec<Group>,
    },
    /// `punch NAME M K`: releases the pages K to M - 1 of every aligned group of M pages.
    Punch {
        /// Anonymous or tmpfs memory.
        object: ObjectId,
        /// M, at least 1.
        group: u32,
        /// K, up to M.
        keep: u32,
    },
    /// `unmap NAME`: unmaps the object and maps it anew. Contents of anonymous memory are gone.
    Unmap(ObjectId),
    /// `free NAME`: unmaps the object, closes it, unlinks a tmpfs file. No later line but `rewind` names it.
    Free(ObjectId),
    /// `stat DIR D F PASSES` and `statuni DIR D F N`.
    Stat(Stat),
    /// `msg N BYTES`: queues N messages; message i, counted from 0, has type 1 + i mod 8.
    Messages {
        /// N.
        count: u32,
        /// Bytes of a message without its header.
        bytes: u32,
    },
    /// `msgfree T`: receives all messages of one type; 0: of all types.
    FreeMessages(u32),
    /// `pipes N SLOTS`: N pipes resized to SLOTS buffers, 40 bytes each in one allocation.
    Pipes {
        /// N.
        count: u32,
        /// SLOTS.
        slots: u32,
    },
    /// `pipesfree`: closes all pipes.
    FreePipes,
    /// `fsync NAME`: writes the dirty pages of a file, and waits. Nothing for other objects.
    Fsync(ObjectId),
    /// `sync`: writes all dirty pages, and waits.
    Sync,
    /// `drop`: `sync`, then drops clean page cache and reclaimable slab objects.
    DropCaches,
    /// `set FILE VALUE`: writes a setting.
    Set {
        /// The path, such as `/proc/sys/vm/swappiness`.
        path: String,
        /// The text.
        value: String,
    },
    /// `compute MS`: uses the CPU for MS milliseconds.
    Compute(u64),
    /// `sleep MS`: sleeps for MS milliseconds.
    Sleep(u64),
    /// `recslab 0|1`: whether the record of a phase has slabinfo.
    RecordSlabs(bool),
    /// `recfrag 0|1`: whether the record of a phase has pagetypeinfo and the fragmentation index.
    RecordFragmentation(bool),
    /// `spawn NAME SCRIPT`: forks a process that runs another script.
    Spawn(ChildId),
    /// `ready`: of a spawned process: ends its phase, reports to the parent and waits for `go`.
    Ready,
    /// `until NAME`: waits for the `ready` of a child.
    Until(ChildId),
    /// `go NAME`: releases a child.
    Go(ChildId),
    /// `join NAME`: waits for the end of a child.
    Join(ChildId),
}

/// Accesses of one kind that follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// How many accesses.
    pub count: u64,
    /// The object.
    pub object: ObjectId,
    /// Which of its pages.
    pub distribution: Distribution,
    /// How.
    pub mode: Mode,
    /// Load or store.
    pub rw: Rw,
}

/// Which pages of an object are accessed. P is the number of its pages, c its cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// `seq`: page c, then c = (c + 1) mod P.
    Sequential,
    /// `rev`: page P - 1 - c, same cursor.
    Reverse,
    /// `uni`: the generator's next number mod P.
    Uniform,
    /// `stride:K`: page c, then c += K; once c ≥ P, c becomes ((old c mod K) + 1) mod K. With a K above P the
    /// pages from P to K - 1, which the object does not have, are among them.
    Stride(u32),
    /// `part:M:K`: page c, then c = (c + 1) mod P, repeated until c mod M < K. With a K of M or more it is
    /// `seq`.
    Part {
        /// M.
        group: u32,
        /// K.
        first: u32,
    },
    /// `zipf:50`, `zipf:100`, `zipf:150`: rank r with a weight of (r + 1) to the power of minus the exponent,
    /// and the ranks scattered over the object by a permutation. In one `inter`, all groups of an object have
    /// the exponent of the last one.
    Zipf(Exponent),
}

/// How a page is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `m`: one aligned load or store of 8 bytes at the page's start.
    Mapped,
    /// `s`: `pread` or `pwrite` of the whole page. On anonymous memory each fails, and is counted as such.
    Syscall,
}

/// Whether a page is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rw {
    /// `r`.
    Read,
    /// `w`.
    Write,
}

/// `lstat` of DIR/dXXX/fYYYYY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// DIR.
    pub directory: String,
    /// D: subdirectories.
    pub directories: u32,
    /// F: files in each.
    pub files: u32,
    /// Which files.
    pub order: StatOrder,
}

/// Which files a [`Stat`] looks up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatOrder {
    /// `stat`: all, in order, this many times.
    Passes(u32),
    /// `statuni`: this many draws of [`Process::draw`]; file k = draw mod (D · F) is file k mod F of
    /// subdirectory k / F.
    Uniform(u64),
}

impl Script {
    /// The object with this id. Panics for an id of another script.
    pub fn object(&self, id: ObjectId) -> &Object {
        &self.objects[usize::from(id.0)]
    }

    /// The child with this id. Panics for an id of another script.
    pub fn child(&self, id: ChildId) -> &Child {
        &self.children[usize::from(id.0)]
    }
}
