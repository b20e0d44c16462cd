//! Format texts of several kernels, and payloads decoded by them.

use crate::common::sample;
use slablab_readers::event::Context;
use slablab_readers::gfp::{GfpFlag, GfpTable};
use slablab_readers::kmem::Decoder;
use slablab_readers::tracepoint::Format;
use slablab_readers::{Kind, Names};

/// The format text of 6.18 in the corpus, which ends at a NUL.
fn format_618(event: &str) -> String {
    let data = sample(&format!("corpus/tracepoint/{event}"));
    let end = data.iter().position(|&byte| byte == 0).unwrap();
    String::from_utf8(data[..end].to_vec()).unwrap()
}

const COMMON: &str = "ID: 7\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

#[test]
fn flag_lists_of_every_style_are_evaluated() {
    #[track_caller]
    fn check(entry: &str, expected: Option<u64>) {
        let print =
            format!("\"f=%s\", (REC->gfp_flags) ? __print_flags(REC->gfp_flags, \"|\", {entry} ) : \"none\"");
        let format = Format::parse(&format!("name: kmalloc\n{COMMON}print fmt: {print}\n")).unwrap();
        assert_eq!(format.flags("gfp_flags").value("X"), expected, "{entry}");
    }
    check("{ 32, \"X\"}", Some(32)); // 2.6
    check("{(unsigned long)(((gfp_t)0x20u)|((gfp_t)0x200u)), \"X\"}", Some(0x220)); // 4.x
    check(
        "{( unsigned long)((( gfp_t)(((((1UL))) << (10))|((((1UL))) << (11)))) & ~(( gfp_t)0x400u)), \"X\"}",
        Some(0x800),
    );
    check("{( unsigned long)(( gfp_t)0), \"X\"}", None); // Configured out.
    check("{( unsigned long)(( gfp_t)((((1UL))) << (___GFP_DMA_BIT))), \"X\"}", None); // 6.10 to 6.15
    check("{ 1 + 1, \"X\"}", None);
    check("{ ((((1, \"X\"}", None);
    check(&format!("{{ {}1{}, \"X\"}}", "(".repeat(1000), ")".repeat(1000)), None);
    check("{ 0, ((void *)0) }, { 16, \"X\" }", Some(16));
}

#[test]
fn the_flags_of_618_have_names() {
    let table = Format::parse(&format_618("kmalloc")).unwrap().flags("gfp_flags");
    assert_eq!(table.value("__GFP_ACCOUNT"), Some(1 << 22));
    assert_eq!(table.print(0xcc0), "GFP_KERNEL");
    assert_eq!(table.print(0xdc0), "GFP_KERNEL|__GFP_ZERO");
    assert_eq!(table.print(0), "none");
    assert_eq!(table.print(1 << 40 | 0x100), "__GFP_ZERO|0x10000000000");
    let (set, unknown) = table.canonical(1 << 40 | 0x400cd0);
    assert_eq!(unknown, 1 << 40);
    assert!(set.has(GfpFlag::Reclaimable) && set.has(GfpFlag::Account) && !set.has(GfpFlag::Zero));
    assert_eq!(set.flags().count(), 6);
    // Bits may move: by name, the same flags.
    assert_eq!(table.parse("GFP_KERNEL_ACCOUNT|__GFP_RECLAIMABLE"), Ok(set));
    assert_eq!(GfpTable::default().parse("GFP_KERNEL_ACCOUNT|__GFP_RECLAIMABLE"), Ok(set));
    assert_eq!(GfpTable::default().parse(&set.to_string()), Ok(set));
    assert_eq!(GfpTable::default().parse("GFP_KERNEL|__GFP_NEW"), Err("__GFP_NEW"));
    // 6.18's GFP_NOWAIT does not warn; 6.1's is a single bit.
    assert!(table.parse("GFP_NOWAIT").unwrap().has(GfpFlag::Nowarn));
    assert!(!GfpTable::default().parse("GFP_NOWAIT").unwrap().has(GfpFlag::Nowarn));
}

/// A payload: common fields, then numbers of the given widths.
fn payload(big_endian: bool, fields: &[(u64, usize)]) -> Vec<u8> {
    let common = [(7, 2), (0x11, 1), (0x21, 1), (-5i32 as u32 as u64, 4)];
    let mut bytes = Vec::new();
    for &(value, width) in common.iter().chain(fields) {
        let all = value.to_be_bytes();
        let mut field = all[8 - width..].to_vec();
        if !big_endian {
            field.reverse();
        }
        bytes.extend(field);
    }
    bytes
}

