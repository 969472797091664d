//! `gpn predict`.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::{ArgGroup, Args, ValueEnum};
use gpn::{Among, ClassName, Error, Level, PredictRequest, Prediction, Relation, Share, Watch};

use crate::args::share;
use crate::open::ModelEncoder;
use crate::shard::{self, ShardArguments};
use crate::watching::watched;
use crate::{printable, terminal};

/// Samples between two writes: bounds the memory, and shows results as they come.
const CHUNK: usize = 1024;
/// Lines of an explanation in text; the other classes are summed up.
const SHOWN_SHARES: usize = 8;

const HELP: &str = "Without --among, --below or --taught, every training class and every taught class can be the answer. A \
file that cannot be read is named and the rest goes on; the exit code is then 1. With --out, rows that cannot be read say why in the column \
`error` of the table, and the exit code is 0.";

#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that a user types")]
#[command(group = ArgGroup::new("candidates"), after_help = HELP)]
pub(crate) struct PredictArguments {
    /// The model file, or its run directory.
    model: PathBuf,
    /// What to classify: image files or tables of embeddings, or folders of them.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Choose among these classes only, by id or name.
    #[arg(long, value_name = "CLASS,..", value_delimiter = ',', group = "candidates")]
    among: Vec<String>,
    /// Choose among the classes below this one only.
    #[arg(long, value_name = "CLASS", group = "candidates")]
    below: Option<String>,
    /// Choose among the taught classes only.
    #[arg(long, group = "candidates")]
    taught: bool,
    /// Likeliest classes to print.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    /// Answer at this level: 1 is right below the top; `all` gives every level.
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    level: Option<Level>,
    /// Give besides the deepest class that is at least as likely, 0 to 1: as deep as sure.
    #[arg(long, value_name = "SHARE", value_parser = share, num_args = 0..=1, default_missing_value = "0.8")]
    confidence: Option<f64>,
    /// Call a sample that is like none of the classes unknown (models made by `gpn fit`).
    #[arg(long)]
    unknown: bool,
    /// Say which classes shaped the prototype of the likeliest class, and by how much.
    #[arg(long)]
    explain: bool,
    /// Weight of the prototypes before propagation, 0 to 1 [the best on the model's validation tasks; 0 without any].
    #[arg(long, value_parser = share)]
    lambda: Option<f64>,
    /// Form of the output.
    #[arg(long, default_value = "text")]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Where to compute: cpu, or cuda, rocm, wgpu where built in.
    #[arg(long, default_value = "cpu")]
    device: String,
    #[command(flatten)]
    shard: ShardArguments,
    #[command(flatten)]
    encoder: ModelEncoder,
}

fn level(text: &str) -> Result<Level, String> {
    match (text, text.parse()) {
        ("all", _) => Ok(Level::All),
        ("leaves", _) => Ok(Level::Answers),
        (_, Ok(depth @ 1..)) => Ok(Level::Depth(depth)),
        _ => Err("give a number of at least 1, `all` or `leaves`".into()),
    }
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// file,rank,id,name,probability; besides sure,sure_probability with --confidence and unknown with --unknown.
    Csv,
    /// A list of objects, one for each file.
    Json,
}

