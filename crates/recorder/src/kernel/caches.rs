//! One cache: its slabs and sheaves, as they are now.
//!
//! ```text
//! read
//!   cpu slabs, chains, lists   which slab is where, in order
//!   slab                       each of them, and each that the pages showed: its free objects
//!   sheaves, barns             objects that are parked
//! ```
//! The kernel goes on. A slab is read until nothing of it changed meanwhile, and counted if that never comes.

use super::bpf::PIECE;
use super::btf::Field;
use super::layout::{Layout, SlabLayout};
use super::memory::{Memory, Pages};
use super::slab::Links;
use super::words::word_at;
use rustc_hash::FxHashSet;
use slablab_readers::slabs::{CacheSlabs, Parked, Sheaf, SlabPlace, SlabState};

/// Slabs, sheaves or caches of one list, at most: a list that changes may have no end.
const LIST_MAX: usize = 1 << 22;
/// Readings of a slab that changes.
const TRIES: u32 = 8;

/// What is the same for all caches.
pub(super) struct Machine {
    pub(super) layout: Layout,
    pub(super) pages: Pages,
    /// CPUs, and how far their parts are.
    pub(super) parts: Vec<(u16, u64)>,
    /// Nodes: their first frames, and the frames behind their last ones.
    pub(super) nodes: Vec<(u16, std::ops::Range<u64>)>,
}

/// `struct kmem_cache`, as far as it does not change.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    pub(super) address: u64,
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) object_size: u64,
    cpu_slab: Option<u64>,
    sheaves: Option<u64>,
    nodes: Vec<OfNode>,
    pub(super) links: LinksOf,
}

/// What it has of a node: addresses, 0 for what is not there.
#[derive(Clone, Copy, Debug)]
struct OfNode {
    node: u64,
    /// Its barn, where the cache has the address itself.
    barn: u64,
}

/// The links of its free objects.
pub(super) type LinksOf = (u64, u64, Option<u64>);

impl Cache {
    /// The cache at an address; `None` if none is there.
    pub(super) fn at(memory: &mut impl Memory, address: u64, layout: &Layout, nodes: usize) -> Option<Cache> {
        let fields = &layout.cache;
        let array = &fields.nodes;
        let bytes = fields.bytes.min(array.array + array.step * nodes as u64) as usize;
        let found = memory.bytes(address, bytes)?.to_vec();
        let word = |at: u64| word_at(&found, at);
        let half = |at: u64| word(at) as u32;
        let percpu = |at: Option<u64>| at.map(word).filter(|pointer| *pointer != 0);
        let size = u64::from(half(fields.size));
        let pad = fields.pad.map_or(0, |at| u64::from(half(at)));
        let links = (pad, u64::from(half(fields.link)), fields.random.map(word));
        let listed = (0..nodes as u64).map(|node| {
            let at = array.array + array.step * node;
            OfNode { node: word(at + array.node), barn: array.barn.map_or(0, |barn| word(at + barn)) }
        });
        let nodes = listed.collect();
        let name = memory.text(word(fields.name))?;
        (size > 0).then_some(Cache {
            address,
            name,
            size,
            object_size: u64::from(half(fields.object_size)),
            cpu_slab: percpu(fields.cpu_slab),
            sheaves: percpu(fields.sheaves),
            nodes,
            links,
        })
    }

    /// A slab and an object of it: they tell descriptions of pages from addresses. A CPU's slab, or
    /// of kernels without such slabs the first one of a node's list.
    pub(super) fn slab_and_object(
        &self,
        memory: &mut impl Memory,
        machine: (&Layout, &[(u16, u64)]),
    ) -> Option<(u64, u64)> {
        let (layout, parts) = machine;
        let Some(fields) = layout.cpu.as_ref() else {
            return self.nodes.iter().filter(|of| of.node != 0).find_map(|of| {
                let first = *entries(memory, of.node + layout.node.partial).first()?;
                let slab = first - layout.slab.list;
                Some((slab, memory.word(slab + layout.slab.freelist).filter(|object| *object != 0)?))
            });
        };
        parts.iter().find_map(|(_, part)| {
            let cpu = memory.bytes(self.cpu_slab?.wrapping_add(*part), fields.bytes as usize)?.to_vec();
            let (slab, object) = (word_at(&cpu, fields.slab), word_at(&cpu, fields.freelist));
            (slab != 0 && object != 0).then_some((slab, object))
        })
    }
}

