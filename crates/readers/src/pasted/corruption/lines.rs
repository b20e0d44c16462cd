//! The lines of a report after its first one.

use super::{
    At, Corruption, Damage, FRAMES, Track, address, digits, frame, is_of_allocator, some, track,
    without_offset,
};

/// Takes a line that belongs to a report; false if it is none of it.
pub(in super::super) fn more(report: &mut Corruption, line: &str) -> bool {
    let info = line.strip_prefix("INFO: ").unwrap_or(line);
    if let Some(track) = info.strip_prefix("Allocated in ").map(track) {
        (report.allocated, report.at) = (Some(track), At::Allocated);
        return true;
    }
    if let Some(track) = info.strip_prefix("Freed in ").map(track) {
        (report.freed, report.at) = (Some(track), At::Freed);
        return true;
    }
    if let Some(rest) = info.strip_prefix("Slab ").filter(|_| info.contains("objects=")) {
        let of = |key: &str| rest.split_once(key).and_then(|(_, rest)| digits(rest));
        report.objects = of("objects=").zip(of("used="));
        report.at = At::Report;
        return true;
    }
    if let Some(rest) = info.strip_prefix("Object 0x") {
        report.at = At::Report;
        let at = address(&info[7..]);
        if rest.contains("@offset") {
            report.listed += 1;
            report.object = report.object.or(at);
            return true;
        }
    }
    // `0xadb51e08-0xadb51e0c @offset=7688. First byte 0x40 instead of 0xcc`.
    if let Some((before, rest)) = info.split_once("First byte 0x") {
        let (low, high) = before.split_once('-').unzip();
        report.written = low.and_then(address).zip(high.and_then(address));
        let byte = |text: &str| u8::from_str_radix(text.get(..text.len().min(2))?, 16).ok();
        let expected = rest.split_once("instead of 0x").and_then(|(_, rest)| byte(rest));
        report.byte = byte(rest.split_whitespace().next().unwrap_or("")).zip(expected);
        return true;
    }
    kasan_more(report, line)
        || kfence_more(report, line)
        || leak_more(report, line)
        || last_user(report, line)
        || common(report, line)
}

/// KFENCE's: `kfence-#94: 0x..d00-0x..d3f, size=64, cache=kmalloc-64`, `allocated by task 512 on cpu 1`.
fn kfence_more(report: &mut Corruption, line: &str) -> bool {
    if !report.words.starts_with("KFENCE: ") {
        return false;
    }
    if let Some((before, cache)) = line.split_once("cache=") {
        report.cache = cache.split_whitespace().next().map(str::to_string);
        report.size = before.split_once("size=").and_then(|(_, size)| digits(size));
        return true;
    }
    for (at, start) in [(At::Allocated, "allocated by task"), (At::Freed, "freed by task")] {
        if line.starts_with(start) {
            report.at = at;
            return true;
        }
    }
    // `Out-of-bounds read at 0x8c7a (1B left of kfence-#73):`.
    let Some((_, place)) = line.split_once(" at 0x").filter(|_| line.contains("kfence-#")) else {
        return false;
    };
    let place = place.split_once('(').map_or("", |(_, place)| place);
    let side = ["right", "left"].into_iter().find(|side| place.contains(side));
    report.distance = digits(place).zip(side.map(str::to_string));
    true
}

/// SLAB's: who had the object last, `Last user: [<c02a1d3c>](kfree_skbmem+0x1c/0x80)`; then the objects
/// beside.
fn last_user(report: &mut Corruption, line: &str) -> bool {
    if let Some(rest) = line.strip_prefix("Last user: ") {
        let place = rest.split_once("](").map_or("", |(_, place)| place.trim_end_matches(')'));
        // The first is that of the object itself, which is free.
        if report.freed.is_none() && report.damage == Damage::Poison {
            report.freed = Some(Track { place: without_offset(place), ..Track::default() });
        }
        return true;
    }
    line.starts_with("Prev obj: ") || line.starts_with("Next obj: ")
}

