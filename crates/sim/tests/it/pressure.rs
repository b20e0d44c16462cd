//! Scripts of page accesses on the simulated kernel: faults and residency follow from the accesses, every
//! frame is accounted for, and the ends of memory are results.

use crate::machine::costs;
use slablab_model::{Hardware, MachineSpec, Timed};
use slablab_sim::kernel::{WaitQueue, Waiting};
use slablab_sim::memory::{Guest, Recorded, Unused, views::Snapshot, with_memory};
use slablab_sim::programs::script::{Answer, policy_for, run};
use slablab_sim::setup::{Boot, Setup};
use slablab_sim::tally::Failed;
use slablab_slabs::Preset;
use slablab_trace::script::Script;
use slablab_vm::mm::Rules;
use slablab_vm::{
    Ask, Enter, Frame, Freed, Host, Preset as VmPreset, Replacement, Sizes, State, Throttle, Vm,
};
use std::sync::Arc;

/// An eighth of uniswap: anonymous memory larger than the machine's.
const UNISWAP: &str = "seed 31\nanon a 20\nphase fill\nacc x1 a seq m w\nphase read\nacc 2500 a uni m r\n\
                       phase write\nacc 2500 a uni m w\nphase seq\nrewind a\nacc x1 a seq m r\n";

/// A machine of one CPU and so many pages.
pub(crate) fn setup(pages: u64) -> Setup {
    let spec = MachineSpec { memoryless_nodes: false, ..MachineSpec::uniform(1, 1, pages << 12) };
    let hardware = Hardware { core: vec![0], llc: vec![0], socket: vec![0], costs: costs() };
    let preset = Preset::parse("slub@6.1").expect("a preset");
    Setup { spec, hardware, preset, boot: Boot::default(), placement: None }
}

pub(crate) fn script(text: &str) -> Arc<Script> {
    let mut load = |path: &str| Err(format!("no {path}"));
    Arc::new(Script::parse("test.t", text, &mut load).expect("a script"))
}

fn run_under(policy: Box<dyn Replacement>, guest: &Guest, text: &str) -> Result<Answer, Failed> {
    run(&setup(4_400), 1, guest, policy, Rules::of(6, 1, 0), &script(text))
}

pub(crate) fn run_text(vm: &str, guest: &Guest, text: &str) -> Result<Answer, Failed> {
    run_under(policy_for(&VmPreset::parse(vm).expect("a preset"), &script(text)), guest, text)
}

#[test]
fn faults_are_the_touches_of_pages_that_are_not_there() {
    for vm in ["vm@6.1", "vm@6.12", "vm@6.1,lru_gen", "vm@6.12,lru_gen"] {
        let guest = Guest { min_free_kib: Some(512), ..Guest::default() };
        let answer = run_text(vm, &guest, UNISWAP).expect("it ends");
        assert_eq!(answer, run_text(vm, &guest, UNISWAP).expect("it ends"), "{vm}: two runs differ");
        assert_eq!(answer.accesses, 2 * 5_120 + 2 * 2_500);
        let [record] = &answer.records[..] else { panic!("{vm}: one process, one record") };
        assert!(record.is_complete && answer.killed.is_empty());
        let [fill, read, write, seq] = &record.phases[..] else { panic!("{vm}: four phases") };
        // Each page is new once.
        assert_eq!((fill.usage.minor, fill.usage.major), (5_120, 0), "{vm}");
        for phase in [fill, read, write, seq] {
            let [absent, present, swapped] = phase.residency[0].1.counts();
            assert_eq!((absent, present + swapped), (0, 5_120), "{vm} {}", phase.label);
            assert!(present < 4_400 && swapped > 720, "{vm} {}: {present} {swapped}", phase.label);
        }
        for phase in [read, write, seq] {
            // Every major fault brings its page, and perhaps neighbours.
            let brought = phase.delta("pswpin");
            assert!(phase.usage.major <= brought, "{vm} {}: {brought}", phase.label);
            assert_eq!(phase.usage.read, 8 * brought, "{vm} {}", phase.label);
        }
        // Uniform accesses miss as often as pages are not there: a sixth to a third of 2,500.
        assert!((350..900).contains(&read.usage.major), "{vm}: {} major faults", read.usage.major);
    }
}

#[test]
fn a_process_is_killed_when_swap_is_full() {
    let guest = Guest { min_free_kib: Some(512), swap_pages: 256, ..Guest::default() };
    let answer = run_text("vm@6.1", &guest, UNISWAP).expect("a killed process is a result");
    let [killed] = &answer.killed[..] else { panic!("one process is killed: {:?}", answer.killed) };
    let [(_, resident, swapped, _)] = killed.processes[..] else { panic!("{killed:?}") };
    assert_eq!(swapped, 256, "{killed:?}");
    assert!(resident > 3_500 && killed.order == 0, "{killed:?}");
    assert!(!answer.records[0].is_complete && answer.records[0].phases.is_empty());
}

