//! Machine files: what they may say, and the line that a mistake is reported with.

use slablab_machines::{COSTS, MachineFile, Origin, Priced, Prior, Smt, Source};
use slablab_model::Handover;

/// Costs of a machine file, each assumed, so that a test can change one line.
fn costs() -> String {
    let mut text = String::from("[costs]\n");
    for cost in COSTS {
        let value = match (cost.name, cost.unit) {
            ("line_bytes", _) => "{ number = 64, source = \"assumed\" }".into(),
            ("tlb_page_bytes", _) => "{ bytes = 4096, source = \"assumed: a reason\" }".into(),
            (_, "ns by distance") => {
                "{ 10 = { ns = 80, source = \"assumed\" }, 20 = { ns = 120.5, source = \"a document\" } }"
                    .into()
            }
            (_, "kind") => "{ kind = \"ticket\", source = \"a document\" }".into(),
            (_, "release") => "{ release = \"6.18\", source = \"a document\" }".into(),
            (_, unit) => format!("{{ {unit} = 2, source = \"assumed: a reason\" }}"),
        };
        text += &format!("{} = {value}\n", cost.name);
    }
    text
}

const NODES: &str = "cpus = 4\n[[nodes]]\nmemory = \"1G\"\n[[nodes]]\nmemory = \"1G\"\n";

/// Checks that a file is refused with a line and a text.
fn refuse(text: &str, line: usize, expected: &str) {
    let bad = MachineFile::parse(text).expect_err(text);
    assert!(bad.line == line && bad.what.contains(expected), "{text}\nsays: {bad}");
}

#[test]
fn a_mistake_is_reported_with_its_line() {
    refuse("cpus = 4\npage_sise = 4096", 2, "`page_sise` is not known; near it: page_size");
    refuse("[[nodes]]\nmemory = 0\nmemry = 1", 3, "`memry` is not known; near it: memory");
    refuse("cpus = 4\nwhatever = 1", 2, "expected one of name, about, page_size");
    refuse("\n\ncpus = ", 3, "");
    refuse("cpus = 0", 1, "cpus = 0: expected a number from 1 to 65535");
    refuse("cpus = -1", 1, "cpus = -1: expected a number");
    refuse("cpus = \"4\"", 1, "cpus = \"4\": expected a number");
    refuse("page_size = 8192", 1, "expected 4096, 16384 or 65536");
    refuse("memoryless_nodes = true", 1, "expected \"yes\" or \"no\"");
    refuse("smt = \"splitt\"", 1, "expected \"adjacent\" or \"split\"");
    refuse("fail_order = 256", 1, "expected a number from 0 to 255");
    refuse("grace_period_ms = 86400001", 1, "from 0 to 86400000");
    refuse("name = \"\"", 1, "expected a text");
    refuse("nodes = 3", 1, "expected an array");
    refuse("nodes = [3]", 1, "expected a table [[nodes]]");
}

#[test]
fn nodes_that_contradict_themselves_are_refused() {
    refuse("[[nodes]]\nmemory = 0", 1, "no node has memory");
    refuse("[[nodes]]\nmemory = \"1X\"", 2, "expected bytes, or a text like \"64G\", found \"1X\"");
    refuse("[[nodes]]\nmemory = -1", 2, "expected bytes");
    refuse("[[nodes]]\nmemory = \"1G\"\ndistances = [0]", 3, "a distance = 0: expected a number from 10");
    refuse("[[nodes]]\nmemory = \"1G\"\ndistances = [11]", 3, "node 0 is at distance 11 from node 0");
    refuse(
        "[[nodes]]\nmemory = \"1G\"\ndistances = [10, 20]",
        3,
        "node 0 has 2 distances: expected one to each",
    );
    let two = "[[nodes]]\nmemory = \"1G\"\ndistances = [10, 10]\n[[nodes]]\ndistances = [20, 10]";
    refuse(two, 3, "node 0 is at distance 10 from node 1");
    refuse(
        "cpus = 2\n[[nodes]]\nmemory = 4096\ncpus = \"0-2\"",
        4,
        "node 0 has CPU 2: expected CPUs below 2",
    );
    refuse("[[nodes]]\nmemory = 4096\ncpus = \"3-1\"", 3, "expected CPUs as in \"0-3,32-35\"");
    refuse("[[nodes]]\nmemory = 4096\ncpus = [65535]", 3, "a CPU = 65535");
    let twice = "[[nodes]]\nmemory = 4096\ncpus = \"0-3\"\n[[nodes]]\ncpus = [4, 2]";
    refuse(twice, 5, "node 1 has CPU 2, which node 0 has");
    refuse(
        "page_size = 4096\n[[nodes]]\nmemory = \"16T\"",
        2,
        "page frames of 4096 bytes: at most 4294967295",
    );
}

