//! Random programs of operations through the allocator of a tree and through one of slablab's engines: every
//! counter and every number of slabs and objects is compared after each operation. For SLAB time passes, so
//! that timers run; of SLAB and SLOB those counters are compared that can be seen from outside, also while
//! CPUs go off and come back, and while nodes have no memory left.
//!
//! ```text
//! slablab linux build linux-6.1 --name deb61
//! cargo run --release -p slablab-linux --example oracle -- deb61 slub@6.1 20000
//! ```
//!
//! Further words are names of counters, or of fields of a usage, that are left out: what is known to differ.
//! With the word `bulk` programs also allocate and free many objects at once, and free after a grace period.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    oracle::main()
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod oracle {
    use slablab_engines::until_ended;
    use slablab_linux::build;
    use slablab_linux::engine::{Attributes, Linux, LinuxPolicy, Tree};
    use slablab_model::{Addr, Machine, MachineSpec, Model};
    use slablab_pages::{Pages, PagesPolicy};
    use slablab_platform::{CpuId, Event, FrameKind, Gfp, NodeId, Pfn, Time, Topology};
    use slablab_slabs::engines::slab::{SlabEngine, SlabPolicy};
    use slablab_slabs::engines::slob::Slob;
    use slablab_slabs::engines::slub::Slub;
    use slablab_slabs::registered::{Registration, Table};
    use slablab_slabs::{Backing, CacheId, CacheSpec, Common, Engine, Metadata, Preset, Release, Usage};
    use std::cell::RefCell;
    use std::error::Error;

    /// CPUs, nodes, and how many of the nodes have memory.
    const MACHINES: [(u16, u16, u16); 5] = [(1, 1, 1), (4, 1, 1), (16, 2, 2), (64, 8, 8), (64, 8, 2)];
    /// Bytes of an object.
    const SIZES: [u32; 4] = [32, 192, 1024, 4096];
    const SEEDS: [u64; 2] = [1, 2];

    /// An operation, and what is compared after it, in the order of [`Kind::names`].
    struct Seen {
        operation: String,
        numbers: Vec<u64>,
    }

    /// A program: a machine, a cache, and the seed of its operations.
    struct Program<'a> {
        machine: MachineSpec,
        size: u32,
        seed: u64,
        operations: u32,
        kind: &'a Kind,
    }

    /// A number of slabs or objects: its name, and how it is read.
    type Field = (&'static str, fn(&Usage) -> u64);

    /// What is compared of an allocator.
    struct Kind {
        events: Vec<Event>,
        fields: Vec<Field>,
        /// Whether time passes, and timers run.
        timers: bool,
        /// Whether numbers of each node are compared.
        by_node: bool,
        /// Whether programs have bulk operations.
        has_bulk: bool,
        /// Whether CPUs go off, and memory runs out.
        is_disturbed: bool,
    }

    /// Numbers of slabs and objects. `cpu_slabs` is left out: the tree's file of it leaves out CPUs that have
    /// partial slabs alone.
    const FIELDS: [Field; 9] = [
        ("slabs", |usage| usage.slabs),
        ("frames", |usage| usage.frames),
        ("total_objects", |usage| usage.total_objects),
        ("partial", |usage| usage.partial),
        ("free_in_partial", |usage| usage.free_in_partial),
        ("cpu_partial", |usage| usage.cpu_partial),
        ("active_objects", Usage::active_objects),
        ("shared_objects", |usage| usage.shared_objects),
        ("shared_bytes", |usage| usage.shared_bytes),
    ];

    impl Kind {
        fn new(events: &[Event], timers: bool, without: &[String]) -> Kind {
            let is_compared = |name: &str| !without.iter().any(|word| word == name);
            let counted = events.iter().copied().filter(|event| !event.is_of_model());
            Kind {
                events: counted.filter(|event| is_compared(event.name())).collect(),
                fields: FIELDS.into_iter().filter(|(name, _)| is_compared(name)).collect(),
                timers,
                by_node: !timers && events.len() > SLOB.len(),
                has_bulk: without.iter().any(|word| word == "bulk"),
                is_disturbed: false,
            }
        }

        /// The names of what is compared: events, numbers of the cache, and the same of each node.
        fn names(&self, nodes: u16) -> impl Iterator<Item = String> {
            let fields = || self.fields.iter().filter(|(name, _)| self.is_of_nodes(name));
            let of_node = move |node| fields().map(move |(name, _)| format!("{name} of node {node}"));
            let of_cache =
                self.events.iter().map(|event| event.name()).chain(self.fields.iter().map(|(name, _)| *name));
            of_cache.map(String::from).chain((0..nodes).flat_map(of_node))
        }

        /// Whether the tree says a number for each node: all that it says in files of a cache.
        fn is_of_nodes(&self, name: &str) -> bool {
            self.by_node && ["slabs", "total_objects", "partial", "free_in_partial"].contains(&name)
        }

        fn see<E: Engine<Model>>(&self, cache: &E, common: &E::Common) -> Vec<u64> {
            let usage = cache.usage();
            // Pages that caches share are no cache's.
            let usage = Usage { frames: usage.frames + common.held().frames, ..usage };
            let counts = self.events.iter().map(|event| cache.counted(*event));
            let mut numbers: Vec<u64> =
                counts.chain(self.fields.iter().map(|(_, field)| field(&usage))).collect();
            for node in (0..Model::nodes()).filter(|_| self.by_node) {
                let usage = cache.usage_on(NodeId(node));
                let fields = self.fields.iter().filter(|(name, _)| self.is_of_nodes(name));
                numbers.extend(fields.map(|(_, field)| field(&usage)));
            }
            numbers
        }

        /// What differs after an operation, and how both changed by it.
        fn difference(&self, nodes: u16, real: &[Seen], ours: &[Seen], at: usize) -> String {
            let numbers = self.names(nodes).zip(real[at].numbers.iter().zip(&ours[at].numbers)).enumerate();
            let change = |seen: &[Seen], index: usize| {
                let before = at.checked_sub(1).map_or(0, |before| seen[before].numbers[index]);
                seen[at].numbers[index].wrapping_sub(before) as i64
            };
            let (mut differ, mut changed) = (Vec::new(), Vec::new());
            for (index, (name, (of_real, of_ours))) in numbers {
                if of_real != of_ours {
                    differ.push(format!("{name} {of_real}, ours {of_ours}"));
                }
                let changes = (change(real, index), change(ours, index));
                if changes != (0, 0) {
                    changed.push(format!("{name} {:+} {:+}", changes.0, changes.1));
                }
            }
            format!("{} (changed by it, {})", differ.join("; "), changed.join("; "))
        }
    }

    /// Counters of SLAB that are seen from outside.
    const SLAB: [Event; 19] = [
        Event::AllocFastpath,
        Event::AllocSlowpath,
        Event::FreeFastpath,
        Event::FreeSlowpath,
        Event::AllocSlab,
        Event::FreeSlab,
        Event::SlabAllocHit,
        Event::SlabAllocMiss,
        Event::SlabFreeHit,
        Event::SlabFreeMiss,
        Event::SlabNodeAlloc,
        Event::SlabNodeFree,
        Event::SlabNodeOverflow,
        Event::SlabGrown,
        Event::SlabReaped,
        Event::SlabGrowTry,
        Event::SlabFallback,
        Event::LockNodeList,
        Event::LockAlien,
    ];
    /// Counters of SLOB that are seen from outside.
    const SLOB: [Event; 8] = [
        Event::AllocSlowpath,
        Event::FreeSlowpath,
        Event::AllocFromPartial,
        Event::FreeAddPartial,
        Event::FreeRemovePartial,
        Event::AllocSlab,
        Event::FreeSlab,
        Event::LockHeap,
    ];

    /// Memory of arrays: objects of a cache. Those of the reserve first: a tree makes arrays with the cache,
    /// a preset when it needs them, and memory may be short then.
    struct FromCache<'a, E: Engine<Model>>(&'a E, Backing<'a, Model, E::Common>, RefCell<Vec<Addr>>);

    impl<E: Engine<Model>> Metadata<Model> for FromCache<'_, E> {
        fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<Addr> {
            let new = || self.0.alloc(&self.1, gfp, None);
            (bytes <= self.0.geometry().object_size).then(|| self.2.borrow_mut().pop().or_else(new))?
        }
        fn free(&self, object: Addr) {
            let mut reserve = self.2.borrow_mut();
            if reserve.capacity() > 0 {
                return reserve.push(object);
            }
            self.0.free(&self.1, object).expect("an array is an object of its cache");
        }
    }

    pub(crate) fn main() -> Result<(), Box<dyn Error>> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let [name, preset, operations, without @ ..] = words.as_slice() else {
            return Err("expected the name of a build, a preset, a number of operations".into());
        };
        let operations: u32 = operations.parse()?;
        let built = build::find(name)?;
        let [major, minor, patch] = built.version.map(|part| part as u16);
        let release = Release::new(major, minor, patch);
        let tree = Tree {
            plain: built.plain(),
            instrumented: built.instrumented(),
            release,
            attributes: Attributes::default(),
        };
        let real = policy(Box::leak(Box::new(tree)))?;
        let ours = Preset::parse(preset).map_err(|error| format!("{preset}: {error}"))?;
        let kind = match ours {
            Preset::Slub(_) => Kind::new(Event::ALL, false, without),
            Preset::Slab(_) => Kind { is_disturbed: true, ..Kind::new(&SLAB, true, without) },
            Preset::Slob(_) => Kind { is_disturbed: true, ..Kind::new(&SLOB, false, without) },
            _ => return Err(format!("{preset}: expected a preset of slub, slab or slob").into()),
        };
        let (mut programs, mut differ) = (0, 0);
        for (cpus, nodes, with_memory) in MACHINES {
            for (size, seed) in SIZES.iter().flat_map(|size| SEEDS.map(|seed| (*size, seed))) {
                // So little that the program can take all of it.
                let bytes = if kind.is_disturbed { 64 << 20 } else { 64 << 30 };
                let mut machine = MachineSpec::uniform(cpus, nodes, bytes);
                machine.memoryless_nodes = false;
                machine.nodes[with_memory.into()..].iter_mut().for_each(|node| node.bytes = 0);
                let program = Program { machine, size, seed, operations, kind: &kind };
                let ours = match &ours {
                    Preset::Slub(policy) => program.run::<Slub<Model>>(policy),
                    Preset::Slab(policy) => {
                        let node_reap_ms = Some(program.node_reap_ms(&real)?);
                        program.run::<SlabEngine<Model>>(&SlabPolicy { node_reap_ms, ..*policy })
                    }
                    Preset::Slob(policy) => program.run::<Slob<Model>>(policy),
                    _ => Vec::new(),
                };
                let real = until_ended(|| program.run::<Linux<Model>>(&real));
                let found = (real.map_err(|slablab_engines::Ended(what)| what)?, ours);
                let first =
                    found.0.iter().zip(&found.1).position(|(real, ours)| real.numbers != ours.numbers);
                programs += 1;
                let Some(first) = first else { continue };
                differ += 1;
                println!(
                    "{cpus} CPUs, {nodes} nodes, {with_memory} with memory, {size} bytes, seed {seed}: differ after \
                     operation {first}, {}: {}",
                    found.0[first].operation,
                    kind.difference(nodes, &found.0, &found.1, first)
                );
            }
        }
        let all = u64::from(operations) * programs;
        println!(
            "{} of {} and {preset}: {differ} of {programs} programs differ in {all} operations",
            built.name, built.release
        );
        if differ == 0 { Ok(()) } else { Err("they differ".into()) }
    }

    /// The policies of a tree, as the grammar makes them.
    fn policy(tree: &'static Tree) -> Result<LinuxPolicy, Box<dyn Error>> {
        let tables: &'static [&'static Table] = Box::leak(Box::new([tree as &'static Table]));
        let registration = Registration::named::<LinuxPolicy>("linux:tree", tree.release, "", tables);
        match Preset::parse_among("linux:tree", &[Box::leak(Box::new(registration))]) {
            Ok(Preset::Registered(own)) => Ok(own.policy()),
            _ => Err("the engine is registered".into()),
        }
    }

    /// Marsaglia's xorshift.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % bound
        }
    }

    /// Goes to a CPU that is on.
    fn run_on_any(random: &mut Random) {
        let mut any = || CpuId(random.below(Model::cpus().into()) as u16);
        let cpu = any();
        Model::run_on(if Model::cpu_online(cpu) {
            cpu
        } else {
            std::iter::from_fn(|| Some(any())).find(|cpu| Model::cpu_online(*cpu)).expect("one is on")
        });
    }

    /// One time of 512 another CPU goes off or comes back, and one time a node has no memory left, or all
    /// have it back.
    fn disturb<E: Engine<Model>>(
        random: &mut Random,
        cache: &E,
        backing: &Backing<'_, Model, E::Common>,
        hoard: &mut Vec<Pfn>,
    ) -> Option<String> {
        match random.below(512) {
            0 => {
                let cpu = CpuId(random.below(Model::cpus().into()) as u16);
                if cpu == Model::cpu() {
                    return None;
                }
                let on = !Model::cpu_online(cpu);
                Model::set_online(cpu, on);
                if on {
                    cache.cpu_up(backing, cpu)
                } else {
                    cache.cpu_down(backing, cpu)
                }
                Some(format!("CPU {} goes {}", cpu.0, if on { "on" } else { "off" }))
            }
            1 if random.below(4) > 0 => {
                let node = NodeId(random.below(Model::nodes().into()) as u16);
                let taken = |order| {
                    backing.pages.alloc(
                        Gfp::ATOMIC | Gfp::MEMALLOC | Gfp::THISNODE,
                        order,
                        node,
                        FrameKind::Allocated,
                    )
                };
                hoard.extend([9, 0].into_iter().flat_map(|order| std::iter::from_fn(move || taken(order))));
                Some(format!("node {} has no memory left", node.0))
            }
            1 => {
                hoard.drain(..).for_each(|pfn| backing.pages.free(pfn));
                Some("the memory is back".into())
            }
            _ => None,
        }
    }

    impl Program<'_> {
        fn run<E: Engine<Model>>(&self, policy: &E::Policy) -> Vec<Seen> {
            let mut machine = Machine::new(self.machine.clone()).expect("a machine");
            machine.enter(|| {
                let pages = Pages::<Model>::new(PagesPolicy::for_release(6, 1, 0));
                let common = E::Common::default();
                let cache = E::create(CacheId(3), &CacheSpec::of_size(self.size), policy);
                let arrays = E::create(CacheId(4), &CacheSpec::of_size(4096), policy);
                let plain = Backing::new(&pages, &common);
                let (cpus, nodes) = (Model::cpus(), Model::nodes());
                let reserve = if self.kind.is_disturbed { 2 * cpus + nodes + nodes * nodes } else { 0 };
                let reserve = (0..reserve).filter_map(|_| arrays.alloc(&plain, Gfp::KERNEL, None));
                let metadata = FromCache(&arrays, plain, RefCell::new(reserve.collect()));
                let backing = Backing { metadata: Some(&metadata), ..plain };
                (0..Model::cpus()).for_each(|cpu| cache.cpu_up(&backing, CpuId(cpu)));
                self.operate(&[cache], &backing, &common)
            })
        }

        /// Allocations and frees on any CPU around a number of objects that changes; one allocation of 16
        /// asks for a node; one operation of 1000 is a shrink; for SLAB a millisecond passes with each.
        fn operate<E: Engine<Model>>(
            &self,
            [cache]: &[E; 1],
            backing: &Backing<'_, Model, E::Common>,
            common: &E::Common,
        ) -> Vec<Seen> {
            let mut random = Random(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
            let (mut held, mut wanted): (Vec<Addr>, usize) = (Vec::new(), 200);
            let mut seen = Vec::new();
            let mut hoard = Vec::new();
            for _ in 0..self.operations {
                if random.below(64) == 0 {
                    wanted = random.below(1200) as usize;
                }
                run_on_any(&mut random);
                // Sheaves are objects of other caches, which draw too: not as often in the tree as here.
                Model::draw(Some(random.below(1 << 32) as u32));
                if self.kind.is_disturbed
                    && let Some(operation) = disturb(&mut random, cache, backing, &mut hoard)
                {
                    seen.push(Seen { operation, numbers: self.kind.see(cache, common) });
                    run_on_any(&mut random);
                }
                let mut operation;
                if random.below(1000) == 0 {
                    cache.shrink(backing);
                    operation = format!("a shrink by CPU {}", Model::cpu().0);
                } else if self.kind.has_bulk && random.below(32) == 0 {
                    operation = self.operate_bulk(cache, backing, &mut random, &mut held, wanted);
                } else if held.len() < wanted {
                    let node = random.below(16) == 0;
                    let node = node.then(|| NodeId(random.below(Model::nodes().into()) as u16));
                    let gfp = if random.below(5) == 0 { Gfp::ATOMIC } else { Gfp::KERNEL };
                    let object = cache.alloc(backing, gfp, node);
                    assert!(object.is_some() || !hoard.is_empty(), "memory is left");
                    held.extend(object);
                    let asked = node.map_or(String::new(), |node| format!(" of node {}", node.0));
                    let failed = object.map_or(", which failed", |_| "");
                    operation = format!("an allocation{asked} by CPU {}{failed}", Model::cpu().0);
                } else if !held.is_empty() {
                    let object = held.swap_remove(random.below(held.len() as u64) as usize);
                    let node = Pages::<Model>::block_of(object).map_or(0, |(_, state)| state.node.0);
                    operation = format!("a free by CPU {} of an object of node {node}", Model::cpu().0);
                    cache.free(backing, object).expect("an object of the cache");
                } else {
                    operation = "nothing".into();
                }
                if self.kind.timers {
                    self.tick(cache, backing, &mut operation);
                }
                seen.push(Seen { operation, numbers: self.kind.see(cache, common) });
            }
            hoard.into_iter().for_each(|pfn| backing.pages.free(pfn));
            seen
        }

        /// Up to 60 allocations or frees at once, up to 60 frees after a grace period, or the end of one.
        fn operate_bulk<E: Engine<Model>>(
            &self,
            cache: &E,
            backing: &Backing<'_, Model, E::Common>,
            random: &mut Random,
            held: &mut Vec<Addr>,
            wanted: usize,
        ) -> String {
            let (kind, count) = (random.below(4), 1 + random.below(60) as usize);
            let cpu = Model::cpu().0;
            if kind == 0 {
                Model::advance_to(Model::now() + 60_000_000_000);
                while let Some((cpu, work)) = Model::next_due() {
                    if work.cache == 3 {
                        Model::run_on(cpu);
                        cache.work(backing, cpu, work);
                    }
                }
                return "the end of a grace period".into();
            }
            if held.len() < wanted || held.is_empty() {
                let mut out = vec![None; count];
                let got = cache.alloc_bulk(backing, Gfp::KERNEL, &mut out);
                held.extend(out.into_iter().take(got).flatten());
                return format!("an allocation of {count} objects by CPU {cpu}");
            }
            let objects: Vec<Addr> = (0..count.min(held.len()))
                .map(|_| held.swap_remove(random.below(held.len() as u64) as usize))
                .collect();
            if kind == 1 {
                for object in &objects {
                    if !cache.free_rcu(backing, *object).expect("an object of the cache") {
                        cache.free(backing, *object).expect("an object of the cache");
                    }
                }
                return format!("{} frees after a grace period by CPU {cpu}", objects.len());
            }
            cache.free_bulk(backing, &objects).expect("objects of the cache");
            format!("a free of {} objects by CPU {cpu}", objects.len())
        }

        /// When the tree visits the nodes of the cache first, from two intervals of its timers on: that
        /// depends on the address of its `struct kmem_cache`.
        fn node_reap_ms(&self, real: &LinuxPolicy) -> Result<u32, Box<dyn Error>> {
            let mut machine = Machine::new(self.machine.clone()).expect("a machine");
            let cache = || Linux::<Model>::create(CacheId(3), &CacheSpec::of_size(self.size), real);
            let ticks = machine.enter(|| until_ended(|| cache().number("next_reap")));
            let ticks = ticks.map_err(|slablab_engines::Ended(what)| what)?.unwrap_or(0);
            let ms =
                (ticks * 4).checked_sub(4000).ok_or("next_reap: the image was built by an older program")?;
            Ok(ms as u32)
        }

        /// A millisecond passes, and the timers run that each of both asked for.
        fn tick<E: Engine<Model>>(
            &self,
            cache: &E,
            backing: &Backing<'_, Model, E::Common>,
            operation: &mut String,
        ) {
            Model::advance_to(Model::now() + 1_000_000);
            while let Some((cpu, work)) = Model::next_due() {
                // What holds the arrays of a preset is not compared.
                if work.cache == 3 {
                    Model::run_on(cpu);
                    cache.work(backing, cpu, work);
                    *operation += &format!(", a timer of CPU {}", cpu.0);
                }
            }
        }
    }
}