/// A slab that is to be read: its description, and where it was found.
type Found = (u64, SlabPlace);

/// Descriptions of pages beside each other, read at once.
#[derive(Default)]
struct Piece {
    start: u64,
    bytes: Vec<u8>,
}

impl Piece {
    /// The description at `page`, as it was when this piece was read.
    fn at(&mut self, memory: &mut impl Memory, page: u64, fields: &SlabLayout) -> Option<&[u8]> {
        let length = PIECE as u64 / fields.bytes * fields.bytes;
        if self.bytes.is_empty() || !(self.start..self.start + length).contains(&page) {
            self.start = page - page % PIECE as u64;
            self.bytes = memory.bytes(self.start, length as usize).unwrap_or_default().to_vec();
        }
        self.bytes.get((page - self.start) as usize..)?.get(..fields.bytes as usize)
    }
}

/// One reading of a slab.
struct Reading {
    state: SlabState,
    /// Free objects of its own list are as many as it counts.
    agrees: bool,
    /// What changes when it changes.
    version: [u64; 4],
}

impl Machine {
    /// The slabs and sheaves of a cache; `seen`: descriptions of its slabs that the pages showed.
    pub(super) fn read(&self, memory: &mut impl Memory, cache: &Cache, seen: &[u64]) -> CacheSlabs {
        let mut slabs = CacheSlabs {
            name: cache.name.clone(),
            size: cache.size,
            object_size: cache.object_size,
            ..CacheSlabs::default()
        };
        let mut found = self.held(memory, cache);
        found.extend(self.listed(memory, cache));
        let placed: FxHashSet<u64> = found.iter().map(|(page, _)| *page).collect();
        let mut piece = Piece::default();
        for page in seen.iter().filter(|page| !placed.contains(page)) {
            match piece.at(memory, *page, &self.layout.slab).and_then(|found| self.full(cache, *page, found))
            {
                Some(full) => slabs.slabs.push(full),
                None => found.push((*page, SlabPlace::None)),
            }
        }
        let mut pages = FxHashSet::default();
        for (page, place) in found {
            if pages.insert(page)
                && let Some((state, settled)) = self.settled(memory, cache, (page, place))
            {
                slabs.slabs.push(state);
                slabs.unsettled += u64::from(!settled);
            }
        }
        let counted = self.counted(memory, cache);
        slabs.missed = counted.map_or(0, |counted| counted.saturating_sub(slabs.slabs.len() as u64));
        slabs.parked = self.parked(memory, cache);
        slabs
    }

    /// Slabs of CPUs: each CPU's own, and those of its partial list.
    fn held(&self, memory: &mut impl Memory, cache: &Cache) -> Vec<Found> {
        let (Some(fields), Some(cpu_slab)) = (&self.layout.cpu, cache.cpu_slab) else { return Vec::new() };
        let mut found = Vec::new();
        for (cpu, part) in &self.parts {
            let at = cpu_slab.wrapping_add(*part);
            if let Some(slab) = memory.word(at + fields.slab).filter(|slab| *slab != 0) {
                found.push((slab, SlabPlace::Cpu(*cpu)));
            }
            let mut next = fields.partial.and_then(|partial| memory.word(at + partial));
            while let Some(page) = next.filter(|page| *page != 0 && found.len() < LIST_MAX) {
                found.push((page, SlabPlace::Chain(*cpu)));
                next = self.layout.slab.next.and_then(|field| memory.word(page + field));
            }
        }
        found
    }

    /// Slabs of the nodes' lists.
    fn listed(&self, memory: &mut impl Memory, cache: &Cache) -> Vec<Found> {
        let mut found = Vec::new();
        for of in cache.nodes.iter().filter(|of| of.node != 0) {
            let head = of.node + self.layout.node.partial;
            let listed = entries(memory, head).into_iter();
            found.extend(listed.map(|at| (at - self.layout.slab.list, SlabPlace::List)));
        }
        found
    }

