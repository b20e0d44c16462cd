//! `slablab leak` as a user meets it. What it records is in no test: docs/leak.md has a session.

use crate::common::{self, argument, check_order, folder, text};

/// Exit code, and all of `words` on standard output, in this order.
#[track_caller]
fn check(args: &[&str], code: i32, words: &[&str]) -> String {
    let output = common::slablab(&["leak"], args);
    let (said, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{args:?}: {error}{said}");
    check_order(args, &said, words);
    said
}

fn leaks(name: &str) -> String {
    argument(&format!("crates/doctor/testdata/leaks/{name}.tar.xz"))
}

#[test]
fn what_grew_who_holds_it_and_what_ends_it() {
    for (kind, words) in [
        ("epoll", &["Grew: filp", "Who: ", "python3", "epoll instances", "What ends it", "eventpoll"][..]),
        ("unread", &["Grew: skbuff_head_cache", "What ends it", "Recv-Q"]),
        ("lookup", &["No leak seen: what grew", "is what the kernel frees"]),
    ] {
        let (before, after) = (leaks(&format!("{kind}.before")), leaks(&format!("{kind}.after")));
        check(&[&after, "--since", &before], 0, words);
        let said = check(&[&after, "--since", &before, "--format", "json"], 0, &["slablab.leak.1"]);
        let document: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(document["suspects"][0]["course"], "unknown", "{kind}: two snapshots tell no course");
    }
}

#[test]
fn one_snapshot_leads_to_a_minute_on_the_machine() {
    let words = ["One snapshot does not tell what grows.", "Who: 16 processes python3", "sockets"];
    let after = argument("crates/doctor/testdata/leak/after.tar.xz");
    check(&[&after], 0, &[&words[..], &["What ends it", "slablab leak --for 60s --save FILE"]].concat());
}

#[test]
fn inputs_that_are_none() {
    let folder = folder("leak-inputs");
    let path = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, content).expect("a file");
        path.to_str().expect("UTF-8").to_string()
    };
    let whole = std::fs::read(leaks("epoll.after")).expect("a dump");
    let (empty, cut) = (path("empty", b""), path("cut.tar.xz", &whole[..40]));
    let dump = std::fs::read(argument("crates/doctor/testdata/leak/after.tar.xz")).expect("a dump");
    check(&[&path("half.tar.xz", &dump[..3000])], 3, &["the rest of the input", "it is cut off"]);
    common::check_error(&["leak"], &[&empty], &["empty"]);
    common::check_error(&["leak"], &[&cut], &["cut.tar.xz"]);
    common::check_error(&["leak"], &["/no/such/file"], &["/no/such/file", "No such file"]);
    common::check_error(&["leak"], &["--since", &empty], &["required", "INPUT"]);
    common::check_error(&["leak"], &["--for", "soon"], &["500ms, 10s, 2m or 1h", "soon"]);
    common::check_error(&["leak"], &[&empty, "--for", "1s"], &["cannot be used with"]);
}
