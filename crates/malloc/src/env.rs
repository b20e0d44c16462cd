//! The settings that the environment makes, read once, when the process first allocates.
//!
//! | variable | meaning |
//! |---|---|
//! | `SLABLAB_ENGINE` | the engine and its wrappers: `engine[@release][,knob=value]...`; default [`DEFAULT_ENGINE`] |
//! | `SLABLAB_SLOTS` | what a slot belongs to: `thread`, or `cpu` if possible; default [`DEFAULT_SLOTS`] |
//! | `SLABLAB_HUGE` | `1`: huge pages may back the heap, if the kernel has them (`MADV_HUGEPAGE`) |
//! | `SLABLAB_BACKGROUND` | `1`: a helper thread gives idle memory back ([`crate::shared`]) |
//! | `SLABLAB_LIMIT` | bytes, `cgroup` or `cgroup:FOLDER`: near this limit the process gives back what it keeps |
//! | `SLABLAB_STATS` | `1`: print every cache in slabinfo's columns when the process ends; `json`: as JSON; a path that ends in `.json`: into that file |
//!
//! Any other variable that begins with `SLABLAB_` is reported and ignored, except those of the lab's tools.
//! A process with more rights than its user (`AT_SECURE`: set-user-ID, file capabilities) reads none.

use crate::shared::limit::Wish;
use slablab_native::report::Line;
use slablab_native::{Owner, Wishes, system};
use slablab_slabs::preset::Choice;
use slablab_slabs::{Preset, Release};
use std::sync::OnceLock;

/// The engine that measures best (docs/results/bench.md).
pub(crate) const DEFAULT_ENGINE: &str = "slub@7.1";

/// [`DEFAULT_ENGINE`]. Not by its text: the grammar's code would be resident in every process.
fn default_choice() -> Choice {
    Preset::of_kernel(Release::new(7, 1, 0)).expect("the release has a preset").into()
}

/// What slots belong to if `SLABLAB_SLOTS` is not set.
pub(crate) const DEFAULT_SLOTS: Owner = Owner::Thread;

/// Variables that other programs of the project read.
const OTHERS: &[&str] = &[
    "SLABLAB_BROWSER",
    "SLABLAB_BROWSER_REQUIRED",
    "SLABLAB_CXX_REQUIRED",
    "SLABLAB_QEMU_REQUIRED",
    "SLABLAB_RECORD",
    "SLABLAB_RECORD_COUNTS",
    "SLABLAB_RECORD_DESCRIPTOR",
    "SLABLAB_RECORD_LIMIT",
    "SLABLAB_TRACEFS",
    "SLABLAB_TRUTH",
];

/// Where the statistics of a process go when it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stats {
    /// Nowhere.
    Off,
    /// To standard error, in slabinfo's columns.
    Columns,
    /// To standard error, as JSON.
    Json,
    /// As JSON into the file of [`Settings::stats_path`].
    File,
}

/// A path of a file for statistics, `%p` in it not yet replaced.
pub(crate) struct StatsPath {
    bytes: [u8; StatsPath::MOST],
    length: usize,
}

impl StatsPath {
    /// Most bytes of a path.
    const MOST: usize = 512;
    const NONE: StatsPath = StatsPath { bytes: [0; StatsPath::MOST], length: 0 };

