//! Which commit moves which number.

use super::{Measured, Number, Series, State};
use slablab_stats::Sample;
use slablab_stats::holm::holm;
use slablab_stats::table::{is_rounding, scatters};
use slablab_stats::welch::welch;

/// The probability of even one false move in a series, at most.
pub const SIGNIFICANCE: f64 = 0.05;

/// A number that a commit moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// The commit's place in the series.
    pub commit: usize,
    /// The place of the last commit before it that has numbers. Where others are between, one of them may be
    /// the one that moves it.
    pub since: usize,
    /// What moves.
    pub number: Number,
    /// Its mean before.
    pub from: f64,
    /// Its mean after.
    pub to: f64,
    /// The p-value alone; `None` where numbers are exact, or runs do not scatter.
    pub p: Option<f64>,
    /// The p-value after Holm's correction over the series.
    pub p_holm: Option<f64>,
}

/// What the commits of a series move.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moves {
    /// By commit, what a reader looks for first before others.
    pub all: Vec<Move>,
    /// Numbers that were compared.
    pub compared: usize,
    /// Numbers that could not be tested: they have one run.
    pub untested: usize,
}

impl Move {
    /// The change in percent of the value before; `None` if that is 0.
    pub fn change_percent(&self) -> Option<f64> {
        (self.from != 0.0).then(|| 100.0 * (self.to - self.from) / self.from)
    }

    /// Larger for what a reader looks for first.
    fn weight(&self) -> (bool, f64) {
        (self.number.is_main, self.change_percent().map_or(f64::INFINITY, f64::abs))
    }
}

impl Moves {
    /// What a commit moves.
    pub fn of(&self, commit: usize) -> impl Iterator<Item = &Move> {
        self.all.iter().filter(move |one| one.commit == commit)
    }

    /// The numbers that were tested, where numbers are not exact.
    pub fn tests(&self) -> usize {
        self.compared - self.untested - self.all.iter().filter(|one| one.p.is_none()).count()
    }

    /// The commits that move a number.
    pub fn commits(&self) -> Vec<usize> {
        let mut commits: Vec<usize> = self.all.iter().map(|one| one.commit).collect();
        commits.dedup();
        commits
    }
}

impl Series {
    /// Compares each commit with the last one before it that has numbers.
    ///
    /// # Panics
    /// Never: p-values are from 0 to 1.
    pub fn moves(&self) -> Moves {
        let mut moves = Moves::default();
        let mut last: Option<(usize, &Measured)> = None;
        for (at, entry) in self.commits.iter().enumerate() {
            match &entry.state {
                State::Measured(measured) => {
                    if let Some((since, before)) = last {
                        self.compare((since, before), (at, measured), &mut moves);
                    }
                    last = Some((at, measured));
                }
                // The commit after it is compared with this one.
                State::Untouched => {
                    last = last.filter(|(since, _)| since + 1 == at).map(|(_, found)| (at, found)).or(last)
                }
                State::DoesNotBuild(_) | State::Ended(_) | State::NotRun => {}
            }
        }
        if !self.is_exact() {
            let p: Vec<f64> = moves.all.iter().filter_map(|one| one.p).collect();
            let mut corrected = holm(&p).expect("p-values of tests are from 0 to 1").into_iter();
            moves.all.iter_mut().filter(|one| one.p.is_some()).for_each(|one| one.p_holm = corrected.next());
            moves.all.retain(|one| one.p_holm.is_none_or(|p| p <= SIGNIFICANCE));
        }
        moves.all.sort_by(|a, b| {
            let ((a_main, a_weight), (b_main, b_weight)) = (a.weight(), b.weight());
            a.commit.cmp(&b.commit).then(b_main.cmp(&a_main)).then(b_weight.total_cmp(&a_weight))
        });
        moves
    }

