//! The kernel's message about a slab that it could not get, explained from its own numbers.
//!
//! The same message in a log is told once, with how often it is there: cgroup, cache, order and flags make it
//! the same.

use super::gfp::{DIRECT_RECLAIM, HIGH, KSWAPD_RECLAIM, OLD_WAIT, old_names};
use super::known::Known;
use crate::words::{self, part_of};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_readers::gfp::{GfpFlag, GfpTable};
use slablab_readers::pasted::{self, AllocFailure, NodeCounts};
use slablab_report::html::number;
use slablab_report::text::grouped;
use slablab_report::visible::shell_word;
use slablab_slabs::Release;

/// One or several equal messages.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The last of them.
    last: AllocFailure,
    /// Lines of the text where they begin.
    lines: Vec<usize>,
    release: Option<Release>,
    page_size: u64,
    /// Bytes of the machine's memory, if the text tells.
    memory: Option<u64>,
}

/// A part of the explanation.
#[derive(Serialize, JsonSchema)]
pub struct Part {
    /// What it is about, in a word or two; empty if it is about the same as the part before.
    #[serde(rename = "about")]
    pub label: &'static str,
    /// The words.
    pub text: String,
    /// A command that shows or changes it.
    pub command: Option<String>,
}

/// The message and its explanation as a document.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MessageDocument<'a> {
    allocator: &'a str,
    cache: Option<&'a str>,
    /// The memory cgroup whose copy of the cache it was.
    cgroup: Option<CgroupDocument<'a>>,
    /// The CPU that asked.
    cpu: Option<u32>,
    explained: Vec<Part>,
    gfp: Option<u64>,
    gfp_names: Option<&'a str>,
    /// Lines of the text where equal messages begin.
    lines: &'a [usize],
    /// Whether its caller could sleep; null if the flags do not tell.
    may_sleep: Option<bool>,
    /// The words of its first line.
    message: String,
    min_order: Option<u32>,
    /// The node that was asked for; below 0, any.
    node: Option<i64>,
    nodes: Vec<NodeDocument>,
    object_size_bytes: Option<u64>,
    order: Option<u32>,
    slab_size_bytes: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct CgroupDocument<'a> {
    id: u64,
    name: &'a str,
}

/// The cache on a node.
#[derive(Serialize, JsonSchema)]
struct NodeDocument {
    /// Free objects of partial slabs.
    free_objects: u64,
    node: u32,
    /// Objects there is room for.
    objects: u64,
    slabs: u64,
}

/// Per cent of memory from which on the cache is the shortage itself.
const SHORTAGE_PERCENT: u64 = 25;

/// Whether a caller could sleep.
enum Caller {
    /// Reclaim was possible.
    Sleeps,
    /// Nothing but free pages.
    Atomic,
    /// The flags do not tell.
    Unknown,
}

impl Failure {
    /// The messages of a text, equal ones together, in the order of their first lines. `release` is the
    /// kernel's, and tells what its flags mean.
    pub fn all(failures: &[AllocFailure], release: Option<Release>, page_size: u64) -> Vec<Failure> {
        let mut all: Vec<Failure> = Vec::new();
        let mut known: FxHashMap<_, usize> = FxHashMap::default();
        for one in failures {
            let key = (&one.cache, &one.cgroup, one.order, one.gfp, one.node);
            let at = *known.entry(key).or_insert(all.len());
            match all.get_mut(at) {
                Some(failure) => {
                    failure.lines.push(one.line);
                    failure.last = one.clone();
                }
                None => {
                    let lines = vec![one.line];
                    all.push(Failure { last: one.clone(), lines, release, page_size, memory: None });
                }
            }
        }
        all
    }

    /// Reads the message from a text, if there is one in it.
    pub fn in_text(text: &str, page_size: u64) -> Vec<Failure> {
        let found = pasted::scan(text.as_bytes());
        Failure::all(&found.failures, found.release.as_deref().and_then(Release::parse), page_size)
    }

    /// The message on a machine with so much memory.
    pub fn beside(self, memory: Option<u64>) -> Failure {
        Failure { memory, ..self }
    }

