//! What tells two presets apart, in at most six groups, of page replacement seven: an experiment or a script
//! is run for each of their combinations.
//!
//! A group is a policy, or policies of one theme if there are too many. The last group is the kernel of the
//! release: an experiment has its scheduler, its kernel objects and the prices of its paths too, a script
//! its page cache and the memory of its guest.

use schemars::JsonSchema;
use serde::Serialize;
use slablab_slabs::preset::Preset as Engine;
use slablab_stats::shapley::Coalition;
use slablab_vm::preset::Preset as Vm;
use std::fmt::Display;

/// Most groups: 64 combinations.
pub const GROUPS_MOST: usize = 6;

const OTHER: &str = "other";
const KERNEL: &str = "kernel";
const LISTS: &str = "lists";

/// Themes of policies by name: what is in none is in the last group, `other`.
type Themes = &'static [(&'static str, &'static [&'static str])];

/// A grammar of presets: policies by name, of a kernel.
pub trait Grammar: Copy {
    /// Themes, for presets that differ in more than [`Grammar::GROUPS_MOST`] groups.
    const THEMES: Themes;
    /// Themes that cannot be exchanged without each other, or without the kernel: one group.
    /// What the policies are those of: their names mean the same in presets of one family.
    fn family(&self) -> String;
    /// Whether presets of two families can be taken apart: the family is a group then, with all policies
    /// that the other family lacks.
    const MIXES: bool;
    /// Most groups: two to this power are the combinations.
    const GROUPS_MOST: usize = GROUPS_MOST;
    /// The kernel's name.
    fn kernel(&self) -> String;
    /// Name, number and text of the policy at a place; `None` beyond the last.
    fn policy(&self, place: usize) -> Option<(&'static str, u64, String)>;
    /// Sets the policy at a place.
    fn set_policy(&mut self, place: usize, value: u64);
    /// Whether the policy of this preset's place can take the value of a policy in another family.
    fn takes(&self, place: usize, other: &Self, place_there: usize) -> bool;
    /// This preset's policies, in the kernel of another one.
    fn in_kernel(self, of: Self) -> Self;
}

impl Grammar for Engine {
    const THEMES: Themes = &[
        (
            "sheaves",
            &[
                "sheaves",
                "refill",
                "refill_reads",
                "refill_walks",
                "new_links",
                "leftover",
                "remote_refill",
                "barns",
                "elastic",
            ],
        ),
        (
            "cpu-slabs",
            &["cpu_slab", "cpu_partial", "cpu_partial_factor", "cpu_partial_rule", "partial_frozen"],
        ),
        ("orders", &["order", "min_order", "max_order", "min_objects", "order_cpus"]),
        (
            "node-lists",
            &["min_partial", "min_partial_rule", "empty", "memoryless", "remote_search", "defrag_ratio"],
        ),
    ];
    const MIXES: bool = false;

    fn family(&self) -> String {
        self.engine().to_string()
    }

    fn kernel(&self) -> String {
        self.release().to_string()
    }

    fn policy(&self, place: usize) -> Option<(&'static str, u64, String)> {
        self.setting(place).map(|setting| (setting.name, setting.value, setting.to_string()))
    }

    fn set_policy(&mut self, place: usize, value: u64) {
        self.set(place, value);
    }

    fn takes(&self, _: usize, _: &Engine, _: usize) -> bool {
        false
    }

