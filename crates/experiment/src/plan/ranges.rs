//! What `slablab reproduce` varies of an experiment: the changes, and the cell that has one.

use super::{Cell, Factor, Scaled};
use crate::file::ExperimentFile;
use crate::file::ranges::{Costs, Ranges};
use crate::source::Experiment;
use crate::workload::{Size, Value};
use slablab_machines::Source;

impl Ranges {
    /// Values of all varied runs of a size: quick runs are short as they are.
    fn shared(&self, size: Size) -> &[(&'static str, Value)] {
        if size == Size::Quick { &[] } else { &self.at }
    }

    /// The changes of parameters.
    pub(crate) fn of_values(&self, size: Size) -> impl Iterator<Item = Scaled> {
        let short = (!self.shared(size).is_empty()).then_some(Scaled::Short);
        short.into_iter().chain((0..self.vary.len()).map(Scaled::Value))
    }

    /// A change in words; empty for one of costs.
    pub(crate) fn words(&self, scaled: Scaled) -> String {
        let of = |values: &[(&str, Value)]| {
            let words = values.iter().map(|(name, value)| format!("{name}={value}"));
            words.collect::<Vec<_>>().join(" ")
        };
        match scaled {
            Scaled::Short => of(&self.at),
            Scaled::Value(at) => of(&self.vary[at..=at]),
            Scaled::Nothing | Scaled::All(_) | Scaled::One(..) => String::new(),
        }
    }
}

impl Experiment {
    /// The changes of a sensitivity analysis.
    pub(crate) fn scaled(&self, size: Size) -> Vec<Scaled> {
        let ranges = self.file.ranges.as_ref();
        let costs = ranges.map_or(Costs::Each, |ranges| ranges.costs);
        let count = if costs == Costs::Given { 0 } else { self.assumed().len() };
        let all = Factor::BOTH.map(Scaled::All).into_iter().filter(|_| count > 0);
        let each = if costs == Costs::Each { count } else { 0 };
        let one = (0..each).flat_map(|at| Factor::BOTH.map(|factor| Scaled::One(at, factor)));
        let values = ranges.into_iter().flat_map(|ranges| ranges.of_values(size));
        all.chain(one).chain(values).collect()
    }

