//! Call chains of a program's allocations.

use crate::common::{built, converted, folder, record, the_one};
use slablab_recorder::{Process, SAMPLE, Summary};
use slablab_trace::{Batch, Columns, Metadata, NONE};
use std::process::Command;

/// An allocation: requested bytes, and its chain if it has one.
type Call = (u32, Option<String>);

fn trace(process: &Process) -> (Vec<Call>, Metadata, Summary) {
    let (reader, summary) = converted(process);
    let (mut batches, mut batch) = (reader.batches(Columns::ALL), Batch::default());
    let mut calls = Vec::new();
    while batches.next(&mut batch).expect("a trace") {
        for row in (0..batch.len()).filter(|row| batch.event[*row] == 0) {
            let chain = Some(batch.stack[row]).filter(|stack| *stack != NONE);
            let chain = chain.and_then(|stack| batches.texts().stack.get(stack)).map(str::to_string);
            calls.push((batch.bytes_req[row], chain));
        }
    }
    (calls, reader.metadata().clone(), summary)
}

/// Names without offsets, files and lines, and without what is outside of `main`.
fn plain(chain: &str) -> String {
    let names = chain.split(';').map(|frame| frame.split([' ', '+', '(']).next().unwrap_or(""));
    names.skip_while(|name| *name != "main").collect::<Vec<_>>().join(" ")
}

fn recorded(
    name: &str,
    compiler: &str,
    source: &str,
    options: &[&str],
    sample: u64,
) -> Option<(Vec<Call>, Metadata, Summary)> {
    let folder = folder(name);
    let program = built(&folder, compiler, source, options)?;
    let (output, all) = record(&folder, Command::new(&program).env(SAMPLE, sample.to_string()), "");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    Some(trace(the_one(&all, program.file_name()?.to_str()?)))
}

/// With and without debug information: a name, and with it file and line.
#[test]
fn every_allocation_has_its_chain() {
    for (name, options, place) in
        [("chains-g", &["-g", "-O1"][..], "(chains.c:"), ("chains-plain", &["-O1"], "+0x")]
    {
        let (calls, metadata, summary) = recorded(name, "cc", "chains.c", options, 1).expect("a C compiler");
        for (bytes, count, chain) in
            [(4000, 300, "main leak wrapped"), (512, 5000, "main brief wrapped"), (7007, 1, "main deep")]
        {
            let found: Vec<&String> =
                calls.iter().filter(|call| call.0 == bytes).filter_map(|call| call.1.as_ref()).collect();
            assert_eq!(found.len(), count, "{name}: {bytes}");
            for text in found {
                let names = plain(text);
                assert!(names.starts_with(chain), "{name}: {names} of {text}");
                assert!(text.split(';').next_back().expect("a frame").contains(place), "{name}: {text}");
            }
        }
        let depth = calls.iter().find(|call| call.0 == 7007).and_then(|call| call.1.as_ref());
        let depth = depth.map(|text| plain(text).split(' ').filter(|name| *name == "deep").count());
        assert_eq!(depth, Some(41), "{name}");
        assert!(summary.chains >= 5301, "{summary:?}");
        let malloc = &metadata.other["malloc"];
        assert_eq!(malloc["sample_bytes"], 1);
        let resident = |when: &str| malloc["resident_bytes"][when].as_u64().expect("a number");
        assert!(resident("end") <= resident("most") && resident("begin") > 1 << 16, "{malloc}");
    }
}

#[test]
fn operators_have_chains() {
    let Some((calls, ..)) = recorded("chains-cpp", "c++", "chains.cpp", &["-g", "-O1"], 1) else { return };
    for (bytes, chain) in [(2500, "main plain"), (3072, "main wide")] {
        let found = calls.iter().find(|call| call.0 == bytes).unwrap_or_else(|| panic!("{bytes}: {calls:?}"));
        let names = plain(found.1.as_deref().expect("a chain"));
        assert!(names.starts_with(chain), "{names}");
    }
}

/// 3.8 MB are allocated: about 234 of the allocations have chains with one in 16 KiB, and each is as often
/// drawn as its bytes are.
#[test]
fn chains_are_drawn_by_bytes() {
    let (calls, metadata, _) =
        recorded("chains-drawn", "cc", "chains.c", &["-O1"], 16384).expect("a C compiler");
    assert_eq!(metadata.other["malloc"]["sample_bytes"], 16384);
    // The expected number, and four standard deviations.
    for (bytes, count) in [(4000u32, 300u32), (512, 5000)] {
        let part = 1.0 - (-f64::from(bytes) / 16384.0).exp();
        let (expected, scatter) = (f64::from(count) * part, (f64::from(count) * part * (1.0 - part)).sqrt());
        let found = calls.iter().filter(|call| call.0 == bytes && call.1.is_some()).count() as f64;
        assert!(
            (found - expected).abs() < 4.0 * scatter,
            "{bytes}: {found}, expected {expected} +- {scatter}"
        );
    }
}

#[test]
fn without_being_asked_no_allocation_has_a_chain() {
    let (calls, metadata, summary) =
        recorded("chains-none", "cc", "chains.c", &["-O1"], 0).expect("a C compiler");
    assert!(calls.iter().all(|call| call.1.is_none()) && summary.chains == 0);
    assert!(metadata.other["malloc"].get("sample_bytes").is_none());
}
