//! What the user is told to do, by kernel.

use super::{as_it_is, attrs, cache, dump, report};
use slablab_doctor::act::knobs::{KNOBS, Way, knobs};
use slablab_doctor::measure::rounding::Rounding;
use slablab_doctor::state::State;
use slablab_doctor::{Options, examine};
use slablab_slabs::Release;
use slablab_trace::Losses;

/// The first action with this knob is this command; none if the command is empty. Whatever is offered can be
/// applied: the kernel has the knob, it can be turned, the effect is a range, basis and cost are said.
#[track_caller]
fn check(knob: &str, name: &str, edit: fn(&mut State), command: &str) {
    let mut state = dump(name);
    edit(&mut state);
    let report = report(&state);
    let there: Vec<_> = knobs(&state).filter(|knob| knob.way != Way::ReadOnly).collect();
    for action in &report.actions {
        let shown = format!("{name}: {action:?}");
        assert!(there.iter().any(|knob| knob.key == action.knob && knob.way == action.way), "{shown}");
        assert!(action.saves.0 <= action.saves.1 && action.saves != (0, 0), "{shown}");
        assert!(!action.basis.is_empty() && !action.cost.is_empty(), "{shown}");
        for kind in &action.because {
            assert!(report.found.findings.iter().any(|finding| finding.kind == *kind), "{shown}");
        }
        assert!(!action.because.is_empty(), "{shown}");
    }
    let offered = report.actions.iter().find(|action| action.knob == knob);
    assert_eq!(offered.map_or("", |action| action.command.as_str()), command, "{knob} on {name}");
}

fn on(state: &mut State, major: u16, minor: u16) {
    state.release = Some(Release::new(major, minor, 0));
}

#[test]
fn actions() {
    check("shrink", "plain", as_it_is, "echo 1 > /sys/kernel/slab/shmem_inode_cache/shrink");
    check("shrink", "memoryless", as_it_is, "");
    let odd = |state: &mut State| attrs(state, "shmem_inode_cache").name = "it's (odd)".into();
    check("shrink", "plain", odd, "echo 1 > '/sys/kernel/slab/it'\\''s (odd)/shrink'");

    let merged = |state: &mut State| {
        let attrs = attrs(state, "shmem_inode_cache");
        (attrs.name, attrs.aliases) = (":a-0000776".into(), vec!["shmem_inode_cache".into()]);
    };
    check("shrink", "plain", merged, "echo 1 > /sys/kernel/slab/shmem_inode_cache/shrink");
    let nameless = |state: &mut State| attrs(state, "shmem_inode_cache").name = ":a-0000776".into();
    check("shrink", "plain", nameless, "echo 1 > /sys/kernel/slab/:a-0000776/shrink");

    let outside = |state: &mut State| attrs(state, "shmem_inode_cache").name = "..".into();
    check("shrink", "plain", outside, "echo 1 > /sys/kernel/slab/dentry/shrink");
    let link_outside = |state: &mut State| {
        cache(state, "shmem_inode_cache").name = "../../../etc".into();
        let attrs = attrs(state, "../../../etc");
        (attrs.name, attrs.aliases) = (":a-0000776".into(), vec!["../../../etc".into()]);
    };
    check("shrink", "plain", link_outside, "echo 1 > /sys/kernel/slab/:a-0000776/shrink");

    let keeps = |state: &mut State| attrs(state, "shmem_inode_cache").min_partial = Some(400);
    check("min_partial", "plain", keeps, "echo 5 > /sys/kernel/slab/shmem_inode_cache/min_partial");
    check("min_partial", "plain", as_it_is, "");

    check("cpu_partial", "160 CPUs", as_it_is, "echo 0 > /sys/kernel/slab/kmalloc-cg-512/cpu_partial");
    check("cpu_partial", "160 CPUs", |state| on(state, 7, 0), "");
    check("cpu_partial", "160 CPUs", |state| on(state, 3, 0), "");
    check("cpu_partial", "plain", as_it_is, "");

    check("drop_caches", "host", as_it_is, "sync; echo 3 > /proc/sys/vm/drop_caches");
    let no_pages = |state: &mut State| {
        state.caches.retain(|cache| !matches!(cache.name.as_str(), "buffer_head" | "radix_tree_node"));
    };
    check("drop_caches", "host", no_pages, "sync; echo 2 > /proc/sys/vm/drop_caches");
    check("drop_caches", "160 CPUs", as_it_is, "");
    check("cache_pressure", "host", as_it_is, "sysctl vm.vfs_cache_pressure=200");
    check("cache_pressure", "160 CPUs", as_it_is, "");

    check("max_order", "160 CPUs", as_it_is, "slub_max_order=0");
    check("max_order", "160 CPUs", |state| on(state, 6, 9), "slab_max_order=0");
    check("max_order", "160 CPUs", |state| state.dump.cmdline = Some("quiet slub_max_order=0".into()), "");
    check("max_order", "plain", as_it_is, "");

    check("debug", "debugging", as_it_is, "without slub_debug=FZPU");
    check("debug", "debugging", |state| state.dump.cmdline = None, "slub_debug=-");
    let hostile = |state: &mut State| state.dump.cmdline = Some("slub_debug=F;reboot;'\u{1b}".into());
    check("debug", "debugging", hostile, r"without $'slub_debug=F;reboot;\'\x1b'");
    check("debug", "plain", as_it_is, "");

    check("nokmem", "160 CPUs", as_it_is, "cgroup.memory=nokmem");
    check("nokmem", "160 CPUs", |state| on(state, 4, 4), "");
    check("nokmem", "host", as_it_is, "");

    check("nomerge", "host", as_it_is, "slab_nomerge");
    check("nomerge", "host", |state| on(state, 3, 17), "slub_nomerge");
    check("nomerge", "debugging", as_it_is, "");
}

