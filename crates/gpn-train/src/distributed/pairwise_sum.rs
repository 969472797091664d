//! Sums of vectors in an order that depends on their places alone.
//!
//! Sums of floating-point numbers depend on their order. Here it is a binary tree over the places: two neighbours first, then
//! two pairs, and so on. Whoever has the vectors of some places can add up each whole branch that they fill, and hand over
//! one vector for it.

/// A sum in the making: vectors of places from left to right, whole branches added up.
#[derive(Default)]
pub(crate) struct PairwiseSum {
    branches: Vec<Branch>,
}

/// The sum of the places of one branch of the tree.
pub(crate) struct Branch {
    /// Its first place.
    pub(crate) first: usize,
    /// Its places, a power of two.
    pub(crate) places: usize,
    /// The sum; `None` where no place of it has a vector.
    pub(crate) values: Option<Vec<f32>>,
}

impl PairwiseSum {
    /// Adds the branch next to the right.
    pub(crate) fn push(&mut self, branch: Branch) {
        self.branches.push(branch);
        while let [.., left, right] = &self.branches[..]
            && left.places == right.places
            && left.first.is_multiple_of(2 * left.places)
            && left.first + left.places == right.first
        {
            self.join_last();
        }
    }

    /// The whole branches so far, from left to right.
    pub(crate) fn branches(self) -> Vec<Branch> {
        self.branches
    }

    /// The sum of all; `None` where there was no vector.
    pub(crate) fn total(mut self) -> Option<Vec<f32>> {
        while self.branches.len() > 1 {
            self.join_last();
        }
        self.branches.pop()?.values
    }

    /// Joins the last two branches.
    fn join_last(&mut self) {
        let Some(right) = self.branches.pop() else { return };
        let Some(left) = self.branches.last_mut() else { return };
        left.places += right.places;
        match (&mut left.values, right.values) {
            (Some(sum), Some(values)) => {
                sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
            (sum @ None, values) => *sum = values,
            (Some(_), None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors whose sum depends on the order; some places have none.
    fn leaf(place: usize) -> Branch {
        // Small numbers are lost when each is added to a large one, and not when they are added up first.
        let value = if place == 0 { 1e8 } else { 1.1 + place as f32 / 3.0 };
        Branch { first: place, places: 1, values: (place % 5 != 3).then(|| vec![value, -value * 0.37]) }
    }

    #[test]
    fn the_sum_does_not_depend_on_who_adds_up_which_places() {
        for places in 1..24 {
            let mut alone = PairwiseSum::default();
            (0..places).for_each(|place| alone.push(leaf(place)));
            let alone = alone.total();
            for first_cut in 0..=places {
                for second_cut in first_cut..=places {
                    let mut sum = PairwiseSum::default();
                    for range in [0..first_cut, first_cut..second_cut, second_cut..places] {
                        let mut own = PairwiseSum::default();
                        range.for_each(|place| own.push(leaf(place)));
                        own.branches().into_iter().for_each(|branch| sum.push(branch));
                    }
                    assert_eq!(sum.total(), alone, "{places} places cut at {first_cut} and {second_cut}");
                }
            }
        }
    }

    #[test]
    fn the_order_matters_for_these_vectors() {
        let mut in_turn = [0.0_f32; 2];
        let mut pairwise = PairwiseSum::default();
        for place in 0..16 {
            for (sum, value) in in_turn.iter_mut().zip(leaf(place).values.unwrap_or_default()) {
                *sum += value;
            }
            pairwise.push(leaf(place));
        }
        assert_ne!(pairwise.total().unwrap(), in_turn);
    }
}
