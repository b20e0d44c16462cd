//! Adds up the summaries that the test runner prints, one per test program.

/// The numbers of tests by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
}

impl Counts {
    /// Adds one line of output, if it is a summary: `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
    pub(crate) fn add(&mut self, line: &str) {
        let Some(summary) = line.strip_prefix("test result: ") else { return };
        for part in summary.split([';', '.']) {
            let Some((number, word)) = part.trim().split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match word {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[track_caller]
    fn check(lines: &[&str], expected: (u64, u64, u64)) {
        let mut counts = Counts::default();
        lines.iter().for_each(|line| counts.add(line));
        assert_eq!((counts.passed, counts.failed, counts.ignored), expected);
    }

    #[test]
    fn summaries_add_up() {
        check(&["running 3 tests", "test a ... ok"], (0, 0, 0));
        check(
            &[
                "test result: ok. 30 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.35s",
                "test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured; 9 filtered out; finished in 1.00s",
            ],
            (34, 1, 2),
        );
    }
}
