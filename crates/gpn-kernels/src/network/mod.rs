//! A backbone with its work buffers: forward, backward and inference of a batch.

mod architecture;
mod backward;
mod batch;
mod forward;
mod infer;
#[cfg(test)]
mod instruction_sets;
mod plan;
mod worker;

use std::sync::Mutex;

pub use architecture::Architecture;
pub use infer::PackedWeights;
pub use plan::TensorInfo;

use crate::buffer::Buffer;
use crate::conv::{Direction, PackWeights, PackedForm};
use crate::error::{KernelError, check_len};
use crate::geometry::IMAGE_CHANNELS;
use crate::norm::{BatchNorm, BatchNormGradient};
use crate::parallel::{MOST_PARTS, Parts, Shared};
use crate::reservation::Reservation;
use crate::simd::Simd;
use crate::team::Team;
use plan::{Layer, Plan};
use worker::{IdleWorkers, PadIndex, Worker, group_size};

/// Which statistics batch norm uses in [`Network::forward`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Those of the batch; the running statistics move towards them (momentum 0.1, unbiased variance).
    Train,
    /// The running ones, which stay as they are.
    Eval,
}

/// Default of [`Network::set_exact_batch`]: the largest batch that is rounded as PyTorch rounds it.
/// Winograd's rounding may move a value near zero to the other side of a ReLU, which visibly changes the
/// gradients of so few images. With `portable`, activations that are pooled (those of Conv4 and ResNet-12,
/// the first of ResNet-18) round differently.
pub const EXACT_BATCH: usize = 8;

/// An architecture at an image size, with everything a pass over a batch needs. The weights are the
/// caller's: they are passed to every call, in the order of [`Network::parameters`].
///
/// Threads are those of the current rayon pool. Results do not depend on their number. Training needs the
/// network for itself; inference ([`Network::infer`]) may run on any number of threads at once.
pub struct Network {
    simd: Simd,
    plan: Plan,
    index: PadIndex,
    height: usize,
    width: usize,
    exact_batch: usize,
    workers: IdleWorkers,
    /// Packed weights of each layer, for training.
    packed: Vec<Buffer>,
    /// What forward keeps for backward: the images, the raw output of each convolution, block outputs.
    images: Buffer,
    raw: Vec<Buffer>,
    kept: Vec<Buffer>,
    norms: Vec<BatchNorm>,
    /// The scale of a map that needs none.
    ones: Vec<f32>,
    /// The shift of a map that needs none.
    zeros: Vec<f32>,
    /// Images of the last forward pass.
    last_batch: Option<usize>,
    /// Gradients of batch norm outputs and of shortcuts, as the plan numbers them.
    gradients: Vec<Buffer>,
    form: BatchNormGradient,
    /// Channel sums of each part of the batch, for a layer and for a shortcut's; and a total.
    part_sums: [Vec<f64>; 2],
    sums: Vec<f64>,
    /// Weight gradient of each part.
    part_gradients: Buffer,
}

impl Network {
    /// A network for images of `height` x `width` pixels.
    pub fn new(architecture: Architecture, height: usize, width: usize) -> Result<Network, KernelError> {
        Self::with_simd(architecture, height, width, Simd::detect()?)
    }

    /// The same with a chosen instruction set.
    pub fn with_simd(
        architecture: Architecture,
        height: usize,
        width: usize,
        simd: Simd,
    ) -> Result<Network, KernelError> {
        let plan = Plan::new(architecture, height, width)?;
        let channels = plan.layers.iter().map(|l| l.shape.output.c).max().unwrap_or(0);
        Ok(Network {
            simd,
            index: PadIndex::new(&plan),
            height,
            width,
            exact_batch: EXACT_BATCH,
            workers: IdleWorkers::default(),
            packed: plan.layers.iter().map(|l| Buffer::zeroed(PackWeights::len(&l.shape))).collect(),
            images: Buffer::zeroed(0),
            raw: plan.layers.iter().map(|_| Buffer::zeroed(0)).collect(),
            kept: plan.kept.iter().map(|_| Buffer::zeroed(0)).collect(),
            norms: vec![BatchNorm::default(); plan.layers.len()],
            ones: vec![1.0; channels],
            zeros: vec![0.0; channels],
            last_batch: None,
            gradients: (0..plan.gradients).map(|_| Buffer::zeroed(0)).collect(),
            form: BatchNormGradient::default(),
            part_sums: [vec![0.0; MOST_PARTS * 2 * channels], vec![0.0; MOST_PARTS * 2 * channels]],
            sums: vec![0.0; 2 * channels],
            part_gradients: Buffer::zeroed(0),
            plan,
        })
    }

    /// Sets the largest batch, in images, whose forward pass computes convolutions by their definition, in
    /// the order in which PyTorch sums; [`EXACT_BATCH`] by default. Larger batches are faster and round
    /// differently.
    pub fn set_exact_batch(&mut self, images: usize) {
        self.exact_batch = images;
    }

    /// Trainable tensors in the order of `params` and `grads`: for each convolution its weight
    /// `[out, in, k, k]`, then weight and bias of its batch norm. Names are those of published PyTorch
    /// networks: `conv_1_3x3.weight`, `bn_1.weight`, `bn_1.bias`, `stage_1.0.conv_a.weight`, ... of ResNet-08
    /// and ResNet-20; `layer1.0.conv1.weight`, ..., `layer1.0.downsample.0.weight`, ... of ResNet-12 and
    /// ResNet-18. Those of Conv4 are `block_1.conv.weight`, `block_1.bn.weight`, `block_1.bn.bias`,
    /// `block_2.conv.weight`, ...
    pub fn parameters(&self) -> &[TensorInfo] {
        &self.plan.parameters
    }

