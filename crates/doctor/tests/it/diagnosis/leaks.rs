//! Made leaks, one of each kind of kernel object: verdict, the group that comes first, who holds it, and the
//! first action. The snapshots are of real machines; testdata/leaks/README.md says how they were made.

use slablab_doctor::act::verdict::Judgement::{self, Climbing, NoProblem};
use slablab_doctor::state::State;
use slablab_doctor::{Options, Report, examine};
use slablab_readers::cgroups::Holder;
use std::path::Path;

fn snapshot(kind: &str, moment: &str) -> State {
    let path = format!("testdata/leaks/{kind}.{moment}.tar.xz");
    super::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
}

/// The answer to two snapshots around the leak of a kind. The first cache of the group, a part of who holds
/// it and a part of the first action that is needed are these; empty where there must be none.
#[track_caller]
fn check(kind: &str, judgement: Judgement, group: &str, who: &str, action: &str) {
    let (now, before) = (snapshot(kind, "after"), [snapshot(kind, "before")]);
    let report = examine(&now, &Options { since: &before, ..Options::default() }).expect("examined");
    let shown = format!("{kind}: {}\n{:?}", report.verdict.text, report.found.findings.first());
    assert_eq!(report.verdict.judgement, judgement, "{shown}");
    let lead = &report.measured.grown[0];
    let lead = if judgement == Climbing { lead } else { largest(&report) };
    assert_eq!(lead.names[0], group, "{shown}");
    let found = &report.found.findings[0].text;
    assert_eq!(found.contains("Who: "), !who.is_empty(), "{shown}");
    assert!(found.contains(who) && report.verdict.text.contains(who), "no {who:?} in {shown}");
    check_action(&report, action, &shown);
}

fn largest<'a>(report: &'a Report) -> &'a slablab_doctor::measure::grown::Grown {
    report.measured.grown.iter().max_by_key(|group| group.bytes).expect("growth")
}

/// The first action that something needs has this in its command; with nothing, no action is needed. What
/// only frees what the kernel frees by itself never is.
#[track_caller]
fn check_action(report: &Report, action: &str, shown: &str) {
    let needed: Vec<_> = report.actions.iter().filter(|action| !action.optional).collect();
    let first = needed.first().map_or("", |action| action.command.as_str());
    assert_eq!(first.is_empty(), action.is_empty(), "{shown}: {first}");
    assert!(first.contains(action), "no {action:?} first in {first:?} of {shown}");
    assert!(needed.iter().all(|action| !action.command.contains("drop_caches")), "{shown}");
    let order = report.actions.iter().map(|action| action.optional);
    assert!(order.is_sorted(), "{shown}");
}

#[test]
fn every_kind_is_told_by_its_number() {
    check("tcp", Climbing, "TCP", "60,016 TCP sockets", "ss -s; ");
    check("closed", Climbing, "TCP", "20,008 TCP sockets", "ss -s; ");
    check("udp", Climbing, "UDP", "40,008 UDP sockets", "ss -s; ");
    check(
        "unix",
        Climbing,
        "UNIX-STREAM (in slabinfo: signal_cache)",
        "40,005 UNIX-STREAM sockets",
        "ss -s; ",
    );
    // By bytes: no file tells the number of messages.
    check("unread", Climbing, "skbuff_head_cache", "26.4 MiB of unread messages", "ss -anmpH");
    check("netlink", Climbing, "sock_inode_cache", "30,006 NETLINK sockets", "ss -s; ");
    check("packet", Climbing, "sock_inode_cache", "15,003 PACKET sockets", "ss -s; ");
    check("pipe", Climbing, "filp", "60,012 ends of pipes", "ls $p/fd");
    check("eventfd", Climbing, "filp", "60,012 eventfds", "ls $p/fd");
    check("epoll", Climbing, "filp", "45,009 epoll instances", "eventpoll");
    check("timerfd", Climbing, "filp", "60,012 timerfds", "ls $p/fd");
    check("signalfd", Climbing, "filp", "60,012 signalfds", "ls $p/fd");
    check("file", Climbing, "filp", "40,008 open files", "ls $p/fd");
    check("memfd", Climbing, "shmem_inode_cache", "40,008 memfds", "/memfd:");
    check("mapping", Climbing, "shmem_inode_cache", "60,156 mappings", "/proc/[0-9]*/maps");
    check("tmpfs", Climbing, "shmem_inode_cache", "40,002 files and folders", "df -i -t tmpfs");
    check("sysv", Climbing, "shmem_inode_cache", "20,000 segments of SysV shared memory", "ipcs -mp");
    check("thread", Climbing, "task_struct", "2,001 threads", "ps -eo nlwp");
    check("zombie", Climbing, "task_struct", "4,000 ended children", "^Z");
    check("timer", Climbing, "posix_timers_cache (in slabinfo: mnt_cache)", "40,000 POSIX timers", "/timers");
    check(
        "inotify",
        Climbing,
        "inotify_inode_mark (in slabinfo: sigqueue)",
        "60,000 inotify watches",
        "^inotify",
    );
    check("netns", Climbing, "net_namespace", "148 network namespaces", "lsns");
    check("mntns", Climbing, "mnt_cache", "1,503 mount namespaces", "lsns");
    check("lookup", NoProblem, "dentry", "", "");
    check("lock", Climbing, "file_lock_cache", "60,000 file locks", "lslocks");
    check("key", Climbing, "key_jar", "40,010 keys", "key-users");
}

