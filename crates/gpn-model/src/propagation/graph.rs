//! The graph that a task propagates on, as lists of senders.

use super::config::Direction;

/// For each node, the nodes that send to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Senders {
    offsets: Vec<u32>,
    senders: Vec<u32>,
}

impl Senders {
    /// From `(receiver, sender)` pairs; a receiver hears its senders in ascending order, each once.
    pub fn new(nodes: usize, mut pairs: Vec<(u32, u32)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        let mut offsets = vec![0; nodes + 1];
        for &(receiver, _) in &pairs {
            offsets[receiver as usize + 1] += 1;
        }
        for node in 0..nodes {
            offsets[node + 1] += offsets[node];
        }
        Self { offsets, senders: pairs.into_iter().map(|(_, sender)| sender).collect() }
    }

    /// The senders to `receiver`.
    pub fn to(&self, receiver: u32) -> &[u32] {
        &self.senders[self.range(receiver)]
    }

    /// Where the senders to `receiver` stand among all edges.
    pub fn range(&self, receiver: u32) -> std::ops::Range<usize> {
        self.offsets[receiver as usize] as usize..self.offsets[receiver as usize + 1] as usize
    }

    /// Number of edges.
    pub fn len(&self) -> usize {
        self.senders.len()
    }

    /// Whether nobody sends to anybody.
    pub fn is_empty(&self) -> bool {
        self.senders.is_empty()
    }
}

/// The nodes of a task, the targets first, and who sends to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropagationGraph {
    nodes: usize,
    targets: usize,
    both: Senders,
    from_parents: Senders,
    from_children: Senders,
}

impl PropagationGraph {
    /// A graph of `nodes` classes of which the first `targets` are asked for.
    ///
    /// `from_parents` and `from_children` are `(receiver, sender)` pairs: they need not mirror each other, since a spanning
    /// tree may keep an edge in one direction only.
    pub fn new(
        nodes: usize,
        targets: usize,
        from_parents: Vec<(u32, u32)>,
        from_children: Vec<(u32, u32)>,
    ) -> Self {
        let both = from_parents.iter().chain(&from_children).copied().collect();
        Self {
            nodes,
            targets,
            both: Senders::new(nodes, both),
            from_parents: Senders::new(nodes, from_parents),
            from_children: Senders::new(nodes, from_children),
        }
    }

    /// Number of classes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Number of targets: nodes `0..targets`.
    pub fn targets(&self) -> usize {
        self.targets
    }

    /// Who sends along `direction`.
    pub fn senders(&self, direction: Direction) -> &Senders {
        match direction {
            Direction::Both => &self.both,
            Direction::FromParents => &self.from_parents,
            Direction::FromChildren => &self.from_children,
        }
    }

    /// The nodes whose prototype matters after each of the steps, beginning with step 0 (before the first): those
    /// from which a message can still reach a target. Ascending.
    pub(super) fn active(&self, directions: &[Direction]) -> Vec<Vec<u32>> {
        let mut is_active = vec![false; self.nodes];
        is_active[..self.targets].fill(true);
        let listed = |is_active: &[bool]| {
            (0..self.nodes as u32).filter(|&node| is_active[node as usize]).collect::<Vec<_>>()
        };
        let mut levels = vec![listed(&is_active)];
        for &direction in directions.iter().rev() {
            let senders = self.senders(direction);
            for &receiver in &levels[levels.len() - 1] {
                for &sender in senders.to(receiver) {
                    is_active[sender as usize] = true;
                }
            }
            levels.push(listed(&is_active));
        }
        levels.reverse();
        levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nodes_that_can_reach_a_target_are_active() {
        // 0 is the target; 1 sends to 0, 2 to 1, 3 to 2.
        let chain = vec![(0, 1), (1, 2), (2, 3)];
        let graph = PropagationGraph::new(4, 1, chain, Vec::new());
        let levels = graph.active(&[Direction::Both, Direction::Both]);
        assert_eq!(levels, [vec![0, 1, 2], vec![0, 1], vec![0]]);
    }

    #[test]
    fn senders_are_sorted_and_unique() {
        let senders = Senders::new(3, vec![(2, 1), (2, 0), (2, 1), (0, 2)]);
        assert_eq!([senders.to(0), senders.to(1), senders.to(2)], [&[2][..], &[], &[0, 1]]);
        assert_eq!(senders.len(), 3);
    }
}