    /// Engines do not mix, so that the kernel's preset is that of the engine.
    fn in_kernel(self, _: Engine) -> Engine {
        self
    }
}

impl Grammar for Vm {
    const THEMES: Themes = &[
        ("settings", &["swappiness", "page_cluster", "vfs_cache_pressure"]),
        ("aging", &["aging", "ager", "after_aging", "oldest", "walks", "skips_tables", "min_ttl_ms"]),
        (
            "eviction",
            &[
                "types",
                "margin",
                "recent",
                "stop",
                "placement",
                "promotion",
                "budget",
                "look",
                "dirty",
                "flushers",
                "congestion",
            ],
        ),
        ("kswapd", &["first_priority", "kswapd_order", "boost", "throttle", "enough", "gives_up"]),
        // Those of 2.4.
        (
            "reclaim",
            &[
                "lists",
                "anon",
                "target",
                "free_pass",
                "launder",
                "launder_ages",
                "write_above",
                "write_below",
                "activate_mapped",
                "rotate",
                "deactivate_mapped",
                "refill_references",
                "balance",
                "kswapd",
                "background",
                "waits",
                "limit_writes",
                "hands_over",
            ],
        ),
        ("walk", &["victims", "zone_test", "plenty", "walk", "own_first", "walk_want", "walk_counts"]),
        (
            "ages",
            &[
                "age",
                "age_start",
                "age_advance",
                "age_decline",
                "age_max",
                "start",
                "touch",
                "fault_activates",
                "write",
                "drop_behind",
                "limits",
            ],
        ),
        ("slots", &["slots"]),
        ("vfs", &["vfs"]),
    ];
    const MIXES: bool = true;
    /// The six policies of 7.2's generations, and the kernel.
    const GROUPS_MOST: usize = 7;

    fn family(&self) -> String {
        Vm::family(self).to_string()
    }

    fn kernel(&self) -> String {
        let [major, minor, patch] = self.kernel;
        if patch == 0 { format!("{major}.{minor}") } else { format!("{major}.{minor}.{patch}") }
    }

    fn policy(&self, place: usize) -> Option<(&'static str, u64, String)> {
        self.setting(place).map(|setting| (setting.name, setting.value, setting.to_string()))
    }

    fn set_policy(&mut self, place: usize, value: u64) {
        self.set(place, value);
    }

    fn takes(&self, place: usize, other: &Vm, place_there: usize) -> bool {
        let values = |preset: &Vm, place| preset.setting(place).map(|setting| (setting.name, setting.values));
        values(self, place) == values(other, place_there)
    }

    fn in_kernel(mut self, of: Vm) -> Vm {
        self.kernel = of.kernel;
        self
    }
}

/// Policies that are changed together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Group {
    /// Its name: that of its only policy, or of its theme.
    #[serde(rename = "group")]
    pub name: String,
    /// Its policies with their values in both presets; of the kernel the releases.
    pub policies: Vec<Policy>,
    /// What is changed.
    #[serde(skip)]
    kind: Kind,
}

/// A policy that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Policy {
    /// Its name.
    #[serde(rename = "policy")]
    pub name: String,
    /// Its value in the first preset.
    pub from: String,
    /// Its value in the second preset.
    pub to: String,
}