#[test]
fn parts_that_contradict_themselves_are_refused() {
    let refuse = |parts: &str, expected: &str| refuse(&format!("{parts}\n{NODES}"), 1, expected);
    refuse("threads_per_core = 3", "4 CPUs are no whole number of cores of 3");
    refuse("threads_per_core = 4", "CPUs 0 and 2 are one core, but on two nodes");
    refuse("cpus_per_llc = 3", "node 0 has 2 CPUs, a cache 3");
    let smt = "cpus_per_llc = 1\nthreads_per_core = 2\nsmt = \"adjacent\"";
    refuse(smt, "1 CPUs are no whole number of cores of 2");
}

#[test]
fn costs_that_are_no_costs_are_refused() {
    let line_of = |name: &str| COSTS.iter().position(|cost| cost.name == name).expect(name) + 2;
    let refuse_one = |name: &str, value: &str, expected: &str| {
        let whole = costs();
        let old = whole.lines().find(|line| line.starts_with(&format!("{name} ="))).expect(name);
        refuse(&whole.replace(old, &format!("{name} = {value}")), line_of(name), expected);
    };
    let ns = |ns: &str| format!("{{ ns = {ns}, source = \"assumed\" }}");
    refuse_one("l1", &ns("nan"), "expected nanoseconds from 0 to 1000000000, found nan");
    refuse_one("l1", &ns("-1.5"), "found -1.5");
    refuse_one("l1", &ns("-2"), "found -2");
    refuse_one("l1", &ns("inf"), "found inf");
    refuse_one("l1", &ns("1e10"), "found 1e10");
    refuse_one("l1", &ns("\"1\""), "found \"1\"");
    refuse_one("cycle", &ns("0"), "expected more than 0 ns");
    refuse_one("l1", "1.2", "l1 = 1.2: expected { ns = .., source = \"..\" }");
    refuse_one("l1", "{ ns = 1.2 }", "l1 has no source");
    refuse_one("l1", "{ ns = 1.2, source = \" \" }", "expected a text");
    refuse_one("l1", "{ ns = 1, sourse = \"\" }", "`sourse` is not known; near it: source");
    refuse_one("l1_bytes", "{ bytes = 1.5, source = \"a\" }", "expected bytes");
    refuse_one("line_bytes", "{ number = 48, source = \"a\" }", "expected a power of two");
    refuse_one("tlb_entries", "{ number = 0, source = \"a\" }", "expected at least 1");
    refuse_one("tlb_page_bytes", "{ bytes = 3000, source = \"a\" }", "expected a power of two");
    refuse_one("handover", "{ kind = \"fifo\", source = \"a\" }", "expected \"test-and-set\" or \"ticket\"");
    refuse_one("memory", "{ 20 = { ns = 1, source = \"a\" } }", "memory has no price at distance 10");
    refuse_one("memory", "{ 0 = { ns = 1, source = \"a\" } }", "0 is no node distance");
    refuse_one("memory", "{}", "memory has no price at distance 10");
    let whole = costs();
    let page = whole.lines().find(|line| line.starts_with("tlb_page_bytes")).expect("a cost");
    assert!(MachineFile::parse(&whole.replace(page, "")).is_ok(), "pages of 2 MiB need not be said");
    refuse(
        &whole.replace("syscall =", "syscal ="),
        line_of("syscall"),
        "`syscal` is not known; near it: syscall",
    );
    refuse("cpus = 1\n[costs]\n", 2, "[costs] has no cycle, line_bytes,");
}

#[test]
fn costs_become_picoseconds_with_sources() {
    let file = MachineFile::parse(&costs()).expect("the file is right");
    let priced: Priced = file.costs.expect("the file has costs");
    assert_eq!((priced.costs.l1, priced.costs.l1_bytes, priced.costs.line_bytes), (2000, 2, 64));
    assert_eq!(priced.costs.memory, [(10, 80_000), (20, 120_500)]);
    assert_eq!(priced.costs.handover, Handover::Ticket);
    assert_eq!(priced.sources.len(), COSTS.len() + 2, "two costs have two distances");
    let assumed: Vec<_> = priced.assumed().collect();
    assert!(assumed.iter().all(|source| source.cost != "l1_bytes" && source.text.starts_with("assumed")));
    assert!(assumed.iter().all(|source| source.distance != Some(20)), "a document has the price at 20");
    let memory = assumed.iter().find(|source| source.cost == "memory").expect("memory is assumed at 10");
    assert_eq!(priced.scaled(memory, 1, 2).memory, [(10, 40_000), (20, 120_500)]);
    let l1 = assumed.iter().find(|source| source.cost == "l1").expect("l1 is assumed");
    assert_eq!(priced.scaled(l1, 2, 1).l1, 4000);
}

