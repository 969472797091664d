//! A catalogue of one's own: fitted, asked, taught, changed, saved and opened again.

use gpn::data::rng::{Purpose, Stream};
use gpn::model::prior::MetricConfig;
use gpn::taxonomy::{Taxonomy, TaxonomyBuilder};
use gpn::{
    ArraySource, ClassTexts, Classifier, Device, FitRequest, Fitted, IfTaught, Level, NewClass, Parents,
    PredictRequest, Recipe, Sample, Watch, fit,
};

const DIM: usize = 16;
const GROUPS: usize = 4;
const KINDS: usize = 4;

/// Kinds of one group are near each other; one direction scatters widely and says nothing.
fn row(group: usize, kind: usize, number: usize) -> Vec<f32> {
    let centre = |at: usize, seed: u64, width: f32| {
        width * Stream::new(seed, Purpose::Task, at as u64).normal_pair().0
    };
    let mut noise = Stream::new(9, Purpose::Task, (group * 1000 + kind * 100 + number) as u64);
    (0..DIM)
        .map(|d| {
            let of_group = centre(group * DIM + d, 1, 3.0);
            let of_kind = centre((group * KINDS + kind) * DIM + d, 2, 1.2);
            let spread = if d == 0 { 12.0 } else { 0.8 };
            of_group + of_kind + spread * noise.normal_pair().0
        })
        .collect()
}

fn taxonomy() -> Taxonomy {
    let mut builder = TaxonomyBuilder::new();
    let top = builder.add_class("things");
    for group in 0..GROUPS {
        let parent = builder.add_class(&format!("group{group}"));
        builder.add_edge(top, parent, None);
        for kind in 0..KINDS {
            let child = builder.add_class(&format!("kind{group}{kind}"));
            builder.add_edge(parent, child, None);
        }
    }
    builder.build().unwrap().taxonomy
}

/// So many samples of each class but the last of every group, which is left out where `all` is false.
fn fitted(samples: usize, all: bool) -> Fitted {
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for group in 0..GROUPS {
        for kind in 0..KINDS - usize::from(!all) {
            for number in 0..samples {
                values.extend(row(group, kind, number));
                labels.push(format!("kind{group}{kind}"));
            }
        }
    }
    let source = ArraySource::embeddings(values, DIM, &labels).unwrap();
    fit(&source, Some(&taxonomy()), &FitRequest::default(), &Watch::default()).unwrap()
}

fn sample(group: usize, kind: usize, number: usize) -> Sample {
    Sample::embedding(format!("{group} {kind} {number}"), row(group, kind, number))
}

/// Share of new samples that are answered rightly.
fn accuracy(classifier: &Classifier) -> f64 {
    let (mut right, mut all) = (0, 0);
    for group in 0..GROUPS {
        for kind in 0..KINDS {
            let asked: Vec<Sample> = (50..60).map(|number| sample(group, kind, number)).collect();
            for answer in classifier.predict(&asked, &PredictRequest::default(), &Watch::default()).unwrap() {
                right += usize::from(answer.unwrap().classes[0].id == format!("kind{group}{kind}"));
                all += 1;
            }
        }
    }
    f64::from(right as u32) / f64::from(all as u32)
}

fn told(classifier: &Classifier, sample: &Sample, request: &PredictRequest) -> gpn::Prediction {
    classifier.predict(std::slice::from_ref(sample), request, &Watch::default()).unwrap().remove(0).unwrap()
}

#[test]
fn it_beats_the_nearest_mean_and_says_how_well_it_does() {
    let Fitted { classifier, report } = fitted(20, true);
    let (own, mean) = (report.accuracy.unwrap(), report.nearest_mean.unwrap());
    assert!(own > mean + 0.1, "{own} {mean}");
    assert!((accuracy(&classifier) - own).abs() < 0.1, "{} {own}", accuracy(&classifier));
    assert!(report.calibration_error.unwrap() < 0.1);
    assert_eq!((report.classes, report.samples), (GROUPS * KINDS, 20 * GROUPS * KINDS));
    assert_eq!(report.new_classes.len(), 3);
}