    /// Bytes of the cache's slabs by the message. Where slabs have two orders, so many have the larger one
    /// that all objects fit; without an order, objects times the bytes of one.
    pub fn bytes(&self) -> Option<u64> {
        let size = self.last.size.or(self.last.object_size)?.max(1);
        if self.last.nodes.is_empty() {
            return None;
        }
        let (slabs, objects) =
            (sum(&self.last.nodes, |node| node.slabs), sum(&self.last.nodes, |node| node.objects));
        let Some(large) =
            self.last.order.and_then(|order| self.page_size.checked_mul(1u64.checked_shl(order)?))
        else {
            return Some(objects.saturating_mul(size));
        };
        let small =
            self.last.min_order.and_then(|order| self.page_size.checked_mul(1u64.checked_shl(order)?));
        let small = small.unwrap_or(large).min(large);
        let (in_large, in_small) = (large / size, small / size);
        let of_large = match in_large.checked_sub(in_small).filter(|more| *more > 0) {
            Some(more) => (objects.saturating_sub(in_small.saturating_mul(slabs)).div_ceil(more)).min(slabs),
            None => slabs,
        };
        Some(of_large.saturating_mul(large).saturating_add((slabs - of_large).saturating_mul(small)))
    }

    /// Whether the cache itself is the shortage: it has this part of memory, or where that is not known, more
    /// than a request that failed could explain.
    fn is_shortage(&self, percent: u64) -> bool {
        const MUCH: u64 = 1 << 30;
        let bytes = self.bytes().unwrap_or(0);
        self.memory.map_or(bytes >= MUCH, |memory| bytes >= memory / 100 * percent)
    }

    /// What the cache has, where it is the shortage itself.
    pub(crate) fn shortage(&self, percent: u64) -> Option<String> {
        let bytes = self.bytes().filter(|_| self.is_shortage(percent))?;
        let slabs = sum(&self.last.nodes, |node| node.slabs);
        let of = match self.memory {
            Some(memory) => format!("{} ({})", part_of(bytes, memory), words::percent(bytes, memory)),
            None => words::size(bytes),
        };
        let each = match bytes.checked_div(slabs) {
            Some(each) if each * slabs == bytes => {
                format!("{} slabs of {}", grouped(slabs), words::size(each))
            }
            _ => format!("{} slabs", grouped(slabs)),
        };
        Some(format!(
            "{} is the shortage itself: {each} have {of}{}; what owns it leaks objects, or keeps too many",
            self.cache(),
            self.tails(bytes)
        ))
    }

    /// The part of the slabs behind their objects, if it is worth a word.
    fn tails(&self, bytes: u64) -> String {
        let size = self.last.size.or(self.last.object_size).unwrap_or(0);
        let used = sum(&self.last.nodes, |node| node.objects).saturating_mul(size);
        let tails = bytes.saturating_sub(used);
        if size == 0 || tails < bytes / 8 {
            return String::new();
        }
        format!(", {} of it tails of slabs that hold no object", words::percent(tails, bytes))
    }

    fn cache(&self) -> &str {
        self.last.cache.as_deref().unwrap_or("a cache that the text does not name")
    }

    fn times(&self) -> String {
        match self.lines.len() {
            1 => String::new(),
            many => format!(" ({} times)", grouped(many as u64)),
        }
    }

    /// The message in a sentence.
    pub fn summary(&self) -> String {
        let of = match &self.last.cgroup {
            Some((id, name)) => format!(" of memory cgroup {id} ({name})"),
            None => String::new(),
        };
        let sleeps = match self.caller() {
            Caller::Atomic => ", for a caller that could not wait for memory to be reclaimed",
            Caller::Sleeps => ", although its caller could wait for memory to be reclaimed",
            Caller::Unknown => "",
        };
        let (cache, times) = (self.cache(), self.times());
        format!(
            "the kernel could not get pages for a new slab of {cache}{of}{times}{sleeps}; explained below"
        )
    }

