//! How many objects of a slab are freed, by its objects in use.
//!
//! A slab holds groups of objects that die together, or it does not. If it does not, each object is freed on
//! its own. If it does, its objects are a row: each is of the group of the one before with probability
//! `chain`, and a group goes as a whole. Some of these slabs hold an object of another time that stays (the
//! groups filled holes of an old slab): those are never emptied.

/// The unknown shares of a cache, each from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shares {
    /// Objects freed on their own, of slabs without a group.
    pub(super) single: f64,
    /// Full slabs that hold groups.
    pub(super) full: f64,
    /// Partial slabs that hold groups.
    pub(super) partial: f64,
    /// Slabs with groups that also hold an object which stays.
    pub(super) holes: f64,
    /// Objects freed, of slabs with groups.
    pub(super) grouped: f64,
    /// How often an object is of the group of the one before.
    pub(super) chain: f64,
}

/// Slabs that are not emptied are at least this share, so that a quotient is finite.
const LEAST: f64 = 1e-9;

impl Shares {
    /// Calls `visit` for 1 to `objects` objects in use of a slab for `objects`, with the probabilities that
    /// 0, 1 and so on up to `most` of these are freed.
    pub(super) fn frees(&self, objects: u64, most: u64, mut visit: impl FnMut(u64, &[f64])) {
        let most = most as usize;
        // Of the groups of a row of objects, by the number freed: the row's last one stays, or is freed.
        let (mut stays, mut goes) = (vec![0.0; most + 1], vec![0.0; most + 1]);
        let (again, other) =
            (self.chain + (1.0 - self.chain) * self.grouped, (1.0 - self.chain) * self.grouped);
        let kept = [1.0 - again, 1.0 - other];
        (stays[0], goes[most.min(1)]) = (1.0 - self.grouped, if most > 0 { self.grouped } else { 0.0 });
        let (mut whole, mut alone) = (self.grouped, vec![0.0; most + 1]);
        alone[0] = 1.0;
        let mut each = Vec::with_capacity(most + 1);
        for used in 1..=objects {
            let last = most.min(used as usize);
            if used > 1 {
                for freed in (0..=last).rev() {
                    let before =
                        if freed > 0 { goes[freed - 1] * again + stays[freed - 1] * other } else { 0.0 };
                    stays[freed] = goes[freed] * kept[0] + stays[freed] * kept[1];
                    goes[freed] = before;
                }
                whole *= again;
            }
            for freed in (0..=last).rev() {
                let before = if freed > 0 { alone[freed - 1] * self.single } else { 0.0 };
                alone[freed] = alone[freed] * (1.0 - self.single) + before;
            }
            let holds = if used == objects { self.full } else { self.partial };
            // With one object the group is all that the slab holds.
            let holes = if used == 1 { 0.0 } else { self.holes };
            // Slabs that cannot be emptied lose another number, in the same proportions.
            let others = 1.0 + holes * whole / (1.0 - whole).max(LEAST);
            let group = |freed: usize| {
                if freed as u64 == used {
                    whole * (1.0 - holes)
                } else {
                    (stays[freed] + goes[freed]) * others
                }
            };
            each.clear();
            each.extend((0..=last).map(|freed| holds * group(freed) + (1.0 - holds) * alone[freed]));
            visit(used, &each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARES: Shares =
        Shares { single: 0.1, full: 0.9, partial: 0.6, holes: 0.5, grouped: 0.3, chain: 0.8 };

    #[test]
    fn frees_of_a_slab_are_a_distribution() {
        for holes in [0.0, 0.4, 1.0] {
            Shares { holes, ..SHARES }.frees(16, 16, |used, each| {
                let sum: f64 = each.iter().sum();
                assert!((sum - 1.0).abs() < 1e-9 && each.iter().all(|each| *each >= 0.0), "{used}: {each:?}");
                assert_eq!(each.len() as u64, used + 1);
            });
        }
    }

    #[test]
    fn a_bound_leaves_out_the_rest() {
        let (mut all, mut few) = (Vec::new(), Vec::new());
        SHARES.frees(9, 9, |_, each| all.push(each.iter().take(4).copied().collect::<Vec<f64>>()));
        SHARES.frees(9, 3, |_, each| few.push(each.to_vec()));
        assert_eq!(all, few);
    }

    /// The probability that each of `used` objects is freed.
    fn emptied(shares: Shares, used: u64) -> f64 {
        let mut found = 0.0;
        shares.frees(used, used, |at, each| {
            if at == used {
                found = each[used as usize];
            }
        });
        found
    }

    #[test]
    fn a_slab_goes_whole_as_its_groups_do() {
        let groups = Shares { holes: 0.0, full: 1.0, ..SHARES };
        // The first object's group goes; each other is of the group before, or of another that goes.
        let wanted = 0.3 * (0.8_f64 + 0.2 * 0.3).powi(9);
        assert!((emptied(groups, 10) - wanted).abs() < 1e-12, "{} is not {wanted}", emptied(groups, 10));
        assert_eq!(emptied(Shares { holes: 1.0, ..groups }, 10), 0.0, "each has an object that stays");
        assert_eq!(emptied(Shares { holes: 1.0, ..groups }, 1), 0.3, "one object has no other beside it");
    }
}
