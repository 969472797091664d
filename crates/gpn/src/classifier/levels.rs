//! From leaves to every level: the probability of a class is that of all answers at or below it.

use gpn_taxonomy::{Node, Taxonomy};

/// Which classes are above which answers.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    /// For each answer, itself and every class above it but the root.
    above: Vec<Vec<Node>>,
    /// Number of answers at or below each class of the graph.
    below: Vec<u32>,
    /// The way from below the root to each answer; where there are several, the first by class.
    paths: Vec<Vec<Node>>,
}

/// A class and its probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Deep {
    /// The class; `None` for the root, which is always right.
    pub(crate) class: Option<Node>,
    pub(crate) probability: f64,
}

impl Levels {
    /// For answers that are classes of the graph. O(answers * classes above each).
    pub(crate) fn new(graph: &Taxonomy, root: Node, answers: &[Node]) -> Self {
        let mut below = vec![0; graph.len()];
        let mut seen = vec![u32::MAX; graph.len()];
        let mut above = Vec::with_capacity(answers.len());
        for (number, &answer) in (0_u32..).zip(answers) {
            let mut classes = vec![answer];
            seen[answer as usize] = number;
            let mut at = 0;
            while at < classes.len() {
                for &parent in graph.parents(classes[at]) {
                    if parent != root && seen[parent as usize] != number {
                        seen[parent as usize] = number;
                        classes.push(parent);
                    }
                }
                at += 1;
            }
            for &class in &classes {
                below[class as usize] += 1;
            }
            above.push(classes);
        }
        let paths = answers.iter().map(|&answer| path(graph, root, answer)).collect();
        Self { above, below, paths }
    }

    /// The way from below the root to an answer.
    pub(crate) fn path(&self, answer: usize) -> &[Node] {
        &self.paths[answer]
    }

    /// An answer and every class above it but the root.
    pub(crate) fn above(&self, answer: usize) -> &[Node] {
        &self.above[answer]
    }

    /// The probability of every class that has one, ascending by class, from those of the answers.
    pub(crate) fn probabilities(&self, answers: &[f32]) -> Vec<(Node, f64)> {
        let mut sums: Vec<f64> = vec![0.0; self.below.len()];
        for (above, &probability) in self.above.iter().zip(answers) {
            for &class in above {
                sums[class as usize] += f64::from(probability);
            }
        }
        let is_met = |&(class, _): &(Node, f64)| self.below[class as usize] > 0;
        (0..).zip(sums).filter(is_met).collect()
    }

    /// The deepest class whose probability reaches `confidence`: the one with the fewest answers below, of equals the likeliest. Where
    /// none does, the root.
    pub(crate) fn deepest(&self, answers: &[f32], confidence: f64) -> Deep {
        let mut best = Deep { class: None, probability: 1.0 };
        let mut fewest = u32::MAX;
        for (class, probability) in self.probabilities(answers) {
            let below = self.below[class as usize];
            let is_deeper = below < fewest || (below == fewest && probability > best.probability);
            if probability >= confidence && is_deeper {
                fewest = below;
                best = Deep { class: Some(class), probability: probability.min(1.0) };
            }
        }
        best
    }

    /// Whether a class is an answer or above it.
    pub(crate) fn is_above(&self, class: Node, answer: usize) -> bool {
        self.above[answer].contains(&class)
    }
}

fn path(graph: &Taxonomy, root: Node, answer: Node) -> Vec<Node> {
    let mut path = vec![answer];
    let mut at = answer;
    while let Some(&parent) = graph.parents(at).first() {
        if parent == root {
            break;
        }
        path.push(parent);
        at = parent;
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use gpn_taxonomy::TaxonomyBuilder;

    use super::*;

    fn graph() -> (Taxonomy, Vec<Node>) {
        let mut builder = TaxonomyBuilder::new();
        for (parent, child) in [
            ("root", "fruit"),
            ("fruit", "apple"),
            ("apple", "golden"),
            ("apple", "gala"),
            ("fruit", "pear"),
            ("root", "saw"),
        ] {
            let [parent, child] = [parent, child].map(|id| builder.add_class(id));
            builder.add_edge(parent, child, None);
        }
        let graph = builder.build().unwrap().taxonomy;
        let answers = ["golden", "gala", "pear", "saw"].map(|id| graph.find(id).unwrap()).to_vec();
        (graph, answers)
    }

    #[test]
    fn the_answer_is_as_deep_as_it_is_sure() {
        let (graph, answers) = graph();
        let levels = Levels::new(&graph, graph.find("root").unwrap(), &answers);
        let name = |p: [f32; 4], confidence| {
            levels.deepest(&p, confidence).class.map_or("root", |class| graph.id(class))
        };
        assert_eq!(name([0.9, 0.05, 0.03, 0.02], 0.8), "golden");
        assert_eq!(name([0.5, 0.4, 0.08, 0.02], 0.8), "apple");
        assert_eq!(name([0.4, 0.2, 0.38, 0.02], 0.8), "fruit");
        assert_eq!(name([0.3, 0.1, 0.1, 0.5], 0.8), "root");
        // A leaf right below the root is a leaf like others.
        assert_eq!(name([0.1, 0.02, 0.02, 0.86], 0.8), "saw");
        let path: Vec<&str> = levels.path(1).iter().map(|&n| graph.id(n)).collect();
        assert_eq!(path, ["fruit", "apple", "gala"]);
    }

    #[test]
    fn two_parents_count_an_answer_once() {
        let mut builder = TaxonomyBuilder::new();
        for (parent, child) in [("root", "a"), ("root", "b"), ("a", "x"), ("b", "x"), ("b", "y")] {
            let [parent, child] = [parent, child].map(|id| builder.add_class(id));
            builder.add_edge(parent, child, None);
        }
        let graph = builder.build().unwrap().taxonomy;
        let answers = ["x", "y"].map(|id| graph.find(id).unwrap());
        let levels = Levels::new(&graph, graph.find("root").unwrap(), &answers);
        let all = levels.probabilities(&[0.7, 0.3]);
        let of = |id: &str| all.iter().find(|(n, _)| graph.id(*n) == id).unwrap().1;
        assert!((of("a") - 0.7).abs() < 1e-6 && (of("b") - 1.0).abs() < 1e-6);
        assert!(all.iter().all(|(n, _)| graph.id(*n) != "root"));
    }
}