#[test]
fn a_process_is_killed_if_its_pages_are_younger_than_min_ttl() {
    let guest = Guest { min_free_kib: Some(512), ..Guest::default() };
    for (vm, expected) in [("vm@6.1,lru_gen", 0), ("vm@6.1,lru_gen,min_ttl_ms=3600000", 1)] {
        let answer = run_text(vm, &guest, UNISWAP).expect("a killed process is a result");
        assert_eq!(answer.killed.len(), expected, "{vm}: {:?}", answer.killed);
        for killed in &answer.killed {
            let [(_, resident, swapped, _)] = killed.processes[..] else { panic!("{killed:?}") };
            // kswapd kills it, with swap that is hardly used.
            assert!(resident > 3_000 && swapped < 1_000 && killed.order == 0, "{killed:?}");
        }
    }
}

/// A policy that never frees a page, and says that it will.
struct Hopeful;

impl Replacement for Hopeful {
    fn name(&self) -> String {
        "hopeful".into()
    }
    fn lists(&self, _zones: u16, _nodes: u16) -> u16 {
        0
    }
    fn enter(&self, _state: &mut State, _frame: Frame, _how: Enter, _shadow: Option<u32>) {}
    fn access(&self, _state: &mut State, _frame: Frame) {}
    fn leave(&self, _state: &mut State, _frame: Frame) {}
    fn evict(&self, _state: &mut State, _frame: Frame) -> Option<u32> {
        None
    }
    fn written(&self, _state: &mut State, _frame: Frame) {}
    fn direct(&self, _vm: &Vm, host: &dyn Host, _ask: &Ask) -> Freed {
        host.throttle(Throttle::NoProgress, 1_000_000);
        Freed { pages: 0, progress: true, page: None }
    }
    fn kswapd(&self, _vm: &Vm, _host: &dyn Host, _node: u16, _order: u8, _class: u8) {}
    fn sizes(&self, _state: &State) -> Sizes {
        Sizes::default()
    }
}

#[test]
fn reclaim_without_an_end_names_who_waits() {
    let guest = Guest { livelock_after: 1_000_000_000_000, ..Guest::default() };
    let failed = run_under(Box::new(Hopeful), &guest, UNISWAP).expect_err("no page is freed");
    let Failed::Livelock { seconds: 1, tasks } = &failed else { panic!("{failed}") };
    assert!(tasks.iter().any(|task| task.contains("for work, kswapd of node 0")), "{failed}");
}

#[test]
fn a_setting_that_is_not_modelled_has_its_line() {
    let text = "set /proc/sys/vm/swapines 1\n";
    let refused = run_text("vm@6.1", &Guest::default(), text).expect_err("there is no such setting");
    let said = refused.to_string();
    assert!(said.starts_with("test.t:1: /proc/sys/vm/swapines is not modelled"), "{said}");
    assert!(said.contains("/proc/sys/vm/swappiness"), "{said}");
}

#[test]
fn processes_wait_for_each_other() {
    let text = "spawn one one.t\nuntil one\nphase both\ngo one\njoin one\nphase after\n";
    let child = "anon b 1\nphase fill\nacc x1 b seq m w\nready\nphase touch\nacc x1 b seq m r\n";
    let mut load = |_: &str| Ok(child.to_string());
    let script = Arc::new(Script::parse("main.t", text, &mut load).expect("a script"));
    let vm = VmPreset::parse("vm@6.1").expect("a preset");
    let answer = run(&setup(4_400), 1, &Guest::default(), vm.policy(), Rules::of(6, 1, 0), &script);
    let answer = answer.expect("it ends");
    let labels = |at: usize| -> Vec<&str> {
        answer.records[at].phases.iter().map(|phase| phase.label.as_str()).collect()
    };
    assert_eq!(answer.records[1].process, "one");
    assert_eq!((labels(0), labels(1)), (vec!["both", "after"], vec!["fill", "touch"]));
    let [both, fill, touch] = [(0, 0), (1, 0), (1, 1)].map(|(record, at)| &answer.records[record].phases[at]);
    assert_eq!((fill.usage.minor, touch.usage.minor), (256, 0));
    // The child touches between the parent's `go` and `join`.
    assert!(both.uptime_ns >= touch.uptime_ns && fill.uptime_ns <= both.uptime_ns - both.elapsed_ns);
}

