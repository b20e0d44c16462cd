//! Names of the frames of call chains: the function, with file and line where the program has debug
//! information.
//!
//! | of the frame's file | the name |
//! |---|---|
//! | debug information, in it or in /usr/lib/debug by its build id | `load (config.c:88)`, one for each
//! inlined function |
//! | a symbol alone | `load+0x1c` |
//! | neither | `[libx.so.1]+0x2345`, the address in the file |
//! | no file: code that the program made | `[no file]` |

use addr2line::Loader;
use object::{Object, ObjectSegment};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A mapping of code.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mapping {
    from: u64,
    to: u64,
    /// Of its first byte in the file.
    offset: u64,
    path: PathBuf,
}

/// The mappings of code in copies of /proc/self/maps, the last copy's last.
pub(crate) fn mappings(text: &str) -> Vec<Mapping> {
    let mapping = |line: &str| {
        let mut words = line.splitn(6, ' ');
        let (from, to) = words.next()?.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let is_code = words.next()?.contains('x');
        let offset = number(words.next()?)?;
        let path = words.nth(2)?.trim_start();
        Some(Mapping { from: number(from)?, to: number(to)?, offset, path: path.into() }).filter(|_| is_code)
    };
    text.lines().filter_map(mapping).collect()
}

/// A file of code, open.
struct Code {
    name: String,
    /// Where its segments are: in the file, and in memory as it is linked.
    segments: Vec<(std::ops::Range<u64>, u64)>,
    loaders: Vec<Loader>,
}

/// Names for addresses of code.
#[derive(Default)]
pub(crate) struct Frames {
    mappings: Vec<Mapping>,
    code: FxHashMap<PathBuf, Option<Code>>,
    names: FxHashMap<u64, String>,
}

impl Frames {
    /// Names by these mappings.
    pub(crate) fn of(mappings: Vec<Mapping>) -> Frames {
        Frames { mappings, ..Frames::default() }
    }

    /// Frames from the innermost, each an address behind a call, as the text of a chain: from the outermost,
    /// joined by `;`. Those in the file `without` are left out.
    pub(crate) fn chain(&mut self, frames: &[u64], without: &str) -> String {
        let mut chain: Vec<&str> = Vec::new();
        for at in frames {
            self.name(*at);
        }
        for at in frames.iter().rev() {
            let is_own = self.mapping(*at).is_some_and(|mapping| mapping.path.ends_with(without));
            let name = self.names.get(at).filter(|_| !is_own);
            chain.extend(name.map(String::as_str));
        }
        chain.join(";")
    }

    /// The mapping that an address behind a call is in. The last copy counts: what is loaded where something
    /// else was before is rare.
    fn mapping(&self, at: u64) -> Option<&Mapping> {
        self.mappings.iter().rfind(|mapping| mapping.from < at && at <= mapping.to)
    }

    fn name(&mut self, at: u64) {
        if self.names.contains_key(&at) {
            return;
        }
        let name = match self.mapping(at).cloned() {
            // The call is before the address.
            Some(mapping) => self.name_in(&mapping, at - 1),
            None => "[no file]".into(),
        };
        self.names.insert(at, name);
    }

    fn name_in(&mut self, mapping: &Mapping, at: u64) -> String {
        if !mapping.path.is_absolute() {
            // `[vdso]`, or code that the program made.
            let path = mapping.path.to_string_lossy();
            return if path.is_empty() { "[no file]".into() } else { path.into_owned() };
        }
        let code = self.code.entry(mapping.path.clone()).or_insert_with(|| Code::open(&mapping.path));
        let in_file = at - mapping.from + mapping.offset;
        match code {
            Some(code) => code.name(in_file),
            None => format!("[{}]+{in_file:#x}", file_name(&mapping.path)),
        }
    }
}

