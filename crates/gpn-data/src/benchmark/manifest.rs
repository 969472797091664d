//! `benchmark.toml`: what a benchmark was made from, how, and the hashes of its files.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::assign::AssignConfig;
use super::build::BuildConfig;
use super::integrity::BLOCKS;
use super::split::SplitConfig;
use super::store::{EMBEDDINGS, IMAGES};
use crate::error::DataError;
use crate::format::element::Element;
use crate::format::map::map_file;
use crate::progress::Watch;
use crate::source::{SampleKind, Source};

/// Name of the manifest inside a benchmark directory.
pub(super) const MANIFEST: &str = "benchmark.toml";
/// Version of the directory's layout that this code writes and reads.
pub(super) const FORMAT: u32 = 2;
/// What the last line begins with: the BLAKE3 hash of all lines above it follows.
const SEAL: &str = "# blake3 of all above: ";

/// The BLAKE3 hash of a file.
pub(super) fn file_hash(path: &Path, watch: &Watch<'_>) -> Result<String, DataError> {
    hash(&[], &map_file(path)?, watch)
}

/// The BLAKE3 hash of bytes in two pieces.
pub(super) fn hash(first: &[u8], rest: &[u8], watch: &Watch<'_>) -> Result<String, DataError> {
    // Bytes hashed between two checks for a stop: a fraction of a second even from a slow disk.
    const PIECE: usize = 32 << 20;
    let mut hasher = blake3::Hasher::new();
    hasher.update(first);
    for piece in rest.chunks(PIECE) {
        watch.check()?;
        hasher.update_rayon(piece);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

fn seal(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// The manifest of a benchmark directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the layout.
    pub format: u32,
    /// The program that built it.
    pub built_by: String,
    /// The source of the samples, as given.
    pub source: String,
    /// The taxonomy, as given.
    pub taxonomy: String,
    /// The preset, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Id of the top class.
    pub root: String,
    /// Chains of classes with the same leaves were merged.
    pub chains_collapsed: bool,
    /// How the samples are stored.
    pub store: StoreInfo,
    /// How many there are of everything.
    pub counts: Counts,
    /// How classes were divided.
    pub split: SplitConfig,
    /// How samples were assigned.
    pub assign: AssignConfig,
    /// BLAKE3 hash of each file.
    pub hashes: BTreeMap<String, String>,
}

/// How samples are stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum StoreInfo {
    /// `images.npy`: `[samples, size, size, 3]` uint8.
    Images {
        /// Height and width in pixels.
        size: u32,
    },
    /// `embeddings.npy`: `[samples, dim]` float32.
    Embeddings {
        /// Length of an embedding.
        dim: u32,
    },
    /// No samples: the benchmark holds classes only.
    ClassesOnly,
}

impl StoreInfo {
    /// How a benchmark made from `source` stores its samples.
    pub(super) fn of(source: &dyn Source, config: &BuildConfig) -> Self {
        match source.kind() {
            _ if config.classes_only => Self::ClassesOnly,
            SampleKind::Images => Self::Images { size: config.size },
            SampleKind::Embeddings { dim } => Self::Embeddings { dim: dim as u32 },
        }
    }

    /// Name, type and shape of a row of the array that holds the samples.
    pub(super) fn array(&self) -> Option<(&'static str, Element, Vec<usize>)> {
        match *self {
            Self::Images { size } => Some((IMAGES, Element::U8, vec![size as usize, size as usize, 3])),
            Self::Embeddings { dim } => Some((EMBEDDINGS, Element::F32, vec![dim as usize])),
            Self::ClassesOnly => None,
        }
    }
}

/// How many there are of everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All classes.
    pub classes: usize,
    /// Edges between them.
    pub edges: usize,
    /// Stored samples.
    pub samples: usize,
    /// Images of the source that could not be read.
    pub broken: usize,
}

impl Manifest {
    /// Reads the manifest of the benchmark directory `folder`.
    pub fn read(folder: &Path) -> Result<Self, DataError> {
        let path = folder.join(MANIFEST);
        let file = path.display().to_string();
        let text = std::fs::read_to_string(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                DataError::NotABenchmark { path: folder.to_owned(), manifest: MANIFEST }
            }
            _ => DataError::io("read", &path, error),
        })?;
        let malformed = |reason: String| DataError::Malformed { file: file.clone(), reason };
        let stated = text.rsplit_once(SEAL).map(|(above, hash)| seal(above) == hash.trim_end());
        if stated == Some(false) {
            return Err(malformed("it has changed since it was built; build the benchmark anew".into()));
        }
        let manifest: Self = toml::from_str(&text)
            .map_err(|error| malformed(gpn_taxonomy::plain_words(&error.to_string())))?;
        if manifest.format != FORMAT {
            return Err(malformed(format!(
                "layout version {} is not version {FORMAT}, which this program reads; build the benchmark anew",
                manifest.format
            )));
        }
        if stated.is_none() {
            return Err(malformed("its last line is missing; build the benchmark anew".into()));
        }
        Ok(manifest)
    }

    /// The text of the file. Its last line is the hash of the lines above.
    pub(super) fn to_text(&self) -> Result<String, toml::ser::Error> {
        let text = toml::to_string(self)?;
        let seal = seal(&text);
        Ok(format!("{text}{SEAL}{seal}\n"))
    }

    /// One hash for the whole benchmark: that of its files' hashes. Hashes of blocks add nothing to that of the file.
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (file, hash) in self.hashes.iter().filter(|(file, _)| *file != BLOCKS) {
            hasher.update(file.as_bytes()).update(hash.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}
