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

    fn conv(&self, weights: &[f64], co: usize, kernel: usize, stride: usize) -> Maps {
        let (taps, pad) = (kernel * kernel, kernel / 2);
        let mut out = Maps::zeros(self.n, co, self.h.div_ceil(stride), self.w.div_ceil(stride));
        for n in 0..self.n {
            for o in 0..co {
                for i in 0..self.c {
                    for (dy, dx) in (0..taps).map(|t| (t / kernel, t % kernel)) {
                        let w = weights[(o * self.c + i) * taps + dy * kernel + dx];
                        for y in 0..out.h {
                            let row = y * stride + dy;
                            if row < pad || row >= self.h + pad {
                                continue;
                            }
                            for x in 0..out.w {
                                let column = x * stride + dx;
                                if column >= pad && column < self.w + pad {
                                    let to = out.at(n, o, y, x);
                                    out.data[to] += w * self.data[self.at(n, i, row - pad, column - pad)];
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

    /// The smallest distance between the two largest values of a 2x2 window, among windows whose largest is not zero.
    fn pool_margin(&self) -> f64 {
        let mut margin = f64::INFINITY;
        for (n, c) in (0..self.n * self.c).map(|i| (i / self.c, i % self.c)) {
            for (y, x) in (0..self.h / 2 * (self.w / 2)).map(|i| (i / (self.w / 2) * 2, i % (self.w / 2) * 2))
            {
                let mut window = [0, 1, 2, 3].map(|i| self.data[self.at(n, c, y + i / 2, x + i % 2)]);
                window.sort_by(f64::total_cmp);
                if window[3] != 0.0 {
                    margin = margin.min(window[3] - window[2]);
                }
            }
        }
        margin
    }

    /// The smallest distance between the two largest values of a 3x3 window around every second pixel.
    fn overlapping_margin(&self) -> f64 {
        let mut margin = f64::INFINITY;
        for (n, c) in (0..self.n * self.c).map(|i| (i / self.c, i % self.c)) {
            for (y, x) in (0..self.h.div_ceil(2) * self.w.div_ceil(2))
                .map(|i| (i / self.w.div_ceil(2), i % self.w.div_ceil(2)))
            {
                let mut window = self.overlapping_window((n, c), (y, x));
                window.sort_by(f64::total_cmp);
                if let [.., second, first] = window[..]
                    && first > 0.0
                {
                    margin = margin.min(first - second);
                }
            }
        }
        margin
    }

    /// The values of a 3x3 window around pixel (2y, 2x).
    fn overlapping_window(&self, (n, c): (usize, usize), (y, x): (usize, usize)) -> Vec<f64> {
        let rows = (2 * y).saturating_sub(1)..(2 * y + 2).min(self.h);
        let columns = (2 * x).saturating_sub(1)..(2 * x + 2).min(self.w);
        rows.flat_map(|row| columns.clone().map(move |column| (row, column)))
            .map(|(row, column)| self.data[self.at(n, c, row, column)])
            .collect()
    }

    /// 3x3 max pooling of stride 2.
    fn overlapping_pool(&self) -> Maps {
        let mut out = Maps::zeros(self.n, self.c, self.h.div_ceil(2), self.w.div_ceil(2));
        for i in 0..out.data.len() {
            let (plane, y, x) = (i / (out.h * out.w), i / out.w % out.h, i % out.w);
            let window = self.overlapping_window((plane / self.c, plane % self.c), (y, x));
            out.data[i] = window.into_iter().fold(f64::NEG_INFINITY, f64::max);
        }
        out
    }

    fn leaky_relu(mut self, slope: f64) -> Maps {
        self.data.iter_mut().for_each(|v| *v = v.max(*v * slope));
        self
    }

    /// The mean of each plane.
    fn means(&self) -> Vec<f64> {
        let area = self.h * self.w;
        self.data.chunks_exact(area).map(|plane| plane.iter().sum::<f64>() / area as f64).collect()
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
    let mut apply = |input: &Maps, kernel: usize, stride: usize| {
        let [weight, gamma, beta] = &params[3 * layer..3 * layer + 3] else { unreachable!() };
        let out = input.conv(weight, gamma.len(), kernel, stride);
        let out = out.norm(mode, gamma, beta, &buffers[2 * layer], &buffers[2 * layer + 1]);
        layer += 1;
        out
    };
    let mut maps = Maps { n, c: 3, h, w, data: images.to_vec() };
    match architecture {
        Architecture::ResNet { blocks_per_stage } => {
            maps = apply(&maps, 3, 1);
            margin = margin.min(maps.relu_margin());
            maps = maps.relu();
            for stage in 0..3 {
                for block in 0..blocks_per_stage {
                    let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                    let inside = apply(&maps, 3, stride);
                    let out = apply(&inside.clone().relu(), 3, 1).add_shortcut(&maps, stride);
                    margin = margin.min(inside.relu_margin()).min(out.relu_margin());
                    maps = out.relu();
                }
            }
            (maps.pool(8, |a, b| a + b, 1.0 / 64.0).data, margin)
        }
        Architecture::Conv4 { .. } => {
            for _ in 0..4 {
                maps = apply(&maps, 3, 1);
                margin = margin.min(maps.relu_margin());
                maps = maps.relu();
                margin = margin.min(maps.pool_margin());
                maps = maps.pool(2, f64::max, 1.0);
            }
            (maps.data, margin)
        }
        Architecture::ResNet12 { channels } => {
            for _ in channels {
                let first = apply(&maps, 3, 1);
                let second = apply(&first.clone().leaky_relu(0.1), 3, 1);
                let third = apply(&second.clone().leaky_relu(0.1), 3, 1);
                let out = third.add_shortcut(&apply(&maps, 1, 1), 1);
                for values in [&first, &second, &out] {
                    margin = margin.min(values.relu_margin());
                }
                let out = out.leaky_relu(0.1);
                margin = margin.min(out.pool_margin());
                maps = out.pool(2, f64::max, 1.0);
            }
            (maps.means(), margin)
        }
        Architecture::ResNet18 { .. } => {
            maps = apply(&maps, 7, 2);
            margin = margin.min(maps.relu_margin());
            maps = maps.relu();
            margin = margin.min(maps.overlapping_margin());
            maps = maps.overlapping_pool();
            for (stage, block) in (0..8).map(|i| (i / 2, i % 2)) {
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                let inside = apply(&maps, 3, stride);
                let out = apply(&inside.clone().relu(), 3, 1);
                let shortcut = if stride == 1 { maps } else { apply(&maps, 1, stride) };
                let out = out.add_shortcut(&shortcut, 1);
                margin = margin.min(inside.relu_margin()).min(out.relu_margin());
                maps = out.relu();
            }
            (maps.means(), margin)
        }
    }
}
