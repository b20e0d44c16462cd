//! Per-CPU page lists that tune their own length (since 6.7; from memory, the reference has the bounds).
//!
//! ```text
//! refill     twice as many pages as the last one, while nothing is freed; the CPU may keep as many more
//! overflow   as many pages as were freed in a row; the CPU may keep so many, if the zone has pages enough
//! zone below its high mark, or kswapd at work: the CPU keeps fewer with each overflow
//! once a second: an eighth fewer
//! ```
//!
//! A CPU keeps between its share of the low mark ([`crate::PcpSizes::high`]) and its share of an eighth of
//! the zone.

/// The most doublings of a batch (`CONFIG_PCP_BATCH_SCALE_MAX`).
const DOUBLINGS: u32 = 5;

/// What bounds the lists of a CPU in a zone, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) batch: u32,
    /// The CPU may keep at least so many, and at most so many.
    pub(crate) least: u32,
    pub(crate) most: u32,
}

/// What speaks against pages on the lists of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shortage {
    /// kswapd reclaims (`ZONE_RECLAIM_ACTIVE`).
    pub(crate) reclaims: bool,
    /// The zone was below its high mark (`ZONE_BELOW_HIGH`).
    pub(crate) is_low: bool,
}

/// What the lists of a CPU in a zone remember.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Length {
    /// Frames that the CPU may keep.
    high: u32,
    /// Doublings of the next refill.
    doublings: u32,
    /// Frames freed in a row, halved by each allocation.
    freed: u32,
    /// The block that was freed last had an order above 0.
    was_block: bool,
}

impl Length {
    /// Blocks of an order to fetch for empty lists of it, with `held` frames on the others (`nr_pcp_alloc`).
    pub(crate) fn fetch(&mut self, bounds: Bounds, order: u8, held: u32, is_low: bool) -> u32 {
        let Bounds { batch, least, most } = bounds;
        self.high = self.high.clamp(least, most);
        let mut pages = if order == 0 { batch << self.doublings } else { batch };
        if !is_low {
            self.high = (self.high + pages).min(most);
        }
        if order == 0 {
            let room = self.high.saturating_sub(held + batch).max(batch);
            self.doublings += u32::from(pages <= room && self.doublings < DOUBLINGS);
            pages = pages.min(room);
        }
        if batch > 1 { (pages >> order).max(2) } else { pages }
    }

    /// A block leaves the lists.
    pub(crate) fn taken(&mut self) {
        self.freed >>= 1;
    }

    /// A block of an order came onto the lists, which have `held` frames now. Frames that overflow; 0: none
    /// (`free_unref_page_commit`).
    pub(crate) fn came(&mut self, bounds: Bounds, order: u8, held: u32, shortage: Shortage) -> u32 {
        let batch = bounds.batch;
        self.doublings >>= 1;
        // Blocks that come in a row do not stay.
        let all = order > 0 && self.was_block && self.freed >= batch;
        self.was_block = order > 0;
        if self.freed < batch << DOUBLINGS {
            self.freed += 1 << order;
        }
        let high = self.limit(bounds, held, shortage, all);
        match () {
            () if held < high => 0,
            () if all => held.min(batch << DOUBLINGS),
            () if high < 2 * batch => batch.min(held),
            () => self.freed.clamp(batch, high - batch),
        }
    }

    /// Frames that the CPU may keep now (`nr_pcp_high`).
    fn limit(&mut self, bounds: Bounds, held: u32, shortage: Shortage, all: bool) -> u32 {
        let Bounds { batch, least, most } = bounds;
        self.high = self.high.clamp(least, most);
        let fewer = |pages: u32| self.high.saturating_sub(pages).max(least);
        let gone = self.freed.max(batch);
        if all {
            self.high = fewer(batch << DOUBLINGS);
            0
        } else if shortage.reclaims {
            self.high = fewer(gone);
            self.high.min(4 * batch)
        } else if shortage.is_low {
            self.high = fewer(gone);
            held.max(least)
        } else {
            let high = self.high;
            if held >= high {
                self.high = high.max((self.freed + batch).min(most));
            }
            high
        }
    }

