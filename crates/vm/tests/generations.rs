//! The rules of the multi-generational LRU, one by one, on a machine without time.

#[path = "generations/machine.rs"]
mod machine;
#[path = "generations/switch.rs"]
mod switch;

use machine::Machine;
use slablab_vm::generations::{Control, Margin, Position, Type};
use slablab_vm::spaces::Backing;
use slablab_vm::{Counter, Flags, Frame, Host, Purpose, RegionId, Throttle, Work};

/// Pages of each object of a program: fewer, and a walk skips the space.
const PAGES: u32 = 64;

/// Runs a program of single letters, and says where page 0 of the object that it ends with is. `r`: all pages
/// of a file are read by system calls. `l`: all are loaded through a mapping. `s`: all pages of anonymous
/// memory are stored to. `a`: a new generation begins. `e`: all pages of the file are evicted.
#[track_caller]
fn ends(preset: &str, program: &str, expected: &str) {
    let machine = Machine::new(preset, 1024, 1024);
    let file = machine.file(PAGES);
    let (mapped, anon) = (machine.region(Some(file), PAGES), machine.region(None, PAGES));
    let mut place = String::new();
    for letter in program.chars() {
        let each = |access: &dyn Fn(u32) -> Frame| (0..PAGES).map(access).collect::<Vec<_>>();
        let frames = match letter {
            'r' => each(&|page| machine.read(file, page)),
            'l' => each(&|page| machine.load(mapped, page)),
            's' => each(&|page| machine.store(anon, page)),
            'e' => {
                while !machine.resident(file).is_empty() {
                    machine.reclaim();
                }
                Vec::new()
            }
            _ => {
                assert!(machine.vm.policy.age(&machine.vm, &machine.host, 0));
                Vec::new()
            }
        };
        place = frames.first().map_or(place, |frame| frame.0.to_string());
        machine.check();
    }
    let frame = Frame(place.parse().expect("a program accesses pages"));
    assert_eq!(machine.place(frame), expected, "{preset}: {program}");
}

#[test]
fn accesses_move_pages_between_generations_and_tiers() {
    // At the start generations 0 to 3 are there. A file that is read enters the second oldest one, and stays
    // there; the number of reads is its tier.
    ends("vm@6.1,lru_gen", "r", "1 tier 0");
    ends("vm@6.1,lru_gen", "rr", "1 tier 1");
    ends("vm@6.1,lru_gen", "rrr", "1 tier 2");
    ends("vm@6.1,lru_gen", "rrrr", "1 tier 2");
    ends("vm@6.1,lru_gen", "rrrrr", "1 tier 3");
    ends("vm@6.1,lru_gen", "rrrrrr", "1 tier 3");
    ends("vm@6.1,lru_gen", "rra", "1 tier 1");
    ends("vm@6.1,lru_gen,placement=oldest", "r", "0 tier 0");
    // Three generations: the second oldest one is too young.
    ends("vm@6.1,lru_gen", "ra", "1 tier 0");
    // A fault puts a page into the youngest; a walk that finds the bit again moves it there.
    ends("vm@6.1,lru_gen", "s", "3 tier 0");
    ends("vm@6.1,lru_gen", "l", "3 tier 0");
    ends("vm@6.1,lru_gen", "la", "3 tier 0");
    ends("vm@6.1,lru_gen", "laa", "3 tier 0");
    ends("vm@6.1,lru_gen", "lala", "4 tier 0");
    ends("vm@6.1,lru_gen", "sasa", "4 tier 0");
    ends("vm@6.1,lru_gen", "rrla", "3 tier 0");
    ends("vm@6.1,lru_gen,walks=no", "lala", "3 tier 0");
    // Since 6.14 a page enters the oldest or the second youngest, and moves when its bit is found twice.
    ends("vm@6.18,lru_gen", "r", "0 tier 0");
    ends("vm@6.18,lru_gen", "rr", "0 tier 1");
    ends("vm@6.18,lru_gen", "rrrr", "0 tier 2");
    ends("vm@6.18,lru_gen", "rrrrr", "0 tier 3");
    ends("vm@6.18,lru_gen", "s", "2 tier 0");
    ends("vm@6.18,lru_gen", "sa", "2 tier 0");
    ends("vm@6.18,lru_gen", "sasa", "4 tier 3");
    ends("vm@6.18,lru_gen,promotion=once", "sa", "3 tier 0");
    // A page of the working set that comes back enters one generation later than the oldest of four.
    ends("vm@6.18,lru_gen", "rrrrreaar", "4 tier 3");
    ends("vm@6.18,lru_gen", "reaar", "2 tier 0");
    // It left when 3 was the oldest and 4 the youngest: four generations later that is forgotten.
    ends("vm@6.18,lru_gen", "rrrrreaaar", "4 tier 0");
}

