//! Which cache a row belongs to.
//!
//! A named cache is the directory its name is an alias of, if the dump says so. A kmalloc without a recorded
//! cache is the class of `bytes_alloc` (the recorded class wins over any rule), of the type its flags ask
//! for; above two pages it is page-backed. What a recording cannot tell (which random copy, which bucket set)
//! is one class here.

use super::before::{Before, CacheBefore};
use super::tuned::Tuned;
use crate::machine::Chosen;
use slablab_doctor::whatif::sheaves::{asked_capacity, is_without_sheaves};
use slablab_platform::Gfp;
use slablab_slabs::cache::WORD;
use slablab_slabs::engines::slab::{Management, SlabPolicy};
use slablab_slabs::kmalloc::{self, Class, KmallocConfig, KmallocRule, KmallocType};
use slablab_slabs::order::slab::{Orders, Shape};
use slablab_slabs::order::{MAX_ORDER, OrderInput};
use slablab_slabs::preset::Preset;
use slablab_slabs::{CacheFlags, CacheSpec};
use slablab_trace::{Metadata, NONE};

/// Where a row's object lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In this cache of the table.
    Cache(u32),
    /// In pages of its own: 2^order.
    Large(u8),
    /// Nowhere: its cache's objects are larger than the largest block of the machine.
    TooLarge,
    /// Unknown.
    Unknown,
}

/// A cache of the replay.
#[derive(Clone, Debug)]
pub struct CacheEntry {
    /// The kernel's name for it.
    pub name: String,
    /// Other names of it.
    pub aliases: Vec<String>,
    /// What engines are asked for.
    pub spec: CacheSpec,
    /// Bytes from one object to the next in the recording kernel.
    pub size: u32,
    /// Pages of a slab there, log2.
    pub order: u32,
    /// Objects of a slab there.
    pub objects: u32,
    /// Slabs that a CPU's partial list held there.
    pub cpu_partial: u32,
    /// Its row in the dump.
    pub before: Option<usize>,
    /// What the recording kernel's files say of it otherwise than the kernel's rules.
    pub tuned: Tuned,
}

impl CacheEntry {
    /// All names of it.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.name).chain(&self.aliases)
    }

    fn also_called(&mut self, name: &str) {
        if self.name != name && !self.aliases.iter().any(|alias| alias == name) {
            self.aliases.push(name.to_string());
        }
    }
}

/// Types of kmalloc caches that a recording can tell apart: by flags.
const TYPES: [KmallocType; 4] =
    [KmallocType::Normal, KmallocType::Reclaimable, KmallocType::Cgroup, KmallocType::Dma];

/// All caches of a replay, and how rows find them.
#[derive(Clone, Debug)]
pub struct CacheTable {
    /// The caches.
    pub entries: Vec<CacheEntry>,
    /// By the trace's cache id.
    by_id: Vec<Home>,
    /// By bytes / 8, then type.
    by_size: Vec<[u32; TYPES.len()]>,
    /// The normal kmalloc caches, smallest first.
    classes: Vec<u32>,
    /// Of the recording kernel, as all sizes are.
    page_shift: u32,
    /// Of the machine, which large kmallocs take pages of.
    machine_shift: u32,
    /// Page frames of the machine.
    frames: u64,
    kernel: Preset,
    kmalloc: KmallocRule,
    config: KmallocConfig,
    /// What the recording cannot tell about kmalloc caches, if this kernel has such.
    pub ambiguous: Option<String>,
    /// Caches whose row in the dump has numbers that no kernel has: it counts as not in the dump.
    pub damaged: Vec<String>,
}

impl CacheTable {
    /// The caches of a trace: those it names, and the kmalloc sizes it has.
    pub fn new(
        metadata: &Metadata,
        before: Option<&Before>,
        page_shift: u32,
        kernel: Preset,
        machine: &Chosen,
    ) -> CacheTable {
        let recorded_shift = metadata.page_size_bytes.map_or(page_shift, |bytes| bytes.max(1).ilog2());
        let mut table = CacheTable {
            entries: Vec::new(),
            by_id: Vec::new(),
            by_size: Vec::new(),
            classes: Vec::new(),
            page_shift: recorded_shift,
            machine_shift: page_shift,
            frames: machine.spec.nodes.iter().map(|node| node.bytes >> page_shift).sum(),
            kernel,
            kmalloc: KmallocRule::of(&kernel, recorded_shift),
            config: config_of(kernel, before),
            ambiguous: ambiguity(kernel, metadata),
            damaged: Vec::new(),
        };
        let geometry = |size: u32| recorded_geometry(kernel, size, recorded_shift, machine.recorded_cpus);
        for cache in &metadata.caches {
            let directory = cache.directory.as_deref().unwrap_or(&cache.name);
            let home = table.named(directory, &cache.name, cache.bytes_alloc, before, &geometry);
            table.by_id.push(home);
        }
        // Import lists the sizes there are; a trace of another program may have any.
        let sizes: Vec<u64> = match &metadata.import {
            Some(import) => import.kmalloc.iter().map(|cache| cache.bytes_alloc).collect(),
            None => table.kmalloc.class_sizes().map(u64::from).collect(),
        };
        for bytes in sizes.into_iter().filter(|bytes| *bytes > 0 && *bytes <= 2 << recorded_shift) {
            table.add_size(bytes as u32, before, &geometry);
        }
        table.add_classes(&geometry);
        table
    }

