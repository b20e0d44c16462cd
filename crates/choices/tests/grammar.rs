//! The grammar on a policy of every kind of knob. The policies of the engines have tests of their own.

use slablab_choices::near::edits;
use slablab_choices::{
    AUTO, BadKind, BadPreset, Erased, Knob, Knobs, Release, Setting, Text, Values, With, change, knob, near,
    newest_not_newer, print_changed,
};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    First,
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Policy {
    depth: u32,
    share: Option<u8>,
    fair: bool,
    order: Order,
    wait_ns: u64,
    bytes: u64,
    letters: u64,
}

const USUAL: Policy =
    Policy { depth: 8, share: None, fair: false, order: Order::Last, wait_ns: 0, bytes: 0, letters: 0 };

const KNOBS: &[Knob<Policy>] = &[
    knob!("depth", "requests that wait", depth: number 1 to 64),
    knob!("share", "percent", share: auto or 1 to 100),
    knob!("fair", "oldest next", fair: no or yes),
    knob!("order", "which end", order: Order ["first" = First, "last" = Last]),
    knob!("wait_ms", "milliseconds", wait_ns: milliseconds to 5000),
    Knob {
        name: "bytes",
        what: "bytes",
        values: Values::Bytes(8 << 20),
        get: |p| p.bytes,
        set: |p, v| p.bytes = v,
    },
    Knob {
        name: "letters",
        what: "letters",
        values: Values::Letters("FZP"),
        get: |p| p.letters,
        set: |p, v| p.letters = v,
    },
];

/// A policy as it is printed.
struct Printed(Policy);

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("queue@6.1")?;
        print_changed(f, &With(self.0, KNOBS), &With(USUAL, KNOBS))
    }
}

fn parse(text: &str) -> Result<Policy, BadPreset<'_>> {
    let mut own = With(USUAL, KNOBS);
    Text::split(text).parts().try_for_each(|part| change(part, &mut [&mut own], &["word"]))?;
    Ok(own.0)
}

#[test]
fn a_text_has_parts() {
    fn check(text: &str, name: &str, release: Option<&str>, parts: &[&str]) {
        let split = Text::split(text);
        assert_eq!((split.name, split.release), (name, release), "{text}");
        assert_eq!(split.parts().collect::<Vec<_>>(), parts, "{text}");
    }
    check("", "", None, &[]);
    check("slub", "slub", None, &[]);
    check("slub@", "slub", Some(""), &[]);
    check("slub@6.1,a=1,,b", "slub", Some("6.1"), &["a=1", "b"]);
    check("slub@6.1@7,", "slub", Some("6.1@7"), &[]);
    check("slub,a=x@1", "slub", None, &["a=x@1"]);
}

/// Every kind of value is read, printed in its normal form, and read from that form as the same policy.
#[test]
fn printing_and_parsing_are_inverse() {
    fn check(text: &str, printed: &str) {
        let policy = parse(text).unwrap_or_else(|bad| panic!("{text}: {bad}"));
        assert_eq!(Printed(policy).to_string(), format!("queue@6.1{printed}"), "{text}");
        assert_eq!(parse(&format!("queue@6.1{printed}")), Ok(policy), "{text}");
        let erased = Erased::of(&policy, KNOBS);
        assert_eq!(erased.policy(USUAL, KNOBS), policy, "{text}");
    }
    check("queue", "");
    check("queue,depth=8", "");
    check("queue,depth=64,depth=9", ",depth=9");
    check("queue,order=first,depth=1", ",depth=1,order=first");
    check("queue,share=7", ",share=7");
    check("queue,share=7,share=auto", "");
    check("queue,fair=yes", ",fair=yes");
    check("queue,wait_ms=3000", ",wait_ms=3000");
    check("queue,bytes=64k", ",bytes=64K");
    check("queue,bytes=2048K", ",bytes=2M");
    check("queue,bytes=100", ",bytes=100");
    check("queue,letters=pF", ",letters=FP");
    check("queue,letters=F,letters=off", "");
}

