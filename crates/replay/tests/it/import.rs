//! Import of files: their formats, the contents of the trace, and the messages for files that are no
//! recordings.

use std::io::Write;
use std::path::{Path, PathBuf};

use slablab_platform::gfp::Gfp;
use slablab_replay::import::{Input, Report, import, open};
use slablab_replay::output::import_answer;
use slablab_trace::{Batch, Columns, EventKind};

const MICROS: &str = "t_us,cpu,pid,comm,event,ptr_or_pfn,cache,bytes_req,bytes_alloc,order,gfp,node,call_site
0.0,0,4255,bash,kmem_cache_alloc,0xffff888100d04000,names_cache,4096,4096,,GFP_KERNEL,-1,getname+0x24
10.0,1,4256,sh,kmem_cache_free,0xffff888100d04000,names_cache,,,,,,vfs_fstatat+0x71
11.0,0,4255,bash,kfree,(nil),,,,,,,ida+0x3
";

const SECONDS: &str = "seq,ts,cpu,pid,comm,ev,ptr,cache,dir,bytes_req,bytes_alloc,gfp,node,call_site,extra
0,6.1,1,115,snap,tracing_mark_write,,,,,,,,,SB :0000256
1,6.2,1,115,snap,kmem_cache_alloc,ff11000030232400,maple_node,:0000256,256,256,GFP_KERNEL,1,mas+0x6e,
2,6.3,1,115,snap,sched_migrate_task,,,,,,,,,pid=3
3,6.4,3,116,snap,kmem_cache_free,ff11000030232400,maple_node,:0000256,,,,,mas+0x7e,
";

const MACHINE: &str = r#"{"uname": "Linux (none) 6.1.192 #1 SMP Fri Nov 20 x86_64 GNU/Linux", "cmdline": "quiet",
 "config": {"SLUB": "y"},
 "topology": {"cpu/possible": "0-7", "cpu/online": "0-3", "node/online": "0-1",
  "node/node0/cpulist": "0-1", "node/node0/distance": "10 20", "node/node0/meminfo": 1000,
  "node/node1/cpulist": "2-3", "node/node1/distance": "20 10", "node/node1/meminfo": 0}}"#;

/// A folder for one test, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("slablab-import-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let name =
            |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = std::fs::read_dir(&self.0).unwrap().map(name).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn run(folder: &Folder, path: &Path, recording: Option<&str>) -> Result<Report, String> {
    let output = folder.0.join("out.trace.parquet");
    import(Input { path, recording, formats: None }, &output, &mut |_| {}).map_err(|error| error.to_string())
}

fn bundled(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../..", name].iter().collect()
}

#[test]
fn content_decides_and_not_the_name() {
    let folder = Folder::new("content");
    for (name, content) in [("a.perf.data", MICROS.as_bytes().to_vec()), ("b.parquet", gzip(MICROS))] {
        let path = folder.file(name, &content);
        let report = run(&folder, &path, None).unwrap();
        let metadata = &report.metadata;
        assert_eq!(metadata.statistics.rows, 3);
        let source = metadata.source.as_ref().unwrap();
        assert_eq!(
            (source.kind.as_str(), source.size_bytes, source.sha256.len()),
            ("csv", content.len() as u64, 64)
        );
        assert_eq!(metadata.import.as_ref().unwrap().repairs.null_frees, 1);
        assert!(!report.incomplete());
    }
}

#[test]
fn a_run_folder_gives_the_machine_and_the_directories() {
    let folder = Folder::new("run");
    folder.file("trace_s1.events.csv.gz", &gzip(SECONDS));
    folder.file("machine.json", MACHINE.as_bytes());
    let metadata = run(&folder, &folder.0, Some("trace_s1")).unwrap().metadata;
    assert_eq!(
        (metadata.release.as_deref(), metadata.architecture.as_deref()),
        (Some("6.1.192"), Some("x86_64"))
    );
    assert_eq!((metadata.topology.cpus_online, metadata.topology.cpus_possible), (Some(4), Some(8)));
    let node = &metadata.topology.nodes[1];
    assert_eq!(
        (node.cpus.as_slice(), node.memory_bytes, node.distances.as_slice()),
        (&[2, 3][..], Some(0), &[20, 10][..])
    );
    let caches: Vec<_> =
        metadata.caches.iter().map(|cache| (cache.name.as_str(), cache.directory.as_deref())).collect();
    assert_eq!(caches, [(":0000256", None), ("maple_node", Some(":0000256"))]);
    assert_eq!(metadata.import.unwrap().skipped_events, 1);

    let reader =
        open(Input { path: &folder.0, recording: Some("trace_s1"), formats: None }, &mut |_| {}).unwrap();
    let (mut batches, mut batch) = (reader.batches(Columns::ALL), Batch::default());
    assert!(batches.next(&mut batch).unwrap());
    assert_eq!(
        batch.event,
        [EventKind::Mark, EventKind::CacheAlloc, EventKind::CacheFree].map(|kind| kind as u8)
    );
    assert_eq!(batch.cache, [0, 1, 1]);
    assert_eq!(batches.texts().call_site.get(batch.call_site[0]), Some("SB :0000256"));
    assert_eq!((batch.time_ns[1], batch.node[1], batch.gfp[1]), (6_200_000_000, 1, Gfp::KERNEL.0));
}