    /// How often the text has the message.
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// What failed and for whom, and what it means, in a sentence.
    pub fn verdict(&self) -> String {
        if let Some(text) = self.shortage(SHORTAGE_PERCENT) {
            return format!("not reclaimable: {text}");
        }
        let whom = match &self.last.cgroup {
            Some((id, name)) if is_container(name) => {
                format!(" for memory cgroup {id}, container {}", &name[..12])
            }
            Some((id, name)) => format!(" for memory cgroup {id} ({name})"),
            None => String::new(),
        };
        let caller = match self.caller() {
            Caller::Atomic => "; its caller could not wait for memory to be reclaimed",
            Caller::Sleeps => "; its caller could wait for memory to be reclaimed",
            Caller::Unknown => "",
        };
        let why = match (self.last.min_order, &self.last.cgroup) {
            (Some(0), Some(_)) => {
                ". The cgroup's limit on kernel memory, or too little free memory: explained below"
            }
            (Some(0), None) => ". Too little memory was free, it was not fragmented: explained below",
            _ => ". Explained below",
        };
        let (cache, times) = (self.cache(), self.times());
        format!("an allocation failed: no pages for a new slab of {cache}{whom}{times}{caller}{why}")
    }

    /// The message's words, as the kernel prints the first line.
    pub fn title(&self) -> String {
        let node = self.last.node.map_or(String::new(), |node| format!(" on node {node}"));
        let gfp = self.last.gfp.map_or(String::new(), |gfp| format!(", gfp={gfp:#x}"));
        let names = self.last.gfp_names.as_ref().map_or(String::new(), |names| format!("({names})"));
        format!("{}: Unable to allocate memory{node}{gfp}{names}", self.last.allocator)
    }

    /// The explanation, from what happened to what helps.
    pub fn parts(&self, known: &Known) -> Vec<Part> {
        let mut parts = vec![part("what", self.what(known))];
        let shortage = self.shortage(SHORTAGE_PERCENT);
        if let Some(text) = &shortage {
            parts.push(part("cause", format!("{text}.")));
            parts.push(part(
                "do",
                format!(
                    "Find the code that allocates from {0} and does not free. Boot with slab_debug=U,{0} \
                     (slub_debug=U,{0} before 6.9): then /sys/kernel/debug/slab/{0}/alloc_traces names it, with \
                     its module. More free pages would be taken too.",
                    self.cache()
                ),
            ));
        }
        parts.extend(self.last.node.map(|node| part("node", node_words(node))));
        parts.extend(self.last.cpu.map(|cpu| part("CPU", format!("{cpu}: the CPU that asked."))));
        parts.push(part("caller", self.caller_words()));
        parts.extend(self.orders().map(|text| part("tried", text)));
        parts.extend(self.counts().map(|text| part("the cache", text)));
        parts.extend(self.cgroup());
        if shortage.is_some() {
            return parts;
        }
        parts.push(part(
            "harm",
            "The one request failed, not the machine: callers that cannot wait expect it, drop a packet or try \
             again later. The kernel limits the rate of the message: there may have been more. If it goes on, \
             memory is too short."
                .into(),
        ));
        parts.extend(self.helps());
        parts
    }

    fn what(&self, known: &Known) -> String {
        let purpose = self.last.cache.as_ref().and_then(|name| known.find(name));
        let purpose = purpose.map_or(String::new(), |entry| {
            let first = entry.what.split_once(". ").map_or(entry.what.as_str(), |(first, _)| first);
            format!(" Its objects: {}.", first.trim_end_matches('.'))
        });
        let lines = match self.lines[..] {
            [_] => String::new(),
            [first, .., last] => {
                format!(
                    " The text has it {} times, from line {first} to line {last}.",
                    grouped(self.lines.len() as u64)
                )
            }
            [] => String::new(),
        };
        format!(
            "No slab of {} had a free object that this request could have, a new slab was needed, and the page \
             allocator gave no pages for it.{purpose}{lines}",
            self.cache()
        )
    }

    /// The flags in our numbering, if they can be told.
    fn caller(&self) -> Caller {
        let sleeps = |sleeps: bool| if sleeps { Caller::Sleeps } else { Caller::Atomic };
        if let Some(names) = &self.last.gfp_names {
            return match GfpTable::default().parse(names) {
                Ok(set) => sleeps(set.has(GfpFlag::DirectReclaim) || set.has(GfpFlag::Wait)),
                Err(_) => Caller::Unknown,
            };
        }
        match self.last.gfp {
            Some(gfp) if self.has_old_flags() => sleeps(gfp & OLD_WAIT != 0),
            Some(gfp) => sleeps(gfp & DIRECT_RECLAIM != 0),
            None => Caller::Unknown,
        }
    }

