//! All that is trained: backbone, classifier of the auxiliary task, and the few-shot method.

use std::time::{Duration, Instant};

use gpn_model::methods::{Episode, EpisodeShape, Method};
use gpn_model::{
    Adam, ClassifierHead, Device, Embedder, InputShape, Memory, NamedTensor, Neighbourhood, OnFinal,
    TensorInfo, TensorList, Trainable, Weights, accuracy,
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
    /// The auxiliary task's loss, the sum over the shards of a process that trains alone, and the optimiser.
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

/// What came of a training step.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct StepResult {
    /// Mean loss.
    pub loss: f32,
    /// Share of queries (or samples) classified correctly.
    pub accuracy: f32,
}

/// What a batch or some tasks have given before the backward pass of the backbone. The gradients of what is trained beside it
/// are there.
pub struct StepPass {
    /// What was trained beside the backbone.
    pub learned: Learned,
    /// Loss and accuracy.
    pub result: StepResult,
    /// `[samples, embedding_len]`.
    grad_embeddings: Vec<f32>,
}

/// What a step has trained beside the backbone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// The linear classifier of the auxiliary task.
    Classifier,
    /// The few-shot method.
    Method,
}

/// A task of a step.
#[derive(Clone, Copy)]
pub struct StepTask<'a> {
    /// Classes and labelled samples.
    pub shape: EpisodeShape,
    /// Samples, labelled ones and queries.
    pub samples: usize,
    /// The classes around the targets, for methods that use the graph.
    pub neighbourhood: Option<&'a Neighbourhood>,
}

/// Running statistics at the beginning of a step. The copy of the method also holds its gradients, which are overwritten anyway.
pub(crate) struct Running {
    embedder: Vec<Vec<f32>>,
    method: Vec<Vec<f32>>,
}

fn copied<'a>(values: impl IntoIterator<Item = &'a mut [f32]>) -> Vec<Vec<f32>> {
    values.into_iter().map(|values| values.to_vec()).collect()
}

fn put_back<'a>(values: impl IntoIterator<Item = &'a mut [f32]>, copies: &[Vec<f32>]) {
    values.into_iter().zip(copies).for_each(|(values, copy)| values.copy_from_slice(copy));
}

fn scale<'a>(values: impl IntoIterator<Item = &'a mut [f32]>, factor: f32) {
    values.into_iter().flatten().for_each(|value| *value *= factor);
}

