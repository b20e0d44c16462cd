//! Names for addresses of code: from a list of the kernel's symbols, or at least the module's.

use rustc_hash::FxHashMap;
use slablab_readers::compressed::Decompressed;
use slablab_readers::kallsyms::Kallsyms;
use slablab_report::error::{At, Error, Result};
use slablab_report::{Limit, files};
use slablab_trace::{Metadata, Symbol};
use std::path::{Path, PathBuf};

/// The list of the running kernel.
const LIVE: &str = "/proc/kallsyms";
/// perf's name for the kernel's own text; the symbol at its start follows.
const KERNEL_MAP: &str = "[kernel.kallsyms]";

/// Names addresses.
#[derive(Default)]
pub(super) struct Symbols {
    list: Option<Kallsyms>,
    /// The recording's addresses of the kernel's own text are by so much above those of the list.
    shift: u64,
    maps: Vec<Symbol>,
    /// Maps in which the list has no function of their module.
    unknown: Vec<bool>,
    known: FxHashMap<u64, String>,
    /// Addresses that kept no name.
    pub(super) nameless: u64,
    /// From where names are, or why there are none.
    pub(super) notes: Vec<String>,
}

impl Symbols {
    /// For a recording that has addresses: the list in `file`, else that of this machine if the recording is
    /// of its boot.
    ///
    /// # Errors
    /// A list that cannot be read, has no addresses, or is of another kernel; `force` takes it all the same.
    pub(super) fn of(metadata: &Metadata, file: Option<&PathBuf>, force: bool) -> Result<Symbols> {
        let mut symbols = Symbols { maps: metadata.symbols.clone(), ..Symbols::default() };
        match file {
            Some(path) => {
                let list = load(path)?;
                symbols.shift = shift(&list, metadata, path, force, &mut symbols.notes)?;
                symbols.notes.insert(0, format!("names of call sites are from {}", path.display()));
                symbols.list = Some(list);
            }
            None => match of_this_boot(metadata) {
                Err(why) => symbols.notes.push(format!(
                    "call sites are addresses: the recording has no names, and {why}; --kallsyms FILE names them \
                     (a copy of /proc/kallsyms of the recorded boot, or its System.map)"
                )),
                Ok(list) => {
                    symbols.notes.push("names of call sites are from /proc/kallsyms of this machine".into());
                    symbols.list = Some(list);
                }
            },
        }
        let is_unknown = |map: &Symbol| match (&symbols.list, module_of(map)) {
            (Some(list), Some(module)) => {
                symbols.shift != 0 || !list.has_module_at(module, map.start, map.length_bytes)
            }
            _ => false,
        };
        symbols.unknown = symbols.maps.iter().map(is_unknown).collect();
        Ok(symbols)
    }

    /// A call site as the recording has it, named if it is an address.
    pub(super) fn name(&mut self, given: &str) -> String {
        let Some(address) = given.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok())
        else {
            return given.into();
        };
        if let Some(name) = self.known.get(&address) {
            return name.clone();
        }
        let name = self.find(address).unwrap_or_else(|| {
            self.nameless += 1;
            given.into()
        });
        self.known.insert(address, name.clone());
        name
    }

    fn find(&self, address: u64) -> Option<String> {
        let of_module =
            self.maps.iter().zip(&self.unknown).find(|(map, _)| {
                module_of(map).is_some() && address.wrapping_sub(map.start) < map.length_bytes
            });
        let found = match (&self.list, of_module) {
            (Some(list), None) => list.find(address.wrapping_sub(self.shift)),
            (Some(list), Some((_, false))) => list.find(address),
            _ => None,
        };
        // With a shift, modules of the list lie elsewhere.
        let found = found.filter(|found| self.shift == 0 || found.module.is_none());
        match (found, of_module) {
            (Some(found), _) => {
                let module = found.module.map_or(String::new(), |module| format!(" [{module}]"));
                Some(format!("{}+{:#x}{module}", found.name, found.offset))
            }
            (None, Some((map, _))) => Some(format!("[{}]+{:#x}", module_of(map)?, address - map.start)),
            (None, None) => None,
        }
    }
}

/// The module of a map: perf calls it `[name]`, or has the path of its file.
fn module_of(map: &Symbol) -> Option<&str> {
    if map.name.starts_with(KERNEL_MAP) || map.name.starts_with("[guest.kernel") {
        return None;
    }
    if let Some(name) = map.name.strip_prefix('[') {
        return name.strip_suffix(']');
    }
    let file = map.name.rsplit('/').next()?;
    file.split_once(".ko").map(|(name, _)| name)
}

/// A list of symbols. A distribution's kernel with all its modules has 20 MiB.
const KALLSYMS: Limit = Limit::mib("a list of symbols", 128);

fn load(path: &Path) -> Result<Kallsyms> {
    let text = KALLSYMS.read(Decompressed::new(files::open(path).at(path)?).at(path)?, path)?;
    let list = Kallsyms::parse(&text);
    if !list.is_empty() {
        return Ok(list);
    }
    let what = if list.hidden() > 0 {
        "all addresses are 0: the kernel shows them to root alone"
    } else {
        "expected lines as in /proc/kallsyms (ffffffff81000000 T _text)"
    };
    Err(Error::new(path, what))
}

