//! Kendall's tau-b: how alike two orders of merit of the same few things are, from -1 to 1, with ties.
//!
//! The null answer, all things are equal, has a tau of 0. `chance` is exact: the part of all permutations of
//! one side whose tau is as high. Source: M. G. Kendall, Biometrika 33 (1945).

use std::cmp::Ordering;

/// Things of which all permutations are counted, at most: 40,320 of eight.
const MOST: usize = 8;

/// How alike two orders are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kendall {
    /// Tau-b; 0 if one side has ties alone.
    pub tau: f64,
    /// The part of all permutations of one side that have this tau or a higher one.
    pub chance: f64,
}

/// Compares two orders of the same things. On the second side, numbers that differ by at most
/// `noise_percent` of the larger one are a tie. `None` with fewer than two things or more than eight.
pub fn kendall(one: &[f64], other: &[f64], noise_percent: f64) -> Option<Kendall> {
    let n = one.len();
    if n != other.len() || !(2..=MOST).contains(&n) {
        return None;
    }
    let (first, second) = (signs(one, 0.0), signs(other, noise_percent));
    let untied = |signs: &[Vec<i32>]| (0..n).flat_map(|b| &signs[b][..b]).filter(|sign| **sign != 0).count();
    let scale = ((untied(&first) * untied(&second)) as f64).sqrt();
    let sum = |order: &[usize]| -> i32 {
        let pairs = (0..n).flat_map(|b| (0..b).map(move |a| (a, b)));
        pairs.map(|(a, b)| first[b][a] * second[order[b]][order[a]]).sum()
    };
    let mut order: Vec<usize> = (0..n).collect();
    let found = sum(&order);
    let (mut all, mut as_high) = (0_u32, 0_u32);
    permute(&mut order, 0, &mut |order| {
        all += 1;
        as_high += u32::from(sum(order) >= found);
    });
    let tau = if scale > 0.0 { f64::from(found) / scale } else { 0.0 };
    Some(Kendall { tau, chance: f64::from(as_high) / f64::from(all) })
}

/// The order of two numbers: `Equal` if they differ by at most so many percent of the larger one.
pub fn order(one: f64, other: f64, noise_percent: f64) -> Ordering {
    let is_tie = (one - other).abs() * 100.0 <= noise_percent * one.abs().max(other.abs());
    if is_tie { Ordering::Equal } else { one.total_cmp(&other) }
}

fn signs(values: &[f64], noise_percent: f64) -> Vec<Vec<i32>> {
    let row = |one: &f64| values.iter().map(|other| order(*one, *other, noise_percent) as i32).collect();
    values.iter().map(row).collect()
}

/// Calls `f` with every permutation of the items from `at` on.
fn permute(items: &mut [usize], at: usize, f: &mut dyn FnMut(&[usize])) {
    if at == items.len() {
        return f(items);
    }
    for with in at..items.len() {
        items.swap(at, with);
        permute(items, at + 1, f);
        items.swap(at, with);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Taus of scipy.stats.kendalltau; chances by hand: one of 24 permutations is the order itself.
    #[test]
    fn taus_and_chances() {
        let check = |one: &[f64], other: &[f64], noise: f64, tau: f64, chance: f64| {
            let found = kendall(one, other, noise).expect("few things");
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            assert!(near(found.tau, tau) && near(found.chance, chance), "{one:?} {other:?}: {found:?}");
        };
        check(&[1.0, 2.0, 3.0, 4.0], &[10.0, 20.0, 30.0, 40.0], 0.0, 1.0, 1.0 / 24.0);
        check(&[1.0, 2.0, 3.0, 4.0], &[40.0, 30.0, 20.0, 10.0], 0.0, -1.0, 1.0);
        check(&[1.0, 2.0, 3.0, 4.0], &[20.0, 10.0, 30.0, 40.0], 0.0, 2.0 / 3.0, 4.0 / 24.0);
        // The null answer; and a tie on one side, as kendalltau([1, 1, 2], [1, 2, 3]).
        check(&[1.0, 2.0, 3.0, 4.0], &[5.0, 5.0, 5.0, 5.0], 0.0, 0.0, 1.0);
        check(&[1.0, 1.0, 2.0], &[1.0, 2.0, 3.0], 0.0, 0.816_496_580_927_726, 2.0 / 6.0);
        // What differs by the noise is a tie.
        check(&[1.0, 2.0], &[100.0, 102.0], 3.0, 0.0, 1.0);
        assert_eq!((kendall(&[1.0], &[1.0], 0.0), kendall(&[0.0; 9], &[0.0; 9], 0.0)), (None, None));
    }
}
