//! Lines that say something of the whole machine: heads of tables, meminfo, dentry-state, the release.

use super::Pasted;
use super::row::{decimal, number, size, unit_shift};
use super::tables::Kind;
use crate::moment;
use crate::procfs::{DentryState, Numbers};
use std::collections::BTreeMap;

/// The head of slabtop: of all caches, whatever the list below it shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Objects in use, and all.
    pub objects: Option<(u64, u64)>,
    /// Slabs with an object in use, and all.
    pub slabs: Option<(u64, u64)>,
    /// Caches with an object in use, and all.
    pub caches: Option<(u64, u64)>,
    /// Bytes of objects in use, and of all objects: without the tails of slabs.
    pub bytes: Option<(u64, u64)>,
}

/// What a line is.
pub(super) enum Fact {
    /// The heading of a table.
    Heading(Kind),
    /// Anything else that was understood.
    Other,
}

/// What lines before say about a line.
#[derive(Default)]
pub(super) struct Facts {
    /// Numbers of dentry-state follow.
    dentry_state: bool,
    /// The next line is a release.
    uname: bool,
    /// Numbers of lines of slabtop's head in this screen.
    head: usize,
    /// The line before had a kernel's taint.
    tainted: bool,
    /// Rows of crash's `kmem -i` follow.
    in_crash: bool,
    /// The time of what follows, in seconds since 1970 and since the boot.
    taken_s: Option<u64>,
    up_s: Option<f64>,
    /// Counters in lines of their own: of each moment, the last one last.
    pub(super) counters: Vec<Numbers>,
    /// Numbers behind names are bytes: an awk program in the text multiplies objects by their size.
    pub(super) products: bool,
    /// Rows of numastat follow.
    in_numastat: bool,
    /// kB by node and name, of nodes' own meminfo and of numastat.
    nodes: BTreeMap<(u64, String), u64>,
}

impl Facts {
    /// Takes a line; `None` if it says nothing.
    pub(super) fn line(&mut self, pasted: &mut Pasted, line: &str, words: &[&str]) -> Option<Fact> {
        if words == ["PAGES", "TOTAL", "PERCENTAGE"] {
            self.in_crash = true;
            return Some(Fact::Other);
        }
        let uname = std::mem::replace(&mut self.uname, words.contains(&"uname"));
        if uname
            && let [release] = words
            && is_release(release)
        {
            pasted.release = Some((*release).to_string());
            return Some(Fact::Other);
        }
        if let Some(heading) = heading(line, words) {
            pasted.has_version |= line.contains("slabinfo - version");
            if heading == Kind::Slabtop {
                self.head = 0;
            }
            return Some(Fact::Heading(heading));
        }
        let understood = self.totals(pasted, line)
            || self.of_nodes(line, words)
            || self.meminfo(pasted, words)
            || self.time(line)
            || self.dentry_state(pasted, line, words)
            || self.release(pasted, line, words)
            || self.counter(words)
            || cpus(pasted, line)
            || self.source(pasted, line);
        understood.then_some(Fact::Other)
    }

    /// `Active / Total Objects (% used)  : 739390584 / 740008326 (99.9%)`, in whatever language: objects,
    /// slabs, caches and sizes are in this order.
    fn totals(&mut self, pasted: &mut Pasted, line: &str) -> bool {
        let Some((label, values)) = line.split_once(':') else { return false };
        if !label.contains(" / ") {
            return false;
        }
        let values = values.split('(').next().unwrap_or(values);
        let mut parts = values.split('/').map(str::trim);
        let (Some(one), Some(all)) = (parts.next(), parts.next()) else { return false };
        if let Some(least) = parts.next() {
            // Minimum, average and maximum of the sizes.
            return size(least).is_some();
        }
        let plain = number(one).zip(number(all));
        let sizes = size(one)
            .zip(size(all))
            .map(|(one, all)| (one.low.midpoint(one.high), all.low.midpoint(all.high)));
        if plain.is_none() && sizes.is_none() {
            return false;
        }
        if self.head == 0 {
            pasted.totals = Some(Totals::default());
        }
        let totals = pasted.totals.get_or_insert_default();
        match (plain, sizes, self.head) {
            (None, sizes, _) => totals.bytes = sizes,
            (plain, _, 0) => totals.objects = plain,
            (plain, _, 1) => totals.slabs = plain,
            (plain, ..) => totals.caches = plain,
        }
        self.head += 1;
        true
    }

    /// A name that is there already begins a new moment, as a table that is there already does.
    fn meminfo(&mut self, pasted: &mut Pasted, words: &[&str]) -> bool {
        let of_crash = crash(words).filter(|_| self.in_crash).map(|pair| vec![pair]);
        let Some(pairs) = of_crash.or_else(|| meminfo(words)).or_else(|| atop(words)) else { return false };
        self.counted(pasted, pairs)
    }

