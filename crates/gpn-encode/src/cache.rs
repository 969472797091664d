//! Embeddings on disk, by the content that they are of.
//!
//! A cache is a folder with one file for each encoder and its settings (`HASH.embeddings`): a header, then records of one
//! length, each the BLAKE3 hash of a sample's content, its embedding and a checksum of both. Writers append under a lock.
//! Readers map the file and keep the place of every hash in memory. What is damaged is not believed: a record whose checksum does
//! not fit counts as absent and is appended anew, a file whose header does not fit is replaced. A cache that cannot be read or
//! written is said in a note; encoding goes on without it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use gpn_files::FileLock;
use memmap2::Mmap;

/// BLAKE3 of a sample's content.
pub type ContentHash = [u8; 32];

/// What a file of embeddings begins with.
const MAGIC: &[u8; 16] = b"gpn embeddings 1";
/// Magic, the encoder's key, the length of embeddings.
const HEADER: usize = 16 + 32 + 4;
const CHECKSUM: usize = 8;
/// Bytes that wait in memory before they are appended: what a killed process loses at most.
const WAITING: usize = 256 << 10;

/// A folder of embeddings. Nothing is read or made before it is needed.
#[derive(Clone, Debug)]
pub struct EmbeddingCache {
    folder: PathBuf,
}

impl EmbeddingCache {
    /// A cache in this folder, which is made when the first embedding is kept.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens the embeddings of one encoder.
    pub(crate) fn of(&self, key: blake3::Hash, dim: usize) -> CachedEmbeddings {
        CachedEmbeddings::open(self.folder.join(format!("{}.embeddings", &key.to_hex()[..32])), key, dim)
    }
}

/// The embeddings of one encoder, as they were when the file was opened, and those kept since.
pub(crate) struct CachedEmbeddings {
    path: PathBuf,
    header: [u8; HEADER],
    dim: usize,
    map: Option<Mmap>,
    /// Number of the newest record of each content.
    records: HashMap<ContentHash, u32>,
    waiting: Mutex<Vec<u8>>,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    damaged: usize,
    other: Vec<String>,
    /// Whether writing was given up.
    closed: bool,
}

impl CachedEmbeddings {
    fn open(path: PathBuf, key: blake3::Hash, dim: usize) -> Self {
        let mut header = [0; HEADER];
        header[..16].copy_from_slice(MAGIC);
        header[16..48].copy_from_slice(key.as_bytes());
        header[48..].copy_from_slice(&(dim as u32).to_le_bytes());
        let mut opened = Self {
            path,
            header,
            dim,
            map: None,
            records: HashMap::new(),
            waiting: Mutex::default(),
            notes: Mutex::default(),
        };
        match map_file(&opened.path) {
            Ok(None) => {}
            Ok(Some(map)) if map.starts_with(&opened.header) => opened.index(map),
            Ok(Some(_)) => opened.note("it is damaged and was discarded"),
            Err(error) => opened.note(&format!("it cannot be read ({error})")),
        }
        opened
    }

    fn record_len(&self) -> usize {
        32 + self.dim * 4 + CHECKSUM
    }

    /// Notes the place of every whole record. O(records); their values are read when they are asked for.
    fn index(&mut self, map: Mmap) {
        let len = self.record_len();
        for (number, record) in map[HEADER..].chunks_exact(len).enumerate() {
            // invariant: a record begins with the 32 bytes of a hash.
            self.records.insert(record[..32].try_into().unwrap(), number as u32);
        }
        self.map = Some(map);
    }

    /// The embedding of a content, if it is kept and sound.
    pub(crate) fn get(&self, hash: &ContentHash) -> Option<Vec<f32>> {
        let number = *self.records.get(hash)? as usize;
        let start = HEADER + number * self.record_len();
        let record = self.map.as_ref()?.get(start..start + self.record_len())?;
        let (content, checksum) = record.split_at(record.len() - CHECKSUM);
        if checksum_of(content) != checksum {
            self.notes.lock().unwrap_or_else(PoisonError::into_inner).damaged += 1;
            return None;
        }
        Some(content[32..].as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    /// Keeps an embedding.
    pub(crate) fn put(&self, hash: ContentHash, embedding: &[f32]) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let start = waiting.len();
        waiting.extend(hash);
        waiting.extend(embedding.iter().flat_map(|value| value.to_le_bytes()));
        let checksum = checksum_of(&waiting[start..]);
        waiting.extend(checksum);
        if waiting.len() >= WAITING {
            self.append(&mut waiting);
        }
    }

    /// Writes what waits.
    pub(crate) fn flush(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.append(&mut waiting);
    }

    /// What a person should know.
    pub(crate) fn notes(&self) -> Vec<String> {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut texts = notes.other.clone();
        if notes.damaged > 0 {
            let (count, path) = (notes.damaged, self.path.display());
            let plural = if count == 1 { "" } else { "s" };
            texts.push(format!("cache {path}: {count} damaged record{plural} discarded and encoded anew"));
        }
        texts
    }

    fn append(&self, waiting: &mut Vec<u8>) {
        let closed = self.notes.lock().unwrap_or_else(PoisonError::into_inner).closed;
        if !waiting.is_empty()
            && !closed
            && let Err(error) = self.write(waiting)
        {
            self.note(&format!("embeddings cannot be kept ({error})"));
            self.notes.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        }
        waiting.clear();
    }

    fn write(&self, records: &[u8]) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let _lock = FileLock::wait(&self.path, |_| ())?;
        if !has_header(&self.path, &self.header)? {
            // A file that is not ours is replaced as a whole; others may still have the old one mapped.
            gpn_files::write(&self.path, self.header)?;
        }
        let mut file = File::options().write(true).open(&self.path)?;
        let length = file.seek(SeekFrom::End(0))?;
        // A writer that was killed may have left a part of a record. Nobody reads it, and under the lock nobody writes it.
        let whole = length - (length - HEADER as u64) % self.record_len() as u64;
        if whole < length {
            file.set_len(whole)?;
            file.seek(SeekFrom::Start(whole))?;
        }
        file.write_all(records)
    }

