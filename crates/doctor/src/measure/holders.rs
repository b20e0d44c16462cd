//! What holds the objects of caches: the kind of objects, counted by another file of the kernel, whose number
//! is that of the caches' objects.
//!
//! The number itself is the evidence. A socket is an object in several caches, and each of them has as many
//! objects as there are sockets; a process that opened as many sockets as the caches grew by is what holds
//! them. A name of a cache says less: several caches may share one, and any program may call kmalloc.

use crate::state::State;
use crate::what::{HolderKind, Holders};
use crate::words::size;
use slablab_readers::cgroups::Holder;
use slablab_readers::procfs::Numbers;
use slablab_report::text::grouped;
use std::collections::BTreeMap;

/// The part by which the number of what is held differs from that of a cache's objects, of which CPUs park
/// some: 1 in so many.
const NEAR: u64 = 20;
/// Objects by which small numbers differ.
const FEW: u64 = 32;
/// Per cent of a cache's objects that a holder has at least, and at most, if it is said to hold them.
const MOST_OF: (u64, u64) = (80, 125);
/// The same of the objects in a single snapshot, which others use too.
const MOST_NOW: (u64, u64) = (50, 110);
/// The name of what only the whole machine counts.
const MACHINE: &str = "the machine";

/// Processes of one name, or something else with a name, that hold objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The name of the processes.
    pub comm: String,
    /// The process with most; 0 for what is no process.
    pub pid: u32,
    /// Processes.
    pub processes: usize,
    /// Whether others hold some too: the number is that of all.
    pub and_others: bool,
    /// What they hold, in words.
    pub words: String,
    /// How many they hold together: bytes, where `in_bytes`.
    pub count: u64,
    /// Whether bytes are counted, not objects.
    pub in_bytes: bool,
    /// How many more than in the first snapshot; `None` without one, or if that has no table of holders.
    pub more: Option<i64>,
    /// The memory cgroup of the process with most.
    pub cgroup: String,
    /// What most of them are like, in words: `57,000 in CLOSE-WAIT`; empty if nothing tells.
    pub detail: String,
}

impl Who {
    /// So many, in words.
    pub(crate) fn amount(&self, count: u64) -> String {
        if self.in_bytes { size(count) } else { grouped(count) }
    }

    /// Whether it is the same number of the same holder.
    pub(crate) fn is_same(&self, other: &Who) -> bool {
        (&self.comm, self.pid, self.count, self.more) == (&other.comm, other.pid, other.count, other.more)
    }
}

/// Processes of one name with objects of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) of: &'static HolderKind,
    kind: String,
    who: Who,
}

/// What explains caches: who, and what kind of objects.
#[derive(Clone, Debug)]
pub(crate) struct Explained {
    pub(crate) who: Who,
    pub(crate) of: &'static HolderKind,
}

/// A number that only the whole machine has.
type Count = fn(&State) -> Option<u64>;

/// Everything that is held, and how it grew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holding {
    held: Vec<Held>,
    /// Rows that say more about sockets.
    details: Vec<Held>,
    /// More sockets by protocol than in the first snapshot, or all without one.
    protocols: BTreeMap<String, i64>,
}

impl Held {
    /// How many more, or how many where no earlier number is known.
    fn amount(&self) -> u64 {
        self.who.more.map_or(self.who.count, |more| more.max(0) as u64)
    }

    /// By how many the caches' number differs, if it is this one: of objects that each have several
    /// descriptors, of either.
    fn differs(&self, objects: u64) -> Option<u64> {
        let numbers = [self.amount(), self.amount() / self.of.each];
        let near = numbers.into_iter().filter(|number| is_near(*number, objects));
        near.map(|number| number.abs_diff(objects)).min()
    }
}

