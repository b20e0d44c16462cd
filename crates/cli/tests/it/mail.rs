//! `slablab whatif --format mail`: the tables of the mail of 2023, from the dumps of a machine like its
//! smaller one.

use crate::common::{self, text};

const BEFORE: &str = "crates/readers/testdata/ppc64_smp16_memless/before.tar.xz";
const AFTER: &str = "examples/dumps/ppc64_smp16_memless.after.tar.xz";

/// The whole text, which begins below the line it is written in.
fn check(args: &[&str], expected: &str) {
    let output = common::slablab(&["whatif"], args);
    assert_eq!(Some(text(&output.stdout).as_str()), expected.strip_prefix('\n'), "{}", text(&output.stderr));
}

#[track_caller]
fn check_error(args: &[&str], words: &str) {
    common::check_error(&["whatif"], args, &[words]);
}

/// Of all caches TCPv6 alone has a size that the rule moves at 16 CPUs (2432 bytes), and it has no slabs
/// here: so nothing changes.
#[test]
fn before_and_after() {
    check(
        &[BEFORE, "--after", AFTER, "--policy", "patel-v3", "--format", "mail"],
        r"
On 16 CPUs with 64K Page size

+-----------------+----------------+----------------+
|          Total wastage in slub memory             |
+-----------------+----------------+----------------+
|                 | After Boot     |After Hackbench |
| Normal          | 69 Kb          | 218 Kb         |
| With Patch      | 69 Kb          | 218 Kb         |
| Wastage reduce  | ~0%            | ~0%            |
+-----------------+----------------+----------------+

+-----------------+----------------+----------------+
|            Total slub memory                      |
+-----------------+----------------+----------------+
|                 | After Boot     | After Hackbench|
| Normal          | 73472          | 112640         |
| With Patch      | 73472          | 112640         |
| Memory reduce   | ~0%            | ~0%            |
+-----------------+----------------+----------------+

With Patch is predicted: policy=patel-v3
After Boot: another order for 1 of 143 caches
After Hackbench: another order for 1 of 143 caches
",
    );
}

#[test]
fn one_dump() {
    check(
        &[BEFORE, "--policy", "patel-v3", "--format", "mail"],
        r"
On 16 CPUs with 64K Page size

+-----------------+----------------+
|   Total wastage in slub memory   |
+-----------------+----------------+
|                 | After Boot     |
| Normal          | 69 Kb          |
| With Patch      | 69 Kb          |
| Wastage reduce  | ~0%            |
+-----------------+----------------+

+-----------------+----------------+
|        Total slub memory         |
+-----------------+----------------+
|                 | After Boot     |
| Normal          | 73472          |
| With Patch      | 73472          |
| Memory reduce   | ~0%            |
+-----------------+----------------+

With Patch is predicted: policy=patel-v3
After Boot: another order for 1 of 143 caches
",
    );
}

#[test]
fn what_it_does_not_take() {
    check_error(&[BEFORE, "--format", "mail", "--max-order", "0,1"], "has room for one change, found 2");
    check_error(&[BEFORE, "--after", AFTER], "--after is a column of --format mail");
    let other = "crates/readers/testdata/host_618/before.tar.xz";
    check_error(
        &[BEFORE, "--after", other, "--format", "mail"],
        "another machine, with 2 CPUs and pages of 4K; expected 16 CPUs and pages of 64K",
    );
    check_error(&[BEFORE, "--after", "nowhere.tar", "--format", "mail"], "nowhere.tar");
}
