//! What caches are for, and what the kernel's messages about slabs mean.

use crate::measure::reclaim::Reclaim;
use crate::state::Cache;
use crate::what::{
    CorruptionDocument, Damaged, Entry, Failure, Flag, HolderKind, Holders, Known, Merged, MessageDocument,
    Part, Size,
};
use crate::words::{capital, counted, listed};
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::column::{Columns, Style};
use slablab_report::html::Cell;
use slablab_report::visible::shell_word;
use slablab_report::{Answer, Document};

/// How many names a name that is known by its family only is answered with: it may be mistyped.
const NEAREST: usize = 5;
/// Names in a sentence.
const NAMES: usize = 4;

/// Caches and messages, explained.
#[derive(Serialize, JsonSchema)]
pub(super) struct WhatDocument<'a> {
    caches: Vec<CacheDocument<'a>>,
    /// Reports of damaged or lost objects.
    corruptions: Vec<CorruptionDocument<'a>>,
    messages: Vec<MessageDocument<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum CacheDocument<'a> {
    Known(EntryDocument<'a>),
    Merged(MergedDocument<'a>),
}

/// A cache, or a family of caches.
#[derive(Serialize, JsonSchema)]
struct EntryDocument<'a> {
    /// The name that was asked for.
    asked: &'a str,
    #[serde(flatten)]
    entry: &'a Entry,
    /// Whether a shrinker frees unused objects when the kernel needs memory.
    has_shrinker: bool,
    /// Whether it stands for a family of names.
    pattern: bool,
    /// Caches that shared their slabs with this one in some kernel.
    seen_merged_with: Vec<&'a str>,
}

/// A cache that several caches share, by the name that SLUB made up.
#[derive(Serialize, JsonSchema)]
struct MergedDocument<'a> {
    asked: &'a str,
    merged: SlotDocument<'a>,
    name: &'a str,
}

#[derive(Serialize, JsonSchema)]
struct SlotDocument<'a> {
    #[serde(flatten)]
    slot: &'a Merged,
    /// The caches that were in it, in each kernel that was looked at.
    seen: Vec<SeenDocument<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct SeenDocument<'a> {
    caches: Vec<&'a str>,
    machine: String,
}

impl Document for WhatDocument<'_> {
    const NAME: &'static str = "slablab.what.1";
    const TITLE: &'static str = "slablab what: the purpose of caches";
}

/// A name that a user asked for, and what is known of it.
enum Named<'a> {
    Known(&'a str, &'a Entry),
    Merged(&'a str, Merged),
}

impl<'a> Named<'a> {
    fn of(known: &'a Known, name: &'a str) -> Option<Named<'a>> {
        let merged = Merged::parse(name).map(|merged| Named::Merged(name, merged));
        merged.or_else(|| Some(Named::Known(name, known.find(name)?)))
    }

    fn document(&'a self, known: &'a Known) -> CacheDocument<'a> {
        match self {
            Named::Known(asked, entry) => CacheDocument::Known(entry_document(known, entry, asked)),
            Named::Merged(asked, slot) => {
                let seen = known.in_slot(asked).into_iter();
                let seen = seen.map(|(machine, caches)| SeenDocument { caches, machine }).collect();
                CacheDocument::Merged(MergedDocument {
                    asked,
                    merged: SlotDocument { slot, seen },
                    name: asked,
                })
            }
        }
    }

    /// What it is, in a sentence.
    fn sentence(&self, known: &Known) -> String {
        match self {
            Named::Known(asked, entry) => {
                let freed = match reclaim(entry) {
                    Reclaim::Shrinker => "; the kernel frees unused ones when it needs memory",
                    Reclaim::PageCache => "; the kernel frees them with the pages that they are for",
                    Reclaim::WithInodes => "; the kernel frees them with unused inodes when it needs memory",
                    Reclaim::Holder | Reclaim::No => "; no shrinker frees them: they go with what holds them",
                    Reclaim::Unknown => "",
                };
                format!("{asked} ({}): {}{freed}.", entry.subsystem, purpose(entry))
            }
            Named::Merged(asked, merged) => {
                let mut names: Vec<String> = known
                    .in_slot(asked)
                    .iter()
                    .flat_map(|(_, names)| names)
                    .map(|name| name.to_string())
                    .collect();
                names.sort();
                names.dedup();
                let seen = match names.is_empty() {
                    true => String::new(),
                    false => format!("; seen in it: {}", some_of(&names)),
                };
                format!(
                    "{asked} is SLUB's name for caches of {} bytes an object that share their slabs{seen}.",
                    merged.slab_size
                )
            }
        }
    }

    fn blocks(&self, answer: Answer, known: &Known) -> Answer {
        match self {
            Named::Known(asked, entry) => {
                let answer = parts(
                    answer,
                    &format!("{asked} ({})", entry.subsystem),
                    entry_parts(known, entry, asked),
                );
                sizes(answer, &entry.sizes)
            }
            Named::Merged(asked, merged) => {
                parts(answer, &format!("{asked} (merged caches)"), merged_parts(known, merged, asked))
            }
        }
    }
}