#[test]
fn errors_say_what_is_expected() {
    fn check(text: &str, message: &str) {
        assert_eq!(parse(text).map_err(|bad| bad.to_string()), Err(message.to_owned()), "{text}");
    }
    check("queue,dephth=1", "no knob is called `dephth`; near it: depth, share, fair");
    check("queue,wrod", "no knob is called `wrod`; near it: word, order, fair");
    check("queue,word=1", "`word` is a word of its own: expected it without a value");
    check("queue,depth=0", "depth=`0`: expected a number from 1 to 64");
    check("queue,depth", "depth=``: expected a number from 1 to 64");
    check("queue,share=+1", "share=`+1`: expected `auto` or a number from 1 to 100");
    check("queue,order=frist", "order=`frist` is not known; near it: first, last");
    check("queue,bytes=9M", "bytes=`9M`: expected a number from 0 to 8388608");
    check("queue,letters=X", "letters=`X` is not known; near it: FZP, off");
    let other = |kind| BadPreset { kind, given: "x", nearest: ["y", "", ""] }.to_string();
    assert_eq!(other(BadKind::Name("engine")), "no engine is called `x`; near it: y");
    let list = "`x` is no release that has a preset (see `slablab list vm`); near it: y";
    assert_eq!(other(BadKind::Release("slablab list vm")), list);
}

#[test]
fn values_are_listed() {
    let listed: Vec<String> = KNOBS.iter().map(|knob| knob.values.to_string()).collect();
    let bytes = "bytes, as 64K or 1M, at most 8M";
    assert_eq!(
        listed,
        ["1..64", "auto, 1..100", "no|yes", "first|last", "0..5000", bytes, "off, letters of FZP"]
    );
}

/// What has no type is set by an index, and read again.
#[test]
fn knobs_have_indices() {
    let mut own = With(USUAL, KNOBS);
    own.set(1, 5);
    let shown = |of: &dyn Knobs| of.setting(1).map(|setting: Setting| (setting.name, setting.value));
    assert_eq!(shown(&own), Some(("share", 5)));
    own.set(1, AUTO);
    assert_eq!(own.0, USUAL);
    assert_eq!(own.setting(KNOBS.len()), None);
    let mut erased = Erased::of(&USUAL, KNOBS);
    erased.set(0, 3);
    assert_eq!(erased.policy(USUAL, KNOBS), Policy { depth: 3, ..USUAL });
}

#[test]
fn the_newest_that_is_not_newer_stands_for_a_release() {
    let releases = ["2.6.29", "6.1", "6.12"].map(|text| Release::parse(text).expect("a release"));
    fn check(releases: &[Release], asked: &str, expected: Option<&str>) {
        let asked = Release::parse(asked).expect("a release");
        let found = newest_not_newer(releases.iter(), |release| **release, asked);
        assert_eq!(found.map(|release| release.to_string()).as_deref(), expected, "{asked}");
    }
    check(&releases, "2.6.28", None);
    check(&releases, "2.6.29", Some("2.6.29"));
    check(&releases, "5.10", Some("2.6.29"));
    check(&releases, "6.12.117+deb12-amd64", Some("6.12"));
    check(&releases, "7.1", Some("6.12"));
}

#[test]
fn edits_between_names() {
    let long = "x".repeat(200);
    for (from, to, expected) in [
        ("", "", 0),
        ("", "abc", 3),
        ("dentry", "dentry", 0),
        ("dentyr", "dentry", 1),
        ("dntry", "dentry", 1),
        ("dentries", "dentry", 3),
        ("filp", "TCP", 4),
        ("slbq", "slqb", 1),
        (&long, &long[..150], 50),
        (&long, "", 200),
    ] {
        assert_eq!(edits(from, to), expected, "{from} to {to}");
        assert_eq!(edits(to, from), expected, "{to} to {from}");
    }
}

#[test]
fn near_names_are_the_best_three() {
    fn check(given: &str, expected: [&str; 3]) {
        let names = ["slub", "slqb", "slab", "slob", "sheaves", "slub"];
        assert_eq!(near(given, names.into_iter()), expected, "{given}");
    }
    check("slup", ["slub", "slqb", "slab"]);
    check("slbq", ["slqb", "slub", "slab"]);
    check("sheavse", ["sheaves", "slab", "slub"]);
    assert_eq!(near("x", ["y"].into_iter()), ["y", "", ""]);
}
