//! What a disk counts: the 17 fields of /sys/block/DISK/stat, and how many requests it had over time.

use super::bio::{Direction, Request};
use slablab_model::Ps;

const MS: Ps = 1_000_000_000;
/// Places of the history; with more time than they hold, each holds twice as much.
const PLACES: usize = 512;
/// Time of a place at first.
const STEP: Ps = 10 * MS;

/// One direction's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Requests completed.
    pub requests: u64,
    /// Bios that became a part of a request, and requests of another one.
    pub merged: u64,
    /// Sectors.
    pub sectors: u64,
    /// Time of requests from their first bio to completion.
    pub time: Ps,
}

/// The counters of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Reads and writes.
    pub done: [Done; 2],
    /// Requests that are not completed.
    pub in_flight: u32,
    /// Time with requests that are not completed.
    pub busy: Ps,
    /// The sum of all requests' times so far, those not completed too.
    pub queued: u128,
    since: Ps,
    /// Requests times time of each step.
    history: Vec<u128>,
    step: Ps,
}

impl Stat {
    /// The fields as `/sys/block/DISK/stat` has them since 5.5: reads, merged, sectors, ms; the same of
    /// writes; in flight, ms busy, ms of all requests; four of discards and two of flushes, which are 0.
    pub fn fields(&self) -> [u64; 17] {
        let mut fields = [0; 17];
        for (done, part) in self.done.iter().zip(fields.chunks_mut(4)) {
            part.copy_from_slice(&[done.requests, done.merged, done.sectors, done.time / MS]);
        }
        fields[8] = self.in_flight.into();
        fields[9] = self.busy / MS;
        fields[10] = (self.queued / u128::from(MS)) as u64;
        fields
    }

    /// The mean number of requests in each step of time, in thousandths, and the step.
    pub fn depth(&self) -> (Ps, impl Iterator<Item = u64> + '_) {
        let step = u128::from(self.step.max(1));
        (self.step, self.history.iter().map(move |sum| (sum * 1_000 / step) as u64))
    }

    /// Time has passed until `now`.
    fn advance(&mut self, now: Ps) {
        let from = self.since;
        self.since = from.max(now);
        let time = self.since - from;
        if self.in_flight == 0 || time == 0 {
            return;
        }
        self.busy += time;
        self.queued += u128::from(time) * u128::from(self.in_flight);
        self.step = self.step.max(STEP);
        while self.since / self.step >= PLACES as u64 {
            self.step *= 2;
            let pairs: Vec<u128> = self.history.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.history = pairs;
        }
        self.history.resize((self.since / self.step) as usize + 1, 0);
        let mut at = from;
        while at < self.since {
            let place = at / self.step;
            let until = ((place + 1) * self.step).min(self.since);
            self.history[place as usize] += u128::from(until - at) * u128::from(self.in_flight);
            at = until;
        }
    }

    pub(super) fn arrives(&mut self, now: Ps) {
        self.advance(now);
        self.in_flight += 1;
    }

    /// A bio merged, and perhaps a request with it.
    pub(super) fn merges(&mut self, of: Direction, fused: bool, now: Ps) {
        self.done[of as usize].merged += 1 + u64::from(fused);
        self.advance(now);
        self.in_flight -= u32::from(fused);
    }

    pub(super) fn ends(&mut self, request: &Request, now: Ps) {
        self.advance(now);
        self.in_flight -= 1;
        let done = &mut self.done[request.direction as usize];
        done.requests += 1;
        done.sectors += u64::from(request.sectors);
        done.time += now.saturating_sub(request.arrived);
    }
}
