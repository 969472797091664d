//! `gpn predict`.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::{ArgGroup, Args, ValueEnum};
use gpn_model::Device;
use gpn_train::{Among, Candidates, Classifier, Guess, Relation, Sample, Share, TrainError};

use crate::args::share;
use crate::{printable, terminal};

/// Samples between two writes: bounds the memory, and shows results as they come.
const CHUNK: usize = 1024;
/// Lines of an explanation in text; the other classes are summed up.
const SHOWN_SHARES: usize = 8;

const HELP: &str = "Without --among, --below or --taught, every training class and every taught class can be the answer. A \
file that cannot be read is named and the rest goes on; the exit code is then 1.";

#[derive(Args)]
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
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// file,rank,id,name,probability
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
    let device = Device::open(arguments.device.parse()?)?;
    let mut classifier = Classifier::open(&arguments.model, &device)?;
    let among = match (&arguments.among[..], &arguments.below, arguments.taught) {
        ([], None, false) => Among::All,
        ([], None, true) => Among::Taught,
        ([], Some(class), _) => Among::Below(class.clone()),
        (listed, ..) => Among::Listed(listed.iter().map(|class| class.trim().to_owned()).collect()),
    };
    let lambda = arguments.lambda.map_or(classifier.default_lambda(), |lambda| lambda as f32);
    let candidates = classifier.candidates(&among, lambda)?;
    let mut report = Report { candidates: &candidates, format, explain: arguments.explain, entries: 0 };

    let mut failed = Vec::new();
    let mut samples = Vec::new();
    for file in &arguments.files {
        match Sample::at(file, classifier.input()) {
            Ok(found) => samples.extend(found),
            Err(error) => failed.push((file.display().to_string(), error)),
        }
    }
    let total = samples.len() + failed.len();
    let bar = (!std::io::stdout().is_terminal()).then(|| terminal::Progress::new("classifying"));
    report.print(report.head())?;
    let (mut faults, mut done) = (0, 0);
    for (name, error) in failed {
        faults += 1;
        let text = report.fault(&name, &error);
        report.print(&text)?;
    }
    for chunk in samples.chunks(CHUNK) {
        let mut text = String::new();
        for (sample, embedding) in chunk.iter().zip(classifier.embed(chunk)?) {
            match embedding {
                Ok(embedding) => {
                    let guesses = candidates.rank(&embedding, arguments.top as usize);
                    text += &report.guesses(&sample.name, &guesses)?;
                }
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

/// Results in one form.
struct Report<'a> {
    candidates: &'a Candidates,
    format: Format,
    explain: bool,
    /// Samples written so far.
    entries: usize,
}

impl Report<'_> {
    fn print(&self, text: &str) -> anyhow::Result<()> {
        match self.format {
            Format::Text => terminal::print_text(text),
            Format::Csv => terminal::print_data(text),
            Format::Json => terminal::print_json(text),
        }
    }

    fn head(&self) -> &'static str {
        match self.format {
            Format::Text => "",
            Format::Csv => "file,rank,id,name,probability\n",
            Format::Json => "[",
        }
    }

    fn tail(&self) -> &'static str {
        if self.format == Format::Json { "\n]\n" } else { "" }
    }

    /// A sample that could not be read: named on standard error, and in JSON.
    fn fault(&mut self, name: &str, error: &TrainError) -> String {
        terminal::warn(&error.to_string());
        match self.format {
            Format::Text | Format::Csv => String::new(),
            Format::Json => self.object(&serde_json::json!({ "file": name, "error": error.to_string() })),
        }
    }

    fn guesses(&mut self, name: &str, guesses: &[Guess]) -> anyhow::Result<String> {
        let classes = self.candidates.classes();
        let shares = match guesses.first() {
            Some(best) if self.explain => Some(self.candidates.explain(best.class)),
            _ => None,
        };
        match self.format {
            Format::Text => Ok(self.text(name, guesses, shares.as_deref())),
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(Vec::new());
                for (rank, guess) in guesses.iter().enumerate() {
                    let class = &classes[guess.class];
                    let probability = format!("{:.6}", guess.probability);
                    writer.write_record([
                        name,
                        &(rank + 1).to_string(),
                        &class.id,
                        &class.name,
                        &probability,
                    ])?;
                }
                Ok(String::from_utf8(writer.into_inner()?)?)
            }
            Format::Json => {
                let list: Vec<serde_json::Value> = guesses
                    .iter()
                    .map(|guess| {
                        let class = &classes[guess.class];
                        serde_json::json!({
                            "id": class.id, "name": class.name,
                            "probability": guess.probability, "distance": guess.distance,
                        })
                    })
                    .collect();
                let mut object = serde_json::json!({ "file": name, "classes": list });
                if let Some(shares) = shares {
                    object["shaped_by"] = serde_json::to_value(shares)?;
                }
                Ok(self.object(&object))
            }
        }
    }

    fn object(&mut self, object: &serde_json::Value) -> String {
        self.entries += 1;
        format!("{}\n{object}", if self.entries == 1 { "" } else { "," })
    }

    fn text(&self, name: &str, guesses: &[Guess], shares: Option<&[Share]>) -> String {
        let classes = self.candidates.classes();
        let mut text = format!("{}\n", printable::one_line(name));
        for guess in guesses {
            let percent = 100.0 * guess.probability;
            // invariant: writing to a string does not fail.
            writeln!(text, "{percent:7.2}%  {}", labelled(&classes[guess.class])).unwrap();
        }
        let (Some(shares), Some(best)) = (shares, guesses.first()) else { return text };
        // invariant: as above.
        writeln!(text, "  what shaped {}:", printable::cell(&classes[best.class].name)).unwrap();
        let mut line =
            |share: f64, words: String| writeln!(text, "  {:7.2}%  {words}", 100.0 * share).unwrap();
        for share in shares.iter().take(SHOWN_SHARES) {
            let sign = if share.weight < 0.0 { ", taken away" } else { "" };
            line(share.share, format!("{}, {}{sign}", labelled(&share.class), in_words(share.relation)));
        }
        let rest = shares.get(SHOWN_SHARES..).unwrap_or_default();
        if !rest.is_empty() {
            line(rest.iter().map(|share| share.share).sum(), format!("{} others", rest.len()));
        }
        text
    }
}

fn labelled(class: &gpn_train::ClassName) -> String {
    let (id, name) = (printable::cell(&class.id), printable::cell(&class.name));
    if class.id == class.name { id } else { format!("{name} ({id})") }
}

fn in_words(relation: Relation) -> &'static str {
    match relation {
        Relation::Own => "its own samples",
        Relation::Parent => "above it",
        Relation::Child => "below it",
        Relation::Nearest => "nearest to it",
        Relation::Further => "further away",
    }
}
