//! SLUB's debugging lists of a cache: `alloc_traces` and `free_traces` in /sys/kernel/debug/slab/CACHE (5.16
//! and later), before that `alloc_calls` and `free_calls` in /sys/kernel/slab/CACHE. The kernel has them for
//! caches with user tracking (`slab_debug=U`).
//!
//! ```text
//!    1085 populate_error_injection_list+0x97/0x110 waste=34720/32 age=166678/166680/166682 pid=1 cpus=1
//!         kmem_cache_alloc_trace+0x2eb/0x300
//!         populate_error_injection_list+0x97/0x110
//!
//!      51 <not-available> age=4294894749 pid=0 cpus=0
//! ```

use crate::text::{LineError, id_list, number, utf8};

/// What the kernel tells of the objects that one call allocated, or freed last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tracked {
    /// Objects.
    pub count: u64,
    /// The call, as `symbol+offset/size`; `None` where the kernel did not keep it.
    pub site: Option<String>,
    /// The module of the call.
    pub module: Option<String>,
    /// Bytes of kmalloc objects that the callers did not ask for: of all, and of each.
    pub waste: Option<(u64, u64)>,
    /// The ages of the objects in jiffies: least, mean, most.
    pub age: Option<[u64; 3]>,
    /// The smallest and the largest pid of the callers.
    pub pids: Option<(i64, i64)>,
    /// CPUs of the calls.
    pub cpus: Vec<u32>,
    /// Nodes of the objects.
    pub nodes: Vec<u32>,
    /// The call chain, innermost first, if the kernel has it.
    pub stack: Vec<String>,
}

/// Whether a file that begins like this is one; `head` may end anywhere.
pub fn is_tracked(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let first = text.lines().find(|line| !line.trim().is_empty());
    first.is_some_and(|line| entry(line).is_some_and(|entry| entry.age.is_some() || entry.pids.is_some()))
}

/// Reads a list. `No data` is an empty one.
///
/// # Errors
/// A line of another form.
pub fn parse(bytes: &[u8]) -> Result<Vec<Tracked>, LineError> {
    let mut found: Vec<Tracked> = Vec::new();
    for (index, line) in utf8(bytes)?.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed == "No data" {
            continue;
        }
        if let Some(entry) = entry(line) {
            found.push(entry);
        } else if let Some(last) = found.last_mut().filter(|_| is_frame(trimmed)) {
            last.stack.push(without_size(trimmed).into());
        } else {
            let expected = "objects and a call as in `12 d_alloc+0x1d/0x1a0 age=1/2/3 pid=1 cpus=0 nodes=0`";
            return Err(LineError::new(index + 1, expected, trimmed));
        }
    }
    Ok(found)
}

/// `symbol+offset/size`, perhaps with a module.
fn is_frame(line: &str) -> bool {
    let symbol = line.split_whitespace().next().unwrap_or("");
    symbol.contains("+0x") || symbol.starts_with("0x")
}

/// A symbol without the size of its function.
fn without_size(symbol: &str) -> &str {
    let symbol = symbol.split_whitespace().next().unwrap_or(symbol);
    symbol.split_once('/').map_or(symbol, |(symbol, _)| symbol)
}

fn entry(line: &str) -> Option<Tracked> {
    let mut words = line.split_whitespace();
    let mut found = Tracked { count: number(words.next()?)?, ..Tracked::default() };
    let site = words.next()?;
    if site != "<not-available>" {
        if !is_frame(site) {
            return None;
        }
        found.site = Some(without_size(site).into());
    }
    for word in words {
        if let Some(module) = word.strip_prefix('[').and_then(|word| word.strip_suffix(']')) {
            found.module = Some(module.into());
            continue;
        }
        let (key, value) = word.split_once('=')?;
        // The kernel's documentation has colons at the end of a line.
        let value = value.trim_end_matches(':');
        match key {
            "waste" => {
                let (all, each) = value.split_once('/')?;
                found.waste = Some((number(all)?, number(each)?));
            }
            "age" => found.age = Some(ages(value)?),
            "pid" => found.pids = Some(range(value)?),
            "cpus" => found.cpus = id_list(value)?,
            "nodes" => found.nodes = id_list(value)?,
            _ => {}
        }
    }
    Some(found)
}

fn ages(value: &str) -> Option<[u64; 3]> {
    let mut parts = value.split('/').map(number::<u64>);
    let first = parts.next()??;
    match (parts.next(), parts.next()) {
        (None, _) => Some([first; 3]),
        (Some(mean), Some(most)) => Some([first, mean?, most?]),
        _ => None,
    }
}

fn range(value: &str) -> Option<(i64, i64)> {
    match value.split_once('-') {
        None => number(value).map(|pid| (pid, pid)),
        Some((from, to)) => Some((number(from)?, number(to)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the kernel's documentation (Documentation/mm/slub.rst), the second shortened, and
    /// lines with the fields of later releases.
    const DOCUMENTED: &str = "   1085 populate_error_injection_list+0x97/0x110 age=166678/166680/166682 pid=1 cpus=1::\n\
        \t__slab_alloc+0x6d/0x90\n\
        \tkmem_cache_alloc_trace+0x2eb/0x300\n\
        \tpopulate_error_injection_list+0x97/0x110\n\
        \n\
     51 <not-available> age=4294894749 pid=0 cpus=0\n\
     56 ext4_find_extent+0x6a6/0x782 [ext4] waste=448/8 age=236886/237027/237772 pid=1-345 cpus=0-3,7 nodes=0-1\n\
        \tkfree+0x2db/0x420\n";

    #[test]
    fn fields_and_stacks_are_read() {
        assert!(is_tracked(&DOCUMENTED.as_bytes()[..90]));
        let found = parse(DOCUMENTED.as_bytes()).unwrap();
        let [first, unknown, last] = &found[..] else { panic!("{found:?}") };
        assert_eq!((first.count, first.site.as_deref()), (1085, Some("populate_error_injection_list+0x97")));
        assert_eq!(first.age, Some([166_678, 166_680, 166_682]));
        assert_eq!((first.pids, &first.cpus[..]), (Some((1, 1)), &[1][..]));
        assert_eq!(first.stack[1], "kmem_cache_alloc_trace+0x2eb");
        assert_eq!((unknown.site.as_deref(), unknown.age), (None, Some([4_294_894_749; 3])));
        assert_eq!((last.module.as_deref(), last.waste), (Some("ext4"), Some((448, 8))));
        assert_eq!(
            (last.pids, &last.cpus[..], &last.nodes[..]),
            (Some((1, 345)), &[0, 1, 2, 3, 7][..], &[0, 1][..])
        );
        assert_eq!((first.stack.len(), unknown.stack.len(), last.stack.len()), (3, 0, 1));
        assert_eq!(parse(b"No data\n").unwrap(), []);
    }

    #[test]
    fn other_lines_are_named() {
        #[track_caller]
        fn check(line: &str) {
            let error = parse(format!("1 f+0x1/0x2 age=1 pid=1 cpus=0\n{line}\n").as_bytes()).unwrap_err();
            assert_eq!(error.line, 2, "{error}");
            assert!(!is_tracked(line.as_bytes()), "{line}");
        }
        check("dentry 12 age=3");
        check("12 dentry age=3 pid=1");
        check("12 f+0x1/0x2 age=1/2 pid=1");
        check("12 f+0x1/0x2 age=x pid=1");
    }
}
