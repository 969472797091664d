//! The backbone as training and evaluation use it.

use crate::backbone::{BackboneConfig, InputShape, Mode};
use crate::device::Device;
use crate::engine::{self, Engine, EngineChoice, OnFinal};
use crate::error::{ModelError, Result};
use crate::init::first_values;
use crate::tensors::{TensorInfo, TensorList};
use crate::trainable::{Trainable, TrainableTensors};
use crate::weights::Weights;
use gpn_kernels::EXACT_BATCH;

/// A backbone with its parameters, batch-norm buffers and gradients, on one device. Tensors have PyTorch's names.
///
/// Samples and embeddings are plain slices, so that whatever stands between embeddings and loss (prototypes,
/// propagation) may be computed in any way: it takes the embeddings and gives their gradient back.
///
/// ```
/// use gpn_model::{Adam, BackboneKind, Device, Embedder, InputShape, Trainable};
///
/// let input = InputShape::Image { height: 32, width: 32 };
/// let mut embedder = Embedder::new(&BackboneKind::ResNet08.config(), input, &Device::cpu(), 1)?;
/// let images = vec![0.5; 2 * input.len()];
/// let embeddings = embedder.forward_train(&images)?; // 2 x 64
/// let grad: Vec<f32> = embeddings.iter().map(|value| 2.0 * value).collect(); // of the sum of squares
/// embedder.backward(&grad)?;
/// let episode = 1;
/// Adam::default().step(&mut embedder.updates(), 1e-3, episode)?;
/// assert_eq!(embedder.embed(&images)?.len(), 2 * 64);
/// # Ok::<(), gpn_model::ModelError>(())
/// ```
pub struct Embedder {
    config: BackboneConfig,
    input: InputShape,
    embedding_len: usize,
    engine: Box<dyn Engine>,
    tensors: TrainableTensors,
    exact_batch: usize,
    /// Samples of the last forward pass that no backward pass has used yet.
    pending: Option<usize>,
}

impl Embedder {
    /// A backbone with fresh parameters, which depend on `seed` alone and not on device or engine.
    pub fn new(config: &BackboneConfig, input: InputShape, device: &Device, seed: u64) -> Result<Self> {
        Self::with_engine(config, input, device, seed, EngineChoice::Auto)
    }

    /// The same with a chosen engine, to compare them.
    pub fn with_engine(
        config: &BackboneConfig,
        input: InputShape,
        device: &Device,
        seed: u64,
        choice: EngineChoice,
    ) -> Result<Self> {
        let embedding_len = config.embedding_len(input)?;
        let engine = engine::build(config, input, device, choice)?;
        let parameters = TensorList::new(engine.parameters(), |index, info| first_values(info, index, seed));
        let buffers = TensorList::new(engine.buffers(), |index, info| first_values(info, index, seed));
        let tensors = TrainableTensors::new(parameters, buffers);
        let exact_batch = EXACT_BATCH;
        Ok(Self { config: config.clone(), input, embedding_len, engine, tensors, exact_batch, pending: None })
    }

    /// Sets the largest batch, in images, that a training step on the CPU rounds as PyTorch does ([`EXACT_BATCH`] by
    /// default): its values fall on the same side of each ReLU, so that gradients agree closely. The forward pass of such
    /// a batch takes about twice as long. On a GPU it changes nothing. Returns what it was.
    ///
    /// [`EXACT_BATCH`]: crate::EXACT_BATCH
    pub fn set_exact_batch(&mut self, images: usize) -> usize {
        self.engine.set_exact_batch(images);
        std::mem::replace(&mut self.exact_batch, images)
    }

