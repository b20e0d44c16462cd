//! Who holds kernel memory on the running machine: processes with many objects of a kind, and what holds
//! objects without a process. It becomes a small table, so that a saved dump has it too.
//!
//! ```text
//! table          all of them as text, most first
//!   process      what one process holds by itself, and what is known of it
//!   shared       what several files or processes hold together: namespaces, mounts, children
//!   machine      tables of the whole machine: SysV shared memory, locks, keys
//!   tcp          states and other sides of TCP sockets, by sock_diag
//!   tmpfs        files of each tmpfs
//!   unix         messages in UNIX sockets that nobody read, and servers of connections, by sock_diag
//!   directories  directories that own many directory entries
//! ```
//!
//! Which kinds there are, and how each is counted, is data ([`Holders`]). Kinds of the counters `cgroups` and
//! `dentries` are counted by files that a dump has as they are.

mod directories;
mod machine;
#[cfg(target_os = "linux")]
mod netlink;
mod process;
mod shared;
mod tcp;
mod tmpfs;
mod unix;

use crate::what::Holders;
use process::Process;
use rayon::prelude::*;
use slablab_readers::cgroups::Holder;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The kind whose count are bytes of messages that nobody read.
const UNREAD: &str = "unread";
/// Holders listed for each kind.
const EACH_KIND: usize = 20;

/// The table of what is held, by the files below `proc`. A process that ends meanwhile, or whose files this
/// user may not read, is left out.
pub(super) fn table(proc: &Path) -> String {
    let mut counts = Counts::default();
    tcp::count(&mut counts);
    tmpfs::count(proc, &mut counts);
    directories::count(proc, &mut counts);
    let sockets = unix::sockets();
    sockets.put(&mut counts);
    table_with(proc, counts, &sockets.unread)
}

/// [`table`], with what is counted already, and the bytes of unread messages by the inode of the socket.
fn table_with(proc: &Path, mut counts: Counts, unread: &BTreeMap<u32, u64>) -> String {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let read = |pid: u32| Process::read(&proc.join(pid.to_string()), pid, unread);
    let mut processes: BTreeMap<u32, Process> =
        pids.into_par_iter().filter_map(read).map(|process| (process.pid, process)).collect();
    // A look at some descriptors tells who has unread messages; how many there are is known of the machine.
    let all_unread: u64 = unread.values().fold(0, |sum, bytes| sum.saturating_add(*bytes));
    let seen_unread: u64 = processes.values().filter_map(|process| process.kinds.get(UNREAD)).sum();
    for process in processes.values_mut() {
        if let Some(bytes) = process.kinds.get_mut(UNREAD) {
            *bytes = (u128::from(*bytes) * u128::from(all_unread) / u128::from(seen_unread.max(1))) as u64;
        }
    }
    if seen_unread == 0 {
        counts.add_named("UNIX sockets", UNREAD, all_unread);
    }
    for process in processes.values() {
        process.kinds.iter().for_each(|(kind, count)| counts.add(process.pid, kind, *count));
    }
    shared::count(&processes, &mut counts);
    machine::count(proc, &processes, &mut counts);
    text(counts.0, &processes)
}

/// How many of each kind, by process; what no process holds has a name instead of a process.
#[derive(Debug, Default)]
struct Counts(BTreeMap<(By, String), u64>);

/// What holds objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Process(u32),
    Named(String),
}

impl Counts {
    fn add(&mut self, pid: u32, kind: &str, count: u64) {
        *self.0.entry((By::Process(pid), kind.into())).or_default() += count;
    }

    fn add_named(&mut self, name: &str, kind: &str, count: u64) {
        *self.0.entry((By::Named(name.into()), kind.into())).or_default() += count;
    }
}

/// The lines of the table: of each kind those with most, that are no fewer than the kind's least.
fn text(counts: BTreeMap<(By, String), u64>, processes: &BTreeMap<u32, Process>) -> String {
    let enough =
        counts.into_iter().filter(|((_, kind), count)| *count >= Holders::builtin().find(kind).least);
    let mut found: Vec<Holder> = enough
        .filter_map(|((by, kind), count)| {
            let (pid, cgroup, comm) = match by {
                By::Named(name) => (0, String::new(), name),
                By::Process(pid) => {
                    let process = processes.get(&pid)?;
                    (pid, process.cgroup(), process.comm.clone())
                }
            };
            Some(Holder { pid, kind, count, cgroup, comm })
        })
        .collect();
    found.sort_by(|a, b| b.count.cmp(&a.count).then(a.pid.cmp(&b.pid)).then_with(|| a.kind.cmp(&b.kind)));
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    let mut out = String::new();
    for Holder { pid, kind, count, cgroup, comm } in found {
        let of_kind = listed.entry(kind.clone()).or_default();
        *of_kind += 1;
        if *of_kind <= EACH_KIND {
            writeln!(out, "{pid}\t{kind}\t{count}\t{cgroup}\t{comm}").expect("a string");
        }
    }
    out
}

