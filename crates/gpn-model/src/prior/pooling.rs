//! How far variances per dimension are to be trusted.

use gpn_taxonomy::Node;

use super::statistics::ClassStatistics;

/// Every so-manieth class is kept from the others, to see how well they foretell it.
const KEPT: usize = 4;
/// A class whose part outside of the others is smaller than this share of it adds no direction.
const LEAST: f64 = 1e-6;

/// The share (0 to 1) of variances between classes that is to be pooled over dimensions.
///
/// With fewer classes than dimensions, there are directions in which the known classes do not differ at all; a metric that is
/// turned to where they differ gives these a variance of nothing. New classes do differ there. How much is seen from some
/// classes that are kept from the others: the variance of those in a direction that none of the others has, over their
/// variance in any direction. With more than enough classes it is 0.
///
/// O(classes * dim^2) with fewer classes than dimensions, O(1) else.
pub(super) fn pooled_share(statistics: &ClassStatistics) -> f64 {
    let dim = statistics.dim();
    let known: Vec<Node> = statistics.known().collect();
    let is_kept = |place: usize| place % KEPT == KEPT - 1;
    let (kept, others): (Vec<_>, Vec<_>) = known.iter().enumerate().partition(|&(place, _)| is_kept(place));
    if others.len() > dim {
        return 0.0;
    }
    let mut centre = vec![0.0; dim];
    for &(_, &class) in &others {
        centre.iter_mut().zip(statistics.mean(class)).for_each(|(sum, &x)| *sum += f64::from(x));
    }
    for sum in &mut centre {
        *sum /= others.len().max(1) as f64;
    }
    let deviation = |class: Node| -> Vec<f64> {
        statistics.mean(class).iter().zip(&centre).map(|(&x, centre)| f64::from(x) - centre).collect()
    };
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for &(_, &class) in &others {
        let mut rest = deviation(class);
        let length = squared(&rest).sqrt();
        take_off(&mut rest, &basis);
        let left = squared(&rest).sqrt();
        if left > LEAST * length {
            for x in &mut rest {
                *x /= left;
            }
            basis.push(rest);
        }
    }
    let outside = dim - basis.len();
    let (mut beyond, mut total, mut noise) = (0.0, 0.0, 0.0);
    for &(_, &class) in &kept {
        let mut rest = deviation(class);
        total += squared(&rest);
        take_off(&mut rest, &basis);
        beyond += squared(&rest);
        noise += statistics.within().iter().sum::<f64>() / f64::from(statistics.count(class));
    }
    if outside == 0 {
        return 0.0;
    }
    let share_of_noise = outside as f64 / dim as f64;
    let (beyond, total) = ((beyond - noise * share_of_noise).max(0.0), total - noise);
    // Where what is kept does not stand out from the noise, nothing is known of single directions.
    if total > 0.0 { (beyond / total / share_of_noise).min(1.0) } else { 1.0 }
}

/// Variances of which a share is spread over all dimensions, in proportion to the variance within classes there.
pub(super) fn pool(variances: &mut [f64], within: &[f64], share: f64) {
    let ratios = variances.iter().zip(within).map(|(variance, within)| variance / within);
    let mean = ratios.sum::<f64>() / variances.len() as f64;
    for (variance, within) in variances.iter_mut().zip(within) {
        *variance = (1.0 - share) * *variance + share * mean * within;
    }
}

/// Takes off a vector what it has of an orthonormal basis; twice, because once leaves rounding behind.
fn take_off(vector: &mut [f64], basis: &[Vec<f64>]) {
    for _ in 0..2 {
        for direction in basis {
            let along: f64 = vector.iter().zip(direction).map(|(x, d)| x * d).sum();
            vector.iter_mut().zip(direction).for_each(|(x, d)| *x -= along * d);
        }
    }
}

fn squared(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prior::StatisticsBuilder;
    use crate::prior::sample::noise;

    /// Class means that differ by 1 along each direction, in a space of `dim` directions of which they use `used`.
    fn share(classes: usize, used: usize, dim: usize) -> f64 {
        let mut values = noise(8);
        let mut builder = StatisticsBuilder::new(dim, classes).unwrap();
        for class in 0..classes {
            let mean: Vec<f32> = (0..dim).map(|d| if d < used { values() } else { 0.0 }).collect();
            let rows: Vec<f32> = (0..50).flat_map(|_| mean.clone()).map(|x| x + 0.05 * values()).collect();
            builder.add(class as Node, &rows).unwrap();
        }
        let statistics = builder.finish().unwrap();
        pooled_share(&statistics)
    }

    #[test]
    fn many_classes_speak_for_themselves_and_few_do_not() {
        assert!(share(100, 16, 16) < 1e-12);
        assert!(share(12, 30, 30) > 0.8, "each class has directions of its own");
        assert!(share(24, 3, 30) < 0.05, "all classes differ along the same three directions");
    }

    #[test]
    fn pooling_keeps_the_mean_of_ratios() {
        let mut variances = [0.0, 8.0];
        pool(&mut variances, &[1.0, 2.0], 0.5);
        assert!((variances[0] - 1.0).abs() < 1e-12 && (variances[1] - 6.0).abs() < 1e-12);
    }
}
