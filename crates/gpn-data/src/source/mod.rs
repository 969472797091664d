//! Where samples come from: one [`Source`] for each form in which data sets are handed around.

mod cifar100;
mod embeddings;
mod folder;
mod image_files;
mod labels;
mod leaf_lists;
mod parquet_headers;
mod parquet_table;
mod spec;
mod synthetic;
mod tiered_imagenet;
mod tiny_imagenet;

pub use embeddings::{EmbeddingRows, is_embeddings_name, read_embeddings};
pub use spec::{SourceKind, SourceSpec};
pub use synthetic::SyntheticSource;

use gpn_taxonomy::{Checked, TaxonomyError};

use crate::DataError;
use crate::format::image::RgbImage;
use crate::synthetic::SyntheticConfig;

/// What the samples of a source are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleKind {
    /// Images, each of its own size.
    Images,
    /// Vectors of `dim` numbers.
    Embeddings {
        /// Length of every vector.
        dim: usize,
    },
}

/// A class that has samples of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// What the taxonomy calls the class: a WordNet id, a folder name, a label.
    pub id: String,
    /// A name for people, where the source has one.
    pub name: Option<String>,
}

/// One sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleInfo {
    /// Its class, an index into [`Source::leaves`].
    pub leaf: u32,
    /// Its name within the source, for reports.
    pub file: String,
}

/// A data set: leaf classes and their samples, read on demand from any thread.
pub trait Source: Send + Sync {
    /// Kind and path, for reports.
    fn describe(&self) -> String;

    /// What the samples are.
    fn kind(&self) -> SampleKind;

    /// The leaf classes, in natural order of their ids.
    fn leaves(&self) -> &[Leaf];

    /// The samples; their order depends on the data set alone, not on how it is packed.
    fn samples(&self) -> &[SampleInfo];

    /// Image `index`, decoded, upright, RGB.
    fn image(&self, index: usize) -> Result<RgbImage, DataError> {
        Err(self.no_sample(index, "images"))
    }

    /// Writes embedding `index` into `out`, which has the dimension of [`SampleKind::Embeddings`].
    fn embedding(&self, index: usize, out: &mut [f32]) -> Result<(), DataError> {
        let _ = out;
        Err(self.no_sample(index, "embeddings"))
    }

    /// The class graph that the data set brings along, where it does.
    fn taxonomy(&self) -> Option<Result<Checked, TaxonomyError>> {
        None
    }

    /// The error for a sample this source does not have.
    #[doc(hidden)]
    fn no_sample(&self, index: usize, wanted: &str) -> DataError {
        let count = self.samples().len();
        let reason = if index < count {
            format!("sample {index} has no {wanted}; this source holds {:?}", self.kind())
        } else {
            format!("there is no sample {index}; this source has {count}")
        };
        DataError::NoSuchSample { source_name: self.describe(), reason }
    }
}

/// Opens a source.
///
/// ```no_run
/// let source = gpn_data::source::open(&"tiny-imagenet:tiny-imagenet-200.zip".parse()?)?;
/// println!("{}: {} classes, {} samples", source.describe(), source.leaves().len(), source.samples().len());
/// let image = source.image(0)?;
/// assert_eq!((image.width(), image.height()), (64, 64));
/// # Ok::<(), gpn_data::DataError>(())
/// ```
pub fn open(spec: &SourceSpec) -> Result<Box<dyn Source>, DataError> {
    let path = spec.path.as_path();
    Ok(match spec.kind {
        SourceKind::ImageFolder => Box::new(folder::open(path)?),
        SourceKind::TinyImagenet => Box::new(tiny_imagenet::open(path)?),
        SourceKind::TieredImagenet if leaf_lists::alone_in(path) => Box::new(leaf_lists::open(path)?),
        SourceKind::TieredImagenet => Box::new(tiered_imagenet::open(path)?),
        SourceKind::Cifar100 => Box::new(cifar100::open(path)?),
        SourceKind::Embeddings => Box::new(embeddings::open(path)?),
        SourceKind::Leaves => Box::new(leaf_lists::open(path)?),
        SourceKind::Synthetic => Box::new(SyntheticSource::new(SyntheticConfig::default())),
    })
}
