//! What is kept of a class, and how a classifier is made from it.

use std::collections::BTreeMap;

use gpn::train::Placement;
use gpn::{Classifier, Error, IfTaught, NewClass, Parents, Sample, Watch};
use serde::{Deserialize, Serialize};

/// What has become of a class since the model file was opened. The default is a class as in the model file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Kept {
    /// Its samples.
    pub(crate) samples: Samples,
    /// Its parents, where its place in the graph is another than that of the model file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) moved: Option<Vec<String>>,
    /// Its name, where it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) renamed: Option<String>,
}

/// The samples of a class, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Samples {
    /// Those of the model file, or none.
    #[default]
    AsInFile,
    /// The model file has some, and they were forgotten.
    Forgotten,
    /// Those of the model file, and these.
    Added {
        /// The added ones.
        samples: Vec<u64>,
    },
    /// These alone.
    Own {
        /// Where the class stands.
        place: Placement,
        /// All of them.
        samples: Vec<u64>,
    },
}

impl Kept {
    /// The samples that are kept of a class.
    pub(crate) fn numbers(&self) -> &[u64] {
        match &self.samples {
            Samples::AsInFile | Samples::Forgotten => &[],
            Samples::Added { samples } | Samples::Own { samples, .. } => samples,
        }
    }

    /// `None` where there is nothing to keep.
    pub(crate) fn worth_keeping(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

/// All classes of which something is kept, by id.
pub(crate) type States = BTreeMap<String, Kept>;

/// One step from the model file to what is kept.
enum Step {
    Teach(Parents, IfTaught, Vec<Sample>),
    Move(Vec<String>),
    Rename(String),
    Forget,
}

/// The steps that a class still has to take, the next one last.
struct Way<'a> {
    id: &'a str,
    steps: Vec<Step>,
}

impl Way<'_> {
    /// Takes as many steps as can be taken now. `refused` is told why the next one cannot.
    fn go(&mut self, classifier: &Classifier, refused: &mut Option<Error>) -> bool {
        let before = self.steps.len();
        while let Some(step) = self.steps.last() {
            let taken = match step {
                Step::Teach(parents, if_taught, samples) => {
                    let class = NewClass {
                        class: self.id.to_owned(),
                        parents: parents.clone(),
                        samples: samples.clone(),
                    };
                    classifier.teach(&[class], *if_taught, &Watch::default()).map(drop)
                }
                Step::Move(parents) => classifier.move_class(self.id, parents),
                Step::Rename(name) => classifier.rename(self.id, name),
                Step::Forget => classifier.forget(self.id),
            };
            match taken {
                Ok(()) => drop(self.steps.pop()),
                Err(error) => {
                    *refused = Some(error);
                    break;
                }
            }
        }
        self.steps.len() < before
    }
}

/// The classifier that the model file and everything kept add up to. The same states give the same classifier, to the last bit.
/// `in_graph` tells whether the model file has a class in its graph.
pub(crate) fn materialise<E: From<Error>>(
    base: &Classifier,
    states: &States,
    in_graph: impl Fn(&str) -> bool,
    mut embedding: impl FnMut(u64) -> Result<Vec<f32>, E>,
) -> Result<Classifier, E> {
    let classifier = base.fork();
    let mut ways = Vec::with_capacity(states.len());
    for (id, kept) in states {
        let sample = |&number: &u64| Ok(Sample::embedded(format!("sample {number}"), embedding(number)?));
        let samples: Vec<Sample> = kept.numbers().iter().map(sample).collect::<Result<_, E>>()?;
        let mut steps = Vec::new();
        // A place in the graph comes before samples, which may bring another.
        steps.extend(kept.moved.clone().map(Step::Move));
        match &kept.samples {
            Samples::AsInFile => {}
            Samples::Forgotten => steps.push(Step::Forget),
            Samples::Added { .. } => steps.push(Step::Teach(Parents::FromGraph, IfTaught::Add, samples)),
            Samples::Own { place, .. } => match place {
                Placement::InGraph => steps.push(Step::Teach(Parents::FromGraph, IfTaught::Replace, samples)),
                Placement::Nearest => steps.push(Step::Teach(Parents::Unknown, IfTaught::Replace, samples)),
                // A class of the graph has got this place by being moved.
                Placement::Below(parents) if in_graph(id) => {
                    steps.push(Step::Teach(Parents::Unknown, IfTaught::Replace, samples));
                    steps.push(Step::Move(parents.clone()));
                }
                Placement::Below(parents) => {
                    steps.push(Step::Teach(Parents::Named(parents.clone()), IfTaught::Replace, samples));
                }
            },
        }
        steps.extend(kept.renamed.clone().map(Step::Rename));
        steps.reverse();
        ways.push(Way { id, steps });
    }
    teach_at_once(&classifier, &mut ways);
    // A step may need that of another class before it: they are tried until none is left, or none can be taken.
    loop {
        let (mut went, mut refused) = (false, None);
        for way in &mut ways {
            went |= way.go(&classifier, &mut refused);
        }
        match refused {
            None => return Ok(classifier),
            Some(error) if !went => return Err(error.into()),
            Some(_) => {}
        }
    }
}

/// Teaches all classes whose first step that is, in one call, as each call makes a version. Where one of them waits for another,
/// nothing is done, and they go one by one.
fn teach_at_once(classifier: &Classifier, ways: &mut [Way<'_>]) {
    let first = |way: &Way<'_>| match way.steps.last() {
        Some(Step::Teach(parents, IfTaught::Replace, samples)) => {
            Some(NewClass { class: way.id.to_owned(), parents: parents.clone(), samples: samples.clone() })
        }
        _ => None,
    };
    let classes: Vec<NewClass> = ways.iter().filter_map(first).collect();
    if !classes.is_empty() && classifier.teach(&classes, IfTaught::Replace, &Watch::default()).is_ok() {
        for way in ways {
            if matches!(way.steps.last(), Some(Step::Teach(_, IfTaught::Replace, _))) {
                way.steps.pop();
            }
        }
    }
}
