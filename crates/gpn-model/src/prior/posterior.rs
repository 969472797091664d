//! The prior of one class, and what its samples make of it.

use gpn_taxonomy::Node;

use super::check::{finite, rows_of};
use super::field::{Around, Direction, KnownClasses};
use super::fit::GraphPrior;
use crate::error::{ModelError, Result};

/// Where the mean of a class is expected before its samples are seen.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassPrior {
    /// Expected mean, `[dim]`.
    pub mean: Vec<f64>,
    /// Variance of the mean around it, `[dim]`, before the scale of the prior.
    pub variance: Vec<f64>,
}

/// The mean of a class after its samples are seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Posterior {
    /// Expected mean, which is the class's prototype, `[dim]`.
    pub prototype: Vec<f32>,
    /// Variance of the mean around it, `[dim]`.
    pub variance: Vec<f32>,
    /// How much of the prototype is the mean of the samples, from 0 to 1, `[dim]`. The rest is the prior.
    pub own: Vec<f32>,
    /// Number of samples.
    pub shots: usize,
}

impl Posterior {
    /// The share of the samples in the prototype, averaged over dimensions.
    pub fn own_share(&self) -> f32 {
        let sum: f64 = self.own.iter().map(|&own| f64::from(own)).sum();
        (sum / self.own.len() as f64) as f32
    }

    /// The variance of the mean, summed over dimensions: what the uncertainty of the prototype adds to the squared distance
    /// of any query on average.
    pub fn spread(&self) -> f32 {
        self.variance.iter().map(|&variance| f64::from(variance)).sum::<f64>() as f32
    }

    /// The gradient of each of the `shots` samples, `[dim]` (it is the same for all of them), for the gradient of the
    /// prototype, `[dim]`. The posterior is linear in the samples; without samples there is no gradient.
    pub fn backward(&self, grad_prototype: &[f32]) -> Result<Vec<f32>> {
        if grad_prototype.len() != self.own.len() {
            let expected = self.own.len().to_string();
            return Err(ModelError::WrongLength {
                what: "gradient of a prototype",
                expected,
                got: grad_prototype.len(),
            });
        }
        let shots = self.shots.max(1) as f32;
        Ok(self.own.iter().zip(grad_prototype).map(|(own, grad)| own * grad / shots).collect())
    }
}

/// Where a part of a prototype comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The samples of the class.
    Samples,
    /// A known class around it in the graph.
    Relative(Node, Direction),
    /// A known class whose text is like its own.
    Text(Node),
    /// The grand mean of all classes.
    GrandMean,
}

/// A part of a prototype. The parts of a prototype add up to 1; a part may be negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Where it comes from.
    pub source: Source,
    /// How much it is.
    pub share: f32,
}

impl GraphPrior {
    /// The prior of a class by its place in the graph. Own samples of the class, if it is known, are left out.
    ///
    /// A class that no known class is connected with has the prior of [`of_unknown_place`](Self::of_unknown_place).
    /// O(dim) for each known class around it, and at most 64^3 for the solution.
    pub fn of(&self, known: &KnownClasses<'_>, class: Node) -> ClassPrior {
        let around = known.around(class);
        if around.is_related { self.around(known, &around) } else { self.of_unknown_place() }
    }

    pub(super) fn around(&self, known: &KnownClasses<'_>, around: &Around) -> ClassPrior {
        let deviation = known.deviation(around, &self.grand);
        let mean = self.grand.iter().zip(&deviation).map(|(grand, d)| grand + self.weight * d).collect();
        ClassPrior { mean, variance: self.slope.iter().map(|slope| slope * around.variance).collect() }
    }

    /// The prior of a class of which only samples are known: the grand mean of all classes.
    pub fn of_unknown_place(&self) -> ClassPrior {
        ClassPrior { mean: self.grand.clone(), variance: self.between.clone() }
    }

