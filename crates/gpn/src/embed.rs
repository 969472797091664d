//! Samples to a table of embeddings, by a frozen encoder or by the backbone of a trained model.

use std::path::{Path, PathBuf};

use gpn_data::format::archive::{Archive, read_small_file};
use gpn_encode::{
    EmbeddingCache, EmbeddingTable, EncodeError, EncoderConfig, ImageContent, ImageEncoder, Images,
    TextEncoder,
};
use gpn_model::Device;
use serde::Serialize;

use crate::classifier::Classifier;
use crate::error::{Error, Result};
use crate::output::may_write;
use crate::sample::{Sample, is_photo_name};
use crate::watch::{Event, Watch};

/// Largest file of texts.
const MAX_TEXT_BYTES: u64 = 1 << 30;
/// Names of columns with classes.
const LABEL_COLUMNS: [&str; 3] = ["class_name", "class", "label"];

/// What is to be embedded, by what, and where it goes.
#[derive(Clone, Debug)]
pub struct EmbedRequest<'a> {
    /// An `.onnx` file, the folder of a text encoder, or a trained model (its file or run directory).
    pub encoder: &'a Path,
    /// Settings of an encoder.
    pub config: EncoderConfig,
    /// Where embeddings of encoders are kept; nowhere if `None`.
    pub cache: Option<&'a EmbeddingCache>,
    /// Photos, folders or archives of photos; for a text encoder files of texts; for a model what it was trained on.
    pub inputs: &'a [PathBuf],
    /// The column of a CSV file that holds the texts.
    pub text_column: &'a str,
    /// The file to write: `.npy`, `.npz` or `.parquet`.
    pub out: &'a Path,
    /// Whether files that are there already are replaced.
    pub replace: bool,
}

/// What has been embedded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Embedded {
    /// The files written.
    pub files: Vec<PathBuf>,
    /// Embeddings in them.
    pub embeddings: usize,
    /// Length of each.
    pub dim: usize,
    /// Whether the class of every row is known and written.
    pub labelled: bool,
    /// How many came from the cache.
    pub from_cache: usize,
    /// Samples that could not be embedded, with the reason.
    pub failed: Vec<String>,
}

/// Samples with what is known about them.
struct Rows {
    names: Vec<String>,
    /// The class of each, where there is one.
    labels: Vec<Option<String>>,
}

