//! Winograd's F(4x4, 3x3): a 4x4 tile of outputs from a 6x6 tile of inputs with 36 products per pair of
//! channels instead of 144.
//!
//! In the notation of Lavin and Gray (2016): `out = A' [(G w G') . (B' in B)] A`, where the product in
//! brackets is, for each of the 36 places, a matrix product over channels of many tiles at once. Tiles of a
//! whole group of small images go into one product, and tiles at a ragged edge read the zeros of the border.

mod line;
mod weights;

pub(crate) use weights::{transform_weight_gradient, transform_weights};

use line::{input_transform, output_transform, output_transform_transposed};

use crate::ahead::Ahead;
use crate::epilogue::{Epilogue, Run};
use crate::geometry::{CHANNEL_BLOCK, ConvShape, Map, TILE};
use crate::simd::Vector;
use crate::tile::{Strides, accumulate, accumulate_rows, add, best_height, load, store};
use crate::weights::{channel_start, vector_step};

/// Places of a transformed tile.
pub(crate) const PLACES: usize = 36;
/// Breaks the power of two between the places of a tile, which would all fall into one set of the cache.
const PLACE_GAP: usize = 16;

/// Work space for the transformed tiles of one worker, and what it is to fetch.
pub(crate) struct Workspace<'a> {
    pub(crate) first: &'a mut [f32],
    pub(crate) second: &'a mut [f32],
    /// Fetched meanwhile.
    pub(crate) ahead: Ahead<'a>,
}

/// Number of tiles that are transformed and multiplied together, for maps of at most `channels` channels:
/// few enough that inputs, outputs and weights leave room in the second cache for the maps of the next image. Weights
/// of many channels do not fit there, and are worth reading only for many tiles.
pub(crate) fn tiles_per_block(channels: usize) -> usize {
    match channels {
        0..=32 => 512 / channels,
        33..=64 => 24,
        _ => 96,
    }
}

/// Length of each half of a [`Workspace`] for maps of at most `channels` channels.
pub(crate) fn workspace_len(channels: usize) -> usize {
    // The last register tile of a product may read 16 rows past the block.
    PLACES * (tiles_per_block(channels) * channels + PLACE_GAP) + 16 * channels
}

/// Tiles of a group of images in the order of blocks.
#[derive(Clone, Copy)]
struct TileGrid {
    map: Map,
    columns: usize,
    per_image: usize,
    total: usize,
    /// Tiles per block, evened out over the blocks and filling register tiles.
    block: usize,
}

impl TileGrid {
    fn new(map: Map, images: usize, channels: usize) -> Self {
        let (rows, columns) = map.tiles();
        let total = images * rows * columns;
        let most = tiles_per_block(channels);
        let even = total.div_ceil(total.div_ceil(most).max(1));
        let block = even.next_multiple_of(8).min(most).min(total);
        TileGrid { map, columns, per_image: rows * columns, total, block }
    }
    fn blocks(&self) -> usize {
        self.total.div_ceil(self.block)
    }
    /// Image, first row and first column of the tiles from `begin` on.
    #[inline(always)]
    fn corners(&self, begin: usize) -> Corners {
        let (image, rest) = (begin / self.per_image, begin % self.per_image);
        Corners {
            next: (image, rest / self.columns * TILE, rest % self.columns * TILE),
            end: (self.per_image / self.columns * TILE, self.columns * TILE),
        }
    }
}

/// Walks from tile to tile without a division for each.
struct Corners {
    next: (usize, usize, usize),
    /// Rows and columns of an image, in whole tiles.
    end: (usize, usize),
}

impl Iterator for Corners {
    type Item = (usize, usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let (image, y, x) = self.next;
        self.next = if x + TILE < self.end.1 {
            (image, y, x + TILE)
        } else if y + TILE < self.end.0 {
            (image, y + TILE, 0)
        } else {
            (image + 1, 0, 0)
        };
        Some((image, y, x))
    }
}

/// Tiles after which the sums of an epilogue move on to f64.
const SETTLE_EVERY: usize = 8;

/// Channels summed in one go where rounding matters: sums of sums of 8 round about as much as the direct
/// method does. Divides the channels.
const PRECISE_RUN: usize = 8;

