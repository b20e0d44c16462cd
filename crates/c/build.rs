//! How the shared library is linked: the name under which programs look for it when they start, that it
//! stays, with which unwinder, and which of its functions lie together.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libslablab.so.0");
    // Threads that end and processes that fork call into it, and memory it gave is in use: closed, it must
    // stay.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    take_unwinder_along();
    pack_relocations();
    order_functions();
    // For tests that need the rights of root: others see them as ignored.
    println!("cargo::rustc-check-cfg=cfg(built_by_root)");
    if fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0) {
        println!("cargo::rustc-cfg=built_by_root");
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// A library of the linker's compiler, by its file's name.
fn library(name: &str) -> Option<PathBuf> {
    let linker = Some(variable("RUSTC_LINKER")).filter(|linker| !linker.is_empty());
    let mut command = Command::new(linker.as_deref().unwrap_or("cc"));
    let said = command.arg(format!("-print-file-name={name}")).output().ok()?;
    let file = PathBuf::from(String::from_utf8_lossy(&said.stdout).trim());
    // Without such a file a compiler prints the name alone.
    (file.is_absolute() && file.exists()).then_some(file)
}

/// Links gcc's static unwinder, if the linker's compiler has one. Rust's library needs an unwinder for
/// panics; the shared one costs every process that has no other use for it 92 KiB. An exception of C++ passes
/// no frame of the library that has something to clean up, so the two never work on one frame.
fn take_unwinder_along() {
    let file = library("libgcc_eh.a");
    if let Some(folder) = file.as_deref().and_then(Path::parent) {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// Has the linker write relative relocations as bits, if the C library reads them so: glibc does from 2.36
/// on, and says by a version that it does. 1,600 of them have 38 KiB otherwise, which the dynamic linker
/// reads in each process.
fn pack_relocations() {
    const VERSION: &[u8] = b"GLIBC_ABI_DT_RELR\0";
    let text = library("libc.so.6").and_then(|file| fs::read(file).ok()).unwrap_or_default();
    if text.windows(VERSION.len()).any(|part| part == VERSION) {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,pack-relative-relocs");
    }
}

/// The ends of the v0 symbols of variables that start with zeros and that each process writes. Of the last
/// one only the beginning is written: it is in the last page of the heap.
const WRITTEN: [&str; 30] = [
    "4area5AREAS",
    "4area6OPENED",
    "4fork9ELSEWHERE",
    "5space15COMMITTED_BYTES",
    "5start8STARTING",
    "5stats14METADATA_BYTES",
    "6memory4MAPS",
    "6memory5MARKS",
    "6memory6MEMMAP",
    "6memory7PAGEMAP",
    "6memory6PLACES",
    "6memory11NODE_FRAMES",
    "6region4KEPT",
    "6thread4LEFT",
    "6thread7THREADS",
    "6thread8SLOTLESS",
    "6upkeep3DUE",
    "6upkeep9LOOKED_NS",
    "7per_cpu6PLACES",
    "7per_cpu6SERVED",
    "9directory9DIRECTORY",
    "9page_size4SIZE",
    "10slot_space5LINES",
    "11boot_memory11BOOT_MEMORY",
    "6starts7ENTRIES",
    "6thread12THREADS_MOST",
    "6thread6STATES",
    "6caches6MAKING",
    "6engine4HEAP",
    "4note5NOTES",
];

/// The kernel maps so many bytes of a file around a page that a process touches: a window by address, or a
/// piece of the page cache, which is one by offset in the file. So both have the same remainder.
const WINDOW: u32 = 0x10000;
/// Where in a window the code begins: a program that allocates once runs 108 KiB of it, others 170. So each
/// touches a part of the first window, and hardly more than it runs of the last one.
const FIRST: u32 = 0x5000;

/// Has the linker put the functions that programs run at the start of the code. The kernel maps 64 KiB of a
/// file around each page that a process touches: spread over the library, those functions make most of its
/// code resident.
///
/// The list has v0 symbols, which name the types of a generic function. Its legacy symbols are the same for
/// all engines but for a hash.
///
/// It is a part of a linker script, added to the linker's own. GNU ld and lld take it; gold and mold do not,
/// and link as without it.
fn order_functions() {
    println!("cargo::rerun-if-changed=hot-functions");
    println!("cargo::rustc-check-cfg=cfg(ordered_functions)");
    let linker = format!("{} {}", variable("CARGO_ENCODED_RUSTFLAGS"), variable("RUSTC_LINKER"));
    let other = ["gold", "mold", "wild"].iter().any(|name| linker.contains(name));
    if other || variable("CARGO_CFG_TARGET_OS") != "linux" || variable("CARGO_CFG_TARGET_ENV") != "gnu" {
        return;
    }
    if !linker.contains("symbol-mangling-version=v0") {
        println!(
            "cargo::warning=each process will hold 1 MB more of libslablab.so: add the flags of \
             .cargo/config.toml to RUSTFLAGS, which replaces them"
        );
        return;
    }
    println!("cargo::rustc-cfg=ordered_functions");
    let list = fs::read_to_string("hot-functions").expect("crates/c/hot-functions can be read");
    let each = |patterns: &[&str]| -> String {
        let line = |start| {
            let some: Vec<String> = patterns.iter().map(|pattern| pattern.replace('@', start)).collect();
            format!("    *({})\n", some.join(" "))
        };
        list.lines().map(line).collect()
    };
    // The short sections that each process uses, which linkers put behind the code otherwise. Then the code;
    // `.text` alone holds what the C library adds to each program: it runs at the start. A function of the
    // compiler's cold ones has a prefix of its own.
    let mut script =
        format!("SECTIONS\n{{\n  .init ALIGN({WINDOW}) + {FIRST} : {{ KEEP(*(SORT_NONE(.init))) }}\n");
    script += "  .fini : { KEEP(*(SORT_NONE(.fini))) }\n  .plt : { *(.plt) *(.iplt) }\n";
    script += "  .text : {\n    *(EXCLUDE_FILE(*libgcc_eh.a*) .text)\n";
    script += &each(&[".text.@*", ".text.unlikely.@*"]);
    // The constants of those functions, next to what the dynamic linker reads, and a mapping with it: the
    // other constants are behind the code.
    script += "  }\n}\nINSERT AFTER .rela.dyn;\nSECTIONS\n{\n  .rela.plt : { *(.rela.plt) }\n";
    script += "  .relr.dyn : { *(.relr.dyn) }\n  .rodata_first : {\n    *(.rodata.cst*)\n";
    script += &each(&[".rodata.@*", ".rodata.unlikely.@*", ".rodata..Lswitch.table.@*"]);
    script += "    *(.rodata.*14slablab_malloc7classes*)\n    *(.rodata.str*)\n";
    script += "    *(.rodata..Lanon.*)\n  }\n}\nINSERT AFTER .rela.dyn;\n";
    // Variables that each process writes at its start: small ones, which may lie between tables of which
    // little is written, and then the heap, of which all is.
    script += "SECTIONS\n{\n  .bss : {\n";
    script += &WRITTEN.map(|name| format!("    *(.bss.*{name} .bss.*{name}.*)\n")).concat();
    script += "  }\n}\nINSERT AFTER .probes;\n";
    let file = PathBuf::from(variable("OUT_DIR")).join("order.ld");
    fs::write(&file, script).expect("the build script's folder can be written to");
    println!("cargo::rustc-cdylib-link-arg=-T{}", file.display());
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,max-page-size={WINDOW}");
}