    /// How results are rounded: `fused` on processors with fused instructions and `portable` on others, or `burn` or the
    /// name of a device where burn computes. Embedders with the same rounding compute the same bits, except with `burn`
    /// and on devices of different make.
    pub fn rounding(&self) -> &'static str {
        self.engine.rounding()
    }

    /// The backbone and its settings.
    pub fn config(&self) -> &BackboneConfig {
        &self.config
    }

    /// What one sample is.
    pub fn input(&self) -> InputShape {
        self.input
    }

    /// Length of an embedding.
    pub fn embedding_len(&self) -> usize {
        self.embedding_len
    }

    /// Embeds `samples: [n, channels, height, width]` with batch statistics and keeps what [`backward`] needs.
    ///
    /// Running statistics move. Returns `[n, embedding_len]`.
    ///
    /// [`backward`]: Self::backward
    pub fn forward_train(&mut self, samples: &[f32]) -> Result<Vec<f32>> {
        self.forward(samples, Mode::Train)
    }

    /// The same in either mode: in `Mode::Eval`, gradients flow but batch norm is frozen.
    pub fn forward(&mut self, samples: &[f32], mode: Mode) -> Result<Vec<f32>> {
        let n = self.samples(samples)?;
        let TrainableTensors { parameters, buffers, .. } = &mut self.tensors;
        let embeddings = self.engine.forward(mode, parameters, buffers, samples, n)?;
        self.pending = Some(n);
        Ok(embeddings)
    }

    /// Computes the gradients of all parameters from `grad_embeddings: [n, embedding_len]`, the gradient of the loss
    /// with respect to the embeddings of the last forward pass. They replace those of the step before.
    pub fn backward(&mut self, grad_embeddings: &[f32]) -> Result<()> {
        self.backward_with(grad_embeddings, &mut |_, _| {})
    }

    /// [`backward`](Self::backward), which says on the way which gradients are final, for those who send them elsewhere: the
    /// CPU kernels after each layer, other engines at the end.
    pub fn backward_with(&mut self, grad_embeddings: &[f32], on_final: OnFinal<'_>) -> Result<()> {
        let n = self.pending.take().ok_or(ModelError::NoForward)?;
        if grad_embeddings.len() != n * self.embedding_len {
            return Err(ModelError::WrongLength {
                what: "gradient of the embeddings",
                expected: format!("{n} x {}", self.embedding_len),
                got: grad_embeddings.len(),
            });
        }
        let TrainableTensors { parameters, gradients, .. } = &mut self.tensors;
        self.engine.backward(parameters, grad_embeddings, gradients, on_final)?;
        on_final(0, gradients);
        Ok(())
    }

    /// Embeds `samples: [n, channels, height, width]` at inference speed: evaluation mode, nothing kept for a backward
    /// pass. Returns `[n, embedding_len]`.
    ///
    /// Any number of threads may call this at once on one embedder: results are the same bits. Work runs in the current
    /// rayon pool, on the threads that no other pass uses; one image runs on the calling thread alone.
    pub fn embed(&self, samples: &[f32]) -> Result<Vec<f32>> {
        let n = self.samples(samples)?;
        self.engine.embed(&self.tensors.parameters, &self.tensors.buffers, samples, n)
    }

    /// Puts running statistics back as [`buffers`](Trainable::buffers) gave them.
    pub fn set_buffers(&mut self, buffers: TensorList) {
        self.tensors_mut().buffers = buffers;
    }

    /// Takes the values of all parameters and buffers from `value(info)`, which has been checked to know them all.
    pub(crate) fn replace_state(&mut self, value: impl FnMut(&TensorInfo) -> Vec<f32>) {
        self.tensors_mut().replace(value);
        self.pending = None;
    }

    /// Number of samples in a slice.
    fn samples(&self, samples: &[f32]) -> Result<usize> {
        let len = self.input.len();
        if samples.is_empty() || !samples.len().is_multiple_of(len) {
            let [channels, height, width] = self.input.dims();
            return Err(ModelError::WrongLength {
                what: "samples",
                expected: format!(
                    "a multiple of {channels} x {height} x {width} = {len}, at least one sample"
                ),
                got: samples.len(),
            });
        }
        Ok(samples.len() / len)
    }
}

impl Trainable for Embedder {
    fn title(&self) -> String {
        self.config.name()
    }

    fn tensors(&self) -> &TrainableTensors {
        &self.tensors
    }

    fn tensors_mut(&mut self) -> &mut TrainableTensors {
        self.engine.parameters_changed();
        &mut self.tensors
    }

    fn load(&mut self, weights: &Weights) -> Result<()> {
        weights.load(self)
    }
}
