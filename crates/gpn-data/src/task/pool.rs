//! The classes a task may ask for.

use gpn_taxonomy::{Node, Taxonomy};

/// A class that may be a target.
#[derive(Clone, Debug)]
pub struct PoolClass {
    /// Its number in the data set.
    pub index: u32,
    /// Its node in the pool's graph.
    pub node: Node,
    /// Its samples.
    pub samples: Vec<u32>,
}

/// Target classes with their samples, and the graph on which snowball sampling walks.
#[derive(Clone, Debug)]
pub struct TaskPool {
    /// Which classes these are, for messages: "close classes".
    pub description: String,
    /// The possible targets; the root is never one.
    pub classes: Vec<PoolClass>,
    /// The graph of these classes and the root, all others contracted away.
    pub graph: Taxonomy,
}

/// A class with too few samples for the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Id of the class.
    pub id: String,
    /// Samples it has.
    pub samples: usize,
}

impl TaskPool {
    /// Divides the classes into those with at least `needed` samples and those left out.
    pub fn with_samples(&self, needed: usize) -> (Vec<&PoolClass>, Vec<LeftOut>) {
        let (usable, short): (Vec<_>, Vec<_>) =
            self.classes.iter().partition(|class| class.samples.len() >= needed);
        let left_out = short
            .into_iter()
            .map(|class| LeftOut { id: self.graph.id(class.node).to_owned(), samples: class.samples.len() })
            .collect();
        (usable, left_out)
    }
}
