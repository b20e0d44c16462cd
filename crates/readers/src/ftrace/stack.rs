//! Stacks between the events of a text recording, innermost frame first:
//!
//! ```text
//!     ffffffff816349cd kmem_cache_alloc_noprof+0x1d ([kernel.kallsyms])      perf script
//!     => kmem_cache_alloc                                                    tracefs, option stacktrace
//! => kmem_cache_alloc (ffffffff816349cd)                                     trace-cmd report
//! ```
//! perf writes the frames under their event, ftrace under a line of its own (`<stack trace>`).

use super::line::Line;
use crate::event::{Name, Names};

/// The most frames kept of a stack; the kernel records 127.
const FRAMES_LIMIT: usize = 256;

/// The frames read since the last event, innermost first.
#[derive(Default)]
pub(super) struct Frames {
    frames: Vec<String>,
    /// Whether an event that is left out came after the last one that is not: frames are those of that one.
    of_another: bool,
}

impl Frames {
    /// The frames that follow are of an event that is left out.
    pub(super) fn of_another(&mut self) {
        self.of_another = true;
    }

    /// Adds a line for which [`is_frame`] is true. Frames of programs are left out.
    pub(super) fn add(&mut self, line: &str) {
        if self.of_another || self.frames.len() >= FRAMES_LIMIT {
            return;
        }
        self.frames.extend(frame(line));
    }

    /// The stack of the event before, if it had one.
    pub(super) fn take(&mut self, names: &mut Names) -> Option<Name> {
        self.of_another = false;
        if self.frames.is_empty() {
            return None;
        }
        let frames: Vec<String> = self.frames.drain(..).rev().collect();
        Some(names.intern(&frames.join(";")))
    }
}

/// Whether a line that is no event stands before the frames of the event above it.
pub(super) fn is_head(line: &Line<'_>) -> bool {
    line.event == "kernel_stack" || line.fields.trim_start().starts_with("<stack trace")
}

/// Whether a line is a frame of a stack: ` => kmem_cache_alloc`, or an address and a symbol.
pub(super) fn is_frame(text: &str) -> bool {
    let Some(first) = text.split_whitespace().next() else { return false };
    if first == "=>" {
        return true;
    }
    // perf shows a frame it could not unwind as `0 [unknown] ([unknown])`.
    let is_address = first.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.starts_with(char::is_whitespace) && is_address && (first.len() >= 4 || text.ends_with(')'))
}

/// The kernel's function of a frame, with its offset if the line has one.
fn frame(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if first == "=>" {
        let name = words.next()?;
        return (!name.starts_with('<')).then(|| name.to_string());
    }
    // Of a kernel's image the addresses may be those of the file.
    let is_kernel = line.ends_with("vmlinux)") || line.ends_with("[kernel.kallsyms])");
    let address = u64::from_str_radix(first, 16).ok().filter(|address| is_kernel || address >> 63 == 1)?;
    match words.next() {
        Some(name) if !name.starts_with(['[', '(']) => Some(name.to_string()),
        _ => Some(format!("{address:#x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_the_kernels() {
        #[track_caller]
        fn check(line: &str, expected: Option<&str>) {
            assert!(is_frame(line), "{line}");
            assert_eq!(frame(line.trim_start()).as_deref(), expected, "{line}");
        }
        check("\tffffffff816349cd kmem_cache_alloc+0x1d ([kernel.kallsyms])", Some("kmem_cache_alloc+0x1d"));
        check("\tffffffffc0123456 ext4_alloc+0x6 ([ext4])", Some("ext4_alloc+0x6"));
        check("\tffffffffc0123456 [unknown] ([unknown])", Some("0xffffffffc0123456"));
        check("\t          401000 main+0x10 (/usr/bin/ls)", None);
        check("\t 27f1dc .__kmalloc (/boot/vmlinux)", Some(".__kmalloc"));
        check("\t0 [unknown] ([unknown])", None);
        check(" => kmem_cache_alloc", Some("kmem_cache_alloc"));
        check("=> getname_flags (ffffffff816349cd)", Some("getname_flags"));
        check(" => <ffffffff81000000>", None);
    }

    #[test]
    fn no_frames_are_other_lines() {
        for line in ["", "   ", "abcd efgh", "  no frame", "cpus=2"] {
            assert!(!is_frame(line), "{line:?}");
        }
    }
}