    /// The kmalloc caches that serve allocators' own metadata, those that no row uses included: empty at the
    /// start.
    fn add_classes(&mut self, geometry: &dyn Fn(u32) -> (u32, u32)) {
        for (index, bytes) in self.kmalloc.class_sizes().enumerate() {
            let name = self.kmalloc.name(KmallocType::Normal, index as u8).to_string();
            let found = self.entries.iter().position(|entry| entry.name == name);
            if found.is_none() && self.checked(bytes.into()).is_none() {
                continue;
            }
            let class = found.unwrap_or_else(|| {
                self.entries.push(entry_from_size(name, bytes, geometry));
                self.entries.len() - 1
            });
            self.classes.push(class as u32);
        }
    }

    /// Where the object of a row lives.
    #[inline]
    pub fn home(&self, cache: u32, bytes_alloc: u32, gfp: u32) -> Home {
        if cache != NONE {
            return self.by_id.get(cache as usize).copied().unwrap_or(Home::Unknown);
        }
        if bytes_alloc == 0 {
            return Home::Unknown;
        }
        let kind = match KmallocType::of(Gfp(gfp), &self.config) {
            KmallocType::Reclaimable => 1,
            KmallocType::Cgroup => 2,
            KmallocType::Dma => 3,
            KmallocType::Normal | KmallocType::Copy(_) | KmallocType::Bucket(_) => 0,
        };
        match self.by_size.get(bytes_alloc as usize / 8).map(|row| row[kind]) {
            Some(index) if index != NONE => Home::Cache(index),
            _ => {
                let pages = (bytes_alloc as u64).div_ceil(1 << self.machine_shift).max(1);
                Home::Large(pages.next_power_of_two().ilog2() as u8)
            }
        }
    }

    /// Size of an object in bytes, if a block of the machine holds it. Sizes come from files, and may be any
    /// numbers.
    fn checked(&self, bytes: u64) -> Option<u32> {
        let largest = 1u64 << (self.machine_shift + u32::from(MAX_ORDER));
        (bytes <= largest).then_some(bytes as u32)
    }

    fn named(
        &mut self,
        directory: &str,
        name: &str,
        bytes: u64,
        before: Option<&Before>,
        geometry: &dyn Fn(u32) -> (u32, u32),
    ) -> Home {
        let found = before.and_then(|before| before.find(directory).or_else(|| before.find(name)));
        let canonical = found.map_or(directory, |(_, cache)| cache.name.as_str());
        if let Some(index) = self.entries.iter().position(|entry| entry.name == canonical) {
            self.entries[index].also_called(name);
            return Home::Cache(index as u32);
        }
        if found.is_some_and(|(_, cache)| !cache.is_possible(self.frames)) {
            self.damaged.push(canonical.to_string());
        }
        let found = found.filter(|(_, cache)| cache.is_possible(self.frames));
        let size = found.map_or(0, |(_, cache)| cache.size);
        let Some(bytes) = self.checked(if size > 0 { size } else { bytes }) else { return Home::TooLarge };
        if found.is_none() && bytes == 0 {
            return Home::Unknown;
        }
        let entry = match found {
            Some((row, cache)) => entry_from_dump(cache, row, bytes),
            None => entry_from_size(canonical.to_string(), bytes, geometry),
        };
        let mut entry = entry;
        entry.also_called(name);
        // A dump of sysfs says the same; presets without sheaves ignore it.
        if entry.spec.sheaf_capacity == 0 {
            entry.spec.sheaf_capacity = asked_capacity(&entry.name);
        }
        entry.spec.flags = entry.spec.flags.with(CacheFlags::NO_SHEAVES, is_without_sheaves(&entry.name));
        if let Some((_, cache)) = found {
            entry.tuned = Tuned::of(cache, &self.kernel, 1 << self.page_shift);
        }
        self.entries.push(CacheEntry { cpu_partial: self.cpu_partial_slabs(&entry), ..entry });
        Home::Cache(self.entries.len() as u32 - 1)
    }

    /// The limit of a CPU's partial list in the recording kernel, slabs.
    fn cpu_partial_slabs(&self, entry: &CacheEntry) -> u32 {
        let Preset::Slub(policy) = self.kernel else { return 0 };
        if entry.tuned.debugged {
            return 0;
        }
        let objects = entry.tuned.slub(&policy).cpu_partial_of(entry.size, 1 << self.page_shift);
        objects.saturating_mul(2).div_ceil(entry.objects.max(1))
    }