/// A file of 64 pages is accessed as a program says, then a file of 256 pages is read once, then allocations
/// reclaim until `rounds` are over. So many pages of the first file are left.
#[track_caller]
fn keeps(preset: &str, program: &str, rounds: u32, expected: usize) {
    let machine = Machine::new(preset, 1024, 1024);
    let (hot, stream) = (machine.file(PAGES), machine.file(256));
    let mapped = machine.region(Some(hot), PAGES);
    let run = |letters: &str| {
        for letter in letters.chars() {
            for page in 0..PAGES {
                _ = if letter == 'r' { machine.read(hot, page) } else { machine.load(mapped, page) };
            }
        }
    };
    let (before, during) = program.split_once(' ').unwrap_or((program, ""));
    run(before);
    (0..256).for_each(|page| _ = machine.read(stream, page));
    for _ in 0..rounds {
        run(during);
        machine.reclaim();
        machine.check();
    }
    assert_eq!(machine.resident(hot).len(), expected, "{preset}: {program}");
}

#[test]
fn a_file_read_twice_is_evicted_by_the_next_scan_and_a_mapped_one_is_not() {
    for release in ["6.1", "6.12", "6.18", "7.2"] {
        let preset = format!("vm@{release},lru_gen");
        // The first batch is the oldest: 64 pages.
        // Since 7.2 a pass takes no more than its share: 35 pages until there are 32.
        let left = if release == "7.2" { 29 } else { 0 };
        keeps(&preset, "r", 1, left);
        keeps(&preset, "rr", 1, left);
        // Loads through the mapping are found by the eviction, or by the walk before it.
        keeps(&preset, "rl l", 4, PAGES as usize);
        keeps(&format!("{preset},walks=no"), "rl l", 1, PAGES as usize);
        // As many reads as can be counted protect a page for one generation.
        keeps(&preset, "rrrrr", 1, PAGES as usize);
    }
    // At its release 6.1 evicted those too.
    keeps("vm@6.1,lru_gen,placement=oldest", "rrrrr", 1, 0);
    // The classic lists activate it.
    keeps("vm@6.1", "rr", 1, PAGES as usize);
}

/// Whether a set point (refaulted, total, gain) allows a value.
#[track_caller]
fn allows(point: [u64; 3], value: [u64; 3], expected: bool) {
    let of = |[refaulted, total, gain]: [u64; 3]| Position { refaulted, total, gain };
    assert_eq!(of(point).allows(&of(value)), expected, "{point:?} {value:?}");
}

#[test]
fn the_controller_compares_refaults_of_pages_weighed() {
    // Fewer than a batch of refaults are always fine.
    allows([0, 0, 1], [63, 63, 1], true);
    allows([0, 0, 1], [64, 64, 1], false);
    // 64 x (0 + 64) x 60 = 245,760 against (0 + 1) x total x 140: equal at 1,755.4 pages.
    allows([0, 0, 60], [64, 1755, 140], false);
    allows([0, 0, 60], [64, 1756, 140], true);
    // 100 x (1000 + 64) x 1 = 106,400 against (99 + 1) x total x 2: equal at 532 pages.
    allows([99, 1000, 1], [100, 531, 2], false);
    allows([99, 1000, 1], [100, 532, 2], true);
}

