//! What happens to an output of a convolution while it is still in a register.

use crate::geometry::Map;
use crate::simd::Vector;

/// Where a run of output pixels lies.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    /// Image of the group.
    pub(crate) image: usize,
    /// Row.
    pub(crate) y: usize,
    /// Column of the first pixel.
    pub(crate) x: usize,
    /// Columns from one pixel to the next.
    pub(crate) x_step: usize,
    /// Number of pixels that exist; values beyond are to be dropped.
    pub(crate) pixels: usize,
}

/// Whether vectors of a dense map may be streamed: it starts on a cache line, and its pixels are whole lines.
pub(crate) fn is_streamable(maps: &[f32]) -> bool {
    maps.as_ptr().addr().is_multiple_of(64)
}

/// Receives the outputs of a convolution, a run of pixels and one vector of channels at a time.
pub(crate) trait Epilogue {
    /// Whether sums are taken in short runs, which round less: for outputs whose sign decides where gradients
    /// flow.
    const IS_PRECISE: bool = false;
    /// Whether outputs are streamed, so that all vectors of a cache line are to come together. Others are faster one
    /// vector after the other.
    const STREAMS: bool = false;

    /// Takes `Q` vectors of channels from `c` on of the pixels of `run`.
    ///
    /// # Safety
    /// Every pixel of `run` lies inside the output map and `c + Q * LANES` does not exceed its channels.
    unsafe fn take<V: Vector, const Q: usize, const P: usize>(
        &mut self,
        run: Run,
        c: usize,
        values: &[[V; P]; Q],
    );

    /// Called after each hundred pixels or so, so that sums can move on to f64.
    fn settle(&mut self) {}
}

/// Two sums per channel: of the values, and of their products with a second quantity.
/// A short run is summed in f32, the rest in f64: in f32 alone, a ReLU near zero can flip.
pub(crate) struct ChannelSums<'a> {
    short: &'a mut [f32],
    long: &'a mut [f64],
    channels: usize,
}

impl<'a> ChannelSums<'a> {
    /// Sums over `channels` channels, continued in `long` (first all sums, then all sums of products).
    /// `short` is work space.
    pub(crate) fn new(short: &'a mut [f32], long: &'a mut [f64], channels: usize) -> Self {
        assert!(short.len() >= 2 * channels && long.len() == 2 * channels);
        short[..2 * channels].fill(0.0);
        ChannelSums { short, long, channels }
    }

    /// Checks that there is a sum for each channel of `map`.
    pub(crate) fn check(&self, map: Map) {
        assert_eq!(self.channels, map.c);
    }

    /// The short sums of channels `c .. c + LANES`, to be continued pixel by pixel: how many pixels a
    /// register tile has depends on the instruction set, and the order of a sum must not.
    ///
    /// # Safety
    /// `c + LANES` does not exceed the channels.
    #[inline(always)]
    pub(crate) unsafe fn short<V: Vector>(&self, c: usize) -> [V; 2] {
        // SAFETY: `short` holds `2 * channels` values, checked in `new`.
        unsafe {
            let first = self.short.as_ptr().add(c);
            [V::load(first), V::load(first.add(self.channels))]
        }
    }

    /// Puts the continued sums back.
    ///
    /// # Safety
    /// As [`ChannelSums::short`].
    #[inline(always)]
    pub(crate) unsafe fn set_short<V: Vector>(&mut self, c: usize, [sum, products]: [V; 2]) {
        // SAFETY: as in `short`.
        unsafe {
            let first = self.short.as_mut_ptr().add(c);
            sum.store(first);
            products.store(first.add(self.channels));
        }
    }

    /// Moves what the short sums hold into the long ones.
    #[inline(always)]
    pub(crate) fn settle(&mut self) {
        for (long, short) in self.long.iter_mut().zip(self.short.iter_mut()) {
            *long += f64::from(*short);
            *short = 0.0;
        }
    }
}

/// Training, forward: keeps the raw output and its sums for batch norm.
pub(crate) struct KeepWithSums<'a> {
    /// Dense maps of the group.
    pub(crate) out: &'a mut [f32],
    pub(crate) map: Map,
    pub(crate) sums: ChannelSums<'a>,
}

impl KeepWithSums<'_> {
    /// Checks that `out` holds the maps of `images` images, and that there are sums of all channels.
    pub(crate) fn check(&self, images: usize) {
        assert!(self.out.len() >= images * self.map.len() && is_streamable(self.out));
        self.sums.check(self.map);
    }
}

