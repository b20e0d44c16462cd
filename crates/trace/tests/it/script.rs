//! The script language: its accesses beside those of an independent program, and what it refuses.

use slablab_trace::script::{
    Access, Batches, Command, Distribution, Mode, ObjectId, Process, Rw, Script, ScriptError, StatOrder,
};

const SEQUENCES: &str = include_str!("golden/sequences.txt");
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/vm");

/// The accesses of one process, in order. Its children are not run.
pub(crate) fn accesses(script: &Script, mut visit: impl FnMut(Access)) {
    let mut process = Process::new(script);
    for line in &script.commands {
        match &line.command {
            Command::Seed(seed) => process.seed(*seed),
            Command::Rewind(object) => process.rewind(*object),
            Command::Access { rounds, groups } => {
                Batches::new(*rounds, groups).each(&mut process, &mut visit)
            }
            Command::Stat(stat) => {
                if let StatOrder::Uniform(draws) = stat.order {
                    for _ in 0..draws {
                        process.draw();
                    }
                }
            }
            _ => {}
        }
    }
}

/// Accesses and hash, as the header of the golden file defines them.
fn fold(script: &Script) -> (u64, u64) {
    let mut seen: Vec<ObjectId> = Vec::new();
    let (mut count, mut hash) = (0, 0xcbf2_9ce4_8422_2325_u64);
    accesses(script, |access| {
        let object = seen.iter().position(|seen| *seen == access.object).unwrap_or_else(|| {
            seen.push(access.object);
            seen.len() - 1
        });
        let flags = u64::from(access.mode == Mode::Syscall) | u64::from(access.rw == Rw::Write) << 1;
        let word = u64::from(access.page) | (object as u64) << 32 | flags << 48;
        hash = (hash ^ word).wrapping_mul(0x100_0000_01b3);
        count += 1;
    });
    (count, hash)
}

pub(crate) fn parse(text: &str) -> Result<Script, ScriptError> {
    Script::parse("s.t", text, &mut |path| Err(format!("no file {path}")))
}

/// A script of the examples, or of this folder.
fn named(name: &str) -> Script {
    let load = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
    let path = match name {
        "mixed.t" => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/golden/mixed.t").to_string(),
        name => format!("{SCRIPTS}/{name}"),
    };
    // A child's script is tested by its own row; here it may say `ready`.
    let text = load(&path).unwrap().replace("ready", "sync");
    Script::parse(&path, &text, &mut |path| load(path)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn sequences_are_those_of_the_independent_program() {
    let mut names = Vec::new();
    for row in SEQUENCES.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = row.split(' ').collect();
        let script = match words[0] {
            name if name.ends_with(".t") => named(name),
            distribution => parse(&format!(
                "seed 9\nanon hotel 40.5\nacc 100000 hotel {distribution} m r\nacc 50000 hotel {distribution} m w\n"
            ))
            .unwrap(),
        };
        let (count, hash) = fold(&script);
        assert_eq!([words[0], &count.to_string(), &format!("{hash:016x}")], words[..], "{row}");
        names.push(words[0]);
    }
    assert_eq!(names.len(), 27, "the golden file has lost rows: {names:?}");
}

/// How many pages are asked for at once does not change them.
#[test]
fn pieces_of_a_sequence_are_the_sequence() {
    let script = parse("anon a 3.7\nanon b 1").unwrap();
    let distributions = ["seq", "rev", "uni", "stride:7", "part:10:3", "zipf:50", "zipf:100"];
    for word in distributions {
        let one = parse(&format!("anon a 3.7\nacc 1 a {word} m r")).unwrap();
        let Command::Access { groups, .. } = &one.commands[1].command else { panic!() };
        let distribution: Distribution = groups[0].distribution;
        let mut whole = vec![0; 3000];
        Process::new(&script).fill(ObjectId(0), distribution, &mut whole);
        let mut pieces = vec![0; 3000];
        let mut process = Process::new(&script);
        for piece in pieces.chunks_mut(7) {
            process.fill(ObjectId(0), distribution, piece);
        }
        assert_eq!(whole, pieces, "{word}");
        assert!(whole.iter().all(|page| *page < 947), "{word}");
    }
}

#[test]
fn a_child_goes_on_with_the_generator_of_its_parent() {
    let script = parse("anon a 1").unwrap();
    let mut parent = Process::new(&script);
    parent.seed(7);
    parent.draw();
    let mut child = parent.spawn(&script);
    assert_eq!(child.draw(), parent.draw());
    assert_ne!(child.draw(), Process::new(&script).draw());
}

#[test]
fn every_example_parses_with_its_children() {
    let mut parsed = 0;
    for entry in std::fs::read_dir(SCRIPTS).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_child = ["app.t", "compete_stream.t", "compete_work.t"].contains(&name.as_str());
        if !name.ends_with(".t") || is_child {
            continue;
        }
        let script = named(&name);
        let phases = script.commands.iter().filter(|line| matches!(line.command, Command::Phase(_)));
        assert!(phases.count() > 0, "{name}");
        let children = match name.as_str() {
            "closeall_lifo.t" => 5,
            "compete.t" => 2,
            _ => 0,
        };
        assert_eq!(script.children.len(), children, "{name}");
        parsed += 1;
    }
    assert_eq!(parsed, 13);
}