/// 3x3 convolution with stride 1 of `images` padded maps. `weights`: `[36][blocks][input.c][16]`, transformed.
/// Where the epilogue asks for it, sums are taken in [`PRECISE_RUN`]s.
#[inline(always)]
pub(crate) fn convolve<V: Vector, E: Epilogue>(
    input: Map,
    output: Map,
    maps: &[f32],
    images: usize,
    weights: &[f32],
    work: &mut Workspace<'_>,
    epilogue: &mut E,
) {
    let run = if E::IS_PRECISE { PRECISE_RUN } else { input.c };
    let channels = input.c.max(output.c);
    assert!(output.h == input.h && output.w == input.w);
    assert!(maps.len() >= images * input.padded_len() && weights.len() >= PLACES * input.c * output.c);
    assert!(work.first.len() >= workspace_len(channels) && work.second.len() >= workspace_len(channels));
    let grid = TileGrid::new(input, images, channels);
    let (in_place, out_place) = (grid.block * input.c + PLACE_GAP, grid.block * output.c + PLACE_GAP);
    let pace = work.ahead.over(grid.blocks() * PLACES);
    let mut step = 0;
    for begin in (0..grid.total).step_by(grid.block) {
        let tiles = grid.block.min(grid.total - begin);
        // SAFETY: tiles lie inside the padded maps; a block's tiles fit the work space, checked above.
        unsafe {
            let block = (&grid, begin, tiles);
            transform_tiles::<V, OfInputs, 6>(block, maps, 0, work.first, in_place);
            for place in 0..PLACES {
                pace.fetch::<V>(step);
                step += 1;
                let x = work.first.as_ptr().add(place * in_place);
                let w = weights.as_ptr().add(place * input.c * output.c);
                let y = work.second.as_mut_ptr().add(place * out_place);
                multiply::<V>((x, w, y), tiles, (input.c, output.c), run);
            }
            for (i, (image, y, x)) in grid.corners(begin).take(tiles).enumerate() {
                let from = work.second.as_ptr().add(i * output.c);
                if V::IS_BLOCK || !E::STREAMS {
                    finish_tile::<V, E, 1>(from, out_place, output, (image, y, x), epilogue);
                } else {
                    finish_tile::<V, E, 2>(from, out_place, output, (image, y, x), epilogue);
                }
                if (i + 1) % SETTLE_EVERY == 0 || i + 1 == tiles {
                    epilogue.settle();
                }
            }
        }
    }
}

/// Transforms a tile of products, which begin at `from`, `Q` vectors at a time, and hands it to the epilogue.
///
/// # Safety
/// `from` is readable at the 36 multiples of `place`, for all channels, and the first pixel is inside the map.
#[inline(always)]
unsafe fn finish_tile<V: Vector, E: Epilogue, const Q: usize>(
    from: *const f32,
    place: usize,
    map: Map,
    (image, y, x): (usize, usize, usize),
    epilogue: &mut E,
) {
    let pixels = TILE.min(map.w - x);
    for c in (0..map.c).step_by(Q * V::LANES) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut rows = [[[V::zero(); TILE]; Q]; TILE];
            for q in 0..Q {
                let tile = transform_output::<V>(from.add(c + q * V::LANES), place);
                for (row, line) in tile.into_iter().enumerate() {
                    rows[row][q] = line;
                }
            }
            for (row, lines) in rows.iter().enumerate() {
                if y + row < map.h {
                    epilogue.take(Run { image, y: y + row, x, x_step: 1, pixels }, c, lines);
                }
            }
        }
    }
}

/// The transformed gradient of the weights, `[36][blocks][input.c][16]`, from padded maps of inputs and of
/// output gradients: added to `gradient`, or written over it where this is its first part.
#[inline(always)]
pub(crate) fn weight_gradient<V: Vector>(
    shape: &ConvShape,
    inputs: &[f32],
    gradients: &[f32],
    images: usize,
    gradient: &mut [f32],
    is_first: bool,
    work: &mut Workspace<'_>,
) {
    let (input, output) = (shape.input, shape.output);
    let channels = input.c.max(output.c);
    assert!(inputs.len() >= images * input.padded_len() && gradients.len() >= images * output.padded_len());
    assert!(gradient.len() >= PLACES * input.c * output.c);
    assert!(work.first.len() >= workspace_len(channels) && work.second.len() >= workspace_len(channels));
    let grid = TileGrid::new(input, images, channels);
    let out_grid = TileGrid { map: output, ..grid };
    let (in_place, out_place) = (grid.block * input.c + PLACE_GAP, grid.block * output.c + PLACE_GAP);
    let pace = work.ahead.over(grid.blocks() * PLACES);
    let mut step = 0;
    for begin in (0..grid.total).step_by(grid.block) {
        let tiles = grid.block.min(grid.total - begin);
        // SAFETY: as in `convolve`.
        unsafe {
            // A 6x6 window begins in the border, a 4x4 tile of gradients behind it.
            let (block, out_block) = ((&grid, begin, tiles), (&out_grid, begin, tiles));
            transform_tiles::<V, OfInputs, 6>(block, inputs, 0, work.first, in_place);
            let corner = output.padded_at(0, 0);
            transform_tiles::<V, OfGradients, 4>(out_block, gradients, corner, work.second, out_place);
            for place in 0..PLACES {
                pace.fetch::<V>(step);
                step += 1;
                let product = TransposedProduct {
                    x: work.first.as_ptr().add(place * in_place),
                    y: work.second.as_ptr().add(place * out_place),
                    sums: gradient.as_mut_ptr().add(place * input.c * output.c),
                    tiles,
                    k: input.c,
                    n: output.c,
                    is_first: is_first && begin == 0,
                };
                if !V::IS_BLOCK {
                    product.run::<V, 4, 2>();
                } else if output.c.is_multiple_of(2 * V::LANES) {
                    product.run::<V, 8, 2>();
                } else {
                    product.run::<V, 16, 1>();
                }
            }
        }
    }
}

