//! Whether probabilities mean what they say.

use super::AnsweredSample;
use super::ancestry::Ancestry;

const BINS: usize = 15;
/// The least probability a logarithm is taken of, as scikit-learn does for doubles.
const LEAST: f64 = f64::EPSILON;
/// Probabilities that sum to less were cut.
const COMPLETE: f64 = 1.0 - 1e-6;

/// Expected calibration error over bins of equal width, from 0 to 1.
pub(super) fn calibration_error(samples: &[AnsweredSample], right: &[bool]) -> f64 {
    // Sums of claimed probabilities and right answers.
    let mut bins = [(0.0, 0.0); BINS];
    for (sample, &right) in samples.iter().zip(right) {
        let claimed = sample.ranked[0].1.min(1.0);
        let bin = &mut bins[((claimed * BINS as f64) as usize).min(BINS - 1)];
        bin.0 += claimed;
        bin.1 += f64::from(u8::from(right));
    }
    let gap: f64 = bins.iter().map(|(claimed, right): &(f64, f64)| (claimed - right).abs()).sum();
    gap / samples.len() as f64
}

/// Mean of minus the logarithm of the truth's probability, if all these are known.
pub(super) fn log_loss(samples: &[AnsweredSample], ancestry: &Ancestry) -> Option<f64> {
    let mut sum = 0.0;
    for sample in samples {
        sum -= libm::log(truth_probability(sample, ancestry)?.clamp(LEAST, 1.0));
    }
    Some(sum / samples.len() as f64)
}

/// As given, as listed, or the sum of what is listed below the truth where the list is complete.
fn truth_probability(sample: &AnsweredSample, ancestry: &Ancestry) -> Option<f64> {
    let listed = || sample.ranked.iter().find(|(answer, _)| *answer == sample.truth).map(|&(_, p)| p);
    let below = || {
        let total: f64 = sample.ranked.iter().map(|&(_, p)| p).sum();
        let at_or_below = sample.ranked.iter().filter(|(n, _)| ancestry.is_at_or_below(*n, sample.truth));
        (total >= COMPLETE).then(|| at_or_below.map(|&(_, p)| p).sum())
    };
    sample.truth_probability.or_else(listed).or_else(below)
}

#[cfg(test)]
mod tests {
    use crate::measure::measure;
    use crate::measure::sample::{answers, graph_of};

    #[test]
    fn sure_and_right_half_of_the_time_is_half_off() {
        let graph = graph_of("r>a r>b");
        let mut answered = answers(&graph, "a:a a:b");
        for sample in &mut answered.samples {
            sample.ranked[0].1 = 1.0;
        }
        let result = measure(&answered).unwrap();
        assert!((result.calibration_error - 0.5).abs() < 1e-12);
        // One truth has probability 0, which is taken as the least double above.
        assert!((result.log_loss.unwrap() + f64::EPSILON.ln() / 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_cut_list_leaves_the_loss_open_unless_the_probability_is_given() {
        let graph = graph_of("r>a r>b r>c");
        let mut answered = answers(&graph, "a:a,b,c b:a,c");
        assert_eq!(measure(&answered).unwrap().log_loss, None);
        answered.samples[1].truth_probability = Some(0.25);
        let loss = measure(&answered).unwrap().log_loss.unwrap();
        assert!((loss - (0.5f64.ln() + 0.25f64.ln()) / -2.0).abs() < 1e-12);
    }

    #[test]
    fn a_class_above_has_the_probability_of_all_below_it() {
        let graph = graph_of("r>a r>b a>x a>y");
        let mut answered = answers(&graph, "a:x,b,y");
        answered.samples[0].ranked[2].1 = 0.25;
        let loss = measure(&answered).unwrap().log_loss.unwrap();
        assert!((loss + 0.75f64.ln()).abs() < 1e-12);
    }
}