/// A number of four bytes, in the byte order of this machine, as netlink has it.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A number of two bytes.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// A file's text, as far as it can be read. Names in it may be in any encoding.
fn text_of(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The count in the line of this process.
    fn own(table: &str, kind: &str) -> u64 {
        let own = format!("{}\t{kind}\t", std::process::id());
        let line =
            table.lines().find(|line| line.starts_with(&own)).unwrap_or_else(|| panic!("{kind}: {table}"));
        line[own.len()..].split('\t').next().expect("a count").parse().expect("a number")
    }

    /// This test's own sockets are counted.
    #[test]
    fn this_process_is_found() {
        let held: Vec<_> =
            (0..300).map(|_| std::os::unix::net::UnixDatagram::unbound().expect("a socket")).collect();
        let count = own(&table(Path::new("/proc")), "socket");
        assert!(count >= held.len() as u64 / 2 && count < 10 * held.len() as u64, "{count}");
    }

    /// Files as the kernel writes them, below a folder of the test.
    #[test]
    fn every_counter_counts() {
        let root = std::env::temp_dir().join(format!("slablab-holders-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        let link = |path: &str, target: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::os::unix::fs::symlink(target, path).expect("linked");
        };
        let status = |pid: u32, parent: u32, state: &str, signals: u32| {
            let text = format!(
                "Name:\tx\nState:\t{state}\nPPid:\t{parent}\nUid:\t1000\t1000\t1000\t1000\nFDSize:\t32\n\
                 VmSize:\t100 kB\nThreads:\t1\nSigQ:\t{signals}/6000\n"
            );
            write(&format!("{pid}/status"), &text);
            write(&format!("{pid}/comm"), if pid == 1 { "init\n" } else { "a\tname\n" });
        };
        status(1, 0, "S (sleeping)", 0);
        link("1/ns/net", "net:[1]");
        link("1/ns/mnt", "mnt:[10]");
        let nsfs: String =
            (0..9).map(|n| format!("5{n} 1 0:4 net:[9{n}] /run/netns/{n} rw - nsfs nsfs rw\n")).collect();
        write("1/mountinfo", &(nsfs + &"20 1 0:5 / /x rw - tmpfs tmpfs rw\n".repeat(91)));
        status(7, 1, "S (sleeping)", 80);
        link("7/ns/net", "net:[1]");
        link("7/fd/3", "anon_inode:inotify");
        write("7/fdinfo/3", &("pos:\t0\n".to_string() + &"inotify wd:1 ino:2 sdev:3\n".repeat(70)));
        link("7/fd/5", "socket:[55]");
        link("200/fd/0", "socket:[56]");
        link("7/fd/4", "anon_inode:[eventpoll]");
        write("7/fdinfo/4", &"tfd:        5 events:       19 data:  5\n".repeat(65));
        write("7/timers", &"ID: 0\nsignal: 0/0000000000000000\nnotify: none/pid.7\nClockID: 1\n".repeat(66));
        let maps = "7f00-7f01 r--s 00000000 00:01 1 /dev/zero (deleted)\n".repeat(1024);
        write("7/maps", &(maps + &"7f02-7f03 rw-s 00000000 00:0f 9 /[aio] (deleted)\n".repeat(64)));
        for pid in 100..170 {
            status(pid, 7, if pid < 105 { "S (sleeping)" } else { "Z (zombie)" }, 80);
        }
        for pid in 200..208 {
            status(pid, 7, "S (sleeping)", 80);
            link(&format!("{pid}/ns/net"), &format!("net:[{pid}]"));
            link(&format!("{pid}/ns/mnt"), &format!("mnt:[{pid}]"));
            write(&format!("{pid}/mountinfo"), &"20 1 0:5 / /x rw - tmpfs tmpfs rw\n".repeat(10));
        }
        write(
            "locks",
            &"1: POSIX  ADVISORY  WRITE 7 fe:00:3 0 EOF\n1: -> POSIX ADVISORY WRITE 8 fe:00:3 0 EOF\n"
                .repeat(67),
        );
        write("key-users", "    0:     9 8/8 3/1000000 40/25000000\n 1000:   500 500/500 500/200000 9/9\n");
        let row = |creator: u32| format!("0 3 1600 4096 {creator} 0 0 0 0 0 0 0 0 1 0 0\n");
        write(
            "sysvipc/shm",
            &format!("key shmid perms size cpid\n{}{}", row(7).repeat(68), row(99).repeat(69)),
        );
        let unread = [(55, 3 << 20), (56, 5 << 20), (9, 1)].into();
        let said = table_with(&root, Counts::default(), &unread);
        fs::remove_dir_all(&root).expect("removed");
        for expected in [
            "7\tinotify watch\t70\t\ta name",
            "7\tunread\t3145728\t\ta name",
            "200\tunread\t5242880\t\ta name",
            "7\tepoll watch\t65\t\ta name",
            "7\ttimer\t66\t\ta name",
            "7\tmapping\t1088\t\ta name",
            "7\taio\t64\t\ta name",
            "7\tzombie\t65\t\ta name",
            "7\tnet namespace\t8\t\ta name",
            "7\tmnt namespace\t8\t\ta name",
            "7\tmount\t80\t\ta name",
            "1\tmount\t100\t\tinit",
            "0\tnet namespace\t9\t\tmounts of nsfs",
            "7\tlock\t67\t\ta name",
            "0\tkey\t500\t\tuser 1000",
            "0\tsignal\t80\t\tuser 1000",
            "7\tshm\t68\t\ta name",
            "0\tshm\t69\t\tended processes",
        ] {
            assert!(said.lines().any(|line| line == expected), "no {expected:?} in {said}");
        }
        assert_eq!(said.lines().count(), 18, "{said}");
    }
}
