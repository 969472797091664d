//! Max pooling of activated maps: on the way into a convolution, and back on the way out of its gradient.
//!
//! Pooled maps are made when they are needed, and gradients are kept at pooled pixels. Which pixel of a
//! window a gradient belongs to is found again from the raw outputs: the first of the window's largest
//! values.

use crate::epilogue::{ChannelSums, Epilogue, ProjectedSums, Run, ShortcutGradient, is_streamable};
use crate::geometry::Map;
use crate::norm::{BatchNorm, BatchNormGradient};
use crate::simd::{Kernel, Vector};

/// Which pixels a pooled pixel is the largest of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Window {
    /// 2x2, side by side; an odd last row or column is dropped.
    Two,
    /// 3x3 around every second pixel, cut off at the edge.
    Three,
}

impl Window {
    /// The pooled map.
    pub(crate) fn pooled(self, map: Map) -> Map {
        match self {
            Window::Two => Map { h: map.h / 2, w: map.w / 2, ..map },
            Window::Three => Map { h: map.h.div_ceil(2), w: map.w.div_ceil(2), ..map },
        }
    }
}

/// Where the `N` pixels of the window of pooled pixel (y, x) begin in a dense map: 4 of [`Window::Two`], 9 of
/// [`Window::Three`]. Pixels beyond the edge are replaced by their neighbour inside, which is in the window
/// too.
#[inline(always)]
fn window<const N: usize>(map: Map, y: usize, x: usize) -> [usize; N] {
    let mut pixels = [0; N];
    for (i, pixel) in pixels.iter_mut().enumerate() {
        let (row, column) = place::<N>(map, (y, x), i);
        *pixel = map.at(row, column);
    }
    pixels
}

/// Row and column of pixel `i` of a window.
#[inline(always)]
fn place<const N: usize>(map: Map, (y, x): (usize, usize), i: usize) -> (usize, usize) {
    if N == 4 {
        return (2 * y + i / 2, 2 * x + i % 2);
    }
    let inside = |at: usize, end: usize| at.saturating_sub(1).min(end - 1);
    (inside(2 * y + i / 3, map.h), inside(2 * x + i % 3, map.w))
}

/// A convolution's output with its batch norm as scale and shift per channel.
#[derive(Clone, Copy)]
pub(crate) struct Normalised<'a> {
    pub(crate) raw: &'a [f32],
    pub(crate) scale: &'a [f32],
    pub(crate) shift: &'a [f32],
}

impl<'a> Normalised<'a> {
    pub(crate) fn new(raw: &'a [f32], norm: &'a BatchNorm) -> Self {
        Normalised { raw, scale: &norm.scale, shift: &norm.shift }
    }

    /// # Safety
    /// `c + LANES` does not exceed the channels.
    #[inline(always)]
    unsafe fn affine<V: Vector>(&self, c: usize) -> [V; 2] {
        // SAFETY: the caller's promise; `check` compared the lengths.
        unsafe { [V::load(self.scale.as_ptr().add(c)), V::load(self.shift.as_ptr().add(c))] }
    }

    fn check(&self, map: Map, images: usize) {
        assert!(self.raw.len() >= images * map.len());
        assert!(self.scale.len() >= map.c && self.shift.len() >= map.c);
    }
}

/// What is pooled: a normalised output, plus that of the shortcut where there is one.
#[derive(Clone, Copy)]
pub(crate) struct Pooling<'a> {
    pub(crate) window: Window,
    /// The map before pooling.
    pub(crate) map: Map,
    pub(crate) main: Normalised<'a>,
    pub(crate) shortcut: Option<Normalised<'a>>,
    /// Slope of the activation below zero.
    pub(crate) slope: f32,
}

/// Scale and shift of both, for one vector of channels.
#[derive(Clone, Copy)]
struct Affine<V>([V; 2], [V; 2]);