/// Orders can be written until 5.8.
#[test]
fn orders_by_kernel() {
    fn tails(state: &mut State) {
        on(state, 4, 18);
        let dentry = cache(state, "dentry");
        (dentry.size, dentry.objects_per_slab, dentry.order) = (1400, 2, 0);
        dentry.total_objects = 2 * dentry.slabs;
    }
    // 5 of 1400 leave 1192 of 8192, 11 leave 984 of 16384, 23 leave 568 of 32768.
    check("order", "plain", tails, "echo 3 > /sys/kernel/slab/dentry/order");
    check(
        "order",
        "plain",
        |state| {
            tails(state);
            state.dump.cmdline = Some("slub_max_order=1".into());
        },
        "echo 1 > /sys/kernel/slab/dentry/order",
    );
    check(
        "order",
        "plain",
        |state| {
            tails(state);
            on(state, 5, 9);
        },
        "",
    );
    check("order", "plain", |state| on(state, 4, 18), "");
}

/// SLAB has other knobs than SLUB.
#[test]
fn tunables_of_slab() {
    fn slab(state: &mut State) {
        on(state, 5, 10);
        for row in &mut state.dump.slabinfo.as_mut().unwrap().rows {
            (row.limit, row.batchcount, row.sharedfactor) = (120, 60, 8);
        }
        state.caches.iter_mut().for_each(|cache| cache.attrs = None);
    }
    super::check(super::Kind::Parked, "160 CPUs", slab, &["in arrays;"]);
    super::check(super::Kind::Parked, "160 CPUs", |state| on(state, 7, 0), &["in sheaves;"]);
    check("tunables", "160 CPUs", slab, "echo 'kmalloc-64k 60 30 8' > /proc/slabinfo");
    let hostile = |state: &mut State| {
        slab(state);
        let name = "x'; reboot; '\u{1b}";
        cache(state, "kmalloc-64k").name = name.into();
        let rows = &mut state.dump.slabinfo.as_mut().unwrap().rows;
        rows.iter_mut().find(|row| row.name == "kmalloc-64k").unwrap().name = name.into();
    };
    check("tunables", "160 CPUs", hostile, r"echo $'x\'; reboot; \'\x1b 60 30 8' > /proc/slabinfo");
    check("max_order", "160 CPUs", slab, "");
    check("shrink", "160 CPUs", slab, "");
    check("tunables", "160 CPUs", as_it_is, "");
}

/// Nothing is advised where the kernel is not known.
#[test]
fn unknown_kernels_get_no_advice() {
    for name in ["160 CPUs", "host", "debugging"] {
        let mut state = dump(name);
        state.release = None;
        assert_eq!(report(&state).actions, [], "{name}");
    }
}

/// The table of knobs, around the releases in which they change.
#[test]
fn knobs_by_release() {
    #[track_caller]
    fn check(release: (u16, u16, u16), key: &str, expected: Option<(&str, Way)>) {
        let mut state = dump("plain");
        state.release = Some(Release::new(release.0, release.1, release.2));
        let found: Vec<_> =
            knobs(&state).filter(|knob| knob.key == key).map(|knob| (knob.name, knob.way)).collect();
        assert_eq!(found.first().copied(), expected, "{key} of {release:?}");
        assert!(found.len() <= 1, "{key} of {release:?} is there twice: {found:?}");
    }
    check((5, 8, 0), "order", Some(("order", Way::PerCache)));
    check((5, 9, 0), "order", Some(("order", Way::ReadOnly)));
    check((2, 6, 25), "max_order", None);
    check((2, 6, 26), "max_order", Some(("slub_max_order", Way::Boot)));
    check((6, 8, 0), "max_order", Some(("slub_max_order", Way::Boot)));
    check((6, 9, 0), "max_order", Some(("slab_max_order", Way::Boot)));
    check((6, 19, 0), "cpu_partial", Some(("cpu_partial", Way::PerCache)));
    check((7, 0, 0), "cpu_partial", None);
    check((6, 17, 0), "sheaf_capacity", None);
    check((6, 18, 0), "sheaf_capacity", Some(("sheaf_capacity", Way::ReadOnly)));
    check((7, 1, 0), "min_partial", Some(("min_partial", Way::PerCache)));
    check((3, 17, 0), "nomerge", Some(("slub_nomerge", Way::Boot)));
    check((3, 18, 0), "nomerge", Some(("slab_nomerge", Way::Boot)));
    check((6, 1, 0), "tunables", None);
    for knob in KNOBS {
        assert!(knob.until.is_none_or(|until| knob.since < until), "{knob:?}");
    }
}

/// Recorded kmallocs of 520 bytes in objects of 1,024.
#[test]
fn rounding() {
    let rounding = Rounding {
        path: "hackbench.perf.data".into(),
        objects: 36_000,
        requested: 36_000 * 520,
        allocated: 36_000 * 1024,
        classes: [(1024, (36_000, 36_000 * 520))].into(),
        losses: Losses::default(),
    };
    let state = dump("plain");
    let report = examine(&state, &Options { rounding: Some(&rounding), ..Options::default() }).unwrap();
    super::check_in(
        "plain",
        &report,
        super::Kind::Rounding,
        &["asked for 17.9 MiB and got 35.2 MiB, 17.3 MiB more (49 %)", "36000 objects of 1024 bytes"],
    );
    let tight = Rounding { requested: rounding.allocated, ..rounding };
    let report = examine(&state, &Options { rounding: Some(&tight), ..Options::default() }).unwrap();
    super::check_in("plain", &report, super::Kind::Rounding, &[]);
}