fn add(sums: &mut [Vec<f32>], values: Vec<&mut [f32]>) {
    for (sum, value) in sums.iter_mut().flatten().zip(values.into_iter().flatten()) {
        *sum += *value;
    }
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

    /// Learns from a batch of the auxiliary task, cross entropy over all training classes, up to the backward pass of the
    /// backbone. The batch is `share` of that of the step: all that it adds is weighted so.
    pub fn learn_batch(
        &mut self,
        inputs: &[f32],
        labels: &[usize],
        share: f32,
    ) -> Result<StepPass, TrainError> {
        let mut laps = Laps::start();
        let embeddings = self.embedder.forward_train(inputs)?;
        laps.add_to(&mut self.time.backbone);
        let (learned, mut pass) = match self.method.learn_batch(&embeddings, labels) {
            Some(pass) => (Learned::Method, pass?),
            None => (Learned::Classifier, self.head.forward_backward(&embeddings, labels)?),
        };
        let result = StepResult { loss: share * pass.loss, accuracy: share * accuracy(&pass.logits, labels) };
        if share < 1.0 {
            scale(self.beside(learned), share);
            scale([&mut pass.grad_embeddings[..]], share);
            scale(self.embedder.running_mut(), share);
        }
        laps.add_to(&mut self.time.other);
        Ok(StepPass { learned, result, grad_embeddings: pass.grad_embeddings })
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
        let samples = inputs.len() / self.embedder.input().len();
        let task = StepTask { shape, samples, neighbourhood };
        let pass = self.learn_tasks(inputs, &[task], 1, memory)?;
        self.backward(&pass, &mut |_, _| {})?;
        Ok(pass.result)
    }

    /// Learns from some of a step's `of` tasks up to the backward pass of the backbone; each task has the same weight.
    ///
    /// `inputs` are the samples of one task after the other. They are one batch: batch-norm statistics are those of all these
    /// tasks together.
    pub fn learn_tasks(
        &mut self,
        inputs: &[f32],
        tasks: &[StepTask<'_>],
        of: usize,
        memory: &Memory,
    ) -> Result<StepPass, TrainError> {
        let (dim, weight) = (self.embedder.embedding_len(), 1.0 / of as f32);
        let mut laps = Laps::start();
        let embeddings = self.embedder.forward_train(inputs)?;
        if tasks.len() < of {
            scale(self.embedder.running_mut(), tasks.len() as f32 / of as f32);
        }
        laps.add_to(&mut self.time.backbone);
        // Each task begins where the step began; what they add up to is put in place at the end.
        let before = (of > 1).then(|| copied(self.method.averaged()));
        let mut sums: Option<Vec<Vec<f32>>> = None;
        let mut result = StepResult { loss: 0.0, accuracy: 0.0 };
        let (mut grads, mut rest) = (Vec::with_capacity(embeddings.len()), &embeddings[..]);
        for task in tasks {
            let StepTask { shape, samples, neighbourhood } = *task;
            let own;
            (own, rest) = rest.split_at(samples * dim);
            let (support, queries) = own.split_at((shape.way * shape.shot + shape.rest) * dim);
            let answers = shape.way + usize::from(shape.rest > 0);
            let per_answer = queries.len() / dim / answers;
            let labels: Vec<usize> =
                (0..answers).flat_map(|answer| std::iter::repeat_n(answer, per_answer)).collect();
            let episode = Episode { support, queries, labels: &labels, shape, dim, neighbourhood, memory };
            if let (Some(before), Some(_)) = (&before, &sums) {
                put_back(self.method.averaged(), before);
            }
            let pass = self.method.learn(&episode)?;
            grads.extend(pass.grad_support.iter().chain(&pass.grad_queries).map(|grad| weight * grad));
            result.loss += weight * pass.loss;
            result.accuracy += weight * pass.accuracy;
            if of > 1 {
                scale(self.method.averaged(), weight);
                match &mut sums {
                    None => sums = Some(copied(self.method.averaged())),
                    Some(sums) => add(sums, self.method.averaged()),
                }
            }
        }
        if let Some(sums) = sums {
            put_back(self.method.averaged(), &sums);
        }
        laps.add_to(&mut self.time.method);
        Ok(StepPass { learned: Learned::Method, result, grad_embeddings: grads })
    }

    /// The backward pass of the backbone, which leaves its gradients in the embedder. `on_final` hears on the way which of them
    /// are final.
    pub fn backward(&mut self, pass: &StepPass, on_final: OnFinal<'_>) -> Result<(), TrainError> {
        let mut laps = Laps::start();
        self.embedder.backward_with(&pass.grad_embeddings, on_final)?;
        laps.add_to(&mut self.time.backbone);
        Ok(())
    }

    /// Takes a step of the optimiser with the gradients that are there.
    pub fn step(&mut self, learned: Learned, optimiser: Optimiser<'_>) -> Result<(), TrainError> {
        let mut laps = Laps::start();
        let Self { embedder, head, method, .. } = self;
        let Optimiser { adam, rate, episode } = optimiser;
        let mut updates = embedder.updates();
        updates.extend(match learned {
            Learned::Classifier => head.updates(),
            Learned::Method => method.updates(),
        });
        adam.step(&mut updates, rate, episode)?;
        laps.add_to(&mut self.time.other);
        Ok(())
    }

    /// What is averaged over the parts of a step and is final before the backward pass of the backbone: all but its gradients.
    pub(crate) fn final_early(&mut self, learned: Learned) -> Vec<&mut [f32]> {
        let Self { embedder, head, method, .. } = self;
        let mut all: Vec<&mut [f32]> = embedder.running_mut().collect();
        all.extend(match learned {
            Learned::Classifier => head.averaged(),
            Learned::Method => method.averaged(),
        });
        all
    }

    /// What the parts of a step each begin with: running statistics as they are now.
    pub(crate) fn running(&mut self) -> Running {
        Running { embedder: copied(self.embedder.running_mut()), method: copied(self.method.averaged()) }
    }

    /// Puts running statistics back.
    pub(crate) fn set_running(&mut self, running: &Running) {
        put_back(self.embedder.running_mut(), &running.embedder);
        put_back(self.method.averaged(), &running.method);
    }

    /// What is averaged of the part that was trained beside the backbone.
    fn beside(&mut self, learned: Learned) -> Vec<&mut [f32]> {
        match learned {
            Learned::Classifier => self.head.averaged(),
            Learned::Method => self.method.averaged(),
        }
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
