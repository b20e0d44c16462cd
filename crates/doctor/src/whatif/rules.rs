//! What chooses the order of a cache: of the machine today, and with a change.

use super::change::Change;
use super::policy::Policy;
use crate::state::{Cache, State};
use slablab_report::error::{Error, Result};
use slablab_slabs::engines::slab::Management;
use slablab_slabs::order::{
    COSTLY_ORDER, CpuCounts, CpusCounted, MAX_ORDER, OBJECTS_MAX, OrderInput, OrderRule, default_max_order,
    default_min_objects,
};
use slablab_slabs::{Preset, Release};

/// The most CPUs that a kernel can be configured for.
const CPUS_MOST: u32 = 8192;

/// Since then SLAB has an index for each slab, of a byte per object (docs/theory/slab.md 1).
const SLAB_INDEX_SINCE: Release = Release::new(3, 13, 0);

/// The order rules of a machine, with everything they ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How the order is chosen.
    pub rule: OrderRule,
    /// Which CPUs are counted.
    pub counted: CpusCounted,
    /// How many of them there are.
    pub cpus: CpuCounts,
    /// Bytes in a page, a power of two.
    pub page_size: u64,
    /// `slub_min_order`.
    pub min_order: u8,
    /// `slub_max_order`.
    pub max_order: u8,
    /// `slub_min_objects`, 0 for the rule by CPUs.
    pub min_objects: u32,
    /// CPUs that the rule is told instead, if not 0.
    pub order_cpus: u32,
}

impl Rules {
    /// The rules of the machine that was read, and what had to be assumed for them.
    ///
    /// # Errors
    /// A state that does not tell the number of CPUs, or whose page size is no power of two.
    pub fn of(state: &State, assumed: &mut Vec<String>) -> Result<Rules> {
        if !state.page_size.is_power_of_two() || state.page_size < 4096 {
            return Err(Error::new(
                &state.path,
                format!("a page of {} bytes: expected a power of two from 4096 on", state.page_size),
            ));
        }
        let cpus = state.cpus.filter(|cpus| cpus.possible > 0).ok_or_else(|| {
            Error::new(&state.path, "does not tell how many CPUs there are; --input-cpus says it")
        })?;
        let newest = Release::new(u16::MAX, 0, 0);
        let release = state.release.unwrap_or(newest);
        let asked = |names: [&str; 2]| boot_parameter(state, names);
        let order = |order: u64| order.min(MAX_ORDER.into()) as u8;
        let mut rules = Rules {
            rule: OrderRule::of(release),
            counted: CpusCounted::of(release),
            cpus,
            page_size: state.page_size,
            min_order: asked(["slub_min_order", "slab_min_order"]).map_or(0, order),
            max_order: asked(["slub_max_order", "slab_max_order"]).map_or(default_max_order(release), order),
            min_objects: asked(["slub_min_objects", "slab_min_objects"])
                .map_or(default_min_objects(release), |objects| objects.min(OBJECTS_MAX) as u32),
            order_cpus: 0,
        };
        let mut rows = state.dump.slabinfo.iter().flat_map(|slabinfo| &slabinfo.rows);
        if rows.any(|row| row.limit > 0) {
            rules.rule = if release < SLAB_INDEX_SINCE { OrderRule::Slab } else { OrderRule::SlabIndex };
            assumed.push("The caches are SLAB's, by their tunables.".into());
        } else {
            rules = rules.inferred(state, assumed);
        }
        Ok(rules)
    }

    /// Chooses the rules that the input does not tell: those that give the most of today's orders.
    fn inferred(self, state: &State, assumed: &mut Vec<String>) -> Rules {
        let by_release = [self.rule];
        let rules: &[OrderRule] = match state.release {
            Some(_) => &by_release,
            None => &[OrderRule::Single, OrderRule::Clamped, OrderRule::Halving],
        };
        let orders = if state.dump.cmdline.is_some() { 0..0 } else { 0..MAX_ORDER + 1 };
        let with_rule = |rule: &OrderRule| Rules { rule: *rule, ..self };
        let with_order = |max_order: u8| move |rules: Rules| Rules { max_order, ..rules };
        let defaults = rules.iter().map(with_rule);
        let others = orders.flat_map(|order| rules.iter().map(with_rule).map(with_order(order)));
        let mut candidates: Vec<Rules> = defaults.chain(others).collect();
        candidates.reverse();
        // Of equals the last is taken: the newest rule, and the default.
        let best = candidates.into_iter().max_by_key(|rules| rules.explains(state)).unwrap_or(self);
        if state.release.is_none() {
            assumed.push(format!(
                "The input does not tell the kernel's release: no order rule gives more of today's orders \
                 than `{}` ({}).",
                best.rule.name(),
                best.rule.whose()
            ));
        }
        if state.dump.cmdline.is_none() {
            let with = match best.max_order == self.max_order {
                true => "are taken for the defaults".into(),
                false => format!("must have had slub_max_order={}, by today's orders", best.max_order),
            };
            assumed.push(format!("The kernel's command line is not in the input: boot parameters {with}."));
        }
        best
    }

