//! Every method of convolution against the definition, at odd sizes, on every instruction set.

use super::*;
use crate::ahead::Ahead;
use crate::simd::Simd;
use crate::winograd::workspace_len;

fn values(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0).collect()
}

/// Padded maps from `[images, channels, h, w]`.
fn pad(map: Map, channels: usize, data: &[f32]) -> Vec<f32> {
    let plane = map.h * map.w;
    let mut out = vec![0.0; data.len() / (channels * plane) * map.padded_len()];
    for (i, &value) in data.iter().enumerate() {
        let (image, c, pixel) = (i / (channels * plane), i / plane % channels, i % plane);
        out[image * map.padded_len() + map.padded_at(pixel / map.w, pixel % map.w) + c] = value;
    }
    out
}

/// Calls `f(input index, weight index, output index)` for every product of a convolution.
fn each_product(shape: &ConvShape, images: usize, mut f: impl FnMut(usize, usize, usize)) {
    let (ci, co, input, output) = (shape.in_channels, shape.out_channels, shape.input, shape.output);
    let (kernel, taps, pad) = (shape.kernel, shape.taps(), shape.kernel / 2);
    for n in 0..images {
        for (o, y, x) in (0..co * output.h * output.w)
            .map(|i| (i / (output.h * output.w), i / output.w % output.h, i % output.w))
        {
            for (i, tap) in (0..ci * taps).map(|i| (i / taps, i % taps)) {
                let (row, column) = (y * shape.stride + tap / kernel, x * shape.stride + tap % kernel);
                if (pad..input.h + pad).contains(&row) && (pad..input.w + pad).contains(&column) {
                    f(
                        ((n * ci + i) * input.h + row - pad) * input.w + column - pad,
                        (o * ci + i) * taps + tap,
                        ((n * co + o) * output.h + y) * output.w + x,
                    );
                }
            }
        }
    }
}

fn pack(simd: Simd, shape: &ConvShape, direction: Direction, exact: bool, weights: &[f32]) -> Vec<f32> {
    let mut packed = vec![9.0; PackWeights::len(shape)];
    let mut plain = vec![9.0; PackWeights::block_len(shape)];
    let form = PackedForm::new(shape, direction, exact);
    for block in 0..form.blocks {
        let mut rows: Vec<&mut [f32]> =
            packed.chunks_exact_mut(form.len).skip(block).step_by(form.blocks).take(form.rows).collect();
        let (plain, rows) = (&mut plain[..], &mut rows[..]);
        simd.run(PackWeights { shape, direction, weights, scale: None, block, plain, rows });
    }
    packed
}

/// Values `[images, channels, h, w]` of dense maps.
fn planes(map: Map, channels: usize, dense: &[f32]) -> Vec<f32> {
    let plane = map.h * map.w;
    let images = dense.len() / map.len();
    (0..images * channels * plane)
        .map(|i| dense[(i / (channels * plane) * plane + i % plane) * map.c + i / plane % channels])
        .collect()
}

fn assert_close(what: &str, got: &[f32], expected: &[f64]) {
    let size = expected.iter().fold(1e-3_f64, |m, v| m.max(v.abs()));
    for (g, e) in got.iter().zip(expected) {
        assert!((f64::from(*g) - e).abs() < 1e-5 * size, "{what}: {g} instead of {e}");
    }
}

