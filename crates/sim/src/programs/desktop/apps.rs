//! The application test: applications are loaded one after the other until memory is short, an image is
//! rotated, and everything is closed in reverse order.

mod measured;

use super::app::{App, Size, Touch, touch};
use super::machine::{self, ESTIMATE, Machine, observed};
use super::names::Names;
use super::{Desktop, Habits, NoMemory, Test};
use crate::kernel::Task;
use crate::kernel::tally::Failed;
use crate::params::{params, words};
use crate::programs::program::{Estimate, Metric, Object, Observed, Pair, Program, SECOND};
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::disk::Disk;
use slablab_model::{MachineSpec, Ps};
use slablab_slabs::Release;
use slablab_vm::RegionId;
use slablab_vm::mm;
use slablab_vm::preset::Preset;
use std::rc::Rc;

/// The image of the follow-up, 2560 x 2560 pixels, in tiles of 64 x 64: a page a tile for each byte of a
/// pixel.
const TILES: u32 = 40;
/// What the program computes for a tile that it makes, and for one that it rotates: 100 and 500 ns a pixel
/// (assumed).
const FILL_TILE: Ps = 4_096 * 100_000;
const ROTATE_TILE: Ps = 4_096 * 500_000;
/// GIMP without its image (assumed).
const GIMP: Size = Size { name: "gimp", text: 2_048, heap: 1_536 };
/// StarOffice 5.2 with a document: 60 MB of files, 40 MB of memory.
const OFFICE: Size = Size { name: "soffice", text: 15_360, heap: 10_240 };
/// "A suite of apps" (which ones, and their sizes: assumed). More of them are the same ones again.
const SUITE: [Size; 5] = [
    Size { name: "netscape", text: 3_072, heap: 5_120 },
    Size { name: "mail", text: 1_536, heap: 2_048 },
    Size { name: "editor", text: 1_024, heap: 1_536 },
    Size { name: "gnumeric", text: 2_048, heap: 2_560 },
    Size { name: "terminals", text: 512, heap: 1_024 },
];
/// What the follow-up adds (its size: assumed).
const MOZILLA: Size = Size { name: "mozilla", text: 5_120, heap: 7_680 };
/// Percent of the pages which a program needs that a user touches by working with it (assumed).
const WORK: u32 = 25;

/// In which order memory is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// slocate, GIMP, StarOffice, the suite.
    Standard,
    /// Without slocate.
    NoSlocate,
    /// StarOffice before GIMP, without slocate (assumed: the follow-up changed one thing after the other).
    OfficeFirst,
}

words! {
    Variant { Standard = "standard", NoSlocate = "no-slocate", OfficeFirst = "office-first" }
}

params! {
    /// The workload's parameters.
    pub struct Params {
        vm: Preset = machine::VM;
        memory_mib: u64 = machine::MEMORY;
        disk: Disk = machine::DISK;
        variant: Variant,
            "standard: slocate, GIMP, StarOffice, others; or without slocate; or StarOffice first, without it",
            "the mail, and its follow-up of 26 September 2001";
        mozilla: bool = "no" | "yes", "whether Mozilla is one of the other applications",
            "the follow-up of 26 September 2001";
        music: bool = "no" | "yes", "whether mp3 files are played all the time",
            "the follow-up of 26 September 2001";
        buffer_ms: u64 = machine::BUFFER;
        files: u32 = [20_000, 100_000, 100_000], 0..=10_000_000, "files that slocate looks at",
            "assumed: a usual installation has 100,000";
        pixel_bytes: u32 = [3], 3..=4, "bytes of a pixel of the image: 4 with a channel of opacity",
            "the mail does not tell: 3 (19.7 MB) or 4 (26 MB)";
        copies: u32 = [0], 0..=8,
            "whole copies of the image beside it and what is shown: the last operation's shadow, steps to undo",
            "the mail does not tell; GIMP keeps them in its tile cache";
        // The least number with which 2.4.9-ac14 swaps while they are started, with 3 bytes a pixel: they are
        // to "drive the system into mild swap activity".
        suite_apps: u32 = [6], 0..=100, "applications of the suite; more than five are the five again",
            "the mail names none, but \"mild swap activity\"";
        pause_s: u64 = [10], 0..=3_600, "what the user waits before each step after slocate",
            "the mail: \"now that some pages have aged a bit\"; 10 s is assumed";
        close_percent: u32 = [30], 0..=100,
            "percent of the pages which a program needs that it touches when it is closed",
            "the middle of 10 to 50 (assumed)";
        text_percent: u32 = [20], 1..=100,
            "percent of each cluster of a text that a program touches; 100: all that a fault reads",
            "StarOffice reads 60 MB and keeps 12 of them beside its heap (from memory)";
        running_daemons: u32 = [3], 0..=12, "daemons, of 12, that run from time to time",
            "assumed: cron, syslogd and one more";
        daemon_wake_s: u64 = [60], 1..=3_600, "how often such a daemon runs",
            "cron looks for work each minute; the same for others is assumed";
    }
}

