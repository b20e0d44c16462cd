//! The machine code of the fast paths. The limits are in the table "Fast paths" of docs/engines/README.md.
//!
//! The tests build the examples `fastpath` of this crate and of malloc like a release, and read the assembler
//! text. In each function they find the hit: the shortest path from the entry to a return that has no call
//! and that stores to memory which is neither the stack nor thread-local. (A hot operation commits with a
//! store. A miss has no store.) If the example runs under callgrind, callgrind counts the same instructions.
//! A count of instructions is not a time: docs/measuring.md describes how to measure times.
#![cfg(target_arch = "x86_64")]

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::process::Command;

/// A function and the claims about it. The page has one more claim: the length of its hit.
struct Claim {
    /// The function, as the page names it.
    function: &'static str,
    /// The module in the symbol before the function; empty if the function's name is enough.
    module: &'static str,
    /// Whether the hit stores.
    stores: bool,
    /// The known flaws. If one of them no longer exists, the test fails, so that it is removed from the list.
    known: &'static [Flaw],
}

/// A property that a fast path must not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// A call or jump through a pointer, anywhere in the function.
    Dynamic,
    /// A path to a panic, anywhere in the function.
    Panic,
    /// A division on the hit.
    Division,
    /// Every hit has a call.
    Calls,
}

const fn claim(function: &'static str) -> Claim {
    Claim { function, module: "8fastpath", stores: true, known: &[] }
}

const CLAIMS: &[Claim] = &[
    claim("pop_if"),
    claim("push_if"),
    claim("pop"),
    claim("push"),
    Claim { stores: false, ..claim("frame_state") },
    claim("slub_alloc"),
    // The path through the sheaf is inline. The path through the slab is a separate function.
    claim("slub_free"),
    Claim { module: "", ..claim("free_to_slab") },
    claim("slqb_alloc"),
    claim("slqb_free"),
    claim("slab_alloc"),
    claim("slab_free"),
];

/// The functions of malloc. Count a pair of calls from C with callgrind: link-time optimisation removes some
/// instructions.
const MALLOC: &[Claim] = &[
    claim("malloc_any"),
    claim("malloc_64"),
    claim("malloc_4096"),
    claim("free_any"),
    Claim { stores: false, ..claim("realloc_same") },
];

/// The page with the table of limits.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/engines/README.md");

/// The rows of the table: the function, and its largest number of instructions on the hit.
fn limits() -> HashMap<String, usize> {
    let page = std::fs::read_to_string(PAGE).expect("the page is there");
    let table = page.split("\n## Fast paths\n").nth(1).expect("the page has the section");
    let table = table.split("\n## ").next().unwrap_or_default();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    let row = |row: &str| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let most = cells[1].parse().unwrap_or_else(|_| panic!("no number of instructions: {row}"));
        (cells[0].trim_end_matches('`').to_owned(), most)
    };
    rows.map(row).collect()
}

/// The assembler text of a package's example.
fn assembler(package: &str, arguments: &[&str]) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let text = folder.join(format!("{package}.s"));
    // Without link-time optimisation: a function that is inline in this build is inline in every build.
    let built = Command::new(env!("CARGO"))
        .args(["rustc", "--quiet", "--release", "--locked", "-p", package])
        .args(arguments)
        .args(["--example", "fastpath", "--", "-C", "codegen-units=1", "-C", "debuginfo=0"])
        .args(["-C", "symbol-mangling-version=v0"])
        .arg(format!("--emit=asm={}", text.display()))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_TARGET_DIR", folder.join("fastpath"))
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .status()
        .expect("cargo runs");
    assert!(built.success(), "the example did not build");
    std::fs::read_to_string(&text).expect("the compiler wrote the text")
}

/// An instruction: its name and operands.
type Step<'a> = (&'a str, &'a str);

/// The instructions of one function, and for each label the instruction that follows it.
#[derive(Default)]
struct Function<'a> {
    steps: Vec<Step<'a>>,
    labels: HashMap<&'a str, usize>,
}

/// The function whose symbol has `part` in it. A closure's symbol has its function's.
fn function<'a>(text: &'a str, part: &str) -> Function<'a> {
    let mut lines = text.lines();
    let label = |line: &&str| {
        let symbol = line.strip_suffix(':').and_then(|symbol| symbol.strip_prefix("_R"));
        symbol.is_some_and(|symbol| symbol.contains(part) && !symbol.starts_with("NC"))
    };
    lines.find(label).unwrap_or_else(|| panic!("no function {part}: was it inlined?"));
    let mut function = Function::default();
    for line in lines.take_while(|line| !line.starts_with(".Lfunc_end")) {
        let line = line.split('#').next().unwrap_or(line);
        if let Some(label) = line.strip_suffix(':') {
            function.labels.insert(label, function.steps.len());
        } else if let Some(step) =
            line.strip_prefix('\t').filter(|step| !step.starts_with('.') && !step.is_empty())
        {
            function.steps.push(step.split_once('\t').unwrap_or((step.trim(), "")));
        }
    }
    function
}

