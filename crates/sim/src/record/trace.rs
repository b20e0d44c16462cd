//! Allocations as a trace of the functions that they enter, made from the events that engines count.
//!
//! ```text
//! begin(cpu, task, cache, at) ── event ── event ── nested(true) ── event ── nested(false) ── end(at, node)
//! ```
//!
//! The functions are those of SLAB in 2.6, as traced in the mail of September 2009:
//!
//! | event | function |
//! |---|---|
//! | an allocation begins | enters `__cache_alloc`, `__do_cache_alloc`, `____cache_alloc` |
//! | `allocmiss` | enters `cache_alloc_refill` |
//! | `grow_tries` | enters `cache_grow`, which fails (2) if the next event is not `alloc_slab` |
//! | `node_tries` | `cache_alloc_refill` failed (3); enters `____cache_alloc_node` |
//! | `fallback_alloc` | `____cache_alloc_node` goes on as `fallback_alloc` |
//! | a list outside of its slab is allocated | enters `____cache_alloc` inside `cache_grow` |
//!
//! An event has no end: a function ends at the first event that shows it. For other engines an allocation
//! enters `kmem_cache_alloc`, and each event is a line. Arrays that a CPU gets at its first use of a cache
//! are left out: a kernel makes them with the cache.

use crate::sched::TaskId;
use slablab_model::Ps;
use slablab_platform::{CpuId, Event, NodeId};
use std::collections::BTreeMap;

/// Flags of an allocation that may sleep, and of an attempt on one node: numbers of 2.6.29.
const GFP_KERNEL: u32 = 0xd0;
const GFP_EXACT: u32 = 0x4_12d0;

/// A line of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When.
    pub at: Ps,
    /// On which CPU.
    pub cpu: CpuId,
    /// Which task.
    pub task: TaskId,
    /// The function, or an event of an engine that is not SLAB.
    pub function: &'static str,
    /// 0 at its begin; at its end 1, or how it failed.
    pub misc: u32,
    /// The cache's number.
    pub cache: u16,
    /// The flags.
    pub gfp: u32,
    /// The node, where the function is given one.
    pub node: Option<NodeId>,
}

/// What a trace counts of a cache, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Allocations.
    pub allocations: u64,
    /// The most functions inside each other.
    pub depth_max: u32,
    /// Functions entered.
    pub calls: u64,
    /// The shortest, the longest and the sum of all allocations' times.
    pub shortest: Ps,
    /// The longest.
    pub longest: Ps,
    /// The sum.
    pub time: Ps,
    /// SLAB: refills of a CPU's array; else slow allocations.
    pub refills: u64,
    /// SLAB: attempts to make a slab; else slabs.
    pub grows: u64,
    /// SLAB: searches of other nodes.
    pub fallbacks: u64,
}

/// A trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Lines of the first allocations.
    pub lines: Vec<Line>,
    /// Counts of each cache, by its number.
    pub caches: BTreeMap<u16, Counts>,
    /// Names of the caches, by number.
    pub names: Vec<String>,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.shortest = match self.allocations {
            0 => other.shortest,
            _ => self.shortest.min(other.shortest),
        };
        self.longest = self.longest.max(other.longest);
        self.depth_max = self.depth_max.max(other.depth_max);
        self.allocations += other.allocations;
        self.calls += other.calls;
        self.time += other.time;
        self.refills += other.refills;
        self.grows += other.grows;
        self.fallbacks += other.fallbacks;
    }
}

impl Trace {
    /// The counts of all caches.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.caches.values().for_each(|counts| total.add(counts));
        total
    }
}

/// A function that an allocation is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    CacheAlloc,
    DoCacheAlloc,
    ArrayAlloc,
    Refill,
    Grow,
    Node,
    Fallback,
    /// A `____cache_alloc_node` whose last step is `fallback_alloc`: it has no end of its own.
    NodeBefore,
    Any,
}

impl Function {
    fn name(self) -> &'static str {
        match self {
            Function::CacheAlloc => "__cache_alloc",
            Function::DoCacheAlloc => "__do_cache_alloc",
            Function::ArrayAlloc => "____cache_alloc",
            Function::Refill => "cache_alloc_refill",
            Function::Grow => "cache_grow",
            Function::Node | Function::NodeBefore => "____cache_alloc_node",
            Function::Fallback => "fallback_alloc",
            Function::Any => "kmem_cache_alloc",
        }
    }
}

