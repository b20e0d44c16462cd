//! Every slab of a kernel at one moment, with its free objects: a snapshot, as `slablab record` writes it.
//!
//! ```text
//! slablab.slabs.1 page_bytes=4096 linear_map=ffff8d3c40000000 began_ns=811 ended_ns=902
//! cache dentry size=192 object=192 at_ns=850 unsettled=0 missed=0
//! cpu 0 0 7f3a2 0 21 3,4,20          kind, number, node, frame, order, objects, free objects
//! chain 1 0 7f3b0 0 21 7             on CPU 1's partial list
//! list 0 0 7f3b4 0 21 2,1            on a node's list
//! none 0 0 7f3b5 0 21 -              on none: full
//! main 0 ffff8d3cbf3a2000            objects of a sheaf, which are free to its CPU alone
//! ```
//! Slabs of a list are in the list's order, its head first; free objects are in the order in which the kernel
//! hands them out. Frames are hexadecimal, and an address is `linear_map` + frame * `page_bytes`.

use std::fmt::Write;

use crate::text::{ID_LIMIT, LineError, number, utf8};

/// The first word of a snapshot.
const MAGIC: &str = "slablab.slabs.1";

/// Orders and objects of a slab that are believed: any kernel's are below.
const ORDER_MAX: u8 = 13;
const OBJECTS_MAX: u16 = 1 << 15;

/// The slabs of a kernel at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// The address of frame 0.
    pub linear_map: u64,
    /// When the first slab was read, by the monotonic clock.
    pub began_ns: u64,
    /// When the last one was.
    pub ended_ns: u64,
    /// The caches.
    pub caches: Vec<CacheSlabs>,
}

/// The slabs of one cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheSlabs {
    /// Its name.
    pub name: String,
    /// Bytes from one object to the next.
    pub size: u64,
    /// Bytes that the user of an object gets.
    pub object_size: u64,
    /// When it was read, by the monotonic clock.
    pub at_ns: u64,
    /// Slabs that changed at each try: what is here of them may be of two moments.
    pub unsettled: u64,
    /// Slabs that the kernel counts and that were not found: they became full after the pages were looked
    /// through.
    pub missed: u64,
    /// Its slabs: lists in their order.
    pub slabs: Vec<SlabState>,
    /// Objects in sheaves.
    pub parked: Vec<Parked>,
}

/// One slab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlabState {
    /// Where it is.
    pub place: SlabPlace,
    /// The node of its memory.
    pub node: u16,
    /// Its first frame.
    pub frame: u64,
    /// Its pages, log2.
    pub order: u8,
    /// Its objects.
    pub objects: u16,
    /// Objects that are free, in the order in which the kernel hands them out.
    pub free: Vec<u16>,
}

/// Where a slab is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlabPlace {
    /// A CPU allocates from it.
    Cpu(u16),
    /// On a CPU's partial list.
    Chain(u16),
    /// On its node's list.
    List,
    /// On none.
    None,
}

/// Objects of a sheaf, or of all sheaves of one kind of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// Which sheaf.
    pub sheaf: Sheaf,
    /// Addresses, the one that is handed out first in front.
    pub objects: Vec<u64>,
}

/// Which sheaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sheaf {
    /// A CPU's first.
    Main(u16),
    /// A CPU's second.
    Spare(u16),
    /// A CPU's of objects that wait for readers.
    Rcu(u16),
    /// A full one in the barn of a node.
    Barn(u16),
}

impl Snapshot {
    /// Bytes of a snapshot's text that are read: ten million slabs take a quarter of it.
    pub const BYTES_MAX: u64 = 1 << 30;

    /// Slabs of all caches.
    pub fn slabs(&self) -> usize {
        self.caches.iter().map(|cache| cache.slabs.len()).sum()
    }

    /// The cache that is called `name`; `None` also if several are.
    pub fn only(&self, name: &str) -> Option<&CacheSlabs> {
        let mut found = self.caches.iter().filter(|cache| cache.name == name);
        found.next().filter(|_| found.next().is_none())
    }