impl Holding {
    /// What is held now; with an earlier snapshot, how much more than then.
    pub(crate) fn of(now: &State, first: Option<&State>) -> Holding {
        let then = first.map(|first| &first.dump.owners.holders).filter(|then| !then.is_empty());
        let mut before: BTreeMap<(u32, &str, &str), u64> = BTreeMap::new();
        for old in then.into_iter().flatten() {
            before.insert((old.pid, &old.kind, &old.comm), old.count);
        }
        let had = |holder: &Holder| {
            before.get(&(holder.pid, holder.kind.as_str(), holder.comm.as_str())).copied().unwrap_or(0)
        };
        let mut found: BTreeMap<(&str, &str), Held> = BTreeMap::new();
        for holder in &now.dump.owners.holders {
            let held = found.entry((&holder.comm, &holder.kind)).or_insert_with(|| {
                let more = then.map(|_| 0);
                Held::new(&holder.kind, &holder.comm, holder.pid, &holder.cgroup, more)
            });
            held.who.processes += usize::from(holder.pid > 0);
            held.who.count = held.who.count.saturating_add(holder.count);
            held.who.more = held.who.more.map(|more| more + holder.count as i64 - had(holder) as i64);
        }
        let mut held: Vec<Held> = found.into_values().collect();
        let counters: [(&str, Count); 2] = [
            ("memory cgroup", |state| state.dump.owners.counted),
            ("negative dentry", |state| Some(state.dump.dentry_state?.negative)),
        ];
        for (kind, count) in counters {
            if let Some(count_now) = count(now) {
                let more = first.and_then(count).map(|then| count_now as i64 - then as i64);
                let mut of_machine = Held::new(kind, MACHINE, 0, "", more);
                of_machine.who.count = count_now;
                held.push(of_machine);
            }
        }
        held.iter_mut().for_each(|held| held.who.words = held.of.words(&held.kind, held.who.count));
        let (details, held) = held.into_iter().partition(|held: &Held| held.of.detail);
        Holding { held, details, protocols: protocols(now, first) }
    }

    /// What holds the objects of caches that grew by so many. `takes` says how many of the caches are taken
    /// by a kind.
    pub(crate) fn of_growth(&self, objects: u64, takes: &dyn Fn(&HolderKind) -> usize) -> Option<Explained> {
        self.explain(objects, takes, MOST_OF)
    }

    /// What holds the bytes of caches that grew by so many, of a kind that is counted in bytes: one name, or
    /// all of them together.
    pub(crate) fn of_bytes(&self, bytes: u64, takes: &dyn Fn(&HolderKind) -> usize) -> Option<Explained> {
        let fits = |held: &&Held| takes(held.of) > 0 && held.of.in_bytes && held.amount() > 0;
        let fitting: Vec<&Held> = self.held.iter().filter(fits).collect();
        let is_most = |amount: u64| {
            let (low, high) = (bytes as u128 * MOST_OF.0 as u128, bytes as u128 * MOST_OF.1 as u128);
            (low..=high).contains(&(amount as u128 * 100))
        };
        let one = fitting.iter().filter(|held| is_most(held.amount())).max_by_key(|held| held.amount());
        let one = one.map(|held| (*held).clone());
        let all = || {
            let mut sums = sums(fitting.iter().copied(), |held| held.kind.clone()).into_iter();
            sums.find(|sum| is_most(sum.amount)).map(|sum| sum.together())
        };
        let held = one.or_else(all)?;
        Some(Explained { who: held.who, of: held.of })
    }

    /// What there are so many more of, of whatever kind.
    pub(crate) fn of_equal(&self, objects: u64) -> Option<Explained> {
        const PERCENT: u64 = 2;
        let is_equal = |held: &&Held| {
            let differs = held.amount().abs_diff(objects);
            !held.of.spreads && !held.of.in_bytes && !held.of.shrinker && differs <= objects / 100 * PERCENT
        };
        let equal = self.held.iter().filter(is_equal).min_by_key(|held| held.amount().abs_diff(objects))?;
        Some(self.said(equal, objects))
    }

