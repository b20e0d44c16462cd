//! Measurements in a process that does nothing else: the program starts itself again, with the arguments of
//! [`Child`], and the child calls [`serve`].

use crate::contestants::Known;
use crate::memory::{Footprint, footprint};
use crate::own;
use crate::patterns::Task;
use crate::subject::{Role, Subject, Subjects, Visitor};
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// How the program runs itself for one allocator. The allocator's name, the bytes and the seed are appended
/// to `args`.
#[derive(Clone, Debug)]
pub struct Child {
    /// The program.
    pub program: PathBuf,
    /// The arguments that make the program call [`serve`].
    pub args: Vec<String>,
    /// Environment variables for the child.
    pub env: Vec<(String, String)>,
}

impl Child {
    /// Runs the child and parses the last line that it printed. `amount` is the number of live bytes, or of
    /// operations.
    pub(crate) fn run<T: DeserializeOwned>(&self, name: &str, amount: u64, seed: u64) -> Result<T, String> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).args([name, &amount.to_string(), &seed.to_string()]);
        command.envs(self.env.iter().cloned()).stdin(Stdio::null()).stderr(Stdio::piped());
        let output = command.output().map_err(|error| format!("{}: {error}", self.program.display()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let answer = said.lines().rev().find_map(|line| serde_json::from_str(line).ok());
        answer.filter(|_| output.status.success()).ok_or_else(|| {
            let error = String::from_utf8_lossy(&output.stderr);
            format!("a process of {name}: {}: {}", output.status, error.trim())
        })
    }
}

/// Measures in this process what its parent asks for. `name` is an allocator, whose memory is measured with
/// `amount` live bytes, or `WORKLOAD/CONTESTANT`, of which one sample of `amount` operations is measured.
/// Returns one line of JSON.
///
/// # Errors
/// Unknown names; a block that another allocator served.
pub fn serve(name: &str, amount: u64, seed: u64) -> Result<String, String> {
    match sample(name, Task { ops: amount, seed }) {
        Some(answer) => answer,
        None => held(name, amount, seed),
    }
}

/// Between the names of a workload and of a contestant.
const BETWEEN: char = '/';

/// How a child is asked for one sample of a workload on a contestant.
pub(crate) fn asked(workload: &str, contestant: &str) -> String {
    format!("{workload}{BETWEEN}{contestant}")
}

/// Runs `WORKLOAD/CONTESTANT` once in this process. Returns `None` if `name` is not such a pair of names,
/// else the sample as one line of JSON.
fn sample(name: &str, task: Task) -> Option<Result<String, String>> {
    let (workload, contestant) = name.split_once(BETWEEN)?;
    let run = || {
        let all = own::workloads();
        let found = all.iter().find(|one| one.name == workload);
        let found = found.ok_or_else(|| format!("no workload is called {workload}"))?;
        let one = found.contestants.iter().find(|one| one.name == contestant);
        let one = one.ok_or_else(|| format!("no contestant of {workload} is called {contestant}"))?;
        let sample = (one.run)(task)?;
        Ok(serde_json::to_string(&sample).expect("numbers"))
    };
    Some(run())
}

/// Measures the memory of an allocator with `bytes` live bytes.
fn held(name: &str, bytes: u64, seed: u64) -> Result<String, String> {
    struct Serve<'a>(&'a str, u64, u64, Option<Result<Footprint, String>>);
    impl Visitor for Serve<'_> {
        fn visit<A: Subject>(&mut self) {
            if A::NAME == self.0 && A::ROLE != Role::Floor {
                self.3 = Some(footprint::<A>(self.1, self.2));
            }
        }
    }
    let mut serve = Serve(name, bytes, seed, None);
    Known::each(&mut serve);
    if let Some(own) = own::registered().iter().find(|own| own.name == name) {
        serve.3 = Some((own.footprint)(bytes, seed));
    }
    let footprint = serve.3.ok_or_else(|| format!("no allocator is called {name}"))??;
    Ok(serde_json::to_string(&footprint).expect("numbers"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Sample;

    #[test]
    fn a_child_is_asked_by_both_names() {
        let task = Task { ops: 1000, seed: 1 };
        let said = |name: &str| sample(name, task);
        assert_eq!(said("glibc"), None, "an allocator alone is for the memory workload");
        for (name, expected) in [
            ("pair65/glibc", "no workload is called pair65"),
            ("pair64/libc", "no contestant of pair64 is called libc"),
        ] {
            assert_eq!(said(name), Some(Err(expected.to_string())));
        }
        let line = said(&asked("cfrac-like", "twin")).expect("a pair").expect("it runs");
        let sample: Sample = serde_json::from_str(&line).expect("a sample");
        assert!(sample.ops > 0 && sample.costs.is_some(), "{line}");
    }
}
