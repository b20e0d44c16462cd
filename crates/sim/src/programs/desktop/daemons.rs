//! Daemons: programs that boot starts. Most are idle from then on; some run from time to time.

use super::app::{App, Size};
use super::{Desktop, NoMemory};
use crate::kernel::Task;
use slablab_model::{Ps, Timed};
use slablab_vm::mappings::Kind;
use std::rc::Rc;

/// Daemons (assumed), 2 MB each, as the mail says. Three quarters are the C library, which all share, and
/// their own text (assumed: one file here).
const DAEMONS: u32 = 12;
const IDLE: Size = Size { name: "daemon", text: 384, heap: 128 };
const RUNNING: Size = Size { name: "cron", ..IDLE };
/// Percent of its text and heap that a daemon needs: of 1.4 MB, `ps` shows 0.5 MB (of distributions of the
/// time, from memory).
const NEEDS: u32 = 38;
/// Percent of that which a run of a daemon touches (assumed).
const RUN: u32 = 25;
/// How long a daemon sleeps at most before it looks whether the machine goes down.
const LOOK: Ps = 1_000_000_000_000;

/// The idle daemons of a machine: those that run end by themselves.
pub(super) struct Daemons {
    idle: Vec<App>,
}

impl Daemons {
    /// Boots them.
    pub(super) fn start(desktop: &Rc<Desktop>, task: &Task) -> Result<Daemons, NoMemory> {
        let file = desktop.memory.vm.with(|state| state.mappings.create(Kind::File, IDLE.text));
        let start = |size| App::of_text(desktop, size, file).begin(desktop, task, [NEEDS, NEEDS]);
        let running = desktop.habits.running.min(DAEMONS);
        let idle = (running..DAEMONS).map(|_| start(IDLE)).collect::<Result<_, _>>()?;
        let running = (0..running).map(|_| start(RUNNING).map(Rc::new)).collect::<Result<Vec<_>, _>>()?;
        for daemon in &running {
            let daemon = daemon.clone();
            desktop.start("daemon", move |desktop, task| run(desktop, task, &daemon));
        }
        Ok(Daemons { idle })
    }

    /// The machine goes down. Those that run end when the desktop is over.
    pub(super) fn stop(self, desktop: &Desktop, task: &Task) {
        self.idle.iter().for_each(|daemon| daemon.exit(desktop, task));
    }
}

/// A daemon that runs from time to time, first at a random time.
fn run(desktop: &Desktop, task: &Task, daemon: &App) -> Result<(), NoMemory> {
    let every = desktop.habits.wakes.max(1);
    let mut next = Timed::clock() + desktop.below(every);
    while !desktop.over.get() {
        let now = Timed::clock();
        if now < next {
            task.sleep(LOOK.min(next - now));
            continue;
        }
        daemon.used(desktop, task, RUN)?;
        next = Timed::clock() + every;
    }
    daemon.exit(desktop, task);
    Ok(())
}
