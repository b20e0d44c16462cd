//! The two tests of "2.4.10 VM vs. 2.4.9-ac14" (September 2001): applications on a PC, and streams of file
//! I/O beside music.
//!
//! ```text
//! run ── with_memory ── the user's task ── boot: daemons, desktop ── apps::test | streams::test
//!                    ├─ player                                        (every program an address space)
//!                    └─ dbench's clients, the interactive task
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `app` | a program's text and heap |
//! | `daemons` | programs that boot starts, some of which run from time to time |
//! | `machine` | the machine under a VM of 2.4, and what the workloads have alike |
//! | `names` | dentries and inodes |
//! | [`player`] | music, and gaps in it |
//! | [`apps`] | the application test, steps a) to g) |
//! | [`streams`] | dbench, dd, cat |
//! | [`server`] | clients of a file server |
//! | [`make`] | a kernel build beside music |
//!
//! The user does one thing at a time: one task runs the applications in turn, each in its own address space.
//! Sizes and times that no document has are assumed and stand as constants in these files; none was chosen
//! by what came out. docs/theory/vm.md 12.

mod app;
pub mod apps;
mod daemons;
mod machine;
pub mod make;
mod names;
pub mod player;
pub mod server;
pub mod streams;

pub use names::caches;

use crate::kernel::Task;
use crate::kernel::tally::{Failed, Outcome};
use crate::memory::{Guest, Memory, with_recorded_memory};
use crate::record::Recorder;
use crate::setup::Setup;
use app::{App, Size};
use daemons::Daemons;
use player::Played;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use slablab_model::{Ps, Timed};
use slablab_vm::mm::Rules;
use slablab_vm::{Counter, Replacement};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The X server and a window manager (assumed).
const SCREEN: Size = Size { name: "X", text: 1_024, heap: 2_048 };

/// No page was found, after the task with the most memory was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// The application test.
    Apps(apps::Apps),
    /// The streaming test.
    Streams(streams::Streams),
    /// Clients of a file server.
    Server(server::Server),
    /// A kernel build.
    Make(make::Make),
}

/// What programs do with their memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// Percent of the pages of a text that a program touches, in each cluster that a fault reads: at least
    /// one page.
    pub text: u32,
    /// Percent of the pages which a program needs that it touches when it is closed.
    pub close: u32,
    /// Daemons that run from time to time; the others are idle from boot on.
    pub running: u32,
    /// How often such a daemon runs.
    pub wakes: Ps,
}

impl Habits {
    /// Text: StarOffice reads 60 MB, has 52 MB in memory with a document, and 40 MB of them are heap (middles
    /// of ranges, from memory): 12 of 60. Closing: the middle of 10 to 50. Daemons: cron, which looks each
    /// minute whether there is work, syslogd, which cron's messages wake, and one more (assumed).
    pub const USUAL: Habits = Habits { text: 20, close: 30, running: 3, wakes: 60_000_000_000_000 };
}

/// What one part of a test did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub name: &'static str,
    /// How long it took.
    pub elapsed: Ps,
    /// Pages written to swap and read from it.
    pub swapped: (u64, u64),
    /// Inodes and dentries in memory at its end.
    pub names: (u64, u64),
    /// Music that was played in it; the longest gap is that of the run until then.
    pub played: Played,
    /// `ps` at its end: each process that has memory.
    pub processes: Vec<Resident>,
}

impl Step {
    /// RSS and VSZ of the programs of a name.
    pub fn resident(&self, name: &str) -> (u64, u64) {
        let of = self.processes.iter().filter(|process| process.name == name);
        of.fold((0, 0), |sum, process| (sum.0 + process.resident, sum.1 + process.pages))
    }
}

/// Pages of a process that are in frames, and all: RSS and VSZ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resident {
    /// Its program.
    pub name: String,
    /// In frames.
    pub resident: u64,
    /// All.
    pub pages: u64,
}

/// What a test did.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Its parts, in their order.
    pub steps: Vec<Step>,
    /// CPU time of kswapd: pages and entries that it looked at, pages that it freed and wrote.
    pub kswapd: Ps,
    /// When each client of the file server had done its work, in that order.
    pub ended: Vec<Ps>,
    /// The slowest answer of the interactive task.
    pub answer_longest: Ps,
    /// Pages written to swap in each second since boot.
    pub out_by_second: Vec<u64>,
    /// /proc/vmstat at the end.
    pub counters: Vec<(&'static str, u64)>,
    /// From boot to end.
    pub elapsed: Ps,
    /// What the kernel counted meanwhile.
    pub outcome: Option<Outcome>,
}

