//! The part of each policy in a difference: Shapley values, in whole numbers.
//!
//! A *game* gives every coalition of players a worth. Here the players are policies. The worth of a coalition
//! is the value of a counter if these policies are the second preset's and all others are the first's. A
//! player's *part* is what it adds, averaged over all orders in which players can join (L. S. Shapley, A
//! Value for n-Person Games, 1953). Parts add up to the difference, and a player that never adds anything has
//! 0. A pair's *interaction* is what both add beyond what each adds without the other, averaged over the
//! coalitions of the rest so that every size of them weighs the same (M. Grabisch and M. Roubens, An
//! axiomatic approach to the concept of interaction among players in cooperative games, 1999).
//!
//! Nothing here is rounded: a part is a sum of whole numbers over a count of them. With many players orders
//! are sampled: a part is then a mean over these orders, still adds up, and has an interval. Every sampled
//! order comes with a twin in which neighbours are swapped, since between them they show interactions; the
//! interval counts the two as one.

use std::collections::BTreeSet;

/// Players of a coalition, a bit each.
pub type Coalition = u64;

/// Players that can be counted exactly at most: more would take too many replays.
pub const EXACT_MOST: usize = 16;

/// The seed of sampled orders: the same question has the same answer.
pub const SEED: u64 = 1;

/// Which coalitions are looked at, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// All.
    Exact {
        /// How many players there are.
        players: usize,
    },
    /// Those along some orders.
    Sampled {
        /// How many players there are.
        players: usize,
        /// The orders, each with its twin.
        orders: Vec<[Vec<usize>; 2]>,
    },
}

/// A mean: `sum / over`, exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The sum.
    pub sum: i128,
    /// What it is divided by; positive.
    pub over: i128,
    /// Half of the width of the 95 % interval; `None` if the part is exact, not sampled.
    pub give_or_take: Option<f64>,
}

/// What two players do together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interaction {
    /// The players.
    pub players: [usize; 2],
    /// What both add beyond what each adds without the other.
    pub mean: Mean,
    /// Times it was seen, where orders were sampled.
    pub seen: Option<usize>,
}

impl Mean {
    /// As a number to print.
    pub fn value(&self) -> f64 {
        self.sum as f64 / self.over as f64
    }

    /// The fraction in its lowest terms, as `-5/3`; whole numbers have no denominator.
    pub fn exact(&self) -> String {
        let (mut a, mut b) = (self.sum.unsigned_abs(), self.over.unsigned_abs());
        while b > 0 {
            (a, b) = (b, a % b);
        }
        let divisor = (a.max(1)) as i128;
        match (self.sum / divisor, self.over / divisor) {
            (sum, 1) => sum.to_string(),
            (sum, over) => format!("{sum}/{over}"),
        }
    }
}

impl Plan {
    /// Exactly up to `exact_most` players, else by `samples` orders, rounded up to a multiple of four.
    ///
    /// # Panics
    /// With more than 64 players, or where more than [`EXACT_MOST`] shall be exact.
    pub fn new(players: usize, exact_most: usize, samples: usize, seed: u64) -> Plan {
        assert!(players <= 64 && exact_most <= EXACT_MOST, "{players} players, exact up to {exact_most}");
        if players <= exact_most {
            return Plan::Exact { players };
        }
        let mut random = Random(seed);
        let orders = (0..2 * samples.div_ceil(4).max(1)).map(|number| {
            let mut order: Vec<usize> = (0..players).collect();
            for place in (1..players).rev() {
                order.swap(place, random.below(place as u64 + 1) as usize);
            }
            let mut twin = order.clone();
            // Every second order begins at its second player, so that coalitions of any size stand before a
            // swapped pair.
            twin[number % 2..].chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
            [order, twin]
        });
        Plan::Sampled { players, orders: orders.collect() }
    }

    /// The number of players.
    pub fn players(&self) -> usize {
        match self {
            Plan::Exact { players } | Plan::Sampled { players, .. } => *players,
        }
    }

    /// The coalition of all players.
    pub fn all(&self) -> Coalition {
        u64::MAX.checked_shr(64 - self.players() as u32).unwrap_or(0)
    }

