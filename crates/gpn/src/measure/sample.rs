//! Small graphs and answers for tests.

use gpn_taxonomy::{Taxonomy, TaxonomyBuilder};

use super::{Answered, AnsweredSample};

/// A graph from `parent>child` words; a word without `>` is a class without edges.
pub(super) fn graph_of(words: &str) -> Taxonomy {
    let mut graph = TaxonomyBuilder::new();
    for word in words.split_whitespace() {
        match word.split_once('>') {
            Some((parent, child)) => {
                let (parent, child) = (graph.add_class(parent), graph.add_class(child));
                graph.add_edge(parent, child, None);
            }
            None => {
                graph.add_class(word);
            }
        }
    }
    graph.build().unwrap().taxonomy
}

/// Answers from `truth:answer,answer` words, each less likely than the one before by half. A `*` marks a new class.
pub(super) fn answers<'a>(graph: &'a Taxonomy, words: &str) -> Answered<'a> {
    let at = |id: &str| graph.find(id).unwrap();
    let samples = words.split_whitespace().enumerate().map(|(number, word)| {
        let (truth, ranked) = word.split_once(':').unwrap();
        let mut probability = 1.0;
        let ranked = ranked.split(',').map(|id| {
            probability /= 2.0;
            (at(id), probability)
        });
        AnsweredSample {
            name: format!("{number}.png"),
            truth: at(truth.trim_end_matches('*')),
            ranked: ranked.collect(),
            is_new: truth.ends_with('*'),
            ..AnsweredSample::default()
        }
    });
    Answered { graph, samples: samples.collect() }
}