    /// Slabs of all nodes, as the kernel counts them.
    fn counted(&self, memory: &mut impl Memory, cache: &Cache) -> Option<u64> {
        let field = self.layout.node.slabs?;
        let nodes = cache.nodes.iter().filter(|of| of.node != 0);
        let counts = nodes.map(|of| memory.word(of.node + field));
        counts.sum()
    }

    /// A slab, read until nothing of it changed meanwhile. `None` if it is no slab of the cache any more.
    fn settled(&self, memory: &mut impl Memory, cache: &Cache, found: Found) -> Option<(SlabState, bool)> {
        let mut last = self.slab(memory, cache, found)?;
        for _ in 0..TRIES {
            if last.agrees && self.version(memory, cache, found) == Some(last.version) {
                return Some((last.state, true));
            }
            last = self.slab(memory, cache, found)?;
        }
        Some((last.state, false))
    }

    /// What changes when a slab does: its list, its objects in use, and its CPU's list and last operation.
    fn version(&self, memory: &mut impl Memory, cache: &Cache, found: Found) -> Option<[u64; 4]> {
        let fields = &self.layout.slab;
        let description = memory.bytes(found.0, fields.bytes as usize)?.to_vec();
        let (inuse, _) = self.counts(cache, &description)?;
        let (first, tid) = self.cpu_of(memory, cache, found).unwrap_or((0, 0));
        Some([word_at(&description, fields.freelist), inuse, first, tid])
    }

    /// Objects in use and all objects of the slab that a description is of; `None` for one of another cache.
    fn counts(&self, cache: &Cache, description: &[u8]) -> Option<(u64, u16)> {
        let fields = &self.layout.slab;
        let is_slab = fields.kind.is_none_or(|(at, kind)| description.get(at as usize) == Some(&kind));
        let bits = |field: Field| {
            let word = word_at(description, u64::from(field.bit / 64 * 8));
            word >> (field.bit % 64) & ((1 << field.bits) - 1)
        };
        let is_of_cache = is_slab && word_at(description, fields.cache) == cache.address;
        is_of_cache.then(|| (bits(fields.inuse), bits(fields.objects) as u16))
    }

    /// The slab at `page`, if its description says that it is full: one reading is enough then.
    fn full(&self, cache: &Cache, page: u64, description: &[u8]) -> Option<SlabState> {
        let (inuse, objects) = self.counts(cache, description)?;
        let is_full = word_at(description, self.layout.slab.freelist) == 0 && inuse == u64::from(objects);
        is_full.then(|| self.state(cache, page, SlabPlace::None, (objects, Vec::new())))
    }

    fn state(
        &self,
        cache: &Cache,
        page: u64,
        place: SlabPlace,
        (objects, free): (u16, Vec<u16>),
    ) -> SlabState {
        let frame = self.pages.frame(page);
        let order = self.order(cache.size, objects);
        SlabState { place, node: self.node(frame), frame, order, objects, free }
    }

    fn slab(&self, memory: &mut impl Memory, cache: &Cache, (page, place): Found) -> Option<Reading> {
        let fields = &self.layout.slab;
        let description = memory.bytes(page, fields.bytes as usize)?.to_vec();
        let (inuse, objects) = self.counts(cache, &description)?;
        // What a CPU has of its slab is on a list of its own.
        let cpu = self.cpu_of(memory, cache, (page, place));
        let place = match (place, cpu) {
            (SlabPlace::Cpu(_), None) => SlabPlace::None,
            _ => place,
        };
        let (first, tid) = cpu.unwrap_or((0, 0));
        let address = self.pages.address(page);
        let (pad, at, random) = cache.links;
        let links = Links { size: cache.size, pad, at, random };
        let own = word_at(&description, fields.freelist);
        let mut list = |first| links.walk(memory, (address, objects), first);
        let (mine, rest) = (list(first), list(own));
        let agrees = mine.is_some()
            && rest.as_ref().is_some_and(|rest| rest.len() as u64 + inuse == u64::from(objects));
        let mut free = mine.unwrap_or_default();
        for index in rest.unwrap_or_default() {
            if !free.contains(&index) {
                free.push(index);
            }
        }
        let state = self.state(cache, page, place, (objects, free));
        Some(Reading { state, agrees, version: [own, inuse, first, tid] })
    }