/// An allocation that has begun.
#[derive(Debug)]
struct Open {
    task: TaskId,
    cache: u16,
    begun: Ps,
    /// The CPU's node.
    own: NodeId,
    stack: Vec<Function>,
    /// Events of nested allocations for arrays are left out while this is above 0.
    left_out: u32,
    /// Its lines are kept.
    has_lines: bool,
    lines: Vec<Line>,
    counts: Counts,
}

/// Makes a trace.
#[derive(Debug)]
pub(crate) struct Tracer {
    is_slab: bool,
    /// Allocations whose lines are kept.
    most: u64,
    /// Allocations that began.
    begun: u64,
    open: Vec<Option<Open>>,
    trace: Trace,
}

impl Tracer {
    /// Keeps the lines of the first `most` allocations.
    pub(crate) fn new(most: u64) -> Tracer {
        Tracer { is_slab: false, most, begun: 0, open: Vec::new(), trace: Trace::default() }
    }

    /// A machine of so many CPUs, whose caches have these names, is traced.
    pub(crate) fn begin_machine(&mut self, is_slab: bool, cpus: u16, names: Vec<String>) {
        self.is_slab = is_slab;
        self.open = (0..cpus).map(|_| None).collect();
        self.trace.names = names;
    }

    /// Drops what was traced so far.
    pub(crate) fn restart(&mut self) {
        self.begun = 0;
        self.trace.lines.clear();
        self.trace.caches.clear();
    }

    pub(crate) fn take(&mut self) -> Trace {
        std::mem::take(&mut self.trace)
    }

    /// An allocation begins; `own` is the CPU's node.
    pub(crate) fn begin(&mut self, cpu: CpuId, task: TaskId, cache: u16, at: Ps, own: NodeId) {
        let functions: &[Function] = match self.is_slab {
            true => &[Function::CacheAlloc, Function::DoCacheAlloc, Function::ArrayAlloc],
            false => &[Function::Any],
        };
        let counts = Counts { allocations: 1, ..Counts::default() };
        let has_lines = self.begun < self.most;
        self.begun += 1;
        let (stack, lines) = (Vec::new(), Vec::new());
        let mut open = Open { task, cache, begun: at, own, stack, left_out: 0, has_lines, lines, counts };
        functions.iter().for_each(|function| open.enter(*function, cpu, at));
        self.open[cpu.0 as usize] = Some(open);
    }

    /// An engine counted an event on a CPU.
    pub(crate) fn event(&mut self, cpu: CpuId, event: Event, at: Ps) {
        let Some(Some(open)) = self.open.get_mut(cpu.0 as usize) else { return };
        match self.is_slab {
            true => open.slab_event(cpu, event, at),
            false => open.other_event(cpu, event, at),
        }
    }

    /// An allocation inside the one of this CPU begins or ends.
    pub(crate) fn nested(&mut self, cpu: CpuId, begins: bool, at: Ps) {
        let Some(Some(open)) = self.open.get_mut(cpu.0 as usize) else { return };
        match begins {
            true if open.left_out > 0 || open.stack.last() != Some(&Function::Grow) => open.left_out += 1,
            true => open.enter(Function::ArrayAlloc, cpu, at),
            false if open.left_out > 0 => open.left_out -= 1,
            false => {
                while open.stack.last().is_some_and(|function| *function != Function::ArrayAlloc) {
                    open.leave(cpu, 1, at);
                }
                open.leave(cpu, 1, at);
            }
        }
    }

