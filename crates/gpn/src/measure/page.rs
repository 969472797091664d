//! What a page shows of a result.

use std::cmp::Reverse;

use gpn_report::{
    Card, ClassPictures, ClassRow, Comparison, ConfusedRow, ConfusionClass, ConfusionMatrix, Fact,
    HedgeFigure, HedgeFigurePoint, LevelRow, ScoreFigure, TestPage,
};
use gpn_taxonomy::{Node, Taxonomy, levels};

use super::ancestry::Ancestry;
use super::rates::share;
use super::{ClassResult, HedgeCurve, TestResult, UnknownResult, worst_classes};

/// Classes of a matrix that can still be read.
const MATRIX: usize = 30;
/// Mistakes listed.
const MISTAKES: usize = 10;
/// Weak classes listed.
const WORST: usize = 8;
/// Names listed of a level.
const NAMES: usize = 3;

/// The page of a result, with all that the result itself knows. The caller adds the rest: title, lead, what simpler ways reach,
/// pictures ([`TestPage::worst`] has the weakest classes without any), classes that look alike, doubtful labels, environment.
///
/// `graph` is the one the result was measured on; classes it does not have are left out of the figure of confusion.
pub fn test_page(result: &TestResult, graph: &Taxonomy) -> TestPage {
    let mut page = TestPage {
        accuracy: result.accuracy,
        interval: result.interval,
        samples: result.samples,
        comparisons: vec![Comparison {
            name: "Always the most frequent class".into(),
            accuracy: result.majority,
        }],
        cards: vec![Card::new("Among the five likeliest", percent(result.top5))],
        facts: facts(result),
        levels: level_rows(result, graph),
        confusion: matrix(result, graph),
        confused: confused(result, graph),
        worst: worst_classes(result, WORST).into_iter().map(|class| worst(class, graph)).collect(),
        classes: class_rows(result),
        ..TestPage::default()
    };
    if let Some(unknown) = &result.unknown {
        page.unknown = Some(scores(unknown));
        page.unknown_facts = unknown_facts(unknown);
    }
    page
}

impl HedgeCurve {
    /// The curve as a figure of a page.
    pub fn figure(&self, title: impl Into<String>) -> HedgeFigure {
        let point = |point: &super::HedgePoint| HedgeFigurePoint {
            confidence: point.confidence,
            accuracy: point.accuracy,
            information: point.information,
            leaf_share: point.leaf_share,
        };
        HedgeFigure { title: title.into(), points: self.points.iter().map(point).collect() }
    }
}

/// The names of the classes above a class, from the top, as `Fruit › Apple`. Of several parents the first is taken, and the
/// only root is left out.
pub fn path_above(graph: &Taxonomy, class: Node) -> String {
    let mut above = Vec::new();
    let mut at = class;
    while let Some(&parent) = graph.parents(at).first() {
        above.push(graph.name(parent));
        at = parent;
    }
    if graph.roots().nth(1).is_none() {
        above.pop();
    }
    above.reverse();
    above.join(" › ")
}

fn facts(result: &TestResult) -> Vec<Fact> {
    let hierarchy = &result.hierarchy;
    let mistakes = result.samples - result.right;
    let mut facts = vec![Fact::new(
        percent(result.balanced_accuracy),
        "of answers are right where every class counts the same, however many samples it has.",
    )];
    if let (Some(known), Some(new), Some(both)) = (&result.known, &result.new, result.harmonic_mean) {
        let sentence = format!(
            "is the harmonic mean of known and new classes: {} of the samples of {} known classes are answered right, and {} of \
             those of {} classes taught later.",
            percent(known.accuracy),
            known.classes,
            percent(new.accuracy),
            new.classes
        );
        facts.push(Fact::new(percent(both), sentence));
    }
    // Without levels between root and leaves these say what accuracy says.
    if hierarchy.height > 1 {
        let sentence = format!(
            "is the hierarchical F1: an answer that shares some classes above with the truth counts in part (precision {}, \
             recall {}).",
            percent(hierarchy.precision),
            percent(hierarchy.recall)
        );
        facts.push(Fact::new(percent(hierarchy.f1), sentence));
        if let (Some(siblings), Some(height)) = (hierarchy.sibling_mistakes, hierarchy.mistake_height) {
            let sentence = if mistakes == 1 {
                "of mistakes, of which there is one, are between classes directly below the same class."
                    .to_owned()
            } else {
                format!("of the {mistakes} mistakes are between classes directly below the same class.")
            };
            facts.push(Fact::new(percent(siblings), sentence));
            let sentence = format!(
                "levels above the leaves is where a mistake and its truth meet on average: 1 is the nearest relative, {} is \
                 nothing in common.",
                hierarchy.height
            );
            facts.push(Fact::new(format!("{height:.1}"), sentence));
        }
        if let Some(at) = hierarchy.distance_at.iter().find(|at| at.k == 5) {
            let sentence = "levels above the leaves is where the five likeliest answers meet the truth on average, right \
                            ones at 0.";
            facts.push(Fact::new(format!("{:.1}", at.distance), sentence));
        }
    }
    let sentence = "is how far stated probabilities are from the share of right answers, on average (expected calibration error).";
    facts.push(Fact::new(percent(result.calibration_error), sentence));
    facts
}

