//! The Parquet file of a shard.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpn_files::AtomicFile;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::classifier::Prediction;
use crate::error::{Error, Result};

/// Rows of a row group, which are kept until it is full.
const GROUP: usize = 4096;
/// Keys of the file's metadata: what it was made from with the number of its shard, the same without it, and how many rows could
/// not be read.
const FINGERPRINT: &str = "gpn.shard";
const WORK: &str = "gpn.work";
const FAILED: &str = "gpn.failed";

/// The columns of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnSet {
    Embedding,
    Prediction {
        /// Whether the deepest class that is as sure as asked for is given.
        is_cautious: bool,
        /// Whether the model can tell that a sample is of no class.
        is_fitted: bool,
    },
}

impl ColumnSet {
    fn schema(self) -> String {
        let own = match self {
            Self::Embedding => {
                "optional group embedding (LIST) { repeated group list { required float element; } }"
                    .to_owned()
            }
            Self::Prediction { is_cautious, is_fitted } => {
                let sure = "optional binary sure (STRING); optional double sure_probability;";
                format!(
                    "optional binary id (STRING); optional binary name (STRING); optional double probability;
                     optional group ids (LIST) {{ repeated group list {{ required binary element (STRING); }} }}
                     optional group probabilities (LIST) {{ repeated group list {{ required double element; }} }}
                     {} {}",
                    if is_cautious { sure } else { "" },
                    if is_fitted { "optional boolean unknown;" } else { "" },
                )
            }
        };
        format!(
            "message shard {{ required int64 row; required binary file (STRING); {own} optional binary error (STRING); }}"
        )
    }
}

/// What is told about a row.
pub(super) enum RowOut {
    Embedding(Vec<f32>),
    Prediction(Prediction),
}

impl RowOut {
    fn embedding(&self) -> Option<&[f32]> {
        match self {
            Self::Embedding(values) => Some(values),
            Self::Prediction(_) => None,
        }
    }

    fn prediction(&self) -> Option<&Prediction> {
        match self {
            Self::Prediction(prediction) => Some(prediction),
            Self::Embedding(_) => None,
        }
    }
}

struct Row {
    number: i64,
    file: String,
    answer: Result<RowOut, String>,
}

/// A table being written.
pub(super) struct Table {
    path: PathBuf,
    columns: ColumnSet,
    writer: SerializedFileWriter<AtomicFile>,
    rows: Vec<Row>,
}

impl Table {
    pub(super) fn new(file: AtomicFile, path: &Path, columns: ColumnSet) -> Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_column_dictionary_enabled("embedding.list.element".into(), false)
            // Fixes `created_by` alone, which would name the version of the parquet crate; other bytes may still depend on it.
            .set_created_by("gpn".into())
            .build();
        let open = || {
            let schema = parse_message_type(&columns.schema())?;
            SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
        };
        let writer = open().map_err(|error| failed(path, error))?;
        Ok(Self { path: path.to_owned(), columns, writer, rows: Vec::new() })
    }

    /// Adds a row; rows come in order.
    pub(super) fn push(&mut self, number: usize, file: &str, answer: Result<RowOut, String>) -> Result<()> {
        self.rows.push(Row { number: number as i64, file: file.to_owned(), answer });
        if self.rows.len() == GROUP { self.write_group() } else { Ok(()) }
    }

    /// Completes the file and puts it into its place.
    pub(super) fn finish(mut self, finished: Finished) -> Result<()> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        let Finished { fingerprint, work, failed: failures } = finished;
        for (key, value) in [(FINGERPRINT, fingerprint), (WORK, work), (FAILED, failures.to_string())] {
            self.writer.append_key_value_metadata(KeyValue { key: key.into(), value: Some(value) });
        }
        let file = self.writer.into_inner().map_err(|error| failed(&self.path, error))?;
        file.commit().map_err(|source| Error::Io { action: "write", path: self.path, source })
    }

    fn write_group(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.write_rows(&rows).map_err(|error| failed(&self.path, error))
    }

    fn write_rows(&mut self, rows: &[Row]) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        let numbers: Vec<i64> = rows.iter().map(|row| row.number).collect();
        write_column::<Int64Type>(&mut group, &numbers, None, None)?;
        let files: Vec<ByteArray> = rows.iter().map(|row| row.file.as_str().into()).collect();
        write_column::<ByteArrayType>(&mut group, &files, None, None)?;
        let answers: Vec<Option<&RowOut>> = rows.iter().map(|row| row.answer.as_ref().ok()).collect();
        match self.columns {
            ColumnSet::Embedding => {
                let embeddings =
                    answers.iter().map(|answer| answer.and_then(RowOut::embedding).map(<[f32]>::to_vec));
                write_lists::<FloatType>(&mut group, embeddings.collect())?;
            }
            ColumnSet::Prediction { is_cautious, is_fitted } => {
                let told: Vec<Option<&Prediction>> =
                    answers.iter().map(|answer| answer.and_then(RowOut::prediction)).collect();
                write_predictions(&mut group, &told, is_cautious, is_fitted)?;
            }
        }
        let errors = rows.iter().map(|row| row.answer.as_ref().err().map(|reason| reason.as_str().into()));
        write_optional::<ByteArrayType>(&mut group, errors.collect())?;
        group.close()?;
        Ok(())
    }
}