fn kasan_more(report: &mut Corruption, line: &str) -> bool {
    for (is_write, start) in [(false, "Read of size "), (true, "Write of size ")] {
        if let Some(rest) = line.strip_prefix(start) {
            report.access = digits(rest).map(|size| (is_write, size));
            let process = rest.split_once("by task ").map(|(_, task)| task.trim().to_string());
            report.process = report.process.take().or(process);
            return true;
        }
    }
    if line.starts_with("Allocated by task") {
        report.at = At::Allocated;
        return true;
    }
    if line.starts_with("Freed by task") {
        report.at = At::Freed;
        return true;
    }
    if let Some((_, rest)) = line.split_once("belongs to the cache ") {
        report.cache = rest.split_whitespace().next().map(str::to_string);
        report.size = rest.split_once("of size ").and_then(|(_, size)| digits(size));
        return true;
    }
    if let Some((_, rest)) = line.split_once("The buggy address is located ") {
        report.at = At::Report;
        // `12 bytes to the right of`, `4 bytes inside of`; since 6.4 `0 bytes to the right of allocated ..`.
        let side = ["right", "left", "inside"].into_iter().find(|side| rest.contains(side));
        report.distance = digits(rest).zip(side.map(str::to_string));
        report.size = report.size.or_else(|| region(rest));
        return true;
    }
    if let Some(rest) = line.strip_prefix("Object at ") {
        // KASAN before 4.11: `Object at ffff.., in cache kmalloc-64 size: 64`.
        if let Some((_, rest)) = rest.split_once("in cache ") {
            report.cache = rest.split_whitespace().next().map(str::to_string);
            report.size = rest.split_once("size: ").and_then(|(_, size)| digits(size));
            return true;
        }
    }
    let others = ["The buggy address", "Memory state around", "The buggy page", "Last potentially related"];
    if others.iter().any(|start| line.starts_with(start)) {
        report.at = At::Report;
        return true;
    }
    report.size.is_none() && line.contains("-byte region [") && {
        report.size = region(line);
        true
    }
}

fn region(text: &str) -> Option<u64> {
    let (before, _) = text.split_once("-byte region")?;
    digits(before.split_whitespace().last()?)
}

fn leak_more(report: &mut Corruption, line: &str) -> bool {
    let Some(leaked) = &mut report.leaked else { return false };
    if let Some(rest) = line.strip_prefix("comm \"") {
        report.process = rest.split_once('"').map(|(name, _)| name.to_string());
        let age = rest.split_once("(age ").and_then(|(_, age)| digits(age));
        leaked.2 = age.unwrap_or(0);
        return true;
    }
    line.starts_with("hex dump") || line.starts_with("backtrace")
}

/// The lines that any report of the kernel has.
fn common(report: &mut Corruption, line: &str) -> bool {
    if let Some((_, rest)) = line.split_once("Comm: ") {
        if report.process.is_none() && report.at == At::Report {
            report.process = rest.split_whitespace().next().map(str::to_string);
        }
        // The line has the release too: it is read by others.
        return false;
    }
    if let Some((_, rest)) = line.split_once("RIP: ").or_else(|| line.split_once("pc : ")) {
        let place = rest.split_once(':').map_or(rest, |(_, place)| place);
        let place = frame(place).or_else(|| some(without_offset(place)));
        report.place = report.place.take().or(place);
        return true;
    }
    if let Some(frame) = frame(line) {
        let is_own = is_of_allocator(&frame);
        let track = |track: &mut Option<Track>| {
            let track = track.get_or_insert_default();
            if !is_own && (track.place.is_empty() || is_of_allocator(&track.place)) {
                track.place.clone_from(&frame);
            }
        };
        match report.at {
            At::Allocated => track(&mut report.allocated),
            At::Freed => track(&mut report.freed),
            At::Report if report.stack.len() < FRAMES => report.stack.push(frame),
            At::Report => {}
        }
        return true;
    }
    // Dumps of bytes, `Redzone  00000000dc40141b: bb bb ..`, and rules.
    let is_dump = line.split_once(": ").is_some_and(|(_, bytes)| {
        let mut bytes = bytes.split_whitespace();
        let byte = |word: &str| word.len() == 2 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        bytes.next().is_some_and(byte) && bytes.next().is_none_or(byte)
    });
    let known = [
        "Disabling lock debugging",
        "Call Trace",
        "Call trace",
        "FIX ",
        "Redzone",
        "Padding",
        "Bytes b4",
        "Object ",
        "invalid opcode",
        "WARNING: ",
        "------------[",
        "Modules linked in",
        "Hardware name",
        "<TASK>",
        "</TASK>",
        "hex dump",
    ];
    let is_bytes = || {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() >= 8
            && words.iter().take(8).all(|word| word.len() == 2 && word.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    is_dump || known.iter().any(|start| line.starts_with(start)) || is_bytes()
}
