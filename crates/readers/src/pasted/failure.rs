//! A slab that could not be had: SLUB's and SLAB's message, and the lines that belong to it.

use crate::text::number;

/// "SLUB: Unable to allocate memory on node -1", or SLAB's, and the lines that belong to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocFailure {
    /// The line in the text, from 1.
    pub line: usize,
    /// `SLUB` or `SLAB`.
    pub allocator: String,
    /// The node that the caller asked for; -1 where any would do.
    pub node: Option<i64>,
    /// The CPU that asked, which newer kernels name.
    pub cpu: Option<u32>,
    /// The caller's flags, as a number.
    pub gfp: Option<u64>,
    /// The names of the flags, as kernels since 4.8 print them.
    pub gfp_names: Option<String>,
    /// The cache's name, without its cgroup.
    pub cache: Option<String>,
    /// Number and name of the memory cgroup whose copy of the cache it is (3.8 to 5.8).
    pub cgroup: Option<(u64, String)>,
    /// Bytes of an object.
    pub object_size: Option<u64>,
    /// Bytes from one object to the next.
    pub size: Option<u64>,
    /// Order of the slabs that the kernel prefers.
    pub order: Option<u32>,
    /// The lowest order that holds an object.
    pub min_order: Option<u32>,
    /// Debugging made the lowest order larger.
    pub debugged: bool,
    /// The cache on each node.
    pub nodes: Vec<NodeCounts>,
    /// The line of the cache as far as it was read: a mail program may have broken it.
    pub(super) cache_line: String,
    /// That line was begun.
    pub(super) begun: bool,
}

/// A cache on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// The node.
    pub node: u32,
    /// Slabs.
    pub slabs: u64,
    /// Objects there is room for.
    pub objects: u64,
    /// Free objects of partial slabs.
    pub free: u64,
}

/// The first line of a failure.
pub(super) fn begins(line: &str) -> Option<AllocFailure> {
    let (before, rest) = line.split_once("Unable to allocate memory")?;
    let allocator = before.trim_end().trim_end_matches(':').split_whitespace().last()?;
    let node = rest.rsplit_once("on node").and_then(|(_, node)| integer(node.trim_start()));
    let cpu = rest.split_once("on CPU").and_then(|(_, cpu)| leading(cpu.trim_start()));
    let mut failure = AllocFailure {
        allocator: allocator.to_string(),
        node,
        cpu: cpu.and_then(|cpu| u32::try_from(cpu).ok()),
        ..AllocFailure::default()
    };
    flags(&mut failure, rest);
    matches!(allocator, "SLUB" | "SLAB").then_some(failure)
}

/// `(gfp=0x20)`, or `gfp=0x900(GFP_NOWAIT|__GFP_ZERO)`.
fn flags(failure: &mut AllocFailure, text: &str) -> bool {
    let Some((_, rest)) = text.split_once("gfp=0x") else { return false };
    let digits = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    failure.gfp = u64::from_str_radix(&rest[..digits], 16).ok();
    let names = rest[digits..].strip_prefix('(').and_then(|rest| Some(rest.split_once(')')?.0));
    failure.gfp_names = names.filter(|names| !names.is_empty()).map(str::to_string);
    true
}

/// Takes a line that belongs to a failure; false if it is not one.
pub(super) fn more(failure: &mut AllocFailure, line: &str) -> bool {
    if let Some(rest) = line.strip_prefix("cache:") {
        failure.cache_line = rest.trim().to_string();
        cache(failure);
        return true;
    }
    if let Some(counts) = node(line) {
        if failure.nodes.len() < 1 << 12 {
            failure.nodes.push(counts);
        }
        return true;
    }
    if goes_on(failure, line) {
        cache(failure);
        return true;
    }
    if line.contains("debugging increased min order") {
        failure.debugged = true;
        return true;
    }
    // The rest of the first line.
    if failure.gfp.is_some() || failure.begun {
        return false;
    }
    let node = line.strip_prefix("node ").and_then(integer);
    failure.node = failure.node.or(node);
    flags(failure, line) || node.is_some()
}

