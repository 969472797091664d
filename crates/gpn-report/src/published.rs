//! The numbers published with the method, to stand beside ours.
//!
//! Source: L. Liu, T. Zhou, G. Long, J. Jiang, C. Zhang, "Learning to Propagate for Graph Meta-Learning",
//! NeurIPS 2019: the four tables of results on tieredImageNet-Close and -Far, and the ablation table. Accuracies
//! in percent, mean and half-width of the 95% confidence interval over 600 test tasks.

/// A published accuracy in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// Mean over the test tasks.
    pub mean: f64,
    /// Half the width of its 95% confidence interval.
    pub half_width: f64,
}

/// The test classes of a table of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Split {
    /// tieredImageNet-Close: test classes near training classes.
    Close,
    /// tieredImageNet-Far: test classes far from them.
    Far,
}

/// How the classes of a test task are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sampling {
    /// Uniformly.
    Random,
    /// From class to neighbouring class.
    Snowball,
}

/// The tasks of the columns: classes (way) and samples per class (shot).
pub const TASKS: [(usize, usize); 4] = [(5, 1), (5, 5), (10, 1), (10, 5)];

/// One published table of results.
#[derive(Clone, Copy, Debug)]
pub struct ResultTable {
    /// The test classes.
    pub split: Split,
    /// How test tasks are drawn.
    pub sampling: Sampling,
    /// A row for each method, in the published order, with accuracies in the order of [`TASKS`].
    pub rows: [(&'static str, [Accuracy; 4]); 6],
}

/// One row of the published ablation table (tieredImageNet-Close, random tasks, 5-way 1-shot).
#[derive(Clone, Copy, Debug)]
pub struct AblationRow {
    /// Part of GPN that is changed.
    pub part: &'static str,
    /// What is in its place.
    pub variant: &'static str,
    /// Name of the column ticked in the published table, or of the one not ticked, after `no`.
    pub published_as: &'static str,
    /// Accuracy of the variant.
    pub accuracy: Accuracy,
}

const fn a(mean: f64, half_width: f64) -> Accuracy {
    Accuracy { mean, half_width }
}

/// The four published tables of results.
pub const RESULTS: [ResultTable; 4] = [
    ResultTable {
        split: Split::Close,
        sampling: Sampling::Random,
        rows: [
            ("Prototypical Net", [a(42.87, 1.67), a(62.68, 0.99), a(30.65, 1.15), a(48.64, 0.70)]),
            ("GNN", [a(42.33, 0.80), a(59.17, 0.69), a(30.50, 0.57), a(44.33, 0.72)]),
            ("Closer Look", [a(35.07, 1.53), a(47.48, 0.87), a(21.58, 0.96), a(28.01, 0.40)]),
            ("PPN", [a(41.60, 1.59), a(63.04, 0.97), a(28.48, 1.09), a(48.66, 0.70)]),
            ("GPN", [a(48.37, 1.80), a(64.14, 1.00), a(33.23, 1.05), a(50.50, 0.70)]),
            ("GPN+", [a(50.54, 1.67), a(65.74, 0.98), a(34.74, 1.05), a(51.50, 0.70)]),
        ],
    },
    ResultTable {
        split: Split::Close,
        sampling: Sampling::Snowball,
        rows: [
            ("Prototypical Net", [a(35.27, 1.63), a(52.60, 1.17), a(26.08, 1.04), a(41.48, 0.76)]),
            ("GNN", [a(36.50, 1.03), a(52.33, 0.96), a(27.67, 1.01), a(40.67, 0.90)]),
            ("Closer Look", [a(34.07, 1.63), a(47.48, 0.87), a(21.02, 0.99), a(33.70, 0.44)]),
            ("PPN", [a(36.50, 1.62), a(52.50, 1.12), a(27.18, 1.08), a(40.97, 0.77)]),
            ("GPN", [a(39.56, 1.70), a(54.35, 1.11), a(27.99, 1.09), a(42.50, 0.76)]),
            ("GPN+", [a(40.78, 1.76), a(55.47, 1.41), a(29.46, 1.10), a(43.76, 0.74)]),
        ],
    },
    ResultTable {
        split: Split::Far,
        sampling: Sampling::Random,
        rows: [
            ("Prototypical Net", [a(44.30, 1.63), a(61.01, 1.03), a(30.63, 1.07), a(47.19, 0.68)]),
            ("GNN", [a(43.67, 0.69), a(59.33, 1.04), a(30.17, 0.47), a(43.00, 0.66)]),
            ("Closer Look", [a(42.27, 1.70), a(58.78, 0.94), a(22.00, 0.99), a(32.73, 0.41)]),
            ("PPN", [a(43.63, 1.59), a(60.20, 1.02), a(29.55, 1.09), a(46.72, 0.66)]),
            ("GPN", [a(47.54, 1.68), a(64.20, 1.01), a(31.84, 1.10), a(48.20, 0.69)]),
            ("GPN+", [a(47.49, 1.67), a(64.14, 1.02), a(31.95, 1.15), a(48.65, 0.66)]),
        ],
    },
    ResultTable {
        split: Split::Far,
        sampling: Sampling::Snowball,
        rows: [
            ("Prototypical Net", [a(43.57, 1.67), a(62.35, 1.06), a(29.88, 1.11), a(46.48, 0.70)]),
            ("GNN", [a(44.00, 1.36), a(62.00, 0.66), a(28.50, 0.60), a(46.17, 0.74)]),
            ("Closer Look", [a(38.37, 1.57), a(54.64, 0.85), a(30.40, 1.09), a(33.72, 0.43)]),
            ("PPN", [a(42.40, 1.63), a(61.37, 1.05), a(28.67, 1.01), a(46.02, 0.61)]),
            ("GPN", [a(47.74, 1.76), a(63.53, 1.03), a(32.94, 1.16), a(47.43, 0.67)]),
            ("GPN+", [a(47.58, 1.70), a(63.74, 0.95), a(32.68, 1.17), a(47.44, 0.71)]),
        ],
    },
];

/// The published ablation table; the last row is GPN+ with all its own choices.
pub const ABLATION: [AblationRow; 11] = [
    row("task generation", "snowball sampling only", "S-S", a(46.20, 1.70)),
    row("task generation", "random sampling only", "R-S", a(49.33, 1.68)),
    row("propagation", "messages from parents", "F→C", a(42.60, 1.61)),
    row("propagation", "messages from children", "C→C", a(37.90, 1.50)),
    row("propagation", "all steps forward, then all backward", "B→P", a(47.90, 1.72)),
    row("propagation", "forward and backward in turn", "M→P", a(46.90, 1.78)),
    row("training", "no auxiliary task", "no AUX", a(41.87, 1.72)),
    row("training", "no maximum spanning tree", "no MST", a(45.83, 1.64)),
    row("model", "one head", "no M-H", a(49.40, 1.69)),
    row("model", "additive attention", "A-A", a(46.74, 1.71)),
    row("all", "GPN+ as published", "SR-S, N→C, AUX, MST, M-H, M-A", a(50.54, 1.67)),
];

const fn row(
    part: &'static str,
    variant: &'static str,
    published_as: &'static str,
    accuracy: Accuracy,
) -> AblationRow {
    AblationRow { part, variant, published_as, accuracy }
}

/// The published accuracy of a method (named as in [`RESULTS`]) on one kind of task, if there is one.
pub fn accuracy(split: Split, sampling: Sampling, method: &str, way: usize, shot: usize) -> Option<Accuracy> {
    let table = RESULTS.iter().find(|t| t.split == split && t.sampling == sampling)?;
    let (_, accuracies) = table.rows.iter().find(|(name, _)| *name == method)?;
    let column = TASKS.iter().position(|&task| task == (way, shot))?;
    Some(accuracies[column])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_setting() {
        let found = accuracy(Split::Far, Sampling::Snowball, "GNN", 10, 1).unwrap();
        assert_eq!(found, a(28.50, 0.60));
        assert!(accuracy(Split::Far, Sampling::Snowball, "GNN", 20, 1).is_none());
        assert!(accuracy(Split::Close, Sampling::Random, "nobody", 5, 1).is_none());
    }

    #[test]
    fn every_row_is_harder_with_more_classes_and_easier_with_more_samples() {
        for table in RESULTS {
            for (name, [w5s1, w5s5, w10s1, w10s5]) in table.rows {
                assert!(w5s1.mean < w5s5.mean && w10s1.mean < w10s5.mean, "{name}");
                assert!(w10s1.mean < w5s1.mean && w10s5.mean < w5s5.mean, "{name}");
            }
        }
    }

    #[test]
    fn the_ablation_ends_with_the_result_of_gpn_plus() {
        let full = ABLATION[ABLATION.len() - 1].accuracy;
        assert_eq!(Some(full), accuracy(Split::Close, Sampling::Random, "GPN+", 5, 1));
        assert!(ABLATION[..10].iter().all(|row| row.accuracy.mean < full.mean));
    }
}