#[test]
fn commands_have_their_words() {
    let text = "# all\n\nflushevery 9\nshm s 2\npunch s 4 1 # half\nrewind s\nset /proc/x 1\ninter 3 2 s seq s w 1 s part:4:1 m r\n\
                msg 4 4040\nmsgfree 0\npipes 3 512\npipesfree\nstat /d 2 3 4\nrecslab 1\nfree s\n";
    let script = parse(text).unwrap();
    let line = |number: u32| &script.commands.iter().find(|line| line.number == number).unwrap().command;
    assert_eq!(script.commands.len(), 13);
    assert_eq!(*line(3), Command::FlushEvery(9));
    assert_eq!(*line(5), Command::Punch { object: ObjectId(0), group: 4, keep: 1 });
    let Command::Access { rounds: 3, groups } = line(8) else { panic!("{:?}", line(8)) };
    assert_eq!((groups.len(), groups[0].count, groups[1].mode), (2, 2, Mode::Mapped));
    assert_eq!(groups[1].distribution, Distribution::Part { group: 4, first: 1 });
    assert_eq!(*line(11), Command::Pipes { count: 3, slots: 512 });
    assert_eq!(*line(15), Command::Free(ObjectId(0)));
}

/// Steps are known before a script runs, and scripts that spawn one another many times are counted fast.
#[test]
fn steps_are_counted_before_a_script_runs() {
    let steps = |text: &str| parse(text).unwrap().steps();
    assert_eq!(steps("anon a 1\nacc x2 a seq m r\nacc 5 a uni m w\n"), 2 * 256 + 5);
    assert_eq!(steps("anon a 1\ninter 1000000000 512 a seq m r 3 a uni m r\n"), 515_000_000_000);
    assert_eq!(steps("anon a 1\ninter 10000000000 5000000000 a seq m r\n"), u64::MAX);
    assert_eq!(steps("stat d 3 4 5\nstatuni d 3 4 7\nmsg 11 8\npipes 13 2\nanon a 1\npunch a 4 1\n"), 155);
    let deep = |path: &str| -> Result<String, String> {
        let depth: u32 = path.trim_end_matches(".t").parse().map_err(|_| "no number".to_string())?;
        let next = depth + 1;
        Ok(if depth < 60 { format!("spawn a {next}.t\nspawn b {next}.t\n") } else { "phase p\n".into() })
    };
    let script = Script::parse("s.t", "spawn a 0.t\n", &mut { deep }).unwrap();
    assert_eq!(script.steps(), (1 << 61) - 1);
}

#[test]
fn errors_say_where_and_what_and_which_names_are_near() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.starts_with(&format!("s.t: {expected}")), "{text}: {error}");
    }
    check("acx 1 a seq m r", "line 1: expected a command, found `acx`; near it: acc");
    check("anon hot 1\nacc 1 hto seq m r", "line 2: expected the name of an object declared above");
    check(
        "anon hot 1\nrewind hit",
        "line 2: expected the name of an object declared above in `rewind NAME`, found `hit`; near it: hot",
    );
    check("anon hot", "line 1: expected MiB in `anon NAME MiB`, found `the end of the line`");
    check("anon hot 0.001", "line 1: expected MiB (a decimal number; at least one page");
    check("anon hot 1\nfile hot 1", "line 2: expected a NAME that no object of this script has");
    check("anon a 1\nacc 1 a zpif:100 m r", "line 2: expected DIST (seq, rev, uni,");
    check("anon a 1\nacc 1 a zipf:70 m r", "line 2: expected DIST (seq, rev, uni,");
    check("anon a 1\nacc 1 a part:3:0 m r", "line 2: expected part:M:K with");
    check("anon a 1\nacc 1 a stride:0 m r", "line 2: expected stride:K with a K of at least 1");
    check("anon a 1\nacc 1 a seq x r", "line 2: expected MODE (m or s)");
    check("anon a 1\nacc 1 a seq m", "line 2: expected RW (r or w)");
    check("anon a 1\nacc 1 a seq m r w", "line 2: expected the end of the line");
    check("anon a 1\nacc xx a seq m r", "line 2: expected COUNT (a number; x2: twice");
    check("anon a 1\ninter 5", "line 2: expected K in `inter ROUNDS {K NAME DIST MODE RW}+`");
    check("anon a 1\nfree a\nacc 1 a seq m r", "line 3: expected an object that no line above has freed");
    check("file a 1\npunch a 2 1", "line 2: expected an `anon` or `shm`");
    check("anon a 1\npunch a 2 3", "line 2: expected K, up to M (a number of at most 2)");
    check(
        "ready",
        "line 1: expected no `ready`: only a script that another script starts (`spawn`) may have it. Run the \
         script that spawns this one",
    );
    check("go app", "line 1: expected the name of a child spawned above");
    check("spawn app app.t", "line 1: expected a script that can be read (no file app.t)");
    check("seed -1", "line 1: expected N (a number of at most 18446744073709551615) in `seed N`, found `-1`");
}

#[test]
fn errors_of_a_child_name_its_file() {
    let load = |path: &str| match path {
        "dir/child.t" => Ok("ready\nacc 1 a seq m r".to_string()),
        "dir/loop.t" => Ok("spawn again loop.t".to_string()),
        _ => Err("no such file".to_string()),
    };
    let error = |text: &str| Script::parse("dir/s.t", text, &mut { load }).unwrap_err().to_string();
    let found = error("spawn one child.t");
    assert!(found.starts_with("dir/child.t: line 2: expected the name of an object"), "{found}");
    let found = error("spawn one loop.t");
    assert!(found.starts_with("dir/loop.t: line 1: expected a script that does not spawn itself"), "{found}");
}