    /// Puts numbers of /proc/meminfo to those that are there; false if there are too many.
    pub(super) fn counted(&mut self, pasted: &mut Pasted, pairs: Vec<(String, u64)>) -> bool {
        if pasted.meminfo.len() > 1000 {
            return false;
        }
        if pairs.iter().any(|(name, _)| pasted.meminfo.contains_key(name)) {
            pasted.next_moment();
        }
        if pasted.meminfo.is_empty() {
            (pasted.taken_s, pasted.up_s) = (self.taken_s.take(), self.up_s.take());
        }
        pasted.meminfo.extend(pairs);
        true
    }

    /// A line of a node's meminfo, `Node 0 Slab:  7012344 kB`, or of numastat, whose last column is the sum
    /// in MB.
    fn of_nodes(&mut self, line: &str, words: &[&str]) -> bool {
        if words.first() == Some(&"Node") && words.last() == Some(&"Total") {
            self.in_numastat = true;
            return true;
        }
        let found = match words {
            ["Node", node, rest @ ..] => {
                let of_one = meminfo(rest).filter(|pairs| pairs.len() == 1).and_then(|mut pairs| pairs.pop());
                number(node).zip(of_one).map(|(node, (name, kb))| ((node, name), kb))
            }
            [name, numbers @ ..]
                if self.in_numastat && line.starts_with(|c: char| c.is_ascii_uppercase()) =>
            {
                let values: Option<Vec<u64>> = numbers.iter().map(|word| megabytes(word)).collect();
                let sum = values.filter(|values| values.len() > 1).and_then(|values| values.last().copied());
                sum.map(|kb| ((0, (*name).to_string()), kb))
            }
            _ => None,
        };
        let Some((key, kb)) = found.filter(|_| self.nodes.len() < 1 << 16) else { return false };
        self.nodes.insert(key, kb);
        true
    }

    /// The sums over all nodes, by the names of /proc/meminfo.
    pub(super) fn sums_of_nodes(&self) -> Numbers {
        let mut sums = Numbers::default();
        for ((_, name), kb) in &self.nodes {
            let sum = sums.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*kb);
        }
        sums
    }

    /// The time of what follows: the output of date or uptime.
    fn time(&mut self, line: &str) -> bool {
        // Longer lines are of something else.
        if line.len() > 200 || !line.contains(':') {
            return false;
        }
        // The clock before it is taken away as that of a log.
        let line = &format!(" {line}");
        let is_up = line.contains(" up ") && line.contains("load average");
        let up_s = moment::uptime(line).filter(|_| is_up);
        let is_date = line.split_whitespace().count() <= 7 && !line.contains(['[', '=', '(']);
        let taken_s = moment::date(line).filter(|_| is_date && !is_up);
        self.up_s = up_s.or(self.up_s);
        self.taken_s = taken_s.or(self.taken_s);
        up_s.is_some() || taken_s.is_some()
    }

    /// `Linux version 6.1.0 ..`, `Linux host 6.1.0 #1 SMP ..`, `.. Not tainted 5.4.0-42-generic #46-Ubuntu`.
    /// A line that was broken after "Tainted:" goes on in the next one.
    fn release(&mut self, pasted: &mut Pasted, line: &str, words: &[&str]) -> bool {
        let goes_on = std::mem::replace(&mut self.tainted, line.contains("ainted"));
        release(pasted, words, goes_on)
    }

    /// A counter in a line of its own, as in memory.stat and /proc/vmstat: `slab_reclaimable 1676590856`.
    fn counter(&mut self, words: &[&str]) -> bool {
        let &[name, value] = words else { return false };
        let is_name = name.len() > 2
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit());
        let name_ends = name.starts_with(|c: char| c.is_ascii_lowercase());
        let known = name.contains('_')
            || matches!(
                name,
                "anon"
                    | "file"
                    | "kernel"
                    | "percpu"
                    | "sock"
                    | "shmem"
                    | "zswap"
                    | "unevictable"
                    | "slab"
                    | "cache"
                    | "swap"
                    | "dirty"
                    | "writeback"
                    | "pagetables"
                    | "pgfault"
                    | "pgmajfault"
                    | "mapped"
                    | "zswapped"
                    | "vmalloc"
                    | "pgpgin"
                    | "pgpgout"
                    | "rss"
            );
        const MOST: usize = 1000;
        let value = number::<u64>(value).filter(|_| is_name && name_ends && known);
        let Some(value) = value else { return false };
        // A name that is there already begins a new moment.
        if self.counters.last().is_none_or(|last| last.contains_key(name)) {
            self.counters.push(Numbers::default());
        }
        // The first and the last are compared.
        if self.counters.len() > MOST {
            self.counters.remove(1);
        }
        let last = self.counters.last_mut().expect("a moment");
        last.len() < MOST && last.insert(name.to_string(), value).is_none()
    }

    /// A line that names the program or the file whose output follows, as a prompt with a command does.
    fn source(&mut self, pasted: &mut Pasted, line: &str) -> bool {
        let names = [
            "slabtop",
            "/proc/slabinfo",
            "/proc/meminfo",
            "vmstat -m",
            "memory.kmem.slabinfo",
            "kmem.slabinfo",
        ];
        if !names.iter().any(|name| line.contains(name)) {
            return false;
        }
        pasted.of_cgroup |= line.contains("kmem.slabinfo");
        let program: String = line.split_whitespace().collect();
        pasted.active_bytes |= program.contains("$2*$4") || program.contains("$4*$2");
        // `print $1, $3*$4`: bytes, unless they are divided.
        let of_all = program.contains("$3*$4") || program.contains("$4*$3");
        let is_bytes =
            (pasted.active_bytes || of_all) && !program.contains("*$4/") && !program.contains("/1024");
        self.products |= is_bytes;
        true
    }

    /// Six numbers, or three at least of a line that was cut, after a line that names the file.
    fn dentry_state(&mut self, pasted: &mut Pasted, line: &str, words: &[&str]) -> bool {
        if let Some((_, rest)) = line.split_once("dentry-state") {
            self.dentry_state = true;
            let rest = rest.trim_start_matches([':', '=', ' ', '`', '"']);
            let values: Vec<&str> = rest.split_whitespace().collect();
            dentry_values(pasted, &values);
            return true;
        }
        self.dentry_state && dentry_values(pasted, words)
    }
}

