//! What tells two presets apart, item by item, and the presets in between.
//!
//! Presets of one engine differ in policies, each by the name of its knob, and in the page allocator of their
//! kernels. Two engines share less: where their slabs' orders, their page allocators and their rule for nodes
//! without memory can be taken over, each is an item; all the rest is one, `engine`. The classes of kmalloc
//! are the recording's under any engine (docs/replay.md), so that they never differ here.

use crate::replay::{Variant, takes_orders};
use slablab_slabs::knob::{Setting, Values};
use slablab_slabs::preset::Preset;
use slablab_stats::shapley::Coalition;

/// Something that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name: a knob's, or `pages`, `orders`, `engine`.
    pub name: String,
    /// What it is, in a line.
    pub what: String,
    /// Its value in the first preset.
    pub from: String,
    /// Its value in the second one.
    pub to: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The policy of this index in presets of one engine.
    Knob(usize),
    /// A policy that two engines have by one name.
    Shared(&'static str),
    /// The page allocator.
    Pages,
    /// The slabs' orders.
    Orders,
    /// The engine, and what cannot be taken apart.
    Engine,
}

/// Policies that mean the same in two engines where both have them.
const SHARED: [&str; 1] = ["memoryless"];

/// Two presets and their difference.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The first preset.
    pub from: Preset,
    /// The second one.
    pub to: Preset,
    /// What differs.
    pub items: Vec<Item>,
    /// What two engines share or cannot take over from each other, in sentences.
    pub notes: Vec<String>,
}

impl Difference {
    /// Finds it.
    pub fn new(from: Preset, to: Preset) -> Difference {
        let mut difference = Difference { from, to, items: Vec::new(), notes: Vec::new() };
        if from.engine() == to.engine() {
            difference.policies();
        } else {
            difference.engines();
        }
        if from.pages() != to.pages() {
            difference.add(Kind::Pages, "pages", "the page allocator of the release", |preset| {
                preset.release().to_string()
            });
        }
        difference
    }

    fn add(&mut self, kind: Kind, name: &str, what: &str, value: impl Fn(&Preset) -> String) {
        let (from, to) = (value(&self.from), value(&self.to));
        self.items.push(Item { name: name.into(), what: what.into(), from, to, kind });
    }

    fn policies(&mut self) {
        let (from, to) = (self.from, self.to);
        let settings = (0..).map_while(|index| from.setting(index).zip(to.setting(index)));
        for (index, (one, other)) in settings.enumerate().filter(|(_, (one, other))| one.value != other.value)
        {
            let value = |preset: &Preset| if *preset == from { one.to_string() } else { other.to_string() };
            self.add(Kind::Knob(index), one.name, one.what, value);
        }
    }

    fn engines(&mut self) {
        self.add(Kind::Engine, "engine", "all that the engines do not share", |preset| {
            preset.engine().to_string()
        });
        if takes_orders(&self.from) && takes_orders(&self.to) {
            self.add(Kind::Orders, "orders", "the orders of slabs", |preset| preset.to_string());
        } else {
            self.notes.push("orders of slabs are part of engine: one of the two has none by cache".into());
        }
        for name in SHARED {
            match (named(&self.from, name), named(&self.to, name)) {
                (Some(one), Some(other)) if one.to_string() == other.to_string() => {}
                (Some(one), Some(other))
                    if takes(&one, &other).is_some() && takes(&other, &one).is_some() =>
                {
                    self.add(Kind::Shared(name), name, one.what, |preset| {
                        named(preset, name).map_or(String::new(), |setting| setting.to_string())
                    });
                }
                (one, other) => {
                    let word = |setting: Option<Setting>| {
                        setting.map_or("no such rule".into(), |setting| setting.to_string())
                    };
                    self.notes.push(format!(
                        "{name} is part of engine: {} has {}, {} has {}, and they cannot take each other's",
                        self.from.engine(),
                        word(one),
                        self.to.engine(),
                        word(other)
                    ));
                }
            }
        }
        self.notes.push(
            "kmalloc classes are the recording's, for both: nothing of the difference is theirs".into(),
        );
    }

