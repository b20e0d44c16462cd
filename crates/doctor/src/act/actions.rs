//! Actions that the user can take on this kernel: commands and boot parameters, each with its predicted
//! saving and its cost.
//!
//! An action is offered only for a finding, only if [`super::knobs`] says that this kernel has the knob and
//! lets it be turned, and for a file of a cache only if the dump has that cache's directory. The predicted
//! effect is a range: bounds where the counters give bounds, the measured error of the prediction where a
//! model speaks.

use super::knobs::{Knob, Way, turnable};
use super::predict::{max_order_now, with_max_order};
use crate::find::{Finding, Found, Kind};
use crate::measure::allocator::Allocator;
use crate::measure::grown::Grown;
use crate::measure::parked::{nodes_with_memory, online};
use crate::measure::reclaim::Reclaim;
use crate::measure::{Line, Measured, named};
use crate::words::{counted, listed, size};
use slablab_readers::sysfs::SlabAttrs;
use slablab_report::visible::shell_word;

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// The knob.
    pub knob: &'static str,
    /// When it acts.
    pub way: Way,
    /// The command to type, or the words to add to the kernel's command line.
    pub command: String,
    /// The findings it is for.
    pub because: Vec<Kind>,
    /// Bytes it saves: at least, and at most. Below 0 it takes memory.
    pub saves: (i64, i64),
    /// How the range is known.
    pub basis: String,
    /// What it costs.
    pub cost: String,
}

/// Caches that one kind of action is offered for.
const CACHES: usize = 3;

/// The lowest `min_partial` that kernels take: those of 2.6.32 raise what is below to it.
const MIN_PARTIAL: u64 = 5;

/// What can be done about what was found, most likely savings first.
pub(crate) fn offer(measured: &Measured, found: &Found) -> Vec<Action> {
    let doctor = Offer { measured, found, worth: measured.worth() };
    let owners = doctor.owners();
    let mut actions: Vec<Action> = Vec::new();
    actions.extend(doctor.shrink());
    actions.extend(doctor.min_partial());
    actions.extend(doctor.cpu_partial());
    actions.extend(doctor.order());
    actions.extend(doctor.drop_caches());
    actions.extend(doctor.cache_pressure());
    actions.extend(doctor.max_order());
    actions.extend(doctor.debug_off());
    actions.extend(doctor.nokmem());
    actions.extend(doctor.tunables());
    actions.extend(doctor.nomerge());
    actions.sort_by_key(|action| std::cmp::Reverse(action.saves.0.saturating_add(action.saves.1)));
    // What climbs, and only its holder frees, comes before what the kernel frees by itself.
    owners.into_iter().chain(actions).collect()
}

struct Offer<'a> {
    measured: &'a Measured<'a>,
    found: &'a Found,
    worth: u64,
}

