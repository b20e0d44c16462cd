//! The caches of real kernels, from ../../../testdata, whose README describes how the files were made.

use slablab_slabs::cache::layout;
use slablab_slabs::engines::slub::SlubPolicy;
use slablab_slabs::order::{CpuCounts, CpusCounted, OrderInput};
use slablab_slabs::{CacheFlags, CacheSpec, Preset, Release};

/// One dumped kernel.
pub(crate) struct Run {
    pub(crate) number: usize,
    pub(crate) name: &'static str,
    pub(crate) release: &'static str,
    pub(crate) page_shift: u32,
    pub(crate) possible: u32,
    pub(crate) present: u32,
    pub(crate) max_order: u8,
    pub(crate) debug: bool,
    pub(crate) cache_line: u32,
    pub(crate) kmalloc_min: u32,
    pub(crate) zone_dma: bool,
    pub(crate) memcg: bool,
    pub(crate) buckets: bool,
}

/// One cache as sysfs shows it. It is equal in all runs that have it.
pub(crate) struct Cache {
    pub(crate) name: &'static str,
    pub(crate) slab_size: u32,
    pub(crate) order: u8,
    pub(crate) objects: u32,
    /// `None` if only /proc/slabinfo was saved.
    pub(crate) attributes: Option<Attributes>,
    runs: u32,
}

/// Attributes that only sysfs shows.
pub(crate) struct Attributes {
    pub(crate) object_size: u32,
    pub(crate) align: u32,
    pub(crate) cpu_partial: u32,
    pub(crate) min_partial: u32,
    pub(crate) user_size: u32,
    pub(crate) flags: CacheFlags,
    /// Whether the dump shows constructors.
    pub(crate) constructor_known: bool,
}

/// The fields of a file's rows, without the header row.
pub(crate) fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().skip(1).map(|line| line.split(',').collect())
}

pub(crate) fn runs() -> Vec<Run> {
    let text = include_str!("../../../testdata/runs.csv");
    let number = |field: &str| field.parse::<u32>().expect("a number");
    let run = |(index, row): (usize, Vec<&'static str>)| Run {
        number: index,
        name: row[0],
        release: row[1],
        page_shift: number(row[2]).ilog2(),
        possible: number(row[3]),
        present: number(row[4]),
        max_order: number(row[5]) as u8,
        debug: row[6] == "1",
        cache_line: number(row[7]),
        kmalloc_min: number(row[8]),
        zone_dma: row[9] == "1",
        memcg: row[10] == "1",
        buckets: row[11] == "1",
    };
    rows(text).enumerate().map(run).collect()
}

pub(crate) fn caches() -> Vec<Cache> {
    let number = |field: &str| field.parse::<u32>().expect("a number");
    let cache = |row: Vec<&'static str>| Cache {
        name: row[0],
        slab_size: number(row[2]),
        order: number(row[4]) as u8,
        objects: number(row[5]),
        attributes: (row[1] != "-").then(|| Attributes {
            object_size: number(row[1]),
            align: number(row[3]),
            cpu_partial: number(row[6]),
            min_partial: number(row[7]),
            user_size: number(row[8]),
            flags: CacheFlags::NONE
                .with(CacheFlags::HWCACHE_ALIGN, row[9].contains('h'))
                .with(CacheFlags::RECLAIM_ACCOUNT, row[9].contains('r'))
                .with(CacheFlags::DMA, row[9].contains('d'))
                .with(CacheFlags::TYPESAFE_BY_RCU, row[9].contains('t'))
                .with(CacheFlags::CONSTRUCTOR, row[9].contains('c')),
            constructor_known: !row[9].contains('?'),
        }),
        runs: u32::from_str_radix(row[10], 16).expect("a set of runs"),
    };
    rows(include_str!("../../../testdata/caches.csv")).map(cache).collect()
}

impl Run {
    /// The preset that the kernel's release selects, with its boot parameters.
    pub(crate) fn policy(&self) -> SlubPolicy {
        let release = Release::parse(self.release).expect("a kernel's release");
        let Some(Preset::Slub(preset)) = Preset::of_kernel(release) else {
            panic!("{}: no preset", self.release)
        };
        SlubPolicy { max_order: self.max_order, ..preset }
    }

    /// The input of the order rule for objects of this size.
    pub(crate) fn order_input(&self, size: u32) -> OrderInput {
        let counts = CpuCounts { possible: self.possible, present: self.present, online: self.present };
        let counted = CpusCounted::of(Release::parse(self.release).expect("a kernel's release"));
        OrderInput {
            size,
            page_shift: self.page_shift,
            cpus: counted.count(counts),
            min_order: 0,
            max_order: self.max_order,
            min_objects: 0,
        }
    }
}

impl Cache {
    pub(crate) fn is_in(&self, run: &Run) -> bool {
        self.runs >> run.number & 1 == 1
    }
}

impl Attributes {
    /// The cache's specification, as far as sysfs shows it. `align` is the result of all requirements.
    pub(crate) fn spec(&self) -> CacheSpec {
        let no_merge = self.user_size > 0;
        CacheSpec {
            align: self.align,
            flags: self.flags.with(CacheFlags::NO_MERGE, no_merge),
            ..CacheSpec::of_size(self.object_size)
        }
    }

    /// The size per object that the specification gives.
    pub(crate) fn predicted_size(&self, policy: &SlubPolicy) -> u32 {
        layout(&self.spec(), policy.link).0
    }
}