impl Pooling<'_> {
    fn check(&self, pooled: Map, images: usize) {
        self.main.check(self.map, images);
        if let Some(shortcut) = &self.shortcut {
            shortcut.check(self.map, images);
        }
        assert_eq!(self.window.pooled(self.map), pooled);
    }

    /// # Safety
    /// `c + LANES` does not exceed the channels.
    #[inline(always)]
    unsafe fn affine<V: Vector>(&self, c: usize) -> Affine<V> {
        // SAFETY: the caller's promise.
        unsafe {
            match &self.shortcut {
                Some(shortcut) => Affine(self.main.affine(c), shortcut.affine(c)),
                None => Affine(self.main.affine(c), [V::zero(); 2]),
            }
        }
    }

    /// The value before the activation. `S`: whether there is a shortcut.
    ///
    /// # Safety
    /// `at` is the index of a vector of the raw outputs.
    #[inline(always)]
    unsafe fn value<V: Vector, const S: bool>(&self, at: usize, affine: &Affine<V>) -> V {
        let Affine([scale, shift], [past_scale, past_shift]) = *affine;
        // SAFETY: the caller's promise.
        unsafe {
            let value = V::load(self.main.raw.as_ptr().add(at)).mul_add(scale, shift);
            match &self.shortcut {
                Some(past) if S => {
                    value.add(V::load(past.raw.as_ptr().add(at)).mul_add(past_scale, past_shift))
                }
                _ => value,
            }
        }
    }
}

/// Pools one image into a padded map.
pub(crate) struct ActivateAndPool<'a> {
    pub(crate) pooling: Pooling<'a>,
    pub(crate) out: &'a mut [f32],
    pub(crate) pooled: Map,
}

impl Kernel for ActivateAndPool<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        self.pooling.check(self.pooled, 1);
        assert!(self.out.len() >= self.pooled.padded_len());
        match (self.pooling.window, self.pooling.shortcut.is_some()) {
            (Window::Two, false) => self.run_windows::<V, 4, false>(),
            (Window::Two, true) => self.run_windows::<V, 4, true>(),
            (Window::Three, false) => self.run_windows::<V, 9, false>(),
            (Window::Three, true) => self.run_windows::<V, 9, true>(),
        }
    }
}

impl ActivateAndPool<'_> {
    #[inline(always)]
    fn run_windows<V: Vector, const N: usize, const S: bool>(self) {
        let (pooling, pooled) = (&self.pooling, self.pooled);
        for y in 0..pooled.h {
            for c in (0..pooled.c).step_by(V::LANES) {
                // SAFETY: windows are inside the map and pooled pixels inside theirs; lengths were checked.
                unsafe {
                    let affine = pooling.affine::<V>(c);
                    for x in 0..pooled.w {
                        let pixels = window::<N>(pooling.map, y, x);
                        let mut best = pooling.value::<V, S>(pixels[0] + c, &affine);
                        for pixel in &pixels[1..] {
                            best = pooling.value::<V, S>(pixel + c, &affine).max(best);
                        }
                        best.leaky_relu(pooling.slope)
                            .store(self.out.as_mut_ptr().add(pooled.padded_at(y, x) + c));
                    }
                }
            }
        }
    }
}

/// Backward through pooling and activation. `out` keeps the gradient at the pooled pixels.
pub(crate) struct ThroughPool<'a> {
    /// The layer's input (pooled), padded: its sign is that before the activation.
    pub(crate) activated: &'a [f32],
    /// Of the group's images.
    pub(crate) pooling: Pooling<'a>,
    pub(crate) shortcut: Option<ShortcutGradient<'a>>,
    pub(crate) out: &'a mut [f32],
    /// The pooled map.
    pub(crate) map: Map,
    pub(crate) sums: ChannelSums<'a>,
    /// The sums of the shortcut's batch norm, where it has one.
    pub(crate) projected: Option<ProjectedSums<'a>>,
}

