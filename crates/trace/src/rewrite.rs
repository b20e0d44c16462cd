//! Rewriting a trace: our columns are decoded, edited and written again, everything else is carried over as
//! it is.
//!
//! Columns this version does not know are copied as compressed bytes, whatever their type; footer keys it
//! does not know are copied as text. So a program may add its own columns to a trace, and an older slablab
//! may edit a trace of a newer minor version without loss. In return, a rewrite changes rows in place and
//! cannot add or remove them.

use std::io::Write;
use std::sync::Arc;

use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::file::reader::{ChunkReader, FileReader};
use parquet::file::writer::SerializedFileWriter;

use crate::batch::{Batch, Columns};
use crate::error::Error;
use crate::meta::Metadata;
use crate::reader::Reader;
use crate::schema;
use crate::texts::{Table, Texts};
use crate::writer::{Cells, Tally, complete};

/// Copies the trace in `input` to `out`, giving each row group's rows to `edit` on the way and the metadata
/// to `describe`. `edit` must leave the number of rows as it is; the statistics are counted anew.
pub fn rewrite<R: ChunkReader + Clone + 'static, W: Write + Send>(
    input: R,
    out: W,
    mut edit: impl FnMut(&mut Batch, &mut Texts),
    describe: impl FnOnce(&mut Metadata),
) -> Result<W, Error> {
    let reader = Reader::new(input.clone())?;
    let footer = reader.file.metadata();
    let properties = Arc::new(schema::properties());
    let mut file = SerializedFileWriter::new(out, schema::schema(&reader.layout.extra), properties)?;
    let mut batches = reader.batches(Columns::ALL).with_rows(usize::MAX);
    let (mut batch, mut tally) = (Batch::default(), Tally::default());
    // A batch of any size ends with its row group.
    while batches.next(&mut batch)? {
        let rows = batch.len();
        edit(&mut batch, batches.texts_mut());
        assert_eq!(batch.event.len(), rows, "a rewrite must keep the number of rows");
        tally.add(&batch);
        let mut group = file.next_row_group()?;
        let bytes =
            |table: &Table| table.iter().map(|text| ByteArray::from(text.as_bytes().to_vec())).collect();
        Cells { group: &mut group, known: &batches.texts().tables().map(bytes) }.write(&mut batch)?;
        for &leaf in &reader.layout.extra_leaves {
            let column = footer.row_group(batches.group_index()).column(leaf);
            let copied = ColumnCloseResult {
                bytes_written: column.compressed_size().max(0) as u64,
                rows_written: rows as u64,
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            group.append_column(&input, copied)?;
        }
        group.close()?;
    }
    let mut metadata = reader.metadata().clone();
    metadata.statistics = tally.statistics();
    describe(&mut metadata);
    complete(&mut metadata.caches, &batches.texts().cache);
    metadata.to_footer().into_iter().for_each(|entry| file.append_key_value_metadata(entry));
    Ok(file.into_inner()?)
}
