//! Where samples come from: one [`Source`] for each form in which data sets are handed around.

mod array;
mod cifar100;
mod embeddings;
mod folder;
mod foreign_files;
mod guess;
mod image_files;
mod labels;
mod leaf_lists;
mod note;
mod parquet_headers;
mod parquet_rows;
mod parquet_table;
mod photos;
mod spec;
mod synthetic;
mod tiered_imagenet;
mod tiny_imagenet;

pub use array::ArraySource;
pub use embeddings::{EmbeddingRows, is_embeddings_name, read_embeddings};
pub use note::{SourceNote, left_out};
pub use parquet_rows::{ParquetRows, RowColumn, RowReader, RowValue};
pub use spec::{SourceKind, SourceSpec};
pub use synthetic::SyntheticSource;

use std::borrow::Cow;

use gpn_taxonomy::{Checked, TaxonomyError};

use crate::DataError;
use crate::format::image::RgbImage;
use crate::progress::{Progress, Watch};
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

    /// The file of image `index` as it is stored, where the source keeps image files: what a cache tells images apart by,
    /// without decoding them.
    fn encoded_image(&self, index: usize) -> Option<Result<Cow<'_, [u8]>, DataError>> {
        let _ = index;
        None
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

    /// What a person should know of files that were left out or taken otherwise than they may expect: one note for each
    /// kind of thing.
    fn notes(&self) -> Vec<SourceNote> {
        Vec::new()
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
    open_watched(spec, &())
}

/// Opens a source. `progress` can stop it, since inflating an archive or reading a table may take long; its numbers are 0.
pub fn open_watched(spec: &SourceSpec, progress: &dyn Progress) -> Result<Box<dyn Source>, DataError> {
    let watch = &Watch::new(progress, 0);
    watch.reach(0)?;
    let path = spec.path.as_path();
    Ok(match spec.kind {
        SourceKind::Photos => Box::new(photos::open(path, watch)?),
        SourceKind::ImageFolder => Box::new(folder::open(path, watch)?),
        SourceKind::TinyImagenet => Box::new(tiny_imagenet::open(path, watch)?),
        SourceKind::TieredImagenet if leaf_lists::alone_in(path) => Box::new(leaf_lists::open(path)?),
        SourceKind::TieredImagenet => Box::new(tiered_imagenet::open(path, watch)?),
        SourceKind::Cifar100 => Box::new(cifar100::open(path, watch)?),
        SourceKind::Embeddings => Box::new(embeddings::open(path, watch)?),
        SourceKind::Leaves => Box::new(leaf_lists::open(path)?),
        SourceKind::Synthetic => Box::new(SyntheticSource::new(SyntheticConfig::default())),
    })
}
