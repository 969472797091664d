//! Sums of `f32` without rounding: whatever the order and grouping of the terms, the sum is the same.

/// Limbs of 64 bits. Every `f32` is a whole number of units of 2^-149 below 2^277; the other 107 bits leave room for
/// more terms than anyone has.
const LIMBS: usize = 6;
/// Position of the lowest bit of the largest `f32`.
const LARGEST_SHIFT: usize = 253;

/// An exact sum of finite `f32` values: a signed integer that counts units of 2^-149.
///
/// ```
/// use gpn_train::ExactSum;
///
/// let mut sum = ExactSum::default();
/// for value in [1.0e30, 1.0, -1.0e30] {
///     sum.add(value);
/// }
/// assert_eq!(sum.parts(), [1.0]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactSum {
    /// Two's complement, the lowest limb first.
    limbs: [u64; LIMBS],
}

impl ExactSum {
    /// The sum of `parts`, such as [`parts`](Self::parts) gives.
    pub fn of(parts: impl IntoIterator<Item = f32>) -> Self {
        let mut sum = Self::default();
        parts.into_iter().for_each(|part| sum.add(part));
        sum
    }

    /// Adds a finite value.
    pub fn add(&mut self, value: f32) {
        debug_assert!(value.is_finite());
        let bits = value.to_bits();
        let (exponent, fraction) = ((bits >> 23 & 0xff) as usize, bits & 0x7f_ffff);
        // Subnormal values share the unit of the least exponent and lack the leading one.
        let (shift, mantissa) =
            if exponent == 0 { (0, fraction) } else { (exponent - 1, fraction | 1 << 23) };
        let wide = u128::from(mantissa) << (shift % 64);
        let mut term = [0; LIMBS];
        term[shift / 64] = wide as u64;
        term[shift / 64 + 1] = (wide >> 64) as u64;
        if value.is_sign_negative() { self.subtract_limbs(term) } else { self.add_limbs(term, false) }
    }

    /// The sum as `f32` values that add up to it exactly: the largest of at most its size, then the same of what is left,
    /// and so on. Equal sums have equal parts; zero has none.
    pub fn parts(&self) -> Vec<f32> {
        let negative = self.limbs[LIMBS - 1] >> 63 == 1;
        let mut rest = Self::default();
        if negative {
            rest.subtract_limbs(self.limbs);
        } else {
            rest = self.clone();
        }
        let mut parts = Vec::new();
        while let Some(part) = rest.largest_part() {
            rest.add(-part);
            parts.push(if negative { -part } else { part });
        }
        parts
    }

    /// The sum divided by `count`, rounded.
    pub fn mean(&self, count: usize) -> f32 {
        // The smallest first, so that little is lost; the result depends on the exact sum alone in any case.
        let sum: f64 = self.parts().into_iter().rev().map(f64::from).sum();
        (sum / count as f64) as f32
    }

    /// The largest `f32` that is not above a positive sum; `None` for zero.
    fn largest_part(&self) -> Option<f32> {
        let limb = self.limbs.iter().rposition(|&limb| limb != 0)?;
        let top = 64 * limb + 63 - self.limbs[limb].leading_zeros() as usize;
        let low = top.saturating_sub(23);
        if low > LARGEST_SHIFT {
            return Some(f32::MAX);
        }
        let next = self.limbs.get(low / 64 + 1).copied().unwrap_or(0);
        let wide = u128::from(next) << 64 | u128::from(self.limbs[low / 64]);
        let mantissa = (wide >> (low % 64)) as u32 & 0xff_ffff;
        let exponent = if mantissa >> 23 == 1 { low as u32 + 1 } else { 0 };
        Some(f32::from_bits(exponent << 23 | mantissa & 0x7f_ffff))
    }

    fn add_limbs(&mut self, term: [u64; LIMBS], mut carry: bool) {
        for (limb, term) in self.limbs.iter_mut().zip(term) {
            (*limb, carry) = limb.carrying_add(term, carry);
        }
    }

    fn subtract_limbs(&mut self, term: [u64; LIMBS]) {
        self.add_limbs(term.map(|limb| !limb), true);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn finite() -> impl Strategy<Value = f32> {
        any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |value| value.is_finite())
    }

    proptest! {
        #[test]
        fn order_and_grouping_do_not_matter(
            (values, shuffled) in prop::collection::vec(finite(), 0..40)
                .prop_flat_map(|values| (Just(values.clone()), Just(values).prop_shuffle())),
            cut in 0_usize..40,
        ) {
            let whole = ExactSum::of(values);
            // In two calls, with the sum saved as parts in between.
            let (before, after) = shuffled.split_at(cut.min(shuffled.len()));
            let mut resumed = ExactSum::of(ExactSum::of(before.iter().copied()).parts());
            for &value in after {
                resumed.add(value);
            }
            prop_assert_eq!(&resumed, &whole);
            prop_assert_eq!(resumed.parts(), whole.parts());
            prop_assert_eq!(resumed.mean(7).to_bits(), whole.mean(7).to_bits());
        }

        #[test]
        fn whole_numbers_add_up(values in prop::collection::vec(-16_777_216_i32..=16_777_216, 0..50)) {
            let sum = ExactSum::of(values.iter().map(|&value| value as f32));
            let expected: i64 = values.iter().map(|&value| i64::from(value)).sum();
            prop_assert_eq!(sum.parts().iter().map(|&part| part as i64).sum::<i64>(), expected);
        }

        #[test]
        fn what_is_added_can_be_taken_away(values in prop::collection::vec(finite(), 0..40)) {
            let sum = ExactSum::of(values.iter().copied().chain(values.iter().map(|value| -value)));
            prop_assert_eq!(sum, ExactSum::default());
        }
    }

    #[test]
    fn extremes_survive() {
        let least = f32::from_bits(1);
        let parts = ExactSum::of([f32::MAX, f32::MAX, least, -f32::MIN_POSITIVE]).parts();
        assert_eq!(
            ExactSum::of(parts.clone()),
            ExactSum::of([f32::MAX, f32::MAX, least, -f32::MIN_POSITIVE])
        );
        assert_eq!(ExactSum::of([least, least, least]).parts(), [3.0 * least]);
        assert_eq!(ExactSum::of([-1.5, 0.25]).parts(), [-1.25]);
        assert!((ExactSum::of([0.1, 0.2, 0.3]).mean(3) - 0.2).abs() < 1e-7);
    }
}
