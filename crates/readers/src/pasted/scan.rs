//! The scan: a text line by line, each tried as a row, a message, a fact, a text of another tool.

use super::facts::{Fact, Facts};
use super::headed::Headed;
use super::tables::Block;
use super::{AllocFailure, Corruption, Kind, MemoryReport, Pasted, Row, Size};
use super::{corruption, failure, report, row, tables};
use crate::allocinfo;
use crate::procfs::Numbers;

/// Most rows that are told as cut.
const CUT: usize = 1000;
/// Most messages that are kept: a log may have the same one without end.
const MESSAGES: usize = 10_000;
/// Letters that are kept of a line that was not understood.
const SHOWN: usize = 60;

/// A row that may go on in the next line.
struct Open {
    kind: Kind,
    line: usize,
    text: String,
    words: usize,
    row: Row,
    is_cut: bool,
}

/// Where in the text the scan is.
#[derive(Default)]
pub(super) struct Scan {
    pasted: Pasted,
    facts: Facts,
    blocks: Vec<Block>,
    /// Other lines since the last row.
    is_gap: bool,
    open: Option<Open>,
    /// The heading of a table was seen, and no line that is no row since.
    under: Option<Kind>,
    in_failure: bool,
    in_corruption: bool,
    /// The heading of a table of another tool.
    headed: Option<Headed>,
    within: report::Within,
    sites: allocinfo::Loose,
    /// Caches of node_exporter's metrics, by name.
    exported: std::collections::BTreeMap<String, Row>,
    /// The machine whose metrics are read: the first.
    exporter: Option<String>,
    /// Rows of a list of sizes, which count only if there are several.
    sizes: Vec<(usize, Row, String)>,
}

impl Scan {
    /// Takes a line, as its program printed it.
    pub(super) fn line(&mut self, number: usize, line: &str) {
        if !line.chars().any(char::is_alphanumeric) {
            // A rule or a fence. A message's lines follow each other.
            self.is_gap |= !line.is_empty();
            return;
        }
        self.pasted.lines += 1;
        if self.goes_on(line) {
            return;
        }
        self.close();
        let mut words = row::words(line);
        // A row of CSV.
        if words.len() == 1 && line.matches(',').count() > 2 {
            words = line.split(',').collect();
        }
        if self.rows(number, line, &words) {
            self.in_failure = false;
            return;
        }
        if !self.sizes.is_empty() && row::sized(&words).is_none() {
            self.close_sizes();
        }
        if self.facts.products
            && let [name, bytes] = words[..]
            && row::is_name(name)
            && let Some(bytes) = row::number(bytes)
        {
            let row = Row { line: number, name: name.into(), bytes: Some(bytes), ..Row::default() };
            self.push(Kind::Sizes, row);
            return;
        }
        if self.message(number, line) {
            self.is_gap = true;
            return;
        }
        if let Some(fact) = self.facts.line(&mut self.pasted, line, &words) {
            self.is_gap = true;
            if let Fact::Heading(kind) = fact {
                self.under = Some(kind);
            }
            return;
        }
        if let Some(head) = Headed::of(&words) {
            self.headed = Some(head);
            self.is_gap = true;
            return;
        }
        if let Some(row) = self.headed.as_ref().and_then(|head| head.row(&words)) {
            self.push(Kind::Columns, Row { line: number, ..row });
            return;
        }
        if self.columns(number, line, &words) || self.size(number, line, &words) {
            return;
        }
        if self.sites.line(line) || self.exported(number, line) || self.pasted.asides.line(number, line) {
            self.is_gap = true;
            return;
        }
        self.lost(number, line, &words);
        (self.is_gap, self.under) = (true, None);
        self.unread(number, line);
    }

    /// A line with four numbers inside of a table is a row that could not be read: what it has is missing.
    fn lost(&mut self, number: usize, line: &str, words: &[&str]) {
        const NUMBERS: usize = 4;
        let in_table = self.under.is_some() || (!self.blocks.is_empty() && !self.is_gap);
        let is_number = |word: &&&str| {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            row::number::<u64>(word).is_some() || row::size(word).is_some()
        };
        if in_table
            && self.pasted.lost.len() < CUT
            && words.iter().filter(is_number).take(NUMBERS).count() == NUMBERS
        {
            self.pasted.lost.push((number, line.chars().take(SHOWN).collect()));
        }
    }

