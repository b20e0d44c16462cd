//! Hackbench passes every message, and leaves no process.

use slablab_calibrate::hackbench::{Options, run};
use slablab_calibrate::rig::Watcher;
use std::fs;
use std::time::{Duration, Instant};

struct Goes(bool);

impl Watcher for Goes {
    fn at(&self, _: u64, _: u64) -> bool {
        self.0
    }
}

/// The processes of this test's program, this one too. A process that ended and was not waited for has no
/// memory and does not count.
fn processes() -> usize {
    let own = fs::read_to_string("/proc/self/comm").expect("a name");
    let is_ours = |process: &u32| {
        let read = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
        read("comm") == own && !read("statm").starts_with("0 ")
    };
    let names = fs::read_dir("/proc").expect("processes").flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).filter(is_ours).count()
}

/// One test, so that no other runs processes of this program.
#[test]
fn every_message_arrives_and_no_process_stays() {
    for (threads, pipes) in [(false, false), (false, true), (true, false), (true, true)] {
        let options = Options { groups: 2, loops: 30, threads, pipes };
        let outcome = run(options, &Goes(true)).expect("it runs").expect("it is not stopped");
        assert_eq!(outcome.messages, options.messages(), "{options:?}");
        assert_eq!(outcome.messages, 2 * 400 * 30);
        assert!(outcome.seconds > 0.0 && outcome.seconds.is_finite(), "{options:?}");
    }
    for threads in [false, true] {
        // Hours of work: stopped at the first look.
        let options = Options { groups: 2, loops: 100_000_000, threads, pipes: false };
        assert_eq!(run(options, &Goes(false)).expect("it starts"), None, "{options:?}");
    }
    let start = Instant::now();
    while processes() > 1 {
        assert!(start.elapsed() < Duration::from_secs(20), "{} processes stay", processes() - 1);
        std::thread::sleep(Duration::from_millis(10));
    }
}