fn entry_document<'a>(known: &'a Known, entry: &'a Entry, asked: &'a str) -> EntryDocument<'a> {
    EntryDocument {
        asked,
        entry,
        has_shrinker: entry.has_shrinker(),
        pattern: entry.is_pattern(),
        seen_merged_with: known.seen_merged_with(entry),
    }
}

/// The answer of `what`: messages of the kernel, and caches by their names. A name of which nothing is known
/// is left out.
pub fn what_answer(known: &Known, names: &[String], messages: &[Failure], damaged: &[Damaged]) -> Answer {
    let named: Vec<Named> = names.iter().filter_map(|name| Named::of(known, name)).collect();
    let document = WhatDocument {
        caches: named.iter().map(|named| named.document(known)).collect(),
        corruptions: damaged.iter().map(Damaged::document).collect(),
        messages: messages.iter().map(|message| message.document(known)).collect(),
    };
    let of_damaged = damaged.first().map(|one| format!("{}.", capital(&one.verdict())));
    let caches = (!named.is_empty()).then(|| match &named[..] {
        [one] => one.sentence(known),
        many => of_many(many),
    });
    let of_messages = (!messages.is_empty()).then(|| message_sentence(messages));
    let mut said = of_damaged.into_iter().chain(of_messages).chain(caches);
    let answer = Answer::new("What caches are for", said.next().unwrap_or_default()).document(&document);
    let answer = said.fold(answer, Answer::line);
    let answer = damaged.iter().fold(answer, explained_damage);
    let answer = messages.iter().fold(answer, |answer, message| explained(answer, known, message));
    named.iter().fold(answer, |answer, named| named.blocks(answer, known))
}

/// The answer of `what --list`: every known cache whose name matches `pattern`, a line for each.
pub fn what_list_answer(known: &Known, pattern: &str, entries: &[&Entry]) -> Answer {
    let document = WhatDocument {
        caches: entries
            .iter()
            .map(|entry| CacheDocument::Known(entry_document(known, entry, &entry.name)))
            .collect(),
        corruptions: Vec::new(),
        messages: Vec::new(),
    };
    let all = known.entries().len();
    let sentence = match entries.len() {
        many if many == all => format!("{} are known.", counted(all as u64, "cache")),
        many => format!("{many} of {all} known caches match {pattern}."),
    };
    let columns = Columns::<&Entry>::default()
        .add("what", "what", "what it is for", |entry| Cell::Text(purpose(entry).into()))
        .words();
    let name: (&str, &dyn Fn(&&Entry) -> Cell) = ("cache", &|entry| Cell::Name(entry.name.clone()));
    let table = columns.text(name, &["what"], entries, Style::Units).numbers(0..0).cut(1, 20);
    Answer::new("Known caches", sentence)
        .document(&document)
        .table(table, &[])
        .page_table("Known caches.", columns.html(name, &["what"], entries))
}

/// The first sentence of what it is for, without its full stop.
fn purpose(entry: &Entry) -> &str {
    let first = entry.what.split_once(". ").map_or(entry.what.as_str(), |(first, _)| first);
    first.trim_end_matches('.')
}

/// Who frees the objects of a cache, by what is known of it.
fn reclaim(entry: &Entry) -> Reclaim {
    Reclaim::of(&Cache::default(), Some(entry))
}