impl Answer {
    /// The sum over the parts with this name.
    pub fn step(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// RSS and VSZ of the programs of a name at the end of a part.
    pub fn resident(&self, part: &str, name: &str) -> (u64, u64) {
        self.step(part).map_or((0, 0), |step| step.resident(name))
    }

    /// Pages written to swap and read from it.
    pub fn swapped(&self) -> (u64, u64) {
        self.steps.iter().fold((0, 0), |sum, step| (sum.0 + step.swapped.0, sum.1 + step.swapped.1))
    }

    /// Music of the whole run.
    pub fn played(&self) -> Played {
        self.steps.iter().fold(Played::default(), |sum, step| Played {
            skips: sum.skips + step.played.skips,
            longest: sum.longest.max(step.played.longest),
            silent: sum.silent + step.played.silent,
            music: sum.music + step.played.music,
            needed: sum.needed.max(step.played.needed),
        })
    }
}

/// What the tasks of a test share.
struct Desktop {
    memory: Rc<Memory>,
    habits: Habits,
    random: RefCell<Pcg64Mcg>,
    /// The machine has booted, and music may begin.
    booted: Cell<bool>,
    has_music: bool,
    played: Cell<Played>,
    answer_longest: Cell<Ps>,
    over: Cell<bool>,
    answer: RefCell<Answer>,
}

/// Runs a test under a policy. `player`: music that the player's buffers hold; `None`: no player.
///
/// # Errors
/// A machine that cannot be modelled, tasks that wait for ever, a livelock, no memory.
pub fn run(
    setup: &Setup,
    seed: u64,
    guest: &Guest,
    policy: Box<dyn Replacement>,
    rules: Rules,
    (test, player, habits): (&Test, Option<Ps>, Habits),
    recorder: &Recorder,
) -> Result<Answer, Failed> {
    with_recorded_memory(setup, seed, recorder, guest, policy, rules, |memory| {
        let desktop = Rc::new(Desktop {
            memory: memory.clone(),
            habits,
            random: RefCell::new(Pcg64Mcg::seed_from_u64(seed)),
            booted: Cell::new(false),
            has_music: player.is_some(),
            played: Cell::default(),
            answer_longest: Cell::default(),
            over: Cell::new(false),
            answer: RefCell::default(),
        });
        if let Some(buffer) = player {
            let music = if matches!(test, Test::Make(_)) { player::WAV } else { player::MP3 };
            desktop.start("player", move |desktop, task| player::play(desktop, task, music, buffer));
        }
        let test = test.clone();
        desktop.start("user", move |desktop, task| {
            let mark = task.kernel.mark();
            match &test {
                Test::Apps(apps) => apps::test(desktop, task, apps)?,
                Test::Streams(streams) => streams::test(desktop, task, streams)?,
                Test::Server(server) => server::test(desktop, task, server)?,
                Test::Make(make) => make::test(desktop, task, make)?,
            }
            let mut answer = desktop.answer.borrow_mut();
            answer.outcome = Some(task.kernel.outcome(&mark));
            answer.elapsed = Timed::clock();
            drop(answer);
            desktop.over.set(true);
            Ok(())
        });
        memory.kernel.run()?;
        memory.check().map_err(Failed::Broken)?;
        let mut answer = desktop.answer.take();
        answer.kswapd = memory.kswapd_work();
        answer.answer_longest = desktop.answer_longest.get();
        answer.out_by_second = memory.accounts.asks.swapped_out_by_second();
        answer.counters = memory.snapshot().vmstat;
        Ok(answer)
    })
}

impl Desktop {
    /// Starts a task. When the last of them has ended, the memory's daemons end.
    fn start(
        self: &Rc<Self>,
        name: &'static str,
        program: impl FnOnce(&Rc<Desktop>, &Task) -> Result<(), NoMemory> + 'static,
    ) {
        let (desktop, kernel) = (self.clone(), self.memory.kernel.clone());
        kernel.start(kernel.new_process(), None, move |task| {
            task.call_it(|| name.into());
            if program(&desktop, task).is_err() {
                let kernel = &desktop.memory.kernel;
                kernel.fail(Failed::out_of_memory(&*kernel.heap, 0));
            }
            desktop.memory.processes.disown(&task.kernel, task.id);
            if desktop.over.get() {
                desktop.memory.stop();
            }
        });
    }

    /// The task does something in the address space of an application.
    fn run_as<T>(&self, task: &Task, app: &App, f: impl FnOnce() -> T) -> T {
        self.memory.processes.adopt(app.size.name, task.id, app.space);
        let result = f();
        self.memory.processes.disown(&task.kernel, task.id);
        result
    }

    /// Boots: daemons, and the desktop; then the user starts music, which plays for a while. Its gaps until
    /// then do not count.
    fn boot(self: &Rc<Self>, task: &Task) -> Result<(Daemons, App), NoMemory> {
        let daemons = Daemons::start(self, task)?;
        let screen = App::start(self, task, SCREEN)?;
        self.booted.set(true);
        if self.has_music {
            task.sleep(player::BEFORE);
            self.played.take();
        }
        Ok((daemons, screen))
    }

    /// A part of the test, with what it did.
    fn step<T>(
        &self,
        name: &'static str,
        names: &names::Names,
        f: impl FnOnce() -> Result<T, NoMemory>,
    ) -> Result<T, NoMemory> {
        // The needed buffer is that of each step.
        self.played.set(Played { needed: 0, ..self.played.get() });
        let (at, swapped, played) = (Timed::clock(), self.swapped(), self.played.get());
        let result = f()?;
        let now = self.swapped();
        self.answer.borrow_mut().steps.push(Step {
            name,
            elapsed: Timed::clock() - at,
            swapped: (now.0 - swapped.0, now.1 - swapped.1),
            names: names.counts(),
            played: self.played.get().since(played),
            processes: self.processes(),
        });
        self.memory.end_part(|| name.into());
        Ok(result)
    }

    /// What each process has in frames (`ps`).
    fn processes(&self) -> Vec<Resident> {
        let all = self.memory.processes.list(&self.memory.vm).into_iter();
        all.map(|of| Resident { name: of.name, resident: of.resident, pages: of.virtual_pages }).collect()
    }

    fn swapped(&self) -> (u64, u64) {
        let counters = |counter| self.memory.vm.with(|state| state.counters.get(counter));
        (counters(Counter::PswpOut), counters(Counter::PswpIn))
    }

    fn below(&self, bound: u64) -> u64 {
        self.random.borrow_mut().next_u64() % bound.max(1)
    }

    fn shuffle(&self, items: &mut [u32]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// A part of these pages, in percent, at random.
    fn some(&self, pages: &[u32], percent: u32) -> Vec<u32> {
        let mut all = pages.to_vec();
        self.shuffle(&mut all);
        all.truncate(pages.len() * percent as usize / 100);
        all
    }
}
