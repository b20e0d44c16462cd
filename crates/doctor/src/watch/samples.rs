//! Every sample so far, cache by cache, and how caches grew.

use super::sample::{Row, Sample};
use std::collections::{HashMap, VecDeque};

/// Samples kept: half an hour at slabtop's 3 seconds, 5 KiB for each cache. Growth since the start needs none
/// of them.
pub const HISTORY: usize = 600;

/// The time window of growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// Since the previous sample.
    #[default]
    Last,
    /// Over the last minute.
    Minute,
    /// Over the last ten minutes.
    TenMinutes,
}

impl Window {
    /// The next longer window. The shortest follows the longest.
    pub fn next(self) -> Window {
        match self {
            Window::Last => Window::Minute,
            Window::Minute => Window::TenMinutes,
            Window::TenMinutes => Window::Last,
        }
    }

    fn seconds(self) -> f64 {
        match self {
            Window::Last => 0.0,
            Window::Minute => 60.0,
            Window::TenMinutes => 600.0,
        }
    }
}

/// Every sample so far.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// Seconds of the samples kept.
    times_s: VecDeque<f64>,
    /// Slab memory in those samples.
    slab: VecDeque<u64>,
    /// Slab memory in the first sample of all.
    slab_at_start: u64,
    first_s: f64,
    last: Sample,
    tracks: Vec<Track>,
    ticks: u64,
    window: Window,
}

/// One cache through the samples.
#[derive(Clone, Debug, Default)]
pub struct Track {
    /// Its latest row.
    pub row: Row,
    /// Whether the latest sample has it.
    present: bool,
    /// Bytes in the very first sample; 0 if the cache was created later.
    start_bytes: u64,
    /// Bytes in each sample kept.
    bytes: VecDeque<u64>,
}

impl Watch {
    /// Takes the next sample. Its time must not be before the last one's.
    pub fn push(&mut self, sample: Sample) {
        let first = self.ticks == 0;
        self.ticks += 1;
        if first {
            (self.first_s, self.slab_at_start) = (sample.at_s, sample.slab_bytes());
        }
        if self.times_s.len() == HISTORY {
            self.times_s.pop_front();
            self.slab.pop_front();
            for track in &mut self.tracks {
                track.bytes.pop_front();
            }
        }
        self.times_s.push_back(sample.at_s);
        self.slab.push_back(sample.slab_bytes());
        self.tracks.iter_mut().for_each(|track| track.present = false);
        let known = self.known(&sample.rows);
        for (row, known) in sample.rows.iter().zip(known) {
            self.track(row, known, first);
        }
        for track in self.tracks.iter_mut().filter(|track| !track.present) {
            track.row.bytes = 0;
            track.bytes.push_back(0);
        }
        // The track of a removed cache is kept as long as one of the kept samples has bytes of it, so that
        // the cache can continue it if it comes back.
        self.tracks.retain(|track| track.present || track.bytes.iter().any(|&bytes| bytes > 0));
        self.last = sample;
    }

    /// For each row the place of its track, if the cache was seen before.
    fn known(&self, rows: &[Row]) -> Vec<Option<usize>> {
        fn key(row: &Row) -> (&str, u32) {
            (&row.info.name, row.info.ordinal)
        }
        let tracks = self.tracks.iter().enumerate().map(|(at, track)| (key(&track.row), at));
        let by_key: HashMap<_, _> = tracks.collect();
        rows.iter().map(|row| by_key.get(&key(row)).copied()).collect()
    }

    /// Adds a row to its track, or to a new one if the track already has a row of this sample.
    fn track(&mut self, row: &Row, known: Option<usize>, first: bool) {
        let at = known.filter(|at| !self.tracks[*at].present).unwrap_or_else(|| {
            let start_bytes = if first { row.bytes } else { 0 };
            let bytes = VecDeque::from(vec![0; self.times_s.len() - 1]);
            self.tracks.push(Track { start_bytes, bytes, ..Track::default() });
            self.tracks.len() - 1
        });
        let track = &mut self.tracks[at];
        track.bytes.push_back(row.bytes);
        track.row.clone_from(row);
        track.present = true;
    }

    /// The caches of all samples kept.
    pub(super) fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// The latest sample.
    pub fn last(&self) -> &Sample {
        &self.last
    }

    /// Samples so far.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Seconds from the first sample to the last.
    pub fn seconds(&self) -> f64 {
        self.times_s.back().map_or(0.0, |last| last - self.first_s)
    }

    /// The time window of growth.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Measures growth over another window.
    pub fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// Seconds the window really has: less than asked while there are not enough samples.
    pub fn window_seconds(&self) -> Option<f64> {
        let base = self.base()?;
        Some(self.times_s.back()? - self.times_s[base])
    }

    /// The sample that growth counts from: the oldest in the window, but not the latest.
    fn base(&self) -> Option<usize> {
        let before = self.times_s.len().checked_sub(2)?;
        let from = self.times_s.back()? - self.window.seconds();
        Some(self.times_s.partition_point(|&time| time < from).min(before))
    }

    /// Bytes a cache grew in the window; 0 if there is one sample only.
    pub fn growth(&self, track: &Track) -> i64 {
        self.base().map_or(0, |base| change(track.bytes[base], track.row.bytes))
    }

    /// Bytes a minute a cache grew in the window; `None` if no time has passed.
    pub fn growth_per_minute(&self, track: &Track) -> Option<i64> {
        per_minute(self.growth(track), self.window_seconds()?)
    }

    /// Bytes a minute a cache grew since the start; `None` if no time has passed.
    pub fn growth_per_minute_since_start(&self, track: &Track) -> Option<i64> {
        per_minute(track.since_start(), self.seconds())
    }

    /// Bytes a minute all slab memory grew, in the window and since the start.
    pub fn total_per_minute(&self) -> (Option<i64>, Option<i64>) {
        let now = self.slab.back().copied().unwrap_or(0);
        let in_window = self.base().map(|base| change(self.slab[base], now));
        let since_start = change(self.slab_at_start, now);
        let in_window = in_window.and_then(|bytes| per_minute(bytes, self.window_seconds()?));
        (in_window, per_minute(since_start, self.seconds()))
    }

    /// Slab memory in the samples kept, and the seconds they span.
    pub fn history(&self) -> (&VecDeque<u64>, f64) {
        let span = self.times_s.front().zip(self.times_s.back()).map_or(0.0, |(first, last)| last - first);
        (&self.slab, span)
    }
}

impl Track {
    /// Whether the latest sample has it.
    pub(super) fn is_present(&self) -> bool {
        self.present
    }

    /// Bytes it grew since the first sample of all.
    pub fn since_start(&self) -> i64 {
        change(self.start_bytes, self.row.bytes)
    }

    /// Bytes in each sample kept, 0 where it was not there.
    pub fn history(&self) -> &VecDeque<u64> {
        &self.bytes
    }
}

fn change(from: u64, to: u64) -> i64 {
    (i128::from(to) - i128::from(from)).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn per_minute(bytes: i64, seconds: f64) -> Option<i64> {
    (seconds > 0.0).then(|| (bytes as f64 * 60.0 / seconds).round() as i64)
}
