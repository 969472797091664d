//! Packing the samples of a source into one array, in one pass.

use rayon::prelude::*;

use super::manifest::StoreInfo;
use crate::error::DataError;
use crate::progress::Watch;
use crate::source::Source;
use crate::transform::{EvalTransform, ImageView, TransformError};

/// Samples read between two writes. This bounds the memory of a build, and they are still in cache when written.
const CHUNK: usize = 128;

/// What was packed.
#[derive(Debug)]
pub(super) struct Packed {
    /// For each row, the source's sample it came from.
    pub(super) origin: Vec<u32>,
    /// What is wrong with each sample left out, naming it.
    pub(super) broken: Vec<String>,
}

impl Packed {
    /// The rows of each of the source's leaves.
    pub(super) fn rows_of_leaf(&self, source: &dyn Source) -> Vec<Vec<u32>> {
        let mut rows = vec![Vec::new(); source.leaves().len()];
        for (row, &sample) in self.origin.iter().enumerate() {
            rows[source.samples()[sample as usize].leaf as usize].push(row as u32);
        }
        rows
    }
}

/// Takes whole rows of the array, one after the other.
pub(super) type WriteRows<'a> = dyn FnMut(&[u8]) -> Result<(), DataError> + Send + 'a;

/// Hands the samples of `source` to `write_rows` in the form of `store`.
///
/// An image that cannot be read is left out and reported, or, if `strict`, ends the work.
pub(super) fn pack(
    source: &dyn Source,
    store: &StoreInfo,
    strict: bool,
    write_rows: &mut WriteRows<'_>,
    watch: &Watch<'_>,
) -> Result<Packed, DataError> {
    match *store {
        StoreInfo::Images { size } => pack_images(source, size, strict, write_rows, watch),
        StoreInfo::Embeddings { dim } => pack_embeddings(source, dim as usize, write_rows, watch),
        StoreInfo::ClassesOnly => Ok(Packed { origin: Vec::new(), broken: Vec::new() }),
    }
}

fn pack_images(
    source: &dyn Source,
    size: u32,
    strict: bool,
    write_rows: &mut WriteRows<'_>,
    watch: &Watch<'_>,
) -> Result<Packed, DataError> {
    let total = source.samples().len();
    let pixels = (size * size * 3) as usize;
    let mut packed = Packed { origin: Vec::new(), broken: Vec::new() };
    let decode = |start: usize, chunk: &mut [u8]| -> Vec<Result<(), DataError>> {
        chunk
            .par_chunks_exact_mut(pixels)
            .take(total - start)
            .enumerate()
            .map_init(
                || EvalTransform::whole(size),
                |square, (offset, out)| {
                    watch.check()?;
                    let square = square.as_mut().map_err(|error| error.clone())?;
                    let image = source.image(start + offset)?;
                    // An image that cannot be made a square (one of 1x5000 pixels, say) counts as broken.
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
                Err(error) if error.is_of_one_sample() && !strict => {
                    packed.broken.push(error.to_string());
                    write_rows(&chunk[from * pixels..offset * pixels])?;
                    from = offset + 1;
                }
                Err(error) => return Err(error),
            }
        }
        write_rows(&chunk[from * pixels..end * pixels])
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
        watch.reach(start.min(total))?;
    }
    Ok(packed)
}

fn pack_embeddings(
    source: &dyn Source,
    dim: usize,
    write_rows: &mut WriteRows<'_>,
    watch: &Watch<'_>,
) -> Result<Packed, DataError> {
    let total = source.samples().len();
    let mut row = vec![0.0; dim];
    let mut bytes = Vec::with_capacity(CHUNK * dim * size_of::<f32>());
    for start in (0..total).step_by(CHUNK) {
        let end = total.min(start + CHUNK);
        bytes.clear();
        for sample in start..end {
            watch.check()?;
            source.embedding(sample, &mut row)?;
            bytes.extend(row.iter().flat_map(|value| value.to_le_bytes()));
        }
        write_rows(&bytes)?;
        watch.reach(end)?;
    }
    Ok(Packed { origin: (0..total as u32).collect(), broken: Vec::new() })
}
