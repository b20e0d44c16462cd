//! perf.data against `perf script` of the same file, event for event.

use std::collections::HashMap;
use std::io::{Cursor, Read, Write};

use crate::common::{drain, sample};
use slablab_readers::event::{Alloc, Context, CutOff, FormatText, Free, Header, Names};
use slablab_readers::perfdata::PerfData;
use slablab_readers::{Event, Kind, LossKind, Name, Source};

/// An event in the words of `perf script`: task, CPU and time; event; call site; the other fields.
#[derive(Debug, PartialEq)]
struct Line {
    task: String,
    event: String,
    fields: Vec<String>,
}

/// Reads `comm tid/pid [cpu] time: system:event: fields`; lines of other events give `None`.
fn line_of_script(line: &str) -> Option<(Line, Option<String>)> {
    let (head, fields) = line.split_once(": ")?;
    let (event, fields) = fields.trim_start().split_once(": ")?;
    let event = event.split_once(':')?.1;
    let known = ["kmalloc", "kfree", "kmem_cache_alloc", "kmem_cache_free", "mm_page_alloc", "mm_page_free"];
    if !known.contains(&event) {
        return None;
    }
    let mut words = head.split_whitespace().rev();
    let (time, cpu, ids) = (words.next()?, words.next()?, words.next()?);
    let comm = head[..head.find(ids)?].trim();
    let tid = ids.split_once('/')?.1;
    // `page=` is an address that perf derives from the frame, and call sites are symbols of the running
    // kernel.
    let mut site = None;
    let kept = fields.split_whitespace().filter(|field| {
        site = site.take().or_else(|| field.strip_prefix("call_site=").map(str::to_string));
        !field.starts_with("page=") && !field.starts_with("call_site=")
    });
    let fields = kept.map(str::to_string).collect();
    Some((Line { task: format!("{comm} {tid} {cpu} {time}"), event: event.into(), fields }, site))
}

fn line_of_event(event: &Event, names: &Names, header: &Header) -> (Line, Option<u64>) {
    let text = |name: Option<Name>| name.map_or("?", |name| names.text(name)).to_string();
    let pointer = |ptr: Option<u64>| format!("ptr={:#x}", ptr.unwrap_or(0)).replace("=0x0", "=(nil)");
    let alloc = |alloc: &Alloc| {
        let mut fields = vec![pointer(alloc.ptr)];
        fields.extend(alloc.cache.map(|cache| format!("name={}", names.text(cache))));
        fields.push(format!("bytes_req={}", alloc.bytes_req));
        fields.push(format!("bytes_alloc={}", alloc.bytes_alloc));
        fields.push(format!("gfp_flags={}", header.gfp.print(alloc.gfp.raw.unwrap())));
        fields.push(format!("node={}", alloc.node.unwrap()));
        fields.push(format!("accounted={}", alloc.accounted.unwrap()));
        (fields, alloc.call_site.addr)
    };
    let free = |free: &Free| {
        let name = free.cache.map(|cache| format!("name={}", names.text(cache)));
        ([pointer(free.ptr)].into_iter().chain(name).collect(), free.call_site.addr)
    };
    let (word, (fields, site)) = match &event.kind {
        Kind::Kmalloc(event) => ("kmalloc", alloc(event)),
        Kind::CacheAlloc(event) => ("kmem_cache_alloc", alloc(event)),
        Kind::Kfree(event) => ("kfree", free(event)),
        Kind::CacheFree(event) => ("kmem_cache_free", free(event)),
        Kind::PageAlloc(page) => {
            let gfp = header.gfp.print(page.gfp.raw.unwrap());
            let [order, migratetype] = [u64::from(page.order), page.migratetype.unwrap() as u64];
            let fields = vec![
                format!("pfn={:#x}", page.pfn.unwrap_or(0)),
                format!("order={order}"),
                format!("migratetype={migratetype}"),
                format!("gfp_flags={gfp}"),
            ];
            ("mm_page_alloc", (fields, None))
        }
        Kind::PageFree(page) => {
            ("mm_page_free", (vec![format!("pfn={:#x}", page.pfn), format!("order={}", page.order)], None))
        }
        Kind::Mark(_) | Kind::KfreeRcu(_) => panic!("these recordings have no marks and no probes"),
    };
    let (seconds, nanos) = (event.time_ns / 1_000_000_000, event.time_ns % 1_000_000_000);
    let (comm, pid, cpu) = (text(event.comm), event.pid, event.cpu);
    (Line { task: format!("{comm} {pid} [{cpu:03}] {seconds}.{nanos:09}"), event: word.into(), fields }, site)
}

