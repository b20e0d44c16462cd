//! A finding about directory entries: unused ones, and those of names that do not exist.

use super::finding::{Finding, Kind};
use crate::measure::Measured;
use crate::words::{listed, percent, size};
use slablab_report::text::grouped;

/// Per cent of all entries from which on those of names that do not exist are worth saying. A text that has
/// the numbers was pasted for them.
const NEGATIVE_PERCENT: u64 = 25;

/// Directory entries: how many of them the kernel can free.
pub(crate) fn find(measured: &Measured, worth: u64) -> Option<Finding> {
    let state = measured.state.dump.dentry_state?;
    let line = measured.lines.iter().find(|line| line.cache.name == "dentry" && !line.cache.bytes_only);
    // Unused ones as a part of the slabs.
    let bytes = line.map_or(0, |line| {
        let share = u128::from(line.split.bytes) * u128::from(state.unused) / u128::from(state.all.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    });
    let more = more(measured);
    let directories = directories(measured, state.all.saturating_sub(state.negative));
    let is_told =
        state.negative >= state.all / 100 * NEGATIVE_PERCENT || more.is_some() || directories.is_some();
    let is_worth = bytes >= worth && is_told;
    if measured.state.dump.pasted.is_none() && !is_worth {
        return None;
    }
    let about = if bytes > 0 { format!(", about {}", size(bytes)) } else { String::new() };
    let negative = match state.negative {
        0 => String::new(),
        count => format!(
            " {} are negative ({}){}: names that were looked up and do not exist, kept so that the next look-up \
             is fast.",
            grouped(count),
            percent(count, state.all),
            more.map_or(String::new(), |more| format!(", {} more than before", grouped(more)))
        ),
    };
    Some(Finding::of_machine(
        Kind::Dentries,
        bytes,
        format!(
            "of {} directory entries {} are unused ({}){about}: the kernel frees them by itself when it needs \
             memory, and until then they cost nothing else. Many are normal.{negative}{} A program that looks up \
             ever new names that do not exist makes more",
            grouped(state.all),
            grouped(state.unused),
            percent(state.unused, state.all),
            directories.unwrap_or_default()
        ),
    ))
}

/// The directories with most names in the kernel's cache, if one has a large part of all entries of names
/// that exist.
fn directories(measured: &Measured, existing: u64) -> Option<String> {
    const KIND: &str = "directory";
    const PERCENT: u64 = 5;
    const NAMED: usize = 3;
    // How many more than before is not said: the walk may end at another name each time.
    let now = measured.state.dump.owners.holders.iter().filter(|holder| holder.kind == KIND);
    let mut ranked: Vec<(&String, u64)> = now.map(|holder| (&holder.comm, holder.count)).collect();
    ranked.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let (_, most) = ranked.first()?;
    if *most < existing / 100 * PERCENT {
        return None;
    }
    let said = |(name, count): &(&String, u64)| format!("{name} {}", grouped(*count));
    let words: Vec<String> = ranked.iter().take(NAMED).map(said).collect();
    Some(format!(" Of names that exist, most are in {}, at least.", listed(&words)))
}

/// Entries of names that do not exist, by which directory entries grew, if that is most of their growth.
pub(crate) fn more(measured: &Measured) -> Option<u64> {
    let first = measured.history.as_ref()?.first().dump.dentry_state?;
    let now = measured.state.dump.dentry_state?;
    let more = now.negative.checked_sub(first.negative)?;
    let line = measured.lines.iter().find(|line| line.cache.name == "dentry")?;
    let objects = u64::try_from(line.growth.as_ref()?.objects).ok()?;
    (more > 0 && more >= objects / 2).then_some(more)
}
