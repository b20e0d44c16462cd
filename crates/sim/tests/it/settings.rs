//! Files of /proc/sys/vm and /sys that a script writes: what a value changes, and what is refused.

use crate::pressure::run_text;
use slablab_sim::memory::Guest;
use slablab_sim::programs::script::Phase;

/// The last phase of a run on 4,400 pages.
#[track_caller]
fn last(vm: &str, text: &str) -> Phase {
    let guest = Guest { min_free_kib: Some(512), ..Guest::default() };
    let answer = run_text(vm, &guest, text).unwrap_or_else(|failed| panic!("{text}: {failed}"));
    assert!(answer.records[0].is_complete && answer.killed.is_empty(), "{text}");
    answer.records.into_iter().next().and_then(|record| record.phases.into_iter().last()).expect("a phase")
}

/// Requests of the data disk in the last phase.
fn reads(phase: &Phase) -> u64 {
    let of =
        |disks: &[(&str, [u64; 17])]| disks.iter().find(|(name, _)| *name == "vda").expect("a disk").1[0];
    of(&phase.end.disks) - of(&phase.begin.disks)
}

fn at_end(phase: &Phase, name: &str) -> u64 {
    phase.end.vmstat.iter().find(|(of, _)| *of == name).expect(name).1
}

/// A file keeps the read-ahead of the time when it was opened.
#[test]
fn files_are_read_ahead_as_set() {
    let of = |before: &str, after: &str| {
        reads(&last("vm@6.1", &format!("{before}\nfile f 4\n{after}\nphase read\nacc x1 f seq s r\n")))
    };
    let set = |kib: &str| format!("set /sys/block/vda/queue/read_ahead_kb {kib}");
    // 1,024 pages: windows of 32 pages, of 4, and none. The first windows are smaller.
    let [usual, small, none] = [of("", ""), of(&set("16"), ""), of(&set("0"), "")];
    assert!((32..40).contains(&usual), "{usual}");
    assert!((256..260).contains(&small), "{small}");
    assert_eq!(none, 1_024);
    assert_eq!((of("", &set("16")), of("", &set("0"))), (usual, usual));
    assert_eq!(of("set /sys/block/vdb/queue/read_ahead_kb 0", ""), usual, "the disk with swap");
    let mapped =
        |kib| reads(&last("vm@6.1", &format!("{}\nfile f 4\nphase p\nacc x1 f seq m r\n", set(kib))));
    assert!(mapped("128") < 70 && mapped("0") == 1_024, "{} {}", mapped("128"), mapped("0"));
}

/// kswapd sleeps when free memory is above the high mark, which follows the settings.
#[test]
fn kswapd_keeps_free_what_is_set() {
    let fill = "anon a 20\nphase fill\nacc x1 a seq m w\nsleep 500\n";
    let free = |set: &str| at_end(&last("vm@6.1", &format!("{set}\n{fill}")), "nr_free_pages");
    let usual = free("");
    // min 128 of 4,400 pages, high 192.
    assert!((128..400).contains(&usual), "{usual}");
    let (more, apart) =
        (free("set /proc/sys/vm/min_free_kbytes 2048"), free("set /proc/sys/vm/watermark_scale_factor 1000"));
    // min 512, high 768; and min 128, high 128 + 2 * 440.
    assert!((768..1_000).contains(&more), "{more}");
    assert!((1_008..1_300).contains(&apart), "{apart}");
}