fn check(simd: Simd, shape: &ConvShape, images: usize) {
    let what = format!("{} {shape:?} {images} images", simd.name());
    let (ci, co, input, output) = (shape.in_channels, shape.out_channels, shape.input, shape.output);
    let x = values(images * ci * input.h * input.w, 1);
    let w = values(co * ci * shape.taps(), 2);
    let g = values(images * co * output.h * output.w, 3);
    let (mut y, mut gx, mut gw) = (vec![0.0; g.len()], vec![0.0; x.len()], vec![0.0; w.len()]);
    each_product(shape, images, |i, tap, o| {
        y[o] += f64::from(x[i]) * f64::from(w[tap]);
        gx[i] += f64::from(g[o]) * f64::from(w[tap]);
        gw[tap] += f64::from(x[i]) * f64::from(g[o]);
    });
    let channels = input.c.max(output.c).next_multiple_of(CHANNEL_BLOCK);
    let (mut first, mut second) = (vec![0.0; workspace_len(channels)], vec![0.0; workspace_len(channels)]);
    let (inputs, gradients) = (pad(input, ci, &x), pad(output, co, &g));
    let direction = Direction::Forward;
    for exact in [false, true] {
        let mut dense = vec![9.0; images * output.len()];
        Convolve {
            shape,
            direction,
            maps: &inputs,
            images,
            exact,
            weights: &pack(simd, shape, direction, exact, &w),
            work: Workspace { first: &mut first, second: &mut second, ahead: Ahead::default() },
            output: Output::Keep(Keep { out: &mut dense, map: output }),
        }
        .run(simd);
        assert_close(&format!("forward (exact: {exact}) {what}"), &planes(output, co, &dense), &y);
    }

    let direction = Direction::Backward;
    let mut got = vec![9.0; x.len()];
    if shape.kernel == 7 {
        simd.run(ImageGradient { shape, weights: &w, maps: &gradients, images, out: &mut got });
    } else {
        let map = shape.input_gradient();
        let mut dense = vec![9.0; images * map.len()];
        let output = if shape.kernel == 1 {
            Output::Keep(Keep { out: &mut dense, map })
        } else {
            Output::ToImages(ToImages { out: &mut got, map: input, channels: ci, shortcut: None })
        };
        Convolve {
            shape,
            direction,
            maps: &gradients,
            images,
            exact: false,
            weights: &pack(simd, shape, direction, false, &w),
            work: Workspace { first: &mut first, second: &mut second, ahead: Ahead::default() },
            output,
        }
        .run(simd);
        if shape.kernel == 1 {
            // Pixels between those under the kernel have no gradient.
            got.fill(0.0);
            for (i, value) in planes(map, ci, &dense).into_iter().enumerate() {
                let (plane, y, x) = (i / (map.h * map.w), i / map.w % map.h, i % map.w);
                got[(plane * input.h + y * shape.stride) * input.w + x * shape.stride] = value;
            }
        }
    }
    assert_close(&format!("gradient of the input {what}"), &got, &gx);

    let mut sums = vec![9.0; PackWeights::len(shape)];
    WeightGradient {
        shape,
        inputs: &inputs,
        gradients: &gradients,
        images,
        gradient: &mut sums,
        is_first: true,
        work: Workspace { first: &mut first, second: &mut second, ahead: Ahead::default() },
    }
    .run(simd);
    let mut finished = vec![0.0; shape.weight_len()];
    simd.run(FinishWeightGradient { shape, gradient: &sums, out: &mut finished });
    let mut got = vec![9.0; w.len()];
    for (block, out) in got.chunks_mut(CHANNEL_BLOCK * shape.taps() * ci).enumerate() {
        simd.run(SumWeightGradient { shape, parts: &finished, block, out });
    }
    assert_close(&format!("gradient of the weights {what}"), &got, &gw);
}

/// A shape of the network: an image stores its three channels as they are.
fn shape(
    (h, w): (usize, usize),
    (ci, co): (usize, usize),
    kernel: usize,
    stride: usize,
    is_image: bool,
) -> ConvShape {
    let input = if is_image {
        Map { h, w, c: ci, border: (kernel / 2).max(1) }
    } else {
        Map::new(h, w, padded_channels(ci))
    };
    ConvShape::new(input, (ci, co), kernel, stride)
}

#[test]
fn convolutions_agree_with_the_definition_at_odd_sizes() {
    for simd in Simd::available() {
        for size in [(1, 1), (7, 9), (4, 4), (2, 5), (13, 33)] {
            for (channels, is_image) in
                [((3, 16), true), ((3, 5), true), ((16, 16), false), ((20, 33), false)]
            {
                for (stride, images) in [(1, 1), (1, 3), (2, 1), (2, 2)] {
                    check(simd, &shape(size, channels, 3, stride, is_image), images);
                    check(simd, &shape(size, channels, 1, stride, is_image), images);
                }
            }
            check(simd, &shape(size, (3, 20), 7, 2, true), 2);
        }
        check(simd, &shape((8, 8), (64, 64), 3, 1, false), 4);
        check(simd, &shape((21, 21), (32, 64), 3, 2, false), 1);
    }
}

/// So many weights that loops over them are turned around.
#[test]
fn wide_convolutions_agree_with_the_definition() {
    for simd in Simd::available() {
        let wide = |size, channels, kernel, stride| {
            let shape = shape(size, channels, kernel, stride, false);
            assert!(shape.is_wide());
            check(simd, &shape, 2);
        };
        wide((5, 6), (80, 112), 3, 1);
        wide((5, 6), (80, 112), 3, 2);
        wide((5, 6), (272, 256), 1, 1);
        wide((5, 6), (272, 256), 1, 2);
    }
}