fn dentry_values(pasted: &mut Pasted, words: &[&str]) -> bool {
    let Some(state) = DentryState::of(words) else { return false };
    pasted.dentry_state = Some(state);
    true
}

/// The heading of a table, or a part of one that was wrapped.
fn heading(line: &str, words: &[&str]) -> Option<Kind> {
    if line.contains("slabinfo - version") {
        return Some(Kind::Slabinfo);
    }
    let in_slabinfo = |word: &&str| {
        let column = word.starts_with('<') && word.ends_with('>');
        column || matches!(*word, "#" | "name" | ":" | "tunables" | "slabdata" | "globalstat" | "cpustat")
    };
    if words.iter().any(|word| word.starts_with('<')) && words.iter().all(in_slabinfo) {
        return Some(Kind::Slabinfo);
    }
    let has =
        |all: &[&str]| all.iter().all(|word| words.iter().any(|found| found.eq_ignore_ascii_case(word)));
    match () {
        () if has(&["OBJSIZE", "ALLOCATED", "SSIZE"]) => Some(Kind::Crash),
        () if has(&["name", "flags", "slabsize", "objsize"]) => Some(Kind::Spl),
        () if has(&["Cache", "Num", "Total", "Size", "Pages"]) => Some(Kind::Columns),
        // Debuggers print tables with the same words in another order.
        () if has(&["INUSE"]) => None,
        () if has(&["OBJS", "SLABS", "NAME"]) || has(&["OBJ/SLAB", "NAME"]) => Some(Kind::Slabtop),
        () if line.contains("Unreclaimable slab info") || has(&["Name", "Used", "Total"]) => Some(Kind::Oom),
        () => None,
    }
}

/// Names and numbers of /proc/meminfo: one pair as the kernel prints it, or several that were put in a line.
/// `None` if the line is of something else.
fn meminfo(words: &[&str]) -> Option<Vec<(String, u64)>> {
    let mut pairs = Vec::new();
    let mut rest = words;
    while let [name, value, more @ ..] = rest {
        let is_capital = name.starts_with(|c: char| c.is_ascii_uppercase());
        let name = name.strip_suffix([':', '|']).filter(|_| is_capital)?.trim_end_matches(':');
        let value = value.trim_end_matches([',', ';']);
        let unit = more.first().map(|unit| unit.trim_end_matches([',', ';']));
        let has_unit = unit.is_some_and(|unit| unit.eq_ignore_ascii_case("kB"));
        // Tools that rewrite the file have larger units, and parts of them: `15.6 GB`.
        let shift = unit.and_then(unit_shift).filter(|shift| *shift > 10);
        if let Some(bytes) = shift.and_then(|_| size(&format!("{value}{}", unit?))) {
            pairs.push((name.to_string(), bytes.low.midpoint(bytes.high) >> 10));
            rest = &more[1..];
            continue;
        }
        let value = number::<u64>(value)?;
        // Counts without a unit are few, and none is about slabs.
        if !has_unit && !name.starts_with("HugePages_") {
            return None;
        }
        pairs.push((name.to_string(), value));
        rest = if has_unit { &more[1..] } else { more };
    }
    (!pairs.is_empty() && rest.is_empty()).then_some(pairs)
}