    /// The run in which these items are the second preset's, the others the first's.
    pub fn variant(&self, chosen: Coalition) -> Variant {
        let is_chosen = |index: usize| chosen >> index & 1 == 1;
        let source = |index: usize| if is_chosen(index) { self.to } else { self.from };
        let mut variant = Variant { pages: self.from, ..Variant::from(self.from) };
        // The engine first: the others change what it brings.
        if let Some(index) = self.items.iter().position(|item| item.kind == Kind::Engine) {
            variant.preset = source(index);
        }
        for (index, item) in self.items.iter().enumerate() {
            let source = source(index);
            match item.kind {
                Kind::Engine => {}
                Kind::Knob(knob) => {
                    let setting = source.setting(knob).expect("a knob of the engine");
                    variant.preset.set(knob, setting.value);
                }
                Kind::Shared(name) => {
                    let wanted = named(&source, name).expect("a shared knob");
                    let own = named(&variant.preset, name).expect("a shared knob");
                    let value = takes(&own, &wanted).expect("an item where both take it");
                    let place = (0..).find(|knob| {
                        variant.preset.setting(*knob).is_some_and(|setting| setting.name == name)
                    });
                    variant.preset.set(place.expect("a shared knob"), value);
                }
                Kind::Pages => variant.pages = source,
                Kind::Orders if source.engine() != variant.preset.engine() => variant.orders = Some(source),
                Kind::Orders => {}
            }
        }
        // Where the page allocators are the same, either is right; the ends are the presets themselves.
        if chosen.count_ones() as usize == self.items.len() && !self.items.is_empty() {
            variant = Variant::from(self.to);
        }
        variant
    }
}

/// A preset's setting by name.
fn named(preset: &Preset, name: &str) -> Option<Setting> {
    (0..).map_while(|index| preset.setting(index)).find(|setting| setting.name == name)
}

/// The value by which a knob says what another one says, if it can.
fn takes(own: &Setting, wanted: &Setting) -> Option<u64> {
    let word = wanted.to_string();
    match own.values {
        Values::Words(words) => words.iter().position(|known| *known == word).map(|index| index as u64),
        Values::Number(least, most) | Values::Auto(least, most) => {
            word.parse().ok().filter(|number| (least..=most).contains(number))
        }
        // What is put around engines has such values, no engine.
        Values::Bytes(_) | Values::Letters(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(from: &str, to: &str) -> Difference {
        let preset = |text: &str| Preset::parse(text).unwrap_or_else(|bad| panic!("{bad}"));
        Difference::new(preset(from), preset(to))
    }

    fn check(from: &str, to: &str, items: &str) {
        let found = difference(from, to);
        let found: Vec<String> =
            found.items.iter().map(|item| format!("{}:{}>{}", item.name, item.from, item.to)).collect();
        assert_eq!(found.join(" "), items, "{from} {to}");
    }

    #[test]
    fn what_differs() {
        check("slub@6.1", "slub@6.1", "");
        check("slub@6.1", "slub@6.1,max_order=0", "max_order:3>0");
        check("slub@6.1,cpu_partial=30", "slub@6.1,min_partial=1", "min_partial:auto>1 cpu_partial:30>auto");
        check("slqb@2009-01", "slqb@2009-09", "remote_direct_free:no>yes memoryless:as-asked>remote-first");
        check("slub@6.1", "slub@6.12,order=clamped,partial_frozen=yes", "");
        check(
            "slub@2.6.32",
            "slqb@2009-01,memoryless=nearest",
            "engine:slub>slqb orders:slub@2.6.32>slqb@2009-01,memoryless=nearest memoryless:as-asked>nearest",
        );
        check("slqb@2009-09", "slub@6.1", "engine:slqb>slub orders:slqb@2009-09>slub@6.1 pages:2009-09>6.1");
    }

    #[test]
    fn what_cannot_be_taken_apart_is_said() {
        let notes = difference("slqb@2009-09", "slub@6.1").notes;
        assert!(
            notes.iter().any(|note| note.contains("slqb has remote-first, slub has anywhere")),
            "{notes:?}"
        );
        assert!(notes.iter().any(|note| note.contains("kmalloc classes")), "{notes:?}");
    }

    /// With no item chosen the variant is the first preset, with all items the second. Each item alone
    /// changes the first preset, and leaving it out changes the second.
    #[test]
    fn variants() {
        for (from, to) in [
            ("slub@2.6.29", "slub@6.18"),
            ("slub@6.18", "slub@2.6.29,max_order=1"),
            ("slub@2.6.32", "slqb@2009-01,memoryless=nearest"),
            ("slqb", "slub@6.1"),
        ] {
            let difference = difference(from, to);
            let all = (1 << difference.items.len()) - 1;
            assert_eq!(difference.variant(0), Variant::from(difference.from), "{from}");
            assert_eq!(difference.variant(all), Variant::from(difference.to), "{to}");
            for (index, item) in difference.items.iter().enumerate() {
                let (first, alone) = (difference.variant(0), difference.variant(1 << index));
                assert_ne!(first, alone, "{}", item.name);
                let last = difference.variant(all & !(1 << index));
                assert_ne!(last, difference.variant(all), "{}", item.name);
            }
        }
        let mixed = difference("slub@2.6.32", "slqb@2009-01,memoryless=nearest");
        let variant = mixed.variant(0b101);
        assert_eq!(variant.preset, mixed.to, "engine and memoryless of the second");
        assert_eq!(variant.orders, Some(mixed.from), "orders of the first");
    }
}
