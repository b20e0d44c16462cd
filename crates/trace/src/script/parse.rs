//! Reads the text of a script.
//!
//! One command a line; each command's words are read in the order of its form in [`COMMANDS`]. Objects and
//! children are resolved to their indices here, so that a run meets no unknown name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::words::{Words, number};
use super::{
    Child, ChildId, Command, Distribution, Exponent, Group, Line, Mode, Object, ObjectId, ObjectKind,
    PAGE_BYTES, Rw, Script, ScriptError, Stat, StatOrder,
};

/// Gives the text of the script with this path. The error is a reason, such as `no such file`.
pub type Load<'a> = &'a mut dyn FnMut(&str) -> Result<String, String>;

/// The commands with their forms.
const COMMANDS: [(&str, &str); 31] = [
    ("seed", "seed N"),
    ("flushevery", "flushevery N"),
    ("anon", "anon NAME MiB"),
    ("file", "file NAME MiB"),
    ("shm", "shm NAME MiB"),
    ("phase", "phase LABEL"),
    ("rewind", "rewind NAME"),
    ("acc", "acc COUNT NAME DIST MODE RW"),
    ("inter", "inter ROUNDS {K NAME DIST MODE RW}+"),
    ("punch", "punch NAME M K"),
    ("unmap", "unmap NAME"),
    ("free", "free NAME"),
    ("stat", "stat DIR D F PASSES"),
    ("statuni", "statuni DIR D F N"),
    ("msg", "msg N BYTES"),
    ("msgfree", "msgfree T"),
    ("pipes", "pipes N SLOTS"),
    ("pipesfree", "pipesfree"),
    ("fsync", "fsync NAME"),
    ("sync", "sync"),
    ("drop", "drop"),
    ("set", "set FILE VALUE"),
    ("compute", "compute MS"),
    ("sleep", "sleep MS"),
    ("recslab", "recslab 0|1"),
    ("recfrag", "recfrag 0|1"),
    ("spawn", "spawn NAME SCRIPT"),
    ("ready", "ready"),
    ("until", "until NAME"),
    ("go", "go NAME"),
    ("join", "join NAME"),
];

/// The most objects, and the most children, of a script: an id has 16 bits.
const IDS_MOST: usize = 1 << 16;

impl Script {
    /// Reads the script `text`, whose path is `file`. `load` is called for the script of each `spawn`, with a
    /// path in the folder of `file`: once for each path.
    ///
    /// # Errors
    /// The first line that is not in the language: its file, its number, the expected words, and the known
    /// names that look like the word that is there. A script that cannot be loaded, or that spawns itself.
    pub fn parse(file: &str, text: &str, load: Load) -> Result<Script, ScriptError> {
        let mut files = Files { load, open: Vec::new(), read: BTreeMap::new() };
        files.open.push(file.to_string());
        Parser::new(file, false).script(text, &mut files)
    }
}

/// The scripts that are read together.
struct Files<'l> {
    load: Load<'l>,
    /// The scripts that are being read, each spawned by the one before it.
    open: Vec<String>,
    /// The scripts that were read.
    read: BTreeMap<String, Arc<Script>>,
}

impl Files<'_> {
    /// The script that a `spawn` line of the file opened last names.
    fn child(&mut self, name: &str, words: &Words) -> Result<Arc<Script>, ScriptError> {
        let parent = self.open.last().map_or("", String::as_str);
        let path = match parent.rsplit_once('/') {
            Some((folder, _)) => format!("{folder}/{name}"),
            None => name.to_string(),
        };
        if let Some(script) = self.read.get(&path) {
            return Ok(script.clone());
        }
        if self.open.contains(&path) {
            return Err(words.error("a script that does not spawn itself", name));
        }
        let text = (self.load)(&path);
        let text = text.map_err(|why| words.error(&format!("a script that can be read ({why})"), &path))?;
        self.open.push(path.clone());
        let script = Arc::new(Parser::new(&path, true).script(&text, self)?);
        self.open.pop();
        self.read.insert(path, script.clone());
        Ok(script)
    }
}

/// The part of a script that was read.
struct Parser {
    script: Script,
    /// Whether another script spawns this one.
    is_child: bool,
    /// For each object whether a `free` line was read.
    freed: Vec<bool>,
}