/// Tiers' refaults and evictions of one type, and the last tier that is evicted.
#[track_caller]
fn last(margin: Margin, tiers: [[u64; 2]; 4], expected: usize) {
    let mut control = Control::default();
    for (tier, [refaulted, evicted]) in tiers.into_iter().enumerate() {
        let of = control.tier_mut(Type::File, tier);
        (of.refaulted, of.evicted) = (refaulted, evicted);
    }
    assert_eq!(control.last_tier(Type::File, margin), expected, "{margin:?} {tiers:?}");
}

#[test]
fn tiers_that_refault_more_than_the_first_one_are_protected() {
    last(Margin::Double, [[0, 1000], [0, 0], [0, 0], [0, 0]], 3);
    // 94 x (1000 + 64) x 1 = 100,016 <= (100 + 1) x 500 x 2 = 101,000 < 95 x 1064.
    last(Margin::Double, [[100, 1000], [94, 500], [0, 0], [0, 0]], 3);
    last(Margin::Double, [[100, 1000], [95, 500], [0, 0], [0, 0]], 0);
    // 71 x 1064 x 2 = 151,088 <= 101 x 500 x 3 = 151,500 < 72 x 1064 x 2.
    last(Margin::Half, [[100, 1000], [71, 500], [0, 0], [0, 0]], 3);
    last(Margin::Half, [[100, 1000], [72, 500], [0, 0], [0, 0]], 0);
    // The first tier that is worse ends it.
    last(Margin::Double, [[100, 1000], [64, 500], [500, 500], [0, 0]], 1);
}

#[test]
fn the_controller_chooses_the_type_that_refaults_less() {
    let mut control = Control::default();
    assert_eq!(control.choose_by_first(60), (Type::File, 3));
    // 1000 of 2000 file pages came back: 1000 x 64 x 60 > 1 x 2000 x 140.
    control.tier_mut(Type::File, 0).refaulted = 1000;
    control.tier_mut(Type::File, 0).evicted = 2000;
    assert_eq!(control.choose_by_first(60), (Type::Anon, 3));
    // 300 of 600 anonymous ones did: 1000 x 664 x 60 = 39.8 million <= 301 x 2000 x 140 = 84.3 million.
    control.tier_mut(Type::Anon, 0).refaulted = 300;
    control.tier_mut(Type::Anon, 0).evicted = 600;
    assert_eq!(control.choose_by_first(60), (Type::File, 3));
    // At 200, 1000 x 664 x 200 > 301 x 2000 x 0.
    assert_eq!(control.choose_by_first(200).0, Type::Anon);
    // All tiers: 500 of 500 more file pages of tier 2 tip it: 1500 x 664 x 60 > 301 x 2500 x 60 at 140.
    control.tier_mut(Type::File, 2).refaulted = 500;
    control.tier_mut(Type::File, 2).evicted = 500;
    assert_eq!(control.choose_by_all(60), Type::File);
    assert_eq!(control.choose_by_all(140), Type::Anon);
    // A generation later half of it counts.
    control.carry(Type::File);
    assert_eq!(control.position(Type::File, 0, 1), Position { refaulted: 500, total: 1000, gain: 1 });
    control.carry(Type::File);
    assert_eq!(control.position(Type::File, 0, 1), Position { refaulted: 250, total: 500, gain: 1 });
}

/// Accessed bits of a region that are set.
fn accessed(machine: &Machine, region: RegionId) -> u32 {
    machine.vm.with(|state| {
        let region = state.spaces.region(region);
        (0..region.pages()).filter(|page| region.pte(*page).is_accessed()).count() as u32
    })
}

/// Entries that a walk for a new generation looks at, and accessed bits that it leaves in a region.
#[track_caller]
fn walks(machine: &Machine, region: RegionId, entries: u64, left: u32) {
    let before = machine.host.done(Work::Walk);
    assert!(machine.vm.policy.age(&machine.vm, &machine.host, 0));
    assert_eq!((machine.host.done(Work::Walk) - before, accessed(machine, region)), (entries, left));
    machine.check();
}

