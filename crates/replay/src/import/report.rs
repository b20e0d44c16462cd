//! What an import says when it is done.

use slablab_report::text::Table;
use slablab_report::visible;
use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Value, json};
use slablab_trace::{CacheCounts, Counts, Metadata};

/// Caches in the table for people; JSON has all.
const CACHES_SHOWN: usize = 20;

/// A finished import.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was imported.
    pub input: PathBuf,
    /// The trace.
    pub output: PathBuf,
    /// The trace's metadata.
    pub metadata: Metadata,
}

impl Report {
    /// Whether the recording is known to miss events.
    pub fn incomplete(&self) -> bool {
        self.metadata.is_incomplete()
    }

    /// For machines. The counts are the trace's metadata, under the same names.
    pub fn json(&self) -> Value {
        json!({
            "schema": "slablab.import.1",
            "input": self.input.to_string_lossy(),
            "output": self.output.to_string_lossy(),
            "incomplete": self.incomplete(),
            "release": self.metadata.release,
            "architecture": self.metadata.architecture,
            "page_size_bytes": self.metadata.page_size_bytes,
            "topology": self.metadata.topology,
            "pairing_only": self.metadata.pairing_only,
            "source": self.metadata.source,
            "statistics": self.metadata.statistics,
            "losses": self.metadata.losses,
            "cut_off": self.metadata.cut_off,
            "import": self.metadata.import,
            "caches": self.metadata.caches,
            "warnings": self.metadata.warnings,
        })
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.summary(&mut out).expect("a string takes everything");
        visible::lines(&out).into_owned()
    }

    fn summary(&self, out: &mut String) -> std::fmt::Result {
        let Metadata { statistics, .. } = &self.metadata;
        let seconds = (statistics.last_time_ns.saturating_sub(statistics.first_time_ns)) as f64 / 1e9;
        let (rows, cpus) = (statistics.rows, statistics.cpu_ids);
        for gap in self.metadata.gaps() {
            writeln!(out, "INCOMPLETE: {gap}")?;
        }
        writeln!(out, "{}: {rows} rows, {seconds:.3} s, {cpus} CPUs", self.output.display())?;
        let events = statistics.events.iter().map(|(name, count)| format!("{name} {count}"));
        writeln!(out, "events: {}", events.collect::<Vec<_>>().join(", "))?;
        writeln!(out, "objects live at once: at most {}", statistics.object_ids)?;
        if let Some(import) = &self.metadata.import {
            let repairs = &import.repairs;
            let lines = [
                (repairs.unseen_frees, "frees of objects whose allocation is not in the recording"),
                (
                    repairs.freed_before,
                    "of these, allocated during the recording by a path that is not traced",
                ),
                (repairs.implied_by_alloc, "untraced frees, shown by an allocation of the same address"),
                (repairs.implied_by_page, "untraced frees, shown by their page being freed or allocated"),
                (repairs.cache_changed, "untraced frees, shown by a free to another cache"),
                (repairs.reordered, "events moved, as their order was impossible"),
                (repairs.late, "events out of the order of time"),
                (repairs.failed_allocs, "allocations that failed"),
                (
                    repairs.damaged_sizes,
                    "damaged events, allocations of more than any kernel's largest block: left out",
                ),
                (repairs.pages_unchecked, "page events that could not be checked against objects"),
                (repairs.forgotten, "times that the freed addresses were forgotten"),
            ];
            for (count, what) in lines.iter().filter(|(count, _)| *count > 0) {
                writeln!(out, "{count:>9} {what}")?;
            }
            let sizes =
                import.kmalloc.iter().map(|size| (format!("kmalloc of {}", size.bytes_alloc), size.counts));
            let unknown = ("(not known)".to_string(), import.unknown);
            self.caches(out, sizes.chain([unknown]))?;
        }
        self.metadata.warnings.iter().try_for_each(|warning| writeln!(out, "warning: {warning}"))
    }

    fn caches(&self, out: &mut String, others: impl Iterator<Item = (String, Counts)>) -> std::fmt::Result {
        let named = self.metadata.caches.iter().map(|cache: &CacheCounts| (cache.name.clone(), cache.counts));
        let mut rows: Vec<(String, Counts)> = named.chain(others).collect();
        let weight = |counts: &Counts| counts.allocs + counts.frees + counts.implied_frees;
        rows.retain(|(_, counts)| weight(counts) > 0);
        rows.sort_by(|(left_name, left), (right_name, right)| {
            weight(right).cmp(&weight(left)).then_with(|| left_name.cmp(right_name))
        });
        let mut table =
            Table::new(["cache", "allocs", "frees", "other CPU", "unseen", "implied", "untraced %"]);
        for (name, counts) in rows.iter().take(CACHES_SHOWN) {
            let untraced = counts.freed_before + counts.implied_frees;
            let share = 100.0 * untraced as f64 / weight(counts) as f64;
            let numbers = [
                counts.allocs,
                counts.frees,
                counts.frees_other_cpu,
                counts.unseen_frees,
                counts.implied_frees,
            ];
            let cells = numbers.iter().map(u64::to_string).chain([format!("{share:.1}")]);
            table.row(std::iter::once(name.clone()).chain(cells));
        }
        out.push_str(&table.print());
        match rows.len().saturating_sub(CACHES_SHOWN) {
            0 => Ok(()),
            more => writeln!(out, "and {more} more (--format json)"),
        }
    }
}
