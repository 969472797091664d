//! The packed samples of a benchmark: one array, mapped or in memory.

use std::path::Path;

use super::manifest::{StoreInfo, hash};
use crate::error::DataError;
use crate::format::element::Element;
use crate::format::npy::Npy;
use crate::progress::Watch;

pub(super) const IMAGES: &str = "images.npy";
pub(super) const EMBEDDINGS: &str = "embeddings.npy";

/// The samples of a benchmark.
#[derive(Debug)]
pub enum Store {
    /// `[samples, size, size, 3]` uint8.
    Images {
        /// Height and width.
        size: u32,
        /// The pixels.
        array: Npy,
    },
    /// `[samples, dim]` float32.
    Embeddings {
        /// Length of an embedding.
        dim: u32,
        /// The embeddings.
        array: Npy,
    },
    /// A benchmark of classes only.
    Empty,
}

impl Store {
    /// Maps the array that `info` describes and checks its shape.
    pub(super) fn open(folder: &Path, info: &StoreInfo, samples: usize) -> Result<Self, DataError> {
        let Some((name, element, row)) = info.array() else { return Ok(Self::Empty) };
        let array = open_array(&folder.join(name), element, &[&[samples], &row[..]].concat())?;
        Ok(Self::of(info, array))
    }

    /// Takes whole rows of the array that `info` describes. Returns also the name and the hash of the file that they
    /// would be.
    pub(super) fn in_memory(
        info: &StoreInfo,
        rows: Vec<u8>,
        watch: &Watch<'_>,
    ) -> Result<(Self, Option<(String, String)>), DataError> {
        let Some((name, element, row)) = info.array() else { return Ok((Self::Empty, None)) };
        let array = Npy::from_rows(element, &row, rows, name.to_owned());
        let hash = hash(&array.header_bytes(), array.bytes(), watch)?;
        Ok((Self::of(info, array), Some((name.to_owned(), hash))))
    }

    fn of(info: &StoreInfo, array: Npy) -> Self {
        match *info {
            StoreInfo::Images { size } => Self::Images { size, array },
            StoreInfo::Embeddings { dim } => Self::Embeddings { dim, array },
            StoreInfo::ClassesOnly => Self::Empty,
        }
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        match self {
            Self::Images { array, .. } | Self::Embeddings { array, .. } => array.header().shape[0],
            Self::Empty => 0,
        }
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn open_array(path: &Path, element: Element, shape: &[usize]) -> Result<Npy, DataError> {
    let array = Npy::open(path)?;
    let header = array.header();
    if header.shape != shape || header.element != element || header.fortran {
        return Err(DataError::malformed(
            path.display().to_string(),
            format!(
                "its shape {:?} or type is not that of the {shape:?} array benchmark.toml tells of; build the benchmark anew",
                header.shape
            ),
        ));
    }
    Ok(array)
}