    /// The coalitions whose worth the plan needs. Among them are the empty one, that of all players, each
    /// player alone, and all players but one.
    pub fn coalitions(&self) -> Vec<Coalition> {
        match self {
            Plan::Exact { .. } => (0..=self.all()).collect(),
            Plan::Sampled { players, orders } => {
                let all = self.all();
                let mut wanted = BTreeSet::from([0, all]);
                wanted.extend((0..*players).flat_map(|player| [1 << player, all & !(1 << player)]));
                for order in orders.iter().flatten() {
                    wanted.extend(steps(order).map(|(_, before)| before));
                }
                wanted.into_iter().collect()
            }
        }
    }

    /// The part of every player.
    pub fn parts(&self, worth: &dyn Fn(Coalition) -> i128) -> Vec<Mean> {
        match self {
            Plan::Exact { players } => (0..*players).map(|player| part(*players, player, worth)).collect(),
            Plan::Sampled { players, orders } => {
                // What each player adds in an order and its twin.
                let mut added = vec![Vec::with_capacity(orders.len()); *players];
                for twins in orders {
                    let mut both = vec![0; *players];
                    for (player, before) in twins.iter().flat_map(|order| steps(order)) {
                        both[player] += worth(before | 1 << player) - worth(before);
                    }
                    added.iter_mut().zip(both).for_each(|(list, sum)| list.push(sum));
                }
                added.iter().map(|sums| mean(sums, 2)).collect()
            }
        }
    }

    /// What pairs do together, of all pairs that were seen.
    pub fn interactions(&self, worth: &dyn Fn(Coalition) -> i128) -> Vec<Interaction> {
        let players = self.players();
        let both = |before: Coalition, [i, j]: [usize; 2]| {
            let (i, j) = (1 << i, 1 << j);
            worth(before | i | j) - worth(before | i) - worth(before | j) + worth(before)
        };
        let pairs = (0..players).flat_map(|i| (i + 1..players).map(move |j| [i, j]));
        match self {
            Plan::Exact { .. } => pairs
                .map(|pair| {
                    let of_both = 1 << pair[0] | 1 << pair[1];
                    let others = (0..=self.all()).filter(|before: &u64| before & of_both == 0);
                    let weighed = others.map(|before| {
                        let size = before.count_ones() as usize;
                        factorial(size) * factorial(players - 2 - size) * both(before, pair)
                    });
                    let mean = Mean { sum: weighed.sum(), over: factorial(players - 1), give_or_take: None };
                    Interaction { players: pair, mean, seen: None }
                })
                .collect(),
            Plan::Sampled { orders, .. } => {
                let mut seen = vec![vec![Vec::new(); players]; players];
                for [order, twin] in orders {
                    for (place, (player, before)) in steps(order).enumerate() {
                        let other = twin[place];
                        // The first of a swapped pair: in the twin another comes here.
                        if other != player && before >> other & 1 == 0 {
                            let pair = [player.min(other), player.max(other)];
                            seen[pair[0]][pair[1]].push(both(before, pair));
                        }
                    }
                }
                let of = |pair: [usize; 2]| {
                    let sums = &seen[pair[0]][pair[1]];
                    let found = (!sums.is_empty()).then(|| mean(sums, 1))?;
                    Some(Interaction { players: pair, mean: found, seen: Some(sums.len()) })
                };
                pairs.filter_map(of).collect()
            }
        }
    }
}

/// The players of an order, each with those before it.
fn steps(order: &[usize]) -> impl Iterator<Item = (usize, Coalition)> {
    order.iter().scan(0, |before, player| {
        let step = (*player, *before);
        *before |= 1 << player;
        Some(step)
    })
}

/// The part of one player: a sum over all coalitions without the player, weighted by the number of orders in
/// which exactly the coalition joins before the player.
fn part(players: usize, player: usize, worth: &dyn Fn(Coalition) -> i128) -> Mean {
    let without = (0..1u64 << players).filter(|before| before >> player & 1 == 0);
    let weighed = without.map(|before| {
        let size = before.count_ones() as usize;
        factorial(size) * factorial(players - 1 - size) * (worth(before | 1 << player) - worth(before))
    });
    Mean { sum: weighed.sum(), over: factorial(players), give_or_take: None }
}

fn factorial(number: usize) -> i128 {
    (1..=number as i128).product()
}