impl Code {
    /// `None`: the file is not there any more, or no ELF file.
    fn open(path: &Path) -> Option<Code> {
        let bytes = std::fs::read(path).ok()?;
        let object = object::File::parse(&*bytes).ok()?;
        let segments = object.segments().map(|segment| {
            let (offset, length) = segment.file_range();
            (offset..offset + length, segment.address())
        });
        let debug = object.build_id().ok().flatten().and_then(debug_file);
        let files = debug.into_iter().chain([path.to_path_buf()]);
        let loaders = files.filter_map(|file| Loader::new(file).ok()).collect();
        Some(Code { name: file_name(path), segments: segments.collect(), loaders })
    }

    /// The names of the code at an offset in the file, from the outermost function to the one that is inlined
    /// deepest.
    fn name(&self, in_file: u64) -> String {
        let segment = self.segments.iter().find(|(range, _)| range.contains(&in_file));
        let at = segment.map_or(in_file, |(range, address)| in_file - range.start + address);
        self.loaders
            .iter()
            .find_map(|loader| lines(loader, at))
            .or_else(|| self.loaders.iter().find_map(|loader| symbol(loader, at)))
            .unwrap_or_else(|| format!("[{}]+{at:#x}", self.name))
    }
}

/// Where Linux keeps a file's debug information apart from it.
fn debug_file(build_id: &[u8]) -> Option<PathBuf> {
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = hex.split_at_checked(2)?;
    let path = PathBuf::from(format!("/usr/lib/debug/.build-id/{first}/{rest}.debug"));
    File::open(&path).ok().map(|_| path)
}

/// Function, file and line; several joined by `;` where functions are inlined.
fn lines(loader: &Loader, at: u64) -> Option<String> {
    let mut frames = loader.find_frames(at).ok()?;
    let mut names = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        let function = frame.function.as_ref()?.demangle().ok()?.into_owned();
        let place = frame.location.as_ref().and_then(|location| {
            let file = file_name(Path::new(location.file?));
            Some(location.line.map_or(format!(" ({file})"), |line| format!(" ({file}:{line})")))
        });
        names.push(one(&function) + &place.unwrap_or_default());
    }
    names.reverse();
    (!names.is_empty()).then(|| names.join(";"))
}

fn symbol(loader: &Loader, at: u64) -> Option<String> {
    let symbol = loader.find_symbol_info(at)?;
    let name = addr2line::demangle_auto(symbol.name().into(), None);
    Some(format!("{}+{:#x}", one(&name), at - symbol.address()))
}

/// A name that no other one begins in.
fn one(name: &str) -> String {
    name.replace(';', ":")
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_code() {
        let text = "\
            55d0c0a00000-55d0c0a01000 r--p 00000000 08:01 12                         /usr/bin/a b\n\
            55d0c0a01000-55d0c0a02000 r-xp 00001000 08:01 12                         /usr/bin/a b\n\n\
            7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n\
            7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]\nx\n";
        let mapping = |from, to, offset, path: &str| Mapping { from, to, offset, path: path.into() };
        let expected = [
            mapping(0x55d0_c0a0_1000, 0x55d0_c0a0_2000, 0x1000, "/usr/bin/a b"),
            mapping(0x7f00_0000_0000, 0x7f00_0000_1000, 0, ""),
            mapping(0x7ffd_0000_0000, 0x7ffd_0000_2000, 0, "[vdso]"),
        ];
        assert_eq!(mappings(text), expected);
        let mut frames = Frames::of(mappings(text));
        // The innermost first; an address behind a call at the end of a mapping is in it.
        let chain = frames.chain(&[0x7ffd_0000_2000, 0x7f00_0000_0001, 1], "a b");
        assert_eq!(chain, "[no file];[no file];[vdso]");
        assert_eq!(frames.chain(&[0x55d0_c0a0_1001, 0x7ffd_0000_0001], "a b"), "[vdso]");
        assert_eq!(frames.chain(&[0x55d0_c0a0_1001], "c"), "[a b]+0x1000");
    }
}
