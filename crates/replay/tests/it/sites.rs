//! Call sites of small traces, row by row, and of real recordings against a recount of their rows.

use slablab_replay::output::{Weight, sites_answer};
use slablab_replay::sites::{Frees, Numbers, Options, Program, Quantile, Recorded, Site, Sites, Sort};
use slablab_trace::{
    Batch, Columns, EventKind, Metadata, NONE, Node, Reader, Row, Source, Topology, Writer, flags,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A row: time in microseconds, CPU, event, object, cache, site, stack, bytes requested and allocated.
type Short<'a> = (u64, u16, EventKind, u32, &'a str, &'a str, &'a str, [u32; 2]);

/// A trace of these rows in a file of its own.
fn trace(name: &str, rows: &[Short<'_>], metadata: Metadata) -> PathBuf {
    let path = std::env::temp_dir().join(format!("slablab-sites-{name}-{}.parquet", std::process::id()));
    let mut writer = Writer::new(std::fs::File::create(&path).unwrap()).unwrap();
    for &(time, cpu, event, object, cache, site, stack, [bytes_req, bytes_alloc]) in rows {
        let texts = writer.texts();
        let id = |table: &mut slablab_trace::Table, text: &str| {
            if text.is_empty() { NONE } else { table.id(text) }
        };
        let row = Row {
            time_ns: time * 1000,
            cpu,
            event: event as u8,
            object,
            cache: id(&mut texts.cache, cache),
            call_site: id(&mut texts.call_site, site),
            stack: id(&mut texts.stack, stack),
            comm: texts.comm.id(if cpu == 0 { "cat" } else { "dog" }),
            bytes_req,
            bytes_alloc,
            ..Row::default()
        };
        writer.push(&row).unwrap();
    }
    writer.finish(metadata).unwrap();
    path
}

fn recorded(path: &Path, options: &Options) -> Result<Recorded, String> {
    let reader = Reader::open(path).unwrap();
    Recorded::of(&reader, path, options, &|_, _| ()).map_err(|error| error.to_string())
}

fn two_nodes() -> Metadata {
    let node = |node, cpus| Node { node, cpus, ..Node::default() };
    let topology = Topology { nodes: vec![node(0, vec![0, 1]), node(1, vec![2])], ..Topology::default() };
    Metadata { topology, ..Metadata::default() }
}

const ALLOC: EventKind = EventKind::CacheAlloc;
const FREE: EventKind = EventKind::CacheFree;

#[test]
fn sites_have_what_their_rows_say() {
    let kmalloc = EventKind::Kmalloc;
    let rows: [Short<'_>; 12] = [
        (0, 0, ALLOC, 0, "filp", "open+0x1", "sys;do;open+0x1;alloc", [200, 256]),
        (1, 0, ALLOC, 1, "filp", "open+0x1", "sys;do;open+0x1;alloc", [200, 256]),
        (2, 1, ALLOC, 2, "filp", "open+0x1", "", [200, 256]),
        (3, 0, ALLOC, 3, "filp", "open+0x1", "", [200, 256]),
        (4, 2, kmalloc, 4, "", "read+0x2", "", [40, 64]),
        (10, 0, FREE, 0, "filp", "put+0x3", "", [200, 256]),
        (22, 2, FREE, 2, "filp", "put+0x3", "", [200, 256]),
        (33, 1, FREE, 3, "filp", "drop+0x4", "", [200, 256]),
        (50, 0, EventKind::ImpliedFree, 4, "", "", "", [40, 64]),
        (60, 0, ALLOC, 5, "dentry", "look+0x5", "", [192, 192]),
        (70, 0, ALLOC, 0, "filp", "open+0x1", "", [200, 256]),
        (100, 0, EventKind::PageFree, NONE, "", "", "", [0, 0]),
    ];
    let path = trace("rows", &rows, two_nodes());
    let found = recorded(&path, &Options::default()).unwrap();
    let names: Vec<_> = found.sites.iter().map(|site| (site.name.as_str(), site.cache.as_str())).collect();
    assert_eq!(names, [("open+0x1", "filp"), ("look+0x5", "dentry"), ("read+0x2", "kmalloc-64")]);
    let [open, look, read] = &found.sites[..] else { panic!("{names:?}") };
    assert_eq!((open.allocs, open.live, open.live_bytes, open.waste_bytes), (5, 2, 512, 112));
    assert_eq!((open.requested_bytes, open.allocated_bytes, open.peak_bytes), (1000, 1280, 1024));
    assert_eq!(open.frees, Frees { same_cpu: 1, other_cpu: 1, other_node: 1, implied: 0 });
    assert_eq!(read.frees, Frees { implied: 1, ..Frees::default() });
    assert_eq!(open.tasks, [("cat".to_string(), 4), ("dog".to_string(), 1)]);
    assert_eq!(open.freed_by, [("put+0x3".to_string(), 2), ("drop+0x4".to_string(), 1)]);
    // Freed after 10, 20 and 30 us; two live: three of five are freed, the third is the median.
    let Quantile::Known(median) = open.lifetimes.quantile(50) else { panic!("{:?}", open.lifetimes) };
    assert!(median.abs_diff(30_000) < 1000, "{median}");
    assert_eq!(open.lifetimes.quantile(90), Quantile::AtLeast(99_000));
    assert_eq!(look.lifetimes.quantile(50), Quantile::AtLeast(40_000));
    // At the 50th of 100 us one of four lives.
    assert_eq!((open.line[0], open.line[open.line.len() / 2], *open.line.last().unwrap()), (256, 256, 512));
    assert_eq!(open.line.iter().max(), Some(&1024));
    assert_eq!(found.stacks.len(), 1);
    assert_eq!(
        (&found.stacks[0].frames[..], found.stacks[0].live_bytes),
        (&["sys", "do", "open+0x1"].map(String::from)[..], 256)
    );
    let folded =
        sites_answer(&Sites::Recorded(Box::new(found)), 5, Weight::Live).text_of("folded", false).unwrap();
    let expected = "dentry;look+0x5 192\nfilp;open+0x1 256\nfilp;sys;do;open+0x1 256\n";
    assert_eq!(folded, expected);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn sites_can_be_sorted_and_picked() {
    let rows: [Short<'_>; 6] = [
        (0, 0, ALLOC, 0, "filp", "b+0x1", "", [256, 256]),
        (1, 0, ALLOC, 1, "dentry", "a+0x1", "", [100, 192]),
        (2, 0, ALLOC, 2, "dentry", "a+0x1", "", [100, 192]),
        (3, 0, FREE, 2, "dentry", "c+0x1", "", [100, 192]),
        (4, 1, ALLOC, 3, "inode", "d+0x1", "", [600, 600]),
        (9, 0, FREE, 3, "inode", "c+0x1", "", [600, 600]),
    ];
    let path = trace("sorted", &rows, two_nodes());
    let check = |sort, expected: [&str; 3]| {
        let found = recorded(&path, &Options { sort, ..Options::default() }).unwrap();
        let names: Vec<_> = found.sites.iter().map(|site| site.name.as_str()).collect();
        assert_eq!(names, expected.map(|name| format!("{name}+0x1")), "{sort:?}");
    };
    check(Sort::Live, ["b", "a", "d"]);
    check(Sort::Waste, ["a", "b", "d"]);
    check(Sort::Peak, ["d", "a", "b"]);
    check(Sort::Allocs, ["a", "b", "d"]);
    check(Sort::Bytes, ["d", "a", "b"]);
    check(Sort::Lifetime, ["b", "d", "a"]);
    check(Sort::Remote, ["d", "b", "a"]);
    check(Sort::Site, ["a", "b", "d"]);
    check(Sort::Cache, ["a", "b", "d"]);
    let of = |cache: &str| recorded(&path, &Options { cache: Some(cache.into()), ..Options::default() });
    let one = of("dentry").unwrap();
    assert_eq!(one.sites.iter().map(|site| site.allocs).collect::<Vec<_>>(), [2]);
    let error = of("dentri").unwrap_err();
    assert!(error.contains("near it: dentry"), "{error}");
    std::fs::remove_file(path).unwrap();
}

/// A program's trace with about one call chain in each `sample` bytes; 0: with none.
fn of_program(sample: u64) -> Metadata {
    let source = Source { kind: "malloc".into(), command: vec!["/bin/app".into()], ..Source::default() };
    let malloc = serde_json::json!({ "sample_bytes": sample, "allocator": "/lib/libc.so.6" });
    let other = serde_json::Map::from_iter([("malloc".to_string(), malloc)]);
    Metadata { source: Some(source), other, ..Metadata::default() }
}

fn program(name: &str, rows: &[Short<'_>], sample: u64, sort: Sort) -> Result<Program, String> {
    let path = trace(name, rows, of_program(sample));
    let options = Options { sort, ..Options::default() };
    let found = Program::of(&Reader::open(&path).unwrap(), &path, &options, &|_, _| ());
    std::fs::remove_file(path).unwrap();
    found.map_err(|error| error.to_string())
}

#[test]
fn a_programs_sites_have_what_their_rows_say() {
    let (alloc, free) = (EventKind::Kmalloc, EventKind::Kfree);
    let row = |time, cpu, event, object, site, stack, bytes| {
        (time, cpu, event, object, "", site, stack, [bytes; 2])
    };
    let (load, brief) = ("main;load (a.c:3);xmalloc (x.c:1)", "main;brief (a.c:9)");
    let rows = [
        row(0, 0, alloc, 0, "malloc", load, 1000),
        row(10, 0, alloc, 1, "malloc", load, 3000),
        // Freed before the thread's next allocation, though another thread allocates between.
        row(20, 0, alloc, 2, "calloc", brief, 500),
        row(30, 1, alloc, 3, "malloc", "", 70),
        row(40, 0, free, 2, "free", "", 500),
        // Freed by another thread, and after another allocation.
        row(50, 1, alloc, 4, "malloc", brief, 100),
        row(60, 0, free, 4, "free", "", 100),
        row(70, 0, free, 0, "free", "", 1000),
        row(100, 0, free, 3, "free", "", 70),
    ];
    let found = program("program", &rows, 1, Sort::Live).unwrap();
    assert_eq!((found.allocs, found.peak, found.end), (5, [4570, 4], [3000, 1]));
    assert_eq!(found.peak_s, 30e-6);
    let names: Vec<&str> = found.sites.iter().map(|site| site.name.as_str()).collect();
    assert_eq!(names, ["load (a.c:3)", "brief (a.c:9)"]);
    let numbers: Vec<Numbers> = found.sites.iter().map(|site| site.numbers.clone()).collect();
    let load = Numbers {
        seen: 2,
        allocs: 2,
        bytes: 4000,
        live: 1,
        live_bytes: 3000,
        peak_bytes: 4000,
        brief: 0,
        pinned_bytes: 1096,
    };
    let brief = Numbers { seen: 2, allocs: 2, bytes: 600, peak_bytes: 500, brief: 1, ..Numbers::default() };
    assert_eq!(numbers, [load, brief]);
    assert_eq!((found.pages.bytes, found.pages.live_bytes), (4096, 3000));
    let line = &found.sites[0].line;
    assert_eq!((line[0], line[24], line[239]), (1000, 4000, 3000));
    assert_eq!((found.line[0], found.line[24], found.line[239]), (1000, 4000, 3000));
    let called: Vec<&str> = found.sites.iter().map(|site| site.called.as_str()).collect();
    assert_eq!(called, ["malloc", "calloc"]);
    let brief_first = program("program-sorted", &rows, 1, Sort::Remote).unwrap();
    assert_eq!(brief_first.sites[0].name, "brief (a.c:9)");
}

/// Of a sample, each allocation stands for as many as it was drawn from, but all together for no more than
/// there were.
#[test]
fn a_sample_counts_for_all() {
    let (alloc, chain) = (EventKind::Kmalloc, "main;fill (a.c:1)");
    let row = |object, stack, bytes| (u64::from(object), 0, alloc, object, "", "malloc", stack, [bytes; 2]);
    let check = |others: u32, expected: (u64, u64, u64), end: [u64; 2]| {
        let mut rows = vec![row(0, chain, 1000), row(1, chain, 1 << 20)];
        rows.extend((2..2 + others).map(|object| row(object, "", 1000)));
        let found = program("sample", &rows, 10_000, Sort::Live).unwrap();
        let Numbers { seen, allocs, bytes, .. } = found.sites[0].numbers;
        assert_eq!(((seen, allocs, bytes), found.end), (expected, end), "{others} others");
    };
    // 1 / (1 - exp(-0.1)) = 10.508 allocations of 1,000 bytes, and the large one, which is always drawn.
    check(20, (2, 12, 10508 + (1 << 20)), [21_000 + (1 << 20), 22]);
    check(1, (2, 3, 2000 + (1 << 20)), [2000 + (1 << 20), 3]);
}

#[test]
fn a_programs_recording_without_chains_says_how_to_have_them() {
    let rows: [Short<'_>; 1] = [(0, 0, EventKind::Kmalloc, 0, "malloc-64", "malloc", "", [50, 64])];
    let error = program("malloc", &rows, 0, Sort::Live).unwrap_err();
    assert!(error.contains("without call chains") && error.contains("record --malloc -g"), "{error}");
    let error = program("few", &rows, 65536, Sort::Live).unwrap_err();
    assert!(error.contains("none of the 1 allocations") && error.contains("--sample"), "{error}");
}

/// The bundled hackbench, counted again from its rows in the plainest way.
#[test]
fn a_recording_is_its_recount() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/hackbench-6.18.perf.data.xz");
    let input = slablab_replay::import::Input { path: &path, recording: None, formats: None };
    let reader = slablab_replay::import::open(input, &mut |_| ()).unwrap();
    let found = Recorded::of(&reader, &path, &Options::default(), &|_, _| ()).unwrap();
    #[derive(Default)]
    struct Plain {
        allocs: u64,
        live: HashMap<u32, (u64, u32)>,
        lifetimes: Vec<u64>,
        other: u64,
    }
    let mut plain: HashMap<String, Plain> = HashMap::new();
    let mut site_of: HashMap<u32, (String, u64, u16)> = HashMap::new();
    let (mut batches, mut batch) = (reader.batches(Columns::ALL), Batch::default());
    while batches.next(&mut batch).unwrap() {
        for row in (0..batch.len()).map(|index| batch.row(index)).filter(|row| row.object != NONE) {
            let kind = EventKind::ALL[usize::from(row.event)];
            let site = batches.texts().call_site.get(row.call_site).unwrap_or("").to_string();
            if kind.is_alloc() {
                let plain = plain.entry(site.clone()).or_default();
                plain.allocs += 1;
                plain.live.insert(row.object, (row.time_ns, row.bytes_alloc));
                site_of.insert(row.object, (site, row.time_ns, row.cpu));
            } else if kind.is_free() && row.flags & flags::UNSEEN == 0 {
                let (site, since, cpu) = site_of.remove(&row.object).unwrap();
                let plain = plain.get_mut(&site).unwrap();
                plain.live.remove(&row.object);
                plain.lifetimes.push(row.time_ns.saturating_sub(since));
                plain.other += u64::from(kind != EventKind::ImpliedFree && cpu != row.cpu);
            }
        }
    }
    let mut sites: HashMap<String, Vec<&Site>> = HashMap::new();
    for site in &found.sites {
        sites.entry(site.address.clone().unwrap_or(site.name.clone())).or_default().push(site);
    }
    assert_eq!(sites.len(), plain.len());
    assert!(plain.len() > 60, "{} sites", plain.len());
    let mut exact = 0;
    for (name, mut plain) in plain {
        let own = &sites[&name];
        let sum = |of: fn(&Site) -> u64| own.iter().map(|site| of(site)).sum::<u64>();
        assert_eq!(sum(|site| site.allocs), plain.allocs, "{name}");
        assert_eq!(sum(|site| site.live), plain.live.len() as u64, "{name}");
        let bytes = plain.live.values().map(|(_, bytes)| u64::from(*bytes)).sum::<u64>();
        assert_eq!(sum(|site| site.live_bytes), bytes, "{name}");
        assert_eq!(sum(|site| *site.line.last().unwrap()), bytes, "{name}");
        assert_eq!(sum(|site| site.frees.other_cpu + site.frees.other_node), plain.other, "{name}");
        // Where all objects are freed the estimate is the plain median.
        if let ([site], true, false) = (&own[..], plain.live.is_empty(), plain.lifetimes.is_empty()) {
            plain.lifetimes.sort_unstable();
            let middle = plain.lifetimes[(plain.lifetimes.len() - 1) / 2] as f64;
            let found = site.lifetimes.quantile(50).known().unwrap() as f64;
            assert!((found - middle).abs() <= 0.035 * middle + 1.0, "{name}: {found}, {middle}");
            exact += 1;
        }
    }
    assert!(exact > 10, "{exact} sites free all their objects");
    let answer = sites_answer(&Sites::Recorded(Box::new(found)), 5, Weight::Live);
    let (text, page) = (answer.text(false), answer.page("slablab sites x"));
    assert!(text.contains("... and") && text.contains("live K at"), "{text}");
    assert!(page.contains("class=\"fl") && page.contains("Live memory over time"));
    let rows = answer.csv().unwrap().lines().count();
    assert_eq!(answer.json()["sites"].as_array().unwrap().len() + 1, rows);
}
