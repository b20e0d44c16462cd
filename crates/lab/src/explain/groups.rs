//! What tells two presets of one engine apart, in at most six groups: an experiment is run for each of their
//! combinations.
//!
//! A group is a policy, or policies of one theme if there are too many. The last group is the kernel of the
//! release: an experiment has its scheduler, its kernel objects and the prices of its paths too.

use super::shapley::Coalition;
use slablab_slabs::preset::Preset;

/// Most groups: 64 combinations.
pub const GROUPS_MOST: usize = 6;

/// Themes of policies, for presets that differ in more than [`GROUPS_MOST`] groups. What is in none is in the
/// last one, `other`.
const THEMES: [(&str, &[&str]); 4] = [
    ("sheaves", &["sheaves", "refill", "barns", "elastic"]),
    ("cpu-slabs", &["cpu_slab", "cpu_partial", "cpu_partial_rule", "partial_frozen"]),
    ("orders", &["order", "min_order", "max_order", "min_objects", "order_cpus"]),
    (
        "node-lists",
        &["min_partial", "min_partial_rule", "empty", "memoryless", "remote_search", "defrag_ratio"],
    ),
];
const OTHER: &str = "other";
const KERNEL: &str = "kernel";

/// Policies that are changed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name: that of its only policy, or of its theme.
    pub name: String,
    /// Its policies with their values in both presets; of the kernel the releases.
    pub values: Vec<[String; 3]>,
    /// The places of its policies; empty for the kernel.
    knobs: Vec<usize>,
}

/// Two presets of one engine, and the groups in which they differ.
#[derive(Clone, Debug)]
pub struct Groups {
    /// The first preset.
    pub from: Preset,
    /// The second one.
    pub to: Preset,
    /// What differs; the kernel is the last one.
    pub groups: Vec<Group>,
}

impl Groups {
    /// Finds them.
    ///
    /// # Errors
    /// Presets of two engines: they have no policies in common that an experiment could exchange.
    pub fn new(from: Preset, to: Preset) -> Result<Groups, String> {
        if from.engine() != to.engine() {
            let (one, other) = (from.engine(), to.engine());
            return Err(format!(
                "{one} and {other} are two engines: expected two presets of one, whose policies can be exchanged"
            ));
        }
        let settings = (0..).map_while(|index| from.setting(index).zip(to.setting(index)));
        let differing = settings.enumerate().filter(|(_, (one, other))| one.value != other.value);
        let of =
            |(index, (one, other)): (usize, (slablab_slabs::knob::Setting, slablab_slabs::knob::Setting))| {
                Group {
                    name: one.name.to_string(),
                    values: vec![[one.name.to_string(), one.to_string(), other.to_string()]],
                    knobs: vec![index],
                }
            };
        let mut groups: Vec<Group> = differing.map(of).collect();
        let kernels = usize::from(from.release() != to.release());
        if groups.len() + kernels > GROUPS_MOST {
            groups = by_theme(groups);
        }
        if kernels > 0 {
            let releases = [KERNEL.to_string(), from.release().to_string(), to.release().to_string()];
            groups.push(Group { name: KERNEL.into(), values: vec![releases], knobs: Vec::new() });
        }
        Ok(Groups { from, to, groups })
    }

    /// The preset that has these groups from the second preset, and the others from the first.
    pub fn variant(&self, chosen: Coalition) -> Preset {
        let source = |group: usize| if chosen >> group & 1 == 1 { self.to } else { self.from };
        let kernel = self.groups.iter().position(|group| group.knobs.is_empty());
        let mut variant = kernel.map_or(self.from, source);
        for (group, one) in self.groups.iter().enumerate() {
            for knob in &one.knobs {
                variant.set(*knob, source(group).setting(*knob).expect("a policy of the engine").value);
            }
        }
        variant
    }
}

/// Policies of one theme as one group.
fn by_theme(single: Vec<Group>) -> Vec<Group> {
    let theme = |group: &Group| {
        let found = THEMES.iter().find(|(_, policies)| policies.contains(&group.name.as_str()));
        found.map_or(OTHER, |(theme, _)| theme)
    };
    let names = THEMES.iter().map(|(theme, _)| *theme).chain([OTHER]);
    let of = |name: &str| {
        let mut members = single.iter().filter(|group| theme(group) == name).cloned();
        let first = Group { name: name.to_string(), ..members.next()? };
        Some(members.fold(first, |mut sum, member| {
            sum.values.extend(member.values);
            sum.knobs.extend(member.knobs);
            sum
        }))
    };
    names.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(from: &str, to: &str) -> Groups {
        let preset = |text: &str| Preset::parse(text).unwrap_or_else(|bad| panic!("{bad}"));
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
        check("slub@6.18", "slub@7.0", &["cpu_partial_rule", "cpu_slab", "sheaves", "refill", "kernel"]);
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
}
