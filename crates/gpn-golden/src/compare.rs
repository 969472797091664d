//! When numbers count as the same.

/// Largest values below this count as this: where a whole gradient vanishes, rounding is all there is.
const FLOOR: f32 = 1e-6;

/// Asserts that `got` is `expected` within `tolerance`, absolute.
///
/// # Panics
/// If it is not, if there is nothing to compare, or if a value is not a number.
pub fn assert_close(what: &str, got: &[f32], expected: &[f32], tolerance: f32) {
    let worst = difference(what, got, expected);
    assert!(worst <= tolerance, "{what}: differs by {worst:e}, allowed {tolerance:e}");
}

/// Asserts that `got` is `expected` within `tolerance`, relative to the largest expected value.
///
/// # Panics
/// As [`assert_close`].
pub fn assert_close_relative(what: &str, got: &[f32], expected: &[f32], tolerance: f32) {
    let worst = relative_difference(what, got, expected);
    assert!(worst <= tolerance, "{what}: differs by {worst:e} of the largest value, allowed {tolerance:e}");
}

/// The largest difference, relative to the largest expected value.
///
/// # Panics
/// If the lengths differ or there is nothing to compare.
pub fn relative_difference(what: &str, got: &[f32], expected: &[f32]) -> f32 {
    let scale = expected.iter().fold(FLOOR, |scale, value| scale.max(value.abs()));
    difference(what, got, expected) / scale
}

/// The largest difference; infinite where a value is not a number.
fn difference(what: &str, got: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(got.len(), expected.len(), "{what}: number of values");
    assert!(!expected.is_empty(), "{what}: there is nothing to compare");
    let differences = got.iter().zip(expected).map(|(got, expected)| (got - expected).abs());
    differences.map(|d| if d.is_nan() { f32::INFINITY } else { d }).fold(0.0, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_and_what_is_not_a_number_never_agree() {
        let failed = |got: &'static [f32], expected: &'static [f32]| {
            std::panic::catch_unwind(|| assert_close("it", got, expected, 1e9)).is_err()
        };
        assert!(failed(&[], &[]));
        assert!(failed(&[1.0], &[1.0, 2.0]));
        assert!(failed(&[f32::NAN], &[1.0]));
        assert!(failed(&[1.0], &[f32::NAN]));
        assert!(!failed(&[1.0], &[2.0]));
    }

    #[test]
    fn relative_means_to_the_largest_value() {
        assert!((relative_difference("it", &[100.0, 1.1], &[100.0, 1.0]) - 1e-3).abs() < 1e-6);
        assert_close_relative("it", &[1e-10], &[0.0], 1e-3);
    }
}