    /// Once a second: the CPU may keep fewer. Frames of `held` that go (`decay_pcp_high`).
    pub(crate) fn decay(&mut self, bounds: Bounds, held: u32) -> u32 {
        let Bounds { batch, least, .. } = bounds;
        if self.high > least {
            self.high = held.saturating_sub(batch << DOUBLINGS).max(self.high - (self.high >> 3)).max(least);
        }
        held.saturating_sub(self.high.max(least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { batch: 10, least: 50, most: 400 };

    #[test]
    fn refills_double_until_something_is_freed() {
        let mut lists = Length::default();
        // What the CPU may keep grows from 50 by each refill: 60, 80, 120, 200, 360, 400.
        let fetched = [0; 6].map(|_| lists.fetch(BOUNDS, 0, 0, false));
        assert_eq!((fetched, lists.high), ([10, 20, 40, 80, 160, 320], 400));
        // Held frames leave no room.
        assert_eq!(lists.fetch(BOUNDS, 0, 200, false), 190);
        assert_eq!(lists.fetch(BOUNDS, 0, 395, false), 10);
        lists.came(BOUNDS, 0, 1, Shortage::default());
        assert_eq!(lists.fetch(BOUNDS, 0, 0, false), 40);
        // A block of order 2, of a batch; at least two.
        assert_eq!([2, 3].map(|order| lists.fetch(BOUNDS, order, 0, false)), [2, 2]);
        // Below the high mark the limit stays, and with it the room.
        let mut low = Length::default();
        let fetched = [0; 4].map(|_| low.fetch(BOUNDS, 0, 0, true));
        assert_eq!((fetched, low.high), ([10, 20, 40, 40], 50));
    }

    /// So many single frames come in a row, from `held` on. Frames that overflow each time, and the limit.
    fn comes(lists: &mut Length, mut held: u32, frames: u32, shortage: Shortage) -> (Vec49, u32) {
        let mut gone = [0; 49];
        for gone in gone.iter_mut().take(frames as usize) {
            held += 1;
            *gone = lists.came(BOUNDS, 0, held, shortage);
            held -= *gone;
        }
        (gone, lists.high)
    }

    type Vec49 = [u32; 49];

    #[test]
    fn an_overflow_is_as_large_as_what_was_freed() {
        let mut lists = Length::default();
        // The 41st frame is one too many: 40 of 50 go, as a batch stays.
        let (gone, high) = comes(&mut lists, 10, 40, Shortage::default());
        assert_eq!((gone.iter().sum::<u32>(), gone[39]), (40, 40));
        // Next time it may keep what was freed and a batch.
        assert_eq!(high, 50);
        let (gone, high) = comes(&mut lists, 40, 10, Shortage::default());
        assert_eq!((gone.iter().sum::<u32>(), high), (40, 60));
        // Allocations halve what was freed in a row.
        (0..5).for_each(|_| lists.taken());
        assert_eq!(lists.freed, 1);
        assert_eq!(lists.came(BOUNDS, 0, 60, Shortage::default()), 10);
    }

    #[test]
    fn a_shortage_makes_the_limit_fall() {
        let full = Length { high: 400, ..Length::default() };
        let reclaims = Shortage { reclaims: true, is_low: false };
        let mut lists = full;
        // At most four batches while kswapd reclaims.
        assert_eq!((lists.came(BOUNDS, 0, 39, reclaims), lists.high), (0, 390));
        assert_eq!((lists.came(BOUNDS, 0, 40, reclaims), lists.high), (10, 380));
        let low = Shortage { reclaims: false, is_low: true };
        let mut lists = full;
        // Whatever there is overflows.
        assert_eq!((lists.came(BOUNDS, 0, 300, low), lists.high), (10, 390));
        assert_eq!((lists.came(BOUNDS, 0, 49, low), lists.high), (0, 380));
        (0..100).for_each(|_| _ = lists.came(BOUNDS, 0, 300, low));
        assert_eq!(lists.high, 50);
    }

    #[test]
    fn blocks_that_come_in_a_row_do_not_stay() {
        let mut lists = Length { high: 400, ..Length::default() };
        // 8 frames each: a batch was freed with the second, so the third takes all along.
        let gone = [8, 16, 24].map(|held| lists.came(BOUNDS, 3, held, Shortage::default()));
        assert_eq!((gone, lists.high), ([0, 0, 24], 80));
        // A single frame between ends the row.
        assert_eq!(lists.came(BOUNDS, 0, 1, Shortage::default()), 0);
        assert_eq!(lists.came(BOUNDS, 3, 9, Shortage::default()), 0);
    }

    #[test]
    fn an_idle_cpu_keeps_less_each_second() {
        let mut lists = Length { high: 400, ..Length::default() };
        assert_eq!((lists.decay(BOUNDS, 380), lists.high), (30, 350));
        assert_eq!((lists.decay(BOUNDS, 350), lists.high), (43, 307));
        assert_eq!((lists.decay(BOUNDS, 0), lists.high), (0, 269));
        (0..20).for_each(|_| _ = lists.decay(BOUNDS, 0));
        assert_eq!(lists.high, 50);
        assert_eq!(Length::default().decay(BOUNDS, 50), 0);
    }
}
