//! The slab caches of a run as the kernel's own texts: /proc/slabinfo, and the table of `slabinfo -AD`.

use slablab_sim::slabs::CacheState;
use std::fmt::Write;

/// /proc/slabinfo, version 2.1. Columns of tunables are 0, as SLUB prints them, under every engine.
pub fn slabinfo(caches: &[CacheState]) -> String {
    let mut text = String::from(
        "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> \
         : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n",
    );
    for CacheState { name, geometry, usage, .. } in caches {
        let (active, all) = (usage.active_objects(), usage.total_objects + usage.shared_objects);
        let (size, objects, pages) = (geometry.size, geometry.objects, 1_u32 << geometry.order);
        let slabs = usage.slabs;
        writeln!(
            text,
            "{name:<17} {active:6} {all:6} {size:6} {objects:4} {pages:4} : tunables {0:4} {0:4} {0:4} : slabdata \
             {slabs:6} {slabs:6} {0:6}",
            0
        )
        .expect("a String takes all");
    }
    text
}

/// `slabinfo -AD`: caches by their allocations and frees, with the share of fast ones in whole percent,
/// rounded down as the tool does.
pub fn slabinfo_activity(caches: &[CacheState]) -> String {
    let sum = |counts: [u64; 2]| counts[0] + counts[1];
    let mut sorted: Vec<&CacheState> = caches.iter().collect();
    sorted.sort_by_key(|cache| std::cmp::Reverse(sum(cache.allocs) + sum(cache.frees)));
    let mut text = String::from("Name                   Objects      Alloc       Free   %Fast\n");
    for CacheState { name, usage, allocs, frees, .. } in sorted {
        let fast = |counts: [u64; 2]| counts[0] * 100 / sum(counts).max(1);
        let (objects, allocated, freed) = (usage.active_objects(), sum(*allocs), sum(*frees));
        let (fast_allocs, fast_frees) = (fast(*allocs), fast(*frees));
        writeln!(text, "{name:<21} {objects:8} {allocated:10} {freed:10} {fast_allocs:3} {fast_frees:3}")
            .expect("a String takes all");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_slabs::{Geometry, Usage};

    /// The first two rows of the mail of February 2009, from counts of 64 objects.
    fn rows() -> Vec<CacheState> {
        let geometry = |size, objects, order| Geometry {
            object_size: size,
            size,
            spacing: size,
            link_offset: 0,
            order,
            objects,
            min_order: 0,
            min_objects: 1,
        };
        let usage = |slabs, total_objects, free_in_partial| Usage {
            slabs,
            total_objects,
            free_in_partial,
            ..Usage::default()
        };
        let filp = CacheState {
            name: "filp".into(),
            geometry: geometry(192, 21, 0),
            usage: usage(60, 1_260, 65),
            allocs: [7_635_667, 848_407],
            frees: [254_490, 8_228_492],
        };
        let names = CacheState {
            name: "names_cache".into(),
            geometry: geometry(4_096, 8, 3),
            usage: usage(8, 64, 0),
            allocs: [11_734_000, 829],
            frees: [11_734_001, 829],
        };
        vec![filp, names]
    }

    #[test]
    fn the_tool_sorts_by_activity() {
        let text = "\
Name                   Objects      Alloc       Free   %Fast
names_cache                 64   11734829   11734830  99  99
filp                      1195    8484074    8482982  90   3
";
        assert_eq!(slabinfo_activity(&rows()), text);
    }

    #[test]
    fn proc_has_the_caches_in_their_order() {
        let text = slabinfo(&rows());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "slabinfo - version: 2.1");
        let filp = "filp                1195   1260    192   21    1 : tunables    0    0    0 : slabdata     60     60      0";
        assert_eq!(lines[2], filp);
        assert!(lines[3].starts_with("names_cache           64     64   4096    8    8 : "), "{}", lines[3]);
    }
}
