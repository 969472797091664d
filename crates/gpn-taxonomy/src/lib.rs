//! The class graph: how classes are related.
//!
//! A [`Taxonomy`] is a directed acyclic graph of classes, edges from parent to child; classes may have several
//! parents. Everything later in the house, from the split into training and test classes to the messages
//! between prototypes, looks at classes through it.
//!
//! **In** come files: lists of edges, WordNet, ImageNet's XML, JSON, OBO ([`read`](fn@read) and the reader of
//! each format), or classes and edges added one by one to a [`TaxonomyBuilder`]. Each graph is checked once:
//! a cycle, a class that is its own parent or a broken file is a [`TaxonomyError`] that names file and line;
//! what can be repaired is a [`Warning`] beside the graph ([`Checked`]).
//!
//! [`check_fit`] says whether a graph fits the classes that samples have: which labels it does not know, which name several
//! classes, whether child and parent are exchanged.
//!
//! **Out** come smaller graphs ([`ancestors`](fn@ancestors), [`imagenet_fall2011`], [`contract`](fn@contract),
//! [`collapse_chains`], [`link`](fn@link)), facts about classes ([`hop_distances`], [`HopSearch`],
//! [`levels`](fn@levels), [`leaf_counts`], [`same_leaves`]), the graph a task propagates on
//! ([`task_graph`](fn@task_graph), [`spanning_forest`]), and files ([`write_csv`], [`write_json`],
//! [`write_dot`]).
//!
//! A class has an id, and may have a name ([`Taxonomy::name`]) and a description ([`Taxonomy::description`]), which come
//! along to every graph made from this one.
//!
//! A graph never changes; operations make new ones. Classes are known by their id, and inside one graph by
//! their position ([`Node`]), which an operation may change: take ids from one graph to another. All orders are
//! defined, so the same input gives the same output everywhere. A position that does not belong to the graph
//! is a mistake of the caller and panics, as an index does. No algorithm recurses, so a chain of a million
//! classes does not overflow the stack.
//!
//! ```
//! use gpn_taxonomy::{HopSearch, Prefer, ancestors, contract, read_edges, spanning_forest, task_graph};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let file = folder.path().join("animals.csv");
//! std::fs::write(
//!     &file,
//!     "child,parent\nmammal,animal\nbird,animal\ncat,mammal\ndog,mammal\ncat,pet\ndog,pet\npet,animal\n",
//! )?;
//! let graph = read_edges(&file)?.taxonomy;
//! assert_eq!((graph.len(), graph.edge_count()), (6, 7));
//!
//! // Only what cat and dog need, without the class `mammal`.
//! let graph = ancestors(&graph, &["cat", "dog"])?;
//! let kept: Vec<_> = graph.nodes().filter(|&n| graph.id(n) != "mammal").collect();
//! let graph = contract(&graph, &kept);
//! assert_eq!(graph.edge_count(), 5);
//!
//! // The graph of a task that tells cats from dogs, thinned to its lightest tree.
//! let targets = graph.find_all(&["cat", "dog"])?;
//! let task = task_graph(&graph, &targets, 2, None, &mut HopSearch::new(&graph));
//! let weights = vec![1.0; task.edges.len()];
//! let tree = spanning_forest(task.nodes.len(), &task.edges, &weights, Prefer::Light);
//! assert_eq!(tree.len(), task.nodes.len() - 1);
//! # Ok(())
//! # }
//! ```

mod ancestors;
mod builder;
mod chains;
mod contract;
mod distance;
mod error;
mod fit;
mod graph;
mod imagenet_cut;
mod leaves_below;
mod levels;
mod link;
mod nearest;
mod neighbours;
mod path_tree;
mod plain_words;
mod read;
#[cfg(test)]
mod sample;
mod spanning_tree;
mod task_graph;
mod text;
mod write;

pub use ancestors::ancestors;
pub use builder::TaxonomyBuilder;
pub use chains::{collapse_chains, same_leaves};
pub use contract::contract;
pub use distance::{UNREACHED, hop_distances};
pub use error::{CycleEdge, Place, TaxonomyError, UnknownClass, Warning};
pub use fit::{Ambiguous, Finding, Fit, NearMiss, Sense, check_fit};
pub use gpn_files::ErrorKind;
pub use graph::{Checked, Node, Taxonomy};
pub use imagenet_cut::imagenet_fall2011;
pub use leaves_below::{leaf_counts, leaves_below};
pub use levels::{Levels, levels};
pub use link::{LinkAs, link};
pub use nearest::nearest_name;
pub use neighbours::HopSearch;
pub use path_tree::PathTree;
pub use plain_words::plain_words;
pub use read::{
    TaxonomyKind, TaxonomySpec, find_wordnet, read, read_edges, read_imagenet_xml, read_json, read_obo,
    read_wordnet,
};
pub use spanning_tree::{Prefer, spanning_forest};
pub use task_graph::{Choose, TaskGraph, contracted_task_graph, linked_task_graph, task_graph};
pub use write::{write_csv, write_csv_to, write_dot, write_dot_to, write_json};