    /// These rules with a change applied.
    ///
    /// # Errors
    /// A value that no kernel takes.
    pub fn with(self, change: &Change) -> Result<Rules> {
        let mut rules = self;
        match change.engine {
            Some(Preset::Slub(policy)) => {
                rules.rule = policy.order;
                rules.counted = CpusCounted::of(policy.release);
                rules.order_cpus = policy.order_cpus.into();
                // A knob at its default leaves the boot parameter alone.
                let set = |asked: u32, default: u32, today: u32| if asked == default { today } else { asked };
                rules.min_order = set(policy.min_order.into(), 0, self.min_order.into()) as u8;
                rules.max_order =
                    set(policy.max_order.into(), COSTLY_ORDER.into(), self.max_order.into()) as u8;
                rules.min_objects = set(policy.min_objects.into(), 0, self.min_objects);
            }
            Some(Preset::Slqb(policy)) => {
                (rules.rule, rules.min_order, rules.min_objects) =
                    (OrderRule::Slqb, policy.min_order, policy.min_objects);
            }
            Some(Preset::Slab(policy)) => {
                rules.rule = match policy.management {
                    Management::Descriptor => OrderRule::Slab,
                    Management::Index => OrderRule::SlabIndex,
                }
            }
            Some(preset @ Preset::Slob(_)) => {
                let why = format!("{preset}: SLOB has no slabs that could be laid out; `replay` runs it");
                return Err(Error::new("--engine", why));
            }
            Some(preset @ Preset::Registered(_)) => {
                let why = format!("{preset}: no rule of its slabs' orders is known; `replay` runs it");
                return Err(Error::new("--engine", why));
            }
            None => {}
        }
        match change.policy {
            Some(Policy::Rule(rule)) => rules.rule = rule,
            Some(Policy::Count(counted)) => rules.counted = counted,
            None => {}
        }
        rules.page_size = change.page_size.unwrap_or(rules.page_size);
        rules.min_order = change.min_order.unwrap_or(rules.min_order);
        rules.max_order = change.max_order.unwrap_or(rules.max_order);
        rules.min_objects = change.min_objects.unwrap_or(rules.min_objects);
        if let Some(cpus) = change.cpus {
            rules.cpus = CpuCounts { possible: cpus, present: cpus, online: cpus };
        }
        rules.check().map(|()| rules)
    }

    /// What other rules change, as sentences.
    pub fn differences(&self, then: &Rules) -> String {
        let mut said = Vec::new();
        let mut differ = |what: &str, today: String, then: String| {
            if today != then {
                said.push(format!("{what} {today} becomes {then}"));
            }
        };
        differ("the order rule", self.rule.name().into(), then.rule.name().into());
        let counted = |rules: &Rules| Policy::Count(rules.counted).name().to_string();
        differ("the set of CPUs that it counts,", counted(self), counted(then));
        differ("slub_max_order", self.max_order.to_string(), then.max_order.to_string());
        differ("slub_min_order", self.min_order.to_string(), then.min_order.to_string());
        differ("slub_min_objects", self.min_objects.to_string(), then.min_objects.to_string());
        match said.is_empty() {
            true => "The rules that choose orders stay the same.".into(),
            false => format!("Of the rules that choose orders, {}.", said.join(", ")),
        }
    }

    /// The caches whose order or objects per slab these rules do not give.
    pub(super) fn unexplained(&self, state: &State) -> Vec<String> {
        let others = state.caches.iter().filter(|cache| !self.explain(cache));
        others.map(|cache| cache.name.clone()).collect()
    }

    fn check(&self) -> Result<()> {
        let wrong = |option: &str, what: String| Err(Error::new(option, what));
        let page_size = self.page_size;
        if !page_size.is_power_of_two() || !(4096..=1 << 20).contains(&page_size) {
            return wrong("--page-size", format!("{page_size}: expected a power of two from 4K to 1M"));
        }
        for (option, order) in [("--max-order", self.max_order), ("--min-order", self.min_order)] {
            if order > MAX_ORDER {
                return wrong(option, format!("{order}: expected an order from 0 to {MAX_ORDER}"));
            }
        }
        if !(1..=CPUS_MOST).contains(&self.cpus.possible) {
            let given = self.cpus.possible;
            return wrong("--cpus", format!("{given}: expected a number of CPUs up to {CPUS_MOST}"));
        }
        Ok(())
    }

    fn input(&self, size: u32) -> OrderInput {
        let cpus = if self.order_cpus > 0 { self.order_cpus } else { self.counted.count(self.cpus) };
        OrderInput {
            size,
            page_shift: self.page_size.ilog2(),
            cpus,
            min_order: self.min_order,
            max_order: self.max_order,
            min_objects: self.min_objects,
        }
    }

    /// The order of a cache with objects of this many bytes, and objects in such a slab. `None` for a size no
    /// slab has.
    pub fn shape(&self, size: u64) -> Option<(u32, u64)> {
        let size = u32::try_from(size).ok().filter(|size| *size > 0)?;
        let input = self.input(size);
        let order = self.rule.order(input);
        Some((order.into(), self.rule.objects(input, order)))
    }

    /// Whether the rules give this cache's order and objects as they are.
    pub fn explain(&self, cache: &Cache) -> bool {
        self.shape(cache.size) == Some((cache.order, cache.objects_per_slab))
    }

    fn explains(&self, state: &State) -> usize {
        state.caches.iter().filter(|cache| self.explain(cache)).count()
    }
}

/// The last value of a boot parameter, by either name.
fn boot_parameter(state: &State, names: [&str; 2]) -> Option<u64> {
    let words = state.dump.cmdline.iter().flat_map(|cmdline| cmdline.split_whitespace());
    let mut values = words.filter_map(|word| {
        let (name, value) = word.split_once('=')?;
        if names.contains(&name) { value.parse().ok() } else { None }
    });
    values.next_back()
}
