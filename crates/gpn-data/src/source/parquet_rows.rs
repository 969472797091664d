//! A Parquet table row by row, in bounded memory: embeddings, images, paths or texts, from any row on.

use std::fs::File;
use std::path::{Path, PathBuf};

use half::f16;
use memmap2::Mmap;
use parquet::basic::Type as PhysicalType;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArrayType, DataType};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;

use super::parquet_headers::check_metadata;
use super::parquet_table::{check_chunk, damaged};
use crate::DataError;
use crate::contain::contain;
use crate::format::map::map_file;

/// What is taken from each row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowColumn {
    /// `embedding`: a list of floats.
    Embedding,
    /// `image`: the bytes of an image file, or a group with `bytes`, as data sets of Hugging Face have it.
    Image,
    /// `path`, or else `file`: where an image file is.
    Path,
    /// `text`.
    Text,
}

impl RowColumn {
    /// The names that the column may bear, the first first.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Embedding => &["embedding"],
            Self::Image => &["image"],
            Self::Path => &["path", "file"],
            Self::Text => &["text"],
        }
    }
}

/// What a row holds.
#[derive(Clone, Debug, PartialEq)]
pub enum RowValue {
    /// An embedding.
    Embedding(Vec<f32>),
    /// The bytes of an image.
    Image(Vec<u8>),
    /// A path or text.
    Text(String),
    /// Nothing that could be taken, and why.
    Wrong(String),
}

/// A Parquet file and the column of it that is read.
#[derive(Debug)]
pub struct ParquetRows {
    path: PathBuf,
    rows: usize,
    column: RowColumn,
    /// Number of the column.
    leaf: usize,
    /// Number of the column with a name for each row, where there is one.
    names: Option<usize>,
    bytes: Mmap,
}

impl ParquetRows {
    /// Opens a table. The first of the `wanted` columns that it has is the one that is read.
    pub fn open(path: &Path, wanted: &[RowColumn]) -> Result<Self, DataError> {
        let bytes = map_file(path)?;
        let opened = contain(|| {
            let reader = reader(path, &bytes)?;
            let metadata = reader.metadata().file_metadata();
            let schema = metadata.schema_descr();
            let found = wanted.iter().find_map(|&column| Some((column, find(schema, column)?)));
            let (column, leaf) = found.ok_or_else(|| no_column(schema, wanted))?;
            let is_text = |column: usize| {
                let column = schema.column(column);
                column.max_rep_level() == 0 && column.physical_type() == PhysicalType::BYTE_ARRAY
            };
            let names = find(schema, RowColumn::Path).filter(|&names| names != leaf && is_text(names));
            let lists = i16::from(column == RowColumn::Embedding);
            if schema.column(leaf).max_rep_level() != lists {
                let form = ["one value a row", "a list of floats"][lists as usize];
                return Err(format!(
                    "the column `{}` must hold {form}",
                    schema.column(leaf).path().parts()[0]
                ));
            }
            let groups = reader.metadata().row_groups().iter();
            let rows = groups.map(|group| usize::try_from(group.num_rows())).sum::<Result<usize, _>>();
            let rows = rows.map_err(|_| "damaged Parquet file: a group has fewer than no rows".to_owned())?;
            Ok((rows, column, leaf, names))
        });
        let (rows, column, leaf, names) = told(path, opened)?;
        Ok(Self { path: path.to_owned(), rows, column, leaf, names, bytes })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is read of each row.
    pub fn column(&self) -> RowColumn {
        self.column
    }

    /// Reads on from a row.
    pub fn from_row(&self, row: usize) -> RowReader<'_> {
        RowReader { table: self, next: row, file: None, group: None }
    }
}

/// Reads the rows of a table in order.
pub struct RowReader<'a> {
    table: &'a ParquetRows,
    next: usize,
    /// The file, once it has been opened.
    file: Option<SerializedFileReader<File>>,
    group: Option<Group>,
}

/// The rest of a row group.
struct Group {
    left: usize,
    values: ColumnReader,
    value_level: i16,
    names: Option<(ColumnReader, i16)>,
}

