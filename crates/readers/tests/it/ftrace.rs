//! Text recordings against the tidy CSV or the binary recording of the same events.

use std::collections::HashMap;
use std::io::Cursor;

use crate::common::{Words, drain, sample, words};
use slablab_readers::compressed::Decompressed;
use slablab_readers::ftrace::{Ftrace, is_text};
use slablab_readers::perfdata::PerfData;
use slablab_readers::tidy::Tidy;
use slablab_readers::{Event, Header, Kind, Source};

/// Compares all events of the text with the rows of `csv`, whose times are microseconds since the first
/// event.
#[track_caller]
fn compare<'a>(text: &'a [u8], csv: &[u8]) -> Ftrace<&'a [u8]> {
    let mut source = Ftrace::new(text);
    let mut tidy = Tidy::new(csv).unwrap();
    let (events, _) = drain(&mut source).unwrap();
    let (expected, _) = drain(&mut tidy).unwrap();
    let first = events[0].time_ns;
    for (index, (event, expected)) in events.iter().zip(&expected).enumerate() {
        let found = Words { time: event.time_ns - first, ..words(event, source.names(), source.header()) };
        assert_eq!(found, words(expected, tidy.names(), tidy.header()), "event {index}");
    }
    assert_eq!(events.len(), expected.len());
    assert_eq!((source.tally().events, source.tally().late), (events.len() as u64, 0));
    source
}

/// Compares all events of what `perf script` prints with those of the recording; times have `digits` digits.
#[track_caller]
fn compare_script(script: &[u8], recording: &[u8], digits: u32) -> (u64, u64) {
    let unit = 10u64.pow(9 - digits);
    let (mut text, mut perf) =
        (Ftrace::new(script), PerfData::seekable(Cursor::new(recording)).expect("a perf.data"));
    let (found, losses) = drain(&mut text).unwrap();
    let (expected, _) = drain(&mut perf).unwrap();
    assert_eq!(losses.iter().map(|lost| lost.count).sum::<u64>(), text.tally().lost);
    let mut symbols = HashMap::new();
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let mut in_words = words(expected, perf.names(), perf.header());
        in_words.time -= in_words.time % unit;
        let found = words(found, text.names(), text.header());
        // perf.data has addresses, which the text shows as symbols: the same one for the same address.
        if let Some(site) = site(expected) {
            in_words.call_site = symbols.entry(site).or_insert_with(|| found.call_site.clone()).clone();
        }
        // Of a task that is gone perf prints no more, while the event itself has its number.
        if found.pid == -1 {
            (in_words.pid, in_words.comm) = (-1, String::new());
        }
        assert_eq!(found, in_words, "event {index}");
    }
    assert_eq!(found.len(), expected.len());
    let header = text.header();
    assert!(!header.hashed_addresses && header.warnings.is_empty(), "{:?}", header.warnings);
    (text.tally().events, text.tally().lost)
}

fn site(event: &Event) -> Option<u64> {
    match &event.kind {
        Kind::Kmalloc(alloc) | Kind::CacheAlloc(alloc) => alloc.call_site.addr,
        Kind::Kfree(free) | Kind::CacheFree(free) | Kind::KfreeRcu(free) => free.call_site.addr,
        Kind::PageAlloc(_) | Kind::PageFree(_) | Kind::Mark(_) => None,
    }
}

#[test]
fn a_script_is_its_recording() {
    #[track_caller]
    fn check(script: &str, recording: &str, digits: u32, events: u64, lost: u64) {
        let (text, data) = (sample(script), sample(recording));
        assert!(is_text(&text[..text.len().min(4096)]));
        assert_eq!(compare_script(&text, &data, digits), (events, lost), "{script}");
    }
    let at =
        |name: &str| (format!("testdata/{name}.perfscript.txt.xz"), format!("testdata/{name}.perf.data.xz"));
    let (script, data) = at("hackbench_head");
    check(&script, &data, 9, 8103, 0);
    let (script, data) = at("callchain");
    check(&script, &data, 9, 190, 0);
    // As it is printed without options: a thread, microseconds, and the stacks.
    check("testdata/ftrace/perf_script_callchain.txt.xz", &data, 6, 190, 0);
    let (script, data) = at("lost");
    check(&script, &data, 9, 1903, 0);
    // With --show-lost-events.
    check("testdata/ftrace/perf_script_lost.txt.xz", &data, 6, 1903, 1472);
}

