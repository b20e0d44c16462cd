//! Tables beside published ones.

use slablab_stats::table::avg_std::{self, Digits};
use slablab_stats::table::mmtests::{self, Options, Stars, Statistic};
use slablab_stats::table::{Better, Cell, Pair, Pairs, Row, Rules, Table, Test, Verdict};
use slablab_stats::table::{gain_percent, summary, tally};
use slablab_stats::{Moments, Sample};

/// See the file's first lines for where the numbers are from.
const MAIL: &str = include_str!("../testdata/lkml-2009-01-16.txt");

const ALL: Rules = Rules { pairs: Pairs::All, test: Test::Welch, significance: 0.05 };

fn runs(values: &[f64]) -> Cell {
    Cell::Runs(Sample::new(values).expect("a sample"))
}

fn moments(n: usize, mean: f64, sd: f64) -> Cell {
    Cell::Moments(Moments::new(n, mean, sd).expect("moments"))
}

fn table<const N: usize>(columns: [&str; N], better: Better, rows: Vec<(&str, [Cell; N])>) -> Table {
    let mut table = Table::new(columns);
    for (name, cells) in rows {
        table
            .row(Row { name: name.to_string(), better, cells: cells.into() })
            .expect("a cell for each column");
    }
    table
}

/// Checks what mmtests' table of a table is.
fn check(table: &Table, options: &Options, expected: &str) {
    let printed = mmtests::print(table, options);
    assert_eq!(printed, expected, "\n{printed}");
}

#[test]
fn of_the_51_pairs_of_2009_23_differ() {
    let table = avg_std::read(MAIL).expect("the mail's numbers");
    assert_eq!(table.columns(), ["SLAB", "SLQB", "SLUB"]);
    assert_eq!(table.rows().len(), 17);
    let pairs = table.compare(ALL);
    let expected = "23 of 51 comparisons differ; in 28 no difference can be told \
                    (Welch's t-test, Holm's correction over 51 tests, 5 %).";
    assert_eq!(summary(&pairs, ALL), expected);
    assert_eq!(tally(&pairs, 2), (0, 20), "SLUB's wins and losses");
    let others: Vec<String> = pairs
        .iter()
        .filter(|pair| pair.other == 1 && pair.verdict != Verdict::NoDifference)
        .map(|pair| {
            let gain = pair.gain_percent.expect("a gain");
            format!("{}: {gain:+.1} % {}", table.rows()[pair.row].name, pair.verdict)
        })
        .collect();
    let expected = [
        "time fio examples/netio 1: -4.5 % worse",
        "hackbench 7: +12.6 % better",
        "Netperf UDP unidirectional send test: Server and client bound to same socket, different CPUs: \
         +9.0 % better",
    ];
    assert_eq!(others, expected, "SLQB against SLAB");
}

#[test]
fn a_mail_of_2009_is_printed_as_it_was() {
    let table = avg_std::read(MAIL).expect("the mail's numbers");
    let (times, netperf) = (Digits::Decimals(2), Digits::Significant(6));
    let all = |digits| avg_std::print(&table, digits);
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.contains(" AVG=")).map(str::to_string).collect()
    };
    let printed = [&lines(&all(times))[..14 * 3], &lines(&all(netperf))[14 * 3..]].concat();
    assert_eq!(printed, lines(MAIL));
    let first = "time fio examples/netio 1 (10 runs, lower better):\nSLAB AVG=13.19 STD=0.40\n";
    assert!(all(times).starts_with(first), "{}", all(times));
    // What is printed reads back.
    let again = avg_std::read(&all(Digits::Significant(17))).expect("its own format");
    assert!(again.rows().iter().map(|row| &row.cells).eq(table.rows().iter().map(|row| &row.cells)));
}

