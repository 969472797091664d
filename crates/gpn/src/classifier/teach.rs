//! Teaching: new classes from a few samples, without training.

use gpn_taxonomy::{Node, Taxonomy};
use gpn_train::{Changes, Placement, TaughtClass};
use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::class_graph::{ClassGraph, ClassKind};
use super::{Classifier, Version};
use crate::error::{Error, Result};
use crate::sample::Sample;
use crate::watch::Watch;

/// The parents of a class to be taught.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parents {
    /// Those of the class of this id or name in the model's class graph; where there is none, the class is linked to the
    /// nearest training classes.
    #[default]
    FromGraph,
    /// These classes, by id, or by a name that only one class has.
    Named(Vec<String>),
    /// Unknown: the class is linked to the nearest training classes, even where the class graph knows better.
    Unknown,
}

/// What is to be done with a class that has been taught before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfTaught {
    /// It is an error.
    #[default]
    Refuse,
    /// The samples join those it has.
    Add,
    /// The samples replace those it has.
    Replace,
}

/// A class to be taught and samples of it.
#[derive(Clone, Debug, PartialEq)]
pub struct NewClass {
    /// Id or name of the class; a new name becomes its id as well.
    pub class: String,
    /// Its parents.
    pub parents: Parents,
    /// Its samples.
    pub samples: Vec<Sample>,
}

/// A class after teaching.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taught {
    /// Id of the class.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Where it stands.
    pub place: Placement,
    /// Samples it has now.
    pub samples: usize,
    /// Samples given that it had already; they count once.
    pub repeated: usize,
}

impl Classifier {
    /// Teaches classes. Either all of them are taught or, on an error, none. Predictions under way go on with the version before.
    ///
    /// Samples of a class may come at once or in several calls, in any order: the result is the same to the last bit.
    pub fn teach(&self, classes: &[NewClass], if_taught: IfTaught, watch: &Watch<'_>) -> Result<Vec<Taught>> {
        self.teach_in(classes, if_taught, None, watch)
    }

    /// The same with a class graph that says where classes stand that the model's own graph does not have.
    pub fn teach_in(
        &self,
        classes: &[NewClass],
        if_taught: IfTaught,
        taxonomy: Option<&Taxonomy>,
        watch: &Watch<'_>,
    ) -> Result<Vec<Taught>> {
        // One teacher at a time: each starts from what the one before has taught.
        let _teaching = self.teaching.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut version = self.version();
        let mut classes = classes.to_vec();
        if let Some(taxonomy) = taxonomy {
            let added = place_in(taxonomy, &version.graph, &mut classes)?;
            let mut changes = version.changes.clone();
            changes.added.extend(added);
            version = Arc::new(Version::new(&self.model.info, version.taught.clone(), changes)?);
        }
        let classes = &classes[..];
        let resolver = Resolver { classifier: self, version: &version };
        let (mut new, changes) = resolver.places(classes, if_taught)?;

        let samples: Vec<&Sample> = classes.iter().flat_map(|class| &class.samples).collect();
        let mut embeddings = self.embed_all(&samples, watch)?.into_iter();
        // What is summed up lies in the space in which distances are taken.
        let prior = self.model.network.method.prior();
        let in_space = |embedding: Vec<f32>| -> Result<Vec<f32>> {
            Ok(prior.map_or(Ok(embedding.clone()), |prior| prior.metric().apply(&embedding))?)
        };
        let mut taught = Vec::with_capacity(classes.len());
        for (new, given) in new.iter_mut().zip(classes) {
            let trained = version.trained_samples(&self.model, &new.id, &changes);
            let mut repeated = 0;
            for embedding in embeddings.by_ref().take(given.samples.len()) {
                repeated += usize::from(!new.add(&in_space(embedding?)?));
            }
            taught.push(Taught {
                id: new.id.clone(),
                name: new.name.clone(),
                place: new.place.clone(),
                samples: trained + new.samples(),
                repeated,
            });
        }
        self.replace(with(&version.taught, new), changes)?;
        Ok(taught)
    }

