//! Writing a trace, one row group at a time.
//!
//! Rows are collected in a batch. A full batch goes to the packer, which packs and writes it: on a thread of
//! its own while the next is collected, or at once where a system has none.

#[cfg_attr(target_family = "wasm", path = "writer/here.rs")]
#[cfg_attr(not(target_family = "wasm"), path = "writer/apart.rs")]
mod packer;

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use crate::batch::{Batch, Column, Number, Row, Visit};
use crate::error::Error;
use crate::event::{EventKind, NONE};
use crate::meta::{CacheCounts, Metadata, Statistics};
use crate::schema;
use crate::texts::{Table, Texts};
use packer::Packer;

/// Rows in a row group: 15 MB in memory, and enough for dictionaries to pay.
const GROUP_ROWS: usize = 1 << 18;

/// Writes rows to `W`. It holds a few row groups and the strings, but no rows that are already written.
///
/// Dropped without [`Writer::finish`], it drops `W` before it returns.
pub struct Writer<W: Write + Send + 'static> {
    packer: Packer<W>,
    texts: Texts,
    /// How many strings of each table the packer knows.
    told: [usize; 4],
    batch: Batch,
    group_rows: usize,
    tally: Tally,
}

/// The statistics of the rows, as they go by.
#[derive(Default)]
pub(crate) struct Tally {
    rows: u64,
    events: HashMap<u8, u64>,
    object_ids: u64,
    cpu_ids: u32,
    times: Option<(u64, u64)>,
}

impl<W: Write + Send + 'static> Writer<W> {
    /// A writer of a new trace.
    pub fn new(out: W) -> Result<Writer<W>, Error> {
        let file = SerializedFileWriter::new(out, schema::schema(&[]), Arc::new(schema::properties()))?;
        let (texts, batch, tally) = Default::default();
        Ok(Writer { packer: Packer::start(file), texts, told: [0; 4], batch, group_rows: GROUP_ROWS, tally })
    }

    /// With `rows` rows in a row group instead of 262,144.
    pub fn with_group_rows(mut self, rows: usize) -> Self {
        assert!(rows > 0, "a row group of {rows} rows");
        self.group_rows = rows;
        self
    }

    /// The strings of the rows: a row names a string by the id it got here.
    pub fn texts(&mut self) -> &mut Texts {
        &mut self.texts
    }

    /// How many rows were pushed.
    pub fn rows(&self) -> u64 {
        self.tally.rows + self.batch.len() as u64
    }

    /// Appends a row. An error may be that of an earlier row.
    #[inline]
    pub fn push(&mut self, row: &Row) -> Result<(), Error> {
        self.batch.push(row);
        if self.batch.len() == self.group_rows { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.tally.add(&self.batch);
        let mut told = self.told.iter_mut();
        let texts = self.texts.tables().map(|table| {
            let told = told.next().expect("as many as tables");
            let new =
                table.iter().skip(*told).map(|text| ByteArray::from(text.as_bytes().to_vec())).collect();
            *told = table.len();
            new
        });
        let batch = std::mem::take(&mut self.batch);
        self.batch = self.packer.give(Group { batch, texts })?;
        Ok(())
    }

    /// Writes the footer and gives the output back. Statistics are the writer's; `metadata.caches` must be in
    /// the order of the cache ids, and caches it does not have are added by name.
    pub fn finish(mut self, mut metadata: Metadata) -> Result<(W, Metadata), Error> {
        self.flush()?;
        let mut file = self.packer.stop()?;
        metadata.statistics = self.tally.statistics();
        complete(&mut metadata.caches, &self.texts.cache);
        for entry in metadata.to_footer() {
            file.append_key_value_metadata(entry);
        }
        Ok((file.into_inner()?, metadata))
    }
}

/// A row group to be packed, and the strings that are new in it.
struct Group {
    batch: Batch,
    texts: [Vec<ByteArray>; 4],
}

/// Packs row groups, one after the other.
struct Packing<W: Write + Send + 'static> {
    file: SerializedFileWriter<W>,
    known: [Vec<ByteArray>; 4],
}