#[test]
fn significant_digits_are_those_of_printf() {
    // From `printf "%.6g\n"` of glibc.
    let cases = [
        (0.0, "0"),
        (1.0, "1"),
        (100000.0, "100000"),
        (1234567.0, "1.23457e+06"),
        (999999.5, "1e+06"),
        (0.0001, "0.0001"),
        (0.00001234, "1.234e-05"),
        (0.685347, "0.685347"),
        (-2.5, "-2.5"),
        (1e100 / 1e20, "1e+80"),
    ];
    for (mean, expected) in cases {
        let moments = Moments::new(2, mean, 0.0).expect("moments");
        let line = avg_std::line("x", &moments, Digits::Significant(6));
        assert_eq!(line, format!("x AVG={expected} STD=0"));
    }
}

#[test]
fn mails_that_are_wrong_are_refused() {
    let cases = [
        ("", "line 0: no line `NAME AVG=mean STD=deviation`"),
        (
            "\nSLAB AVG=1 STD=2",
            "line 2: expected a title before it, such as `hackbench (10 runs, lower better):`",
        ),
        (
            "x (3 runs, lower better):\nSLAB AVG=1 STD=two",
            "line 2: \"SLAB AVG=1 STD=two\": expected `NAME AVG=mean STD=deviation`",
        ),
        (
            "x (3 runs, lower better):\nSLAB AVG=1 STD=-1",
            "line 2: the standard deviation is -1: expected a number from 0 to 1e90",
        ),
        (
            "x (0 runs, lower better):\nSLAB AVG=1 STD=1",
            "line 2: the sample has no values: expected at least 1",
        ),
        (
            "x (3 runs, lower better):\nA AVG=1 STD=1\n\nB AVG=1 STD=1\n",
            "line 4: the block before it has the columns [\"B\"]: expected [\"A\"]",
        ),
    ];
    for (mail, expected) in cases {
        assert_eq!(avg_std::read(mail).expect_err("it is refused").to_string(), expected);
    }
}

#[test]
fn times_are_printed_as_mmtests_does() {
    let times = table(
        ["6.7.0-vanilla", "6.7.0-patched"],
        Better::Lower,
        vec![
            ("1", [runs(&[1.2720, 1.2727, 1.2734]), runs(&[1.2440, 1.2450, 1.2460])]),
            ("110", [runs(&[39.8, 39.8363, 39.8726]), runs(&[39.3, 39.3793, 39.9])]),
            ("296", [runs(&[108.6, 108.6893, 108.7]), runs(&[109.5, 109.5870, 109.6])]),
        ],
    );
    let options = Options { decimals: 4, ..Options::default() };
    let expected = "                               6.7.0                  6.7.0
                             vanilla                patched
Amean     1        1.2727 (   0.00%)      1.2450 *   2.18%*
Amean     110     39.8363 (   0.00%)     39.5264 (   0.78%)
Amean     296    108.6631 (   0.00%)    109.5623 *  -0.83%*
";
    check(&times, &options, expected);
}

/// Widths as in the table of STREAM that came with the patch "sched/fair: Adjust the allowed NUMA imbalance
/// when SD_NUMA spans multiple LLCs" (2022): a number, its percentage, and the heads over them. The patch's
/// label is another one, of 15 characters.
#[test]
fn rates_are_printed_as_mmtests_does() {
    let near = |mean: f64| runs(&[mean * 0.999, mean, mean * 1.001]);
    let rates = table(
        ["5.16.0-rc1-vanilla", "5.16.0-rc1-sched-numaimb-v6"],
        Better::Higher,
        vec![
            ("copy-16", [near(162596.94), near(580559.74)]),
            ("triad-16", [near(151446.88), near(564304.24)]),
        ],
    );
    let lines: Vec<String> =
        mmtests::print(&rates, &Options::default()).lines().map(str::to_string).collect();
    let heads =
        ["             5.16.0-rc1             5.16.0-rc1", "                vanilla       sched-numaimb-v6"];
    assert_eq!([&lines[0][18..], &lines[1][18..]], heads);
    assert_eq!(&lines[2], "Hmean     copy-16    162596.83 (   0.00%)   580559.35 * 257.05%*");
    assert_eq!(&lines[3][18..], "   151446.78 (   0.00%)   564303.86 * 272.61%*");
}

