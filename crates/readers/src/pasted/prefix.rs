//! What a log puts before every line, learnt from the lines whose starts are known.
//!
//! Logs of different programs, machines and languages put different things before a line of the kernel. A
//! list of them is never whole. But the kernel's own lines begin in known ways ([`STARTS`]). Where one of
//! these stands inside of a line, what is before it is such a prefix. Its shape, the kinds of its words and
//! the marks between them, is taken from every line of the text that begins so.

use std::collections::BTreeMap;

/// Starts of lines as the kernel prints them, which no sentence and no other line of the kernel has in its
/// middle.
const STARTS: [&str; 27] = [
    "Mem-Info:",
    "Call Trace:",
    "Call trace:",
    "lowmem_reserve[]:",
    "Unreclaimable slab info:",
    "Memory cgroup stats for",
    "Memory allocations (profiling",
    "slab_reclaimable:",
    "active_file:",
    "mapped:",
    "Free swap  =",
    "Total swap =",
    "SLUB: Unable to allocate memory",
    "SLAB: Unable to allocate memory",
    "cache: ",
    "MemTotal:",
    "SUnreclaim:",
    "INFO: Object 0x",
    "INFO: Slab 0x",
    "INFO: Allocated in ",
    "INFO: Freed in ",
    "BUG: KASAN: ",
    "The buggy address belongs to ",
    "unreferenced object 0x",
    "kernel BUG at mm/sl",
    "cache_from_obj: Wrong slab cache.",
    "slabinfo - version:",
];
/// Matches of a start that are looked at: a log may have the same line without end.
const MATCHES: usize = 1000;
/// Bytes of a prefix at most.
const LONGEST: usize = 300;
/// Parts of a prefix at most.
const PARTS: usize = 60;
/// Shapes that are kept at most.
const SHAPES: usize = 64;

/// A part of a prefix: digits, a word, or a mark. Blanks are between parts, and are no part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Digits,
    /// A word that all lines of this shape have.
    Word(String),
    /// A word that differs.
    AnyWord,
    Mark(char),
}

/// The prefixes of a text.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    shapes: Vec<Vec<Part>>,
}

impl Prefixes {
    /// Learns the prefixes of a text. `cleaned` takes away what stands around a line in a known way.
    pub(super) fn learn(text: &str, cleaned: impl Fn(&str) -> String) -> Prefixes {
        // By the kinds of parts, so that lines that differ in a word have one shape; with how often it is
        // there.
        let mut found: BTreeMap<Vec<Part>, (Vec<Part>, usize)> = BTreeMap::new();
        for start in STARTS {
            for (at, _) in text.match_indices(start).take(MATCHES) {
                // No further back than a prefix is long: a line may be as long as the text.
                let from = at.saturating_sub(LONGEST + 1);
                let end = text.as_bytes()[from..at].iter().rposition(|byte| *byte == b'\n');
                let Some(begin) = end.map(|end| from + end + 1).or((from == 0).then_some(0)) else {
                    continue;
                };
                if at == begin || text.as_bytes()[at - 1] == b'_' {
                    continue;
                }
                let line = cleaned(&text[begin..at + start.len()]);
                let Some(prefix) = line.strip_suffix(start.trim_end()) else { continue };
                let Some(parts) = parts(prefix).filter(|parts| !is_counter(parts)) else { continue };
                let kind =
                    |part: &Part| if matches!(part, Part::Word(_)) { Part::AnyWord } else { part.clone() };
                let kinds: Vec<Part> = parts.iter().map(kind).collect();
                if found.len() < SHAPES || found.contains_key(&kinds) {
                    let known = found.entry(kinds).or_insert_with(|| (parts.clone(), 0));
                    merge(&mut known.0, &parts);
                    known.1 += 1;
                }
            }
        }
        // The longest first: one may be the beginning of another.
        let shapes = found.into_values().filter(|(parts, times)| is_prefix(parts, *times));
        let mut shapes: Vec<Vec<Part>> = shapes.map(|(parts, _)| parts).collect();
        shapes.sort_by_key(|shape| std::cmp::Reverse(shape.len()));
        Prefixes { shapes }
    }

    /// The line without its prefix.
    pub(super) fn strip<'a>(&self, line: &'a str) -> &'a str {
        let found = self.shapes.iter().find_map(|shape| Some((after(line, shape)?, shape)));
        let Some((rest, shape)) = found else { return line };
        // A quote that the prefix opens, as the fields of CSV have it, is closed at the end of the line.
        match shape.last() {
            Some(Part::Mark('"')) => rest.strip_suffix('"').unwrap_or(rest),
            _ => rest,
        }
    }
}

