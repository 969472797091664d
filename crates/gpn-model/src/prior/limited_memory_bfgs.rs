//! Minimises a smooth convex function by L-BFGS.

/// Steps that are remembered.
const MEMORY: usize = 8;
/// The share of the expected decrease that a step must reach.
const DECREASE: f64 = 1e-4;
/// Halvings of a step before it is given up.
const HALVINGS: usize = 20;
/// The search ends where the gradient is this small against the first one.
const SMALL: f64 = 1e-4;

/// What a search is told to do after a step.
pub(super) enum Next {
    /// Go on.
    Step,
    /// End with what there is.
    Stop,
}

/// Minimises `function`, which returns a value and writes its gradient, from `point` on; at most `steps` steps. Everything is
/// summed in one order, so the same input gives the same bits.
pub(super) fn minimise(
    point: &mut [f64],
    steps: usize,
    mut function: impl FnMut(&[f64], &mut [f64]) -> f64,
    mut after_step: impl FnMut() -> Next,
) {
    let n = point.len();
    let (mut gradient, mut next_gradient) = (vec![0.0; n], vec![0.0; n]);
    let mut value = function(point, &mut gradient);
    let first = dot(&gradient, &gradient).sqrt();
    // Differences of points and of gradients, and the inverse of their product.
    let mut remembered: Vec<(Vec<f64>, Vec<f64>, f64)> = Vec::new();
    for _ in 0..steps {
        if dot(&gradient, &gradient).sqrt() <= SMALL * first {
            return;
        }
        let direction = direction(&gradient, &remembered);
        let slope = dot(&gradient, &direction);
        if slope >= 0.0 {
            return;
        }
        let mut length = if remembered.is_empty() { (1.0 / first).min(1.0) } else { 1.0 };
        let mut next = vec![0.0; n];
        let mut next_value = f64::INFINITY;
        for _ in 0..HALVINGS {
            next.iter_mut().zip(&*point).zip(&direction).for_each(|((next, x), d)| *next = x + length * d);
            next_value = function(&next, &mut next_gradient);
            if next_value <= value + DECREASE * length * slope {
                break;
            }
            length /= 2.0;
        }
        if next_value >= value {
            return;
        }
        let moved: Vec<f64> = next.iter().zip(&*point).map(|(next, x)| next - x).collect();
        let turned: Vec<f64> = next_gradient.iter().zip(&gradient).map(|(next, g)| next - g).collect();
        let product = dot(&moved, &turned);
        if product > 0.0 {
            if remembered.len() == MEMORY {
                remembered.remove(0);
            }
            remembered.push((moved, turned, 1.0 / product));
        }
        point.copy_from_slice(&next);
        std::mem::swap(&mut gradient, &mut next_gradient);
        value = next_value;
        if matches!(after_step(), Next::Stop) {
            return;
        }
    }
}

/// Minus the gradient times the inverse of the remembered curvature.
fn direction(gradient: &[f64], remembered: &[(Vec<f64>, Vec<f64>, f64)]) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut shares = vec![0.0; remembered.len()];
    for ((moved, turned, inverse), share) in remembered.iter().zip(&mut shares).rev() {
        *share = inverse * dot(moved, &direction);
        direction.iter_mut().zip(turned).for_each(|(d, turned)| *d -= *share * turned);
    }
    if let Some((_, turned, inverse)) = remembered.last() {
        let scale = 1.0 / (inverse * dot(turned, turned));
        for d in &mut direction {
            *d *= scale;
        }
    }
    for ((moved, turned, inverse), share) in remembered.iter().zip(&shares) {
        let back = inverse * dot(turned, &direction);
        direction.iter_mut().zip(moved).for_each(|(d, moved)| *d += (share - back) * moved);
    }
    direction
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ill_conditioned_bowl_is_minimised() {
        let widths = [1.0, 40.0, 1600.0, 3.0];
        let centre = [2.0, -1.0, 0.5, 7.0];
        let mut point = [0.0; 4];
        let bowl = |x: &[f64], gradient: &mut [f64]| {
            let mut value = 0.0;
            for i in 0..4 {
                gradient[i] = widths[i] * (x[i] - centre[i]);
                value += 0.5 * widths[i] * (x[i] - centre[i]).powi(2);
            }
            value
        };
        minimise(&mut point, 100, bowl, || Next::Step);
        for i in 0..4 {
            assert!((point[i] - centre[i]).abs() < 0.1 / widths[i].sqrt(), "{point:?}");
        }
    }

    #[test]
    fn it_ends_when_told_to() {
        let mut point = [10.0];
        let mut steps = 0;
        let square = |x: &[f64], gradient: &mut [f64]| {
            gradient[0] = 4.0 * x[0].powi(3);
            x[0].powi(4)
        };
        minimise(&mut point, 100, square, || {
            steps += 1;
            if steps == 2 { Next::Stop } else { Next::Step }
        });
        assert_eq!(steps, 2);
        assert!(point[0].abs() < 10.0);
    }
}