    /// Adds what differs between two commits; with tests all numbers, for the correction.
    fn compare(&self, (since, before): (usize, &Measured), (at, after): (usize, &Measured), to: &mut Moves) {
        for (number, values) in after.numbers.iter().zip(&after.values) {
            let Some(earlier) = before.of(number) else { continue };
            let (Some(from), Some(mean)) = (before.mean(number), after.mean(number)) else { continue };
            to.compared += 1;
            let found =
                Move { commit: at, since, number: number.clone(), from, to: mean, p: None, p_holm: None };
            if self.is_exact() {
                to.all.extend((from != mean).then_some(found));
                continue;
            }
            let sample = |values: &[f64]| Sample::new(values.to_vec()).ok().map(|sample| sample.moments());
            let moments = sample(earlier).zip(sample(values));
            let tested = moments.and_then(|(a, b)| Some((a, b, welch(&a, &b).ok()?)));
            match tested {
                Some((a, b, tested)) if scatters(&a, &b) => to.all.push(Move { p: Some(tested.p), ..found }),
                Some((a, b, _)) if is_rounding(&a, &b) => to.all.push(Move { p: Some(1.0), ..found }),
                Some(_) => to.all.push(found),
                None => to.untested += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Entry, Of};
    use super::*;

    fn number(name: &str) -> Number {
        Number {
            name: name.into(),
            place: String::new(),
            unit: String::new(),
            decimals: 0,
            lower_is_better: None,
            is_main: name == "slabs",
        }
    }

    fn measured(values: &[&[f64]]) -> State {
        let numbers = ["locks", "slabs"].map(number).to_vec();
        State::Measured(Measured { numbers, values: values.iter().map(|values| values.to_vec()).collect() })
    }

    fn series(of: Of, states: Vec<State>) -> Series {
        let entry = |(at, state): (usize, State)| Entry {
            id: format!("{at:040}"),
            title: format!("commit {at}"),
            state,
            digest: None,
            build_s: None,
            run_s: None,
        };
        let commits = states.into_iter().enumerate().map(entry).collect();
        Series { tree: "linux".into(), range: "a..b".into(), of, commits, part: String::new() }
    }

    #[test]
    fn a_replay_says_what_moves_exactly() {
        let none = || State::DoesNotBuild("mm/slub.c:1:1: error: x".into());
        let states = vec![
            measured(&[&[10.0], &[7.0]]),
            measured(&[&[10.0], &[7.0]]),
            State::Untouched,
            measured(&[&[5.0], &[8.0]]),
            none(),
            measured(&[&[5.0], &[9.0]]),
            measured(&[&[5.0], &[9.0]]),
        ];
        let found = series(Of::Recording("r".into()), states).moves();
        let shown: Vec<(usize, usize, &str, f64, f64)> = found
            .all
            .iter()
            .map(|one| (one.commit, one.since, one.number.name.as_str(), one.from, one.to))
            .collect();
        // The main number is the first of its commit, though the other moves further.
        assert_eq!(shown, [(3, 2, "slabs", 7.0, 8.0), (3, 2, "locks", 10.0, 5.0), (5, 3, "slabs", 8.0, 9.0)]);
        assert_eq!((found.compared, found.commits()), (8, vec![3, 5]));
        assert_eq!(found.all[1].change_percent(), Some(-50.0));
    }

    #[test]
    fn runs_are_tested_over_the_whole_series() {
        let near = [10.0, 10.1, 9.9, 10.0, 10.05];
        let far = [20.0, 20.1, 19.9, 20.0, 20.05];
        let wide = [3.0, 9.0, 1.0, 14.0, 8.0];
        let states = vec![measured(&[&near, &wide]), measured(&[&near, &wide]), measured(&[&far, &near])];
        let found = series(Of::Experiment("e".into()), states).moves();
        assert_eq!(found.commits(), [2]);
        assert_eq!(found.all.len(), 1, "{found:?}");
        assert!(found.all[0].p_holm > found.all[0].p && found.compared == 4, "{found:?}");
        // One run has no scatter.
        let states = vec![measured(&[&[1.0], &[1.0]]), measured(&[&[2.0], &[1.0]])];
        let found = series(Of::Experiment("e".into()), states).moves();
        assert_eq!((found.all.len(), found.untested), (0, 2));
    }
}
