//! Dumps, compared with tidy tables of the same dumps that another program made, and all versions of
//! slabinfo.

use crate::common::sample;
use slablab_readers::bundle::{BundleError, Dump, DumpBuilder, PageSizeFrom};
use slablab_readers::slabinfo::{CpuStat, GlobalStat, Slabinfo};
use slablab_readers::sysfs::{SlabAttrs, parse_attrs_csv};

fn dump(run: &str) -> Dump {
    Dump::from_tar(
        std::fs::File::open(crate::common::path(&format!("testdata/{run}/before.tar.xz"))).unwrap(),
    )
    .unwrap()
}

#[test]
fn a_dump_says_what_its_tidy_tables_say() {
    #[track_caller]
    fn check(run: &str, caches: usize, aliases: usize) {
        let dump = dump(run);
        let expected =
            parse_attrs_csv(&sample(&format!("testdata/{run}/slab_attrs_before.csv.xz"))[..]).unwrap();
        assert_eq!(dump.caches.len(), caches);
        assert_eq!(dump.caches.iter().map(|cache| cache.aliases.len()).sum::<usize>(), aliases);
        for (cache, expected) in dump.caches.iter().zip(&expected) {
            // Attributes that the tidy table has no column for.
            let cache = SlabAttrs { others: vec![], trace: None, ..cache.clone() };
            assert_eq!(cache, *expected);
        }
        let slabinfo = dump.slabinfo.unwrap();
        let tidy = Slabinfo::parse_csv(&sample(&format!("testdata/{run}/slabinfo_before.csv.xz"))).unwrap();
        assert_eq!(slabinfo.version, (2, 1));
        assert_eq!(slabinfo.rows, tidy.rows);
    }
    check("amd64_smp8_numa4_memless", 145, 110);
    check("ppc64_smp16_memless", 143, 100);
    check("host_618", 235, 194);
}

#[test]
fn a_dump_describes_its_machine() {
    let numa = dump("amd64_smp8_numa4_memless");
    assert_eq!((numa.release.as_deref(), numa.arch.as_deref()), (Some("6.1.0-50-amd64"), Some("x86_64")));
    assert_eq!(numa.page_size, Some((4096, PageSizeFrom::Memory)));
    assert_eq!(numa.cpus_present, (0..8).collect::<Vec<u32>>());
    let nodes: Vec<_> = numa.nodes.iter().map(|node| (&node.cpus[..], node.has_memory)).collect();
    assert_eq!(nodes, [(&[0, 1][..], true), (&[2, 3], true), (&[4, 5], true), (&[6, 7], false)]);
    assert_eq!(numa.nodes[1].distances, [20, 10, 20, 30]);
    assert_eq!(numa.cmdline.as_deref(), Some("console=ttyS0"));
    assert_eq!(numa.zones.len(), 20);
    let dma32 = numa.zones.iter().find(|zone| zone.node == 1 && zone.name == "DMA32").unwrap();
    assert_eq!((dma32.managed, dma32.min, dma32.low, dma32.high), (257880, 7656, 9570, 11484));
    assert_eq!(dma32.pagesets.len(), 8);
    let free = numa.buddyinfo.iter().find(|free| free.node == 1).unwrap();
    assert_eq!((free.zone.as_str(), free.blocks.len()), ("DMA32", 11));
    let types = numa.pagetypes.as_ref().unwrap();
    assert_eq!((types.pageblock_order, types.types.len(), types.free.len()), (Some(9), 5, 20));
    let kmalloc = numa.cache("kmalloc-512").unwrap();
    assert_eq!(kmalloc.objects.as_ref().unwrap().total.value, kmalloc.objects.as_ref().unwrap().nodes_sum());

    let ppc = dump("ppc64_smp16_memless");
    assert_eq!((ppc.arch.as_deref(), ppc.page_size), (Some("ppc64le"), Some((65536, PageSizeFrom::Memory))));
    assert!(ppc.nodes[0].has_memory && !ppc.nodes[1].has_memory);

    // This kernel's MemTotal is not the sum of its zones; its slabs still tell the page size.
    let host = dump("host_618");
    assert_eq!(host.page_size, Some((4096, PageSizeFrom::Slabs)));
    assert_eq!(host.cache("vm_area_struct").unwrap().sheaf_capacity, Some(32));
    // An alias finds the cache that it was merged into.
    assert_eq!(host.cache("lsm_file_cache").unwrap().name, ":0000024");
}