    /// Running mean and running variance of each batch norm, in the order of `buffers`.
    pub fn buffers(&self) -> &[TensorInfo] {
        &self.plan.buffers
    }

    /// Values of an embedding. ResNet: `64 * (h / 8) * (w / 8)` of the last map, whose sides are a quarter
    /// of the image's, rounded up; Conv4: `width * (h / 16) * (w / 16)`; in the order channel, row, column.
    /// ResNet-12 and ResNet-18: the last of their channels.
    pub fn embedding_len(&self) -> usize {
        self.plan.embedding_len()
    }

    /// Values of an image.
    pub fn image_len(&self) -> usize {
        IMAGE_CHANNELS * self.height * self.width
    }

    /// The instruction set in use.
    pub fn simd(&self) -> Simd {
        self.simd
    }

    /// Multiplications and additions of the convolutions of one forward pass over one image, counted as the
    /// direct method does them. A training step does about three times as many.
    pub fn flops(&self) -> u64 {
        self.plan.layers.iter().map(|l| l.shape.flops()).sum()
    }

    /// The share of the layers that read the images in [`Network::flops`]. A training step that does not
    /// compute the gradient of the images does this much less than three times [`Network::flops`].
    pub fn first_layer_flops(&self) -> u64 {
        self.plan.layers.iter().filter(|l| l.input == plan::IMAGE).map(|l| l.shape.flops()).sum()
    }

    fn check_tensors<T: AsRef<[f32]>>(
        infos: &[TensorInfo],
        given: &[T],
        what: &str,
    ) -> Result<(), KernelError> {
        check_len(&format!("list of {what}"), given.len(), infos.len())?;
        for (info, values) in infos.iter().zip(given) {
            if values.as_ref().len() != info.numel() {
                check_len(&format!("{what} {}", info.name), values.as_ref().len(), info.numel())?;
            }
        }
        Ok(())
    }

    fn check_batch(&self, images: usize, n: usize, embeddings: usize) -> Result<(), KernelError> {
        check_len("images", images, n * self.image_len())?;
        check_len("embeddings", embeddings, n * self.embedding_len())
    }

    /// Runs `pass` with a team of all threads of the current pool.
    fn with_team(&mut self, pass: impl FnOnce(&mut Self, &Team<'_, Worker>)) {
        let reservation = Reservation::whole_pool();
        let workers = self.take_workers(&reservation);
        Team::gather(&workers, |team| pass(self, team));
        self.workers.put(workers);
    }

    fn take_workers(&self, reservation: &Reservation) -> Vec<Mutex<Worker>> {
        self.workers.take(reservation.threads(), || Worker::new(&self.plan, &self.index))
    }

    /// Brings the weights of the layers that `wants` names into the order that their convolutions read.
    fn pack_layers(
        &mut self,
        team: &Team<'_, Worker>,
        wants: impl Fn(&Layer) -> bool,
        direction: Direction,
        exact: bool,
        params: &[&[f32]],
    ) {
        let (simd, mut packed, mut tasks) = (self.simd, Vec::new(), Vec::new());
        for (l, (layer, out)) in self.plan.layers.iter().zip(&mut self.packed).enumerate() {
            if wants(layer) {
                let form = PackedForm::new(&layer.shape, direction, exact);
                tasks.extend((0..form.blocks).map(|block| (packed.len(), block)));
                packed.push((l, &layer.shape, form, Shared::new(&mut out[..form.total()], form.len)));
            }
        }
        let parts = Parts::of(tasks.len(), 1);
        team.for_each(parts.count(), |part, worker| {
            for &(number, block) in &tasks[parts.range(part)] {
                let (l, shape, form, rows) = &packed[number];
                simd.run(PackWeights {
                    shape,
                    direction,
                    weights: params[3 * l],
                    scale: None,
                    block,
                    plain: &mut worker.gradient,
                    // SAFETY: every block of a layer is asked for once.
                    rows: &mut unsafe { rows_of(rows, *form, block) },
                });
            }
        });
    }

    /// How a batch is cut in layer `l`: into groups that fill the matrix products, where maps are small, and
    /// not into more parts than there is room for gradients of the weights.
    fn parts(&self, l: usize, n: usize) -> Parts {
        let shape = &self.plan.layers[l].shape;
        let most = (MOST_PART_GRADIENTS / shape.weight_len()).max(2);
        Parts::of(n, group_size(shape, shape.output).max(n.div_ceil(most)))
    }
}

/// Values of the weight gradients of all parts of a batch, at most, where there are more than two parts.
const MOST_PART_GRADIENTS: usize = 1 << 24;

/// A block's part of each row of packed weights.
///
/// # Safety
/// While the result lives, nobody else asks for this block.
unsafe fn rows_of<'a>(rows: &Shared<'a, f32>, form: PackedForm, block: usize) -> Vec<&'a mut [f32]> {
    let at = |row: usize| row * form.blocks + block;
    // SAFETY: the caller's promise.
    (0..form.rows).map(|row| unsafe { rows.items(at(row)..at(row) + 1) }).collect()
}

/// Adds up the sums of the parts in order.
fn total(parts: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for part in parts.chunks_exact(out.len()) {
        for (sum, value) in out.iter_mut().zip(part) {
            *sum += value;
        }
    }
}