    /// What each known class and the grand mean contribute to [`of`](Self::of), largest first; adds up to 1.
    pub fn shares(&self, known: &KnownClasses<'_>, class: Node) -> Vec<Share> {
        let mut shares: Vec<Share> = known
            .weights(&known.around(class))
            .into_iter()
            .map(|(relative, direction, weight)| Share {
                source: Source::Relative(relative, direction),
                share: (self.weight * weight) as f32,
            })
            .collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        let rest = 1.0 - shares.iter().map(|share| f64::from(share.share)).sum::<f64>();
        shares.push(Share { source: Source::GrandMean, share: rest as f32 });
        shares
    }

    /// The posterior of a class with this prior, given the embeddings of its samples in the space of the metric, `[k, dim]`.
    /// Without samples it is the prior.
    ///
    /// `prototype = own * mean of samples + (1 - own) * prior`, `own = c t2 / (c t2 + s2 / k)` for `t2` the variance of the
    /// prior, `c` its scale and `s2` the variance within classes. O(k * dim).
    pub fn posterior(&self, prior: &ClassPrior, samples: &[f32]) -> Result<Posterior> {
        let shots = rows_of("samples of a class", samples, self.dim())?;
        finite("samples of a class", samples)?;
        let mut mean = vec![0.0; self.dim()];
        for row in samples.chunks_exact(self.dim()) {
            mean.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
        }
        for sum in &mut mean {
            *sum /= shots.max(1) as f64;
        }
        self.posterior_of_mean(prior, &mean, shots)
    }

