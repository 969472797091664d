//! The packed samples of a benchmark: one NumPy array, read through a memory map.

use std::path::Path;

use super::manifest::StoreInfo;
use crate::error::DataError;
use crate::format::element::Element;
use crate::format::npy::Npy;

pub(super) const IMAGES: &str = "images.npy";
pub(super) const EMBEDDINGS: &str = "embeddings.npy";

/// The samples of an opened benchmark.
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
        match *info {
            StoreInfo::Images { size } => {
                let shape = [samples, size as usize, size as usize, 3];
                Ok(Self::Images { size, array: open_array(&folder.join(IMAGES), Element::U8, &shape)? })
            }
            StoreInfo::Embeddings { dim } => {
                let shape = [samples, dim as usize];
                Ok(Self::Embeddings {
                    dim,
                    array: open_array(&folder.join(EMBEDDINGS), Element::F32, &shape)?,
                })
            }
            StoreInfo::ClassesOnly => Ok(Self::Empty),
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