    /// Forgets the samples of a class, by id or name: of a taught one, and of any class of a fitted catalogue. Classes taught below
    /// it must be forgotten first. A class of the model's own graph keeps its place.
    pub fn forget(&self, class: &str) -> Result<()> {
        let _teaching = self.teaching.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let version = self.version();
        let node = version.graph.find(class)?;
        let refused = |reason: String| Error::Class { class: class.to_owned(), reason };
        let position = version.graph.taught_position(node);
        let is_trained = self.is_fitted() && version.graph.kind(node) == ClassKind::Training;
        if position.is_none() && !is_trained {
            return Err(refused("it has no samples that could be forgotten".into()));
        }
        let id = &version.graph.graph.id(node).to_owned();
        let child = version
            .taught
            .iter()
            .find(|other| matches!(&other.place, Placement::Below(parents) if parents.contains(id)));
        if let Some(child) = child {
            return Err(refused(format!("`{}` is taught below it; forget that one first", child.id)));
        }
        let (mut taught, mut changes) = (version.taught.clone(), version.changes.clone());
        if let Some(position) = position {
            taught.remove(position);
        }
        if is_trained {
            changes.forgotten.insert(id.clone());
        }
        self.replace(taught, changes)
    }
}

/// The taught classes with new ones, which replace those of the same id; sorted by id.
fn with(taught: &[TaughtClass], new: Vec<TaughtClass>) -> Vec<TaughtClass> {
    let mut taught = taught.to_vec();
    taught.retain(|old| new.iter().all(|class| class.id != old.id));
    taught.extend(new);
    taught.sort_by(|a, b| a.id.cmp(&b.id));
    taught
}

/// Classes to be taught, against one version of the classifier.
struct Resolver<'a> {
    classifier: &'a Classifier,
    version: &'a Version,
}