    /// The address of a slab's first byte.
    pub fn address(&self, slab: &SlabState) -> u64 {
        self.linear_map.wrapping_add(slab.frame.wrapping_mul(self.page_bytes))
    }

    /// The text of a snapshot.
    ///
    /// # Panics
    /// Never: a text grows as long as there is memory.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{MAGIC} page_bytes={} linear_map={:x} began_ns={} ended_ns={}\n",
            self.page_bytes, self.linear_map, self.began_ns, self.ended_ns
        );
        for cache in &self.caches {
            cache.write(&mut text).expect("a text has no end");
        }
        text
    }

    /// Reads the text of a snapshot.
    ///
    /// # Errors
    /// A line that is none of a snapshot, by its number.
    pub fn parse(text: &[u8]) -> Result<Snapshot, LineError> {
        let mut lines = (1..).zip(utf8(text)?.lines());
        let (line, first) = lines.next().unwrap_or((1, ""));
        let mut snapshot = head(first)
            .ok_or_else(|| LineError::new(line, "`slablab.slabs.1 page_bytes=.. linear_map=..`", first))?;
        for (line, text) in lines {
            let wrong = |expected| LineError::new(line, expected, text);
            if let Some(row) = text.strip_prefix("cache ") {
                let cache = cache(row).ok_or_else(|| wrong("`cache NAME size=.. object=.. at_ns=..`"))?;
                snapshot.caches.push(cache);
                continue;
            }
            let last = snapshot.caches.last_mut().ok_or_else(|| wrong("a line `cache ..` first"))?;
            match parked(text) {
                Some(parked) => last.parked.push(parked),
                None => last.slabs.push(slab(text).ok_or_else(|| {
                    wrong("`cpu|chain|list|none NUMBER NODE FRAME ORDER OBJECTS FREE`, or a sheaf")
                })?),
            }
        }
        Ok(snapshot)
    }
}

impl CacheSlabs {
    /// Objects of its slabs, used or not.
    pub fn objects(&self) -> u64 {
        self.slabs.iter().map(|slab| u64::from(slab.objects)).sum()
    }

    /// Objects that /proc/slabinfo counts as active: all but those that are free in slabs of a node's list.
    pub fn active(&self) -> u64 {
        self.objects() - self.listed().1
    }

    /// Slabs of nodes' lists, and the free objects in them.
    pub fn listed(&self) -> (u64, u64) {
        let listed = self.slabs.iter().filter(|slab| slab.place == SlabPlace::List);
        listed.fold((0, 0), |(slabs, free), slab| (slabs + 1, free + slab.free.len() as u64))
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let CacheSlabs { name, size, object_size, at_ns, unsettled, missed, slabs, parked } = self;
        writeln!(
            text,
            "cache {name} size={size} object={object_size} at_ns={at_ns} unsettled={unsettled} missed={missed}"
        )?;
        for slab in slabs {
            let (kind, number) = match slab.place {
                SlabPlace::Cpu(cpu) => ("cpu", cpu),
                SlabPlace::Chain(cpu) => ("chain", cpu),
                SlabPlace::List => ("list", 0),
                SlabPlace::None => ("none", 0),
            };
            let SlabState { node, frame, order, objects, free, .. } = slab;
            write!(text, "{kind} {number} {node} {frame:x} {order} {objects} ")?;
            joined(text, free, |text, index| write!(text, "{index}"))?;
        }
        for Parked { sheaf, objects } in parked {
            let (kind, number) = match sheaf {
                Sheaf::Main(cpu) => ("main", cpu),
                Sheaf::Spare(cpu) => ("spare", cpu),
                Sheaf::Rcu(cpu) => ("rcu", cpu),
                Sheaf::Barn(node) => ("barn", node),
            };
            write!(text, "{kind} {number} ")?;
            joined(text, objects, |text, address| write!(text, "{address:x}"))?;
        }
        Ok(())
    }
}

/// Values between commas, `-` for none, and the line's end.
fn joined<T>(
    text: &mut String,
    values: &[T],
    mut one: impl FnMut(&mut String, &T) -> std::fmt::Result,
) -> std::fmt::Result {
    if values.is_empty() {
        text.push('-');
    }
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        one(text, value)?;
    }
    text.push('\n');
    Ok(())
}