impl ThroughPool<'_> {
    /// Checks that the slices hold the maps of `images` images, and that there are sums of all channels.
    pub(crate) fn check(&self, images: usize) {
        self.pooling.check(self.map, images);
        assert!(self.activated.len() >= images * self.map.padded_len());
        assert!(self.out.len() >= images * self.map.len() && is_streamable(self.out));
        assert_eq!(self.projected.is_some(), self.pooling.shortcut.is_some());
        self.sums.check(self.map);
        if let Some(projected) = &self.projected {
            projected.sums.check(self.map);
        }
        if let Some(shortcut) = &self.shortcut {
            shortcut.check(self.map, images);
        }
    }

    /// # Safety
    /// As [`Epilogue::take`].
    #[inline(always)]
    unsafe fn take_windows<V: Vector, const P: usize, const N: usize, const S: bool>(
        &mut self,
        run: Run,
        c: usize,
        values: &[V; P],
    ) {
        // SAFETY: pooled pixels are inside the pooled map and so are their sources inside the raw map; the
        // slices were checked to hold the group.
        unsafe {
            let [mut sum, mut products] = self.sums.short::<V>(c);
            let mut past_products = V::zero();
            if let Some(projected) = &self.projected {
                past_products = projected.sums.short::<V>(c)[1];
            }
            let pooling = self.pooling;
            let first = run.image * pooling.map.len() + c;
            let raw = pooling.main.raw.as_ptr().add(first);
            let past_raw = pooling.shortcut.map_or(pooling.main.raw, |past| past.raw).as_ptr().add(first);
            let affine = pooling.affine::<V>(c);
            let mut past = None;
            if let Some(shortcut) = &self.shortcut {
                past = shortcut.along(run, c);
            }
            for (p, &value) in values.iter().enumerate() {
                if p < run.pixels {
                    let x = run.x + p * run.x_step;
                    let at = run.image * self.map.len() + self.map.at(run.y, x) + c;
                    let gate = run.image * self.map.padded_len() + self.map.padded_at(run.y, x) + c;
                    let gate = V::load(self.activated.as_ptr().add(gate));
                    let mut v = value;
                    if let Some((past, step)) = past {
                        v = v.add(V::load(past.add(p * step)));
                    }
                    let v = v.through_leaky_relu(gate, pooling.slope);
                    v.stream_line(self.out.as_mut_ptr().add(at));
                    let pixels = window::<N>(pooling.map, run.y, x);
                    let mut best = pooling.value::<V, S>(first + pixels[0], &affine);
                    let mut chosen = V::load(raw.add(pixels[0]));
                    let mut chosen_past = V::load(past_raw.add(pixels[0]));
                    for &pixel in &pixels[1..] {
                        let z = pooling.value::<V, S>(first + pixel, &affine);
                        chosen = z.select_greater(best, V::load(raw.add(pixel)), chosen);
                        if S {
                            chosen_past = z.select_greater(best, V::load(past_raw.add(pixel)), chosen_past);
                        }
                        best = z.max(best);
                    }
                    sum = sum.add(v);
                    products = v.mul_add(chosen, products);
                    if S {
                        past_products = v.mul_add(chosen_past, past_products);
                    }
                }
            }
            self.sums.set_short(c, [sum, products]);
            if let Some(projected) = &mut self.projected {
                projected.sums.set_short(c, [sum, past_products]);
            }
        }
    }
}

impl Epilogue for ThroughPool<'_> {
    #[inline(always)]
    unsafe fn take<V: Vector, const Q: usize, const P: usize>(
        &mut self,
        run: Run,
        c: usize,
        values: &[[V; P]; Q],
    ) {
        for (q, values) in values.iter().enumerate() {
            let c = c + q * V::LANES;
            // SAFETY: passed on.
            unsafe {
                match (self.pooling.window, self.pooling.shortcut.is_some()) {
                    (Window::Two, false) => self.take_windows::<V, P, 4, false>(run, c, values),
                    (Window::Two, true) => self.take_windows::<V, P, 4, true>(run, c, values),
                    (Window::Three, false) => self.take_windows::<V, P, 9, false>(run, c, values),
                    (Window::Three, true) => self.take_windows::<V, P, 9, true>(run, c, values),
                }
            }
        }
    }
    #[inline(always)]
    fn settle(&mut self) {
        self.sums.settle();
        if let Some(projected) = &mut self.projected {
            projected.sums.settle();
        }
    }
}

/// The gradient of a convolution's output from that of the pooled pixels, into a padded map.
pub(crate) struct PoolNormBackward<'a> {
    /// Gradient at the pooled pixels (before the activation), dense.
    pub(crate) gradient: &'a [f32],
    pub(crate) pooled: Map,
    pub(crate) pooling: Pooling<'a>,
    /// Raw output of the convolution whose gradient it is: the main one or the shortcut's.
    pub(crate) raw: &'a [f32],
    pub(crate) form: &'a BatchNormGradient,
    pub(crate) out: &'a mut [f32],
}

impl Kernel for PoolNormBackward<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        let map = self.pooling.map;
        self.pooling.check(self.pooled, 1);
        assert!(self.gradient.len() >= self.pooled.len() && self.raw.len() >= map.len());
        assert!(self.out.len() >= map.padded_len() && self.form.constant.len() == map.c);
        match (self.pooling.window, self.pooling.shortcut.is_some()) {
            (Window::Two, false) => self.run_apart::<V, false>(),
            (Window::Two, true) => self.run_apart::<V, true>(),
            (Window::Three, false) => self.run_overlapping::<V, false>(),
            (Window::Three, true) => self.run_overlapping::<V, true>(),
        }
    }
}

