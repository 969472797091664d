//! `gpn teach`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use gpn_data::source::{SourceKind, SourceSpec};
use gpn_files::FileLock;
use gpn_model::{Device, InputShape};
use gpn_taxonomy::nearest_name;
use gpn_train::{Again, ClassEntry, Classifier, Learned, Lesson, Place, Placing, Sample};

use crate::table::Table;
use crate::{output, printable, terminal};

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
}

pub(crate) fn run(arguments: &TeachArguments) -> anyhow::Result<()> {
    let in_place = output::same_file(&gpn_train::model_file(&arguments.model)?, &arguments.out);
    let may_write = || output::may_write(&arguments.out, arguments.force || in_place);
    may_write()?;
    // From here to the end, so that nothing taught to the same file meanwhile is lost.
    let _lock = FileLock::wait(&arguments.out, |holder| {
        terminal::warn(&format!("{holder} is writing {}; waiting for it", arguments.out.display()));
    })
    .with_context(|| format!("{}: cannot write", arguments.out.display()))?;
    // Whoever was waited for may have written the file.
    may_write()?;
    let device = Device::open(arguments.device.parse()?)?;
    let mut classifier = Classifier::open(&arguments.model, &device)?;
    let lessons = lessons(arguments, classifier.input())?;
    let again = match (arguments.more, arguments.replace) {
        (true, _) => Again::More,
        (_, true) => Again::Replace,
        _ => Again::Refuse,
    };
    let learned = classifier.teach(&lessons, again)?;
    classifier.save(&arguments.out)?;
    warn_of_repeated(&learned);
    if arguments.json {
        return terminal::print_json(&format!("{:#}\n", serde_json::to_value(&learned)?));
    }
    let entries = classifier.classes();
    let mut table = Table::of_words(["id", "name", "samples", "place"]);
    for class in &learned {
        table.row([class.id.clone(), class.name.clone(), class.samples.to_string(), place(&entries, class)]);
    }
    terminal::print_text(&table.to_string())
}

/// One warning of all samples that their classes had already.
fn warn_of_repeated(learned: &[Learned]) {
    let repeated: Vec<&Learned> = learned.iter().filter(|class| class.repeated > 0).collect();
    match repeated[..] {
        [] => {}
        [class] => terminal::warn(&format!(
            "class {}: {} samples were given before; they count once",
            printable::cell(&class.id),
            class.repeated
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
fn place(entries: &[ClassEntry], class: &Learned) -> String {
    let entry = entries.iter().find(|entry| entry.id == class.id);
    let (ids, word) = match (&class.place, entry) {
        (Place::Nearest, Some(entry)) => (&entry.nearest, "near"),
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

fn lessons(arguments: &TeachArguments, input: InputShape) -> anyhow::Result<Vec<Lesson>> {
    if let Some(class) = &arguments.class {
        let place = match (arguments.nearest, &arguments.parent[..]) {
            (true, _) => Placing::Nearest,
            (_, []) => Placing::Found,
            (_, parents) => Placing::Below(parents.to_vec()),
        };
        let samples = samples(&arguments.files, input)?;
        return Ok(vec![Lesson { class: class.clone(), place, samples }]);
    }
    let Some(path) = &arguments.classes_from else { bail!("name a class with --class") };
    let classes = if path.is_dir() { classes_in(path, input)? } else { classes_of_table(path, input)? };
    let mut parents = match &arguments.parents {
        Some(file) => parents_of(file, &classes)?,
        None => BTreeMap::new(),
    };
    let lesson = |(class, samples): (String, Vec<Sample>)| {
        let place = match parents.remove(&class) {
            Some(parents) => Placing::Below(parents),
            None if arguments.nearest => Placing::Nearest,
            None => Placing::Found,
        };
        Lesson { class, place, samples }
    };
    Ok(classes.into_iter().map(lesson).collect())
}

fn samples(files: &[PathBuf], input: InputShape) -> anyhow::Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for file in files {
        samples.extend(Sample::at(file, input)?);
    }
    Ok(samples)
}

/// One class for each folder in a folder.
fn classes_in(path: &Path, input: InputShape) -> anyhow::Result<BTreeMap<String, Vec<Sample>>> {
    let mut classes = BTreeMap::new();
    for entry in std::fs::read_dir(path).with_context(|| format!("{}: cannot read", path.display()))? {
        let folder = entry.with_context(|| format!("{}: cannot read", path.display()))?.path();
        let Some(name) = folder.file_name().and_then(|name| name.to_str()).filter(|_| folder.is_dir()) else {
            continue;
        };
        classes.insert(name.to_owned(), Sample::at(&folder, input)?);
    }
    ensure!(
        !classes.is_empty(),
        "{}: there are no folders in it; --classes-from expects one for each class",
        path.display()
    );
    Ok(classes)
}

/// One class for each label of a table of embeddings.
fn classes_of_table(path: &Path, input: InputShape) -> anyhow::Result<BTreeMap<String, Vec<Sample>>> {
    let InputShape::Embedding { len } = input else {
        bail!("{}: this model takes images; name a folder with a folder for each class", path.display());
    };
    let table = gpn_data::open(&SourceSpec { kind: SourceKind::Embeddings, path: path.to_owned() })?;
    let mut values = match table.kind() {
        gpn_data::SampleKind::Embeddings { dim } if dim == len => vec![0.0; len],
        gpn_data::SampleKind::Embeddings { dim } => {
            bail!("{}: the embeddings have {dim} numbers; this model takes {len}", path.display())
        }
        gpn_data::SampleKind::Images => bail!("{}: it holds no embeddings", path.display()),
    };
    let mut classes: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
    for (row, info) in table.samples().iter().enumerate() {
        table.embedding(row, &mut values)?;
        let class = table.leaves()[info.leaf as usize].id.clone();
        let name = format!("{}: {}", path.display(), info.file);
        classes.entry(class).or_default().push(Sample::embedding(name, values.clone()));
    }
    Ok(classes)
}

/// The parents of each class in a file of edges, whose children must all be taught.
fn parents_of(
    file: &Path,
    classes: &BTreeMap<String, Vec<Sample>>,
) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let edges = gpn_taxonomy::read_edges(file)?.taxonomy;
    let mut parents = BTreeMap::new();
    for child in edges.nodes().filter(|&child| !edges.parents(child).is_empty()) {
        let id = edges.id(child);
        if !classes.contains_key(id) {
            let hint = match nearest_name(id, classes.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "take its lines out".into(),
            };
            bail!("{}: class `{id}` has parents here but is not being taught; {hint}", file.display());
        }
        let above = edges.parents(child).iter().map(|&parent| edges.id(parent).to_owned()).collect();
        parents.insert(id.to_owned(), above);
    }
    Ok(parents)
}
