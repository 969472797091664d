//! Whether a taxonomy fits the classes of samples, and what is the matter where it does not.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use crate::error::{TaxonomyError, UnknownClass, excerpt};
use crate::graph::{Node, Taxonomy};
use crate::nearest::nearest_name;

/// Classes that are named in a message before the rest is counted.
const SHOWN: usize = 10;
/// Senses of a name that are listed.
const SENSES_SHOWN: usize = 20;
/// A long list of unknown classes is one mistake, not many: the nearest names of the first few suffice.
const NEAREST_SOUGHT: usize = 10;

/// A label that is spelled nearly like a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NearMiss {
    /// The label of the samples.
    pub label: String,
    /// Id of the class.
    pub id: String,
    /// What the class is called.
    pub name: String,
}

/// One of the classes that bear a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sense {
    /// Its id.
    pub id: String,
    /// What it is, where the taxonomy says so.
    pub description: Option<String>,
}

/// A label that several classes bear as their name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ambiguous {
    /// The label of the samples.
    pub label: String,
    /// The classes of that name.
    pub senses: Vec<Sense>,
}

/// Something about labels and classes that a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", content = "classes", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finding {
    /// The classes of the samples stand above all others: child and parent are exchanged. Some of these classes, each
    /// with a class that stands below it.
    ColumnsExchanged(Vec<(String, String)>),
    /// Labels that differ from a class in letter case, `_`, `-` and blanks alone; they are taken for that class.
    Respelled(Vec<NearMiss>),
    /// Labels without a class that are spelled nearly like one.
    NearMisses(Vec<NearMiss>),
    /// Labels that name several classes.
    Ambiguous(Vec<Ambiguous>),
    /// Labels that nothing in the taxonomy is like.
    WithoutPlace(Vec<String>),
}

impl Finding {
    /// Whether samples are left without a class.
    pub fn stops(&self) -> bool {
        !matches!(self, Self::Respelled(_))
    }
}

/// What [`check_fit`] finds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Fit {
    /// The class of each label, where it has one.
    pub nodes: Vec<Option<Node>>,
    /// What a person should know; empty where every label has its class.
    pub findings: Vec<Finding>,
}

impl Fit {
    /// The findings that stop nothing.
    pub fn warnings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| !finding.stops())
    }

    /// The class of each label, or an error that says which labels have none and why.
    pub fn into_nodes(self) -> Result<Vec<Node>, TaxonomyError> {
        let mut unknown = Vec::new();
        for finding in self.findings {
            match finding {
                Finding::Respelled(_) => {}
                Finding::ColumnsExchanged(_) | Finding::Ambiguous(_) => {
                    return Err(TaxonomyError::Unfit(finding));
                }
                Finding::NearMisses(misses) => unknown.extend(misses.into_iter().map(|miss| UnknownClass {
                    nearest: Some(if miss.name == miss.id { miss.id } else { miss.name }),
                    id: miss.label,
                })),
                Finding::WithoutPlace(labels) => {
                    unknown.extend(labels.into_iter().map(|id| UnknownClass { id, nearest: None }));
                }
            }
        }
        match self.nodes.into_iter().collect::<Option<Vec<Node>>>() {
            Some(nodes) if unknown.is_empty() => Ok(nodes),
            _ => Err(TaxonomyError::UnknownClasses(unknown)),
        }
    }
}

