//! Replay of programs small enough to count by hand, and what must hold of every replay.
//!
//! A program is text, an expectation is text ([`check`]); real recordings are in `real.rs`.

use slablab_lab::machine::MachineFile;
use slablab_lab::output::{caches_csv, replay_json};
use slablab_lab::replay::before::Before;
use slablab_lab::replay::outcome::Outcome;
use slablab_lab::replay::{Options, Replay, replay};
use slablab_platform::{Event, Gfp};
use slablab_slabs::preset::Preset;
use slablab_slabs::wrap::Choice;
use slablab_workloads::{
    ANY_NODE, CacheCounts, EventKind, Import, Metadata, NONE, Reader, Row, Writer, flags,
};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

#[path = "replay/debugged.rs"]
mod debugged;
#[path = "replay/hotplug.rs"]
mod hotplug;

/// What holds of every engine is tested on every preset there is.
static PRESETS: LazyLock<Vec<&str>> =
    LazyLock::new(|| Preset::all().map(|preset| &*preset.to_string().leak()).collect());

/// Where the recorded kernel's linear map begins.
const LINEAR_MAP: u64 = 0xffff_8880_0000_0000;
/// Objects of this number and above were in slabs before the recording; the pages of others are allocated in it.
const FIRST_OLD: u32 = 1000;

/// A trace being written from a program.
struct Recorder {
    writer: Writer<Vec<u8>>,
    row: Row,
    /// Name and size, at the cache's id.
    caches: Vec<(String, u32)>,
    sizes: Vec<u32>,
    /// 64 KiB blocks whose pages have a row.
    pages: HashSet<u64>,
    /// An object's dense id, by its address.
    ids: HashMap<u64, u32>,
    lost: u64,
}

impl Recorder {
    fn push(&mut self, row: Row) {
        self.row.time_ns += 1000;
        let row = Row { time_ns: self.row.time_ns, cpu: self.row.cpu, ..row };
        self.writer.push(&row).expect("memory");
    }

    /// The cache called `name`; a number is a kmalloc size.
    fn home(&mut self, name: &str) -> (u32, u32) {
        if let Some(id) = self.caches.iter().position(|cache| cache.0 == name) {
            return (id as u32, self.caches[id].1);
        }
        let size = name.parse().unwrap_or_else(|_| panic!("{name} is neither a cache nor a size"));
        if !self.sizes.contains(&size) {
            self.sizes.push(size);
        }
        (NONE, size)
    }

    /// Every size and cache has a GiB of addresses.
    fn address(cache: u32, size: u32, object: u32) -> u64 {
        let region = if cache == NONE { 100 + size.ilog2() as u64 } else { cache as u64 + 1 };
        LINEAR_MAP + (region << 30) + object as u64 * size as u64
    }

    fn object(&mut self, event: EventKind, home: &str, object: u32, flags: u8, gfp: u32, node: i16) {
        let (cache, size) = self.home(home);
        let address = Recorder::address(cache, size, object);
        let (kmalloc, alloc) = (cache == NONE, event.is_alloc());
        if alloc && object < FIRST_OLD && self.pages.insert(address >> 16) {
            let pfn = ((address >> 16 << 16) - LINEAR_MAP) as i64 >> 12;
            let pages = Row { event: EventKind::PageAlloc as u8, pfn, order: 4, ..Row::default() };
            self.push(pages);
        }
        let event = match event {
            EventKind::CacheAlloc if kmalloc => EventKind::Kmalloc,
            EventKind::CacheFree if kmalloc => EventKind::Kfree,
            event => event,
        };
        let next = self.ids.len() as u32;
        let id = *self.ids.entry(address).or_insert(next);
        // A free has what its allocation had; one of an unseen object knows neither size nor flags.
        let known = if flags & flags::UNSEEN != 0 && kmalloc { 0 } else { size };
        self.push(Row {
            event: event as u8,
            address,
            object: id,
            cache,
            bytes_req: known,
            bytes_alloc: known,
            gfp,
            node,
            flags,
            ..Row::default()
        });
    }

