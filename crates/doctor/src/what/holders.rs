//! Kinds of kernel objects that something holds: which caches an object takes, which file of the kernel
//! counts them, and what ends them.
//!
//! The knowledge is data, not code: `data/holders.toml`, one table per kind (docs/holders.md). The code that
//! counts is `state::holders`, one function for each [`Counter`].

use super::data::Method;
use super::known::Known;
use serde::Deserialize;
use std::sync::OnceLock;

/// The file in the program.
const BUILTIN: &str = include_str!("../../data/holders.toml");
/// The kind of descriptors of anonymous inodes that have no table of their own.
const ANY: &str = "*";
/// Holders with fewer are not listed, where a table does not say another number.
const LEAST: u64 = 64;

/// How objects of a kind are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// Descriptors of each process, by the texts of their links.
    Descriptors,
    /// Lines about watches of a process's descriptors of another kind.
    Watches,
    /// Bytes of unread messages in sockets of each process.
    Unread,
    /// Sockets of the machine, by what their connection is like.
    Sockets,
    /// Threads of each process.
    Threads,
    /// Children of each process, alive or ended.
    Children,
    /// POSIX timers of each process.
    Timers,
    /// Queued signals of each user.
    Signals,
    /// Mappings of each process.
    Mappings,
    /// SysV shared memory, by the process that made it.
    Sysv,
    /// Files of each file system that is in memory.
    Filesystems,
    /// File locks of each process.
    Locks,
    /// Keys of each user.
    Keys,
    /// Namespaces other than the machine's own: those that processes are in, and those that mounts keep.
    Namespaces,
    /// Mounts of each mount namespace.
    Mounts,
    /// Memory cgroups of the machine.
    Cgroups,
    /// Directory entries of the machine.
    Dentries,
}

/// A kind of objects.
#[derive(Clone, Debug)]
pub struct HolderKind {
    /// Its name in the table of holders; `*` for descriptors without a table of their own.
    pub kind: String,
    /// The words for one.
    pub one: String,
    /// The words for several.
    pub many: String,
    /// How they are counted.
    pub counter: Counter,
    /// The file of the kernel that counts them.
    pub file: String,
    /// What the links of descriptors begin with; none for an anonymous inode of this name.
    pub link: Vec<String>,
    /// The kind of descriptors whose watches are counted.
    pub of: Option<String>,
    /// What lines about a watch begin with.
    pub lines: Vec<String>,
    /// The caches that have an object, or several, for each.
    pub caches: Vec<String>,
    /// Whether each keeps a directory entry.
    pub keeps_dentry: bool,
    /// Whether each keeps the inode of a file system.
    pub keeps_inodes: bool,
    /// Descriptors of one object: the two ends of a pipe.
    pub each: u64,
    /// Whether the number is that of bytes, not of objects.
    pub in_bytes: bool,
    /// Whether it says more about objects of another kind, and holds none.
    pub detail: bool,
    /// Whether one takes many objects, in caches that have nothing else in common.
    pub spreads: bool,
    /// Holders with fewer are not listed.
    pub least: u64,
    /// What finds the holder and ends it.
    pub ends: Method,
    /// Whether the kernel frees such objects by itself when it needs memory.
    pub shrinker: bool,
}

/// All kinds.
#[derive(Clone, Debug)]
pub struct Holders {
    kinds: Vec<HolderKind>,
    /// Index of [`ANY`].
    any: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    holder: Vec<Table>,
}

/// One `[[holder]]` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    kind: String,
    one: String,
    many: String,
    counter: Counter,
    file: String,
    #[serde(default)]
    link: Vec<String>,
    of: Option<String>,
    #[serde(default)]
    lines: Vec<String>,
    caches: Vec<String>,
    #[serde(default)]
    keeps: Vec<Kept>,
    each: Option<u64>,
    #[serde(default)]
    in_bytes: bool,
    #[serde(default)]
    detail: bool,
    #[serde(default)]
    spreads: bool,
    least: Option<u64>,
    ends: String,
    #[serde(default)]
    shrinker: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kept {
    Dentry,
    Inodes,
}

impl Holders {
    /// What the program knows. Read once, at the first call.
    pub fn builtin() -> &'static Holders {
        static HOLDERS: OnceLock<Holders> = OnceLock::new();
        HOLDERS.get_or_init(|| parse(BUILTIN).unwrap_or_else(|why| panic!("data/holders.toml: {why}")))
    }

    /// All kinds, in the order of the file.
    pub fn kinds(&self) -> &[HolderKind] {
        &self.kinds
    }

    /// The table of a kind. A name without one is that of an anonymous inode.
    pub fn find(&self, kind: &str) -> &HolderKind {
        self.kinds.iter().find(|known| known.kind == kind).unwrap_or(&self.kinds[self.any])
    }

    /// The kind of a descriptor, by the text that its link in /proc/PID/fd has.
    pub fn of_link(&self, target: &str) -> String {
        let begins = self.kinds.iter().flat_map(|kind| kind.link.iter().map(move |link| (link, kind)));
        let longest = begins.filter(|(link, _)| target.starts_with(*link)).max_by_key(|(link, _)| link.len());
        if let Some((_, kind)) = longest {
            return kind.kind.clone();
        }
        // `anon_inode:[eventpoll]`, `anon_inode:inotify`, `mnt:[4026531841]`.
        let (name, rest) = target.split_once(':').unwrap_or((target, ""));
        let name = if name == "anon_inode" { rest.trim_matches(['[', ']']) } else { name };
        name.replace(['\t', '\n'], " ")
    }
}

