//! NumPy's `.npy`: headers with checked sizes, rows from mapped files, and a writer for rows as they come.

use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use gpn_files::AtomicFile;

use super::archive::Held;
use super::element::Element;
use crate::DataError;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Longest header text that is read; NumPy itself writes some hundred bytes.
const MAX_HEADER: usize = 64 << 10;
/// Size of every header written here: room for any shape, and a multiple of 64 as NumPy requires.
const WRITTEN_HEADER: usize = 128;
/// Bytes after which a long file is forced to the disk, so that the end of the work does not wait for all of it.
const SYNC_EVERY: usize = 64 << 20;

/// What the header of an `.npy` file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Type of the elements.
    pub element: Element,
    /// Whether the first index runs fastest.
    pub fortran: bool,
    /// The shape.
    pub shape: Vec<usize>,
    /// Offset of the first element in the file.
    pub start: usize,
}

impl Header {
    /// Reads the header of a whole `.npy` file and checks that the elements it promises are there. `file` is
    /// used in messages only.
    pub fn parse(bytes: &[u8], file: &str) -> Result<Self, DataError> {
        let malformed =
            |reason: &str| DataError::malformed(file, format!("not a readable .npy file: {reason}"));
        if !bytes.starts_with(MAGIC) {
            return Err(malformed("it does not begin with the mark of the format"));
        }
        let length = match (bytes.get(6), bytes.get(8..10), bytes.get(8..12)) {
            (Some(1), Some(l), _) => Some((10, usize::from(l[0]) | usize::from(l[1]) << 8)),
            (Some(2 | 3), _, Some(l)) => Some((12, u32::from_le_bytes([l[0], l[1], l[2], l[3]]) as usize)),
            _ => None,
        };
        let (from, length) = length.ok_or_else(|| malformed("its version is unknown or it is cut short"))?;
        if length > MAX_HEADER {
            return Err(malformed(&format!("its header of {length} bytes is too long")));
        }
        let text =
            bytes.get(from..from + length).ok_or_else(|| malformed("it is cut short within the header"))?;
        let text = std::str::from_utf8(text).map_err(|_| malformed("its header is not text"))?;
        let (descr, fortran, shape) = parse_dict(text).ok_or_else(|| {
            malformed(&format!("its header is not understood: {}", text.trim().escape_debug()))
        })?;
        if descr.ends_with('O') {
            let reason = "its elements are Python objects; save numbers with x.astype(\"float32\"), text with x.astype(str)";
            return Err(malformed(reason));
        }
        let element = Element::parse(&descr)
            .ok_or_else(|| malformed(&format!("its elements have type `{descr}`, which is not supported")))?;
        let header = Self { element, fortran, shape, start: from + length };
        let promised = header.data_size();
        let present = (bytes.len() - header.start) as u64;
        match promised {
            Some(size) if size as u64 <= present => Ok(header),
            Some(size) => {
                Err(malformed(&format!("its header promises {size} bytes of data, there are {present}")))
            }
            None => Err(malformed(&format!("its shape {:?} is absurd", header.shape))),
        }
    }

    /// Bytes of all elements; `None` beyond the address space.
    pub fn data_size(&self) -> Option<usize> {
        self.shape.iter().try_fold(self.element.size, |size, &length| size.checked_mul(length))
    }

    /// Bytes per index of the first axis.
    pub fn row_size(&self) -> usize {
        // invariant: the product of a part of the axes is below that of all, which `parse` has checked,
        // unless the first axis is 0, where the number does not matter
        self.shape.iter().skip(1).fold(self.element.size, |size, &length| size.saturating_mul(length))
    }

    /// How many rows `bytes` are.
    ///
    /// # Panics
    /// If that is not a whole number.
    fn rows_in(&self, bytes: &[u8]) -> usize {
        let size = self.row_size();
        assert!(bytes.len().is_multiple_of(size), "{} bytes are no whole rows of {size}", bytes.len());
        bytes.len() / size.max(1)
    }

