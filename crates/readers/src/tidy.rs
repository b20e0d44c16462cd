//! Tidy event CSVs: recordings that another program has turned into one row per event. Two dialects, told
//! apart by their header:
//!
//! - `t_us,cpu,pid,comm,event,ptr_or_pfn,cache,bytes_req,bytes_alloc,order,gfp,node,call_site`: microseconds
//!   from the recording's first event;
//! - `seq,ts,cpu,pid,comm,ev,ptr,cache,dir,bytes_req,bytes_alloc,gfp,node,call_site,extra`: seconds; for page
//!   events `ptr` is the frame and `bytes_alloc` the order; `dir` is the cache's directory in
//!   /sys/kernel/slab, joined by the recorder; `extra` is a marker's text or a page's migrate type (`mt=0`).
//!
//! Rows come in file order. Rows of other events (scheduling, lists of the page allocator) are counted as
//! skipped.

use std::io::Read;

use crate::error::ReadError;
use crate::event::{
    Alloc, CutOff, Event, Free, Gfp, Header, Item, Kind, Name, Names, PageAlloc, PageFree, Site, Source,
    Tally,
};
use crate::lines::Csv;
use crate::text::number;

/// A tidy event CSV being read. See [`Source`] for its stream.
pub struct Tidy<R> {
    csv: Csv<R>,
    columns: Columns,
    header: Header,
    names: Names,
    tally: Tally,
    last_ns: u64,
    ended: bool,
}

/// Where each value is; `None` where a dialect does not have it.
struct Columns {
    time: usize,
    /// Decimal digits from the time column's unit to nanoseconds.
    time_digits: u32,
    cpu: usize,
    pid: usize,
    comm: usize,
    event: usize,
    address: usize,
    cache: usize,
    dir: Option<usize>,
    bytes_req: usize,
    bytes_alloc: usize,
    order: usize,
    gfp: usize,
    node: usize,
    call_site: usize,
    extra: Option<usize>,
}

impl<R: Read> Tidy<R> {
    /// Reads the header line of `reader`, which is not compressed (see [`crate::compressed`]).
    ///
    /// # Errors
    /// A missing column, or `reader`'s error.
    pub fn new(reader: R) -> Result<Self, ReadError> {
        let mut csv = Csv::new(reader)?;
        csv.read_up_to_a_cut();
        let by_seconds = csv.find("ts").is_some();
        let pick = |seconds, micros| csv.column(if by_seconds { seconds } else { micros });
        let columns = Columns {
            time: pick("ts", "t_us")?,
            time_digits: if by_seconds { 9 } else { 3 },
            cpu: csv.column("cpu")?,
            pid: csv.column("pid")?,
            comm: csv.column("comm")?,
            event: pick("ev", "event")?,
            address: pick("ptr", "ptr_or_pfn")?,
            cache: csv.column("cache")?,
            dir: csv.find("dir"),
            bytes_req: csv.column("bytes_req")?,
            bytes_alloc: csv.column("bytes_alloc")?,
            order: pick("bytes_alloc", "order")?,
            gfp: csv.column("gfp")?,
            node: csv.column("node")?,
            call_site: csv.column("call_site")?,
            extra: csv.find("extra"),
        };
        let clock = if by_seconds { "seconds since boot" } else { "since the first event" };
        let header = Header { clock: Some(clock.into()), ..Header::default() };
        let (names, tally) = (Names::new(), Tally::default());
        Ok(Tidy { csv, columns, header, names, tally, last_ns: 0, ended: false })
    }

    /// The event of the current row, `None` if it is of another kind.
    fn event(&mut self) -> Result<Option<Event>, ReadError> {
        let Some(kind) = self.kind()? else { return Ok(None) };
        let Columns { time, time_digits, cpu, pid, comm, .. } = self.columns;
        let decimal = scaled(self.csv.field(time), time_digits);
        Ok(Some(Event {
            time_ns: decimal.ok_or_else(|| self.csv.error(time, "a decimal number"))?,
            cpu: self.csv.number(cpu)? as u32,
            pid: self.csv.field(pid).parse().map_err(|_| self.csv.error(pid, "a task number"))?,
            comm: self.name(comm),
            context: None,
            stack: None,
            kind,
        }))
    }