impl RowReader<'_> {
    /// The next rows, `most` of them, or fewer at the end of a row group; none at the end. Each has its name, where the table names
    /// its rows.
    pub fn read(&mut self, most: usize) -> Result<Vec<(Option<String>, RowValue)>, DataError> {
        let read = contain(|| self.read_some(most));
        told(&self.table.path, read)
    }

    fn read_some(&mut self, most: usize) -> Result<Vec<(Option<String>, RowValue)>, String> {
        if self.group.as_ref().is_none_or(|group| group.left == 0) {
            self.group = self.open_group()?;
        }
        let Some(group) = &mut self.group else { return Ok(Vec::new()) };
        let count = most.min(group.left);
        let values = match self.table.column {
            RowColumn::Embedding => embeddings(&mut group.values, count, group.value_level)?,
            RowColumn::Image => bytes(&mut group.values, count, group.value_level)?
                .into_iter()
                .map(|value| value.map_or_else(|| missing("image"), RowValue::Image))
                .collect(),
            RowColumn::Path => texts(&mut group.values, count, group.value_level, "path")?,
            RowColumn::Text => texts(&mut group.values, count, group.value_level, "text")?,
        };
        let names = match &mut group.names {
            None => vec![None; count],
            Some((names, level)) => bytes(names, count, *level)?
                .into_iter()
                .map(|name| name.and_then(|name| String::from_utf8(name).ok()))
                .collect(),
        };
        if values.len() != count || names.len() != count {
            return Err(format!("damaged Parquet file: row {} and on are missing", self.next));
        }
        group.left -= count;
        self.next += count;
        Ok(names.into_iter().zip(values).collect())
    }

    /// Opens the row group of the next row, and steps over the rows before it.
    fn open_group(&mut self) -> Result<Option<Group>, String> {
        let table = self.table;
        let file = match self.file.take() {
            Some(file) => file,
            None => reader(&table.path, &table.bytes)?,
        };
        let file = self.file.insert(file);
        let schema = file.metadata().file_metadata().schema_descr_ptr();
        let mut first = 0;
        for (number, group) in file.metadata().row_groups().iter().enumerate() {
            // invariant: row counts were checked when the table was opened.
            let rows = group.num_rows() as usize;
            if self.next >= first + rows {
                first += rows;
                continue;
            }
            let group = file.get_row_group(number).map_err(damaged)?;
            let open = |leaf: usize| -> Result<(ColumnReader, i16), String> {
                check_chunk(group.metadata().column(leaf), &table.bytes)?;
                let mut column = group.get_column_reader(leaf).map_err(damaged)?;
                skip(&mut column, self.next - first)?;
                Ok((column, schema.column(leaf).max_def_level()))
            };
            let (values, value_level) = open(table.leaf)?;
            let names = table.names.map(open).transpose()?;
            return Ok(Some(Group { left: first + rows - self.next, values, value_level, names }));
        }
        Ok(None)
    }
}

fn told<T>(path: &Path, read: Option<Result<T, String>>) -> Result<T, DataError> {
    let read = read.unwrap_or_else(|| Err("damaged Parquet file: its pages cannot be decoded".into()));
    read.map_err(|reason| DataError::malformed(path.display().to_string(), reason))
}

fn reader(path: &Path, bytes: &[u8]) -> Result<SerializedFileReader<File>, String> {
    check_metadata(bytes)?;
    let file = File::open(path).map_err(|error| error.to_string())?;
    SerializedFileReader::new(file).map_err(damaged)
}

/// The number of the column that holds what is wanted.
fn find(schema: &SchemaDescriptor, wanted: RowColumn) -> Option<usize> {
    let leaf = |name: &str| {
        schema.columns().iter().position(|column| match column.path().parts() {
            [own] => own == name && wanted != RowColumn::Embedding,
            [own, inner] if wanted == RowColumn::Image => own == name && inner == "bytes",
            [own, ..] => own == name && wanted == RowColumn::Embedding,
            [] => false,
        })
    };
    wanted.names().iter().find_map(|name| leaf(name))
}

fn no_column(schema: &SchemaDescriptor, wanted: &[RowColumn]) -> String {
    let wanted: Vec<&str> = wanted.iter().flat_map(|column| column.names()).copied().collect();
    let names: Vec<&str> = schema.root_schema().get_fields().iter().map(|field| field.name()).collect();
    format!("there is no column `{}`; there are {}", wanted.join("`, `"), names.join(", "))
}

fn missing(what: &str) -> RowValue {
    RowValue::Wrong(format!("the {what} is missing"))
}