/// Compares the events of `perf` with the lines of `script`. Call sites must map to symbols as a function
/// does, unless the script has plain addresses, which must be the same.
#[track_caller]
fn compare<R: std::io::Read>(mut perf: PerfData<R>, script: &str) -> PerfData<R> {
    let script = String::from_utf8(sample(script)).unwrap();
    let mut expected = script.lines().filter_map(line_of_script);
    let (events, _) = drain(&mut perf).unwrap();
    let mut symbols = HashMap::new();
    for event in &events {
        let (line, site) = line_of_event(event, perf.names(), perf.header());
        let (expected, symbol) = expected.next().expect("no more events than perf script prints");
        assert_eq!(line, expected);
        let (Some(site), Some(symbol)) = (site, symbol) else { continue };
        let known = symbols.entry(site).or_insert_with(|| symbol.clone());
        assert_eq!(*known, symbol, "{site:#x}");
        assert!(!symbol.starts_with("0x") || symbol == format!("{site:#x}"), "{symbol} is not {site:#x}");
    }
    assert!(expected.next().is_none(), "fewer events than perf script prints");
    assert_eq!((perf.tally().events, perf.tally().late), (events.len() as u64, 0));
    perf
}

#[test]
fn events_are_those_of_perf_script() {
    #[track_caller]
    fn check(recording: &str, script: &str, events: u64) {
        let data = sample(recording);
        let seeking = compare(PerfData::seekable(Cursor::new(&data)).unwrap(), script);
        let reopening = compare(PerfData::reopen(|| Ok(&data[..])).unwrap(), script);
        for perf in [seeking.tally(), reopening.tally()] {
            assert_eq!(perf.events, events, "{recording}");
        }
        let header = seeking.header();
        assert_eq!(header.release.as_deref(), Some("6.18.44-generic"));
        assert_eq!((header.arch.as_deref(), header.page_size), (Some("x86_64"), Some(4096)));
        assert_eq!((header.cpus_online, header.cpus_available), (Some(2), Some(2)));
        assert_eq!(header.command[..2], ["/usr/bin/perf", "record"]);
        assert_eq!(header.gfp.value("__GFP_RECLAIMABLE"), Some(0x10));
        assert!(header.maps.iter().any(|map| map.name.starts_with("[kernel.kallsyms]")));
    }
    // Two CPUs whose buffers perf read one after the other.
    check("testdata/hackbench_head.perf.data.xz", "testdata/hackbench_head.perfscript.txt.xz", 8103);
    check("corpus/perfdata/file.perf.data", "testdata/file.perfscript.txt.xz", 202);
    check("corpus/perfdata/file_compressed.perf.data", "testdata/file_compressed.perfscript.txt.xz", 188);
    check("corpus/perfdata/pipe.perf.data", "testdata/pipe.perfscript.txt.xz", 202);
    check("corpus/perfdata/pipe_compressed.perf.data", "testdata/pipe_compressed.perfscript.txt.xz", 184);
    check("testdata/callchain.perf.data.xz", "testdata/callchain.perfscript.txt.xz", 190);
    check("testdata/lost.perf.data.xz", "testdata/lost.perfscript.txt.xz", 1903);
}

#[test]
fn losses_are_counted_once_and_placed() {
    let data = sample("testdata/lost.perf.data.xz");
    let mut perf = PerfData::seekable(Cursor::new(&data)).unwrap();
    let (_, losses) = drain(&mut perf).unwrap();
    let tally = perf.tally();
    // The ring's records and perf's own sum at the end tell of the same losses.
    assert_eq!((tally.lost, tally.lost_ring, tally.lost_samples), (1472, 1472, 1472));
    assert_eq!(tally.lost_by_cpu, [1472]);
    assert!(tally.incomplete());
    let ring: Vec<_> = losses.iter().filter(|lost| lost.kind == LossKind::Ring).collect();
    assert_eq!(ring.len(), 8);
    assert!(ring.iter().all(|lost| lost.cpu == Some(0) && lost.time_ns.is_some()));
    assert!(ring.windows(2).all(|pair| pair[0].time_ns < pair[1].time_ns && pair[0].offset < pair[1].offset));
}