pub(crate) fn run(arguments: &PredictArguments) -> anyhow::Result<()> {
    let format = if arguments.json { Format::Json } else { arguments.format };
    ensure!(
        !(arguments.explain && format == Format::Csv),
        "--explain has no place in CSV; use --format text or json"
    );
    let classifier = arguments.encoder.open(&arguments.model, &arguments.device)?;
    ensure!(
        !arguments.unknown || classifier.is_fitted(),
        "--unknown needs a model made by `gpn fit`, which measures what is unknown"
    );
    let request = PredictRequest {
        among: among(arguments),
        top: arguments.top as usize,
        explain: arguments.explain,
        lambda: arguments.lambda.map(|lambda| lambda as f32),
        level: arguments.level.unwrap_or_default(),
        confidence: arguments.confidence,
    };
    if let Some(out) = &arguments.shard.out {
        ensure!(
            !arguments.explain,
            "--explain has no place in a table; leave out --out, or explain single samples"
        );
        let done = watched(|watch| {
            gpn::predict_shard(&classifier, &request, &arguments.shard.request(&arguments.files, out), watch)
        })??;
        return shard::told(&done, format == Format::Json);
    }
    let predictor = classifier.predictor(&request)?;
    let mut report = Report {
        format,
        entries: 0,
        names_unknown: arguments.unknown,
        is_cautious: arguments.confidence.is_some(),
    };

    let mut failed = Vec::new();
    let mut samples = Vec::new();
    for file in &arguments.files {
        match classifier.samples_at(file) {
            Ok(found) => samples.extend(found),
            Err(error) => failed.push((file.display().to_string(), error)),
        }
    }
    let total = samples.len() + failed.len();
    let bar = (!std::io::stdout().is_terminal()).then(|| terminal::Progress::new("classifying"));
    report.print(&report.head())?;
    let (mut faults, mut done) = (0, 0);
    for (name, error) in failed {
        faults += 1;
        let text = report.fault(&name, &error);
        report.print(&text)?;
    }
    for chunk in samples.chunks(CHUNK) {
        let mut text = String::new();
        for (sample, prediction) in chunk.iter().zip(predictor.predict(chunk, &Watch::default())?) {
            match prediction {
                Ok(prediction) => text += &report.prediction(&prediction)?,
                Err(error) => {
                    faults += 1;
                    text += &report.fault(&sample.name, &error);
                }
            }
        }
        report.print(&text)?;
        done += chunk.len();
        if let Some(bar) = &bar {
            bar.update(done, samples.len());
        }
    }
    drop(bar);
    report.print(report.tail())?;
    if faults > 0 {
        bail!("{faults} of {total} samples could not be read; they are named above");
    }
    Ok(())
}

fn among(arguments: &PredictArguments) -> Among {
    match (&arguments.among[..], &arguments.below, arguments.taught) {
        ([], None, false) => Among::All,
        ([], None, true) => Among::Taught,
        ([], Some(class), _) => Among::Below(class.clone()),
        (listed, ..) => Among::Listed(listed.iter().map(|class| class.trim().to_owned()).collect()),
    }
}

/// Results in one form.
struct Report {
    format: Format,
    /// Samples written so far.
    entries: usize,
    /// Whether samples of no class are called so.
    names_unknown: bool,
    /// Whether the deepest class that is as sure as asked for is given.
    is_cautious: bool,
}

impl Report {
    fn print(&self, text: &str) -> anyhow::Result<()> {
        match self.format {
            Format::Text => terminal::print_text(text),
            Format::Csv => terminal::print_data(text),
            Format::Json => terminal::print_json(text),
        }
    }

    fn head(&self) -> String {
        match self.format {
            Format::Text => String::new(),
            Format::Csv => {
                let sure = if self.is_cautious { ",sure,sure_probability" } else { "" };
                let unknown = if self.names_unknown { ",unknown" } else { "" };
                format!("file,rank,id,name,probability{sure}{unknown}\n")
            }
            Format::Json => "[".into(),
        }
    }