fn head(line: &str) -> Option<Snapshot> {
    let mut words = line.strip_prefix(MAGIC)?.strip_prefix(' ')?.split(' ');
    Some(Snapshot {
        page_bytes: field(&mut words, "page_bytes").filter(|bytes: &u64| bytes.is_power_of_two())?,
        linear_map: hexadecimal(words.next()?.strip_prefix("linear_map=")?)?,
        began_ns: field(&mut words, "began_ns")?,
        ended_ns: field(&mut words, "ended_ns")?,
        caches: Vec::new(),
    })
}

fn cache(row: &str) -> Option<CacheSlabs> {
    // Names may have spaces, as that of UNIX sockets' may.
    let (name, rest) = row.split_once(" size=")?;
    let rest = format!("size={rest}");
    let mut words = rest.split(' ');
    Some(CacheSlabs {
        name: name.to_string(),
        size: field(&mut words, "size").filter(|size| *size > 0)?,
        object_size: field(&mut words, "object")?,
        at_ns: field(&mut words, "at_ns")?,
        unsettled: field(&mut words, "unsettled")?,
        missed: field(&mut words, "missed")?,
        ..CacheSlabs::default()
    })
}

fn slab(line: &str) -> Option<SlabState> {
    let mut words = line.split(' ');
    let kind = words.next()?;
    let of = id(words.next()?)?;
    let place = match kind {
        "cpu" => SlabPlace::Cpu(of),
        "chain" => SlabPlace::Chain(of),
        "list" => SlabPlace::List,
        "none" => SlabPlace::None,
        _ => return None,
    };
    let node = id(words.next()?)?;
    let frame = hexadecimal(words.next()?)?;
    let order = number(words.next()?).filter(|order| *order <= ORDER_MAX)?;
    let objects = number(words.next()?).filter(|objects| *objects <= OBJECTS_MAX)?;
    let free = listed(words.next()?, |text| number(text).filter(|index| *index < objects))?;
    let mut each: Vec<u16> = free.clone();
    each.sort_unstable();
    each.dedup();
    (each.len() == free.len() && words.next().is_none()).then_some(SlabState {
        place,
        node,
        frame,
        order,
        objects,
        free,
    })
}

fn parked(line: &str) -> Option<Parked> {
    let mut words = line.split(' ');
    let sheaf: fn(u16) -> Sheaf = match words.next()? {
        "main" => Sheaf::Main,
        "spare" => Sheaf::Spare,
        "rcu" => Sheaf::Rcu,
        "barn" => Sheaf::Barn,
        _ => return None,
    };
    let sheaf = sheaf(id(words.next()?)?);
    let objects = listed(words.next()?, hexadecimal)?;
    words.next().is_none().then_some(Parked { sheaf, objects })
}

fn listed<T>(text: &str, one: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    if text == "-" { Some(Vec::new()) } else { text.split(',').map(one).collect() }
}

fn id(text: &str) -> Option<u16> {
    number::<u32>(text).filter(|id| *id < ID_LIMIT)?.try_into().ok()
}

fn field<'a, T: std::str::FromStr>(words: &mut impl Iterator<Item = &'a str>, name: &str) -> Option<T> {
    number(words.next()?.strip_prefix(name)?.strip_prefix('=')?)
}

