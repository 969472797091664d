//! Element-wise work on the way into a convolution: the padded map a worker is about to convolve is made
//! from what the batch keeps, so that normalised, activated and pooled maps are never written to memory.

use crate::epilogue::{is_streamable, load_window};
use crate::geometry::{CHANNEL_BLOCK, IMAGE_CHANNELS, Map};
use crate::norm::{BatchNorm, BatchNormGradient};
use crate::simd::{Kernel, Vector};

/// Copies an image `[3, h, w]` into a padded map with the channels of a pixel together.
pub(crate) fn image(map: Map, image: &[f32], out: &mut [f32]) {
    let (red, others) = image.split_at(map.h * map.w);
    let (green, blue) = others.split_at(map.h * map.w);
    let rows = red.chunks_exact(map.w).zip(green.chunks_exact(map.w)).zip(blue.chunks_exact(map.w));
    for (y, ((red, green), blue)) in rows.enumerate() {
        let at = map.padded_at(y, 0);
        let (pixels, _) = out[at..at + map.w * IMAGE_CHANNELS].as_chunks_mut::<IMAGE_CHANNELS>();
        for (((pixel, &red), &green), &blue) in pixels.iter_mut().zip(red).zip(green).zip(blue) {
            *pixel = [red, green, blue];
        }
    }
}

/// Copies a dense map into a padded one.
pub(crate) fn copy(map: Map, dense: &[f32], out: &mut [f32]) {
    let row = map.w * map.c;
    for (y, from) in dense.chunks_exact(row).enumerate() {
        let at = map.padded_at(y, 0);
        out[at..at + row].copy_from_slice(from);
    }
}

/// A block's shortcut: `relu(data * scale + shift)` at every `stride`-th pixel, in the first channels.
/// A map that is stored activated has scale 1 and shift 0.
#[derive(Clone, Copy)]
pub(crate) struct ShortcutSource<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) map: Map,
    pub(crate) stride: usize,
    pub(crate) scale: &'a [f32],
    pub(crate) shift: &'a [f32],
}

/// `relu(raw * scale + shift + shortcut)` into a padded map, and into a dense one where it is kept.
pub(crate) struct Activate<'a> {
    pub(crate) raw: &'a [f32],
    pub(crate) map: Map,
    pub(crate) norm: &'a BatchNorm,
    pub(crate) shortcut: Option<ShortcutSource<'a>>,
    pub(crate) out: &'a mut [f32],
    pub(crate) keep: Option<&'a mut [f32]>,
}

impl Kernel for Activate<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        self.run_fused::<V::Fused>();
    }
}

impl Activate<'_> {
    /// Rounds as PyTorch does, so that a value near zero falls on the same side of the ReLU.
    #[inline(always)]
    fn run_fused<V: Vector>(self) {
        let map = self.map;
        assert!(self.raw.len() >= map.len() && self.out.len() >= map.padded_len());
        assert!(self.norm.scale.len() == map.c && self.norm.shift.len() == map.c);
        assert!(self.keep.as_ref().is_none_or(|k| k.len() >= map.len() && is_streamable(k)));
        if let Some(s) = &self.shortcut {
            assert!(s.data.len() >= s.map.len() && s.scale.len() >= s.map.c && s.shift.len() >= s.map.c);
            assert!(s.map.h > s.stride * (map.h - 1) && s.map.w > s.stride * (map.w - 1));
        }
        let keep = self.keep.map(<[f32]>::as_mut_ptr);
        for y in 0..map.h {
            for c in (0..map.c).step_by(V::LANES) {
                // SAFETY: pixels are inside the maps, whose lengths were checked; `c` is below `map.c`.
                unsafe {
                    let scale = V::load(self.norm.scale.as_ptr().add(c));
                    let shift = V::load(self.norm.shift.as_ptr().add(c));
                    let raw = self.raw.as_ptr().add(map.at(y, 0) + c);
                    let out = self.out.as_mut_ptr().add(map.padded_at(y, 0) + c);
                    let keep = keep.map(|k| k.add(map.at(y, 0) + c));
                    match &self.shortcut {
                        Some(s) if c < s.map.c => {
                            let short_scale = V::load(s.scale.as_ptr().add(c));
                            let short_shift = V::load(s.shift.as_ptr().add(c));
                            let short = s.data.as_ptr().add(s.map.at(y * s.stride, 0) + c);
                            for x in 0..map.w {
                                let past = V::load(short.add(x * s.stride * s.map.c));
                                let past = past.mul_add(short_scale, short_shift).relu();
                                let v = V::load(raw.add(x * map.c)).mul_add(scale, shift).add(past).relu();
                                v.store(out.add(x * map.c));
                                if let Some(keep) = keep {
                                    v.stream(keep.add(x * map.c));
                                }
                            }
                        }
                        _ => {
                            for x in 0..map.w {
                                let v = V::load(raw.add(x * map.c)).mul_add(scale, shift).relu();
                                v.store(out.add(x * map.c));
                                if let Some(keep) = keep {
                                    v.stream(keep.add(x * map.c));
                                }
                            }
                        }
                    }
                }
            }
        }
        V::finish_streams();
    }
}

/// 2x2 max pooling of `relu(raw * scale + shift)` into a padded map.
pub(crate) struct ActivateAndPool<'a> {
    pub(crate) raw: &'a [f32],
    pub(crate) map: Map,
    pub(crate) scale: &'a [f32],
    pub(crate) shift: &'a [f32],
    pub(crate) out: &'a mut [f32],
    /// The pooled map, `floor(map / 2)`.
    pub(crate) pooled: Map,
}