#[test]
fn what_is_saved_answers_with_the_same_bits() {
    let Fitted { classifier, .. } = fitted(12, true);
    let again = Classifier::from_bytes(&classifier.to_bytes().unwrap(), "again", &Device::cpu()).unwrap();
    let request = PredictRequest { confidence: Some(0.8), explain: true, ..PredictRequest::default() };
    for number in 50..55 {
        let sample = sample(1, 2, number);
        assert_eq!(told(&classifier, &sample, &request), told(&again, &sample, &request));
    }
    assert_eq!(classifier.to_bytes().unwrap(), again.to_bytes().unwrap());
    // One by one and together.
    let rows: Vec<f32> = (50..90).flat_map(|number| row(2, 1, number)).collect();
    let predictor = again.predictor(&PredictRequest::default()).unwrap();
    let together = predictor.candidates().probabilities(&rows).unwrap();
    let alone: Vec<f32> =
        rows.chunks_exact(DIM).flat_map(|row| predictor.candidates().probabilities(row).unwrap()).collect();
    assert_eq!(together, alone);
    // Ranked and as a table.
    let first = predictor.candidates().rank(&rows[..DIM], usize::MAX);
    assert_eq!(first.len(), GROUPS * KINDS);
    let (ranked, table): (Vec<f64>, Vec<f64>) =
        first.iter().map(|ranked| (ranked.probability, f64::from(together[ranked.class]))).unzip();
    assert_eq!(ranked, table);
}

