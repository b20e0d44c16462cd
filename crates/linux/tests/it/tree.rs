//! A real kernel tree, whose path is in `SLABLAB_LINUX_TREE`.

use super::folder;
use slablab_linux::build::{Built, Part, Request, Store};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The newest time of a change in a folder, of files and folders.
fn newest(path: &Path) -> SystemTime {
    let found = fs::symlink_metadata(path).expect("a file");
    let own = found.modified().expect("a time");
    match found.is_dir() {
        false => own,
        true => {
            let entries = fs::read_dir(path).expect("a folder").map(|entry| entry.expect("a file").path());
            entries.map(|path| newest(&path)).fold(own, SystemTime::max)
        }
    }
}

#[track_caller]
pub(super) fn build(store: &Store, request: &Request) -> Built {
    let built = store.build(request, &mut |_| ControlFlow::Continue(()));
    built.unwrap_or_else(|error| panic!("{error}")).expect("nothing stops it")
}

#[test]
fn a_real_tree() {
    let Some(tree) = std::env::var_os("SLABLAB_LINUX_TREE").map(PathBuf::from) else { return };
    let before = newest(&tree);
    let store = Store::at(folder("tree"));
    let mut request = Request::of(&tree);
    // A stop among the objects leaves no build, and what was made is used.
    let stopped = store.build(&request, &mut |step| match step.part {
        Part::Objects if step.done > 3 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert!(stopped.expect("no error").is_none());
    assert!(store.list().is_empty());

    let built = build(&store, &request);
    assert!(built.is_new && built.plain().exists() && built.instrumented().exists(), "{built:?}");
    assert!(built.sources > 500 && !built.functions.is_empty(), "{built:?}");
    let begun = Instant::now();
    let again = build(&store, &request);
    assert!(!again.is_new && again.digest == built.digest && again.name == built.name);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());

    request.name = Some("other".into());
    let other = build(&store, &request);
    assert_eq!((other.name.as_str(), &other.digest), ("other", &built.digest));
    assert_eq!(store.find("other").expect("a build").digest, built.digest);
    assert_eq!(store.find(tree.to_str().expect("UTF-8")).expect("a build").digest, built.digest);
    let names: Vec<(String, Option<String>)> =
        store.list().into_iter().map(|entry| (entry.name, entry.outdated)).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().all(|(_, outdated)| outdated.is_none()), "{names:?}");

    assert_eq!(newest(&tree), before, "nothing is written into the tree");
    assert_eq!(store.remove_all().expect("a removal").0.len(), 2);
    assert!(store.list().is_empty());
}
