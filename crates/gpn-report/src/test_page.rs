//! The page of a test: how good a model is, where it fails, and which labels to look at.

use crate::{
    AccuracyBySamples, AlikePair, Answer, Better, Block, Card, Cell, ClassPictures, Column, ConfusionMatrix,
    Fact, HedgeFigure, Picture, Report, ReportError, ScoreFigure, Table, Verdict,
};

/// Rows of the table of all classes; more would make the page slow, and nobody reads them there.
const MOST_CLASSES: usize = 1000;

/// What a test found, to be shown on one page. A part that is empty is left out. Shares are from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestPage {
    /// Headline.
    pub title: String,
    /// What was tested, in a sentence or two.
    pub lead: String,
    /// Share of right answers.
    pub accuracy: f64,
    /// Its 95% interval.
    pub interval: [f64; 2],
    /// Samples it was measured on.
    pub samples: usize,
    /// What simpler ways reach on the same samples: nearest mean, majority.
    pub comparisons: Vec<Comparison>,
    /// Further numbers beside the accuracy.
    pub cards: Vec<Card>,
    /// What the measures say, a sentence each.
    pub facts: Vec<Fact>,
    /// Accuracy by level of the class graph.
    pub levels: Vec<LevelRow>,
    /// Accuracy by number of samples of a class.
    pub by_samples: Option<AccuracyBySamples>,
    /// Which classes are taken for which.
    pub confusion: Option<ConfusionMatrix>,
    /// The most frequent mistakes.
    pub confused: Vec<ConfusedRow>,
    /// The classes that did worst, with pictures of mistakes.
    pub worst: Vec<ClassPictures>,
    /// Classes that look alike.
    pub alike: Vec<AlikePair>,
    /// Samples whose label may be wrong.
    pub suspicious: Vec<SuspiciousLabel>,
    /// Answers as deep as sure.
    pub hedge: Option<HedgeFigure>,
    /// Scores of unknown samples.
    pub unknown: Option<ScoreFigure>,
    /// What the scores of unknown samples say, a sentence each.
    pub unknown_facts: Vec<Fact>,
    /// How each class did.
    pub classes: Vec<ClassRow>,
    /// Name and value of what made the results: version, model, data, command.
    pub environment: Vec<(String, String)>,
}

/// What another way of answering reaches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Its name, as `Nearest mean`.
    pub name: String,
    /// Its share of right answers.
    pub accuracy: f64,
}

/// Accuracy at a level of the class graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelRow {
    /// The level, as `1: Fruit, Packages, Vegetables`.
    pub name: String,
    /// Classes there.
    pub classes: usize,
    /// Samples.
    pub samples: usize,
    /// Share of right answers.
    pub accuracy: f64,
}

/// A frequent mistake.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfusedRow {
    /// Name of the true class.
    pub truth: String,
    /// Name of the answered one.
    pub answer: String,
    /// How often.
    pub count: usize,
    /// Samples of the true class.
    pub samples: usize,
    /// Name of the lowest class above both; empty where there is none.
    pub both_are: String,
}

/// How a class did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassRow {
    /// Name.
    pub name: String,
    /// Samples tested.
    pub samples: usize,
    /// Those answered right.
    pub right: usize,
    /// Share of its answers that are right.
    pub precision: Option<f64>,
    /// Share of its samples that are answered right.
    pub recall: Option<f64>,
    /// The most frequent wrong answer, with its count.
    pub taken_for: String,
}

/// A sample whose label may be wrong: the model, which did not learn from it, is sure of another class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SuspiciousLabel {
    /// The sample: its file, or file and row.
    pub sample: String,
    /// A picture of it, PNG or JPEG, where there is one.
    pub picture: Option<Vec<u8>>,
    /// The class it is labelled with.
    pub label: String,
    /// The class that the model answers.
    pub answer: String,
    /// Probability of that answer.
    pub probability: f64,
}

impl TestPage {
    /// The page, to be written to a file or added to.
    pub fn report(&self) -> Result<Report, ReportError> {
        let mut report = Report::new(&self.title, &self.lead);
        report.card(Card::new("Right answers", percent(self.accuracy)).accent().detail(format!(
            "95% interval {} to {}, {}",
            percent(self.interval[0]),
            percent(self.interval[1]),
            counted(self.samples, "sample", "samples")
        )));
        for other in &self.comparisons {
            report.card(
                Card::new(&other.name, percent(other.accuracy))
                    .detail(difference(self.accuracy - other.accuracy)),
            );
        }
        for card in &self.cards {
            report.card(card.clone());
        }
        for (title, blocks) in [
            ("What it means", self.meaning()?),
            ("Samples of a class", self.by_samples.iter().map(|f| Block::Figure(f.figure())).collect()),
            ("What is taken for what", self.confusion()?),
            ("Classes with most mistakes", self.worst()),
            ("Classes that look alike", self.alike()),
            ("Labels to look at", self.suspicious()?),
            ("As deep as sure", self.hedge.iter().map(|f| Block::Figure(f.figure())).collect()),
            ("None of these classes", self.unknown()),
            ("All classes", self.all_classes()?),
        ] {
            if !blocks.is_empty() {
                report.section(title, blocks);
            }
        }
        for (name, value) in &self.environment {
            report.environment(name, value);
        }
        Ok(report)
    }