/// Finds the classes of samples in a taxonomy.
///
/// A label is the id of a class, or the name that just one class bears, or either but for letter case, `_`, `-` and
/// blanks. What does not fit is told by [`Fit::findings`]. O(classes + labels), and more for labels without a class.
///
/// ```
/// use gpn_taxonomy::{Finding, PathTree, check_fit};
///
/// let mut tree = PathTree::new();
/// for fruit in ["Golden-Delicious", "Pear"] {
///     tree.insert(["Fruit", fruit]);
/// }
/// let taxonomy = tree.taxonomy(&tree.ids(), |_| None)?.taxonomy;
/// let fit = check_fit(&taxonomy, &["Pear", "golden delicious", "Peer"]);
/// assert_eq!(fit.nodes[0], taxonomy.find("Pear"));
/// assert_eq!(fit.nodes[1], taxonomy.find("Golden-Delicious"));
/// assert_eq!(fit.nodes[2], None);
/// assert!(matches!(fit.findings[..], [Finding::Respelled(_), Finding::NearMisses(_)]));
/// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
/// ```
pub fn check_fit<S: AsRef<str>>(taxonomy: &Taxonomy, labels: &[S]) -> Fit {
    let labels = || labels.iter().map(AsRef::as_ref);
    let mut nodes: Vec<Option<Node>> = labels().map(|label| taxonomy.find(label)).collect();
    if let Some(finding) = exchanged(taxonomy, &nodes) {
        return Fit { nodes, findings: vec![finding] };
    }
    if nodes.iter().all(Option::is_some) {
        return Fit { nodes, findings: Vec::new() };
    }
    let names = Names::new(taxonomy);
    let (mut respelled, mut misses, mut ambiguous, mut lost) = (vec![], vec![], vec![], vec![]);
    let near_miss = |label: &str, node: Node| NearMiss {
        label: label.to_owned(),
        id: taxonomy.id(node).to_owned(),
        name: taxonomy.name(node).to_owned(),
    };
    for (label, node) in labels().zip(&mut nodes).filter(|(_, node)| node.is_none()) {
        match (names.called(label), names.spelled(label)) {
            ([only], _) => *node = Some(*only),
            ([], [only]) => {
                *node = Some(*only);
                respelled.push(near_miss(label, *only));
            }
            ([], []) => {
                let sought = misses.len() + lost.len() < NEAREST_SOUGHT;
                match sought.then(|| names.nearest(label)).flatten() {
                    Some(nearest) => misses.push(near_miss(label, nearest)),
                    None => lost.push(label.to_owned()),
                }
            }
            ([], several) | (several, _) => ambiguous.push(Ambiguous {
                label: label.to_owned(),
                senses: several.iter().map(|&node| sense(taxonomy, node)).collect(),
            }),
        }
    }
    // Labels found by their names may be the ones that stand on the wrong side.
    let mut findings: Vec<Finding> = exchanged(taxonomy, &nodes).into_iter().collect();
    if !ambiguous.is_empty() {
        findings.push(Finding::Ambiguous(ambiguous));
    }
    if !respelled.is_empty() {
        findings.push(Finding::Respelled(respelled));
    }
    if !misses.is_empty() {
        findings.push(Finding::NearMisses(misses));
    }
    if !lost.is_empty() {
        findings.push(Finding::WithoutPlace(lost));
    }
    Fit { nodes, findings }
}

fn sense(taxonomy: &Taxonomy, node: Node) -> Sense {
    Sense { id: taxonomy.id(node).to_owned(), description: taxonomy.description(node).map(str::to_owned) }
}

/// Samples have the lowest classes. If instead all that are known stand at the top, with others below most of them, then
/// the list was read upside down.
fn exchanged(taxonomy: &Taxonomy, nodes: &[Option<Node>]) -> Option<Finding> {
    let known = || nodes.iter().flatten().copied();
    let above_others = |node: &Node| !taxonomy.children(*node).is_empty();
    let (count, above) = (known().count(), known().filter(above_others).count());
    let at_the_top = known().all(|node| taxonomy.parents(node).is_empty());
    if count < 2 || !at_the_top || 2 * above <= count {
        return None;
    }
    let id = |node: Node| taxonomy.id(node).to_owned();
    let pair = |node: Node| (id(node), id(taxonomy.children(node)[0]));
    Some(Finding::ColumnsExchanged(known().filter(above_others).take(3).map(pair).collect()))
}