/// Pages that are free at the end of the first phase.
fn free_at_the_end(guest: &Guest, text: &str) -> u64 {
    let answer = run_text("vm@6.1", guest, text).expect("it ends");
    let of = |(name, value): &(&str, u64)| (*name == "nr_free_pages").then_some(*value);
    answer.records[0].phases[0].end.vmstat.iter().find_map(of).expect("a counter")
}

#[test]
fn the_start_is_as_the_guest_says() {
    let text = "phase a\nanon x 1\n";
    let guest = Guest { free_pages: Some(3_000), ..Guest::default() };
    assert_eq!(free_at_the_end(&guest, text), 3_000);
    // The program's pages come from the CPU's list, if they are there.
    let guest = Guest { locked: [50, 0], ..guest };
    assert!((2_937..=2_950).contains(&free_at_the_end(&guest, text)));
    let guest = Guest { cached_pages: 80, ..guest };
    assert_eq!(free_at_the_end(&guest, text), 3_000);
}

/// A sixteenth of slabfill: names, then anonymous memory that needs their pages, then the names again.
const SLABFILL: &str = "seed 101\nrecslab 1\nanon a 12\nphase stat\nstat /data/tree 50 50 1\n\
                        phase again\nstat /data/tree 50 50 1\nphase fill\nacc x1 a seq m w\nsleep 50\n\
                        phase random\nstatuni /data/tree 50 50 625\nphase freed\nfree a\n\
                        stat /data/tree 50 50 1\n";

#[test]
fn names_that_nobody_uses_make_room() {
    for vm in ["vm@6.1", "vm@6.12", "vm@6.1,lru_gen", "vm@6.12,lru_gen"] {
        let guest = Guest { min_free_kib: Some(512), free_pages: Some(3_000), ..Guest::default() };
        // Generations give a batch of pages for each share of the names: as a page costs them fewer names, a
        // program must want more memory until a share is a batch of 1,024 names.
        let (wanted, least) =
            if vm.ends_with("lru_gen") { ("anon a 32", 1_000) } else { ("anon a 12", 2_500) };
        let text = SLABFILL.replace("anon a 12", wanted);
        let answer = run_text(vm, &guest, &text).expect("it ends");
        assert_eq!(answer, run_text(vm, &guest, &text).expect("it ends"), "{vm}: two runs differ");
        let [stat, again, fill, random, freed] = &answer.records[0].phases[..] else { panic!("five phases") };
        // Each file and each directory has a dentry and an inode; the last slab has room left.
        let row = |phase: &slablab_sim::programs::script::Phase, name: &str| {
            let rows = phase.slabs.as_ref().expect("recslab 1");
            rows.iter().find(|row| row.name == name).expect("a cache with slabs").clone()
        };
        for name in ["dentry", "ext4_inode_cache"] {
            let [first, second] = [row(stat, name), row(again, name)];
            assert!((2_550..2_575).contains(&first.active), "{vm}: {first:?}");
            // Names that are cached allocate and read nothing.
            assert_eq!(first, second, "{vm}");
            let rest = row(fill, name);
            assert!(rest.active < first.active && rest.frames < first.frames, "{vm}: {rest:?}");
            // Pages come back with whole slabs alone.
            assert!(rest.frames * first.slabs == rest.slabs * first.frames, "{vm}: {rest:?}");
            assert!(row(freed, name).active >= 2_550, "{vm}: {name}");
        }
        // 13 inodes of 1,192 bytes are a slab: the program's cache, and not the kernel's of the same name.
        assert_eq!(row(stat, "ext4_inode_cache").slabs, 2_550_u64.div_ceil(13), "{vm}");
        // What security modules keep of an inode comes and goes with it; 128 or 46 of it are a slab.
        let objects = |phase, name| row(phase, name).active;
        let made = objects(again, "lsm_inode_cache");
        let rest = |name| objects(again, name) - objects(fill, name);
        assert!((2_550..2_600).contains(&made), "{vm}: {made}");
        assert!(
            rest("lsm_inode_cache").abs_diff(rest("ext4_inode_cache")) < 256,
            "{vm}: {rest:?}",
            rest = [rest("lsm_inode_cache"), rest("ext4_inode_cache"),]
        );
        assert_eq!(again.delta("pgpgin"), 0, "{vm}");
        // The inode table and a block of each directory, each once.
        assert_eq!(stat.delta("pgpgin"), 4 * (160 + 50), "{vm}");
        let fewer = |name| row(again, name).active - row(fill, name).active;
        let (gone, scanned) = (fewer("dentry") + fewer("ext4_inode_cache"), fill.delta("slabs_scanned"));
        // A referenced name is looked at twice.
        assert!(gone <= scanned && scanned > least, "{vm}: {gone} {scanned}");
        assert_eq!([stat.delta("slabs_scanned"), again.delta("slabs_scanned")], [0, 0], "{vm}");
        assert_eq!(random.counts, [625, 0, 625], "{vm}");
    }
}

