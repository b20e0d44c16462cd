//! What order rules say about sizes, without any machine: which sizes two rules give slabs of another order.
//!
//! A rule sees only the page size, the boot parameters and the bit length of the number of CPUs
//! ([`classes`]), so that all machines there are can be asked about in a moment. Whether a machine has a
//! cache of such a size is what `whatif` says.

use schemars::JsonSchema;
use serde::Serialize;
use slablab_slabs::order::{OrderInput, OrderRule};

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// The rule.
    pub rule: OrderRule,
    /// The rule to compare it with; `None` lists what the first one does.
    pub against: Option<OrderRule>,
    /// Bytes of a page, each a power of two of at least 4096.
    pub page_sizes: Vec<u64>,
    /// Numbers of CPUs.
    pub cpus: Vec<u32>,
    /// `slub_min_order`.
    pub min_order: u8,
    /// `slub_max_order`.
    pub max_order: u8,
    /// `slub_min_objects`; 0 computes it from the CPUs.
    pub min_objects: u32,
    /// Sizes of objects; `None` for every multiple of a word that a slab of `max_order` holds.
    pub sizes: Option<Sizes>,
}

/// Sizes of objects: from the first, in steps, to the last at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sizes {
    /// The smallest size, at least 1.
    #[serde(rename = "size_first_bytes")]
    pub first: u32,
    /// No size is larger.
    #[serde(rename = "size_last_bytes")]
    pub last: u32,
    /// From one size to the next, at least 1.
    #[serde(rename = "size_step_bytes")]
    pub step: u32,
}

/// What rules say on a machine of one page size and one number of CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Machine {
    /// Bytes of a page.
    #[serde(rename = "page_size_bytes")]
    pub page_size: u64,
    /// CPUs as asked.
    pub cpus: u32,
    /// Objects that SLUB's rules want in a slab.
    #[serde(rename = "objects_wanted")]
    pub wanted: u64,
    /// The sizes that were asked about.
    #[serde(flatten)]
    pub sizes: Sizes,
    /// How many sizes were asked about.
    #[serde(rename = "sizes")]
    pub count: u64,
    /// Sizes that get a larger order from the rule than from the one it is compared with.
    #[serde(rename = "sizes_up")]
    pub up: u64,
    /// Sizes that get a smaller order.
    #[serde(rename = "sizes_down")]
    pub down: u64,
    /// Runs of neighbouring sizes with the same orders. With a second rule, only the sizes that differ.
    pub runs: Vec<Run>,
}

/// Neighbouring sizes whose slabs have the same orders.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Run {
    /// The smallest size.
    #[serde(rename = "first_bytes")]
    pub first: u32,
    /// The largest size.
    #[serde(rename = "last_bytes")]
    pub last: u32,
    /// How many sizes there are.
    #[serde(rename = "sizes")]
    pub count: u64,
    /// Their slabs by the rule.
    pub slab: Slabs,
    /// Their slabs by the rule it is compared with.
    #[serde(rename = "slab_against")]
    pub against: Option<Slabs>,
}

/// Slabs of one order for neighbouring sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Slabs {
    /// log2 of the pages.
    pub order: u8,
    /// Objects in a slab of the smallest size.
    pub objects_first: u64,
    /// Objects in a slab of the largest size.
    pub objects_last: u64,
    /// Bytes that no object uses, of all slabs if every size has one.
    #[serde(rename = "tail_bytes")]
    pub tail: u64,
}

/// The largest number of CPUs that is asked about unless the user says more.
pub const CPUS_MOST: u32 = 4096;

/// One number of CPUs for each answer there can be, up to [`CPUS_MOST`]: the powers of two, each the least of
/// its class.
pub fn classes() -> impl Iterator<Item = u32> {
    (0..=CPUS_MOST.ilog2()).map(|bits| 1 << bits)
}

/// What the rules say for every page size and number of CPUs, in the order asked.
pub fn machines(question: &Question) -> Vec<Machine> {
    let one = |page_size| question.cpus.iter().map(move |cpus| one_machine(question, page_size, *cpus));
    question.page_sizes.iter().flat_map(|page_size| one(*page_size)).collect()
}

fn one_machine(question: &Question, page_size: u64, cpus: u32) -> Machine {
    let page_shift = page_size.ilog2();
    let input = |size| OrderInput {
        size,
        page_shift,
        cpus,
        min_order: question.min_order,
        max_order: question.max_order,
        min_objects: question.min_objects,
    };
    let largest = 1u32 << (page_shift + u32::from(question.max_order));
    let sizes = question.sizes.unwrap_or(Sizes { first: 8, last: largest, step: 8 });
    let wanted = input(sizes.first).wanted_objects();
    let mut machine = Machine { page_size, cpus, wanted, sizes, count: 0, up: 0, down: 0, runs: Vec::new() };
    for size in (sizes.first..=sizes.last).step_by(sizes.step as usize) {
        machine.count += 1;
        let slab = Slabs::of(question.rule, input(size));
        let against = question.against.map(|rule| Slabs::of(rule, input(size)));
        match against {
            Some(against) if against.order == slab.order => continue,
            Some(against) if against.order < slab.order => machine.up += 1,
            Some(_) => machine.down += 1,
            None => {}
        }
        let here = Run { first: size, last: size, count: 1, slab, against };
        match machine.runs.last_mut().filter(|run| run.goes_on(&here, sizes.step)) {
            Some(run) => run.add(&here),
            None => machine.runs.push(here),
        }
    }
    machine
}

impl Run {
    fn goes_on(&self, next: &Run, step: u32) -> bool {
        let orders = |run: &Run| (run.slab.order, run.against.map(|slabs| slabs.order));
        self.last + step == next.first && orders(self) == orders(next)
    }

    fn add(&mut self, next: &Run) {
        self.last = next.last;
        self.count += next.count;
        self.slab.add(&next.slab);
        if let (Some(against), Some(next)) = (&mut self.against, &next.against) {
            against.add(next);
        }
    }
}

impl Slabs {
    fn of(rule: OrderRule, input: OrderInput) -> Slabs {
        let order = rule.order(input);
        let objects = rule.objects(input, order);
        let tail = input.slab_bytes(order) - objects * u64::from(input.size);
        Slabs { order, objects_first: objects, objects_last: objects, tail }
    }

    fn add(&mut self, next: &Slabs) {
        self.objects_last = next.objects_last;
        self.tail += next.tail;
    }

    /// Percent of the slabs' bytes that no object uses, over `count` sizes.
    pub fn tail_percent(&self, page_size: u64, count: u64) -> f64 {
        100.0 * self.tail as f64 / ((page_size << self.order) * count) as f64
    }
}
