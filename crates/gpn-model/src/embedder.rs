//! The backbone as training and evaluation use it.

use crate::backbone::{BackboneConfig, InputShape, Mode};
use crate::device::Device;
use crate::engine::{self, Engine, EngineChoice};
use crate::error::{ModelError, Result};
use crate::init::first_values;
use crate::optim::Update;
use crate::tensors::{NamedTensor, TensorInfo, TensorList};

/// A backbone with its parameters, batch-norm buffers and gradients, on one device.
///
/// Samples and embeddings are plain slices, so that whatever stands between embeddings and loss (prototypes,
/// propagation) may be computed in any way: it takes the embeddings and gives their gradient back.
///
/// ```
/// use gpn_model::{Adam, BackboneKind, Device, Embedder, InputShape};
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
    parameters: TensorList,
    buffers: TensorList,
    gradients: Vec<Vec<f32>>,
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
        let gradients = parameters.infos().iter().map(|info| vec![0.0; info.numel()]).collect();
        Ok(Self {
            config: config.clone(),
            input,
            embedding_len,
            engine,
            parameters,
            buffers,
            gradients,
            pending: None,
        })
    }

    /// Sets how many images the largest batch has that a training step on the CPU rounds as PyTorch does
    /// ([`EXACT_BATCH`] at first): its values fall on the same side of each ReLU, so that gradients agree closely. The
    /// forward pass of such a batch takes about twice as long. On a GPU it changes nothing.
    ///
    /// [`EXACT_BATCH`]: crate::EXACT_BATCH
    pub fn set_exact_batch(&mut self, images: usize) {
        self.engine.set_exact_batch(images);
    }

    /// How results are rounded: `fused` on any processor with fused instructions, `portable` on others, `burn` or the name of
    /// a device otherwise. Where it is the same, so are the bits, but for `burn` and devices of different make.
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
        let embeddings = self.engine.forward(mode, &self.parameters, &mut self.buffers, samples, n)?;
        self.pending = Some(n);
        Ok(embeddings)
    }

    /// Computes the gradients of all parameters from `grad_embeddings: [n, embedding_len]`, the gradient of the loss
    /// with respect to the embeddings of the last forward pass. They replace those of the step before.
    pub fn backward(&mut self, grad_embeddings: &[f32]) -> Result<()> {
        let n = self.pending.take().ok_or(ModelError::NoForward)?;
        if grad_embeddings.len() != n * self.embedding_len {
            return Err(ModelError::WrongLength {
                what: "gradient of the embeddings",
                expected: format!("{n} x {}", self.embedding_len),
                got: grad_embeddings.len(),
            });
        }
        self.engine.backward(&self.parameters, grad_embeddings, &mut self.gradients)
    }

    /// Embeds `samples: [n, channels, height, width]` at inference speed: evaluation mode, nothing kept.
    /// Returns `[n, embedding_len]`. A forward pass that waits for its backward pass is given up.
    pub fn embed(&mut self, samples: &[f32]) -> Result<Vec<f32>> {
        let n = self.samples(samples)?;
        self.pending = None;
        self.engine.embed(&self.parameters, &self.buffers, samples, n)
    }

    /// Parameters, by PyTorch's names.
    pub fn parameters(&self) -> &TensorList {
        &self.parameters
    }

    /// Running statistics of batch norm, by PyTorch's names.
    pub fn buffers(&self) -> &TensorList {
        &self.buffers
    }

    /// Gradients of the last backward pass, in the order of [`parameters`](Self::parameters).
    pub fn gradients(&self) -> impl Iterator<Item = NamedTensor<'_>> {
        self.parameters.named(&self.gradients)
    }

    /// Parameters with their gradients, for [`Adam::step`](crate::Adam::step).
    pub fn updates(&mut self) -> Vec<Update<'_>> {
        let Self { parameters, gradients, .. } = self;
        parameters.updates(gradients)
    }

    /// Parameters and buffers: what a weight file holds.
    pub fn state(&self) -> impl Iterator<Item = NamedTensor<'_>> {
        self.parameters.iter().chain(self.buffers.iter())
    }

    /// Names and shapes of [`state`](Self::state).
    pub fn state_infos(&self) -> impl Iterator<Item = &TensorInfo> {
        self.parameters.infos().iter().chain(self.buffers.infos())
    }

    /// Takes the values of all parameters and buffers from `value(name)`, which has been checked to know them all.
    pub(crate) fn replace_state(&mut self, mut value: impl FnMut(&TensorInfo) -> Vec<f32>) {
        for list in [&mut self.parameters, &mut self.buffers] {
            *list = TensorList::new(list.infos().to_vec(), |_, info| value(info));
        }
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
