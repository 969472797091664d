//! Teaching: new classes from a few samples, without training.

use gpn_taxonomy::Node;

use crate::class_graph::{ClassGraph, ClassKind};
use crate::classifier::Classifier;
use crate::error::TrainError;
use crate::sample::Sample;
use crate::taught::{Place, TaughtClass};

/// Where a class to be taught shall stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Placing {
    /// Where the class graph of the model has a class of this id or name; otherwise linked to the nearest classes.
    #[default]
    Found,
    /// Below these classes, by id, or by a name that one class alone bears.
    Below(Vec<String>),
    /// Linked to the nearest training classes, even where the class graph knows better.
    Nearest,
}

/// What is to be done with a class that has been taught before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Again {
    /// It is an error.
    #[default]
    Refuse,
    /// The samples join those it has.
    More,
    /// It is forgotten and taught anew.
    Replace,
}

/// A class and samples of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Lesson {
    /// Id or name of the class; a new name becomes its id as well.
    pub class: String,
    /// Where it shall stand.
    pub place: Placing,
    /// Its samples.
    pub samples: Vec<Sample>,
}

/// What came of a lesson.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Learned {
    /// Id of the class.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Where it stands.
    pub place: Place,
    /// Samples it has now.
    pub samples: usize,
    /// Samples given that it had already; they count once.
    pub repeated: usize,
}

impl Classifier {
    /// Teaches classes. Either all lessons are learned or, on an error, none.
    ///
    /// Samples of a class may come in one lesson or in several, in any order: the result is the same to the last bit.
    pub fn teach(&mut self, lessons: &[Lesson], again: Again) -> Result<Vec<Learned>, TrainError> {
        let mut classes: Vec<TaughtClass> = Vec::with_capacity(lessons.len());
        for lesson in lessons {
            let class = self.pupil(lesson, again)?;
            if classes.iter().any(|other| other.id == class.id) {
                return Err(fault(lesson, "it is given twice; give all its samples in one lesson"));
            }
            if lesson.samples.is_empty() {
                return Err(fault(lesson, "there are no samples of it; give at least one"));
            }
            classes.push(class);
        }
        for (number, lesson) in lessons.iter().enumerate() {
            if let Placing::Below(parents) = &lesson.place {
                let mut ids = Vec::with_capacity(parents.len());
                for parent in parents {
                    ids.push(self.parent(lesson, parent, lessons, &classes)?);
                }
                ids.sort();
                ids.dedup();
                classes[number].place = Place::Below(ids);
            }
        }
        let mut taught = self.model.info.taught.clone();
        taught.retain(|old| classes.iter().all(|class| class.id != old.id));
        let places: Vec<&TaughtClass> = taught.iter().chain(&classes).collect();
        self.check_parents(&places)?;

        let samples: Vec<&Sample> = lessons.iter().flat_map(|lesson| &lesson.samples).collect();
        let mut embeddings = self.embed_all(&samples)?.into_iter();
        let mut learned = Vec::with_capacity(lessons.len());
        for (class, lesson) in classes.iter_mut().zip(lessons) {
            let mut repeated = 0;
            for embedding in embeddings.by_ref().take(lesson.samples.len()) {
                repeated += usize::from(!class.add(&embedding?));
            }
            learned.push(Learned {
                id: class.id.clone(),
                name: class.name.clone(),
                place: class.place.clone(),
                samples: class.samples(),
                repeated,
            });
        }
        taught.extend(classes);
        taught.sort_by(|a, b| a.id.cmp(&b.id));
        self.graph = ClassGraph::new(&self.model.info, &taught)?;
        self.model.info.taught = taught;
        Ok(learned)
    }

