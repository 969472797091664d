//! `gpn teach`.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use gpn::taxonomy::TaxonomySpec;
use gpn::train::Placement;
use gpn::{ClassEntry, Classifier, IfTaught, NewClass, Parents, Taught, Watch, classes_at, output};

use crate::open::{ModelEncoder, lock};
use crate::table::Table;
use crate::terminal::counted;
use crate::{printable, terminal};

const HELP: &str = "Samples are image files (JPEG, PNG, WebP, BMP, GIF), or tables of embeddings (.npy, .npz, .parquet) \
for a model trained on embeddings; a folder stands for all of them in it. Nothing is trained, and a sample given twice counts \
once.";

#[derive(Args)]
#[command(after_help = HELP)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that a user types")]
pub(crate) struct TeachArguments {
    /// The model file, or its run directory.
    model: PathBuf,
    /// Samples of the class, files or folders.
    #[arg(required_unless_present = "classes_from", conflicts_with = "classes_from")]
    files: Vec<PathBuf>,
    /// The class: an id or name of the model's class graph, which knows its place, or a new name.
    #[arg(
        long,
        value_name = "NAME",
        required_unless_present = "classes_from",
        conflicts_with = "classes_from"
    )]
    class: Option<String>,
    /// A parent of the class, by id or name; may be given several times. Without one, a class that the class graph does not
    /// have is linked to the nearest training classes.
    #[arg(long, value_name = "CLASS", conflicts_with = "classes_from")]
    parent: Vec<String>,
    /// Teach many classes: a folder with a folder of samples for each class, or a table of embeddings with labels.
    #[arg(long, value_name = "PATH")]
    classes_from: Option<PathBuf>,
    /// Parents of those classes: a CSV file of child,parent lines.
    #[arg(long, value_name = "FILE", requires = "classes_from")]
    parents: Option<PathBuf>,
    /// Another class graph that says where classes stand that the model's own does not have: kinds.csv, go.obo, wordnet.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["parent", "parents", "nearest"])]
    taxonomy: Option<String>,
    /// Link to the nearest training classes even where the class graph knows the place.
    #[arg(long, conflicts_with_all = ["parent", "parents"])]
    nearest: bool,
    /// Add the samples to those of a class taught before.
    #[arg(long, conflicts_with = "replace")]
    more: bool,
    /// Forget what was taught of the class before.
    #[arg(long)]
    replace: bool,
    /// The model file to write; it may be the one that is read.
    #[arg(long, value_name = "MODEL")]
    out: PathBuf,
    /// Replace another file at --out.
    #[arg(long)]
    force: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Where to compute: cpu, or cuda, rocm, wgpu where built in.
    #[arg(long, default_value = "cpu")]
    device: String,
    #[command(flatten)]
    encoder: ModelEncoder,
}

pub(crate) fn run(arguments: &TeachArguments) -> anyhow::Result<()> {
    let in_place = output::same_file(&gpn::train::model_file(&arguments.model)?, &arguments.out);
    let may_write = || output::may_write(&arguments.out, arguments.force || in_place);
    may_write()?;
    // From here to the end, so that nothing taught to the same file meanwhile is lost.
    let _lock = lock(&arguments.out)?;
    // Whoever was waited for may have written the file.
    may_write()?;
    let classifier = arguments.encoder.open(&arguments.model, &arguments.device)?;
    let mut classes = classes(arguments, &classifier)?;
    leave_out_unreadable(&classifier, &mut classes)?;
    let taxonomy = arguments.taxonomy.as_deref().map(str::parse::<TaxonomySpec>).transpose()?;
    let taxonomy = taxonomy.map(|spec| gpn::taxonomy::read(&spec)).transpose()?;
    let taxonomy = taxonomy.as_ref().map(|checked| &checked.taxonomy);
    let if_taught = match (arguments.more, arguments.replace) {
        (true, _) => IfTaught::Add,
        (_, true) => IfTaught::Replace,
        _ => IfTaught::Refuse,
    };
    let taught = classifier.teach_in(&classes, if_taught, taxonomy, &Watch::default())?;
    classifier.save(&arguments.out)?;
    warn_of_repeated(&taught);
    if arguments.json {
        return terminal::print_json(&format!("{:#}\n", serde_json::to_value(&taught)?));
    }
    let entries = classifier.classes();
    let mut table = Table::of_words(["id", "name", "samples", "place"]);
    for class in &taught {
        table.row([class.id.clone(), class.name.clone(), class.samples.to_string(), place(&entries, class)]);
    }
    terminal::print_text(&table.to_string())
}

