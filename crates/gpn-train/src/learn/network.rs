//! All that is trained: backbone, classifier of the auxiliary task, and the few-shot method.

use std::time::{Duration, Instant};

use gpn_model::methods::{Episode, EpisodeShape, Method};
use gpn_model::{
    Adam, ClassifierHead, Device, Embedder, InputShape, Memory, NamedTensor, Neighbourhood, TensorInfo,
    TensorList, Trainable, Update, Weights, accuracy,
};

use crate::error::TrainError;
use crate::settings::Config;

/// The network of a run.
pub struct Network {
    /// Samples to embeddings.
    pub embedder: Embedder,
    /// The linear classifier over all training classes.
    pub head: ClassifierHead,
    /// Learns from tasks and answers them.
    pub method: Box<dyn Method>,
    /// Where the time of training steps went so far.
    pub time: StepTime,
}

/// Where the time of training steps goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepTime {
    /// Forward and backward passes of the backbone.
    pub backbone: Duration,
    /// Task graphs, and what the method does with embeddings: propagation, its loss and its gradient.
    pub method: Duration,
    /// The auxiliary task's loss and the optimiser.
    pub other: Duration,
}

/// Measures laps: the time since the lap before.
struct Laps(Instant);

impl Laps {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn add_to(&mut self, sum: &mut Duration) {
        let now = Instant::now();
        *sum += now - self.0;
        self.0 = now;
    }
}

/// The optimiser at one episode.
pub struct Optimiser<'a> {
    /// Adam with its moments.
    pub adam: &'a mut Adam,
    /// Learning rate.
    pub rate: f64,
    /// The episode, for messages.
    pub episode: u64,
}

impl Optimiser<'_> {
    fn step(self, updates: &mut [Update<'_>]) -> Result<(), TrainError> {
        Ok(self.adam.step(updates, self.rate, self.episode)?)
    }
}

/// What came of a training step.
#[derive(Clone, Debug, serde::Serialize)]
pub struct StepResult {
    /// Mean loss.
    pub loss: f32,
    /// Share of queries (or samples) classified correctly.
    pub accuracy: f32,
}

impl Network {
    /// A network for so many training classes, with fresh parameters that depend on the seed alone.
    pub fn new(
        config: &Config,
        input: InputShape,
        classes: usize,
        device: &Device,
    ) -> Result<Self, TrainError> {
        let seed = config.train.seed;
        let backbone = config.model.backbone.config();
        let mut embedder = Embedder::new(&backbone, input, device, seed)?;
        embedder.set_exact_batch(config.model.exact_batch);
        let dim = embedder.embedding_len();
        let mut head = ClassifierHead::new(dim, classes, device, seed)?;
        head.initialise(config.model.head_init, seed);
        Ok(Self {
            head,
            method: (config.train.method.kind().make)(&config.method_settings(), dim, classes)?,
            embedder,
            time: StepTime::default(),
        })
    }

    /// One step of the auxiliary task: cross entropy over all training classes.
    pub fn auxiliary_step(
        &mut self,
        inputs: &[f32],
        labels: &[usize],
        optimiser: Optimiser<'_>,
    ) -> Result<StepResult, TrainError> {
        let mut laps = Laps::start();
        let embeddings = self.embedder.forward_train(inputs)?;
        laps.add_to(&mut self.time.backbone);
        let own = self.method.learn_batch(&embeddings, labels);
        let has_own = own.is_some();
        let pass = match own {
            Some(pass) => pass?,
            None => self.head.forward_backward(&embeddings, labels)?,
        };
        laps.add_to(&mut self.time.other);
        self.embedder.backward(&pass.grad_embeddings)?;
        laps.add_to(&mut self.time.backbone);
        let mut updates = self.embedder.updates();
        updates.extend(if has_own { self.method.updates() } else { self.head.updates() });
        optimiser.step(&mut updates)?;
        laps.add_to(&mut self.time.other);
        Ok(StepResult { loss: pass.loss, accuracy: accuracy(&pass.logits, labels) })
    }

    /// The gradients of one few-shot task, left in embedder and method.
    ///
    /// `inputs` are the support samples, class by class, then the queries, class by class: as many for each class. Where
    /// "other" is an answer, it comes after the classes. `neighbourhood` is given where the method uses the class graph.
    pub fn few_shot_gradients(
        &mut self,
        inputs: &[f32],
        shape: EpisodeShape,
        neighbourhood: Option<&Neighbourhood>,
        memory: &Memory,
    ) -> Result<StepResult, TrainError> {
        let EpisodeShape { way, shot, rest, .. } = shape;
        let answers = way + usize::from(rest > 0);
        let dim = self.embedder.embedding_len();
        let mut laps = Laps::start();
        let embeddings = self.embedder.forward_train(inputs)?;
        laps.add_to(&mut self.time.backbone);
        let (support, queries) = embeddings.split_at((way * shot + rest) * dim);
        let per_answer = queries.len() / dim / answers;
        let labels: Vec<usize> =
            (0..answers).flat_map(|answer| std::iter::repeat_n(answer, per_answer)).collect();
        let episode = Episode { support, queries, labels: &labels, shape, dim, neighbourhood, memory };
        let pass = self.method.learn(&episode)?;
        let mut grads = pass.grad_support;
        grads.extend(pass.grad_queries);
        laps.add_to(&mut self.time.method);
        self.embedder.backward(&grads)?;
        laps.add_to(&mut self.time.backbone);
        Ok(StepResult { loss: pass.loss, accuracy: pass.accuracy })
    }

    /// One few-shot step: [`few_shot_gradients`](Self::few_shot_gradients) and a step of the optimiser.
    pub fn few_shot_step(
        &mut self,
        inputs: &[f32],
        shape: EpisodeShape,
        neighbourhood: Option<&Neighbourhood>,
        memory: &Memory,
        optimiser: Optimiser<'_>,
    ) -> Result<StepResult, TrainError> {
        let result = self.few_shot_gradients(inputs, shape, neighbourhood, memory)?;
        let mut laps = Laps::start();
        let mut updates = self.embedder.updates();
        updates.extend(self.method.updates());
        optimiser.step(&mut updates)?;
        laps.add_to(&mut self.time.other);
        Ok(result)
    }

    /// All tensors of the network, as files hold them: backbone, batch-norm buffers and classifier behind `emb.`, those of
    /// the method by its own names (`prop.` for propagation).
    pub fn state(&self) -> TensorList {
        let (mut infos, mut values) = (Vec::new(), Vec::new());
        let mut add = |prefix: &str, tensor: NamedTensor<'_>| {
            infos.push(TensorInfo { name: format!("{prefix}{}", tensor.name), shape: tensor.shape.to_vec() });
            values.push(tensor.values.to_vec());
        };
        self.embedder.state().chain(self.head.parameters().iter()).for_each(|tensor| add("emb.", tensor));
        self.method.state().iter().for_each(|tensor| add("", tensor));
        TensorList::new(infos, |index, _| std::mem::take(&mut values[index]))
    }

    /// Takes all tensors from a weight file.
    pub fn load(&mut self, weights: &Weights) -> Result<(), TrainError> {
        weights.load(&mut self.embedder)?;
        weights.load_head(&mut self.head)?;
        Ok(self.method.load(weights)?)
    }
}