fn hexadecimal(text: &str) -> Option<u64> {
    let is_digit = |digit: char| digit.is_ascii_hexdigit();
    text.starts_with(is_digit).then(|| u64::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "slablab.slabs.1 page_bytes=4096 linear_map=ffff888000000000 began_ns=1 ended_ns=9\n";
    const CACHE: &str = "cache dentry size=192 object=192 at_ns=5 unsettled=1 missed=2\n";

    #[test]
    fn a_text_is_what_was_written() {
        let slab = |place, frame, free: &[u16]| SlabState {
            place,
            node: 1,
            frame,
            order: 1,
            objects: 42,
            free: free.to_vec(),
        };
        let cache = CacheSlabs {
            name: "dentry".into(),
            size: 192,
            object_size: 190,
            at_ns: 7,
            unsettled: 3,
            missed: 4,
            slabs: vec![
                slab(SlabPlace::Cpu(1), 0xabc, &[41, 0]),
                slab(SlabPlace::Chain(0), 0xabe, &[7]),
                slab(SlabPlace::List, 0xac0, &[1, 2, 3]),
                slab(SlabPlace::None, 0xac2, &[]),
            ],
            parked: [Sheaf::Main(0), Sheaf::Spare(1), Sheaf::Rcu(2), Sheaf::Barn(3)]
                .map(|sheaf| Parked { sheaf, objects: vec![0xffff_8880_00ab_c000] })
                .into(),
        };
        let spaced = CacheSlabs { name: "UNIX STREAM".into(), size: 8, ..CacheSlabs::default() };
        let snapshot = Snapshot {
            page_bytes: 4096,
            linear_map: 0xffff_8880_0000_0000,
            began_ns: 1,
            ended_ns: 9,
            caches: vec![cache, spaced],
        };
        assert_eq!(Snapshot::parse(snapshot.text().as_bytes()), Ok(snapshot.clone()));
        assert_eq!(snapshot.slabs(), 4);
        assert_eq!(snapshot.address(&snapshot.caches[0].slabs[0]), 0xffff_8880_00ab_c000);
    }

    /// Slabs of a kernel 6.18 with two CPUs, and what its /proc/slabinfo said in the same second.
    #[test]
    fn a_real_one_counts_as_slabinfo_does() {
        let text = include_bytes!("../corpus/slabs/host-6.18.txt");
        let snapshot = Snapshot::parse(text).expect("a snapshot");
        assert_eq!(snapshot.text().as_bytes(), text);
        #[track_caller]
        fn check(snapshot: &Snapshot, name: &str, expected: (u64, u64, usize)) {
            let cache = snapshot.only(name).expect("it was kept");
            assert_eq!((cache.active(), cache.objects(), cache.slabs.len()), expected, "{name}");
        }
        check(&snapshot, "signal_cache", (139, 224, 16));
        check(&snapshot, "kmalloc-8k", (48, 76, 19));
        check(&snapshot, "kmalloc-4k", (376, 376, 47));
        check(&snapshot, "task_struct", (181, 225, 45));
        check(&snapshot, "maple_node", (936, 1728, 108));
        let maple = snapshot.only("maple_node").expect("it was kept");
        assert_eq!(maple.parked.iter().map(|parked| parked.objects.len()).sum::<usize>(), 415);
        assert_eq!(maple.parked.last().map(|parked| parked.sheaf), Some(Sheaf::Barn(0)));
    }

    #[test]
    fn wrong_lines_are_named() {
        #[track_caller]
        fn check(text: &str, line: usize) {
            let error = Snapshot::parse(text.as_bytes()).expect_err(text);
            assert_eq!(error.line, line, "{error}");
        }
        check("", 1);
        check("slablab.slabs.2 page_bytes=4096 linear_map=0 began_ns=1 ended_ns=9\n", 1);
        check("slablab.slabs.1 page_bytes=4095 linear_map=0 began_ns=1 ended_ns=9\n", 1);
        check(&format!("{HEAD}list 0 0 1 0 21 -\n"), 2);
        check(&format!("{HEAD}cache dentry size=0 object=1 at_ns=1 unsettled=0 missed=0\n"), 2);
        for wrong in [
            "list 0 0 1 0 21 21",
            "list 0 0 1 0 21 3,3",
            "list 0 0 1 14 21 -",
            "list 0 0 1 0 40000 -",
            "list 70000 0 1 0 21 -",
            "list 0 0 x 0 21 -",
            "list 0 0 1 0 21 - 1",
            "lost 0 0 1 0 21 -",
            "main 0 +1",
            "list 0 0 1 0 21",
        ] {
            check(&format!("{HEAD}{CACHE}none 0 0 1 0 21 -\n{wrong}\n"), 4);
        }
    }
}
