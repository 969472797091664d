//! Files in a directory, a `.tar`, a `.tar.gz` or a `.zip`, read alike.
//!
//! Archives are memory-mapped and indexed once; entries are handed out as slices of the map where they are
//! stored as they are, and inflated one by one where they are not. Entries stand in [natural
//! order](super::natural), so the same files have the same indices whatever holds them.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Crc;
use flate2::read::{DeflateDecoder, MultiGzDecoder};
use memmap2::Mmap;

use super::map::{map_file, map_open_file};
use super::{natural, tar_index, zip_index};
use crate::DataError;
use crate::progress::{Watch, WatchedWriter};

/// Largest single file that is read from a directory or an archive.
pub const MAX_ENTRY_BYTES: u64 = 4 << 30;
/// A compressed archive may grow to this many times its size (and [`GROWTH_ALLOWANCE`] more).
pub const MAX_GROWTH: u64 = 200;
/// What a compressed file may grow by whatever its size.
pub const GROWTH_ALLOWANCE: u64 = 16 << 20;
/// Deepest nesting of folders.
const MAX_DEPTH: usize = 64;

/// The files of a directory or archive.
///
/// ```no_run
/// use gpn_data::format::archive::Archive;
/// let archive = Archive::open("photos.zip".as_ref())?;
/// for index in 0..archive.len() {
///     println!("{} {}", archive.name(index), archive.read(index)?.len());
/// }
/// # Ok::<(), gpn_data::DataError>(())
/// ```
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    names: Vec<String>,
    store: Store,
}

#[derive(Debug)]
enum Store {
    Directory,
    Mapped { map: Arc<Mmap>, places: Vec<Place> },
}

/// Where an entry's bytes stand in the map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) start: usize,
    pub(super) stored: usize,
    /// Size after inflating, where the entry is deflated.
    pub(super) inflated: Option<u64>,
    /// CRC-32 of the content, where the archive tells it.
    pub(super) crc: Option<u32>,
}

impl Archive {
    /// Opens a directory or an archive; the content decides which kind of archive it is.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        Self::open_watched(path, &Watch::unwatched())
    }

    pub(crate) fn open_watched(path: &Path, watch: &Watch<'_>) -> Result<Self, DataError> {
        let metadata = fs::metadata(path).map_err(|e| DataError::io("open", path, e))?;
        if metadata.is_dir() {
            let mut names = Vec::new();
            list_directory(path, path, &mut Vec::new(), &mut names, watch)?;
            names.sort_by(|a, b| natural::compare(a, b));
            return Ok(Self { path: path.to_owned(), names, store: Store::Directory });
        }
        let map = map_file(path)?;
        let (map, entries) = if map.starts_with(b"PK\x03\x04") || map.starts_with(b"PK\x05\x06") {
            let entries = zip_index::index(&map, path)?;
            (map, entries)
        } else {
            let map = if map.starts_with(&[0x1f, 0x8b]) { inflate_to_map(&map, path, watch)? } else { map };
            let entries = tar_index::index(&map, path, watch)?;
            (map, entries)
        };
        let (names, places) = in_natural_order(entries).into_iter().unzip();
        Ok(Self { path: path.to_owned(), names, store: Store::Mapped { map: Arc::new(map), places } })
    }

    /// The path this was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Names relative to the directory or archive, separated by `/`, in natural order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Name of file `index`.
    pub fn name(&self, index: usize) -> &str {
        &self.names[index]
    }

    /// Index of the file called `name`. O(log n).
    pub fn position(&self, name: &str) -> Option<usize> {
        self.names.binary_search_by(|probe| natural::compare(probe, name)).ok()
    }

    /// Bytes of file `index`: borrowed from the map where they are stored as they are.
    pub fn read(&self, index: usize) -> Result<Cow<'_, [u8]>, DataError> {
        match &self.store {
            Store::Directory => {
                let path = self.path.join(&self.names[index]);
                read_small_file(&path, MAX_ENTRY_BYTES).map(Cow::Owned)
            }
            Store::Mapped { map, places } => {
                let place = places[index];
                // invariant: the index readers hand out only places inside the map
                let stored = &map[place.start..place.start + place.stored];
                let content = match place.inflated {
                    None => Cow::Borrowed(stored),
                    Some(size) => Cow::Owned(zip_index::inflate(stored, size, &self.label(index))?),
                };
                self.check_crc(index, place, &content)?;
                Ok(content)
            }
        }
    }

    /// The first bytes of file `index`, at most `len`, without a look at the rest.
    pub fn head(&self, index: usize, len: usize) -> Result<Cow<'_, [u8]>, DataError> {
        match &self.store {
            Store::Directory => {
                let path = self.path.join(&self.names[index]);
                let file = File::open(&path).map_err(|e| DataError::io("open", &path, e))?;
                let mut bytes = Vec::new();
                file.take(len as u64).read_to_end(&mut bytes).map_err(|e| DataError::io("read", &path, e))?;
                Ok(Cow::Owned(bytes))
            }
            Store::Mapped { map, places } => {
                let Place { start, stored, inflated, .. } = places[index];
                // invariant: the index readers hand out only places inside the map
                let stored = &map[start..start + stored];
                if inflated.is_none() {
                    return Ok(Cow::Borrowed(&stored[..len.min(stored.len())]));
                }
                let mut bytes = Vec::new();
                let inflating = DeflateDecoder::new(stored).take(len as u64).read_to_end(&mut bytes);
                inflating.map_err(|e| {
                    DataError::malformed(self.label(index), format!("damaged deflate data: {e}"))
                })?;
                Ok(Cow::Owned(bytes))
            }
        }
    }

    fn check_crc(&self, index: usize, place: Place, content: &[u8]) -> Result<(), DataError> {
        let Some(expected) = place.crc else { return Ok(()) };
        let mut crc = Crc::new();
        crc.update(content);
        if crc.sum() == expected {
            return Ok(());
        }
        let reason = format!(
            "its CRC-32 is {:08x}, the archive says {expected:08x}; the file is damaged, fetch it again",
            crc.sum()
        );
        Err(DataError::malformed(self.label(index), reason))
    }

    /// File `index` for reading again and again: mapped where it is stored as it is, else inflated once.
    pub(crate) fn hold(&self, index: usize) -> Result<Held, DataError> {
        match &self.store {
            Store::Directory => Held::file(&self.path.join(&self.names[index])),
            Store::Mapped { map, places } if places[index].inflated.is_none() => {
                let place @ Place { start, stored, .. } = places[index];
                self.check_crc(index, place, &map[start..start + stored])?;
                Ok(Held::Mapped { map: Arc::clone(map), range: start..start + stored })
            }
            Store::Mapped { .. } => Ok(Held::Owned(self.read(index)?.into_owned())),
        }
    }

    /// Text of the file called `name`, if there is one, with invalid UTF-8 and a byte-order mark removed.
    pub fn text(&self, name: &str) -> Result<Option<String>, DataError> {
        let Some(index) = self.position(name) else { return Ok(None) };
        let bytes = self.read(index)?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(Some(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned()))
    }

    /// Archive and entry, for messages.
    pub fn label(&self, index: usize) -> String {
        format!("{}: {}", self.path.display(), self.names[index])
    }
}