#[test]
fn slabs_alone_tell_the_page_size() {
    #[track_caller]
    fn check(run: &str, expected: u64) {
        let whole = dump(run);
        let mut builder = DumpBuilder::new();
        let rows = whole.slabinfo.unwrap().rows;
        let lines = rows.iter().map(|row| {
            let numbers = [row.active_objs, row.num_objs, row.objsize, row.objperslab, row.pagesperslab];
            let numbers = numbers.map(|number| number.to_string()).join(" ");
            format!(
                "{} {numbers} : tunables 0 0 0 : slabdata {} {} 0\n",
                row.name, row.active_slabs, row.num_slabs
            )
        });
        let text = format!("slabinfo - version: 2.1\n{}", lines.collect::<String>());
        builder.file("proc/slabinfo", text.as_bytes()).unwrap();
        assert_eq!(builder.finish().unwrap().page_size, Some((expected, PageSizeFrom::Slabs)));
    }
    check("amd64_smp8_numa4_memless", 4096);
    check("ppc64_smp16_memless", 65536);
    check("host_618", 4096);
}

#[test]
fn loose_slabs_do_not_vote_on_the_page_size() {
    // One object of 2,000 bytes in a page leaves room for more under any page size: SLAB's descriptors, say.
    let loose = "loose 1 1 2000 1 1 : tunables 0 0 0 : slabdata 1 1 0\n";
    let tight = "tight 1 32 2048 32 1 : tunables 0 0 0 : slabdata 1 1 0\n";
    let mut builder = DumpBuilder::new();
    let text = format!("slabinfo - version: 2.1\n{loose}{loose}{tight}");
    builder.file("proc/slabinfo", text.as_bytes()).unwrap();
    assert_eq!(builder.finish().unwrap().page_size, Some((65536, PageSizeFrom::Slabs)));
}

#[test]
fn aliases_are_found_in_any_order() {
    let mut builder = DumpBuilder::new();
    for alias in ["c", "a", "b"] {
        builder.link(&format!("sys/kernel/slab/{alias}"), ":0000064").unwrap();
    }
    let dump = builder.finish().unwrap();
    let tidy = parse_attrs_csv(&b"cache,alias_names\n:0000064,c;a;b\n"[..]).unwrap();
    assert_eq!(dump.caches, tidy);
    assert!(["a", "b", "c", ":0000064"].iter().all(|name| dump.cache(name).is_some()));
    assert!(dump.cache("d").is_none());
}

#[test]
fn files_are_found_below_any_root() {
    #[track_caller]
    fn check(path: &str, wanted: bool) {
        assert_eq!(DumpBuilder::wants(path), wanted, "{path}");
    }
    check("/proc/slabinfo", true);
    check("./proc/slabinfo", true);
    check("sosreport-host-2026/proc/slabinfo", true);
    check("a/b/proc/slabinfo", true);
    check("sys/kernel/slab/:0000192/order", true);
    check("sys/devices/system/node/node3/meminfo", true);
    check("proc/1/maps", false);
    check("etc/proc", false);
    check("", false);
}

#[test]
fn what_is_wrong_in_a_dump_is_said_with_path_and_line() {
    #[track_caller]
    fn check(path: &str, content: &str, expected: &str) {
        let error = DumpBuilder::new().file(path, content.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), format!("{path}: {expected}"));
    }
    let slabinfo = "slabinfo - version: 2.1\nkmalloc-8 1 2 3 4 : tunables 0 0 0 : slabdata 0 0 0\n";
    check(
        "proc/slabinfo",
        slabinfo,
        "line 2: expected a cache name and five numbers before ` : `, found `kmalloc-8 1 2 3 4 : tunables 0 0 0 : \
         slabdata 0 0 0`",
    );
    check(
        "proc/slabinfo",
        "x",
        "line 1: expected `slabinfo - version: 1.1` or `2.x`, as the first line of /proc/slabinfo, found `x`",
    );
    check(
        "proc/meminfo",
        "MemTotal: 4 kB\nMemFree:\n",
        "line 2: expected a name and a number, found `MemFree:`",
    );
    check(
        "proc/zoneinfo",
        "  pages free 1\n",
        "line 1: expected `Node <n>, zone <name>` first, found `  pages free 1`",
    );
    check("sys/kernel/slab/a/order", "x", "line 1: expected a number, found `x`");
    check(
        "sys/devices/system/cpu/online",
        "0-99999999",
        "line 1: expected a list such as `0-3,8`, found `0-99999999`",
    );
}