    /// `CPU VERB HOME OBJECTS`, where objects are `3` or `0-31`; see the arms.
    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let range = |text: &str| -> std::ops::RangeInclusive<u32> {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            first.parse().expect("a number")..=last.parse().expect("a number")
        };
        if let [cpu, ..] = words[..]
            && let Ok(cpu) = cpu.parse()
        {
            self.row.cpu = cpu;
        }
        match words[..] {
            ["cache", name, size] => {
                self.writer.texts().cache.id(name);
                self.caches.push((name.into(), size.parse().expect("a size")));
            }
            ["mark", kind, cache] => {
                let call_site = self.writer.texts().call_site.id(&format!("{kind} {cache}"));
                self.push(Row { event: EventKind::Mark as u8, call_site, ..Row::default() });
            }
            ["lost", events] => {
                self.lost += 1;
                let address = events.parse().expect("a number");
                self.push(Row { event: EventKind::Lost as u8, address, ..Row::default() });
            }
            ["wait", ns] => self.row.time_ns += ns.parse::<u64>().expect("nanoseconds"),
            [_, "kfree", "null"] => {
                self.push(Row { event: EventKind::Kfree as u8, flags: flags::NULL, ..Row::default() });
            }
            [_, "kfree", "zero"] => self.push(Row {
                event: EventKind::Kfree as u8,
                flags: flags::ZERO_SIZE,
                address: 16,
                ..Row::default()
            }),
            [_, verb, home, objects, ref rest @ ..] => {
                let gfp = match rest.first() {
                    Some(&"reclaimable") => Gfp::KERNEL | Gfp::RECLAIMABLE,
                    Some(&"account") => Gfp::KERNEL | Gfp::ACCOUNT,
                    Some(&"dma") => Gfp::KERNEL | Gfp::DMA,
                    _ => Gfp::KERNEL,
                };
                let node = rest.first().and_then(|word| word.strip_prefix("node")).map(|node| node.parse());
                let node = node.map_or(ANY_NODE, |node| node.expect("a node"));
                let (event, flags) = match verb {
                    "alloc" => (EventKind::CacheAlloc, 0),
                    "free" => (EventKind::CacheFree, 0),
                    "implied" => (EventKind::ImpliedFree, 0),
                    "unseen" => (EventKind::CacheFree, flags::UNSEEN),
                    "again" => (EventKind::CacheFree, flags::UNSEEN | flags::FREED_BEFORE),
                    other => panic!("{other} is no verb"),
                };
                for object in range(objects) {
                    self.object(event, home, object, flags, gfp.0, node);
                }
            }
            _ => panic!("{line:?} is no line of a program"),
        }
    }
}