    /// What holds the objects of a cache now.
    pub(crate) fn of_now(&self, objects: u64, takes: &dyn Fn(&HolderKind) -> usize) -> Option<Explained> {
        self.explain(objects, takes, MOST_NOW)
    }

    /// Kinds of which one takes objects of many caches, and how many more of each there are.
    pub(crate) fn spreading(&self) -> impl Iterator<Item = (Explained, u64)> {
        let spreads = self.held.iter().filter(|held| held.of.spreads && held.amount() >= held.of.least);
        spreads.map(|held| (Explained { who: held.who.clone(), of: held.of }, held.amount()))
    }

    /// The protocols of these names whose sockets grew by so many.
    pub(crate) fn protocols<'a>(&self, names: &[&'a str], objects: u64) -> Vec<&'a str> {
        let grew =
            |name: &&&str| self.protocols.get(**name).is_some_and(|more| is_near(*more as u64, objects));
        names.iter().filter(grew).copied().collect()
    }

    fn explain(
        &self,
        objects: u64,
        takes: &dyn Fn(&HolderKind) -> usize,
        most: (u64, u64),
    ) -> Option<Explained> {
        let fits = |held: &&Held| takes(held.of) > 0 && !held.of.in_bytes && held.amount() > 0;
        let fitting: Vec<&Held> = self.held.iter().filter(fits).collect();
        // One name and one kind with this number; of several, the one that takes most of these caches.
        let equal = fitting.iter().filter_map(|held| Some((held, held.differs(objects)?)));
        let best = equal.max_by_key(|(held, differs)| (takes(held.of), std::cmp::Reverse(*differs)));
        if let Some((held, _)) = best {
            return Some(self.said(held, objects));
        }
        // One kind, of all names.
        let of_kinds = sums(fitting.iter().copied(), |held| held.kind.clone());
        let equal = of_kinds.into_iter().filter(|of_kind| is_near(of_kind.amount, objects));
        if let Some(of_kind) = equal.max_by_key(|of_kind| takes(of_kind.top.of)) {
            return Some(self.said(&of_kind.together(), objects));
        }
        // Every descriptor has a `struct file`: kinds of descriptors, of one name or of all.
        let descriptors = || fitting.iter().copied().filter(|held| held.of.is_descriptor());
        let by_name = sums(descriptors(), |held| held.who.comm.clone());
        let of_all = sums(descriptors(), |_| String::new());
        let equal = by_name.into_iter().chain(of_all).find(|sum| is_near(sum.amount, objects));
        if let Some(sum) = equal {
            return Some(self.said(&sum.of_descriptors(), objects));
        }
        let is_most = |held: &&&Held| {
            let (low, high) = (objects as u128 * most.0 as u128, objects as u128 * most.1 as u128);
            (low..=high).contains(&(held.amount() as u128 * 100))
        };
        let held = fitting.iter().filter(is_most).max_by_key(|held| (takes(held.of), held.amount()))?;
        Some(self.said(held, objects))
    }

    /// What most of so many sockets are like, by rows of these kinds. Two ends of a connection on one
    /// machine are each half of them.
    fn detail(&self, objects: u64, kinds: [&[&str]; 2]) -> String {
        const PERCENT: u64 = 40;
        let most = |kinds: &[&str]| {
            let of_kinds = self.details.iter().filter(|held| kinds.contains(&held.kind.as_str()));
            of_kinds.max_by_key(|held| held.amount()).filter(|held| held.amount() * 100 >= objects * PERCENT)
        };
        let said = |held: &Held| {
            let why = match held.who.comm.as_str() {
                "CLOSE-WAIT" => ": the other side closed, this one did not",
                _ => "",
            };
            format!("{} {} {}{why}", grouped(held.amount()), held.of.many, held.who.comm)
        };
        kinds.into_iter().filter_map(most).map(said).collect::<Vec<_>>().join("; ")
    }

    /// With the protocol, where one of all has this number of sockets.
    fn said(&self, held: &Held, objects: u64) -> Explained {
        let mut who = held.who.clone();
        if held.kind == "socket" {
            let names: Vec<&str> = self.protocols.keys().map(String::as_str).collect();
            if let [protocol] = self.protocols(&names, objects)[..] {
                who.words = format!("{protocol} {}", who.words);
                // The other side, or the port on this side, and the state.
                let kinds: [&[&str]; 2] = match protocol {
                    _ if protocol.starts_with("TCP") => [&["TCP state"], &["TCP peer", "TCP port"]],
                    _ if protocol.starts_with("UNIX") => [&["UNIX peer"], &[]],
                    _ => [&[], &[]],
                };
                who.detail = self.detail(objects, kinds);
            }
        }
        Explained { who, of: held.of }
    }
}

