//! An entry as a page for people, as a line of a list, as JSON.

use super::data::{Entry, Size};
use super::known::Known;
use super::merged::{Flag, Merged};
use super::message::Failure;
use serde_json::{Value, json as value};
use slablab_report::visible::{self, shell_word};
use std::fmt::Write;

/// How many names a name that is known by its family only is answered with: it may be mistyped.
const NEAREST: usize = 5;
/// Columns of the labels.
const LABEL: usize = 14;

/// One entry as a page of `width` columns. `asked` is the name it was asked by.
pub fn page(known: &Known, entry: &Entry, asked: &str, width: usize) -> String {
    let mut page = Page { text: String::new(), width };
    page.title(asked, &entry.subsystem);
    if asked != entry.name {
        let how = if entry.is_pattern() { "of the family" } else { "the same cache as" };
        page.field("known as", &format!("{how} {}", entry.name));
    }
    let nearest = if entry.is_pattern() { known.nearest(asked, NEAREST) } else { Vec::new() };
    if !nearest.is_empty() {
        page.field("near", &nearest.join(", "));
    }
    if !entry.also.is_empty() {
        page.field("also", &format!("{} in other kernels", entry.also.join(", ")));
    }
    page.field("what", &entry.what);
    page.field("created by", &entry.created_by);
    if let Some(grows_with) = &entry.grows_with {
        page.field("grows with", grows_with);
    }
    if let Some(reclaimable) = entry.reclaimable {
        let counted = match reclaimable {
            false => "no: counted in SUnreclaim",
            true if entry.has_shrinker() => {
                "yes: the kernel frees unused objects under memory pressure (SReclaimable)"
            }
            true if entry.goes_with_pages() => {
                "with the page cache: the kernel frees the objects with the pages that they are for (SReclaimable)"
            }
            true => {
                "counted so (SReclaimable), but no shrinker frees the objects: they go with what holds them, and \
                 neither memory pressure nor drop_caches frees one in use"
            }
        };
        page.field("reclaimable", counted);
    } else if entry.cannot_shrink.is_some() {
        page.field("reclaimable", "no: no shrinker frees the objects; they go with what holds them");
    }
    page.shrink(entry, asked);
    page.sizes(entry);
    let merged_with = known.seen_merged_with(entry);
    if !merged_with.is_empty() {
        page.field("merged with", &format!("in some kernel: {}", merged_with.join(", ")));
    }
    page.finish()
}

/// A merged cache's made-up name as a page of `width` columns.
pub fn slot_page(known: &Known, merged: &Merged, asked: &str, width: usize) -> String {
    let mut page = Page { text: String::new(), width };
    page.title(asked, "merged caches");
    let words = |flag: &Flag| format!("{}: {}", flag.letter, flag.meaning);
    let flags = match &merged.flags[..] {
        [] => "none: no flags that matter for merging".to_string(),
        flags => flags.iter().map(words).collect::<Vec<_>>().join("; "),
    };
    page.field(
        "what",
        "SLUB's own name for a cache that several caches share: their sizes, alignments and flags agree, so \
         one set of slabs serves all; it has this name even while only one cache is in it. The number is \
         the bytes from one object to the next, the letters before it are flags.",
    );
    page.field("object", &format!("{} bytes with alignment and metadata", merged.slab_size));
    page.field("flags", &flags);
    page.field("members", &format!("ls -l /sys/kernel/slab | grep {asked}$"));
    page.field("take it apart", "boot with slab_nomerge: every cache then has its own slabs and numbers");
    for (machine, names) in known.in_slot(asked) {
        page.field("seen", &format!("{machine}: {}", names.join(", ")));
    }
    page.finish()
}

/// A message of the kernel as a page of `width` columns.
pub fn failure_page(known: &Known, failure: &Failure, width: usize) -> String {
    let mut page = Page { text: String::new(), width };
    page.title(&failure.title(), "message of the kernel");
    for part in failure.parts(known) {
        page.field(part.label, &part.text);
        if let Some(command) = part.command {
            page.command(&command);
        }
    }
    page.finish()
}

