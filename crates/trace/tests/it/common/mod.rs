//! What the tests of the trace format share: rows with their strings, and a file in memory.

use bytes::Bytes;
use slablab_trace::{Batch, Columns, EventKind, Metadata, NONE, Reader, Row, Writer};

/// A row whose strings are strings. In `row` the three ids are [`NONE`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) row: Row,
    pub(crate) comm: Option<String>,
    pub(crate) cache: Option<String>,
    pub(crate) call_site: Option<String>,
}

impl Line {
    pub(crate) fn new(row: Row, comm: &str, cache: &str, call_site: &str) -> Line {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_string());
        Line { row, comm: text(comm), cache: text(cache), call_site: text(call_site) }
    }
}

/// The file of `lines`.
pub(crate) fn write(lines: &[Line], group_rows: usize, metadata: Metadata) -> Bytes {
    let mut writer = Writer::new(Vec::new()).unwrap().with_group_rows(group_rows);
    for line in lines {
        let texts = writer.texts();
        let row = Row {
            comm: line.comm.as_ref().map_or(NONE, |text| texts.comm.id(text)),
            cache: line.cache.as_ref().map_or(NONE, |text| texts.cache.id(text)),
            call_site: line.call_site.as_ref().map_or(NONE, |text| texts.call_site.id(text)),
            ..line.row
        };
        writer.push(&row).unwrap();
    }
    writer.finish(metadata).unwrap().0.into()
}

/// The lines of a file, read in batches of `batch_rows`.
pub(crate) fn read(
    file: Bytes,
    columns: Columns,
    batch_rows: usize,
) -> Result<Vec<Line>, slablab_trace::Error> {
    let mut batches = Reader::new(file)?.batches(columns).with_rows(batch_rows);
    let (mut batch, mut lines) = (Batch::default(), Vec::new());
    while batches.next(&mut batch)? {
        for index in 0..batch.len() {
            let row = batch.row(index);
            let texts = batches.texts();
            let text = |text: Option<&str>| text.map(str::to_string);
            lines.push(Line {
                comm: text(texts.comm.get(row.comm)),
                cache: text(texts.cache.get(row.cache)),
                call_site: text(texts.call_site.get(row.call_site)),
                row: Row { comm: NONE, cache: NONE, call_site: NONE, ..row },
            });
        }
    }
    Ok(lines)
}

/// Numbers that repeat with their seed.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Values of every size, so that no column is always small.
    pub(crate) fn any(&mut self) -> u64 {
        let bits = self.below(64);
        self.next() >> bits
    }

    pub(crate) fn text(&mut self, different: u64) -> String {
        match self.below(different + 1) {
            0 => String::new(),
            number => format!("name-{number}"),
        }
    }
}

/// Lines of arbitrary content.
pub(crate) fn random_lines(seed: u64, count: usize) -> Vec<Line> {
    let mut random = Random(seed);
    let line = |_| {
        let random = &mut random;
        let row = Row {
            time_ns: random.any() >> 1,
            cpu: random.any() as u16,
            pid: random.any() as i32,
            context: random.any() as u16,
            event: random.below(EventKind::ALL.len() as u64) as u8,
            address: random.any(),
            object: if random.below(4) == 0 { NONE } else { random.any() as u32 },
            bytes_req: random.any() as u32,
            bytes_alloc: random.any() as u32,
            order: random.any() as i8,
            pfn: random.any() as i64,
            migrate_type: random.any() as i8,
            gfp_raw: random.any() as u32,
            gfp: random.any() as u32,
            node: random.any() as i16,
            accounted: random.any() as u8,
            flags: random.any() as u8,
            ..Row::default()
        };
        let (many, few) = (1 + random.below(5000), 1 + random.below(4));
        Line::new(row, &random.text(few), &random.text(40), &random.text(many))
    };
    (0..count).map(line).collect()
}
