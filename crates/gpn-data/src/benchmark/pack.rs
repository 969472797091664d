//! Packing the samples of a source into one array, in one pass and with bounded memory.

use std::path::Path;

use rayon::prelude::*;

use super::build::OnProgress;
use super::manifest::StoreInfo;
use super::store::{EMBEDDINGS, IMAGES};
use crate::error::DataError;
use crate::format::element::Element;
use crate::format::npy::RowWriter;
use crate::source::{SampleKind, Source};
use crate::transform::{EvalTransform, ImageView, TransformError};

/// Samples read between two writes: bounds the memory of a build. So few that they are still in cache when written.
const CHUNK: usize = 128;

/// What was packed.
#[derive(Debug)]
pub(super) struct Packed {
    /// The form of the array.
    pub(super) info: StoreInfo,
    /// For each row, the source's sample it came from.
    pub(super) origin: Vec<u32>,
    /// What is wrong with each sample left out, naming it.
    pub(super) broken: Vec<String>,
}

impl Packed {
    /// For benchmarks of classes only.
    pub(super) fn nothing() -> Self {
        Self { info: StoreInfo::ClassesOnly, origin: Vec::new(), broken: Vec::new() }
    }

    /// The rows of each of the source's leaves.
    pub(super) fn rows_of_leaf(&self, source: &dyn Source) -> Vec<Vec<u32>> {
        let mut rows = vec![Vec::new(); source.leaves().len()];
        for (row, &sample) in self.origin.iter().enumerate() {
            rows[source.samples()[sample as usize].leaf as usize].push(row as u32);
        }
        rows
    }
}

/// Writes the samples of `source` into `folder`; images as squares of `size`.
///
/// An image that cannot be read is left out and reported, or, if `strict`, ends the work.
pub(super) fn pack(
    source: &dyn Source,
    folder: &Path,
    size: u32,
    strict: bool,
    on_progress: OnProgress<'_>,
) -> Result<Packed, DataError> {
    match source.kind() {
        SampleKind::Images => pack_images(source, folder, size, strict, on_progress),
        SampleKind::Embeddings { dim } => pack_embeddings(source, folder, dim, on_progress),
    }
}

fn pack_images(
    source: &dyn Source,
    folder: &Path,
    size: u32,
    strict: bool,
    on_progress: OnProgress<'_>,
) -> Result<Packed, DataError> {
    let total = source.samples().len();
    let pixels = (size * size * 3) as usize;
    let mut writer =
        RowWriter::create(&folder.join(IMAGES), Element::U8, &[size as usize, size as usize, 3])?;
    let mut packed = Packed { info: StoreInfo::Images { size }, origin: Vec::new(), broken: Vec::new() };
    let decode = |start: usize, chunk: &mut [u8]| -> Vec<Result<(), DataError>> {
        chunk
            .par_chunks_exact_mut(pixels)
            .take(total - start)
            .enumerate()
            .map_init(
                || EvalTransform::whole(size),
                |square, (offset, out)| {
                    let square = square.as_mut().map_err(|error| error.clone())?;
                    let image = source.image(start + offset)?;
                    // An image that cannot be made a square (one of 1x5000 pixels, say) is as good as a broken one.
                    let unfit = |error: TransformError| DataError::BrokenImage {
                        file: source.samples()[start + offset].file.clone(),
                        reason: error.to_string(),
                    };
                    let view =
                        ImageView::new(image.width(), image.height(), image.pixels()).map_err(unfit)?;
                    square.apply(view, out).map_err(unfit)
                },
            )
            .collect()
    };
    let mut write = |start: usize, chunk: &[u8], results: Vec<Result<(), DataError>>| {
        // Neighbouring rows go to the file in one piece.
        let (mut from, end) = (0, results.len());
        for (offset, result) in results.into_iter().enumerate() {
            match result {
                Ok(()) => packed.origin.push((start + offset) as u32),
                Err(error @ DataError::BrokenImage { .. }) if !strict => {
                    packed.broken.push(error.to_string());
                    writer.write(&chunk[from * pixels..offset * pixels])?;
                    from = offset + 1;
                }
                Err(error) => return Err(error),
            }
        }
        writer.write(&chunk[from * pixels..end * pixels])
    };
    // One chunk is decoded while the one before it is written.
    let (mut next, mut last) = (vec![0; CHUNK * pixels], vec![0; CHUNK * pixels]);
    let mut decoded = Vec::new();
    for start in (0..=total.next_multiple_of(CHUNK)).step_by(CHUNK) {
        let before = std::mem::take(&mut decoded);
        let write_last = || write(start.saturating_sub(CHUNK), &last, before);
        let decode_next = || if start < total { decode(start, &mut next) } else { Vec::new() };
        let (written, results) = rayon::join(write_last, decode_next);
        written?;
        decoded = results;
        std::mem::swap(&mut next, &mut last);
        on_progress(start.min(total), total);
    }
    writer.finish()?;
    Ok(packed)
}

fn pack_embeddings(
    source: &dyn Source,
    folder: &Path,
    dim: usize,
    on_progress: OnProgress<'_>,
) -> Result<Packed, DataError> {
    let total = source.samples().len();
    let mut writer = RowWriter::create(&folder.join(EMBEDDINGS), Element::F32, &[dim])?;
    let mut row = vec![0.0; dim];
    for sample in 0..total {
        source.embedding(sample, &mut row)?;
        writer.write_f32(&row)?;
        on_progress(sample + 1, total);
    }
    writer.finish()?;
    Ok(Packed {
        info: StoreInfo::Embeddings { dim: dim as u32 },
        origin: (0..total as u32).collect(),
        broken: Vec::new(),
    })
}
