//! Which rows the nodes and pairs of each graph have.

/// The graphs of a batch of queries as one block sees them. Node `support` of a graph is its query, the nodes before it
/// are the support samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Graphs {
    /// Support samples of each graph.
    pub(super) support: usize,
    /// Number of queries, and so of graphs.
    pub(super) queries: usize,
    /// Whether all graphs have their support samples in the same rows, as before the first block.
    pub(super) shared: bool,
    /// Whether only pairs with the query are scored.
    pub(super) query_pairs_only: bool,
}

impl Graphs {
    /// Nodes of a graph.
    pub(super) fn nodes(&self) -> usize {
        self.support + 1
    }

    /// Row of a node's features.
    pub(super) fn node(&self, graph: usize, node: usize) -> usize {
        match (self.shared, node < self.support) {
            (true, true) => node,
            (true, false) => self.support + graph,
            (false, _) => graph * self.nodes() + node,
        }
    }

    /// Number of scored pairs of support samples in a graph.
    fn support_pairs(&self) -> usize {
        if self.query_pairs_only { 0 } else { self.support * (self.support - 1) / 2 }
    }

    /// Row of the pair of two nodes, in any order.
    pub(super) fn pair(&self, graph: usize, a: usize, b: usize) -> usize {
        let (i, j) = (a.min(b), a.max(b));
        let of_support = self.support_pairs();
        let place = if j < self.support { j * (j - 1) / 2 + i } else { of_support + i };
        match (self.shared, j < self.support) {
            (true, true) => place,
            (true, false) => place + graph * self.support,
            (false, _) => place + graph * (of_support + self.support),
        }
    }

    /// The rows of both nodes of each pair, in the order of [`pair`](Self::pair).
    pub(super) fn pairs(&self) -> Vec<[usize; 2]> {
        let mut pairs = Vec::new();
        for graph in 0..self.queries {
            if !self.query_pairs_only && (graph == 0 || !self.shared) {
                for j in 1..self.support {
                    pairs.extend((0..j).map(|i| [self.node(graph, i), self.node(graph, j)]));
                }
            }
            let query = self.node(graph, self.support);
            pairs.extend((0..self.support).map(|i| [self.node(graph, i), query]));
        }
        pairs
    }

    /// How often pairs count in statistics over all graphs.
    pub(super) fn pair_repeats(&self) -> Repeats {
        if self.shared {
            Repeats { rows: self.support_pairs(), times: self.queries }
        } else {
            Repeats::default()
        }
    }
}

/// The first `rows` rows stand for `times` equal ones each, all others for themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repeats {
    pub(super) rows: usize,
    pub(super) times: usize,
}

impl Repeats {
    /// How many rows a row stands for.
    pub(super) fn of(self, row: usize) -> f32 {
        if row < self.rows { self.times as f32 } else { 1.0 }
    }

    /// How many rows all of `rows` stand for.
    pub(super) fn count(self, rows: usize) -> usize {
        let repeated = self.rows.min(rows);
        repeated * self.times + rows - repeated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_stand_where_they_are_looked_up() {
        for (shared, query_pairs_only) in [(false, false), (false, true), (true, false), (true, true)] {
            let graphs = Graphs { support: 4, queries: 3, shared, query_pairs_only };
            let pairs = graphs.pairs();
            let mut seen = vec![false; pairs.len()];
            for graph in 0..3 {
                for j in 1..graphs.nodes() {
                    for i in 0..j {
                        if query_pairs_only && j < graphs.support {
                            continue;
                        }
                        let row = graphs.pair(graph, i, j);
                        assert_eq!(row, graphs.pair(graph, j, i));
                        assert_eq!(pairs[row], [graphs.node(graph, i), graphs.node(graph, j)]);
                        seen[row] = true;
                    }
                }
            }
            assert!(seen.into_iter().all(|seen| seen));
            let per_graph = if query_pairs_only { 4 } else { 10 };
            assert_eq!(graphs.pair_repeats().count(pairs.len()), 3 * per_graph);
        }
    }
}