/// The bytes of one file, mapped where that is possible.
#[derive(Debug)]
pub(crate) enum Held {
    Mapped { map: Arc<Mmap>, range: Range<usize> },
    Owned(Vec<u8>),
}

impl Held {
    /// Maps a file.
    pub(crate) fn file(path: &Path) -> Result<Self, DataError> {
        let map = map_file(path)?;
        Ok(Self::Mapped { range: 0..map.len(), map: Arc::new(map) })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Mapped { map, range } => &map[range.clone()],
            Self::Owned(bytes) => bytes,
        }
    }
}

/// Reads a file of at most `limit` bytes.
pub fn read_small_file(path: &Path, limit: u64) -> Result<Vec<u8>, DataError> {
    let file = File::open(path).map_err(|e| DataError::io("open", path, e))?;
    let size = file.metadata().map_err(|e| DataError::io("read", path, e))?.len();
    if size > limit {
        return Err(DataError::TooLarge {
            file: path.display().to_string(),
            what: "the file".into(),
            size,
            limit,
        });
    }
    let mut bytes = Vec::with_capacity(size as usize);
    // The limit holds as well for files that tell no size (pipes, /proc) or grow meanwhile.
    file.take(limit).read_to_end(&mut bytes).map_err(|e| DataError::io("read", path, e))?;
    Ok(bytes)
}

/// A name inside an archive, made relative with `/` between folders; `None` for what is skipped: folders
/// and the hidden files of file managers. Names that point outside the archive are refused.
pub(super) fn clean_name(raw: &[u8], archive: &Path) -> Result<Option<String>, DataError> {
    let file = || archive.display().to_string();
    let Ok(name) = std::str::from_utf8(raw) else {
        let shown = String::from_utf8_lossy(raw);
        return Err(DataError::malformed(file(), format!("the entry name `{shown}` is not UTF-8")));
    };
    if name.contains('\0') || name.starts_with('/') || name.split(['/', '\\']).any(|part| part == "..") {
        let shown = name.escape_debug();
        return Err(DataError::malformed(
            file(),
            format!("the entry name `{shown}` points outside the archive"),
        ));
    }
    if name.ends_with(['/', '\\']) {
        return Ok(None);
    }
    // Some programs separate folders as Windows does.
    let separators: &[char] = if name.contains('/') { &['/'] } else { &['\\'] };
    let parts: Vec<&str> = name.split(separators).filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.is_empty() || parts.iter().any(|part| part.starts_with('.') || *part == "__MACOSX") {
        return Ok(None);
    }
    Ok(Some(parts.join("/")))
}