impl Group {
    /// What is no policy of a preset, and has these two values.
    pub(super) fn of_one(name: &str, from: String, to: String) -> Group {
        let policies = vec![Policy { name: name.to_string(), from, to }];
        Group { name: name.to_string(), policies, kind: Kind::Policies(Vec::new()) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// The policies at these places in the first preset and in the second.
    Policies(Vec<[usize; 2]>),
    /// The family, with every policy that the other one lacks.
    Family,
    /// The kernel.
    Kernel,
}

/// Two presets, and the groups in which they differ.
#[derive(Clone, Debug)]
pub struct Groups<P> {
    /// The first preset.
    pub from: P,
    /// The second one.
    pub to: P,
    /// What differs; the kernel is the last one.
    pub groups: Vec<Group>,
}

impl<P: Grammar> Groups<P> {
    /// Finds them.
    ///
    /// # Errors
    /// Presets of two engines: they have no policies in common that an experiment could exchange.
    pub fn new(from: P, to: P) -> Result<Groups<P>, String> {
        let (one, other) = (from.family(), to.family());
        if one != other && !P::MIXES {
            return Err(format!(
                "{one} and {other} are two engines: expected two presets of one, whose policies can be exchanged"
            ));
        }
        let value = |name: &str, from: &dyn Display, to: &dyn Display| {
            vec![Policy { name: name.to_string(), from: from.to_string(), to: to.to_string() }]
        };
        let mut groups: Vec<Group> = common(&from, &to)
            .into_iter()
            .filter_map(|places| {
                let ((name, one, shown), (_, other, shown_there)) =
                    (from.policy(places[0])?, to.policy(places[1])?);
                (one != other).then(|| Group {
                    name: name.to_string(),
                    policies: value(name, &shown, &shown_there),
                    kind: Kind::Policies(vec![places]),
                })
            })
            .collect();
        let mut whole = Vec::new();
        if one != other {
            whole.push(Group {
                name: LISTS.into(),
                policies: value(LISTS, &one, &other),
                kind: Kind::Family,
            });
        }
        if from.kernel() != to.kernel() {
            let policies = value(KERNEL, &from.kernel(), &to.kernel());
            whole.push(Group { name: KERNEL.into(), policies, kind: Kind::Kernel });
        }
        if groups.len() + whole.len() > P::GROUPS_MOST {
            groups = by_theme::<P>(groups);
        }
        groups.extend(whole);
        Ok(Groups { from, to, groups })
    }

    /// The preset that has these groups from the second preset, and the others from the first.
    pub fn variant(&self, chosen: Coalition) -> P {
        let is_second = |group: usize| chosen >> group & 1 == 1;
        let side = |kind: &Kind| {
            let group = self.groups.iter().position(|group| group.kind == *kind);
            group.map(|group| usize::from(is_second(group)))
        };
        let of = |side: usize| if side == 1 { self.to } else { self.from };
        // Without a difference of families the kernel decides, whose policies the same groups then change.
        let kernel = side(&Kind::Kernel).unwrap_or_default();
        let family = side(&Kind::Family).unwrap_or(kernel);
        let mut variant = match side(&Kind::Kernel) {
            Some(kernel) if kernel != family => of(family).in_kernel(of(kernel)),
            _ => of(family),
        };
        for (group, one) in self.groups.iter().enumerate() {
            let source = usize::from(is_second(group));
            let Kind::Policies(places) = &one.kind else { continue };
            for places in places {
                let (_, value, _) = of(source).policy(places[source]).expect("a policy of the preset");
                variant.set_policy(places[family], value);
            }
        }
        variant
    }
}

/// The places of the policies that both presets have.
fn common<P: Grammar>(from: &P, to: &P) -> Vec<[usize; 2]> {
    let places = |preset: &P| (0..).take_while(|place| preset.policy(*place).is_some()).count();
    if from.family() == to.family() {
        return (0..places(from)).map(|place| [place; 2]).collect();
    }
    let there = |place: usize| (0..places(to)).find(|other| from.takes(place, to, *other));
    (0..places(from)).filter_map(|place| Some([place, there(place)?])).collect()
}

/// Policies of one theme as one group.
fn by_theme<P: Grammar>(single: Vec<Group>) -> Vec<Group> {
    let theme = |group: &Group| {
        let found = P::THEMES.iter().find(|(_, policies)| policies.contains(&group.name.as_str()));
        found.map_or(OTHER, |(theme, _)| theme)
    };
    let names = P::THEMES.iter().map(|(theme, _)| *theme).chain([OTHER]);
    let of = |name: &str| {
        let members: Vec<&Group> = single.iter().filter(|group| theme(group) == name).collect();
        let places = |group: &&Group| match &group.kind {
            Kind::Policies(places) => places.clone(),
            Kind::Family | Kind::Kernel => Vec::new(),
        };
        (!members.is_empty()).then(|| Group {
            name: name.to_string(),
            policies: members.iter().flat_map(|group| group.policies.clone()).collect(),
            kind: Kind::Policies(members.iter().flat_map(places).collect()),
        })
    };
    names.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(from: &str, to: &str) -> Groups<Engine> {
        let preset = |text: &str| Engine::parse(text).unwrap_or_else(|bad| panic!("{bad}"));
        Groups::new(preset(from), preset(to)).unwrap_or_else(|bad| panic!("{bad}"))
    }

    #[test]
    fn at_most_six_groups() {
        let check = |from: &str, to: &str, expected: &[&str]| {
            let found = groups(from, to);
            let names: Vec<&str> = found.groups.iter().map(|group| group.name.as_str()).collect();
            assert_eq!(names, expected, "{from} {to}");
        };
        check("slub@7.0", "slub@7.1", &["barns", "kernel"]);
        let others = ["sheaves", "cpu-slabs", "node-lists", "kernel"];
        check("slub@6.18", "slub@7.0", &others);
        check("slub@7.1", "slub@7.1,max_order=0", &["max_order"]);
        check("slub@7.1", "slub@7.1", &[]);
        let all = ["sheaves", "cpu-slabs", "orders", "node-lists", "other", "kernel"];
        check("slub@2.6.29", "slub@6.18", &all);
        let bad = Groups::new(groups("slub", "slub").from, groups("slqb", "slqb").from).err();
        assert!(bad.is_some_and(|bad| bad.contains("two engines")));
    }

    /// With no group chosen the variant is the first preset, with all the second; each group changes both.
    #[test]
    fn variants() {
        for (from, to) in
            [("slub@2.6.29", "slub@6.18"), ("slub@7.0", "slub@7.1"), ("slab@2.6.29", "slab@6.1")]
        {
            let found = groups(from, to);
            let all = (1 << found.groups.len()) - 1;
            assert_eq!((found.variant(0), found.variant(all)), (found.from, found.to), "{from} {to}");
            for group in 0..found.groups.len() {
                assert_ne!(found.variant(1 << group), found.from, "{from} {to}: {group}");
                assert_ne!(found.variant(all & !(1 << group)), found.to, "{from} {to}: {group}");
            }
        }
    }

    #[test]
    fn groups_of_page_replacement() {
        let vm = |text: &str| Vm::parse(text).unwrap_or_else(|bad| panic!("{bad}"));
        let check = |from: &str, to: &str, expected: &[&str]| {
            let found = Groups::new(vm(from), vm(to)).unwrap_or_else(|bad| panic!("{bad}"));
            let names: Vec<&str> = found.groups.iter().map(|group| group.name.as_str()).collect();
            assert_eq!(names, expected, "{from} {to}");
        };
        check("vm@6.1", "vm@6.1,lru_gen", &["lists"]);
        check("vm@6.1", "vm@6.12,lru_gen,swappiness=1,slabs=no", &["swappiness", "slabs", "lists", "kernel"]);
        check("vm@6.1,lru_gen", "vm@6.1,lru_gen,ager=eviction", &["ager"]);
        check("vm@6.12", "vm@6.18", &["kernel"]);
        check("vm@6.18", "vm@7.2", &["kernel"]);
        let of_7_2 = ["flushers", "budget", "look", "after_aging", "dirty", "congestion", "kernel"];
        check("vm@6.18,lru_gen", "vm@7.2,lru_gen", &of_7_2);
        check("vm@2.4.10", "vm@2.4.9-ac14", &["reclaim", "walk", "ages", "slots", "vfs", "kernel"]);
    }

    /// Of every two presets, no group chosen is the first, and all groups the second but for its name: a
    /// difference without a knob would show.
    #[test]
    fn variants_of_page_replacement() {
        let all = Vm::all();
        for (from, to) in all.iter().flat_map(|from| all.iter().map(move |to| (*from, *to))) {
            let found = Groups::new(from, to).unwrap_or_else(|bad| panic!("{bad}"));
            assert!(found.groups.len() <= Vm::GROUPS_MOST, "{from} {to}");
            let last = found.variant((1 << found.groups.len()) - 1);
            let mut named = last;
            (named.release, named.what) = (to.release, to.what);
            assert_eq!((found.variant(0), named), (from, to), "{from} {to}");
        }
    }
}