/// A kernel's own text: events, those passed over, and losses as `grep -c` counts them in the file.
#[test]
fn a_kernels_text_is_whole_and_hashed() {
    #[track_caller]
    fn check(name: &str, events: u64, skipped: u64, lost: (u64, Option<u32>)) {
        let text = sample(&format!("testdata/ftrace/{name}.txt.xz"));
        assert!(is_text(&text[..text.len().min(4096)]));
        let mut source = Ftrace::new(&text[..]);
        let (found, losses) = drain(&mut source).unwrap();
        let tally = source.tally();
        assert_eq!((tally.events, tally.skipped, tally.late), (events, skipped, 0), "{name}");
        assert_eq!((found.len() as u64, tally.lost), (events, lost.0), "{name}");
        assert_eq!(losses.first().map(|loss| (loss.count, loss.cpu)), Some(lost).filter(|lost| lost.0 > 0));
        let header = source.header();
        assert!(header.hashed_addresses && header.warnings[0].contains("hash-ptr"), "{:?}", header.warnings);
        assert_eq!(header.warnings.len(), 1);
        assert!(found.iter().all(|event| site(event).is_none()));
        assert!(found.iter().all(|event| event.context.is_some() == (name != "trace_noirq")));
    }
    check("trace_plain", 408, 0, (0, None));
    // With the option record-tgid, and without irq-info but with another event.
    check("trace_tgid", 408, 0, (0, None));
    check("trace_noirq", 411, 3, (0, None));
    // A small buffer: 30267 events were written, 280 are left; a reader of the pipe came too late.
    check("trace_overrun", 280, 0, (30267 - 280, None));
    check("trace_pipe_lost", 247, 0, (19551, Some(1)));
}

/// What a text gives: each event as `TIME NAME ADDRESS-OR-TEXT`, and how many events each loss is of.
struct Found {
    events: Vec<String>,
    losses: Vec<u64>,
    header: Header,
}

fn read(text: &str) -> Result<Found, String> {
    let mut source = Ftrace::new(text.as_bytes());
    let (events, losses) = drain(&mut source).map_err(|error| error.to_string())?;
    let in_words = |event| {
        let words = words(event, source.names(), source.header());
        let address = words.address.map_or(words.cache, |address| format!("{address:#x}"));
        format!("{} {} {address}", words.time, words.event)
    };
    let losses = losses.iter().map(|lost| lost.count).collect();
    Ok(Found { events: events.iter().map(in_words).collect(), losses, header: source.header().clone() })
}

const FREE: &str = "bash-7 [001] d..1. 3.5: kfree: call_site=f+0x1/0x2 ptr=00000000a2b375f4\n";

#[test]
fn lines_between_events_are_passed_over() {
    #[track_caller]
    fn check(between: &str, losses: &[u64]) {
        let text = format!("{FREE}{between}{FREE}");
        let found = read(&text).unwrap_or_else(|error| panic!("{between}: {error}"));
        assert_eq!(found.events, ["3500000000 kfree 0xa2b375f4"; 2], "{between}");
        assert_eq!(found.losses, losses, "{between}");
    }
    check("\n# a comment\n", &[]);
    check("version = 7\ncpus=2\nCPU 1 is empty\n", &[]);
    check("bash-7 [001] d..1. 3.5: do_exit <-__x64_sys_exit\n", &[]);
    check("bash-7 [001] d..1. 3.5: sched_switch: prev_comm=a [1] 2.5: b ==> x\n", &[]);
    check("bash-7 [001] d..1. 3.5: <stack trace>\n => kfree\n => vfs_read+0x1\n", &[]);
    check("CPU:1 [LOST 12 EVENTS]\n", &[12]);
    check("CPU:1 [12 EVENTS DROPPED]\n", &[12]);
    check("CPU:1 [EVENTS DROPPED]\nCPU:0 [LOST EVENTS]\n", &[0, 0]);
    check("[CPU 1 LOST 12 EVENTS]\n", &[12]);
    check("bash 7 [001] 3.5: PERF_RECORD_LOST lost 40\n", &[40]);
}