#[test]
fn a_walk_clears_each_accessed_bit_once_and_leaves_sparse_tables_alone() {
    let machine = Machine::new("vm@6.1,lru_gen", 4096, 4096);
    let region = machine.region(None, 1536);
    (0..1536).for_each(|page| _ = machine.store(region, page));
    assert_eq!(accessed(&machine, region), 1536);
    // The first walk knows nothing: three tables.
    walks(&machine, region, 1536, 0);
    // The page of an accessed entry is looked at.
    assert_eq!(machine.host.done(Work::Scan), 1536);
    // Nothing was accessed since: the walk enters no space, and the next one knows nothing again.
    walks(&machine, region, 0, 0);
    (0..1536).for_each(|page| _ = machine.store(region, page));
    walks(&machine, region, 1536, 0);
    // A walk that enters the space for one entry remembers no table; the bits stay until an eviction meets
    // one of them.
    _ = machine.store(region, 0);
    walks(&machine, region, 512, 0);
    (0..1536).for_each(|page| _ = machine.store(region, page));
    walks(&machine, region, 0, 1536);
    let machine = Machine::new("vm@6.1,lru_gen", 4096, 4096);
    let region = machine.region(None, 1024);
    (0..1024).for_each(|page| _ = machine.store(region, page));
    walks(&machine, region, 1024, 0);
    // 512 entries of one table and 63 of the other: one in eight is dense, 63 of 512 are not.
    (0..575).for_each(|page| _ = machine.store(region, page));
    walks(&machine, region, 1024, 0);
    (0..1024).for_each(|page| _ = machine.store(region, page));
    walks(&machine, region, 512, 512);
    let machine = Machine::new("vm@6.1,lru_gen", 4096, 4096);
    let region = machine.region(None, 1024);
    (0..1024).for_each(|page| _ = machine.store(region, page));
    walks(&machine, region, 1024, 0);
    (0..576).for_each(|page| _ = machine.store(region, page));
    walks(&machine, region, 1024, 0);
    (0..1024).for_each(|page| _ = machine.store(region, page));
    walks(&machine, region, 1024, 0);
}

#[test]
fn a_space_that_did_not_run_or_is_small_is_not_walked() {
    let machine = Machine::new("vm@6.1,lru_gen,skips_tables=no", 4096, 4096);
    let (large, small) = (machine.region(None, 64), machine.region(None, 63));
    (0..64).for_each(|page| _ = machine.store(large, page));
    (0..63).for_each(|page| _ = machine.store(small, page));
    walks(&machine, small, 64, 63);
    walks(&machine, large, 0, 0);
}

/// An allocation reclaims from a space of two tables, and makes two walks. Entries that these look at.
#[track_caller]
fn looks_at(of_the_space: bool, expected: u64) {
    let machine = Machine::new("vm@6.1,lru_gen,skips_tables=no", 4096, 4096);
    let region = machine.region(None, 1024);
    (0..1024).for_each(|page| _ = machine.store(region, page));
    let space = machine.vm.with(|state| state.spaces.region(region).space);
    let before = machine.host.done(Work::Walk);
    machine.reclaim_for(of_the_space.then_some(space));
    assert_eq!(machine.host.done(Work::Walk) - before, expected, "its own: {of_the_space}");
}

#[test]
fn a_space_whose_request_made_the_walk_ran_since() {
    looks_at(false, 1024);
    looks_at(true, 2048);
}

/// So many pages of a file are read and of anonymous memory stored to; an allocation reclaims. The number of
/// the youngest generation then.
#[track_caller]
fn ages(preset: &str, file: u32, anon: u32, expected: u64) {
    let machine = Machine::new(preset, 1024, 1024);
    let (mapping, region) = (machine.file(file), machine.region(None, anon));
    (0..file).for_each(|page| _ = machine.read(mapping, page));
    (0..anon).for_each(|page| _ = machine.store(region, page));
    // The first reclaim drops generation 0, which is empty: three are left.
    machine.reclaim();
    machine.reclaim();
    assert_eq!(machine.generations().1, expected, "{preset}: {file} {anon}");
}