    /// The header as bytes, padded with spaces to a multiple of 128 bytes; the elements follow.
    pub fn to_bytes(&self) -> Vec<u8> {
        let shape: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        let comma = if shape.len() == 1 { "," } else { "" };
        let mut text = format!(
            "{{'descr': '{}', 'fortran_order': {}, 'shape': ({}{comma}), }}",
            self.element.descr(),
            if self.fortran { "True" } else { "False" },
            shape.join(", ")
        );
        let padded = (MAGIC.len() + 4 + text.len() + 1).next_multiple_of(WRITTEN_HEADER);
        while MAGIC.len() + 4 + text.len() + 1 < padded {
            text.push(' ');
        }
        text.push('\n');
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes
    }
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
fn parse_dict(text: &str) -> Option<(String, bool, Vec<usize>)> {
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim_start();
    while !rest.is_empty() {
        let (key, after) = quoted(rest)?;
        rest = after.trim_start().strip_prefix(':')?.trim_start();
        match key {
            "descr" => {
                let (value, after) = quoted(rest)?;
                descr = Some(value.to_owned());
                rest = after;
            }
            "fortran_order" => {
                let yes = rest.starts_with("True");
                rest = rest.strip_prefix(if yes { "True" } else { "False" })?;
                fortran = Some(yes);
            }
            "shape" => {
                let (inside, after) = rest.strip_prefix('(')?.split_once(')')?;
                let lengths = inside.split(',').map(str::trim).filter(|length| !length.is_empty());
                // Python 2 writes long integers as `3L`.
                let lengths = lengths.map(|length| length.trim_end_matches('L').parse().ok());
                shape = Some(lengths.collect::<Option<Vec<usize>>>()?);
                rest = after;
            }
            _ => return None,
        }
        rest = rest.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    Some((descr?, fortran?, shape?)).filter(|(_, _, shape)| shape.len() <= 32)
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote)
}

/// An array whose bytes are mapped or in memory.
#[derive(Debug)]
pub struct Npy {
    header: Header,
    held: Held,
    file: String,
}

impl Npy {
    /// Opens an `.npy` file without reading its elements.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        Self::from_held(Held::file(path)?, path.display().to_string())
    }

    /// Takes the bytes of an `.npy` file; `file` is used in messages.
    pub(crate) fn from_held(held: Held, file: String) -> Result<Self, DataError> {
        let header = Header::parse(held.bytes(), &file)?;
        if header.fortran && header.shape.len() > 1 {
            let reason = "is in Fortran order; save it with np.ascontiguousarray";
            return Err(DataError::unfit(file, reason));
        }
        Ok(Self { header, held, file })
    }

    /// An array in memory: `bytes` are the elements, row after row, each of shape `row`. `file` is used in messages.
    ///
    /// # Panics
    /// If `bytes` is not a whole number of rows.
    pub fn from_rows(element: Element, row: &[usize], bytes: Vec<u8>, file: String) -> Self {
        let mut header = Header { element, fortran: false, shape: [&[0], row].concat(), start: 0 };
        header.shape[0] = header.rows_in(&bytes);
        Self { header, held: Held::Owned(bytes), file }
    }

    /// The bytes before the elements when the array is saved as a file.
    pub(crate) fn header_bytes(&self) -> Vec<u8> {
        self.header.to_bytes()
    }

    /// What the header says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The file, for messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// All elements, as they stand in the file.
    pub fn bytes(&self) -> &[u8] {
        // invariant: `Header::parse` has checked that the elements are there
        &self.held.bytes()[self.header.start..][..self.header.data_size().unwrap_or(0)]
    }

    /// The elements at index `row` of the first axis.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &[u8] {
        let size = self.header.row_size();
        &self.bytes()[row * size..][..size]
    }

    /// Text of every element of a list of labels, integers in decimal.
    pub(crate) fn labels(&self) -> Result<Vec<String>, DataError> {
        let element = self.header.element;
        let readable = self.header.shape.len() == 1 && element.size > 0;
        let labels = self.bytes().chunks_exact(element.size.max(1)).map(|bytes| element.text(bytes));
        labels.collect::<Option<_>>().filter(|_| readable).ok_or_else(|| {
            let reason = format!(
                "labels must be a list of integers or of text (`<U..`), not {} of shape {:?}; \
                 convert them with np.asarray(labels).astype(str)",
                element.descr(),
                self.header.shape
            );
            DataError::unfit(&self.file, reason)
        })
    }
}