    fn meaning(&self) -> Result<Vec<Block>, ReportError> {
        let mut blocks = Vec::new();
        if !self.facts.is_empty() {
            blocks.push(Block::Facts(self.facts.clone()));
        }
        if !self.levels.is_empty() {
            let columns = vec![
                Column::new("classes").decimals(0),
                Column::new("samples").decimals(0),
                Column::new("right, %").decimals(1),
            ];
            let mut table = Table::new("Right answers by level of the class graph", "Level", columns);
            for level in &self.levels {
                let cells = vec![
                    Cell::number(level.classes as f64),
                    Cell::number(level.samples as f64),
                    Cell::number(100.0 * level.accuracy),
                ];
                table.row(&level.name, cells)?;
            }
            blocks.push(Block::Table(table));
        }
        Ok(blocks)
    }

    fn confusion(&self) -> Result<Vec<Block>, ReportError> {
        let mut blocks = Vec::new();
        if let Some(matrix) = &self.confusion {
            blocks.push(Block::Figure(matrix.figure()?));
        }
        if !self.confused.is_empty() {
            let columns = vec![
                Column::new("taken for"),
                Column::new("times").decimals(0),
                Column::new("of").decimals(0),
                Column::new("both are"),
            ];
            let mut table = Table::new("The most frequent mistakes", "Class", columns);
            for row in &self.confused {
                let cells = vec![
                    Cell::text(&row.answer),
                    Cell::number(row.count as f64),
                    Cell::number(row.samples as f64),
                    Cell::text(&row.both_are),
                ];
                table.row(&row.truth, cells)?;
            }
            blocks.push(Block::Table(table));
        }
        Ok(blocks)
    }

    fn worst(&self) -> Vec<Block> {
        self.worst.iter().cloned().map(Block::Class).collect()
    }

    fn alike(&self) -> Vec<Block> {
        if self.alike.is_empty() {
            return Vec::new();
        }
        let text = "Pairs that are hard to tell apart. More samples of both help; if people cannot tell them apart either, one \
                    class may be better than two.";
        vec![Block::Text(text.to_owned()), Block::Alike(self.alike.clone())]
    }

    fn suspicious(&self) -> Result<Vec<Block>, ReportError> {
        if self.suspicious.is_empty() {
            return Ok(Vec::new());
        }
        let text = "The model is sure of another class than these samples are labelled with. Some are its own mistakes; others \
                    are labels to correct.";
        let mut blocks = vec![Block::Text(text.to_owned())];
        let with_picture =
            self.suspicious.iter().filter_map(|label| Some(label.shown(label.picture.as_ref()?)));
        let pictures: Vec<Picture> = with_picture.collect();
        let columns =
            vec![Column::new("labelled"), Column::new("looks like"), Column::new("sure, %").decimals(0)];
        let mut table = Table::new("Labels that the model contradicts", "Sample", columns);
        for label in &self.suspicious {
            let cells = vec![
                Cell::text(&label.label),
                Cell::text(&label.answer),
                Cell::number(100.0 * label.probability),
            ];
            table.row(&label.sample, cells)?;
        }
        if pictures.is_empty() {
            blocks.push(Block::Table(table));
        } else {
            blocks.push(Block::Class(ClassPictures { pictures, ..ClassPictures::default() }));
            blocks.push(Block::Details {
                summary: "The same as a list".to_owned(),
                blocks: vec![Block::Table(table)],
            });
        }
        Ok(blocks)
    }

    fn unknown(&self) -> Vec<Block> {
        let facts = (!self.unknown_facts.is_empty()).then(|| Block::Facts(self.unknown_facts.clone()));
        let figure = self.unknown.iter().map(|figure| Block::Figure(figure.figure()));
        facts.into_iter().chain(figure).collect()
    }

    fn all_classes(&self) -> Result<Vec<Block>, ReportError> {
        if self.classes.is_empty() {
            return Ok(Vec::new());
        }
        let number = |name: &str| Column { better: Better::Neither, ..Column::new(name).decimals(0) };
        let columns = vec![
            number("samples"),
            number("right"),
            Column::new("precision, %").decimals(1),
            Column::new("recall, %").decimals(1),
            Column::new("most often taken for"),
        ];
        let share = |share: Option<f64>| share.map_or_else(Cell::empty, |share| Cell::number(100.0 * share));
        let mut table = Table::new("The worst first", "Class", columns);
        for class in self.classes.iter().take(MOST_CLASSES) {
            let cells = vec![
                Cell::number(class.samples as f64),
                Cell::number(class.right as f64),
                share(class.precision),
                share(class.recall),
                if class.taken_for.is_empty() { Cell::empty() } else { Cell::text(&class.taken_for) },
            ];
            table.row(&class.name, cells)?;
        }
        let all = self.classes.len();
        if all > MOST_CLASSES {
            table.note(format!("{} classes with fewer mistakes are not listed.", all - MOST_CLASSES));
        }
        let summary = format!("Precision and recall of {}", counted(all, "class", "classes"));
        Ok(vec![Block::Details { summary, blocks: vec![Block::Table(table)] }])
    }
}

