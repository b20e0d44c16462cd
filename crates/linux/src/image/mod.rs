//! An image in memory, on one modelled machine: loaded, booted, called.
//!
//! | module | what |
//! |---|---|
//! | `elf` | the file: segments, places that move, symbols |
//! | `space` | where things lie in the process |
//! | `call` | calls into the image, and its calls of the program |
//! | `finding` | why a run ended |
//! | `fault` | faults of the tree's code |
//! | `reports` | what the code of an instrumented image reports |
//!
//! An image has its own struct pages, areas of CPUs and memory; frames have the machine's numbers, so that an
//! address of the image and one of the model are the same frame and offset. Frames behind the machine's last
//! hold what the tree's allocator needs for itself: they are not the machine's.

pub(crate) mod call;
mod elf;
mod fault;
mod finding;
pub(crate) mod reports;
mod space;

use crate::build::Allocator;
use call::{Ended, Outside, Ways, enter, text_at};
use elf::Program;
use fault::{ENDLESS_S, Fault, Watched};
pub(crate) use finding::Finding;
use reports::Reports;
use slablab_report::error::{Error, Result};
use space::{Area, Placed, copy, read, write_table};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

/// The machine that an image boots on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// The node of each CPU.
    pub(crate) cpu_node: Vec<u16>,
    pub(crate) cpu_online: Vec<bool>,
    pub(crate) node_memory: Vec<bool>,
    /// For each node its zonelist: nodes and zones (0 DMA, 1 DMA32, 2 Normal).
    pub(crate) zonelists: Vec<Vec<(u16, u16)>>,
    /// The frame after the machine's last.
    pub(crate) frames: u64,
}

/// The bit of AT_HWCAP2 that says that programs may set the base of GS.
const HWCAP2_FSGSBASE: usize = 2;
/// Messages that are kept before a finding.
const SAID: usize = 8;
/// Frames behind the machine's last, for the allocator's own memory.
const OWN_FRAMES: u64 = 1 << 18;
/// What the address of memory is a multiple of: of a page, and of four seconds in jiffies at 100, 250, 300
/// and 1000 a second. SLAB spreads its timers by addresses of caches, and a run can be repeated.
const MEMORY_ALIGN: u64 = 1_536_000;
/// Bytes of a CPU's area, and of the shim's own memory.
const CPU_AREA: u64 = 1 << 20;
const ARENA: u64 = 16 << 20;

/// `struct slablab_machine` of host.h.
#[repr(C)]
struct Given {
    page_offset: u64,
    struct_pages: u64,
    percpu: u64,
    percpu_stride: u64,
    arena: u64,
    arena_bytes: u64,
    cpus: u32,
    nodes: u32,
    cpu_node: *const u16,
    cpu_online: *const u8,
    node_memory: *const u8,
    zonelists: *const u16,
    zonelist_stride: u32,
    frames: u64,
}

/// The functions of an image, by address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    pub(crate) create: u64,
    pub(crate) alloc: u64,
    pub(crate) free: u64,
    pub(crate) alloc_bulk: u64,
    pub(crate) free_bulk: u64,
    pub(crate) free_rcu: u64,
    pub(crate) shrink: u64,
    pub(crate) destroy: u64,
    pub(crate) fill: u64,
    pub(crate) differs: u64,
    pub(crate) cache_of: u64,
    pub(crate) show: u64,
    pub(crate) store: u64,
    pub(crate) cpu_steps: u64,
    pub(crate) set_online: u64,
    pub(crate) call_rcu: u64,
    pub(crate) kmalloc: u64,
    pub(crate) kfree: u64,
    pub(crate) later: u64,
    pub(crate) lock_kind: u64,
}

/// A part of an image's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A byte of a frame of the machine.
    Frame(u32, u32),
    /// The struct page of a frame of the machine.
    StructPage(u32),
    /// Other memory, by a number that is the same in each run; its node, if the image asked for one.
    Own(u64, Option<u16>),
    /// A CPU's area.
    OfCpu(u64, u16),
}

impl Part {
    fn key(area: u64, at: u64) -> u64 {
        area << 48 | at
    }
}