impl Held {
    fn new(kind: &str, comm: &str, pid: u32, cgroup: &str, more: Option<i64>) -> Held {
        let of = Holders::builtin().find(kind);
        let who = Who {
            comm: comm.into(),
            pid,
            processes: 0,
            and_others: false,
            words: String::new(),
            count: 0,
            in_bytes: of.in_bytes,
            more,
            cgroup: cgroup.into(),
            detail: String::new(),
        };
        Held { of, kind: kind.into(), who }
    }
}

/// What several hold together.
struct Sum<'a> {
    /// The one with most.
    top: &'a Held,
    amount: u64,
    count: u64,
    more: Option<i64>,
    names: usize,
    kinds: usize,
}

fn sums<'a, K: Ord>(held: impl Iterator<Item = &'a Held>, key: impl Fn(&Held) -> K) -> Vec<Sum<'a>> {
    let mut found: BTreeMap<K, Vec<&Held>> = BTreeMap::new();
    held.for_each(|held| found.entry(key(held)).or_default().push(held));
    let sum = |members: Vec<&'a Held>| {
        let top = members.iter().max_by_key(|held| held.amount())?;
        let names: std::collections::BTreeSet<&str> =
            members.iter().map(|held| held.who.comm.as_str()).collect();
        let kinds: std::collections::BTreeSet<&str> = members.iter().map(|held| held.kind.as_str()).collect();
        Some(Sum {
            top,
            amount: members.iter().fold(0, |sum, held| sum.saturating_add(held.amount())),
            count: members.iter().fold(0, |sum, held| sum.saturating_add(held.who.count)),
            more: members.iter().map(|held| held.who.more).sum(),
            names: names.len(),
            kinds: kinds.len(),
        })
    };
    found.into_values().filter_map(sum).collect()
}

impl Sum<'_> {
    fn together(&self) -> Held {
        let mut held = self.top.clone();
        (held.who.count, held.who.more) = (self.count, self.more);
        held.who.and_others = self.names > 1;
        held
    }

    /// Descriptors of several kinds, whose most is named.
    fn of_descriptors(&self) -> Held {
        let most = self.top.of.words(&self.top.kind, 2);
        let mut held = self.together();
        if self.kinds > 1 {
            (held.of, held.kind) = (Holders::builtin().find("*"), "*".into());
            held.who.words = format!("descriptors, most of them {most}");
        }
        held
    }
}

/// Whether two numbers are one, as far as objects that CPUs park let them be.
pub(crate) fn is_near(held: u64, objects: u64) -> bool {
    held.abs_diff(objects) <= (objects / NEAR).max(FEW.min(objects / 2))
}

fn protocols(now: &State, first: Option<&State>) -> BTreeMap<String, i64> {
    let rows = &now.dump.protocols;
    let none = Numbers::new();
    let then = match first {
        None => &none,
        Some(first) if first.dump.protocols.is_empty() => return BTreeMap::new(),
        Some(first) => &first.dump.protocols,
    };
    let more = |(name, count): (&String, &u64)| {
        (name.clone(), *count as i64 - then.get(name).copied().unwrap_or(0) as i64)
    };
    rows.iter().map(more).filter(|(_, more)| *more > 0).collect()
}