/// `y[t][n] = sum over k of x[t][k] * w[k][n]`, summed in runs of `run`; `w` is `[n / 16][k][16]`.
///
/// # Safety
/// `x` is readable for `tiles + 15` rows of `k`, `w` for `k` rows of `n`, `y` writable for `tiles` rows of `n`;
/// `run` divides `k`.
#[inline(always)]
unsafe fn multiply<V: Vector>(
    xwy: (*const f32, *const f32, *mut f32),
    tiles: usize,
    (k, n): (usize, usize),
    run: usize,
) {
    // SAFETY: passed on.
    unsafe {
        let height = best_height(V::TILE_PIXELS, tiles);
        if V::IS_BLOCK {
            match (height, n.is_multiple_of(2 * V::LANES), k) {
                (8, true, 32) => multiply_tiles::<V, 8, 2, 32>(xwy, tiles, (k, n), run),
                (8, true, 64) => multiply_tiles::<V, 8, 2, 64>(xwy, tiles, (k, n), run),
                (8, true, _) => multiply_tiles::<V, 8, 2, 0>(xwy, tiles, (k, n), run),
                (_, true, _) => multiply_tiles::<V, 7, 2, 0>(xwy, tiles, (k, n), run),
                (8, false, 16) => multiply_tiles::<V, 16, 1, 16>(xwy, tiles, (k, n), run),
                (_, false, 16) => multiply_tiles::<V, 14, 1, 16>(xwy, tiles, (k, n), run),
                (_, false, _) => multiply_tiles::<V, 8, 1, 0>(xwy, tiles, (k, n), run),
            }
        } else if V::IS_HALF_BLOCK && height == 6 {
            multiply_tiles::<V, 6, 2, 0>(xwy, tiles, (k, n), run);
        } else {
            multiply_tiles::<V, 4, 2, 0>(xwy, tiles, (k, n), run);
        }
    }
}

#[inline(always)]
unsafe fn multiply_tiles<V: Vector, const P: usize, const Q: usize, const ROW: usize>(
    (x, w, y): (*const f32, *const f32, *mut f32),
    tiles: usize,
    (k, n): (usize, usize),
    run: usize,
) {
    let w_vector = vector_step(V::LANES, k);
    let strides = Strides { x_row: k, x_step: 1, w_step: CHANNEL_BLOCK, w_vector };
    for c in (0..n).step_by(Q * V::LANES) {
        // SAFETY: the caller's promise.
        let w = unsafe { w.add(channel_start(c, k)) };
        for t in (0..tiles).step_by(P) {
            // SAFETY: the caller's promise; rows past `tiles` are read but not stored.
            unsafe {
                let zero = [[V::zero(); Q]; P];
                let mut total = accumulate_rows::<V, P, Q, ROW>(zero, x.add(t * k), w, strides, run);
                for first in (run..k).step_by(run) {
                    let (x, w) = (x.add(t * k + first), w.add(first * CHANNEL_BLOCK));
                    let part = accumulate_rows::<V, P, Q, ROW>(zero, x, w, strides, run);
                    total = add(total, part);
                }
                store(&total, y.add(t * n + c), (n, V::LANES), tiles - t);
            }
        }
    }
}