impl<'a> Offer<'a> {
    fn knob(&self, key: &str) -> Option<&'static Knob> {
        turnable(self.measured.state, key)
    }

    fn finding(&self, kind: Kind) -> Option<&Finding> {
        self.found.of(kind).next()
    }

    /// Lines of the caches that findings of a kind are about, with their directories. Leaves out a cache if
    /// the dump gives its directory a name that leads out of /sys/kernel/slab.
    fn caches_of(&self, kind: Kind) -> Vec<(&'a Line<'a>, &'a SlabAttrs)> {
        let findings = self.found.of(kind);
        let keys: Vec<&(String, u32)> = findings.flat_map(|finding| &finding.caches).collect();
        let line = |key: &&(String, u32)| {
            let line = self.line(key)?;
            let attrs = line.cache.attrs.as_ref()?;
            is_file_name(folder(line, attrs)).then_some((line, attrs))
        };
        keys.iter().filter_map(line).collect()
    }

    /// The line of the cache with this name and ordinal. It looks at all lines: findings name few caches.
    fn line(&self, (name, ordinal): &(String, u32)) -> Option<&'a Line<'a>> {
        self.measured.lines.iter().find(|line| line.cache.name == *name && line.cache.ordinal == *ordinal)
    }

    /// What frees the objects that climb: the ways of the data about caches.
    fn owners(&self) -> Vec<Action> {
        let Some(knob) = self.knob("owner") else { return Vec::new() };
        let climbing = self.measured.grown.iter().filter(|group| !group.benign && group.bytes >= self.worth);
        let action = |group: &Grown| {
            let method = group.what?.shrink.iter().find(|method| method.run.is_some())?;
            let because = self.found.findings.iter().map(|finding| finding.kind);
            let because = because.filter(|kind| matches!(kind, Kind::Leak | Kind::Growth)).take(1).collect();
            Some(Action {
                knob: knob.key,
                way: knob.way,
                command: method.run.clone()?,
                because,
                saves: (0, group.bytes as i64),
                basis: format!("what {} grew by. {}", listed(&group.names), method.how.trim_end_matches('.')),
                cost: method.cost.clone().unwrap_or_else(|| "none to look".into()),
            })
        };
        climbing.filter_map(action).take(CACHES).collect()
    }

    /// Empty slabs of fragmented caches.
    fn shrink(&self) -> Vec<Action> {
        let Some(knob) = self.knob("shrink") else { return Vec::new() };
        let page = self.measured.state.page_size;
        let action = |(line, attrs): (&Line, &SlabAttrs)| {
            let (low, high) = empty_slabs(line, attrs);
            let bytes = |slabs: u64| slabs.saturating_mul(line.cache.slab_bytes(page)) as i64;
            Action {
                knob: knob.key,
                way: knob.way,
                command: format!("echo 1 > {}", file(line, attrs, knob.name)),
                because: vec![Kind::Fragmented],
                saves: (bytes(low), bytes(high)),
                basis: format!(
                    "{low} to {high} of its slabs can be empty: at least the partial slabs less their objects, \
                     at most the number that free objects fill"
                ),
                cost: "briefly flushes every CPU's slab of this cache; slabs that still hold an object are \
                    not freed"
                    .into(),
            }
        };
        let actions = self.caches_of(Kind::Fragmented).into_iter().map(action);
        actions.filter(|action| action.saves.1 >= self.worth as i64).take(CACHES).collect()
    }

    /// Empty slabs that nodes keep. The lowest number that every kernel with this file takes is
    /// [`MIN_PARTIAL`].
    fn min_partial(&self) -> Vec<Action> {
        let Some(knob) = self.knob("min_partial") else { return Vec::new() };
        let (state, nodes) = (self.measured.state, nodes_with_memory(self.measured.state));
        let action = |(line, attrs): (&Line, &SlabAttrs)| {
            let now = attrs.min_partial.filter(|now| *now > MIN_PARTIAL)?;
            let (_, empty) = empty_slabs(line, attrs);
            let slabs = (now - MIN_PARTIAL).saturating_mul(nodes).min(empty);
            Some(Action {
                knob: knob.key,
                way: knob.way,
                command: format!("echo {MIN_PARTIAL} > {}", file(line, attrs, knob.name)),
                because: vec![Kind::Fragmented],
                saves: (0, slabs.saturating_mul(line.cache.slab_bytes(state.page_size)) as i64),
                basis: format!("each of {} keeps up to {now} empty slabs", counted(nodes, "node")),
                cost: "slabs are freed and allocated more often; lasts until the next boot".into(),
            })
        };
        let actions = self.caches_of(Kind::Fragmented).into_iter().filter_map(action);
        actions.filter(|action| action.saves.1 >= self.worth as i64).take(CACHES).collect()
    }

    /// Another order for caches with large tails, where the kernel still takes one.
    fn order(&self) -> Vec<Action> {
        let Some(knob) = self.knob("order") else { return Vec::new() };
        let page = self.measured.state.page_size;
        let action = |(line, attrs): (&Line, &SlabAttrs)| {
            let cache = line.cache;
            // The kernel refuses an order above the largest that it chooses itself.
            let orders = 0..=u32::from(max_order_now(self.measured.state)?);
            let tail = |order: u32| (page << order) % cache.size.max(1);
            // Tails as parts of their slabs, all multiplied by one number to avoid rounding.
            let part = |order: u32| u128::from(tail(order)) << (u32::BITS - order.min(u32::BITS));
            let better = |order: &u32| page << order >= cache.size && part(*order) < part(cache.order);
            let order = orders.filter(better).min_by_key(|order| (part(*order), *order))?;
            let slabs = cache.total_objects.div_ceil(((page << order) / cache.size).max(1));
            let left = slabs.saturating_mul(tail(order));
            Some(Action {
                knob: knob.key,
                way: knob.way,
                command: format!("echo {order} > {}", file(line, attrs, knob.name)),
                because: vec![Kind::Tail],
                saves: (0, line.split.tail.saturating_sub(left) as i64),
                basis: format!(
                    "tails of as many objects in slabs of order {order}, once all of today's slabs of order \
                     {} are gone",
                    cache.order
                ),
                cost: "existing slabs keep their order; each CPU then holds a slab of the new order; lasts \
                    until the next boot"
                    .into(),
            })
        };
        let actions = self.caches_of(Kind::Tail).into_iter().filter_map(action);
        actions.filter(|action| action.saves.1 >= self.worth as i64).take(CACHES).collect()
    }

    /// Partial slabs of CPUs.
    fn cpu_partial(&self) -> Vec<Action> {
        let Some(knob) = self.knob("cpu_partial") else { return Vec::new() };
        let page = self.measured.state.page_size;
        let action = |(line, attrs): (&Line, &SlabAttrs)| {
            let on = attrs.cpu_partial? > 0;
            let slabs = attrs.slabs_cpu_partial.as_ref()?.total.slabs?.min(line.cache.slabs);
            on.then(|| Action {
                knob: knob.key,
                way: knob.way,
                command: format!("echo 0 > {}", file(line, attrs, knob.name)),
                because: vec![Kind::Parked],
                saves: (0, slabs.saturating_mul(line.cache.slab_bytes(page)) as i64),
                basis: format!("{slabs} slabs are on the CPUs' partial lists; the empty ones are freed"),
                cost: "frees to full slabs then take the node's list_lock; lasts until the next boot".into(),
            })
        };
        let actions = self.caches_of(Kind::Parked).into_iter().filter_map(action);
        actions.filter(|action| action.saves.1 >= self.worth as i64).take(CACHES).collect()
    }

    /// Directory entries and inodes alone, or with the page cache and what goes with it.
    fn drop_caches(&self) -> Vec<Action> {
        let (Some(knob), Some(finding)) = (self.knob("drop_caches"), self.finding(Kind::Reclaimable)) else {
            return Vec::new();
        };
        let (with_pages, bytes) = self.with_page_cache();
        let (without, held) = self.held();
        let freed = finding.bytes.saturating_sub(held);
        let action = |what: u8, saves: u64, basis: String, cost: &str| Action {
            knob: knob.key,
            way: knob.way,
            command: format!("sync; echo {what} > /proc/sys/vm/drop_caches"),
            because: vec![Kind::Reclaimable],
            saves: (0, saves as i64),
            basis,
            cost: cost.into(),
        };
        let stay = "files that are open, and slabs with one object in use, stay";
        let inodes = action(
            2,
            freed.saturating_sub(bytes),
            format!("SReclaimable{without}{with_pages}; {stay}, as may inodes with cached pages"),
            "files are looked up on disk again, and the caches grow back",
        );
        let all = action(
            3,
            freed,
            format!("SReclaimable{without}; {stay}"),
            "the page cache is dropped too: files are read from disk again, and the caches grow back",
        );
        [(inodes, true), (all, bytes >= self.worth)]
            .into_iter()
            .filter_map(|(action, offered)| (offered && action.saves.1 > 0).then_some(action))
            .collect()
    }

    fn cache_pressure(&self) -> Option<Action> {
        let (knob, finding) = (self.knob("cache_pressure")?, self.finding(Kind::Reclaimable)?);
        let (with_pages, bytes) = self.with_page_cache();
        let (without, held) = self.held();
        let saves = finding.bytes.saturating_sub(bytes).saturating_sub(held);
        (saves > 0).then(|| Action {
            knob: knob.key,
            way: knob.way,
            command: "sysctl vm.vfs_cache_pressure=200".into(),
            because: vec![Kind::Reclaimable],
            saves: (0, saves as i64),
            basis: format!("SReclaimable{without}{with_pages}; acts only when the kernel needs memory"),
            cost: "under memory pressure, files are looked up on disk more often".into(),
        })
    }

    /// The names and the bytes of caches counted as reclaimable whose objects only their holder frees, and of
    /// the growth of others that is held with them.
    fn held(&self) -> (String, u64) {
        let lines: Vec<&Line> =
            self.measured.lines.iter().filter(|line| line.reclaim == Reclaim::Holder).collect();
        let mut names: Vec<String> =
            lines.iter().filter(|line| line.split.bytes >= self.worth).map(|line| named(line)).collect();
        let mut bytes: u64 = lines.iter().map(|line| line.split.bytes).sum();
        for line in self.measured.grown.iter().filter(|group| !group.benign).flat_map(|group| &group.lines) {
            let line = &self.measured.lines[*line];
            let grown = line.growth.as_ref().map_or(0, |growth| growth.bytes.max(0) as u64);
            if matches!(line.reclaim, Reclaim::Shrinker | Reclaim::PageCache) && grown > 0 {
                bytes = bytes.saturating_add(grown);
                if grown >= self.worth {
                    names.push(format!("the growth of {}", named(line)));
                }
            }
        }
        let without = if names.is_empty() {
            String::new()
        } else {
            format!(" less {} (no shrinker frees them)", listed(&names))
        };
        (without, bytes)
    }

    /// The names and the bytes of the reclaimable caches that shrink only with the page cache, as buffer
    /// heads do.
    fn with_page_cache(&self) -> (String, u64) {
        let goes_with_pages = |line: &&Line| line.reclaim == Reclaim::PageCache;
        let lines: Vec<&Line> = self.measured.lines.iter().filter(goes_with_pages).collect();
        let names: Vec<String> =
            lines.iter().filter(|line| line.split.bytes >= self.worth).map(|line| named(line)).collect();
        let without = if names.is_empty() {
            String::new()
        } else {
            format!(" less {} (they go with the page cache)", listed(&names))
        };
        (without, lines.iter().map(|line| line.split.bytes).sum())
    }

    /// Smaller slabs, where even the worst prediction saves something.
    fn max_order(&self) -> Option<Action> {
        let knob = self.knob("max_order")?;
        let state = self.measured.state;
        let now = max_order_now(state)?;
        let predicted = (0..now).rev().filter_map(|order| Some((order, with_max_order(state, order)?)));
        let (order, best) = predicted
            .filter(|(_, predicted)| predicted.saved().0 >= self.worth as i64)
            .max_by_key(|(order, predicted)| (predicted.saved().1, *order))?;
        let (low, likely, high) = best.saved();
        let because = [Kind::Parked, Kind::BigPages, Kind::Fallback, Kind::HighOrder, Kind::Tail];
        let because: Vec<Kind> = because.into_iter().filter(|kind| self.finding(*kind).is_some()).collect();
        (!because.is_empty()).then(|| Action {
            knob: knob.key,
            way: knob.way,
            command: format!("{}={order}", knob.name),
            because,
            saves: (low, high),
            basis: format!(
                "{} with smaller slabs, {} likely; the range is the prediction's measured error \
                 (docs/whatif.md)",
                counted(best.caches() as u64, "cache"),
                size(likely.unsigned_abs())
            ),
            cost: format!(
                "{:.1} times as many slabs: the page allocator and the nodes' locks are used that much \
                 more often; all caches, at boot",
                best.slabs_ratio()
            ),
        })
    }

    /// Debugging that was asked for on the command line.
    fn debug_off(&self) -> Option<Action> {
        let (knob, finding) = (self.knob("debug")?, self.finding(Kind::Debugging)?);
        let words = self.measured.state.dump.cmdline.iter().flat_map(|line| line.split_whitespace());
        let asked =
            words.into_iter().find(|word| word.starts_with("slub_debug") || word.starts_with("slab_debug"));
        let command = match asked {
            Some(word) => format!("without {}", shell_word(word, "-_.:+^/=,*")),
            None => format!("{}=-", knob.name),
        };
        let bytes = finding.bytes as i64;
        // Objects without debugging are smaller, and their caches may be merged. Tails and parked objects
        // change with the slabs.
        let off = (self.measured.total.tail + self.measured.total.parked.high) as i64;
        Some(Action {
            knob: knob.key,
            way: knob.way,
            command,
            because: vec![Kind::Debugging],
            saves: (bytes.saturating_sub(off).max(0), bytes.saturating_add(off)),
            basis: "the bytes of debugging, plus or minus all tails and all parked objects".into(),
            cost: "errors in the use of slabs are no longer caught; at boot".into(),
        })
    }

    /// Twins of the kmalloc caches for accounted objects.
    fn nokmem(&self) -> Option<Action> {
        let knob = self.knob("nokmem")?;
        let twins = self.measured.lines.iter().filter(|line| line.cache.name.starts_with("kmalloc-cg-"));
        let at_most: u64 = twins.map(|line| line.split.loss().max(0) as u64 + line.split.parked.high).sum();
        (at_most >= self.worth && self.finding(Kind::Parked).is_some()).then(|| Action {
            knob: knob.key,
            way: knob.way,
            command: knob.name.into(),
            because: vec![Kind::Parked],
            saves: (0, at_most as i64),
            basis: "free and parked objects of the kmalloc-cg caches, which the kernel then does not use"
                .into(),
            cost: "cgroups no longer limit or count the kernel's memory; at boot".into(),
        })
    }

    /// Smaller per-CPU arrays of SLAB. The cache's name comes from the dump, so it is quoted for a shell.
    fn tunables(&self) -> Vec<Action> {
        let (Some(knob), Some(finding)) = (self.knob("tunables"), self.finding(Kind::Parked)) else {
            return Vec::new();
        };
        let action = |key: &(String, u32)| {
            let line = self.line(key)?;
            let row = self.measured.state.row(line.cache).filter(|row| row.limit > 1)?;
            let (limit, batch) = (row.limit / 2, (row.limit / 2).div_ceil(2));
            let setting = format!("{} {limit} {batch} {}", row.name, row.sharedfactor);
            Some(Action {
                knob: knob.key,
                way: knob.way,
                command: format!("echo {} > {}", shell_word(&setting, ""), knob.name),
                because: vec![Kind::Parked],
                saves: (0, (line.split.parked.high / 2) as i64),
                basis: "half of the objects that its arrays may hold".into(),
                cost: "arrays are refilled and flushed twice as often, under the node's lock".into(),
            })
        };
        let actions = finding.caches.iter().filter_map(action);
        actions.filter(|action| action.saves.1 >= self.worth as i64).take(CACHES).collect()
    }

    /// Shows which of the merged caches holds the memory. Saves nothing.
    fn nomerge(&self) -> Option<Action> {
        let (knob, _) = (self.knob("nomerge")?, self.finding(Kind::Merged)?);
        if self.measured.allocator() != Allocator::Slub {
            return None;
        }
        let (state, lines) = (self.measured.state, &self.measured.lines);
        let cpus = online(state)?;
        // Each name gets slabs of its own: at worst one per CPU, as now its cache has.
        let apart: u64 = lines
            .iter()
            .map(|line| {
                let slabs = (line.cache.aliases.len() as u64).saturating_mul(cpus.min(line.cache.slabs));
                slabs.saturating_mul(line.cache.slab_bytes(state.page_size))
            })
            .sum();
        Some(Action {
            knob: knob.key,
            way: knob.way,
            command: knob.name.into(),
            because: vec![Kind::Merged],
            saves: ((apart as i64).saturating_neg(), 0),
            basis: "each merged name gets slabs of its own, at most one for each CPU".into(),
            cost: "more slabs; in return every cache is counted by its own name; at boot".into(),
        })
    }
}