fn unknown_facts(unknown: &UnknownResult) -> Vec<Fact> {
    let sentence = format!(
        "is the chance that one of {} samples of no class scores higher than one of {} samples of a class (area under the ROC \
         curve).",
        unknown.unknown, unknown.known
    );
    let refused =
        "of samples of a class are taken for unknown at the threshold that finds 95% of the unknown ones.";
    vec![Fact::new(percent(unknown.auroc), sentence), Fact::new(percent(unknown.false_positives), refused)]
}

fn scores(unknown: &UnknownResult) -> ScoreFigure {
    let histogram = &unknown.histogram;
    ScoreFigure {
        title: "Scores for being none of the classes".into(),
        low: histogram.low,
        high: histogram.high,
        known: histogram.known.clone(),
        unknown: histogram.unknown.clone(),
        threshold: None,
    }
}

/// Levels with the names of their first classes.
fn level_rows(result: &TestResult, graph: &Taxonomy) -> Vec<LevelRow> {
    let below = u32::from(graph.roots().nth(1).is_some());
    let depth = levels(graph).longest;
    let rows = &result.hierarchy.levels;
    if rows.len() < 2 {
        return Vec::new();
    }
    rows.iter()
        .map(|row| {
            let names: Vec<&str> = graph
                .nodes()
                .filter(|&n| depth[n as usize] + below == row.level)
                .map(|n| graph.name(n))
                .collect();
            let more = if names.len() > NAMES { " …" } else { "" };
            let names = names[..names.len().min(NAMES)].join(", ");
            LevelRow {
                name: format!("{}: {names}{more}", row.level),
                classes: row.classes,
                samples: row.samples,
                accuracy: row.accuracy,
            }
        })
        .collect()
}

/// The classes with most mistakes, made by them or answered for others, in the order of the graph.
fn matrix(result: &TestResult, graph: &Taxonomy) -> Option<ConfusionMatrix> {
    let mut chosen: Vec<(Node, &ClassResult)> =
        result.classes.iter().filter_map(|class| Some((graph.find(&class.id)?, class))).collect();
    let all = chosen.len();
    if all < 2 {
        return None;
    }
    let mistakes = |class: &ClassResult| class.samples + class.answered - 2 * class.right;
    chosen.sort_by_key(|(_, class)| Reverse(mistakes(class)));
    chosen.truncate(MATRIX);
    let order = tree_order(graph);
    chosen.sort_by_key(|(n, _)| order[*n as usize].0);
    let mut place = vec![None; graph.len()];
    for (at, (n, _)) in chosen.iter().enumerate() {
        place[*n as usize] = Some(at);
    }
    let place_of = |id: &str| graph.find(id).and_then(|n| place[n as usize]);
    let right = chosen.iter().enumerate().filter(|(_, (_, class))| class.right > 0);
    let mut counts: Vec<(usize, usize, usize)> =
        right.map(|(at, (_, class))| (at, at, class.right)).collect();
    let mut elsewhere = vec![0; chosen.len()];
    for pair in &result.confusion {
        match (place_of(&pair.truth), place_of(&pair.answer)) {
            (Some(truth), Some(answer)) => counts.push((truth, answer, pair.count)),
            (Some(truth), None) => elsewhere[truth] += pair.count,
            (None, _) => {}
        }
    }
    let classes = chosen.iter().zip(elsewhere).map(|((n, class), elsewhere)| ConfusionClass {
        name: class.name.clone(),
        group: order[*n as usize].1.map_or_else(String::new, |parent| graph.name(parent).to_owned()),
        samples: class.samples,
        elsewhere,
    });
    let selection = if all > MATRIX {
        format!("the {MATRIX} of {all} classes with most mistakes")
    } else {
        String::new()
    };
    Some(ConfusionMatrix {
        title: "Confusion between relatives".into(),
        classes: classes.collect(),
        counts,
        selection,
    })
}

/// For each class its place when the graph is walked from the roots down, each class once, and the parent it was reached from.
fn tree_order(graph: &Taxonomy) -> Vec<(usize, Option<Node>)> {
    let mut order = vec![(usize::MAX, None); graph.len()];
    let mut open: Vec<(Node, Option<Node>)> = graph.roots().map(|n| (n, None)).collect();
    open.reverse();
    let mut next = 0;
    while let Some((n, parent)) = open.pop() {
        if order[n as usize].0 == usize::MAX {
            order[n as usize] = (next, parent);
            next += 1;
            open.extend(graph.children(n).iter().rev().map(|&child| (child, Some(n))));
        }
    }
    order
}

