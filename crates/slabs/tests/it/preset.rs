//! The grammar of presets: printing and parsing are inverse, errors suggest the nearest word, and kernel
//! releases map to presets.

use slablab_pages::PagesPolicy;
use slablab_pages::policy::ZoneReclaim;
use slablab_slabs::engines::slab::SlabPolicy;
use slablab_slabs::engines::slob::SlobPolicy;
use slablab_slabs::engines::slqb::SlqbPolicy;
use slablab_slabs::engines::slub::SlubPolicy;
use slablab_slabs::knob::{AUTO, BadKind, Knob, Policy, Values};
use slablab_slabs::preset::Choice;
use slablab_slabs::wrap::Wrap;
use slablab_slabs::zones::Letters;
use slablab_slabs::{Preset, Release};

/// Parses, prints and parses again. The two presets must be equal. Returns the preset; its text is the normal
/// form.
fn check_inverse(text: &str) -> Preset {
    let preset = Preset::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let printed = preset.to_string();
    let again = Preset::parse(&printed).unwrap_or_else(|error| panic!("{printed}: {error}"));
    assert_eq!(again, preset, "{text} printed as {printed}");
    assert_eq!(again.to_string(), printed);
    preset
}

/// Test values of a knob: all its words, its bounds, and values between them.
fn values_of<T>(knob: &Knob<T>) -> Vec<(String, u64)> {
    let numbers = |least: u64, most: u64| {
        let mut numbers = vec![least, least + 1, (least + most) / 2, most - 1, most];
        numbers.dedup();
        numbers.into_iter().map(|number| (number.to_string(), number))
    };
    match knob.values {
        Values::Words(words) => {
            words.iter().enumerate().map(|(index, word)| (word.to_string(), index as u64)).collect()
        }
        Values::Number(least, most) => numbers(least, most).collect(),
        Values::Auto(least, most) => numbers(least, most).chain([("auto".into(), AUTO)]).collect(),
        Values::Bytes(_) | Values::Letters(_) => unreachable!("{}: no engine has such values", knob.name),
    }
}

/// Tests every preset with every value of every knob, alone and together with every value of the next knob.
fn check_every<T: Policy + std::fmt::Debug>(policy: fn(&Preset) -> Option<&T>) -> usize {
    let mut texts = 0;
    for preset in T::PRESETS {
        let name = format!("{}@{}", T::NAME, preset.release());
        assert_eq!(policy(&check_inverse(&name)), Some(preset));
        for (place, knob) in T::KNOBS.iter().enumerate() {
            let other = &T::KNOBS[(place + 1) % T::KNOBS.len()];
            let lacks = |set: &[(&Knob<T>, u64)]| {
                let mut policy = *preset;
                set.iter().for_each(|(knob, value)| (knob.set)(&mut policy, *value));
                policy.lacks().is_some()
            };
            for (word, value) in values_of(knob) {
                if lacks(&[(knob, value)]) {
                    let text = format!("{name},{}={word}", knob.name);
                    let kind = Preset::parse(&text).map_err(|bad| bad.kind);
                    assert!(matches!(kind, Err(BadKind::Needs(_))), "{text}: {kind:?}");
                    continue;
                }
                let parsed = check_inverse(&format!("{name},{}={word}", knob.name));
                let parsed = policy(&parsed).expect("the engine asked for");
                assert_eq!((knob.get)(parsed), value, "{name} {}={word}", knob.name);
                let untouched = T::KNOBS.iter().filter(|one| one.name != knob.name);
                for one in untouched {
                    assert_eq!(
                        (one.get)(parsed),
                        (one.get)(preset),
                        "{name} {} changed {}",
                        knob.name,
                        one.name
                    );
                }
                for (second, second_value) in values_of(other) {
                    if lacks(&[(other, second_value), (knob, value)]) {
                        continue;
                    }
                    let both = check_inverse(&format!("{name},{}={second},{}={word}", other.name, knob.name));
                    let both = policy(&both).expect("the engine asked for");
                    assert_eq!(((knob.get)(both), (other.get)(both)), (value, second_value));
                    texts += 1;
                }
                texts += 1;
            }
        }
        texts += 1;
    }
    texts
}

