//! What an instrumented image reports of its code: shim/reports.S.

use super::elf::Program;
use super::space::{Placed, copy, read, write_table};
use slablab_report::error::{At, Result};
use slablab_report::{Limit, read_text_at_most};
use std::collections::HashMap;
use std::path::Path;

/// The largest file of blocks that is read.
const BLOCKS: Limit = Limit::mib("a file of blocks", 16);

/// A record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Record {
    pub(crate) address: u64,
    what: u32,
    caller: u32,
}

/// What a record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Exchange,
    Block,
    /// Bytes that are written by one instruction.
    Fill,
}

impl Record {
    pub(crate) fn kind(self) -> Kind {
        match self.what >> 24 {
            0 => Kind::Read,
            1 => Kind::Write,
            2 => Kind::Exchange,
            3 => Kind::Block,
            _ => Kind::Fill,
        }
    }

    pub(crate) fn bytes(self) -> u32 {
        self.what & 0xFF_FFFF
    }
}

/// The reports of an image: where its records are, and what its code is.
#[derive(Debug)]
pub(crate) struct Reports {
    next: u64,
    records: u64,
    steps: u64,
    text: u64,
    /// By the byte of the text behind a block's report: the block's instructions, in parts.
    blocks: Vec<u16>,
    /// By the byte of the text: the function.
    functions: Vec<u16>,
    /// The functions' names. The last is of code outside of the image.
    pub(crate) names: Vec<String>,
}

impl Reports {
    /// `None` of a plain image.
    pub(super) fn of(program: &Program, placed: &Placed, path: &Path) -> Result<Option<Reports>> {
        let symbol = |name: &str| Some(program.symbol(name)?.checked_add_signed(placed.delta)).flatten();
        let all = ["slablab_next", "slablab_records", "slablab_steps"].map(symbol);
        let [Some(next), Some(records), Some(steps)] = all else { return Ok(None) };
        let [start, end] =
            ["slablab_text_start", "slablab_text_end"].map(|name| program.symbol(name).unwrap_or(0));
        let bytes = (end - start) as usize;
        let mut blocks = vec![0; bytes];
        let path = path.with_extension("blocks");
        for line in read_text_at_most(&path, BLOCKS)?.lines() {
            let block = line.split_once(' ').and_then(|(at, parts)| {
                Some((usize::from_str_radix(at, 16).ok()?, parts.parse::<u16>().ok()?))
            });
            let Some((at, parts)) = block.filter(|(at, _)| *at < bytes) else {
                return Err(format!("expected an offset and a number, found {line}")).at(&path);
            };
            blocks[at] = parts;
        }
        let (functions, names) = functions(program, start, bytes);
        Ok(Some(Reports {
            next,
            records,
            steps,
            text: start.wrapping_add_signed(placed.delta),
            blocks,
            functions,
            names,
        }))
    }

    /// Takes the records, and how often interrupts were taken off and the CPU's own data exchanged.
    pub(crate) fn take(&self, records: &mut Vec<Record>) -> [u64; 2] {
        let bytes = read(self.next) - self.records;
        records.resize(bytes as usize / size_of::<Record>(), Record::default());
        copy(self.records, records.as_mut_ptr().addr() as u64, bytes);
        write_table(self.next, &[self.records]);
        let steps = [read(self.steps), read(self.steps + 8)];
        if steps != [0, 0] {
            write_table(self.steps, &[0, 0]);
        }
        steps
    }

    /// Forgets the records.
    pub(super) fn forget(&self) {
        write_table(self.next, &[self.records]);
        write_table(self.steps, &[0, 0]);
    }

    /// The function that reported.
    #[inline]
    pub(crate) fn function(&self, record: Record) -> usize {
        self.function_at(record.caller.into())
    }

    /// The function of an address.
    #[inline]
    pub(crate) fn function_at(&self, address: u64) -> usize {
        let at = address.wrapping_sub(self.text) as usize;
        self.functions.get(at).map_or(self.names.len() - 1, |function| (*function).into())
    }

    /// The instructions of the block that reported, in parts.
    #[inline]
    pub(crate) fn instructions(&self, record: Record) -> u64 {
        let at = u64::from(record.caller).wrapping_sub(self.text) as usize;
        self.blocks.get(at).map_or(0, |parts| (*parts).into())
    }
}

/// The function of each byte from `start` on, and the names. Parts of a function that the compiler has split
/// are one.
fn functions(program: &Program, start: u64, bytes: usize) -> (Vec<u16>, Vec<String>) {
    let (mut names, mut known): (Vec<String>, HashMap<String, u16>) = (Vec::new(), HashMap::new());
    let mut of = Vec::with_capacity(bytes);
    let mut last: Option<(u64, u16)> = None;
    for address in (start..).take(bytes) {
        let (name, offset) = program.function(address).unwrap_or(("", 0));
        let begin = address - offset;
        let function = match last.filter(|(known, _)| *known == begin) {
            Some((_, function)) => function,
            None => {
                let name = name.split('.').next().unwrap_or(name);
                *known.entry(name.to_string()).or_insert_with(|| {
                    names.push(name.to_string());
                    names.len() as u16 - 1
                })
            }
        };
        last = Some((begin, function));
        of.push(function);
    }
    names.push("outside".into());
    (of, names)
}
