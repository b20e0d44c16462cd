//! Other machines than that of the recording.

use super::program::trace;
use super::{PRESETS, check_with, machine, presets, run};
use slablab_replay::machine::choose;
use slablab_replay::replay::Options;
use slablab_trace::Metadata;
use std::path::Path;

#[test]
fn machines() {
    let check_on = |toml: &str, program: &str, expected: &str| {
        let options =
            Options { engines: presets(&["slub@6.1"]), machine: machine(toml), ..Options::default() };
        check_with(program, "6.1.0", &options, expected);
    };
    let filp = "cache filp 256; 0 alloc filp 0-31";
    check_on(
        "fail_order = 0",
        &format!("{filp}; 0 free filp 0-31"),
        "filp: allocs=0 frees=0 allocs_failed=32 slabs=0; total: allocs_failed=32 slab_end_bytes=0",
    );
    // 8 CPUs: 20 objects at least, so order 1; it falls back to order 0.
    check_on("cpus = 8", filp, "filp: order=1 slabs=1; total: slabs_taken_order_1=1");
    check_on(
        "cpus = 8\nfail_order = 1",
        filp,
        "filp: order=1 slabs=2 order_fallback=2; total: slabs_taken_order_0=2 allocs_failed=0",
    );
    check_on("fail_order = 1", "0 alloc 16384 0; 0 free 16384 0", "total: large_allocs=0 allocs_failed=1");
    // Four CPUs' events on two: no slab of the others, and a free on CPU 2 is one on CPU 0.
    check_on(
        "cpus = 2",
        "cache filp 256; 0 alloc filp 0; 1 alloc filp 1; 2 alloc filp 2; 3 alloc filp 3; 2 free filp 0",
        "filp: slabs=2 alloc_fastpath=2 free_fastpath=1",
    );
    check_on("page_size = 65536", filp, "filp: objs_per_slab=256 slabs=1 slab_bytes=65536");
    // A large kmalloc is as many pages as its bytes need there.
    for (page_size, frames) in [(4096, 4), (65536, 1)] {
        let toml = format!("page_size = {page_size}");
        let options = Options { machine: machine(&toml), ..Options::default() };
        let large = run(&trace("6.1.0", "0 alloc 16384 0"), &options).outcomes[0].large;
        assert_eq!((large.allocs, large.frames), (1, frames), "pages of {page_size} bytes");
    }
}

#[test]
fn nodes() {
    let check_on = |nodes: &str, program: &str, expected: &str| {
        let options = Options {
            engines: presets(&["slub@6.1"]),
            machine: machine(&format!("cpus = 2\n{nodes}")),
            ..Options::default()
        };
        check_with(program, "6.1.0", &options, expected);
    };
    let two = "[[nodes]]\nmemory = \"1G\"\n[[nodes]]\nmemory = \"1G\"";
    let memoryless = "[[nodes]]\nmemory = \"1G\"\n[[nodes]]\nmemory = 0";
    let program = "cache filp 256; 0 alloc filp 0-3; 1 alloc filp 4-7; 1 free filp 0-3; 0 free filp 4";
    check_on(two, program, "filp: slabs=2 frees_other_cpu=5 frees_other_node=5; total: frees_other_node=5");
    // The recording is of x86: no memory is local to CPU 1.
    check_on(memoryless, program, "filp: slabs=2 frees_other_cpu=5 frees_other_node=4 alloc_fastpath=6");
    // With CONFIG_HAVE_MEMORYLESS_NODES CPU 1's memory node is node 0: another CPU, but no other node.
    let nearest = format!("memoryless_nodes = \"yes\"\n{memoryless}");
    check_on(&nearest, program, "filp: slabs=2 frees_other_cpu=5 frees_other_node=0 alloc_fastpath=6");
    // Asking for a node without memory gets the nearest.
    check_on(memoryless, "cache filp 256; 1 alloc filp 0-3 node1", "filp: slabs=1 allocs=4 allocs_failed=0");
    check_on(
        two,
        "cache filp 256; 0 alloc filp 0 node1; 0 alloc filp 1 node0",
        "filp: slabs=2 alloc_node_mismatch=1",
    );
    // A node that this machine does not have is none asked for.
    check_on(two, "cache filp 256; 0 alloc filp 0-3 node7", "filp: slabs=1 allocs=4");
}

/// Whether the modelled kernel has CONFIG_HAVE_MEMORYLESS_NODES: the machine file says it, else the
/// recording's configuration, else its architecture. Only an assumption that matters is printed.
#[test]
fn the_architecture_decides_about_memory_nodes() {
    let one_without = "cpus = 2\n[[nodes]]\nmemory = \"1G\"\n[[nodes]]\nmemory = 0";
    let check = |toml: &str, architecture: Option<&str>, config: &str, expected: bool, assumed: &str| {
        let mut metadata = Metadata { architecture: architecture.map(String::from), ..Metadata::default() };
        metadata.page_size_bytes = Some(4096);
        if !config.is_empty() {
            metadata.config.insert("HAVE_MEMORYLESS_NODES".into(), config.into());
        }
        let chosen =
            choose(&metadata, None, &machine(toml), Path::new("trace")).expect("the machine is right");
        assert_eq!(chosen.spec.memoryless_nodes, expected, "{architecture:?} {toml}");
        assert_eq!(chosen.assumed.is_empty(), assumed.is_empty(), "{architecture:?}: {:?}", chosen.assumed);
        assert!(chosen.assumed.iter().all(|said| said.contains(assumed)), "{:?}", chosen.assumed);
    };
    check(one_without, Some("x86_64"), "", false, "");
    check(one_without, Some("ppc64le"), "", true, "");
    check(one_without, Some("ia64"), "", true, "");
    check(one_without, Some("x86_64"), "y", true, "");
    check(one_without, Some("ppc64le"), "n", false, "");
    check(&format!("memoryless_nodes = \"no\"\n{one_without}"), Some("ppc64le"), "y", false, "");
    check(&format!("memoryless_nodes = \"yes\"\n{one_without}"), Some("x86_64"), "", true, "");
    check(one_without, Some("s390x"), "", false, "the architecture is s390x");
    check(one_without, Some("aarch64"), "", true, "the architecture is aarch64");
    check(one_without, None, "", false, "the architecture is unknown");
    check("cpus = 2\n[[nodes]]\nmemory = \"1G\"", None, "", false, "");
}

/// A large machine, every CPU of which does something.
#[test]
fn a_large_machine_costs_what_it_touches() {
    let mut toml = String::from("cpus = 1024\n");
    (0..64).for_each(|_| toml += "[[nodes]]\nmemory = \"16G\"\n");
    let mut program = String::from("cache filp 256; cache dentry 192;");
    for cpu in 0..1024 {
        let object = cpu % 500;
        program +=
            &format!("{cpu} alloc filp {object}; {cpu} alloc dentry {object}; {cpu} alloc 512 {object};");
        program +=
            &format!("{cpu} free filp {object}; {cpu} implied dentry {object}; {cpu} free 512 {object};");
    }
    let options = Options { engines: presets(&PRESETS), machine: machine(&toml), ..Options::default() };
    for outcome in run(&trace("6.1.0", &program), &options).outcomes {
        println!("{}: {} K of model tables", outcome.preset, outcome.model_bytes / 1024);
        assert!(outcome.model_bytes < 64 << 20, "{}: {} bytes", outcome.preset, outcome.model_bytes);
        assert_eq!(outcome.traffic().allocs, 3 * 1024, "{}", outcome.preset);
    }
}
