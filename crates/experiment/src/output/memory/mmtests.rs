//! The vmstat rows of mmtests' report: runs beside one another.

use super::{Column, SECOND};
use slablab_report::text::Table;
use slablab_sim::memory::sampler::Sample;

/// What a run did: the last sample beside the first.
struct Totals<'a> {
    first: &'a Sample,
    last: &'a Sample,
}

impl Totals<'_> {
    fn count(&self, name: &str) -> f64 {
        (self.last.count(name) - self.first.count(name)) as f64
    }

    fn seconds(&self, ps: u64) -> f64 {
        ps as f64 / SECOND as f64
    }

    /// Pages scanned a second.
    fn velocity(&self, scanned: &str) -> f64 {
        self.count(scanned) / self.seconds(self.last.at - self.first.at).max(f64::MIN_POSITIVE)
    }

    /// `part` of `all` in percent; 100 of nothing, as mmtests prints it (from memory).
    fn percent(&self, part: &str, all: &str) -> f64 {
        let all = self.count(all);
        if all == 0.0 { 100.0 } else { self.count(part) * 100.0 / all }
    }
}

/// A column's name, and the samples of its runs.
type Sampled<'a> = (String, Vec<&'a [Sample]>);

/// How a number is printed.
#[derive(Clone, Copy)]
enum Print {
    Count,
    Percent,
    Fixed,
}

type Row = (&'static str, Print, fn(&Totals) -> f64);

/// Names and formulas are those of mmtests' monitor of vmstat (from memory). `Sector Reads` is what mmtests
/// calls `pgpgin`, which is in KiB. Rows of huge pages and of NUMA are left out.
const ROWS: &[Row] = &[
    ("Duration User", Print::Fixed, |of| of.seconds(of.last.cpu.user - of.first.cpu.user)),
    ("Duration System", Print::Fixed, |of| {
        let busy = of.last.cpu.busy - of.first.cpu.busy;
        of.seconds(busy - (of.last.cpu.user - of.first.cpu.user))
    }),
    ("Duration Elapsed", Print::Fixed, |of| of.seconds(of.last.at - of.first.at)),
    ("Minor Faults", Print::Count, |of| of.count("pgfault") - of.count("pgmajfault")),
    ("Major Faults", Print::Count, |of| of.count("pgmajfault")),
    ("Swap Ins", Print::Count, |of| of.count("pswpin")),
    ("Swap Outs", Print::Count, |of| of.count("pswpout")),
    ("Allocation stalls", Print::Count, |of| of.count("allocstall")),
    ("Direct pages scanned", Print::Count, |of| of.count("pgscan_direct")),
    ("Kswapd pages scanned", Print::Count, |of| of.count("pgscan_kswapd")),
    ("Kswapd pages reclaimed", Print::Count, |of| of.count("pgsteal_kswapd")),
    ("Direct pages reclaimed", Print::Count, |of| of.count("pgsteal_direct")),
    ("Kswapd efficiency", Print::Percent, |of| of.percent("pgsteal_kswapd", "pgscan_kswapd")),
    ("Kswapd velocity", Print::Fixed, |of| of.velocity("pgscan_kswapd")),
    ("Direct efficiency", Print::Percent, |of| of.percent("pgsteal_direct", "pgscan_direct")),
    ("Direct velocity", Print::Fixed, |of| of.velocity("pgscan_direct")),
    ("Percentage direct scans", Print::Percent, |of| {
        let (direct, kswapd) = (of.count("pgscan_direct"), of.count("pgscan_kswapd"));
        if direct + kswapd == 0.0 { 0.0 } else { direct * 100.0 / (direct + kswapd) }
    }),
    ("Page writes by reclaim", Print::Count, |of| of.count("nr_vmscan_write")),
    ("Page writes file", Print::Count, |of| (of.count("nr_vmscan_write") - of.count("pswpout")).max(0.0)),
    ("Page writes anon", Print::Count, |of| of.count("pswpout")),
    ("Page reclaim immediate", Print::Count, |of| of.count("nr_vmscan_immediate_reclaim")),
    ("Sector Reads", Print::Count, |of| of.count("pgpgin")),
    ("Sector Writes", Print::Count, |of| of.count("pgpgout")),
    ("Slabs scanned", Print::Count, |of| of.count("slabs_scanned")),
    ("Direct inode steals", Print::Count, |of| of.count("pginodesteal")),
    ("Kswapd inode steals", Print::Count, |of| of.count("kswapd_inodesteal")),
    ("Compaction stalls", Print::Count, |of| of.count("compact_stall")),
    ("Compaction success", Print::Count, |of| of.count("compact_success")),
    ("Compaction failures", Print::Count, |of| of.count("compact_fail")),
    ("Page migrate success", Print::Count, |of| of.count("pgmigrate_success")),
    ("Page migrate failure", Print::Count, |of| of.count("pgmigrate_fail")),
    ("Compaction pages isolated", Print::Count, |of| of.count("compact_isolated")),
    ("Compaction migrate scanned", Print::Count, |of| of.count("compact_migrate_scanned")),
    ("Compaction free scanned", Print::Count, |of| of.count("compact_free_scanned")),
];

/// The rows of several columns: means over the runs of each.
pub(in crate::output) fn mmtests_vmstat(columns: &[Column<'_>]) -> String {
    text(&samples_of(columns))
}

/// The samples of the runs of each column.
pub(super) fn samples_of<'a>(columns: &[Column<'a>]) -> Vec<Sampled<'a>> {
    let of =
        |(name, runs): &Column<'a>| (name.clone(), runs.iter().map(|run| &run.looked.samples[..]).collect());
    columns.iter().map(of).collect()
}

