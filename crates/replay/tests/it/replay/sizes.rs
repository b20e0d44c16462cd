//! Sizes that no kernel has: from the bytes of a recording or a dump to the printed answer of each engine, on
//! machines of 4K and 64K pages. None of them panics, and each says what it left out.

use super::{PRESETS, machine, presets};
use slablab_readers::counters::ConstRow;
use slablab_readers::event::LARGEST_BLOCK_BYTES;
use slablab_replay::explain::{Question, explain};
use slablab_replay::import::{self, Input};
use slablab_replay::output::{explain_answer, import_answer, replay_answer};
use slablab_replay::replay::before::{Before, Windows};
use slablab_replay::replay::{Options, replay};
use slablab_slabs::Preset;
use slablab_trace::Reader;
use std::fs;
use std::path::{Path, PathBuf};

/// Sizes around every limit: of a class, of a block of the page allocator, and of 32 and 64 bits.
const SIZES: [u64; 14] = [
    0,
    1,
    8,
    4 << 20,
    8 << 20,
    16 << 20,
    64 << 20,
    1 << 30,
    2 << 30,
    3 << 30,
    (4 << 30) - 16,
    (4 << 30) - 1,
    4 << 30,
    1 << 63,
];

/// Engines with something around each object, which needs more room than the object.
const WRAPPED: [&str; 6] = [
    "slub@6.1,debug=FZPU",
    "slub@7.1,harden=on",
    "slqb,debug=FZPU",
    "slab@6.1,debug=FZPU",
    "slab@2.6.29,harden=random,debug=Z",
    "slob,debug=FZPU",
];

/// Where a recording has the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum In {
    /// A kmalloc whose cache is not recorded.
    Kmalloc,
    /// A kmalloc of a named cache.
    Class,
    /// An allocation of a named cache.
    Cache,
    /// What the caller asked for.
    Asked,
}

/// The recording of one object of this size, between others.
fn recording(place: In, size: u64) -> String {
    let (event, freed, cache, asked, given) = match place {
        In::Kmalloc => ("kmalloc", "kfree", "", size, size),
        In::Class => ("kmalloc", "kfree", "kmalloc-1k", size.min(1024), size),
        In::Cache => ("kmem_cache_alloc", "kmem_cache_free", "odd", size, size),
        In::Asked => ("kmalloc", "kfree", "kmalloc-1k", size, 1024),
    };
    let row = |at: u32, event: &str, address: u64, cache: &str, asked: u64, given: u64| {
        format!("{at},0.{at},1,115,snap,{event},{address:x},{cache},,{asked},{given},GFP_KERNEL,-1,f+0x6e,\n")
    };
    let base = 0xff11_0000_3023_2000u64;
    [
        "seq,ts,cpu,pid,comm,ev,ptr,cache,dir,bytes_req,bytes_alloc,gfp,node,call_site,extra\n".to_string(),
        row(1, "kmem_cache_alloc", base, "filp", 256, 256),
        row(2, event, base + 0x1000, cache, asked, given),
        row(3, event, base + 0x2000, cache, asked, given),
        row(4, freed, base + 0x1000, cache, 0, 0),
        row(5, "kmem_cache_free", base, "filp", 0, 0),
    ]
    .concat()
}

/// Imports a recording; the report, and the trace.
fn imported(name: &str, text: &str) -> (String, Reader) {
    let file = |end: &str| -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sizes-{}-{name}.{end}", std::process::id()))
    };
    let (recording, output) = (file("csv"), file("trace"));
    fs::write(&recording, text).expect("a file can be written");
    let input = Input { path: &recording, recording: None, formats: None };
    let report = import::import(input, &output, &mut |_| {}).expect("a CSV of events");
    let reader = Reader::open(&output).expect("just written");
    for path in [&recording, &output] {
        fs::remove_file(path).expect("just written");
    }
    (import_answer(&report).text(true), reader)
}