    fn tail(&self) -> &'static str {
        if self.format == Format::Json { "\n]\n" } else { "" }
    }

    /// A sample that could not be read: named on standard error, and in JSON.
    fn fault(&mut self, name: &str, error: &Error) -> String {
        terminal::warn(&error.to_string());
        match self.format {
            Format::Text | Format::Csv => String::new(),
            Format::Json => self.object(&serde_json::json!({ "file": name, "error": error.to_string() })),
        }
    }

    fn prediction(&mut self, prediction: &Prediction) -> anyhow::Result<String> {
        match self.format {
            Format::Text => Ok(text(prediction, self.names_unknown)),
            Format::Csv => {
                let mut more = Vec::new();
                if self.is_cautious {
                    let deep = prediction.sure.as_ref().and_then(|sure| sure.path.last());
                    more.push(deep.map_or_else(String::new, |class| class.id.clone()));
                    more.push(
                        prediction
                            .sure
                            .as_ref()
                            .map_or_else(String::new, |sure| format!("{:.6}", sure.probability)),
                    );
                }
                if self.names_unknown {
                    more.push(prediction.unknown.is_some_and(|unknown| unknown.is_unknown).to_string());
                }
                let mut writer = csv::Writer::from_writer(Vec::new());
                for (rank, class) in prediction.classes.iter().enumerate() {
                    let (rank, probability) = ((rank + 1).to_string(), format!("{:.6}", class.probability));
                    let mut record = vec![&prediction.file, &rank, &class.id, &class.name, &probability];
                    record.extend(&more);
                    writer.write_record(record)?;
                }
                Ok(String::from_utf8(writer.into_inner()?)?)
            }
            Format::Json => Ok(self.object(&serde_json::to_value(prediction)?)),
        }
    }

    fn object(&mut self, object: &serde_json::Value) -> String {
        self.entries += 1;
        format!("{}\n{object}", if self.entries == 1 { "" } else { "," })
    }
}

/// A prediction for people.
fn text(prediction: &Prediction, names_unknown: bool) -> String {
    let mut text = format!("{}\n", printable::one_line(&prediction.file));
    if names_unknown && prediction.unknown.is_some_and(|unknown| unknown.is_unknown) {
        text += "  none of these: it is like no class of the model; the nearest are\n";
    }
    if let Some(sure) = &prediction.sure {
        let way = if sure.path.is_empty() { "not sure of anything".into() } else { way(&sure.path) };
        // invariant: writing to a string does not fail.
        writeln!(text, "{:7.2}%  {way}  (as deep as sure)", 100.0 * sure.probability).unwrap();
    }
    for class in &prediction.classes {
        let percent = 100.0 * class.probability;
        // invariant: writing to a string does not fail.
        let words = if class.path.len() > 1 { way(&class.path) } else { labelled(&class.id, &class.name) };
        writeln!(text, "{percent:7.2}%  {words}").unwrap();
    }
    let (Some(shares), Some(best)) = (&prediction.shaped_by, prediction.classes.first()) else { return text };
    // invariant: as above.
    writeln!(text, "  what shaped {}:", printable::cell(&best.name)).unwrap();
    let mut line = |share: f64, words: String| writeln!(text, "  {:7.2}%  {words}", 100.0 * share).unwrap();
    for Share { class: ClassName { id, name }, relation, weight, share } in shares.iter().take(SHOWN_SHARES) {
        let sign = if *weight < 0.0 { ", taken away" } else { "" };
        line(*share, format!("{}, {}{sign}", labelled(id, name), in_words(*relation)));
    }
    let rest = shares.get(SHOWN_SHARES..).unwrap_or_default();
    if !rest.is_empty() {
        line(rest.iter().map(|share| share.share).sum(), format!("{} others", rest.len()));
    }
    text
}

/// The way to a class, from below the root.
fn way(path: &[ClassName]) -> String {
    path.iter().map(|class| printable::cell(&class.name)).collect::<Vec<_>>().join(" > ")
}

fn labelled(id: &str, name: &str) -> String {
    let (shown, name) = (printable::cell(id), printable::cell(name));
    if shown == name || shown.is_empty() { name } else { format!("{name} ({shown})") }
}

fn in_words(relation: Relation) -> &'static str {
    match relation {
        Relation::Own => "its own samples",
        Relation::Parent => "above it",
        Relation::Child => "below it",
        Relation::Nearest => "nearest to it",
        Relation::Further => "further away",
        Relation::All => "what all classes have in common",
    }
}
