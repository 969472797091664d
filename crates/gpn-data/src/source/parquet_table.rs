//! Embeddings in Parquet: a column `embedding` of lists of floats and, where classes are asked for, a column `class_name`.

use std::fs::File;
use std::path::Path;

use half::f16;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::parquet_headers::{check_metadata, check_pages};
use crate::DataError;
use crate::contain::contain;
use crate::format::map::map_file;
use crate::progress::Watch;

/// Rows read at a time.
const BATCH: usize = 4096;

/// A table in memory.
pub(super) struct Table {
    /// Rows of equal length, one after the other.
    pub(super) values: Vec<f32>,
    /// How many rows there are.
    pub(super) rows: usize,
    /// One per row, where they are asked for.
    pub(super) labels: Vec<String>,
}

/// Reads the whole table, with or without its labels.
pub(super) fn read(path: &Path, labelled: bool, watch: &Watch<'_>) -> Result<Table, DataError> {
    let file = File::open(path).map_err(|e| DataError::io("open", path, e))?;
    let bytes = map_file(path)?;
    // The parquet crate panics on some damage that only shows while it decodes.
    let result = contain(|| read_columns(file, &bytes, labelled, watch));
    let result = result.unwrap_or_else(|| Err("damaged Parquet file: its pages cannot be decoded".into()));
    result.map_err(|reason| {
        if watch.is_stopped() {
            DataError::Interrupted
        } else {
            DataError::malformed(path.display().to_string(), reason)
        }
    })
}

/// Refuses column chunks and pages that lie outside the file. The parquet crate does not check this.
pub(super) fn check_chunk(chunk: &ColumnChunkMetaData, file: &[u8]) -> Result<(), String> {
    let place = |offset: i64| usize::try_from(offset).ok().filter(|&offset| offset <= file.len());
    let start = place(chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset()));
    let pages = start.zip(place(chunk.compressed_size())).and_then(|(start, size)| {
        place(chunk.data_page_offset())?;
        file.get(start..start + size)
    });
    check_pages(pages.ok_or("damaged Parquet file: a column lies outside the file")?)
}

#[expect(clippy::needless_pass_by_value, reason = "the form in which map_err hands it over")]
pub(super) fn damaged(error: ParquetError) -> String {
    let reason = error.to_string();
    format!("damaged Parquet file: {}", reason.trim_start_matches("Parquet error: "))
}

fn read_columns(file: File, bytes: &[u8], labelled: bool, watch: &Watch<'_>) -> Result<Table, String> {
    check_metadata(bytes)?;
    let reader = SerializedFileReader::new(file).map_err(damaged)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let find = |name: &str, depth: i16| {
        let found =
            schema.columns().iter().position(|c| c.path().parts().first().is_some_and(|part| part == name));
        let found = found.ok_or_else(|| {
            let names: Vec<&str> =
                schema.root_schema().get_fields().iter().map(|field| field.name()).collect();
            format!("there is no column `{name}`; there are {}", names.join(", "))
        })?;
        match schema.column(found).max_rep_level() {
            levels if levels == depth => Ok(found),
            _ => Err(format!(
                "the column `{name}` must hold {}",
                ["one text", "a list of floats"][depth as usize]
            )),
        }
    };
    let embedding = find("embedding", 1)?;
    let class_name = labelled.then(|| find("class_name", 0)).transpose()?;
    let mut table = Table { values: Vec::new(), rows: 0, labels: Vec::new() };
    let mut lengths = Lengths::default();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(damaged)?;
        for column in [Some(embedding), class_name].into_iter().flatten() {
            check_chunk(group.metadata().column(column), bytes)?;
        }
        let levels = schema.column(embedding).max_def_level();
        match group.get_column_reader(embedding).map_err(damaged)? {
            ColumnReader::FloatColumnReader(column) => {
                read_lists(column, levels, |value| Some(*value), &mut table.values, &mut lengths, watch)
            }
            ColumnReader::DoubleColumnReader(column) => read_lists(
                column,
                levels,
                |value| Some(*value as f32),
                &mut table.values,
                &mut lengths,
                watch,
            ),
            ColumnReader::FixedLenByteArrayColumnReader(column) => {
                let half = |value: &parquet::data_type::FixedLenByteArray| match value.data() {
                    [low, high] => Some(f16::from_le_bytes([*low, *high]).to_f32()),
                    _ => None,
                };
                read_lists(column, levels, half, &mut table.values, &mut lengths, watch)
            }
            _ => Err("the column `embedding` must hold lists of floats".into()),
        }?;
        let Some(class_name) = class_name else { continue };
        let levels = schema.column(class_name).max_def_level();
        match group.get_column_reader(class_name).map_err(damaged)? {
            ColumnReader::ByteArrayColumnReader(column) => read_labels(
                column,
                levels,
                |value| value.as_utf8().ok().map(str::to_owned),
                &mut table.labels,
                watch,
            ),
            ColumnReader::Int32ColumnReader(column) => {
                read_labels(column, levels, |value| Some(value.to_string()), &mut table.labels, watch)
            }
            ColumnReader::Int64ColumnReader(column) => {
                read_labels(column, levels, |value| Some(value.to_string()), &mut table.labels, watch)
            }
            _ => Err("the column `class_name` must hold text".into()),
        }?;
    }
    lengths.close(table.values.len())?;
    table.rows = lengths.rows;
    if labelled && table.rows != table.labels.len() {
        return Err(format!("there are {} embeddings but {} class names", table.rows, table.labels.len()));
    }
    Ok(table)
}