/// The mean of samples that are sums of `of_each` numbers.
fn mean(sums: &[i128], of_each: i128) -> Mean {
    let count = sums.len() as f64;
    let centre = sums.iter().sum::<i128>() as f64 / count;
    let squares: f64 = sums.iter().map(|sum| (*sum as f64 - centre).powi(2)).sum();
    let give_or_take = (sums.len() > 1).then(|| {
        let error = (squares / (count - 1.0) / count).sqrt();
        student_95(sums.len() - 1) * error / of_each as f64
    });
    Mean { sum: sums.iter().sum(), over: of_each * sums.len() as i128, give_or_take }
}

/// Student's t for 95 % in the middle, by Fisher's expansion around the normal distribution; below three
/// degrees of freedom the expansion is too short.
fn student_95(freedom: usize) -> f64 {
    match freedom {
        1 => return 12.706,
        2 => return 4.303,
        _ => {}
    }
    let (z, n) = (1.959_964_f64, freedom as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / n + second / n.powi(2) + third / n.powi(3)
}

/// SplitMix64 (G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Below `bound`; what makes it uneven is below 2^-56 for 64 players.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(players: usize) -> Plan {
        Plan::new(players, 10, 0, 0)
    }

    fn sampled(players: usize, samples: usize) -> Plan {
        Plan::new(players, 0, samples, 1)
    }

    /// A game of many players in which everything depends on everything: the worth is a hash.
    fn tangled(coalition: Coalition) -> i128 {
        (Random(coalition).next() % 1_000_003) as i128
    }

    /// Parts as fractions.
    fn check(players: usize, worth: impl Fn(Coalition) -> i128, expected: &[&str]) {
        let parts = exact(players).parts(&worth);
        assert_eq!(parts.iter().map(Mean::exact).collect::<Vec<_>>(), expected);
        let whole = worth(exact(players).all()) - worth(0);
        assert_eq!(
            parts.iter().map(|part| part.sum).sum::<i128>(),
            whole * parts.first().map_or(1, |part| part.over)
        );
    }

    #[test]
    fn games_of_the_textbook() {
        // The glove game: one left glove, two right ones.
        let gloves = |set: u64| i128::from(set & 1 > 0 && set & 6 > 0);
        check(3, gloves, &["2/3", "1/6", "1/6"]);
        // A player that adds one worth to every coalition has this worth; one that adds nothing has 0.
        check(
            4,
            |set| 5 + 7 * (set & 1) as i128 - 11 * (set >> 1 & 1) as i128 + 3 * (set >> 3) as i128,
            &["7", "-11", "0", "3"],
        );
        // Unanimity of the first three of five.
        check(5, |set| 12 * i128::from(set & 7 == 7), &["4", "4", "4", "0", "0"]);
        check(2, |set| [10, 4, 25, 40][set as usize], &["9/2", "51/2"]);
        check(1, |set| 9 * set as i128, &["9"]);
        check(0, |_| 3, &[]);
    }

    #[test]
    fn parts_add_up_whatever_the_game() {
        for players in 1..=10 {
            let plan = exact(players);
            let parts = plan.parts(&tangled);
            let whole = tangled(plan.all()) - tangled(0);
            assert_eq!(
                parts.iter().map(|part| part.sum).sum::<i128>(),
                whole * factorial(players),
                "{players}"
            );
        }
        for (players, samples) in [(11, 4), (12, 64), (30, 7), (64, 8)] {
            let plan = sampled(players, samples);
            let parts = plan.parts(&tangled);
            let whole = tangled(plan.all()) - tangled(0);
            let Plan::Sampled { orders, .. } = &plan else { panic!("{plan:?}") };
            assert_eq!(2 * orders.len(), samples.next_multiple_of(4));
            let over = 2 * orders.len() as i128;
            assert!(parts.iter().all(|part| part.over == over), "{players}");
            assert_eq!(parts.iter().map(|part| part.sum).sum::<i128>(), whole * over, "{players}");
        }
    }

    /// By the definition: over all orders.
    #[test]
    fn weights_are_those_of_all_orders() {
        fn orders(rest: &[usize]) -> Vec<Vec<usize>> {
            if rest.is_empty() {
                return vec![Vec::new()];
            }
            let with = |first: &usize| {
                let others: Vec<usize> = rest.iter().copied().filter(|other| other != first).collect();
                orders(&others).into_iter().map(|order| [vec![*first], order].concat()).collect::<Vec<_>>()
            };
            rest.iter().flat_map(with).collect()
        }
        let mut sums = [0; 5];
        for order in orders(&[0, 1, 2, 3, 4]) {
            for (player, before) in steps(&order) {
                sums[player] += tangled(before | 1 << player) - tangled(before);
            }
        }
        let parts = exact(5).parts(&tangled);
        assert_eq!(parts.iter().map(|part| part.sum).collect::<Vec<_>>(), sums);
    }

    #[test]
    fn pairs() {
        let of = |plan: Plan, worth: &dyn Fn(u64) -> i128| {
            let pairs = plan.interactions(worth);
            pairs.iter().map(|pair| (pair.players, pair.mean.exact())).collect::<Vec<_>>()
        };
        let product = |set: u64| 4 * (set & 1) as i128 + 6 * i128::from(set & 6 == 6);
        let expected = [([0, 1], "0"), ([0, 2], "0"), ([1, 2], "6")];
        assert_eq!(of(exact(3), &product), expected.map(|(pair, text)| (pair, text.to_string())));
        assert_eq!(of(sampled(3, 200), &product), expected.map(|(pair, text)| (pair, text.to_string())));
        // Of three that must all be there, each two do half of it together.
        let unanimous = |set: u64| 6 * i128::from(set == 7);
        assert!(of(exact(3), &unanimous).iter().all(|(_, exact)| exact == "3"));
        // Of four, the only coalition of others that counts is one of three sizes.
        assert!(of(exact(4), &|set| 6 * i128::from(set == 15)).iter().all(|(_, exact)| exact == "2"));
        assert!(exact(1).interactions(&unanimous).is_empty() && exact(0).interactions(&unanimous).is_empty());
    }

    /// What is sampled comes near what is exact, as often as its interval says.
    #[test]
    fn intervals_hold() {
        let worth = |set: u64| tangled(set) + 400_000 * (set & 3) as i128 * (set >> 2 & 1) as i128;
        let exactly = exact(8);
        let (parts, pairs) = (exactly.parts(&worth), exactly.interactions(&worth));
        let (mut inside, mut all, mut pairs_inside, mut pairs_all) = (0, 0, 0, 0);
        for seed in 0..100 {
            let plan = Plan::new(8, 0, 64, seed);
            let near = |found: &Mean, exact: &Mean| {
                (found.value() - exact.value()).abs() <= found.give_or_take.expect("an interval")
            };
            for (found, exact) in plan.parts(&worth).iter().zip(&parts) {
                (inside, all) = (inside + usize::from(near(found, exact)), all + 1);
            }
            for found in plan.interactions(&worth).iter().filter(|pair| pair.seen > Some(4)) {
                let exact = pairs.iter().find(|pair| pair.players == found.players).expect("all pairs");
                (pairs_inside, pairs_all) =
                    (pairs_inside + usize::from(near(&found.mean, &exact.mean)), pairs_all + 1);
            }
        }
        println!("{inside} of {all} parts, {pairs_inside} of {pairs_all} pairs are in their interval");
        assert!(inside * 100 >= all * 93 && pairs_all > 1000 && pairs_inside * 100 >= pairs_all * 93);
    }

    #[test]
    fn only_what_is_needed_is_asked_for() {
        assert_eq!(exact(3).coalitions(), (0..8).collect::<Vec<_>>());
        assert_eq!(exact(0).coalitions(), [0]);
        let plan = sampled(12, 8);
        let wanted = plan.coalitions();
        // Each pair of orders: 11 between its ends, and 6 more of its twin.
        assert!(wanted.len() <= 2 + 24 + 4 * 17, "{}", wanted.len());
        let asked = std::cell::RefCell::new(BTreeSet::new());
        let worth = |set| {
            asked.borrow_mut().insert(set);
            tangled(set)
        };
        plan.parts(&worth);
        plan.interactions(&worth);
        assert!(asked.borrow().iter().all(|set| wanted.contains(set)), "a coalition was not announced");
        assert_eq!(sampled(12, 8).coalitions(), wanted, "the same seed, the same orders");
    }

    #[test]
    fn students_t() {
        for (freedom, expected) in
            [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (31, 2.040), (1000, 1.962)]
        {
            let found = student_95(freedom);
            assert!((found - expected).abs() < 0.035, "{freedom}: {found}, expected {expected}");
        }
    }
}
