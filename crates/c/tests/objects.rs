//! Object caches in a C program, which is linked with the library as install.sh installs it, once per engine.

mod library;

use library::ENGINES;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

fn done(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text")
}

/// Installs the library, and returns the folder.
fn installed() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed");
    done(Command::new(crates.join("install.sh")).arg(&prefix).env("BUILT", library::folder()));
    prefix
}

/// The compiler's arguments from pkg-config; if it is not installed, from the `.pc` file itself.
fn arguments(prefix: &Path) -> Vec<String> {
    let file = prefix.join("lib/pkgconfig");
    let mut asked = Command::new("pkg-config");
    asked.args(["--cflags", "--libs", "slablab"]).env("PKG_CONFIG_PATH", &file);
    let text = match asked.output() {
        Ok(said) => {
            assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
            String::from_utf8(said.stdout).expect("text")
        }
        Err(_) => {
            let text = std::fs::read_to_string(file.join("slablab.pc")).expect("it is installed");
            let prefix = prefix.to_str().expect("text");
            let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).expect("the key");
            format!("{} {}", line("Cflags:"), line("Libs:"))
                .replace("${libdir}", &format!("{prefix}/lib"))
                .replace("${includedir}", &format!("{prefix}/include"))
        }
    };
    text.split_whitespace().map(str::to_owned).collect()
}

struct Built {
    program: PathBuf,
    libraries: PathBuf,
}

/// The program; built once for all tests here.
fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let prefix = installed();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/objects.c");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("objects");
        let mut compiler = Command::new("cc");
        compiler.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-Wno-array-bounds"]);
        compiler.args(["-Wno-use-after-free", "-Wno-free-nonheap-object", "-Wno-unknown-warning-option"]);
        done(compiler.arg(&source).arg("-o").arg(&program).args(arguments(&prefix)));
        Built { program, libraries: prefix.join("lib") }
    })
}

fn run(engine: &str, arguments: &[&str], setting: (&str, &str)) -> Output {
    run_program(&built().program, engine, arguments, setting)
}

fn run_program(program: &Path, engine: &str, arguments: &[&str], setting: (&str, &str)) -> Output {
    let built = built();
    let mut command = Command::new(program);
    // The library would report it: it is a variable of these tests.
    command.env_remove("SLABLAB_LONG");
    command.args(arguments).env("LD_LIBRARY_PATH", &built.libraries).env("SLABLAB_ENGINE", engine);
    command.env(setting.0, setting.1).output().expect("it runs")
}

#[test]
fn object_caches_do_what_the_header_says() {
    for engine in ENGINES {
        for slots in ["thread", "cpu"] {
            let done = run(engine, &[], ("SLABLAB_SLOTS", slots));
            let (said, errors) =
                (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            let whole = done.status.success() && said.contains("all holds");
            assert!(whole, "{engine}, {slots}: {}\n{said}{errors}", done.status);
            let reported = "slablab: remaining: cannot be destroyed: objects remaining: 3\n";
            assert_eq!(errors, reported, "{engine}, {slots}");
        }
    }
}

/// The handlers run by a timer and, with a slot per thread, after every instruction.
#[test]
fn signal_handlers_that_allocate() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/signals.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("object-signals");
    let prefix = built().libraries.parent().expect("it is in a folder");
    let mut compiler = Command::new("cc");
    compiler.args(["-DOBJECTS", "-std=gnu11", "-O1", "-Wall", "-pthread"]);
    done(compiler.arg(&source).arg("-o").arg(&program).args(arguments(prefix)));
    let check = |engine: &str, slots: &str, arguments: &[&str]| {
        let done = run_program(&program, engine, arguments, ("SLABLAB_SLOTS", slots));
        let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        let whole = done.status.success() && said.starts_with("all holds, ");
        assert!(whole, "{engine}, {slots}, {arguments:?}: {}\n{said}{errors}", done.status);
        assert_eq!(errors, "", "{engine}, {slots}");
        println!("{engine}, {slots}, {arguments:?}: {}", said.trim());
    };
    let long = std::env::var_os("SLABLAB_LONG").is_some();
    for engine in ENGINES {
        for slots in ["thread", "cpu"] {
            check(engine, slots, &["8000"]);
        }
        // Debugging, which reads every byte of an object, takes too many instructions.
        let steps = if long { !engine.contains(',') } else { ["slub@6.1", "slab@6.1"].contains(engine) };
        if cfg!(target_arch = "x86_64") && steps {
            check(engine, "thread", &["10", "steps"]);
        }
    }
}