fn confused(result: &TestResult, graph: &Taxonomy) -> Vec<ConfusedRow> {
    let listed: Vec<(Node, Node, usize)> = result
        .confusion
        .iter()
        .take(MISTAKES)
        .filter_map(|pair| Some((graph.find(&pair.truth)?, graph.find(&pair.answer)?, pair.count)))
        .collect();
    let ancestry = Ancestry::new(graph, listed.iter().flat_map(|&(truth, answer, _)| [truth, answer]));
    let samples = |n: Node| {
        let id = graph.id(n);
        result.classes.iter().find(|class| class.id == id).map_or(0, |class| class.samples)
    };
    let row = |&(truth, answer, count): &(Node, Node, usize)| ConfusedRow {
        truth: told_apart(graph, truth),
        answer: told_apart(graph, answer),
        count,
        samples: samples(truth),
        both_are: ancestry
            .common(truth, answer)
            .next()
            .filter(|&n| !(ancestry.has_single_root() && graph.parents(n).is_empty()))
            .map_or_else(String::new, |n| graph.name(n).to_owned()),
    };
    listed.iter().map(row).collect()
}

fn worst(class: &ClassResult, graph: &Taxonomy) -> ClassPictures {
    let taken = class.confused_with.as_ref().map_or_else(String::new, |with| {
        let times = if with.count == 1 { "once".to_owned() } else { format!("{} times", with.count) };
        format!(", most often taken for {} ({times})", with.name)
    });
    ClassPictures {
        name: class.name.clone(),
        path: graph.find(&class.id).map_or_else(String::new, |n| path_above(graph, n)),
        note: format!("{} of {} right{taken}", class.right, class.samples),
        pictures: Vec::new(),
    }
}

fn class_rows(result: &TestResult) -> Vec<ClassRow> {
    let mut classes: Vec<&ClassResult> = result.classes.iter().filter(|class| class.samples > 0).collect();
    classes.sort_by(|a, b| share(a.right, a.samples).total_cmp(&share(b.right, b.samples)));
    let row = |class: &ClassResult| ClassRow {
        name: class.name.clone(),
        samples: class.samples,
        right: class.right,
        precision: class.precision,
        recall: class.recall,
        taken_for: class
            .confused_with
            .as_ref()
            .map_or_else(String::new, |with| format!("{} ({})", with.name, with.count)),
    };
    classes.into_iter().map(row).collect()
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// The name of a class, with its id where another class bears the same name.
pub(crate) fn told_apart(graph: &Taxonomy, class: Node) -> String {
    let (id, name) = (graph.id(class), graph.name(class));
    let is_shared = graph.nodes().any(|other| other != class && graph.name(other) == name);
    match (is_shared, id.contains(name)) {
        (false, _) => name.to_owned(),
        (true, true) => id.to_owned(),
        (true, false) => format!("{name} ({id})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::measure;
    use crate::measure::sample::{answers, graph_of};

    #[test]
    fn relatives_stand_beside_one_another() {
        let graph = graph_of("r>a r>b b>z a>y a>x");
        let page = test_page(&measure(&answers(&graph, "x:y x:x z:z y:z")).unwrap(), &graph);
        let matrix = page.confusion.unwrap();
        let names: Vec<_> = matrix.classes.iter().map(|c| format!("{}>{}", c.group, c.name)).collect();
        assert_eq!(names, ["a>y", "a>x", "b>z"]);
        let mut counts = matrix.counts.clone();
        counts.sort_unstable();
        assert_eq!(counts, [(0, 2, 1), (1, 0, 1), (1, 1, 1), (2, 2, 1)]);
        // That both are an `r` says nothing.
        let both: Vec<_> =
            page.confused.iter().map(|row| (row.truth.as_str(), row.both_are.as_str())).collect();
        assert_eq!(both, [("y", ""), ("x", "a")]);
        assert_eq!((page.worst[0].name.as_str(), page.worst[0].path.as_str()), ("y", "a"));
        assert_eq!(page.levels[0].name, "1: a, b");
    }

    #[test]
    fn many_classes_are_cut_to_the_worst() {
        let words: Vec<String> = (0..100).map(|n| format!("r>c{n}")).collect();
        let graph = graph_of(&words.join(" "));
        let asked: Vec<String> =
            (0..100).map(|n| format!("c{n}:c{}", if n < 40 { n + 1 } else { n })).collect();
        let page = test_page(&measure(&answers(&graph, &asked.join(" "))).unwrap(), &graph);
        let matrix = page.confusion.unwrap();
        assert_eq!(matrix.classes.len(), MATRIX);
        assert!(matrix.selection.contains("30 of 100"));
        // The answer to the last one shown is not shown itself.
        assert_eq!(matrix.classes.iter().map(|class| class.elsewhere).sum::<usize>(), 1);
        assert!(page.levels.is_empty());
    }
}