/// Sorts entries; of several with one name the last one counts, as it does for `tar`.
fn in_natural_order(mut entries: Vec<(String, Place)>) -> Vec<(String, Place)> {
    entries.reverse();
    entries.sort_by(|a, b| natural::compare(&a.0, &b.0));
    entries.dedup_by(|later, kept| later.0 == kept.0);
    entries
}

/// Collects the files below `folder`, following links but never in a circle.
fn list_directory(
    root: &Path,
    folder: &Path,
    above: &mut Vec<PathBuf>,
    names: &mut Vec<String>,
    watch: &Watch<'_>,
) -> Result<(), DataError> {
    let real = folder.canonicalize().map_err(|e| DataError::io("open", folder, e))?;
    if above.len() >= MAX_DEPTH || above.contains(&real) {
        let reason = "folders are nested in a circle or more than 64 deep";
        return Err(DataError::unfit(folder.display().to_string(), reason));
    }
    above.push(real);
    for entry in fs::read_dir(folder).map_err(|e| DataError::io("list", folder, e))? {
        watch.check()?;
        let entry = entry.map_err(|e| DataError::io("list", folder, e))?;
        let path = entry.path();
        let Some(name) = path.file_name().and_then(|n| n.to_str()) else {
            return Err(DataError::unfit(path.display().to_string(), "the file name is not UTF-8"));
        };
        if name.starts_with('.') || name == "__MACOSX" {
            continue;
        }
        let Ok(metadata) = fs::metadata(&path) else { continue }; // a link to nowhere
        if metadata.is_dir() {
            list_directory(root, &path, above, names, watch)?;
        } else if metadata.is_file() {
            // invariant: `path` was reached by joining names to `root`
            let relative = path.strip_prefix(root).unwrap_or(&path);
            let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
            names.push(parts.join("/"));
        }
    }
    above.pop();
    Ok(())
}

/// Inflates a gzip file into an unnamed temporary file and maps that: entries of a `.tar.gz` cannot be
/// reached in any other way without inflating all before them.
fn inflate_to_map(packed: &[u8], path: &Path, watch: &Watch<'_>) -> Result<Mmap, DataError> {
    let limit = packed.len() as u64 * MAX_GROWTH + GROWTH_ALLOWANCE;
    let file = tempfile::tempfile().map_err(|e| DataError::io("write a temporary copy of", path, e))?;
    let mut copy = WatchedWriter { inner: &file, watch };
    let mut unpacked = MultiGzDecoder::new(packed).take(limit + 1);
    let size = io::copy(&mut unpacked, &mut copy).map_err(|e| match e.kind() {
        _ if watch.is_stopped() => DataError::Interrupted,
        io::ErrorKind::StorageFull => DataError::io("write a temporary copy of", path, e),
        _ => DataError::malformed(path.display().to_string(), format!("damaged gzip data: {e}")),
    })?;
    if size > limit {
        let what = "the inflated archive".to_owned();
        return Err(DataError::TooLarge { file: path.display().to_string(), what, size, limit });
    }
    map_open_file(&file, path)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn names_are_cleaned() {
        let clean = |name: &str| clean_name(name.as_bytes(), Path::new("a.zip")).unwrap();
        assert_eq!(clean("./a//b.jpg").as_deref(), Some("a/b.jpg"));
        assert_eq!(clean("Fruit\\Apple\\1.jpg").as_deref(), Some("Fruit/Apple/1.jpg"));
        assert_eq!(clean("Fruit/a\\b.jpg").as_deref(), Some("Fruit/a\\b.jpg"));
        for skipped in ["a/", "a\\", ".DS_Store", "__MACOSX/a/1.jpg", "a/._1.jpg"] {
            assert_eq!(clean(skipped), None, "{skipped}");
        }
        assert!(clean_name(b"..\\x", Path::new("a.zip")).is_err());
    }

    #[test]
    fn directories_tars_and_gzip_files_are_left_when_the_work_stops() {
        let folder = tempfile::tempdir().unwrap();
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(3);
        tar.append_data(&mut header, "a/b.txt", &b"abc"[..]).unwrap();
        let tar = tar.into_inner().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/b.txt"), "abc").unwrap();
        fs::write(folder.path().join("b.tar"), &tar).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&tar).unwrap();
        fs::write(folder.path().join("b.tar.gz"), gzip.finish().unwrap()).unwrap();
        for name in ["a", "b.tar", "b.tar.gz"] {
            let path = folder.path().join(name);
            assert_eq!(Archive::open(&path).unwrap().len(), 1, "{name}");
            let stopped = Archive::open_watched(&path, &Watch::stopped());
            assert!(matches!(stopped, Err(DataError::Interrupted)), "{name}: {stopped:?}");
        }
    }
}
