//! Small vector arithmetic with gradients.

/// Inner product, summed in eight lanes so that the compiler can use vector registers.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    debug_assert_eq!(a.len(), b.len());
    let mut lanes = [0.0_f32; 8];
    let (a_chunks, a_rest) = a.as_chunks::<8>();
    let (b_chunks, b_rest) = b.as_chunks::<8>();
    for (x, y) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..8 {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + b) + (c + d)) + ((e + f) + (g + h)) + rest
}

/// `y += factor * x`.
pub(crate) fn add_scaled(y: &mut [f32], factor: f32, x: &[f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += factor * x;
    }
}

/// A cosine with what its gradient needs. Norms are held above `floor`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cosine {
    pub(crate) value: f32,
    norms: [f32; 2],
    floored: [bool; 2],
}

impl Cosine {
    pub(crate) fn of(a: &[f32], b: &[f32], floor: f32) -> Self {
        Self::with_norms(a, b, [dot(a, a).sqrt(), dot(b, b).sqrt()], floor)
    }

    /// The cosine where the norms of both vectors are known.
    pub(crate) fn with_norms(a: &[f32], b: &[f32], norms: [f32; 2], floor: f32) -> Self {
        let held = norms.map(|norm| norm.max(floor));
        Self { value: dot(a, b) / (held[0] * held[1]), norms: held, floored: norms.map(|norm| norm < floor) }
    }

    /// Adds the gradient with respect to the first vector, for a gradient `g` of the value.
    pub(crate) fn backward_first(&self, g: f32, a: &[f32], b: &[f32], grad: &mut [f32]) {
        add_scaled(grad, g / (self.norms[0] * self.norms[1]), b);
        if !self.floored[0] {
            add_scaled(grad, -g * self.value / (self.norms[0] * self.norms[0]), a);
        }
    }

    /// Adds the gradient with respect to the second vector.
    pub(crate) fn backward_second(&self, g: f32, a: &[f32], b: &[f32], grad: &mut [f32]) {
        add_scaled(grad, g / (self.norms[0] * self.norms[1]), a);
        if !self.floored[1] {
            add_scaled(grad, -g * self.value / (self.norms[1] * self.norms[1]), b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_counts_every_element() {
        let a: Vec<f32> = (0..19).map(|i| i as f32).collect();
        let ones = vec![1.0; 19];
        assert!((dot(&a, &ones) - 171.0).abs() < 1e-4);
    }

    #[test]
    fn cosine_gradients_match_finite_differences() {
        let a = [0.3_f32, -1.2, 0.7];
        let b = [1.1_f32, 0.4, -0.2];
        let cosine = Cosine::of(&a, &b, 1e-4);
        let (mut grad_a, mut grad_b) = ([0.0; 3], [0.0; 3]);
        cosine.backward_first(1.0, &a, &b, &mut grad_a);
        cosine.backward_second(1.0, &a, &b, &mut grad_b);
        for i in 0..3 {
            let h = 1e-2;
            let nudged = |v: [f32; 3], h: f32| {
                let mut v = v;
                v[i] += h;
                v
            };
            let by_a = (Cosine::of(&nudged(a, h), &b, 1e-4).value
                - Cosine::of(&nudged(a, -h), &b, 1e-4).value)
                / (2.0 * h);
            let by_b = (Cosine::of(&a, &nudged(b, h), 1e-4).value
                - Cosine::of(&a, &nudged(b, -h), 1e-4).value)
                / (2.0 * h);
            assert!((by_a - grad_a[i]).abs() < 1e-3 && (by_b - grad_b[i]).abs() < 1e-3);
        }
    }
}
