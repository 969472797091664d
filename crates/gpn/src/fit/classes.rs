//! The classes of a catalogue: those with samples first, then the others of the class graph.

use gpn_data::source::Leaf;
use gpn_taxonomy::{Node, Taxonomy, TaxonomyBuilder, check_fit};

use crate::error::Result;
use crate::watch::Watch;

/// A class graph is kept whole up to so many classes for each class with samples; of a larger one (WordNet) only classes above
/// samples are kept.
const WHOLE: usize = 20;

/// The class graph of a catalogue.
pub(super) struct Classes {
    /// Node `i` is class `i`; the first `answers` have samples.
    pub(super) graph: Taxonomy,
    /// Number of classes with samples.
    pub(super) answers: usize,
    /// The top class, which is never an answer.
    pub(super) root: Node,
}

impl Classes {
    /// The classes of `leaves`, answer `i` for leaf `i`. Without a class graph all of them hang below one root.
    pub(super) fn new(leaves: &[Leaf], taxonomy: Option<&Taxonomy>, watch: &Watch<'_>) -> Result<Self> {
        let mut builder = TaxonomyBuilder::new();
        let Some(taxonomy) = taxonomy else {
            for leaf in leaves {
                let node = builder.add_class(&leaf.id);
                builder.set_name(node, leaf.name.as_deref().unwrap_or(&leaf.id));
            }
            return Self::below_one_root(builder.build()?.taxonomy, leaves.len());
        };
        let ids: Vec<&str> = leaves.iter().map(|leaf| leaf.id.as_str()).collect();
        let fit = check_fit(taxonomy, &ids);
        for finding in fit.warnings() {
            watch.warn(&finding.to_string());
        }
        let nodes = fit.into_nodes()?;
        let above = above(taxonomy, &nodes);
        let is_whole = taxonomy.len() <= WHOLE * leaves.len();
        let mut number = vec![None; taxonomy.len()];
        let others = taxonomy.nodes().filter(|&n| is_whole || above[n as usize]);
        for n in nodes.iter().copied().chain(others) {
            if number[n as usize].is_none() {
                let node = builder.add_class(taxonomy.id(n));
                builder.set_name(node, taxonomy.name(n));
                if let Some(description) = taxonomy.description(n) {
                    builder.set_description(node, description);
                }
                number[n as usize] = Some(node);
            }
        }
        for (parent, child) in taxonomy.edges() {
            if let (Some(parent), Some(child)) = (number[parent as usize], number[child as usize]) {
                builder.add_edge(parent, child, None);
            }
        }
        Self::below_one_root(builder.build()?.taxonomy, leaves.len())
    }

    fn below_one_root(graph: Taxonomy, answers: usize) -> Result<Self> {
        let roots: Vec<Node> = graph.roots().collect();
        if let [root] = roots[..]
            && root as usize >= answers
        {
            return Ok(Self { graph, answers, root });
        }
        let mut builder = TaxonomyBuilder::new();
        for n in graph.nodes() {
            let node = builder.add_class(graph.id(n));
            builder.set_name(node, graph.name(n));
            if let Some(description) = graph.description(n) {
                builder.set_description(node, description);
            }
        }
        for (parent, child) in graph.edges() {
            builder.add_edge(parent, child, None);
        }
        let mut id = "root".to_owned();
        while graph.find(&id).is_some() {
            id.push('_');
        }
        let root = builder.add_class(&id);
        for n in roots {
            builder.add_edge(root, n, None);
        }
        Ok(Self { graph: builder.build()?.taxonomy, answers, root })
    }
}

/// Whether each class is one of `nodes` or above one.
fn above(taxonomy: &Taxonomy, nodes: &[Node]) -> Vec<bool> {
    let mut above = vec![false; taxonomy.len()];
    for &n in nodes {
        above[n as usize] = true;
    }
    for &n in taxonomy.topological_order().iter().rev() {
        if taxonomy.children(n).iter().any(|&child| above[child as usize]) {
            above[n as usize] = true;
        }
    }
    above
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(ids: &[&str]) -> Vec<Leaf> {
        ids.iter().map(|id| Leaf { id: (*id).to_owned(), name: None }).collect()
    }

    fn graph(edges: &[(&str, &str)]) -> Taxonomy {
        let mut builder = TaxonomyBuilder::new();
        for (parent, child) in edges {
            let [parent, child] = [parent, child].map(|id| builder.add_class(id));
            builder.add_edge(parent, child, None);
        }
        builder.build().unwrap().taxonomy
    }

    #[test]
    fn classes_with_samples_come_first_and_there_is_one_root() {
        let taxonomy = graph(&[("fruit", "apple"), ("fruit", "pear"), ("tools", "saw")]);
        let classes = Classes::new(&leaves(&["pear", "saw"]), Some(&taxonomy), &Watch::default()).unwrap();
        let ids: Vec<&str> = classes.graph.nodes().map(|n| classes.graph.id(n)).collect();
        assert_eq!((&ids[..2], classes.answers), (&["pear", "saw"][..], 2));
        assert_eq!(classes.graph.id(classes.root), "root");
        assert!(ids.contains(&"apple"), "a class without samples keeps its place");
    }

    #[test]
    fn a_sample_of_the_top_class_gets_a_root_above_it() {
        let taxonomy = graph(&[("fruit", "apple"), ("fruit", "root")]);
        let classes = Classes::new(&leaves(&["fruit", "apple"]), Some(&taxonomy), &Watch::default()).unwrap();
        assert_eq!(classes.graph.id(classes.root), "root_");
        let flat = Classes::new(&leaves(&["a", "b"]), None, &Watch::default()).unwrap();
        assert_eq!(flat.graph.children(flat.root).len(), 2);
    }
}