#[test]
fn an_empty_file_is_noted_and_passed_over() {
    let mut builder = DumpBuilder::new();
    for path in ["sos/proc/slabinfo", "sos/proc/cmdline", "sos/etc/motd"] {
        builder.file(path, b"\n").unwrap();
    }
    // Attributes may be empty.
    builder.file("sos/sys/kernel/slab/:0000064/ctor", b"\n").unwrap();
    let dump = builder.finish().unwrap();
    assert_eq!(dump.empty, ["proc/slabinfo", "proc/cmdline"]);
    assert_eq!((dump.slabinfo, dump.cmdline, dump.caches.len()), (None, None, 1));
}

#[test]
fn a_tar_without_slabs_is_no_dump() {
    let error = DumpBuilder::new().finish().unwrap_err();
    assert!(matches!(error, BundleError::Empty { files: 0 }), "{error}");
    let error = Dump::from_tar(&sample("corpus/slabinfo/2.1")[..]).unwrap_err();
    assert!(matches!(error, BundleError::Tar(_)), "{error}");
}

#[test]
fn long_names_of_pax_are_followed() {
    let dump = Dump::from_tar(&sample("corpus/bundle/pax.tar")[..]).unwrap();
    assert_eq!((dump.buddyinfo.len(), dump.slabinfo.unwrap().rows.len()), (5, 3));
    assert_eq!(dump.caches[0].name, ":0000192");
    assert_eq!(dump.caches[0].aliases, ["an_alias_of_a_cache"]);
}

#[test]
fn slabinfo_of_every_version_is_read() {
    let slabinfo = Slabinfo::parse(&sample("corpus/slabinfo/2.1_statistics")).unwrap();
    let row = slabinfo.row("skbuff_head_cache").unwrap();
    assert_eq!((row.limit, row.batchcount, row.sharedfactor, row.sharedavail), (120, 60, 8, 60));
    assert_eq!(row.cpu, Some(CpuStat { allochit: 91234, allocmiss: 4321, freehit: 90001, freemiss: 5400 }));
    let global = row.global.unwrap();
    assert_eq!((global.allocs, global.nodefrees, global.overflows), (7123, 8123, 2));
    // Older kernels write fewer columns.
    assert_eq!(slabinfo.row("kmalloc-512").unwrap().global.unwrap().nodefrees, 40);

    let slabinfo = Slabinfo::parse(&sample("corpus/slabinfo/1.1")).unwrap();
    assert_eq!(slabinfo.version, (1, 1));
    let row = slabinfo.row("kmem_cache").unwrap();
    assert_eq!((row.objperslab, row.pagesperslab, row.num_slabs), (34, 1, 2));
    assert_eq!((row.limit, row.batchcount, row.cpu.unwrap().allocmiss), (252, 126, 3));
    assert_eq!(row.global, Some(GlobalStat { high: 68, allocs: 68, grown: 2, ..GlobalStat::default() }));
    assert!(slabinfo.row("UDP Lite").is_some(), "names may have spaces");
}

#[test]
fn equal_names_are_told_apart() {
    let row = "kcopyd_job 1 2 3 4 1 : tunables 0 0 0 : slabdata 0 0 0\n";
    let text = format!("slabinfo - version: 2.1\n{row}{row}other{}", &row[10..]);
    let slabinfo = Slabinfo::parse(text.as_bytes()).unwrap();
    let keys: Vec<_> = slabinfo.rows.iter().map(|row| (&*row.name, row.ordinal)).collect();
    assert_eq!(keys, [("kcopyd_job", 0), ("kcopyd_job", 1), ("other", 0)]);
}