/// A fault, and a part of its report; `@` stands for the first object's address.
const FAULTS: &[(&str, &str)] = &[
    ("double free", "plain: double free of @"),
    ("double free, kept", "kept: double free of 0x"),
    ("double free, bulk", "plain: double free of @"),
    ("of malloc", "plain: free of 0x"),
    ("of malloc", "an object of malloc-112"),
    ("to malloc", "free of @: an object of plain"),
    ("of another cache", "other: free of @: an object of plain"),
    ("foreign", "plain: free of 0x"),
    ("foreign", "outside the heap"),
    ("inside", "not the start of an object: at offset "),
    ("not aligned", "not the start of an object"),
    ("never allocated", "or free of an object that was never allocated"),
    ("empty slab", "plain: free of @: not allocated here: outside the heap, or in an empty slab"),
    ("behind its end", "the word behind the object was overwritten"),
    ("behind a free object", "ended: the word behind the free object 0x"),
    ("remaining", "plain: cannot be destroyed: objects remaining: 2"),
    ("heap: twice", "double free of @"),
    ("heap: by malloc", "free of @"),
    ("heap: of malloc", "free of 0x"),
    ("heap: behind", "Right Redzone overwritten"),
];

#[test]
fn every_misuse_is_reported_with_address_and_cache() {
    for engine in ENGINES {
        for (fault, says) in FAULTS {
            let done = run(engine, &[fault], ("SLABLAB_STATS", "0"));
            let address = String::from_utf8_lossy(&done.stdout);
            let says = says.replace('@', address.split(' ').next().expect("an address"));
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(!done.status.success(), "{fault} under {engine} went unnoticed");
            assert!(said.contains(&says), "{fault} under {engine}: no {says:?} in\n{said}");
        }
    }
}

/// A damaged list ends in one line that names object and cache, also where the engine finds it while the
/// cache is destroyed.
#[test]
fn a_damaged_list_is_reported_with_the_cache_s_name() {
    for engine in ["slub@7.1", "slub@6.1", "slqb@2009-09", "slab@6.1"] {
        for fault in ["damaged list, shrink", "damaged list, destroy"] {
            let done = run(engine, &[fault], ("SLABLAB_STATS", "0"));
            let address = String::from_utf8_lossy(&done.stdout);
            let said = String::from_utf8_lossy(&done.stderr);
            let what = format!("{fault} under {engine}: {}\n{address}{said}", done.status);
            assert!(!done.status.success() && said.lines().count() == 1, "{what}");
            assert!(said.starts_with("slablab: plain: ") && said.contains(" 0x"), "{what}");
        }
    }
}

/// A fault in a cache with debugging flags, the report's lines, and whether the fault ends the program.
const WATCHED: &[(&str, &[&str], bool)] = &[
    (
        "watched: behind",
        &[
            "BUG watched: Right Redzone overwritten",
            "INFO: byte 60 of the object is 0x41 instead of 0xcc",
            "INFO: Allocated in ",
            "INFO: Freed in ",
            "INFO: Object @, found in ",
        ],
        false,
    ),
    (
        "watched: before",
        &[
            "BUG watched: Left Redzone overwritten",
            "INFO: byte -1 of the object is 0x41 instead of 0xcc",
            "INFO: Object @, found in ",
        ],
        false,
    ),
    (
        "watched: poison",
        &[
            "BUG watched: Poison overwritten",
            "INFO: byte 7 of the object is 0x41 instead of 0x6b",
            "INFO: Object @, found in ",
        ],
        false,
    ),
    (
        "watched: twice",
        &["BUG watched: Object already free", "INFO: Object @, found in ", "watched: double free of @"],
        true,
    ),
];

#[test]
fn flags_of_one_cache_debug_it() {
    for engine in ["slub@7.1", "slub@6.1", "slqb@2009-09", "slab@6.1"] {
        for (fault, says, ends) in WATCHED {
            let done = run(engine, &[fault], ("SLABLAB_STATS", "0"));
            let address = String::from_utf8_lossy(&done.stdout);
            let said = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.success(), !ends, "{fault} under {engine}: {}\n{said}", done.status);
            for line in *says {
                let line = line.replace('@', address.trim());
                assert!(said.contains(&line), "{fault} under {engine}: no {line:?} in\n{said}");
            }
            assert_eq!(said.matches("BUG ").count(), 1, "{fault} under {engine}: once\n{said}");
        }
    }
}

#[test]
fn statistics_list_object_caches_after_malloc() {
    let done = run("slub@7.1", &["nothing"], ("SLABLAB_STATS", "1"));
    let said = String::from_utf8_lossy(&done.stderr);
    let place = |name: &str| {
        let found = said.lines().position(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("no {name} in\n{said}"))
    };
    assert!(place("# name") < place("malloc-") && place("malloc-") < place("plain "), "{said}");
    let plain: Vec<&str> = said.lines().nth(place("plain ")).expect("its line").split_whitespace().collect();
    // name active total size per-slab pages, as in slabinfo: two objects are live.
    assert_eq!((plain[1], plain[3]), ("2", "64"), "{said}");
}

#[test]
fn programs_link_to_the_soname() {
    let built = built();
    let said = done(Command::new("readelf").arg("-d").arg(&built.program));
    assert!(said.contains("[libslablab.so.0]"), "the program looks for another library:\n{said}");
}
