//! Files of /proc in a record: kept as text, read when asked for, and made from values for a model's record.

use super::Phase;
use crate::procfs::{self, FreeBlocks, Numbers, PageTypes};
use crate::slabinfo::{Slabinfo, SlabinfoError, SlabinfoRow};
use crate::text::{LineError, number, utf8};
use std::fmt::Write;

/// A file at a phase's end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// `meminfo`, `buddyinfo`, `lru_gen`, `slabinfo`, `pagetypeinfo`, `extfrag`, or another name.
    pub name: String,
    /// Its text; every line ends with a line feed.
    pub text: String,
}

/// One generation of one node's multi-generational LRU lists, from /sys/kernel/debug/lru_gen. Counts are
/// pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    /// The memory control group's number.
    pub memcg: u64,
    /// The node.
    pub node: u32,
    /// The sequence number; a higher one is younger.
    pub sequence: u64,
    /// Its age.
    pub age_ms: u64,
    /// Anonymous pages.
    pub anon: u64,
    /// File pages.
    pub file: u64,
}

impl Phase {
    fn text(&self, name: &str) -> &str {
        self.section(name).map_or("", |section| &section.text)
    }

    /// /proc/meminfo; empty if it was not recorded. Unit: kB where the kernel writes it.
    ///
    /// # Errors
    /// The first line that is not as the kernel writes it; lines count from the section's start.
    pub fn meminfo(&self) -> Result<Numbers, LineError> {
        procfs::parse_numbers(self.text("meminfo").as_bytes())
    }

    /// /proc/buddyinfo; empty if it was not recorded.
    ///
    /// # Errors
    /// The first line that is not as the kernel writes it; lines count from the section's start.
    pub fn buddyinfo(&self) -> Result<Vec<FreeBlocks>, LineError> {
        procfs::parse_buddyinfo(self.text("buddyinfo").as_bytes())
    }

    /// /proc/pagetypeinfo; empty if it was not recorded.
    ///
    /// # Errors
    /// The first line that is not as the kernel writes it; lines count from the section's start.
    pub fn pagetypeinfo(&self) -> Result<PageTypes, LineError> {
        procfs::parse_pagetypeinfo(self.text("pagetypeinfo").as_bytes())
    }

    /// /proc/slabinfo; `None` if it was not recorded.
    ///
    /// # Errors
    /// The first line that is not as the kernel writes it; lines count from the section's start.
    pub fn slabinfo(&self) -> Result<Option<Slabinfo>, SlabinfoError> {
        self.section("slabinfo").map(|section| Slabinfo::parse(section.text.as_bytes())).transpose()
    }

    /// The generations of all nodes; empty without MGLRU, or if they were not recorded.
    ///
    /// # Errors
    /// The first line that is not as the kernel writes it; lines count from the section's start.
    pub fn lru_gen(&self) -> Result<Vec<Generation>, LineError> {
        parse_lru_gen(self.text("lru_gen").as_bytes())
    }
}

/// Reads /sys/kernel/debug/lru_gen.
fn parse_lru_gen(text: &[u8]) -> Result<Vec<Generation>, LineError> {
    let mut generations = Vec::new();
    let mut place: (Option<u64>, Option<u32>) = (None, None);
    for (index, line) in utf8(text)?.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let error = |expected| LineError::new(index + 1, expected, line);
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["memcg", id, ..] => place = (Some(number(id).ok_or_else(|| error("`memcg ID PATH`"))?), None),
            ["node", id] => place.1 = Some(number(id).ok_or_else(|| error("`node ID`"))?),
            [sequence, age, anon, file] => {
                let expected = "a generation's number, age in ms, anonymous and file pages";
                let (memcg, node) =
                    place.0.zip(place.1).ok_or_else(|| error("`memcg ID PATH` and `node ID` before"))?;
                let of = |word| number::<u64>(word).ok_or_else(|| error(expected));
                let [sequence, age_ms, anon, file] = [of(sequence)?, of(age)?, of(anon)?, of(file)?];
                generations.push(Generation { memcg, node, sequence, age_ms, anon, file });
            }
            _ => return Err(error("`memcg`, `node` or a generation")),
        }
    }
    Ok(generations)
}

/// Sections from values, as the kernel writes them.
impl Section {
    /// meminfo from names and kB.
    pub fn meminfo<'a>(kilobytes: impl IntoIterator<Item = (&'a str, u64)>) -> Section {
        let line = |(name, kb): (&str, u64)| format!("{:<16}{kb:>8} kB\n", format!("{name}:"));
        Section { name: "meminfo".into(), text: kilobytes.into_iter().map(line).collect() }
    }

    /// buddyinfo from the free blocks of each zone.
    pub fn buddyinfo(zones: &[FreeBlocks]) -> Section {
        let mut text = String::new();
        for zone in zones {
            write!(text, "Node {}, zone {:>8} ", zone.node, zone.zone).expect("a string takes all text");
            zone.blocks
                .iter()
                .for_each(|count| write!(text, "{count:>6} ").expect("a string takes all text"));
            text.push('\n');
        }
        Section { name: "buddyinfo".into(), text }
    }

    /// lru_gen from generations, those of one node behind one another.
    pub fn lru_gen(generations: &[Generation]) -> Section {
        let (mut text, mut place) = (String::new(), None);
        for one in generations {
            let Generation { memcg, node, sequence, age_ms, anon, file } = one;
            if place != Some((memcg, node)) {
                let path = if *memcg == 1 { "/" } else { "" };
                write!(text, "memcg {memcg:>5} {path}\n node {node:>5}\n").expect("a string takes all text");
                place = Some((memcg, node));
            }
            writeln!(text, " {sequence:>10} {age_ms:>10} {anon:>10}  {file:>10} ")
                .expect("a string takes all text");
        }
        Section { name: "lru_gen".into(), text }
    }

    /// slabinfo, version 2.1, without SLAB's statistics.
    pub fn slabinfo(rows: &[SlabinfoRow]) -> Section {
        let mut text = String::from(
            "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> \
             <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> \
             <num_slabs> <sharedavail>\n",
        );
        for row in rows {
            let SlabinfoRow { name, active_objs, num_objs, objsize, objperslab, pagesperslab, .. } = row;
            let objects = format!(
                "{name:<17} {active_objs:>6} {num_objs:>6} {objsize:>6} {objperslab:>4} {pagesperslab:>4}"
            );
            let SlabinfoRow { limit, batchcount, sharedfactor, .. } = row;
            let tunables = format!("tunables {limit:>4} {batchcount:>4} {sharedfactor:>4}");
            let SlabinfoRow { active_slabs, num_slabs, sharedavail, .. } = row;
            let slabs = format!("slabdata {active_slabs:>6} {num_slabs:>6} {sharedavail:>6}");
            writeln!(text, "{objects} : {tunables} : {slabs}").expect("a string takes all text");
        }
        Section { name: "slabinfo".into(), text }
    }
}
