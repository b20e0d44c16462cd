//! What the tree's code reports, charged by the world; and what each of its functions cost.

use crate::build::blocks::PARTS;
use crate::image::reports::{Kind, Record};
use crate::image::{Image, Part};
use slablab_platform::{Charged, CpuId, NodeId, Pfn, Platform, Site, Step, Touch};
use slablab_slabs::FunctionCosts;
use std::cell::{Cell, RefCell};

/// Bytes of the smallest line.
const LINE: u64 = 64;

/// The page allocator's row: it is the model's.
const PAGES: &str = "(page allocator)";

/// What the functions of an image cost so far.
#[derive(Debug)]
pub(super) struct Costs {
    /// By the function's number; the page allocator's behind the last.
    functions: Box<[Cell<FunctionCosts>]>,
    /// Room for records that are taken.
    records: RefCell<Vec<Record>>,
    /// Parts of instructions that are not charged yet.
    rest: Cell<u64>,
}

/// Lines that the running call has touched since it was last charged. Nothing else runs meanwhile, so they
/// are in the CPU's first level: what is touched again costs its instruction and no more.
#[derive(Default)]
struct Recent([(u64, bool); 16]);

impl Recent {
    /// Whether the bytes are on a line that was touched, and written if they are written. If not, the line is
    /// touched now.
    fn has(&mut self, address: u64, bytes: u32, touch: Touch) -> bool {
        let (line, end) = (address / LINE + 1, (address + u64::from(bytes).max(1) - 1) / LINE + 1);
        if line != end {
            return false;
        }
        let known = &mut self.0[(line % 16) as usize];
        let (is_same, writes) = (known.0 == line, touch != Touch::Read);
        let has = is_same && (!writes || known.1) && touch != Touch::Exchange;
        *known = (line, writes || is_same && known.1);
        has
    }
}

impl Costs {
    pub(super) fn of(image: &Image) -> Costs {
        let count = image.reports.as_ref().map_or(0, |reports| reports.names.len());
        let functions = (0..=count).map(|_| Cell::default()).collect();
        Costs { functions, records: RefCell::default(), rest: Cell::new(0) }
    }

    fn add(&self, function: usize, change: impl FnOnce(&mut FunctionCosts)) {
        let mut costs = self.functions[function].get();
        change(&mut costs);
        self.functions[function].set(costs);
    }

    fn charged(&self, function: usize, charged: Charged) {
        self.add(function, |costs| {
            costs.ps += charged.ps;
            costs.lines += charged.lines;
        });
    }

    /// The running call took a lock within a function; it began at `since`, in nanoseconds.
    pub(super) fn locked<P: Platform>(&self, image: &Image, caller: u64, since: u64) {
        let Some(reports) = &image.reports else { return };
        let ps = P::now().saturating_sub(since) * 1000;
        self.add(reports.function_at(caller), |costs| {
            costs.ps += ps;
            costs.locks += 1;
            costs.lock_ps += ps;
        });
    }

    /// The page allocator served a request that began at `since`, in nanoseconds.
    pub(super) fn paged<P: Platform>(&self, since: u64) {
        let ps = P::now().saturating_sub(since) * 1000;
        self.add(self.functions.len() - 1, |costs| costs.ps += ps);
    }

    /// Calls `each` with the name of each function that cost something, and what it cost.
    pub(super) fn each(&self, image: &Image, each: &mut dyn FnMut(&str, FunctionCosts)) {
        let Some(reports) = &image.reports else { return };
        let names = reports.names.iter().map(String::as_str).chain([PAGES]);
        for (name, costs) in names.zip(&self.functions) {
            if costs.get() != FunctionCosts::default() {
                each(name, costs.get());
            }
        }
    }

    /// Charges instructions of a function.
    fn instructions<P: Platform>(&self, function: usize, parts: u64) {
        if parts > 0 {
            let parts = self.rest.get() + parts;
            self.rest.set(parts % PARTS);
            self.charged(function, P::ran(Step::Instruction, parts / PARTS));
        }
    }

    /// Charges what the code has reported.
    pub(super) fn charge<P: Platform>(&self, image: &Image) {
        let Some(reports) = &image.reports else { return };
        let mut records = self.records.borrow_mut();
        let [interrupts, exchanges] = reports.take(&mut records);
        let (mut function, mut parts, mut recent) = (0, 0, Recent::default());
        for record in records.iter() {
            let next = reports.function(*record);
            if next != function {
                self.instructions::<P>(function, std::mem::take(&mut parts));
                function = next;
            }
            let touch = match record.kind() {
                Kind::Block => {
                    parts += reports.instructions(*record);
                    continue;
                }
                Kind::Read => Touch::Read,
                Kind::Write => Touch::Write,
                Kind::Exchange => Touch::Exchange,
                Kind::Fill => Touch::Fill,
            };
            if recent.has(record.address, record.bytes(), touch) {
                continue;
            }
            if let Some(site) = site::<P>(image, record.address) {
                self.charged(function, P::touched(site, record.bytes(), touch));
            }
        }
        self.instructions::<P>(function, parts);
        for (step, times) in [(Step::Interrupts, interrupts), (Step::LocalExchange, exchanges)] {
            if times > 0 && !records.is_empty() {
                self.charged(function, P::ran(step, times));
            }
        }
    }
}

/// The world's site of an address of the image; `None` for a place on a stack, which is in registers without
/// reports.
#[inline]
pub(super) fn site<P: Platform>(image: &Image, address: u64) -> Option<Site> {
    Some(match image.part_of(address)? {
        Part::Frame(pfn, offset) => Site::Frame(Pfn(pfn), offset),
        Part::StructPage(pfn) => Site::Descriptor(Pfn(pfn)),
        Part::Own(key, node) => Site::Own(key, node.map_or_else(|| P::cpu_node(P::cpu()), NodeId)),
        Part::OfCpu(key, cpu) => Site::Own(key, P::cpu_node(CpuId(cpu))),
    })
}