type Group<'a> = SerializedRowGroupWriter<'a, AtomicFile>;

fn write_predictions(
    group: &mut Group<'_>,
    told: &[Option<&Prediction>],
    is_cautious: bool,
    is_fitted: bool,
) -> Result<(), ParquetError> {
    let best = || told.iter().map(|told| told.and_then(|told| told.classes.first()));
    write_optional::<ByteArrayType>(group, best().map(|best| Some(best?.id.as_str().into())).collect())?;
    write_optional::<ByteArrayType>(group, best().map(|best| Some(best?.name.as_str().into())).collect())?;
    write_optional::<DoubleType>(group, best().map(|best| Some(best?.probability)).collect())?;
    let classes = || told.iter().map(|told| Some(&told.as_ref()?.classes));
    let ids = classes().map(|classes| Some(classes?.iter().map(|class| class.id.as_str().into()).collect()));
    write_lists::<ByteArrayType>(group, ids.collect())?;
    let shares = classes().map(|classes| Some(classes?.iter().map(|class| class.probability).collect()));
    write_lists::<DoubleType>(group, shares.collect())?;
    if is_cautious {
        let sure = || told.iter().map(|told| told.and_then(|told| told.sure.as_ref()));
        write_optional::<ByteArrayType>(group, sure().map(|sure| Some(sure?.id.as_str().into())).collect())?;
        write_optional::<DoubleType>(group, sure().map(|sure| Some(sure?.probability)).collect())?;
    }
    if is_fitted {
        let unknown = told.iter().map(|told| Some(told.as_ref()?.unknown?.is_unknown));
        write_optional::<BoolType>(group, unknown.collect())?;
    }
    Ok(())
}

fn write_column<T: DataType>(
    group: &mut Group<'_>,
    values: &[T::T],
    definitions: Option<&[i16]>,
    repetitions: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let no_column = || ParquetError::General("the schema has no further column".into());
    let mut column = group.next_column()?.ok_or_else(no_column)?;
    column.typed::<T>().write_batch(values, definitions, repetitions)?;
    column.close()
}

/// A value a row, or none.
fn write_optional<T: DataType>(group: &mut Group<'_>, values: Vec<Option<T::T>>) -> Result<(), ParquetError> {
    let definitions: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    write_column::<T>(group, &values, Some(&definitions), None)
}

/// A list a row, or none.
fn write_lists<T: DataType>(
    group: &mut Group<'_>,
    lists: Vec<Option<Vec<T::T>>>,
) -> Result<(), ParquetError> {
    let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for list in lists {
        match list {
            Some(list) if !list.is_empty() => {
                definitions.extend(std::iter::repeat_n(2, list.len()));
                repetitions.extend((0..list.len()).map(|place| i16::from(place > 0)));
                values.extend(list);
            }
            empty => {
                definitions.push(i16::from(empty.is_some()));
                repetitions.push(0);
            }
        }
    }
    write_column::<T>(group, &values, Some(&definitions), Some(&repetitions))
}

fn failed(path: &Path, error: ParquetError) -> Error {
    let source = match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => *source,
            Err(source) => std::io::Error::other(source),
        },
        error => std::io::Error::other(error),
    };
    Error::Io { action: "write", path: path.to_owned(), source }
}

/// What a finished file says about itself.
pub(super) struct Finished {
    /// What it was made from, and which shard it is.
    pub(super) fingerprint: String,
    /// What it was made from: the same for all shards that belong together.
    pub(super) work: String,
    /// Rows that could not be read.
    pub(super) failed: usize,
}

/// The shard at a path, where there is a file. A file that is no shard is an error unless it may be replaced.
pub(super) fn finished(path: &Path, replace: bool) -> Result<Option<Finished>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|source| Error::Io { action: "open", path: path.to_owned(), source })?,
    };
    let read = gpn_data::contain(|| {
        let reader = SerializedFileReader::new(file).ok()?;
        let metadata = reader.metadata().file_metadata().key_value_metadata()?;
        let value = |key: &str| metadata.iter().find(|pair| pair.key == key)?.value.clone();
        let failed = value(FAILED)?.parse().ok()?;
        Some(Finished { fingerprint: value(FINGERPRINT)?, work: value(WORK)?, failed })
    });
    match read.flatten() {
        None if !replace => {
            let reason = "it is in the way and is no finished shard";
            Err(Error::NotThisShard { path: path.to_owned(), reason })
        }
        found => Ok(found),
    }
}