/// Joins a line that goes on with the line of the cache, up to the minimum order.
fn goes_on(failure: &mut AllocFailure, line: &str) -> bool {
    // As long as a name that a program may have put in.
    const LONGEST: usize = 1 << 10;
    // Nothing of the line was read, or all of it.
    if failure.object_size.is_some() && failure.order.is_some() && failure.min_order.is_some() {
        return false;
    }
    let text = &failure.cache_line;
    let is_open = text.matches('(').count() > text.matches(')').count();
    let in_name = is_open || text.ends_with('-');
    let is_word = |word: &str| {
        let word = word.trim_end_matches(',');
        let key =
            matches!(word, "object" | "buffer" | "default" | "min" | "order:" | "size" | "size:" | "order");
        key || number::<u64>(word).is_some()
    };
    let begun = failure.begun && (in_name || text.is_empty() || line.split_whitespace().all(is_word));
    if !begun || text.len() + line.len() > LONGEST {
        return false;
    }
    failure.cache_line =
        if in_name || text.is_empty() { format!("{text}{line}") } else { format!("{text} {line}") };
    true
}

/// Reads the line of the cache, which may not be whole yet.
fn cache(failure: &mut AllocFailure) {
    let text = std::mem::take(&mut failure.cache_line);
    failure.begun = true;
    let name = text.split(", object").next().unwrap_or(&text).trim().trim_end_matches(',');
    let (name, cgroup) = of_cgroup(name);
    // A name that is broken in its middle is none.
    if !name.is_empty() && !name.ends_with('-') {
        failure.cache = Some(name.to_string());
        failure.cgroup = cgroup;
    }
    numbers(failure, &text);
    failure.cache_line = text;
}

/// `kmalloc-1024` and group 1793 of `kmalloc-1024(1793:c8edefa9)`.
fn of_cgroup(name: &str) -> (&str, Option<(u64, String)>) {
    let split = name.strip_suffix(')').and_then(|rest| rest.split_once('('));
    let cgroup = split.and_then(|(parent, group)| {
        let (id, group) = group.split_once(':')?;
        Some((parent, (number(id)?, group.to_string())))
    });
    cgroup.map_or((name, None), |(parent, group)| (parent, Some(group)))
}

fn numbers(failure: &mut AllocFailure, text: &str) {
    let of = |key: &str| text.split_once(key).and_then(|(_, rest)| leading(rest.trim_start()));
    let order = |key: &str| of(key).and_then(|order| u32::try_from(order).ok());
    failure.object_size = of("object size:");
    failure.size = of("buffer size:");
    failure.min_order = order("min order:");
    failure.order = order("default order:").or_else(|| order(", order:"));
}

/// `node 0: slabs: 663, objs: 20964, free: 0`; SLAB's has `used/all`.
fn node(line: &str) -> Option<NodeCounts> {
    let (node, rest) = line.strip_prefix("node ")?.split_once(": slabs:")?;
    let of = |key: &str, rest: &str| {
        let value = rest.split_once(key)?.1.trim_start();
        let (first, second) = value.split_once('/').map_or((value, None), |(a, b)| (a, leading(b)));
        Some((leading(first)?, second))
    };
    let slabs = of("", rest)?;
    let objects = of("objs:", rest)?;
    let free = of("free:", rest).map(|(free, _)| free);
    let in_use = |(used, all): (u64, Option<u64>)| all.map(|all| all.saturating_sub(used));
    Some(NodeCounts {
        node: number(node.trim())?,
        slabs: slabs.1.unwrap_or(slabs.0),
        objects: objects.1.unwrap_or(objects.0),
        free: free.or_else(|| in_use(objects)).unwrap_or(0),
    })
}

/// The digits that a text begins with.
pub(super) fn leading(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    number(&text[..digits])
}