impl<W: Write + Send + 'static> Packing<W> {
    fn new(file: SerializedFileWriter<W>) -> Packing<W> {
        Packing { file, known: Default::default() }
    }

    /// Packs a group. Its batch comes back empty.
    fn pack(&mut self, group: Group) -> Result<Batch, Error> {
        let Group { mut batch, texts } = group;
        self.known.iter_mut().zip(texts).for_each(|(known, new)| known.extend(new));
        let mut group = self.file.next_row_group()?;
        Cells { group: &mut group, known: &self.known }.write(&mut batch)?;
        group.close()?;
        batch.clear();
        Ok(batch)
    }
}

/// The list of caches must be that of the ids.
pub(crate) fn complete(caches: &mut Vec<CacheCounts>, table: &Table) {
    for (listed, name) in caches.iter().zip(table.iter()) {
        assert!(
            listed.name == name,
            "cache {name:?} stands at the place of {:?} in the metadata",
            listed.name
        );
    }
    let missing = table.iter().skip(caches.len());
    caches.extend(missing.map(|name| CacheCounts { name: name.into(), ..CacheCounts::default() }));
}

impl Tally {
    pub(crate) fn add(&mut self, batch: &Batch) {
        self.rows += batch.len() as u64;
        let mut events = [0u64; 256];
        batch.event.iter().for_each(|&event| events[event as usize] += 1);
        for (event, &count) in events.iter().enumerate().filter(|&(_, &count)| count > 0) {
            *self.events.entry(event as u8).or_default() += count;
        }
        let ids = batch.object.iter().filter(|&&id| id != NONE).map(|&id| u64::from(id) + 1);
        self.object_ids = self.object_ids.max(ids.max().unwrap_or(0));
        let cpus = batch.cpu.iter().map(|&cpu| u32::from(cpu) + 1).max();
        self.cpu_ids = self.cpu_ids.max(cpus.unwrap_or(0));
        if let (Some(&first), Some(&last)) = (batch.time_ns.first(), batch.time_ns.iter().max()) {
            let (start, end) = self.times.unwrap_or((first, last));
            self.times = Some((start, end.max(last)));
        }
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let (first_time_ns, last_time_ns) = self.times.unwrap_or_default();
        let name = |event| match EventKind::from_u8(event) {
            Some(kind) => kind.name().to_string(),
            None => event.to_string(),
        };
        Statistics {
            rows: self.rows,
            events: self.events.iter().map(|(&event, &count)| (name(event), count)).collect(),
            object_ids: self.object_ids,
            cpu_ids: self.cpu_ids,
            first_time_ns,
            last_time_ns,
        }
    }
}

/// Writes our columns of one row group, in order.
pub(crate) struct Cells<'a, 'b, W: Write + Send> {
    pub(crate) group: &'a mut SerializedRowGroupWriter<'b, W>,
    /// The strings of the tables, by id.
    pub(crate) known: &'a [Vec<ByteArray>; 4],
}

impl<W: Write + Send> Cells<'_, '_, W> {
    pub(crate) fn write(&mut self, batch: &mut Batch) -> Result<(), Error> {
        batch.visit(self)
    }
}

impl<W: Write + Send> Visit for Cells<'_, '_, W> {
    fn number<T: Number>(&mut self, column: &'static Column, _: T, cells: &mut Vec<T>) -> Result<(), Error> {
        let values: Vec<_> = cells.iter().map(|&cell| cell.pack()).collect();
        let mut writer = self.group.next_column()?.ok_or(Error::MissingColumn(column.name))?;
        writer.typed::<T::Parquet>().write_batch(&values, None, None)?;
        Ok(writer.close()?)
    }

    fn text(&mut self, column: &'static Column, none: u32, cells: &mut Vec<u32>) -> Result<(), Error> {
        let known = &self.known[Texts::position(column.name)];
        let present = cells.iter().filter(|&&id| id != none);
        let values: Vec<ByteArray> = present
            .map(|&id| known.get(id as usize).cloned().unwrap_or_else(|| ByteArray::from("")))
            .collect();
        let levels: Vec<i16> = cells.iter().map(|&id| (id != none).into()).collect();
        let mut writer = self.group.next_column()?.ok_or(Error::MissingColumn(column.name))?;
        writer.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
        Ok(writer.close()?)
    }
}
