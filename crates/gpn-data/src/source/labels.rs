//! From the label of each sample to leaf classes.

use super::Leaf;
use crate::format::natural;

/// The distinct labels as leaves, in natural order, and the leaf of each sample. O(n log n).
pub(super) fn index_labels<'l>(labels: impl Iterator<Item = &'l str> + Clone) -> (Vec<Leaf>, Vec<u32>) {
    let mut ids: Vec<&str> = labels.clone().collect();
    ids.sort_unstable();
    ids.dedup();
    ids.sort_unstable_by(|a, b| natural::compare(a, b));
    // invariant: `ids` holds every label
    let leaf_of = |label: &str| ids.binary_search_by(|id| natural::compare(id, label)).unwrap_or(0) as u32;
    let leaf_of = labels.map(leaf_of).collect();
    (ids.iter().map(|id| Leaf { id: (*id).to_owned(), name: None }).collect(), leaf_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_stand_in_natural_order() {
        let (leaves, of) = index_labels(["10", "9", "10", "b"].into_iter());
        let ids: Vec<&str> = leaves.iter().map(|leaf| leaf.id.as_str()).collect();
        assert_eq!(ids, ["9", "10", "b"]);
        assert_eq!(of, [1, 0, 1, 2]);
    }
}