/// Writers are held back at so many bytes; the flusher comes when it is told.
#[test]
fn dirty_pages_follow_the_settings() {
    let write = "file f 8\nphase write\nacc x1 f seq s w\n";
    let dirty = |set: &str, end: &str| at_end(&last("vm@6.1", &format!("{set}\n{write}{end}")), "nr_dirty");
    let (all, few) =
        ("set /proc/sys/vm/dirty_ratio 90\nset /proc/sys/vm/dirty_background_ratio 80", "512000");
    assert_eq!(dirty(all, ""), 2_048);
    let limit = format!("set /proc/sys/vm/dirty_bytes {few}\nset /proc/sys/vm/dirty_background_bytes 65536");
    let held = dirty(&limit, "");
    // 125 pages, and what a writer adds between two looks.
    assert!(held <= 125 + 32, "{held}");
    let asleep = format!("{all}\nset /proc/sys/vm/dirty_expire_centisecs 100");
    assert_eq!(dirty(&asleep, "sleep 20000\n"), 0, "the flusher comes every 5 s");
    let never = format!("{asleep}\nset /proc/sys/vm/dirty_writeback_centisecs 0");
    assert_eq!(dirty(&never, "sleep 20000\n"), 2_048);
    let again = "sleep 100\nset /proc/sys/vm/dirty_writeback_centisecs 200\nsleep 3500\n";
    assert_eq!(dirty(&never, again), 0, "a new time begins at once");
}

/// Every other page of tmpfs is free: compaction moves pages to the end of memory, until there are whole
/// pageblocks. 2.6.29 has none.
#[test]
fn memory_is_compacted_as_asked() {
    let half = "shm a 8\nacc x1 a seq s w\npunch a 2 1\nphase compact\n";
    let set = "set /proc/sys/vm/compact_memory 1\n";
    let of = |text: &str| {
        let phase = last("vm@6.1", text);
        let large: u64 = phase.end.buddyinfo[0].1[9..].iter().sum();
        (phase.delta("pgmigrate_success"), large, phase.delta("compact_stall"))
    };
    let (before, after) = (of(half), of(&format!("{half}{set}")));
    assert_eq!(before.0, 0);
    assert!(after.0 > 200 && after.1 > before.1 && after.2 == 0, "{before:?}, then {after:?}");
}

/// What is refused: files that are not modelled, values out of range, what would change the policy.
#[test]
fn settings_that_cannot_be_have_their_line() {
    let check = |vm: &str, line: &str, words: &[&str]| {
        let text = format!("phase p\n{line}\n");
        let said = run_text(vm, &Guest::default(), &text).expect_err(line).to_string();
        assert!(said.starts_with("test.t:2: "), "{said}");
        words.iter().for_each(|word| assert!(said.contains(word), "no {word:?} in {said}"));
    };
    let all = ["min_free_kbytes", "lru_gen/enabled", "read_ahead_kb", "compact_memory"];
    check("vm@6.1", "set /proc/sys/vm/laptop_mode 1", &[&["laptop_mode is not modelled"][..], &all].concat());
    check("vm@6.1", "set /proc/sys/vm/swappiness 201", &["swappiness 201: expected 0 to 200"]);
    check("vm@6.1", "set /proc/sys/vm/swappiness -1", &["is a number, but \"-1\" is none"]);
    check("vm@6.1", "set /proc/sys/vm/min_free_kbytes 9000", &["expected 0 to 8800"]);
    check("vm@6.1", "set /proc/sys/vm/overcommit_memory 2", &["expected 0 or 1, which the model does"]);
    check("vm@6.1", "set /proc/sys/vm/dirty_bytes 4096", &["expected 8192 to"]);
    let switches = |value: &str| format!("set /sys/kernel/mm/lru_gen/enabled {value}");
    check("vm@6.12,s3fifo", &switches("0x0007"), &["expected n: ", "no other one of its kernel"]);
    check("vm@6.1", &switches("on"), &["expected y, n or a number"]);
    let limit = |value: &str| format!("set /sys/fs/cgroup/script/memory.max {value}");
    check("vm@6.1", &limit("4096"), &["expected at least 256 KiB"]);
    check("vm@6.1", &limit("64X"), &["expected bytes, as 64M, or max"]);
    check("vm@6.1", "set /sys/kernel/mm/transparent_hugepage/enabled always", &["expected never or madvise"]);
    let same = "phase p\nset /sys/kernel/mm/lru_gen/enabled 0x0007\nset /proc/sys/vm/swappiness 0x10\n\
                set /proc/sys/vm/overcommit_memory 1\nset /proc/sys/vm/stat_refresh 1\n\
                set /proc/sys/vm/watermark_boost_factor 0\nset /proc/sys/vm/drop_caches 3\n";
    last("vm@6.1,lru_gen", same);
}