/// `sums[k][n] (+)= sum over tiles t of x[t][k] * y[t][n]`; `sums` are `[n / 16][k][16]`.
struct TransposedProduct {
    x: *const f32,
    y: *const f32,
    sums: *mut f32,
    tiles: usize,
    k: usize,
    n: usize,
    is_first: bool,
}

impl TransposedProduct {
    /// # Safety
    /// The pointers reach every value the sizes name; P divides `k` and `Q * LANES` divides `n`.
    #[inline(always)]
    unsafe fn run<V: Vector, const P: usize, const Q: usize>(&self) {
        let strides = Strides { x_row: 1, x_step: self.k, w_step: self.n, w_vector: V::LANES };
        let vector = vector_step(V::LANES, self.k);
        for c in (0..self.k).step_by(P) {
            for o in (0..self.n).step_by(Q * V::LANES) {
                // SAFETY: the caller's promise.
                unsafe {
                    let sums = self.sums.add(channel_start(o, self.k) + c * CHANNEL_BLOCK);
                    let acc =
                        if self.is_first { [[V::zero(); Q]; P] } else { load(sums, CHANNEL_BLOCK, vector) };
                    let acc = accumulate(acc, self.x.add(c), self.y.add(o), strides, self.tiles);
                    store(&acc, sums, (CHANNEL_BLOCK, vector), P);
                }
            }
        }
    }
}

/// The transform T of a line of `N` values. (A trait, because a function passed as a value would be called without
/// the instruction set of its caller.)
trait Transform<const N: usize> {
    fn line<V: Vector>(values: [V; N]) -> [V; 6];
}

/// B'
struct OfInputs;
impl Transform<6> for OfInputs {
    #[inline(always)]
    fn line<V: Vector>(values: [V; 6]) -> [V; 6] {
        input_transform(values)
    }
}

/// A
struct OfGradients;
impl Transform<4> for OfGradients {
    #[inline(always)]
    fn line<V: Vector>(values: [V; 4]) -> [V; 6] {
        output_transform_transposed(values)
    }
}

/// `T tile T'` of the `N` x `N` tiles `begin ..`, place by place. `corner` is where tile (0, 0) begins in a padded map.
///
/// # Safety
/// `maps` holds the grid's padded maps, and tiles lie inside; `out` has `PLACES` places of `place` values, each
/// holding `tiles` rows of channels.
#[inline(always)]
unsafe fn transform_tiles<V: Vector, T: Transform<N>, const N: usize>(
    (grid, begin, tiles): (&TileGrid, usize, usize),
    maps: &[f32],
    corner: usize,
    out: &mut [f32],
    place: usize,
) {
    let map = grid.map;
    for (i, (image, y, x)) in grid.corners(begin).take(tiles).enumerate() {
        let first = image * map.padded_len() + y * map.padded_row() + x * map.c + corner;
        for c in (0..map.c).step_by(V::LANES) {
            // SAFETY: the caller's promise.
            unsafe {
                let from = maps.as_ptr().add(first + c);
                let mut half = [[V::zero(); N]; 6];
                for column in 0..N {
                    let transformed = T::line::<V>(load_column(from.add(column * map.c), map.padded_row()));
                    for row in 0..6 {
                        half[row][column] = transformed[row];
                    }
                }
                let to = out.as_mut_ptr().add(i * map.c + c);
                for (row, &values) in half.iter().enumerate() {
                    for (column, value) in T::line(values).into_iter().enumerate() {
                        value.store(to.add((row * 6 + column) * place));
                    }
                }
            }
        }
    }
}

/// `A' m A` of one tile and one vector of channels.
///
/// # Safety
/// `from` is readable at the 36 multiples of `place`.
#[inline(always)]
unsafe fn transform_output<V: Vector>(from: *const f32, place: usize) -> [[V; 4]; 4] {
    let mut half = [[V::zero(); 6]; 4];
    for column in 0..6 {
        // SAFETY: the caller's promise.
        let line = output_transform(unsafe { load_column(from.add(column * place), 6 * place) });
        for row in 0..4 {
            half[row][column] = line[row];
        }
    }
    let [a, b, c, d] = half;
    [output_transform(a), output_transform(b), output_transform(c), output_transform(d)]
}

/// `N` vectors, `step` values apart.
///
/// # Safety
/// `from` is readable there.
#[inline(always)]
unsafe fn load_column<V: Vector, const N: usize>(from: *const f32, step: usize) -> [V; N] {
    let mut column = [V::zero(); N];
    for (i, value) in column.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        *value = unsafe { V::load(from.add(i * step)) };
    }
    column
}