impl HolderKind {
    /// Whether an object of it takes one of the cache of this name.
    pub fn takes(&self, cache: &str) -> bool {
        self.caches.iter().any(|known| known == cache)
    }

    /// The words for so many; those without a table have their name in them.
    pub fn words(&self, kind: &str, count: u64) -> String {
        let words = if count == 1 { &self.one } else { &self.many };
        if self.kind == ANY { format!("{kind} {words}") } else { words.clone() }
    }

    /// Whether it is a kind of descriptors, which all take a `struct file`.
    pub fn is_descriptor(&self) -> bool {
        self.counter == Counter::Descriptors && !self.spreads
    }
}

/// Reads a file of kinds.
fn parse(text: &str) -> Result<Holders, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let kinds: Vec<HolderKind> = file.holder.into_iter().map(Table::kind).collect::<Result<_, _>>()?;
    let any = kinds.iter().position(|kind| kind.kind == ANY).ok_or("no kind \"*\"")?;
    for (at, kind) in kinds.iter().enumerate() {
        if kinds[..at].iter().any(|other| other.kind == kind.kind) {
            return Err(format!("a second table for {:?}", kind.kind));
        }
        let watches = kind.counter == Counter::Watches;
        if watches != kind.of.is_some() || watches == kind.lines.is_empty() {
            return Err(format!(
                "{}: `of` and `lines` belong to the counter watches, and to no other",
                kind.kind
            ));
        }
    }
    Ok(Holders { kinds, any })
}

impl Table {
    fn kind(self) -> Result<HolderKind, String> {
        let ends = Known::builtin().method(&self.ends);
        let ends = ends.ok_or_else(|| format!("{}: no [method.{}] in caches.toml", self.kind, self.ends))?;
        if let Some(cache) = self.caches.iter().find(|cache| Known::builtin().find(cache).is_none()) {
            return Err(format!("{}: no cache {cache:?} in caches.toml", self.kind));
        }
        Ok(HolderKind {
            one: self.one,
            many: self.many,
            counter: self.counter,
            file: self.file,
            link: self.link,
            of: self.of,
            lines: self.lines,
            caches: self.caches,
            keeps_dentry: self.keeps.contains(&Kept::Dentry),
            keeps_inodes: self.keeps.contains(&Kept::Inodes),
            each: self.each.unwrap_or(1).max(1),
            in_bytes: self.in_bytes,
            detail: self.detail,
            spreads: self.spreads,
            least: self.least.unwrap_or(LEAST),
            ends: ends.clone(),
            shrinker: self.shrinker,
            kind: self.kind,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_descriptors() {
        for (target, expected) in [
            ("socket:[123]", "socket"),
            ("pipe:[7]", "pipe"),
            ("anon_inode:[eventpoll]", "eventpoll"),
            ("anon_inode:inotify", "inotify"),
            ("anon_inode:[pidfd]", "pidfd"),
            ("pidfd:[80]", "pidfd"),
            ("anon_inode:[new\tthing]", "new thing"),
            ("net:[4026531840]", "net namespace"),
            ("time:[4026531834]", "time"),
            ("/dev/null", "file"),
            ("/memfd:x (deleted)", "memfd"),
        ] {
            assert_eq!(Holders::builtin().of_link(target), expected, "{target}");
        }
    }

    #[test]
    fn faults_of_the_table_are_told() {
        let any =
            "[[holder]]\nkind = \"*\"\none = \"d\"\nmany = \"ds\"\ncounter = \"descriptors\"\nfile = \"f\"\n";
        let check = |rest: &str, word: &str| {
            let error = parse(&format!("{any}{rest}")).unwrap_err();
            assert!(error.contains(word), "{error}");
        };
        check("caches = [\"filp\"]\nends = \"no-such\"\n", "no [method.no-such]");
        check("caches = [\"no_such\"]\nends = \"close-files\"\n", "no cache \"no_such\"");
        check("caches = [\"filp\"]\nends = \"close-files\"\nlines = [\"x\"]\n", "watches");
        check("caches = [\"filp\"]\nends = \"close-files\"\nof = \"x\"\nweight = 3\n", "unknown field");
        let whole = format!("{any}caches = [\"filp\"]\nends = \"close-files\"\n");
        assert!(parse(&whole.repeat(2)).unwrap_err().contains("a second table"));
        assert_eq!(parse(&whole).unwrap().find("anything").words("anything", 2), "anything ds");
    }
}
