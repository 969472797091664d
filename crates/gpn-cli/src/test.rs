//! `gpn test`.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use gpn::data::source::SourceSpec;
use gpn::measure::{Answered, TestResult, class_table, sample_table};
use gpn::{PredictRequest, Tested, output};

use crate::open::{ModelEncoder, different_files};
use crate::table::Table;
use crate::terminal::{self, counted, first_few};
use crate::watching::watched;

#[derive(Args)]
pub(crate) struct TestArguments {
    /// The model file, or its run directory.
    model: PathBuf,
    /// Labelled samples: a folder of photos whose folders are the classes, an archive of one, or a table of embeddings with classes.
    labelled: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Write a row for each class to this CSV file.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a row for each sample to this CSV file.
    #[arg(long, value_name = "FILE")]
    samples_csv: Option<PathBuf>,
    /// Write a page that shows the result: worst classes, confusions.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Replace files that are there already.
    #[arg(long)]
    force: bool,
    /// Where to compute: cpu, or cuda, rocm, wgpu where built in.
    #[arg(long, default_value = "cpu")]
    device: String,
    #[command(flatten)]
    encoder: ModelEncoder,
}

pub(crate) fn run(arguments: &TestArguments) -> anyhow::Result<()> {
    different_files(&[
        ("--csv", arguments.csv.as_ref()),
        ("--samples-csv", arguments.samples_csv.as_ref()),
        ("--report", arguments.report.as_ref()),
    ])?;
    let files = [&arguments.csv, &arguments.samples_csv, &arguments.report];
    for file in files.into_iter().flatten() {
        output::may_write(file, arguments.force)?;
    }
    let classifier = arguments.encoder.open(&arguments.model, &arguments.device)?;
    let source = gpn::data::open(&arguments.labelled.parse::<SourceSpec>()?)?;
    let tested = watched(|watch| gpn::test(&classifier, source.as_ref(), &PredictRequest::default(), watch))?;
    let tested = match tested {
        Err(error @ gpn::Error::Taxonomy(_)) => {
            let model = arguments.model.display();
            let context = format!("classes of {} are not in the model {model}", arguments.labelled);
            return Err(anyhow::Error::from(error).context(context));
        }
        tested => tested?,
    };
    if !tested.failed.is_empty() {
        let (count, named) = (tested.failed.len(), first_few(tested.failed.iter()));
        terminal::warn(&format!("{} left out: {named}", counted(count, "sample is", "samples are")));
    }
    if let Some(file) = &arguments.report {
        gpn::test_page(&tested, source.as_ref())?.write(file)?;
    }
    let Tested { result, samples, graph, .. } = tested;
    if let Some(file) = &arguments.csv {
        gpn::report::write_file(file, gpn::report::to_csv(&class_table(&result)).as_bytes())?;
    }
    if let Some(file) = &arguments.samples_csv {
        let table = sample_table(&Answered { graph: &graph, samples })?;
        gpn::report::write_file(file, gpn::report::to_csv(&table).as_bytes())?;
    }
    if arguments.json {
        return terminal::print_json(&format!("{}\n", serde_json::to_string_pretty(&result)?));
    }
    terminal::print_text(&text(&result))
}

/// A result for people.
fn text(result: &TestResult) -> String {
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    let [low, high] = result.interval;
    let mut table = Table::new(["in %", ""]);
    table.row(["accuracy".into(), percent(result.accuracy)]);
    table.row(["  95% interval".into(), format!("{}..{}", percent(low), percent(high))]);
    table.row(["right answer among the five likeliest".into(), percent(result.top5)]);
    table.row(["mean over classes".into(), percent(result.balanced_accuracy)]);
    table.row(["always the largest class".into(), percent(result.majority)]);
    if let (Some(known), Some(new)) = (&result.known, &result.new) {
        table.row(["classes the model was made with".into(), percent(known.accuracy)]);
        table.row(["classes taught since".into(), percent(new.accuracy)]);
    }
    table.row(["hierarchical precision".into(), percent(result.hierarchy.precision)]);
    table.row(["hierarchical recall".into(), percent(result.hierarchy.recall)]);
    table.row(["hierarchical F1".into(), percent(result.hierarchy.f1)]);
    table.row(["calibration error".into(), percent(result.calibration_error)]);
    let mut text = format!("{} samples, {} answered rightly\n\n{table}", result.samples, result.right);
    if let Some(height) = result.hierarchy.mistake_height {
        let _ = writeln!(
            text,
            "a mistake is {height:.2} levels high on average (the top of the classes is {} high)",
            result.hierarchy.height
        );
    }
    if !result.confusion.is_empty() {
        let mut table = Table::new(["most frequent mistakes", "answer", "times"]);
        for row in result.confusion.iter().take(5) {
            table.row([row.truth.clone(), row.answer.clone(), row.count.to_string()]);
        }
        let _ = write!(text, "\n{table}");
    }
    text
}