/// An integer that may be below zero, and that anything but a letter may follow.
fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    i64::try_from(leading(digits)?).ok()?.checked_mul(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read(lines: &[&str]) -> AllocFailure {
        let mut read = begins(lines[0]).expect("a failure");
        for line in &lines[1..] {
            assert!(more(&mut read, line), "{line}");
        }
        read
    }

    #[test]
    fn old_new_and_newest_words() {
        let old = read(&[
            "SLUB: Unable to allocate memory on node -1 (gfp=0x20)",
            "cache: kmalloc-1024(1793:c8ed), object size: 1024, buffer size: 1032, default order: 3, min order: 0",
            "node 0: slabs: 663, objs: 20964, free: 0",
            "node 1: slabs: 1, objs: 2, free: 3",
        ]);
        assert_eq!((old.node, old.gfp, old.gfp_names), (Some(-1), Some(0x20), None));
        assert_eq!(old.cache.as_deref(), Some("kmalloc-1024"));
        assert_eq!(old.cgroup, Some((1793, "c8ed".into())));
        assert_eq!(
            (old.object_size, old.size, old.order, old.min_order),
            (Some(1024), Some(1032), Some(3), Some(0))
        );
        let second = NodeCounts { node: 1, slabs: 1, objects: 2, free: 3 };
        assert_eq!((old.nodes.len(), old.nodes[1]), (2, second));

        let new = read(&["SLUB: Unable to allocate memory on node 1, gfp=0x900(GFP_NOWAIT|__GFP_ZERO)"]);
        assert_eq!(
            (new.node, new.gfp, new.gfp_names.as_deref()),
            (Some(1), Some(0x900), Some("GFP_NOWAIT|__GFP_ZERO"))
        );
        let newest = "SLUB: Unable to allocate memory on CPU 12 (of node 1) on node 0, gfp=0x920(GFP_ATOMIC)";
        assert_eq!((read(&[newest]).cpu, read(&[newest]).node), (Some(12), Some(0)));
    }

    #[test]
    fn wrapped_lines_and_slab() {
        let wrapped = read(&[
            "SLUB: Unable to allocate memory on node -1",
            "(gfp=0x20)",
            "cache: kmalloc-1024, object size: 1024, buffer size:",
            "1024, default order: 3,",
            "min order: 0",
        ]);
        assert_eq!((wrapped.gfp, wrapped.object_size, wrapped.min_order), (Some(0x20), Some(1024), Some(0)));
        let cgroup = read(&[
            "SLUB: Unable to allocate memory on",
            "node -1 (gfp=0x20)",
            "cache:",
            "kmalloc-1024(1793:c8ed),",
            "object size: 1024, buffer size: 1024, default order: 3, min order:",
            "0",
            "node 0: slabs: 663, objs: 20964, free: 0",
        ]);
        assert_eq!((cgroup.cache.as_deref(), cgroup.node), (Some("kmalloc-1024"), Some(-1)));
        assert_eq!(cgroup.cgroup, Some((1793, "c8ed".into())));
        assert_eq!((cgroup.size, cgroup.order, cgroup.min_order), (Some(1024), Some(3), Some(0)));
        for broken in
            [["cache: kmalloc-", "1024(1793:c8ed), object"], ["cache: kmalloc-1024(17", "93:c8ed), object"]]
        {
            let broken =
                read(&[&["SLUB: Unable to allocate memory on node -1 (gfp=0x20)"], &broken[..]].concat());
            assert_eq!(broken.cgroup, Some((1793, "c8ed".into())));
        }
        assert_eq!(read(&["SLUB: Unable to allocate memory on node -1", "cache:"]).cache, None);
        let slab = read(&[
            "SLAB: Unable to allocate memory on node 0 (gfp=0xd0)",
            "cache: task_struct, object size: 2640, order: 0",
            "node 0: slabs: 40/41, objs: 40/42, free: 2",
        ]);
        assert_eq!((slab.allocator.as_str(), slab.order), ("SLAB", Some(0)));
        assert_eq!(slab.nodes, [NodeCounts { node: 0, slabs: 41, objects: 42, free: 2 }]);
        assert_eq!(begins("Unable to allocate memory"), None);
    }
}
