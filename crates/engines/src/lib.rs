//! Registered engines: which there are in this program, and the choice of an engine by name.
//!
//! A program registers its engines once, before it parses the first name. They are a static, because names
//! of engines are parsed in many places: arguments, files of experiments, folders of results.

#![forbid(unsafe_code)]

use slablab_slabs::Preset;
use slablab_slabs::knob::{BadKind, BadPreset, With, change, print_changed};
use slablab_slabs::partition::Partition;
use slablab_slabs::preset::{Choice, ENGINES, Text};
use slablab_slabs::registered::Registration;
use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

static REGISTERED: OnceLock<Vec<&'static Registration>> = OnceLock::new();
static FOUND: OnceLock<Find> = OnceLock::new();

/// Finds an engine whose name has this prefix before its colon: `linux:NAME`, and what is to be set of single
/// caches: `,CACHE/attribute=value` for each. The message says what was expected.
pub type Find = (&'static str, fn(&str, &str) -> Result<&'static Registration, String>);

/// Engines that are found by name, beside the registered ones: one kind of them in a program.
pub fn find_with(find: Find) {
    let _ = FOUND.set(find);
}

/// Why an engine's code ended a run; its words for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended(pub String);

/// Ends a run that cannot go on by the fault of an engine that is not ours. Whoever runs engines of others
/// turns it into an error: [`until_ended`].
pub fn ended(what: String) -> ! {
    std::panic::resume_unwind(Box::new(Ended(what)))
}

/// The result of `run`, or why an engine ended it.
///
/// # Errors
/// [`ended`] was called.
pub fn until_ended<T>(run: impl FnOnce() -> T) -> Result<T, Ended> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).map_err(|payload| match payload.downcast() {
        Ok(ended) => *ended,
        Err(payload) => std::panic::resume_unwind(payload),
    })
}

/// Why engines are not registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is another engine of this name.
    Name(&'static str),
    /// Engines were registered, or the first name was parsed, before.
    Late,
}

/// Registers the engines that this program has beside those of `slablab_slabs`.
///
/// # Errors
/// A name that is given twice or is that of another engine; it is too late.
pub fn register(own: Vec<&'static Registration>) -> Result<(), Refused> {
    for (at, one) in own.iter().enumerate() {
        let is_taken =
            |name: &str| ENGINES.contains(&name) || own[..at].iter().any(|other| other.engine() == name);
        if is_taken(one.engine()) {
            return Err(Refused::Name(one.engine()));
        }
    }
    REGISTERED.set(own).map_err(|_| Refused::Late)
}

/// The registered engines.
pub fn registered() -> &'static [&'static Registration] {
    REGISTERED.get_or_init(Vec::new)
}

/// [`Preset::parse`], with the registered engines.
///
/// # Errors
/// As [`Preset::parse`].
pub fn parse(text: &str) -> Result<Preset, BadPreset<'_>> {
    let known = known(text)?;
    Preset::parse_among(as_registered(text, &known), &known)
}

/// [`parse`], for a use that needs the table `T` of a registered engine.
///
/// # Errors
/// As [`parse`]; the engine was registered without that table.
pub fn parse_with<T: Any>(text: &str) -> Result<Preset, BadPreset<'_>> {
    let preset = parse(text)?;
    match &preset {
        Preset::Registered(own) if own.registration().table::<T>().is_none() => Err(BadPreset {
            kind: BadKind::Found(
                "this engine runs recordings alone (replay, sites, map): it has no costs (Family::CYCLES says them)",
            ),
            given: text,
            nearest: [""; 3],
        }),
        _ => Ok(preset),
    }
}

/// A choice of an engine for a recording, whose caches may have knobs of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByCache {
    /// The engine, and the wrappers around it.
    pub choice: Choice,
    /// How kmalloc is divided among its callers.
    pub partition: Partition,
    /// Knobs of single caches, `,CACHE/knob=value` for each, as the grammar has them.
    pub of_caches: &'static str,
}

