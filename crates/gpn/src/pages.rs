//! The pages of a fit and of a test, with pictures where the samples are photos.

use gpn_data::format::image::RgbImage;
use gpn_data::source::{SampleKind, Source};
use gpn_data::transform::{EvalTransform, ImageView};
use gpn_report::{Answer, Comparison, Fact, Picture, Report, SuspiciousLabel, TestPage, Verdict};
use gpn_taxonomy::Node;

use crate::classifier::Classifier;
use crate::error::Result;
use crate::fit::FitReport;
use crate::measure::{
    self, Answered, AnsweredSample, measure, mistakes_of, suspicious_labels, told_apart, worst_classes,
};
use crate::testing::Tested;

/// Height and width of pictures.
const PICTURE: u32 = 96;
/// Classes that did worst, and pictures of each.
const WORST: usize = 8;
const PICTURES: usize = 4;
/// Labels to look at, and how sure of another class the model is at least.
const SUSPICIOUS: usize = 12;
const SURE: f64 = 0.9;

/// The page of a fit: how samples held out were answered.
pub fn fit_page(classifier: &Classifier, report: &FitReport, source: &dyn Source) -> Result<Report> {
    let graph = classifier.graph();
    let sample = |answer: &crate::fit::HeldOutAnswer| AnsweredSample {
        name: source.samples().get(answer.row).map_or_else(String::new, |sample| sample.file.clone()),
        truth: answer.truth,
        ranked: answer.ranked.clone(),
        truth_probability: Some(answer.truth_probability),
        ..AnsweredSample::default()
    };
    let answered = Answered { graph: &graph, samples: report.answers.iter().map(sample).collect() };
    let mut page = if answered.samples.is_empty() {
        TestPage::default()
    } else {
        let result = measure(&answered)?;
        let mut page = measure::test_page(&result, &graph);
        let row = |at: usize| report.answers[at].row;
        add_pictures(&mut page, &result, &answered, source, row)?;
        for at in suspicious_labels(&answered, SURE, SUSPICIOUS)? {
            let sample = &answered.samples[at];
            let (answer, probability) = sample.ranked[0];
            page.suspicious.push(SuspiciousLabel {
                sample: sample.name.clone(),
                picture: picture(source, row(at)),
                label: told_apart(&graph, sample.truth),
                answer: told_apart(&graph, answer),
                probability,
            });
        }
        page
    };
    page.title = "A model of your classes".into();
    page.lead = format!(
        "{} classes, {} samples. What follows was measured on {} samples, each by a fit that had not seen it; then all samples were used.",
        report.classes, report.samples, report.measured
    );
    if let Some(accuracy) = report.nearest_mean {
        page.comparisons.insert(0, Comparison { name: "Nearest mean".into(), accuracy });
    }
    for row in &report.new_classes {
        let samples = if row.shot == 1 { "one sample".to_owned() } else { format!("{} samples", row.shot) };
        page.facts.push(Fact::new(
            format!("{:.1}%", 100.0 * row.new),
            format!(
                "of the samples of a class that comes later with {samples} are answered rightly among all classes, {:.1}% of those of known ones (measured by hiding a third of the classes).",
                100.0 * row.known
            ),
        ));
    }
    page.environment = vec![("program".into(), format!("gpn {}", env!("CARGO_PKG_VERSION")))];
    page.environment.push(("samples".into(), source.describe()));
    Ok(page.report()?)
}

/// The page of a test.
pub fn test_page(tested: &Tested, source: &dyn Source) -> Result<Report> {
    let answered = Answered { graph: &tested.graph, samples: tested.samples.clone() };
    let mut page = measure::test_page(&tested.result, &tested.graph);
    let rows: std::collections::HashMap<&str, usize> =
        source.samples().iter().enumerate().map(|(row, sample)| (sample.file.as_str(), row)).collect();
    let row = |at: usize| rows.get(answered.samples[at].name.as_str()).copied().unwrap_or(usize::MAX);
    add_pictures(&mut page, &tested.result, &answered, source, row)?;
    page.title = "A test on labelled samples".into();
    page.lead = format!("{} samples of {}.", tested.result.samples, source.describe());
    page.environment = vec![("program".into(), format!("gpn {}", env!("CARGO_PKG_VERSION")))];
    Ok(page.report()?)
}

fn add_pictures(
    page: &mut TestPage,
    result: &measure::TestResult,
    answered: &Answered<'_>,
    source: &dyn Source,
    row: impl Fn(usize) -> usize,
) -> Result<()> {
    if source.kind() != SampleKind::Images {
        return Ok(());
    }
    let graph = answered.graph;
    for (class, shown) in worst_classes(result, WORST).into_iter().zip(&mut page.worst) {
        let Some(node): Option<Node> = graph.find(&class.id) else { continue };
        for at in mistakes_of(answered, node, PICTURES)? {
            let sample = &answered.samples[at];
            let Some(bytes) = picture(source, row(at)) else { continue };
            let answer = told_apart(graph, sample.ranked[0].0);
            shown.pictures.push(Picture {
                bytes,
                name: class.name.clone(),
                answers: vec![Answer { label: "taken for".into(), text: answer, verdict: Verdict::Wrong }],
            });
        }
    }
    Ok(())
}

/// A small PNG of a photo; `None` for what is no photo or cannot be read.
fn picture(source: &dyn Source, row: usize) -> Option<Vec<u8>> {
    if source.kind() != SampleKind::Images || row >= source.samples().len() {
        return None;
    }
    let image: RgbImage = source.image(row).ok()?;
    let view = ImageView::new(image.width(), image.height(), image.pixels()).ok()?;
    let mut pixels = vec![0; (PICTURE * PICTURE * 3) as usize];
    EvalTransform::whole(PICTURE).ok()?.apply(view, &mut pixels).ok()?;
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, PICTURE, PICTURE);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().ok()?.write_image_data(&pixels).ok()?;
    Some(bytes)
}