impl PoolNormBackward<'_> {
    /// What each pixel of a window takes of the gradient `left`, which belongs to the first of the largest
    /// values.
    ///
    /// # Safety
    /// `pixels` are indices of vectors of the raw outputs.
    #[inline(always)]
    unsafe fn taken<V: Vector, const N: usize, const S: bool>(
        &self,
        pixels: [usize; N],
        affine: &Affine<V>,
        mut left: V,
    ) -> [V; N] {
        let mut z = [V::zero(); N];
        for (z, pixel) in z.iter_mut().zip(pixels) {
            // SAFETY: the caller's promise.
            *z = unsafe { self.pooling.value::<V, S>(pixel, affine) };
        }
        let mut best = z[0];
        for &z in &z[1..] {
            best = z.max(best);
        }
        let mut taken = [V::zero(); N];
        for (taken, z) in taken.iter_mut().zip(z) {
            // A value below the best takes nothing; once a pixel took the gradient, nothing is left.
            *taken = best.select_greater(z, V::zero(), left);
            left = best.select_greater(z, left, V::zero());
        }
        taken
    }

    /// Windows side by side: every pixel is written once.
    #[inline(always)]
    fn run_apart<V: Vector, const S: bool>(self) {
        let (map, pooled, raw) = (self.pooling.map, self.pooled, self.raw.as_ptr());
        for c in (0..map.c).step_by(V::LANES) {
            // SAFETY: windows and pixels are inside the maps, whose lengths were checked.
            unsafe {
                let affine = self.pooling.affine::<V>(c);
                let [of_output, of_input, constant] = self.form.vectors::<V>(c);
                for y in 0..pooled.h {
                    for x in 0..pooled.w {
                        let g = V::load(self.gradient.as_ptr().add(pooled.at(y, x) + c)).mul(of_output);
                        let pixels = window::<4>(map, y, x).map(|pixel| pixel + c);
                        let taken = self.taken::<V, 4, S>(pixels, &affine, g);
                        for (i, (taken, pixel)) in taken.into_iter().zip(pixels).enumerate() {
                            let v = V::load(raw.add(pixel)).mul_add(of_input, constant).add(taken);
                            let (row, column) = place::<4>(map, (y, x), i);
                            v.store(self.out.as_mut_ptr().add(map.padded_at(row, column) + c));
                        }
                    }
                }
                // Pixels of an odd last row or column are in no window.
                for y in 0..map.h {
                    let first = if y < 2 * pooled.h { 2 * pooled.w } else { 0 };
                    for x in first..map.w {
                        let v = V::load(raw.add(map.at(y, x) + c)).mul_add(of_input, constant);
                        v.store(self.out.as_mut_ptr().add(map.padded_at(y, x) + c));
                    }
                }
            }
        }
    }

    /// Windows that share pixels add to them.
    #[inline(always)]
    fn run_overlapping<V: Vector, const S: bool>(self) {
        let (map, pooled, raw) = (self.pooling.map, self.pooled, self.raw.as_ptr());
        for c in (0..map.c).step_by(V::LANES) {
            // SAFETY: as in `run_apart`.
            unsafe {
                let affine = self.pooling.affine::<V>(c);
                let [of_output, of_input, constant] = self.form.vectors::<V>(c);
                let out = self.out.as_mut_ptr().add(c);
                for y in 0..map.h {
                    for x in 0..map.w {
                        let v = V::load(raw.add(map.at(y, x) + c)).mul_add(of_input, constant);
                        v.store(out.add(map.padded_at(y, x)));
                    }
                }
                for y in 0..pooled.h {
                    for x in 0..pooled.w {
                        let g = V::load(self.gradient.as_ptr().add(pooled.at(y, x) + c)).mul(of_output);
                        let pixels = window::<9>(map, y, x).map(|pixel| pixel + c);
                        let taken = self.taken::<V, 9, S>(pixels, &affine, g);
                        for (i, taken) in taken.into_iter().enumerate() {
                            let (row, column) = place::<9>(map, (y, x), i);
                            let to = out.add(map.padded_at(row, column));
                            V::load(to).add(taken).store(to);
                        }
                    }
                }
            }
        }
    }
}