/// One snapshot: of a cache with a tenth of all slabs, who holds as many objects as it has.
#[test]
fn one_snapshot_names_who_holds_a_large_cache() {
    #[track_caller]
    fn check(edit: fn(&mut State), who: &str, action: &str) {
        let mut now = snapshot("tcp", "after");
        edit(&mut now);
        let report = examine(&now, &Options::default()).expect("examined");
        let words: &[&str] = if who.is_empty() { &[] } else { &["TCP", who] };
        super::check_in("tcp", &report, super::Kind::Holders, words);
        check_action(&report, action, &report.verdict.text);
        assert!(who.is_empty() || report.verdict.text.contains("held by"), "{}", report.verdict.text);
    }
    /// Most of what is left is of the sockets.
    fn no_files(state: &mut State) {
        let freed = ["ext4_inode_cache", "buffer_head", "dentry", "radix_tree_node", "proc_inode_cache"];
        state.caches.retain(|cache| !freed.contains(&cache.name.as_str()));
        state.dump.meminfo.clear();
    }
    check(
        no_files,
        "4 processes python3 (most: pid 847, cgroup /leaks) hold about 60,016 TCP sockets",
        "ss -s",
    );
    let fewer = |state: &mut State| {
        no_files(state);
        state.dump.owners.holders.truncate(1);
    };
    check(fewer, "", "");
}

/// A merged cache whose growth nothing confirms has all its names, and no action of any of them.
#[test]
fn unconfirmed_names_are_all_said() {
    let (mut now, before) = (snapshot("timer", "after"), [snapshot("timer", "before")]);
    now.dump.owners.holders.clear();
    let report = examine(&now, &Options { since: &before, ..Options::default() }).expect("examined");
    let group = &report.measured.grown[0];
    assert_eq!(group.names, ["mnt_cache or posix_timers_cache (merged: mnt_cache in slabinfo)"]);
    assert!(group.what.is_none() && group.who.is_none() && group.ends.is_none(), "{group:?}");
    check_action(&report, "slablab leak --for 60s", &report.verdict.text);
}

/// A leak is not less of one on a machine with 10 GiB of names, if its holder is known; and growth is not
/// worth saying there if it is not, or if the time between the snapshots is not known.
#[test]
fn a_leak_beside_large_caches() {
    #[track_caller]
    fn check(kind: &str, edit: fn(&mut State), expected: bool) {
        let (mut now, mut before) = (snapshot(kind, "after"), snapshot(kind, "before"));
        for state in [&mut now, &mut before] {
            let large = state.caches.iter_mut().find(|cache| cache.name == "dentry").expect("a cache");
            large.slabs += 10 << 18;
            large.total_objects += (10 << 18) * large.objects_per_slab;
            large.active_objects += (10 << 18) * large.objects_per_slab;
            edit(state);
        }
        let since = [before];
        let report = examine(&now, &Options { since: &since, ..Options::default() }).expect("examined");
        let text = &report.verdict.text;
        assert_eq!(report.verdict.judgement == Climbing, expected, "{kind}: {text}");
        let has_finding = report.found.findings[0].text.contains("Who: ");
        let needed = report.actions.iter().any(|action| !action.optional && action.knob == "owner");
        assert_eq!((has_finding, needed), (expected, expected), "{kind}: {text}");
    }
    for kind in ["timer", "eventfd", "signalfd", "thread", "mntns", "lock", "key", "netns", "unread"] {
        check(kind, |_| {}, true);
    }
    check("timer", |state| state.dump.owners.holders.clear(), false);
    check("timer", |state| (state.taken_s, state.up_s) = (None, None), false);
    check("lookup", |_| {}, false);
}

