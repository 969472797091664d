//! Classes of one's own: fit, test, teach and predict, on classes that the network never saw.

use std::path::{Path, PathBuf};

use gpn_data::benchmark::{Benchmark, Part, Split, Store};
use gpn_data::format::image::RgbImage;
use gpn_data::source::Leaf;
use gpn_taxonomy::Node;
use gpn_train::{Embeddings, TrainedModel};

use crate::classifier::{Classifier, IfTaught, NewClass, Parents, PredictRequest, Prediction};
use crate::error::{Error, Result};
use crate::fit::{FitRequest, FittedOn, fit_embedded};
use crate::sample::Sample;
use crate::watch::Watch;

/// How sure an answer is at least that is as deep as sure.
pub(super) const CONFIDENCE: f64 = 0.8;
/// Classes that come later.
const LATER: usize = 5;
/// Images that each of them is taught with.
const TAUGHT: usize = 5;

/// What a fit to classes of one's own reached.
pub struct Own {
    /// Classes that were fitted.
    pub classes: usize,
    /// Images that were fitted, and others that tested.
    pub images: [usize; 2],
    /// Share of the tested ones answered rightly by the model, and by the nearest mean.
    pub accuracy: f64,
    /// The same of the nearest mean.
    pub nearest_mean: f64,
    /// Share of answers as deep as sure that are right, and how many of all are leaves.
    pub sure: f64,
    /// Share of them that are a leaf.
    pub leaves: f64,
    /// Names of the classes that were taught later.
    pub taught: Vec<String>,
    /// Images that each of them was taught with.
    pub taught_with: usize,
    /// Share of their other images answered rightly among all classes.
    pub new: f64,
    /// Share of those of the other classes, now.
    pub known: f64,
    /// The model file.
    pub model: PathBuf,
    pub(super) shown: [Vec<Shown>; 2],
}

