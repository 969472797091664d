//! What a pass keeps of a batch, and how the input of a layer is made from it again.

use std::ops::Range;

use super::plan::{Layer, Origin, Plan, Source};
use crate::ahead::Ahead;
use crate::buffer::Buffer;
use crate::geometry::Map;
use crate::norm::BatchNorm;
use crate::prologue::{self, Activate, ActivateAndPool, ShortcutSource};
use crate::simd::Simd;

/// A view of the kept maps: those of the layers before the current one.
#[derive(Clone, Copy)]
pub(super) struct Batch<'a> {
    pub(super) simd: Simd,
    pub(super) layers: &'a [Layer],
    pub(super) kept_maps: &'a [Map],
    /// `[n, 3, h, w]`
    pub(super) images: &'a [f32],
    pub(super) raw: &'a [Buffer],
    pub(super) kept: &'a [Buffer],
    pub(super) norms: &'a [BatchNorm],
    /// Scale and shift of a map that is stored activated.
    pub(super) identity: (&'a [f32], &'a [f32]),
}

/// One dense map of a batch of them.
pub(super) fn nth(maps: &[f32], map: Map, image: usize) -> &[f32] {
    &maps[image * map.len()..(image + 1) * map.len()]
}

/// Some dense maps of a batch of them.
pub(super) fn of<'a>(maps: &'a [f32], map: Map, images: &Range<usize>) -> &'a [f32] {
    &maps[images.start * map.len()..images.end * map.len()]
}

impl<'a> Batch<'a> {
    pub(super) fn new(
        simd: Simd,
        plan: &'a Plan,
        images: &'a [f32],
        raw: &'a [Buffer],
        kept: &'a [Buffer],
        norms: &'a [BatchNorm],
    ) -> Self {
        /// As many as the widest block output has channels.
        static IDENTITY: ([f32; 64], [f32; 64]) = ([1.0; 64], [0.0; 64]);
        let identity = (&IDENTITY.0[..], &IDENTITY.1[..]);
        Batch { simd, layers: &plan.layers, kept_maps: &plan.kept, images, raw, kept, norms, identity }
    }

    /// Makes the padded input of layer `layer` (or of the tail, after the last) for one image. A block output
    /// is also written to `keep` if there is one.
    pub(super) fn fill(
        &self,
        source: Source,
        layer: usize,
        map: Map,
        image: usize,
        out: &mut [f32],
        keep: Option<&mut [f32]>,
    ) {
        if source == Source::Image {
            let len = map.h * map.w * map.c;
            return prologue::image(map, &self.images[image * len..(image + 1) * len], out);
        }
        // invariant: only the first layer reads the image, so there is a layer before.
        let raw_map = self.layers[layer - 1].shape.output;
        let raw = nth(&self.raw[layer - 1], raw_map, image);
        let norm = &self.norms[layer - 1];
        match source {
            Source::Pooled => self.simd.run(ActivateAndPool {
                raw,
                map: raw_map,
                scale: &norm.scale,
                shift: &norm.shift,
                out,
                pooled: map,
            }),
            Source::Block { origin, stride, .. } => {
                let shortcut = Some(self.shortcut(origin, stride, image));
                self.simd.run(Activate { raw, map, norm, shortcut, out, keep });
            }
            Source::Activated | Source::Image => {
                self.simd.run(Activate { raw, map, norm, shortcut: None, out, keep });
            }
        }
    }

    /// The same in a later pass: a kept block output is copied.
    pub(super) fn fill_again(&self, source: Source, layer: usize, map: Map, image: usize, out: &mut [f32]) {
        match source {
            Source::Block { kept: Some(number), .. } => {
                prologue::copy(map, nth(&self.kept[number], map, image), out);
            }
            _ => self.fill(source, layer, map, image, out, None),
        }
    }

    /// The memory that [`Batch::fill`] will read for `images`.
    pub(super) fn ahead(&self, source: Source, layer: usize, images: &Range<usize>) -> Ahead<'a> {
        let mut maps: [&[f32]; 3] = [&[]; 3];
        if source == Source::Image {
            let map = self.layers[0].shape.input;
            maps[0] = of(self.images, map, images);
        } else {
            maps[0] = of(&self.raw[layer - 1], self.layers[layer - 1].shape.output, images);
        }
        if let Source::Block { origin, .. } = source {
            maps[1] = match origin {
                Origin::Stem => of(&self.raw[0], self.layers[0].shape.output, images),
                Origin::Kept(number) => of(&self.kept[number], self.kept_maps[number], images),
            };
        }
        Ahead::new(maps)
    }

    /// The memory that [`Batch::fill_again`] and the gradient through its ReLU will read for `images`.
    pub(super) fn ahead_again(&self, source: Source, layer: usize, images: &Range<usize>) -> Ahead<'a> {
        match source {
            Source::Block { kept: Some(number), .. } => {
                let raw = of(&self.raw[layer - 1], self.layers[layer - 1].shape.output, images);
                Ahead::new([raw, of(&self.kept[number], self.kept_maps[number], images), &[]])
            }
            _ => self.ahead(source, layer, images),
        }
    }

    fn shortcut(&self, origin: Origin, stride: usize, image: usize) -> ShortcutSource<'a> {
        match origin {
            Origin::Stem => {
                let map = self.layers[0].shape.output;
                let norm = &self.norms[0];
                let data = nth(&self.raw[0], map, image);
                ShortcutSource { data, map, stride, scale: &norm.scale, shift: &norm.shift }
            }
            Origin::Kept(number) => {
                let map = self.kept_maps[number];
                let data = nth(&self.kept[number], map, image);
                ShortcutSource { data, map, stride, scale: self.identity.0, shift: self.identity.1 }
            }
        }
    }
}