/// Bounds on the number of a cache's slabs that can be empty. On node lists there are no more slabs with an
/// object than objects, which gives the lower bound. The upper bound is the number of slabs that the free
/// objects fill; parked objects count as free, because a shrink takes them back.
fn empty_slabs(line: &Line, attrs: &SlabAttrs) -> (u64, u64) {
    let cache = line.cache;
    let total = |counts: &Option<slablab_readers::text::Breakdown>| {
        counts.as_ref().map_or(0, |counts| counts.total.value)
    };
    let (partial, in_use) = (total(&attrs.partial), total(&attrs.objects_partial));
    let held = total(&attrs.cpu_slabs);
    let object = cache.object_size.unwrap_or(cache.size).max(1);
    let free = cache.total_objects.saturating_sub(cache.active_objects) + line.split.parked.high / object;
    let high = (free / cache.objects_per_slab.max(1)).min(partial + held).min(cache.slabs);
    (partial.saturating_sub(in_use).min(high), high)
}

/// The path of the file `name` of a cache in sysfs, quoted for a shell.
fn file(line: &Line, attrs: &SlabAttrs, name: &str) -> String {
    shell_word(&format!("/sys/kernel/slab/{}/{name}", folder(line, attrs)), "-_.:+^/").into_owned()
}

/// A cache's directory in sysfs: the cache's name in the report if sysfs has a link with that name.
fn folder<'a>(line: &'a Line, attrs: &'a SlabAttrs) -> &'a str {
    let name = &line.cache.name;
    let linked = line.cache.ordinal == 0 && is_file_name(name) && attrs.aliases.contains(name);
    if linked { name } else { &attrs.name }
}

/// Whether `name` is the name of a file in its directory, and no way to another one.
fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains('/')
}
