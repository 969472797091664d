//! A trained model in use: it is taught classes and tells samples apart.

mod by_decision;
mod by_prior;
mod candidates;
mod change;
mod class_graph;
mod embed;
mod levels;
mod many;
mod predict;
mod teach;
mod version;

use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use gpn_encode::EmbeddingCache;
use gpn_model::{Device, InputShape};
use gpn_taxonomy::{Node, Taxonomy};
use gpn_train::{Changes, ModelInfo, TaughtClass, TrainError, TrainedModel, model_file};

pub use self::candidates::{Among, Candidates, ClassName, Ranked, Relation, Share};
pub use self::class_graph::ClassKind;
pub(crate) use self::levels::Levels;
pub use self::many::classes_at;
pub use self::predict::{Level, Likely, PredictRequest, Prediction, Predictor, Strange, Sure};
pub use self::teach::{IfTaught, NewClass, Parents, Taught};
pub use self::version::ClassEntry;
use self::version::Version;
use crate::encoder::{EncoderRecord, SampleEncoder};
use crate::error::{Error, Result};
use crate::sample::Sample;
use crate::watch::Watch;

/// A trained model with all it has been taught. Any number of threads may predict and teach at once: the weights never change,
/// and what has been taught is a version that is replaced as a whole.
///
/// ```no_run
/// use gpn::{Classifier, Device, IfTaught, NewClass, Parents, PredictRequest, Sample, Watch};
///
/// let classifier = Classifier::open("run".as_ref(), &Device::cpu())?;
/// let samples = Sample::at("photos/lynx".as_ref(), classifier.input())?;
/// let lynx = NewClass { class: "lynx".into(), parents: Parents::Named(vec!["cat".into()]), samples };
/// classifier.teach(&[lynx], IfTaught::Refuse, &Watch::default())?;
/// classifier.save("taught.safetensors".as_ref())?;
///
/// let photo = Sample::image_file("photo.jpg".as_ref());
/// for prediction in classifier.predict(&[photo], &PredictRequest::default(), &Watch::default())? {
///     let best = &prediction?.classes[0];
///     println!("{} {:.0}%", best.name, 100.0 * best.probability);
/// }
/// # Ok::<(), gpn::Error>(())
/// ```
pub struct Classifier {
    model: Arc<TrainedModel>,
    version: RwLock<Arc<Version>>,
    /// Held while a version is made from the one before.
    teaching: Mutex<()>,
    /// Turns photos and texts into the embeddings that a fitted model takes.
    encoder: Option<Arc<SampleEncoder>>,
}

impl Classifier {
    /// Opens a model file, or that of a run directory.
    pub fn open(path: &Path, device: &Device) -> Result<Self> {
        let file = model_file(path)?;
        Self::checked(TrainedModel::read(&file, device)?, &file)
    }

    /// Opens a model from the bytes of its file; messages call it by `name`.
    pub fn from_bytes(bytes: &[u8], name: &str, device: &Device) -> Result<Self> {
        Self::checked(TrainedModel::from_bytes(bytes, name.as_ref(), device)?, name.as_ref())
    }