/// Whether this can stand before every line of a log: it has a mark, and a number or lines enough that have
/// it. Words alone are a sentence, numbers alone are columns of a table.
fn is_prefix(parts: &[Part], times: usize) -> bool {
    const ENOUGH: usize = 3;
    let has_mark = parts.iter().any(|part| matches!(part, Part::Mark(_)));
    let has_number = parts.contains(&Part::Digits);
    has_mark && (has_number || times >= ENOUGH)
}

/// Whether it ends in a counter and its number: then the start stands in the middle of the kernel's own line.
fn is_counter(parts: &[Part]) -> bool {
    let parts = match parts {
        [rest @ .., Part::Word(unit)] if unit.eq_ignore_ascii_case("kb") => rest,
        parts => parts,
    };
    matches!(parts, [.., Part::Word(_), Part::Mark(':' | ')'), Part::Digits])
}

fn merge(known: &mut [Part], parts: &[Part]) {
    for (known, part) in known.iter_mut().zip(parts) {
        if known != part {
            *known = Part::AnyWord;
        }
    }
}

fn parts(prefix: &str) -> Option<Vec<Part>> {
    let (mut parts, mut rest) = (Vec::new(), prefix.trim());
    while !rest.is_empty() {
        let (part, after) = first(rest);
        parts.push(part);
        rest = after.trim_start();
        if parts.len() > PARTS {
            return None;
        }
    }
    (!parts.is_empty()).then_some(parts)
}

/// The first part of a text that does not begin with a blank, and what follows.
fn first(text: &str) -> (Part, &str) {
    let run = |is: fn(char) -> bool| text.find(|c| !is(c)).unwrap_or(text.len());
    let begin = text.chars().next().expect("a text with something in it");
    match begin {
        c if c.is_ascii_digit() => (Part::Digits, &text[run(|c| c.is_ascii_digit())..]),
        c if c.is_alphabetic() => {
            let end = run(|c| c.is_alphabetic() || c == '_');
            (Part::Word(text[..end].into()), &text[end..])
        }
        c => (Part::Mark(c), &text[c.len_utf8()..]),
    }
}

fn after<'a>(line: &'a str, shape: &[Part]) -> Option<&'a str> {
    let mut rest = line.trim_start();
    for part in shape {
        if rest.is_empty() {
            return None;
        }
        let (found, next) = first(rest);
        let same = match (part, &found) {
            (Part::AnyWord, Part::Word(_)) => true,
            (part, found) => part == found,
        };
        if !same {
            return None;
        }
        rest = next.trim_start();
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_known_lines_is_learnt() {
        #[track_caller]
        fn check(prefix: impl Fn(usize) -> String) {
            let lines = ["Mem-Info:", "MemTotal: 12 kB", "500 pages RAM", "dentry 1 2 3 4"];
            let text: Vec<String> = lines.iter().enumerate().map(|(at, line)| prefix(at) + line).collect();
            let prefixes = Prefixes::learn(&text.join("\n"), |line| line.trim().into());
            for (line, text) in lines.iter().zip(&text) {
                assert_eq!(prefixes.strip(text), *line, "{text}");
            }
        }
        check(|at| format!("\u{438}\u{44e}\u{43b} 27 14:08:0{at} host kernel: "));
        check(|at| format!("7\u{6708} 27 14:08:0{at} host kernel: "));
        check(|at| format!("4,18{at},5492923{at}000,-;"));
        check(|at| format!("11-26 14:08:03.12{at}     0     {at} {} kernel  : ", ["W", "E"][at % 2]));
        check(|at| format!("1 2025-07-27T14:08:0{at}.123456+00:00 host kernel - - - "));
        check(|at| format!("file-1{at}: "));
        check(|at| format!("Sun Jul 27 09:17:38 2025 kern.warn kernel: [15560{at}.938747]  "));
    }

    #[test]
    fn sentences_and_columns_are_no_prefix() {
        #[track_caller]
        fn check(text: &str) {
            let prefixes = Prefixes::learn(text, |line| line.trim().into());
            assert_eq!(prefixes.shapes, Vec::<Vec<Part>>::new(), "{text}");
        }
        check("Here is what follows Mem-Info:\n");
        check("12 Mem-Info:\n13 a\n");
        check("Node 0 Normal free:12kB min:3kB mapped:4kB\n");
        check("Mem-Info:\nMemTotal: 1 kB\n");
    }
}