impl Epilogue for KeepWithSums<'_> {
    const IS_PRECISE: bool = true;
    const STREAMS: bool = true;

    #[inline(always)]
    unsafe fn take<V: Vector, const Q: usize, const P: usize>(
        &mut self,
        run: Run,
        c: usize,
        values: &[[V; P]; Q],
    ) {
        let (at, step) =
            (run.image * self.map.len() + self.map.at(run.y, run.x) + c, run.x_step * self.map.c);
        // SAFETY: the pixels are inside the map, whose vector of channels `c` is, and `out` holds the maps of the group.
        unsafe {
            let out = self.out.as_mut_ptr().add(at);
            let mut sums = [[V::zero(); 2]; Q];
            for (q, sums) in sums.iter_mut().enumerate() {
                *sums = self.sums.short(c + q * V::LANES);
            }
            for p in 0..P {
                if p < run.pixels {
                    for (q, [sum, squares]) in sums.iter_mut().enumerate() {
                        let value = values[q][p];
                        value.stream(out.add(p * step + q * V::LANES));
                        *sum = sum.add(value);
                        *squares = value.mul_add(value, *squares);
                    }
                }
            }
            for (q, sums) in sums.into_iter().enumerate() {
                self.sums.set_short(c + q * V::LANES, sums);
            }
        }
    }
    #[inline(always)]
    fn settle(&mut self) {
        self.sums.settle();
    }
}

/// Keeps the output as it is: in inference where a shortcut or pooling follows, and in the backward pass the
/// gradient of what a shortcut's convolution reads.
pub(crate) struct Keep<'a> {
    pub(crate) out: &'a mut [f32],
    pub(crate) map: Map,
}

impl Epilogue for Keep<'_> {
    #[inline(always)]
    unsafe fn take<V: Vector, const Q: usize, const P: usize>(
        &mut self,
        run: Run,
        c: usize,
        values: &[[V; P]; Q],
    ) {
        for (q, values) in values.iter().enumerate() {
            let c = c + q * V::LANES;
            let at = run.image * self.map.len() + self.map.at(run.y, run.x) + c;
            for (p, &value) in values.iter().enumerate() {
                if p < run.pixels {
                    // SAFETY: the pixel is inside the map, and `out` was checked to hold the maps of the group.
                    unsafe { value.store(self.out.as_mut_ptr().add(at + p * run.x_step * self.map.c)) };
                }
            }
        }
    }
}

/// The gradient that reaches a block's input by way of the shortcut, at every `stride`-th pixel: of an
/// identity the gradient of the block's output, in the first channels, and of a convolution the gradient of
/// what it reads.
#[derive(Clone, Copy)]
pub(crate) struct ShortcutGradient<'a> {
    /// Dense maps of the group.
    pub(crate) data: &'a [f32],
    pub(crate) map: Map,
    pub(crate) stride: usize,
}

impl ShortcutGradient<'_> {
    /// Checks that it reaches every pixel of `images` inputs.
    pub(crate) fn check(&self, input: Map, images: usize) {
        let map = self.map;
        assert!(self.data.len() >= images * map.len() && map.c >= input.c);
        assert!(self.stride == 1 || self.stride == 2);
        assert!(map.h >= input.h.div_ceil(self.stride) && map.w >= input.w.div_ceil(self.stride));
    }

    /// Where the gradients of a run's pixels begin, and how many values lie between them. None where the shortcut does
    /// not reach the run: every `stride`-th pixel has a gradient, and a run steps over the others.
    ///
    /// # Safety
    /// The first pixel of the run is inside the input, and `c` is one of its channels.
    #[inline(always)]
    pub(crate) unsafe fn along(&self, run: Run, c: usize) -> Option<(*const f32, usize)> {
        // The stride is 1 or 2: bits are tested and shifted, since a division takes longer than all the rest.
        let bit = self.stride - 1;
        assert!(run.x_step & bit == 0);
        if (run.y | run.x) & bit != 0 {
            return None;
        }
        let at = run.image * self.map.len() + self.map.at(run.y >> bit, run.x >> bit) + c;
        // SAFETY: the output map of a block has every pixel its input has, divided by the stride, and at least its
        // channels; the caller passes a pixel of the input.
        Some((unsafe { self.data.as_ptr().add(at) }, (run.x_step >> bit) * self.map.c))
    }
}

/// The sums of the batch norm of a shortcut, which has the same gradient as the main one.
pub(crate) struct ProjectedSums<'a> {
    /// Convolution output of the shortcut.
    pub(crate) raw: &'a [f32],
    pub(crate) sums: ChannelSums<'a>,
}

