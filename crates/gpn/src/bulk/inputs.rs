//! Samples of large inputs, read from any row on in bounded memory.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};

use gpn_data::format::archive::Archive;
use gpn_data::source::{ParquetRows, RowColumn, RowReader, RowValue};

use crate::error::{Error, Result};
use crate::sample::{Sample, is_photo_name};

/// Longest line of a list.
const LONGEST_LINE: usize = 1 << 20;

/// What samples may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Takes {
    pub(super) images: bool,
    pub(super) texts: bool,
    pub(super) embeddings: bool,
}

impl Takes {
    pub(super) const IMAGES: Self = Self { images: true, texts: false, embeddings: false };
    pub(super) const TEXTS: Self = Self { images: false, texts: true, embeddings: false };
    pub(super) const EMBEDDINGS: Self = Self { images: false, texts: false, embeddings: true };

    /// Columns of a table, the first found is taken. Embeddings come first: they need not be computed.
    fn columns(self) -> Vec<RowColumn> {
        let mut columns = Vec::new();
        if self.embeddings {
            columns.push(RowColumn::Embedding);
        }
        if self.images {
            columns.extend([RowColumn::Image, RowColumn::Path]);
        }
        if self.texts {
            columns.push(RowColumn::Text);
        }
        columns
    }
}

/// A sample of the inputs, or why there is none.
pub(super) struct RowIn {
    /// As the inputs call it.
    pub(super) name: String,
    pub(super) sample: Result<Sample, String>,
}

/// All inputs, one after the other.
pub(super) struct Inputs {
    parts: Vec<Part>,
    takes: Takes,
}

enum Part {
    Table(ParquetRows),
    /// A file with a path or text a line; empty lines do not count.
    List {
        path: PathBuf,
        rows: usize,
        hash: String,
    },
    Files {
        /// They lie below it.
        folder: PathBuf,
        files: Vec<PathBuf>,
    },
}

impl Part {
    fn rows(&self) -> usize {
        match self {
            Self::Table(table) => table.rows(),
            Self::List { rows, .. } => *rows,
            Self::Files { files, .. } => files.len(),
        }
    }
}

impl Inputs {
    pub(super) fn open(paths: &[PathBuf], takes: Takes) -> Result<Self> {
        let mut inputs = Self { parts: Vec::new(), takes };
        for path in paths {
            inputs.add(path)?;
        }
        if inputs.rows() == 0 {
            let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            return Err(Error::input(names.join(", "), "there are no rows in it"));
        }
        Ok(inputs)
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        if path.is_dir() {
            let files = Archive::open(path)?;
            let wanted = |test: &dyn Fn(&str) -> bool| -> Vec<PathBuf> {
                files.names().iter().filter(|name| test(name)).map(|name| path.join(name)).collect()
            };
            let photos = if self.takes.images { wanted(&is_photo_name) } else { Vec::new() };
            if !photos.is_empty() {
                self.parts.push(Part::Files { folder: path.to_owned(), files: photos });
                return Ok(());
            }
            let tables = wanted(&|name| has_extension(Path::new(name), &["parquet"]));
            if tables.is_empty() {
                let what = if self.takes.images { "images or Parquet tables" } else { "Parquet tables" };
                return Err(Error::input(path.display(), format!("there are no {what} in it")));
            }
            return tables.iter().try_for_each(|table| self.add(table));
        }
        let part = if has_extension(path, &["parquet"]) {
            Part::Table(ParquetRows::open(path, &self.takes.columns())?)
        } else if has_extension(path, &["txt"]) && (self.takes.images || self.takes.texts) {
            let (rows, hash) = count_lines(path)?;
            Part::List { path: path.to_owned(), rows, hash }
        } else if self.takes.images && is_photo_name(&path.to_string_lossy()) {
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            Part::Files { folder, files: vec![path.to_owned()] }
        } else {
            let what = match self.takes {
                Takes { images: true, .. } => {
                    "Parquet tables, lists of image files (.txt, one a line), images and folders of them"
                }
                Takes { texts: true, .. } => "Parquet tables and lists of texts (.txt, one a line)",
                _ => "Parquet tables with a column `embedding`",
            };
            return Err(Error::input(
                path.display(),
                format!("this is not read in shards; for this model, {what} are"),
            ));
        };
        self.parts.push(part);
        Ok(())
    }