#[test]
fn sampling_and_the_clock_are_reported() {
    let data = sample("testdata/sampled.perf.data.xz");
    let perf = PerfData::seekable(Cursor::new(&data)).unwrap();
    assert_eq!(perf.header().clock.as_deref(), Some("monotonic"));
    assert_eq!(perf.header().warnings.len(), 1);
    assert!(perf.header().warnings[0].contains("sampled"));
}

#[test]
fn a_small_window_delivers_all_and_counts_what_is_late() {
    let data = sample("testdata/hackbench_head.perf.data.xz");
    let mut perf = PerfData::seekable(Cursor::new(&data)).unwrap();
    perf.set_window(1000);
    let (events, _) = drain(&mut perf).unwrap();
    assert_eq!(events.len(), 8103);
    let mut newest = 0;
    let late = events.iter().filter(|event| {
        let late = event.time_ns < newest;
        newest = newest.max(event.time_ns);
        late
    });
    assert_eq!(late.count() as u64, perf.tally().late);
    assert!(perf.tally().late > 0, "the window is smaller than a round");
}

#[test]
fn a_task_is_in_the_context_its_events_say() {
    let data = sample("testdata/hackbench_head.perf.data.xz");
    let mut perf = PerfData::seekable(Cursor::new(&data)).unwrap();
    let (events, _) = drain(&mut perf).unwrap();
    let contexts = || events.iter().map(|event| event.context.unwrap());
    let count = |of: fn(Context) -> bool| contexts().filter(|&context| of(context)).count();
    assert_eq!([count(Context::irqs_off), count(Context::softirq), count(Context::hardirq)], [4, 0, 0]);
    assert_eq!([count(Context::task), count(|context| context.preempt_depth() > 0)], [8103, 8103]);
}

