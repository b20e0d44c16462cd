//! What is known of the machine: the events that its kernel has, its symbols, its boot.

use std::fs;
use std::path::Path;

/// Events about slabs and pages, of all releases: kmalloc_node and kmem_cache_alloc_node are of those before
/// 6.1, mm_page_free_direct is of 2.6.
const EVENTS: [&str; 9] = [
    "kmalloc",
    "kmalloc_node",
    "kmem_cache_alloc",
    "kmem_cache_alloc_node",
    "kfree",
    "kmem_cache_free",
    "mm_page_alloc",
    "mm_page_free",
    "mm_page_free_direct",
];

/// Those that every release since 3.3 has.
pub(super) const FEW_EVENTS: [&str; 6] =
    ["kmalloc", "kmem_cache_alloc", "kfree", "kmem_cache_free", "mm_page_alloc", "mm_page_free"];

/// The events that the kernel of the tracefs at `root` has; none if that cannot be read.
pub(super) fn events(root: &Path) -> Vec<String> {
    let has = |event: &&&str| root.join("events/kmem").join(**event).is_dir();
    EVENTS.iter().filter(has).map(|event| event.to_string()).collect()
}

/// The text of /proc/kallsyms; `None` if the kernel shows no addresses to this user.
pub(super) fn kallsyms() -> Option<Vec<u8>> {
    let text = fs::read("/proc/kallsyms").ok()?;
    let has_addresses = text.split(|&byte| byte == b'\n').take(64).any(|line| {
        let address = line.split(|&byte| byte == b' ').next().unwrap_or(&[]);
        address.iter().any(|&digit| digit != b'0')
    });
    has_addresses.then_some(text)
}

/// A word of a file of /proc.
pub(super) fn word(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.split_whitespace().next()?.to_string())
}

/// Seconds since the boot.
pub(super) fn up_s() -> Option<f64> {
    word("/proc/uptime")?.parse().ok()
}