#[test]
fn reclaim_looks_at_the_names_of_a_booted_machine() {
    let scanned = |names: Vec<Unused>| {
        let guest = Guest { min_free_kib: Some(512), names, ..Guest::default() };
        let answer = run_text("vm@6.1", &guest, UNISWAP).expect("it ends");
        answer.records[0].phases.iter().map(|phase| phase.delta("slabs_scanned")).collect::<Vec<_>>()
    };
    assert_eq!(scanned(Vec::new()), [0; 4]);
    // All pages of the fill were accessed, so that reclaim passes all lists, and with them all names; each
    // at most twice, as a name that is gone is not looked at.
    let unused = |once, again, recorded| Unused { of: "sb-proc", once, again, recorded };
    let phases = scanned(vec![unused(10, 20, Recorded::default())]);
    assert!(phases[0] >= 30 && phases.iter().sum::<u64>() <= 60, "{phases:?}");
    // A name that was looked up again is passed once more than one that was not.
    let [once, again] = [(30, 0), (0, 30)]
        .map(|(once, again)| scanned(vec![unused(once, again, Recorded::default())]).iter().sum::<u64>());
    assert!(once < again, "{once} {again}");
    // Names that are looked up around each phase are there again after reclaim freed them.
    let recorded = scanned(vec![unused(10, 20, Recorded { ends: 5, begins: 3, known: 4 })]);
    assert!(recorded.iter().sum::<u64>() > phases.iter().sum(), "{recorded:?} {phases:?}");
}

#[test]
fn the_program_of_a_script_locks_pages_of_its_own() {
    // 256 pages of an object in Zipf's order: a table of 3,072 bytes.
    let text = "anon a 1\nspawn one one.t\nuntil one\nphase zipf\nacc 1 a zipf:100 m w\nacc 1 a zipf:50 m w\n\
                phase end\ngo one\njoin one\n";
    let mut load = |_: &str| Ok("anon b 1\nready\n".to_string());
    let script = Arc::new(Script::parse("main.t", text, &mut load).expect("a script"));
    // Pages that processes have: allocated, and not freed.
    let pages = |locked| {
        let vm = VmPreset::parse("vm@6.1").expect("a preset");
        let guest = Guest { locked, ..Guest::default() };
        let answer =
            run(&setup(4_400), 1, &guest, vm.policy(), Rules::of(6, 1, 0), &script).expect("it ends");
        let [zipf, end] = &answer.records[0].phases[..] else { panic!("two phases") };
        let value = |at: &Snapshot, counter: &str| {
            at.vmstat.iter().find(|(name, _)| *name == counter).expect("a counter").1
        };
        [&zipf.begin, &zipf.end, &end.end].map(|at| value(at, "pgalloc") - value(at, "pgfree"))
    };
    let (with, without) = (pages([50, 30]), pages([0, 0]));
    // Both processes' pages, then the table too, and in the end no child's.
    assert_eq!([0, 1, 2].map(|at| with[at] - without[at]), [80, 81, 51]);
}

#[test]
fn blocks_of_pages_are_made_or_the_process_is_killed() {
    let text = "phase m\nmsg 80 4040\nmsgfree 1\nphase p\npipes 40 512\npipesfree\nphase many\n\
                pipes 700 512\n";
    let guest = Guest { min_free_kib: Some(512), ..Guest::default() };
    let answer = run_text("vm@6.1", &guest, text).expect("out of memory is a result");
    let [messages, pipes] = &answer.records[0].phases[..] else { panic!("the third phase has no end") };
    assert_eq!((messages.counts, pipes.counts), ([90, 0, 0], [40, 0, 0]));
    // 700 blocks of 8 pages are more than the machine has.
    let [killed] = &answer.killed[..] else { panic!("one process was killed") };
    assert_eq!(killed.order, 3);
}