#[test]
fn what_is_wrong_is_said_with_its_offset() {
    #[track_caller]
    fn check(change: impl FnOnce(&mut Vec<u8>), expected: &str) {
        let mut data = sample("corpus/perfdata/file.perf.data");
        change(&mut data);
        let run = || drain(&mut PerfData::seekable(Cursor::new(&data))?);
        let error = run().unwrap_err().to_string();
        assert_eq!(error, expected);
    }
    fn put(data: &mut [u8], at: usize, value: u64) {
        data[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    fn get(data: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(data[at..at + 8].try_into().unwrap())
    }
    check(|data| data.clear(), "at byte 0: expected 8 bytes of magic, 0 are there");
    check(
        |data| data[..8].copy_from_slice(b"PERFILE3"),
        "at byte 0: expected `PERFILE2`, found [50, 45, 52, 46, 49, 4c, 45, 33]: not a perf.data",
    );
    check(
        |data| put(data, 8, 99),
        "at byte 8: expected a header size of 104 bytes (file) or 16 (pipe), found 99",
    );
    check(
        |data| put(data, 48, 0),
        "at byte 48: the data size is 0: perf record was killed before it could finish this file, and what describes \
         its events is missing; import it with --formats, another recording of the same kernel or its \
         /sys/kernel/tracing/events/kmem, to read the events that are there",
    );
    check(|data| put(data, 16, 0), "at byte 16: expected an attribute size of 80 to 4096 bytes, found 0");
    check(
        |data| put(data, 48, u64::MAX),
        "at byte 48: expected a data size that ends before 2^63, found 18446744073709551615",
    );
    check(
        |data| data.truncate(5000),
        "cut off after 0.0 of 0.0 MB: perf writes what describes the events behind them, so it is missing; import it \
         with --formats, another recording of the same kernel or its /sys/kernel/tracing/events/kmem, to read the \
         events that are there",
    );
    // The first feature section claims a pebibyte.
    check(
        |data| {
            let table = (get(data, 40) + get(data, 48)) as usize;
            put(data, table + 8, 1 << 50);
        },
        "at byte 26472: expected 1125899906842624 bytes of feature section, 26362 are there",
    );
    // Without the feature bits there are no formats.
    check(
        |data| (72..104).for_each(|at| data[at] = 0),
        "the recording has no tracepoint formats (HEADER_TRACING_DATA): record with `perf record -e 'kmem:*'`, not as \
         hardware or software events",
    );
    // The first record claims no size.
    check(
        |data| {
            let at = get(data, 40) as usize;
            data[at + 6..at + 8].fill(0);
        },
        "at byte 1070: expected a record size of at least 8, found 0",
    );
}

/// Events of a recording that was cut off, and where it was.
fn read_cut<R: Read>(mut perf: PerfData<R>) -> (usize, Option<CutOff>) {
    let (events, _) = drain(&mut perf).unwrap();
    (events.len(), perf.header().cut_off)
}

#[test]
fn a_cut_pipe_is_read_up_to_there() {
    let data = sample("corpus/perfdata/pipe.perf.data");
    let at = data.len() as u64 - 3;
    let (events, cut) = read_cut(PerfData::pipe(&data[..at as usize]).unwrap());
    assert_eq!((events, cut), (202, Some(CutOff { at, of: None })), "the last record is no event");
    let (events, cut) = read_cut(PerfData::pipe(&data[..data.len() - 9_001]).unwrap());
    assert!(events > 10 && events < 190 && cut.is_some(), "{events} events, {cut:?}");
    assert_eq!(read_cut(PerfData::pipe(&data[..]).unwrap()), (202, None));
}

/// The formats of a file's events are behind them. Those of another recording of the same kernel serve.
#[test]
fn a_cut_file_is_read_with_the_formats_of_another() {
    let data = sample("testdata/hackbench_head.perf.data.xz");
    let formats = PerfData::seekable(Cursor::new(&data)).unwrap().header().formats.clone();
    let section = data_section(&data);
    let check = |data: &[u8], of: Option<u64>| {
        let seeking = read_cut(PerfData::seekable_with(Cursor::new(data), &formats).unwrap());
        let reopening = read_cut(PerfData::reopen_with(|| Ok(data), &formats).unwrap());
        assert_eq!(seeking, reopening);
        let (events, cut) = seeking;
        assert_eq!(cut, Some(CutOff { at: data.len() as u64, of }));
        events
    };
    let half = (section.start + section.end) / 2;
    let events = check(&data[..half], Some(section.end as u64));
    assert!(events > 2000 && events < 6000, "{events} events of 8103 in half of the file");
    // A recorder that was killed has not yet written the size of the data.
    let mut killed = data[..half].to_vec();
    killed[48..56].fill(0);
    let without_size = PerfData::seekable_with(Cursor::new(&killed[..]), &formats).unwrap();
    assert!(read_cut(without_size).0 >= events - 1);
    let of_another: Vec<_> = formats
        .iter()
        .map(|format| {
            let text = format.text.lines().map(|line| if line.starts_with("ID:") { "ID: 9" } else { line });
            FormatText { text: text.collect::<Vec<_>>().join("\n"), ..format.clone() }
        })
        .collect();
    let refused = PerfData::seekable_with(Cursor::new(&data[..half]), &of_another).err().unwrap().to_string();
    assert!(refused.contains("they are of another kernel"), "{refused}");
}

/// The chain of an allocation ends in the allocator, which its call site called.
#[test]
fn call_chains_lead_to_the_call_site() {
    let data = sample("testdata/callchain.perf.data.xz");
    let mut perf = PerfData::seekable(Cursor::new(&data)).unwrap();
    let (events, _) = drain(&mut perf).unwrap();
    let (mut through, mut deepest) = (0, 0);
    for event in &events {
        let (Kind::CacheAlloc(Alloc { call_site, .. }) | Kind::Kmalloc(Alloc { call_site, .. })) = event.kind
        else {
            continue;
        };
        let stack = perf.names().text(event.stack.expect("recorded with -g"));
        let frames: Vec<&str> = stack.split(';').collect();
        assert!(frames.iter().all(|frame| frame.starts_with("0xffffffff")), "{stack}");
        let site = format!("{:#x}", call_site.addr.unwrap());
        through += usize::from(frames[..frames.len() - 1].contains(&site.as_str()));
        deepest = deepest.max(frames.len());
    }
    assert!(through > 50 && deepest > 8, "{through} chains through their call site, {deepest} frames");
}

/// The records of a pipe with each one replaced by what `change` makes of its type, body and what follows it.
fn rewrite_pipe(data: &[u8], change: impl Fn(u32, &[u8]) -> Option<(u32, Vec<u8>)>) -> Vec<u8> {
    let (mut out, mut rest) = (data[..16].to_vec(), &data[16..]);
    while !rest.is_empty() {
        let kind = u32::from_le_bytes(rest[..4].try_into().unwrap());
        let size = u16::from_le_bytes(rest[6..8].try_into().unwrap()) as usize;
        let (head, body) = (&rest[..8], &rest[8..size]);
        match change(kind, body) {
            Some((kind, body)) => {
                out.extend(kind.to_le_bytes());
                out.extend(&head[4..6]);
                out.extend((8 + body.len() as u16).to_le_bytes());
                out.extend(body);
            }
            None => out.extend(&rest[..size]),
        }
        rest = &rest[size..];
        if kind == 66 {
            // Tracing data follows its record.
            let size = u32::from_le_bytes(body[..4].try_into().unwrap()).next_multiple_of(8) as usize;
            out.extend(&rest[..size]);
            rest = &rest[size..];
        }
    }
    out
}

#[test]
fn newer_compressed_records_are_read() {
    // perf 6.16 and later write COMPRESSED2: the size of the data, the data, padding.
    let data = rewrite_pipe(&sample("corpus/perfdata/pipe_compressed.perf.data"), |kind, body| {
        let mut padded = [&(body.len() as u64).to_le_bytes(), body].concat();
        padded.resize(padded.len().next_multiple_of(8), 0xee);
        (kind == 81).then_some((83, padded))
    });
    let perf = compare(PerfData::pipe(&data[..]).unwrap(), "testdata/pipe_compressed.perfscript.txt.xz");
    assert_eq!(perf.tally().events, 184);
}

#[test]
fn compressed_records_may_be_cut_anywhere() {
    // perf cuts its stream where a buffer is full: inside records and inside their headers.
    let data = sample("corpus/perfdata/pipe.perf.data");
    let first_comm = 3u32.to_le_bytes();
    let plain = data.windows(8).rposition(|at| at[..4] == first_comm && at[6..] == [56, 0]).unwrap();
    for piece in [1, 7, 1000] {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        let (mut out, mut written, mut before_last) = (data[..plain].to_vec(), 0, 0);
        for part in data[plain..].chunks(piece) {
            encoder.write_all(part).unwrap();
            encoder.flush().unwrap();
            let compressed = &encoder.get_ref()[written..];
            before_last = out.len();
            out.extend([81u32.to_le_bytes(), ((8 + compressed.len() as u32) << 16).to_le_bytes()].concat());
            out.extend(compressed);
            written += compressed.len();
        }
        let perf = compare(PerfData::pipe(&out[..]).unwrap(), "testdata/pipe.perfscript.txt.xz");
        assert_eq!(perf.tally().events, 202);

        // A stream that ends inside a record is cut off, even where its compressed records are whole.
        out.truncate(before_last);
        let (_, cut) = read_cut(PerfData::pipe(&out[..]).unwrap());
        assert_eq!(cut, Some(CutOff { at: out.len() as u64, of: None }));
    }
}

#[test]
fn what_a_filter_dropped_is_no_loss() {
    let mut data = sample("testdata/lost.perf.data.xz");
    let (mut at, size) = (data_section(&data).start, data_section(&data).end);
    while at < size {
        if data[at..at + 4] == 13u32.to_le_bytes() {
            data[at + 5] |= 0x80;
        }
        at += usize::from(u16::from_le_bytes([data[at + 6], data[at + 7]]));
    }
    let mut perf = PerfData::seekable(Cursor::new(&data)).unwrap();
    drain(&mut perf).unwrap();
    assert_eq!((perf.tally().lost_ring, perf.tally().lost_samples), (1472, 0));
}

fn data_section(data: &[u8]) -> std::ops::Range<usize> {
    let word = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap()) as usize;
    word(40)..word(40) + word(48)
}

#[test]
fn tracing_data_is_padded_in_a_pipe() {
    let data = rewrite_pipe(&sample("corpus/perfdata/pipe.perf.data"), |kind, body| {
        let size = u32::from_le_bytes(body.get(..4)?.try_into().unwrap()).wrapping_sub(3);
        (kind == 66).then(|| (kind, [&size.to_le_bytes(), &body[4..]].concat()))
    });
    let perf = compare(PerfData::pipe(&data[..]).unwrap(), "testdata/pipe.perfscript.txt.xz");
    assert_eq!(perf.tally().events, 202);
}
