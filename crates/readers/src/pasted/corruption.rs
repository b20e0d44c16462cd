//! Reports of damaged or leaked objects: SLUB's and SLAB's own, KASAN's, kmemleak's, and what the kernel says
//! when a cache is destroyed with live objects or an object is freed to a wrong cache.
//!
//! All are read into one [`Corruption`]: what happened, in which cache, where, who allocated and freed the
//! object. Words of old and new kernels are both read (general knowledge, 2.6.30 to 7.1).

mod lines;

use crate::text::number;
pub(super) use lines::more;
use rustc_hash::FxHashMap;

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Damage {
    /// Bytes around an object were written: before it, or behind its end.
    Redzone,
    /// Bytes of a free object were written.
    Poison,
    /// The pad of an object or of a slab was written.
    Padding,
    /// The list of free objects of a slab is broken.
    Freelist,
    /// An object was freed twice.
    DoubleFree,
    /// A pointer was freed that is no object of the cache.
    InvalidFree,
    /// An object was freed to a cache that it is not of.
    WrongCache,
    /// A cache was destroyed with objects in use.
    Remaining,
    /// KASAN: an access behind or before an object.
    OutOfBounds,
    /// KASAN: an access to an object that was freed.
    UseAfterFree,
    /// A check of the allocator failed: `kernel BUG at mm/slub.c`.
    Bug,
    /// kmemleak: objects to which nothing points.
    Unreferenced,
    /// A page was freed although its flags or counters say that it is in use.
    Page,
    /// A copy between an object and a program was stopped: more than the object has, or may let out.
    Usercopy,
    /// Another report about a cache, of words that are not known.
    #[default]
    Other,
}

/// A report about objects of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corruption {
    /// The line in the text, from 1.
    pub line: usize,
    /// What happened.
    pub damage: Damage,
    /// The kernel's words for it.
    pub words: String,
    /// The cache.
    pub cache: Option<String>,
    /// The cache that the object is of, where that is another.
    pub other: Option<String>,
    /// The address of the object.
    pub object: Option<u64>,
    /// The first and the last byte that was written.
    pub written: Option<(u64, u64)>,
    /// The first such byte: what is there, and what should be.
    pub byte: Option<(u8, u8)>,
    /// Where the object was allocated.
    pub allocated: Option<Track>,
    /// Where it was freed last.
    pub freed: Option<Track>,
    /// Objects in a slab and those in use.
    pub objects: Option<(u64, u64)>,
    /// Objects that are listed as live.
    pub listed: u64,
    /// Bytes of an object.
    pub size: Option<u64>,
    /// KASAN: whether it was a write, and how many bytes.
    pub access: Option<(bool, u64)>,
    /// KASAN: the distance, and `right`, `left` or `inside` of the object.
    pub distance: Option<(u64, String)>,
    /// The code that was at work: KASAN's function, or the instruction pointer's.
    pub place: Option<String>,
    /// The process.
    pub process: Option<String>,
    /// kmemleak: objects, bytes and the greatest age in seconds, of one stack.
    pub leaked: Option<(u64, u64, u64)>,
    /// The stack of the report: the functions, the innermost first.
    pub stack: Vec<String>,
    /// It began as an oops: it is about slabs only if it is in the allocator.
    pub(super) is_oops: bool,
    /// What the coming frames belong to.
    pub(super) at: At,
}

/// Who did something with an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Track {
    /// The function, with its module.
    pub place: String,
    /// Jiffies before the report.
    pub age: Option<u64>,
    /// The process.
    pub pid: Option<u64>,
}

/// Which stack the frames of the next lines belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum At {
    #[default]
    Report,
    Allocated,
    Freed,
}

/// Frames of a stack that are kept.
const FRAMES: usize = 32;

/// Functions of the allocator itself: the caller is behind them.
const ALLOCATOR: [&str; 25] = [
    "kmalloc",
    "__kmalloc",
    "___kmalloc",
    "krealloc",
    "kfree",
    "kvfree",
    "kmem_cache",
    "__kmem_cache",
    "kasan",
    "__kasan",
    "slab_",
    "__slab",
    "___slab",
    "cache_alloc",
    "save_stack",
    "set_track",
    "stack_trace",
    "kmemdup",
    "dump_stack",
    "__do_kmalloc",
    "do_kmem",
    "qlist",
    "free_to_partial",
    "kzalloc",
    "kmemleak",
];

impl Corruption {
    /// Whether a function of a stack is one of the allocator, not of its caller.
    pub fn is_of_allocator(&self, place: &str) -> bool {
        is_of_allocator(place)
    }

    /// Whether its first line is not there yet: objects were listed before it.
    pub(super) fn is_headless(&self) -> bool {
        self.words.is_empty() && self.cache.is_none()
    }

