//! Spanning trees: the fewest edges that keep everything connected, and the best such.

/// Which edges a spanning tree prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefer {
    /// Small weights: a minimum spanning tree, for distances.
    Light,
    /// Large weights: a maximum spanning tree, for similarities.
    Heavy,
}

/// The edges of a spanning forest by Kruskal's algorithm: a spanning tree of each component, seen without
/// directions. Returns positions in `edges`, ascending.
///
/// Of edges with the same weight the one given first is taken, so the result is fixed by the input alone; give
/// edges in the order of rows, as [`TaskGraph`](crate::TaskGraph) has them. An edge whose weight is not a number
/// is taken last. Where two classes are joined in both directions and the pair is in the tree, both are kept.
///
/// O(edges × log edges).
///
/// ```
/// use gpn_taxonomy::{Prefer, spanning_forest};
///
/// let edges = [(0, 1), (0, 2), (1, 2), (3, 4)];
/// assert_eq!(spanning_forest(5, &edges, &[1.0, 3.0, 2.0, 9.0], Prefer::Light), [0, 2, 3]);
/// assert_eq!(spanning_forest(5, &edges, &[1.0, 3.0, 2.0, 9.0], Prefer::Heavy), [1, 2, 3]);
/// ```
///
/// # Panics
/// If `weights` has another length than `edges`, or an edge joins a node that is not below `nodes`.
pub fn spanning_forest(nodes: usize, edges: &[(u32, u32)], weights: &[f32], prefer: Prefer) -> Vec<usize> {
    assert_eq!(edges.len(), weights.len(), "one weight per edge");
    let mut order: Vec<usize> = (0..edges.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (weights[a], weights[b]);
        let by_weight = match prefer {
            Prefer::Light => a.partial_cmp(&b),
            Prefer::Heavy => b.partial_cmp(&a),
        };
        by_weight.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
    });
    let mut joined = Components::new(nodes);
    let mut tree: Vec<usize> = Vec::with_capacity(nodes.saturating_sub(1).min(edges.len()));
    for at in order {
        let (a, b) = edges[at];
        if joined.join(a, b) {
            tree.push(at);
        }
    }
    if tree.len() < edges.len() {
        let mut pairs: Vec<(u32, u32)> = tree.iter().map(|&at| pair(edges[at])).collect();
        pairs.sort_unstable();
        let in_tree = |&at: &usize| pairs.binary_search(&pair(edges[at])).is_ok();
        return (0..edges.len()).filter(in_tree).collect();
    }
    tree.sort_unstable();
    tree
}

fn pair((a, b): (u32, u32)) -> (u32, u32) {
    (a.min(b), a.max(b))
}

/// Which nodes are joined so far: a forest of pointers to representatives, kept flat.
struct Components {
    above: Vec<u32>,
    size: Vec<u32>,
}

impl Components {
    fn new(nodes: usize) -> Self {
        Self { above: (0..nodes as u32).collect(), size: vec![1; nodes] }
    }

    fn find(&mut self, mut n: u32) -> u32 {
        while self.above[n as usize] != n {
            self.above[n as usize] = self.above[self.above[n as usize] as usize];
            n = self.above[n as usize];
        }
        n
    }

    /// Joins two nodes; false if they were joined before.
    fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return false;
        }
        let (large, small) = if self.size[a as usize] >= self.size[b as usize] { (a, b) } else { (b, a) };
        self.above[small as usize] = large;
        self.size[large as usize] += self.size[small as usize];
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_first_edge() {
        let edges = [(0, 1), (1, 2), (0, 2)];
        assert_eq!(spanning_forest(3, &edges, &[1.0; 3], Prefer::Light), [0, 1]);
        assert_eq!(spanning_forest(3, &edges, &[1.0; 3], Prefer::Heavy), [0, 1]);
        assert_eq!(spanning_forest(3, &edges, &[0.0, -0.0, 0.0], Prefer::Light), [0, 1]);
    }

    #[test]
    fn both_directions_of_a_tree_edge_are_kept() {
        let edges = [(0, 1), (1, 0), (1, 2), (2, 0)];
        assert_eq!(spanning_forest(3, &edges, &[1.0, 1.0, 2.0, 3.0], Prefer::Light), [0, 1, 2]);
    }

    #[test]
    fn weights_that_are_no_numbers_come_last() {
        let edges = [(0, 1), (1, 2), (0, 2)];
        for prefer in [Prefer::Light, Prefer::Heavy] {
            assert_eq!(spanning_forest(3, &edges, &[f32::NAN, 1.0, 2.0], prefer), [1, 2]);
            assert_eq!(spanning_forest(3, &edges, &[f32::NAN; 3], prefer), [0, 1]);
        }
    }

    #[test]
    fn nothing_spans_nothing() {
        assert!(spanning_forest(0, &[], &[], Prefer::Light).is_empty());
        assert!(spanning_forest(3, &[(1, 1)], &[1.0], Prefer::Light).is_empty());
    }
}