fn skip(column: &mut ColumnReader, rows: usize) -> Result<(), String> {
    fn of<T: DataType>(column: &mut ColumnReaderImpl<T>, rows: usize) -> Result<usize, String> {
        column.skip_records(rows).map_err(damaged)
    }
    let skipped = match column {
        ColumnReader::FloatColumnReader(column) => of(column, rows),
        ColumnReader::DoubleColumnReader(column) => of(column, rows),
        ColumnReader::FixedLenByteArrayColumnReader(column) => of(column, rows),
        ColumnReader::ByteArrayColumnReader(column) => of(column, rows),
        // Not what is wanted, which reading says.
        _ => Ok(rows),
    }?;
    if skipped == rows {
        Ok(())
    } else {
        Err("damaged Parquet file: a column is shorter than its group".into())
    }
}

/// One embedding a row.
fn embeddings(column: &mut ColumnReader, count: usize, level: i16) -> Result<Vec<RowValue>, String> {
    match column {
        ColumnReader::FloatColumnReader(column) => lists(column, count, level, |value| Some(*value)),
        ColumnReader::DoubleColumnReader(column) => lists(column, count, level, |value| Some(*value as f32)),
        ColumnReader::FixedLenByteArrayColumnReader(column) => {
            lists(column, count, level, |value| match value.data() {
                [low, high] => Some(f16::from_le_bytes([*low, *high]).to_f32()),
                _ => None,
            })
        }
        _ => Err("the column `embedding` must hold lists of floats".into()),
    }
}

fn lists<T: DataType>(
    column: &mut ColumnReaderImpl<T>,
    count: usize,
    max_level: i16,
    convert: impl Fn(&T::T) -> Option<f32>,
) -> Result<Vec<RowValue>, String> {
    let mut rows: Vec<RowValue> = Vec::with_capacity(count);
    while rows.len() < count {
        let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let left = count - rows.len();
        let (records, _, _) = column
            .read_records(left, Some(&mut definitions), Some(&mut repetitions), &mut values)
            .map_err(damaged)?;
        if records == 0 {
            break;
        }
        let mut next = values.iter();
        for (definition, repetition) in definitions.iter().zip(&repetitions) {
            if *repetition == 0 {
                rows.push(RowValue::Embedding(Vec::new()));
            }
            let value = (*definition == max_level).then(|| next.next()).flatten().and_then(&convert);
            match (rows.last_mut(), value) {
                (Some(RowValue::Embedding(own)), Some(value)) => own.push(value),
                (Some(row), None) => {
                    *row = RowValue::Wrong("the embedding is empty or has an empty value".into());
                }
                (Some(_), Some(_)) => {}
                (None, _) => return Err("damaged Parquet file: a list has no beginning".into()),
            }
        }
    }
    Ok(rows)
}

/// One path or text a row.
fn texts(column: &mut ColumnReader, count: usize, level: i16, what: &str) -> Result<Vec<RowValue>, String> {
    let text = |value: Option<Vec<u8>>| match value.map(String::from_utf8) {
        Some(Ok(text)) => RowValue::Text(text),
        Some(Err(_)) => RowValue::Wrong(format!("the {what} is not UTF-8")),
        None => missing(what),
    };
    Ok(bytes(column, count, level)?.into_iter().map(text).collect())
}

/// One value a row, or none.
fn bytes(column: &mut ColumnReader, count: usize, max_level: i16) -> Result<Vec<Option<Vec<u8>>>, String> {
    let ColumnReader::ByteArrayColumnReader(column) = column else {
        return Err("a column of images, paths or texts must hold bytes or text".into());
    };
    let column: &mut ColumnReaderImpl<ByteArrayType> = column;
    let mut rows = Vec::with_capacity(count);
    while rows.len() < count {
        let (mut definitions, mut values) = (Vec::new(), Vec::new());
        let levels = (max_level > 0).then_some(&mut definitions);
        let (records, _, _) =
            column.read_records(count - rows.len(), levels, None, &mut values).map_err(damaged)?;
        if records == 0 {
            break;
        }
        let mut next = values.into_iter().map(|value| value.data().to_vec());
        if max_level == 0 {
            rows.extend(next.map(Some));
        } else {
            rows.extend(definitions.iter().map(|&level| (level == max_level).then(|| next.next()).flatten()));
        }
    }
    Ok(rows)
}