#[test]
fn threads_do_not_change_a_bit() {
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut fitted = pool.install(|| fitted(11, true));
        fitted.report.seconds = 0.0;
        fitted.report
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn a_class_taught_later_is_found_with_one_sample() {
    let Fitted { classifier, .. } = fitted(20, false);
    let untaught = accuracy(&classifier);
    for group in 0..GROUPS {
        let class = format!("kind{group}{}", KINDS - 1);
        let samples = vec![sample(group, KINDS - 1, 0)];
        let new = NewClass { class, parents: Parents::FromGraph, samples };
        classifier.teach(&[new], IfTaught::Refuse, &Watch::default()).unwrap();
    }
    assert!(accuracy(&classifier) > untaught + 0.08, "{untaught} {}", accuracy(&classifier));
}

#[test]
fn answers_are_as_deep_as_sure() {
    let Fitted { classifier, .. } = fitted(20, true);
    let sure = |confidence| {
        let request = PredictRequest { confidence: Some(confidence), ..PredictRequest::default() };
        let mut depth = 0;
        let mut right = 0;
        for number in 50..70 {
            let sure = told(&classifier, &sample(3, 1, number), &request).sure.unwrap();
            assert!(sure.path.is_empty() || sure.probability >= confidence);
            depth += sure.path.len();
            right += usize::from(["kind31", "group3", "things"].contains(&sure.id.as_str()));
        }
        (depth, right)
    };
    let (bold, cautious) = (sure(0.3), sure(0.99));
    assert!(bold.0 >= cautious.0 && cautious.1 >= bold.1, "{bold:?} {cautious:?}");
    assert!(cautious.1 >= 19);
    // At the first level there are groups only, and their probabilities add up.
    let request = PredictRequest { level: Level::Depth(1), top: 9, ..PredictRequest::default() };
    let groups = told(&classifier, &sample(3, 1, 50), &request).classes;
    assert_eq!(groups.len(), GROUPS);
    assert!((groups.iter().map(|group| group.probability).sum::<f64>() - 1.0).abs() < 1e-5);
    let way: Vec<&str> = groups[0].path.iter().map(|class| class.id.as_str()).collect();
    assert_eq!(way, [groups[0].id.as_str()]);
}

#[test]
fn what_is_like_no_class_is_called_unknown() {
    let Fitted { classifier, .. } = fitted(20, true);
    let unknown = |values: Vec<f32>| {
        let request = PredictRequest::default();
        told(&classifier, &Sample::embedding("x", values), &request).unknown.unwrap().is_unknown
    };
    let known = (50..90).filter(|&number| unknown(row(0, 0, number))).count();
    assert!(known <= 8, "{known} of 40");
}

#[test]
fn classes_are_changed_and_the_change_is_kept() {
    let Fitted { classifier, .. } = fitted(20, true);
    let entry = |classifier: &Classifier, id: &str| {
        classifier.classes().into_iter().find(|entry| entry.id == id).unwrap()
    };
    classifier.rename("kind00", "first kind").unwrap();
    classifier.move_class("kind01", &["group2".into()]).unwrap();
    let refused = classifier.move_class("group2", &["kind01".into()]).unwrap_err().to_string();
    assert!(refused.contains("is below it"), "{refused}");
    // A class that it was fitted with is taught more, and forgotten.
    let more = || NewClass {
        class: "kind02".into(),
        parents: Parents::FromGraph,
        samples: vec![sample(0, 2, 30), sample(0, 2, 31)],
    };
    assert!(classifier.teach(&[more()], IfTaught::Refuse, &Watch::default()).is_err());
    let taught = classifier.teach(&[more()], IfTaught::Add, &Watch::default()).unwrap();
    assert_eq!(taught[0].samples, 22);
    classifier.forget("kind03").unwrap();
    let again = Classifier::from_bytes(&classifier.to_bytes().unwrap(), "again", &Device::cpu()).unwrap();
    for classifier in [&classifier, &again] {
        assert_eq!(entry(classifier, "kind00").name, "first kind");
        assert_eq!(entry(classifier, "kind01").parents, ["group2"]);
        assert_eq!(entry(classifier, "kind02").samples, 22);
        assert_eq!(entry(classifier, "kind03").samples, 0);
        let asked: Vec<Sample> = (50..70).map(|number| sample(0, 3, number)).collect();
        for answer in classifier.predict(&asked, &PredictRequest::default(), &Watch::default()).unwrap() {
            assert!(answer.unwrap().classes.iter().all(|class| class.id != "kind03"));
        }
    }
    // Taught anew, it is there again.
    let anew =
        NewClass { class: "kind03".into(), parents: Parents::FromGraph, samples: vec![sample(0, 3, 0)] };
    again.teach(&[anew], IfTaught::Refuse, &Watch::default()).unwrap();
    assert_eq!(entry(&again, "kind03").samples, 1);
}

#[test]
fn a_new_class_finds_its_place_in_another_graph() {
    let Fitted { classifier, .. } = fitted(8, true);
    let mut builder = TaxonomyBuilder::new();
    for (parent, child) in [("things", "group0"), ("group0", "subgroup"), ("subgroup", "novelty")] {
        let [parent, child] = [parent, child].map(|id| builder.add_class(id));
        builder.add_edge(parent, child, None);
    }
    let other = builder.build().unwrap().taxonomy;
    let new =
        NewClass { class: "novelty".into(), parents: Parents::FromGraph, samples: vec![sample(0, 0, 70)] };
    classifier.teach_in(&[new], IfTaught::Refuse, Some(&other), &Watch::default()).unwrap();
    let again = Classifier::from_bytes(&classifier.to_bytes().unwrap(), "again", &Device::cpu()).unwrap();
    let graph = again.graph();
    let parents = |id: &str| -> Vec<&str> {
        graph.parents(graph.find(id).unwrap()).iter().map(|&n| graph.id(n)).collect()
    };
    assert_eq!((parents("novelty"), parents("subgroup")), (vec!["subgroup"], vec!["group0"]));
}

#[test]
fn few_samples_and_few_classes_are_enough() {
    let small = |labels: &[&str], values: &[f32]| {
        let source = ArraySource::embeddings(values, 2, labels).unwrap();
        fit(&source, None, &FitRequest::default(), &Watch::default()).unwrap()
    };
    for (labels, values) in [
        (
            &["a", "a", "b", "b", "c", "c"][..],
            &[0.0, 1.0, 0.2, 1.0, 5.0, 0.0, 5.0, 0.3, -4.0, 9.0, -4.1, 9.0][..],
        ),
        (&["a", "b", "c"], &[0.0, 1.0, 5.0, 0.0, -4.0, 9.0]),
        (&["a", "b"], &[0.0, 1.0, 5.0, 0.0]),
        (&["a", "a", "b"], &[0.0, 1.0, 0.0, 1.0, 5.0, 0.0]),
    ] {
        let Fitted { classifier, .. } = small(labels, values);
        for (label, row) in labels.iter().zip(values.chunks_exact(2)) {
            let sample = Sample::embedding("x", row.to_vec());
            let answer = told(&classifier, &sample, &PredictRequest::default());
            assert_eq!(answer.classes[0].id, *label, "{labels:?}");
            assert!(answer.classes[0].probability.is_finite());
        }
    }
}

/// Two samples of each class, no class graph, and texts that tell the group.
fn fitted_to_texts(texts: Option<ClassTexts>) -> Classifier {
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for (group, kind, number) in
        (0..GROUPS).flat_map(|g| (0..KINDS).flat_map(move |k| (0..2).map(move |n| (g, k, n))))
    {
        values.extend(row(group, kind, number));
        labels.push(format!("kind{group}{kind}"));
    }
    let source = ArraySource::embeddings(values, DIM, &labels).unwrap();
    // A way to answer in which relatives count, whichever measures best.
    let recipe = Recipe { metric: MetricConfig::UNIT, scale: 1.0, ridge: None };
    let request = FitRequest { texts, recipe: Some(recipe), ..FitRequest::default() };
    fit(&source, None, &request, &Watch::default()).unwrap().classifier
}

#[test]
fn texts_of_classes_are_a_second_prior() {
    let of_group = |group: usize| (0..GROUPS).map(|at| f32::from(u8::from(at == group))).collect::<Vec<_>>();
    let rows = (0..GROUPS).flat_map(|g| (0..KINDS).map(move |k| (g, k)));
    let texts = ClassTexts::new(GROUPS, rows.map(|(g, k)| (format!("kind{g}{k}"), of_group(g)))).unwrap();
    let (with, without) = (fitted_to_texts(Some(texts)), fitted_to_texts(None));
    let request = PredictRequest { explain: true, ..PredictRequest::default() };
    let answer = told(&with, &sample(1, 1, 50), &request);
    let shares = answer.shaped_by.unwrap();
    // The other kinds of the group, which only texts tell.
    assert!(shares.iter().any(|share| share.class.id == "kind10"), "{shares:?}");
    assert!(told(&without, &sample(1, 1, 50), &request).shaped_by.unwrap().len() < shares.len());

    let again = Classifier::from_bytes(&with.to_bytes().unwrap(), "the model", &Device::cpu()).unwrap();
    assert_eq!(told(&again, &sample(1, 1, 50), &request).classes, answer.classes, "bit for bit");

    let foreign = ClassTexts::new(1, [("lynx".to_owned(), vec![1.0])]).unwrap();
    let values = [0.0, 1.0, 2.0, 3.0];
    let source = ArraySource::embeddings(&values[..], 1, &["a", "a", "b", "b"]).unwrap();
    let request = FitRequest { texts: Some(foreign), ..FitRequest::default() };
    let message = fit(&source, None, &request, &Watch::default()).err().unwrap().to_string();
    assert!(message.contains("no class has a row"), "{message}");
    assert!(ClassTexts::new(2, [("a".to_owned(), vec![1.0])]).is_err());
}

#[test]
fn bad_samples_are_named() {
    let one = ArraySource::embeddings(&[0.0, 1.0][..], 2, &["a"]).unwrap();
    let message = fit(&one, None, &FitRequest::default(), &Watch::default()).err().unwrap().to_string();
    assert!(message.contains("two or more"), "{message}");

    let values = [0.0, 1.0, f32::NAN, 2.0];
    let source = ArraySource::embeddings(&values[..], 2, &["a", "b"]);
    let message = match source {
        Err(error) => error.to_string(),
        Ok(source) => {
            fit(&source, None, &FitRequest::default(), &Watch::default()).err().unwrap().to_string()
        }
    };
    assert!(message.contains("NaN") || message.contains("finite"), "{message}");
}
