//! A class that a trained model has been taught: the exact sum of its samples' embeddings and its place in the graph.

use serde::{Deserialize, Serialize};

use super::exact_sum::ExactSum;

/// Where a taught class stands among the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Where the class graph of the model has a class of this id: with its parents and its children.
    InGraph,
    /// Below these classes, by id, sorted.
    Below(Vec<String>),
    /// Unknown: it is linked to the training classes nearest to it (`pathways.nearest` of them).
    Nearest,
}

/// A taught class. The same samples give the same class, in any order and over any number of calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaughtClass {
    /// Its id: that of the class graph, or the name it was given.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Where it stands.
    pub place: Placement,
    /// A digest of each sample's embedding, sorted: it recognises a sample that is given twice.
    samples: Vec<String>,
    /// The sum of each feature; a tensor of the model file.
    #[serde(skip)]
    pub(super) sums: Vec<ExactSum>,
}

impl TaughtClass {
    /// A class without samples yet, for embeddings of length `dim`.
    pub fn new(id: String, name: String, place: Placement, dim: usize) -> Self {
        Self { id, name, place, samples: Vec::new(), sums: vec![ExactSum::default(); dim] }
    }

    /// Adds a sample's embedding of finite numbers; `false` where the class has this very sample already.
    pub fn add(&mut self, embedding: &[f32]) -> bool {
        let digest = digest(embedding);
        let Err(place) = self.samples.binary_search(&digest) else { return false };
        self.samples.insert(place, digest);
        self.sums.iter_mut().zip(embedding).for_each(|(sum, &value)| sum.add(value));
        true
    }

    /// Number of samples.
    pub fn samples(&self) -> usize {
        self.samples.len()
    }

    /// Whether the digests of its samples are in order and no two are the same.
    pub(super) fn has_distinct_samples(&self) -> bool {
        self.samples.is_sorted_by(|a, b| a < b)
    }

    /// The mean embedding of its samples.
    pub fn prototype(&self) -> Vec<f32> {
        self.sums.iter().map(|sum| sum.mean(self.samples.len())).collect()
    }
}

fn digest(embedding: &[f32]) -> String {
    let mut hasher = blake3::Hasher::new();
    for value in embedding {
        hasher.update(&value.to_le_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_counts_once() {
        let class = |samples: &[[f32; 2]]| {
            let mut class = TaughtClass::new("a".into(), "a".into(), Placement::Nearest, 2);
            let added = samples.iter().filter(|sample| class.add(&sample[..])).count();
            (class, added)
        };
        let (first, added) = class(&[[0.1, 3.0], [0.7, -1.0], [0.1, 3.0]]);
        assert_eq!((added, first.samples()), (2, 2));
        assert_eq!(first.prototype(), [0.4, 1.0]);
        assert_eq!(class(&[[0.7, -1.0], [0.1, 3.0]]).0, first);
    }
}