/// Opens a trace, from a file that has no name any more.
fn open(trace: &[u8]) -> Reader {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("replay-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, trace).expect("a file can be written");
    let reader = Reader::open(&path).expect("just written");
    std::fs::remove_file(&path).expect("just written");
    reader
}

/// The trace of a program, recorded on `release`.
fn trace(release: &str, program: &str) -> Reader {
    open(&record(release, program, 1 << 18))
}

fn record(release: &str, program: &str, group_rows: usize) -> Vec<u8> {
    let mut recorder = Recorder {
        writer: Writer::new(Vec::new()).expect("memory").with_group_rows(group_rows),
        row: Row::default(),
        caches: Vec::new(),
        sizes: Vec::new(),
        pages: HashSet::new(),
        ids: HashMap::new(),
        lost: 0,
    };
    program.split(';').map(str::trim).filter(|line| !line.is_empty()).for_each(|line| recorder.line(line));
    let counts = |name: &str, bytes: u32| CacheCounts {
        name: name.into(),
        bytes_alloc: bytes.into(),
        ..CacheCounts::default()
    };
    let mut metadata = Metadata {
        release: Some(release.into()),
        page_size_bytes: Some(4096),
        caches: recorder.caches.iter().map(|(name, size)| counts(name, *size)).collect(),
        import: Some(Import {
            linear_map: Some(LINEAR_MAP),
            kmalloc: recorder.sizes.iter().map(|size| counts("", *size)).collect(),
            ..Import::default()
        }),
        ..Metadata::default()
    };
    metadata.losses.records = recorder.lost;
    recorder.writer.finish(metadata).expect("memory").0
}

fn presets(texts: &[&str]) -> Vec<Choice> {
    texts.iter().map(|text| Choice::parse(text).expect("a preset")).collect()
}

fn machine(toml: &str) -> MachineFile {
    toml::from_str(toml).expect("a machine file")
}

fn run(reader: &Reader, options: &Options) -> Replay {
    replay(reader, Path::new("program"), options, &|_, _| {}).expect("a program can be replayed")
}

/// Replays `program` with `options` and compares: `expected` has lines of a cache's name, or `total`, or `pages`, with the
/// keys of the JSON answer and of its counters. A counter that is not there is 0.
#[track_caller]
fn check_with(program: &str, release: &str, options: &Options, expected: &str) {
    let answer = replay_json(&run(&trace(release, program), options));
    let engine = &answer["engines"][0];
    for line in expected.split(';').map(str::trim).filter(|line| !line.is_empty()) {
        let (place, figures) = line.split_once(": ").expect("place: key=number");
        let caches = engine["caches"].as_array().expect("a list");
        let object = match place {
            "total" | "pages" => &engine[place],
            name => caches
                .iter()
                .find(|cache| cache["cache"] == name)
                .unwrap_or_else(|| panic!("no cache {name} in {caches:#?}")),
        };
        let found = figures.split_whitespace().map(|figure| {
            let (key, _) = figure.split_once('=').expect("key=number");
            let value = object.get(key).or_else(|| object["counters"].get(key));
            format!("{key}={}", value.map_or("0".into(), |value| value.to_string()))
        });
        let found: Vec<String> = found.collect();
        assert_eq!(
            found,
            figures.split_whitespace().collect::<Vec<_>>(),
            "{place} of {}; all of it: {object:#}",
            engine["engine"]
        );
    }
}

/// Under slub@6.1, on the machine of the recording.
#[track_caller]
fn check(program: &str, expected: &str) {
    let options = Options { engines: presets(&["slub@6.1"]), ..Options::default() };
    check_with(program, "6.1.0", &options, expected);
}

#[test]
fn allocations() {
    // 16 objects in a page: the first of each slab is slow.
    check(
        "cache filp 256; 0 alloc filp 0-31",
        "filp: allocs=32 alloc_fastpath=30 alloc_slowpath=2 alloc_slab=2 slabs=2 objects=32 slab_bytes=8192;
         total: allocs=32 frees=0 slabs_taken=2 slabs_taken_order_0=2 slab_start_bytes=0 slab_end_bytes=8192
                live_bytes=8192 parked_bytes=0 free_bytes=0 tail_bytes=0",
    );
    // What the CPU slab has left is parked; the kernel counts it as active.
    check(
        "cache filp 256; 0 alloc filp 0-19",
        "filp: objects=32 live_objects=20 parked_objects=12 parked_bytes=3072 free_bytes=0;
         total: live_bytes=5120 parked_bytes=3072",
    );
    // 13 objects of 312 bytes leave 40.
    check(
        "cache dentry 312; 0 alloc dentry 0",
        "dentry: objs_per_slab=13 tail_bytes=40; total: tail_bytes=40",
    );
    // A CPU each.
    check(
        "cache filp 256; 0 alloc filp 0; 1 alloc filp 1",
        "filp: alloc_slowpath=2 slabs=2 parked_objects=30",
    );
}

#[test]
fn frees() {
    // The second slab is the CPU's: 16 fast frees. The first was full: its first free brings it to the CPU's partial list,
    // where the other 15 find it frozen.
    check(
        "cache filp 256; 0 alloc filp 0-31; 0 free filp 0-31",
        "filp: frees=32 free_fastpath=16 free_slowpath=16 free_frozen=15 cpu_partial_free=1 free_slab=0 slabs=2
               live_objects=0 parked_objects=32;
         total: frees_other_cpu=0 slabs_returned=0",
    );
    // Nothing is fast for the other CPU: the second slab is the first CPU's, the first becomes its own partial slab.
    check(
        "cache filp 256; 0 alloc filp 0-31; 1 free filp 0-31",
        "filp: frees=32 free_fastpath=0 free_slowpath=32 free_frozen=31 cpu_partial_free=1 frees_other_cpu=32",
    );
    // And CPU 0 finds what was freed into its slab when its own list is empty: one refill.
    check(
        "cache filp 256; 0 alloc filp 0-15; 1 free filp 0-7; 0 alloc filp 16-23",
        "filp: alloc_refill=1 alloc_slab=1 alloc_fastpath=22 alloc_slowpath=2 frees_other_cpu=8 live_objects=16",
    );
}

#[test]
fn objects_from_before() {
    // Of a slab of 16, of which nothing else is known: the others stay.
    check(
        "cache filp 256; 0 unseen filp 1003",
        "filp: slabs_start=1 objects_start=16 frees=1 frees_old=1 allocs=0 live_objects=15; total: frees_old=1",
    );
    // First freed, then allocated, freed and allocated again: one old free.
    check(
        "cache filp 256; 0 unseen filp 1003; 0 alloc filp 1003; 0 free filp 1003; 0 alloc filp 1003",
        "filp: objects_start=16 allocs=2 frees=2 frees_old=1 live_objects=16 allocs_assumed=0",
    );
    // First allocated: it was free, in the CPU's slab.
    check(
        "cache filp 256; 0 alloc filp 1003; 0 alloc filp 1004",
        "filp: slabs_start=1 live_objects=16 allocs=2 alloc_fastpath=2 alloc_slab=0",
    );
    // A kfree that knows nothing: the neighbour in the slab tells. Object 1008 was in the same page.
    check("0 alloc 256 1008; 0 unseen 256 1009", "kmalloc-256: frees=1 frees_old=1; total: frees_unknown=0");
    check("0 unseen 256 1009", "total: frees_unknown=1 frees=0");
}

#[test]
fn what_is_not_in_the_recording() {
    // Allocated by a path without events between two frees.
    check(
        "cache filp 256; 0 alloc filp 0; 0 free filp 0; 0 again filp 0",
        "filp: allocs=2 frees=2 allocs_assumed=1 frees_old=0 live_objects=0; total: allocs_assumed=1",
    );
    check(
        "cache filp 256; 0 unseen filp 1000; 0 again filp 1000",
        "filp: allocs=1 frees=2 frees_old=1 allocs_assumed=1 live_objects=15",
    );
    // Freed by a path without events.
    check(
        "cache filp 256; 0 alloc filp 0; 0 implied filp 0; 0 alloc filp 0",
        "filp: allocs=2 frees=1 frees_implied=1 live_objects=1; total: frees_implied=1",
    );
    check("cache filp 256; 0 alloc filp 0; 0 kfree null; 0 kfree zero", "total: frees=0 frees_unknown=0");
}

#[test]
fn kmalloc() {
    check("0 alloc 256 0-31", "kmalloc-256: allocs=32 alloc_fastpath=30 slabs=2");
    check("0 alloc 8192 0", "kmalloc-8k: allocs=1; total: large_allocs=0");
    check(
        "0 alloc 16384 0-1; 0 free 16384 0",
        "total: allocs=0 large_allocs=2 slab_end_bytes=0; pages: pcp_free=1",
    );
    let types = "0 alloc 256 0; 0 alloc 256 1 reclaimable; 0 alloc 256 2 account; 0 alloc 256 3 dma;
                 0 free 256 0-3";
    check(
        types,
        "kmalloc-256: allocs=1 frees=1; kmalloc-rcl-256: allocs=1 frees=1; kmalloc-cg-256: allocs=1 frees=1;
         dma-kmalloc-256: allocs=1 frees=1",
    );
    // The kernel that recorded decides, not the engine: 2.6.32 had no other types.
    let options = Options { engines: presets(&["slub@6.1"]), ..Options::default() };
    let expected = "kmalloc-256: allocs=3 frees=3; kmalloc_dma-256: allocs=1";
    check_with(types, "2.6.32", &options, expected);
    // A recording that does not say which it was: the dump does.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kmalloc");
    let write = |name: &str, content: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("below a folder")).expect("a folder can be made");
        std::fs::write(path, content).expect("a file can be written");
    };
    write("sos_commands/kernel/uname_-a", "Linux host 2.6.32 #1 SMP x86_64 GNU/Linux\n");
    write("proc/slabinfo", "slabinfo - version: 2.1\nfilp 0 0 256 16 1 : tunables 0 0 0 : slabdata 0 0 0\n");
    let before = Some(Before::read(&folder).expect("a dump"));
    check_with(types, "", &Options { before, ..options }, expected);
}