/// One line of at most `width` columns; `name` columns for the name.
pub fn line(entry: &Entry, name: usize, width: usize) -> String {
    let what = entry.what.split_once(". ").map_or(entry.what.as_str(), |(first, _)| first);
    let text = format!("{:<name$}  {}", entry.name, what.trim_end_matches('.'));
    let text = visible::name(&text).into_owned();
    if text.chars().count() <= width {
        return text;
    }
    let cut: String = text.chars().take(width.saturating_sub(3)).collect();
    format!("{}...", cut.trim_end())
}

/// An entry for machines.
pub fn json(known: &Known, entry: &Entry, asked: &str) -> Value {
    let mut all = value!(entry);
    all["asked"] = value!(asked);
    all["has_shrinker"] = value!(entry.has_shrinker());
    all["pattern"] = value!(entry.is_pattern());
    all["seen_merged_with"] = value!(known.seen_merged_with(entry));
    all
}

/// A merged cache's name for machines.
pub fn slot_json(known: &Known, merged: &Merged, asked: &str) -> Value {
    let seen = known.in_slot(asked).into_iter();
    let seen: Vec<Value> =
        seen.map(|(machine, caches)| value!({ "machine": machine, "caches": caches })).collect();
    value!({
        "name": asked,
        "asked": asked,
        "merged": { "slab_size_bytes": merged.slab_size, "flags": merged.flags, "seen": seen },
    })
}

struct Page {
    text: String,
    width: usize,
}

impl Page {
    /// The page; entries of a user's file may hold any character.
    fn finish(self) -> String {
        visible::lines(&self.text).into_owned()
    }

    fn title(&mut self, name: &str, subsystem: &str) {
        writeln!(self.text, "{}  ({subsystem})", visible::name(name)).expect("a string takes all");
    }

    /// A label, and a wrapped text at its right.
    fn field(&mut self, label: &str, text: &str) {
        let room = self.width.saturating_sub(LABEL + 2).max(20);
        for (row, line) in wrap(text, room).into_iter().enumerate() {
            let label = if row == 0 { label } else { "" };
            writeln!(self.text, "  {label:<LABEL$}{line}").expect("a string takes all");
        }
    }

    /// A command is never wrapped: it is there to be copied.
    fn command(&mut self, run: &str) {
        writeln!(self.text, "  {:<LABEL$}  # {run}", "").expect("a string takes all");
    }

    fn shrink(&mut self, entry: &Entry, asked: &str) {
        if let Some(why) = entry.cannot_shrink_in(asked, None) {
            self.field("shrink", &why);
        }
        for (number, method) in entry.shrink.iter().enumerate() {
            let cost = method.cost.as_deref().map(|cost| format!(" Mind: {cost}.")).unwrap_or_default();
            self.field(if number == 0 { "shrink" } else { "" }, &format!("{}{cost}", method.how));
            if let Some(run) = &method.run {
                self.command(run);
            }
        }
        self.field("", "Slabs that are empty already, in any SLUB cache:");
        self.command(&format!("echo 1 > {}", shell_word(&format!("/sys/kernel/slab/{asked}/shrink"), "")));
    }

    /// One line per size, the machines in a column of their own.
    fn sizes(&mut self, entry: &Entry) {
        let machines: Vec<String> = entry.sizes.iter().map(Size::machine).collect();
        let widest = machines.iter().map(|machine| machine.len()).max().unwrap_or(0);
        for (row, (size, machine)) in entry.sizes.iter().zip(&machines).enumerate() {
            let bytes = match (size.bytes, size.at_most) {
                (Some(bytes), _) => bytes.to_string(),
                (None, at_most) => format!("<= {}", at_most.unwrap_or_default()),
            };
            let when = size.when.as_deref().map(|when| format!(", {when}")).unwrap_or_default();
            let slot = size.slot.as_deref().map(|slot| format!(", in {slot}")).unwrap_or_default();
            let label = if row == 0 { "object bytes" } else { "" };
            let line = format!("{machine:<widest$}  {bytes:>7}{when}{slot}");
            writeln!(self.text, "  {label:<LABEL$}{line}").expect("a string takes all");
        }
    }
}

/// Words in lines of at most `room` columns; a longer word has a line of its own.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace().map(visible::name) {
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() {
            line.push_str(&word);
        } else if line.chars().count() + 1 + word.chars().count() <= room {
            line.push(' ');
            line.push_str(&word);
        } else {
            lines.push(word.into_owned());
        }
    }
    lines
}