impl Parser {
    fn new(file: &str, is_child: bool) -> Parser {
        let script = Script {
            file: file.to_string(),
            commands: Vec::new(),
            objects: Vec::new(),
            children: Vec::new(),
        };
        Parser { script, is_child, freed: Vec::new() }
    }

    fn script(mut self, text: &str, files: &mut Files) -> Result<Script, ScriptError> {
        let file = self.script.file.clone();
        for (text, number) in text.lines().zip(1..) {
            let mut words = Words::new(&file, number, text);
            let Some(name) = words.take() else { continue };
            let Some((_, form)) = COMMANDS.iter().find(|(known, _)| *known == name) else {
                let known = COMMANDS.iter().map(|(known, _)| *known);
                return Err(words.unknown("a command", name, known));
            };
            words.form = form;
            let command = self.command(name, &mut words, files)?;
            words.end()?;
            self.script.commands.push(Line { number, command });
        }
        Ok(self.script)
    }

    /// The command `name`, one of [`COMMANDS`].
    fn command(&mut self, name: &str, words: &mut Words, files: &mut Files) -> Result<Command, ScriptError> {
        Ok(match name {
            "seed" => Command::Seed(words.number("N", u64::MAX)?),
            "flushevery" => Command::FlushEvery(words.number32("N")?),
            "anon" => self.open(ObjectKind::Anon, words)?,
            "file" => self.open(ObjectKind::File, words)?,
            "shm" => self.open(ObjectKind::Shm, words)?,
            "phase" => Command::Phase(words.word("LABEL")?.to_string()),
            "rewind" => Command::Rewind(self.declared(words)?),
            "acc" => self.acc(words)?,
            "inter" => self.inter(words)?,
            "punch" => self.punch(words)?,
            "unmap" => Command::Unmap(self.object(words, ANY)?),
            "free" => {
                let object = self.object(words, ANY)?;
                self.freed[usize::from(object.0)] = true;
                Command::Free(object)
            }
            "stat" => stat(words, |words| Ok(StatOrder::Passes(words.number32("PASSES")?)))?,
            "statuni" => stat(words, |words| Ok(StatOrder::Uniform(words.number("N", u64::MAX)?)))?,
            "msg" => Command::Messages { count: words.number32("N")?, bytes: words.number32("BYTES")? },
            "msgfree" => Command::FreeMessages(words.number32("T")?),
            "pipes" => Command::Pipes { count: words.number32("N")?, slots: words.positive("SLOTS")? },
            "pipesfree" => Command::FreePipes,
            "fsync" => Command::Fsync(self.object(words, ANY)?),
            "sync" => Command::Sync,
            "drop" => Command::DropCaches,
            "set" => {
                let path = words.word("FILE")?.to_string();
                Command::Set { path, value: words.word("VALUE")?.to_string() }
            }
            "compute" => Command::Compute(words.number("MS", MS_MOST)?),
            "sleep" => Command::Sleep(words.number("MS", MS_MOST)?),
            "recslab" => Command::RecordSlabs(words.one_of("0 or 1", &SWITCH)?),
            "recfrag" => Command::RecordFragmentation(words.one_of("0 or 1", &SWITCH)?),
            "spawn" => self.spawn(words, files)?,
            "ready" if self.is_child => Command::Ready,
            "ready" => {
                let expected = "no `ready`: only a script that another script starts (`spawn`) may have it. \
                                Run the script that spawns this one";
                return Err(words.error(expected, "ready"));
            }
            "until" => Command::Until(self.child(words)?),
            "go" => Command::Go(self.child(words)?),
            "join" => Command::Join(self.child(words)?),
            _ => unreachable!("{name} is in the table of commands and has no code"),
        })
    }

    fn open(&mut self, kind: ObjectKind, words: &mut Words) -> Result<Command, ScriptError> {
        let name = words.word("NAME")?;
        let names = &mut self.script.objects;
        if names.len() == IDS_MOST || names.iter().any(|object| object.name == name) {
            return Err(
                words.error("a NAME that no object of this script has, and 65,536 objects at most", name)
            );
        }
        let size = words.word("MiB")?;
        let pages = pages(size);
        let expected = "MiB (a decimal number; at least one page of 4096 bytes, less than 16 TiB)";
        let pages = pages.ok_or_else(|| words.error(expected, size))?;
        let id = ObjectId(names.len() as u16);
        names.push(Object { name: name.to_string(), kind, pages });
        self.freed.push(false);
        Ok(Command::Open(id))
    }