/// By how much the recording's kernel lies above that of the list.
fn shift(
    list: &Kallsyms,
    metadata: &Metadata,
    path: &Path,
    force: bool,
    notes: &mut Vec<String>,
) -> Result<u64> {
    let Some((symbol, start)) = text_start(metadata) else { return Ok(0) };
    let Some(listed) = list.address(symbol) else {
        if force {
            return Ok(0);
        }
        let what =
            format!("has no {symbol}, by which the recording says where its kernel is; --force takes it");
        return Err(Error::new(path, what));
    };
    if listed != start {
        // Of another boot the same kernel lies elsewhere (KASLR); a page of 4 KiB is the least distance.
        if listed.abs_diff(start) % 4096 != 0 && !force {
            let what = format!(
                "{symbol} is at {listed:#x}, in the recording at {start:#x}: not by whole pages apart, so it is the \
                 list of another kernel; --force takes it"
            );
            return Err(Error::new(path, what));
        }
        notes.push(format!(
            "{} is of another boot: {symbol} is at {listed:#x}, in the recording at {start:#x}; the kernel's own \
             functions are moved by the difference, functions of modules have no names",
            path.display()
        ));
    }
    Ok(start.wrapping_sub(listed))
}

/// The symbol at the start of the recorded kernel's text, and its address.
fn text_start(metadata: &Metadata) -> Option<(&str, u64)> {
    let map = metadata.symbols.iter().find(|map| map.name.starts_with(KERNEL_MAP))?;
    let symbol = &map.name[KERNEL_MAP.len()..];
    (!symbol.is_empty()).then_some((symbol, map.start))
}

/// This machine's list, if the recording is of its boot; else why it is not, or cannot be told.
fn of_this_boot(metadata: &Metadata) -> std::result::Result<Kallsyms, String> {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_string());
    let here = read("/proc/sys/kernel/osrelease").ok_or("this machine has no /proc")?;
    let recorded = metadata.release.as_deref().ok_or("it does not say which kernel was recorded")?;
    if recorded != here {
        return Err(format!("it is of {recorded}, this machine runs {here}"));
    }
    let (symbol, start) = text_start(metadata).ok_or("it does not say where its kernel was")?;
    let uptime = read("/proc/uptime").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let last = metadata.statistics.last_time_ns as f64 / 1e9;
    if uptime.is_some_and(|uptime| last > uptime + 1.0) {
        return Err("it is of an earlier boot: its clock is ahead of this machine's".into());
    }
    let list = load(Path::new(LIVE)).map_err(|error| error.to_string())?;
    match list.address(symbol) {
        Some(address) if address == start => Ok(list),
        _ => Err(format!("it is of another boot: {symbol} is elsewhere")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(name: &str, start: u64, length_bytes: u64) -> Symbol {
        Symbol { start, length_bytes, name: name.into() }
    }

    const TEXT: u64 = 0xffff_ffff_8100_0000;

    /// Names of addresses under a list whose `_text` is at `text`; the recording's kernel is at [`TEXT`].
    #[track_caller]
    fn check(text: u64, address: u64, expected: &str) {
        let list =
            format!("{text:x} T _text\n{:x} t alloc_it\nffffffffc0000010 t ext4_new [ext4]\n", text + 0x100);
        let file =
            std::env::temp_dir().join(format!("slablab-names-{}-{text:x}-{address:x}", std::process::id()));
        std::fs::write(&file, list).unwrap();
        let maps = vec![
            map("[kernel.kallsyms]_text", TEXT, 1 << 24),
            map("[ext4]", 0xffff_ffff_c000_0000, 0x1000),
            map("/lib/modules/6.1/kernel/xfs.ko.xz", 0xffff_ffff_c010_0000, 0x1000),
        ];
        let metadata = Metadata { symbols: maps, ..Metadata::default() };
        let symbols = Symbols::of(&metadata, Some(&file), false);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(symbols.unwrap().name(&format!("{address:#x}")), expected);
    }

    #[test]
    fn addresses_are_named_as_far_as_the_list_is_of_the_boot() {
        check(TEXT, TEXT + 0x124, "alloc_it+0x24");
        check(TEXT, 0xffff_ffff_c000_0018, "ext4_new+0x8 [ext4]");
        check(TEXT, 0xffff_ffff_c010_0018, "[xfs]+0x18");
        check(TEXT, 0x1234, "0x1234");
        // The kernel lay 2 MiB lower in the boot of the list: its modules were elsewhere, too.
        check(TEXT - 0x20_0000, TEXT + 0x124, "alloc_it+0x24");
        check(TEXT - 0x20_0000, 0xffff_ffff_c000_0018, "[ext4]+0x18");
    }

    #[test]
    fn a_list_of_another_kernel_is_refused() {
        let list = format!("{:x} T _text\n", TEXT + 0x123);
        let file = std::env::temp_dir().join(format!("slablab-names-other-{}", std::process::id()));
        let metadata =
            Metadata { symbols: vec![map("[kernel.kallsyms]_text", TEXT, 1)], ..Metadata::default() };
        std::fs::write(&file, list).unwrap();
        let of = |force| Symbols::of(&metadata, Some(&file), force).map(|_| ()).map_err(|error| error.what);
        let (refused, forced) = (of(false), of(true));
        std::fs::write(&file, "0000000000000000 T _text\n").unwrap();
        let hidden = of(false);
        std::fs::remove_file(&file).unwrap();
        assert!(refused.unwrap_err().contains("another kernel; --force takes it"));
        assert!(forced.is_ok());
        assert!(hidden.unwrap_err().contains("root alone"));
    }
}