#[test]
fn a_dump_merges_names() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a_dump_merges_names");
    let _ = std::fs::remove_dir_all(&folder);
    let slab = folder.join("sys/kernel/slab");
    std::fs::create_dir_all(slab.join(":0000256")).expect("a folder can be made");
    for (name, content) in [
        ("slab_size", "256\n"),
        ("object_size", "256\n"),
        ("objs_per_slab", "16\n"),
        ("order", "0\n"),
        ("align", "64\n"),
        ("slabs", "3 N0=3\n"),
        ("objects", "40 N0=40\n"),
        ("partial", "1 N0=1\n"),
        ("objects_partial", "8 N0=8\n"),
        ("cpu_slabs", "1 N0=1\n"),
    ] {
        std::fs::write(slab.join(":0000256").join(name), content).expect("a file can be written");
    }
    for alias in ["filp", "bio-248"] {
        std::os::unix::fs::symlink(":0000256", slab.join(alias)).expect("a link can be made");
    }
    let before = || Some(Before::read(&folder).expect("a dump"));
    let options = || Options { engines: presets(&["slub@6.1"]), before: before(), ..Options::default() };
    // Three slabs: the CPU's, of which nobody saw a free object; one with 8 free; one full.
    check_with(
        "cache filp 248; cache bio-248 256; 0 alloc filp 0; 0 alloc bio-248 0; 0 alloc bio-248 1",
        "6.1.0",
        &options(),
        ":0000256: slabs_start=3 objects_start=40 allocs=3 slabs=3 partial=0 alloc_from_partial=1",
    );
    let replay = run(&trace("6.1.0", "cache filp 248; 0 alloc filp 0"), &options());
    for name in ["filp", "bio-248", ":0000256"] {
        assert!(slablab_lab::output::cache_table(&replay, name).is_some(), "{name} finds the cache");
    }
}