/// Backward: turns the gradient of a layer's input into the gradient of the batch norm that made it,
/// by way of the shortcut and the activation, and sums what batch norm's own gradient needs.
pub(crate) struct ThroughRelu<'a> {
    /// The layer's input, padded: its sign is that before the activation.
    pub(crate) activated: &'a [f32],
    /// Convolution output that the batch norm normalised.
    pub(crate) raw: &'a [f32],
    pub(crate) shortcut: Option<ShortcutGradient<'a>>,
    /// Slope of the activation below zero.
    pub(crate) slope: f32,
    pub(crate) out: &'a mut [f32],
    pub(crate) map: Map,
    pub(crate) sums: ChannelSums<'a>,
    pub(crate) projected: Option<ProjectedSums<'a>>,
}

impl ThroughRelu<'_> {
    /// Checks that the slices hold the maps of `images` images, and that there are sums of all channels.
    pub(crate) fn check(&self, images: usize) {
        assert!(self.activated.len() >= images * self.map.padded_len());
        assert!(self.raw.len() >= images * self.map.len() && self.out.len() >= images * self.map.len());
        assert!(is_streamable(self.out));
        self.sums.check(self.map);
        if let Some(projected) = &self.projected {
            assert!(projected.raw.len() >= images * self.map.len());
            projected.sums.check(self.map);
        }
        if let Some(shortcut) = &self.shortcut {
            shortcut.check(self.map, images);
        }
    }
}