    /// The object that the next word names.
    fn declared(&self, words: &mut Words) -> Result<ObjectId, ScriptError> {
        let name = words.word("NAME")?;
        let objects = &self.script.objects;
        let at = objects.iter().position(|object| object.name == name);
        let known = objects.iter().map(|object| object.name.as_str());
        at.map(|at| ObjectId(at as u16))
            .ok_or_else(|| words.unknown("the name of an object declared above", name, known))
    }

    /// The object that the next word names. It is not freed, and of a kind that the command can take.
    fn object(&self, words: &mut Words, kinds: Kinds) -> Result<ObjectId, ScriptError> {
        let id = self.declared(words)?;
        let object = self.script.object(id);
        if self.freed[usize::from(id.0)] {
            return Err(words.error("an object that no line above has freed", &object.name));
        }
        if !kinds.kinds.contains(&object.kind) {
            return Err(words.error(kinds.expected, &object.name));
        }
        Ok(id)
    }

    fn acc(&self, words: &mut Words) -> Result<Command, ScriptError> {
        let count = words.word("COUNT")?;
        let mut group = self.group(words, 0)?;
        let pages = u64::from(self.script.object(group.object).pages);
        let counted = match count.strip_prefix('x') {
            Some(times) => number(times).and_then(|times| times.checked_mul(pages)),
            None => number(count),
        };
        group.count =
            counted.ok_or_else(|| words.error("COUNT (a number; x2: twice the object's pages)", count))?;
        Ok(Command::Access { rounds: 1, groups: vec![group] })
    }

    fn inter(&self, words: &mut Words) -> Result<Command, ScriptError> {
        let rounds = words.number("ROUNDS", u64::MAX)?;
        let mut groups = Vec::new();
        while groups.is_empty() || !words.is_empty() {
            let count = words.number("K", u64::MAX)?;
            groups.push(self.group(words, count)?);
        }
        one_exponent(&mut groups);
        Ok(Command::Access { rounds, groups })
    }

    /// `NAME DIST MODE RW`.
    fn group(&self, words: &mut Words, count: u64) -> Result<Group, ScriptError> {
        let object = self.object(words, ANY)?;
        let distribution = distribution(words)?;
        let mode = words.one_of("MODE (m or s)", &[("m", Mode::Mapped), ("s", Mode::Syscall)])?;
        let rw = words.one_of("RW (r or w)", &[("r", Rw::Read), ("w", Rw::Write)])?;
        Ok(Group { count, object, distribution, mode, rw })
    }

    fn punch(&self, words: &mut Words) -> Result<Command, ScriptError> {
        let object = self.object(words, WITHOUT_DISK)?;
        let group = words.positive("M")?;
        let keep = words.number("K, up to M", group.into())? as u32;
        Ok(Command::Punch { object, group, keep })
    }

    fn spawn(&mut self, words: &mut Words, files: &mut Files) -> Result<Command, ScriptError> {
        let name = words.word("NAME")?;
        let children = &self.script.children;
        if children.len() == IDS_MOST || children.iter().any(|child| child.name == name) {
            return Err(
                words.error("a NAME that no child of this script has, and 65,536 children at most", name)
            );
        }
        let script = files.child(words.word("SCRIPT")?, words)?;
        let id = ChildId(children.len() as u16);
        self.script.children.push(Child { name: name.to_string(), script });
        Ok(Command::Spawn(id))
    }

    /// The child that the next word names.
    fn child(&self, words: &mut Words) -> Result<ChildId, ScriptError> {
        let name = words.word("NAME")?;
        let children = &self.script.children;
        let at = children.iter().position(|child| child.name == name);
        let known = children.iter().map(|child| child.name.as_str());
        at.map(|at| ChildId(at as u16))
            .ok_or_else(|| words.unknown("the name of a child spawned above", name, known))
    }
}

/// The kinds of objects that a command takes.
#[derive(Clone, Copy)]
struct Kinds {
    kinds: &'static [ObjectKind],
    expected: &'static str,
}

const ANY: Kinds = Kinds { kinds: &[ObjectKind::Anon, ObjectKind::File, ObjectKind::Shm], expected: "" };
const WITHOUT_DISK: Kinds =
    Kinds { kinds: &[ObjectKind::Anon, ObjectKind::Shm], expected: "an `anon` or `shm`, not a file on disk" };