/// What most of the TCP sockets are like, if so many are: rows of the table of holders.
#[test]
fn tcp_sockets_have_a_state_and_another_side() {
    #[track_caller]
    fn check(edit: fn(&mut Vec<Holder>), expected: &str) {
        let (mut now, before) = (snapshot("closed", "after"), [snapshot("closed", "before")]);
        edit(&mut now.dump.owners.holders);
        let report = examine(&now, &Options { since: &before, ..Options::default() }).expect("examined");
        let found = &report.found.findings[0].text;
        assert!(found.contains(expected), "expected {expected:?} in: {found}");
    }
    check(
        |_| {},
        "20,008 TCP sockets (20,000 in CLOSE-WAIT: the other side closed, this one did not; 10,000 ",
    );
    check(|holders| holders.retain(|holder| !holder.kind.starts_with("TCP ")), "20,008 TCP sockets");
    // Fewer are no word on most of them.
    fn fewer(holders: &mut [Holder]) {
        holders.iter_mut().filter(|holder| holder.kind == "TCP state").for_each(|holder| holder.count = 7000);
        holders.iter_mut().filter(|holder| holder.kind == "TCP peer").for_each(|holder| holder.count = 9000);
    }
    check(|holders| fewer(holders), "20,008 TCP sockets (9,000 to 127.0.0.1:");
}

/// Unread messages are of a group by their bytes: not if these are far fewer or far more, or of another
/// group.
#[test]
fn unread_messages_are_told_by_their_bytes() {
    #[track_caller]
    fn check(kind: &str, bytes: u64, expected: bool) {
        let (mut now, before) = (snapshot(kind, "after"), [snapshot(kind, "before")]);
        let holders = &mut now.dump.owners.holders;
        holders.retain(|holder| holder.kind != "unread");
        holders.push(Holder {
            pid: 7,
            kind: "unread".into(),
            count: bytes,
            cgroup: "/".into(),
            comm: "reader".into(),
        });
        let report = examine(&now, &Options { since: &before, ..Options::default() }).expect("examined");
        let is_said = report.verdict.text.contains("held by reader (pid 7)");
        assert_eq!(is_said, expected, "{kind}, {bytes} bytes: {}", report.verdict.text);
    }
    // The group grew by 26.4 MiB.
    check("unread", 27 << 20, true);
    check("unread", 32 << 20, true);
    check("unread", 15 << 20, false);
    check("unread", 40 << 20, false);
    // Sockets of netlink grew by 96.2 MiB and have no unread messages.
    check("netlink", 96 << 20, false);
}

/// Without the table of holders, as in a support bundle, what a `struct file` keeps is held all the same, and
/// inodes of /proc neither lead nor absolve.
#[test]
fn files_hold_without_a_table() {
    for (kind, lead) in
        [("signalfd", "filp"), ("file", "filp"), ("eventfd", "filp"), ("netlink", "sock_inode_cache")]
    {
        let (mut now, before) = (snapshot(kind, "after"), [snapshot(kind, "before")]);
        now.dump.owners.holders.clear();
        let report = examine(&now, &Options { since: &before, ..Options::default() }).expect("examined");
        let held = report.measured.grown.iter().find(|group| !group.benign).expect("what is held");
        assert_eq!((held.names[0].as_str(), &held.who), (lead, &None), "{kind}");
        assert!(
            report.measured.grown.iter().all(|group| group.names[0] != "proc_inode_cache" || group.benign),
            "{kind}"
        );
    }
}