impl<T: Into<Choice>> From<T> for ByCache {
    fn from(choice: T) -> ByCache {
        ByCache { choice: choice.into(), partition: Partition::default(), of_caches: "" }
    }
}

/// As [`parse_choice`] takes it: the knobs of kmalloc follow those of the engine, knobs of single caches come
/// last.
impl fmt::Display for ByCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.choice.fmt(f)?;
        let with = |partition| With(partition, Partition::KNOBS);
        print_changed(f, &with(self.partition), &with(Partition::default()))?;
        f.write_str(self.of_caches)
    }
}

/// [`Choice::parse`], with the registered engines, the knobs of [`Partition::KNOBS`], and knobs of single
/// caches: `CACHE/knob=value`.
///
/// # Errors
/// As [`Choice::parse`].
pub fn parse_choice(text: &str) -> Result<ByCache, BadPreset<'_>> {
    let known = known(text)?;
    let text = as_registered(text, &known);
    let parse = |text| Choice::parse_among(text, &known);
    let (mut engine, mut caches) = (text.split(',').next().unwrap_or(text).to_owned(), String::new());
    let mut partition = With(Partition::default(), Partition::KNOBS);
    for part in Text::split(text).parts() {
        if is_of_kmalloc(part) {
            change(part, &mut [&mut partition], &[])?;
            continue;
        }
        let of = if is_attribute(part) { &mut caches } else { &mut engine };
        *of += ",";
        *of += part;
    }
    let partition = partition.0;
    if engine.len() == text.len() {
        return parse(text).map(ByCache::from);
    }
    // Few texts of a program's arguments or files: they may stay.
    let [engine, caches] = [engine, caches].map(|text| &*text.leak());
    for part in caches.split(',').skip(1) {
        let knob = part.rsplit_once('/').filter(|(cache, _)| !cache.is_empty()).map(|(_, knob)| knob);
        let knob = knob.ok_or(BadPreset {
            kind: BadKind::Found("expected CACHE/knob=value, as in dentry/sheaf_capacity=30"),
            given: part,
            nearest: [""; 3],
        })?;
        parse((engine.to_owned() + "," + knob).leak())?;
    }
    Ok(ByCache { choice: parse(engine)?, partition, of_caches: caches })
}

