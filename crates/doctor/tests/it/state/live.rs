//! The running machine. Where its slabs may not be read, the error must say what to do; the rest needs root.

use super::tars::{folder, read, try_read};
use slablab_doctor::state::{self, COLLECT};
use std::process::Command;

#[test]
fn the_running_machine_is_read_or_the_way_to_it_is_said() {
    match try_read("/") {
        Err(error) => assert!(error.contains("sudo") || error.contains("found neither"), "{error}"),
        Ok(state) => {
            assert!(state.page_size.is_power_of_two() && state.cpus.is_some() && state.release.is_some());
            assert!(state.taken_s > Some(1_700_000_000) && state.up_s > Some(0.0));
            assert!(!state.caches.is_empty() && state.bytes() > 0);
            let said =
                |missing: &state::Missing| missing.command.is_some() || missing.why == "this kernel has none";
            assert!(state.missing.iter().all(said), "{:?}", state.missing);
        }
    }
}

#[test]
fn what_is_saved_is_what_is_read_again() {
    let folder = folder("saved");
    for name in ["a.tar", "a.tgz", "a.tar.zst", "a.tar.xz"] {
        let path = folder.join(name);
        let Ok(state) = state::save(&path) else {
            assert!(!path.exists() && try_read("/").is_err(), "{name}: can be read, but not saved");
            continue;
        };
        let again = read(&path);
        assert_eq!(again.caches, state.caches, "{name}");
        assert_eq!(
            (again.page_size, again.cpus, again.release),
            (state.page_size, state.cpus, state.release)
        );
        let parts =
            |state: &state::State| (state.dump.meminfo.clone(), state.dump.config.clone(), state.up_s);
        assert_eq!(parts(&again), parts(&state), "{name}");
        assert_eq!(again.taken_s, state.taken_s, "{name}");
    }
    let error = state::save(&folder.join("a.zip")).unwrap_err().to_string();
    assert!(
        error.contains("expected a name that ends in .tar, .tar.gz, .tgz, .tar.zst or .tar.xz"),
        "{error}"
    );
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.len() == 4 || left.is_empty(), "{left:?}");
}

#[test]
#[ignore = "runs the command that collects a machine's files, as root"]
fn the_command_that_collects_makes_an_input() {
    let folder = folder("collected");
    let command = COLLECT.strip_prefix("sudo ").unwrap();
    let done = Command::new("sh").args(["-c", command]).current_dir(&folder).status().unwrap();
    assert!(done.success());
    let (state, live) = (read(folder.join("slabs.txt.gz")), read("/"));
    let aliases =
        |state: &state::State| -> usize { state.caches.iter().map(|cache| cache.aliases.len()).sum() };
    assert_eq!(state.caches.len(), live.caches.len());
    assert_eq!(aliases(&state), aliases(&live));
    assert_eq!((state.page_size, state.cpus, state.release), (live.page_size, live.cpus, live.release));
    assert_eq!(state.dump.nodes.len(), live.dump.nodes.len());
    assert!(state.taken_s.unwrap().abs_diff(live.taken_s.unwrap()) < 60);
    println!("{:?}\n{:?}", state.assumed, state.missing);
}