#[test]
fn printing_and_parsing_are_inverse() {
    let slub = check_every::<SlubPolicy>(|preset| match preset {
        Preset::Slub(policy) => Some(policy),
        _ => None,
    });
    let slqb = check_every::<SlqbPolicy>(|preset| match preset {
        Preset::Slqb(policy) => Some(policy),
        _ => None,
    });
    let slob = check_every::<SlobPolicy>(|preset| match preset {
        Preset::Slob(policy) => Some(policy),
        _ => None,
    });
    let slab = check_every::<SlabPolicy>(|preset| match preset {
        Preset::Slab(policy) => Some(policy),
        _ => None,
    });
    println!("{slub} texts of slub, {slqb} of slqb, {slab} of slab, {slob} of slob");
}

/// A constant in a kernel is the preset that its name says, and changes as a knob does.
#[test]
fn constants_are_presets() {
    fn check(constant: Preset, text: &str) {
        assert_eq!(Preset::parse(text), Ok(constant), "{text}");
        assert_eq!(constant.to_string(), text);
    }
    for (constant, text) in [
        (SlubPolicy::V2_6_29, "slub@2.6.29"),
        (SlubPolicy::V2_6_32, "slub@2.6.32"),
        (SlubPolicy::V3_2, "slub@3.2"),
        (SlubPolicy::V5_10, "slub@5.10"),
        (SlubPolicy::V5_16, "slub@5.16"),
        (SlubPolicy::V6_1, "slub@6.1"),
        (SlubPolicy::V6_8, "slub@6.8"),
        (SlubPolicy::V6_12, "slub@6.12"),
        (SlubPolicy::V6_18, "slub@6.18"),
        (SlubPolicy::V7_0, "slub@7.0"),
        (SlubPolicy::V7_1, "slub@7.1"),
        (SlubPolicy::V7_2, "slub@7.2"),
        (SlubPolicy::V7_3, "slub@7.3"),
    ] {
        check(Preset::Slub(constant), text);
    }
    check(Preset::Slqb(SlqbPolicy::V2009_01), "slqb@2009-01");
    check(Preset::Slqb(SlqbPolicy::V2009_09), "slqb@2009-09");
    check(Preset::Slab(SlabPolicy::V2_4), "slab@2.4");
    check(Preset::Slab(SlabPolicy::V2_6_29), "slab@2.6.29");
    check(Preset::Slab(SlabPolicy::V6_1), "slab@6.1");
    check(Preset::Slob(SlobPolicy::V2_6_32), "slob@2.6.32");
    check(Preset::Slob(SlobPolicy::V6_1), "slob@6.1");
    const ONE_PAGE: SlubPolicy = SlubPolicy { max_order: 0, ..SlubPolicy::V7_1 };
    check(Preset::Slub(ONE_PAGE), "slub@7.1,max_order=0");
}

#[test]
fn presets_print_in_normal_form() {
    fn check(text: &str, printed: &str) {
        assert_eq!(check_inverse(text).to_string(), printed);
    }
    check("slub", "slub@7.3");
    check("sheaves", "slub@7.3");
    check("sheaves@7.0", "slub@7.0");
    check("sheaves@7.1,barns=memory-nodes", "slub@7.1,barns=memory-nodes");
    check("slqb", "slqb@2009-09");
    check("slub@6.1,max_order=3", "slub@6.1");
    check("slub@6.1,max_order=0", "slub@6.1,max_order=0");
    check("slub@6.1,cpu_partial=30,max_order=0", "slub@6.1,max_order=0,cpu_partial=30");
    check("slub@6.1,max_order=1,max_order=0", "slub@6.1,max_order=0");
    check("slub@6.12.117+deb12-amd64", "slub@6.12");
    check("slub@6.5", "slub@6.1");
    check("slub@6.10", "slub@6.8");
    check("slub@5.15", "slub@5.10");
    check("slub@4.19", "slub@3.2");
    check("slub@3.1", "slub@2.6.32");
    check("slub@7.4", "slub@7.3");
    check("slqb@2009-03", "slqb@2009-01");
    check("slab", "slab@6.1");
    check("slab@2.6.32", "slab@2.6.29");
    check("slab@2.4", "slab@2.4");
    check("slab@2.4.10,zone_reclaim=boot", "slab@2.4");
    check("slab@2.6.29,limit=8,memoryless=nearest", "slab@2.6.29,limit=8,memoryless=nearest");
    check("slqb@2009-09,memoryless=nearest", "slqb@2009-09,memoryless=nearest");
    check("slob", "slob@6.1");
    check("slob@4.19,readd=small", "slob@2.6.32");
}