/// The application test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apps {
    /// The order.
    pub variant: Variant,
    /// Mozilla is one of the suite.
    pub mozilla: bool,
    /// Files that slocate looks at.
    pub files: u32,
    /// Bytes of a pixel of the image: 3, or 4 with a channel of opacity.
    pub pixel: u32,
    /// Whole copies of the image that GIMP keeps beside it and what is shown.
    pub copies: u32,
    /// Applications of the suite.
    pub suite: u32,
    /// What the user waits before the next step: pages age.
    pub pause: Ps,
}

impl Program for Apps {
    type Params = Params;

    const NAME: &'static str = "apps";
    const ABOUT: &'static str =
        "slocate, GIMP, StarOffice and other applications fill memory, an image is rotated, all are closed";
    const METRICS: &'static [Metric] = &measured::METRICS;
    const SUITE: &'static [Pair] = &[Pair {
        machine: "kulesa-2001",
        parameters: "memory_mib = 128\nfiles = 20000",
        why: "a PC that swaps: dentries, inodes and pages compete",
    }];

    fn objects(_release: Release) -> Vec<Object> {
        machine::objects()
    }

    fn estimate(_machine: &MachineSpec, _params: &Params) -> Estimate {
        ESTIMATE
    }

    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let machine = Machine { vm: &params.vm, memory_mib: params.memory_mib, disk: &params.disk };
        let test = Test::Apps(Apps {
            variant: params.variant,
            mozilla: params.mozilla,
            files: params.files,
            pixel: params.pixel_bytes,
            copies: params.copies,
            suite: params.suite_apps,
            pause: params.pause_s * SECOND,
        });
        let habits = Habits {
            text: params.text_percent,
            close: params.close_percent,
            running: params.running_daemons,
            wakes: params.daemon_wake_s * SECOND,
        };
        let player = params.music.then_some(params.buffer_ms);
        let answer = machine.run((setup, seed, recorder), (&test, player, habits))?;
        let own = measured::own(&answer);
        Ok(observed(&measured::METRICS, answer, &own))
    }
}

/// GIMP with its image: what is shown, and what is kept to undo, are images too.
struct Gimp {
    app: App,
    /// Pages of a tile.
    tile: u32,
    image: RegionId,
    shown: RegionId,
}

