//! The files in which kbuild keeps how it made an object: `.slub.o.cmd` beside `slub.o`.
//!
//! ```text
//! savedcmd_mm/slub.o := gcc .. -c -o mm/slub.o /tree/mm/slub.c  ; ./tools/objtool/objtool .. mm/slub.o
//! source_mm/slub.o := /tree/mm/slub.c
//! deps_mm/slub.o := \
//!     $(wildcard include/config/NUMA) \
//!   /tree/include/linux/mm.h \
//! ```
//!
//! Before 6.2 the variable was `cmd_mm/slub.o`. In the command a `$` is doubled, and `#` is `$(pound)`.

use std::path::{Path, PathBuf};

/// Has the compiler call a function at the begin of each block.
pub(super) const COVERAGE: &str = "-fsanitize-coverage=trace-pc";

/// Flags of what reports: what is linked to the allocator is none of its accesses.
const DETECTOR: [&str; 3] = ["-fsanitize=thread", "-D__KCSAN_INSTRUMENT_BARRIERS__", COVERAGE];

/// How an object was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// The compiler's command alone, word by word.
    words: Vec<String>,
    /// The source as the command names it.
    source: String,
    /// What the compiler read, as it named the files.
    pub(super) read: Vec<String>,
}

/// Another source that is compiled in the same way.
pub(super) struct Other<'a> {
    /// The source, absolute.
    pub(super) source: &'a Path,
    /// The object, absolute.
    pub(super) object: &'a Path,
    /// Flags that come after all others.
    pub(super) flags: &'a [String],
}

impl Made {
    /// Reads the file about the object `object`, as `mm/slub.o`.
    pub(super) fn parse(text: &str, object: &str) -> Option<Made> {
        let value = |name: &str| {
            let start = format!("{name}_{object} :=");
            text.lines().find_map(|line| line.strip_prefix(&start)).map(str::trim)
        };
        let line = value("savedcmd").or_else(|| value("cmd"))?;
        let line = line.replace("$(pound)", "#").replace("$$", "$");
        let source = value("source")?.to_string();
        let start = format!("deps_{object} :=");
        let list = text.lines().skip_while(|line| !line.starts_with(&start)).skip(1);
        let list =
            list.map(|line| line.trim().trim_end_matches('\\').trim()).take_while(|name| !name.is_empty());
        let files = list.filter(|name| !name.starts_with("$("));
        let read = std::iter::once(source.clone()).chain(files.map(str::to_string)).collect();
        Some(Made { words: words(&line), source, read })
    }

    /// The command line for another source, in the same folder.
    pub(super) fn of(&self, other: &Other) -> Vec<String> {
        let is_assembler = other.source.extension().is_some_and(|end| end == "S");
        let stem = other.source.file_stem().unwrap_or_default().to_string_lossy();
        let mut command = Vec::new();
        let mut words = self.words.iter().peekable();
        while let Some(word) = words.next() {
            let is_pair = matches!(word.as_str(), "-o" | "--param" | "-include");
            let value = if is_pair { words.next().map_or("", String::as_str) } else { "" };
            let is_left_out = match word.as_str() {
                "-o" | "-c" => true,
                "--param" => value.starts_with("tsan-"),
                // An assembler has no types.
                "-include" => is_assembler && value.ends_with("compiler_types.h"),
                word => {
                    *word == self.source
                        || DETECTOR.contains(&word)
                        || ["-Wp,-MMD,", "-Wp,-MD,", "--param=tsan-", "-DKBUILD_", "-D__KBUILD_MODNAME="]
                            .iter()
                            .any(|start| word.starts_with(start))
                }
            };
            if !is_left_out {
                command.push(word.clone());
                command.extend(is_pair.then(|| value.to_string()));
            }
        }
        let name = |what: &str| format!("-DKBUILD_{what}=\"{stem}\"");
        let symbol: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        command.extend(["BASENAME", "MODNAME", "MODFILE"].map(name));
        command.push(format!("-D__KBUILD_MODNAME=kmod_{symbol}"));
        command.extend(is_assembler.then(|| "-D__ASSEMBLY__".to_string()));
        command.extend(other.flags.iter().cloned());
        let path = |path: &Path| path.to_string_lossy().into_owned();
        command.push(format!("-Wp,-MMD,{}", path(&other.object.with_extension("d"))));
        command.extend(["-c".into(), "-o".into(), path(other.object), path(other.source)]);
        command
    }
}