/// Checks that all lists have the length of the first.
#[derive(Default)]
struct Lengths {
    rows: usize,
    start: usize,
    dim: Option<usize>,
}

impl Lengths {
    /// A new list begins at `at`.
    fn open(&mut self, at: usize) -> Result<(), String> {
        self.close(at)?;
        self.rows += 1;
        self.start = at;
        Ok(())
    }

    /// The list that is open ends at `at`.
    fn close(&mut self, at: usize) -> Result<(), String> {
        if self.rows == 0 {
            return Ok(());
        }
        let length = at - self.start;
        match *self.dim.get_or_insert(length) {
            dim if dim == length => Ok(()),
            dim => {
                Err(format!("row {}: the embedding has {length} numbers, the first row {dim}", self.rows - 1))
            }
        }
    }
}

fn read_lists<T: DataType>(
    mut column: ColumnReaderImpl<T>,
    max_level: i16,
    convert: impl Fn(&T::T) -> Option<f32>,
    out: &mut Vec<f32>,
    lengths: &mut Lengths,
    watch: &Watch<'_>,
) -> Result<(), String> {
    let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        watch.check().map_err(|stopped| stopped.to_string())?;
        definitions.clear();
        repetitions.clear();
        values.clear();
        let (records, _, levels) = column
            .read_records(BATCH, Some(&mut definitions), Some(&mut repetitions), &mut values)
            .map_err(damaged)?;
        if records == 0 && levels == 0 {
            return Ok(());
        }
        let mut next = values.iter();
        for (definition, repetition) in definitions.iter().zip(&repetitions) {
            if *repetition == 0 {
                lengths.open(out.len())?;
            }
            let value = (*definition == max_level).then(|| next.next()).flatten().and_then(&convert);
            let row = lengths.rows.saturating_sub(1);
            out.push(
                value.ok_or_else(|| format!("row {row}: the embedding is empty or has an empty value"))?,
            );
        }
    }
}

fn read_labels<T: DataType>(
    mut column: ColumnReaderImpl<T>,
    max_level: i16,
    convert: impl Fn(&T::T) -> Option<String>,
    out: &mut Vec<String>,
    watch: &Watch<'_>,
) -> Result<(), String> {
    let (mut definitions, mut values) = (Vec::new(), Vec::new());
    loop {
        watch.check().map_err(|stopped| stopped.to_string())?;
        definitions.clear();
        values.clear();
        let levels = (max_level > 0).then_some(&mut definitions);
        let (records, _, _) = column.read_records(BATCH, levels, None, &mut values).map_err(damaged)?;
        if records == 0 {
            return Ok(());
        }
        if values.len() != records {
            return Err(format!("rows {} and on: a class name is missing", out.len()));
        }
        for value in &values {
            let row = out.len();
            out.push(convert(value).ok_or_else(|| format!("row {row}: the class name is not UTF-8"))?);
        }
    }
}