#[test]
fn programs_write_an_event_in_several_ways() {
    #[track_caller]
    fn check(line: &str, expected: &str) {
        let found = read(&format!("{line}\n")).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(found.events, [expected], "{line}");
    }
    let free = "3500000000 kfree 0xffff888100d03000";
    // trace-cmd report, with --ts-diff and with -R.
    check(" a-7 [000] 3.5: kfree:     (f+0x1) call_site=f+0x1 ptr=0xffff888100d03000", free);
    check(" a-7 [000] 3.5: (+12)  kfree:     (f+0x1) call_site=f+0x1 ptr=0xffff888100d03000", free);
    check(" a-7 [000] 3.5:        kfree:     call_site=f+0x1 ptr=0xffff888100d03000", free);
    check(
        " a-7 [000] 3.5: mm_page_alloc: pfn=0x1c6aa5 order=0 gfp_flags=0x440dc0 migratetype=0",
        "3500000000 mm_page_alloc 0x1c6aa5",
    );
    // Before 5.19, and an allocation that failed.
    check(
        " a-7 [000] .... 3.5: mm_page_alloc: page=0000000012345678 pfn=42 order=0 migratetype=0 gfp_flags=GFP_ATOMIC",
        "3500000000 mm_page_alloc 0x2a",
    );
    check(
        " a-7 [000] .... 3.5: mm_page_alloc: page=(null) pfn=0 order=3 migratetype=0 gfp_flags=GFP_ATOMIC",
        "3500000000 mm_page_alloc ",
    );
    check(" a-7 [000] 3.5: bprint: tracing_mark_write: SB filp", "3500000000 mark SB filp");
    // Nameless tasks, and a task with the name of a line.
    check("<...>-7 [000] .... 3.5: kfree: ptr=0xffff888100d03000", free);
    check(":-1 -1/-1 [000] 3.5: kmem:kfree: ptr=0xffff888100d03000", free);
    check(" [0] 1.5: kfree: a-b-7 [000] .... 3.5: kfree: ptr=0xffff888100d03000", free);
}

#[test]
fn what_is_damaged_is_said_with_its_line_unless_it_is_the_cut_end() {
    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let error = read(text).err().expect("an error");
        assert!(error.contains(expected), "expected {expected:?} in: {error}");
    }
    refused(
        &format!("{FREE}nonsense\n{FREE}"),
        "line 2: expected an event as in `bash-12 [000] 3.141592: kmalloc: ..`",
    );
    refused(&format!("{FREE}{}", FREE.replace("ptr=0", "ptr=x")), "line 2: expected `ptr=` and an address");
    refused(&FREE.replace("ptr", "rtp"), "line 1: expected `ptr=` and an address");
    refused(&FREE.replace("kfree", "kmalloc"), "line 1: expected `gfp_flags=` and flags");
    refused(&FREE.replace("kfree", "mm_page_free"), "line 1: expected `pfn=` and a frame number");
    refused(&FREE.replace("kfree", "other"), "all its 1 events are of other kinds");
    refused("# tracer: nop\n", "there are no events at all");
    refused(&"x".repeat(2 << 20), "a line shorter than 1 MiB");
    let Found { events, header, .. } = read(&format!("{FREE}{}", &FREE[..FREE.len() - 4])).unwrap();
    assert_eq!(events.len(), 1);
    assert!(
        header.warnings.iter().any(|w| w == "line 2, the last one, is cut off and left out"),
        "{header:?}"
    );
}

/// What people put around a text when they paste it.
#[test]
fn pasted_texts() {
    #[track_caller]
    fn check(text: &str, count: usize, warning: &str) {
        let Found { events, header, .. } = read(text).unwrap();
        assert_eq!(events.len(), count, "{header:?}");
        assert!(header.warnings.iter().any(|found| found == warning), "{header:?}");
    }
    let left_out = "lines that are no events are left out, the first is line 1";
    check(&format!("root@host:/sys# cat trace\n{FREE}"), 1, left_out);
    check(&format!("> ./perf script\n>\n> {FREE}> ....\n"), 1, left_out);
    let cut = format!("{}\n", &FREE[..FREE.find(" ptr").unwrap()]);
    check(&format!("{FREE}{cut}"), 1, "line 2 is cut off and left out");
}

#[test]
fn the_first_address_that_can_tell_says_whether_they_are_hashed() {
    #[track_caller]
    fn check(pointers: &[&str], hashed: bool, mixed: bool) {
        let text: String = pointers.iter().map(|ptr| FREE.replace("00000000a2b375f4", ptr)).collect();
        let header = read(&text).unwrap().header;
        assert_eq!(header.hashed_addresses, hashed, "{pointers:?}");
        let warned = header.warnings.iter().any(|warning| warning.contains("more than one recording"));
        assert_eq!(warned, mixed, "{pointers:?}: {:?}", header.warnings);
    }
    check(&["00000000a2b375f4", "0000000019de907b"], true, false);
    check(&["0xffff888100d03000", "ffff888100d03000"], false, false);
    // NULL and ZERO_SIZE_PTR do not say.
    check(&["(null)", "0000000000000010", "0000000000000000", "00000000a2b375f4"], true, false);
    check(&["(nil)", "0x10"], false, false);
    check(&["00000000a2b375f4", "0xffff888100d03000"], true, true);
}