/// Classes by what they are called.
struct Names<'t> {
    taxonomy: &'t Taxonomy,
    called: HashMap<&'t str, Vec<Node>>,
    spelled: HashMap<String, Vec<Node>>,
}

impl<'t> Names<'t> {
    fn new(taxonomy: &'t Taxonomy) -> Self {
        let mut called: HashMap<&str, Vec<Node>> = HashMap::new();
        let mut spelled: HashMap<String, Vec<Node>> = HashMap::new();
        for node in taxonomy.nodes() {
            called.entry(taxonomy.name(node)).or_default().push(node);
            let [id, name] = [taxonomy.id(node), taxonomy.name(node)].map(spelling);
            if id != name {
                spelled.entry(id).or_default().push(node);
            }
            spelled.entry(name).or_default().push(node);
        }
        Self { taxonomy, called, spelled }
    }

    /// The classes of this name.
    fn called(&self, name: &str) -> &[Node] {
        self.called.get(name).map_or(&[], Vec::as_slice)
    }

    /// The classes of this id or name but for letter case and what stands between words.
    fn spelled(&self, label: &str) -> &[Node] {
        self.spelled.get(&spelling(label)).map_or(&[], Vec::as_slice)
    }

    fn nearest(&self, label: &str) -> Option<Node> {
        let taxonomy = self.taxonomy;
        let ids = taxonomy.nodes().map(|node| taxonomy.id(node));
        let names = taxonomy.nodes().filter_map(|node| taxonomy.own_name(node));
        let nearest = nearest_name(label, ids.chain(names))?;
        taxonomy.find(nearest).or_else(|| self.called(nearest).first().copied())
    }
}

/// A name in small letters, with single blanks between its words.
pub(crate) fn spelling(name: &str) -> String {
    let words = name.split(|c: char| c.is_whitespace() || matches!(c, '_' | '-'));
    let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    words.join(" ")
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ColumnsExchanged(pairs) => {
                f.write_str(
                    "child and parent seem to be exchanged: the classes of the samples stand above all others (",
                )?;
                list(f, pairs, |f, (above, below)| {
                    write!(f, "`{}` above `{}`", excerpt(above), excerpt(below))
                })?;
                f.write_str("); the child column names the narrower class, the parent column the wider one: exchange them")
            }
            Self::Respelled(misses) => {
                f.write_str("labels are taken for classes that are spelled otherwise: ")?;
                list(f, misses, |f, miss| {
                    write!(f, "`{}` for `{}`", excerpt(&miss.label), excerpt(&miss.name))
                })
            }
            Self::NearMisses(misses) => {
                f.write_str("there is no class ")?;
                list(f, misses, |f, miss| {
                    write!(f, "`{}` (did you mean `{}`?)", excerpt(&miss.label), excerpt(&miss.name))
                })?;
                f.write_str("; use ids or names of the taxonomy")
            }
            Self::Ambiguous(labels) => {
                for (at, Ambiguous { label, senses }) in labels.iter().take(SHOWN).enumerate() {
                    let label = excerpt(label);
                    write!(
                        f,
                        "{}`{label}` names {} classes: ",
                        if at == 0 { "" } else { "; " },
                        senses.len()
                    )?;
                    let mut ids = senses.iter().take(SENSES_SHOWN).map(|sense| match &sense.description {
                        Some(text) => format!("{} ({})", excerpt(&sense.id), excerpt(text)),
                        None => excerpt(&sense.id),
                    });
                    f.write_str(&ids.by_ref().collect::<Vec<_>>().join(", "))?;
                    if senses.len() > SENSES_SHOWN {
                        write!(f, " and {} more", senses.len() - SENSES_SHOWN)?;
                    }
                }
                if labels.len() > SHOWN {
                    write!(f, "; and {} more such names", labels.len() - SHOWN)?;
                }
                f.write_str("; use the id of the one that is meant as the label")
            }
            Self::WithoutPlace(labels) => {
                f.write_str("classes of the samples are not in the taxonomy: ")?;
                list(f, labels, |f, label| write!(f, "`{}`", excerpt(label)))?;
                f.write_str("; add them to it, or use its ids or names as labels")
            }
        }
    }
}