/// Whose objects the kernel frees by itself, of several caches.
fn of_many(named: &[Named]) -> String {
    let (mut by_kernel, mut held, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for one in named {
        match one {
            Named::Merged(asked, _) => unknown.push(asked.to_string()),
            Named::Known(asked, entry) => match reclaim(entry) {
                Reclaim::Unknown => unknown.push(asked.to_string()),
                by if by.by_kernel() => by_kernel.push(asked.to_string()),
                _ => held.push(asked.to_string()),
            },
        }
    }
    let said = [
        ("the kernel frees unused objects of ", by_kernel, " when it needs memory"),
        ("no shrinker frees objects of ", held, ""),
        ("who frees objects of ", unknown, " depends on the kernel"),
    ];
    let said = said.into_iter().filter(|(_, names, _)| !names.is_empty());
    let said: Vec<String> =
        said.map(|(before, names, after)| format!("{before}{}{after}", some_of(&names))).collect();
    capital(&said.join("; ")) + "."
}

/// The first names of a list, and how many more there are.
fn some_of(names: &[String]) -> String {
    match names.len() {
        0..=NAMES => listed(names),
        many => format!("{} and {}", names[..NAMES].join(", "), counted((many - NAMES) as u64, "other")),
    }
}

/// The message that is there most often; the last of several.
fn message_sentence(messages: &[Failure]) -> String {
    let most = messages.iter().max_by_key(|message| message.count());
    let more = match messages.len() {
        1 => String::new(),
        many => format!("; {}", counted(many as u64 - 1, "other failure")),
    };
    most.map_or(String::new(), |most| format!("{}{more}.", capital(&most.verdict())))
}

/// A message of the kernel, part by part, in the text and on the page.
pub(super) fn explained(answer: Answer, known: &Known, message: &Failure) -> Answer {
    parts(answer, &format!("{} (message of the kernel)", message.title()), message.parts(known))
}

/// A report of damaged objects, part by part.
pub(super) fn explained_damage(answer: Answer, damaged: &Damaged) -> Answer {
    parts(answer, &format!("{} (report of the kernel)", damaged.title()), damaged.parts())
}

fn parts(answer: Answer, title: &str, parts: Vec<Part>) -> Answer {
    parts.into_iter().fold(answer.heading(title).section(title), |answer, part| {
        let label = if part.label.is_empty() { String::new() } else { format!("{}: ", part.label) };
        let text = format!("{label}{}", part.text);
        let answer = answer.paragraph(&text).list([text]);
        part.command.into_iter().fold(answer, Answer::command)
    })
}

fn part(label: &'static str, text: impl Into<String>) -> Part {
    Part { label, text: text.into(), command: None }
}

fn entry_parts(known: &Known, entry: &Entry, asked: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    if asked != entry.name {
        let how = if entry.is_pattern() { "of the family" } else { "the same cache as" };
        parts.push(part("known as", format!("{how} {}", entry.name)));
    }
    let nearest = if entry.is_pattern() { known.nearest(asked, NEAREST) } else { Vec::new() };
    if !nearest.is_empty() {
        parts.push(part("near", nearest.join(", ")));
    }
    if !entry.also.is_empty() {
        parts.push(part("also", format!("{} in other kernels", entry.also.join(", "))));
    }
    parts.push(part("what", &entry.what));
    parts.push(part("created by", &entry.created_by));
    parts.extend(entry.grows_with.as_ref().map(|grows_with| part("grows with", grows_with)));
    parts.extend(reclaimable(entry).map(|text| part("reclaimable", text)));
    let label = |first: bool| if first { "shrink" } else { "" };
    let why = entry.cannot_shrink_in(asked, None);
    parts.extend(why.map(|why| part("shrink", why)));
    parts.extend(entry.shrink.iter().enumerate().map(|(number, method)| {
        let cost = method.cost.as_deref().map(|cost| format!(" Mind: {cost}.")).unwrap_or_default();
        let text = format!("{}{cost}", method.how);
        Part { label: label(number == 0), text, command: method.run.clone() }
    }));
    parts.extend(holder(entry, asked));
    let file = format!("/sys/kernel/slab/{asked}/shrink");
    parts.push(Part {
        label: "",
        text: "Slabs that are empty already, in any SLUB cache:".into(),
        command: Some(format!("echo 1 > {}", shell_word(&file, ""))),
    });
    let merged_with = known.seen_merged_with(entry);
    if !merged_with.is_empty() {
        parts.push(part("merged with", format!("in some kernel: {}", merged_with.join(", "))));
    }
    parts
}

/// What a program that lets it grow holds, and the verb that names the program. What the kernel frees by
/// itself has none.
fn holder(entry: &Entry, asked: &str) -> Option<Part> {
    if reclaim(entry).by_kernel() {
        return None;
    }
    let kinds = Holders::builtin().kinds().iter();
    let kinds = kinds.filter(|kind| !kind.shrinker && !kind.detail && kind.takes(asked));
    let bytes = |kind: &HolderKind| if kind.in_bytes { "bytes " } else { "" };
    let mut many: Vec<String> = kinds.map(|kind| format!("{}{}", bytes(kind), kind.many)).collect();
    many.dedup();
    let why = match &many[..] {
        [] => "A minute tells which process holds what grows, and which code allocates it:".into(),
        _ => format!("A minute tells which process holds the {} that grow, and the code:", some_of(&many)),
    };
    Some(Part { label: "if it grows", text: why, command: Some("sudo slablab leak --for 60s".into()) })
}

fn reclaimable(entry: &Entry) -> Option<&'static str> {
    Some(match (entry.reclaimable, reclaim(entry)) {
        (Some(false), _) => "no: counted in SUnreclaim",
        (Some(true), Reclaim::Shrinker) => {
            "yes: the kernel frees unused objects under memory pressure (SReclaimable)"
        }
        (Some(true), Reclaim::PageCache) => {
            "with the page cache: the kernel frees the objects with the pages that they are for (SReclaimable)"
        }
        (Some(true), _) => {
            "counted so (SReclaimable), but no shrinker frees the objects: they go with what holds them, and \
             neither memory pressure nor drop_caches frees one in use"
        }
        (None, Reclaim::No) => "no: no shrinker frees the objects; they go with what holds them",
        (None, _) => return None,
    })
}