    /// Kernels before 4.4 have one flag for a caller that may sleep. The words without names are those of
    /// kernels before 4.8, and of these the later ones wake kswapd by a flag of its own.
    fn has_old_flags(&self) -> bool {
        const SPLIT: Release = Release::new(4, 4, 0);
        let new_bits = self.last.gfp.is_some_and(|gfp| gfp & (DIRECT_RECLAIM | KSWAPD_RECLAIM) != 0);
        self.release.map_or(!new_bits, |release| release < SPLIT && !new_bits)
    }

    fn caller_words(&self) -> String {
        let names = match (&self.last.gfp_names, self.last.gfp) {
            (Some(names), Some(gfp)) => format!("gfp={gfp:#x} is {names}"),
            (None, Some(gfp)) if self.has_old_flags() => {
                format!("gfp={gfp:#x} is {} in kernels before 4.4", old_names(gfp))
            }
            (None, Some(gfp)) => format!("gfp={gfp:#x}"),
            (_, None) => return "The text does not have its flags (gfp=).".into(),
        };
        let high = self
            .last
            .gfp_names
            .as_ref()
            .is_some_and(|names| names.contains("ATOMIC") || names.contains("__GFP_HIGH"))
            || self.last.gfp_names.is_none() && self.last.gfp.is_some_and(|gfp| gfp & HIGH != 0);
        let reserve = if high {
            " It may use a part of the pages below the min watermark, which are kept for such callers; these were \
             used up too."
        } else {
            ""
        };
        match self.caller() {
            Caller::Atomic => format!(
                "{names}: the caller is atomic. It could not sleep (an interrupt, a lock held, or it did not want to), so \
                 the kernel could only hand out pages that were free, not reclaim any.{reserve}"
            ),
            Caller::Sleeps => format!(
                "{names}: the caller could sleep: the kernel tried to reclaim memory first, and got none that fits."
            ),
            Caller::Unknown => format!("{names}."),
        }
    }

    fn orders(&self) -> Option<String> {
        let order = self.last.order?;
        let bytes =
            |order: u32| match 1u64.checked_shl(order).and_then(|pages| pages.checked_mul(self.page_size)) {
                Some(bytes) => bytes_of(bytes),
                None => "more than any machine has".into(),
            };
        let debugged = if self.last.debugged {
            " Debugging made it larger: slub_debug=O (slab_debug=O since 6.9) leaves large caches out."
        } else {
            ""
        };
        let Some(least) = self.last.min_order else {
            return Some(format!("Slabs of order {order} ({}).{debugged}", bytes(order)));
        };
        let tried = if least < order {
            format!(
                "First order {order} ({}), then order {least} ({}), the least that holds an object",
                bytes(order),
                bytes(least)
            )
        } else {
            format!("Order {order} ({}), the least that holds an object", bytes(order))
        };
        let why = match (least, self.shortage(SHORTAGE_PERCENT)) {
            (0, _) => {
                "Not even a single page was given: too little memory was free, or a limit refused it; fragmentation is not the cause."
            }
            (_, Some(_)) => "Free memory in smaller blocks does not help.",
            (_, None) => {
                "Free memory in smaller blocks does not help: this may be fragmentation (/proc/buddyinfo)."
            }
        };
        Some(format!("{tried}. {why}{debugged}"))
    }

    fn counts(&self) -> Option<String> {
        let nodes = &self.last.nodes;
        let free = sum(nodes, |node| node.free);
        let words = |node: &NodeCounts| {
            format!("node {}: {} slabs, {} objects", node.node, grouped(node.slabs), grouped(node.objects))
        };
        let each: Vec<String> = nodes.iter().take(8).map(words).collect();
        let more = if nodes.len() > each.len() {
            format!("; {} more nodes", nodes.len() - each.len())
        } else {
            String::new()
        };
        let bytes = self
            .bytes()
            .map_or(String::new(), |bytes| format!(", {} in all{}", bytes_of(bytes), self.tails(bytes)));
        let none = if free == 0 {
            "None of the objects is free in a partial slab: the cache is in use, not fragmented.".into()
        } else {
            format!(
                "{} objects are free in partial slabs, which this request did not take: they are on a node that \
                     it could not use, or were freed meanwhile.",
                grouped(free)
            )
        };
        (!nodes.is_empty()).then(|| format!("{}{more}{bytes}. {none}", each.join("; ")))
    }