/// The first few items with commas between, and how many more there are.
fn list<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    show: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (at, item) in items.iter().take(SHOWN).enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        show(f, item)?;
    }
    if items.len() > SHOWN {
        write!(f, " and {} more", items.len() - SHOWN)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::TaxonomyBuilder;
    use crate::sample::graph_of;

    #[test]
    fn exchanged_columns_are_told_from_labels_above_others() {
        let upside_down = graph_of("cat>mammal dog>mammal crow>bird mammal>animal bird>animal");
        let fit = check_fit(&upside_down, &["cat", "dog", "crow"]);
        let message = fit.findings[0].to_string();
        assert!(message.contains("exchanged") && message.contains("`cat` above `mammal`"), "{message}");
        let error = fit.into_nodes().unwrap_err().to_string();
        assert!(error.contains("exchange them"), "{error}");

        let upright = graph_of("animal>mammal animal>bird mammal>cat mammal>dog bird>crow");
        for labels in [&["cat", "dog", "crow"][..], &["mammal", "bird"], &["animal"], &["animal", "cat"]] {
            let fit = check_fit(&upright, labels);
            assert_eq!(fit.findings, [], "{labels:?}");
            assert_eq!(fit.into_nodes().unwrap().len(), labels.len());
        }
        // A taxonomy without edges says nothing of sides.
        assert_eq!(check_fit(&graph_of("cat dog"), &["cat", "dog"]).findings, []);
    }

    #[test]
    fn a_name_of_several_classes_asks_for_an_id() {
        let mut graph = TaxonomyBuilder::new();
        for (id, text) in [("n1", "a bird"), ("n2", "a machine"), ("n3", "a fruit")] {
            let node = graph.add_class(id);
            graph.set_name(node, if id == "n3" { "lime" } else { "crane" });
            graph.set_description(node, text);
        }
        let graph = graph.build().unwrap().taxonomy;
        let fit = check_fit(&graph, &["crane", "lime", "Crane"]);
        assert_eq!(fit.nodes, [None, Some(2), None]);
        let message = fit.into_nodes().unwrap_err().to_string();
        assert!(
            message.contains("`crane` names 2 classes: n1 (a bird), n2 (a machine); `Crane` names 2 classes"),
            "{message}"
        );
        assert!(message.ends_with("use the id of the one that is meant as the label"), "{message}");
    }

    #[test]
    fn spelling_differs_little_or_much() {
        let graph = graph_of("fruit>Golden-Delicious fruit>pear fruit>red_apple");
        let fit = check_fit(&graph, &["golden_delicious", " RED  apple ", "peer", "tractor"]);
        assert_eq!(fit.nodes, [graph.find("Golden-Delicious"), graph.find("red_apple"), None, None]);
        let messages: Vec<String> = fit.findings.iter().map(ToString::to_string).collect();
        assert!(messages[0].contains("`golden_delicious` for `Golden-Delicious`"), "{messages:?}");
        assert!(messages[1].contains("`peer` (did you mean `pear`?)"), "{messages:?}");
        assert!(messages[2].contains("`tractor`"), "{messages:?}");
        assert_eq!(fit.warnings().count(), 1);
        let error = fit.into_nodes().unwrap_err().to_string();
        assert!(error.contains("`peer` (did you mean `pear`?), `tractor`"), "{error}");
    }

    #[test]
    fn many_lost_labels_are_counted() {
        let labels: Vec<String> = (0..50).map(|number| format!("zzzzzz{number}")).collect();
        let message = check_fit(&graph_of("a>b"), &labels).findings[0].to_string();
        assert!(message.contains("and 40 more"), "{message}");
    }
}