const SWITCH: [(&str, bool); 2] = [("0", false), ("1", true)];

/// A year.
const MS_MOST: u64 = 365 * 86_400_000;

/// `DIR D F`, then the order.
fn stat(
    words: &mut Words,
    order: impl FnOnce(&mut Words) -> Result<StatOrder, ScriptError>,
) -> Result<Command, ScriptError> {
    let directory = words.word("DIR")?.to_string();
    let (directories, files) = (words.positive("D")?, words.positive("F")?);
    Ok(Command::Stat(Stat { directory, directories, files, order: order(words)? }))
}

/// An object has one table of weights: the last exponent of the groups on it holds for all of them.
fn one_exponent(groups: &mut [Group]) {
    for at in (1..groups.len()).rev() {
        let (before, of) = groups.split_at_mut(at);
        let Group { object, distribution: Distribution::Zipf(exponent), .. } = of[0] else { continue };
        for group in before.iter_mut().filter(|group| group.object == object) {
            if let Distribution::Zipf(other) = &mut group.distribution {
                *other = exponent;
            }
        }
    }
}

/// DIST.
fn distribution(words: &mut Words) -> Result<Distribution, ScriptError> {
    const EXPECTED: &str = "DIST (seq, rev, uni, stride:K, part:M:K, zipf:50, zipf:100 or zipf:150)";
    let word = words.word(EXPECTED)?;
    // The bound is that of an `int`.
    let positive =
        |text: &str| number(text).filter(|value| (1..1 << 31).contains(value)).map(|value| value as u32);
    let found = match word.split_once(':') {
        None => match word {
            "seq" => Some(Distribution::Sequential),
            "rev" => Some(Distribution::Reverse),
            "uni" => Some(Distribution::Uniform),
            _ => None,
        },
        Some(("stride", step)) => {
            let stride = positive(step).map(Distribution::Stride);
            return stride.ok_or_else(|| words.error("stride:K with a K of at least 1", word));
        }
        Some(("part", part)) => {
            let part = part.split_once(':').and_then(|(m, k)| Some((positive(m)?, positive(k)?)));
            let part = part.map(|(group, first)| Distribution::Part { group, first });
            return part.ok_or_else(|| words.error("part:M:K with an M and a K of at least 1", word));
        }
        Some(("zipf", exponent)) => {
            let found = Exponent::WORDS.iter().find(|(name, _)| *name == exponent);
            found.map(|(_, exponent)| Distribution::Zipf(*exponent))
        }
        Some(_) => None,
    };
    let known = ["seq", "rev", "uni", "stride", "part", "zipf"];
    found.ok_or_else(|| words.unknown(EXPECTED, word, known.into_iter()))
}

/// Pages of a decimal number of MiB, rounded down; `None` if there is none or more than 32 bits of them.
fn pages(mib: &str) -> Option<u32> {
    let (whole, part) = mib.split_once('.').unwrap_or((mib, ""));
    // Eight digits behind the point are exact: a page is 1/256, which has eight.
    let digits = part.get(..part.len().min(8))?;
    number(part).or((part.is_empty() && !whole.is_empty()).then_some(0))?;
    let whole = if whole.is_empty() { 0 } else { number(whole)? };
    let part = number(digits).unwrap_or(0) * 10u64.pow(8 - digits.len() as u32);
    let in_mib = (1 << 20) / PAGE_BYTES;
    let pages = whole.checked_mul(in_mib)? + part * in_mib / 100_000_000;
    u32::try_from(pages).ok().filter(|pages| *pages > 0)
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, pages};

    #[test]
    fn the_page_has_every_form() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pressure.md");
        let page = std::fs::read_to_string(page).unwrap();
        for (name, form) in COMMANDS {
            assert!(form.split(' ').next() == Some(name) && page.contains(&format!("`{form}`")), "{form}");
        }
    }

    #[test]
    fn sizes() {
        for (mib, expected) in [
            ("1", Some(256)),
            ("0.5", Some(128)),
            ("0.00390625", Some(1)),
            ("0.0039062499", None),
            ("1.999999999999", Some(511)),
            ("16777215.99609375", Some(u32::MAX)),
            ("16777216", None),
            ("", None),
            (".5", Some(128)),
            ("2.", Some(512)),
            (".", None),
            ("1.x", None),
            ("-1", None),
        ] {
            assert_eq!(pages(mib), expected, "{mib}");
        }
    }
}
