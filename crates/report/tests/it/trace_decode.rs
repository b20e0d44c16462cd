//! A reader of Perfetto's traces for tests: protocol buffers by their wire format alone, the rules of names
//! and slices as `trace_processor` has them.

use std::collections::HashMap;

/// A field of a message: a number, or bytes.
#[derive(Clone, Debug)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// An event as a reader shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A slice: depth in its track, name, begin and end in nanoseconds.
    Slice(usize, String, u64, u64),
    Instant(String, u64),
    Value(u64, i64),
}

/// What a reader shows: tracks by their path (`CPUs/CPU 0`) in the order of the file, with their events.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) tracks: Vec<(String, Vec<Shown>)>,
    /// How often the names were cleared.
    pub(crate) cleared: usize,
    pub(crate) packets: usize,
    /// Ends of flows: the flow, whether it ends there, the name of the slice or instant, its time.
    pub(crate) flows: Vec<(u64, bool, String, u64)>,
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return number;
        }
    }
    unreachable!()
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_first_chunk().expect("eight bytes");
                bytes = rest;
                Field::Number(u64::from_le_bytes(*number))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (field, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(field)
            }
            other => panic!("wire type {other}"),
        };
        found.push((key >> 3, field));
    }
    found
}

fn number(of: &[(u64, Field<'_>)], field: u64) -> Option<u64> {
    of.iter().find_map(|(number, value)| match value {
        Field::Number(value) if *number == field => Some(*value),
        _ => None,
    })
}

fn bytes<'a>(of: &[(u64, Field<'a>)], field: u64) -> Option<&'a [u8]> {
    of.iter().find_map(|(number, value)| match value {
        Field::Bytes(value) if *number == field => Some(*value),
        _ => None,
    })
}

fn text(of: &[(u64, Field<'_>)], field: u64) -> String {
    String::from_utf8(bytes(of, field).expect("a text").to_vec()).expect("UTF-8")
}

/// Reads a trace.
///
/// # Panics
/// If a reader would drop or misplace something.
pub(crate) fn read(trace: &[u8]) -> Read {
    let mut read = Read::default();
    let mut index: HashMap<u64, usize> = HashMap::new();
    let mut names: Option<HashMap<u64, String>> = None;
    let mut events: Vec<(u64, u64, u64, String, i64)> = Vec::new();
    for (field, packet) in fields(trace) {
        let (1, Field::Bytes(packet)) = (field, packet) else { panic!("field {field} is no packet") };
        let packet = fields(packet);
        read.packets += 1;
        assert_eq!(number(&packet, 10), Some(1), "the sequence");
        if let Some(track) = bytes(&packet, 60).map(fields) {
            let parent = number(&track, 5).map(|parent| read.tracks[index[&parent]].0.clone() + "/");
            index.insert(number(&track, 1).expect("a uuid"), read.tracks.len());
            read.tracks.push((parent.unwrap_or_default() + &text(&track, 2), Vec::new()));
            continue;
        }
        let flags = number(&packet, 13).expect("flags");
        if flags & 1 != 0 {
            read.cleared += 1;
            names = Some(HashMap::new());
        }
        assert!(flags & 2 != 0, "events use names");
        let names = names.as_mut().expect("the first packet with an event clears the names");
        for (_, name) in bytes(&packet, 12).map(fields).unwrap_or_default() {
            let Field::Bytes(name) = name else { panic!("no name") };
            let name = fields(name);
            let known = names.insert(number(&name, 1).expect("an iid"), text(&name, 2));
            assert_eq!(known, None, "a name is written once");
        }
        let event = fields(bytes(&packet, 11).expect("an event"));
        let name = number(&event, 10).map_or(String::new(), |iid| names[&iid].clone());
        let value = number(&event, 30).unwrap_or(0) as i64;
        let at = number(&packet, 8).expect("a time");
        for (field, ends) in [(47, false), (48, true)] {
            read.flows.extend(number(&event, field).map(|flow| (flow, ends, name.clone(), at)));
        }
        events.push((
            at,
            number(&event, 11).expect("a track"),
            number(&event, 9).expect("a type"),
            name,
            value,
        ));
    }
    events.sort_by_key(|event| event.0);
    place(&mut read, &index, events);
    read
}

/// Puts events on their tracks, in the order of time. Slices end where the innermost open one does.
fn place(read: &mut Read, index: &HashMap<u64, usize>, events: Vec<(u64, u64, u64, String, i64)>) {
    let mut open: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, track, kind, name, value) in events {
        let shown = &mut read.tracks[index[&track]].1;
        let open = open.entry(track).or_default();
        match kind {
            1 => {
                open.push(shown.len());
                shown.push(Shown::Slice(open.len() - 1, name, at, u64::MAX));
            }
            2 => {
                let Shown::Slice(_, _, _, end) = &mut shown[open.pop().expect("a slice is open")] else {
                    panic!("no slice")
                };
                *end = at;
            }
            3 => shown.push(Shown::Instant(name, at)),
            4 => shown.push(Shown::Value(at, value)),
            other => panic!("type {other}"),
        }
    }
}
