//! Two priors of one class made into one.

use super::posterior::{ClassPrior, Share, Source};
use crate::error::{ModelError, Result};

impl ClassPrior {
    /// Joins two priors, such as that of the place in the graph and that of the text: means are weighted by precision.
    ///
    /// Their errors go together (a class that is unlike its relatives is unlike classes of similar names, too), so that two
    /// priors that agree must not count as two independent witnesses: the precision is the mean of both, not their sum.
    pub fn join(&self, other: &Self) -> Result<Self> {
        let dim = self.mean.len();
        for (what, got) in
            [("mean of a prior", other.mean.len()), ("variance of a prior", other.variance.len())]
        {
            if got != dim || self.variance.len() != dim {
                return Err(ModelError::WrongLength { what, expected: dim.to_string(), got });
            }
        }
        let weight = |d: usize| self.precision_share(other, d);
        let mean = |d: usize| weight(d) * self.mean[d] + (1.0 - weight(d)) * other.mean[d];
        let variance = |d: usize| 2.0 / (1.0 / self.variance[d] + 1.0 / other.variance[d]);
        Ok(Self { mean: (0..dim).map(mean).collect(), variance: (0..dim).map(variance).collect() })
    }

    /// The share of this prior in [`join`](Self::join), averaged over dimensions; the other one has the rest.
    pub fn share_in_join(&self, other: &Self) -> f32 {
        let dim = self.variance.len().min(other.variance.len());
        let sum: f64 = (0..dim).map(|d| self.precision_share(other, d)).sum();
        (sum / dim.max(1) as f64) as f32
    }

    fn precision_share(&self, other: &Self, d: usize) -> f64 {
        other.variance[d] / (self.variance[d] + other.variance[d])
    }
}

/// The shares of two parts of a prototype in one list, `first` of the first and the rest of the second, largest first. What
/// occurs in both is added up, the grand mean comes last.
pub fn join_shares(first: f32, a: &[Share], b: &[Share]) -> Vec<Share> {
    let scaled = |shares: &[Share], by: f32| -> Vec<Share> {
        shares.iter().map(|share| Share { share: by * share.share, ..*share }).collect()
    };
    let mut joined = scaled(a, first);
    for share in scaled(b, 1.0 - first) {
        match joined.iter_mut().find(|known| known.source == share.source) {
            Some(known) => known.share += share.share,
            None => joined.push(share),
        }
    }
    joined.sort_by(|a, b| {
        let is_last = |share: &Share| share.source == Source::GrandMean;
        is_last(a).cmp(&is_last(b)).then(b.share.total_cmp(&a.share))
    });
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_certain_prior_counts_more() {
        let a = ClassPrior { mean: vec![0.0, 4.0], variance: vec![1.0, 2.0] };
        let b = ClassPrior { mean: vec![4.0, 0.0], variance: vec![3.0, 2.0] };
        let joined = a.join(&b).unwrap();
        assert_eq!((joined.mean, joined.variance), (vec![1.0, 2.0], vec![1.5, 2.0]));
        assert!((a.share_in_join(&b) - 0.625).abs() < 1e-6);
        assert_eq!(a.join(&a).unwrap(), a, "the same prior twice is no more certain");
        assert!(a.join(&ClassPrior { mean: vec![1.0], variance: vec![1.0] }).is_err());
    }

    #[test]
    fn shares_still_add_up() {
        let share = |source, share| Share { source, share };
        let a = [share(Source::Text(3), 0.5), share(Source::GrandMean, 0.5)];
        let b = [share(Source::Text(4), 0.9), share(Source::Text(3), 0.1)];
        let joined = join_shares(0.25, &a, &b);
        let sources: Vec<Source> = joined.iter().map(|share| share.source).collect();
        assert_eq!(sources, [Source::Text(4), Source::Text(3), Source::GrandMean]);
        assert!((joined.iter().map(|share| share.share).sum::<f32>() - 1.0).abs() < 1e-6);
    }
}
