//! `slablab watch` as a user meets it.

use crate::common::{self, argument, check_order, folder, text};

#[test]
fn what_climbs_is_told_from_kept_snapshots() {
    let folder = folder("watch-climbs");
    for (seconds, moment) in [(1_796_000_000u64, "before"), (1_796_003_600, "after")] {
        let packed = std::fs::read(argument(&format!("crates/doctor/testdata/leaks/epoll.{moment}.tar.xz")));
        // A reader looks at the content, not at the ending.
        std::fs::write(folder.join(format!("slablab-{seconds}.tar.zst")), packed.expect("a dump"))
            .expect("a file");
    }
    std::fs::write(folder.join("notes.txt"), "not a snapshot").expect("a file");
    let path = folder.to_str().expect("UTF-8");
    let output = common::slablab(&["watch"], &[path]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}{said}", text(&output.stderr));
    check_order(&[path], &said, &["Climbing and not reclaimable", "held by", "epoll"]);
}

#[test]
fn folders_without_snapshots() {
    let folder = folder("watch-none");
    let path = folder.to_str().expect("UTF-8");
    common::check_error(&["watch"], &[path], &["no snapshot is in it", "slablab-SECONDS.tar.zst"]);
    common::check_error(&["watch"], &["/no/such/folder"], &["/no/such/folder", "No such file"]);
    common::check_error(&["watch"], &[], &["required"]);
    let file = argument("README.md");
    common::check_error(&["watch"], &[&file], &["README.md: expected a folder"]);
    common::check_error(&["watch"], &["--keep", &file], &["README.md: expected a folder"]);
    common::check_error(&["watch"], &[path, "--every", "1h"], &["--keep"]);
    common::check_error(&["watch"], &["--keep", path, "--every", "often"], &["500ms, 10s, 2m or 1h"]);
}