    fn add_size(&mut self, bytes: u32, before: Option<&Before>, geometry: &dyn Fn(u32) -> (u32, u32)) {
        let row = bytes as usize / 8;
        if self.by_size.len() <= row {
            self.by_size.resize(row + 1, [NONE; TYPES.len()]);
        }
        for (column, kind) in TYPES.into_iter().enumerate() {
            let class = match self.kmalloc.class_recorded(bytes as u64, Some(bytes as u64)) {
                Class::Small(index) if self.kmalloc.class_size(index) == bytes => Some(index),
                // A class this kernel's rule does not have: the recorded one wins.
                Class::Small(_) | Class::Large(_) | Class::Zero => None,
            };
            let name =
                class.map_or(format!("kmalloc-{bytes}"), |index| self.kmalloc.name(kind, index).to_string());
            if let Home::Cache(index) = self.named(&name, &name, bytes.into(), before, geometry) {
                self.entries[index as usize].spec.flags |= CacheFlags::KMALLOC;
                self.by_size[row][column] = index;
            }
        }
    }
}

/// `size`: of an object with what is around it, from the dump if that says it. The dump's other numbers are
/// [possible](CacheBefore::is_possible).
fn entry_from_dump(cache: &CacheBefore, row: usize, size: u32) -> CacheEntry {
    let object_size = cache.object_size.map_or(size, |bytes| bytes.min(size.into()) as u32);
    let mut spec = CacheSpec::of_size(object_size.max(1));
    spec.known_size = size;
    spec.flags = cache.flags;
    spec.align = cache.align.unwrap_or(0) as u32;
    spec.sheaf_capacity = cache.sheaf_capacity as u32;
    CacheEntry {
        name: cache.name.clone(),
        aliases: cache.aliases.clone(),
        spec,
        size,
        order: cache.order as u32,
        objects: cache.objects as u32,
        cpu_partial: 0,
        before: Some(row),
        tuned: Tuned::default(),
    }
}

fn entry_from_size(name: String, bytes: u32, geometry: &dyn Fn(u32) -> (u32, u32)) -> CacheEntry {
    let (order, objects) = geometry(bytes);
    let spec = CacheSpec { known_size: bytes, ..CacheSpec::of_size(bytes) };
    CacheEntry {
        name,
        aliases: Vec::new(),
        spec,
        size: bytes,
        order,
        objects,
        cpu_partial: 0,
        before: None,
        tuned: Tuned::default(),
    }
}

/// Order and objects of a slab in the recording kernel, by its rule.
fn recorded_geometry(kernel: Preset, size: u32, page_shift: u32, cpus: u16) -> (u32, u32) {
    let policy = match kernel {
        Preset::Slub(policy) => policy,
        Preset::Slab(policy) => return slab_geometry(&policy, size, page_shift),
        Preset::Slqb(_) | Preset::Slob(_) | Preset::Registered(_) => {
            unreachable!("recordings are of SLUB and SLAB kernels")
        }
    };
    let input = OrderInput {
        size,
        page_shift,
        cpus: cpus as u32,
        min_order: policy.min_order,
        max_order: policy.max_order,
        min_objects: policy.min_objects.into(),
    };
    let order = policy.order.order(input);
    (order as u32, (input.slab_bytes(order) / size as u64) as u32)
}

/// Order and objects of a slab under SLAB, if a shrinker cannot free it.
fn slab_geometry(policy: &SlabPolicy, size: u32, page_shift: u32) -> (u32, u32) {
    let orders = Orders::of(false, policy.max_order);
    let found = match policy.management {
        Management::Descriptor => Shape::with_descriptor(size, WORD, page_shift, orders),
        Management::Index => Shape::with_index(size, size, page_shift, orders),
    };
    found.map_or((0, 1), |found| (found.shape.order as u32, found.shape.objects as u32))
}

/// Which types this kernel had: its rule, and where a dump shows it whether accounted kmallocs have caches of
/// their own.
fn config_of(kernel: Preset, before: Option<&Before>) -> KmallocConfig {
    let config = KmallocConfig::of(&kernel);
    let named = |before: &Before| before.caches.iter().any(|cache| cache.name.starts_with("kmalloc-cg-"));
    KmallocConfig { cgroup: before.map_or(config.cgroup, named), random_copies: 0, buckets: false, ..config }
}

/// Random copies and sets of buckets leave no trace in an event.
fn ambiguity(kernel: Preset, metadata: &Metadata) -> Option<String> {
    let is_set = |name: &str| metadata.config.get(name).is_some_and(|value| value == "y");
    let config = KmallocConfig {
        random_copies: if is_set("RANDOM_KMALLOC_CACHES") { kmalloc::RANDOM_COPIES } else { 0 },
        buckets: is_set("SLAB_BUCKETS"),
        ..KmallocConfig::of(&kernel)
    };
    let unknown = KmallocType::Normal.ambiguous(&config)?;
    Some(format!(
        "kmallocs of one size are one cache: which of {} copies and {} sets of buckets served is not in the \
         recording",
        unknown.copies, unknown.bucket_sets
    ))
}

impl CacheTable {
    /// The kmalloc cache that serves `bytes` of an allocator's own metadata.
    pub fn metadata_cache(&self, bytes: u32) -> Option<usize> {
        let fits = |index: &&u32| self.entries[**index as usize].spec.object_size >= bytes;
        self.classes.iter().find(fits).map(|index| *index as usize)
    }
}
