//! What `reproduce` last said of the published figures of each workload: docs/results/reproduce.md.

use crate::source::INSTALLED;
use crate::workload::Workload;
use std::path::Path;

const PAGE: &str = include_str!("../results/reproduce.md");
/// What stands between the count and the name of the experiment.
const OF: [&str; 2] = [" published relations of ", " published relation of "];

/// What was said of one experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// Its name.
    pub(crate) experiment: &'static str,
    /// How many relations agree, of how many: "8 of 11".
    pub(crate) agree: &'static str,
    /// Those that do not agree, with the verdict of each; empty if all do.
    pub(crate) others: &'static str,
}

/// The verdicts on published relations of a workload, in the order of the page.
pub(crate) fn verdicts(workload: &Workload) -> Vec<Said> {
    let is_of = |said: &Said| {
        let found = crate::source::Experiment::find(Path::new(said.experiment));
        found.is_ok_and(|experiment| experiment.file.workload.name == workload.name)
    };
    all().filter(is_of).collect()
}

fn all() -> impl Iterator<Item = Said> {
    PAGE.lines().map(str::trim_start).filter_map(said)
}

/// "8 of 11 published relations of 003-netperf agree, 1 is undetermined and 2 do not: A (sign differs) and B
/// (undetermined)."
fn said(line: &'static str) -> Option<Said> {
    let (agree, rest) = OF.iter().find_map(|of| line.split_once(of))?;
    let (experiment, verdict) = rest.split_once(" agree")?;
    let is_count = agree.split(" of ").all(|number| number.parse::<u32>().is_ok());
    let is_known = INSTALLED.iter().any(|installed| installed.name == experiment);
    let others = verdict.split_once(": ").and_then(|(_, others)| others.split("; ").next());
    let others = others.map_or("", |others| others.trim_end_matches('.'));
    (is_count && is_known).then_some(Said { experiment, agree, others })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::find;

    #[test]
    fn the_page_has_verdicts() {
        let ublk = verdicts(find("ublk").expect("a workload"));
        assert!(
            ublk.iter().any(|said| said.experiment == "2026" && said.agree.ends_with(" of 3")),
            "{ublk:?}"
        );
    }

    #[test]
    fn each_experiment_with_relations_has_a_verdict() {
        for installed in INSTALLED {
            let experiment = crate::source::Experiment::find(Path::new(installed.name)).expect("installed");
            let is_judged = !experiment.file.expect.is_empty();
            let has_one = all().any(|said| said.experiment == installed.name);
            assert!(has_one || !is_judged, "docs/results/reproduce.md has no sentence of {}", installed.name);
        }
    }

    #[test]
    fn a_sentence_is_read() {
        let check = |line, expected| assert_eq!(said(line), expected, "{line}");
        let of = |experiment, agree, others| Some(Said { experiment, agree, others });
        check(
            "1 of 3 published relations of 2026 agree, 1 is undetermined and 1 does not: A (undetermined) and B \
             (sign differs).",
            of("2026", "1 of 3", "A (undetermined) and B (sign differs)"),
        );
        check("1 of 1 published relation of brouer agrees.", of("brouer", "1 of 1", ""));
        check("5 of 5 published relations of 003-kbuild agree.", of("003-kbuild", "5 of 5", ""));
        check("none of 5 published relations of 2026 agree.", None);
        check("1 of 1 published relation of no-such-file agrees.", None);
    }
}