/// `zone_reclaim` reaches the page allocator of every engine's kernel, and nothing else of it changes.
#[test]
fn the_page_allocator_has_a_knob() {
    for engine in ["slub@2.6.29", "slqb@2009-01", "slab@2.6.29", "slob@2.6.32", "slub@6.18", "slab@2.4"] {
        let pages = |knob: &str| Preset::parse(&format!("{engine}{knob}")).expect("a preset").pages();
        let usual = pages("");
        assert_eq!(pages(",zone_reclaim=boot"), usual, "{engine}");
        for (knob, zone_reclaim) in
            [(",zone_reclaim=on", ZoneReclaim::On), (",zone_reclaim=off", ZoneReclaim::Off)]
        {
            assert_eq!(pages(knob), PagesPolicy { zone_reclaim, ..usual }, "{engine}{knob}");
        }
        let modern = engine == "slub@6.18" || engine == "slab@2.4";
        assert_eq!(usual.zone_reclaim == ZoneReclaim::Off, modern, "{engine}");
    }
}

#[test]
fn every_knob_has_a_name_and_a_line() {
    fn check<T: Policy>() {
        for knob in T::KNOBS {
            let plain =
                |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
            assert!(plain(knob.name) && !knob.what.is_empty() && !knob.what.contains('\n'), "{}", knob.name);
            assert_eq!(T::KNOBS.iter().filter(|other| other.name == knob.name).count(), 1, "{}", knob.name);
            if let Values::Words(words) = knob.values {
                assert!(words.iter().all(|word| plain(word)), "{}", knob.name);
            }
        }
        assert!(T::PRESETS.is_sorted_by_key(|preset| preset.release()));
    }
    check::<SlubPolicy>();
    check::<SlqbPolicy>();
    check::<SlabPolicy>();
    check::<SlobPolicy>();
}

/// Every difference between two presets of an engine can be set by name, one knob at a time. Otherwise a
/// difference in results could not be traced to one policy.
#[test]
fn every_policy_has_a_knob() {
    fn check<T: Policy + std::fmt::Debug>() {
        for (from, to) in T::PRESETS.iter().flat_map(|from| T::PRESETS.iter().map(move |to| (from, to))) {
            let mut made = *from;
            T::KNOBS.iter().for_each(|knob| (knob.set)(&mut made, (knob.get)(to)));
            let of = |policy: &T| {
                let release = format!("{:?}", policy.release());
                format!("{policy:?}").replace(&release, "the release")
            };
            assert_eq!(of(&made), of(to), "{} made {}", from.release(), to.release());
        }
    }
    check::<SlubPolicy>();
    check::<SlqbPolicy>();
    check::<SlabPolicy>();
    check::<SlobPolicy>();
}

/// The settings of a preset are knobs of the grammar. Setting all of them turns one preset of the engine into
/// another.
#[test]
fn settings_are_knobs_without_types() {
    fn check(preset: &str, name: &str, shown: &str) {
        let parsed = Preset::parse(preset).expect(preset);
        let found = (0..).map_while(|index| parsed.setting(index)).find(|setting| setting.name == name);
        assert_eq!(found.map(|setting| setting.to_string()).as_deref(), Some(shown), "{preset} {name}");
    }
    check("slub@6.1,max_order=1", "max_order", "1");
    check("slub@6.1", "cpu_partial", "auto");
    check("slub@6.1,cpu_partial=30", "cpu_partial", "30");
    check("slub@2.6.29", "order", "halving");
    check("slqb", "reap_ms", "3000");
    for (from, to) in
        [("slub@2.6.29", "slub@6.18,max_order=1,cpu_partial=7"), ("slqb@2009-01,hiwater=9", "slqb@2009-09")]
    {
        let (mut made, to) = (Preset::parse(from).expect(from), Preset::parse(to).expect(to));
        let values = (0..).map_while(|index| to.setting(index)).map(|setting| setting.value);
        values.enumerate().for_each(|(index, value)| made.set(index, value));
        let of = |preset: &Preset| {
            (0..).map_while(|index| preset.setting(index)).map(|one| one.value).collect::<Vec<_>>()
        };
        assert_eq!(of(&made), of(&to), "{from}");
    }
}

