//! Names that the kernel holds when programs start: unused dentries of file systems without a disk.
//!
//! A walk that ends at a file of /proc or of sysfs leaves its dentry on the list of its file system, and
//! reclaim looks at it like at any other. Their inodes are on no list: they end with their dentry. *Assumed*:
//! their slabs have objects in use too, so that no page comes back. Rules of 6.x, from memory.

use super::shrinkers::Shrinks;
use crate::kernel::Kernel;
use slablab_model::Timed;
use slablab_vm::{Shrinker, Shrunk, Vm};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Cycles of a look at a dentry, and of the end of one and its inode (assumed, as in [`super::caches`]).
const LOOK: u64 = 60;
const END: u64 = 600;

/// Unused names of a file system at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unused {
    /// The file system.
    pub of: &'static str,
    /// Names that were looked up once.
    pub once: u32,
    /// Names that were looked up again since: reclaim passes each of them once.
    pub again: u32,
    /// Names that the recording program looks up.
    pub recorded: Recorded,
}

/// Names of a file system that a program looks up which records its phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// At the end of each phase.
    pub ends: u32,
    /// Of these, those at the begin of a phase, too.
    pub begins: u32,
    /// Of these, those that are among [`Unused::once`] at the start.
    pub known: u32,
}

/// An unused name.
struct Name {
    /// Which one of those that the recording program looks up.
    recorded: Option<u32>,
    referenced: bool,
}

/// The names of a file system, in the order in which reclaim looks at them.
pub(super) struct Names {
    of: &'static str,
    recorded: Recorded,
    list: RefCell<VecDeque<Name>>,
}

impl Names {
    pub(super) fn new(Unused { of, once, again, recorded }: Unused) -> Names {
        let name = |at| Name { recorded: (at < recorded.known).then_some(at), referenced: at >= once };
        Names { of, recorded, list: RefCell::new((0..once + again).map(name).collect()) }
    }

    /// Looks at `n` names: how often it looked, and how many it freed. A referenced name goes to the list's
    /// end, where the same walk can meet it again.
    fn pass(&self, n: u64) -> [u64; 2] {
        let mut list = self.list.borrow_mut();
        let mut freed = 0;
        for looks in 1..=n {
            match list.pop_front() {
                Some(name) if name.referenced => list.push_back(Name { referenced: false, ..name }),
                Some(_) => freed += 1,
                None => return [looks, freed],
            }
        }
        [n, freed]
    }

    /// A phase begins or ends: the names that are recorded then are referenced, or are unused names again.
    pub(super) fn record(&self, ends: bool) {
        let mut list = self.list.borrow_mut();
        for at in 0..if ends { self.recorded.ends } else { self.recorded.begins } {
            match list.iter_mut().find(|name| name.recorded == Some(at)) {
                Some(name) => name.referenced = true,
                None => list.push_back(Name { recorded: Some(at), referenced: false }),
            }
        }
    }
}

impl Shrinks for Names {
    fn about(&self) -> Shrinker {
        Shrinker { name: self.of, seeks: 2, batch: 1_024 }
    }

    fn unused(&self, vm: &Vm) -> u64 {
        let pressure = vm.with(|state| state.settings.vfs_cache_pressure);
        self.list.borrow().len() as u64 * u64::from(pressure) / 100
    }

    fn shrink(&self, _vm: &Vm, _kernel: &Rc<Kernel>, n: u64) -> Shrunk {
        let [looks, freed] = self.pass(n);
        Timed::cycles(LOOK * looks + END * freed);
        Shrunk { scanned: n, freed, pages: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends and begins of phases (`e`, `b`) and passes that look at ten names (`p`); then the list in order:
    /// of a recorded name its number, of another one `-`, and `*` if it is referenced.
    #[track_caller]
    fn check(steps: &str, expected: &str) {
        let recorded = Recorded { ends: 3, begins: 1, known: 2 };
        let names = Names::new(Unused { of: "sb-proc", once: 3, again: 1, recorded });
        for step in steps.chars() {
            match step {
                'e' => names.record(true),
                'b' => names.record(false),
                _ => _ = names.pass(10),
            }
        }
        let show = |name: &Name| {
            name.recorded.map_or("-".to_string(), |at| at.to_string())
                + if name.referenced { "*" } else { "" }
        };
        let list = names.list.borrow().iter().map(show).collect::<Vec<_>>().join(" ");
        assert_eq!(list, expected, "{steps}");
    }

    #[test]
    fn names_that_are_recorded_are_referenced_or_unused_again() {
        check("", "0 1 - -*");
        // Those that are there are referenced; the third comes.
        check("e", "0* 1* - -* 2");
        check("b", "0* 1 - -*");
        // A pass over all frees all, the referenced ones in their second round.
        check("p", "");
        check("ep", "");
        check("pe", "0 1 2");
        check("peb", "0* 1 2");
        check("pb", "0");
    }
}