/// The file about an object: `mm/.slub.o.cmd` of `mm/slub.o`.
pub(super) fn file_of(object: &str) -> PathBuf {
    let path = Path::new(object);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.cmd"))
}

/// The words of the first command of a line of a shell, without quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' => words.extend(word.take()),
            ';' | '&' | '|' | '\n' => break,
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '\'' => word.get_or_insert_default().extend(chars.by_ref().take_while(|char| *char != '\'')),
            '"' => quoted(&mut chars, word.get_or_insert_default()),
            char => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}

/// Adds text in double quotes to a word.
fn quoted(chars: &mut std::str::Chars<'_>, word: &mut String) {
    while let Some(char) = chars.next().filter(|char| *char != '"') {
        match char {
            '\\' => word.extend(chars.next()),
            char => word.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "cmd_mm/a.o := gcc -Wp,-MMD,mm/.a.o.d -I/tree/include -include /tree/compiler_types.h -O2 \
        -fsanitize=thread --param tsan-distinguish-volatile=1 --param ssp-buffer-size=4 -DKBUILD_MODFILE='\"mm/a\"' \
        -DKBUILD_BASENAME='\"a\"' -D__KBUILD_MODNAME=kmod_a -DX=\"$(pound)$$\" -c -o mm/a.o /tree/mm/a.c   ; ./objtool mm/a.o\n\
        \n\
        source_mm/a.o := /tree/mm/a.c\n\
        \n\
        deps_mm/a.o := \\\n    $(wildcard include/config/NUMA) \\\n  /tree/include/b.h \\\n  include/generated/c.h \\\n\
        \n\
        mm/a.o: $(deps_mm/a.o)\n";

    #[test]
    fn both_forms_are_read() {
        let new =
            OLD.replace("\ncmd_", "\nsavedcmd_").replacen("cmd_", "savedcmd_", 1).replace("  ; ", " && ");
        let made = Made::parse(OLD, "mm/a.o").expect("the form before 6.2");
        assert_eq!(Made::parse(&new, "mm/a.o").as_ref(), Some(&made));
        assert_eq!(made.read, ["/tree/mm/a.c", "/tree/include/b.h", "include/generated/c.h"]);
        assert_eq!(Made::parse(OLD, "mm/b.o"), None);
    }

    #[test]
    fn another_source_has_the_same_flags() {
        let made = Made::parse(OLD, "mm/a.o").expect("a command");
        let check = |source: &str, expected: &str| {
            let other = Other {
                source: Path::new(source),
                object: Path::new("/o/shim.o"),
                flags: &["-DRELEASE=7".to_string()],
            };
            assert_eq!(made.of(&other).join(" "), expected);
        };
        let names = "-DKBUILD_BASENAME=\"shim\" -DKBUILD_MODNAME=\"shim\" -DKBUILD_MODFILE=\"shim\" \
                     -D__KBUILD_MODNAME=kmod_shim";
        check(
            "/s/shim.c",
            &format!(
                "gcc -I/tree/include -include /tree/compiler_types.h -O2 --param ssp-buffer-size=4 -DX=#$ {names} \
                 -DRELEASE=7 -Wp,-MMD,/o/shim.d -c -o /o/shim.o /s/shim.c"
            ),
        );
        check(
            "/s/shim.S",
            &format!(
                "gcc -I/tree/include -O2 --param ssp-buffer-size=4 -DX=#$ {names} -D__ASSEMBLY__ -DRELEASE=7 \
                 -Wp,-MMD,/o/shim.d -c -o /o/shim.o /s/shim.S"
            ),
        );
    }

    #[test]
    fn words_end_where_the_command_ends() {
        let check = |line: &str, expected: &[&str]| assert_eq!(words(line), expected, "{line}");
        check("gcc  -c a.c ; objtool a.o", &["gcc", "-c", "a.c"]);
        check("gcc -DA='\"x y\"' \"b c\" d\\ e && f", &["gcc", "-DA=\"x y\"", "b c", "d e"]);
        check("gcc -DA='' ''", &["gcc", "-DA=", ""]);
        check("", &[]);
    }

    #[test]
    fn the_file_is_beside_the_object() {
        assert_eq!(file_of("mm/slub.o"), Path::new("mm/.slub.o.cmd"));
        assert_eq!(file_of("a.o"), Path::new(".a.o.cmd"));
    }
}
