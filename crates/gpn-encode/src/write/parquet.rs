//! Parquet: one row a sample.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use gpn_files::AtomicFile;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, FloatType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::EmbeddingTable;
use crate::error::{EncodeError, Result};

/// Rows of a row group.
const GROUP: usize = 16_384;

pub(super) fn write(path: &Path, table: &EmbeddingTable<'_>) -> Result<()> {
    let mut file = AtomicFile::create(path).map_err(|error| EncodeError::io("create", path, error))?;
    write_rows(&mut file, table)
        .map_err(|error| EncodeError::io("write", path, std::io::Error::other(error)))?;
    file.commit().map_err(|error| EncodeError::io("write", path, error))
}

fn write_rows(file: &mut AtomicFile, table: &EmbeddingTable<'_>) -> Result<(), ParquetError> {
    let class_name = if table.labels.is_some() { "required binary class_name (STRING);" } else { "" };
    let schema = parse_message_type(&format!(
        "message embeddings {{
            required group embedding (LIST) {{ repeated group list {{ required float element; }} }}
            {class_name}
            required binary file (STRING);
        }}"
    ))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_column_dictionary_enabled("embedding.list.element".into(), false)
        .build();
    let mut out = std::io::BufWriter::with_capacity(1 << 20, file);
    let mut writer = SerializedFileWriter::new(&mut out, Arc::new(schema), Arc::new(properties))?;
    for start in (0..table.files.len()).step_by(GROUP) {
        let rows = start..(start + GROUP).min(table.files.len());
        let values = &table.values[rows.start * table.dim..rows.end * table.dim];
        let mut group = writer.next_row_group()?;
        let mut column = group.next_column()?.ok_or_else(no_column)?;
        let repetition: Vec<i16> = (0..values.len()).map(|place| i16::from(place % table.dim != 0)).collect();
        column.typed::<FloatType>().write_batch(values, Some(&vec![1; values.len()]), Some(&repetition))?;
        column.close()?;
        for texts in [table.labels, Some(table.files)].into_iter().flatten() {
            let texts: Vec<ByteArray> = texts[rows.clone()].iter().map(|text| text.as_str().into()).collect();
            let mut column = group.next_column()?.ok_or_else(no_column)?;
            column.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
            column.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    out.flush()?;
    Ok(())
}

fn no_column() -> ParquetError {
    ParquetError::General("the schema has no further column".into())
}
