//! `slablab orders` as a user meets it.

use crate::common::{self, text};
use serde_json::Value;

fn answered(args: &[&str]) -> String {
    let output = common::slablab(&["orders"], args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The whole text, which begins below the line it is written in.
fn check(args: &str, expected: &str) {
    let words: Vec<&str> = args.split(' ').collect();
    assert_eq!(Some(answered(&words).as_str()), expected.strip_prefix('\n'), "{args}");
}

#[track_caller]
fn check_error(args: &[&str], words: &str) {
    common::check_error(&["orders"], args, &[words]);
}

#[test]
fn sizes_of_one_machine() {
    check(
        "--policy patel-v3 --against clamped --page-size 64K --cpus 16 --sizes 2240..4520",
        r"
patel-v3 gives 12 of 286 sizes another order than clamped on 64K pages and 16
CPUs: 12 a larger one, 0 a smaller one.

 from    to  sizes  clamped  objects   tail  patel-v3  objects   tail
 2264  2264      1        0       28  3.3 %         1       57  1.5 %
 2344  2344      1        0       27  3.4 %         1       55  1.6 %
 2432  2440      2        0       26  3.4 %         1       53  1.5 %
 2528  2536      2        0       25  3.4 %         1       51  1.5 %
 2624  2640      3        0       24  3.6 %         1       49  1.6 %
 4232  4232      1        1       30  3.1 %         2       61  1.5 %
 4376  4376      1        1       29  3.2 %         2       59  1.5 %
 4520  4520      1        1       28  3.4 %         2       57  1.7 %

patel-v3: Jay Patel's RFC v3 of 2023
clamped: SLUB 2.6.30 to 6.6
64K pages, 16 CPUs, or any from 16 to 31: 24 objects wanted
sizes: 2240 to 4520 by 8
",
    );
    check(
        "--policy clamped --page-size 4K --cpus 8",
        r"
clamped gives 4,096 sizes slabs of orders 0 to 3 on 4K pages and 8 CPUs.

 from      to  sizes  clamped  objects    tail
 8        200     25        0  512..20   1.0 %
 208      408     26        1   39..20   1.7 %
 416      816     51        2   39..20   1.7 %
 824    10920   1263        3    39..3   7.9 %
 10928  12280    170        2        1  29.2 %
 12288  32768   2561        3     2..1  22.5 %

clamped: SLUB 2.6.30 to 6.6
4K pages, 8 CPUs, or any from 8 to 15: 20 objects wanted
sizes: 8 to 32768 by 8
",
    );
    check(
        "--policy patel-v3 --against clamped --page-size 64K --cpus 160",
        r"
patel-v3 gives each of 65,536 sizes the order of clamped on 64K pages and 160
CPUs.

patel-v3: Jay Patel's RFC v3 of 2023
clamped: SLUB 2.6.30 to 6.6
64K pages, 160 CPUs, or any from 128 to 255: 36 objects wanted
sizes: 8 to 524288 by 8
",
    );
}

#[test]
fn counts_of_several_machines() {
    check(
        "--policy patel-v3 --against clamped --page-size 4K,16K,64K --cpus 16,160",
        r"
patel-v3 gives sizes another order than clamped on 3 of 6 machines; most on 16K
pages and 16 CPUs: 683 of 16,384 sizes.

 pages  CPUs  wanted  sizes  differ  up  down
 4K       16      24   4096       0   0     0
 4K      160      36   4096       0   0     0
 16K      16      24  16384     683   0   683
 16K     160      36  16384     683   0   683
 64K      16      24  65536      69  69     0
 64K     160      36  65536       0   0     0

patel-v3: Jay Patel's RFC v3 of 2023
clamped: SLUB 2.6.30 to 6.6
",
    );
    check(
        "--policy slab --page-size 4K,64K --cpus 8 --sizes 32..4096",
        r"
slab chooses orders 0 to 1 on 2 machines.

 pages  CPUs  wanted  sizes  order 0  order 1  order 2  order 3
 4K        8      20    509      230      279        0        0
 64K       8      20    509      509        0        0        0

slab: SLAB 2.6.32, caches that are not reclaimable
",
    );
}

/// Every machine that can be told apart, by the command of docs/orders.md.
#[test]
fn all_machines() {
    let json = answered(&["--policy", "patel-v3", "--against", "clamped", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["schema"], "slablab.orders.1");
    let machines = json["machines"].as_array().expect("a list");
    assert_eq!(machines.len(), 3 * 13);
    for machine in machines {
        let number = |key: &str| machine[key].as_u64().expect("a number");
        let (page_size, cpus, down) = (number("page_size_bytes"), number("cpus"), number("sizes_down"));
        assert_eq!(down, if page_size == 16384 { 683 } else { 0 }, "{page_size} {cpus}");
        let moves_up = match page_size {
            4096 => false,
            16384 => cpus < 8,
            _ => cpus < 64,
        };
        assert_eq!(number("sizes_up") > 0, moves_up, "{page_size} {cpus}");
        let listed = machine["runs"].as_array().expect("a list").iter().map(|run| run["sizes"].as_u64());
        assert_eq!(listed.sum::<Option<u64>>(), Some(number("sizes_up") + down), "{page_size} {cpus}");
    }
    let csv = answered(&["--policy", "patel-v3", "--against", "clamped", "--format", "csv"]);
    let rows = machines.iter().map(|machine| machine["runs"].as_array().expect("a list").len());
    assert_eq!(csv.lines().count(), 1 + rows.sum::<usize>());
    let columns = csv.lines().next().expect("a header").split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == columns));
}

#[test]
fn what_it_does_not_take() {
    check_error(
        &["--policy", "best"],
        "expected one of slab, halving-8, halving, slqb, clamped, slab-index, patel-v1, patel-v2, patel-v3, single, lean",
    );
    check_error(&["--policy", "single", "--page-size", "5K"], "expected 4K, 8K, 16K");
    check_error(&["--policy", "single", "--page-size", "2K"], "expected 4K, 8K, 16K");
    check_error(&["--policy", "single", "--cpus", "0"], "a number of CPUs, found \"0\"");
    check_error(&["--policy", "single", "--sizes", "9..3"], "expected bytes as 8..65536");
    check_error(&["--policy", "single", "--sizes", "0..3"], "expected bytes as 8..65536");
    check_error(&["--policy", "single", "--sizes", "8..64:0"], "expected bytes as 8..65536");
    check_error(&["--policy", "single", "--sizes", "8..67108865"], "at most 67108864");
    check_error(&["--policy", "single", "--max-order", "11"], "11 is not in 0..=10");
    check_error(&["--policy", "single", "--min-order", "4"], "expected at most --max-order, which is 3");
}
