//! Every target over changed files of the project. The changes come from a fixed seed, so a find is found
//! again; the message has the target, the run and the file with the bytes.
//!
//! The runs are in a child process: an answer on standard output goes nowhere, and a run that does not end
//! is ended. `SLABLAB_FUZZ=TARGET,RUNS,SEED` in the environment of `child` runs more of them:
//!
//! ```sh
//! SLABLAB_FUZZ=replay,100000,7 cargo test -p slablab --release --lib fuzz::tests::child -- --exact
//! --ignored --nocapture
//! ```

use super::{ALL, SEPARATOR, Target};
use crate::fuzz;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Runs of each target in an ordinary test.
const RUNS: u64 = 24;
/// A run that takes longer does not end. The slowest ordinary one, under a debug build and load, takes some
/// seconds.
const LONGEST: Duration = Duration::from_secs(60);
const SEED: u64 = 20;

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// One to four changes.
fn mutate(data: &[u8], random: &mut Random) -> Vec<u8> {
    let mut data = data.to_vec();
    for _ in 0..=random.below(4) {
        if data.is_empty() {
            return data;
        }
        let at = random.below(data.len());
        let len = random.below(64).min(data.len() - at);
        match random.below(8) {
            0 => data[at] ^= 1 << random.below(8),
            1 => data[at] = *b"\0\xff\x7f\x80 ,:;=-()\"\n90aZ\x1b".get(random.below(20)).unwrap_or(&b'0'),
            2 => {
                let words = [0, 1, u64::MAX, 1 << 63, 0xffff_ffff, 1 << 32, 1 << 31, 1 << 40, 0x00ff_0000];
                let word = words[random.below(words.len())].to_le_bytes();
                let width = [1, 2, 4, 8][random.below(4)].min(data.len() - at);
                data[at..at + width].copy_from_slice(&word[..width]);
            }
            3 => drop(data.drain(at..at + len)),
            4 => {
                let repeated = data[at..at + len].to_vec();
                data.splice(at..at, repeated);
            }
            5 if random.below(8) == 0 => data.truncate(at),
            _ => change_number(&mut data, at, random),
        }
    }
    data
}