    /// A metric of node_exporter: `node_slabinfo_active_objects{slab="dentry"} 12`, `node_memory_Slab_bytes
    /// 1.4e+10`.
    fn exported(&mut self, number: usize, line: &str) -> bool {
        if line.starts_with("# HELP node_") || line.starts_with("# TYPE node_") || self.exported_memory(line)
        {
            return true;
        }
        let Some((metric, rest)) = line.strip_prefix("node_slabinfo_").and_then(|rest| rest.split_once('{'))
        else {
            return false;
        };
        let name = rest.split_once("slab=\"").and_then(|(_, rest)| rest.split_once('"'));
        let value =
            rest.rsplit_once('}').and_then(|(_, value)| value.split_whitespace().next()?.parse::<f64>().ok());
        let (Some((name, _)), Some(value)) = (name, value.filter(|value| (0.0..1e18).contains(value))) else {
            return false;
        };
        if self.exported.len() > 1 << 14 || !row::is_name(name) {
            return false;
        }
        let row = self.exported.entry(name.to_string()).or_insert_with(|| Row {
            line: number,
            name: name.to_string(),
            ..Row::default()
        });
        let value = value as u64;
        match metric {
            "active_objects" => row.active = Some(value),
            "objects" => row.total = Some(value),
            "object_size_bytes" => row.size = Some(Size::exact(value)),
            "objects_per_slab" => row.per_slab = Some(value),
            "pages_per_slab" => row.pages = Some(value),
            _ => {}
        }
        true
    }

    /// A line of /proc/meminfo as node_exporter has it, in bytes. Lines of another machine than the first
    /// are left out.
    fn exported_memory(&mut self, line: &str) -> bool {
        let Some(rest) = line.strip_prefix("node_memory_") else { return false };
        let end = rest.find(['{', ' ']).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let (labels, value) = rest.rsplit_once('}').unwrap_or(("", rest));
        // promtool prints an arrow before the value and a time after it.
        let value =
            value.split_whitespace().find(|word| *word != "=>").and_then(|word| word.parse::<f64>().ok());
        let Some((name, value)) =
            name.strip_suffix("_bytes").zip(value.filter(|value| (0.0..1e18).contains(value)))
        else {
            return false;
        };
        let machine =
            labels.split_once("instance=").map_or("", |(_, rest)| rest.split(',').next().unwrap_or(rest));
        let machine = machine.to_string();
        if *self.exporter.get_or_insert_with(|| machine.clone()) != machine {
            return false;
        }
        self.facts.counted(&mut self.pasted, vec![(name.to_string(), value as u64 / 1024)])
    }

    fn unread(&mut self, number: usize, line: &str) {
        self.pasted.unread += 1;
        if self.pasted.first_unread.as_ref().is_none_or(|(first, _)| number < *first) {
            self.pasted.first_unread = Some((number, line.chars().take(SHOWN).collect()));
        }
    }

    /// Whether the line is the rest of the row before it.
    fn goes_on(&mut self, line: &str) -> bool {
        let Some(open) = &mut self.open else { return false };
        let alone = row::words(line);
        if row::slabinfo(&alone).is_some() || row::slabtop(&alone).is_some() {
            return false;
        }
        // A name that was broken at its hyphen.
        if open.row.name.ends_with('-') {
            if let [rest] = alone[..]
                && !rest.contains(char::is_uppercase)
                && row::is_name(&format!("{}{rest}", open.row.name))
            {
                open.row.name += rest;
            }
            let went_on = !open.row.name.ends_with('-');
            self.close();
            return went_on;
        }
        let joined = format!("{} {line}", open.text);
        let words = row::words(&joined);
        let found = match open.kind {
            Kind::Slabtop => row::slabtop(&words),
            _ => row::slabinfo(&words),
        };
        match found {
            Some(found) if found.words == words.len() && found.words > open.words => {
                let row = Row { line: open.line, ..found.row };
                *open = Open { text: joined, words: found.words, row, is_cut: found.is_cut, ..*open };
                if !open.is_cut && !open.row.name.ends_with('-') {
                    self.close();
                }
                true
            }
            _ => false,
        }
    }