impl Resolver<'_> {
    /// The classes as they are before their new samples, each in its place, and what else changes.
    fn places(&self, classes: &[NewClass], if_taught: IfTaught) -> Result<(Vec<TaughtClass>, Changes)> {
        let mut new: Vec<TaughtClass> = Vec::with_capacity(classes.len());
        let mut changes = self.version.changes.clone();
        for given in classes {
            let class = self.class_before(given, if_taught)?;
            if new.iter().any(|other| other.id == class.id) {
                return Err(fault(given, "it is given twice; give all its samples at once"));
            }
            if given.samples.is_empty() {
                return Err(fault(given, "there are no samples of it; give at least one"));
            }
            if if_taught == IfTaught::Replace && self.trained(&class.id) {
                changes.forgotten.insert(class.id.clone());
            }
            new.push(class);
        }
        for (number, given) in classes.iter().enumerate() {
            if let Parents::Named(parents) = &given.parents {
                let mut ids = Vec::with_capacity(parents.len());
                for parent in parents {
                    let id = self.parent(given, parent, classes, &new)?;
                    if id == new[number].id {
                        return Err(fault(given, "it cannot be its own parent; name another class"));
                    }
                    ids.push(id);
                }
                ids.sort();
                ids.dedup();
                new[number].place = Placement::Below(ids);
            }
        }
        self.check_parents(&with(&self.version.taught, new.clone()), &changes)?;
        Ok((new, changes))
    }

    /// A class as it is before its new samples; parents are not yet resolved.
    fn class_before(&self, given: &NewClass, if_taught: IfTaught) -> Result<TaughtClass> {
        let text = given.class.trim();
        if text.is_empty() || text.contains(char::is_control) {
            return Err(fault(given, "a class needs a name of visible characters"));
        }
        let graph = &self.version.graph.graph;
        let found = self.known_class(given, text)?;
        let taught = found.and_then(|class| self.version.graph.taught_position(class));
        if let Some(taught) = taught.map(|position| &self.version.taught[position]) {
            match if_taught {
                IfTaught::Refuse => {
                    let (class, samples) = (given.class.clone(), taught.samples());
                    return Err(Error::AlreadyTaught { class, samples });
                }
                IfTaught::Add if given.parents != Parents::FromGraph => {
                    return Err(Error::AlreadyPlaced { class: given.class.clone() });
                }
                IfTaught::Add => return Ok(taught.clone()),
                IfTaught::Replace => {}
            }
        }
        if let Some(trained) = found.filter(|&class| self.version.graph.kind(class) == ClassKind::Training) {
            let samples = self.classifier.model.info.classes[trained as usize].samples;
            if if_taught == IfTaught::Refuse && taught.is_none() {
                return Err(Error::AlreadyTaught { class: given.class.clone(), samples });
            }
        }
        let in_graph = found.filter(|&class| self.is_in_graph(class));
        let place = match (&given.parents, in_graph) {
            (Parents::FromGraph, Some(_)) => Placement::InGraph,
            (Parents::Named(_), Some(class)) if !graph.parents(class).is_empty() => {
                let parents: Vec<&str> =
                    graph.parents(class).iter().map(|&parent| graph.id(parent)).collect();
                let reason = format!(
                    "the class graph of the model has it below {}; leave the parents out, or give it another name",
                    parents.join(", ")
                );
                return Err(fault(given, &reason));
            }
            _ => Placement::Nearest,
        };
        let (id, name) = found.map_or((text, text), |class| (graph.id(class), graph.name(class)));
        Ok(TaughtClass::new(id.to_owned(), name.to_owned(), place, self.classifier.model.memory.dim))
    }

    /// The class of the graph that is meant, if one is.
    fn known_class(&self, given: &NewClass, text: &str) -> Result<Option<Node>> {
        let kind = |class: Node| self.version.graph.kind(class);
        if let Some(class) = self.version.graph.graph.find(text) {
            return match kind(class) {
                ClassKind::Training if !self.classifier.is_fitted() => {
                    Err(fault(given, "the model was trained with it; give the new class another name"))
                }
                _ => Ok(Some(class)),
            };
        }
        let named = self.version.graph.named(text);
        let of = |wanted: ClassKind| named.iter().copied().filter(move |&class| kind(class) == wanted);
        if let Some(class) = of(ClassKind::Taught).next() {
            return Ok(Some(class));
        }
        if self.classifier.is_fitted() {
            let mut trained = of(ClassKind::Training);
            if let (Some(class), None) = (trained.next(), trained.next()) {
                return Ok(Some(class));
            }
        } else if let Some(class) = of(ClassKind::Training).next() {
            let id = self.version.graph.graph.id(class);
            return Err(fault(
                given,
                &format!(
                    "it is the name of {id}, which the model was trained with; give the new class another name"
                ),
            ));
        }
        match named[..] {
            // Another class of this name stands elsewhere in the graph.
            _ if given.parents != Parents::FromGraph => Ok(None),
            [] => Ok(None),
            [class] => Ok(Some(class)),
            ref several => Err(fault(
                given,
                &format!(
                    "several classes of the graph have this name; {}",
                    self.version.graph.choose_from(several)
                ),
            )),
        }
    }

    /// The id of a parent, which may be another of the classes to be taught.
    fn parent(
        &self,
        given: &NewClass,
        parent: &str,
        others: &[NewClass],
        classes: &[TaughtClass],
    ) -> Result<String> {
        if let Some(number) = others.iter().position(|other| other.class.trim() == parent) {
            return Ok(classes[number].id.clone());
        }
        match self.version.graph.find(parent) {
            Ok(class) => Ok(self.version.graph.graph.id(class).to_owned()),
            Err(Error::Class { reason, .. } | Error::NoSuchClass { reason, .. }) => {
                Err(fault(given, &format!("parent `{parent}`: {reason}")))
            }
            Err(other) => Err(other),
        }
    }

    /// Refuses parents that have no place themselves, and cycles.
    fn check_parents(&self, taught: &[TaughtClass], changes: &Changes) -> Result<()> {
        let unplaced: Vec<&str> = taught
            .iter()
            .filter(|class| class.place == Placement::Nearest)
            .map(|class| class.id.as_str())
            .filter(|id| self.version.graph.graph.find(id).is_none_or(|class| !self.is_in_graph(class)))
            .collect();
        for class in taught {
            let Placement::Below(parents) = &class.place else { continue };
            if let Some(parent) = parents.iter().find(|parent| unplaced.contains(&parent.as_str())) {
                return Err(Error::Class {
                    class: class.id.clone(),
                    reason: format!(
                        "its parent `{parent}` has no parents itself; teach that one with parents, or choose another"
                    ),
                });
            }
        }
        ClassGraph::new(&self.classifier.model.info, taught, changes).map(drop)
    }

    /// Whether a class has its place by the model's own graph, or by one that was given later.
    fn is_in_graph(&self, class: Node) -> bool {
        let info = &self.classifier.model.info;
        let id = self.version.graph.graph.id(class);
        (class as usize) < info.classes.len() + info.held_out.len()
            || self.version.changes.added.contains_key(id)
    }

    /// Whether the model was fitted with a class and still has its samples.
    fn trained(&self, id: &str) -> bool {
        let class = self.version.graph.graph.find(id);
        class.is_some_and(|class| self.version.graph.kind(class) == ClassKind::Training)
    }
}

