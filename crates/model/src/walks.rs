//! Walks over objects that do not depend on each other: their misses overlap.
//!
//! An out-of-order core begins the next visit while lines of the last one are on their way. How many visits
//! are under way at a time is the machine's: each waits for one line at most, so `misses_at_once` bounds
//! them, and so does `window`, the instructions that fit in the reorder buffer. Visits that are under way
//! together take as long as the longest of them. The lines of one visit depend on each other: a page's
//! descriptor says where the slab's is.
//!
//! | line | charged |
//! |---|---|
//! | the first of a visit, and those after it | what its visit takes longer than the longest of its group |
//! | a free object's link, where the next object is | whole; the group's other lines come meanwhile |
//! | anything after a locked instruction, or after a turn | whole, until the next visit begins |

use crate::hardware::{Costs, Ps};
use std::cell::Cell;

/// Instructions of a visit: an object's page and slab are looked up, the slab leaves a list, the object is
/// linked, the slab is listed again (assumed: 2.6.29's loop over an array of SLAB has about as many).
const VISIT_INSTRUCTIONS: u32 = 36;

/// A walk that the running call is in.
#[derive(Debug)]
pub(crate) struct Walks {
    /// Visits that are under way together.
    together: u32,
    now: Cell<Option<Group>>,
}

/// Visits that are under way together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    visits: u32,
    /// What the lines of this visit took, and how long the group waited so far.
    visit: Ps,
    longest: Ps,
    /// A link is read.
    chained: bool,
}

impl Walks {
    pub(crate) fn new(costs: &Costs) -> Walks {
        let fit = match costs.window {
            0 => costs.misses_at_once,
            window => costs.misses_at_once.min(window / VISIT_INSTRUCTIONS),
        };
        Walks { together: fit.max(1), now: Cell::new(None) }
    }

    /// The next visit begins.
    #[inline]
    pub(crate) fn visit(&self) {
        let group = match self.now.get() {
            Some(group) if group.visits < self.together => {
                Group { visits: group.visits + 1, visit: 0, ..group }
            }
            _ => Group { visits: 1, visit: 0, longest: 0, chained: false },
        };
        self.now.set(Some(group));
    }

    /// Lines of later visits do not come together with those of earlier ones.
    #[inline]
    pub(crate) fn end(&self) {
        self.now.set(None);
    }

    /// `touch` reads the link that says which object is next.
    #[inline]
    pub(crate) fn chained(&self, touch: impl FnOnce()) {
        self.chain(true);
        touch();
        self.chain(false);
    }

    fn chain(&self, chained: bool) {
        self.now.set(self.now.get().map(|group| Group { chained, ..group }));
    }

    /// How long a CPU waits for a line that alone takes `price`.
    #[inline]
    pub(crate) fn waits(&self, price: Ps) -> Ps {
        let Some(group) = self.now.get() else { return price };
        let (group, waits) = group.fetches(price);
        self.now.set(Some(group));
        waits
    }
}

impl Group {
    /// The group after a line that alone takes `price`, and the wait for it.
    fn fetches(self, price: Ps) -> (Group, Ps) {
        if self.chained {
            return (Group { longest: self.longest + price, ..self }, price);
        }
        let visit = self.visit + price;
        let longest = self.longest.max(visit);
        (Group { visit, longest, ..self }, longest - self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of a walk.
    #[derive(Clone, Copy)]
    enum Step {
        Visit,
        /// A line, and how long it is waited for.
        Line(Ps, Ps),
        Link(Ps, Ps),
        /// A locked instruction, or a turn.
        End,
    }
    use Step::{End, Line, Link, Visit};

    fn check(row: &str, misses_at_once: u32, window: u32, steps: &[Step]) {
        let walks = Walks::new(&Costs { misses_at_once, window, ..Costs::default() });
        for (at, step) in steps.iter().enumerate() {
            match *step {
                Visit => walks.visit(),
                End => walks.end(),
                Line(price, waits) => assert_eq!(walks.waits(price), waits, "{row}: step {at}"),
                Link(price, waits) => {
                    walks.chained(|| assert_eq!(walks.waits(price), waits, "{row}: step {at}"));
                }
            }
        }
    }

    #[test]
    fn visits_that_are_under_way_together_take_as_long_as_the_longest() {
        check("outside of a walk", 8, 0, &[Line(100, 100), Line(100, 100)]);
        let two = [Visit, Line(100, 100), Visit, Line(100, 0), Visit, Line(100, 100), Visit, Line(70, 0)];
        check("two misses at once", 2, 0, &two);
        check("a window of two visits", 8, 2 * VISIT_INSTRUCTIONS, &two);
        let one = [Visit, Line(100, 100), Visit, Line(100, 100)];
        check("nobody says", 0, 0, &one);
        check("a window of less than two visits", 8, 2 * VISIT_INSTRUCTIONS - 1, &one);
        let chain = [Visit, Line(100, 100), Line(50, 50), Visit, Line(120, 0), Line(60, 30)];
        check("lines of a visit depend on each other", 2, 0, &chain);
        let links = [Visit, Line(80, 80), Link(100, 100), Visit, Line(150, 0), Link(100, 100), Line(90, 0)];
        check("a link is waited for, and others come meanwhile", 2, 0, &links);
        let locked = [Visit, Line(100, 100), End, Line(100, 100), Visit, Line(100, 100), Visit, Line(90, 0)];
        check("a locked instruction waits for all", 4, 0, &locked);
    }
}