/// Parts by CPU, as `core llc socket` of each.
#[test]
fn cpus_share_parts() {
    let check = |text: &str, core: &[u16], llc: &[u16], socket: &[u16]| {
        let file = MachineFile::parse(&format!("{text}\n{}", costs())).expect(text);
        let hardware = file.machine().expect(text).hardware;
        assert_eq!([&*hardware.core, &*hardware.llc, &*hardware.socket], [core, llc, socket], "{text}");
    };
    check(NODES, &[0, 1, 2, 3], &[0, 0, 1, 1], &[0, 0, 1, 1]);
    check(&format!("threads_per_core = 2\n{NODES}"), &[0, 0, 1, 1], &[0, 0, 1, 1], &[0, 0, 1, 1]);
    check(&format!("cpus_per_llc = 1\n{NODES}"), &[0, 1, 2, 3], &[0, 1, 2, 3], &[0, 0, 1, 1]);
    // Siblings 0 and 2, 1 and 3; both nodes in one socket, under one cache.
    let split = "threads_per_core = 2\nsmt = \"split\"\ncpus_per_llc = 4
        [[nodes]]\nmemory = \"1G\"\ncpus = \"0,2\"\nsocket = 7
        [[nodes]]\nmemory = \"1G\"\ncpus = [1, 3]\nsocket = 7";
    check(split, &[0, 1, 0, 1], &[0, 0, 0, 0], &[7, 7, 7, 7]);
    assert_eq!(MachineFile::parse(split).expect("right").smt, Some(Smt::Split));
}

/// A file that a replay can use need not be a whole machine.
#[test]
fn a_machine_must_be_whole() {
    let check = |text: &str, expected: &str| {
        let found = MachineFile::parse(text).expect(text).machine().map(|_| ()).map_err(|bad| bad.0);
        let said = found.err().unwrap_or_default();
        assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{text}: {said}");
    };
    check(&format!("{NODES}{}", costs()), "");
    check(NODES, "has no [costs]");
    check(&format!("cpus = 4\n{}", costs()), "has no [[nodes]]");
    check(&format!("[[nodes]]\nmemory = \"1G\"\n{}", costs()), "has no cpus");
    let half = "cpus = 2\n[[nodes]]\nmemory = \"1G\"\n[[nodes]]\nmemory = 0\n";
    check(&format!("{half}{}", costs()), "has no memoryless_nodes");
    check(&format!("memoryless_nodes = \"no\"\n{half}{}", costs()), "");
    check(
        &format!("[[nodes]]\ncpus = \"0\"\nmemory = \"1T\"\n[[nodes]]\nmemory = \"15T\"\n{}", costs()),
        "page frames",
    );
}

/// docs/model.md explains every cost, and the example in it is a machine file.
#[test]
fn the_page_explains_every_cost() {
    let page = include_str!("../../../docs/model.md");
    for cost in COSTS {
        let line =
            page.lines().find(|line| line.starts_with('|') && line.contains(&format!("`{}`", cost.name)));
        let line = line.unwrap_or_else(|| panic!("docs/model.md does not explain {}", cost.name));
        assert!(line.contains(cost.unit), "{}: {line}", cost.name);
    }
    let example = page.split("```").find_map(|part| part.strip_prefix("toml\n")).expect("an example");
    let (before, _) = example.split_once("[costs]").expect("costs in the example");
    assert!(MachineFile::parse(&format!("{before}{}", costs())).expect("right").machine().is_ok());
}