/// An image with answers.
pub(super) struct Shown {
    /// Its row in the benchmark.
    pub(super) sample: u32,
    /// Name of its class.
    pub(super) class: String,
    /// Label, answer, and whether it is right.
    pub(super) answers: Vec<(&'static str, String, bool)>,
}

/// A class with its images, every other one of which tests.
struct OwnClass {
    node: Node,
    fit: Vec<u32>,
    test: Vec<u32>,
}

/// Fits, tests, teaches and predicts with the leaf classes that the network never saw, and writes the model to `file`.
pub(super) fn own(benchmark: &Benchmark, model: TrainedModel, file: &Path, watch: &Watch<'_>) -> Result<Own> {
    let taxonomy = benchmark.taxonomy();
    let classes: Vec<OwnClass> = benchmark
        .classes()
        .iter()
        .zip(0..)
        .filter(|(class, node)| {
            matches!(class.split, Split::Close | Split::Far) && taxonomy.children(*node).is_empty()
        })
        .map(|(_, node)| {
            let samples = benchmark.samples(node as usize, Part::Test);
            let half = |at: usize| samples.iter().copied().skip(at).step_by(2).collect();
            OwnClass { node, fit: half(0), test: half(1) }
        })
        .filter(|class| !class.test.is_empty())
        .collect();
    let (later, classes) = divide(benchmark, classes);
    if later.is_empty() {
        return Err(Error::input("the demo", "it has no class to teach"));
    }

    let all: Vec<u32> =
        classes.iter().flat_map(|class| class.fit.iter().chain(&class.test)).copied().collect();
    let embedded = Embeddings::of_samples(&model.network.embedder, benchmark.store(), all, watch.stop())?;
    let dim = model.network.embedder.embedding_len();
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for (class, label) in classes.iter().zip(0..) {
        for &sample in &class.fit {
            values.extend_from_slice(embedded.of(sample));
            labels.push(label);
        }
    }
    let nearest_mean = nearest_mean(&classes, &embedded, dim);
    let leaf = |class: &OwnClass| Leaf {
        id: taxonomy.id(class.node).to_owned(),
        name: Some(taxonomy.name(class.node).to_owned()),
    };
    let leaves: Vec<Leaf> = classes.iter().map(leaf).collect();
    let fitted = labels.len();
    let base = FittedOn::Network(Box::new(model));
    let request = FitRequest::default();
    let classifier =
        fit_embedded((values, dim), labels, &leaves, Some(taxonomy), &request, base, watch)?.classifier;

    let ask = PredictRequest { top: 1, confidence: Some(CONFIDENCE), ..PredictRequest::default() };
    let tested: Vec<(Node, u32)> =
        classes.iter().flat_map(|class| class.test.iter().map(|&sample| (class.node, sample))).collect();
    let new: Vec<(Node, u32)> =
        later.iter().flat_map(|class| class.test.iter().map(|&sample| (class.node, sample))).collect();
    let answer = |of: &[(Node, u32)]| -> Result<Vec<Prediction>> {
        let samples: Vec<Sample> =
            of.iter().map(|&(_, sample)| image(benchmark.store(), sample)).collect::<Result<_>>()?;
        classifier.predict(&samples, &ask, watch)?.into_iter().collect()
    };
    let (known_before, new_before) = (answer(&tested)?, answer(&new)?);
    let taught: Vec<NewClass> = later
        .iter()
        .map(|class| {
            Ok(NewClass {
                class: taxonomy.id(class.node).to_owned(),
                parents: Parents::FromGraph,
                samples: class
                    .fit
                    .iter()
                    .take(TAUGHT)
                    .map(|&sample| image(benchmark.store(), sample))
                    .collect::<Result<_>>()?,
            })
        })
        .collect::<Result<_>>()?;
    classifier.teach(&taught, IfTaught::Refuse, watch)?;
    classifier.save(file)?;
    let (known_after, new_after) = (answer(&tested)?, answer(&new)?);

    let right = |of: &[(Node, u32)], answers: &[Prediction]| {
        let right = of.iter().zip(answers).filter(|((node, _), answer)| is_right(taxonomy.id(*node), answer));
        right.count() as f64 / of.len().max(1) as f64
    };
    let is_sure = |((node, _), answer): &(&(Node, u32), &Prediction)| {
        sure_is_right(&classifier, *node, benchmark, answer)
    };
    let sure = tested.iter().zip(&known_before).filter(is_sure).count() as f64 / tested.len().max(1) as f64;
    let is_leaf = |answer: &&Prediction| {
        answer.sure.as_ref().and_then(|sure| sure.path.last()).is_some_and(|deep| {
            taxonomy.find(&deep.id).is_some_and(|node| taxonomy.children(node).is_empty())
        })
    };
    let leaf_answers = known_before.iter().filter(is_leaf).count() as f64 / tested.len().max(1) as f64;
    let known_shown = tested.iter().zip(&known_before).step_by(tested.len().div_ceil(14).max(1)).map(
        |(&(node, sample), answer)| Shown {
            sample,
            class: taxonomy.name(node).to_owned(),
            answers: vec![
                ("answer", named(answer), is_right(taxonomy.id(node), answer)),
                ("sure", sure_named(answer), sure_is_right(&classifier, node, benchmark, answer)),
            ],
        },
    );
    let both = new.iter().zip(new_before.iter().zip(&new_after));
    let new_shown =
        both.step_by(new.len().div_ceil(14).max(1)).map(|(&(node, sample), (before, after))| Shown {
            sample,
            class: taxonomy.name(node).to_owned(),
            answers: vec![
                ("before", named(before), is_right(taxonomy.id(node), before)),
                ("after", named(after), is_right(taxonomy.id(node), after)),
            ],
        });
    Ok(Own {
        classes: classes.len(),
        images: [fitted, tested.len()],
        accuracy: right(&tested, &known_before),
        nearest_mean,
        sure,
        leaves: leaf_answers,
        taught: later.iter().map(|class| taxonomy.name(class.node).to_owned()).collect(),
        taught_with: TAUGHT,
        new: right(&new, &new_after),
        known: right(&tested, &known_after),
        model: file.to_owned(),
        shown: [known_shown.collect(), new_shown.collect()],
    })
}

/// The classes that come later, and those that are fitted: later ones have siblings, and lie apart in the list.
fn divide(benchmark: &Benchmark, classes: Vec<OwnClass>) -> (Vec<OwnClass>, Vec<OwnClass>) {
    let parent = |class: &OwnClass| benchmark.taxonomy().parents(class.node).first().copied();
    let has_sibling =
        |class: &OwnClass| classes.iter().filter(|other| parent(other) == parent(class)).count() > 1;
    let with_siblings: Vec<Node> =
        classes.iter().filter(|class| has_sibling(class)).map(|class| class.node).collect();
    let step = with_siblings.len().div_ceil(LATER).max(1);
    let later: Vec<Node> = with_siblings.into_iter().step_by(step).collect();
    classes.into_iter().partition(|class| later.contains(&class.node))
}

fn is_right(id: &str, answer: &Prediction) -> bool {
    answer.classes.first().is_some_and(|class| class.id == id)
}

fn named(answer: &Prediction) -> String {
    answer.classes.first().map_or_else(String::new, |class| class.name.clone())
}

/// Whether the answer that is as deep as sure is the class or one above it.
fn sure_is_right(classifier: &Classifier, node: Node, benchmark: &Benchmark, answer: &Prediction) -> bool {
    let graph = classifier.graph();
    let Some(mut above) = graph.find(benchmark.taxonomy().id(node)).map(|node| vec![node]) else {
        return false;
    };
    let Some(deep) = answer.sure.as_ref().and_then(|sure| sure.path.last()) else { return true };
    while let Some(node) = above.pop() {
        if graph.id(node) == deep.id {
            return true;
        }
        above.extend_from_slice(graph.parents(node));
    }
    false
}

fn sure_named(answer: &Prediction) -> String {
    let deep = answer.sure.as_ref().and_then(|sure| sure.path.last());
    deep.map_or_else(|| "anything".to_owned(), |class| class.name.clone())
}

fn image(store: &Store, sample: u32) -> Result<Sample> {
    let image = match store {
        Store::Images { size, array } => RgbImage::new(*size, *size, array.row(sample as usize).to_vec()),
        Store::Embeddings { .. } | Store::Empty => None,
    };
    let image = image.ok_or_else(|| Error::input("the benchmark", "it holds no images"))?;
    Ok(Sample::pixels(format!("image {sample}"), image))
}

/// Share of the images that test whose class has the nearest mean of those that are fitted.
fn nearest_mean(classes: &[OwnClass], embedded: &Embeddings, dim: usize) -> f64 {
    let mean = |class: &OwnClass| -> Vec<f32> {
        let mut mean = vec![0.0; dim];
        for &sample in &class.fit {
            mean.iter_mut().zip(embedded.of(sample)).for_each(|(sum, value)| *sum += value);
        }
        for sum in &mut mean {
            *sum /= class.fit.len().max(1) as f32;
        }
        mean
    };
    let means: Vec<Vec<f32>> = classes.iter().map(mean).collect();
    let distance = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
    let (mut right, mut all) = (0, 0);
    for (truth, class) in classes.iter().enumerate() {
        for &sample in &class.test {
            let own = embedded.of(sample);
            let nearest = (0..means.len())
                .min_by(|&a, &b| distance(own, &means[a]).total_cmp(&distance(own, &means[b])));
            right += usize::from(nearest == Some(truth));
            all += 1;
        }
    }
    right as f64 / f64::from(all.max(1) as u32)
}