    /// Opens a model from what a reader gives; messages call it by `name`.
    pub fn from_reader(mut reader: impl Read, name: &str, device: &Device) -> Result<Self> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(|source| Error::Io {
            action: "read",
            path: name.into(),
            source,
        })?;
        Self::from_bytes(&bytes, name, device)
    }

    /// Puts a trained model to use.
    pub fn new(mut model: TrainedModel) -> Result<Self> {
        if !model.network.method.answers_by_prototypes() {
            return Err(Error::NoPrototypes { method: model.info.config.train.method.to_string() });
        }
        let taught = std::mem::take(&mut model.info.taught);
        let changes = std::mem::take(&mut model.info.changes);
        let version = Version::new(&model.info, taught, changes)?;
        Ok(Self::with_version(Arc::new(model), Arc::new(version), None))
    }

    /// Another classifier with the same weights and all that this one has been taught. From here on each is taught for itself.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::with_version(Arc::clone(&self.model), self.version(), self.encoder.clone())
    }

    fn with_version(
        model: Arc<TrainedModel>,
        version: Arc<Version>,
        encoder: Option<Arc<SampleEncoder>>,
    ) -> Self {
        Self { model, version: RwLock::new(version), teaching: Mutex::new(()), encoder }
    }

    fn checked(model: TrainedModel, path: &Path) -> Result<Self> {
        Self::new(model).map_err(|error| match error {
            // A sound model of a method that this is not for.
            Error::NoPrototypes { .. } => error,
            error => {
                TrainError::Malformed { path: path.to_owned(), reason: format!("it is damaged: {error}") }
                    .into()
            }
        })
    }

    /// Writes the model with all it has been taught, whole or not at all. The same classes and samples give the same bytes.
    pub fn save(&self, path: &Path) -> Result<()> {
        Ok(TrainedModel::save(path, &self.described(), &self.model.network, &self.model.memory)?)
    }

    /// The bytes that [`save`](Self::save) writes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(TrainedModel::to_bytes(&self.described(), &self.model.network, &self.model.memory)?)
    }

    /// Writes the same into a writer.
    pub fn write(&self, mut writer: impl Write) -> Result<()> {
        let failed = |source| Error::Io { action: "write", path: "the model".into(), source };
        writer.write_all(&self.to_bytes()?).map_err(failed)
    }

    /// Gives the model its encoder, which must be the one that it was fitted with where the model says so.
    pub fn with_encoder(mut self, encoder: SampleEncoder) -> Result<Self> {
        let wanted = self.encoder_record().map(|record| record.id);
        match (&wanted, self.model.info.input) {
            (Some(wanted), _) => wanted.check(encoder.id())?,
            (None, InputShape::Embedding { len }) if len == encoder.id().dim => {}
            (None, InputShape::Embedding { len }) => {
                let reason =
                    format!("its embeddings have {} values; the model takes {len}", encoder.id().dim);
                return Err(Error::input(&encoder.id().file, reason));
            }
            (None, InputShape::Image { .. }) => {
                let reason = "the model has a network of its own and needs no encoder";
                return Err(Error::input(&encoder.id().file, reason));
            }
        }
        self.encoder = Some(Arc::new(encoder));
        Ok(self)
    }

    /// Opens the encoder that the model was fitted with, where it still is: at the path it had, or beside the model file. `None` where
    /// the model needs none, or it is not to be found.
    pub fn find_encoder(&self, model: &Path, cache: Option<EmbeddingCache>) -> Result<Option<SampleEncoder>> {
        let Some(record) = self.encoder_record() else { return Ok(None) };
        let beside = record.path.file_name().and_then(|name| Some(model.parent()?.join(name)));
        let found = [Some(record.path.clone()), beside].into_iter().flatten().find(|path| path.exists());
        found.map(|path| SampleEncoder::open(&path, &record.config, cache)).transpose()
    }

    /// The name of the encoder that photos or texts must go through first, where the model needs one and has none.
    pub fn missing_encoder(&self) -> Option<String> {
        self.encoder_record().filter(|_| self.encoder.is_none()).map(|record| record.id.file)
    }

    /// Whether the encoder that the model has takes images, or else texts; `None` without one.
    pub(crate) fn encoder_takes_images(&self) -> Option<bool> {
        self.encoder.as_ref().map(|encoder| encoder.takes_images())
    }

    fn encoder_record(&self) -> Option<EncoderRecord> {
        let described = self.model.info.fit.as_ref()?.encoder.clone()?;
        serde_json::from_value(described).ok()
    }

    /// The samples at a path: what the model's network takes, photos where it has an encoder, tables of embeddings otherwise.
    pub fn samples_at(&self, path: &Path) -> Result<Vec<Sample>> {
        let by_images = self.encoder.as_ref().is_some_and(|encoder| encoder.takes_images());
        let is_table = gpn_data::source::is_embeddings_name(&path.to_string_lossy());
        if by_images && !is_table {
            return Sample::at(path, InputShape::Image { height: 1, width: 1 });
        }
        if self.encoder.as_ref().is_some_and(|encoder| !encoder.takes_images()) && !is_table {
            return Sample::texts_at(path);
        }
        Sample::at(path, self.input()).map_err(|error| match self.missing_encoder() {
            Some(file) => Error::EncoderMissing { path: path.to_owned(), encoder: file },
            None => error,
        })
    }

    /// Whether a class, by id, was taught after the model was made.
    pub fn is_taught(&self, id: &str) -> bool {
        let version = self.version();
        let class = version.graph.graph.find(id);
        class.is_some_and(|class| version.graph.kind(class) == ClassKind::Taught)
    }

    /// Whether the model was fitted to a catalogue, so that trained classes can be taught more, forgotten and moved as well.
    pub fn is_fitted(&self) -> bool {
        self.model.network.method.prior().is_some_and(|prior| prior.decision().is_some())
    }

    /// What the model is; classes taught since it was opened are not in it.
    pub fn info(&self) -> &ModelInfo {
        &self.model.info
    }

    /// What a sample is.
    pub fn input(&self) -> InputShape {
        self.model.info.input
    }

    /// Weight of the prototype before propagation that fits the model ([`ModelInfo::lambda`]).
    pub fn default_lambda(&self) -> f32 {
        self.model.info.lambda()
    }

    /// All classes: training classes first, then those held out, then taught ones that the graph did not have.
    pub fn classes(&self) -> Vec<ClassEntry> {
        let version = self.version();
        version.graph.graph.nodes().map(|class| version.entry(&self.model, class)).collect()
    }

    /// The class graph with the taught classes; a class that is linked to the nearest training classes has no edges.
    pub fn graph(&self) -> Arc<Taxonomy> {
        Arc::clone(&self.version().graph.graph)
    }

    /// The class that is meant by an id, or by a name that only one class has.
    pub fn class(&self, text: &str) -> Result<ClassEntry> {
        let version = self.version();
        Ok(version.entry(&self.model, version.graph.find(text)?))
    }

    /// Classes by their number in [`graph`](Self::graph); numbers beyond it are left out.
    pub fn entries(&self, classes: impl IntoIterator<Item = Node>) -> Vec<ClassEntry> {
        let version = self.version();
        let known = classes.into_iter().filter(|&class| (class as usize) < version.graph.graph.len());
        known.map(|class| version.entry(&self.model, class)).collect()
    }

    /// Tells what the model has of a class, by its number in [`graph`](Self::graph), as of now.
    pub fn kinds(&self) -> impl Fn(Node) -> ClassKind + use<> {
        let version = self.version();
        move |class| version.graph.kind(class)
    }

    /// Numbers of an embedding of the model's own network.
    pub fn embedding_len(&self) -> usize {
        self.model.memory.dim
    }

    /// The classes whose id or name contains `query`, letter case ignored; none is an error that proposes the nearest.
    pub fn search(&self, query: &str) -> Result<Vec<ClassEntry>> {
        let version = self.version();
        let wanted = query.to_lowercase();
        let graph = &version.graph.graph;
        let found: Vec<ClassEntry> = graph
            .nodes()
            .filter(|&class| {
                [graph.id(class), graph.name(class)].iter().any(|text| text.to_lowercase().contains(&wanted))
            })
            .map(|class| version.entry(&self.model, class))
            .collect();
        if found.is_empty() {
            let reason = match version.graph.nearest(query) {
                Some(near) => format!("no id or name contains it; did you mean {near}?"),
                None => "no id or name contains it".into(),
            };
            return Err(Error::NoSuchClass { class: query.to_owned(), reason });
        }
        Ok(found)
    }

    /// Embeds samples. A sample that cannot be read is an error in its place. Samples are read and prepared in parallel, some at a
    /// time, and the embedding of a sample does not depend on the others.
    pub fn embed(&self, samples: &[Sample], watch: &Watch<'_>) -> Result<Vec<Result<Vec<f32>>>> {
        self.embed_all(&samples.iter().collect::<Vec<_>>(), watch)
    }

    /// The classes to choose from with their propagated prototypes, to be used for any number of samples. `lambda` is the
    /// weight of the prototypes before propagation.
    pub fn candidates(&self, among: &Among, lambda: f32) -> Result<Candidates> {
        self.version().candidates(&self.model, among, lambda)
    }

    /// What has been taught so far.
    fn version(&self) -> Arc<Version> {
        // Held for the copy of a pointer only: readers never wait for a teacher's work.
        Arc::clone(&self.version.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the version by one with these taught classes and changes.
    fn replace(&self, taught: Vec<TaughtClass>, changes: Changes) -> Result<()> {
        let version = Arc::new(Version::new(&self.model.info, taught, changes)?);
        *self.version.write().unwrap_or_else(PoisonError::into_inner) = version;
        Ok(())
    }

    /// What the model is, with the taught classes.
    fn described(&self) -> ModelInfo {
        let version = self.version();
        let (taught, changes) = (version.taught.clone(), version.changes.clone());
        ModelInfo { taught, changes, ..self.model.info.clone() }
    }
}