/// Embeds samples and writes a table of those that could be read. None at all is an error.
pub fn embed(request: &EmbedRequest<'_>, watch: &Watch<'_>) -> Result<Embedded> {
    for file in gpn_encode::files_of(request.out, true)? {
        may_write(&file, request.replace)?;
    }
    let (rows, embeddings, from_cache) = if is_image_encoder(request.encoder) {
        by_image_encoder(request, watch)?
    } else if TextEncoder::is_at(request.encoder) {
        by_text_encoder(request, watch)?
    } else {
        by_model(request, watch)?
    };
    let mut failed = Vec::new();
    let (mut values, mut names, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    let mut dim = 0;
    for ((name, label), embedding) in rows.names.into_iter().zip(rows.labels).zip(embeddings) {
        match embedding {
            Ok(embedding) => {
                dim = embedding.len();
                values.extend(embedding);
                names.push(name);
                labels.push(label);
            }
            Err(error) => failed.push(error.to_string()),
        }
    }
    if names.is_empty() {
        let reason = failed.first().cloned().unwrap_or_else(|| "there is nothing to embed".into());
        return Err(Error::input(request.out.display(), format!("nothing was written: {reason}")));
    }
    let unlabelled = labels.iter().filter(|label| label.is_none()).count();
    if unlabelled > 0 && unlabelled < labels.len() {
        watch.note(&format!(
            "{unlabelled} of {} samples have no class, so no classes are written",
            labels.len()
        ));
    }
    let labels: Option<Vec<String>> = labels.into_iter().collect();
    let table = EmbeddingTable { dim, values: &values, labels: labels.as_deref(), files: &names };
    gpn_encode::write(request.out, &table)?;
    let labelled = labels.is_some();
    let files = gpn_encode::files_of(request.out, labelled)?;
    Ok(Embedded { files, embeddings: names.len(), dim, labelled, from_cache, failed })
}

fn is_image_encoder(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"))
}

/// Whether a path is that of an encoder; otherwise it should be that of a trained model.
pub(crate) fn is_encoder(path: &Path) -> bool {
    is_image_encoder(path) || TextEncoder::is_at(path)
}

type Embeddings = (Rows, Vec<Result<Vec<f32>>>, usize);

fn by_image_encoder(request: &EmbedRequest<'_>, watch: &Watch<'_>) -> Result<Embeddings> {
    let photos = Photos::at(request.inputs)?;
    let encoder = ImageEncoder::open(request.encoder, &request.config)?;
    let encoded = encoder.encode(&photos, request.cache, &progress(watch))?;
    Ok((photos.rows(), embeddings_of(encoded.embeddings), told(encoded.notes, encoded.from_cache, watch)))
}

fn by_text_encoder(request: &EmbedRequest<'_>, watch: &Watch<'_>) -> Result<Embeddings> {
    let mut rows = Rows { names: Vec::new(), labels: Vec::new() };
    for path in request.inputs {
        read_texts(path, request.text_column, &mut rows)?;
    }
    let encoder = TextEncoder::open(request.encoder, &request.config)?;
    let encoded = encoder.encode(&rows.names, request.cache, &progress(watch))?;
    let from_cache = told(encoded.notes, encoded.from_cache, watch);
    Ok((rows, embeddings_of(encoded.embeddings), from_cache))
}

/// Opens a trained model to embed with; settings of an encoder are refused.
pub(crate) fn open_model(path: &Path, config: &EncoderConfig) -> Result<Classifier> {
    if path.is_dir() && !path.join("run.json").exists() {
        return Err(Error::input(
            path.display(),
            "it is neither a text encoder (no tokenizer.json) nor a run directory (no run.json)",
        ));
    }
    // Where a library lies is no setting of the encoder.
    let settings = EncoderConfig { onnxruntime_library: None, ..config.clone() };
    if settings != EncoderConfig::default() {
        return Err(Error::input(
            path.display(),
            "it is a trained model, which brings its own settings; those of an encoder do not apply",
        ));
    }
    Classifier::open(path, &Device::cpu())
}

fn by_model(request: &EmbedRequest<'_>, watch: &Watch<'_>) -> Result<Embeddings> {
    let classifier = open_model(request.encoder, &request.config)?;
    let mut samples = Vec::new();
    for path in request.inputs {
        samples.extend(Sample::at(path, classifier.input())?);
    }
    let embeddings = classifier.embed(&samples, watch)?;
    let names: Vec<String> = samples.into_iter().map(|sample| sample.name).collect();
    Ok((Rows { labels: vec![None; names.len()], names }, embeddings, 0))
}

/// The progress of an encoder as events.
fn progress<'w>(watch: &'w Watch<'w>) -> impl Fn(usize, usize) -> std::ops::ControlFlow<()> + Sync + 'w {
    move |done, total| watch.tell(&Event::Encoded { done, total })
}

fn told(notes: Vec<String>, from_cache: usize, watch: &Watch<'_>) -> usize {
    for note in notes {
        watch.note(&note);
    }
    from_cache
}

fn embeddings_of(embeddings: Vec<gpn_encode::Result<Vec<f32>>>) -> Vec<Result<Vec<f32>>> {
    embeddings.into_iter().map(|embedding| Ok(embedding?)).collect()
}

/// Photos in files, folders and archives.
struct Photos {
    files: Vec<PhotoFile>,
    archives: Vec<Archive>,
}

enum PhotoFile {
    Alone(PathBuf),
    Inside { archive: usize, entry: usize },
}

impl Photos {
    fn at(paths: &[PathBuf]) -> Result<Self> {
        let mut photos = Self { files: Vec::new(), archives: Vec::new() };
        for path in paths {
            let name = path.to_string_lossy().to_ascii_lowercase();
            let is_archive = [".zip", ".tar", ".tar.gz", ".tgz"].iter().any(|ending| name.ends_with(ending));
            if !path.is_dir() && !is_archive {
                if let Err(source) = std::fs::metadata(path) {
                    return Err(Error::Io { action: "open", path: path.clone(), source });
                }
                photos.files.push(PhotoFile::Alone(path.clone()));
                continue;
            }
            let archive = Archive::open(path)?;
            let number = photos.archives.len();
            let found = (0..archive.len()).filter(|&entry| is_photo_name(archive.name(entry)));
            let before = photos.files.len();
            photos.files.extend(found.map(|entry| PhotoFile::Inside { archive: number, entry }));
            if photos.files.len() == before {
                return Err(Error::input(path.display(), "there are no images in it"));
            }
            photos.archives.push(archive);
        }
        Ok(photos)
    }

    /// Names, and the last folder of each photo inside of a folder or archive as its class.
    fn rows(&self) -> Rows {
        let label = |file: &PhotoFile| match file {
            PhotoFile::Alone(_) => None,
            PhotoFile::Inside { archive, entry } => {
                let (folders, _) = self.archives[*archive].name(*entry).rsplit_once('/')?;
                Some(folders.rsplit_once('/').map_or(folders, |(_, last)| last).to_owned())
            }
        };
        let names = (0..self.files.len()).map(|index| self.name(index)).collect();
        Rows { names, labels: self.files.iter().map(label).collect() }
    }
}

impl Images for Photos {
    fn count(&self) -> usize {
        self.files.len()
    }

    fn name(&self, index: usize) -> String {
        match &self.files[index] {
            PhotoFile::Alone(path) => path.display().to_string(),
            PhotoFile::Inside { archive, entry } => {
                let archive = &self.archives[*archive];
                archive.path().join(archive.name(*entry)).display().to_string()
            }
        }
    }

    fn read(&self, index: usize) -> Result<ImageContent<'_>, EncodeError> {
        match &self.files[index] {
            PhotoFile::Alone(path) => std::slice::from_ref(path).read(0).map(|content| match content {
                ImageContent::File(bytes) => ImageContent::File(bytes.into_owned().into()),
                ImageContent::Pixels(image) => ImageContent::Pixels(image),
            }),
            PhotoFile::Inside { archive, entry } => {
                Ok(ImageContent::File(self.archives[*archive].read(*entry)?))
            }
        }
    }
}

