//! How the machine of a scenario was set up beside the defaults: the settings in `SCENARIO.sh`, beside the
//! script, as the recording program reads them. A setting that no model knows is an error with its line.
//!
//! ```text
//! DATAOPT=,throttling.bps-write=24000000   bytes a second to which writes of the data disk are held
//! SWAPOPT=,throttling.bps-write=N          of the disk with swap
//! KARG='t_rot=0 t_swap=n'                  swap on a disk that does not rotate; no swap
//! MEM=96M EXTRA='-smp 2'                   memory and CPUs, if no record says them
//! IMG=tree.img LIM=300 MEMMAP=...          the files, the host's time limit, holes: nothing to model
//! ```

use slablab_report::error::{Error, Result};
use slablab_report::{Limit, read_text_at_most};
use std::path::Path;

/// What differs from the defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Bytes a second to which writes are held, of the disk with swap and of the one with files.
    pub write_limits: [Option<u64>; 2],
    /// Swap does not rotate.
    pub swap_is_flash: bool,
    /// There is no swap.
    pub no_swap: bool,
    /// MiB of memory.
    pub memory_mib: Option<u64>,
    /// CPUs.
    pub cpus: Option<u16>,
    /// Pages of swap.
    pub swap_pages: Option<u32>,
    /// Most KiB that files are read ahead.
    pub read_ahead_kib: Option<u64>,
    /// Settings before the script, by their files.
    pub set: Vec<(&'static str, u32)>,
}

impl Settings {
    /// The settings of a scenario, from the folder of the scripts; the defaults without a file.
    ///
    /// # Errors
    /// A file that cannot be read; the line of a setting that is not modelled.
    pub fn read(scripts: &Path, scenario: &str) -> Result<Settings> {
        let path = scripts.join(format!("{scenario}.sh"));
        if !path.is_file() {
            return Ok(Settings::default());
        }
        let text = read_text_at_most(&path, Limit::mib("the settings of a scenario", 1))?;
        Settings::parse(&text).map_err(|(line, what)| Error::new(&path, format!("line {line}: {what}")))
    }

    /// Reads lines of `NAME=VALUE`, with quotes around values that have spaces.
    fn parse(text: &str) -> std::result::Result<Settings, (usize, String)> {
        let mut settings = Settings::default();
        for (line, number) in text.lines().zip(1..) {
            let mut rest = line.trim();
            while !rest.is_empty() && !rest.starts_with('#') {
                let expected = || format!("expected NAME=VALUE, found {rest}");
                let (name, after) = rest.split_once('=').ok_or_else(|| (number, expected()))?;
                let (value, left) = value(after).ok_or_else(|| (number, expected()))?;
                settings.set(name, value).map_err(|what| (number, what))?;
                rest = left.trim_start();
            }
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &str) -> std::result::Result<(), String> {
        match name {
            "IMG" | "LIM" | "MEMMAP" => Ok(()),
            "MEM" => {
                self.memory_mib = Some(mebibytes(value).ok_or_else(|| {
                    format!("MEM: expected a number with M or G, such as 192M, found {value:?}")
                })?);
                Ok(())
            }
            "EXTRA" => {
                let mut words = value.split_whitespace();
                while let Some(word) = words.next() {
                    let cpus = (word == "-smp").then(|| words.next()).flatten().and_then(|n| n.parse().ok());
                    let bad = || format!("EXTRA: {word} is not modelled: expected -smp NUMBER");
                    self.cpus = Some(cpus.filter(|cpus| *cpus > 0).ok_or_else(bad)?);
                }
                Ok(())
            }
            "SWAPOPT" | "DATAOPT" => {
                let disk = usize::from(name == "DATAOPT");
                let mut options = value.split(',').filter(|option| !option.is_empty());
                options.try_for_each(|option| {
                    let limit = option.strip_prefix("throttling.bps-write=").and_then(|of| of.parse().ok());
                    let limit: u64 = limit.filter(|limit| *limit > 0).ok_or_else(|| {
                        format!("{name}: {option} is not modelled: expected throttling.bps-write=NUMBER")
                    })?;
                    self.write_limits[disk] = Some(limit);
                    Ok(())
                })
            }
            "KARG" => value.split_whitespace().try_for_each(|word| match word {
                "t_rot=0" | "t_rot=1" => {
                    self.swap_is_flash = word == "t_rot=0";
                    Ok(())
                }
                "t_swap=n" | "t_swap=y" => {
                    self.no_swap = word == "t_swap=n";
                    Ok(())
                }
                _ => Err(format!("KARG: {word} is not modelled: expected t_rot=0 or t_swap=n")),
            }),
            _ => Err(format!(
                "{name} is not modelled: expected MEM, EXTRA, DATAOPT, SWAPOPT, KARG, IMG or LIM"
            )),
        }
    }
}

/// `96M` and `1G`; a number alone is MiB, as QEMU reads it.
fn mebibytes(value: &str) -> Option<u64> {
    let number = value.trim_end_matches(['M', 'm', 'G', 'g']);
    let factor = if value.ends_with(['G', 'g']) { 1_024 } else { 1 };
    number.parse::<u64>().ok()?.checked_mul(factor).filter(|mib| *mib > 0 && value.len() <= number.len() + 1)
}

/// A value and what follows it; `None` if its quotes have no end.
fn value(text: &str) -> Option<(&str, &str)> {
    match text.chars().next() {
        Some(quote @ ('\'' | '"')) => text[1..].split_once(quote),
        _ => Some(text.split_once(char::is_whitespace).unwrap_or((text, ""))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_lines_of_errors() {
        let text = "# slow\nDATAOPT=,throttling.bps-write=24000000 LIM=300\nKARG='t_rot=0 t_swap=n'\n";
        let expected = Settings {
            write_limits: [None, Some(24_000_000)],
            swap_is_flash: true,
            no_swap: true,
            ..Settings::default()
        };
        assert_eq!(Settings::parse(text), Ok(expected));
        let machine = Settings::parse("MEM=1G EXTRA='-smp 2' MEMMAP='nokaslr memmap=15M$1M'\n");
        assert_eq!(machine.map(|one| (one.memory_mib, one.cpus)), Ok((Some(1_024), Some(2))));
        let swap = Settings::parse("SWAPOPT=,throttling.bps-write=7\nDATAOPT=\n");
        assert_eq!(swap.map(|settings| settings.write_limits), Ok([Some(7), None]));
        for (text, line, part) in [
            ("IMG=a\nCPU=64\n", 2, "CPU is not modelled: expected MEM"),
            ("MEM=64K", 1, "MEM: expected a number with M or G"),
            ("EXTRA='-smp two'", 1, "-smp is not modelled: expected -smp NUMBER"),
            ("DATAOPT=,throttling.iops=3", 1, "throttling.iops=3 is not modelled"),
            ("DATAOPT=,throttling.bps-write=0", 1, "expected throttling.bps-write=NUMBER"),
            ("\nKARG=quiet", 2, "quiet is not modelled: expected t_rot=0"),
            ("\n\nno settings", 3, "expected NAME=VALUE, found no settings"),
            ("KARG='t_rot=0", 1, "expected NAME=VALUE"),
        ] {
            let (at, what) = Settings::parse(text).expect_err(text);
            assert!(at == line && what.contains(part), "{text:?}: line {at}: {what}");
        }
    }
}