/// Everything that the program prints of a replay of all engines, and of an explanation.
fn answers(reader: &Reader, options: &Options) -> String {
    let path = Path::new("odd");
    let answer = replay(reader, path, options, &|_, _| {}).unwrap_or_else(|bad| panic!("{bad}"));
    let answer = replay_answer(&answer, 20);
    let mut text = vec![answer.text(true), answer.said().collect(), answer.json().to_string()];
    let preset = |text| Preset::parse(text).expect("a preset");
    for [from, to] in [["slub@7.0", "slub@7.1"], ["slab@6.1", "slab@6.1,shared=0"]] {
        let question = Question::new(preset(from), preset(to));
        let explained = explain(reader, path, options, &question, &|_, _| {});
        let explained = explained.unwrap_or_else(|bad| panic!("{bad}"));
        text.push(explain_answer(&explained).text(true));
    }
    text.join("\n")
}

fn options(engines: &[&str], page_size: u64, before: Option<Before>) -> Options {
    let machine = machine(&format!("page_size = {page_size}\ncpus = 2\n[[nodes]]\nmemory = \"1G\""));
    let engines = presets(engines);
    Options { engines, machine, before, ..Options::default() }
}

/// The engines of a run: all presets in one, and all wrappers.
fn engines() -> Vec<&'static str> {
    PRESETS.iter().copied().chain(WRAPPED).collect()
}

/// An old and a new preset of each engine with slabs of one cache each, and a wrapper.
const FEW: [&str; 6] = ["slub@2.6.29", "slub@7.1", "slqb", "slab@2.6.29", "slab@6.1", "slub@6.1,debug=FZPU"];

#[track_caller]
fn check_recording(place: In, size: u64) {
    let what = format!("{place:?} of {size} bytes");
    let (report, reader) = imported(&format!("{place:?}-{size}"), &recording(place, size));
    let is_damaged = size > LARGEST_BLOCK_BYTES;
    assert_eq!(report.contains("2 damaged"), is_damaged, "{what}: {report}");
    for page_size in [4096, 65536] {
        let text = answers(&reader, &options(&engines(), page_size, None));
        let too_large = place != In::Asked && !is_damaged && size > page_size << 10;
        assert_eq!(text.contains("warning: 2 allocations of more than"), too_large, "{what}: {text}");
    }
}

#[test]
fn a_size_of_a_recording_is_served_or_counted() {
    for place in [In::Kmalloc, In::Class, In::Cache, In::Asked] {
        for size in SIZES {
            check_recording(place, size);
        }
    }
}

/// A dump that says this of the cache of the recording.
fn dump(change: impl Fn(&mut ConstRow)) -> Before {
    let mut row = ConstRow {
        cache: "odd".into(),
        aliases: Vec::new(),
        object_size: 192,
        slab_size: 192,
        order: 0,
        objs_per_slab: 21,
        cpu_partial: 30,
        min_partial: 5,
        align: 8,
        hwcache_align: false,
        destroy_by_rcu: false,
        reclaim_account: false,
        cache_dma: None,
        remote_node_defrag_ratio: None,
    };
    change(&mut row);
    let mut before = Before::from_counters(Path::new("dump"), &[row], &[], "");
    before.windows = Windows::All;
    before
}

#[test]
fn a_size_of_a_dump_is_used_or_named() {
    type Change = (&'static str, fn(&mut ConstRow, u64));
    let changes: [Change; 7] = [
        ("object", |row, size| row.object_size = size),
        ("size", |row, size| row.slab_size = size),
        ("both", |row, size| (row.object_size, row.slab_size) = (size, size)),
        ("align", |row, size| row.align = size),
        ("order", |row, size| row.order = size),
        ("objects", |row, size| row.objs_per_slab = size),
        ("limits", |row, size| (row.cpu_partial, row.min_partial) = (size, size)),
    ];
    let (_, reader) = imported("dump", &recording(In::Cache, 192));
    for (name, change) in changes {
        for size in SIZES {
            for page_size in [4096, 65536] {
                let before = dump(|row| change(row, size));
                let text = answers(&reader, &options(&FEW, page_size, Some(before)));
                let named = text.contains("warning: the dump's row of odd");
                let impossible = match name {
                    "limits" => false,
                    "align" => size > LARGEST_BLOCK_BYTES,
                    // An object is at most what the kernel keeps for it.
                    "object" => false,
                    "order" => size > 13,
                    // 21 objects of that size, or so many of 192 bytes, are in one page of at most 64K.
                    "size" | "both" => size > 65536 / 21,
                    _ => size > 65536 / 192,
                };
                assert_eq!(named, impossible, "{name} of {size} bytes: {text}");
            }
        }
    }
}