    /// Puts the first line to what was listed before it.
    pub(super) fn head(&mut self, found: Corruption) {
        (self.damage, self.words, self.cache, self.line) =
            (found.damage, found.words, found.cache, found.line);
        (self.other, self.place) = (found.other, found.place.or(self.place.take()));
    }
}

/// Puts objects that kmemleak lists with one stack together, and leaves out what no line said the head of.
pub(super) fn gather(reports: &mut Vec<Corruption>) {
    let mut gathered: Vec<Corruption> = Vec::new();
    let mut known: FxHashMap<_, usize> = FxHashMap::default();
    for report in std::mem::take(reports) {
        if report.is_headless() && report.allocated.is_none() {
            continue;
        }
        let at = report.place.as_ref().or(report.stack.first());
        if report.is_oops && !at.is_some_and(|place| is_of_allocator(place)) {
            continue;
        }
        let Some((objects, bytes, age)) = report.leaked else {
            gathered.push(report);
            continue;
        };
        // The last one may be cut before its stack.
        let key = (report.size, report.process.clone(), report.stack.clone());
        let cut = report.stack.is_empty().then(|| gathered.last()).flatten();
        let is_cut = cut.is_some_and(|last| last.size == report.size && last.process == report.process);
        let at = if is_cut { gathered.len() - 1 } else { *known.entry(key).or_insert(gathered.len()) };
        match gathered.get_mut(at).and_then(|first| first.leaked.as_mut()) {
            Some(sum) => {
                *sum = (sum.0 + objects, sum.1.saturating_add(bytes), sum.2.max(age));
            }
            None => gathered.push(report),
        }
    }
    *reports = gathered;
}

/// The first line of a report; `None` if this is none.
pub(super) fn begins(line: &str) -> Option<Corruption> {
    slub(line)
        .or_else(|| kasan(line))
        .or_else(|| destroyed(line))
        .or_else(|| wrong_cache(line))
        .or_else(|| slab(line))
        .or_else(|| kfence(line))
        .or_else(|| usercopy(line))
        .or_else(|| bug(line))
        .or_else(|| oops(line))
        .or_else(|| unreferenced(line))
}

/// `BUG kmalloc-512 (Not tainted): Redzone overwritten`.
fn slub(line: &str) -> Option<Corruption> {
    let rest = line.strip_prefix("BUG ").or_else(|| line.strip_prefix("=== BUG "))?;
    let (cache, rest) = rest.split_once(" (")?;
    let words = rest.split_once("): ").map(|(_, words)| words.trim())?;
    if cache.contains(char::is_whitespace) || words.is_empty() {
        return None;
    }
    let lower = words.to_ascii_lowercase();
    let has = |word: &str| lower.contains(word);
    let damage = match () {
        () if has("redzone") || has("red zone") => Damage::Redzone,
        () if has("poison") || has("use after free") || has("use-after-free") => Damage::Poison,
        () if has("padding") => Damage::Padding,
        () if has("already free") || has("double free") => Damage::DoubleFree,
        () if has("free pointer") || has("freepointer") || has("freechain") || has("freelist") => {
            Damage::Freelist
        }
        () if has("freelist") || has("wrong number of objects") || has("object count") => Damage::Freelist,
        () if has("objects remaining") || has("still") => Damage::Remaining,
        () if has("invalid") || has("not a valid") || has("outside") => Damage::InvalidFree,
        () => Damage::Other,
    };
    Some(Corruption { damage, words: words.into(), cache: Some(cache.into()), ..Corruption::default() })
}

/// `BUG: KASAN: slab-out-of-bounds in foo+0x16/0x30 [foo]`, and older `BUG: KASAN: use-after-free in ..`.
fn kasan(line: &str) -> Option<Corruption> {
    let rest = line.split_once("KASAN: ").filter(|(before, _)| before.contains("BUG"))?.1;
    let (words, place) = rest.split_once(" in ").unwrap_or((rest, ""));
    let damage = match words {
        _ if words.contains("out-of-bounds") || words.contains("out of bounds") => Damage::OutOfBounds,
        _ if words.contains("double-free") => Damage::DoubleFree,
        _ if words.contains("invalid-free") => Damage::InvalidFree,
        _ if words.contains("use-after-free") || words.contains("use after free") => Damage::UseAfterFree,
        _ => Damage::Other,
    };
    let place = without_offset(place.split(" at ").next().unwrap_or(place));
    let words = format!("KASAN: {}", words.trim());
    Some(Corruption { damage, words, place: some(place), ..Corruption::default() })
}

