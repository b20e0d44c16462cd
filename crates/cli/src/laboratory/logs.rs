//! Logs of a modelled machine's memory as text: `vmstat`, /proc/meminfo, processes.

use slablab_experiment::output::{meminfo_log, processes_table, vmstat_log};
use slablab_experiment::pressure::looked::Looked;

/// Picoseconds of a millisecond.
pub(crate) const MS: u64 = 1_000_000_000;
/// The longest time between two samples, in milliseconds.
const LONGEST: u64 = 86_400_000;

/// Logs that are printed instead of the answer.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("logs").multiple(true)))]
pub(crate) struct Logs {
    /// Print the log of `vmstat SECONDS` instead of the table: the model's time, 0.001 at least, 1 if not
    /// given
    #[arg(long, value_name = "SECONDS", group = "logs", num_args = 0..=1, default_missing_value = "1", value_parser = milliseconds)]
    vmstat: Option<u64>,
    /// Print /proc/meminfo at the end of each phase, step or iteration instead of the table; with SECONDS
    /// also at these times
    #[arg(long, value_name = "SECONDS", group = "logs", num_args = 0..=1, default_missing_value = "0", value_parser = milliseconds_or_none)]
    meminfo: Option<u64>,
    /// Print the processes at the end of each phase, step or iteration instead of the table: VSZ, RSS,
    /// VSZ - RSS, swap, in KiB
    #[arg(long, group = "logs")]
    ps: bool,
}

/// Seconds with at most three decimals, as milliseconds.
fn milliseconds(text: &str) -> Result<u64, String> {
    let error = || format!("expected seconds from 0.001 to 86400, found {text:?}");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 3 || whole.len() > 5 || whole.is_empty() {
        return Err(error());
    }
    let ms = whole.parse::<u64>().map_err(|_| error())? * 1_000;
    let ms = ms + format!("{part:0<3}").parse::<u64>().map_err(|_| error())?;
    if (1..=LONGEST).contains(&ms) { Ok(ms) } else { Err(error()) }
}

/// Seconds as [`milliseconds`]; 0 for the missing value.
fn milliseconds_or_none(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { milliseconds(text) }
}

pub(crate) fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

impl Logs {
    /// Whether there are any.
    pub(crate) fn are_wanted(&self) -> bool {
        self.vmstat.is_some() || self.meminfo.is_some() || self.ps
    }

    /// The times between two samples that they need, in milliseconds; none for those of ends alone.
    pub(crate) fn times(&self) -> [Option<u64>; 2] {
        [self.vmstat, self.meminfo.filter(|every| *every > 0)]
    }

    /// Each of them, of one run.
    pub(crate) fn texts(&self, looked: &Looked) -> Vec<String> {
        let vmstat = self.vmstat.map(|every| vmstat_log(looked, every * MS));
        let meminfo = self.meminfo.map(|every| meminfo_log(looked, (every > 0).then_some(every * MS)));
        let processes = self.ps.then(|| processes_table(looked));
        [vmstat, meminfo, processes].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_three_decimals() {
        for (text, ms) in [("1", 1_000), ("0.001", 1), ("0.25", 250), ("86400", LONGEST), ("2.", 2_000)] {
            assert_eq!(milliseconds(text), Ok(ms), "{text}");
        }
        for text in ["", "0", "0.0001", "-1", "1e3", ".5", "86400.001", "99999999999", "my.t"] {
            assert!(milliseconds(text).is_err(), "{text}");
        }
    }
}