#[test]
fn machines() {
    let check_on = |toml: &str, program: &str, expected: &str| {
        let options =
            Options { engines: presets(&["slub@6.1"]), machine: machine(toml), ..Options::default() };
        check_with(program, "6.1.0", &options, expected);
    };
    let filp = "cache filp 256; 0 alloc filp 0-31";
    check_on(
        "fail_order = 0",
        &format!("{filp}; 0 free filp 0-31"),
        "filp: allocs=0 frees=0 allocs_failed=32 slabs=0; total: allocs_failed=32 slab_end_bytes=0",
    );
    // 8 CPUs: 20 objects at least, so order 1; it falls back to order 0.
    check_on("cpus = 8", filp, "filp: order=1 slabs=1; total: slabs_taken_order_1=1");
    check_on(
        "cpus = 8\nfail_order = 1",
        filp,
        "filp: order=1 slabs=2 order_fallback=2; total: slabs_taken_order_0=2 allocs_failed=0",
    );
    check_on("fail_order = 1", "0 alloc 16384 0; 0 free 16384 0", "total: large_allocs=0 allocs_failed=1");
    // Four CPUs' events on two: no slab of the others, and a free on CPU 2 is one on CPU 0.
    check_on(
        "cpus = 2",
        "cache filp 256; 0 alloc filp 0; 1 alloc filp 1; 2 alloc filp 2; 3 alloc filp 3; 2 free filp 0",
        "filp: slabs=2 alloc_fastpath=2 free_fastpath=1",
    );
    check_on("page_size = 65536", filp, "filp: objs_per_slab=256 slabs=1 slab_bytes=65536");
    // A large kmalloc is as many pages as its bytes need there.
    for (page_size, frames) in [(4096, 4), (65536, 1)] {
        let toml = format!("page_size = {page_size}");
        let options = Options { machine: machine(&toml), ..Options::default() };
        let large = run(&trace("6.1.0", "0 alloc 16384 0"), &options).outcomes[0].large;
        assert_eq!((large.allocs, large.frames), (1, frames), "pages of {page_size} bytes");
    }
}

#[test]
fn nodes() {
    let check_on = |nodes: &str, program: &str, expected: &str| {
        let options = Options {
            engines: presets(&["slub@6.1"]),
            machine: machine(&format!("cpus = 2\n{nodes}")),
            ..Options::default()
        };
        check_with(program, "6.1.0", &options, expected);
    };
    let two = "[[nodes]]\nmemory = \"1G\"\n[[nodes]]\nmemory = \"1G\"";
    let memoryless = "[[nodes]]\nmemory = \"1G\"\n[[nodes]]\nmemory = 0";
    let program = "cache filp 256; 0 alloc filp 0-3; 1 alloc filp 4-7; 1 free filp 0-3; 0 free filp 4";
    check_on(two, program, "filp: slabs=2 frees_other_cpu=5 frees_other_node=5; total: frees_other_node=5");
    // The memory of CPU 1 is node 0's: another CPU, but no other node.
    check_on(memoryless, program, "filp: slabs=2 frees_other_cpu=5 frees_other_node=0 alloc_fastpath=6");
    // Asking for a node without memory gets the nearest.
    check_on(memoryless, "cache filp 256; 1 alloc filp 0-3 node1", "filp: slabs=1 allocs=4 allocs_failed=0");
    check_on(
        two,
        "cache filp 256; 0 alloc filp 0 node1; 0 alloc filp 1 node0",
        "filp: slabs=2 alloc_node_mismatch=1",
    );
    // A node that this machine does not have is none asked for.
    check_on(two, "cache filp 256; 0 alloc filp 0-3 node7", "filp: slabs=1 allocs=4");
}