/// Gives classes that the model's graph does not have the parents of another graph; classes above them that the model does not have
/// either are returned with their parents, by id.
fn place_in(
    taxonomy: &Taxonomy,
    graph: &ClassGraph,
    classes: &mut [NewClass],
) -> Result<BTreeMap<String, Vec<String>>> {
    let mut added = BTreeMap::new();
    for given in classes.iter_mut().filter(|given| given.parents == Parents::FromGraph) {
        let text = given.class.trim().to_owned();
        if graph.graph.find(&text).is_some() || !graph.named(&text).is_empty() {
            continue;
        }
        let named: Vec<Node> = taxonomy.nodes().filter(|&n| taxonomy.name(n) == text).collect();
        let node = match (taxonomy.find(&text), &named[..]) {
            (Some(node), _) | (None, &[node]) => node,
            (None, []) => {
                return Err(fault(
                    given,
                    "neither the model nor the given class graph has it; name its parents",
                ));
            }
            (None, several) => {
                let ids: Vec<&str> = several.iter().map(|&n| taxonomy.id(n)).collect();
                return Err(fault(
                    given,
                    &format!("several classes of the graph have this name; give the id: {}", ids.join(", ")),
                ));
            }
        };
        let mut waiting: Vec<Node> = Vec::new();
        let parents_of = |node: Node, waiting: &mut Vec<Node>| -> Vec<String> {
            let parent = |&parent: &Node| {
                let known =
                    graph.graph.find(taxonomy.id(parent)).or(match graph.named(taxonomy.name(parent))[..] {
                        [only] => Some(only),
                        _ => None,
                    });
                if let Some(class) = known {
                    return graph.graph.id(class).to_owned();
                }
                waiting.push(parent);
                taxonomy.id(parent).to_owned()
            };
            taxonomy.parents(node).iter().map(parent).collect()
        };
        let parents = parents_of(node, &mut waiting);
        while let Some(node) = waiting.pop() {
            let id = taxonomy.id(node).to_owned();
            let Entry::Vacant(place) = added.entry(id) else { continue };
            let mut parents = parents_of(node, &mut waiting);
            if parents.is_empty() {
                parents.push(graph.graph.id(graph.root).to_owned());
            }
            place.insert(parents);
        }
        if !parents.is_empty() {
            given.parents = Parents::Named(parents);
        }
    }
    Ok(added)
}

fn fault(given: &NewClass, reason: &str) -> Error {
    Error::Class { class: given.class.clone(), reason: reason.to_owned() }
}