impl Epilogue for ThroughRelu<'_> {
    const STREAMS: bool = true;

    #[inline(always)]
    unsafe fn take<V: Vector, const Q: usize, const P: usize>(
        &mut self,
        run: Run,
        c: usize,
        values: &[[V; P]; Q],
    ) {
        let (map, slope) = (self.map, self.slope);
        let step = run.x_step * map.c;
        let at = run.image * map.len() + map.at(run.y, run.x) + c;
        let gate = run.image * map.padded_len() + map.padded_at(run.y, run.x) + c;
        // SAFETY: the pixels are inside the map, whose vector of channels `c` is; the slices were checked to hold the
        // group.
        unsafe {
            // Addresses are found once for the run: for each pixel, that would take longer than all the rest.
            let (gates, raw) = (self.activated.as_ptr().add(gate), self.raw.as_ptr().add(at));
            let out = self.out.as_mut_ptr().add(at);
            let mut past = None;
            if let Some(shortcut) = &self.shortcut {
                past = shortcut.along(run, c);
            }
            let mut past_raw = None;
            let (mut sums, mut past_sums) = ([[V::zero(); 2]; Q], [V::zero(); Q]);
            for (q, sums) in sums.iter_mut().enumerate() {
                *sums = self.sums.short(c + q * V::LANES);
            }
            if let Some(projected) = &self.projected {
                past_raw = Some(projected.raw.as_ptr().add(at));
                for (q, products) in past_sums.iter_mut().enumerate() {
                    [_, *products] = projected.sums.short(c + q * V::LANES);
                }
            }
            for p in 0..P {
                if p < run.pixels {
                    for (q, [sum, products]) in sums.iter_mut().enumerate() {
                        let mut v = values[q][p];
                        let vector = q * V::LANES;
                        if let Some((past, step)) = past {
                            v = v.add(V::load(past.add(p * step + vector)));
                        }
                        let v = v.through_leaky_relu(V::load(gates.add(p * step + vector)), slope);
                        v.stream(out.add(p * step + vector));
                        *sum = sum.add(v);
                        *products = v.mul_add(V::load(raw.add(p * step + vector)), *products);
                        if let Some(past_raw) = past_raw {
                            past_sums[q] = v.mul_add(V::load(past_raw.add(p * step + vector)), past_sums[q]);
                        }
                    }
                }
            }
            for (q, sums) in sums.into_iter().enumerate() {
                self.sums.set_short(c + q * V::LANES, sums);
                if let Some(projected) = &mut self.projected {
                    projected.sums.set_short(c + q * V::LANES, [sums[0], past_sums[q]]);
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

/// Inference: adds the folded batch norm's shift and the shortcut, applies the activation, writes a padded
/// map.
pub(crate) struct BiasRelu<'a> {
    pub(crate) bias: &'a [f32],
    pub(crate) shortcut: Shortcut<'a>,
    /// Slope of the activation below zero.
    pub(crate) slope: f32,
    pub(crate) out: &'a mut [f32],
    pub(crate) map: Map,
}

/// Where inference finds the shortcut of a block.
#[derive(Clone, Copy)]
pub(crate) enum Shortcut<'a> {
    /// There is none.
    None,
    /// In the output's own place, which is overwritten.
    InPlace,
    /// In a padded map of twice the size and fewer channels.
    Subsampled(&'a [f32], Map),
    /// In a dense map of the output's size.
    Dense(&'a [f32]),
}

impl BiasRelu<'_> {
    /// Checks that the slices hold the maps of `images` images.
    pub(crate) fn check(&self, images: usize) {
        assert!(self.out.len() >= images * self.map.padded_len() && self.bias.len() >= self.map.c);
        match self.shortcut {
            Shortcut::Subsampled(data, map) => {
                assert!(data.len() >= images * map.padded_len());
                assert!(map.h > 2 * (self.map.h - 1) && map.w > 2 * (self.map.w - 1));
            }
            Shortcut::Dense(data) => assert!(data.len() >= images * self.map.len()),
            Shortcut::None | Shortcut::InPlace => {}
        }
    }
}

impl Epilogue for BiasRelu<'_> {
    #[inline(always)]
    unsafe fn take<V: Vector, const Q: usize, const P: usize>(
        &mut self,
        run: Run,
        c: usize,
        values: &[[V; P]; Q],
    ) {
        for (q, values) in values.iter().enumerate() {
            let c = c + q * V::LANES;
            let (map, slope) = (self.map, self.slope);
            let step = run.x_step * map.c;
            let at = run.image * map.padded_len() + map.padded_at(run.y, run.x) + c;
            // SAFETY: pixels are inside the map and the slices were checked to hold the group.
            unsafe {
                let bias = V::load(self.bias.as_ptr().add(c));
                let out = self.out.as_mut_ptr().add(at);
                // Where the shortcut begins, and how many values lie between its pixels.
                let past = match self.shortcut {
                    Shortcut::InPlace => Some((out.cast_const(), step)),
                    Shortcut::Dense(data) => {
                        Some((data.as_ptr().add(run.image * map.len() + map.at(run.y, run.x) + c), step))
                    }
                    Shortcut::Subsampled(data, from) if c < from.c => {
                        let at = run.image * from.padded_len() + from.padded_at(2 * run.y, 2 * run.x) + c;
                        Some((data.as_ptr().add(at), 2 * run.x_step * from.c))
                    }
                    Shortcut::None | Shortcut::Subsampled(..) => None,
                };
                for (p, &value) in values.iter().enumerate() {
                    if p < run.pixels {
                        let mut v = value.add(bias);
                        if let Some((past, step)) = past {
                            v = v.add(V::load(past.add(p * step)));
                        }
                        v.leaky_relu(slope).store(out.add(p * step));
                    }
                }
            }
        }
    }
}

/// Writes the gradient of the images, channel by channel, as they came in.
pub(crate) struct ToImages<'a> {
    /// `[images, channels, h, w]`
    pub(crate) out: &'a mut [f32],
    pub(crate) map: Map,
    /// Channels of an image.
    pub(crate) channels: usize,
    /// The gradient by way of a shortcut, in padded channels.
    pub(crate) shortcut: Option<ShortcutGradient<'a>>,
}

impl ToImages<'_> {
    /// Checks that the slices hold `images` images.
    pub(crate) fn check(&self, images: usize) {
        assert!(self.out.len() >= images * self.channels * self.map.h * self.map.w);
        if let Some(shortcut) = &self.shortcut {
            shortcut.check(self.map, images);
        }
    }
}

impl Epilogue for ToImages<'_> {
    #[inline(always)]
    unsafe fn take<V: Vector, const Q: usize, const P: usize>(
        &mut self,
        run: Run,
        c: usize,
        values: &[[V; P]; Q],
    ) {
        for (q, values) in values.iter().enumerate() {
            let c = c + q * V::LANES;
            let plane = self.map.h * self.map.w;
            let mut past = None;
            if let Some(shortcut) = &self.shortcut {
                // SAFETY: the run is inside the map.
                past = unsafe { shortcut.along(run, c) };
            }
            for (p, &value) in values.iter().enumerate() {
                if p < run.pixels {
                    let mut lanes = [0.0; 16];
                    let mut value = value;
                    // SAFETY: the pixel is inside the map; no vector has more than 16 lanes.
                    unsafe {
                        if let Some((past, step)) = past {
                            value = value.add(V::load(past.add(p * step)));
                        }
                        value.store(lanes.as_mut_ptr());
                    }
                    for (channel, &lane) in (c..self.channels).zip(&lanes[..V::LANES]) {
                        let pixel = run.y * self.map.w + run.x + p * run.x_step;
                        self.out[(run.image * self.channels + channel) * plane + pixel] = lane;
                    }
                }
            }
        }
    }
}