    fn kind(&mut self) -> Result<Option<Kind>, ReadError> {
        let columns = &self.columns;
        Ok(Some(match self.csv.field(columns.event) {
            "kmalloc" | "kmalloc_node" => Kind::Kmalloc(self.alloc(true)?),
            "kmem_cache_alloc" | "kmem_cache_alloc_node" => Kind::CacheAlloc(self.alloc(false)?),
            "kfree" => Kind::Kfree(self.free()?),
            "kmem_cache_free" => Kind::CacheFree(self.free()?),
            "mm_page_alloc" => Kind::PageAlloc(PageAlloc {
                pfn: self.address()?,
                order: self.csv.number(columns.order)? as u32,
                gfp: self.gfp(),
                migratetype: self.extra().and_then(|extra| extra.strip_prefix("mt=")?.parse().ok()),
            }),
            "mm_page_free" => Kind::PageFree(PageFree {
                pfn: self.address()?.ok_or_else(|| self.csv.error(columns.address, "a frame number"))?,
                order: self.csv.number(columns.order)? as u32,
            }),
            "tracing_mark_write" => match columns.extra {
                Some(extra) => Kind::Mark(self.names.intern(self.csv.field(extra))),
                None => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }

    /// `flags_decide`: only the flags say whether a kmalloc is accounted, while a cache may be so as a whole.
    fn alloc(&mut self, flags_decide: bool) -> Result<Alloc, ReadError> {
        let Columns { cache, dir, bytes_req, bytes_alloc, node, .. } = self.columns;
        let node = match self.csv.field(node) {
            "" => None,
            text => Some(text.parse().map_err(|_| self.csv.error(node, "a node or -1"))?),
        };
        let gfp = self.gfp();
        let account = |name: Name| self.names.text(name).split('|').any(|flag| flag.ends_with("_ACCOUNT"));
        Ok(Alloc {
            accounted: gfp.names.map(account).filter(|&account| account || flags_decide),
            call_site: self.site(),
            ptr: self.address()?,
            cache: self.name(cache),
            dir: dir.and_then(|dir| self.name(dir)),
            bytes_req: self.csv.number(bytes_req)?,
            bytes_alloc: self.csv.number(bytes_alloc)?,
            gfp,
            node,
        })
    }

    fn free(&mut self) -> Result<Free, ReadError> {
        let Columns { cache, dir, .. } = self.columns;
        Ok(Free {
            call_site: self.site(),
            ptr: self.address()?,
            cache: self.name(cache),
            dir: dir.and_then(|dir| self.name(dir)),
        })
    }

    fn name(&mut self, column: usize) -> Option<Name> {
        let text = self.csv.field(column);
        (!matches!(text, "" | "(null)")).then(|| self.names.intern(text))
    }

    fn site(&mut self) -> Site {
        Site { addr: None, symbol: self.name(self.columns.call_site) }
    }

    fn gfp(&mut self) -> Gfp {
        Gfp { raw: None, names: self.name(self.columns.gfp) }
    }

    fn extra(&self) -> Option<&str> {
        self.columns.extra.map(|extra| self.csv.field(extra))
    }

    /// A hexadecimal address or frame; `None` for NULL in its spellings.
    fn address(&self) -> Result<Option<u64>, ReadError> {
        let column = self.columns.address;
        let text = self.csv.field(column);
        if matches!(text, "(nil)" | "(null)") {
            return Ok(None);
        }
        let hex = text.strip_prefix("0x").unwrap_or(text);
        let value =
            u64::from_str_radix(hex, 16).map_err(|_| self.csv.error(column, "a hexadecimal address"))?;
        // Frame 0 is written as such only where it was one.
        let page = self.csv.field(self.columns.event).starts_with("mm_page");
        Ok(Some(value).filter(|&value| value != 0 || page))
    }

    fn advance(&mut self) -> Result<Option<Item>, ReadError> {
        while self.csv.next()? {
            let Some(event) = self.event()? else {
                self.tally.skipped += 1;
                continue;
            };
            self.tally.events += 1;
            self.tally.late += u64::from(event.time_ns < self.last_ns);
            self.last_ns = self.last_ns.max(event.time_ns);
            return Ok(Some(Item::Event(event)));
        }
        Ok(None)
    }
}

impl<R: Read> Source for Tidy<R> {
    type Error = ReadError;

    fn next(&mut self) -> Result<Option<Item>, ReadError> {
        if self.ended {
            return Ok(None);
        }
        let item = self.advance();
        self.ended = !matches!(item, Ok(Some(_)));
        self.header.cut_off = self.csv.cut().map(|at| CutOff { at, of: None });
        item
    }

    fn state(&self) -> (&Header, &Names, &Tally) {
        (&self.header, &self.names, &self.tally)
    }
}

/// `12.5` with 3 digits is 12500: a decimal number times `10^digits`, exactly; further decimals are cut off.
fn scaled(text: &str, digits: u32) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part = part.get(..part.len().min(digits as usize))?;
    let mut value = number::<u64>(whole)?.checked_mul(10u64.pow(digits))?;
    if !part.is_empty() {
        value = value.checked_add(number::<u64>(part)? * 10u64.pow(digits - part.len() as u32))?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        #[track_caller]
        fn check(text: &str, digits: u32, expected: Option<u64>) {
            assert_eq!(scaled(text, digits), expected, "{text}");
        }
        check("6.866959", 9, Some(6_866_959_000));
        check("42.0", 3, Some(42_000));
        check("7", 3, Some(7_000));
        check("1.23456", 3, Some(1_234));
        check("18446744073709551615", 3, None);
        check("-1", 3, None);
        check("1.x", 3, None);
        check("1.23\u{fffd}", 3, None);
    }
}