fn text(columns: &[Sampled<'_>]) -> String {
    let heads = std::iter::once("").chain(columns.iter().map(|(name, _)| name.as_str()));
    let mut table = Table::new(heads).numbers(1..columns.len() + 1);
    for (name, numbers) in mmtests_rows(columns) {
        table.row(std::iter::once(name.to_string()).chain(numbers));
    }
    table.print()
}

/// The rows: name, and the number of each column as it is printed.
pub(super) fn mmtests_rows(columns: &[Sampled<'_>]) -> Vec<(&'static str, Vec<String>)> {
    let mean = |runs: &Vec<&[Sample]>, of: fn(&Totals) -> f64| {
        let totals =
            runs.iter().filter_map(|samples| Some(Totals { first: samples.first()?, last: samples.last()? }));
        let all: Vec<f64> = totals.map(|totals| of(&totals)).collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    };
    let row = |(name, print, of): &Row| {
        let print = |(_, runs): &Sampled<'_>| match (print, mean(runs, *of)) {
            (Print::Count, mean) => format!("{mean:.0}"),
            (Print::Percent, mean) => format!("{mean:.0}%"),
            (Print::Fixed, mean) => format!("{mean:.3}"),
        };
        (*name, columns.iter().map(print).collect())
    };
    ROWS.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::memory::tests::samples;

    #[test]
    fn rows_are_means_of_runs() {
        let (one, mut other) = (samples(), samples());
        let last = other.len() - 1;
        for (name, value) in &mut other[last].vmstat {
            *value *= if *name == "pgsteal_kswapd" { 3 } else { 1 };
        }
        let columns = [("vm@6.1".to_string(), vec![&one[..], &other[..]]), ("b".to_string(), vec![&one[..]])];
        let said = text(&columns);
        let row = |name: &str| {
            let line = said
                .lines()
                .find(|line| line.trim_start().starts_with(name))
                .unwrap_or_else(|| panic!("{name}"));
            line.split_whitespace().rev().take(2).map(str::to_string).collect::<Vec<_>>()
        };
        assert_eq!(row("Minor Faults"), ["900", "900"]);
        assert_eq!(row("Kswapd pages reclaimed"), ["50", "100"]);
        // 50 and 150 of 200 scanned in two seconds.
        assert_eq!(row("Kswapd efficiency"), ["25%", "50%"]);
        assert_eq!(row("Kswapd velocity"), ["100.000", "100.000"]);
        assert_eq!(row("Direct efficiency"), ["100%", "100%"]);
        assert_eq!(row("Page writes file"), ["20", "20"]);
        assert_eq!(row("Duration Elapsed"), ["2.000", "2.000"]);
        assert_eq!(row("Duration System"), ["0.250", "0.250"]);
    }
}