    /// [`posterior`](Self::posterior) for the mean of `shots` samples, `[dim]`.
    pub fn posterior_of_mean(&self, prior: &ClassPrior, mean: &[f64], shots: usize) -> Result<Posterior> {
        let dim = self.dim();
        for (what, got) in [
            ("mean of samples", mean.len()),
            ("prior of a class", prior.mean.len().min(prior.variance.len())),
        ] {
            if got != dim {
                return Err(ModelError::WrongLength { what, expected: dim.to_string(), got });
            }
        }
        let mut posterior = Posterior {
            prototype: Vec::with_capacity(dim),
            variance: Vec::with_capacity(dim),
            own: Vec::with_capacity(dim),
            shots,
        };
        let expected = prior.mean.iter().zip(&prior.variance);
        for ((mean, within), (expected, variance)) in mean.iter().zip(&self.within).zip(expected) {
            let before = self.scale * variance;
            let own = if shots == 0 { 0.0 } else { before / (before + within / shots as f64) };
            posterior.prototype.push((own * mean + (1.0 - own) * expected) as f32);
            posterior.variance.push(((1.0 - own) * before) as f32);
            posterior.own.push(own as f32);
        }
        Ok(posterior)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prior::sample::{graph_of, noise};
    use crate::prior::{FitConfig, StatisticsBuilder};

    /// A chain of groups: classes are near the parent they hang below.
    fn fitted(threads: usize) -> (GraphPrior, Vec<ClassPrior>) {
        let edges: Vec<String> = (0..6)
            .flat_map(|group| {
                let below = (0..8).map(move |leaf| format!("g{group}>l{group}_{leaf}"));
                std::iter::once(format!("root>g{group}")).chain(below)
            })
            .collect();
        let graph = graph_of(&edges.join(" "));
        let mut values = noise(9);
        let mut builder = StatisticsBuilder::new(4, graph.len()).unwrap();
        let centres: Vec<Vec<f32>> = (0..6).map(|_| (0..4).map(|_| 3.0 * values()).collect()).collect();
        for class in graph.nodes().filter(|class| class % 9 != 0) {
            let group = graph.id(class)[1..].split('_').next().and_then(|group| group.parse::<usize>().ok());
            let centre: Vec<f32> =
                (0..4).map(|d| group.map_or(0.0, |group| centres[group][d]) + 0.5 * values()).collect();
            let rows: Vec<f32> = (0..20).flat_map(|_| centre.clone()).map(|c| c + values()).collect();
            builder.add(class, &rows).unwrap();
        }
        let statistics = builder.finish().unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let prior = pool.install(|| GraphPrior::fit(&graph, &statistics, FitConfig::default()).unwrap());
        let known = KnownClasses::new(&graph, &statistics);
        let priors = graph.nodes().map(|class| prior.of(&known, class)).collect();
        for class in graph.nodes() {
            let shares = prior.shares(&known, class);
            let sum: f32 = shares.iter().map(|share| share.share).sum();
            assert!((sum - 1.0).abs() < 1e-5);
        }
        (prior, priors)
    }

    #[test]
    fn the_fit_finds_how_classes_differ_with_any_number_of_threads() {
        let (prior, priors) = fitted(1);
        assert_eq!(fitted(3), (prior.clone(), priors));
        assert!(prior.weight() > 0.7 && prior.weight() < 1.3, "{}", prior.weight());
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        assert!((mean(prior.within()) - 1.0).abs() < 0.1);
        assert!(mean(prior.slope()) < 0.5 * mean(prior.between()), "{prior:?}");
    }

    #[test]
    fn the_prior_fades_with_samples_and_stands_alone_without() {
        let (prior, priors) = fitted(2);
        let alone = prior.posterior(&priors[3], &[]).unwrap();
        assert_eq!(alone.prototype, priors[3].mean.iter().map(|&x| x as f32).collect::<Vec<_>>());
        assert_eq!((alone.own_share(), alone.shots), (0.0, 0));
        let own = |shots: usize| prior.posterior(&priors[3], &vec![1.0; 4 * shots]).unwrap();
        let mut last = 0.0;
        let mut spread = alone.spread();
        for shots in [1, 2, 5, 10, 100, 10_000] {
            let posterior = own(shots);
            assert!(posterior.own_share() > last && posterior.own_share() <= 1.0);
            assert!(posterior.spread() < spread && posterior.spread() > 0.0);
            (last, spread) = (posterior.own_share(), posterior.spread());
        }
        assert!(last > 0.99);
        let trusting = prior.clone().with_scale(0.1).unwrap().posterior(&priors[3], &[1.0; 4]).unwrap();
        assert!(trusting.own_share() < own(1).own_share());
        assert!(prior.with_scale(0.0).is_err());
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let (prior, priors) = fitted(1);
        let mut values = noise(2);
        let samples: Vec<f32> = (0..12).map(|_| values()).collect();
        let grad: Vec<f32> = (0..4).map(|_| values()).collect();
        let loss = |samples: &[f32]| -> f32 {
            let prototype = prior.posterior(&priors[5], samples).unwrap().prototype;
            prototype.iter().zip(&grad).map(|(p, g)| p * g).sum()
        };
        let got = prior.posterior(&priors[5], &samples).unwrap().backward(&grad).unwrap();
        for i in 0..samples.len() {
            let moved = |by: f32| {
                let mut samples = samples.clone();
                samples[i] += by;
                loss(&samples)
            };
            let expected = (moved(0.5) - moved(-0.5)) / 1.0;
            assert!((got[i % 4] - expected).abs() < 1e-4);
        }
        assert!(prior.posterior(&priors[5], &samples).unwrap().backward(&grad[1..]).is_err());
    }

    #[test]
    fn a_class_without_relatives_is_expected_at_the_grand_mean() {
        let graph = graph_of("a>b c>d e>f");
        let mut builder = StatisticsBuilder::new(1, graph.len()).unwrap();
        for class in 0..4 {
            builder.add(class, &[class as f32, class as f32 + 0.5]).unwrap();
        }
        let statistics = builder.finish().unwrap();
        let prior = GraphPrior::fit(&graph, &statistics, FitConfig::default()).unwrap();
        let known = KnownClasses::new(&graph, &statistics);
        assert_eq!(prior.of(&known, 4), prior.of_unknown_place());
        assert_eq!(prior.shares(&known, 4), [Share { source: Source::GrandMean, share: 1.0 }]);
        assert!(prior.posterior(&prior.of_unknown_place(), &[f32::NAN]).is_err());
        assert!(prior.posterior(&ClassPrior { mean: vec![], variance: vec![] }, &[1.0]).is_err());
    }
}
