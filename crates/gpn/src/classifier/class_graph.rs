//! All classes a model knows of, and how a user's words find them.

use std::sync::Arc;

use gpn_taxonomy::{Node, Taxonomy, TaxonomyBuilder, nearest_name};
use gpn_train::{Changes, ModelInfo, Placement, TaughtClass};

use crate::error::{Error, Result};

/// What a model has of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassKind {
    /// It was trained with the class: a prototype in memory.
    Training,
    /// It was taught the class afterwards.
    Taught,
    /// It knows the place of the class in the graph, but no sample of it.
    Untaught,
}

/// The classes of a model by number: training classes, those held out, then taught ones that the graph of the model does
/// not have.
#[derive(Clone, Debug)]
pub(crate) struct ClassGraph {
    /// Node i is class i. Classes without a place have no edges.
    pub(crate) graph: Arc<Taxonomy>,
    pub(crate) training: usize,
    pub(crate) root: Node,
    /// Whether the samples of each class are forgotten.
    forgotten: Vec<bool>,
    /// For each class, its position among the taught ones.
    taught: Vec<Option<usize>>,
}

impl ClassGraph {
    /// The classes of a model with these taught ones and changes.
    pub(crate) fn new(info: &ModelInfo, taught: &[TaughtClass], changes: &Changes) -> Result<Self> {
        let known = info.graph()?;
        let mut builder = TaxonomyBuilder::new();
        for node in known.nodes() {
            let copy = builder.add_class(known.id(node));
            let name = changes.renamed.get(known.id(node)).map_or(known.name(node), String::as_str);
            builder.set_name(copy, name);
        }
        for (parent, child) in known.edges() {
            if !changes.moved.contains_key(known.id(child)) {
                builder.add_edge(parent, child, None);
            }
        }
        for (child, parents) in changes.moved.iter().chain(&changes.added) {
            let child = builder.add_class(child);
            for parent in parents {
                let parent = builder.add_class(parent);
                builder.add_edge(parent, child, None);
            }
        }
        for class in taught {
            let node = builder.add_class(&class.id);
            builder.set_name(node, changes.renamed.get(&class.id).unwrap_or(&class.name));
        }
        for class in taught {
            let Placement::Below(parents) = &class.place else { continue };
            for parent in parents {
                let [parent, child] = [parent, &class.id].map(|id| builder.add_class(id));
                builder.add_edge(parent, child, None);
            }
        }
        let graph = Arc::new(builder.build()?.taxonomy);
        let mut positions = vec![None; graph.len()];
        for (position, class) in taught.iter().enumerate() {
            if let Some(node) = graph.find(&class.id) {
                positions[node as usize] = Some(position);
            }
        }
        let forgotten = graph.nodes().map(|class| changes.forgotten.contains(graph.id(class))).collect();
        Ok(Self { graph, training: info.classes.len(), root: info.root, forgotten, taught: positions })
    }

    /// What the model has of a class.
    pub(crate) fn kind(&self, class: Node) -> ClassKind {
        if (class as usize) < self.training && !self.forgotten[class as usize] {
            ClassKind::Training
        } else if self.taught[class as usize].is_some() {
            ClassKind::Taught
        } else {
            ClassKind::Untaught
        }
    }

    /// The classes whose samples are forgotten.
    pub(crate) fn forgotten(&self) -> Vec<Node> {
        self.graph.nodes().filter(|&class| self.forgotten[class as usize]).collect()
    }

    /// The position of a class among the taught ones.
    pub(crate) fn taught_position(&self, class: Node) -> Option<usize> {
        self.taught[class as usize]
    }

    /// The classes that can be an answer: those with a prototype, without the root.
    pub(crate) fn answers(&self) -> Vec<Node> {
        self.graph.nodes().filter(|&class| self.is_answer(class)).collect()
    }

    fn is_answer(&self, class: Node) -> bool {
        class != self.root && self.kind(class) != ClassKind::Untaught
    }

    /// The answers somewhere below a class.
    pub(crate) fn answers_below(&self, class: Node) -> Vec<Node> {
        let mut below = vec![false; self.graph.len()];
        below[class as usize] = true;
        for &node in self.graph.topological_order() {
            if self.graph.parents(node).iter().any(|&parent| below[parent as usize]) {
                below[node as usize] = true;
            }
        }
        let inside = |&node: &Node| node != class && below[node as usize] && self.is_answer(node);
        self.graph.nodes().filter(inside).collect()
    }

    /// The class a user means: by id, or by name where only one class has it.
    pub(crate) fn find(&self, text: &str) -> Result<Node> {
        if let Some(class) = self.graph.find(text) {
            return Ok(class);
        }
        let unclear = |reason: String| Error::Class { class: text.to_owned(), reason };
        match self.named(text)[..] {
            [class] => Ok(class),
            [] => Err(Error::NoSuchClass {
                class: text.to_owned(),
                reason: match self.nearest(text) {
                    Some(near) => format!("there is no such class; did you mean {near}?"),
                    None => "there is no such class".into(),
                },
            }),
            ref several => {
                Err(unclear(format!("several classes bear this name; {}", self.choose_from(several))))
            }
        }
    }

    /// The class a user means that can be an answer.
    pub(crate) fn find_answer(&self, text: &str) -> Result<Node> {
        // A name may be borne by classes that cannot be meant.
        let found = match self.graph.find(text) {
            Some(class) => class,
            None => {
                match self.named(text).into_iter().filter(|&class| self.is_answer(class)).collect::<Vec<_>>()
                    [..]
                {
                    [class] => class,
                    _ => self.find(text)?,
                }
            }
        };
        let refused = |reason: &str| Err(Error::Class { class: text.to_owned(), reason: reason.into() });
        match self.kind(found) {
            ClassKind::Untaught => refused("the model knows its place but no sample of it; teach it first"),
            _ if found == self.root => refused("it is the top class, which everything belongs to"),
            _ => Ok(found),
        }
    }

    /// The classes of this very name.
    pub(crate) fn named(&self, name: &str) -> Vec<Node> {
        self.graph.nodes().filter(|&class| self.graph.name(class) == name).collect()
    }

    /// "choose one of ..." with ids and parents, by which a person can tell classes of one name apart.
    pub(crate) fn choose_from(&self, classes: &[Node]) -> String {
        let described: Vec<String> = classes
            .iter()
            .map(|&class| match self.graph.parents(class) {
                [] => self.graph.id(class).to_owned(),
                [parent, ..] => format!("{} (below {})", self.graph.id(class), self.graph.name(*parent)),
            })
            .collect();
        format!("give the id: {}", described.join(", "))
    }

    /// The id or name most like a mistyped one, as a person reads it.
    pub(crate) fn nearest(&self, text: &str) -> Option<String> {
        let words = self.graph.nodes().flat_map(|class| [self.graph.name(class), self.graph.id(class)]);
        let near = nearest_name(text, words)?;
        let id = self.graph.find(near).or_else(|| self.named(near).first().copied());
        Some(match id.map(|class| self.graph.id(class)) {
            Some(id) if id != near => format!("`{near}` ({id})"),
            _ => format!("`{near}`"),
        })
    }
}