const CARD: &str = "[disk.card]
kind = \"card\"
bytes = { bytes = \"4G\", source = \"assumed\" }
depth = { number = 1, source = \"assumed\" }
read = { ms = 0.75, source = \"from memory\" }
write = { ms = 1, source = \"assumed\" }
read_rate = { mb_s = 17.5, source = \"from memory\" }
write_rate = { mb_s = 8, source = \"from memory\" }
unit = { bytes = \"4M\", source = \"a survey\" }
open_units = { number = 2, source = \"a survey\" }
unit_copy = { ms = 150, source = \"a survey\" }
";

#[test]
fn disks_have_numbers_and_sources() {
    use slablab_model::disk::{Card, Disk, DiskKind};
    let disks = MachineFile::parse(CARD).expect("the file is right").disks;
    let card = Card {
        read: 750_000_000,
        write: 1_000_000_000,
        read_rate: 17_500_000,
        write_rate: 8_000_000,
        unit: 4 << 20,
        open_units: 2,
        unit_copy: 150_000_000_000,
    };
    let expected = Disk { bytes: 4 << 30, depth: 1, rotational: false, kind: DiskKind::Card(card) };
    assert_eq!((disks[0].name.as_str(), &disks[0].disk), ("card", &expected));
    assert_eq!(disks[0].sources[2], ("read", "from memory".to_string()));
    let named = MachineFile::parse("[disk.swap]\nis = \"nvme\"").expect("the file is right").disks;
    assert!(matches!(named[0].disk.kind, DiskKind::Flash(_)) && named[0].name == "swap");
}

#[test]
fn disks_that_are_no_disks_are_refused() {
    refuse("disk = 3", 1, "disk = 3: expected tables [disk.NAME]");
    refuse("[disk.a]\nis = \"nvmee\"", 2, "no installed disk; near it: nvme");
    refuse("[disk.a]\nis = \"nvme\"\ndepth = 3", 3, "`depth` is not known");
    refuse("[disk.a]\nbytes = 3", 1, "the disk has no kind: expected kind = \"rotating\"");
    refuse("[disk.a]\nkind = \"tape\"", 2, "expected \"rotating\" or \"card\"");
    refuse("[disk.a]\nkind = \"flash\"\nrpm = 3", 3, "`rpm` is not known");
    refuse("[disk.a]\nkind = \"flash\"", 1, "the disk has no bytes: expected { bytes = .. }");
    let refuse_one = |key: &str, value: &str, expected: &str| {
        let line = CARD.lines().position(|line| line.starts_with(&format!("{key} ="))).expect(key);
        let old = CARD.lines().nth(line).expect("it is there");
        refuse(&CARD.replace(old, &format!("{key} = {value}")), line + 1, expected);
    };
    refuse_one("read", "0.75", "read = 0.75: expected { ms = .., source = \"..\" }");
    refuse_one("read", "{ ms = -1, source = \"a\" }", "read: expected ms from 0 to 1000000, found -1");
    refuse_one("read", "{ ms = nan, source = \"a\" }", "found nan");
    refuse_one("read_rate", "{ mb_s = 0, source = \"a\" }", "expected mb_s from 0.001");
    refuse_one("unit", "{ bytes = 512, source = \"a\" }", "unit: expected at least 4096 bytes");
    refuse_one("depth", "{ number = 0, source = \"a\" }", "expected a number from 1");
}

/// What is known of a cost's error follows from where its number is from.
#[test]
fn a_cost_has_a_prior() {
    let of = |line: &str, replaced: &str| {
        let text = costs();
        assert!(text.contains(line), "{line} is not in\n{text}");
        let file = MachineFile::parse(&text.replace(line, replaced)).expect("the file is right");
        file.costs.expect("the file has costs")
    };
    let check = |priced: &Priced, cost: &str, distance: Option<u32>, origin: Origin, within: f64| {
        let is = |source: &&Source| (source.cost, source.distance) == (cost, distance);
        let source = priced.sources.iter().find(is).unwrap_or_else(|| panic!("{cost} {distance:?}"));
        assert_eq!(source.prior(), Prior { origin, within }, "{cost}");
    };
    let line = costs().lines().find(|line| line.starts_with("l1 =")).expect("l1").to_string();
    let priced = of(&line, &line.replace(" }", ", within = 1.05 }"));
    check(&priced, "l1", None, Origin::Stated, 1.05);
    check(&priced, "l2", None, Origin::Analogy, 1.3);
    check(&priced, "memory", Some(10), Origin::Analogy, 1.3);
    check(&priced, "memory", Some(20), Origin::Table, 1.1);
    check(&priced, "syscall", None, Origin::Kernel, 2.0);
    let prior = Prior { origin: Origin::Kernel, within: 2.0 };
    assert_eq!([0.0, 1.96, -1.96].map(|z| prior.factor_ppm(z)), [1_000_000, 2_000_025, 499_994]);
    let refused = MachineFile::parse(&costs().replace(&line, &line.replace(" }", ", within = 0.5 }")));
    assert!(refused.expect_err("a factor below 1").what.contains("expected a factor from 1 to 100"));
}
