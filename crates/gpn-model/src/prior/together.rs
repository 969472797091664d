//! The classes of one task, whose means vary together.

use gpn_taxonomy::Node;
use nalgebra::DMatrix;

use super::check::{finite, rows_of};
use super::field::KnownClasses;
use super::fit::GraphPrior;
use super::posterior::{ClassPrior, Posterior};
use crate::error::{ModelError, Result};

/// The priors of several classes, and how these vary together: what the graph does not say of one of them, it does not say of its
/// siblings either. So the samples of a class tell something about the others.
#[derive(Clone, Debug)]
pub struct JointPrior {
    /// The prior of each class.
    pub priors: Vec<ClassPrior>,
    /// Covariance of the classes' means where an edge has variance 1, `[classes, classes]`.
    covariance: DMatrix<f64>,
}

impl GraphPrior {
    /// The priors of the classes of a task, none of which is known, and how they vary together. `None` where there is nothing to
    /// say: a class is known, given twice or has no known relatives, or there are more than 64 of them.
    ///
    /// O(dim) for each known class around, and at most 128^3 for the solution.
    pub fn of_all(&self, known: &KnownClasses<'_>, classes: &[Node]) -> Option<JointPrior> {
        let (around, covariance) = known.around_all(classes)?;
        if around.iter().any(|around| !around.is_related) {
            return None;
        }
        Some(JointPrior {
            priors: around.iter().map(|around| self.around(known, around)).collect(),
            covariance,
        })
    }