    /// A value of `SLABLAB_STATS` as a path: it ends in `.json`, and is not too long.
    fn new(value: &str) -> Option<StatsPath> {
        let mut path = StatsPath { length: value.len(), ..StatsPath::NONE };
        let room = path.bytes.get_mut(..value.len()).filter(|_| value.ends_with(".json"))?;
        room.copy_from_slice(value.as_bytes());
        Some(path)
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

/// The settings of a process.
pub(crate) struct Settings {
    pub(crate) choice: Choice,
    /// Whether `choice` is [`DEFAULT_ENGINE`], unchanged.
    pub(crate) is_default: bool,
    pub(crate) wanted: Wishes,
    /// Whether a helper thread may run.
    pub(crate) background: bool,
    pub(crate) limit: Wish,
    pub(crate) stats: Stats,
    pub(crate) stats_path: StatsPath,
}

impl Settings {
    /// Reads the environment. A value that cannot be understood is reported, and the default is used.
    pub(crate) fn read() -> Settings {
        let wanted = Wishes { slots: DEFAULT_SLOTS, ..Wishes::default() };
        let (stats, stats_path) = (Stats::Off, StatsPath::NONE);
        let (background, limit) = (false, Wish::NONE);
        let mut settings = Settings {
            choice: default_choice(),
            is_default: true,
            wanted,
            background,
            limit,
            stats,
            stats_path,
        };
        system::each_variable(b"SLABLAB_", |name, value| {
            if OTHERS.contains(&name) {
                return;
            }
            match (name, value) {
                ("SLABLAB_ENGINE", engine) => match Choice::parse(engine) {
                    Ok(choice) => match refusal(&choice) {
                        None => {
                            (settings.choice, settings.is_default) = (choice, engine == DEFAULT_ENGINE);
                        }
                        Some(why) => Line::say(format_args!(
                            "SLABLAB_ENGINE={engine}: {why}; {DEFAULT_ENGINE} is used"
                        )),
                    },
                    Err(bad) => {
                        Line::say(format_args!("SLABLAB_ENGINE={engine}: {bad}; {DEFAULT_ENGINE} is used"))
                    }
                },
                ("SLABLAB_SLOTS", "thread") => settings.wanted.slots = Owner::Thread,
                ("SLABLAB_SLOTS", "cpu") => settings.wanted.slots = Owner::Cpu,
                ("SLABLAB_SLOTS", other) => {
                    Line::say(format_args!("SLABLAB_SLOTS={other}: expected thread or cpu; thread is used"));
                }
                ("SLABLAB_HUGE", "0" | "") => settings.wanted.huge_pages = false,
                ("SLABLAB_HUGE", "1") => settings.wanted.huge_pages = true,
                ("SLABLAB_HUGE", other) => {
                    Line::say(format_args!("SLABLAB_HUGE={other}: expected 0 or 1; huge pages are not used"));
                }
                ("SLABLAB_BACKGROUND", "0" | "") => settings.background = false,
                ("SLABLAB_BACKGROUND", "1") => settings.background = true,
                ("SLABLAB_BACKGROUND", other) => Line::say(format_args!(
                    "SLABLAB_BACKGROUND={other}: expected 0 or 1; there is no helper thread"
                )),
                ("SLABLAB_LIMIT", "") => settings.limit = Wish::NONE,
                ("SLABLAB_LIMIT", value) => match Wish::parse(value) {
                    Some(limit) => settings.limit = limit,
                    None => Line::say(format_args!(
                        "SLABLAB_LIMIT={value}: expected bytes such as 512M, cgroup or cgroup:/FOLDER; there \
                         is no limit"
                    )),
                },
                ("SLABLAB_STATS", "0" | "") => settings.stats = Stats::Off,
                ("SLABLAB_STATS", "1") => settings.stats = Stats::Columns,
                ("SLABLAB_STATS", "json") => settings.stats = Stats::Json,
                ("SLABLAB_STATS", other) => match StatsPath::new(other) {
                    Some(path) => (settings.stats, settings.stats_path) = (Stats::File, path),
                    None => Line::say(format_args!(
                        "SLABLAB_STATS={other}: expected 0, 1, json or a path of at most {} bytes that ends \
                         in .json; statistics are not printed",
                        StatsPath::MOST
                    )),
                },
                _ => Line::say(format_args!(
                    "{name}: no such setting; expected SLABLAB_ENGINE, SLABLAB_SLOTS, \
                     SLABLAB_HUGE, SLABLAB_BACKGROUND, SLABLAB_LIMIT or SLABLAB_STATS"
                )),
            }
        });
        settings
    }
}

/// The reason why a choice cannot serve malloc; `None` if it can.
pub(crate) fn refusal(choice: &Choice) -> Option<&'static str> {
    let is_slob = matches!(choice.preset, Preset::Slob(_));
    is_slob.then_some("SLOB does not store the size of an object, which malloc needs")
}

/// The environment's settings, read by the first thread that allocates.
static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// The environment's settings.
pub(crate) fn settings() -> &'static Settings {
    SETTINGS.get_or_init(Settings::read)
}

/// The engine that the environment chose, and what is around it; `None` before a thread allocated.
pub fn choice() -> Option<Choice> {
    SETTINGS.get().map(|settings| settings.choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_what_its_text_says() {
        assert_eq!(Ok(default_choice()), Choice::parse(DEFAULT_ENGINE));
    }
}
