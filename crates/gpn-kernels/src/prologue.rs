//! Element-wise work on the way into a convolution: the padded map a worker is about to convolve is made
//! from what the batch keeps, so that normalised, activated and pooled maps are never written to memory.

use crate::epilogue::is_streamable;
use crate::geometry::{IMAGE_CHANNELS, Map};
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

/// Copies a padded map into a dense one.
pub(crate) fn copy_dense(map: Map, padded: &[f32], out: &mut [f32]) {
    let row = map.w * map.c;
    for (y, to) in out.chunks_exact_mut(row).enumerate() {
        let at = map.padded_at(y, 0);
        to.copy_from_slice(&padded[at..at + row]);
    }
}

/// A block's shortcut: every `stride`-th pixel of a map, in its channels.
#[derive(Clone, Copy)]
pub(crate) struct ShortcutSource<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) map: Map,
    pub(crate) stride: usize,
    /// The batch norm that `data` has still to go through.
    pub(crate) norm: Option<&'a BatchNorm>,
    /// Whether a ReLU follows that.
    pub(crate) has_relu: bool,
}

/// `activation(raw * scale + shift + shortcut)` into a padded map, and into a dense one where it is kept.
pub(crate) struct Activate<'a> {
    pub(crate) raw: &'a [f32],
    pub(crate) map: Map,
    pub(crate) norm: &'a BatchNorm,
    pub(crate) shortcut: Option<ShortcutSource<'a>>,
    /// Slope of the activation below zero.
    pub(crate) slope: f32,
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
            assert!(s.data.len() >= s.map.len() && s.norm.is_none_or(|n| n.scale.len() == s.map.c));
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
                            #[expect(
                                clippy::manual_map,
                                reason = "a closure has no instruction set of its own"
                            )]
                            let affine = match s.norm {
                                Some(n) => {
                                    Some((V::load(n.scale.as_ptr().add(c)), V::load(n.shift.as_ptr().add(c))))
                                }
                                None => None,
                            };
                            let short = s.data.as_ptr().add(s.map.at(y * s.stride, 0) + c);
                            for x in 0..map.w {
                                let mut past = V::load(short.add(x * s.stride * s.map.c));
                                if let Some((scale, shift)) = affine {
                                    past = past.mul_add(scale, shift);
                                }
                                if s.has_relu {
                                    past = past.relu();
                                }
                                let v = V::load(raw.add(x * map.c)).mul_add(scale, shift).add(past);
                                let v = v.leaky_relu(self.slope);
                                v.store(out.add(x * map.c));
                                if let Some(keep) = keep {
                                    v.stream_line(keep.add(x * map.c));
                                }
                            }
                        }
                        _ => {
                            for x in 0..map.w {
                                let v =
                                    V::load(raw.add(x * map.c)).mul_add(scale, shift).leaky_relu(self.slope);
                                v.store(out.add(x * map.c));
                                if let Some(keep) = keep {
                                    v.stream_line(keep.add(x * map.c));
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
                    let [of_output, of_input, constant] = self.form.vectors::<V>(c);
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
