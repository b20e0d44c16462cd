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

/// The file systems of names that the recording program looks up.
pub const PROC: &str = "sb-proc";
/// sysfs.
pub const SYSFS: &str = "sb-sysfs";

/// Unused names of a file system at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unused {
    /// The file system.
    pub of: &'static str,
    /// Names that were looked up once.
    pub once: u32,
    /// Names that were looked up again since: reclaim passes each of them once.
    pub again: u32,
    /// Of those that were looked up once, the ones that programs look up.
    pub known: &'static [&'static str],
}

/// A name on a list. Those that no program looks up are all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    /// What it is, and whose: 0 is nobody's.
    what: Option<(&'static str, u32)>,
    referenced: bool,
}

/// The names of a file system, in the order in which reclaim looks at them.
pub(super) struct Names {
    of: &'static str,
    list: RefCell<VecDeque<Name>>,
}

impl Names {
    pub(super) fn new(unused: Unused) -> Names {
        let name = |at| Name {
            what: unused.known.get(at as usize).map(|known| (*known, 0)),
            referenced: at >= unused.once,
        };
        Names { of: unused.of, list: RefCell::new((0..unused.once + unused.again).map(name).collect()) }
    }

    /// A walk meets a name: it is on the list then. A walk that ends there refers to it if it was before.
    fn meet(&self, what: (&'static str, u32), ends: bool) {
        let mut list = self.list.borrow_mut();
        match list.iter_mut().find(|name| name.what == Some(what)) {
            Some(name) => name.referenced |= ends,
            None => list.push_back(Name { what: Some(what), referenced: false }),
        }
    }
}

/// The names of all file systems without a disk.
#[derive(Default)]
pub struct AllNames(Vec<Rc<Names>>);

impl AllNames {
    pub(super) fn new(unused: &[Unused]) -> AllNames {
        AllNames(unused.iter().map(|unused| Rc::new(Names::new(*unused))).collect())
    }

    /// Each as a cache that reclaim asks.
    pub(super) fn caches(&self) -> impl Iterator<Item = Rc<dyn Shrinks>> + '_ {
        self.0.iter().map(|names| names.clone() as Rc<dyn Shrinks>)
    }

    fn meet(&self, of: &str, what: (&'static str, u32), ends: bool) {
        self.0.iter().filter(|names| names.of == of).for_each(|names| names.meet(what, ends));
    }

    /// A walk ends at a name of a file system. Nothing if the machine has none of that file system.
    pub fn look_up(&self, of: &str, name: &'static str) {
        self.meet(of, (name, 0), true);
    }

    /// A walk ends at a name in a process's own directory.
    pub fn look_up_of(&self, of: &str, name: &'static str, process: u32) {
        self.meet(of, (name, process + 1), true);
    }

    /// A walk follows a link: it holds nothing on its way, so it does not refer to a name that is there.
    pub fn pass(&self, of: &str, name: &'static str) {
        self.meet(of, (name, 0), false);
    }

    /// A process ends, and with it the names in its directory.
    pub fn end(&self, process: u32) {
        let stays = |name: &Name| name.what.is_none_or(|(_, whose)| whose != process + 1);
        self.0.iter().for_each(|names| names.list.borrow_mut().retain(stays));
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
        let mut list = self.list.borrow_mut();
        let mut freed = 0;
        // A referenced name goes to the list's end, where the same walk can meet it again.
        for _ in 0..n {
            Timed::cycles(LOOK);
            match list.pop_front() {
                Some(name) if name.referenced => list.push_back(Name { referenced: false, ..name }),
                Some(_) => freed += 1,
                None => break,
            }
        }
        Timed::cycles(END * freed);
        Shrunk { scanned: n, freed, pages: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of two names that were looked up once, of which a program knows one, and of one that was looked up
    /// again; then what walks meet. Which of the names are referenced, in their order.
    #[track_caller]
    fn check(walks: impl FnOnce(&AllNames), expected: &[bool]) {
        let all = AllNames::new(&[
            Unused { of: PROC, once: 2, again: 1, known: &["vmstat"] },
            Unused { of: SYSFS, once: 0, again: 0, known: &[] },
        ]);
        walks(&all);
        let referenced: Vec<bool> = all.0[0].list.borrow().iter().map(|name| name.referenced).collect();
        assert_eq!(referenced, expected);
    }

    #[test]
    fn walks_bring_names_and_refer_to_those_that_are_there() {
        check(|_| {}, &[false, false, true]);
        check(|all| all.look_up(PROC, "vmstat"), &[true, false, true]);
        check(|all| all.look_up(PROC, "meminfo"), &[false, false, true, false]);
        check(|all| (0..2).for_each(|_| all.look_up(PROC, "meminfo")), &[false, false, true, true]);
        // A link is passed, however often.
        check(|all| (0..2).for_each(|_| all.pass(PROC, "vmstat")), &[false, false, true]);
        check(|all| (0..2).for_each(|_| all.pass(PROC, "link")), &[false, false, true, false]);
        // Another file system; one that the machine has not.
        check(|all| all.look_up(SYSFS, "vmstat"), &[false, false, true]);
        check(|all| all.look_up("sb-ext4", "vmstat"), &[false, false, true]);
        // Each process has names of its own, which end with it.
        let two = |all: &AllNames| (0..2).for_each(|process| all.look_up_of(PROC, "pagemap", process));
        check(two, &[false, false, true, false, false]);
        check(
            |all| {
                two(all);
                all.look_up_of(PROC, "pagemap", 1);
                all.end(0);
            },
            &[false, false, true, true],
        );
    }
}