/// Another number in the place of the decimal one that follows a place: texts are mostly numbers.
fn change_number(data: &mut Vec<u8>, at: usize, random: &mut Random) {
    let Some(start) = data[at..].iter().position(u8::is_ascii_digit).map(|from| at + from) else { return };
    let len = data[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let numbers: [&[u8]; 16] = [
        b"0",
        b"1",
        b"2",
        b"-1",
        b"7",
        b"255",
        b"65536",
        b"4194304",
        b"8388608",
        b"2147483648",
        b"4294967295",
        b"4294967296",
        b"9223372036854775808",
        b"18446744073709551615",
        b"18446744073709551616",
        b"1e300",
    ];
    data.splice(start..start + len, random.of(&numbers).iter().copied());
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of folders, which begin with `root`, whose names end so.
fn files(folders: &[&str], ends: &[&str]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for folder in folders {
        let folder = root().join(folder);
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        let wanted = |path: &&PathBuf| ends.iter().any(|end| path.to_string_lossy().ends_with(end));
        found.extend(paths.iter().filter(wanted).map(|path| fs::read(path).expect("a file")));
    }
    assert!(!found.is_empty(), "no file in {folders:?}");
    found
}

fn recordings() -> Vec<Vec<u8>> {
    let readers = "crates/readers/corpus/";
    let folders = ["perfdata", "tracedat", "ftrace", "tidy"].map(|name| format!("{readers}{name}"));
    let mut all = files(&folders.each_ref().map(String::as_str), &[""]);
    all.push(SIZES.as_bytes().to_vec());
    all
}

/// A recording with every kind of event, and sizes that changes of a digit make impossible.
const SIZES: &str = "seq,ts,cpu,pid,comm,ev,ptr,cache,dir,bytes_req,bytes_alloc,gfp,node,call_site,extra
0,6.8,1,115,snap,mm_page_alloc,30232,,,,3,GFP_KERNEL,-1,,mt=0
1,6.8,1,115,snap,kmalloc,ff11000030232400,kmalloc-1k,,1024,1024,GFP_KERNEL,-1,f+0x6e,
2,6.8,0,115,snap,kmalloc,ff11000030233000,,,1024,1024,GFP_KERNEL|__GFP_ZERO,-1,f+0x6e,
3,6.9,1,115,snap,kmem_cache_alloc,ff11000030234000,filp,filp,256,256,GFP_KERNEL_ACCOUNT,0,g,
4,6.9,1,115,snap,kmem_cache_alloc,ff11000030238000,big,big,8200,8200,GFP_KERNEL,0,g,
5,7.0,0,115,snap,kfree,ff11000030233000,,,,,,,h,
6,7.0,0,115,snap,kmem_cache_free,ff11000030234000,filp,filp,,,,,h,
7,7.1,1,115,snap,kmalloc,ff11000030240000,,,100000,131072,GFP_KERNEL|__GFP_DMA,-1,f+0x6e,
8,7.1,1,115,snap,kfree,ff11000030240000,,,,,,,h,
9,7.2,1,115,snap,mm_page_free,30232,,,,3,,,,
";

const SLABINFO: &str = "slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>
filp                1024   1120    256   16    1 : tunables  120   60    8 : slabdata     70     70      0
kmalloc-1k           500    512   1024   16    4 : tunables    0    0    0 : slabdata     32     32      0
big                   30     36   8200    3    8 : tunables    8    4    0 : slabdata     12     12      0
dentry             20000  20160    192   21    1 : tunables    0    0    0 : slabdata    960    960      0
";

fn dumps() -> Vec<Vec<u8>> {
    let readers = "crates/readers/corpus/";
    let mut all =
        files(&[&format!("{readers}bundle"), &format!("{readers}input")], &[".tar", ".txt", "slabinfo"]);
    all.extend(files(&["examples/data"], &["start.txt"]));
    all.push(SLABINFO.as_bytes().to_vec());
    all
}

fn pasted() -> Vec<Vec<u8>> {
    let mut all = files(&["crates/readers/corpus/pasted"], &[".txt"]);
    all.extend(dumps());
    all
}

/// Answers in JSON of unchanged files.
fn answers() -> Vec<Vec<u8>> {
    let folder = fuzz::Folder::new(SIZES.as_bytes());
    folder.write("dump", SLABINFO.as_bytes());
    let path = |name: &str| folder.path(name).display().to_string();
    let runs = [
        format!("replay {} --engine slub@6.1 --engine slab@6.1", path("0")),
        format!("doctor {}", path("dump")),
        format!("whatif {} --max-order 0", path("dump")),
    ];
    let answer = |words: &String| {
        let mut words: Vec<String> = words.split_whitespace().map(String::from).collect();
        words.extend(["--format".into(), "json".into(), "-o".into(), path("out")]);
        crate::program::run_words(&words).ok()?;
        fs::read(folder.path("out")).ok()
    };
    let answers: Vec<Vec<u8>> = runs.iter().filter_map(answer).collect();
    assert!(!answers.is_empty(), "no answer of {runs:?}");
    answers
}

const MACHINE: &str = "name = \"m\"\npage_size = 4096\ncpus = 4\nthreads_per_core = 2\nseed = 7\n\
                       grace_period_ms = 10\n[[nodes]]\nmemory = \"1G\"\n[[nodes]]\nmemory = \"512M\"\n";

/// The files of each input of a target.
fn seeds(target: &str) -> Vec<Vec<Vec<u8>>> {
    match target {
        "import" | "replay" | "map" | "explain" => vec![recordings()],
        "sites" => {
            let mut all = recordings();
            all.push(b"allocinfo - version: 1.0\n#     <size>  <calls> <tag info>\n  4096  1 mm/slub.c:10 func:f\n".to_vec());
            vec![all]
        }
        "replay-before" => vec![recordings(), dumps()],
        "replay-machine" => vec![recordings(), vec![MACHINE.into()]],
        "verify" => vec![recordings(), dumps(), dumps()],
        "doctor" | "whatif" => vec![pasted()],
        "doctor-since" | "leak" | "fleet" => vec![pasted(), pasted()],
        "what" => vec![pasted()],
        "what-data" => vec![files(&["crates/doctor/data"], &[".toml"])],
        "compare" => vec![answers(), answers()],
        "run" => vec![files(&["experiments"], &[".toml"])],
        "show" => vec![files(&["crates/readers/corpus/vmrecord"], &[""])],
        "judge" => vec![vec![archive()]],
        "pressure-run" => vec![files(&["examples/data/vm"], &[".t"]), Vec::new()],
        "top" => vec![vec![vec![0; 64]]],
        other => panic!("no files for {other}"),
    }
}

/// An archive of records: a run of a scenario, twice.
fn archive() -> Vec<u8> {
    let record = files(&["crates/readers/corpus/vmrecord"], &[""]).remove(0);
    let mut tar = Vec::new();
    for path in ["compete/61-mglru-r1/rec", "compete/61-classic-r1/rec", "compete/61-mglru-r2/rec"] {
        let mut header = [0u8; 512];
        header[..path.len()].copy_from_slice(path.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[124..136].copy_from_slice(format!("{:011o}\0", record.len()).as_bytes());
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].copy_from_slice(b"        ");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar.extend_from_slice(&header);
        tar.extend_from_slice(&record);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

/// The input of a run: of every second one, only one of several parts is changed.
fn input(seeds: &[Vec<Vec<u8>>], random: &mut Random) -> Vec<u8> {
    let changed = random.below(2 * seeds.len());
    let mut input = Vec::new();
    for (at, seeds) in seeds.iter().filter(|seeds| !seeds.is_empty()).enumerate() {
        if at > 0 {
            input.extend_from_slice(SEPARATOR);
        }
        let seed = &seeds[random.below(seeds.len())];
        match changed == at || changed >= seeds.len() {
            true => input.extend(mutate(seed, random)),
            false => input.extend_from_slice(seed),
        }
    }
    input
}

/// What a run that a watcher looks at is doing.
struct Now {
    began: Instant,
    input: Vec<u8>,
}

static NOW: Mutex<Option<Now>> = Mutex::new(None);
static PANICS: AtomicU64 = AtomicU64::new(0);

fn keep(target: &str, what: &str, input: &[u8]) -> PathBuf {
    let folder = std::env::temp_dir().join("slablab-fuzz-finds");
    let _ = fs::create_dir_all(&folder);
    let path = folder.join(format!(
        "{target}-{what}-{:x}",
        input.len() as u64 ^ SEED << 32 ^ NEXT.fetch_add(1, Ordering::Relaxed)
    ));
    let _ = fs::write(&path, input);
    path
}

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Ends this process when a run does not end.
fn watch(target: &'static str) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let now = NOW.lock().expect("no panic holds it");
            if let Some(Now { began, input }) = &*now
                && began.elapsed() > LONGEST
            {
                let path = keep(target, "hang", input);
                eprintln!("HANG: {target}: no end after {LONGEST:?}: {}", path.display());
                std::process::exit(3);
            }
        }
    });
}

/// A character that steers a terminal.
fn is_control(char: char) -> bool {
    char.is_control() && char != '\n' && char != '\t'
        || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Runs a target; answers how many runs found something.
fn run(name: &'static str, target: Target, runs: u64, seed: u64) -> u64 {
    let mut random = Random(seed);
    let seeds = seeds(name);
    watch(name);
    let (mut finds, mut answered, mut slowest) = (0, 0, Duration::ZERO);
    for run in 0..runs {
        let input =
            if name == "top" { random.next().to_le_bytes().to_vec() } else { input(&seeds, &mut random) };
        *NOW.lock().expect("no panic holds it") = Some(Now { began: Instant::now(), input: input.clone() });
        let (began, panics) = (Instant::now(), PANICS.load(Ordering::Relaxed));
        let answer = catch_unwind(AssertUnwindSafe(|| target(&input)));
        slowest = slowest.max(began.elapsed());
        let text = match &answer {
            Ok(Ok(text) | Err(text)) => text.as_str(),
            Err(_) => "",
        };
        answered += u64::from(matches!(answer, Ok(Ok(_))));
        // A panic of a thread that the verb waits for is an error to it; the user reads the panic's message.
        if answer.is_err() || PANICS.load(Ordering::Relaxed) != panics {
            let path = keep(name, "panic", &input);
            eprintln!("PANIC: {name}: run {run} of seed {seed}: {}", path.display());
            finds += 1;
        } else if let Some(found) = text.chars().find(|char| is_control(*char)) {
            let path = keep(name, "control", &input);
            eprintln!(
                "CONTROL: {name}: run {run} of seed {seed}: {found:?} in the answer: {}",
                path.display()
            );
            finds += 1;
        }
    }
    eprintln!("DONE: {name}: {runs} runs, {answered} answers, {finds} finds, slowest {slowest:?}");
    finds
}

#[test]
#[ignore = "run by `changed_files_give_answers_or_errors`, or by hand for longer"]
fn child() {
    let Some(asked) = std::env::var("SLABLAB_FUZZ").ok() else { return };
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        usual(info);
    }));
    let mut words = asked.split(',');
    let (name, runs, seed) = (words.next().unwrap_or(""), words.next(), words.next());
    let number = |word: Option<&str>, usual: u64| word.map_or(usual, |word| word.parse().expect("a number"));
    if let Some(path) = name.strip_prefix('@') {
        let (target, path) = path.split_once(':').expect("@TARGET:FILE");
        let (_, run) = ALL.iter().find(|(name, _)| *name == target).expect("a target");
        let answer = run(&fs::read(path).expect("a file"));
        eprintln!("{answer:?}");
        return;
    }
    let (name, target) = ALL.iter().find(|(target, _)| *target == name).expect("a target");
    assert_eq!(run(name, *target, number(runs, RUNS), number(seed, SEED)), 0, "runs that found something");
}

#[test]
fn changed_files_give_answers_or_errors() {
    for (name, _) in ALL {
        let child = Command::new(std::env::current_exe().expect("this test"))
            .args(["fuzz::tests::child", "--exact", "--ignored", "--nocapture"])
            .env("SLABLAB_FUZZ", format!("{name},{RUNS},{SEED}"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .expect("this test can be run");
        let said = String::from_utf8_lossy(&child.stderr);
        let told = |line: &&str| {
            ["PANIC", "HANG", "CONTROL", "DONE", "thread"].iter().any(|word| line.contains(word))
        };
        let told: Vec<&str> = said.lines().filter(told).collect();
        assert!(child.status.success(), "{name}: {}:\n{}", child.status, told.join("\n"));
        assert!(told.iter().any(|line| line.starts_with("DONE")), "{name} ran nothing: {said}");
    }
}
