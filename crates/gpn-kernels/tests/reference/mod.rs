//! The networks by their definition, in f64, for one set of parameters; and how far their values are from a kink.

use gpn_kernels::{Architecture, Mode};

/// A batch of maps `[n, c, h, w]`.
#[derive(Clone)]
struct Maps {
    n: usize,
    c: usize,
    h: usize,
    w: usize,
    data: Vec<f64>,
}

impl Maps {
    fn zeros(n: usize, c: usize, h: usize, w: usize) -> Maps {
        Maps { n, c, h, w, data: vec![0.0; n * c * h * w] }
    }
    fn at(&self, n: usize, c: usize, y: usize, x: usize) -> usize {
        ((n * self.c + c) * self.h + y) * self.w + x
    }

    fn conv(&self, weights: &[f64], co: usize, stride: usize) -> Maps {
        let mut out = Maps::zeros(self.n, co, self.h.div_ceil(stride), self.w.div_ceil(stride));
        for n in 0..self.n {
            for o in 0..co {
                for i in 0..self.c {
                    for (dy, dx) in (0..9).map(|t| (t / 3, t % 3)) {
                        let w = weights[(o * self.c + i) * 9 + dy * 3 + dx];
                        for y in 0..out.h {
                            let row = y * stride + dy;
                            if row == 0 || row > self.h {
                                continue;
                            }
                            for x in 0..out.w {
                                let column = x * stride + dx;
                                if column > 0 && column <= self.w {
                                    let to = out.at(n, o, y, x);
                                    out.data[to] += w * self.data[self.at(n, i, row - 1, column - 1)];
                                }
                            }
                        }
                    }
                }
            }
        }
        out
    }

    fn norm(mut self, mode: Mode, gamma: &[f64], beta: &[f64], mean: &[f64], var: &[f64]) -> Maps {
        let plane = self.h * self.w;
        for c in 0..self.c {
            let indices: Vec<usize> =
                (0..self.n * plane).map(|i| (i / plane * self.c + c) * plane + i % plane).collect();
            let (mut mean, mut var) = (mean[c], var[c]);
            if mode == Mode::Train {
                let count = indices.len() as f64;
                mean = indices.iter().map(|&i| self.data[i]).sum::<f64>() / count;
                var = indices.iter().map(|&i| (self.data[i] - mean).powi(2)).sum::<f64>() / count;
            }
            for i in indices {
                self.data[i] = (self.data[i] - mean) / (var + 1e-5).sqrt() * gamma[c] + beta[c];
            }
        }
        self
    }

    /// The smallest distance from the kink of the ReLU.
    fn relu_margin(&self) -> f64 {
        self.data.iter().fold(f64::INFINITY, |margin, v| margin.min(v.abs()))
    }

    /// The smallest distance between the two largest values of a 2x2 window, among windows with a positive value.
    fn pool_margin(&self) -> f64 {
        let mut margin = f64::INFINITY;
        for (n, c) in (0..self.n * self.c).map(|i| (i / self.c, i % self.c)) {
            for (y, x) in (0..self.h / 2 * (self.w / 2)).map(|i| (i / (self.w / 2) * 2, i % (self.w / 2) * 2))
            {
                let mut window = [0, 1, 2, 3].map(|i| self.data[self.at(n, c, y + i / 2, x + i % 2)]);
                window.sort_by(f64::total_cmp);
                if window[3] > 0.0 {
                    margin = margin.min(window[3] - window[2]);
                }
            }
        }
        margin
    }

    fn relu(mut self) -> Maps {
        self.data.iter_mut().for_each(|v| *v = v.max(0.0));
        self
    }

    fn add_shortcut(mut self, from: &Maps, stride: usize) -> Maps {
        for n in 0..self.n {
            for c in 0..from.c {
                for (y, x) in (0..self.h * self.w).map(|i| (i / self.w, i % self.w)) {
                    let to = self.at(n, c, y, x);
                    self.data[to] += from.data[from.at(n, c, y * stride, x * stride)];
                }
            }
        }
        self
    }

    /// Folds windows of `side` x `side`.
    fn pool(&self, side: usize, fold: impl Fn(f64, f64) -> f64, finish: f64) -> Maps {
        let mut out = Maps::zeros(self.n, self.c, self.h / side, self.w / side);
        for n in 0..self.n {
            for c in 0..self.c {
                for (y, x) in (0..out.h * out.w).map(|i| (i / out.w, i % out.w)) {
                    let mut value = self.data[self.at(n, c, y * side, x * side)];
                    for i in 1..side * side {
                        value =
                            fold(value, self.data[self.at(n, c, y * side + i / side, x * side + i % side)]);
                    }
                    let to = out.at(n, c, y, x);
                    out.data[to] = value * finish;
                }
            }
        }
        out
    }
}

/// Embeddings `[n, len]`, and the smallest distance of any value from a kink of the network: within it, the network
/// is as smooth as its gradient says, whoever rounds.
pub(crate) fn embed(
    architecture: Architecture,
    mode: Mode,
    params: &[Vec<f64>],
    buffers: &[Vec<f64>],
    images: &[f64],
    (n, h, w): (usize, usize, usize),
) -> (Vec<f64>, f64) {
    let mut layer = 0;
    let mut margin = f64::INFINITY;
    let mut apply = |input: &Maps, stride: usize| {
        let [weight, gamma, beta] = &params[3 * layer..3 * layer + 3] else { unreachable!() };
        let out = input.conv(weight, gamma.len(), stride);
        let out = out.norm(mode, gamma, beta, &buffers[2 * layer], &buffers[2 * layer + 1]);
        layer += 1;
        out
    };
    let mut maps = Maps { n, c: 3, h, w, data: images.to_vec() };
    match architecture {
        Architecture::ResNet { blocks_per_stage } => {
            maps = apply(&maps, 1);
            margin = margin.min(maps.relu_margin());
            maps = maps.relu();
            for stage in 0..3 {
                for block in 0..blocks_per_stage {
                    let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                    let inside = apply(&maps, stride);
                    let out = apply(&inside.clone().relu(), 1).add_shortcut(&maps, stride);
                    margin = margin.min(inside.relu_margin()).min(out.relu_margin());
                    maps = out.relu();
                }
            }
            (maps.pool(8, |a, b| a + b, 1.0 / 64.0).data, margin)
        }
        Architecture::Conv4 { .. } => {
            for _ in 0..4 {
                maps = apply(&maps, 1);
                margin = margin.min(maps.relu_margin()).min(maps.pool_margin());
                maps = maps.relu().pool(2, f64::max, 1.0);
            }
            (maps.data, margin)
        }
    }
}