    fn cgroup(&self) -> Option<Part> {
        let (id, name) = self.last.cgroup.as_ref()?;
        let is_container = is_container(name);
        let container = if is_container { ": the ID of a container" } else { "" };
        let short = if is_container { &name[..12] } else { name.as_str() };
        let short = shell_word(short, "-_.:");
        Some(Part {
            label: "cgroup",
            text: format!(
                "This is the copy of {} for memory cgroup {id}, called {name}{container} (kernels 3.8 to 5.8 have such \
                 copies). The limit of this cgroup on kernel memory refuses pages even where the machine has free ones: if no \
                 \"page allocation failure\" with Mem-Info is in the log near it, the limit was the cause. failcnt counts it:",
                self.cache()
            ),
            command: Some(format!(
                "grep -r . /sys/fs/cgroup/memory/*/{short}*/memory.kmem.{{limit_in_bytes,usage_in_bytes,failcnt}}"
            )),
        })
    }

    fn helps(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        if let Some((_, name)) = &self.last.cgroup {
            let container = is_container(name);
            parts.push(Part {
                label: "do",
                text: "Raise or remove its limit on kernel memory, or let it run less.".into(),
                command: container.then(|| format!("docker ps --no-trunc | grep {name}")),
            });
        }
        if matches!(self.caller(), Caller::Atomic) {
            parts.push(Part {
                label: if parts.is_empty() { "do" } else { "" },
                text: "Keep more pages free for callers that cannot wait: double the value, at most a few per cent of memory."
                    .into(),
                command: Some("sysctl vm.min_free_kbytes".into()),
            });
        }
        parts.push(Part {
            label: if parts.is_empty() { "do" } else { "" },
            text: "See what holds the memory, slabs or not.".into(),
            command: Some("sudo slablab doctor".into()),
        });
        parts
    }

    /// The message and its explanation for programs.
    pub(crate) fn document(&self, known: &Known) -> MessageDocument<'_> {
        let last = &self.last;
        let node = |node: &NodeCounts| NodeDocument {
            free_objects: node.free,
            node: node.node,
            objects: node.objects,
            slabs: node.slabs,
        };
        MessageDocument {
            allocator: &last.allocator,
            cache: last.cache.as_deref(),
            cgroup: last.cgroup.as_ref().map(|(id, name)| CgroupDocument { id: *id, name }),
            cpu: last.cpu,
            explained: self.parts(known),
            gfp: last.gfp,
            gfp_names: last.gfp_names.as_deref(),
            lines: &self.lines,
            may_sleep: match self.caller() {
                Caller::Sleeps => Some(true),
                Caller::Atomic => Some(false),
                Caller::Unknown => None,
            },
            message: self.title(),
            min_order: last.min_order,
            node: last.node,
            nodes: last.nodes.iter().map(node).collect(),
            object_size_bytes: last.object_size,
            order: last.order,
            slab_size_bytes: last.size,
        }
    }
}

/// Whether the name of a cgroup is the ID of a container.
fn is_container(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Bytes with their unit, for a terminal: its font may lack a thin blank.
fn bytes_of(bytes: u64) -> String {
    number::bytes(bytes).replace(|c: char| c.is_whitespace(), " ")
}

fn part(label: &'static str, text: String) -> Part {
    Part { label, text, command: None }
}

fn sum(nodes: &[NodeCounts], of: fn(&NodeCounts) -> u64) -> u64 {
    nodes.iter().fold(0, |sum, node| sum.saturating_add(of(node)))
}

fn node_words(node: i64) -> String {
    match node {
        ..0 => format!(
            "{node} is no node (NUMA_NO_NODE): the caller took memory of any node, so every node that it may use was \
             tried. It is no sign of a wrong NUMA setting."
        ),
        _ => format!(
            "{node}: the caller preferred memory of this node; others were tried unless it allowed no other."
        ),
    }
}