/// What is said where a cache is destroyed: SLUB's old words, those since 5.18, and SLAB's.
fn destroyed(line: &str) -> Option<Corruption> {
    let remaining = |cache: &str, words: &str| {
        let cache = cache.trim().trim_matches(['`', '\'', '"', ':']);
        let is_name = !cache.is_empty() && !cache.contains(char::is_whitespace);
        is_name.then(|| Corruption {
            damage: Damage::Remaining,
            words: words.into(),
            cache: Some(cache.into()),
            ..Corruption::default()
        })
    };
    if let Some((_, rest)) = line.split_once("kmem_cache_destroy")
        && let Some((cache, _)) = rest.split_once(": Slab cache still has objects")
    {
        return remaining(cache, "Slab cache still has objects");
    }
    if let Some((_, rest)) = line.split_once("slab error in kmem_cache_destroy(): cache ") {
        return remaining(rest.split(':').next()?, "Can't free all objects");
    }
    // `kmem_cache_destroy: Slab cache still has objects` was followed by the name in some kernels.
    None
}

/// `cache_from_obj: Wrong slab cache. A but object is from B`.
fn wrong_cache(line: &str) -> Option<Corruption> {
    let (_, rest) = line.split_once("Wrong slab cache. ")?;
    let (cache, other) = rest.split_once(" but object is from ")?;
    Some(Corruption {
        damage: Damage::WrongCache,
        words: "Wrong slab cache".into(),
        cache: some(cache.into()),
        other: some(other.split_whitespace().next()?.into()),
        ..Corruption::default()
    })
}

/// SLAB's: `slab error in cache_free_debugcheck(): cache `size-64': double free detected`, and `Slab
/// corruption: size-64 start=.., len=64`.
fn slab(line: &str) -> Option<Corruption> {
    if let Some((_, rest)) = line.split_once("slab error in ") {
        let (_, rest) = rest.split_once("cache ")?;
        let (cache, words) = rest.split_once(": ")?;
        let has = |word: &str| words.contains(word);
        let damage = match () {
            () if has("double free") => Damage::DoubleFree,
            () if has("overwritten") || has("memory outside") => Damage::Redzone,
            () if has("bad ptr") => Damage::InvalidFree,
            () => Damage::Other,
        };
        let cache = cache.trim_matches(['`', '\'', '"']).to_string();
        return Some(Corruption { damage, words: words.into(), cache: some(cache), ..Corruption::default() });
    }
    let (_, rest) = line.split_once("Slab corruption")?;
    // The kernel's taint may stand before the name, and before 2.6.20 there is no name.
    let taint_ends = if rest.trim_start().starts_with('(') { "): " } else { ": " };
    let (_, rest) = rest.split_once(taint_ends)?;
    let (cache, rest) = rest.split_once("start=")?;
    let (start, rest) = rest.split_once(',').unwrap_or((rest, ""));
    let size = rest.split_once("len=").and_then(|(_, len)| digits(len));
    Some(Corruption {
        damage: Damage::Poison,
        words: "Slab corruption".into(),
        cache: some(cache.trim().into()),
        object: address(start),
        size,
        ..Corruption::default()
    })
}

/// `BUG: KFENCE: use-after-free read in foo_poll+0x21/0x80 [foo]`.
fn kfence(line: &str) -> Option<Corruption> {
    let (_, rest) = line.split_once("BUG: KFENCE: ")?;
    let (words, place) = rest.split_once(" in ")?;
    let damage = match words {
        _ if words.starts_with("out-of-bounds") => Damage::OutOfBounds,
        _ if words.starts_with("use-after-free") => Damage::UseAfterFree,
        // Bytes beside the object that were not as they had been, found when it is freed.
        "memory corruption" => Damage::Redzone,
        "invalid free" => Damage::InvalidFree,
        _ => Damage::Other,
    };
    // The number of bytes is not told.
    let access = words.ends_with("read").then_some((false, 0));
    let access = access.or_else(|| words.ends_with("write").then_some((true, 0)));
    let (words, place) = (format!("KFENCE: {words}"), some(without_offset(place)));
    Some(Corruption { damage, words, place, access, ..Corruption::default() })
}

/// `usercopy: Kernel memory exposure attempt detected from SLUB object 'names_cache' (offset 0, size 4097)!`.
fn usercopy(line: &str) -> Option<Corruption> {
    let (_, rest) = line.split_once("ernel memory ")?;
    let (what, rest) = rest.split_once(" attempt detected ")?;
    let is_write = what == "overwrite";
    let (_, rest) = rest.split_once(" object '")?;
    let (cache, rest) = rest.split_once('\'')?;
    let of = |key: &str| rest.split_once(key).and_then(|(_, rest)| digits(rest));
    Some(Corruption {
        damage: Damage::Usercopy,
        words: format!("Kernel memory {what} attempt"),
        cache: some(cache.into()),
        access: of("size ").map(|size| (is_write, size)),
        distance: of("offset ").map(|offset| (offset, "inside".into())),
        ..Corruption::default()
    })
}