    /// A change in words; empty for none.
    pub fn words(&self, scaled: Scaled) -> String {
        match scaled {
            Scaled::Nothing => String::new(),
            Scaled::Short | Scaled::Value(_) => {
                self.file.ranges.as_ref().map_or(String::new(), |ranges| ranges.words(scaled))
            }
            Scaled::All(factor) => format!("all assumed costs {}", factor.word()),
            Scaled::One(at, factor) => {
                let assumed = self.assumed();
                let Source { cost, distance, .. } = &assumed[at];
                let distance = distance.map_or(String::new(), |distance| format!(" at distance {distance}"));
                format!("{cost}{distance} {}", factor.word())
            }
        }
    }
}

impl ExperimentFile {
    /// The cell with a change; `None` if it has none: another value of a swept parameter is varied, or the
    /// cell has the value already.
    pub(crate) fn varied(&self, size: Size, cell: &Cell, scaled: Scaled) -> Option<Cell> {
        let mut varied = Cell { scaled, ..cell.clone() };
        let Some(ranges) = self.ranges.as_ref().filter(|_| scaled != Scaled::Nothing) else {
            return Some(varied);
        };
        for (name, value) in ranges.shared(size) {
            let is_swept = self.swept(name, size).is_some_and(|list| list.len() > 1);
            if is_swept && cell.values.0[name] != *value {
                return None;
            }
            varied.values.0.insert(name, value.clone());
        }
        if let Scaled::Value(at) = scaled {
            let (name, value) = &ranges.vary[at];
            if varied.values.0.insert(name, value.clone()).as_ref() == Some(value) {
                return None;
            }
        }
        Some(varied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, Plan};
    use slablab_machines::doc::Read;
    use std::path::Path;

    /// An experiment with two kernels and two disks, and these lines of ranges.
    fn parse(ranges: &str) -> Read<ExperimentFile> {
        ExperimentFile::parse(&format!(
            "name = \"mine\"\ntitle = \"t\"\nmachines = [\"kulesa-2001\"]\nengines = [\"slab@2.4\"]\n\
             workload = \"apps\"\n[parameters]\nvm = [\"vm@2.4.8\", \"vm@2.4.10\"]\n\
             disk = [\"ide-7200-2001\", \"scsi-10k-2001\"]\n\
             [[expect]]\nname = \"e\"\nbase = {{ vm = \"vm@2.4.8\" }}\nother = {{ vm = \"vm@2.4.10\" }}\n\
             sign = \"higher\"\n{ranges}"
        ))
    }

    /// Changes, and the varied cells of each, by size.
    fn check(ranges: &str, size: Size, expected: &[(&str, usize)]) {
        let file = parse(ranges).unwrap_or_else(|bad| panic!("{ranges}: {}", bad.what));
        let of_004 = Experiment::find(Path::new("004-apps")).expect("an installed experiment");
        let experiment = Experiment { file, ..of_004 };
        let change = Change { size: Some(size), sensitivity: true, ..Change::default() };
        let plan = Plan::new(&experiment, &change).expect("a plan");
        let mut found: Vec<(String, usize)> = Vec::new();
        for cell in plan.cells.iter().filter(|cell| cell.scaled != Scaled::Nothing) {
            let words = experiment.words(cell.scaled);
            match found.last_mut().filter(|(last, _)| *last == words) {
                Some((_, count)) => *count += 1,
                None => found.push((words, 1)),
            }
        }
        let found: Vec<(&str, usize)> = found.iter().map(|(words, count)| (words.as_str(), *count)).collect();
        assert_eq!(found, expected, "{ranges}");
        // Each plain cell finds its varied one, whose change alone is another.
        for plain in plan.cells.iter().filter(|cell| cell.scaled == Scaled::Nothing) {
            for change in experiment.scaled(size) {
                let Some(at) = plan.with_scale(&experiment, plain, change) else { continue };
                let varied = &plan.cells[at];
                let differ = plain.values.0.iter().filter(|(name, value)| varied.values.0[*name] != **value);
                let ranges = experiment.file.ranges.as_ref().expect("ranges");
                let most = ranges.at.len() + usize::from(matches!(change, Scaled::Value(_)));
                assert!(differ.count() <= most, "{ranges:?} {plain:?} {varied:?}");
            }
        }
    }

    #[test]
    fn what_is_varied() {
        let costs = [("all assumed costs halved", 4), ("all assumed costs doubled", 4)];
        let full = Size::Standard;
        check("[ranges]\ncosts = \"together\"", full, &costs);
        check("[ranges]\ncosts = \"none\"", full, &[]);
        let pauses = "[ranges]\ncosts = \"none\"\n[ranges.vary]\npause_s = [5, 10, 30]\n";
        // 10 s are as given.
        check(pauses, full, &[("pause_s=5", 4), ("pause_s=30", 4)]);
        let short = format!("{pauses}[ranges.at]\nfiles = 5000\n");
        check(&short, full, &[("files=5000", 4), ("pause_s=5", 4), ("pause_s=30", 4)]);
        check(&short, Size::Quick, &[("pause_s=5", 4), ("pause_s=30", 4)]);
        // Cells of one of two disks.
        let one = format!("{pauses}[ranges.at]\ndisk = \"scsi-10k-2001\"\n");
        check(&one, full, &[("disk=scsi-10k-2001", 2), ("pause_s=5", 2), ("pause_s=30", 2)]);
    }

    #[test]
    fn what_cannot_be_varied() {
        let check = |ranges: &str, words: &str| {
            let bad = parse(ranges).err().unwrap_or_else(|| panic!("{ranges}: expected an error"));
            assert!(bad.what.contains(words) && bad.line > 12, "{ranges}: {} at {}", bad.what, bad.line);
        };
        check("[ranges]\ncosts = \"some\"", "costs");
        check("[ranges]\nrepeats = 0", "repeats");
        check("[ranges]\nvaries = 1", "varies");
        check("[ranges.vary]\ndisk = \"scsi-10k-2001\"", "that [parameters] does not sweep");
        check("[ranges.vary]\npause = 3", "near it: pause_s");
        check("[ranges.at]\nfiles = [1, 2]", "expected one value");
    }
}