impl SuspiciousLabel {
    fn shown(&self, bytes: &[u8]) -> Picture {
        let line =
            |label: &str, text: String| Answer { label: label.to_owned(), text, verdict: Verdict::None };
        Picture {
            bytes: bytes.to_vec(),
            name: self.sample.clone(),
            answers: vec![
                line("labelled", self.label.clone()),
                line("looks like", format!("{} {:.0}%", self.answer, 100.0 * self.probability)),
            ],
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// How many points the model is ahead of another way.
fn difference(share: f64) -> String {
    let points = 100.0 * share;
    match points {
        points if points >= 0.05 => format!("this model: {points:.1} points more"),
        points if points <= -0.05 => format!("this model: {:.1} points less", -points),
        _ => "this model: the same".to_owned(),
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ConfusionClass, HedgeFigurePoint, SampleGroup};

    const EVIL: &str = "<script>alert(\"x\")</script> & 'y'";
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

    fn evil_page() -> TestPage {
        let text = || EVIL.to_owned();
        let answer = Answer { label: text(), text: text(), verdict: Verdict::Wrong };
        let picture = Picture { bytes: PNG.to_vec(), name: text(), answers: vec![answer] };
        let class = ClassPictures { name: text(), path: text(), note: text(), pictures: vec![picture] };
        let suspicious = SuspiciousLabel {
            sample: text(),
            picture: Some(PNG.to_vec()),
            label: text(),
            answer: text(),
            probability: 0.97,
        };
        let row = ConfusionClass { name: text(), group: text(), samples: 5, elsewhere: 1 };
        TestPage {
            title: text(),
            lead: text(),
            accuracy: 0.9,
            interval: [0.8, 0.95],
            samples: 100,
            comparisons: vec![Comparison { name: text(), accuracy: 0.95 }],
            cards: vec![Card::new(text(), text()).detail(text())],
            facts: vec![Fact::new(text(), text())],
            levels: vec![LevelRow { name: text(), ..LevelRow::default() }],
            by_samples: Some(AccuracyBySamples {
                title: text(),
                groups: vec![SampleGroup { label: text(), classes: 1, ..SampleGroup::default() }],
            }),
            confusion: Some(ConfusionMatrix {
                title: text(),
                classes: vec![row.clone(), row],
                counts: vec![(0, 0, 3), (0, 1, 1)],
                selection: text(),
            }),
            confused: vec![ConfusedRow {
                truth: text(),
                answer: text(),
                both_are: text(),
                count: 1,
                samples: 2,
            }],
            worst: vec![class],
            alike: vec![AlikePair {
                names: [text(), text()],
                pictures: [Some(PNG.to_vec()), None],
                note: text(),
            }],
            suspicious: vec![suspicious],
            hedge: Some(HedgeFigure { title: text(), points: vec![HedgeFigurePoint::default()] }),
            unknown: Some(ScoreFigure {
                title: text(),
                low: 0.0,
                high: 1.0,
                known: vec![1, 0],
                unknown: vec![0, 1],
                threshold: Some(0.5),
            }),
            unknown_facts: vec![Fact::new(text(), text())],
            classes: vec![ClassRow { name: text(), taken_for: text(), ..ClassRow::default() }],
            environment: vec![(text(), text())],
        }
    }

    #[test]
    fn every_part_is_shown_and_escaped() {
        let html = evil_page().report().unwrap().to_html().unwrap();
        assert!(!html.contains("<script") && html.contains("&lt;script&gt;"));
        assert_eq!(html.matches("<section").count(), 9);
        assert_eq!(html.matches("<svg").count(), 4);
        assert_eq!(html.matches("<img").count(), 3);
        assert!(html.contains("this model: 5.0 points less"));
        assert!(html.contains("90.0%") && html.contains("95% interval 80.0% to 95.0%, 100 samples"));
    }

    #[test]
    fn parts_without_data_are_left_out() {
        let html = TestPage::default().report().unwrap().to_html().unwrap();
        assert!(!html.contains("<section") && !html.contains("<svg"));
        // Embeddings have no pictures: doubtful labels become a table.
        let mut page = TestPage { suspicious: evil_page().suspicious, ..TestPage::default() };
        page.suspicious[0].picture = None;
        let html = page.report().unwrap().to_html().unwrap();
        assert!(html.contains("<table>") && !html.contains("<img") && !html.contains("<details"));
    }

    #[test]
    fn counts_outside_of_the_matrix_are_refused() {
        let mut page = evil_page();
        page.confusion.as_mut().unwrap().counts.push((0, 7, 1));
        let message = page.report().unwrap_err().to_string();
        assert!(message.ends_with("answer 7 to class 0, but there are 2 classes"), "{message}");
    }

    #[test]
    fn pictures_must_be_pictures() {
        let mut page = evil_page();
        page.worst[0].pictures[0].bytes = b"GIF89a".to_vec();
        assert!(page.report().unwrap().to_html().is_err());
    }
}
