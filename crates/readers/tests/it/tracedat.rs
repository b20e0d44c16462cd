//! trace.dat, compared event by event with the tidy CSV and the `trace-cmd report` of the same recording.
//! Features that no available recording has are in files that the tests construct.

use std::io::{Cursor, Read, Seek};

use crate::common::recording::{Choice, KFREE, MISSED, MISSED_STORED, OTHER, PAGE, PRINT, Recording};
use crate::common::{Words, drain, sample, words};
use slablab_readers::ftrace::Ftrace;
use slablab_readers::tidy::Tidy;
use slablab_readers::tracedat::TraceDat;
use slablab_readers::{CutOff, Kind, LossKind, Source};

/// All events in words, with times in microseconds since the first.
fn micros<S: Source>(source: &mut S) -> Vec<Words> {
    let (events, _) = drain(source).unwrap();
    assert_eq!((source.tally().events, source.tally().late), (events.len() as u64, 0));
    let micros = |ns: u64| (ns + 500) / 1000;
    let first = events.first().map_or(0, |event| micros(event.time_ns));
    let in_words = |event| words(event, source.names(), source.header());
    events.iter().map(|event| Words { time: micros(event.time_ns) - first, ..in_words(event) }).collect()
}

/// Compares the events of `recording` with the rows of `csv`, of which there may be fewer.
#[track_caller]
fn compare<R: Read + Seek>(recording: R, csv: &[u8]) -> (TraceDat<R>, usize) {
    let mut source = TraceDat::new(recording).unwrap();
    let found = micros(&mut source);
    let expected = micros(&mut Tidy::new(csv).unwrap());
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "event {index}");
    }
    assert!(found.len() >= expected.len(), "{} events, {} rows", found.len(), expected.len());
    (source, expected.len())
}

#[test]
fn events_are_those_of_the_csv_and_of_the_report() {
    #[track_caller]
    fn check(recording: &str) {
        let data = sample(recording);
        let csv = sample("testdata/hackbench.events.csv.gz");
        let (source, rows) = compare(Cursor::new(&data), &csv);
        assert_eq!((source.tally().events, rows), (3369, 3000), "{recording}");
        let found = micros(&mut TraceDat::new(Cursor::new(&data)).unwrap());
        let expected = micros(&mut Ftrace::new(&sample("testdata/trace_dat/report.txt.xz")[..]));
        assert!(found == expected, "{recording} is not its report");
        let header = source.header();
        assert_eq!((header.page_size, header.cpus_online), (Some(4096), Some(2)));
        assert_eq!((header.release.as_deref(), header.arch.as_deref()), (Some("6.18.44"), Some("x86_64")));
        assert_eq!(header.gfp.value("__GFP_RECLAIMABLE"), Some(0x10));
        assert!(!header.hashed_addresses && header.warnings.is_empty(), "{:?}", header.warnings);
    }
    check("testdata/trace_dat/v6.trace.dat.xz");
    check("testdata/trace_dat/v7_zlib.trace.dat");
    check("testdata/trace_dat/v7_zstd.trace.dat");
}

/// Whole recordings, which are not in the project:
/// `SLABLAB_TRACE_DAT=trace.dat SLABLAB_EVENTS_CSV=W.events.csv.gz`.
#[test]
#[ignore = "needs a recording outside the project"]
fn a_whole_recording_is_its_csv() {
    let (Ok(recording), Ok(csv)) = (std::env::var("SLABLAB_TRACE_DAT"), std::env::var("SLABLAB_EVENTS_CSV"))
    else {
        return eprintln!("SLABLAB_TRACE_DAT or SLABLAB_EVENTS_CSV is not set: left out");
    };
    let (recording, csv) = (sample(&recording), sample(&csv));
    let (source, rows) = compare(Cursor::new(recording), &csv);
    assert_eq!(source.tally().events, rows as u64);
    println!("{:?}", source.tally());
    println!("{:?}", source.header().warnings);
}

/// Versions and endiannesses that a rule must hold in.
const FORMS: [(u8, bool); 4] = [(6, false), (6, true), (7, false), (7, true)];

