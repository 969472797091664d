//! From when on a sample is called unknown.

use gpn_model::prior::UnknownScore;

use super::choose::Measured;

/// Of the samples of known classes so many may be called unknown.
const FALSE_ALARMS: f64 = 0.05;

/// The score from which on a sample belongs to none of `classes`. Samples held out say it, each by a fit to all classes that has not seen
/// it: what comes later is as strange as these. None is unknown where nothing was measured.
pub(super) fn threshold(measured: Option<&Measured>, kind: UnknownScore, classes: usize, scale: f32) -> f32 {
    measured.map_or(f32::MAX, |measured| quantile(measured.best.strangeness(kind, classes, scale)) as f32)
}

/// The lowest threshold that at most 5% of further samples reach, on average. Among as many scores and one more, each place is equally
/// likely for the further one (split conformal prediction).
fn quantile(mut scores: Vec<f64>) -> f64 {
    scores.sort_by(f64::total_cmp);
    let place = ((1.0 - FALSE_ALARMS) * (scores.len() + 1) as f64).ceil() as usize;
    match scores.get(place.max(1) - 1) {
        // Above the score itself: one that is equal is not stranger.
        Some(&score) => (score as f32).next_up().into(),
        None => f64::from(f32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_twenty_further_samples_is_above() {
        let above = |scores: usize| {
            let threshold = quantile((0..scores).map(|score| score as f64).collect());
            (0..scores).filter(|&score| score as f64 >= threshold).count()
        };
        assert_eq!(above(10), 0, "ten samples cannot say what one of twenty is like");
        assert_eq!(above(19), 0);
        assert_eq!(above(39), 1);
        assert_eq!(above(999), 49);
        assert!(quantile(vec![2.0; 50]) > 2.0);
    }
}
