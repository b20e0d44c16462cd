//! /proc/meminfo over time, and who is paged out.

use super::{PAGE_KIB, seconds};
use crate::pressure::looked::Looked;
use slablab_model::Ps;
use slablab_report::text::Table;
use slablab_report::visible;
use std::fmt::Write;

/// The lines of /proc/meminfo at the end of each phase, and every `every` picoseconds if that is given. A
/// line that begins with `#` says when.
pub fn meminfo_log(looked: &Looked, every: Option<Ps>) -> String {
    let ends = looked.ends.iter();
    let ends = ends.map(|end| (end.at, format!("end of phase {}", visible::name(&end.phase)), &end.meminfo));
    let samples = every.map_or_else(Vec::new, |every| looked.every(every));
    let samples = samples.iter().map(|sample| (sample.at, "sample".to_string(), &sample.meminfo));
    let mut all: Vec<_> = ends.chain(samples).collect();
    all.sort_by_key(|(at, ..)| *at);
    let mut text = String::new();
    for (at, what, lines) in all {
        writeln!(text, "# {} s: {what}", seconds(at)).expect("a string takes all text");
        for (name, kib) in lines {
            writeln!(text, "{:<16}{kib:>8} kB", format!("{name}:")).expect("a string takes all text");
        }
    }
    text
}

/// The processes at the end of each phase: VSZ, RSS, the difference, and pages in swap, in KiB.
pub fn processes_table(looked: &Looked) -> String {
    let heads = ["phase", "process", "end s", "VSZ", "RSS", "VSZ-RSS", "swap"];
    let mut table = Table::new(heads).numbers(2..7);
    for end in &looked.ends {
        for process in &end.processes {
            let kib = |pages: u64| (pages * PAGE_KIB).to_string();
            let name = if process.name.is_empty() { "(script)" } else { &process.name };
            let paged_out = process.virtual_pages - process.resident;
            let numbers = [process.virtual_pages, process.resident, paged_out, process.swapped].map(kib);
            table.row([end.phase.clone(), name.into(), seconds(end.at)].into_iter().chain(numbers));
        }
    }
    table.print()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::memory::tests::{end, samples};

    #[test]
    fn meminfo_is_there_at_ends_and_times() {
        let looked = Looked { samples: samples(), ends: vec![end("fill", 1_200_000_000_000)] };
        let ends = meminfo_log(&looked, None);
        assert_eq!(
            ends,
            "# 1.200 s: end of phase fill\nMemTotal:          16384 kB\nMemFree:            4000 kB\n"
        );
        let all = meminfo_log(&looked, Some(1_000_000_000_000));
        let times: Vec<&str> = all.lines().filter(|line| line.starts_with('#')).collect();
        let expected =
            ["# 0.000 s: sample", "# 1.000 s: sample", "# 1.200 s: end of phase fill", "# 2.000 s: sample"];
        assert_eq!(times, expected);
    }

    #[test]
    fn processes_say_what_is_paged_out() {
        let looked = Looked { samples: Vec::new(), ends: vec![end("fill", 1_200_000_000_000)] };
        let table = processes_table(&looked);
        let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0], ["phase", "process", "end", "s", "VSZ", "RSS", "VSZ-RSS", "swap"]);
        assert_eq!(words[1], ["fill", "(script)", "1.200", "400", "280", "120", "80"]);
        assert_eq!(words[2], ["fill", "idle", "1.200", "40", "0", "40", "40"]);
    }
}