    /// The allocation of this CPU ends; `node` is that of the object.
    pub(crate) fn end(&mut self, cpu: CpuId, at: Ps, node: NodeId) {
        let Some(mut open) = self.open[cpu.0 as usize].take() else { return };
        while !open.stack.is_empty() {
            open.leave(cpu, 1, at);
        }
        // Where the mail's functions name the node of the object.
        let of_node = |line: &&mut Line| {
            let function = line.function;
            function == Function::Node.name() || (function == Function::Fallback.name() && line.misc > 0)
        };
        if open.counts.fallbacks > 0 {
            open.lines.iter_mut().rev().filter(of_node).take(3).for_each(|line| line.node = Some(node));
        } else {
            // Where the slab is that it made.
            let grows = open.lines.iter_mut().filter(|line| line.function == Function::Grow.name());
            grows.for_each(|line| line.node = Some(node));
        }
        let time = at - open.begun;
        let counts = Counts { shortest: time, longest: time, time, ..open.counts };
        self.trace.caches.entry(open.cache).or_default().add(&counts);
        self.trace.lines.append(&mut open.lines);
    }
}

impl Open {
    fn line(&mut self, function: &'static str, misc: u32, gfp: u32, cpu: CpuId, at: Ps) {
        if self.has_lines {
            let (task, cache) = (self.task, self.cache);
            self.lines.push(Line { at, cpu, task, function, misc, cache, gfp, node: None });
        }
    }

    /// A line of a function that the innermost one calls.
    fn called(&mut self, function: Function, misc: u32, cpu: CpuId, at: Ps) {
        let in_fallback = self.stack.last() == Some(&Function::Fallback);
        let exact = match function {
            Function::Grow => !in_fallback,
            Function::Node => in_fallback,
            _ => false,
        };
        self.line(function.name(), misc, if exact { GFP_EXACT } else { GFP_KERNEL }, cpu, at);
        // The functions that are given a node are given the CPU's, until the search of others.
        if let (Function::Grow | Function::Node, false, Some(line)) =
            (function, in_fallback, self.lines.last_mut())
            && self.has_lines
        {
            line.node = Some(self.own);
        }
    }

    fn enter(&mut self, function: Function, cpu: CpuId, at: Ps) {
        self.called(function, 0, cpu, at);
        self.stack.push(function);
        self.counts.calls += 1;
        self.counts.depth_max = self.counts.depth_max.max(self.stack.len() as u32);
    }

    fn leave(&mut self, cpu: CpuId, misc: u32, at: Ps) {
        let function = self.stack.pop();
        if let Some(function) = function.filter(|function| *function != Function::NodeBefore) {
            self.called(function, misc, cpu, at);
        }
    }

    /// Leaves the innermost function if it is this one.
    fn leave_if(&mut self, function: Function, cpu: CpuId, misc: u32, at: Ps) {
        if self.stack.last() == Some(&function) {
            self.leave(cpu, misc, at);
        }
    }

    fn slab_event(&mut self, cpu: CpuId, event: Event, at: Ps) {
        if self.left_out > 0 {
            return;
        }
        match event {
            Event::SlabAllocMiss => {
                self.counts.refills += 1;
                self.enter(Function::Refill, cpu, at);
            }
            Event::AllocSlab => self.leave_if(Function::Grow, cpu, 1, at),
            Event::SlabGrowTry => {
                self.leave_if(Function::Grow, cpu, 2, at);
                self.counts.grows += 1;
                self.enter(Function::Grow, cpu, at);
            }
            Event::SlabNodeTry => {
                self.leave_if(Function::Grow, cpu, 2, at);
                self.leave_if(Function::Refill, cpu, 3, at);
                self.leave_if(Function::ArrayAlloc, cpu, 1, at);
                self.leave_if(Function::Node, cpu, 2, at);
                self.enter(Function::Node, cpu, at);
            }
            Event::SlabFallback => {
                self.leave_if(Function::Grow, cpu, 2, at);
                self.counts.fallbacks += 1;
                if let Some(last) = self.stack.last_mut().filter(|last| **last == Function::Node) {
                    *last = Function::NodeBefore;
                }
                self.enter(Function::Fallback, cpu, at);
            }
            _ => {}
        }
    }

    fn other_event(&mut self, cpu: CpuId, event: Event, at: Ps) {
        match event {
            Event::AllocFastpath => return,
            Event::AllocSlowpath => self.counts.refills += 1,
            Event::AllocSlab => self.counts.grows += 1,
            _ => {}
        }
        self.line(event.name(), 0, GFP_KERNEL, cpu, at);
    }
}