/// One warning of all samples that their classes had already.
fn warn_of_repeated(taught: &[Taught]) {
    let repeated: Vec<&Taught> = taught.iter().filter(|class| class.repeated > 0).collect();
    match repeated[..] {
        [] => {}
        [class] => terminal::warn(&format!(
            "class {}: {}",
            printable::cell(&class.id),
            counted(
                class.repeated,
                "sample was given before; it counts once",
                "samples were given before; they count once"
            )
        )),
        _ => {
            let samples: usize = repeated.iter().map(|class| class.repeated).sum();
            let named = repeated.iter().map(|class| format!("{} ({})", class.id, class.repeated));
            terminal::warn(&format!(
                "{samples} samples of {} classes were given before; they count once: {}",
                repeated.len(),
                terminal::first_few(named)
            ));
        }
    }
}

/// Where a class stands, in words.
fn place(entries: &[ClassEntry], class: &Taught) -> String {
    let entry = entries.iter().find(|entry| entry.id == class.id);
    let (ids, word) = match (&class.place, entry) {
        (Placement::Nearest, Some(entry)) => (&entry.nearest, "near"),
        (_, Some(entry)) => (&entry.parents, "below"),
        (_, None) => return String::new(),
    };
    let names: Vec<&str> = ids
        .iter()
        .filter_map(|id| entries.iter().find(|entry| entry.id == *id))
        .map(|entry| entry.name.as_str())
        .collect();
    format!("{word} {}", names.join(", "))
}

/// Takes out samples that cannot be read, with one warning; a class must keep one.
fn leave_out_unreadable(classifier: &Classifier, classes: &mut [NewClass]) -> anyhow::Result<()> {
    let mut failed = Vec::new();
    for class in classes {
        let embedded = classifier.embed(&class.samples, &Watch::default())?;
        if !embedded.is_empty() && embedded.iter().all(Result::is_err) {
            // invariant: there is at least one, and all of them are errors.
            return Err(embedded.into_iter().find_map(Result::err).unwrap().into());
        }
        let mut is_read = embedded.iter().map(Result::is_ok);
        class.samples.retain(|_| is_read.next().unwrap_or(true));
        failed.extend(embedded.into_iter().filter_map(Result::err));
    }
    if !failed.is_empty() {
        let named = terminal::first_few(failed.iter().map(ToString::to_string));
        terminal::warn(&format!("{} left out: {named}", counted(failed.len(), "sample is", "samples are")));
    }
    Ok(())
}

fn classes(arguments: &TeachArguments, classifier: &Classifier) -> anyhow::Result<Vec<NewClass>> {
    let otherwise = if arguments.nearest { Parents::Unknown } else { Parents::FromGraph };
    let Some(class) = &arguments.class else {
        let Some(path) = &arguments.classes_from else { bail!("name a class with --class") };
        return Ok(classes_at(path, arguments.parents.as_deref(), &otherwise, classifier)?);
    };
    let parents = match &arguments.parent[..] {
        [] => otherwise,
        parents => Parents::Named(parents.to_vec()),
    };
    let mut samples = Vec::new();
    for file in &arguments.files {
        samples.extend(classifier.samples_at(file)?);
    }
    Ok(vec![NewClass { class: class.clone(), parents, samples }])
}