#[track_caller]
fn refused(content: &[u8], expected: &str) {
    let folder = Folder::new(&format!("refused-{}", content.len()));
    let path = folder.file("in", content);
    let error = run(&folder, &path, None).unwrap_err();
    assert!(error.starts_with(&path.display().to_string()), "no file in: {error}");
    assert!(error.contains(expected), "expected {expected:?} in: {error}");
    assert_eq!(folder.names(), ["in"], "something half-written is left");
}

#[test]
fn a_file_that_is_no_recording_is_refused_and_leaves_no_file() {
    refused(b"", "the file is empty");
    refused(b"\x7fELF and more", "expected a perf.data");
    refused(b"PAR1.....", "a trace already");
    refused(b"\x17\x08\x44tracing6\0", "byte 12: expected 1 bytes of endianness");
    refused(b"\x17\x08\x44tracing8\0\0", "expected version 6 or 7, found `8`");
    refused(b"# tracer: nop\n#\n", "no allocation events");
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(b"\x17\x08\x44tracing6\0").unwrap();
    bomb.write_all(&vec![0; 64 << 20]).unwrap();
    refused(&bomb.finish().unwrap(), "expected at most 256 times its size");
    let (head, _) = MICROS.split_at(MICROS.len() - 30);
    refused(format!("{head}\n").as_bytes(), "line 4");
    refused(MICROS.replace("4255,bash,kfree", "me,bash,kfree").as_bytes(), "line 4");
    let packed = gzip(MICROS);
    refused(&packed[..packed.len() - 20], "the compressed data ends early at byte");
    let whole = std::fs::read(bundled("examples/data/hackbench-6.18.perf.data.xz")).unwrap();
    refused(&whole[..500_000], "cut off after ");
}

/// The rows before the cut are in the trace, which says where it was.
#[test]
fn a_cut_recording_is_read_up_to_there() {
    let packed = std::fs::read(bundled("crates/readers/testdata/hackbench.events.csv.gz")).unwrap();
    let folder = Folder::new("cut");
    let path = folder.file("cut.csv.gz", &packed[..packed.len() / 2]);
    let report = run(&folder, &path, None).unwrap();
    let rows = report.metadata.statistics.rows;
    assert!(rows > 500 && rows < 2900, "{rows} rows");
    assert!(report.incomplete() && report.metadata.cut_off.as_ref().is_some_and(|cut| cut.at_bytes > 10_000));
    let said = import_answer(&report);
    let first = said.said().next().expect("a warning");
    assert!(first.starts_with("INCOMPLETE: the recording is cut off after "), "{first}");
}

#[test]
fn a_folder_says_what_it_has() {
    let folder = Folder::new("folder");
    folder.file("trace_s1.events.csv.gz", &gzip(SECONDS));
    let error = run(&folder, &folder.0, None).unwrap_err();
    assert!(error.contains("a folder: expected the name of one of its recordings too: trace_s1"), "{error}");
    let error = run(&folder, &folder.0, Some("trace_s2")).unwrap_err();
    assert!(error.contains("no recording \"trace_s2\"; expected one of: trace_s1"), "{error}");
}

/// The bundled recording; `perf script` and a count by address in another language gave these numbers.
#[test]
fn the_bundled_recording_is_whole() {
    let folder = Folder::new("bundled");
    let report = run(&folder, &bundled("examples/data/hackbench-6.18.perf.data.xz"), None).unwrap();
    let metadata = report.metadata;
    let events = &metadata.statistics.events;
    let of = |kind: EventKind| events.get(kind.name()).copied().unwrap_or(0);
    let counted = [EventKind::Kmalloc, EventKind::CacheAlloc, EventKind::Kfree, EventKind::CacheFree].map(of);
    assert_eq!(counted, [42603, 48163, 45706, 47729]);
    assert_eq!(
        [of(EventKind::PageAlloc), of(EventKind::PageFree), of(EventKind::ImpliedFree)],
        [4480, 4357, 56]
    );
    assert_eq!(metadata.losses.records, 0);
    assert!(metadata.release.unwrap().starts_with("6.18.44"));
    let import = metadata.import.unwrap();
    assert_eq!((import.repairs.reordered, import.repairs.late, import.repairs.gfp_bits_unknown), (0, 0, 0));
    assert_eq!(import.linear_map, Some(0xffff_8880_0000_0000));
}

/// Columns that a binary recording and a text of the same events agree in.
type Line = (u64, u16, i32, u8, u64, u32, Option<String>, i64, u32, Option<String>);

