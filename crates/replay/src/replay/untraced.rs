//! When objects were freed and allocated that no event shows (bulk calls, RCU's sheaves, filtered tasks).
//!
//! An address shows some of them:
//!
//! | the address | without an event | between |
//! |---|---|---|
//! | is given out again, or its page is, and no event freed it | a free | its allocation and that event |
//! | is freed again, and no event gave it out | an allocation | the two frees |
//!
//! Nothing says when: each row between is as likely as any other.
//!
//! Where no further event of the address follows, it ended in the same way, or nothing happened to it. It is
//! taken for another address of its cache: one is drawn of those of the table's same row and of the ones
//! without a further event. If it is one of the latter, nothing happened; else the same as there, after as
//! many rows. A cache without an address of the table has none.

use crate::quantiles::Quantiles;

/// What happened without an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
    /// An object of the recording was freed: the trace's number of it, and bytes requested and given.
    Free(u32, (u32, u32)),
    /// An object was allocated, and the event of this row frees it; none does if it is `None`.
    Alloc(Option<u64>),
}

/// An address whose state changed without an event, or perhaps did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Silence {
    pub(super) cache: u32,
    /// `Alloc(None)`, or the free.
    pub(super) deed: Deed,
    /// The row of the last event before.
    pub(super) after: u64,
    /// The row of the event that shows the change; `None` if none does.
    pub(super) until: Option<u64>,
}

/// An allocation or a free without an event, at the moment that was drawn for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Untraced {
    /// It takes effect just before this row.
    pub row: u64,
    /// The cache of the table.
    pub cache: u32,
    /// What happened.
    pub deed: Deed,
}

/// What happened without an event, by row. `caches` have names, and the first rows behind their windows;
/// `seed` says which of the moments that the recording leaves possible are drawn.
pub(super) fn moments(silences: &[Silence], caches: &[(&str, u64)], seed: u64) -> Vec<Untraced> {
    let mut by_cache: Vec<[Vec<&Silence>; 2]> = vec![Default::default(); caches.len()];
    for silence in silences {
        let kind = usize::from(matches!(silence.deed, Deed::Alloc(_)));
        by_cache[silence.cache as usize][kind].push(silence);
    }
    let mut drawn = Vec::new();
    for ((name, end), kinds) in caches.iter().zip(by_cache) {
        for (kind, silences) in ["freed", "allocated"].into_iter().zip(kinds) {
            let mut quantiles = Quantiles::of(&format!("{name}, {kind} without an event"), seed);
            let (shown, open): (Vec<&Silence>, Vec<&Silence>) =
                silences.into_iter().partition(|silence| silence.until.is_some());
            let mut waits: Vec<u64> = Vec::with_capacity(shown.len());
            for silence in &shown {
                let between = silence.until.map_or(0, |until| until - silence.after);
                waits.push(1 + quantiles.below(between));
            }
            let alike = (shown.len() + open.len()) as u64;
            let others = |_: &&Silence| waits.get(quantiles.below(alike) as usize).copied();
            let others: Vec<Option<u64>> = open.iter().map(others).collect();
            let all = shown.iter().chain(&open).zip(waits.iter().copied().map(Some).chain(others));
            let timed = all.filter_map(|(silence, wait)| Some((silence, silence.after + wait?)));
            drawn.extend(timed.filter(|(_, row)| row < end).map(|(silence, row)| {
                let deed = match silence.deed {
                    Deed::Alloc(_) => Deed::Alloc(silence.until),
                    free @ Deed::Free(..) => free,
                };
                Untraced { row, cache: silence.cache, deed }
            }));
        }
    }
    drawn.sort_unstable();
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Deed = Deed::Free(7, (256, 256));

    /// Of a cache whose window ends at row `end`: in how many of 1,000 draws what `silences` ask for happens,
    /// with the first and the last row at which it does. Only the deed `asked` counts.
    #[track_caller]
    fn check(
        silences: &[(Deed, u64, Option<u64>)],
        end: u64,
        asked: Deed,
        expected: Option<(usize, u64, u64)>,
    ) {
        let of = |(deed, after, until): &(Deed, u64, Option<u64>)| Silence {
            cache: 0,
            deed: *deed,
            after: *after,
            until: *until,
        };
        let silences: Vec<Silence> = silences.iter().map(of).collect();
        let draw = |seed| moments(&silences, &[("maple_node", end)], seed);
        assert_eq!(draw(3), draw(3), "a draw is the same again");
        let rows: Vec<u64> = (0..1000)
            .filter_map(|seed| Some(draw(seed).iter().find(|untraced| untraced.deed == asked)?.row))
            .collect();
        let found = rows.iter().min().zip(rows.iter().max());
        let found = found.map(|(first, last)| ((rows.len() + 50) / 100, *first, *last));
        assert_eq!(found, expected, "hundreds of draws, first and last row of {asked:?}");
    }

    #[test]
    fn moments_are_between_the_events_that_show_them() {
        let (alloc, other) = (Deed::Alloc(None), Deed::Free(8, (256, 256)));
        // Each row behind the allocation, that of the event included.
        check(&[(FREE, 10, Some(20))], 100, FREE, Some((10, 11, 20)));
        check(&[(FREE, 10, Some(11))], 100, FREE, Some((10, 11, 11)));
        // The free that ends it is kept, so that the run finds the object.
        check(&[(alloc, 10, Some(20))], 100, Deed::Alloc(Some(20)), Some((10, 11, 20)));
        // Nothing shows that any object of the cache ended so.
        check(&[(FREE, 10, None)], 100, FREE, None);
        check(&[(alloc, 10, Some(20)), (FREE, 10, None)], 100, FREE, None);
        // One other object did: it is drawn for half, and for the other half the object itself.
        check(&[(other, 10, Some(20)), (FREE, 50, None)], 100, FREE, Some((5, 51, 60)));
        check(&[(alloc, 10, Some(20)), (alloc, 50, None)], 100, alloc, Some((5, 51, 60)));
        // It lived to the window's end in half of those draws.
        check(&[(other, 10, Some(20)), (FREE, 90, None)], 96, FREE, Some((3, 91, 95)));
    }
}
