//! The classes within some hops of others.

use crate::graph::{Node, Taxonomy};

/// Memory of a search, reused from one query to the next so that a query costs what it visits and not what the
/// graph holds. One per graph and thread.
#[derive(Debug, Clone)]
pub struct HopSearch {
    /// The query that reached a class last.
    reached_in: Vec<u32>,
    /// The position of a class among those reached, valid where `reached_in` is the present query.
    row: Vec<u32>,
    query: u32,
    pub(crate) reached: Vec<Node>,
}

impl HopSearch {
    /// Memory for queries in `graph`: eight bytes per class.
    pub fn new(graph: &Taxonomy) -> Self {
        Self { reached_in: vec![0; graph.len()], row: vec![0; graph.len()], query: 0, reached: Vec::new() }
    }

    /// The classes at 1 to `hops` hops from `n`, nearest first; an edge counts the same up and down.
    ///
    /// O(classes reached and their edges).
    ///
    /// ```
    /// use gpn_taxonomy::{HopSearch, TaxonomyBuilder};
    ///
    /// let mut graph = TaxonomyBuilder::new();
    /// let [animal, cat, dog, mastiff] = ["animal", "cat", "dog", "mastiff"].map(|id| graph.add_class(id));
    /// for (parent, child) in [(animal, cat), (animal, dog), (dog, mastiff)] {
    ///     graph.add_edge(parent, child, None);
    /// }
    /// let graph = graph.build()?.taxonomy;
    /// let mut search = HopSearch::new(&graph);
    /// assert_eq!(search.neighbours(&graph, cat, 1), [animal]);
    /// assert_eq!(search.neighbours(&graph, cat, 2), [animal, dog]);
    /// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
    /// ```
    pub fn neighbours(&mut self, graph: &Taxonomy, n: Node, hops: usize) -> &[Node] {
        self.begin(graph);
        self.reach(n);
        let mut from = 0;
        for _ in 0..hops {
            let to = self.reached.len();
            if from == to {
                break;
            }
            for at in from..to {
                for neighbour in graph.adjacent(self.reached[at]) {
                    self.reach(neighbour);
                }
            }
            from = to;
        }
        &self.reached[1..]
    }

    /// Forgets the last query.
    pub(crate) fn begin(&mut self, graph: &Taxonomy) {
        if self.reached_in.len() != graph.len() || self.query == u32::MAX {
            *self = Self::new(graph);
        }
        self.query += 1;
        self.reached.clear();
    }

    pub(crate) fn reach(&mut self, n: Node) {
        if self.reached_in[n as usize] != self.query {
            self.reached_in[n as usize] = self.query;
            self.row[n as usize] = self.reached.len() as u32;
            self.reached.push(n);
        }
    }

    /// The position of a class among those reached.
    pub(crate) fn row_of(&self, n: Node) -> Option<u32> {
        (self.reached_in[n as usize] == self.query).then(|| self.row[n as usize])
    }

    /// Sorts the classes reached from position `from` on.
    pub(crate) fn sort_from(&mut self, from: usize) {
        self.reached[from..].sort_unstable();
        for (row, &n) in self.reached.iter().enumerate().skip(from) {
            self.row[n as usize] = row as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::hop_distances;
    use crate::sample::{chain, graph_of};

    #[test]
    fn neighbours_are_the_classes_at_those_distances() {
        let graph = graph_of("r>a r>b a>x b>x x>y q>y lone r>s s>t t>u");
        let mut search = HopSearch::new(&graph);
        for hops in 0..5 {
            for n in graph.nodes() {
                let distances = hop_distances(&graph, &[n]);
                let near = |&m: &Node| (1..=hops).contains(&(distances[m as usize] as usize));
                let expected: Vec<Node> = graph.nodes().filter(near).collect();
                let mut found = search.neighbours(&graph, n, hops).to_vec();
                assert!(found.is_sorted_by_key(|&m| distances[m as usize]));
                found.sort_unstable();
                assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn a_search_adapts_to_another_graph() {
        let mut search = HopSearch::new(&chain(2));
        assert_eq!(search.neighbours(&chain(10), 5, 1), [4, 6]);
        assert_eq!(search.neighbours(&chain(10), 5, usize::MAX).len(), 9);
    }
}