/// The rows of a recording, times in microseconds since the first.
fn lines(path: &Path) -> (Vec<Line>, slablab_trace::Metadata) {
    let reader = open(Input { path, recording: None, formats: None }, &mut |_| {}).unwrap();
    let metadata = reader.metadata().clone();
    let (mut batches, mut batch, mut lines) = (reader.batches(Columns::ALL), Batch::default(), Vec::new());
    while batches.next(&mut batch).unwrap() {
        let texts = batches.texts();
        let text = |text: Option<&str>| text.map(str::to_string);
        lines.extend((0..batch.len()).map(|row| {
            let micros = (batch.time_ns[row] + 500) / 1000;
            (
                micros,
                batch.cpu[row],
                batch.pid[row],
                batch.event[row],
                batch.address[row],
                batch.bytes_alloc[row],
                text(texts.cache.get(batch.cache[row])),
                batch.pfn[row],
                batch.gfp[row],
                text(texts.call_site.get(batch.call_site[row])),
            )
        }));
    }
    let first = lines[0].0;
    lines.iter_mut().for_each(|line| line.0 -= first);
    (lines, metadata)
}

#[test]
fn all_forms_of_a_recording_give_one_trace() {
    let (expected, metadata) = lines(&bundled("crates/readers/testdata/trace_dat/v6.trace.dat.xz"));
    assert_eq!(metadata.statistics.rows, expected.len() as u64);
    let folder = Folder::new("forms");
    let mut plain = Vec::new();
    let packed = std::fs::File::open(bundled("crates/readers/testdata/trace_dat/v6.trace.dat.xz")).unwrap();
    let mut reader = slablab_readers::compressed::Decompressed::new(packed).unwrap();
    std::io::Read::read_to_end(&mut reader, &mut plain).unwrap();
    #[track_caller]
    fn check(path: &Path, kind: &str, expected: &[Line]) {
        let (found, metadata) = lines(path);
        let differing = found.iter().zip(expected).position(|(found, expected)| found != expected);
        assert_eq!(differing.map(|row| (&found[row], &expected[row])), None, "{}", path.display());
        assert_eq!(found.len(), expected.len());
        assert!(!metadata.pairing_only && metadata.warnings.is_empty(), "{:?}", metadata.warnings);
        assert_eq!(metadata.source.unwrap().kind, kind);
    }
    check(&folder.file("plain", &plain), "trace.dat", &expected);
    for name in ["v7_zlib.trace.dat", "v7_zstd.trace.dat"] {
        check(&bundled("crates/readers/testdata/trace_dat").join(name), "trace.dat", &expected);
    }
    // A report's microseconds guess another order of effects in some places: what happened is the same.
    let (text, metadata) = lines(&bundled("crates/readers/testdata/trace_dat/report.txt.xz"));
    let sorted = |mut lines: Vec<Line>| {
        lines.sort();
        lines
    };
    assert!(sorted(text) == sorted(expected), "the report's events are others");
    assert_eq!((metadata.source.unwrap().kind.as_str(), metadata.pairing_only), ("ftrace text", false));
}

#[test]
fn hashed_addresses_mark_a_trace() {
    let (rows, metadata) = lines(&bundled("crates/readers/testdata/ftrace/trace_plain.txt.xz"));
    assert!(metadata.pairing_only && metadata.warnings[0].contains("hash-ptr"), "{:?}", metadata.warnings);
    // Objects are paired all the same, and pages keep their numbers; one does not lead to the other.
    let counts = |name: &str| metadata.caches.iter().find(|cache| cache.name == name).unwrap().counts;
    let filp = counts("filp");
    assert!(filp.allocs > 0 && filp.unseen_frees < filp.frees, "{filp:?}");
    assert!(rows.iter().any(|row| row.7 > 0));
    let import = metadata.import.unwrap();
    assert_eq!((import.linear_map, import.repairs.implied_by_page), (None, 0));
    let folder = Folder::new("hashed");
    let report =
        run(&folder, &bundled("crates/readers/testdata/ftrace/trace_pipe_lost.txt.xz"), None).unwrap();
    let answer = import_answer(&report);
    assert_eq!(answer.json()["pairing_only"], true);
    assert!(report.incomplete() && answer.text(false).contains("warning: addresses are hashed"));
}

#[test]
fn losses_make_a_report_incomplete() {
    let folder = Folder::new("lost");
    let report = run(&folder, &bundled("crates/readers/testdata/lost.perf.data.xz"), None).unwrap();
    let answer = import_answer(&report);
    assert!(report.incomplete() && answer.text(false).contains("INCOMPLETE"));
    assert_eq!(answer.json()["schema"], "slablab.import.1");
    assert_eq!(answer.json()["losses"]["records"], report.metadata.losses.records);
}

/// docs/trace-format.md promises these bits.
#[test]
fn the_page_has_the_bits_of_gfp() {
    let page = std::fs::read_to_string(bundled("docs/trace-format.md")).unwrap();
    for (flag, name) in Gfp::NAMES {
        let bit = flag.0.trailing_zeros();
        let name = name.trim_start_matches("__GFP_");
        // Three flags of KASAN are one here.
        let cell = |line: &str| line.contains(&format!("| {bit} |")) && line.contains(&format!("`{name}`"));
        assert!(page.lines().any(cell) || name.starts_with("SKIP_KASAN_"), "{name} is bit {bit}");
    }
}
