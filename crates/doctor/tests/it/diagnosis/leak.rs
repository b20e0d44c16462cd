//! A made leak: 200,000 UNIX sockets that 16 processes open and keep, before and after.

use super::{Kind, cache, check_in, dump};
use slablab_doctor::act::verdict::Judgement;
use slablab_doctor::measure::SortKey;
use slablab_doctor::measure::reclaim::Reclaim;
use slablab_doctor::output::{Shown, doctor_answer};
use slablab_doctor::state::State;
use slablab_doctor::{Options, Report, examine};
use std::path::Path;

fn leak(name: &str) -> State {
    super::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/leak/{name}.tar.xz")))
}

const SHOWN: Shown = Shown { sort: SortKey::Growth, lines: 15, aliases: false, bytes: false };

/// Text has all of `words`, in this order, wherever its lines are broken: a line with a path in it is
/// broken by the length of the path.
#[track_caller]
fn check_order(text: &str, words: &[&str]) {
    let unbroken = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rest = &unbroken[..];
    for word in words {
        let at = rest.find(word).unwrap_or_else(|| panic!("no {word:?} in {rest}"));
        rest = &rest[at + word.len()..];
    }
}

fn since<'a>(now: &'a State, since: &'a [State]) -> Report<'a> {
    examine(now, &Options { since, ..Options::default() }).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_leak_leads_with_its_names_and_who_holds_it() {
    let (before, after) = ([leak("before")], leak("after"));
    let report = since(&after, &before);
    assert_eq!(report.verdict.judgement, Judgement::Climbing);
    assert_eq!(report.found.findings[0].kind, Kind::Growth);
    let first = &report.found.findings[0].text;
    check_order(
        first,
        &["sock_inode_cache", "grew together, by 19", "objects each", "no shrinker frees them"],
    );
    // Slabinfo has the name signal_cache alone; the sockets' inodes say which of the merged names grew.
    assert!(first.contains("UNIX or UNIX-STREAM (in slabinfo: signal_cache)"), "{first}");
    check_order(first, &["Who: 16 processes python3", "cgroup /session-server", "about 200,0", "sockets"]);
    let action = &report.actions[0];
    assert!(action.knob == "owner" && action.command.starts_with("ss -s"), "{action:?}");
    assert!(action.saves.1 > 400 << 20, "{action:?}");
    let charged = &report.measured.charged[0];
    assert!(charged.name == "/session-server" && charged.growth.is_some_and(|bytes| bytes > 400 << 20));

    let answer = doctor_answer(&report, &SHOWN);
    let text = answer.text(false);
    assert!(text.starts_with("Climbing and not reclaimable: "), "{text}");
    check_order(
        &text,
        &[
            "Climbing",
            "after.tar.xz: Linux 6.18",
            "Findings",
            "sock_inode_cache",
            "ss -s",
            "Cgroup",
            "Cache",
            "SUnreclaim",
        ],
    );
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let has_no_rate = joined.contains("too short a time for growth an hour");
    assert!(!joined.contains("iB an hour") && has_no_rate, "{text}");
    let page = answer.page("slablab doctor");
    check_order(&page, &["<h1>", "Climbing", "Grown", "SUnreclaim", "<h2>Growth", "<h2>Findings"]);
    let json = answer.json();
    assert_eq!(json["verdict"]["kind"], "climbing");
    assert_eq!(json["growth"]["groups"][0]["caches"][0]["cache"], "sock_inode_cache");
    assert!(json["growth"]["total"]["bytes_per_hour"].is_null());
}

/// The inodes of open sockets count as `SReclaimable`, and no shrinker frees them.
#[test]
fn held_inodes_are_not_saved_by_drop_caches() {
    let after = leak("after");
    let report = super::report(&after);
    let line =
        |name: &str| report.measured.lines.iter().find(|line| line.cache.name == name).expect("a cache");
    for (name, expected) in [
        ("sock_inode_cache", Reclaim::Holder),
        ("dentry", Reclaim::Shrinker),
        ("buffer_head", Reclaim::PageCache),
        ("lsm_inode_cache", Reclaim::WithInodes),
        ("filp", Reclaim::No),
    ] {
        assert_eq!(line(name).reclaim, expected, "{name}");
    }
    let saves = report.actions.iter().find(|action| action.command.ends_with("3 > /proc/sys/vm/drop_caches"));
    let saves = saves.expect("offered").saves.1;
    let reclaimable =
        report.measured.meminfo.as_ref().and_then(|meminfo| meminfo.reclaimable).expect("known");
    let held: u64 = report
        .measured
        .lines
        .iter()
        .filter(|line| line.reclaim == Reclaim::Holder)
        .map(|line| line.split.bytes)
        .sum();
    assert!(held >= line("sock_inode_cache").split.bytes && held > 100 << 20);
    assert_eq!(saves, (reclaimable - held) as i64);
    // Without sysfs, the data about caches says it.
    let mut bare = leak("after");
    bare.caches.iter_mut().for_each(|cache| cache.attrs = None);
    let report = super::report(&bare);
    let sockets =
        report.measured.lines.iter().find(|line| line.cache.name == "sock_inode_cache").expect("there");
    assert_eq!(sockets.reclaim, Reclaim::Holder);
}

/// What is closed again, and snapshots in any order.
#[test]
fn snapshots_are_sorted_by_time() {
    let (before, after) = ([leak("before")], [leak("after")]);
    let forwards = since(&after[0], &before);
    let backwards = since(&before[0], &after);
    assert_eq!(backwards.measured.state.path, after[0].path, "the newest is examined");
    assert_eq!(backwards.found.findings, forwards.found.findings);
    let mut later = leak("before");
    later.up_s = after[0].up_s.map(|up| up + 3600.0);
    let over = since(&later, &after);
    assert_eq!(over.verdict.judgement, Judgement::Steady, "{}", over.verdict.text);
    assert!(over.verdict.text.contains("shrank"), "{}", over.verdict.text);
}

/// What is not of one machine, kernel and boot is refused by name; --force compares it.
#[test]
fn what_does_not_belong_together_is_refused() {
    #[track_caller]
    fn check(edit: fn(&mut State), words: &[&str]) {
        let mut other = leak("before");
        edit(&mut other);
        let (now, since) = (leak("after"), [other]);
        let error = examine(&now, &Options { since: &since, ..Options::default() });
        let Err(error) = error.map(|_| ()) else {
            assert!(words.is_empty(), "not refused: {words:?}");
            return;
        };
        for word in words.iter().chain(&["before.tar.xz", "after.tar.xz", "--force"]) {
            assert!(error.to_string().contains(word), "no {word:?} in {error}");
        }
        examine(&now, &Options { since: &since, force: true, ..Options::default() }).expect("forced");
    }
    check(|_| {}, &[]);
    check(|state| state.dump.release = Some("6.1.0-50-amd64".into()), &["another kernel, 6.1.0-50-amd64"]);
    check(|state| state.dump.boot_id = Some("1-2".into()), &["another boot, 1-2; expected "]);
    check(|state| state.dump.host = Some("elsewhere".into()), &["another machine, elsewhere"]);
    check(|state| state.dump.arch = Some("aarch64".into()), &["another architecture, aarch64"]);
    check(
        |state| {
            let cpus = state.cpus.as_mut().expect("known");
            cpus.present += 2;
        },
        &["another number of CPUs, 4; expected 2"],
    );
    // Without an id, the clock less the time up.
    check(
        |state| {
            state.dump.boot_id = None;
            state.taken_s = state.taken_s.map(|taken| taken - 86_400);
        },
        &["another boot, booted 1"],
    );
    check(|state| state.dump.boot_id = None, &[]);
}

/// A cache of unused names and inodes that grew is benign; equal growth joins caches, unequal growth does
/// not.
#[test]
fn benign_growth_and_joined_caches() {
    let before = [dump("plain before")];
    let mut now = dump("plain before");
    let (up, taken) = (now.up_s, now.taken_s);
    (now.up_s, now.taken_s) = (up.map(|up| up + 7200.0), taken.map(|taken| taken + 7200));
    for (name, objects) in [("dentry", 210_000), ("proc_inode_cache", 209_900), ("kmalloc-64", 150_000)] {
        let cache = cache(&mut now, name);
        cache.active_objects += objects;
        cache.total_objects += objects;
        cache.slabs += objects.div_ceil(cache.objects_per_slab);
    }
    let options = Options { since: &before, hours: Some(2.0), ..Options::default() };
    let report = examine(&now, &options).expect("examined");
    let joined: Vec<&[String]> = report.measured.grown.iter().map(|group| &group.names[..]).collect();
    assert_eq!(joined, [&["kmalloc-64"][..], &["dentry", "proc_inode_cache"]]);
    assert_eq!(report.measured.grown.iter().map(|group| group.benign).collect::<Vec<_>>(), [false, true]);
    assert_eq!(report.verdict.judgement, Judgement::Climbing);
    check_in("grown", &report, Kind::CacheGrowth, &["dentry", "210,000 objects each", "frees unused ones"]);
    check_in("grown", &report, Kind::Growth, &["kmalloc-64 grew by", "an hour", "no shrinker"]);

    let quiet = dump("plain before");
    cache(&mut now, "kmalloc-64")
        .clone_from(&quiet.caches.iter().find(|cache| cache.name == "kmalloc-64").expect("there").clone());
    let report = examine(&now, &options).expect("examined");
    assert_eq!(report.verdict.judgement, Judgement::NoProblem, "{}", report.verdict.text);
}

/// Curves of several snapshots: what rises each time is steady, also where too little time passed for a rate.
#[test]
fn curves_over_several_snapshots() {
    let states: Vec<State> = [0u32, 1, 2, 3]
        .map(|at| {
            let mut state = leak("before");
            state.up_s = state.up_s.map(|up| up + f64::from(at) * 20.0);
            let cache = cache(&mut state, "kmalloc-64");
            cache.slabs += 10_000 * u64::from(at);
            cache.active_objects += 640_000 * u64::from(at);
            cache.total_objects += 640_000 * u64::from(at);
            state
        })
        .into();
    let (now, since) = states.split_last().expect("four");
    let report = examine(now, &Options { since, ..Options::default() }).expect("examined");
    check_in("curves", &report, Kind::Leak, &["possibly a leak, more in each of 4 snapshots", "in 60 s"]);
    assert_eq!(report.measured.grown[0].steady, Some(true));
    let answer = doctor_answer(&report, &SHOWN);
    let text = answer.text(false);
    check_order(&text, &["Slab memory, KiB", "0 s", "20 s", "40 s", "60 s", "kmalloc-64", "steady growth"]);
    assert!(answer.page("slablab doctor").contains("in each snapshot"));
}