#[test]
fn a_generation_begins_when_pages_are_spread_unevenly() {
    // After the first reclaim 192 pages are in generation 1, and `anon` ones in the youngest, number 3.
    ages("vm@6.1,lru_gen", 256, 0, 3);
    ages("vm@6.1,lru_gen", 256, 191, 3);
    ages("vm@6.1,lru_gen", 256, 194, 4);
    ages("vm@6.1,lru_gen,aging=full", 256, 0, 4);
}

#[test]
fn a_page_whose_write_ended_is_evicted_next() {
    for release in ["6.1", "6.12", "6.18", "7.2"] {
        let machine = Machine::of(&format!("vm@{release},lru_gen"), 1024, 1024, [0; 3], 1000);
        let region = machine.region(None, 256);
        (0..256).for_each(|page| _ = machine.store(region, page));
        // All are under way to swap; nothing can be freed before it is there.
        while machine.count(Counter::VmscanWrite) < 256 {
            assert_eq!(machine.reclaim().pages, 0, "{release}");
        }
        assert_eq!(machine.count(Counter::PgRotated), 0);
        machine.host.settle(&machine.vm);
        assert_eq!(machine.count(Counter::PgRotated), 256);
        // A batch goes without another write: each written page went to the tail, so the last ones first.
        // Since 7.2 a pass takes its share.
        let pages = if release == "7.2" { 55 } else { 64 };
        assert_eq!(machine.reclaim().pages, pages, "{release}");
        assert_eq!(machine.count(Counter::VmscanWrite), 256);
        let gone = |page: &u32| machine.vm.with(|state| state.frames.flags(Frame(*page))) == Flags::default();
        assert_eq!((0..256).filter(gone).collect::<Vec<_>>(), (256 - pages..256).collect::<Vec<_>>());
        machine.check();
    }
}

/// All pages of a file of 64 are dirty, and nobody writes them; an allocation reclaims. Whether the eviction
/// meets them and makes them active, and whether flushers are woken. Reclaim wants them when they are
/// written.
#[track_caller]
fn meets_dirty(preset: &str, expected: (bool, bool)) {
    let machine = Machine::new(preset, 1024, 0);
    let file = machine.file(PAGES);
    let frames: Vec<Frame> = (0..PAGES).map(|page| machine.read(file, page)).collect();
    machine.vm.with(|state| frames.iter().for_each(|frame| _ = state.set_dirty(*frame)));
    machine.reclaim();
    machine.check();
    assert!(frames.iter().all(|frame| machine.vm.with(|state| state.frames.has(*frame, Flags::RECLAIM))));
    let (activated, scanned) = (machine.count(Counter::PgActivate), machine.count(Counter::PgScanDirect));
    assert_eq!(activated, scanned, "{preset}: the eviction keeps what it meets");
    assert_eq!((activated > 0, machine.host.flushers_woken() > 0), expected, "{preset}");
}

#[test]
fn since_7_2_dirty_files_are_isolated_and_become_active() {
    // Until 7.1 the scan moves them on.
    meets_dirty("vm@6.1,lru_gen", (false, false));
    meets_dirty("vm@6.12,lru_gen", (false, false));
    meets_dirty("vm@6.18,lru_gen", (false, true));
    meets_dirty("vm@7.2,lru_gen", (true, true));
    meets_dirty("vm@7.2,lru_gen,flushers=asleep", (true, false));
    meets_dirty("vm@7.2,lru_gen,dirty=next", (false, true));
    meets_dirty("vm@6.18,lru_gen,dirty=isolated", (true, true));
}