#[test]
fn errors_name_the_nearest() {
    fn check(text: &str, given: &str, nearest: &str, message: &str) {
        let error = Preset::parse(text).expect_err(text);
        assert_eq!((error.given, error.nearest[0]), (given, nearest), "{text}");
        assert!(error.to_string().starts_with(message), "{text}: {error}");
    }
    check("slup@6.1", "slup", "slub", "no engine is called `slup`; near it: slub, slqb");
    check("slbq", "slbq", "slqb", "no engine is called `slbq`; near it: slqb, slub");
    check("", "", "slub", "no engine is called ``");
    check("SLUB", "SLUB", "slub", "no engine is called `SLUB`");
    check("slub@6.1,maxorder=0", "maxorder", "max_order", "no knob is called `maxorder`; near it: max_order");
    check(
        "slub@6.1,min_partal=5",
        "min_partal",
        "min_partial",
        "no knob is called `min_partal`; near it: min_partial",
    );
    check("slqb,reap=5", "reap", "reap_ms", "no knob is called `reap`");
    check("slub@6.1,order=clampd", "clampd", "clamped", "order=`clampd` is not known; near it: clamped");
    check("slqb,memoryless=near", "near", "nearest", "memoryless=`near` is not known; near it: nearest");
    check("slub@6.1,max_order=11", "11", "", "max_order=`11`: expected a number from 0 to 10");
    check("slub@6.1,max_order=-1", "-1", "", "max_order=`-1`: expected");
    check("slub@6.1,max_order=+1", "+1", "", "max_order=`+1`: expected");
    check("slub@6.1,max_order=", "", "", "max_order=``: expected");
    check("slub@6.1,max_order", "", "", "max_order=``: expected");
    check("slub@6.1,cpu_partial=many", "many", "", "cpu_partial=`many`: expected `auto` or a number from 0");
    check(
        "slub@6.18,freelist=map",
        "map",
        "",
        "freelist=`map`: expected cpu_slab=no, as from 7.0 on, with it",
    );
    check("sheaves@6.18", "6.18", "", "`6.18` is no release that has a preset");
    check("slub@2.6.20", "2.6.20", "", "`2.6.20` is no release that has a preset");
    check("slub@", "", "", "`` is no release");
    check("slub@new", "new", "", "`new` is no release");
    check("slqb@2008-12", "2008-12", "", "`2008-12` is no release");
}

#[test]
fn errors_have_the_right_kind() {
    fn check(text: &str, kind: fn(&BadKind) -> bool) {
        assert!(kind(&Preset::parse(text).expect_err(text).kind), "{text}");
    }
    check("slib", |kind| matches!(kind, BadKind::Name(_)));
    check("slub@x", |kind| matches!(kind, BadKind::Release(_)));
    check("slub,x=1", |kind| *kind == BadKind::Knob);
    check("slub@6.1,freelist=map", |kind| matches!(kind, BadKind::Needs(needs) if needs.knob == "freelist"));
    check("slub,max_order=x", |kind| matches!(kind, BadKind::Value(taken) if taken.knob == "max_order"));
}

