//! Stubs: symbols that the allocator names and neither the tree's objects nor the shim define.
//!
//! A function's stub calls the shim's `slablab_missing` with its name and its caller. Data is zeros: static
//! keys and tracepoints are off then. A symbol is a function if a call or a jump to it is among the
//! relocations. A function whose address alone is taken is data: whoever calls it is told its name by its
//! address, since no page of data is executable.

use object::elf::{R_X86_64_PLT32, SHF_ALLOC};
use object::read::elf::ElfFile64;
use object::{
    Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags, SymbolIndex,
};
use std::collections::HashMap;
use std::fmt::Write;

/// Bytes of each symbol of data.
const DATA_BYTES: usize = 4096;

/// Sections that nothing in an image reads: instructions of other CPUs, tables of the unwinder.
const UNREAD: [&str; 3] = [".altinstr_replacement", ".discard", ".orc_"];

/// Undefined symbols by name, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stubs {
    pub(super) functions: Vec<String>,
    pub(super) data: Vec<String>,
}

impl Stubs {
    /// The undefined symbols of an object, but those that the layout of an image defines.
    ///
    /// # Errors
    /// What is no object of x86-64.
    pub(super) fn of(object: &[u8], layout: &str) -> Result<Stubs, object::Error> {
        let object = ElfFile64::<object::Endianness>::parse(object)?;
        let mut found: HashMap<SymbolIndex, (String, bool)> = HashMap::new();
        for symbol in object.symbols().filter(|symbol| symbol.is_undefined() && !symbol.is_weak()) {
            let name = symbol.name()?;
            if !name.is_empty() && !defines(layout, name) {
                found.insert(symbol.index(), (name.into(), false));
            }
        }
        for section in object.sections() {
            let is_read =
                matches!(section.flags(), SectionFlags::Elf { sh_flags, .. } if sh_flags.contains(SHF_ALLOC));
            let name = section.name()?;
            if !is_read || UNREAD.iter().any(|unread| name.starts_with(unread)) {
                continue;
            }
            for (_, relocation) in section.relocations() {
                let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
                let calls =
                    matches!(relocation.flags(), RelocationFlags::Elf { r_type } if r_type == R_X86_64_PLT32);
                if let Some((_, is_called)) = found.get_mut(&symbol) {
                    *is_called |= calls;
                }
            }
        }
        let mut stubs = Stubs::default();
        for (name, is_called) in found.into_values() {
            if is_called { &mut stubs.functions } else { &mut stubs.data }.push(name);
        }
        stubs.functions.sort();
        stubs.data.sort();
        Ok(stubs)
    }

    /// Adds those of another image.
    pub(super) fn add(&mut self, other: Stubs) {
        for (list, more) in [(&mut self.functions, other.functions), (&mut self.data, other.data)] {
            list.extend(more);
            list.sort();
            list.dedup();
        }
    }

    /// The assembler's source of all stubs.
    pub(super) fn source(&self) -> String {
        let mut text = String::from("\t.section .rodata.slablab_names,\"a\"\n");
        let line = "writing to a string";
        for (at, name) in self.functions.iter().enumerate() {
            writeln!(text, ".Lname{at}:\t.asciz \"{name}\"").expect(line);
        }
        text += "\t.text\n";
        for (at, name) in self.functions.iter().enumerate() {
            write!(
                text,
                "\t.globl {name}\n\t.type {name}, @function\n{name}:\n\tlea .Lname{at}(%rip), %rdi\n\
                 \tmov (%rsp), %rsi\n\tjmp slablab_missing\n\t.size {name}, . - {name}\n"
            )
            .expect(line);
        }
        text += "\t.section .bss.slablab_data,\"aw\",@nobits\n";
        for name in &self.data {
            write!(
                text,
                "\t.balign 64\n\t.globl {name}\n\t.type {name}, @object\n{name}:\n\t.skip {DATA_BYTES}\n\
                 \t.size {name}, {DATA_BYTES}\n"
            )
            .expect(line);
        }
        text + "\t.section .note.GNU-stack,\"\",@progbits\n"
    }
}

/// Whether a linker script assigns to a symbol.
fn defines(layout: &str, name: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '.';
    layout.match_indices(name).any(|(at, _)| {
        let rest = layout[at + name.len()..].trim_start();
        let begins = layout[..at].chars().next_back().is_none_or(|char| !is_part(char));
        begins && rest.starts_with('=') && !rest.starts_with("==")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_a_layout_are_defined() {
        let layout =
            "SECTIONS { . = 0x1000; __start_a = .; PROVIDE(b= .); PROVIDE_HIDDEN (c = 1); a_size == 3; }";
        let check = |name: &str, expected: bool| assert_eq!(defines(layout, name), expected, "{name}");
        check("__start_a", true);
        check("b", true);
        check("c", true);
        check("a", false);
        check("a_size", false);
        check("SECTIONS", false);
    }

    #[test]
    fn a_stub_names_itself() {
        let stubs = Stubs { functions: vec!["queue_work_on".into()], data: vec!["system_wq".into()] };
        let source = stubs.source();
        for part in [".asciz \"queue_work_on\"", "jmp slablab_missing", "system_wq:\n\t.skip 4096"] {
            assert!(source.contains(part), "{part}: {source}");
        }
    }
    #[test]
    fn calls_are_functions_and_the_rest_is_data() {
        let folder = std::env::temp_dir().join(format!("slablab-stubs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let [source, object] = ["a.c", "a.o"].map(|name| folder.join(name));
        let text = "extern int called(void), taken(void), jumped(void), laid, read_only, weak(void) __attribute__((weak));\n\
                    int (*pointer)(void) = taken;\n\
                    int defined(void) { return called() + read_only + laid + (weak ? 1 : 0); }\n\
                    int last(void) { return jumped(); }\n";
        std::fs::write(&source, text).expect("a file");
        let gcc = ["-O2", "-fno-pic", "-mcmodel=kernel", "-c", "-o"];
        let done = std::process::Command::new("gcc").args(gcc).arg(&object).arg(&source).status();
        assert!(done.expect("gcc runs").success());
        let bytes = std::fs::read(&object).expect("an object");
        let _ = std::fs::remove_dir_all(&folder);
        let stubs = Stubs::of(&bytes, "laid = .;").expect("an object");
        let expected = Stubs {
            functions: vec!["called".into(), "jumped".into()],
            data: vec!["read_only".into(), "taken".into()],
        };
        assert_eq!(stubs, expected);
    }
}