/// Reads one text a line, or the column of texts of a CSV file with its column of classes.
fn read_texts(path: &Path, column: &str, rows: &mut Rows) -> Result<()> {
    let wrong = |reason: String| Error::input(path.display(), reason);
    if path.is_dir() {
        return Err(wrong("it is a directory; name a text file (one text a line) or a CSV file".into()));
    }
    let bytes = read_small_file(path, MAX_TEXT_BYTES)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|&byte| byte == b'\n').count();
        wrong(format!("line {line} is not UTF-8; save the file as UTF-8"))
    })?;
    let before = rows.names.len();
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if extension.eq_ignore_ascii_case("csv") || extension.eq_ignore_ascii_case("tsv") {
        let first = text.lines().next().unwrap_or_default();
        let delimiters = [b',', b';', b'\t'];
        let count = |delimiter: &u8| first.bytes().filter(|byte| byte == delimiter).count();
        // invariant: there are delimiters to choose from.
        let delimiter = *delimiters.iter().rev().max_by_key(|delimiter| count(delimiter)).unwrap();
        let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(text.as_bytes());
        let headings = reader.headers().map_err(|error| wrong(error.to_string()))?.clone();
        let place = |name: &str| headings.iter().position(|heading| heading.trim() == name);
        let texts = place(column).ok_or_else(|| {
            let names: Vec<&str> = headings.iter().collect();
            wrong(format!("there is no column `{column}`; there are {}", names.join(", ")))
        })?;
        let classes = LABEL_COLUMNS.iter().find_map(|name| place(name)).filter(|&place| place != texts);
        for record in reader.records() {
            let record = record.map_err(|error| wrong(error.to_string()))?;
            rows.names.push(record[texts].trim().to_owned());
            rows.labels.push(classes.map(|classes| record[classes].trim().to_owned()));
        }
    } else {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        rows.names.extend(lines.map(str::to_owned));
        rows.labels.resize(rows.names.len(), None);
    }
    if rows.names.len() == before {
        return Err(wrong("there are no texts in it".into()));
    }
    Ok(())
}