/// Writes an `.npy` file row by row with constant memory. The file appears in [`RowWriter::finish`]; a writer
/// dropped before leaves nothing behind.
///
/// ```
/// use gpn_data::format::element::Element;
/// use gpn_data::format::npy::{Npy, RowWriter};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("rows.npy");
/// let mut writer = RowWriter::create(&path, Element::F32, &[2])?;
/// writer.write_f32(&[1.0, 2.0])?;
/// writer.write_f32(&[3.0, 4.0])?;
/// writer.finish()?;
/// assert_eq!(Npy::open(&path)?.header().shape, [2, 2]);
/// # Ok::<(), gpn_data::DataError>(())
/// ```
#[derive(Debug)]
pub struct RowWriter {
    path: PathBuf,
    header: Header,
    file: BufWriter<AtomicFile>,
    scratch: Vec<u8>,
    /// Bytes that may not be on the disk yet.
    unsynced: usize,
}

impl RowWriter {
    /// Starts a file of rows of shape `row`.
    pub fn create(path: &Path, element: Element, row: &[usize]) -> Result<Self, DataError> {
        let shape = [&[0], row].concat();
        let header = Header { element, fortran: false, shape, start: WRITTEN_HEADER };
        let file = AtomicFile::create(path).map_err(|e| DataError::io("create", path, e))?;
        let file = BufWriter::with_capacity(1 << 20, file);
        let mut writer = Self { path: path.to_owned(), header, file, scratch: Vec::new(), unsynced: 0 };
        writer.append(&[b' '; WRITTEN_HEADER])?;
        Ok(writer)
    }

    /// Number of rows written.
    pub fn rows(&self) -> usize {
        self.header.shape[0]
    }

    /// Appends whole rows of bytes.
    ///
    /// # Panics
    /// If `bytes` is not a whole number of rows.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        let rows = self.header.rows_in(bytes);
        self.append(bytes)?;
        self.header.shape[0] += rows;
        Ok(())
    }

    /// Appends whole rows of floats.
    ///
    /// # Panics
    /// If `values` is not a whole number of rows.
    pub fn write_f32(&mut self, values: &[f32]) -> Result<(), DataError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let written = self.write(&scratch);
        self.scratch = scratch;
        written
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        let mut write = || {
            self.file.write_all(bytes)?;
            self.unsynced += bytes.len();
            if self.unsynced >= SYNC_EVERY {
                self.unsynced = 0;
                self.file.flush()?;
                self.file.get_mut().sync()?;
            }
            Ok(())
        };
        write().map_err(|e| DataError::io("write", &self.path, e))
    }

    /// Completes the header, makes the file durable and gives it its name.
    pub fn finish(self) -> Result<(), DataError> {
        let Self { path, header, file, .. } = self;
        let header = header.to_bytes();
        let write = || -> std::io::Result<()> {
            let mut file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&header)?;
            file.commit()
        };
        write().map_err(|e| DataError::io("write", &path, e))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn headers_survive_writing_and_reading() {
        for shape in [vec![], vec![0], vec![3], vec![2, 3], vec![1, 4, 4, 3]] {
            let header = Header { element: Element::U8, fortran: false, shape, start: WRITTEN_HEADER };
            let mut bytes = header.to_bytes();
            assert_eq!(bytes.len(), WRITTEN_HEADER);
            bytes.resize(WRITTEN_HEADER + header.data_size().unwrap(), 0);
            assert_eq!(Header::parse(&bytes, "x.npy").unwrap(), header);
        }
    }

    #[test]
    fn an_abandoned_writer_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let mut writer = RowWriter::create(&path, Element::U8, &[2]).unwrap();
        writer.write(&[1, 2, 3, 4]).unwrap();
        assert_eq!(writer.rows(), 2);
        drop(writer);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn rows_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let mut writer = RowWriter::create(&path, Element::F32, &[2]).unwrap();
        writer.write_f32(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        writer.finish().unwrap();
        let npy = Npy::open(&path).unwrap();
        assert_eq!(npy.header().shape, [2, 2]);
        assert_eq!(npy.row(1), [3.0f32.to_le_bytes(), 4.0f32.to_le_bytes()].concat());
    }

    #[test]
    fn headers_of_python_2_are_read() {
        let parsed = parse_dict("{'descr': '<f8', 'fortran_order': False, 'shape': (3L, 2L), }").unwrap();
        assert_eq!(parsed, ("<f8".to_owned(), false, vec![3, 2]));
        assert_eq!(parse_dict("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,)}"), None);
    }
}