    pub(super) fn rows(&self) -> usize {
        self.parts.iter().map(Part::rows).sum()
    }

    /// What tells these inputs from others, without reading all of them: names below what was given, sizes, and the content of
    /// lists.
    pub(super) fn described(&self) -> Vec<serde_json::Value> {
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        // A file that is not there has no bytes; its row says so.
        let bytes = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
        let one = |part: &Part| match part {
            Part::Table(table) => {
                let bytes = bytes(table.path());
                serde_json::json!({ "table": name(table.path()), "rows": table.rows(), "bytes": bytes })
            }
            Part::List { hash, rows, .. } => serde_json::json!({ "list": hash, "rows": rows }),
            Part::Files { folder, files } => {
                let mut hasher = blake3::Hasher::new();
                for file in files {
                    let below = file.strip_prefix(folder).unwrap_or(file);
                    hasher.update(below.as_os_str().as_encoded_bytes());
                    hasher.update(&[0]);
                    hasher.update(&bytes(file).to_le_bytes());
                }
                serde_json::json!({ "files": hasher.finalize().to_hex().to_string(), "rows": files.len() })
            }
        };
        self.parts.iter().map(one).collect()
    }

    /// Reads the samples of a range of rows in order.
    pub(super) fn samples(&self, range: Range<usize>) -> Samples<'_> {
        Samples { inputs: self, range, reader: None }
    }
}

/// Reads samples in order.
pub(super) struct Samples<'a> {
    inputs: &'a Inputs,
    /// Rows still to be read.
    range: Range<usize>,
    /// The part that is being read, and where it ends.
    reader: Option<(Reader<'a>, usize)>,
}