/// Pages of files are under writeback and wanted by reclaim, and kswapd runs: how long it sleeps because of
/// them, in milliseconds, at least.
#[track_caller]
fn sleeps(preset: &str, expected: bool) {
    let machine = Machine::of(preset, 1024, 0, [0, 32, 64], 0);
    let file = machine.file(992);
    for frame in (0..992).map(|page| machine.read(file, page)) {
        machine.vm.with(|state| state.frames.set(frame, Flags::WRITEBACK | Flags::RECLAIM));
    }
    // 32 pages are free: kswapd runs for the next one.
    assert!(machine.host.alloc(&machine.vm, Purpose::File).is_some());
    assert_eq!(machine.host.now() >= 100_000_000, expected, "{preset}: {} ns", machine.host.now());
}

#[test]
fn since_7_2_pages_under_writeback_hold_kswapd_up() {
    sleeps("vm@6.18,lru_gen", false);
    sleeps("vm@7.2,lru_gen", true);
    sleeps("vm@7.2,lru_gen,congestion=no", false);
    // Pages that are not isolated hold nobody up.
    sleeps("vm@7.2,lru_gen,dirty=next", false);
    sleeps("vm@7.2,lru_gen,throttle=no", false);
}

/// A page is brought as a letter of [`ends`] says, aged, and moved by compaction. Its place after that.
#[track_caller]
fn moved(preset: &str, letter: char, ages: u32, expected: &str) {
    let machine = Machine::new(preset, 1024, 1024);
    let (file, region) = (machine.file(1), machine.region(None, 1));
    let frame = if letter == 'r' { machine.read(file, 0) } else { machine.store(region, 0) };
    for _ in 0..ages {
        assert!(machine.vm.policy.age(&machine.vm, &machine.host, 0));
    }
    let (vm, policy) = (&machine.vm, &machine.vm.policy);
    assert!(vm.with(|state| policy.isolate(state, frame)));
    assert_eq!(machine.place(frame), "");
    vm.with(|state| policy.put_back(state, frame));
    machine.check();
    assert_eq!(machine.place(frame), expected, "{preset}: {letter}");
}

#[test]
fn compaction_puts_a_page_back_by_its_flags() {
    // A page of the youngest generation stays there.
    moved("vm@6.1,lru_gen", 's', 0, "3 tier 0");
    // Generations 2 to 5 are there. The space is too small for a walk, so the page is in generation 3.
    moved("vm@6.1,lru_gen", 's', 2, "4 tier 0");
    moved("vm@6.1,lru_gen", 'r', 2, "3 tier 0");
    moved("vm@6.18,lru_gen", 's', 2, "4 tier 0");
    moved("vm@6.18,lru_gen", 'r', 2, "2 tier 0");
}

/// A file's page is read `reads` times and evicted; so many generations begin; it is read again. The counters
/// of refaults, activations and restores.
#[track_caller]
fn comes_back(preset: &str, reads: u32, ages: u32, expected: [u64; 3]) {
    let machine = Machine::new(preset, 1024, 1024);
    let (file, other) = (machine.file(PAGES), machine.file(1024));
    for _ in 0..reads {
        (0..PAGES).for_each(|page| _ = machine.read(file, page));
    }
    while !machine.resident(file).is_empty() {
        machine.reclaim();
    }
    for age in 0..ages {
        assert!(machine.vm.policy.age(&machine.vm, &machine.host, 0));
        // The empty generations go when a reclaimer comes by.
        (0..PAGES).for_each(|page| _ = machine.read(other, age * PAGES + page));
        machine.reclaim();
    }
    let before = machine.count(Counter::ActivateFile);
    machine.read(file, 0);
    let counts = [
        machine.count(Counter::RefaultFile),
        machine.count(Counter::ActivateFile) - before,
        machine.count(Counter::RestoreFile),
    ];
    assert_eq!(counts, expected, "{preset}: {reads} reads, {ages} ages");
}

