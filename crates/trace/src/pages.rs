//! String columns, decoded to ids without making a string per row.
//!
//! A column chunk of strings is a dictionary page and data pages of indices into it. Parquet's own reader
//! would give one reference-counted string per row, to be hashed again to get back the number that was there;
//! this one looks up each dictionary entry once and then copies numbers. Plain pages (the writer gave the
//! dictionary up, or another program wrote the file) are looked up row by row.
//!
//! Definition levels and indices are both in Parquet's hybrid of run-length and bit-packed runs ([`Hybrid`]).

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;

use crate::event::NONE;
use crate::texts::Table;

/// The strings of one column chunk.
pub(crate) struct TextChunk {
    pages: Box<dyn PageReader>,
    nullable: bool,
    /// The id of each dictionary entry.
    dictionary: Vec<u32>,
    page: Option<TextPage>,
    levels: Vec<u32>,
    ids: Vec<u32>,
}

struct TextPage {
    rows_left: usize,
    levels: Option<Hybrid>,
    values: Values,
}

enum Values {
    Indices(Hybrid),
    Plain(Vec<u8>, usize),
}

type Result<T> = std::result::Result<T, ParquetError>;

fn bad(why: impl Into<String>) -> ParquetError {
    ParquetError::General(why.into())
}

impl TextChunk {
    pub(crate) fn new(pages: Box<dyn PageReader>, nullable: bool) -> TextChunk {
        TextChunk { pages, nullable, dictionary: Vec::new(), page: None, levels: Vec::new(), ids: Vec::new() }
    }

    /// Appends the ids of up to `rows` rows to `out`; how many there were.
    pub(crate) fn read(&mut self, rows: usize, table: &mut Table, out: &mut Vec<u32>) -> Result<usize> {
        let mut done = 0;
        while done < rows {
            if self.page.as_ref().is_none_or(|page| page.rows_left == 0) && !self.next_page(table)? {
                break;
            }
            let page = self.page.as_mut().expect("next_page made one");
            let take = page.rows_left.min(rows - done);
            page.read(take, &self.dictionary, (&mut self.levels, &mut self.ids), table, out)?;
            done += take;
        }
        Ok(done)
    }

