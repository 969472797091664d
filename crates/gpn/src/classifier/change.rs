//! Changes to classes: another place, another name.

use gpn_taxonomy::{Node, Taxonomy};
use gpn_train::Placement;

use super::Classifier;
use crate::error::{Error, Result};

impl Classifier {
    /// Moves a class below others, by id or name; what is below it moves along.
    pub fn move_class(&self, class: &str, parents: &[String]) -> Result<()> {
        let _teaching = self.teaching.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let version = self.version();
        let graph = &version.graph;
        let node = graph.find(class)?;
        let refused = |reason: &str| Err(Error::Class { class: class.to_owned(), reason: reason.into() });
        if node == graph.root {
            return refused("it is the top class, which has no place but its own");
        }
        if parents.is_empty() {
            return refused("there are no parents to move it below; name at least one");
        }
        let mut ids = Vec::with_capacity(parents.len());
        for parent in parents {
            let parent_node = graph.find(parent)?;
            if parent_node == node {
                return refused("it cannot be below itself; name another class");
            }
            if is_above(&graph.graph, node, parent_node) {
                return refused(&format!("`{parent}` is below it; name a class that is not"));
            }
            ids.push(graph.graph.id(parent_node).to_owned());
        }
        ids.sort();
        ids.dedup();
        let (mut taught, mut changes) = (version.taught.clone(), version.changes.clone());
        let id = graph.graph.id(node).to_owned();
        match graph.taught_position(node).filter(|&position| taught[position].place != Placement::InGraph) {
            Some(position) => taught[position].place = Placement::Below(ids),
            None if changes.added.contains_key(&id) => drop(changes.added.insert(id, ids)),
            None => drop(changes.moved.insert(id, ids)),
        }
        self.replace(taught, changes)
    }

    /// Gives a class another name for people, by id or name; its id stays.
    pub fn rename(&self, class: &str, name: &str) -> Result<()> {
        let _teaching = self.teaching.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let version = self.version();
        let node = version.graph.find(class)?;
        let name = name.trim();
        if name.is_empty() || name.contains(char::is_control) {
            let reason = "a class needs a name of visible characters".into();
            return Err(Error::Class { class: class.to_owned(), reason });
        }
        let (mut taught, mut changes) = (version.taught.clone(), version.changes.clone());
        if let Some(position) = version.graph.taught_position(node) {
            name.clone_into(&mut taught[position].name);
        }
        changes.renamed.insert(version.graph.graph.id(node).to_owned(), name.to_owned());
        self.replace(taught, changes)
    }
}

/// Whether a class is somewhere above another.
fn is_above(graph: &Taxonomy, class: Node, other: Node) -> bool {
    let mut above = graph.parents(other).to_vec();
    while let Some(node) = above.pop() {
        if node == class {
            return true;
        }
        above.extend_from_slice(graph.parents(node));
    }
    false
}
