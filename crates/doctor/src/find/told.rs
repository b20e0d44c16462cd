//! What the numbers of one row of a text tell about its cache, beyond its bytes: debugging, copies for memory
//! cgroups, free objects, a name that other caches share.

use crate::measure::{Line, Measured, named};
use crate::what::Known;
use crate::words::{percent, size};
use slablab_report::text::grouped;

/// A kmalloc cache whose objects take much more than its name says: slab debugging, or KASAN.
pub(crate) fn debugged(measured: &Measured) -> Option<(String, u64)> {
    let widened = |line: &&Line| {
        let asked = kmalloc_size(&line.cache.name).filter(|_| !line.cache.bytes_only);
        asked.is_some_and(|asked| is_widened(line.cache.size, asked))
    };
    // The attributes of a cache tell it by themselves.
    let line = measured.lines.iter().filter(|line| line.cache.attrs.is_none()).filter(widened);
    let line = line.max_by_key(|line| line.split.bytes)?;
    let asked = kmalloc_size(&line.cache.name)?;
    let times = line.cache.size as f64 / asked as f64;
    let text = format!(
        "{} takes {} bytes an object: slab debugging (red zones, who allocated) or KASAN is on, and costs {times:.0} \
         times the memory",
        named(line),
        grouped(line.cache.size)
    );
    let bytes = line.cache.total_objects.saturating_mul(line.cache.size - asked);
    Some((text, bytes))
}

/// Whether objects of so many bytes are those that are for `asked` bytes and debugging around them.
fn is_widened(size: u64, asked: u64) -> bool {
    const LEAST: u64 = 64;
    asked >= LEAST && size > asked.saturating_add(asked / 2)
}

/// The bytes that a kmalloc cache is for, by its name.
fn kmalloc_size(name: &str) -> Option<u64> {
    let (before, size) = name.rsplit_once('-')?;
    if !before.contains("kmalloc") {
        return None;
    }
    let (digits, shift) = match size.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 10),
        None => size.strip_suffix('M').map_or((size, 0), |digits| (digits, 20)),
    };
    digits.parse::<u64>().ok()?.checked_shl(shift)
}

/// More descriptions of caches than there can be caches: copies for memory cgroups.
pub(crate) fn copies(measured: &Measured) -> Option<String> {
    const LEAST: u64 = 10_000;
    const EACH: u64 = 50;
    let pasted = measured.state.dump.pasted.as_ref();
    let head = pasted.and_then(|pasted| Some(pasted.totals?.caches?.1));
    let caches = head.unwrap_or(measured.lines.len() as u64);
    let line =
        measured.lines.iter().find(|line| line.cache.name == "kmem_cache" && !line.cache.bytes_only)?;
    let copies = line.cache.active_objects;
    (copies >= LEAST && copies / EACH > caches).then(|| {
        format!(
            "{} kmem_cache objects beside {caches} caches in the list are copies of caches for memory cgroups (kernels \
             3.8 to 5.8), most of them of cgroups that were removed (dying): services that restart, cron jobs, containers. \
             cgroup.memory=nokmem, or Linux 5.9, ends it",
            grouped(copies)
        )
    })
}

/// What weakens that a cache is a suspect of a leak: that much of it is free, or that its name stands for
/// others. `None` if nothing does.
pub(crate) fn no_suspect(line: &Line) -> Option<String> {
    const FREE_PERCENT: u64 = 40;
    let bytes = line.split.bytes;
    if line.cache.bytes_only || line.split.free < bytes / 100 * FREE_PERCENT {
        return None;
    }
    let entry = line.what;
    let merged = entry.map_or_else(Vec::new, |entry| Known::builtin().seen_merged_with(entry));
    let others = match &merged[..] {
        _ if line.cache.attrs.is_some() => String::new(),
        [] => "; SLUB merges caches of like size, and the user may be one of another name".into(),
        [first, ..] => {
            format!("; SLUB merges caches of like size ({first} was seen in it), and the user may be another")
        }
    };
    Some(format!(
        "{} of it, {}, are free objects: no suspect of a leak now, but it was fuller once{others}",
        percent(line.split.free, bytes),
        size(line.split.free)
    ))
}

#[cfg(test)]
mod tests {
    use super::{is_widened, kmalloc_size};

    #[test]
    fn objects_as_their_name_says_are_not_debugged() {
        for asked in [64, 96, 128, 192, 256, 1024, 8192] {
            assert!(!is_widened(asked, asked), "kmalloc-{asked}");
            assert!(!is_widened(asked + asked / 2, asked), "kmalloc-{asked}");
            assert!(is_widened(3 * asked, asked), "kmalloc-{asked}");
        }
        assert!(!is_widened(96, 8), "below a line of the CPU's cache alignment alone widens them");
    }

    #[test]
    fn sizes_in_names() {
        for (name, size) in [
            ("kmalloc-64", Some(64)),
            ("kmalloc-1k", Some(1024)),
            ("dma-kmalloc-8k", Some(8192)),
            ("kmalloc-rcl-96", Some(96)),
            ("kmalloc-rnd-01-2k", Some(2048)),
            ("kmalloc-part-01-2k", Some(2048)),
            ("dentry", None),
            ("size-64", None),
        ] {
            assert_eq!(kmalloc_size(name), size, "{name}");
        }
    }
}
