//! From the last map to the embedding, and back.

use crate::geometry::{CHANNEL_BLOCK, Map};

/// Side of the average pooling window at the end of ResNet-08 and ResNet-20.
pub(crate) const AVERAGE_POOL: usize = 8;

/// The windows of a map that are averaged: number, first row and first column of each.
fn windows(map: Map) -> impl Iterator<Item = (usize, usize, usize)> {
    let (h, w) = (map.h / AVERAGE_POOL, map.w / AVERAGE_POOL);
    (0..h * w).map(move |window| (window, window / w * AVERAGE_POOL, window % w * AVERAGE_POOL))
}

/// Averages 8x8 windows of a padded map into an embedding `[channels, h / 8, w / 8]`.
pub(crate) fn average_pool(map: Map, padded: &[f32], embedding: &mut [f32]) {
    let area = (AVERAGE_POOL * AVERAGE_POOL) as f32;
    let count = embedding.len() / map.c;
    for (window, top, left) in windows(map) {
        for c in (0..map.c).step_by(CHANNEL_BLOCK) {
            let mut sums = [0.0; CHANNEL_BLOCK];
            for y in top..top + AVERAGE_POOL {
                for x in left..left + AVERAGE_POOL {
                    let pixel = &padded[map.padded_at(y, x) + c..][..CHANNEL_BLOCK];
                    for (sum, value) in sums.iter_mut().zip(pixel) {
                        *sum += value;
                    }
                }
            }
            for (channel, sum) in sums.iter().enumerate() {
                embedding[(c + channel) * count + window] = sum / area;
            }
        }
    }
}

/// The transpose of [`average_pool`]: spreads the gradient of an embedding over a dense map.
pub(crate) fn spread_average(map: Map, embedding: &[f32], dense: &mut [f32]) {
    let area = (AVERAGE_POOL * AVERAGE_POOL) as f32;
    let count = embedding.len() / map.c;
    dense.fill(0.0);
    for (window, top, left) in windows(map) {
        for c in (0..map.c).step_by(CHANNEL_BLOCK) {
            let mut shares = [0.0; CHANNEL_BLOCK];
            for (channel, share) in shares.iter_mut().enumerate() {
                *share = embedding[(c + channel) * count + window] / area;
            }
            for y in top..top + AVERAGE_POOL {
                for x in left..left + AVERAGE_POOL {
                    dense[map.at(y, x) + c..][..CHANNEL_BLOCK].copy_from_slice(&shares);
                }
            }
        }
    }
}

/// Reads a padded map out as an embedding `[channels, h, w]`.
pub(crate) fn flatten(map: Map, channels: usize, padded: &[f32], embedding: &mut [f32]) {
    for (c, plane) in embedding.chunks_exact_mut(map.h * map.w).enumerate().take(channels) {
        for (i, value) in plane.iter_mut().enumerate() {
            *value = padded[map.padded_at(i / map.w, i % map.w) + c];
        }
    }
}

/// The transpose of [`flatten`]: spreads the gradient of an embedding over a dense map's real channels.
pub(crate) fn unflatten(map: Map, channels: usize, embedding: &[f32], dense: &mut [f32]) {
    dense.fill(0.0);
    for (c, plane) in embedding.chunks_exact(map.h * map.w).enumerate().take(channels) {
        for (i, &value) in plane.iter().enumerate() {
            dense[i * map.c + c] = value;
        }
    }
}

/// The mean of all pixels of a padded map, for each real channel: `embedding.len()` of them.
pub(crate) fn mean(map: Map, padded: &[f32], embedding: &mut [f32]) {
    embedding.fill(0.0);
    for (y, x) in (0..map.h * map.w).map(|i| (i / map.w, i % map.w)) {
        for (sum, value) in embedding.iter_mut().zip(&padded[map.padded_at(y, x)..]) {
            *sum += value;
        }
    }
    for sum in embedding {
        *sum /= (map.h * map.w) as f32;
    }
}

/// The transpose of [`mean`]: spreads the gradient of an embedding over a dense map.
pub(crate) fn spread_mean(map: Map, embedding: &[f32], dense: &mut [f32]) {
    dense.fill(0.0);
    for pixel in dense.chunks_exact_mut(map.c) {
        for (share, value) in pixel.iter_mut().zip(embedding) {
            *share = value / (map.h * map.w) as f32;
        }
    }
}