#[test]
fn payloads_follow_their_format_in_either_endianness() {
    // kmalloc_node of 2.6.32 on a 32-bit machine: longs have four bytes.
    let text = format!(
        "name: kmalloc_node\n{COMMON}\
        \tfield:unsigned long call_site;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:const void * ptr;\toffset:12;\tsize:4;\tsigned:0;\n\
        \tfield:size_t bytes_req;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:size_t bytes_alloc;\toffset:20;\tsize:4;\tsigned:0;\n\
        \tfield:gfp_t gfp_flags;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:int node;\toffset:28;\tsize:4;\tsigned:1;\n\nprint fmt: \"x\"\n"
    );
    let format = Format::parse(&text).unwrap();
    for big_endian in [false, true] {
        let decoder = Decoder::new(&format, big_endian).unwrap().unwrap();
        let bytes = payload(
            big_endian,
            &[(0xc0001000, 4), (0xc8000040, 4), (60, 4), (64, 4), (0xd0, 4), (0xffff_ffff, 4)],
        );
        let decoded = decoder.decode(&bytes, 0, &mut Names::new()).unwrap();
        assert_eq!((decoded.pid, decoded.context), (Some(-5), Some(Context { flags: 0x11, preempt: 0x21 })));
        let Kind::Kmalloc(alloc) = decoded.kind else { panic!("{decoded:?}") };
        assert_eq!((alloc.call_site.addr, alloc.ptr), (Some(0xc0001000), Some(0xc8000040)));
        assert_eq!((alloc.bytes_req, alloc.bytes_alloc, alloc.gfp.raw), (60, 64, Some(0xd0)));
        assert_eq!((alloc.node, alloc.accounted), (Some(-1), None));
        assert!(decoder.decode(&bytes[..19], 0, &mut Names::new()).is_none(), "a short payload is none");
    }
}

#[test]
fn names_are_found_through_either_kind_of_location() {
    #[track_caller]
    fn check(kind: &str, word: u64, expected: Option<&str>) {
        let text = format!(
            "name: kmem_cache_free\n{COMMON}\
            \tfield:const void * ptr;\toffset:8;\tsize:8;\tsigned:0;\n\
            \tfield:{kind} char[] name;\toffset:16;\tsize:4;\tsigned:0;\n\nprint fmt: \"x\"\n"
        );
        let decoder = Decoder::new(&Format::parse(&text).unwrap(), false).unwrap().unwrap();
        let mut bytes = payload(false, &[(0xffff888000000000, 8), (word, 4)]);
        bytes.extend(b"dentry\0");
        let mut names = Names::new();
        let Kind::CacheFree(free) = decoder.decode(&bytes, 0, &mut names).unwrap().kind else { panic!() };
        assert_eq!(free.cache.map(|name| names.text(name)), expected);
    }
    check("__data_loc", 7 << 16 | 20, Some("dentry"));
    check("__rel_loc", 7 << 16, Some("dentry"));
    check("__data_loc", 8 << 16 | 20, None);
    check("__rel_loc", 0xffff_ffff, None);
}

/// The arrays of a probe on a bulk call, as the kernel writes its format.
const BULK: &str = "\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n\
                    \tfield:u64 n;\toffset:16;\tsize:8;\tsigned:0;\n\
                    \tfield:u32 from;\toffset:24;\tsize:4;\tsigned:0;\n\
                    \tfield:__data_loc char[] name;\toffset:28;\tsize:4;\tsigned:1;\n\
                    \tfield:u64 ptr[];\toffset:32;\tsize:16;\tsigned:0;\n\
                    \tfield:u64 ptr1[];\toffset:48;\tsize:8;\tsigned:0;\n\nprint fmt: \"x\"\n";