    /// The class a lesson is about, as it is before the lesson; parents are not yet resolved.
    fn pupil(&self, lesson: &Lesson, again: Again) -> Result<TaughtClass, TrainError> {
        let text = lesson.class.trim();
        if text.is_empty() || text.contains(char::is_control) {
            return Err(fault(lesson, "a class needs a name of visible characters"));
        }
        let graph = &self.graph.graph;
        let found = self.known_class(lesson, text)?;
        let taught = found.and_then(|class| self.graph.taught_position(class));
        if let Some(taught) = taught.map(|position| &self.model.info.taught[position]) {
            match again {
                Again::Refuse => {
                    let count = taught.samples();
                    let reason = format!(
                        "it is already taught with {count} sample{}; --more adds to them, --replace forgets them",
                        if count == 1 { "" } else { "s" }
                    );
                    return Err(fault(lesson, &reason));
                }
                Again::More if lesson.place != Placing::Found => {
                    return Err(fault(lesson, "it has its place already; --replace teaches it anew"));
                }
                Again::More => return Ok(taught.clone()),
                Again::Replace => {}
            }
        }
        let known = self.model.info.classes.len() + self.model.info.held_out.len();
        let in_graph = found.filter(|&class| (class as usize) < known);
        let place = match (&lesson.place, in_graph) {
            (Placing::Found, Some(_)) => Place::InGraph,
            (Placing::Below(_), Some(class)) if !graph.parents(class).is_empty() => {
                let parents: Vec<&str> =
                    graph.parents(class).iter().map(|&parent| graph.id(parent)).collect();
                let reason = format!(
                    "the class graph of the model has it below {}; leave the parents out, or give it another name",
                    parents.join(", ")
                );
                return Err(fault(lesson, &reason));
            }
            _ => Place::Nearest,
        };
        let (id, name) = found.map_or((text, text), |class| (graph.id(class), graph.name(class)));
        Ok(TaughtClass::new(id.to_owned(), name.to_owned(), place, self.model.memory.dim))
    }

    /// The class of the graph that a lesson means, if it means one.
    fn known_class(&self, lesson: &Lesson, text: &str) -> Result<Option<Node>, TrainError> {
        let kind = |class: Node| self.graph.kind(class);
        if let Some(class) = self.graph.graph.find(text) {
            return match kind(class) {
                ClassKind::Training => {
                    Err(fault(lesson, "the model was trained with it; give the new class another name"))
                }
                _ => Ok(Some(class)),
            };
        }
        let named = self.graph.named(text);
        let of = |wanted: ClassKind| named.iter().copied().filter(move |&class| kind(class) == wanted);
        if let Some(class) = of(ClassKind::Taught).next() {
            return Ok(Some(class));
        }
        if let Some(class) = of(ClassKind::Training).next() {
            let id = self.graph.graph.id(class);
            return Err(fault(
                lesson,
                &format!(
                    "it is the name of {id}, which the model was trained with; give the new class another name"
                ),
            ));
        }
        match named[..] {
            // Another class of this name stands elsewhere in the graph.
            _ if lesson.place != Placing::Found => Ok(None),
            [] => Ok(None),
            [class] => Ok(Some(class)),
            ref several => Err(fault(
                lesson,
                &format!("several classes of the graph bear this name; {}", self.graph.choose_from(several)),
            )),
        }
    }

    /// The id of a parent, which may be a class of another lesson.
    fn parent(
        &self,
        lesson: &Lesson,
        parent: &str,
        lessons: &[Lesson],
        classes: &[TaughtClass],
    ) -> Result<String, TrainError> {
        if let Some(number) = lessons.iter().position(|other| other.class.trim() == parent) {
            return Ok(classes[number].id.clone());
        }
        match self.graph.find(parent) {
            Ok(class) => Ok(self.graph.graph.id(class).to_owned()),
            Err(TrainError::Class { reason, .. }) => {
                Err(fault(lesson, &format!("parent `{parent}`: {reason}")))
            }
            Err(other) => Err(other),
        }
    }

    /// Refuses parents that have no place themselves, and cycles.
    fn check_parents(&self, taught: &[&TaughtClass]) -> Result<(), TrainError> {
        let unplaced: Vec<&str> = taught
            .iter()
            .filter(|class| class.place == Place::Nearest)
            .map(|class| class.id.as_str())
            .filter(|id| {
                let known = self.model.info.classes.len() + self.model.info.held_out.len();
                self.graph.graph.find(id).is_none_or(|class| class as usize >= known)
            })
            .collect();
        for class in taught {
            let Place::Below(parents) = &class.place else { continue };
            if let Some(parent) = parents.iter().find(|parent| unplaced.contains(&parent.as_str())) {
                return Err(TrainError::Class {
                    class: class.id.clone(),
                    reason: format!(
                        "its parent `{parent}` has no parents itself; teach that one with parents, or choose another"
                    ),
                });
            }
        }
        let taught: Vec<TaughtClass> = taught.iter().copied().cloned().collect();
        ClassGraph::new(&self.model.info, &taught).map(drop)
    }
}

fn fault(lesson: &Lesson, reason: &str) -> TrainError {
    TrainError::Class { class: lesson.class.clone(), reason: reason.to_owned() }
}
