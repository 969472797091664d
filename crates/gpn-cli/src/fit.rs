//! `gpn fit`.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use gpn::data::source::SourceSpec;
use gpn::taxonomy::TaxonomySpec;
use gpn::{By, FitReport, FitRequest, Fitted, SampleEncoder, output};

use crate::encoder::EncoderArguments;
use crate::open::{different_files, lock};
use crate::table::Table;
use crate::watching::watched;
use crate::{printable, terminal};

const HELP: &str = "Every class can be the answer and every sample is used. A part of each class's samples measures first which \
way to answer is best, each by a fit that has not seen it.";

#[derive(Args)]
#[command(after_help = HELP)]
pub(crate) struct FitArguments {
    /// Samples with classes: a table of embeddings (.npy, .npz, .parquet), a folder of photos whose folders are the classes, or an
    /// archive of one.
    what: String,
    /// The model file to write.
    #[arg(long, value_name = "MODEL")]
    out: PathBuf,
    /// How classes are related, where folders do not say it: kinds.csv, go.obo, classes.json, wordnet.
    #[arg(long, value_name = "FILE")]
    taxonomy: Option<String>,
    /// A frozen encoder for photos (an .onnx file); without one a small network is trained on them.
    #[arg(long, value_name = "FILE")]
    encoder: Option<PathBuf>,
    /// Training steps of that network.
    #[arg(long, default_value_t = 2000, value_parser = crate::args::at_least_one)]
    episodes: u64,
    /// Write a page that shows what it reached: worst classes, confusions, suspicious labels.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Seed of what is held out to measure.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Replace a file already at --out.
    #[arg(long)]
    force: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: EncoderArguments,
}

pub(crate) fn run(arguments: &FitArguments) -> anyhow::Result<()> {
    different_files(&[("--out", Some(&arguments.out)), ("--report", arguments.report.as_ref())])?;
    let may_write = || {
        let files = [Some(&arguments.out), arguments.report.as_ref()];
        files.into_iter().flatten().try_for_each(|file| output::may_write(file, arguments.force))
    };
    may_write()?;
    let _lock = lock(&arguments.out)?;
    let source = gpn::data::open(&arguments.what.parse::<SourceSpec>()?)?;
    let taxonomy = arguments.taxonomy.as_deref().map(str::parse::<TaxonomySpec>).transpose()?;
    let taxonomy = taxonomy.map(|spec| gpn::taxonomy::read(&spec)).transpose()?;
    let request = FitRequest { seed: arguments.seed, ..FitRequest::default() };
    let taxonomy = taxonomy.as_ref().map(|checked| &checked.taxonomy);
    let config = arguments.settings.config();
    let encoder = match &arguments.encoder {
        Some(path) => Some(SampleEncoder::open(path, &config, arguments.settings.cache())?),
        None => None,
    };
    let by = match &encoder {
        Some(encoder) => By::Encoder(encoder, &config),
        None => By::Training { episodes: arguments.episodes },
    };
    let fitted = watched(|watch| gpn::fit_samples(source.as_ref(), taxonomy, &by, &request, watch))?;
    let Fitted { classifier, report } = match (fitted, &arguments.taxonomy) {
        (Err(error @ gpn::Error::Taxonomy(_)), Some(taxonomy)) => {
            let context = format!("classes of {} are not in the taxonomy {taxonomy}", arguments.what);
            return Err(anyhow::Error::from(error).context(context));
        }
        (fitted, _) => fitted?,
    };
    may_write()?;
    classifier.save(&arguments.out)?;
    if let Some(file) = &arguments.report {
        gpn::fit_page(&classifier, &report, source.as_ref())?.write(file)?;
    }
    if arguments.json {
        return terminal::print_json(&format!("{}\n", serde_json::to_string_pretty(&report)?));
    }
    terminal::print_text(&text(&report))?;
    terminal::say(&format!("{} is written", printable::one_line(&arguments.out.display().to_string())));
    Ok(())
}

/// What a fit reached, for people.
fn text(report: &FitReport) -> String {
    let mut text = format!(
        "{} classes, {} samples of {} values, fitted in {:.1} s\n",
        report.classes, report.samples, report.dim, report.seconds
    );
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    if let (Some(accuracy), Some(nearest), Some(majority)) =
        (report.accuracy, report.nearest_mean, report.majority)
    {
        let mut table = Table::new(["accuracy in % on samples held out", ""]);
        table.row(["this model".into(), percent(accuracy)]);
        table.row(["nearest mean".into(), percent(nearest)]);
        table.row(["always the largest class".into(), percent(majority)]);
        let _ = write!(text, "\n{table}");
        let _ = writeln!(text, "measured on {} samples, none of which its fit had seen", report.measured);
    } else {
        text += "nothing could be measured: classes have too few samples\n";
    }
    if !report.new_classes.is_empty() {
        let mut table = Table::new(["a class that comes later, with", "new", "known", "all"]);
        for row in &report.new_classes {
            let samples = if row.shot == 1 { "sample" } else { "samples" };
            let shot = format!("{} {samples}", row.shot);
            table.row([shot, percent(row.new), percent(row.known), percent(row.all)]);
        }
        let _ = write!(text, "\n{table}");
        text += "measured by hiding a third of the classes; all classes are answers\n";
    }
    if let Some(auroc) = report.unknown_auroc {
        let _ = writeln!(
            text,
            "samples of no class are told from others with an area under the curve of {auroc:.3}"
        );
    }
    text
}