#[test]
fn a_cache_counts_in_its_window() {
    use slablab_kernel::counters::{ConstRow, StateRow};
    use slablab_kernel::text::{Breakdown, Count};
    let total = |value| Breakdown { total: Count { value, slabs: None }, ..Breakdown::default() };
    let constant = |cache: &str| ConstRow {
        cache: cache.into(),
        aliases: Vec::new(),
        object_size: 256,
        slab_size: 256,
        order: 0,
        objs_per_slab: 16,
        cpu_partial: 52,
        min_partial: 5,
        align: 8,
        hwcache_align: false,
        destroy_by_rcu: false,
        reclaim_account: false,
        cache_dma: None,
        remote_node_defrag_ratio: None,
    };
    let state = |cache: &str| StateRow {
        label: "s1".into(),
        phase: "before".into(),
        cache: cache.into(),
        slabs: total(2),
        objects: total(32),
        total_objects: total(32),
        ..StateRow::default()
    };
    let constants = [constant("filp"), constant("dentry")];
    let before =
        || Some(Before::from_counters(Path::new("run"), &constants, &[state("filp"), state("dentry")], "s1"));
    let options = || Options { engines: presets(&["slub@6.1"]), before: before(), ..Options::default() };
    check_with(
        "cache filp 256; 0 alloc filp 0-4; mark SB filp; 0 alloc filp 5-7; 0 free filp 0-1; 0 free filp 5;
         mark SA filp; 0 free filp 6-7",
        "6.1.0",
        &options(),
        // Objects 0 and 1 are old ones in the window; what is after it does not count.
        "filp: slabs_start=2 allocs=3 frees=3 frees_old=2; total: allocs=3 frees=3",
    );
    // A cache that never was between marks has no window, and does not disturb the balance.
    check_with(
        "cache filp 256; cache dentry 256; mark SB filp; 0 alloc filp 0-2; 0 alloc dentry 0-2; mark SA filp",
        "6.1.0",
        &options(),
        "filp: allocs=3; total: allocs=3",
    );
}

#[test]
fn losses_are_carried() {
    let replay = run(&trace("6.1.0", "cache filp 256; 0 alloc filp 0; lost 7"), &Options::default());
    assert_eq!(replay.metadata.losses.records, 1);
    let said = slablab_lab::output::remarks(&replay);
    assert!(said.iter().any(|remark| remark.contains("lost") && remark.contains("incomplete")), "{said:?}");
}

/// Four CPUs allocate and free three caches and kmallocs, not quite evenly.
fn mixture(operations: u64) -> String {
    let mut program = String::from("cache filp 256; cache dentry 192; cache bio 1032;");
    let homes = ["filp", "dentry", "bio", "512"];
    let mut live: Vec<(usize, u32)> = Vec::new();
    let mut free: Vec<Vec<u32>> = vec![(0..300).rev().collect(); homes.len()];
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    for operation in 0..operations {
        let (cpu, home) = (random(4), random(homes.len() as u64) as usize);
        // It grows, then shrinks.
        let grow = random(100) < if operation * 2 < operations { 60 } else { 40 };
        if grow && let Some(object) = free[home].pop() {
            program += &format!("{cpu} alloc {} {object};", homes[home]);
            live.push((home, object));
        } else if !live.is_empty() {
            let (home, object) = live.swap_remove(random(live.len() as u64) as usize);
            program += &format!("{cpu} free {} {object};", homes[home]);
            free[home].push(object);
        }
        if random(200) == 0 {
            program += "wait 1000000000;";
        }
    }
    program
}

const FOUR_CPUS: &str = "cpus = 4\n[[nodes]]\nmemory = \"1G\"\n[[nodes]]\nmemory = \"1G\"";

/// Objects made and given back that no row tells of: sheaves, which have events; SLAB's arrays and lists of free objects,
/// which have none: what the caches count beyond the rows.
fn metadata(outcome: &Outcome) -> (u64, u64) {
    let (total, traffic) = (outcome.total(), outcome.traffic());
    match outcome.preset {
        Preset::Slab(_) => (total.allocs() - traffic.allocs, total.frees() - traffic.frees),
        _ => (total.get(Event::SheafAlloc), total.get(Event::SheafFree)),
    }
}

