//! What the builds are measured by, counted up to the whole of which a part was built.

use super::Iteration;
use crate::programs::program::Metric;
use slablab_stats::table::Better;

const fn time(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about, better: Some(Better::Lower), unit: "s", per_unit: 1e12, decimals: 2 }
}

const fn count(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about, better: None, unit: "1", per_unit: 1.0, decimals: 0 }
}

const fn ratio(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about, better: None, unit: "1", per_unit: 1e6, decimals: 3 }
}

macro_rules! metrics {
    ($($n:literal)*) => {
        &[
            time("elapsed_ps", "time of all iterations, times `part`"),
            $(
                time(concat!("build1_", $n, "_ps"), concat!("build 1 of iteration ", $n, ", times `part`")),
                time(concat!("user1_", $n, "_ps"), "its CPU time in programs, times `part`"),
                time(concat!("system1_", $n, "_ps"), "its CPU time in the kernel, times `part`"),
                time(concat!("build2_", $n, "_ps"), concat!("build 2 of iteration ", $n, ", times `part`")),
                time(concat!("user2_", $n, "_ps"), "its CPU time in programs, times `part`"),
                time(concat!("system2_", $n, "_ps"), "its CPU time in the kernel, times `part`"),
                time(concat!("total_", $n, "_ps"), concat!("time of iterations 1 to ", $n, ", times `part`")),
                count(concat!("tar_", $n), concat!("1: in iteration ", $n, " build 1 ended before the second tar")),
            )*
            ratio("growth_4_ppm", "build 2 of iteration 4 over that of iteration 2"),
            ratio("growth_8_ppm", "build 2 of iteration 8 over that of iteration 2"),
            count("tars_4", "iterations 3 and 4 in which build 1 ended before the second tar"),
            count("tars_8", "iterations 3 to 8 in which build 1 ended before the second tar"),
            time("user_ps", "CPU time of a build 1 in programs, times `part`"),
            time("system_ps", "CPU time of a build 1 in the kernel, times `part`"),
            count("swap_ins_1", "pages read from swap for build 1, an iteration"),
            count("swap_ins_source", "pages of files and of blocks in use read from swap for build 2, an iteration"),
            count("swap_ins_garbage", "blocks read from swap for build 2 that no file has, or to be overwritten"),
            count("swap_ins_other", "pages of programs read from swap for build 2, an iteration"),
            count("swap_outs", "pages written to swap, an iteration"),
            count("wakes_0", "wake-ups of kswapd for single pages, an iteration"),
            count("wakes_1", "wake-ups of kswapd for order 1, an iteration"),
            count("wakes_2", "wake-ups of kswapd for order 2, an iteration"),
            count("wakes_3", "wake-ups of kswapd for order 3, an iteration"),
            count("low_0", "requests of single pages that found none above the low mark, an iteration"),
            count("low_1", "requests of order 1 that found no block above the low mark, an iteration"),
            count("low_2", "requests of order 2 that found no block above the low mark, an iteration"),
            count("low_3", "requests of order 3 that found no block above the low mark, an iteration"),
            count("direct_0", "rounds of direct reclaim for single pages, an iteration"),
            count("direct_1", "rounds of direct reclaim for order 1, an iteration"),
            count("direct_2", "rounds of direct reclaim for order 2, an iteration"),
            count("direct_3", "rounds of direct reclaim for order 3, an iteration"),
            count("stolen_kswapd", "pages that kswapd reclaimed, an iteration"),
            count("stolen_direct", "pages that allocations reclaimed, an iteration"),
            count("requests1_0", "single pages that build 1 requested, an iteration"),
            count("requests1_1", "blocks of order 1 that build 1 requested, an iteration"),
            count("requests1_2", "blocks of order 2 that build 1 requested, an iteration"),
            count("requests1_3", "blocks of order 3 that build 1 requested, an iteration"),
            count("requests2_0", "single pages that build 2 requested, an iteration"),
            count("requests2_1", "blocks of order 1 that build 2 requested, an iteration"),
            count("requests2_2", "blocks of order 2 that build 2 requested, an iteration"),
            count("requests2_3", "blocks of order 3 that build 2 requested, an iteration"),
            count("text_kib", "KiB of programs read from their disk, an iteration"),
            count("name_slabs", "slabs that names_cache took, an iteration"),
        ]
    };
}

pub(super) const METRICS: &[Metric] = metrics!(1 2 3 4 5 6 7 8 9 10);

