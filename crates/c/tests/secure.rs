//! Variables of a user who may not command the process, and links in the place of its statistics.

mod library;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Who has no rights of anyone else: `nobody`.
const NOBODY: u32 = 65534;

/// A folder of a test's own, removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(parent: &Path, name: &str) -> Folder {
        let folder = parent.join(format!("slablab-{name}-{}", std::process::id()));
        fs::create_dir(&folder).expect("a new folder");
        allow(&folder, 0o755);
        Folder(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The names in the folder, in order.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry).into_string().expect("a text")).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays does not change what the test found.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its owner may");
}

fn library() -> PathBuf {
    library::folder().join("libslablab.so")
}

/// Builds secure.c.
fn build(program: &Path, arguments: &[&str], libraries: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/secure.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O1", "-Wall"]).args(arguments).arg(&source).arg("-o").arg(program);
    let done = compiler.args(libraries).output().expect("cc runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn texts(done: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{}: {}", done.status, text(&done.stderr));
    (text(&done.stdout), text(&done.stderr))
}

/// Whether a file is a regular one with a whole document.
fn is_document(path: &Path) -> bool {
    let is_file = fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_file());
    is_file && fs::read_to_string(path).is_ok_and(|text| text.starts_with('{') && text.ends_with("]}\n"))
}

/// `AT_SECURE` by the program's own `getauxval`, without root.
#[test]
fn a_process_with_more_rights_than_its_user_reads_no_variable() {
    let folder = Folder::new(Path::new(env!("CARGO_TARGET_TMPDIR")), "faked");
    let program = folder.path("faked");
    build(&program, &["-DFAKED", "-rdynamic"], &[]);
    let settings = [
        ("SLABLAB_ENGINE", "slurb"),
        ("SLABLAB_SLOTS", "node"),
        ("SLABLAB_HUGE", "2"),
        ("SLABLAB_ENGIN", "slub"),
        ("SLABLAB_STATS", "1"),
    ];
    let says = |secure: bool, name: &str, value: &str| {
        let mut command = Command::new(&program);
        command.env("LD_PRELOAD", library()).env(name, value);
        let command = if secure { command.env("FAKE_SECURE", "1") } else { &mut command };
        texts(&command.output().expect("it runs")).1
    };
    for (name, value) in settings {
        assert!(!says(false, name, value).is_empty(), "{name}={value} is read");
        assert_eq!(says(true, name, value), "", "{name}={value} is not read");
    }
    let file = folder.path("x.json");
    let path = file.to_str().expect("a text");
    assert_eq!(says(true, "SLABLAB_STATS", path), "");
    assert!(!file.exists());
    assert_eq!(says(false, "SLABLAB_STATS", path), "");
    assert!(is_document(&file));
}

/// Statistics replace a link, and not the file at its end; and leave nothing else in the folder.
#[test]
fn statistics_do_not_follow_links() {
    let folder = Folder::new(Path::new(env!("CARGO_TARGET_TMPDIR")), "links");
    let program = folder.path("program");
    build(&program, &[], &[]);
    let (target, link, old) = (folder.path("target"), folder.path("link.json"), folder.path("old.json"));
    fs::write(&target, "of another").expect("a file");
    for engine in library::ENGINES {
        fs::write(&old, "x".repeat(100_000)).expect("a file");
        // That of the engine before is a file now.
        let _ = fs::remove_file(&link);
        symlink(&target, &link).expect("a link");
        for file in [&link, &old] {
            let mut command = Command::new(&program);
            command.env("LD_PRELOAD", library()).env("SLABLAB_ENGINE", engine).env("SLABLAB_STATS", file);
            assert_eq!(texts(&command.output().expect("it runs")).1, "", "{engine}");
            assert!(is_document(file), "{engine}: {}", file.display());
        }
    }
    assert_eq!(fs::read_to_string(&target).expect("it is there"), "of another");
    assert_eq!(folder.names(), ["link.json", "old.json", "program", "target"]);
    // A place where no file can be: the folder is missing.
    let mut command = Command::new(&program);
    let missing = folder.path("missing/x.json");
    let done = command.env("LD_PRELOAD", library()).env("SLABLAB_STATS", missing).output();
    let errors = texts(&done.expect("it runs")).1;
    assert!(errors.contains("statistics are lost"), "{errors}");
}

/// A set-user-ID program that is linked to the library, run by a user who may not write root's files.
#[test]
#[cfg_attr(not(built_by_root), ignore = "needs root: a set-user-ID program is run by another user")]
fn a_set_user_id_program_reads_no_variable() {
    let parents = [std::env::temp_dir(), PathBuf::from(env!("CARGO_TARGET_TMPDIR")), "/var/tmp".into()];
    let done = parents.iter().find_map(|parent| set_user_id(&Folder::new(parent, "secure")));
    done.expect("set TMPDIR to a folder that is not mounted with nosuid, and that other users can reach");
}

/// `None` where programs do not get the rights of their owners.
fn set_user_id(folder: &Folder) -> Option<()> {
    assert_eq!(fs::metadata(&folder.0).expect("it is there").uid(), 0, "built by root, and run by another");
    for name in ["libslablab.so", "libslablab.so.0"] {
        fs::copy(library(), folder.path(name)).expect("a copy");
        allow(&folder.path(name), 0o755);
    }
    let place = folder.0.to_str().expect("a text");
    let linked = ["-Wl,--no-as-needed", "-L", place, "-lslablab", &format!("-Wl,-rpath,{place}")];
    let (plain, raised) = (folder.path("plain"), folder.path("raised"));
    build(&plain, &[], &linked);
    fs::copy(&plain, &raised).expect("a copy");
    allow(&plain, 0o755);
    allow(&raised, 0o4755);
    let (own, user) = (folder.path("root.conf"), folder.path("user"));
    fs::write(&own, "secret").expect("a file");
    allow(&own, 0o600);
    fs::create_dir(&user).expect("a folder");
    chown(&user, Some(NOBODY), Some(NOBODY)).expect("root may");
    let link = user.join("link.json");
    symlink(&own, &link).expect("a link");
    let run = |program: &Path, stats: &Path| {
        let mut command = Command::new(program);
        command.uid(NOBODY).gid(NOBODY).env("SLABLAB_ENGINE", "slurb").env("SLABLAB_STATS", stats);
        command.output().ok().filter(|done| done.status.success()).as_ref().map(texts)
    };
    let (said, errors) = run(&plain, &user.join("plain.json"))?;
    assert_eq!(said, format!("uid {NOBODY} euid {NOBODY}\n"));
    assert!(errors.contains("SLABLAB_ENGINE=slurb") && is_document(&user.join("plain.json")), "{errors}");
    for stats in [&link, &user.join("new.json"), &folder.path("new.json")] {
        let (said, errors) = run(&raised, stats)?;
        if said == format!("uid {NOBODY} euid {NOBODY}\n") {
            return None;
        }
        assert_eq!((said, errors), (format!("uid {NOBODY} euid 0\n"), String::new()));
    }
    assert_eq!(fs::read_to_string(&own).expect("root may"), "secret");
    assert!(link.is_symlink() && !user.join("new.json").exists() && !folder.path("new.json").exists());
    Some(())
}