/// A booted image.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) functions: Functions,
    /// Which allocator it is.
    pub(crate) allocator: Allocator,
    /// The clock of calls that no cache makes, in jiffies.
    pub(crate) clock: Cell<u64>,
    /// Work of such calls: the CPU, the work, when it is due.
    pub(crate) deferred: RefCell<Vec<(u16, u64, u64)>>,
    ways: Ways,
    /// The base of GS for each CPU.
    gs: Vec<u64>,
    program: Program,
    path: PathBuf,
    /// Messages of the kernel, the last ones.
    said: RefCell<Vec<String>>,
    /// The next of the frames behind the machine's last.
    next_own: Cell<u64>,
    /// The nodes of those that are given out.
    own_nodes: RefCell<Vec<u16>>,
    /// For each node the nearest one with memory.
    nearest: Vec<u16>,
    frames: u64,
    page_offset: u64,
    struct_pages: u64,
    page_bytes: u64,
    /// `None` of a plain image.
    pub(crate) reports: Option<Reports>,
    watched: Watched,
    // Below what lies in them: dropped last.
    placed: Placed,
    areas: [Area; 4],
}

impl Image {
    /// Loads the image of `path` for `machine`, and boots it with these parameters of the boot line, each by
    /// the names that it has in one release or another.
    pub(crate) fn boot(path: &Path, machine: &Machine, parameters: &[(&[&str], String)]) -> Result<Image> {
        if rustix::param::linux_hwcap().1 & HWCAP2_FSGSBASE == 0 {
            return Err(Error::new(
                path,
                "this host's processor or kernel (before 5.9) does not let programs set the base of GS",
            ));
        }
        let program = Program::read(path)?;
        let placed = Placed::new(&program, path)?;
        let symbol = |name: &str| {
            let found = program.symbol(name).map(|address| address.wrapping_add_signed(placed.delta));
            found.ok_or_else(|| {
                Error::new(path, format!(
                        "it has no symbol {name}: an earlier version of this program built it: build it again \
                         (`slablab linux build`)"
                    ),
                )
            })
        };
        let page_bytes = read(symbol("slablab_page_bytes")?);
        let allocator = Allocator::ALL.get(read(symbol("slablab_allocator")?) as usize).copied();
        let allocator = allocator.unwrap_or(Allocator::Slub);
        let frames = machine.frames + OWN_FRAMES;
        let memory = Area::reserve("the machine's memory", (frames << 12) + MEMORY_ALIGN)?;
        let pages = Area::reserve("struct pages", frames * page_bytes)?;
        let cpus = Area::reserve("the CPUs' areas", CPU_AREA * machine.cpu_node.len() as u64)?;
        let arena = Area::reserve("the shim", ARENA)?;
        let (section, section_end) = (symbol("slablab_percpu_start")?, symbol("slablab_percpu_end")?);
        let mut gs = Vec::new();
        for cpu in 0..machine.cpu_node.len() as u64 {
            let area = cpus.start() + cpu * CPU_AREA;
            copy(section, area, section_end - section);
            gs.push(area.wrapping_sub(section));
        }
        let ways = Ways { enter: symbol("slablab_enter")?, escape: symbol("slablab_escape")? };
        let watched =
            Watched::new(placed.span(), symbol("slablab_text_end")?, symbol("slablab_current")?, ways.escape);
        let Some(watched) = watched else {
            return Err(Error::new(path, "too many images at once"));
        };
        write_table(symbol("slablab_host_table")?, &call::table());
        let functions = Functions {
            create: symbol("slablab_create")?,
            alloc: symbol("slablab_alloc")?,
            free: symbol("slablab_free")?,
            alloc_bulk: symbol("slablab_alloc_bulk")?,
            free_bulk: symbol("slablab_free_bulk")?,
            free_rcu: symbol("slablab_free_rcu")?,
            shrink: symbol("slablab_shrink")?,
            destroy: symbol("slablab_destroy")?,
            fill: symbol("slablab_fill")?,
            differs: symbol("slablab_differs")?,
            cache_of: symbol("slablab_cache_of")?,
            show: symbol("slablab_show")?,
            store: symbol("slablab_store")?,
            cpu_steps: symbol("slablab_cpu_steps")?,
            set_online: symbol("slablab_set_online")?,
            call_rcu: symbol("slablab_free_later")?,
            kmalloc: symbol("slablab_kmalloc")?,
            kfree: symbol("slablab_kfree")?,
            later: symbol("slablab_later")?,
            lock_kind: symbol("slablab_lock_kind")?,
        };
        let (prepare, parameter, start) =
            (symbol("slablab_prepare")?, symbol("slablab_parameter")?, symbol("slablab_boot")?);
        let reports = Reports::of(&program, &placed, path)?;
        let image = Image {
            functions,
            allocator,
            clock: Cell::new(0),
            deferred: RefCell::default(),
            ways,
            gs,
            path: path.to_path_buf(),
            said: RefCell::new(Vec::new()),
            next_own: Cell::new(machine.frames),
            own_nodes: RefCell::default(),
            nearest: (0..)
                .zip(&machine.zonelists)
                .map(|(node, list)| list.first().map_or(node, |near| near.0))
                .collect(),
            frames: machine.frames,
            page_offset: memory.start().next_multiple_of(MEMORY_ALIGN),
            struct_pages: pages.start(),
            page_bytes,
            reports,
            watched,
            program,
            placed,
            areas: [memory, pages, cpus, arena],
        };
        image.start(machine, (prepare, parameter, start), parameters)?;
        Ok(image)
    }

