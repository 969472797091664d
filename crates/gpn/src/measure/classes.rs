//! How each class did, and what it was taken for.

use gpn_taxonomy::Node;

use super::Answered;
use super::rates::share;
use super::result::{ClassResult, ConfusedWith, Confusion};

/// What is counted of a class.
#[derive(Clone, Copy, Default)]
struct Counts {
    samples: usize,
    right: usize,
    answered: usize,
    is_new: bool,
}

/// Classes in the order of the graph, and mistakes, the most frequent first. `judged` are the answers as they count.
pub(super) fn classes(answered: &Answered<'_>, judged: &[Node]) -> (Vec<ClassResult>, Vec<Confusion>) {
    let graph = answered.graph;
    let mut counts = vec![Counts::default(); graph.len()];
    let mut mistakes: Vec<(Node, Node)> = Vec::new();
    for (sample, &answer) in answered.samples.iter().zip(judged) {
        let truth = &mut counts[sample.truth as usize];
        truth.samples += 1;
        truth.is_new |= sample.is_new;
        truth.right += usize::from(answer == sample.truth);
        counts[answer as usize].answered += 1;
        if answer != sample.truth {
            mistakes.push((sample.truth, answer));
        }
    }
    mistakes.sort_unstable();
    let mut pairs: Vec<(Node, Node, usize)> =
        mistakes.chunk_by(|a, b| a == b).map(|equal| (equal[0].0, equal[0].1, equal.len())).collect();
    pairs.sort_by_key(|&(truth, answer, count)| (std::cmp::Reverse(count), truth, answer));
    let mut worst: Vec<Option<(Node, usize)>> = vec![None; graph.len()];
    for &(truth, answer, count) in &pairs {
        worst[truth as usize].get_or_insert((answer, count));
    }
    let classes = graph.nodes().filter_map(|n| {
        let count = counts[n as usize];
        if count.samples + count.answered == 0 {
            return None;
        }
        let confused_with = worst[n as usize].map(|(answer, count)| ConfusedWith {
            id: graph.id(answer).to_owned(),
            name: graph.name(answer).to_owned(),
            count,
        });
        Some(ClassResult {
            id: graph.id(n).to_owned(),
            name: graph.name(n).to_owned(),
            is_new: count.is_new,
            samples: count.samples,
            right: count.right,
            answered: count.answered,
            precision: (count.answered > 0).then(|| share(count.right, count.answered)),
            recall: (count.samples > 0).then(|| share(count.right, count.samples)),
            f1: share(2 * count.right, count.samples + count.answered),
            confused_with,
        })
    });
    let confusion = pairs.iter().map(|&(truth, answer, count)| Confusion {
        truth: graph.id(truth).to_owned(),
        answer: graph.id(answer).to_owned(),
        count,
    });
    (classes.collect(), confusion.collect())
}

#[cfg(test)]
mod tests {
    use crate::measure::measure;
    use crate::measure::sample::{answers, graph_of};

    #[test]
    fn classes_are_counted_as_truth_and_as_answer() {
        let graph = graph_of("r>a r>b r>c r>d");
        let result = measure(&answers(&graph, "a:a a:b a:b a:c b:b c*:b")).unwrap();
        let [a, b, c] = &result.classes[..] else { panic!("{:?}", result.classes) };
        assert_eq!((a.samples, a.right, a.answered), (4, 1, 1));
        assert_eq!((a.precision, a.recall, a.f1), (Some(1.0), Some(0.25), 0.4));
        assert_eq!(a.confused_with.as_ref().map(|with| (with.id.as_str(), with.count)), Some(("b", 2)));
        assert_eq!((b.precision, b.confused_with.is_none()), (Some(0.25), true));
        assert_eq!((c.precision, c.recall, c.is_new), (Some(0.0), Some(0.0), true));
        let pairs: Vec<_> = result
            .confusion
            .iter()
            .map(|pair| format!("{}>{} {}", pair.truth, pair.answer, pair.count))
            .collect();
        assert_eq!(pairs, ["a>b 2", "a>c 1", "c>b 1"]);
        assert_eq!((result.majority, result.balanced_accuracy), (4.0 / 6.0, 1.25 / 3.0));
        let new = result.new.unwrap();
        assert_eq!((new.classes, new.samples, result.harmonic_mean), (1, 1, Some(0.0)));
    }

    #[test]
    fn an_answer_below_the_label_is_right_and_counts_as_the_label() {
        let graph = graph_of("r>a r>b a>x a>y");
        let result = measure(&answers(&graph, "a:x a:b x:a")).unwrap();
        assert_eq!(result.right, 1);
        let ids: Vec<_> = result.classes.iter().map(|class| class.id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "x"]);
        // `a` was answered twice: once as `x`, once for an `x`.
        assert_eq!((result.classes[0].answered, result.classes[0].right), (2, 1));
    }
}