/// Numbers that two decimals would hide, or that would touch the column before with them.
#[test]
fn small_and_large_numbers_keep_their_figures() {
    let rows = vec![
        ("s", [runs(&[0.00326, 0.00328]), runs(&[0.00281, 0.00283])]),
        ("half", [runs(&[0.5, 0.52]), runs(&[0.5, 0.52])]),
        ("1/s", [runs(&[116_687_527.0; 2]), runs(&[116_687_528.0; 2])]),
    ];
    let expected = "                                    a                      b
Amean     s        0.00327 (   0.00%)     0.00282 *  13.76%*
Amean     half        0.51 (   0.00%)        0.51 (   0.00%)
Amean     1/s    116687527 (   0.00%)   116687528 (  -0.00%)
";
    let table = table(["a", "b"], Better::Lower, rows);
    check(&table, &Options { stars: Stars::Holm, ..Options::default() }, expected);
}

#[test]
fn every_statistic_has_its_rows() {
    let times = table(
        ["slub@6.18", "slub@7.0"],
        Better::Lower,
        vec![("4", [runs(&[2.0, 4.0]), runs(&[1.0, 5.0])]), ("21", [runs(&[8.0, 8.0]), runs(&[6.0, 6.0])])],
    );
    use Statistic::{CoeffVar, Max, Mean, Min, Stddev};
    let options = Options { statistics: vec![Min, Mean, Stddev, CoeffVar, Max], ..Options::default() };
    let expected = "                          slub@6.18               slub@7.0
Min       4         2.00 (   0.00%)        1.00 (  50.00%)
Min       21        8.00 (   0.00%)        6.00 (  25.00%)
Amean     4         3.00 (   0.00%)        3.00 (   0.00%)
Amean     21        8.00 (   0.00%)        6.00 (  25.00%)
Stddev    4         1.41 (   0.00%)        2.83 (-100.00%)
Stddev    21        0.00 (   0.00%)        0.00 (   0.00%)
CoeffVar  4        47.14 (   0.00%)       94.28 (-100.00%)
CoeffVar  21        0.00 (   0.00%)        0.00 (   0.00%)
Max       4         4.00 (   0.00%)        5.00 ( -25.00%)
Max       21        8.00 (   0.00%)        6.00 (  25.00%)
";
    check(&times, &options, expected);
}

#[test]
fn a_cell_without_a_number_says_why() {
    let oom = || Cell::Nothing("out of memory".to_string());
    let times = table(
        ["slab", "slqb", "slub"],
        Better::Lower,
        vec![
            ("1", [moments(10, 10.0, 0.1), oom(), moments(10, 20.0, 0.1)]),
            ("2", [oom(), moments(10, 0.0, 0.0), moments(1, 20.0, 0.0)]),
            ("3", [moments(10, 0.0, 0.0), moments(10, 0.0, 0.0), moments(10, 1.0, 0.1)]),
        ],
    );
    let expected = "                              slab                   slqb                   slub
Amean     1       10.00 (   0.00%)          out of memory       20.00 *-100.00%*
Amean     2          out of memory        0.00 (      -%)       20.00 (      -%)
Amean     3        0.00 (   0.00%)        0.00 (   0.00%)        1.00 *      -%*
";
    check(&times, &Options::default(), expected);
    let verdicts: Vec<String> = times.compare(ALL).iter().map(|pair| pair.verdict.to_string()).collect();
    let expected = [
        "no difference can be told: out of memory",
        "worse",
        "no difference can be told: out of memory",
        "no difference can be told: out of memory",
        "no difference can be told: out of memory",
        "no difference can be told: fewer than 2 runs",
        "no difference can be told",
        "worse",
        "worse",
    ];
    assert_eq!(verdicts, expected);
    let mail = avg_std::print(&times, Digits::Decimals(2));
    assert!(
        mail.starts_with("1 (10 runs, lower better):\nslab AVG=10.00 STD=0.10\nslqb out of memory\n"),
        "{mail}"
    );
    assert!(mail.contains("2 (1 to 10 runs, lower better):"), "{mail}");
}