    fn start(
        &self,
        machine: &Machine,
        (prepare, parameter, start): (u64, u64, u64),
        parameters: &[(&[&str], String)],
    ) -> Result<()> {
        let [_, _, cpus, arena] = &self.areas;
        let online: Vec<u8> = machine.cpu_online.iter().map(|online| u8::from(*online)).collect();
        let memory: Vec<u8> = machine.node_memory.iter().map(|has| u8::from(*has)).collect();
        let longest = machine.zonelists.iter().map(Vec::len).max().unwrap_or(0);
        let stride = 2 * longest + 1;
        let mut lists = vec![u16::MAX; stride * machine.zonelists.len()];
        for (node, list) in machine.zonelists.iter().enumerate() {
            for (at, (other, zone)) in list.iter().enumerate() {
                lists[node * stride + 2 * at] = *other;
                lists[node * stride + 2 * at + 1] = *zone;
            }
        }
        // What the image keeps of it lies in its own memory: the structure lives as long as it, in the arena.
        let given = Given {
            page_offset: self.page_offset,
            struct_pages: self.struct_pages,
            percpu: cpus.start(),
            percpu_stride: CPU_AREA,
            arena: arena.start() + 4096,
            arena_bytes: ARENA - 4096,
            cpus: machine.cpu_node.len() as u32,
            nodes: machine.node_memory.len() as u32,
            cpu_node: machine.cpu_node.as_ptr(),
            cpu_online: online.as_ptr(),
            node_memory: memory.as_ptr(),
            zonelists: lists.as_ptr(),
            zonelist_stride: stride as u32,
            frames: self.frames,
        };
        copy(std::ptr::from_ref(&given).addr() as u64, arena.start(), size_of::<Given>() as u64);
        let boot = Booting(self);
        let run = |function: u64, arguments: [u64; 5]| {
            self.run(0, function, arguments, &boot)
                .map_err(|finding| Error::new(&self.path, finding.to_string()))
        };
        run(prepare, [arena.start(), 0, 0, 0, 0])?;
        for (names, value) in parameters {
            let value = with_end(value);
            let mut known = 0;
            for name in *names {
                known += run(parameter, [address(&with_end(name)), address(&value), 0, 0, 0])?;
            }
            if known == 0 {
                let names = names.join(" or ");
                return Err(Error::new(&self.path, format!("the tree has no boot parameter {names}")));
            }
        }
        run(start, [0; 5]).map(drop)
    }

    /// Runs a function of the image on a CPU.
    ///
    /// # Errors
    /// The tree's code ended it.
    #[inline]
    pub(crate) fn run(
        &self,
        cpu: u16,
        function: u64,
        arguments: [u64; 5],
        outside: &dyn Outside,
    ) -> std::result::Result<u64, Finding> {
        self.watched.begins();
        match enter(self.ways, self.gs[cpu as usize], function, arguments, outside) {
            Ended::With(result) => {
                outside.reported();
                Ok(result)
            }
            Ended::Left(payload) => {
                self.forget_reports();
                Err(self.finding(payload))
            }
        }
    }

