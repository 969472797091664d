//! Which methods there are, and what each needs to be made.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Method, baseline, gnn, gpn, nearest, ppn, prior, protonet, uniform};
use crate::cosine_fit::CosineFit;
use crate::error::{ModelError, Result};
use crate::gnn::GnnConfig;
use crate::nearest_name::hint;
use crate::neighbourhood::SpanningTree;
use crate::prior::PriorConfig;
use crate::propagation::PropagationConfig;

/// The methods of this crate.
static BUILT_IN: [MethodKind; 8] = [
    nearest::KIND,
    protonet::KIND,
    gnn::KIND,
    baseline::KIND,
    ppn::KIND,
    uniform::KIND,
    gpn::KIND,
    prior::KIND,
];
/// Methods from elsewhere.
static REGISTERED: RwLock<Vec<&'static MethodKind>> = RwLock::new(Vec::new());

/// What is known of a method before it is made.
#[derive(Clone)]
pub struct MethodKind {
    /// Its name in settings.
    pub name: &'static str,
    /// Its name in tables.
    pub title: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Whether the weight of the prototype before propagation is chosen on validation tasks; otherwise it is 0.
    pub tunes_lambda: bool,
    /// What it needs of the other settings.
    pub needs: Needs,
    /// How many values it learns, apart from tensors with one row per training class; `None` if the number overflows. It limits
    /// what a model file of unknown origin can ask for.
    pub values: fn(settings: &MethodSettings, dim: usize) -> Option<usize>,
    /// Makes it for embeddings of length `dim` and so many training classes.
    pub make: MakeMethod,
}

/// Makes a method for embeddings of length `dim` and so many training classes.
pub type MakeMethod = fn(settings: &MethodSettings, dim: usize, classes: usize) -> Result<Box<dyn Method>>;

/// What a method needs of the settings that are not its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Needs {
    /// It works on samples as they are given: backbone `identity`.
    pub given_embeddings: bool,
    /// A fixed weight of the prototype before propagation in training.
    pub lambda: Option<f32>,
    /// It learns best by posteriors, from tasks with few samples and with many.
    pub posteriors: bool,
}

impl Needs {
    /// Whatever the settings say.
    pub const NOTHING: Self = Self { given_embeddings: false, lambda: None, posteriors: false };
}

/// The settings that methods are made of.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodSettings {
    /// Seed of first values.
    pub seed: u64,
    /// Answers of a task: its classes, and "other" where it is one.
    pub answers: usize,
    /// Whether the loss of a task moves the embeddings of its support samples too.
    pub through_prototypes: bool,
    /// What squared distances are multiplied with before the softmax.
    pub distance_scale: f32,
    /// Attention, gate and steps.
    pub propagation: PropagationConfig,
    /// How the graph of a task is thinned.
    pub spanning_tree: SpanningTree,
    /// The graph network.
    pub gnn: GnnConfig,
    /// The classifier fitted to each task.
    pub baseline: CosineFit,
    /// The graph prior.
    pub prior: PriorConfig,
}

impl Default for MethodSettings {
    fn default() -> Self {
        Self {
            seed: 0,
            answers: 5,
            through_prototypes: true,
            distance_scale: 1.0,
            propagation: PropagationConfig::default(),
            spanning_tree: SpanningTree::default(),
            gnn: GnnConfig::default(),
            baseline: CosineFit::default(),
            prior: PriorConfig::default(),
        }
    }
}

impl MethodKind {
    /// Every method: those of this crate, then the registered ones.
    pub fn all() -> Vec<&'static Self> {
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        BUILT_IN.iter().chain(registered.iter().copied()).collect()
    }

    /// The method of a name.
    pub fn named(name: &str) -> Result<&'static Self> {
        let all = Self::all();
        all.iter().find(|kind| kind.name == name).copied().ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(|kind| kind.name).collect();
            ModelError::UnknownMethod {
                name: name.to_owned(),
                hint: hint(name, &known),
                known: known.join(", "),
            }
        })
    }

    /// Registers a method by its name, for settings, model files and experiments. A name that is taken is an error.
    pub fn register(self) -> Result<()> {
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        if BUILT_IN.iter().chain(registered.iter().copied()).any(|kind| kind.name == self.name) {
            return Err(ModelError::MethodExists { name: self.name });
        }
        registered.push(Box::leak(Box::new(self)));
        Ok(())
    }
}

/// A method by its name, as settings hold it: one that exists.
#[derive(Clone, Copy)]
pub struct MethodRef(&'static MethodKind);

impl MethodRef {
    /// The method of a name.
    pub fn named(name: &str) -> Result<Self> {
        MethodKind::named(name).map(Self)
    }

    /// What it is.
    pub fn kind(self) -> &'static MethodKind {
        self.0
    }
}

impl Default for MethodRef {
    fn default() -> Self {
        Self(const { &gpn::KIND })
    }
}

impl PartialEq for MethodRef {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for MethodRef {}

impl fmt::Debug for MethodRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Display for MethodRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl Serialize for MethodRef {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.serialize_str(self.0.name)
    }
}

impl<'de> Deserialize<'de> for MethodRef {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        Self::named(&name).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_methods_are_proposed() {
        assert_eq!(MethodKind::named("ppn").unwrap().title, "PPN");
        let message = MethodKind::named("protonets").err().unwrap().to_string();
        assert!(message.contains("did you mean `protonet`?"), "{message}");
        assert!(message.contains("(known: nearest, protonet"), "{message}");
    }

    #[test]
    fn a_method_from_elsewhere_is_known_by_its_name() {
        let kind = MethodKind { name: "mine", ..protonet::KIND };
        kind.clone().register().unwrap();
        assert_eq!(MethodRef::named("mine").unwrap().kind().title, protonet::KIND.title);
        assert!(MethodKind::all().iter().any(|kind| kind.name == "mine"));
        assert!(kind.register().unwrap_err().to_string().contains("`mine`"));
        assert!(MethodKind { name: "gpn", ..protonet::KIND }.register().is_err());
    }
}