#[test]
fn rows_add_up_in_every_engine() {
    let reader = trace("6.1.0", &mixture(6000));
    let options = Options { engines: presets(&PRESETS), machine: machine(FOUR_CPUS), ..Options::default() };
    let replay = run(&reader, &options);
    let first = replay.outcomes[0].traffic();
    assert!(first.allocs > 2500 && first.frees > 2500 && first.other_node > 500, "{first:?}");
    for outcome in &replay.outcomes {
        let (preset, traffic, total, split) =
            (outcome.preset, outcome.traffic(), outcome.total(), outcome.split());
        // Where an object is depends on the engine; who freed it does not.
        assert_eq!((traffic.allocs, traffic.frees), (first.allocs, first.frees), "{preset}");
        assert_eq!((traffic.other_cpu, traffic.failed), (first.other_cpu, 0), "{preset}");
        let (made, given_back) = metadata(outcome);
        let all = (traffic.allocs + made, traffic.frees + given_back);
        assert_eq!((total.allocs(), total.frees()), all, "{preset}");
        assert_eq!(split.live + split.parked + split.free + split.tail, split.slabs, "{preset}");
        assert_eq!(split.slabs, outcome.end_frames * outcome.page_size, "{preset}");
        assert!(outcome.start_frames == 0 && outcome.peak_frames >= outcome.end_frames, "{preset}");
        let kept = total.get(Event::AllocSlab) - total.get(Event::FreeSlab);
        let slabs = outcome.caches.iter().map(|cache| cache.end.slabs).sum::<u64>();
        assert_eq!(kept, slabs + outcome.shared.frames, "{preset}");
        let mut kept = 0;
        for cache in &outcome.caches {
            let live = cache.traffic.allocs - cache.traffic.frees;
            kept += cache.end.live_objects() - live;
        }
        assert_eq!(kept, made - given_back, "{preset}");
        let has_metadata = match preset {
            Preset::Slub(policy) => policy.release.major == 7,
            Preset::Slab(_) => true,
            Preset::Slqb(_) | Preset::Slob(_) => false,
        };
        assert_eq!(made > 0, has_metadata, "{preset}");
    }
}

#[test]
fn machine_formats_have_the_same_sums() {
    let options = Options { engines: presets(&PRESETS), machine: machine(FOUR_CPUS), ..Options::default() };
    let replay = run(&trace("6.1.0", &mixture(2000)), &options);
    let (json, csv) = (replay_json(&replay), caches_csv(&replay));
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name: &str| header.iter().position(|column| *column == name).expect("a column");
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    for engine in json["engines"].as_array().expect("a list") {
        let caches = engine["caches"].as_array().expect("a list");
        let rows: Vec<_> = lines.iter().filter(|line| engine["engine"] == line[0]).collect();
        assert_eq!(rows.len(), caches.len());
        // Free bytes of pages that caches share are no cache's.
        let shared = engine["total"]["shared_free_bytes"].as_u64().unwrap_or(0);
        for (key, total) in [
            ("slab_bytes", "slab_end_bytes"),
            ("tail_bytes", "tail_bytes"),
            ("parked_bytes", "parked_bytes"),
            ("free_bytes", "free_bytes"),
            ("frees_other_cpu", "frees_other_cpu"),
            ("frees_other_node", "frees_other_node"),
        ] {
            let total = engine["total"][total].as_u64().expect("a number");
            let total = if ["slab_bytes", "free_bytes"].contains(&key) { total - shared } else { total };
            assert_eq!(caches.iter().filter_map(|cache| cache[key].as_u64()).sum::<u64>(), total, "{key}");
            let in_csv: u64 = rows.iter().map(|row| row[column(key)].parse::<u64>().expect("a number")).sum();
            assert_eq!(in_csv, total, "{key} in CSV");
        }
    }
}

#[test]
fn the_same_every_time_together_or_alone() {
    let reader = trace("6.1.0", &mixture(2000));
    let answer = |engines: &[&str]| {
        let options =
            Options { engines: presets(engines), machine: machine(FOUR_CPUS), ..Options::default() };
        replay_json(&run(&reader, &options))
    };
    let together = answer(&PRESETS);
    assert_eq!(together.to_string(), answer(&PRESETS).to_string());
    for (index, preset) in PRESETS.iter().enumerate() {
        assert_eq!(answer(&[preset])["engines"][0], together["engines"][index], "{preset} alone");
    }
    // Row groups are a matter of the file.
    let cut = open(&record("6.1.0", &mixture(2000), 100));
    let options = Options { engines: presets(&PRESETS), machine: machine(FOUR_CPUS), ..Options::default() };
    assert_eq!(replay_json(&run(&cut, &options)).to_string(), together.to_string());
}