pub(super) fn test(desktop: &Rc<Desktop>, task: &Task, apps: &Apps) -> Result<(), NoMemory> {
    let names = Names::new(&desktop.memory, apps.files);
    let (daemons, screen) = desktop.step("boot", &names, || desktop.boot(task))?;
    if apps.variant == Variant::Standard {
        desktop.step("slocate", &names, || names.stat_all(&desktop.memory, task))?;
    }
    let image = || {
        task.sleep(apps.pause);
        desktop.step("image", &names, || Gimp::start(desktop, task, (apps.pixel, apps.copies), &screen))
    };
    let office = || {
        task.sleep(apps.pause);
        desktop.step("office", &names, || start(desktop, task, OFFICE, &screen))
    };
    let (mut gimp, office) = match apps.variant {
        Variant::OfficeFirst => {
            let office = office()?;
            (image()?, office)
        }
        _ => (image()?, office()?),
    };
    let suite: Vec<Size> =
        SUITE.into_iter().cycle().take(apps.suite as usize).chain(apps.mozilla.then_some(MOZILLA)).collect();
    task.sleep(apps.pause);
    let suite: Vec<App> = desktop.step("suite", &names, || {
        let started: Result<Vec<App>, NoMemory> =
            suite.iter().map(|size| start(desktop, task, *size, &screen)).collect();
        let started = started?;
        started.iter().try_for_each(|app| app.used(desktop, task, WORK))?;
        Ok(started)
    })?;
    task.sleep(apps.pause);
    desktop.step("rotate", &names, || gimp.rotate(desktop, task, &screen))?;
    task.sleep(apps.pause);
    desktop.step("close", &names, || {
        suite.into_iter().rev().try_for_each(|app| close(desktop, task, app, &screen))?;
        match apps.variant {
            Variant::OfficeFirst => {
                close(desktop, task, gimp.app, &screen)?;
                close(desktop, task, office, &screen)
            }
            _ => {
                close(desktop, task, office, &screen)?;
                close(desktop, task, gimp.app, &screen)
            }
        }
    })?;
    // What follows is not part of the test: the machine goes down.
    daemons.stop(desktop, task);
    screen.close(desktop, task, 0)?;
    names.drop_all(&desktop.memory, task);
    Ok(())
}

/// The user starts a program, which draws its windows.
fn start(desktop: &Desktop, task: &Task, size: Size, screen: &App) -> Result<App, NoMemory> {
    let app = App::start(desktop, task, size)?;
    screen.used(desktop, task, WORK)?;
    Ok(app)
}

fn close(desktop: &Desktop, task: &Task, app: App, screen: &App) -> Result<(), NoMemory> {
    app.close(desktop, task, desktop.habits.close)?;
    screen.used(desktop, task, WORK)
}

impl Gimp {
    /// Starts GIMP and makes a blank image, tile by tile; then all of it is shown, and copied `copies` times.
    fn start(
        desktop: &Desktop,
        task: &Task,
        (tile, copies): (u32, u32),
        screen: &App,
    ) -> Result<Gimp, NoMemory> {
        let app = start(desktop, task, GIMP, screen)?;
        let vm = &desktop.memory.vm;
        let new = || mm::anon(vm, app.space, TILES * TILES * tile);
        let (image, shown) = (new(), new());
        let copied: Vec<RegionId> = (0..copies).map(|_| new()).collect();
        desktop.run_as(task, &app, || {
            for region in [image, shown].into_iter().chain(copied) {
                for at in 0..TILES * TILES {
                    touch(desktop, task, region, &pages_of(at, tile), Touch::Store)?;
                    task.compute(FILL_TILE);
                }
            }
            Ok(())
        })?;
        Ok(Gimp { app, tile, image, shown })
    }

    /// Rotates the image by a quarter turn into a new one, and shows it. The old one is kept for undo.
    fn rotate(&mut self, desktop: &Desktop, task: &Task, screen: &App) -> Result<(), NoMemory> {
        let rotated = mm::anon(&desktop.memory.vm, self.app.space, TILES * TILES * self.tile);
        desktop.run_as(task, &self.app, || {
            for at in 0..TILES * TILES {
                let turned = at % TILES * TILES + TILES - 1 - at / TILES;
                touch(desktop, task, self.image, &pages_of(at, self.tile), Touch::Load)?;
                touch(desktop, task, rotated, &pages_of(turned, self.tile), Touch::Store)?;
                task.compute(ROTATE_TILE);
            }
            for at in 0..TILES * TILES {
                touch(desktop, task, rotated, &pages_of(at, self.tile), Touch::Load)?;
                touch(desktop, task, self.shown, &pages_of(at, self.tile), Touch::Store)?;
                task.compute(FILL_TILE);
            }
            Ok(())
        })?;
        self.image = rotated;
        screen.used(desktop, task, WORK)
    }
}

/// The pages of the tile at a place.
fn pages_of(at: u32, tile: u32) -> Vec<u32> {
    (at * tile..(at + 1) * tile).collect()
}