#[test]
fn a_text_recording_is_told_by_its_first_lines() {
    #[track_caller]
    fn check(head: &str, expected: bool) {
        assert_eq!(is_text(head.as_bytes()), expected, "{head}");
    }
    check(FREE, true);
    check("\n# tracer: nop\n#\n", true);
    check("# ========\n# captured on    : Sat Nov 21 07:40:42 2026\n# cpudesc", true);
    check("cpus=160\nCPU 3 is empty\nCPU 4 is", true);
    check("CPU:1 [LOST 19551 EVENTS]\nbash-7 [001] 3.5: kfree: ptr=", true);
    check("", false);
    check("cpus=all\n", false);
    check("# a page of words\nbash-7 [001] did it at 3.5: no\n", false);
    check("slabinfo - version: 2.1\n", false);
}

/// Whole recordings, which are not in the project:
/// `SLABLAB_REPORT=W.report.txt.gz SLABLAB_EVENTS_CSV=W.events.csv.gz`.
#[test]
#[ignore = "needs a recording outside the project"]
fn a_whole_report_is_its_csv() {
    let (Ok(report), Ok(csv)) = (std::env::var("SLABLAB_REPORT"), std::env::var("SLABLAB_EVENTS_CSV")) else {
        return eprintln!("SLABLAB_REPORT or SLABLAB_EVENTS_CSV is not set: left out");
    };
    let (report, csv) = (sample(&report), sample(&csv));
    println!("{:?}", compare(&report, &csv).tally());
}

/// The same: `SLABLAB_PERF_SCRIPT=W.perfscript.txt.gz SLABLAB_PERF_DATA=perf.data.xz`, with `--ns`.
#[test]
#[ignore = "needs a recording outside the project"]
fn a_whole_script_is_its_recording() {
    let (Ok(script), Ok(recording)) =
        (std::env::var("SLABLAB_PERF_SCRIPT"), std::env::var("SLABLAB_PERF_DATA"))
    else {
        return eprintln!("SLABLAB_PERF_SCRIPT or SLABLAB_PERF_DATA is not set: left out");
    };
    let (script, recording) = (sample(&script), sample(&recording));
    println!("{:?}", compare_script(&script, &recording, 9));
}

/// `perf script` of a recording with call chains: frames stand below their event, those of programs are left
/// out, and those of an event that is left out are nobody's.
#[test]
fn stacks_belong_to_the_event_above_them() {
    let text = "\
cat 7/7 [000] 1.000000001: kmem:kmalloc: call_site=a+0x1 ptr=0xffff888100000000 bytes_req=8 bytes_alloc=8 gfp_flags=GFP_KERNEL node=-1 accounted=false
\tffffffff81000010 __kmalloc+0x10 ([kernel.kallsyms])
\tffffffff81000020 a+0x1 ([kernel.kallsyms])
\tffffffffc0000020 entry+0x2 ([ext4])
\t          401000 main+0x10 (/usr/bin/cat)

cat 7/7 [000] 1.000000002: kmem:rss_stat: mm_id=1 curr=1 type=MM_ANONPAGES size=4096B
\tffffffff81000030 other+0x30 ([kernel.kallsyms])

cat 7/7 [000] 1.000000003: kmem:kfree: call_site=b+0x1 ptr=0xffff888100000000
";
    let mut source = Ftrace::new(text.as_bytes());
    let (events, _) = drain(&mut source).unwrap();
    let stacks: Vec<_> =
        events.iter().map(|event| event.stack.map(|name| source.names().text(name))).collect();
    assert_eq!(stacks, [Some("entry+0x2;a+0x1;__kmalloc+0x10"), None]);
    // tracefs with the option stacktrace: the stack has a head of its own.
    let text = "\
             cat-7       [000] d..1.     1.000001: kfree: call_site=b+0x1/0x2 ptr=00000000aaaaaaaa
             cat-7       [000] d..1.     1.000002: <stack trace>
 => kfree
 => b
             cat-7       [000] d..1.     1.000003: kfree: call_site=b+0x1/0x2 ptr=00000000bbbbbbbb
";
    let mut source = Ftrace::new(text.as_bytes());
    let (events, _) = drain(&mut source).unwrap();
    let stacks: Vec<_> =
        events.iter().map(|event| event.stack.map(|name| source.names().text(name))).collect();
    assert_eq!(stacks, [Some("b;kfree"), None]);
}

/// A compressed text that was cut off is read up to there.
#[test]
fn a_cut_compression_ends_the_text() {
    let packed = std::fs::read(crate::common::path("testdata/trace_dat/report.txt.xz")).unwrap();
    let mut source = Ftrace::new(Decompressed::new(&packed[..packed.len() / 2]).unwrap());
    let (events, _) = drain(&mut source).unwrap();
    assert!(events.len() > 100 && events.len() < 3369, "{} events", events.len());
    assert!(source.header().cut_off.is_some_and(|cut| cut.at > 1000 && cut.of.is_none()));
}