    fn next_page(&mut self, table: &mut Table) -> Result<bool> {
        while let Some(page) = self.pages.get_next_page()? {
            match page {
                Page::DictionaryPage { buf, num_values, .. } => {
                    let mut at = 0;
                    self.dictionary.clear();
                    for _ in 0..num_values {
                        self.dictionary.push(table.id(plain(&buf, &mut at)?));
                    }
                }
                Page::DataPage { buf, num_values, encoding, .. } => {
                    let mut at = 0;
                    if self.nullable {
                        let bytes = buf.get(..4).ok_or_else(|| bad("a page without definition levels"))?;
                        at = 4 + u32::from_le_bytes(bytes.try_into().expect("4 bytes")) as usize;
                    }
                    let levels = buf.get(if self.nullable { 4 } else { 0 }..at);
                    self.open(levels, buf.get(at..), num_values, encoding)?;
                    return Ok(true);
                }
                Page::DataPageV2 { buf, num_values, encoding, def_levels_byte_len, .. } => {
                    let at = def_levels_byte_len as usize;
                    self.open(buf.get(..at), buf.get(at..), num_values, encoding)?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn open(
        &mut self,
        levels: Option<&[u8]>,
        values: Option<&[u8]>,
        rows: u32,
        encoding: Encoding,
    ) -> Result<()> {
        let (Some(levels), Some(values)) = (levels, values) else {
            return Err(bad("definition levels reach beyond their page"));
        };
        let values = match encoding {
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => match values.split_first() {
                Some((&width, data)) if width <= 32 => Values::Indices(Hybrid::new(data, width)),
                Some((&width, _)) => return Err(bad(format!("dictionary indices of {width} bits"))),
                // A page of nulls only.
                None => Values::Indices(Hybrid::new(&[], 0)),
            },
            Encoding::PLAIN => Values::Plain(values.into(), 0),
            other => {
                return Err(bad(format!("strings are packed as {other:?}: expected a dictionary or plain")));
            }
        };
        let levels = self.nullable.then(|| Hybrid::new(levels, 1));
        self.page = Some(TextPage { rows_left: rows as usize, levels, values });
        Ok(())
    }
}

impl TextPage {
    fn read(
        &mut self,
        rows: usize,
        dictionary: &[u32],
        (levels, ids): (&mut Vec<u32>, &mut Vec<u32>),
        table: &mut Table,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        self.rows_left -= rows;
        levels.clear();
        let present = match &mut self.levels {
            None => rows,
            Some(hybrid) => {
                hybrid.read(rows, levels)?;
                levels.iter().map(|&level| level as usize).sum()
            }
        };
        ids.clear();
        match &mut self.values {
            Values::Indices(hybrid) => {
                hybrid.read(present, ids)?;
                for id in &mut *ids {
                    *id =
                        *dictionary.get(*id as usize).ok_or_else(|| bad("an index beyond its dictionary"))?;
                }
            }
            Values::Plain(buffer, at) => {
                for _ in 0..present {
                    ids.push(table.id(plain(buffer, at)?));
                }
            }
        }
        if present == rows {
            out.extend_from_slice(ids);
        } else {
            // Nulls come at random in a mix of kmalloc and named caches: select, never branch.
            ids.push(NONE);
            let mut next = 0;
            out.extend(levels.iter().map(|&level| {
                let id = ids[next];
                next += level as usize;
                if level == 0 { NONE } else { id }
            }));
        }
        Ok(())
    }
}

/// The string at `at` of a plain page: its length, then its bytes.
fn plain<'a>(buffer: &'a [u8], at: &mut usize) -> Result<&'a str> {
    let found = buffer.get(*at..).and_then(|rest| {
        let (length, rest) = rest.split_at_checked(4)?;
        rest.get(..u32::from_le_bytes(length.try_into().expect("4 bytes")) as usize)
    });
    let bytes = found.ok_or_else(|| bad("a string reaches beyond its page"))?;
    *at += 4 + bytes.len();
    std::str::from_utf8(bytes).map_err(|_| bad("a string is not UTF-8"))
}

/// Runs of equal values and groups of 8 bit-packed ones.
struct Hybrid {
    data: Vec<u8>,
    at: usize,
    width: u8,
    run: Run,
}

enum Run {
    Equal {
        value: u32,
        left: usize,
    },
    /// `bit` is the next value's place in `data`.
    Packed {
        bit: usize,
        left: usize,
    },
}

/// Bytes behind the data, so that a value can be read as 8 bytes wherever it is.
const PADDING: usize = 8;

impl Hybrid {
    fn new(data: &[u8], width: u8) -> Hybrid {
        let mut padded = Vec::with_capacity(data.len() + PADDING);
        padded.extend_from_slice(data);
        padded.resize(data.len() + PADDING, 0);
        Hybrid { data: padded, at: 0, width, run: Run::Equal { value: 0, left: 0 } }
    }

    /// Appends `count` values to `out`.
    fn read(&mut self, mut count: usize, out: &mut Vec<u32>) -> Result<()> {
        let mask = (1u64 << self.width) - 1;
        while count > 0 {
            match &mut self.run {
                Run::Equal { left: 0, .. } | Run::Packed { left: 0, .. } => self.next_run()?,
                Run::Equal { value, left } => {
                    let take = count.min(*left);
                    out.resize(out.len() + take, *value);
                    (*left, count) = (*left - take, count - take);
                }
                Run::Packed { bit, left } => {
                    let take = count.min(*left);
                    let (data, width, first) = (&self.data, self.width as usize, *bit);
                    out.extend((0..take).map(|index| {
                        let place = first + index * width;
                        let bytes: [u8; 8] = data[place / 8..place / 8 + 8].try_into().expect("8 bytes");
                        (u64::from_le_bytes(bytes) >> (place % 8) & mask) as u32
                    }));
                    *bit += take * width;
                    (*left, count) = (*left - take, count - take);
                }
            }
        }
        Ok(())
    }

    fn next_run(&mut self) -> Result<()> {
        let end = self.data.len() - PADDING;
        let short = || bad("a run reaches beyond its page");
        let mut header = 0u64;
        for shift in (0..).step_by(7) {
            let byte = *self.data[..end].get(self.at).filter(|_| shift < 35).ok_or_else(short)?;
            self.at += 1;
            header |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        let length = (header >> 1) as usize;
        if header & 1 == 1 {
            // The last group may be cut off by the end of the page, as some writers do.
            let bytes = (length * self.width as usize).min(end - self.at);
            let left =
                if self.width == 0 { length * 8 } else { (bytes * 8 / self.width as usize).min(length * 8) };
            self.run = Run::Packed { bit: self.at * 8, left };
            self.at += bytes;
        } else {
            let bytes = self.width.div_ceil(8) as usize;
            let value = self.data[..end].get(self.at..self.at + bytes).ok_or_else(short)?;
            let value = value.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
            self.run = Run::Equal { value, left: length };
            self.at += bytes;
        }
        Ok(())
    }
}
