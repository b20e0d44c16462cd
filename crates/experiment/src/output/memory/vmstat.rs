//! The log of procps' `vmstat`.

use super::{PAGE_KIB, rate};
use crate::pressure::looked::Looked;
use slablab_model::Ps;
use slablab_sim::kernel::AllCpus;
use slablab_sim::memory::sampler::Sample;
use std::fmt::Write;

/// The heads of procps 3.3 (from memory).
const HEADS: &str = "\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
";

/// A line for each `every` picoseconds of the model's time, and one for what is left at the end. Memory is in
/// KiB, swap and io in KiB a second. `in` counts interrupts of disks; ticks are not counted. `cache` is
/// Cached without reclaimable slabs. There is no first line of the time since boot.
pub fn vmstat_log(looked: &Looked, every: Ps) -> String {
    let samples = looked.every(every);
    let lines = samples.windows(2).map(|pair| line(pair[0], pair[1]));
    HEADS.to_string() + &lines.collect::<String>()
}

fn line(before: &Sample, after: &Sample) -> String {
    let mut text = String::new();
    let [swpd, free, buff, cache] = [
        after.kib("SwapTotal") - after.kib("SwapFree"),
        after.kib("MemFree"),
        after.kib("Buffers"),
        after.kib("Cached"),
    ];
    let count = |name: &'static str, kib: u64| rate(before, after, |sample| sample.count(name) * kib);
    let (si, so) = (count("pswpin", PAGE_KIB), count("pswpout", PAGE_KIB));
    let (bi, bo) = (count("pgpgin", 1), count("pgpgout", 1));
    let interrupts = rate(before, after, |sample| sample.interrupts);
    let switches = rate(before, after, |sample| sample.switches);
    let [us, sy, id, wa] = percents(before.cpu, after.cpu);
    writeln!(
        text,
        "{:2} {:2} {swpd:6} {free:6} {buff:6} {cache:6} {si:4} {so:4} {bi:5} {bo:5} {interrupts:4} {switches:4} \
         {us:2} {sy:2} {id:2} {wa:2} {:2}",
        after.running, after.blocked, 0
    )
    .expect("a string takes all text");
    text
}

/// User, system, idle and waiting in percent of the CPUs' time, each rounded.
fn percents(before: AllCpus, after: AllCpus) -> [u64; 4] {
    let all = (after.all - before.all).max(1);
    let user = after.user - before.user;
    let busy = (after.busy - before.busy).max(user).min(all.max(user));
    let waited = (after.waited - before.waited).min(all.saturating_sub(busy));
    let idle = all.saturating_sub(busy + waited);
    [user, busy - user, idle, waited].map(|time| (time * 100 + all / 2) / all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::memory::tests::samples;

    #[test]
    fn a_log_has_vmstats_columns() {
        let looked = Looked { samples: samples(), ends: Vec::new() };
        let expected = HEADS.to_string()
            + " 2  1   8192   4000     40   1240   16  400  1200   300   50 2000 25 25  0 50  0\n"
            + " 0  0   8192   4000     40   1240    0    0     0     0    0    0  0  0 100  0  0\n";
        assert_eq!(vmstat_log(&looked, 1_000_000_000_000), expected);
        // Half of the time makes twice the rate, and the end is in both.
        let halves = vmstat_log(&looked, 500_000_000_000);
        assert_eq!(halves.lines().count(), 2 + 3, "{halves}");
        assert!(halves.contains("   32  800  2400   600  100 4000 50 50  0  0  0\n"), "{halves}");
    }
}
