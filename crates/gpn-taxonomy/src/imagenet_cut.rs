//! ImageNet's own cut of WordNet.

use crate::ancestors::with_ancestors;
use crate::builder::TaxonomyBuilder;
use crate::error::{TaxonomyError, UnknownClass};
use crate::graph::{Node, Taxonomy};

/// The synsets directly below `fall11`: plant, geological formation, natural object, sport, artifact, fungus,
/// person, animal.
const TOP: [&str; 8] =
    ["n00017222", "n09287968", "n00019128", "n00523513", "n00021939", "n12992868", "n00007846", "n00015388"];

/// Synsets of WordNet that the release leaves out: entity, physical entity, abstraction, object, whole, and
/// other general ones.
const ABSENT: [&str; 25] = [
    "n00001740",
    "n00001930",
    "n00002137",
    "n00002684",
    "n00003553",
    "n00004258",
    "n00007347",
    "n00019613",
    "n00020090",
    "n00020827",
    "n00027167",
    "n00031921",
    "n03247620",
    "n03248958",
    "n03740161",
    "n04602044",
    "n07555863",
    "n07705711",
    "n08578706",
    "n08620061",
    "n13809207",
    "n14778436",
    "n14939900",
    "n14940386",
    "n15046900",
];

/// The graph of some leaves and all their ancestors in ImageNet's tree of fall 2011, made from WordNet 3.0.
///
/// The top is `root` > `fall11` > eight synsets and `fa11misc`; the most general synsets of WordNet are absent.
/// A class that is neither one of the eight nor below one is a child of `fa11misc` as well as of those of its
/// hypernyms that are present. A leaf that the release lacks is an error. Classes keep the order of `wordnet`,
/// after the three that are added.
///
/// O(classes + edges of WordNet).
///
/// ```
/// use gpn_taxonomy::{TaxonomyBuilder, imagenet_fall2011};
///
/// let mut wordnet = TaxonomyBuilder::new(); // entity > organism > animal > dog
/// let ids = ["n00001740", "n00004475", "n00015388", "n02084071"].map(|id| wordnet.add_class(id));
/// for pair in ids.windows(2) {
///     wordnet.add_edge(pair[0], pair[1], None);
/// }
/// let graph = imagenet_fall2011(&wordnet.build()?.taxonomy, &["n02084071"])?;
/// let edges: Vec<_> = graph.edges().map(|(p, c)| (graph.id(p), graph.id(c))).collect();
/// assert_eq!(
///     edges,
///     [
///         ("root", "fall11"),
///         ("fall11", "fa11misc"),
///         ("fa11misc", "n00004475"),
///         ("fall11", "n00015388"),
///         ("n00004475", "n00015388"),
///         ("n00015388", "n02084071")
///     ]
/// );
/// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
/// ```
pub fn imagenet_fall2011<S: AsRef<str>>(wordnet: &Taxonomy, leaves: &[S]) -> Result<Taxonomy, TaxonomyError> {
    let mut needed = vec![false; wordnet.len()];
    for n in with_ancestors(wordnet, &wordnet.find_all(leaves)?) {
        needed[n as usize] = true;
    }
    let flags = |ids: &[&str]| {
        let mut flags = vec![false; wordnet.len()];
        for n in ids.iter().filter_map(|id| wordnet.find(id)) {
            flags[n as usize] = true;
        }
        flags
    };
    let is_top = flags(&TOP);
    let absent = flags(&ABSENT);
    let lost: Vec<UnknownClass> = leaves
        .iter()
        .map(AsRef::as_ref)
        .filter(|id| ABSENT.contains(id))
        .map(|id| UnknownClass { id: id.to_owned(), nearest: None })
        .collect();
    if !lost.is_empty() {
        return Err(TaxonomyError::UnknownClasses(lost));
    }
    let present = |n: Node| needed[n as usize] && !absent[n as usize];
    let mut below_top = is_top.clone();
    for &n in wordnet.topological_order() {
        below_top[n as usize] |= wordnet.parents(n).iter().any(|&p| present(p) && below_top[p as usize]);
    }

    let mut graph = TaxonomyBuilder::new();
    let root = graph.add_class("root");
    let all = graph.add_class("fall11");
    graph.set_name(all, "ImageNet 2011 Fall Release");
    graph.add_edge(root, all, None);
    let elsewhere = |n: Node| present(n) && !below_top[n as usize];
    let misc = wordnet.nodes().any(elsewhere).then(|| graph.add_class("fa11misc"));
    if let Some(misc) = misc {
        graph.set_name(misc, "Misc");
        graph.add_edge(all, misc, None);
    }
    let copies: Vec<Node> =
        wordnet.nodes().map(|n| if present(n) { graph.copy_class(wordnet, n) } else { Node::MAX }).collect();
    for n in wordnet.nodes().filter(|&n| present(n)) {
        let copy = copies[n as usize];
        if is_top[n as usize] {
            graph.add_edge(all, copy, None);
        }
        if let Some(misc) = misc.filter(|_| elsewhere(n)) {
            graph.add_edge(misc, copy, None);
        }
        for &parent in wordnet.parents(n).iter().filter(|&&parent| present(parent)) {
            graph.add_edge(copies[parent as usize], copy, None);
        }
    }
    // A graph that is not WordNet may have classes with the names of those added here.
    Ok(graph.build()?.taxonomy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{edges_of, graph_of};

    #[test]
    fn nothing_is_miscellaneous_below_the_top() {
        let graph = graph_of("n00001740>n00021939 n00021939>chair n00001740>n00002684 n00002684>chair");
        assert_eq!(
            edges_of(&imagenet_fall2011(&graph, &["chair"]).unwrap()),
            "root>fall11 fall11>n00021939 n00021939>chair"
        );
    }

    #[test]
    fn a_class_the_release_lacks_is_an_error() {
        let graph = graph_of("n00001740>n00002684");
        let message = imagenet_fall2011(&graph, &["n00002684"]).unwrap_err().to_string();
        assert!(message.starts_with("unknown class: `n00002684`"), "{message}");
    }
}