#[test]
fn wrapped_tables_fit_a_mail() {
    let cells = |mean: f64| [0.0, 0.5, 1.0, 1.5].map(|more| moments(10, mean + more, 0.1));
    let times = table(
        ["slub@6.18", "slub@7.0", "slub@7.1", "slqb"],
        Better::Lower,
        vec![("1", cells(10.0)), ("30", cells(20.0))],
    );
    let expected = "                          slub@6.18               slub@7.0
Amean     1        10.00 (   0.00%)       10.50 *  -5.00%*
Amean     30       20.00 (   0.00%)       20.50 *  -2.50%*

                          slub@6.18               slub@7.1
Amean     1        10.00 (   0.00%)       11.00 * -10.00%*
Amean     30       20.00 (   0.00%)       21.00 *  -5.00%*

                          slub@6.18                   slqb
Amean     1        10.00 (   0.00%)       11.50 * -15.00%*
Amean     30       20.00 (   0.00%)       21.50 *  -7.50%*
";
    check(&times, &Options { wrap: Some(72), ..Options::default() }, expected);
    assert!(expected.lines().all(|line| line.len() <= 72));
}

/// mmtests' stars judge each row alone: over many rows some differ by chance, which Holm's correction
/// prevents.
/// Two columns whose runs differ by rounding alone are not tested: no scatter tells whether another start of
/// the same load would give another value.
#[test]
fn runs_without_scatter_are_not_tested() {
    const NONE: &str = "no difference can be told: their runs differ by less than 0.01 %";
    let check = |base: &[f64], other: &[f64], unscattered: bool, verdict: &str| {
        let table = table(["a", "b"], Better::Lower, vec![("row", [runs(base), runs(other)])]);
        let pair = table.compare(Rules::default()).remove(0);
        assert_eq!(pair.is_unscattered(), unscattered, "{base:?} {other:?}");
        assert_eq!(pair.p.is_none(), unscattered, "{base:?} {other:?}");
        assert_eq!(pair.gain_percent_95.is_none(), unscattered, "{base:?} {other:?}");
        assert_eq!(pair.verdict.to_string(), verdict, "{base:?} {other:?}");
    };
    check(&[8.0, 8.0], &[6.0, 6.0], true, NONE);
    check(&[256.675; 3], &[255.134, 255.135, 255.135], true, NONE);
    check(&[8.0, 8.0, 8.0], &[8.0, 8.0], false, "no difference can be told");
    check(&[256.675; 3], &[256.676, 256.675, 256.675], false, "no difference can be told");
    check(&[8.0, 8.1, 8.0], &[6.0, 6.0, 6.0], false, "better");
    check(&[8.0, 8.0, 8.0], &[8.9, 9.0, 9.1], false, "worse");
    let quiet = || [moments(5, 8.0, 0.0), moments(5, 6.0, 0.0)];
    let said = |rows| {
        let table = table(["a", "b"], Better::Lower, rows);
        summary(&table.compare(Rules::default()), Rules::default())
    };
    assert_eq!(said(vec![("row", quiet())]), "No row is tested: their runs differ by less than 0.01 %.");
    let expected = "The one tested row differs (Welch's t-test, Holm's correction over 1 test, 5 %). \
                    1 row is not tested: their runs differ by less than 0.01 %.";
    assert_eq!(
        said(vec![("row", quiet()), ("other", [moments(5, 8.0, 0.1), moments(5, 6.0, 0.1)])]),
        expected
    );
}

#[test]
fn holm_takes_stars_away() {
    let rows = ["1", "4", "7", "12"].map(|name| (name, [moments(10, 10.0, 0.1), moments(10, 10.1, 0.1)]));
    let times = table(["base", "other"], Better::Lower, rows.into());
    let stars = |stars| mmtests::print(&times, &Options { stars, ..Options::default() }).matches('*').count();
    assert_eq!((stars(Stars::EachRow), stars(Stars::Holm)), (8, 0));
    let pairs = times.compare(Rules::default());
    assert!(pairs.iter().all(|pair| pair.p.is_some_and(|p| p < 0.05)), "{pairs:?}");
    // p is 0.038 in each row.
    assert!(pairs.iter().all(|pair| pair.verdict == Verdict::NoDifference), "{pairs:?}");
    let expected =
        "No difference can be told in any row (Welch's t-test, Holm's correction over 4 tests, 5 %).";
    assert_eq!(summary(&pairs, Rules::default()), expected);
}

