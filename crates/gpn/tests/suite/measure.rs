//! Measures of answers: the numbers of HiClass and scikit-learn, and what must hold for all answers.

use gpn::measure::{Answered, AnsweredSample, HedgeMeasure, TestResult, auroc, false_positive_rate, measure};
use gpn::taxonomy::{Node, Taxonomy, TaxonomyBuilder};
use gpn_golden::{JsonCase, json_cases};
use proptest::prelude::*;
use serde_json::Value;

/// A graph whose classes are called by their numbers, in this order.
fn numbered(classes: usize, edges: &[(u32, u32)]) -> Taxonomy {
    let mut graph = TaxonomyBuilder::new();
    for n in 0..classes {
        graph.add_class(&n.to_string());
    }
    for &(parent, child) in edges {
        graph.add_edge(parent, child, None);
    }
    graph.build().unwrap().taxonomy
}

fn doubles(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[track_caller]
fn assert_near(what: &str, got: f64, expected: &Value) {
    let expected = expected.as_f64().unwrap();
    assert!((got - expected).abs() < 1e-12, "{what}: {got} instead of {expected}");
}

#[test]
fn measures_parity_with_hiclass_and_scikit_learn() {
    for file in json_cases("j_measures") {
        let cases = file.document.as_array().unwrap();
        assert_eq!(cases.len(), 2);
        for case in cases {
            check_case(case);
        }
    }
}

fn check_case(case: &Value) {
    let edges = JsonCase::pairs(&case["edges"]);
    let graph = numbered(edges.iter().map(|&(_, child)| child as usize).max().unwrap() + 1, &edges);
    let known = doubles(&case["known_scores"]);
    let rows = case["ranked"].as_array().unwrap().iter().zip(case["probabilities"].as_array().unwrap());
    let samples = JsonCase::whole(&case["truth"]).into_iter().zip(rows).zip(&known);
    let samples = samples.map(|((truth, (ranked, probabilities)), &score)| AnsweredSample {
        truth: truth as Node,
        ranked: JsonCase::whole(ranked).into_iter().map(|n| n as Node).zip(doubles(probabilities)).collect(),
        unknown_score: Some(score),
        ..AnsweredSample::default()
    });
    let answered = Answered { graph: &graph, samples: samples.collect() };
    let unknown = doubles(&case["unknown_scores"]);
    let result = measure(&answered).unwrap().with_unknown(&answered, &unknown).unwrap();
    assert_near("accuracy", result.accuracy, &case["accuracy"]);
    assert_near("top 5", result.top5, &case["top5"]);
    assert_near("balanced accuracy", result.balanced_accuracy, &case["balanced_accuracy"]);
    assert_near("log loss", result.log_loss.unwrap(), &case["log_loss"]);
    assert_near("calibration error", result.calibration_error, &case["calibration_error"]);
    let hierarchy = &result.hierarchy;
    assert_near("precision", hierarchy.precision, &case["hierarchical"]["precision"]);
    assert_near("recall", hierarchy.recall, &case["hierarchical"]["recall"]);
    assert_near("f1", hierarchy.f1, &case["hierarchical"]["f1"]);
    assert_near("mistake height", hierarchy.mistake_height.unwrap(), &case["mistake_height"]);
    assert_eq!(hierarchy.distance_at.iter().map(|at| at.k).collect::<Vec<_>>(), [1, 5, 20]);
    for (at, expected) in hierarchy.distance_at.iter().zip(case["distance_at"].as_array().unwrap()) {
        assert_near("distance", at.distance, expected);
    }
    for expected in case["classes"].as_array().unwrap() {
        let id = expected["class"].to_string();
        let Some(class) = result.classes.iter().find(|class| class.id == id) else {
            // Neither a truth nor an answer.
            assert_eq!(expected["samples"].as_u64(), Some(0));
            continue;
        };
        assert_eq!(Some(class.samples as u64), expected["samples"].as_u64());
        assert_near("precision", class.precision.unwrap_or(0.0), &expected["precision"]);
        assert_near("recall", class.recall.unwrap_or(0.0), &expected["recall"]);
        assert_near("f1", class.f1, &expected["f1"]);
    }
    let scores = result.unknown.unwrap();
    assert_near("auroc", scores.auroc, &case["auroc"]);
    assert_near("false positives", scores.false_positives, &case["false_positives"]);
    assert_eq!(auroc(&unknown, &known).map(|area| (1.0 - area - scores.auroc).abs() < 1e-12), Some(true));
    assert!(false_positive_rate(&known, &unknown, 1.0).unwrap() >= scores.false_positives);
}

/// A graph of some classes, each class below earlier ones or below none, and answers to samples of all levels.
fn any_answers() -> impl Strategy<Value = (Vec<(u32, u32)>, usize, Vec<AnsweredSample>)> {
    (2..25usize).prop_flat_map(|classes| {
        let edges = prop::collection::btree_set((0..classes as u32, 0..classes as u32), 0..2 * classes)
            .prop_map(|edges| edges.into_iter().filter(|(a, b)| a < b).collect::<Vec<_>>());
        let sample =
            (0..classes as Node, prop::collection::btree_set(0..classes as Node, 1..8), any::<bool>())
                .prop_flat_map(|(truth, answers, is_new)| {
                    let answers: Vec<Node> = answers.into_iter().collect();
                    (Just(truth), Just(answers).prop_shuffle(), Just(is_new))
                })
                .prop_map(|(truth, answers, is_new)| {
                    let shares = (1..).map(|place| 0.5f64.powi(place));
                    let ranked = answers.into_iter().zip(shares).collect();
                    AnsweredSample { truth, ranked, is_new, ..AnsweredSample::default() }
                });
        (edges, Just(classes), prop::collection::vec(sample, 1..30))
    })
}

/// What does not depend on the order or the numbers of the classes.
fn summary(result: &TestResult) -> String {
    let mut classes: Vec<String> =
        result.classes.iter().map(|class| format!("{} {}", class.samples, class.f1)).collect();
    classes.sort();
    let hierarchy = &result.hierarchy;
    // A sum over classes in another order rounds otherwise.
    format!(
        "{} {} {:.12} {} {} {hierarchy:?} {classes:?}",
        result.right, result.top5, result.balanced_accuracy, result.majority, result.calibration_error
    )
}

proptest! {
    #[test]
    fn perfect_answers_measure_as_perfect((edges, classes, mut samples) in any_answers()) {
        let graph = numbered(classes, &edges);
        for sample in &mut samples {
            sample.ranked.retain(|&(answer, _)| answer != sample.truth);
            sample.ranked.insert(0, (sample.truth, 1.0));
            sample.ranked.truncate(1);
        }
        let result = measure(&Answered { graph: &graph, samples }).unwrap();
        prop_assert_eq!((result.accuracy, result.top5, result.balanced_accuracy), (1.0, 1.0, 1.0));
        prop_assert_eq!((result.calibration_error, result.log_loss), (0.0, Some(0.0)));
        prop_assert_eq!((result.hierarchy.precision, result.hierarchy.recall, result.hierarchy.f1), (1.0, 1.0, 1.0));
        let first = &result.hierarchy.distance_at[0];
        prop_assert_eq!((result.hierarchy.mistake_height, first.k, first.distance), (None, 1, 0.0));
        prop_assert!(result.hierarchy.levels.iter().all(|level| level.accuracy >= 1.0));
        prop_assert!(result.confusion.is_empty());
    }

    #[test]
    fn measures_stay_within_their_bounds((edges, classes, samples) in any_answers()) {
        let graph = numbered(classes, &edges);
        let count = samples.len();
        let result = measure(&Answered { graph: &graph, samples }).unwrap();
        prop_assert!(result.interval[0] <= result.accuracy && result.accuracy <= result.interval[1]);
        prop_assert!(result.accuracy <= result.top5 && result.top5 <= 1.0);
        let hierarchy = &result.hierarchy;
        let (low, high) = (hierarchy.precision.min(hierarchy.recall), hierarchy.precision.max(hierarchy.recall));
        prop_assert!(low - 1e-12 <= hierarchy.f1 && hierarchy.f1 <= high + 1e-12);
        prop_assert!((0.0..=1.0).contains(&low) && high <= 1.0);
        if let Some(height) = hierarchy.mistake_height {
            // A mistake is never at a leaf.
            prop_assert!((1.0..=f64::from(hierarchy.height)).contains(&height));
            let first = hierarchy.distance_at[0].distance;
            prop_assert!((first - height * (1.0 - result.accuracy)).abs() < 1e-9);
        }
        prop_assert!(hierarchy.levels.iter().all(|level| (0.0..=1.0).contains(&level.accuracy)));
        let mistakes: usize = result.confusion.iter().map(|pair| pair.count).sum();
        prop_assert_eq!(mistakes + result.right, count);
        prop_assert_eq!(result.classes.iter().map(|class| class.samples).sum::<usize>(), count);
        prop_assert_eq!(result.classes.iter().map(|class| class.answered).sum::<usize>(), count);
        prop_assert_eq!(result.classes.iter().map(|class| class.right).sum::<usize>(), result.right);
        let parts = [&result.known, &result.new].into_iter().flatten();
        prop_assert_eq!(parts.map(|part| part.right).sum::<usize>(), result.right);
    }

    #[test]
    fn numbers_of_classes_and_order_of_samples_do_not_matter(
        ((edges, classes, samples), order) in any_answers().prop_flat_map(|given| {
            let order: Vec<u32> = (0..given.1 as u32).collect();
            (Just(given), Just(order).prop_shuffle())
        })
    ) {
        let to = |n: u32| order[n as usize];
        let moved: Vec<(u32, u32)> = edges.iter().map(|&(parent, child)| (to(parent), to(child))).collect();
        let mut renamed = samples.clone();
        for sample in &mut renamed {
            sample.truth = to(sample.truth);
            for (answer, _) in &mut sample.ranked {
                *answer = to(*answer);
            }
        }
        renamed.reverse();
        let first = measure(&Answered { graph: &numbered(classes, &edges), samples }).unwrap();
        let second = measure(&Answered { graph: &numbered(classes, &moved), samples: renamed }).unwrap();
        prop_assert_eq!(summary(&first), summary(&second));
    }

    #[test]
    fn hedging_gains_accuracy((mut edges, classes, samples) in any_answers()) {
        // In a tree the class above a right answer is right as well.
        edges.sort_by_key(|&(_, child)| child);
        edges.dedup_by_key(|&mut (_, child)| child);
        let graph = numbered(classes, &edges);
        let truths: Vec<Node> = samples.iter().map(|sample| sample.truth).collect();
        let answers: Vec<Node> = samples.iter().map(|sample| sample.ranked[0].0).collect();
        let higher: Vec<Node> = answers.iter().map(|&n| graph.parents(n).first().copied().unwrap_or(n)).collect();
        let measure = HedgeMeasure::new(&graph);
        let (deep, high) = (measure.point(0.1, &truths, &answers).unwrap(), measure.point(0.9, &truths, &higher).unwrap());
        prop_assert!(deep.accuracy <= high.accuracy);
        for point in [deep, high] {
            prop_assert!((0.0..=1.0 + 1e-12).contains(&point.information));
            prop_assert!(point.information <= point.accuracy + 1e-12);
        }
    }
}

#[test]
fn what_cannot_be_measured_is_said() {
    let graph = numbered(3, &[(0, 1), (0, 2)]);
    let error =
        |samples: Vec<AnsweredSample>| measure(&Answered { graph: &graph, samples }).unwrap_err().to_string();
    let sample = |truth, ranked: &[(Node, f64)]| AnsweredSample {
        name: "a.png".into(),
        truth,
        ranked: ranked.to_vec(),
        ..AnsweredSample::default()
    };
    assert_eq!(error(vec![]), "the test: it has no labelled sample; give some");
    assert_eq!(
        error(vec![sample(1, &[])]),
        "sample a.png: it has no answer; every sample needs at least one"
    );
    let outside = "sample a.png: class number 7 is outside of the graph, which has 3 classes";
    assert_eq!(error(vec![sample(7, &[(1, 1.0)])]), outside);
    assert_eq!(error(vec![sample(1, &[(1, 0.5), (7, 0.5)])]), outside);
    let message = error(vec![sample(1, &[(1, f64::NAN)])]);
    assert_eq!(message, "sample a.png: probability NaN is not between 0 and 1");
}