    /// The posteriors of classes with a joint prior, given the embeddings of each one's samples in the space of the metric,
    /// `[k, dim]`. A class without samples may be among them. [`Posterior::own`] is the share of a class's own samples; the rest is
    /// the prior and what the samples of the others say.
    ///
    /// With `C` the covariance, `K` the numbers of samples and `x` their means, the prototypes of a dimension are
    /// `m + s C (s C + s2 / K)^-1 (x - m)`, `s` the variance of an edge. O(classes^3 + classes^2 * dim).
    pub fn posteriors(&self, joint: &JointPrior, samples: &[&[f32]]) -> Result<Vec<Posterior>> {
        let (count, dim) = (joint.priors.len(), self.dim());
        if samples.len() != count {
            let expected = format!("those of {count} classes");
            return Err(ModelError::WrongLength { what: "samples of classes", expected, got: samples.len() });
        }
        let mut shots = Vec::with_capacity(count);
        // The deviation of each class's samples from its prior, times the root of their number: all have the same noise then.
        let mut deviations = DMatrix::<f64>::zeros(count, dim);
        for (class, (&rows, prior)) in samples.iter().zip(&joint.priors).enumerate() {
            let own = rows_of("samples of a class", rows, dim)?;
            finite("samples of a class", rows)?;
            shots.push(own);
            if own == 0 {
                continue;
            }
            let root = (own as f64).sqrt();
            for (d, expected) in prior.mean.iter().enumerate() {
                let sum: f64 = rows.iter().skip(d).step_by(dim).map(|&x| f64::from(x)).sum();
                deviations[(class, d)] = root * (sum / own as f64 - expected);
            }
        }
        let root = |class: usize| (shots[class] as f64).sqrt();
        let covariance = &joint.covariance;
        let observed = DMatrix::from_fn(count, count, |i, j| root(i) * covariance[(i, j)] * root(j));
        let eigen = observed.symmetric_eigen();
        // Rounding may leave a number below zero where there is nothing.
        let values: Vec<f64> = eigen.eigenvalues.iter().map(|value| value.max(0.0)).collect();
        let turned = eigen.eigenvectors.transpose() * deviations;
        let back = DMatrix::from_fn(count, count, |i, j| covariance[(i, j)] * root(j)) * &eigen.eigenvectors;
        let posterior = |class: usize| {
            let mut posterior = Posterior {
                prototype: Vec::with_capacity(dim),
                variance: Vec::with_capacity(dim),
                own: Vec::with_capacity(dim),
                shots: shots[class],
            };
            for (d, (slope, within)) in self.slope.iter().zip(&self.within).enumerate() {
                let edge = self.scale * slope;
                let (mut moved, mut own, mut known) = (0.0, 0.0, 0.0);
                for (at, value) in values.iter().enumerate() {
                    let (back, gain) = (back[(class, at)], edge / (edge * value + within));
                    moved += back * gain * turned[(at, d)];
                    own += back * gain * eigen.eigenvectors[(class, at)] * root(class);
                    known += back * gain * back;
                }
                posterior.prototype.push((joint.priors[class].mean[d] + moved) as f32);
                posterior.variance.push((edge * (covariance[(class, class)] - known).max(0.0)) as f32);
                posterior.own.push(own as f32);
            }
            posterior
        };
        Ok((0..count).map(posterior).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prior::sample::{graph_of, noise};
    use crate::prior::{FitConfig, StatisticsBuilder};
    use gpn_taxonomy::Taxonomy;

    const DIM: usize = 3;

    fn fitted(graph: &Taxonomy, known: &[&str]) -> (GraphPrior, crate::prior::ClassStatistics) {
        let mut values = noise(6);
        let mut builder = StatisticsBuilder::new(DIM, graph.len()).unwrap();
        for id in known {
            // Classes are far apart, so that there is something to learn from relatives.
            let mean: Vec<f32> = (0..DIM).map(|_| 5.0 * values()).collect();
            let rows: Vec<f32> = (0..5).flat_map(|_| mean.clone()).map(|x| x + values()).collect();
            builder.add(graph.find(id).unwrap(), &rows).unwrap();
        }
        let statistics = builder.finish().unwrap();
        let prior = GraphPrior::fit(graph, &statistics, FitConfig::default()).unwrap();
        (prior.with_scale(1.5).unwrap(), statistics)
    }

    /// The posterior of one dimension by the inverse of whole matrices.
    fn dense(prior: &GraphPrior, joint: &JointPrior, samples: &[&[f32]], d: usize) -> Vec<(f64, f64)> {
        let count = samples.len();
        let before = &joint.covariance * (prior.scale() * prior.slope()[d]);
        let mut precision = before.clone().try_inverse().unwrap();
        let mut right = DMatrix::<f64>::zeros(count, 1);
        for (i, rows) in samples.iter().enumerate() {
            for row in rows.chunks_exact(DIM) {
                precision[(i, i)] += 1.0 / prior.within()[d];
                right[(i, 0)] += (f64::from(row[d]) - joint.priors[i].mean[d]) / prior.within()[d];
            }
        }
        let after = precision.try_inverse().unwrap();
        let moved = &after * right;
        (0..count).map(|i| (joint.priors[i].mean[d] + moved[(i, 0)], after[(i, i)])).collect()
    }

    #[test]
    fn siblings_are_solved_together_as_by_dense_algebra() {
        let graph = graph_of("r>a r>b a>m m>x m>y m>z b>w b>c a>d");
        let (prior, statistics) = fitted(&graph, &["r", "b", "c", "d"]);
        let known = KnownClasses::new(&graph, &statistics);
        let classes = ["x", "y", "z", "w"].map(|id| graph.find(id).unwrap());
        let joint = prior.of_all(&known, &classes).unwrap();
        let mut values = noise(3);
        let rows: Vec<Vec<f32>> =
            [1, 3, 0, 2].iter().map(|shots| (0..shots * DIM).map(|_| values()).collect()).collect();
        let samples: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
        let posteriors = prior.posteriors(&joint, &samples).unwrap();
        for d in 0..DIM {
            for (got, (mean, variance)) in posteriors.iter().zip(dense(&prior, &joint, &samples, d)) {
                assert!((f64::from(got.prototype[d]) - mean).abs() < 1e-5, "{got:?} {mean}");
                assert!((f64::from(got.variance[d]) - variance).abs() < 1e-5, "{got:?} {variance}");
            }
        }
        for (class, joint) in classes.iter().zip(&joint.priors) {
            let alone = prior.of(&known, *class);
            assert!(alone.mean.iter().zip(&joint.mean).all(|(a, b)| (a - b).abs() < 1e-12));
        }
        // Nobody is related to a class behind a known one: it is as if alone. Siblings move each other.
        let alone = |at: usize| prior.posterior(&joint.priors[at], samples[at]).unwrap();
        let differs = |at: usize| {
            let pairs = alone(at).prototype.into_iter().zip(posteriors[at].prototype.clone());
            pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
        };
        assert!(differs(3) < 1e-6 && differs(0) > 1e-3 && differs(2) > 1e-3);
    }

    #[test]
    fn where_there_is_nothing_to_say_there_is_no_joint_prior() {
        let graph = graph_of("r>a r>b a>x a>y q>o");
        let (prior, statistics) = fitted(&graph, &["r", "b", "a"]);
        let known = KnownClasses::new(&graph, &statistics);
        let at = |id: &str| graph.find(id).unwrap();
        for classes in [vec![at("x"), at("x")], vec![at("x"), at("b")], vec![at("x"), at("o")], vec![]] {
            assert!(prior.of_all(&known, &classes).is_none(), "{classes:?}");
        }
        let joint = prior.of_all(&known, &[at("x"), at("y")]).unwrap();
        assert!(prior.posteriors(&joint, &[&[0.0; DIM]]).is_err());
        assert!(prior.posteriors(&joint, &[&[0.0; DIM], &[f32::NAN; DIM]]).is_err());
    }
}