#[test]
fn every_legal_line_runs() {
    let guest = Guest { min_free_kib: Some(512), ..Guest::default() };
    let text = "anon a 1\nshm s 1\nphase fill\nacc x1 a seq m w\nacc x1 s seq s w\nphase calls\nacc 5 a seq s r\n\
                rewind s\nacc 300 s stride:300 s r\nfsync a\npunch a 4 4\nphase gone\nunmap a\nacc 3 a seq m r\n\
                free s\nrewind s\nphase end\n";
    let answer = run_text("vm@6.1", &guest, text).expect("it ends");
    let [fill, calls, gone, _] = &answer.records[0].phases[..] else { panic!("four phases") };
    // Anonymous memory has no descriptor: 5 calls fail; pages 256 to 299 of the tmpfs file do not exist.
    assert_eq!((fill.counts, calls.counts), ([0; 3], [0, 5 + 44, 0]));
    assert_eq!(calls.residency[0].1.counts(), [0, 256, 0]);
    // Mapped anew, the pages of anonymous memory are gone.
    assert_eq!(gone.residency[0].1.counts(), [253, 3, 0]);
    let beyond = "anon a 1\nacc 10 a seq m r\nacc 300 a stride:300 m r\n";
    let said = run_text("vm@6.1", &guest, beyond).expect_err("there are no such pages").to_string();
    assert!(said.starts_with("test.t:3: page 256 is behind the end of a, which has 256 pages"), "{said}");
}

/// Pages that were written have a buffer head each, slab memory that goes with them; read ones have none.
#[test]
fn written_pages_have_buffer_heads() {
    let text = "file r 4\nfile w 4\nrecslab 1\nphase read\nacc x1 r seq s r\nphase write\n\
                acc x1 w seq s w\nfsync w\nphase drop\ndrop\n";
    let answer = run_text("vm@6.1", &Guest::default(), text).expect("it ends");
    let slabs = |phase: usize| {
        let rows = answer.records[0].phases[phase].slabs.as_ref().expect("the script records slabs");
        rows.iter().find(|row| row.name == "buffer_head").map_or(0, |row| row.slabs)
    };
    // A slab is a page of 39 objects of 104 bytes.
    assert_eq!([slabs(0), slabs(1)], [0, 1024_u64.div_ceil(39)]);
    // SLUB keeps some that are empty: of the node, and of the CPU.
    assert!(slabs(2) <= 11, "{}", slabs(2));
}

/// A script of processes by their files.
fn family(files: &[(&str, &str)]) -> Arc<Script> {
    let mut load = |path: &str| {
        let file = files.iter().find(|(name, _)| *name == path);
        file.map(|(_, text)| (*text).to_string()).ok_or_else(|| format!("no {path}"))
    };
    Arc::new(Script::parse("main.t", files[0].1, &mut load).expect("a script"))
}

/// Processes that wait for each other end the run when the last of them begins to wait, although the timers
/// of daemons go on.
#[test]
fn processes_that_wait_for_each_other_end_the_run() {
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        let (policy, rules) = (VmPreset::parse("vm@6.1").expect("a preset").policy(), Rules::of(6, 1, 0));
        let found = run(&setup(4_400), 1, &Guest::default(), policy, rules, &family(files));
        match found {
            Err(Failed::Stuck(tasks)) => assert_eq!(tasks, expected, "{files:?}"),
            other => panic!("{files:?}: {other:?}"),
        }
    };
    let child = ("w.t", "anon a 1\nready\nacc x1 a seq m w\n");
    check(
        &[("main.t", "spawn w w.t\nuntil w\nphase b\njoin w\ngo w\n"), child],
        &[
            "the script's first process: at `join`, for the end of a child",
            "w: at `ready`, for `go` of its parent",
        ],
    );
    check(
        &[("main.t", "spawn w w.t\nuntil w\nuntil w\n"), child],
        &[
            "the script's first process: at `until`, for `ready` of a child",
            "w: at `ready`, for `go` of its parent",
        ],
    );
}

/// A program that waits for what no task does, and one that sleeps for longer than the watch waits.
#[test]
fn a_program_that_nothing_wakes_is_found_in_simulated_time() {
    let run = |sleeps: bool| {
        let (policy, rules) = (VmPreset::parse("vm@6.1").expect("a preset").policy(), Rules::of(6, 1, 0));
        with_memory(&setup(4_400), 1, &Guest::default(), policy, rules, move |memory| {
            let of_task = memory.clone();
            memory.kernel.start(memory.kernel.new_process(), None, move |task| {
                task.sleep(7_200_000_000_000_000);
                if !sleeps {
                    WaitQueue::default().wait(task, Waiting { what: "for nothing", number: 7 });
                }
                of_task.stop();
            });
            memory.kernel.run().map(|()| Timed::latest() / 1_000_000_000_000)
        })
    };
    assert_eq!(run(true), Ok(7_200));
    match run(false) {
        Err(Failed::Stuck(tasks)) => {
            assert!(tasks.len() == 1 && tasks[0].ends_with("for nothing 7"), "{tasks:?}");
        }
        other => panic!("{other:?}"),
    }
}