/// Generations begin and end while programs run; what is in memory stays.
#[test]
fn generations_are_turned_on_and_off() {
    let text = "anon a 20\nfile f 4\nphase before\nacc x1 a seq m w\nacc x2 f seq s r\n\
                phase on\nset /sys/kernel/mm/lru_gen/enabled y\nacc x1 a rev m r\n\
                phase off\nset /sys/kernel/mm/lru_gen/enabled 0x3\nset /sys/kernel/mm/lru_gen/enabled n\n\
                acc x1 a seq m r\nphase again\nset /sys/kernel/mm/lru_gen/enabled 7\nacc x1 a rev m r\n";
    for vm in ["vm@6.1", "vm@6.12", "vm@6.18,lru_gen", "vm@7.2"] {
        let guest = Guest { min_free_kib: Some(512), ..Guest::default() };
        let answer = run_text(vm, &guest, text).unwrap_or_else(|failed| panic!("{vm}: {failed}"));
        assert!(answer.records[0].is_complete && answer.killed.is_empty(), "{vm}");
        let phases = &answer.records[0].phases;
        let generations = |at: usize| !phases[at].end.generations.is_empty();
        assert_eq!([1, 2, 3].map(generations), [true, false, true], "{vm}");
        assert!(phases[3].delta("pswpin") > 500, "{vm}: {}", phases[3].delta("pswpin"));
    }
}

/// Programs have no more than their group may have, however much memory is free; without swap one is killed.
#[test]
fn programs_keep_to_the_limit_of_their_group() {
    let limit = "set /sys/fs/cgroup/script/memory.max 8M\n";
    let text =
        format!("{limit}anon a 10\nfile f 4\nphase fill\nacc x1 a seq m w\nphase read\nacc x2 f seq s r\n");
    for vm in
        ["vm@6.1", "vm@6.1,lru_gen", "vm@6.12", "vm@6.18,lru_gen", "vm@7.2", "vm@7.2,lru_gen", "vm@7.2,lhd"]
    {
        let guest = Guest { min_free_kib: Some(512), ..Guest::default() };
        let answer = run_text(vm, &guest, &text).unwrap_or_else(|failed| panic!("{vm}: {failed}"));
        assert!(answer.killed.is_empty(), "{vm}");
        for phase in &answer.records[0].phases {
            let present: u64 = phase.residency.iter().map(|(_, pages)| pages.counts()[1]).sum();
            assert!((1_700..=2_048).contains(&present), "{vm} {}: {present}", phase.label);
            // Nobody asks the page allocator in vain, and kswapd has nothing to do.
            let direct =
                ["allocstall_normal", "pgscan_direct", "pgscan_kswapd"].map(|name| phase.delta(name));
            assert_eq!(direct, [0; 3], "{vm} {}", phase.label);
        }
        assert!(answer.records[0].phases[0].delta("pgscan_anon") >= 512, "{vm}");
        let no_swap = Guest { swap_pages: 0, ..guest };
        let answer = run_text(vm, &no_swap, &text).unwrap_or_else(|failed| panic!("{vm}: {failed}"));
        assert_eq!(answer.killed.len(), 1, "{vm}");
        assert!(answer.killed[0].free > 1_500, "{vm}: {} free", answer.killed[0].free);
    }
    // A limit that is written later is reached at once; `max` ends it.
    let later = format!(
        "anon a 10\nphase fill\nacc x1 a seq m w\n{limit}phase max\n\
                         set /sys/fs/cgroup/script/memory.max max\nacc x1 a seq m r\n"
    );
    let guest = Guest { min_free_kib: Some(512), ..Guest::default() };
    let answer = run_text("vm@6.12", &guest, &later).expect("it ends");
    let present = |at: usize| answer.records[0].phases[at].residency[0].1.counts()[1];
    assert!((1_700..=2_048).contains(&present(0)) && present(1) == 2_560, "{} {}", present(0), present(1));
}