/// `MEM | tot 15.6G | free 207.4M | cache 391.8M | slab 13.4G | slrec 207.4M |` of atop, without its bars.
fn atop(words: &[&str]) -> Option<Vec<(String, u64)>> {
    const NAMES: [(&str, &str); 6] = [
        ("tot", "MemTotal"),
        ("free", "MemFree"),
        ("cache", "Cached"),
        ("buff", "Buffers"),
        ("slab", "Slab"),
        ("slrec", "SReclaimable"),
    ];
    let ["MEM", rest @ ..] = words else { return None };
    let of = |pair: &[&str]| {
        let (_, name) = NAMES.iter().find(|(short, _)| *short == pair[0])?;
        let bytes = size(pair[1])?;
        Some((name.to_string(), bytes.low.midpoint(bytes.high) >> 10))
    };
    let pairs: Vec<(String, u64)> = rest.windows(2).filter_map(of).collect();
    pairs.iter().any(|(name, _)| name == "Slab").then_some(pairs)
}

/// MB with two digits after the point as kB.
fn megabytes(word: &str) -> Option<u64> {
    let (mantissa, digits) = decimal(word).filter(|(_, digits)| *digits == 2)?;
    Some(mantissa.checked_mul(1024)? / 10u64.pow(digits))
}

/// `SLAB    19758      77.2 MB    1% of TOTAL MEM` of crash's `kmem -i`: pages as kB of /proc/meminfo's
/// names.
fn crash(words: &[&str]) -> Option<(String, u64)> {
    const NAMES: [(&str, &str); 6] = [
        ("TOTAL MEM", "MemTotal"),
        ("FREE", "MemFree"),
        ("BUFFERS", "Buffers"),
        ("CACHED", "Cached"),
        ("SLAB", "Slab"),
        ("TOTAL SWAP", "SwapTotal"),
    ];
    let at = words.iter().position(|word| number::<u64>(word).is_some()).filter(|at| (1..=2).contains(at))?;
    let (_, name) = NAMES.iter().find(|(name, _)| *name == words[..at].join(" "))?;
    let pages: u64 = number(words[at])?;
    // The size tells the bytes of a page, and is rounded: 4 KiB but for machines with larger ones.
    let size = size(&format!("{}{}", words.get(at + 1)?, words.get(at + 2).copied().unwrap_or("")));
    let page = size.map_or(4, |size| size.low.midpoint(size.high).checked_div(pages).unwrap_or(0) >> 10);
    let page = if page >= 48 {
        64
    } else if page >= 12 {
        16
    } else {
        4
    };
    Some((name.to_string(), pages.checked_mul(page)?))
}

fn release(pasted: &mut Pasted, words: &[&str], goes_on: bool) -> bool {
    let words: Vec<&str> =
        words.iter().map(|word| word.trim_matches(['`', '(', ')', '"', '\'', ','])).collect();
    let version =
        words.windows(3).find(|words| words[0] == "Linux" && words[1] == "version").map(|words| words[2]);
    let is_build = |word: &str| {
        word.strip_prefix('#').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let of_a_report = || {
        let named = words.iter().any(|word| word.eq_ignore_ascii_case("kernel:"));
        let told = goes_on
            || named
            || words.contains(&"Linux")
            || words.iter().any(|word| word.trim_end_matches(':').eq_ignore_ascii_case("tainted"));
        let before = |pair: &[&str]| is_release(pair[0]) && is_build(pair[1]);
        words.windows(2).find(|pair| before(pair)).filter(|_| told).map(|pair| pair[0])
    };
    match version.filter(|word| is_release(word)).or_else(of_a_report) {
        Some(found) => {
            pasted.release = Some(found.to_string());
            true
        }
        None => false,
    }
}

fn is_release(word: &str) -> bool {
    let mut parts = word.split('.');
    let is_number = |part: Option<&str>| part.and_then(number::<u32>).is_some();
    is_number(parts.next())
        && parts.next().is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()))
        && word.len() < 100
}

/// `CPU(s): 8` of lscpu.
fn cpus(pasted: &mut Pasted, line: &str) -> bool {
    let cpus = line.strip_prefix("CPU(s):").and_then(|rest| number(rest.trim()));
    let cpus = cpus.filter(|cpus| (1..crate::text::ID_LIMIT).contains(cpus));
    pasted.cpus = pasted.cpus.or(cpus);
    cpus.is_some()
}