/// Whether an instruction writes memory that is neither the stack nor thread-local. A miss also writes
/// thread-local memory.
fn stores((name, operands): Step<'_>) -> bool {
    let reads = ["cmp", "test", "lea", "push", "call", "j", "nop"];
    let destination = match operands.rfind(')') {
        Some(end) if end + 1 == operands.len() => &operands[operands.rfind('(').unwrap_or(0)..],
        _ => return false,
    };
    !destination.contains("%rsp")
        && !operands.contains("%fs:")
        && !reads.iter().any(|read| name.starts_with(read))
}

impl<'a> Function<'a> {
    /// The shortest path to a return that has no call, and that has a store if a hit must store.
    fn hit(&self, must_store: bool) -> Option<Vec<Step<'a>>> {
        let mut before = HashMap::from([((0, false), None)]);
        let mut queue = VecDeque::from([(0, false)]);
        while let Some(at @ (index, stored)) = queue.pop_front() {
            let step @ (name, operands) = *self.steps.get(index)?;
            let stored_now = stored || stores(step);
            if name.starts_with("ret") && (stored_now || !must_store) {
                let way = std::iter::successors(Some(at), |at| before[at]);
                let mut hit: Vec<_> = way.map(|(index, _)| self.steps[index]).collect();
                hit.reverse();
                return Some(hit);
            }
            let ends = ["ret", "call", "jmp", "ud2"].iter().any(|end| name.starts_with(end));
            let falls = (!ends).then_some(index + 1);
            let jumps = name.starts_with('j').then(|| self.labels.get(operands).copied()).flatten();
            for next in falls.into_iter().chain(jumps).map(|index| (index, stored_now)) {
                before.entry(next).or_insert_with(|| {
                    queue.push_back(next);
                    Some(at)
                });
            }
        }
        None
    }

    fn flaws(&self, hit: Option<&[Step<'a>]>) -> Vec<Flaw> {
        let dynamic = |(name, operands): &Step<'_>| {
            (name.starts_with("call") || name.starts_with("jmp"))
                && operands.starts_with('*')
                && !operands.ends_with("@GOTPCREL(%rip)")
        };
        let panics = |(_, operands): &Step<'_>| operands.contains("panic");
        let divides = |(name, _): &Step<'_>| name.starts_with("div") || name.starts_with("idiv");
        let found = [
            (Flaw::Dynamic, self.steps.iter().any(dynamic)),
            (Flaw::Panic, self.steps.iter().any(panics)),
            (Flaw::Division, hit.is_some_and(|hit| hit.iter().any(divides))),
            (Flaw::Calls, hit.is_none()),
        ];
        found.into_iter().filter(|(_, there)| *there).map(|(flaw, _)| flaw).collect()
    }
}

#[test]
fn every_row_of_the_page_is_checked() {
    let mut rows: Vec<String> = limits().into_keys().collect();
    let mut checked: Vec<&str> = CLAIMS.iter().chain(MALLOC).map(|claim| claim.function).collect();
    rows.sort_unstable();
    checked.sort_unstable();
    assert_eq!(rows, checked);
}

#[test]
fn fast_paths_are_straight() {
    check(&assembler("slablab-check", &["--no-default-features"]), CLAIMS);
}

#[test]
fn malloc_and_free_are_straight() {
    check(&assembler("slablab-malloc", &[]), MALLOC);
}

fn check(text: &str, claims: &[Claim]) {
    let limits = limits();
    for Claim { function: name, module, stores, known } in claims {
        let hit_max = limits.get(*name).unwrap_or_else(|| panic!("the page has no row for {name}"));
        let function = function(text, &format!("{module}{}{name}", name.len()));
        let hit = function.hit(*stores);
        let length = hit.as_ref().map_or(0, Vec::len);
        let flaws = function.flaws(hit.as_deref());
        let branches =
            hit.iter().flatten().filter(|(name, _)| name.starts_with('j') && *name != "jmp").count();
        println!("{name}: hit {length} instructions, {branches} branches; function {}", function.steps.len());
        let hit: Vec<_> = hit.iter().flatten().map(|(name, operands)| format!("{name} {operands}")).collect();
        let hit = hit.join("\n");
        assert_eq!(flaws, *known, "{name}:\n{hit}");
        assert!(length <= *hit_max, "{name}: {length} instructions, the page has {hit_max}:\n{hit}");
    }
}
