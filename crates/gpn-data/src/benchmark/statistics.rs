//! The numbers that describe a benchmark: those of the paper's Table 1, and more.

use std::collections::BTreeMap;

use gpn_taxonomy::Taxonomy;
use serde::Serialize;

use super::assign::Part;
use super::open::Benchmark;
use super::split::Split;

/// Everything `gpn data info` tells.
#[derive(Clone, Debug, Serialize)]
pub struct Statistics {
    /// The data sets in the order train, close, far.
    pub data_sets: Vec<DataSetStatistics>,
    /// Classes in no data set.
    pub unused_classes: usize,
    /// Edges of the whole graph.
    pub edges: usize,
    /// Classes with more than one parent.
    pub several_parents: usize,
    /// Groups of two or more classes with the same leaves.
    pub chains: usize,
    /// Classes in those groups: no classifier can tell a class of a group from the others.
    pub classes_in_chains: usize,
}

/// The numbers of one side of the benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct DataSetStatistics {
    /// Which side.
    pub split: Split,
    /// Classes, the root included (it stands in every graph).
    pub classes: usize,
    /// Classes with samples of their own.
    pub leaf_classes: usize,
    /// Samples of those classes, the root's included; validation samples count as training data.
    pub samples: usize,
    /// Samples kept for validation.
    pub val_samples: usize,
    /// Fewest samples of a class, the root excepted.
    pub fewest_samples: usize,
    /// Number of classes at each distance from the nearest training class, the root excepted.
    pub distances: BTreeMap<u32, usize>,
    /// Edges of the side's graph, other classes contracted away.
    pub edges: usize,
    /// Levels of that graph: classes on its longest path from the root, each class at its fewest hops.
    pub levels: u32,
}

impl Statistics {
    /// Counts everything in `benchmark`.
    pub fn of(benchmark: &Benchmark) -> Self {
        let taxonomy = benchmark.taxonomy();
        let chains = gpn_taxonomy::same_leaves(taxonomy);
        let data_sets = [Split::Train, Split::Close, Split::Far]
            .into_iter()
            .map(|split| DataSetStatistics::of(benchmark, split))
            .collect();
        Self {
            data_sets,
            unused_classes: benchmark.classes().iter().filter(|class| class.split == Split::Unused).count(),
            edges: taxonomy.edge_count(),
            several_parents: taxonomy.nodes().filter(|&node| taxonomy.parents(node).len() > 1).count(),
            chains: chains.len(),
            classes_in_chains: chains.iter().map(Vec::len).sum(),
        }
    }
}

impl DataSetStatistics {
    fn of(benchmark: &Benchmark, split: Split) -> Self {
        let root = benchmark.root();
        let members: Vec<usize> = (0..benchmark.classes().len())
            .filter(|&class| benchmark.classes()[class].split == split && class != root)
            .collect();
        let samples = |class: usize, part| benchmark.sample_count(class, part);
        let own = |class: usize| match split {
            Split::Train => samples(class, Part::Train) + samples(class, Part::Val),
            _ => samples(class, Part::Test),
        };
        let mut distances = BTreeMap::new();
        for &class in &members {
            *distances.entry(benchmark.classes()[class].distance).or_insert(0) += 1;
        }
        let graph = benchmark.side_graph(split);
        let (classes, root_samples) =
            if members.is_empty() { (0, 0) } else { (members.len() + 1, own(root)) };
        Self {
            split,
            classes,
            leaf_classes: members.iter().filter(|&&class| benchmark.classes()[class].leaf).count(),
            samples: members.iter().map(|&class| own(class)).sum::<usize>() + root_samples,
            val_samples: members
                .iter()
                .chain([&root])
                .map(|&class| match split {
                    Split::Train => samples(class, Part::Val),
                    _ => 0,
                })
                .sum(),
            fewest_samples: members.iter().map(|&class| own(class)).min().unwrap_or(0),
            distances,
            edges: graph.edge_count(),
            levels: if members.is_empty() { 0 } else { levels(&graph) },
        }
    }
}

fn levels(graph: &Taxonomy) -> u32 {
    gpn_taxonomy::levels(graph).shortest.into_iter().max().map_or(0, |hops| hops + 1)
}