#[test]
fn a_bulk_call_is_as_many_events_as_it_has_objects() {
    #[track_caller]
    fn check(n: u64, from: u64, expected: &[u64]) {
        let text = format!("name: slablab_free_bulk_{from}\n{COMMON}{BULK}");
        let decoder = Decoder::new(&Format::parse(&text).unwrap(), false).unwrap().unwrap();
        let fields = [(7, 8), (n, 8), (from, 4), (8 << 16 | 56, 4), (0x10, 8), (0x20, 8), (0x30, 8)];
        let mut bytes = payload(false, &fields);
        bytes.extend(b"(fault)\0");
        let mut names = Names::new();
        let events = decoder.events(&bytes).unwrap();
        let decoded = (0..events).map(|index| {
            let Kind::Kfree(free) = decoder.decode(&bytes, index, &mut names).unwrap().kind else { panic!() };
            assert_eq!(free.cache, None, "a name that could not be read is none");
            free.ptr.unwrap()
        });
        assert_eq!(decoded.collect::<Vec<_>>(), expected, "{n} objects, those from {from} on");
        assert_eq!(decoder.events(&bytes[..55]), None, "an array that is cut");
    }
    check(2, 0, &[0x10, 0x20]);
    check(3, 0, &[0x10, 0x20, 0x30]);
    check(300, 0, &[0x10, 0x20, 0x30]);
    check(18, 16, &[0x10, 0x20]);
    check(16, 16, &[]);
    check(5, 16, &[]);
}

#[test]
fn what_probes_see_by_name() {
    #[track_caller]
    fn check(name: &str, more: &str, expected: fn(&Kind) -> bool) {
        let text = format!("name: {name}\n{COMMON}{more}");
        let decoder = Decoder::new(&Format::parse(&text).unwrap(), false).unwrap().unwrap();
        let bytes =
            payload(false, &[(1, 8), (1, 8), (0, 4), (0, 4), (0xffff_8880_0000_0040, 8), (0, 8), (0, 8)]);
        let decoded = decoder.decode(&bytes, 0, &mut Names::new()).unwrap();
        assert!(expected(&decoded.kind), "{name}: {decoded:?}");
    }
    let ptr = "\tfield:u64 ptr;\toffset:32;\tsize:8;\tsigned:0;\n";
    check("slablab_free_rcu", ptr, |kind| matches!(kind, Kind::KfreeRcu(free) if free.ptr.is_some()));
    let sizes = ["bytes_req", "bytes_alloc", "gfp_flags"]
        .map(|field| format!("\tfield:u32 {field};\toffset:24;\tsize:4;\tsigned:0;\n"));
    let bulk = format!("{}{BULK}", sizes.concat());
    check(
        "slablab_alloc_bulk_0",
        &bulk,
        |kind| matches!(kind, Kind::CacheAlloc(alloc) if alloc.ptr.is_some()),
    );
}

#[test]
fn pages_without_a_frame_are_failures() {
    let text = format_618("mm_page_free").replace("name: mm_page_free", "name: mm_page_alloc");
    let text = text
        .replace("\n\nprint", "\n\tfield:unsigned long gfp_flags;\toffset:24;\tsize:8;\tsigned:0;\n\nprint");
    let decoder = Decoder::new(&Format::parse(&text).unwrap(), false).unwrap().unwrap();
    let frame = |pfn| {
        let bytes = payload(false, &[(pfn, 8), (3, 4), (0, 4), (0xcc0, 8)]);
        let Kind::PageAlloc(page) = decoder.decode(&bytes, 0, &mut Names::new()).unwrap().kind else {
            panic!()
        };
        (page.pfn, page.order, page.gfp.raw)
    };
    assert_eq!(frame(0x3281f), (Some(0x3281f), 3, Some(0xcc0)));
    assert_eq!(frame(u64::MAX), (None, 3, Some(0xcc0)));
}

#[test]
fn what_is_wrong_with_a_format_is_said() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error =
            Format::parse(text).and_then(|format| Decoder::new(&format, false).map(drop)).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    check("", "line 1 of the format text: expected a line `name: <event>`, found ``");
    check(
        "name: kfree\nID: x\n",
        "line 2 of the format text: expected an event number below 65536, found `ID: x`",
    );
    check(
        "name: kfree\nID: 7\n\tfield:int a;\toffset:x;\tsize:4;\n",
        "line 3 of the format text: expected `field:<type> <name>; offset:<n>; size:<n>;`, found `\tfield:int \
         a;\toffset:x;\tsize:4;`",
    );
    check(&format!("name: kfree\n{COMMON}"), "event `kfree` has no field `ptr` that can be read as a number");
    let ptr = "\tfield:const void * ptr;\toffset:8;\tsize:8;\tsigned:0;\n";
    check(
        &format!("name: kmalloc\n{COMMON}{ptr}"),
        "event `kmalloc` has no field `bytes_req` that can be read as a number",
    );
}