    fn note(&self, what: &str) {
        let text = format!("cache {}: {what}", self.path.display());
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).other.push(text);
    }
}

impl Drop for CachedEmbeddings {
    fn drop(&mut self) {
        self.flush();
    }
}

fn has_header(path: &Path, header: &[u8; HEADER]) -> io::Result<bool> {
    let mut found = [0; HEADER];
    match File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut found)) {
        Ok(()) => Ok(&found == header),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The whole file; `None` where there is none.
fn map_file(path: &Path) -> io::Result<Option<Mmap>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    // SAFETY: the map is only read. Files of a cache only grow; a part of a record may be cut off, which no reader looks at.
    Ok(Some(unsafe { Mmap::map(&file) }?))
}

fn checksum_of(content: &[u8]) -> [u8; CHECKSUM] {
    // invariant: the hash has 32 bytes.
    blake3::hash(content).as_bytes()[..CHECKSUM].try_into().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u8) -> ContentHash {
        blake3::hash(&[number]).into()
    }

    fn key() -> blake3::Hash {
        blake3::hash(b"encoder")
    }

    fn file_in(folder: &Path) -> PathBuf {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).next().unwrap()
    }

    fn filled(folder: &Path) -> EmbeddingCache {
        let cache = EmbeddingCache::new(folder);
        let embeddings = cache.of(key(), 2);
        for number in 0..3 {
            embeddings.put(hash(number), &[f32::from(number), -1.0]);
        }
        cache
    }

    #[test]
    fn what_is_kept_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = filled(&folder.path().join("new"));
        let found = cache.of(key(), 2);
        assert_eq!(found.get(&hash(2)), Some(vec![2.0, -1.0]));
        assert_eq!(found.get(&hash(9)), None);
        assert_eq!(cache.of(blake3::hash(b"other"), 2).get(&hash(2)), None);
        assert!(found.notes().is_empty());
    }

    #[test]
    fn every_flipped_bit_of_a_record_is_noticed_and_mended() {
        let folder = tempfile::tempdir().unwrap();
        let cache = filled(folder.path());
        let path = file_in(folder.path());
        let sound = fs::read(&path).unwrap();
        let record = 32 + 8 + CHECKSUM;
        for bit in 0..record * 8 {
            let mut bytes = sound.clone();
            bytes[HEADER + record + bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            let found = cache.of(key(), 2);
            assert_eq!(found.get(&hash(1)), None, "bit {bit}");
            assert_eq!(found.get(&hash(2)), Some(vec![2.0, -1.0]));
            if bit >= 32 * 8 {
                assert!(found.notes()[0].contains("1 damaged record discarded"), "{:?}", found.notes());
            }
            found.put(hash(1), &[1.0, -1.0]);
            drop(found);
            assert_eq!(cache.of(key(), 2).get(&hash(1)), Some(vec![1.0, -1.0]));
        }
    }

    #[test]
    fn a_file_cut_anywhere_keeps_its_whole_records() {
        let folder = tempfile::tempdir().unwrap();
        let cache = filled(folder.path());
        let path = file_in(folder.path());
        let sound = fs::read(&path).unwrap();
        let record = 32 + 8 + CHECKSUM;
        for length in 0..sound.len() {
            fs::write(&path, &sound[..length]).unwrap();
            let found = cache.of(key(), 2);
            let whole = length.saturating_sub(HEADER) / record;
            for number in 0..3u8 {
                let expected = (usize::from(number) < whole).then(|| vec![f32::from(number), -1.0]);
                assert_eq!(found.get(&hash(number)), expected, "{length} bytes");
            }
            found.put(hash(7), &[7.0, 7.0]);
            drop(found);
            assert_eq!(cache.of(key(), 2).get(&hash(7)), Some(vec![7.0, 7.0]), "{length} bytes");
        }
    }

    #[test]
    fn another_file_in_its_place_is_discarded_with_a_note() {
        let folder = tempfile::tempdir().unwrap();
        let cache = filled(folder.path());
        fs::write(file_in(folder.path()), "no embeddings at all, but long enough for a header of some kind")
            .unwrap();
        let found = cache.of(key(), 2);
        assert_eq!(found.get(&hash(1)), None);
        assert!(found.notes()[0].contains("it is damaged and was discarded"));
        found.put(hash(1), &[1.0, 1.0]);
        drop(found);
        assert_eq!(cache.of(key(), 2).get(&hash(1)), Some(vec![1.0, 1.0]));
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_a_note_and_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "mine").unwrap();
        let found = EmbeddingCache::new(&file).of(key(), 2);
        found.put(hash(1), &[1.0, 1.0]);
        found.flush();
        assert!(
            found.notes().iter().any(|note| note.contains("embeddings cannot be kept")),
            "{:?}",
            found.notes()
        );
        assert_eq!(fs::read(&file).unwrap(), b"mine");
    }
}