enum Reader<'a> {
    Table { table: &'a ParquetRows, rows: Box<RowReader<'a>>, next: usize },
    List { path: &'a Path, lines: BufReader<File> },
    Files(std::slice::Iter<'a, PathBuf>),
}

impl<'a> Samples<'a> {
    /// The next samples: `most` of them or fewer, none only at the end.
    pub(super) fn read(&mut self, most: usize) -> Result<Vec<RowIn>> {
        let Range { start, end } = self.range;
        if start >= end || most == 0 {
            return Ok(Vec::new());
        }
        if self.reader.as_ref().is_none_or(|(_, end)| *end <= start) {
            self.reader = Some(self.open(start)?);
        }
        // invariant: just opened.
        let (reader, part_end) = self.reader.as_mut().unwrap();
        let count = most.min(end - start).min(*part_end - start);
        let takes = self.inputs.takes;
        let rows = match reader {
            Reader::Files(files) => files
                .take(count)
                .map(|path| RowIn { name: path.display().to_string(), sample: Ok(Sample::image_file(path)) })
                .collect(),
            Reader::List { path, lines } => {
                let mut rows = Vec::with_capacity(count);
                while rows.len() < count {
                    let Some(line) = next_line(lines, path)? else {
                        return Err(changed(path));
                    };
                    let sample = if takes.texts { Sample::text(&line, &line) } else { file_of(path, &line) };
                    rows.push(RowIn { name: line, sample: Ok(sample) });
                }
                rows
            }
            Reader::Table { table, rows, next } => {
                let read = rows.read(count)?;
                if read.is_empty() {
                    return Err(changed(table.path()));
                }
                let first = *next;
                *next += read.len();
                (first..).zip(read).map(|(row, (name, value))| row_of(table, row, name, value)).collect()
            }
        };
        self.range.start += rows.len();
        Ok(rows)
    }

    /// Opens the part that holds a row, from that row on; and where the part ends.
    fn open(&self, row: usize) -> Result<(Reader<'a>, usize)> {
        let mut first = 0;
        for part in &self.inputs.parts {
            let end = first + part.rows();
            if row >= end {
                first = end;
                continue;
            }
            let inside = row - first;
            let reader = match part {
                Part::Table(table) => {
                    Reader::Table { table, rows: Box::new(table.from_row(inside)), next: inside }
                }
                Part::Files { files, .. } => Reader::Files(files[inside..].iter()),
                Part::List { path, .. } => {
                    let mut lines = open_list(path)?;
                    for _ in 0..inside {
                        next_line(&mut lines, path)?.ok_or_else(|| changed(path))?;
                    }
                    Reader::List { path, lines }
                }
            };
            return Ok((reader, end));
        }
        Err(Error::input("the inputs", format!("there is no row {row}")))
    }
}

fn row_of(table: &ParquetRows, row: usize, name: Option<String>, value: RowValue) -> RowIn {
    let numbered = || format!("{}: row {row}", table.path().file_name().unwrap_or_default().display());
    let name = match (&value, name) {
        (RowValue::Text(path), _) if table.column() == RowColumn::Path => path.clone(),
        (_, Some(name)) => name,
        _ => numbered(),
    };
    let sample = match value {
        RowValue::Embedding(values) => Ok(Sample::embedding(&name, values)),
        RowValue::Image(bytes) => Ok(Sample::image(&name, bytes)),
        RowValue::Text(text) if table.column() == RowColumn::Path => Ok(file_of(table.path(), &text)),
        RowValue::Text(text) => Ok(Sample::text(&name, text)),
        RowValue::Wrong(reason) => Err(reason),
    };
    RowIn { name, sample }
}

/// An image file by a path that a list or table holds: from the folder of that list or table, unless it says all.
fn file_of(list: &Path, path: &str) -> Sample {
    let folder = list.parent().unwrap_or(Path::new(""));
    let mut sample = Sample::image_file(&folder.join(path));
    path.clone_into(&mut sample.name);
    sample
}

/// Refuses a folder for the tables that lies in one that is read: the next shard would find other inputs there.
pub(super) fn check_apart(inputs: &[PathBuf], out: &Path) -> Result<()> {
    // A folder that is not there yet will be where the first folder above it that is there leads to.
    let Ok(out_from_root) = std::path::absolute(out) else { return Ok(()) };
    let place = out_from_root.ancestors().find_map(|folder| folder.canonicalize().ok());
    let is_around = |input: &&PathBuf| {
        let folder = input.canonicalize().ok().filter(|folder| folder.is_dir());
        place.as_ref().zip(folder).is_some_and(|(place, folder)| place.starts_with(folder))
    };
    match inputs.iter().find(is_around) {
        None => Ok(()),
        Some(input) => Err(Error::input(
            out.display(),
            format!("it lies in {}, which is read; name a folder outside of it", input.display()),
        )),
    }
}

fn has_extension(path: &Path, wanted: &[&str]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    wanted.iter().any(|wanted| extension.eq_ignore_ascii_case(wanted))
}

fn open_list(path: &Path) -> Result<BufReader<File>> {
    let file =
        File::open(path).map_err(|source| Error::Io { action: "open", path: path.to_owned(), source })?;
    Ok(BufReader::with_capacity(1 << 16, file))
}

/// Lines of a list that are not empty, and the hash of their text.
fn count_lines(path: &Path) -> Result<(usize, String)> {
    let mut lines = open_list(path)?;
    let (mut rows, mut hasher) = (0, blake3::Hasher::new());
    while let Some(line) = next_line(&mut lines, path)? {
        rows += 1;
        hasher.update(line.as_bytes());
        hasher.update(b"\n");
    }
    Ok((rows, hasher.finalize().to_hex().to_string()))
}

/// The next line that is not empty.
fn next_line(lines: &mut BufReader<File>, path: &Path) -> Result<Option<String>> {
    use std::io::Read as _;
    let io = |source| Error::Io { action: "read", path: path.to_owned(), source };
    loop {
        let mut line = Vec::new();
        let read = lines.take(LONGEST_LINE as u64).read_until(b'\n', &mut line).map_err(io)?;
        if read == 0 {
            return Ok(None);
        }
        if read == LONGEST_LINE {
            return Err(Error::input(path.display(), "it has a line of a million bytes; it is no list"));
        }
        let line = String::from_utf8(line)
            .map_err(|_| Error::input(path.display(), "it is not UTF-8; save the list as UTF-8"))?;
        let line = line.trim_start_matches('\u{feff}').trim();
        if !line.is_empty() {
            return Ok(Some(line.to_owned()));
        }
    }
}

fn changed(path: &Path) -> Error {
    Error::input(path.display(), "it has become shorter while it was read; start the shard again")
}