/// No text makes the parser panic: every prefix, every cut, and every replaced byte of a long preset.
#[test]
fn no_text_makes_the_parser_panic() {
    let text = "slub@6.12.117+deb12-amd64,max_order=0,order=patel-v3,cpu_partial=auto";
    for cut in 0..text.len() {
        let _ = Preset::parse(&text[..cut]);
        let _ = Preset::parse(&text[cut..]);
        for replacement in ["", "@", ",", "=", ".", "-", "9", "65536", "é", "\0"] {
            let changed = format!("{}{replacement}{}", &text[..cut], &text[cut + 1..]);
            if let Err(error) = Preset::parse(&changed) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

/// The release strings of real kernels, and their default presets.
#[test]
fn kernels_name_their_presets() {
    fn check(kernel: &str, release: (u16, u16, u16), preset: Option<&str>) {
        let (major, minor, patch) = release;
        let parsed = Release::parse(kernel).unwrap_or_else(|| panic!("{kernel}"));
        assert_eq!(parsed, Release { major, minor, patch }, "{kernel}");
        let got = Preset::of_kernel(parsed).map(|preset| preset.to_string());
        assert_eq!(got.as_deref(), preset, "{kernel}");
    }
    check("6.12.117+deb12-amd64", (6, 12, 117), Some("slub@6.12"));
    check("6.1.0-50-amd64", (6, 1, 0), Some("slub@6.1"));
    check("6.1.0-50-arm64", (6, 1, 0), Some("slub@6.1"));
    check("6.1.0-50-powerpc64le", (6, 1, 0), Some("slub@6.1"));
    check("6.1.192", (6, 1, 192), Some("slub@6.1"));
    check("6.18.44", (6, 18, 44), Some("slub@6.18"));
    check("6.18", (6, 18, 0), Some("slub@6.18"));
    check("6.17.13-300.fc43.x86_64", (6, 17, 13), Some("slub@6.12"));
    check("7.0.0-rc3", (7, 0, 0), Some("slub@7.0"));
    check("6.1-rc3", (6, 1, 0), Some("slub@6.1"));
    check("5.14.0-362.8.1.el9_3.x86_64", (5, 14, 0), Some("slub@5.10"));
    check("2.6.32.9", (2, 6, 32), Some("slub@2.6.32"));
    check("2.6.32-754.el6.x86_64", (2, 6, 32), Some("slub@2.6.32"));
    check("2.6.29-rc2", (2, 6, 29), Some("slub@2.6.29"));
    check("2.6.18-8.el5", (2, 6, 18), None);
    for not_a_release in ["", "6", "6.", "v6.1", "linux", "6-1", ".6.1", "65536.1", "6.65536"] {
        assert_eq!(Release::parse(not_a_release), None, "{not_a_release}");
    }
    // Every dumped kernel has a preset.
    for row in include_str!("../../testdata/runs.csv").lines().skip(1) {
        let release = row.split(',').nth(1).expect("a release");
        assert!(Release::parse(release).and_then(Preset::of_kernel).is_some(), "{release}");
    }
}

/// Wrapper knobs are parsed among the engine's knobs, and printed after them.
#[test]
fn wrapper_knobs_parse_and_print() {
    fn check(text: &str, printed: &str, wrap: Wrap) {
        let choice = Choice::parse(text).unwrap_or_else(|bad| panic!("{text}: {bad}"));
        assert_eq!(choice.wrap, wrap, "{text}");
        assert_eq!(choice.to_string(), printed);
        assert_eq!(Choice::parse(printed), Ok(choice), "{printed}");
    }
    let off = Wrap::default();
    let letters = |text| Letters::parse(text).expect("letters");
    check("slub@6.1,debug=off,quarantine=0,harden=off,init=off", "slub@6.1", off);
    let all = Wrap { letters: letters("FZPU"), ..off };
    check("slub@6.1,debug=uzfp,max_order=0", "slub@6.1,max_order=0,debug=FZPU", all);
    check("slob,debug=Fo", "slob@6.1,debug=FO", Wrap { letters: letters("FO"), ..off });
    for (text, bytes) in [("64K", 64 << 10), ("2m", 2 << 20), ("100", 100), ("1M", 1 << 20)] {
        let printed = format!("slqb@2009-09,quarantine={}", text.to_ascii_uppercase());
        check(&format!("slqb,quarantine={text}"), &printed, Wrap { quarantine_bytes: bytes, ..off });
    }
    for (text, alloc, free) in [("alloc", true, false), ("free", false, true), ("alloc+free", true, true)] {
        let text = format!("slab@6.1,harden=random,init={text}");
        check(&text, &text, Wrap { shuffled: true, zero_on_alloc: alloc, zero_on_free: free, ..off });
    }
    let hardened = Wrap { hardened: true, shuffled: true, zero_on_free: true, ..off };
    check("slub,harden=on", "slub@7.3,harden=on", hardened);
    check("slub@7.0,harden=random,freelist=map,harden=on", "slub@7.0,freelist=map,harden=on", hardened);
    check("slub,harden=on,harden=off", "slub@7.3", off);
}

#[test]
fn wrapper_knob_errors() {
    fn check(text: &str, words: &[&str]) {
        let bad = Choice::parse(text).expect_err(text).to_string();
        assert!(words.iter().all(|word| bad.contains(word)), "{text}: {bad}");
    }
    check("slub,debug=FX", &["debug=`FX`", "FZPUO", "off"]);
    check("slub,debug=", &["debug=``", "FZPUO"]);
    check("slub,quarantine=64Q", &["quarantine=`64Q`", "number"]);
    check("slub,quarantine=9999999M", &["quarantine", "number"]);
    check("slub,quarantine=18446744073709551615K", &["quarantine", "number"]);
    check("slub,harden=ranodm", &["harden=`ranodm`", "random"]);
    check("slub,quarantin=1", &["`quarantin`", "quarantine"]);
    check("slub,freelist=map,harden=encode", &["freelist=`map`", "harden=random with it"]);
    for with in
        ["slub@6.1", "slqb", "slab", "slob", "slub,freelist=links", "slub,debug=F", "slub,quarantine=4K"]
    {
        check(&format!("{with},harden=on"), &["harden=`on`", "slub from 7.0 on"]);
    }
    // Without a wrapper, the wrapper's knobs are unknown.
    assert!(Preset::parse("slub,debug=F").is_err());
}
