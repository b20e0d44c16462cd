//! A report of damaged or leaked objects, explained from its own lines: what happened, whose write it can be,
//! and what finds the writer. It is never an answer about how much memory slabs have.

use super::message::Part;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_readers::pasted::{self, Corruption, Damage, Track};
use slablab_report::text::{counted, grouped};
use slablab_slabs::Release;

/// The report for programs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CorruptionDocument<'a> {
    allocated_in: Option<&'a str>,
    cache: Option<&'a str>,
    explained: Vec<Part>,
    freed_in: Option<&'a str>,
    /// The line of the text where it begins.
    line: usize,
    /// The address of the object.
    object: Option<u64>,
    /// The cache that the object is of, where it was freed to another.
    object_is_of: Option<&'a str>,
    /// The kernel's words.
    words: &'a str,
    /// The first and the last byte that was written.
    written: Option<(u64, u64)>,
}

/// A report of a text.
#[derive(Clone, Copy, Debug)]
pub struct Damaged<'a> {
    report: &'a Corruption,
    release: Option<Release>,
}

/// Since then the parameters are called slab_debug.
const SLAB_DEBUG: Release = Release::new(6, 9, 0);
/// Since then the call sites of a cache are in debugfs.
const TRACES: Release = Release::new(5, 16, 0);

/// The reports of damaged objects in a text.
pub fn corruptions_in(text: &str) -> Vec<Corruption> {
    pasted::scan(text.as_bytes()).corruptions
}