fn merged_parts(known: &Known, merged: &Merged, asked: &str) -> Vec<Part> {
    let words = |flag: &Flag| format!("{}: {}", flag.letter, flag.meaning);
    let flags = match &merged.flags[..] {
        [] => "none: no flags that matter for merging".to_string(),
        flags => flags.iter().map(words).collect::<Vec<_>>().join("; "),
    };
    let mut parts = vec![
        part(
            "what",
            "SLUB's own name for a cache that several caches share: their sizes, alignments and flags agree, so \
             one set of slabs serves all; it has this name even while only one cache is in it. The number is \
             the bytes from one object to the next, the letters before it are flags.",
        ),
        part("object", format!("{} bytes with alignment and metadata", merged.slab_size)),
        part("flags", flags),
        Part {
            label: "members",
            text: "The names of the caches in it are links to it:".into(),
            command: Some(format!("ls -l /sys/kernel/slab | grep {asked}$")),
        },
        part("take it apart", "boot with slab_nomerge: every cache then has its own slabs and numbers"),
    ];
    let seen = known.in_slot(asked).into_iter();
    parts.extend(seen.map(|(machine, names)| part("seen", format!("{machine}: {}", names.join(", ")))));
    parts
}

/// The sizes of an object, a row for each kernel.
fn sizes(answer: Answer, sizes: &[Size]) -> Answer {
    if sizes.is_empty() {
        return answer;
    }
    let text = |text: &Option<String>| text.clone().map_or(Cell::Empty, Cell::Text);
    let columns = Columns::<Size>::default()
        .add("bytes", "object bytes", "object bytes", |size| match (size.bytes, size.at_most) {
            (Some(bytes), _) => Cell::Count(bytes),
            (None, at_most) => Cell::Text(format!("<= {}", at_most.unwrap_or_default())),
        })
        .add("when", "with", "with", move |size| text(&size.when))
        .words()
        .add("slot", "merged as", "merged as", move |size| text(&size.slot))
        .words();
    let mut keys = vec!["bytes"];
    keys.extend(sizes.iter().any(|size| size.when.is_some()).then_some("when"));
    keys.extend(sizes.iter().any(|size| size.slot.is_some()).then_some("slot"));
    let kernel: (&str, &dyn Fn(&Size) -> Cell) = ("kernel", &|size| Cell::Text(size.machine()));
    answer
        .table(columns.text(kernel, &keys, sizes, Style::Kib).numbers(1..2), &[])
        .page_table("The size of an object in each kernel.", columns.html(kernel, &keys, sizes))
}