#[test]
fn a_refault_is_recent_or_not_by_release() {
    comes_back("vm@6.1,lru_gen", 1, 0, [1, 0, 0]);
    comes_back("vm@6.1,lru_gen", 4, 0, [1, 0, 1]);
    comes_back("vm@6.1,lru_gen", 1, 1, [0, 0, 0]);
    comes_back("vm@6.12,lru_gen", 1, 0, [1, 1, 0]);
    comes_back("vm@6.12,lru_gen", 1, 1, [1, 0, 0]);
    // The mark of the working set comes back with the page.
    comes_back("vm@6.18,lru_gen", 1, 1, [1, 0, 0]);
    comes_back("vm@6.18,lru_gen", 5, 1, [1, 0, 1]);
    comes_back("vm@6.18,lru_gen", 5, 3, [1, 0, 0]);
}

/// A full machine whose oldest generation is so old; kswapd runs for an order. Pages are locked, or can be
/// evicted. How often it has a task killed, and whether it evicted pages.
fn kills(preset: &str, age_ms: u64, order: u8, locked: bool) -> (u32, bool) {
    // 24 pages are free: too few pages, or pages enough and too few for the block.
    let high = if order == 0 { 64 } else { 16 };
    let machine = Machine::of(preset, 1024, 0, [0, 0, high], 0);
    let file = machine.file(1000);
    for frame in (0..1000).map(|page| machine.read(file, page)) {
        let lock = if locked { Flags::LOCKED } else { Flags::default() };
        machine.vm.with(|state| state.frames.set(frame, lock));
    }
    machine.host.throttle(Throttle::NoProgress, age_ms * 1_000_000);
    machine.vm.policy.kswapd(&machine.vm, &machine.host, 0, order, 0);
    machine.check();
    (machine.host.gave_up(), machine.resident(file).len() < 1000)
}

#[test]
fn kswapd_kills_a_task_if_all_pages_are_younger_than_min_ttl() {
    for release in ["6.1", "6.12", "6.18", "7.2"] {
        let preset = format!("vm@{release},lru_gen,min_ttl_ms=1000");
        assert!(kills(&preset, 500, 0, true).0 > 0, "{release}");
        assert_eq!(kills(&preset, 1000, 0, false), (0, true), "{release}");
        // Not for a block: memory may be in pieces only.
        assert_eq!(kills(&preset, 500, 5, true).0, 0, "{release}");
        assert_eq!(kills(&format!("vm@{release},lru_gen"), 0, 0, true).0, 0, "{release}");
        // Pages are evicted all the same. Since 6.3 nobody is killed at the first priority; since 7.2 that
        // one is not enough here.
        let (times, evicts) = kills(&preset, 500, 0, false);
        assert_eq!((times > 0, evicts), (["6.1", "7.2"].contains(&release), true), "{release}");
    }
}

/// Presets of all rules.
const GENERATIONS: [&str; 6] = [
    "vm@6.1,lru_gen",
    "vm@6.12,lru_gen",
    "vm@6.18,lru_gen",
    "vm@6.18,lru_gen,oldest=coupled",
    "vm@7.2,lru_gen",
    "vm@7.2,lru_gen,after_aging=goes,look=4096",
];

#[test]
fn generations_count_their_pages_under_pressure() {
    for preset in GENERATIONS {
        let machine = Machine::of(preset, 512, 2048, [16, 24, 48], 8);
        let (file, mapped) = (machine.file(600), machine.file(200));
        let (anon, region) = (machine.region(None, 600), machine.region(Some(mapped), 200));
        let mut seed = 7_u64;
        for step in 0..6000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let page = (seed >> 33) as u32;
            match seed >> 61 {
                0..=2 => _ = machine.read(file, page % 600),
                3 => _ = machine.load(region, page % 200),
                _ => _ = machine.store(anon, page % if page & 1024 == 0 { 600 } else { 100 }),
            }
            if step % 40 == 0 {
                machine.check();
            }
        }
        assert!(machine.generations().1 > 8, "{preset}: {:?}", machine.generations());
        assert!(machine.count(Counter::PgStealAnon) > 0 && machine.count(Counter::PgStealFile) > 0);
        let backing = machine.vm.with(|state| state.spaces.region(anon).backing);
        assert!(matches!(backing, Backing::Anon(_)));
    }
}
