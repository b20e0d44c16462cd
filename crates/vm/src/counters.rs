//! What is counted, by the names of /proc/vmstat.

macro_rules! counters {
    ($($variant:ident $name:literal $doc:literal),* $(,)?) => {
        /// An event that is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Counter { $(#[doc = $doc] $variant),* }

        impl Counter {
            /// All events, in the order of their columns.
            pub const ALL: &'static [Counter] = &[$(Counter::$variant),*];

            /// Its name in /proc/vmstat.
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$variant => $name),* }
            }
        }
    };
}

counters! {
    PgFault "pgfault" "Faults of pages, major ones too.",
    PgMajFault "pgmajfault" "Faults that waited for a read.",
    PgReuse "pgreuse" "Writes that made a shared page private without a copy.",
    PgpgIn "pgpgin" "KiB read from disks.",
    PgpgOut "pgpgout" "KiB written to disks.",
    PswpIn "pswpin" "Pages read from swap.",
    PswpOut "pswpout" "Pages written to swap.",
    SwapRa "swap_ra" "Pages read from swap before somebody asked.",
    SwapRaHit "swap_ra_hit" "Of these, asked for later.",
    PgAlloc "pgalloc" "Pages allocated.",
    PgFree "pgfree" "Pages freed.",
    AllocStall "allocstall" "Allocations that reclaimed pages themselves.",
    PgActivate "pgactivate" "Pages moved to an active list.",
    PgDeactivate "pgdeactivate" "Pages moved to an inactive list.",
    PgRotated "pgrotated" "Written pages moved to where reclaim looks next.",
    PgRefill "pgrefill" "Pages looked at on active lists.",
    PgScanKswapd "pgscan_kswapd" "Pages looked at on inactive lists by kswapd.",
    PgScanDirect "pgscan_direct" "Pages looked at on inactive lists by allocations.",
    PgStealKswapd "pgsteal_kswapd" "Pages reclaimed by kswapd.",
    PgStealDirect "pgsteal_direct" "Pages reclaimed by allocations.",
    PgScanAnon "pgscan_anon" "Pages looked at on inactive lists that are anonymous or of tmpfs.",
    PgScanFile "pgscan_file" "Pages looked at on inactive lists that are of files.",
    PgStealAnon "pgsteal_anon" "Pages reclaimed that are anonymous or of tmpfs.",
    PgStealFile "pgsteal_file" "Pages reclaimed that are of files.",
    ZoneReclaimFailed "zone_reclaim_failed" "Reclaims of an allocation's own zone or node that freed too little.",
    PgInodeSteal "pginodesteal" "Pages dropped with an inode by allocations.",
    KswapdInodeSteal "kswapd_inodesteal" "Pages dropped with an inode by kswapd.",
    RefaultAnon "workingset_refault_anon" "Evicted anonymous pages that came back.",
    RefaultFile "workingset_refault_file" "Evicted pages of files that came back.",
    ActivateAnon "workingset_activate_anon" "Of these, put on the active list.",
    ActivateFile "workingset_activate_file" "Of these, put on the active list.",
    RestoreAnon "workingset_restore_anon" "Of these, part of the working set before.",
    RestoreFile "workingset_restore_file" "Of these, part of the working set before.",
    NodeReclaim "workingset_nodereclaim" "Nodes of the page cache freed that held only shadows.",
    VmscanWrite "nr_vmscan_write" "Pages that reclaim wrote.",
    ImmediateReclaim "nr_vmscan_immediate_reclaim" "Pages met by reclaim twice while they were written.",
    Dirtied "nr_dirtied" "Pages of files made dirty.",
    Written "nr_written" "Pages written.",
    SlabsScanned "slabs_scanned" "Objects that shrinkers looked at.",
    DropPagecache "drop_pagecache" "Times that all of the page cache was dropped.",
    DropSlab "drop_slab" "Times that all reclaimable slab objects were dropped.",
    PageOutRun "pageoutrun" "Runs of kswapd.",
    KswapdLowHit "kswapd_low_wmark_hit_quickly" "Times that kswapd had to go on before it slept, below low.",
    KswapdHighHit "kswapd_high_wmark_hit_quickly" "Times that kswapd had to go on before it slept, below high.",
    OomKill "oom_kill" "Tasks killed for their memory.",
    CompactStall "compact_stall" "Allocations that compacted.",
    CompactFail "compact_fail" "Of these, without success.",
    CompactSuccess "compact_success" "Of these, with success.",
    CompactMigrateScanned "compact_migrate_scanned" "Pages looked at for pages to move.",
    CompactFreeScanned "compact_free_scanned" "Pages looked at for free places.",
    CompactIsolated "compact_isolated" "Pages taken to be moved, and free places.",
    KcompactdWake "compact_daemon_wake" "Wake-ups of kcompactd.",
    PgMigrateSuccess "pgmigrate_success" "Pages moved.",
    PgMigrateFail "pgmigrate_fail" "Pages that could not be moved.",
    ThpLazyFree "pglazyfreed" "Pages freed that the program had given up.",
}

/// The counters of a machine.
#[derive(Clone, Debug)]
pub struct Counters {
    values: [u64; Counter::ALL.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Counters { values: [0; Counter::ALL.len()] }
    }
}

impl Counters {
    /// Counts an event `n` times.
    #[inline]
    pub fn add(&mut self, counter: Counter, n: u64) {
        self.values[counter as usize] += n;
    }

    /// How often an event was counted.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }

    /// All counters that were counted, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Counter::ALL.iter().map(|counter| (counter.name(), self.get(*counter))).filter(|(_, n)| *n > 0)
    }
}