impl<'a> Damaged<'a> {
    /// The reports of a text, those that tell most first: kmemleak's list may have objects without end.
    pub fn all(reports: &'a [Corruption], release: Option<Release>) -> Vec<Damaged<'a>> {
        let mut all: Vec<Damaged> = reports.iter().map(|report| Damaged { report, release }).collect();
        let bytes = |one: &Damaged| one.report.leaked.map_or(u64::MAX, |(_, bytes, _)| bytes);
        all.sort_by_key(|one| std::cmp::Reverse(bytes(one)));
        all
    }

    fn cache(&self) -> &str {
        self.report.cache.as_deref().unwrap_or("a cache that the text does not name")
    }

    /// The verdict: what happened, and that it is no shortage of memory.
    pub fn verdict(&self) -> String {
        let kind = match self.report.damage {
            Damage::Usercopy => "a copy that was stopped, not a shortage of memory",
            Damage::Remaining | Damage::Unreferenced => "leaked objects, not an out of memory",
            _ => "memory corruption, not a shortage of memory",
        };
        format!("{kind}: {}", self.summary())
    }

    /// What happened, in a sentence.
    pub fn summary(&self) -> String {
        let report = self.report;
        let (cache, release) = (self.cache(), self.release);
        let of_cache = report.cache.as_ref().map_or(String::new(), |cache| format!(" of {cache}"));
        let place = report.place.as_ref().map_or(String::new(), |place| format!(", in {place}"));
        match report.damage {
            Damage::Redzone => format!("red zone of an object of {cache} overwritten{}", self.written()),
            Damage::Poison => format!("a free object of {cache} was written{}", self.written()),
            Damage::Padding => format!("padding of a slab of {cache} was overwritten{}", self.written()),
            Damage::Freelist => {
                format!("the list of free objects of {cache} is broken ({}){place}", report.words)
            }
            Damage::DoubleFree => {
                let freed = track("freed first in", report.freed.as_ref());
                format!(
                    "double free of an object{of_cache}{freed}{}",
                    track("allocated in", report.allocated.as_ref())
                )
            }
            Damage::InvalidFree => format!("a pointer that is no object{of_cache} was freed{place}"),
            Damage::WrongCache => format!(
                "an object of {} was freed to {cache}: two different caches",
                report.other.as_deref().unwrap_or("another cache")
            ),
            Damage::Remaining => {
                let process = report.process.as_ref().map_or(String::new(), |name| format!(" by {name}"));
                let objects = match (report.objects, report.listed) {
                    (Some((all, used)), _) => format!("{used} of {all} objects of a slab still in use"),
                    (None, 0) => "live objects".into(),
                    (None, listed) => format!("live objects ({listed} are listed)"),
                };
                format!("{cache} was destroyed{process} with {objects}: the module that owns it leaks them")
            }
            Damage::OutOfBounds | Damage::UseAfterFree => self.accessed(&of_cache, &place),
            Damage::Bug => {
                let of = release.map_or(String::new(), |release| format!(" of Linux {release}"));
                format!(
                    "BUG at {}{of}: a check of the allocator failed, its list of free objects is corrupted (a double free \
                     or a write to a free object){place}",
                    report.words
                )
            }
            Damage::Unreferenced => {
                let (objects, bytes, age) = report.leaked.unwrap_or_default();
                let each = report.size.map_or(String::new(), |size| format!(" of {} bytes", grouped(size)));
                // Since 6.8 the list has no ages.
                let oldest = match age {
                    0 => String::new(),
                    age => format!("; the oldest is {} s old", grouped(age)),
                };
                format!(
                    "kmemleak: {}{each}, {} bytes together, to which nothing points{}{oldest}",
                    counted(objects, "object"),
                    grouped(bytes),
                    self.stack()
                )
            }
            Damage::Usercopy => self.copied(cache),
            Damage::Page => format!("a page was freed although it is in use ({}){place}", report.words),
            Damage::Other => format!("{cache}: {}{place}", report.words),
        }
    }

    /// A copy between an object and a program.
    fn copied(&self, cache: &str) -> String {
        let report = self.report;
        let way = match report.access {
            Some((true, _)) => "into",
            _ => "out of",
        };
        let bytes =
            report.access.map_or(String::new(), |(_, bytes)| format!(" of {}", counted(bytes, "byte")));
        let at = report.distance.as_ref().map_or(String::new(), |(at, _)| format!(" at offset {at}"));
        format!(
            "the kernel stopped a copy{bytes} {way} an object of {cache}{at}: past its end, or a part that its cache does \
             not let programs have"
        )
    }

    /// KASAN's and KFENCE's: what was read or written, and how far from the object.
    fn accessed(&self, of_cache: &str, place: &str) -> String {
        let report = self.report;
        let access = match report.access {
            Some((is_write, bytes)) => {
                let of = if bytes == 0 { String::new() } else { format!(" of {}", counted(bytes, "byte")) };
                format!("{}{of}", if is_write { "write" } else { "read" })
            }
            None => "access".into(),
        };
        let checker = report.words.split(": ").next().unwrap_or("KASAN");
        let size = report.size.map_or(String::new(), |size| format!(" of {size} bytes"));
        let freed = if report.damage == Damage::UseAfterFree { " that was freed" } else { "" };
        let at = match &report.distance {
            Some((by, side)) if side == "right" => {
                format!(", {} behind an object{size}", counted(*by, "byte"))
            }
            Some((by, side)) if side == "left" => {
                format!(", {} before an object{size}", counted(*by, "byte"))
            }
            Some((by, _)) => format!(", {} inside of an object{size}", counted(*by, "byte")),
            // KASAN watches more than slabs.
            None if report.cache.is_none() && report.words.contains("global") => {
                " beside a global variable".into()
            }
            None if report.cache.is_none() && report.words.contains("stack") => {
                " beside a variable on the stack".into()
            }
            None if report.cache.is_none() && report.words.contains("vmalloc") => {
                " in memory of vmalloc".into()
            }
            None => format!(" at an object{size}"),
        };
        let tracks = format!(
            "{}{}",
            track("allocated in", report.allocated.as_ref()),
            track("freed in", report.freed.as_ref())
        );
        format!("{checker}: {access}{at}{of_cache}{freed}{place}{tracks}")
    }

    /// The bytes that were written, and where they are.
    fn written(&self) -> String {
        let report = self.report;
        let Some((low, high)) = report.written else { return String::new() };
        let bytes = counted(high.saturating_sub(low).saturating_add(1), "byte");
        let side = match report.object {
            Some(object) if high < object => format!(" in front of object {object:#x}"),
            Some(object) if low > object => format!(" at offset {} of object {object:#x}", low - object),
            Some(object) => format!(" at object {object:#x}"),
            None => String::new(),
        };
        let value = report.byte.map_or(String::new(), |(is, should)| {
            format!(" (first byte {is:#04x} instead of {should:#04x})")
        });
        let short = format!("{low:#x} to {high:#x}");
        format!(": {bytes}, {short},{side}{value}")
    }

    /// Where the objects of kmemleak's stack were allocated.
    fn stack(&self) -> String {
        const SHOWN: usize = 3;
        let own = |frame: &&String| !self.report.is_of_allocator(frame);
        let frames: Vec<&str> = self.report.stack.iter().filter(own).map(String::as_str).collect();
        match &frames[..] {
            [] => String::new(),
            [.., last] if frames.len() > SHOWN => {
                format!(", allocated in {}, called by {} ... {last}", frames[0], frames[1])
            }
            [first] => format!(", allocated in {first}"),
            [first, rest @ ..] => format!(", allocated in {first}, called by {}", rest.join(", ")),
        }
    }

    /// The report's first line, for a heading.
    pub fn title(&self) -> String {
        let report = self.report;
        match &report.cache {
            Some(cache) => format!("{cache}: {} (line {})", report.words, report.line),
            None => format!("{} (line {})", report.words, report.line),
        }
    }

    /// The explanation, from what happened to what finds the writer.
    pub fn parts(&self) -> Vec<Part> {
        let report = self.report;
        let part = |label, text: String| Part { label, text, command: None };
        let mut parts = vec![part("what", format!("{}.", self.summary()))];
        parts.extend(self.who().map(|text| part("whose write", text)));
        for (label, found) in [("allocated", &report.allocated), ("freed", &report.freed)] {
            if let Some(track) = found.as_ref().filter(|track| !track.place.is_empty()) {
                let pid = track.pid.map_or(String::new(), |pid| format!(", pid {pid}"));
                let age = track.age.map_or(String::new(), |age| format!(", {} jiffies before", grouped(age)));
                parts.push(part(label, format!("in {}{pid}{age}.", track.place)));
            }
        }
        parts.push(part(
            "memory",
            match report.damage {
                Damage::Remaining | Damage::Unreferenced => {
                    "This says that objects are lost, not that memory is short now.".into()
                }
                Damage::Usercopy => "This is no sign of a shortage, and nothing was damaged: the copy did not happen.".into(),
                _ => "This is no sign of a shortage. Data was damaged: restart the machine before you trust it.".into(),
            },
        ));
        parts.push(self.finds());
        parts
    }

    /// Whose write or free it can be.
    fn who(&self) -> Option<String> {
        let report = self.report;
        let in_front = report.written.zip(report.object).is_some_and(|((_, high), object)| high < object);
        Some(match report.damage {
            Damage::Redzone if in_front => "The user of the object before this one in the slab, which wrote past its end; \
                                            or code that writes below this object. The stacks below are of this object, \
                                            and may be innocent."
                .into(),
            Damage::Redzone | Damage::Padding => "The user of this object, which wrote past its end; or the user of the \
                                                  object behind it, which wrote below its start."
                .into(),
            Damage::Poison => "Code that kept a pointer to the object after it was freed.".into(),
            Damage::Freelist | Damage::Bug => "Code that wrote to an object after it was freed, wrote past the end of \
                                               an object, or freed one twice. The process in the report only met the \
                                               damage: it may be innocent."
                .into(),
            Damage::DoubleFree => "Two places free the same object: the one that freed it first, and the one in the call \
                                   trace."
                .into(),
            Damage::WrongCache => "A wrong pointer, an object that was allocated from one cache and is freed to another, \
                                   or a broken list of free objects."
                .into(),
            Damage::Remaining => "The module that owns the cache: it frees its cache before all of its objects.".into(),
            Damage::OutOfBounds | Damage::UseAfterFree => "The function that the report names: it stops at the access \
                                                           itself."
                .into(),
            Damage::Usercopy => "The function in the call trace that copies (copy_to_user, copy_from_user): its size or its \
                                 pointer is wrong, or the cache was made without a region for copies."
                .into(),
            Damage::Unreferenced => "The code in the stack: it lost the only pointer to what it allocated. Objects \
                                     that are young, or found once only, may be none."
                .into(),
            Damage::InvalidFree | Damage::Page | Damage::Other => return None,
        })
    }

    /// What finds the writer, by this kernel's name of it.
    fn finds(&self) -> Part {
        let is = |since: Release| self.release.is_none_or(|release| release >= since);
        let parameter = if is(SLAB_DEBUG) { "slab_debug" } else { "slub_debug" };
        let cache = self.report.cache.as_deref().map_or(String::new(), |cache| format!(",{cache}"));
        let before = match self.release {
            None => " (slub_debug before 6.9)",
            Some(_) => "",
        };
        let named = self.report.cache.as_deref().unwrap_or("CACHE");
        let file = if is(TRACES) {
            format!("/sys/kernel/debug/slab/{named}/alloc_traces")
        } else {
            format!("/sys/kernel/slab/{named}/alloc_calls")
        };
        let (text, command) = match self.report.damage {
            Damage::Remaining => (
                format!(
                    "Boot with {parameter}=U{cache}{before}, use the module, and read {file} before it is unloaded: it \
                     lists who allocated the objects that are left."
                ),
                format!("cat {file}"),
            ),
            Damage::Unreferenced => (
                "Scan twice: what is listed both times is leaked. Clear the list before the action you suspect.".into(),
                "echo scan > /sys/kernel/debug/kmemleak; cat /sys/kernel/debug/kmemleak".into(),
            ),
            Damage::Usercopy => ("Read the call trace: the caller of the copy is the defect.".into(), String::new()),
            Damage::OutOfBounds | Damage::UseAfterFree => (
                "The report has found it: the stacks of the access, the allocation and the free are in its report.".into(),
                String::new(),
            ),
            _ => (
                format!(
                    "A kernel with KASAN (CONFIG_KASAN) stops at the write itself. Without it boot with \
                     {parameter}=FZPU{cache}{before}: it checks each free, and keeps who allocated and freed."
                ),
                format!("{parameter}=FZPU{cache}"),
            ),
        };
        Part { label: "do", text, command: Some(command).filter(|command| !command.is_empty()) }
    }

    /// The report and its explanation for programs.
    pub(crate) fn document(&self) -> CorruptionDocument<'a> {
        let report = self.report;
        let place = |track: &'a Option<Track>| track.as_ref().map(|track| track.place.as_str());
        CorruptionDocument {
            allocated_in: place(&report.allocated),
            cache: report.cache.as_deref(),
            explained: self.parts(),
            freed_in: place(&report.freed),
            line: report.line,
            object: report.object,
            object_is_of: report.other.as_deref(),
            words: &report.words,
            written: report.written,
        }
    }
}

fn track(label: &str, track: Option<&Track>) -> String {
    let Some(track) = track.filter(|track| !track.place.is_empty()) else { return String::new() };
    let age = track.age.map_or(String::new(), |age| format!(" (age {})", grouped(age)));
    format!(", {label} {}{age}", track.place)
}
