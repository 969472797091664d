//! Distances in hops, where an edge counts the same up and down.

use crate::graph::{Node, Taxonomy};

/// The distance to a class that cannot be reached.
pub const UNREACHED: u32 = u32::MAX;

/// Hops from each class to the nearest of `sources`, [`UNREACHED`] where there is no path.
///
/// O(classes + edges), whatever the number of sources.
///
/// ```
/// use gpn_taxonomy::{TaxonomyBuilder, UNREACHED, hop_distances};
///
/// let mut graph = TaxonomyBuilder::new();
/// let [animal, cat, dog, car] = ["animal", "cat", "dog", "car"].map(|id| graph.add_class(id));
/// graph.add_edge(animal, cat, None);
/// graph.add_edge(animal, dog, None);
/// let graph = graph.build()?.taxonomy;
/// assert_eq!(hop_distances(&graph, &[cat]), [1, 0, 2, UNREACHED]);
/// assert_eq!(hop_distances(&graph, &[cat, dog, car]), [1, 0, 0, 0]);
/// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
/// ```
pub fn hop_distances(graph: &Taxonomy, sources: &[Node]) -> Vec<u32> {
    let mut distances = vec![UNREACHED; graph.len()];
    let mut queue = Vec::with_capacity(sources.len());
    for &source in sources {
        if std::mem::replace(&mut distances[source as usize], 0) != 0 {
            queue.push(source);
        }
    }
    let mut next = 0;
    while let Some(&n) = queue.get(next) {
        next += 1;
        let further = distances[n as usize] + 1;
        for neighbour in graph.adjacent(n) {
            let distance = &mut distances[neighbour as usize];
            if *distance == UNREACHED {
                *distance = further;
                queue.push(neighbour);
            }
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{chain, graph_of};

    #[test]
    fn several_sources_give_the_nearest() {
        let graph = graph_of("r>a r>b a>x b>y lone");
        let at = |id: &str| graph.find(id).unwrap();
        let distances = hop_distances(&graph, &[at("x"), at("y"), at("x")]);
        assert_eq!(distances, [2, 1, 1, 0, 0, UNREACHED]);
        assert_eq!(hop_distances(&graph, &[]), [UNREACHED; 6]);
    }

    #[test]
    fn a_deep_chain_is_walked() {
        assert_eq!(hop_distances(&chain(200_000), &[0])[199_999], 199_999);
    }
}