    #[cold]
    fn finding(&self, payload: Option<Box<dyn std::any::Any + Send>>) -> Finding {
        let said = self.said.take();
        if let Some(payload) = payload {
            return match payload.downcast::<Finding>() {
                Ok(finding) => Finding { said, ..*finding },
                // A panic of the program itself goes on where the call was made.
                Err(payload) => std::panic::resume_unwind(payload),
            };
        }
        match self.watched.take() {
            Some(fault) => self.of_fault(fault, said),
            None => {
                let mut said = said;
                let what = said.pop().unwrap_or_else(|| "the tree's code ended the call".to_string());
                Finding { what, place: None, said, chain: Vec::new() }
            }
        }
    }

    fn of_fault(&self, fault: Fault, said: Vec<String>) -> Finding {
        let chain = std::iter::once(fault.at).chain(fault.chain).take_while(|at| *at != 0);
        let chain: Vec<String> = chain.filter_map(|at| self.name_of(at)).collect();
        let (what, place) = match self.bug_at(fault.at) {
            Some((true, place)) => ("WARNING".to_string(), place),
            Some((false, place)) => ("BUG".to_string(), place),
            None => {
                let what = match fault.signal {
                    libc::SIGILL => format!("an instruction that a process may not run, at {:#x}", fault.at),
                    libc::SIGFPE => "a division by zero".to_string(),
                    libc::SIGVTALRM => format!("no end after {ENDLESS_S} s of CPU time"),
                    _ => format!("bad address {:#x}", fault.address),
                };
                (what, None)
            }
        };
        Finding { what, place, said, chain }
    }

    /// The function that an address is in, as the kernel writes it.
    pub(crate) fn name_of(&self, at: u64) -> Option<String> {
        let (first, end) = self.placed.span();
        if !(first..end).contains(&at) {
            return None;
        }
        let (name, offset) = self.program.function(at.wrapping_add_signed(-self.placed.delta))?;
        Some(format!("{name}+{offset:#x}"))
    }

    /// Whether an instruction is the trap of a WARN, and its source line.
    fn bug_at(&self, at: u64) -> Option<(bool, Option<String>)> {
        let find = self.program.symbol("slablab_find_bug")?.wrapping_add_signed(self.placed.delta);
        let (mut file, mut line) = (0u64, 0u32);
        let arguments = [
            at,
            std::ptr::from_mut(&mut file).addr() as u64,
            std::ptr::from_mut(&mut line).addr() as u64,
            0,
            0,
        ];
        let kind = self.run(0, find, arguments, &Booting(self)).ok()?;
        let place = (file != 0).then(|| format!("{}:{line}", text_at(file)));
        (kind != 0).then_some((kind == 2, place))
    }

    /// A message of the kernel.
    pub(crate) fn say(&self, text: String) {
        let mut said = self.said.borrow_mut();
        if said.len() == SAID {
            said.remove(0);
        }
        said.push(text);
    }

    /// The base of GS of a CPU.
    pub(crate) fn gs_of(&self, cpu: u16) -> u64 {
        self.gs[cpu as usize]
    }

    fn forget_reports(&self) {
        self.reports.iter().for_each(Reports::forget);
    }

    /// A block of frames that are not the machine's, on a node: for what the allocator needs for itself.
    pub(crate) fn own_frames(&self, order: u32, node: u16) -> Option<u64> {
        let first = self.next_own.get().next_multiple_of(1 << order);
        let next = first + (1 << order);
        (next <= self.frames + OWN_FRAMES).then(|| {
            self.next_own.set(next);
            self.own_nodes.borrow_mut().resize((next - self.frames) as usize, node);
            first
        })
    }

    /// Whether a frame is one of those.
    pub(crate) fn is_own(&self, pfn: u64) -> bool {
        pfn >= self.frames
    }

    /// The address of a byte of a frame.
    #[inline]
    pub(crate) fn address_of(&self, pfn: u64, offset: u64) -> u64 {
        self.page_offset + (pfn << 12) + offset
    }

    /// The frame of an address, and the byte in it.
    #[inline]
    pub(crate) fn frame_of(&self, address: u64) -> (u64, u64) {
        let at = address - self.page_offset;
        (at >> 12, at & 4095)
    }