/// A recording with `pages` on CPU 0, in every form, is these frees: time and address.
#[track_caller]
fn check(pages: impl Fn(&Recording) -> Vec<Vec<u8>>, expected: &[(u64, u64)]) {
    for (version, big_endian) in FORMS {
        let mut recording = Recording::new(version, big_endian);
        recording.cpus = vec![pages(&recording)];
        let mut source = TraceDat::new(Cursor::new(recording.bytes())).unwrap();
        let (events, losses) = drain(&mut source).unwrap();
        let frees: Vec<_> = events
            .iter()
            .map(|event| match &event.kind {
                Kind::Kfree(free) => (event.time_ns, free.ptr.unwrap_or(0)),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(frees, expected, "version {version}, big endian: {big_endian}");
        assert_eq!(losses, []);
    }
}

const WHOLE: (u64, Option<u64>) = (0, None);

#[test]
fn times_go_on_from_event_to_event_and_begin_anew_with_a_page() {
    check(
        |r| vec![r.page(1000, &[r.kfree(0, 1), r.kfree(5, 2)], WHOLE), r.page(900, &[r.kfree(7, 3)], WHOLE)],
        // Only in a damaged recording does time run backwards. The reader does not change the times.
        &[(1000, 1), (1005, 2), (907, 3)],
    );
    check(
        |r| vec![r.page(1000, &[r.extend(1 << 40 | 3), r.kfree(4, 1), r.extend(2), r.kfree(0, 2)], WHOLE)],
        &[(1000 + (1 << 40) + 7, 1), (1000 + (1 << 40) + 9, 2)],
    );
}

#[test]
fn a_time_stamp_has_59_bits_and_the_page_the_others() {
    check(|r| vec![r.page(1000, &[r.stamp(5000), r.kfree(4, 1)], WHOLE)], &[(5004, 1)]);
    let high = 3 << 59;
    check(|r| vec![r.page(high | 1000, &[r.stamp(5000), r.kfree(4, 1)], WHOLE)], &[(high | 5004, 1)]);
    // The lower bits have run over since the page began.
    let full = high | ((1 << 59) - 10);
    check(|r| vec![r.page(full, &[r.stamp(5), r.kfree(1, 1)], WHOLE)], &[((4 << 59) + 6, 1)]);
}

#[test]
fn what_is_no_event_is_passed_over() {
    check(
        |r| {
            let discarded = r.discarded(3, &r.payload(KFREE, &[0; 16]));
            let page = r.page(10, &[r.kfree(1, 1), discarded, r.long_kfree(2, 2), r.padding()], WHOLE);
            vec![page, r.page(50, &[], WHOLE), r.page(90, &[r.kfree(0, 3)], WHOLE)]
        },
        &[(11, 1), (16, 2), (90, 3)],
    );
    let mut recording = Recording::new(7, false);
    let other = recording.data(0, &recording.payload(OTHER, &[0; 4]));
    recording.cpus = vec![vec![recording.page(1, &[other.clone(), recording.kfree(0, 1), other], WHOLE)]];
    let mut source = TraceDat::new(Cursor::new(recording.bytes())).unwrap();
    assert_eq!(drain(&mut source).unwrap().0.len(), 1);
    assert_eq!((source.tally().events, source.tally().skipped), (1, 2));
}

#[test]
fn an_event_says_who_and_where() {
    for (version, big_endian) in FORMS {
        let mut recording = Recording::new(version, big_endian);
        let text = recording.payload(PRINT, &[&recording.u64(0)[..], b"hello from user\n\0\0\0\0"].concat());
        let mark = recording.data(1, &text);
        recording.cpus = vec![vec![recording.page(1, &[recording.kfree(0, 1), mark], WHOLE)], Vec::new()];
        let mut source = TraceDat::new(Cursor::new(recording.bytes())).unwrap();
        let (events, _) = drain(&mut source).unwrap();
        let [free, mark] = events[..] else { panic!("{events:?}") };
        let found = words(&free, source.names(), source.header());
        assert_eq!((found.pid, &*found.comm, &*found.call_site), (7, "a task", "freeing+0x10"));
        assert!(free.context.is_some_and(|it| it.irqs_off() && it.preempt_depth() == 2), "{free:?}");
        let found = words(&mark, source.names(), source.header());
        assert_eq!((found.time, found.pid, found.event, &*found.cache), (2, 7, "mark", "hello from user"));
        assert_eq!(source.header().cpus_online, (version == 6).then_some(2));
    }
}

#[test]
fn cpus_and_instances_are_merged_by_time() {
    for (version, big_endian) in FORMS {
        let mut r = Recording::new(version, big_endian);
        let page = |time, ptr| vec![r.page(time, &[r.kfree(0, ptr), r.kfree(10, ptr + 1)], WHOLE)];
        let (cpus, instance) = (vec![page(100, 1), page(105, 3)], vec![page(105, 5), page(1, 7)]);
        (r.cpus, r.instance) = (cpus, Some(instance));
        let mut source = TraceDat::new(Cursor::new(r.bytes())).unwrap();
        let (events, _) = drain(&mut source).unwrap();
        let found: Vec<_> = events
            .iter()
            .map(|event| {
                (event.time_ns, event.cpu, words(event, source.names(), source.header()).address.unwrap())
            })
            .collect();
        let expected = [
            (1, 1, 7),
            (11, 1, 8),
            (100, 0, 1),
            (105, 0, 5),
            (105, 1, 3),
            (110, 0, 2),
            (115, 0, 6),
            (115, 1, 4),
        ];
        assert_eq!(found, expected, "version {version}, big endian: {big_endian}");
        assert!(source.header().warnings[0].contains("several buffers"), "{:?}", source.header().warnings);
    }
}

#[test]
fn losses_stand_where_they_were_noticed() {
    for (version, big_endian) in FORMS {
        let mut r = Recording::new(version, big_endian);
        let page = |missed| r.page(100, &[r.kfree(5, 1)], missed);
        let stored = MISSED | MISSED_STORED;
        r.cpus = vec![vec![
            page(WHOLE),
            page((MISSED, None)),
            page((stored, Some(12))),
            page((stored, Some(u64::MAX))),
        ]];
        let stats =
            b"CPU: 1\nentries: 9\noverrun: 20\ncommit overrun: 1\ndropped events: 2\nread events: 9\n\0";
        r.options = vec![(2, b"CPU: 0\noverrun: 0\n\0".to_vec()), (2, stats.to_vec())];
        let mut source = TraceDat::new(Cursor::new(r.bytes())).unwrap();
        let (events, losses) = drain(&mut source).unwrap();
        assert_eq!(events.len(), 4);
        let found: Vec<_> =
            losses.iter().map(|lost| (lost.cpu, lost.time_ns, lost.count, lost.kind)).collect();
        let ring = |count| (Some(0), Some(100), count, LossKind::Ring);
        assert_eq!(found, [ring(0), ring(12), ring(0), (Some(1), None, 23, LossKind::Samples)]);
        let data = r.bytes().windows(8).position(|window| window == r.u64(100)).unwrap() as u64;
        assert_eq!(losses[1].offset, data + 2 * PAGE as u64);
        assert_eq!((source.tally().lost, source.tally().loss_records), (23, 4));
        assert!(source.tally().incomplete());
    }
}

#[test]
fn options_say_which_machine_and_which_clock() {
    let header = |clock, options: fn(&Recording) -> Vec<Choice>| {
        FORMS.map(|(version, big_endian)| {
            let mut r = Recording::new(version, big_endian);
            r.clock = clock;
            (r.cpus, r.options) = (vec![vec![r.page(1000, &[r.kfree(5, 1)], WHOLE)]], options(&r));
            let mut source = TraceDat::new(Cursor::new(r.bytes())).unwrap();
            let (events, _) = drain(&mut source).unwrap();
            (source.header().clone(), events[0].time_ns)
        })
    };
    for (header, time) in header("[mono]", |r| {
        let uname = b"Linux host 6.1.0-50-powerpc64le #1 SMP Debian 6.1.176-1 ppc64le GNU/Linux\0";
        vec![(5, uname.to_vec()), (8, r.u32(160).to_vec()), (999, b"later".to_vec())]
    }) {
        let found = (header.release.as_deref(), header.arch.as_deref(), header.cpus_online);
        assert_eq!(found, (Some("6.1.0-50-powerpc64le"), Some("ppc64le"), Some(160)));
        assert_eq!((header.clock.as_deref(), time), (Some("mono"), 1005));
        assert!(header.warnings.is_empty(), "{:?}", header.warnings);
    }
    // A counter of cycles is made time where the recording says how, and is named as none where it does not.
    for (header, time) in header("[x86-tsc]", |r| vec![(14, [&r.u32(6)[..], &r.u32(1), &r.u64(15)].concat())])
    {
        assert_eq!((header.clock.as_deref(), time), (Some("x86-tsc"), 3000));
        assert!(header.warnings.is_empty(), "{:?}", header.warnings);
    }
    for (header, time) in header("local global [x86-tsc] tai\n", |_| Vec::new()) {
        assert_eq!((header.clock.as_deref(), time), (Some("x86-tsc"), 1005));
        assert!(header.warnings[0].contains("its times are no times"), "{:?}", header.warnings);
    }
}

/// One recording with one thing wrong; the error says what and where.
#[track_caller]
fn refused(recording: impl AsRef<[u8]>, expected: &str) {
    let read = |data| drain(&mut TraceDat::new(Cursor::new(data))?);
    let error = read(recording.as_ref()).expect_err("an error").to_string();
    assert!(error.contains(expected), "expected {expected:?} in: {error}");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let good = |version| {
        let mut r = Recording::new(version, false);
        r.cpus = vec![vec![r.page(1, &[r.kfree(0, 1)], WHOLE)]];
        r
    };
    refused(b"\x17\x08\x44trac", "expected 17 08 44 `tracing`");
    refused(b"\x17\x08\x44tracing5\0", "expected version 6 or 7, found `5`");
    for version in [6, 7] {
        let bytes = good(version).bytes();
        let changed = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            bytes
        };
        refused(changed(12, 2), "at byte 12: expected 0 (little endian) or 1 (big endian), found 2");
        refused(changed(14, 7), "at byte 14: expected a page size");
        let mut r = good(version);
        r.header_page =
            r.header_page.replace("offset:16;", "offset:12;").replace("size:8;\tsigned:1", "size:4;");
        refused(r.bytes(), "64-bit longs");
        r.header_page = String::new();
        refused(r.bytes(), "a page header with `timestamp`");
        let mut r = good(version);
        r.cpus = vec![vec![r.page(1, &[r.data(0, &r.payload(KFREE, &[0; 4]))], WHOLE)]];
        refused(r.bytes(), "the payload that the format text describes");
        let mut page = r.page(1, &[r.kfree(0, 1)], WHOLE);
        page[8] = 8;
        r.cpus = vec![vec![page.clone()]];
        refused(r.bytes(), "an event in its page, 4 are there");
        page[8..10].copy_from_slice(&300u16.to_le_bytes());
        r.cpus = vec![vec![page]];
        refused(r.bytes(), "events in their page, 240 are there");
        let mut r = good(version);
        r.options = vec![(14, [r.u32(6), r.u32(64), r.u32(0), r.u32(0)].concat())];
        refused(r.bytes(), "a shift below 64, found 64");
        let mut other = r.clone();
        other.options.clear();
        let bytes = other.bytes();
        let at = bytes.windows(11).position(|window| window == b"name: kfree").unwrap();
        let mut bytes = bytes.clone();
        bytes[at + 10] = b'x';
        refused(
            &bytes,
            "no allocation events: expected kmem:kmalloc or its like, found kmem:kfrex, sched:other",
        );
    }
}

/// The parts of the CPUs follow each other in the file: what is there of each is read.
#[test]
fn a_file_that_is_cut_off_is_read_up_to_there() {
    let mut r = Recording::new(6, false);
    let page = |time, address| r.page(time, &[r.kfree(0, address)], WHOLE);
    let cpus = vec![vec![page(1, 1), page(5, 5)], vec![page(2, 2), page(6, 6)]];
    r.cpus = cpus;
    let bytes = r.bytes();
    #[track_caller]
    fn check(bytes: &[u8], expected: &[u64], lost: &[u32], whole: usize) {
        let mut source = TraceDat::new(Cursor::new(bytes)).unwrap();
        let (events, losses) = drain(&mut source).unwrap();
        assert_eq!(events.iter().map(|event| event.time_ns).collect::<Vec<_>>(), expected);
        assert_eq!(losses.iter().filter_map(|lost| lost.cpu).collect::<Vec<_>>(), lost);
        let cut = CutOff { at: bytes.len() as u64, of: Some(whole as u64) };
        assert_eq!(source.header().cut_off, (!lost.is_empty()).then_some(cut));
    }
    let whole = bytes.len();
    check(&bytes, &[1, 2, 5, 6], &[], whole);
    check(&bytes[..whole - 3], &[1, 2, 5], &[1], whole);
    check(&bytes[..whole - 2 * PAGE + 40], &[1, 5], &[1], whole);
    check(&bytes[..whole - 3 * PAGE], &[1], &[1, 0], whole);
    // trace-cmd's version 7 has what describes the events behind them.
    let bytes = sample("testdata/trace_dat/v7_zlib.trace.dat");
    refused(&bytes[..bytes.len() / 2], "cut off after 0.0 of more than 0.0 MB");
}

#[test]
fn tables_that_cost_more_than_the_file_has_are_refused() {
    let mut r = Recording::new(7, false);
    r.cpus = vec![vec![r.page(1, &[r.kfree(0, 1)], WHOLE)]];
    let link = 10 + 2 + 6 + 6;
    let options = |r: &Recording| {
        let bytes = r.bytes();
        let first = u64::from_le_bytes(bytes[link..link + 8].try_into().unwrap());
        (bytes, first as usize)
    };
    let (bytes, first) = options(&r);
    // The section's chain comes back to itself.
    let mut cyclic = bytes.clone();
    let end = cyclic.len();
    cyclic[end - 8..].copy_from_slice(&(first as u64).to_le_bytes());
    refused(&cyclic, "options sections that end");
    let mut far = bytes.clone();
    far[link..link + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    refused(&far, "an offset below 2^63");
    let mut long = bytes.clone();
    long[first + 8..first + 16].copy_from_slice(&u64::MAX.to_le_bytes());
    refused(&long, "a section of at most 64 MiB");
    // Two CPUs whose events are the same bytes.
    let again = |bytes: &[u8]| {
        let mut value = r.u64(bytes.len() as u64).to_vec();
        let place = bytes.len() as u64 + 16;
        value.extend(b"\0local\0");
        value.extend([r.u32(PAGE as u32), r.u32(2)].concat());
        for cpu in [0, 1] {
            value.extend([&r.u32(cpu)[..], &r.u64(place), &r.u64(PAGE as u64)].concat());
        }
        let section = [&r.u16(3)[..], &r.u16(0), &r.u32(0), &r.u64(PAGE as u64)].concat();
        let mut bytes = [bytes, &section, &r.page(1, &[r.kfree(0, 1)], WHOLE)].concat();
        let end = first + 16 + u64::from_le_bytes(bytes[first + 8..first + 16].try_into().unwrap()) as usize;
        r.chain(&mut bytes, end - 8, &[(3, value)]);
        bytes
    };
    refused(again(&bytes), "behind the end of those of another");
    // A second section of a kind, which could be the thousandth.
    let twice = {
        let mut bytes = bytes.clone();
        let end = bytes.len();
        r.chain(&mut bytes, end - 8, &[(18, r.u64(40).to_vec())]);
        bytes
    };
    refused(twice, "one section of each kind");
}

#[test]
fn a_compressed_part_gives_what_it_says_and_no_more() {
    let good = sample("testdata/trace_dat/v7_zlib.trace.dat");
    // The header section is the first: flags, size, then its two sizes.
    let at = good.windows(5).position(|window| window == b"zlib\0").unwrap() + 5 + 4 + 8;
    assert_eq!(good[at..at + 4], [16, 0, 1, 0]);
    let changed = |at: usize, bytes: &[u8]| {
        let mut changed = good.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    refused(changed(at + 20, &100u32.to_le_bytes()), "it has not the 100 bytes that are stated");
    refused(changed(at + 20, &u32::MAX.to_le_bytes()), "a section of at most 64 MiB");
    refused(changed(at + 16, &u32::MAX.to_le_bytes()), "a section of at most 64 MiB");
    refused(changed(at + 26, &[0xff; 4]), "compressed with zlib cannot be decompressed");
    let name = at - 17;
    refused(changed(name, b"zstd\0"), "compressed with zstd cannot be decompressed");
    refused(changed(name, b"lz4x\0"), "the compression `none`, `zlib` or `zstd`, found `lz4x`");
    refused(changed(name, b"none\0"), "the file's header names no compression");
    // A chunk of events that says it would fill the memory.
    let chunk = good.windows(4).rposition(|window| window == 0x6000u32.to_le_bytes()).unwrap();
    refused(changed(chunk, &u32::MAX.to_le_bytes()), "a chunk of bearable size");
    refused(changed(chunk, &0x6001u32.to_le_bytes()), "it has not the 24577 bytes that are stated");
    refused(&good[..good.len() / 2], "");
}