    /// Ends a row that did not go on.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        if open.is_cut {
            if self.pasted.cut.len() < CUT {
                self.pasted.cut.push((open.line, open.text.chars().take(SHOWN).collect()));
            }
            // Without a name nothing can be said of a row.
            if open.row.name.is_empty() {
                self.is_gap = true;
                return;
            }
        }
        self.push(open.kind, open.row);
    }

    /// Takes all rows of a line: some web pages lose the line breaks.
    fn rows(&mut self, number: usize, line: &str, words: &[&str]) -> bool {
        // Where the line breaks were lost, the heading stands before the first row.
        let heading = words.iter().rposition(|word| *word == "NAME").filter(|at| at + 1 < words.len());
        let mut at = heading.map_or(0, |at| at + 1);
        let begin = at;
        while at < words.len() {
            let rest = &words[at..];
            let found = row::slabinfo(rest).map(|found| (Kind::Slabinfo, found));
            let found = found.or_else(|| row::slabtop(rest).map(|found| (Kind::Slabtop, found)));
            let Some((kind, found)) = found else { break };
            self.close();
            let end = at + found.words;
            let text =
                if at == 0 && end == words.len() { line.to_string() } else { words[at..end].join(" ") };
            let row = Row { line: number, ..found.row };
            if found.is_cut || (end == words.len() && row.name.ends_with('-')) {
                let is_cut = found.is_cut;
                self.open = Some(Open { kind, line: number, text, words: found.words, row, is_cut });
            } else {
                self.push(kind, row);
            }
            at = end;
        }
        at > begin
    }

    fn push(&mut self, kind: Kind, row: Row) {
        match self.blocks.last_mut() {
            Some(block) if block.kind == kind && !self.is_gap => block.rows.push(row),
            _ => self.blocks.push(Block { kind, rows: vec![row] }),
        }
        self.is_gap = false;
    }

    /// The first columns of slabinfo, vmstat's, or those of an OOM report.
    fn columns(&mut self, number: usize, line: &str, words: &[&str]) -> bool {
        // The list may be cut before its heading: then its first row has two sizes that differ.
        let in_list = self.blocks.last().is_some_and(|block| block.kind == Kind::Oom) && !self.is_gap;
        if (self.under == Some(Kind::Oom) || in_list || row::sized(words).is_none())
            && let Some(row) = row::oom(words)
        {
            self.push(Kind::Oom, Row { line: number, ..row });
            return true;
        }
        if self.under == Some(Kind::Crash) {
            match row::crash(words) {
                Some(Ok(row)) => self.push(Kind::Crash, Row { line: number, ..row }),
                Some(Err(name)) => self.pasted.unreadable.push(name),
                // What crash says of a row, and dots for rows that were left out.
                None if line.starts_with("kmem: ") || line == "..." => {}
                None => return false,
            }
            return true;
        }
        if self.under == Some(Kind::Spl)
            && let Some(row) = row::spl(words)
        {
            row.into_iter().for_each(|row| self.push(Kind::Spl, Row { line: number, ..row }));
            return true;
        }
        let is_sure = self.under == Some(Kind::Columns);
        let Some(row) = row::columns(words, is_sure) else { return false };
        let row = Row { line: number, ..row };
        if row.pages.is_some() {
            // A row of slabinfo that goes on in the next line begins so.
            let (text, words) = (line.to_string(), words.len());
            self.open = Some(Open { kind: Kind::Columns, line: number, text, words, row, is_cut: false });
        } else {
            self.push(Kind::Columns, row);
        }
        true
    }

    fn size(&mut self, number: usize, line: &str, words: &[&str]) -> bool {
        let Some(row) = row::sized(words) else { return false };
        self.sizes.push((number, Row { line: number, ..row }, line.chars().take(SHOWN).collect()));
        true
    }

    /// Two rows make a list. One may be a sentence.
    fn close_sizes(&mut self) {
        let sizes = std::mem::take(&mut self.sizes);
        let is_list = sizes.len() > 1;
        for (number, row, line) in sizes {
            if is_list {
                self.push(Kind::Sizes, row);
            } else {
                self.unread(number, &line);
            }
        }
        self.is_gap = true;
    }

    fn message(&mut self, number: usize, line: &str) -> bool {
        if self.corruption(number, line) {
            return true;
        }
        if let Some(failure) = failure::begins(line) {
            if self.pasted.failures.len() < MESSAGES {
                self.pasted.failures.push(AllocFailure { line: number, ..failure });
            }
            self.in_failure = true;
            return true;
        }
        if self.in_failure
            && let Some(failure) = self.pasted.failures.last_mut()
        {
            if failure::more(failure, line) {
                return true;
            }
            self.in_failure = false;
        }
        self.report(number, line)
    }

    /// Reports of damaged objects. A cache's live objects may be listed before the line that says why.
    fn corruption(&mut self, number: usize, line: &str) -> bool {
        let reports = &mut self.pasted.corruptions;
        let outside = !self.in_corruption;
        let begins = corruption::begins(line);
        if let Some(found) = begins.or_else(|| corruption::repaired(line).filter(|_| outside)) {
            (self.in_corruption, self.in_failure) = (true, false);
            let found = Corruption { line: number, ..found };
            if let Some(last) = reports.last_mut().filter(|last| last.is_headless()) {
                last.head(found);
            } else if let Some(last) = reports.last_mut().filter(|last| corruption::is_of_kasan(last, &found))
            {
                last.cache = found.cache;
            } else if reports.len() < MESSAGES {
                reports.push(found);
            }
            return true;
        }
        if line.contains(" invoked oom-killer") || line.contains("page allocation failure") {
            self.in_corruption = false;
        }
        let starts =
            ["INFO: Object 0x", "INFO: Slab 0x", "INFO: Allocated in ", "INFO: Freed in ", "Object 0x"];
        if !self.in_corruption
            && reports.len() < MESSAGES
            && starts.iter().any(|start| line.starts_with(start))
        {
            reports.push(Corruption { line: number, ..Corruption::default() });
            self.in_corruption = true;
        }
        self.in_corruption && reports.last_mut().is_some_and(|report| corruption::more(report, line))
    }

    fn report(&mut self, number: usize, line: &str) -> bool {
        let begins = line.contains(" invoked oom-killer") || line.contains("page allocation failure");
        let reports = &mut self.pasted.reports;
        if (begins || reports.is_empty()) && reports.len() < MESSAGES {
            let mut report = MemoryReport { line: number, ..MemoryReport::default() };
            if !report::more(&mut report, &mut self.within, line) {
                return false;
            }
            reports.push(report);
            return true;
        }
        reports.last_mut().is_some_and(|report| report::more(report, &mut self.within, line))
    }

    /// What was found.
    pub(super) fn finish(mut self) -> Pasted {
        self.close();
        self.close_sizes();
        let mut exported: Vec<Row> = std::mem::take(&mut self.exported).into_values().collect();
        if !exported.is_empty() {
            exported.retain(|row| row.total.is_some() || row.active.is_some());
            self.blocks.push(Block { kind: Kind::Columns, rows: exported });
        }
        let mut pasted = self.pasted;
        pasted.alloc_sites = self.sites.finish();
        corruption::gather(&mut pasted.corruptions);
        let nodes = self.facts.sums_of_nodes();
        if pasted.meminfo.is_empty() {
            pasted.meminfo = nodes;
        }
        for counters in self.facts.counters {
            pasted.sort_counters(counters);
        }
        pasted.last_whole_moment();
        pasted.tables = tables::tables(self.blocks);
        if let Some(report) = pasted.reports.last_mut() {
            report.has_table |= pasted.tables.iter().any(|table| table.kind == Kind::Oom);
        }
        // Lines that looked like meminfo's, and were none.
        if !is_of_memory(&pasted.meminfo) {
            pasted.unread += pasted.meminfo.len();
            pasted.meminfo.clear();
        }
        pasted.moments.retain(|moment| is_of_memory(&moment.meminfo));
        for meminfo in
            pasted.moments.iter_mut().map(|moment| &mut moment.meminfo).chain([&mut pasted.meminfo])
        {
            let slab = meminfo.get("SReclaimable").zip(meminfo.get("SUnreclaim"));
            let slab = slab.and_then(|(one, other)| one.checked_add(*other));
            if let Some(slab) = slab.filter(|_| !meminfo.contains_key("Slab")) {
                meminfo.insert("Slab".into(), slab);
            }
        }
        pasted
    }
}

/// Whether lines that look like meminfo's are.
fn is_of_memory(meminfo: &Numbers) -> bool {
    ["MemTotal", "MemFree", "Slab", "SUnreclaim"].iter().any(|key| meminfo.contains_key(*key))
}