    /// What lies at an address; `None` for a place on a stack.
    #[inline]
    pub(crate) fn part_of(&self, address: u64) -> Option<Part> {
        let [_, pages, cpus, arena] = &self.areas;
        let within = |start: u64, bytes: u64| Some(address.wrapping_sub(start)).filter(|at| *at < bytes);
        if let Some(at) = within(self.page_offset, (self.frames + OWN_FRAMES) << 12) {
            let pfn = at >> 12;
            return Some(match pfn.checked_sub(self.frames) {
                None => Part::Frame(pfn as u32, (at & 4095) as u32),
                Some(own) => {
                    let node = self.own_nodes.borrow().get(own as usize).copied();
                    Part::Own(Part::key(1, at), node)
                }
            });
        }
        if let Some(at) = within(pages.start(), pages.bytes()) {
            let pfn = at / self.page_bytes;
            return Some(match pfn < self.frames {
                true => Part::StructPage(pfn as u32),
                false => Part::Own(Part::key(2, at), None),
            });
        }
        if let Some(at) = within(cpus.start(), cpus.bytes()) {
            return Some(Part::OfCpu(Part::key(3, at), (at / CPU_AREA) as u16));
        }
        let (first, end) = self.placed.span();
        let arena = within(arena.start(), arena.bytes()).map(|at| Part::key(4, at));
        let own = arena.or_else(|| within(first, end - first).map(|at| Part::key(5, at)));
        own.map(|key| Part::Own(key, None))
    }

    /// The frame whose struct page an address is in; `None` if it is in none.
    pub(crate) fn frame_of_struct_page(&self, address: u64) -> Option<u64> {
        let pfn = address.checked_sub(self.struct_pages)? / self.page_bytes;
        (pfn < self.frames + OWN_FRAMES).then_some(pfn)
    }
}

/// What an image gets while it boots, and when a cache is made: frames of its own, no lock that waits.
pub(crate) struct Booting<'a>(pub(crate) &'a Image);

impl Outside for Booting<'_> {
    fn pages_alloc(&self, _gfp: u32, order: u32, node: Option<u16>) -> Option<(u32, u16)> {
        // A node without memory gets that of another one, as from the machine's page allocator.
        let node = usize::from(node.unwrap_or(0));
        let node = self.0.nearest.get(node).copied().unwrap_or(0);
        Some((u32::try_from(self.0.own_frames(order, node)?).ok()?, node))
    }
    fn pages_free(&self, _pfn: u64, _order: u32) {}
    fn lock(&self, _lock: u64, _caller: u64) {}
    fn try_lock(&self, _lock: u64, _caller: u64) -> bool {
        true
    }
    fn unlock(&self, _lock: u64) {}
    fn after_grace_period(&self, _head: u64, _function: u64) {}
    fn barrier(&self) {}
    fn said(&self, kind: u32, text: String, caller: u64) {
        said(self.0, kind, text, caller);
    }
    fn jiffies(&self) -> u64 {
        self.0.clock.get()
    }
    fn random(&self) -> u32 {
        1
    }
    fn defer(&self, cpu: u16, work: u64, delay_ns: u64) {
        self.0.deferred.borrow_mut().push((cpu, work, delay_ns));
    }
    fn is_of(&self, _pfn: u64, _cache: u64) {}
    fn reported(&self) {
        self.0.forget_reports();
    }
}

/// Words of the kernel, from host_report: a message is kept, any other kind ends the call.
pub(crate) fn said(image: &Image, kind: u32, text: String, caller: u64) {
    let what = match kind {
        // A message begins with its level: a control character, a digit.
        0 => {
            return image.say(
                text.strip_prefix('\u{1}').map_or(&*text, |rest| rest.get(1..).unwrap_or("")).to_string(),
            );
        }
        4 => format!(
            "the tree calls {text}, which has no meaning here (docs/linux.md: \"your tree calls something new\")"
        ),
        _ => format!("panic: {text}"),
    };
    let chain = image.name_of(caller).into_iter().collect();
    call::found(Finding { what, place: None, said: Vec::new(), chain })
}

/// A text as C has it.
pub(crate) fn with_end(text: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
    bytes.push(0);
    bytes
}

/// The address of bytes, as an argument.
pub(crate) fn address(bytes: &[u8]) -> u64 {
    bytes.as_ptr().addr() as u64
}
