//! Where a pixel lies in memory.
//!
//! A map is stored pixel by pixel with its channels together and padded to whole blocks of 16 ("NHWC with
//! blocked channels"), so that a vector holds channels of one pixel. Batches of maps are dense. The one map
//! a worker is busy with is copied into a *padded* map with a border of zeros, wide enough that neither a
//! window of a convolution nor a 4x4 Winograd tile at the ragged right or lower edge needs a test.

/// Channels are padded to a multiple of this, the widest vector.
pub(crate) const CHANNEL_BLOCK: usize = 16;
/// Channels of an image.
pub(crate) const IMAGE_CHANNELS: usize = 3;
/// Height and width of a Winograd output tile.
pub(crate) const TILE: usize = 4;

/// Number of stored channels for `c` real ones.
pub(crate) const fn padded_channels(c: usize) -> usize {
    c.next_multiple_of(CHANNEL_BLOCK)
}

/// Size of a map: height, width and stored channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Map {
    pub(crate) h: usize,
    pub(crate) w: usize,
    pub(crate) c: usize,
    /// Pixels of zeros around the padded map: half of the largest kernel that reads it.
    pub(crate) border: usize,
}

impl Map {
    /// A map that 3x3 kernels read.
    pub(crate) const fn new(h: usize, w: usize, c: usize) -> Map {
        Map { h, w, c, border: 1 }
    }
    /// Values of a dense map.
    pub(crate) const fn len(self) -> usize {
        self.h * self.w * self.c
    }
    /// Index of the first channel of a pixel in a dense map.
    #[inline(always)]
    pub(crate) const fn at(self, y: usize, x: usize) -> usize {
        (y * self.w + x) * self.c
    }
    /// Values between two rows of the padded map.
    #[inline(always)]
    pub(crate) const fn padded_row(self) -> usize {
        (self.w.next_multiple_of(TILE) + 2 * self.border) * self.c
    }
    /// Values of a padded map. The last register tile of a row may read past the row's end, hence 32
    /// pixels more than the border needs.
    pub(crate) const fn padded_len(self) -> usize {
        ((self.h.next_multiple_of(TILE) + 2 * self.border) * self.padded_row() + 32 * self.c)
            .next_multiple_of(CHANNEL_BLOCK)
    }
    /// Index of the first channel of a pixel in the padded map.
    #[inline(always)]
    pub(crate) const fn padded_at(self, y: usize, x: usize) -> usize {
        (y + self.border) * self.padded_row() + (x + self.border) * self.c
    }
    /// Index of the first value under a `kernel` x `kernel` window around pixel (0, 0) of the padded map.
    pub(crate) const fn window_start(self, kernel: usize) -> usize {
        (self.border - kernel / 2) * (self.padded_row() + self.c)
    }
    /// Number of Winograd tiles that cover the map: rows and columns.
    #[inline(always)]
    pub(crate) const fn tiles(self) -> (usize, usize) {
        (self.h.div_ceil(TILE), self.w.div_ceil(TILE))
    }
}

/// Sizes of one convolution, padded by half of its kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ConvShape {
    /// Input map.
    pub(crate) input: Map,
    /// Output map: `ceil(input / stride)`.
    pub(crate) output: Map,
    /// Side of the kernel: 1, 3 or, for images, 7.
    pub(crate) kernel: usize,
    /// 1 or 2.
    pub(crate) stride: usize,
    /// Input channels without padding.
    pub(crate) in_channels: usize,
    /// Output channels without padding.
    pub(crate) out_channels: usize,
}

impl ConvShape {
    /// The convolution of a map.
    pub(crate) fn new(input: Map, channels: (usize, usize), kernel: usize, stride: usize) -> Self {
        let (in_channels, out_channels) = channels;
        let output =
            Map::new(input.h.div_ceil(stride), input.w.div_ceil(stride), padded_channels(out_channels));
        ConvShape { input, output, kernel, stride, in_channels, out_channels }
    }
    /// Whether the input is an image, which stores its channels without padding.
    pub(crate) fn is_image(&self) -> bool {
        !self.input.c.is_multiple_of(CHANNEL_BLOCK)
    }
    /// The map that the gradient of the input is computed in: an image's channels are padded like any other's, and
    /// of what a 1x1 kernel reads, only the pixels under it have a gradient.
    pub(crate) fn input_gradient(&self) -> Map {
        let c = padded_channels(self.in_channels);
        if self.kernel == 1 { Map { c, ..self.output } } else { Map { c, ..self.input } }
    }
    /// Values of one output channel's weights.
    pub(crate) fn taps(&self) -> usize {
        self.kernel * self.kernel
    }
    /// Length of the weights, or of their gradient, with padded output channels.
    pub(crate) fn weight_len(&self) -> usize {
        self.taps() * self.input.c * self.output.c
    }
    /// Multiplications and additions of the direct method for one image.
    pub(crate) fn flops(&self) -> u64 {
        (self.output.h * self.output.w * self.out_channels * self.in_channels * self.taps() * 2) as u64
    }
    /// Whether tiles of Winograd's F(4x4, 3x3) are used: they need stride 1, and too few input channels
    /// do not pay for the transforms.
    pub(crate) fn uses_winograd(&self) -> bool {
        self.kernel == 3 && self.stride == 1 && self.in_channels >= CHANNEL_BLOCK / 2
    }
    /// Whether the weights are too many for the first caches: loops then keep a block of them and run over pixels.
    pub(crate) fn is_wide(&self) -> bool {
        self.weight_len() > 1 << 16
    }
}