    /// The first object of a CPU's own list and the number of its last operation; `None` if the slab is not
    /// a CPU's, or not any more.
    fn cpu_of(&self, memory: &mut impl Memory, cache: &Cache, (page, place): Found) -> Option<(u64, u64)> {
        let SlabPlace::Cpu(cpu) = place else { return None };
        let fields = self.layout.cpu.as_ref()?;
        let part = self.parts.iter().find(|(number, _)| *number == cpu)?.1;
        let state = memory.bytes(cache.cpu_slab?.wrapping_add(part), fields.bytes as usize)?;
        let word = |at| word_at(state, at);
        (word(fields.slab) == page).then(|| (word(fields.freelist), word(fields.tid)))
    }

    /// The order of a slab by its objects: an allocation that failed falls back to a lower one.
    fn order(&self, size: u64, objects: u16) -> u8 {
        let fits = |order: &u8| (self.pages.page_bytes << order) / size >= u64::from(objects);
        (0..=10).find(fits).unwrap_or(10)
    }

    fn node(&self, frame: u64) -> u16 {
        self.nodes.iter().find(|(_, frames)| frames.contains(&frame)).map_or(0, |(node, _)| *node)
    }

    fn parked(&self, memory: &mut impl Memory, cache: &Cache) -> Vec<Parked> {
        let Some(fields) = &self.layout.sheaves else { return Vec::new() };
        let mut parked = Vec::new();
        let mut add = |memory: &mut _, sheaf, at| {
            let objects = self.objects_of(memory, at);
            if !objects.is_empty() {
                parked.push(Parked { sheaf, objects });
            }
        };
        for (cpu, part) in self.parts.iter().filter(|_| cache.sheaves.is_some()) {
            let at = cache.sheaves.unwrap_or(0).wrapping_add(*part);
            let of_cpu = [(Some(fields.main), Sheaf::Main(*cpu)), (Some(fields.spare), Sheaf::Spare(*cpu))];
            for (field, sheaf) in of_cpu.into_iter().chain([(fields.rcu, Sheaf::Rcu(*cpu))]) {
                if let Some(sheaf_at) = field.and_then(|field| memory.word(at + field)).filter(|at| *at != 0)
                {
                    add(memory, sheaf, sheaf_at);
                }
            }
        }
        for (number, of) in (0..).zip(&cache.nodes) {
            let barn = match self.layout.node.barn.filter(|_| of.node != 0) {
                Some(field) => memory.word(of.node + field),
                None => Some(of.barn),
            };
            let Some(barn) = barn.filter(|barn| *barn != 0) else { continue };
            for entry in entries(memory, barn + fields.full) {
                add(memory, Sheaf::Barn(number), entry - fields.in_barn);
            }
        }
        parked
    }

    /// The objects of a sheaf: the last one is handed out first.
    fn objects_of(&self, memory: &mut impl Memory, sheaf: u64) -> Vec<u64> {
        let Some(fields) = &self.layout.sheaves else { return Vec::new() };
        let count = memory.half(sheaf + fields.size).unwrap_or(0).min(4096) as usize;
        let Some(found) = memory.bytes(sheaf + fields.objects, 8 * count) else { return Vec::new() };
        (0..count as u64).rev().map(|at| word_at(found, 8 * at)).collect()
    }
}

/// The entries of a list of the kernel, as far as each points back to the one before.
fn entries(memory: &mut impl Memory, head: u64) -> Vec<u64> {
    let (mut before, mut found) = (head, Vec::new());
    let mut next = memory.word(head);
    while let Some(at) = next.filter(|at| *at != head && *at != 0 && found.len() < LIST_MAX) {
        let Some(links) = memory.bytes(at, 16).filter(|links| word_at(links, 8) == before) else { break };
        next = Some(word_at(links, 0));
        found.push(at);
        before = at;
    }
    found
}
