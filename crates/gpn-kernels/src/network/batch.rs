//! What a pass keeps of a batch, and how the input of a layer is made from it again.

use std::ops::Range;

use super::plan::{Activation, Plan, Shortcut, Source};
use crate::ahead::Ahead;
use crate::buffer::Buffer;
use crate::geometry::Map;
use crate::norm::BatchNorm;
use crate::pool::{ActivateAndPool, Normalised, Pooling};
use crate::prologue::{self, Activate, ShortcutSource};
use crate::simd::Simd;

/// A view of the kept maps: those of the layers before the current one.
#[derive(Clone, Copy)]
pub(super) struct Batch<'a> {
    pub(super) simd: Simd,
    pub(super) plan: &'a Plan,
    /// `[n, 3, h, w]`
    pub(super) images: &'a [f32],
    pub(super) raw: &'a [Buffer],
    pub(super) kept: &'a [Buffer],
    pub(super) norms: &'a [BatchNorm],
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
    /// Makes a padded activation for one image, and writes it to `keep` if that is there.
    pub(super) fn fill(&self, number: usize, image: usize, out: &mut [f32], keep: Option<&mut [f32]>) {
        let Activation { source, map, .. } = self.plan.activations[number];
        let Source::Layer { main, shortcut, slope, .. } = source else {
            return prologue::image(map, nth(self.images, map, image), out);
        };
        if let Some(pooling) = self.pooling(number, &(image..image + 1)) {
            self.simd.run(ActivateAndPool { pooling, out, pooled: map });
            if let Some(keep) = keep {
                prologue::copy_dense(map, out, keep);
            }
            return;
        }
        let raw = self.raw_of(main, &(image..image + 1));
        let norm = &self.norms[main];
        let shortcut = self.shortcut(shortcut, image);
        self.simd.run(Activate { raw, map, norm, shortcut, slope, out, keep });
    }

    /// The same in a later pass: what was kept is copied.
    pub(super) fn fill_again(&self, number: usize, image: usize, out: &mut [f32]) {
        let Activation { map, kept, .. } = self.plan.activations[number];
        match kept {
            Some(kept) => prologue::copy(map, nth(&self.kept[kept], map, image), out),
            None => self.fill(number, image, out, None),
        }
    }

    /// Raw outputs of a layer.
    pub(super) fn raw_of(&self, layer: usize, images: &Range<usize>) -> &'a [f32] {
        of(&self.raw[layer], self.plan.layers[layer].shape.output, images)
    }

    /// What an activation is pooled from, where it is.
    pub(super) fn pooling(&self, number: usize, images: &Range<usize>) -> Option<Pooling<'a>> {
        let Source::Layer { main, shortcut, slope, pool: Some(window) } =
            self.plan.activations[number].source
        else {
            return None;
        };
        let normalised = |layer| Normalised::new(self.raw_of(layer, images), &self.norms[layer]);
        let shortcut = match shortcut {
            Shortcut::Projected(layer) => Some(normalised(layer)),
            // `Plan::activate` allows no pooling of the sum with an identity.
            Shortcut::None | Shortcut::Identity { .. } => None,
        };
        let map = self.plan.layers[main].shape.output;
        Some(Pooling { window, map, main: normalised(main), shortcut, slope })
    }

    /// The memory that [`Batch::fill`] will read for `images`.
    pub(super) fn ahead(&self, number: usize, images: &Range<usize>) -> Ahead<'a> {
        let Activation { source, map, .. } = self.plan.activations[number];
        let Source::Layer { main, shortcut, .. } = source else {
            return Ahead::new([of(self.images, map, images), &[], &[]]);
        };
        let past = match shortcut {
            Shortcut::None => &[],
            Shortcut::Projected(layer) => self.raw_of(layer, images),
            Shortcut::Identity { of: origin, .. } => {
                let Activation { source, map, kept, .. } = self.plan.activations[origin];
                match (source, kept) {
                    (_, Some(kept)) => of(&self.kept[kept], map, images),
                    (Source::Layer { main, .. }, None) => self.raw_of(main, images),
                    (Source::Image, None) => &[],
                }
            }
        };
        Ahead::new([self.raw_of(main, images), past, &[]])
    }

    /// The memory that [`Batch::fill_again`] and the gradient through its activation will read for `images`.
    pub(super) fn ahead_again(&self, number: usize, images: &Range<usize>) -> Ahead<'a> {
        let Activation { source, map, kept, .. } = self.plan.activations[number];
        match (source, kept) {
            (Source::Layer { main, .. }, Some(kept)) => {
                Ahead::new([self.raw_of(main, images), of(&self.kept[kept], map, images), &[]])
            }
            _ => self.ahead(number, images),
        }
    }

    fn shortcut(&self, shortcut: Shortcut, image: usize) -> Option<ShortcutSource<'a>> {
        let of_layer = |layer: usize, stride, has_relu| ShortcutSource {
            data: self.raw_of(layer, &(image..image + 1)),
            map: self.plan.layers[layer].shape.output,
            stride,
            norm: Some(&self.norms[layer]),
            has_relu,
        };
        match shortcut {
            Shortcut::None => None,
            Shortcut::Projected(layer) => Some(of_layer(layer, 1, false)),
            Shortcut::Identity { of, stride } => {
                let Activation { source, map, kept, .. } = self.plan.activations[of];
                match (source, kept) {
                    (_, Some(kept)) => {
                        let data = nth(&self.kept[kept], map, image);
                        Some(ShortcutSource { data, map, stride, norm: None, has_relu: false })
                    }
                    // What is not kept is the ReLU of a layer, as `Plan::activate` checked.
                    (Source::Layer { main, .. }, None) => Some(of_layer(main, stride, true)),
                    (Source::Image, None) => None,
                }
            }
        }
    }
}