/// A large machine, every CPU of which does something.
#[test]
fn a_large_machine_costs_what_it_touches() {
    let mut toml = String::from("cpus = 1024\n");
    (0..64).for_each(|_| toml += "[[nodes]]\nmemory = \"16G\"\n");
    let mut program = String::from("cache filp 256; cache dentry 192;");
    for cpu in 0..1024 {
        let object = cpu % 500;
        program +=
            &format!("{cpu} alloc filp {object}; {cpu} alloc dentry {object}; {cpu} alloc 512 {object};");
        program +=
            &format!("{cpu} free filp {object}; {cpu} implied dentry {object}; {cpu} free 512 {object};");
    }
    let options = Options { engines: presets(&PRESETS), machine: machine(&toml), ..Options::default() };
    for outcome in run(&trace("6.1.0", &program), &options).outcomes {
        println!("{}: {} K of model tables", outcome.preset, outcome.model_bytes / 1024);
        assert!(outcome.model_bytes < 64 << 20, "{}: {} bytes", outcome.preset, outcome.model_bytes);
        assert_eq!(outcome.traffic().allocs, 3 * 1024, "{}", outcome.preset);
    }
}

/// A trace that says what no kernel says.
fn hostile(rows: &[Row], metadata: Metadata) -> Result<Replay, String> {
    let mut writer = Writer::new(Vec::new()).expect("memory");
    let filp = writer.texts().cache.id("filp");
    for row in rows {
        writer.push(&Row { cache: if row.cache == 0 { filp } else { NONE }, ..*row }).expect("memory");
    }
    let reader = open(&writer.finish(metadata).expect("memory").0);
    let options = Options { engines: presets(&PRESETS), ..Options::default() };
    replay(&reader, Path::new("hostile"), &options, &|_, _| {}).map_err(|error| error.to_string())
}

#[test]
fn hostile_traces() {
    let alloc = Row {
        event: EventKind::Kmalloc as u8,
        object: 0,
        address: LINEAR_MAP,
        bytes_alloc: 256,
        bytes_req: 256,
        ..Row::default()
    };
    let refused = |row: Row, words: &str| {
        let error = hostile(&[row], Metadata::default()).expect_err("it cannot be replayed");
        assert!(error.starts_with("hostile: ") && error.contains(words), "{error}");
    };
    refused(Row { object: NONE - 1, ..alloc }, "dense ids");
    let pages = Row { event: EventKind::PageAlloc as u8, pfn: i64::MAX, order: 127, ..Row::default() };
    let taken = |rows: &[Row]| hostile(rows, Metadata::default()).expect("it can be replayed");
    taken(&[pages, alloc]);
    for bytes_alloc in [0, 1, 100, 1 << 30, u32::MAX] {
        taken(&[Row { bytes_alloc, ..alloc }, Row { event: EventKind::Kfree as u8, ..alloc }]);
    }
    for address in [1, u64::MAX] {
        taken(&[Row { address, ..alloc }, Row { event: EventKind::Kfree as u8, address, ..alloc }]);
    }
    taken(&[Row { node: i16::MAX, ..alloc }, Row { event: 200, ..alloc }, Row { gfp: u32::MAX, ..alloc }]);
    // Years between two events.
    taken(&[alloc, Row { time_ns: i64::MAX as u64, event: EventKind::Kfree as u8, ..alloc }]);
    taken(&[Row { time_ns: i64::MAX as u64, ..alloc }, Row { event: EventKind::Kfree as u8, ..alloc }]);
    taken(&[Row { cpu: 4095, ..alloc }]);
    taken(&[]);
}

/// Only the kinds of kmalloc that a recording has are listed by import; other writers need not list any.
#[test]
fn a_trace_of_another_program() {
    let alloc = Row {
        event: EventKind::Kmalloc as u8,
        object: 0,
        address: LINEAR_MAP,
        bytes_alloc: 256,
        bytes_req: 200,
        ..Row::default()
    };
    let replay = hostile(&[alloc], Metadata::default()).expect("it can be replayed");
    assert_eq!((replay.outcomes[0].large.allocs, replay.outcomes[0].traffic().allocs), (0, 1));
}