/// The text with the name by which its engine was registered: one that is found may be asked for by another,
/// as a tree by its path. Attributes of single caches are the registration's.
fn as_registered<'a>(text: &'a str, known: &[&'static Registration]) -> &'a str {
    let split = Text::split(text);
    let is_other = |found: &Registration| found.engine() != split.name || !found.attributes().is_empty();
    match known.last().filter(|found| split.name.contains(':') && is_other(found)) {
        Some(found) => {
            let head = text.split(',').next().unwrap_or(text).replacen(split.name, found.engine(), 1);
            let knobs = split.parts().filter(|part| !is_attribute(part)).map(|part| format!(",{part}"));
            std::iter::once(head).chain(knobs).collect::<String>().leak()
        }
        None => text,
    }
}

/// Whether a part of a text is a knob of kmalloc.
fn is_of_kmalloc(part: &str) -> bool {
    let name = part.split('=').next();
    Partition::KNOBS.iter().any(|knob| Some(knob.name) == name)
}

/// Whether a part of a text sets an attribute of a single cache: `CACHE/attribute=value`.
fn is_attribute(part: &str) -> bool {
    part.split('=').next().is_some_and(|name| name.contains('/'))
}

/// The engines that a text may name: the registered ones, and the one that it asks to be found.
fn known(text: &str) -> Result<Vec<&'static Registration>, BadPreset<'_>> {
    let mut known = registered().to_vec();
    let name = Text::split(text).name;
    if let Some((kind, find)) = FOUND.get()
        && name.split_once(':').is_some_and(|(given, _)| given == *kind)
    {
        let attributes = Text::split(text).parts().filter(|part| is_attribute(part));
        let attributes: String = attributes.map(|part| format!(",{part}")).collect();
        let found = find(name, &attributes).map_err(|message| {
            // The message ends the program, or a line of a file is told once: it may stay.
            BadPreset { kind: BadKind::Found(message.leak()), given: name, nearest: [""; 3] }
        })?;
        known.push(found);
    }
    Ok(known)
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Name(name) => write!(f, "an engine is called {name} already: expected another name"),
            Refused::Late => f.write_str("engines are registered once, before the first is named"),
        }
    }
}

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_slabs::Release;
    use slablab_slabs::engines::slob::SlobPolicy;

    const OWN_RELEASE: Release = Release::new(6, 1, 0);

    #[test]
    fn names_are_of_one_engine() {
        // SLOB's own policies: the engine's name is taken.
        static SLOB: Registration = Registration::new::<SlobPolicy>(&[]);
        assert_eq!(register(vec![&SLOB]), Err(Refused::Name("slob")));
        assert!(Refused::Name("slob").to_string().contains("slob already"));
    }

    #[test]
    fn knobs_of_single_caches() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let found = parse_choice(text).map(|choice| choice.to_string()).map_err(|bad| bad.to_string());
            assert_eq!(found, expected.map(String::from).map_err(String::from), "{text}");
        };
        check("slub@7.3,dentry/min_partial=9", Ok("slub@7.3,dentry/min_partial=9"));
        check(
            "slub@7.3,a*/min_partial=9,max_order=1,b/leftover=head",
            Ok("slub@7.3,max_order=1,a*/min_partial=9,b/leftover=head"),
        );
        check(
            "slub@7.3,dentry/min_partail=9",
            Err("no knob is called `min_partail`; near it: min_partial, cpu_partial, min_partial_most"),
        );
        check("slub@7.3,partition=random,max_order=1", Ok("slub@7.3,max_order=1,partition=random"));
        check(
            "slub@7.3,a*/min_partial=9,partitions=4,partition=random",
            Ok("slub@7.3,partition=random,partitions=4,a*/min_partial=9"),
        );
        check("slub@7.3,partition=off,partitions=16", Ok("slub@7.3"));
        check("slub@7.3,partitions=65", Err("partitions=`65`: expected a number from 1 to 64"));
        check("slub@7.3,partition=typed", Err("partition=`typed` is not known; near it: off, random"));
        check("slub@7.3,/min_partial=9", Err("expected CACHE/knob=value, as in dentry/sheaf_capacity=30"));
        check(
            "slub@7.3,dentry/min_partial=x",
            Err("min_partial=`x`: expected `auto` or a number from 0 to 65535"),
        );
    }

    #[test]
    fn a_found_engine_has_its_own_name() {
        static OWN: Registration = Registration::new::<SlobPolicy>(&[]);
        let tree: &'static Registration =
            Box::leak(Box::new(Registration::named::<SlobPolicy>("tree:base", OWN_RELEASE, "", &[])));
        let attributes = ",dentry/min_partial=3";
        let tuned = Registration::named::<SlobPolicy>("tree:base", OWN_RELEASE, attributes, &[]);
        let tuned: &'static Registration = Box::leak(Box::new(tuned));
        let check = |text: &str, known: &[&'static Registration], expected: &str| {
            assert_eq!(as_registered(text, known), expected);
        };
        check("tree:/a/b", &[&OWN, tree], "tree:base");
        check("tree:/a/b,break=1", &[&OWN, tree], "tree:base,break=1");
        check("tree:base,break=1", &[&OWN, tree], "tree:base,break=1");
        check("tree:/a/b,dentry/min_partial=3,break=1", &[&OWN, tuned], "tree:base,break=1");
        check("tree:base@6.1,dentry/min_partial=3", &[&OWN, tuned], "tree:base@6.1");
        check("slub@7.1", &[&OWN], "slub@7.1");
        check("tree:/a/b", &[], "tree:/a/b");
        let parse = |known| Preset::parse_among("tree:base", known).unwrap();
        let [plain, tuned] = [parse(&[tree]), parse(&[tuned])];
        assert_ne!(plain, tuned);
        assert_eq!(tuned.to_string(), "tree:base@6.1,dentry/min_partial=3");
    }
}