#[test]
fn a_mail_has_72_columns_whatever_the_names() {
    let names = ["linux:tree.4b825dc642cb", "linux:less-locking.1a2b3c4d"];
    let rows = vec![
        ("hackbench laptop over=sockets [s]", [runs(&[2.0, 2.1]), runs(&[1.0, 1.1])]),
        ("mkfs laptop [s]", [runs(&[1.0, 1.5]), runs(&[1.1, 1.6])]),
    ];
    let expected = "A: linux:tree.4b825dc642cb
B: linux:less-locking.1a2b3c4d

                                                A                      B
Amean     hackbench laptop        2.05 (   0.00%)        1.05 *  48.78%*
          over=sockets [s]
Amean     mkfs laptop [s]         1.25 (   0.00%)        1.35 (  -8.00%)
";
    check(&table(names, Better::Lower, rows), &Options { wrap: Some(72), ..Options::default() }, expected);
}

#[test]
fn intervals_of_the_gain_hold_it() {
    let row = [moments(10, 50.0, 2.0), moments(10, 40.0, 3.0)];
    for (better, gain) in [(Better::Lower, 20.0), (Better::Higher, -20.0)] {
        let pairs = table(["a", "b"], better, vec![("x", row.clone())]).compare(ALL);
        let [Pair { gain_percent: Some(found), gain_percent_95: Some(interval), .. }] = &pairs[..] else {
            panic!("one pair with a gain: {pairs:?}");
        };
        assert!((found - gain).abs() < 1e-9, "{found}");
        assert!(interval.low < gain && gain < interval.high && interval.high - interval.low < 12.0);
    }
}

#[test]
fn ranks_need_the_runs() {
    let cells = [runs(&[1.0, 2.0, 3.0, 4.0, 5.0]), runs(&[6.0, 7.0, 8.0, 9.0, 10.0]), moments(5, 8.0, 1.0)];
    let rules = Rules { pairs: Pairs::All, test: Test::MannWhitney, significance: 0.05 };
    let pairs = table(["a", "b", "c"], Better::Higher, vec![("x", cells)]).compare(rules);
    // 2 of the 252 arrangements are so far apart.
    assert_eq!((pairs[0].p, pairs[0].verdict.clone()), (Some(2.0 / 252.0), Verdict::Better));
    let why = "the values of the runs are not given";
    assert_eq!(pairs[1].verdict, Verdict::Untested(why.to_string()));
}

/// The table of 16 CPUs in the mail "[RFC PATCH v3] mm/slub: Optimize slub memory usage" of 2023, which
/// mmtests printed: groups, base, patch, percent. Its means have 4 decimals, so that the percentage lies
/// within the gains that these may have been rounded from.
#[test]
fn gains_are_mmtests_percentages() {
    let published = [
        (0.9513, 0.9250, 2.77),
        (2.9630, 2.9570, 0.20),
        (5.1780, 5.1763, 0.03),
        (8.8833, 8.8817, 0.02),
        (15.7577, 15.6883, 0.44),
        (22.2063, 22.2843, -0.35),
        (36.0587, 36.1390, -0.22),
        (49.7803, 49.3457, 0.87),
    ];
    for (base, patch, percent) in published {
        let gain = |base_off: f64, patch_off: f64| {
            gain_percent(Better::Lower, base + base_off, patch + patch_off).expect("a gain")
        };
        let (least, most) = (gain(-0.00005, 0.00005), gain(0.00005, -0.00005));
        assert!(least - 0.005 <= percent && percent <= most + 0.005, "{base} {patch}: {percent}");
    }
}

#[test]
fn rows_have_a_cell_for_each_column() {
    let mut table = Table::new(["a", "b"]);
    let row = Row { name: "x".to_string(), better: Better::Lower, cells: vec![moments(2, 1.0, 0.1)] };
    let error = table.row(row).expect_err("it is refused");
    assert_eq!(error.to_string(), "row \"x\" has 1 cells: the table has 2 columns");
}