/// The numbers of a run. An iteration that was not run has none, nor what is counted up to it.
pub(super) fn numbers(answer: &[Iteration], part: u64) -> Vec<(String, u64)> {
    let mut numbers = Vec::new();
    let mut add = |name: &str, number: u64| numbers.push((name.to_string(), number));
    for (at, one) in answer.iter().enumerate() {
        let n = at + 1;
        for (build, built) in (1..).zip(&one.builds) {
            add(&format!("build{build}_{n}_ps"), built.elapsed * part);
            add(&format!("user{build}_{n}_ps"), built.cpu.user * part);
            add(&format!("system{build}_{n}_ps"), built.cpu.system * part);
        }
        add(&format!("total_{n}_ps"), one.total * part);
        add(&format!("tar_{n}"), one.is_unpacking.into());
    }
    for n in [4, 8].into_iter().filter(|n| *n <= answer.len()) {
        let build2 = |n: usize| u128::from(answer[n - 1].builds[1].elapsed);
        add(&format!("growth_{n}_ppm"), (build2(n) * 1_000_000 / build2(2).max(1)) as u64);
        let tars = answer[2..n].iter().filter(|one| one.is_unpacking).count();
        add(&format!("tars_{n}"), tars as u64);
    }
    let mean =
        |of: &dyn Fn(&Iteration) -> u64| answer.iter().map(of).sum::<u64>() / answer.len().max(1) as u64;
    add("elapsed_ps", answer.last().map_or(0, |last| last.total * part));
    add("user_ps", mean(&|one| one.builds[0].cpu.user) * part);
    add("system_ps", mean(&|one| one.builds[0].cpu.system) * part);
    add("swap_ins_1", mean(&|one| one.builds[0].swap_ins.iter().sum()));
    for (at, cause) in ["source", "garbage", "other"].into_iter().enumerate() {
        add(&format!("swap_ins_{cause}"), mean(&|one| one.builds[1].swap_ins[at]));
    }
    for order in 0..4 {
        add(&format!("wakes_{order}"), mean(&|one| one.counts.wakes[order]));
        add(&format!("low_{order}"), mean(&|one| one.counts.low[order]));
        add(&format!("direct_{order}"), mean(&|one| one.counts.direct[order]));
        for build in 0..2 {
            let name = format!("requests{}_{order}", build + 1);
            add(&name, mean(&|one| one.builds[build].requests[order]));
        }
    }
    for (at, by) in ["kswapd", "direct"].into_iter().enumerate() {
        add(&format!("stolen_{by}"), mean(&|one| one.counts.stolen[at]));
    }
    add("swap_outs", mean(&|one| one.counts.swap_outs));
    add("text_kib", mean(&|one| one.counts.text_kib));
    add("name_slabs", mean(&|one| one.counts.name_slabs));
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::CpuTime;
    use crate::programs::tmpfs_swap::{Built, Counts};

    #[test]
    fn every_number_is_a_metric_and_parts_are_counted_up() {
        let built = |elapsed| Built {
            elapsed,
            cpu: CpuTime { user: 7, system: 3 },
            requests: std::array::from_fn(|order| elapsed + order as u64),
            swap_ins: [2, 4, 6],
            objects: 1,
        };
        let wakes = std::array::from_fn(|order| order as u64 + 1);
        let counts = Counts { wakes, stolen: [8, 9], ..Counts::default() };
        let one = Iteration { builds: [built(10), built(20)], is_unpacking: true, total: 21, counts };
        let other = Iteration { builds: [built(11), built(30)], is_unpacking: false, total: 52, counts };
        let numbers = numbers(&[one, other], 8);
        for (name, _) in &numbers {
            assert!(METRICS.iter().any(|metric| metric.name == name), "{name}");
        }
        let of = |name: &str| numbers.iter().find(|(one, _)| one == name).map(|(_, number)| *number);
        assert_eq!(
            (of("build1_1_ps"), of("build2_2_ps"), of("total_2_ps")),
            (Some(80), Some(240), Some(416))
        );
        assert_eq!((of("tar_1"), of("tar_2"), of("tar_3")), (Some(1), Some(0), None));
        assert_eq!((of("swap_ins_1"), of("swap_ins_garbage"), of("wakes_3")), (Some(12), Some(4), Some(4)));
        assert_eq!((of("stolen_kswapd"), of("stolen_direct")), (Some(8), Some(9)));
        assert_eq!((of("user_ps"), of("system2_2_ps"), of("requests2_3")), (Some(56), Some(24), Some(28)));
    }

    #[test]
    fn growth_is_over_iteration_2_and_tars_are_counted_from_iteration_3() {
        let iteration = |n: u64, is_unpacking| {
            let builds = [Built::default(), Built { elapsed: n * 100, ..Built::default() }];
            Iteration { builds, is_unpacking, ..Iteration::default() }
        };
        let five: Vec<Iteration> = (1..=5).map(|n| iteration(n, n != 4)).collect();
        let numbers = numbers(&five, 8);
        let of = |name: &str| numbers.iter().find(|(one, _)| one == name).map(|(_, number)| *number);
        assert_eq!((of("growth_4_ppm"), of("tars_4")), (Some(2_000_000), Some(1)));
        assert_eq!((of("growth_8_ppm"), of("tars_8")), (None, None));
    }
}