/// What SLUB says of its repair after a report: `FIX kmalloc-64: Object at 0xffff888128ed0340 not freed`.
pub(super) fn repaired(line: &str) -> Option<Corruption> {
    let (cache, words) = line.strip_prefix("FIX ")?.split_once(": ")?;
    let is_name = !cache.is_empty() && !cache.contains(char::is_whitespace);
    is_name.then(|| Corruption {
        damage: Damage::Other,
        words: format!("SLUB repaired what it had reported before ({words})"),
        cache: Some(cache.into()),
        ..Corruption::default()
    })
}

/// KASAN before 4.9 lets SLUB print the object: the second line is of the same report.
pub(super) fn is_of_kasan(report: &Corruption, found: &Corruption) -> bool {
    found.words.contains("kasan: bad access detected")
        && report.cache.is_none()
        && report.words.starts_with("KASAN: ")
}

/// `kernel BUG at mm/slub.c:3035!`.
fn bug(line: &str) -> Option<Corruption> {
    let (_, rest) = line.split_once("kernel BUG at ")?;
    let place = rest.trim_end_matches('!').trim();
    let file = place.rsplit('/').next().unwrap_or(place);
    let is_slab = ["slub.c", "slab.c", "slab.h", "slab_common.c"].iter().any(|name| file.starts_with(name));
    is_slab.then(|| Corruption { damage: Damage::Bug, words: place.into(), ..Corruption::default() })
}

/// An oops, which is about slabs if it is in the allocator, and `BUG: Bad page state in process foo`.
fn oops(line: &str) -> Option<Corruption> {
    if let Some((_, rest)) = line.split_once("BUG: Bad page state in process ") {
        let process = rest.split_whitespace().next().map(str::to_string);
        let words = "Bad page state".to_string();
        return Some(Corruption { damage: Damage::Page, words, process, ..Corruption::default() });
    }
    let starts = [
        "general protection fault",
        "BUG: unable to handle",
        "Unable to handle kernel",
        "Oops: general protection fault",
    ];
    let start = starts.iter().find(|start| line.starts_with(**start))?;
    let words = format!("{start} in the allocator").replace("Oops: ", "");
    Some(Corruption { damage: Damage::Freelist, words, is_oops: true, ..Corruption::default() })
}

/// `unreferenced object 0x80c93c80 (size 128):`.
fn unreferenced(line: &str) -> Option<Corruption> {
    let (_, rest) = line.split_once("unreferenced object ")?;
    let size = rest.split_once("(size ").and_then(|(_, size)| digits(size));
    Some(Corruption {
        damage: Damage::Unreferenced,
        words: "unreferenced object".into(),
        object: address(rest),
        size,
        leaked: Some((1, size.unwrap_or(0), 0)),
        ..Corruption::default()
    })
}

/// Whether a function is one of the allocator.
pub(super) fn is_of_allocator(place: &str) -> bool {
    ALLOCATOR.iter().any(|start| place.starts_with(start))
}

/// The function of a line of a stack: `foo+0x16/0x30 [foo]`, with an address or a question mark before it.
pub(super) fn frame(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let mut word = words.next()?;
    while word == "?" || word.starts_with("[<") || word == "from" {
        word = words.next()?;
    }
    // ARM: `new_slab from ___slab_alloc+0x3e8/0xa0c`.
    let after: Vec<&str> = words.collect();
    let (name, offset) = match word.split_once("+0x") {
        Some(split) => split,
        None if after.first() == Some(&"from") && after.get(1).is_some_and(|word| word.contains("+0x")) => {
            return Some(word.to_string());
        }
        None => return None,
    };
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '.');
    if !is_name || !offset.contains('/') {
        return None;
    }
    let module = after.iter().find(|word| word.starts_with('[') && word.ends_with(']'));
    Some(module.map_or(name.to_string(), |module| format!("{name} {module}")))
}

/// `foo_init+0xb6/0x170 [foo] age=3 cpu=13 pid=0`.
fn track(text: &str) -> Track {
    let of = |key: &str| text.split_once(key).and_then(|(_, rest)| digits(rest));
    let end = text.find(" age=").unwrap_or(text.len());
    Track { place: without_offset(&text[..end]), age: of(" age="), pid: of(" pid=") }
}

/// A function without the offset in it, with its module.
fn without_offset(place: &str) -> String {
    let mut words = place.split_whitespace();
    let name = words.next().unwrap_or("").split("+0x").next().unwrap_or("").to_string();
    match words.find(|word| word.starts_with('[') && word.ends_with(']')) {
        Some(module) => format!("{name} {module}"),
        None => name,
    }
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// An address that a text begins with, with or without `0x`.
fn address(text: &str) -> Option<u64> {
    let text = text.trim();
    let text = text.strip_prefix("0x").unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    u64::from_str_radix(&text[..end], 16).ok()
}

/// The digits that a text begins with.
fn digits(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    number(&text[..end])
}
