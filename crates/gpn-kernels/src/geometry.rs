//! Where a pixel lies in memory.
//!
//! A map is stored pixel by pixel with its channels together and padded to whole blocks of 16 ("NHWC with
//! blocked channels"), so that a vector holds channels of one pixel. Batches of maps are dense. The one map
//! a worker is busy with is copied into a *padded* map with a border of zeros, wide enough that neither a
//! 3x3 window nor a 4x4 Winograd tile at the ragged right or lower edge needs a test.

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
}

impl Map {
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
        (self.w.next_multiple_of(TILE) + 2) * self.c
    }
    /// Values of a padded map. The last register tile of a row may read past the row's end, hence 32
    /// pixels more than the border needs.
    pub(crate) const fn padded_len(self) -> usize {
        ((self.h.next_multiple_of(TILE) + 2) * self.padded_row() + 32 * self.c)
            .next_multiple_of(CHANNEL_BLOCK)
    }
    /// Index of the first channel of a pixel in the padded map.
    #[inline(always)]
    pub(crate) const fn padded_at(self, y: usize, x: usize) -> usize {
        (y + 1) * self.padded_row() + (x + 1) * self.c
    }
    /// Number of Winograd tiles that cover the map: rows and columns.
    #[inline(always)]
    pub(crate) const fn tiles(self) -> (usize, usize) {
        (self.h.div_ceil(TILE), self.w.div_ceil(TILE))
    }
}

/// Sizes of one 3x3 convolution with padding 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ConvShape {
    /// Input map.
    pub(crate) input: Map,
    /// Output map: `ceil(input / stride)`.
    pub(crate) output: Map,
    /// 1 or 2.
    pub(crate) stride: usize,
    /// Input channels without padding.
    pub(crate) in_channels: usize,
    /// Output channels without padding.
    pub(crate) out_channels: usize,
}

impl ConvShape {
    /// The convolution of an `h` x `w` map. An input of the network (`is_image`) stores its channels
    /// without padding.
    pub(crate) fn new(h: usize, w: usize, channels: (usize, usize), stride: usize, is_image: bool) -> Self {
        let (in_channels, out_channels) = channels;
        let stored = if is_image { in_channels } else { padded_channels(in_channels) };
        ConvShape {
            input: Map { h, w, c: stored },
            output: Map { h: h.div_ceil(stride), w: w.div_ceil(stride), c: padded_channels(out_channels) },
            stride,
            in_channels,
            out_channels,
        }
    }
    /// The map that the gradient of the input is computed in (an image's channels padded like any other's).
    pub(crate) fn input_gradient(&self) -> Map {
        Map { c: padded_channels(self.in_channels), ..self.input }
    }
    /// Multiplications and additions of the direct method for one image.
    pub(crate) fn flops(&self) -> u64 {
        (self.output.h * self.output.w * self.out_channels * self.in_channels * 9 * 2) as u64
    }
    /// Whether tiles of Winograd's F(4x4, 3x3) are used: they need stride 1, and too few input channels
    /// do not pay for the transforms.
    pub(crate) fn uses_winograd(&self) -> bool {
        self.stride == 1 && self.in_channels >= CHANNEL_BLOCK / 2
    }
}