impl Kernel for ActivateAndPool<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        let (map, pooled) = (self.map, self.pooled);
        assert!(self.raw.len() >= map.len() && self.out.len() >= pooled.padded_len());
        assert!(self.scale.len() >= map.c && self.shift.len() >= map.c && map.c == pooled.c);
        assert!(pooled.h * 2 <= map.h && pooled.w * 2 <= map.w);
        for y in 0..pooled.h {
            for c in (0..map.c).step_by(V::LANES) {
                // SAFETY: windows are inside the map and pooled pixels inside theirs; lengths were checked.
                unsafe {
                    let scale = V::load(self.scale.as_ptr().add(c));
                    let shift = V::load(self.shift.as_ptr().add(c));
                    for x in 0..pooled.w {
                        let window = load_window::<V>(self.raw.as_ptr().add(map.at(2 * y, 2 * x) + c), map);
                        let mut best = V::zero();
                        for raw in window {
                            best = raw.mul_add(scale, shift).max(best);
                        }
                        best.store(self.out.as_mut_ptr().add(pooled.padded_at(y, x) + c));
                    }
                }
            }
        }
    }
}

/// The gradient of a convolution's output from that of its batch norm, into a padded map.
pub(crate) struct NormBackward<'a> {
    /// Gradient of the batch norm's output, dense.
    pub(crate) gradient: &'a [f32],
    pub(crate) raw: &'a [f32],
    pub(crate) map: Map,
    pub(crate) form: &'a BatchNormGradient,
    pub(crate) out: &'a mut [f32],
}

impl Kernel for NormBackward<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        let map = self.map;
        assert!(self.gradient.len() >= map.len() && self.raw.len() >= map.len());
        assert!(self.out.len() >= map.padded_len() && self.form.constant.len() == map.c);
        for y in 0..map.h {
            for c in (0..map.c).step_by(V::LANES) {
                // SAFETY: pixels are inside the maps, whose lengths were checked.
                unsafe {
                    let of_output = V::load(self.form.of_output.as_ptr().add(c));
                    let of_input = V::load(self.form.of_input.as_ptr().add(c));
                    let constant = V::load(self.form.constant.as_ptr().add(c));
                    let gradient = self.gradient.as_ptr().add(map.at(y, 0) + c);
                    let raw = self.raw.as_ptr().add(map.at(y, 0) + c);
                    let out = self.out.as_mut_ptr().add(map.padded_at(y, 0) + c);
                    for x in 0..map.w {
                        let through_statistics = V::load(raw.add(x * map.c)).mul_add(of_input, constant);
                        let v = V::load(gradient.add(x * map.c)).mul_add(of_output, through_statistics);
                        v.store(out.add(x * map.c));
                    }
                }
            }
        }
    }
}

/// As [`NormBackward`], where a 2x2 max pooling follows: the gradient of a pooled pixel belongs to the first
/// of the window's largest values.
pub(crate) struct PoolNormBackward<'a> {
    /// Gradient at the pooled pixels (after the ReLU's gate), dense.
    pub(crate) gradient: &'a [f32],
    pub(crate) pooled: Map,
    pub(crate) raw: &'a [f32],
    pub(crate) map: Map,
    pub(crate) norm: &'a BatchNorm,
    pub(crate) form: &'a BatchNormGradient,
    pub(crate) out: &'a mut [f32],
}

impl Kernel for PoolNormBackward<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        let (map, pooled) = (self.map, self.pooled);
        assert!(self.gradient.len() >= pooled.len() && self.raw.len() >= map.len());
        assert!(self.out.len() >= map.padded_len() && self.form.constant.len() == map.c);
        assert!(pooled.h * 2 <= map.h && pooled.w * 2 <= map.w && pooled.c == map.c);
        for c in (0..map.c).step_by(V::LANES) {
            // SAFETY: windows and pixels are inside the maps, whose lengths were checked.
            unsafe {
                let scale = V::load(self.norm.scale.as_ptr().add(c));
                let shift = V::load(self.norm.shift.as_ptr().add(c));
                let of_output = V::load(self.form.of_output.as_ptr().add(c));
                let of_input = V::load(self.form.of_input.as_ptr().add(c));
                let constant = V::load(self.form.constant.as_ptr().add(c));
                let raw = self.raw.as_ptr().add(c);
                let out = self.out.as_mut_ptr().add(c);
                for y in 0..pooled.h {
                    for x in 0..pooled.w {
                        let g = V::load(self.gradient.as_ptr().add(pooled.at(y, x) + c)).mul(of_output);
                        let window = load_window::<V>(raw.add(map.at(2 * y, 2 * x)), map);
                        let mut z = window;
                        for value in &mut z {
                            *value = value.mul_add(scale, shift);
                        }
                        let best = z[0].max(z[1]).max(z[2].max(z[3]));
                        // What is left for the later pixels once a pixel took the gradient.
                        let mut left = g;
                        for (i, (&r, &z)) in window.iter().zip(&z).enumerate() {
                            // A value below the best takes nothing.
                            let taken = best.select_greater(z, V::zero(), left);
                            left = best.select_greater(z, left, V::zero());
                            let v = r.mul_add(of_input, constant).add(taken);
                            v.store(out.add(map.padded_at(2 * y + i / 2, 2 * x + i % 2)));
                        }
                    }
                }
                // Pixels of an odd last row or column are in no window.
                for y in 0..map.h {
                    let first = if y < 2 * pooled.h { 2 * pooled.w } else { 0 };
                    for x in first..map.w {
                        let v = V::load(raw.add(map.at(y, x))).mul_add(of_input, constant);
                        v.store(out.add(map.padded_at(y, x)));
                    }
                }
            }
        }
    }
}

/// Side of the average pooling window at the end of the ResNets.
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
