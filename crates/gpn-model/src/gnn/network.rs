//! The network with its parameters: logits of queries, and a training step.

use gpn_kernels::linear;

use super::block::{Block, BlockTape, Role};
use super::config::GnnConfig;
use super::graphs::Graphs;
use crate::error::{ModelError, Result};
use crate::init::first_values;
use crate::tensors::{TensorInfo, TensorList};
use crate::trainable::{Trainable, TrainableTensors};

/// What the names of all tensors begin with in weight files.
const PREFIX: &str = "gnn.";
/// Seeds of this network and of a backbone may be the same; their random streams are not.
const FIRST_INDEX: usize = 1 << 18;

/// The few-shot graph neural network for tasks of `way` classes. Names of its tensors begin with `gnn.`.
///
/// Time and, in training, memory grow with `queries * support^2`: for each query all pairs of its graph are scored.
///
/// ```
/// use gpn_model::{Adam, Gnn, GnnConfig, Trainable};
///
/// let mut gnn = Gnn::new(GnnConfig::default(), 2, 3, 1)?; // embeddings of 2, 3 classes
/// let support = [1.0, 0.0, 0.0, 1.0, -1.0, -1.0];
/// let pass = gnn.forward_backward(&support, &[0, 1, 2], &[0.9, 0.1, 0.2, 0.8], &[0, 1])?;
/// assert_eq!(pass.grad_support.len(), support.len());
/// Adam::default().step(&mut gnn.updates(), 1e-3, 1)?;
///
/// let logits = gnn.forward(&support, &[0, 1, 2], &[-0.8, -0.9])?;
/// assert_eq!(logits.len(), 3);
/// # Ok::<(), gpn_model::ModelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gnn {
    config: GnnConfig,
    dim: usize,
    way: usize,
    blocks: Vec<Block>,
    tensors: TrainableTensors,
}

/// Result of [`Gnn::forward_backward`].
#[derive(Clone, Debug, PartialEq)]
pub struct GnnPass {
    /// Mean cross entropy over the queries.
    pub loss: f32,
    /// `[queries, way]`, with the statistics of this batch.
    pub logits: Vec<f32>,
    /// Gradient of the loss with respect to the support embeddings, `[support, dim]`.
    pub grad_support: Vec<f32>,
    /// Gradient of the loss with respect to the query embeddings, `[queries, dim]`.
    pub grad_queries: Vec<f32>,
}

impl Gnn {
    /// A network for embeddings of length `dim` and tasks of `way` classes, with fresh parameters, which depend on
    /// `seed` alone.
    pub fn new(config: GnnConfig, dim: usize, way: usize, seed: u64) -> Result<Self> {
        for (what, value) in [
            ("length of embeddings", dim),
            ("number of classes", way),
            ("gnn.hidden / 2", config.hidden / 2),
            ("gnn.blocks", config.blocks),
        ] {
            if value == 0 {
                return Err(ModelError::Zero { what });
            }
        }
        let blocks = blocks(config, dim, way);
        let infos = |of: fn(&Block, &str) -> Vec<TensorInfo>| -> Vec<TensorInfo> {
            let named = |(index, block)| of(block, &format!("{PREFIX}block{index}."));
            blocks.iter().enumerate().flat_map(named).collect()
        };
        let first = |index, info: &TensorInfo| first_values(info, FIRST_INDEX + index, seed);
        let parameters = TensorList::new(infos(Block::parameters), first);
        let statistics = TensorList::new(infos(Block::statistics), first);
        Ok(Self { config, dim, way, blocks, tensors: TrainableTensors::new(parameters, statistics) })
    }

    /// Number of values of all parameters; `None` where that overflows. Takes memory for `config.blocks` blocks.
    pub fn value_count(config: GnnConfig, dim: usize, way: usize) -> Option<usize> {
        let widest = config.hidden.checked_mul(config.blocks)?.checked_add(dim)?.checked_add(way)?;
        // No shape is larger than this, so that none of those below overflows.
        widest.checked_mul(4)?.checked_pow(2)?;
        let mut count = 0_usize;
        for info in blocks(config, dim, way).iter().flat_map(|block| block.parameters("")) {
            count = count.checked_add(info.numel())?;
        }
        Some(count)
    }

    /// The settings.
    pub fn config(&self) -> &GnnConfig {
        &self.config
    }

    /// Number of classes of a task.
    pub fn way(&self) -> usize {
        self.way
    }

    /// Logits `[queries, way]` of `queries: [queries, dim]`, given `support: [n, dim]` with its `labels: [n]`, with the
    /// running statistics. Each query's logits are the same bits whatever other queries come with it.
    pub fn forward(&self, support: &[f32], labels: &[usize], queries: &[f32]) -> Result<Vec<f32>> {
        let mut graphs = self.check(support, labels, queries)?;
        let mut features = self.samples(support, labels, queries);
        let (mut params, mut running) = (self.tensors.parameters.values(), self.tensors.buffers.values());
        for block in &self.blocks {
            features = block.forward(params, running, graphs, &features);
            (params, running) = (&params[block.parameter_count()..], &running[block.statistic_count()..]);
            graphs.shared = false;
        }
        Ok(features)
    }

    /// A training step: the loss of `queries: [queries, dim]` against `query_labels: [queries]`, with the gradients of
    /// all embeddings (returned) and of the parameters (kept for [`updates`](Trainable::updates)). Norms use the statistics
    /// of this batch, and the running ones move towards them.
    pub fn forward_backward(
        &mut self,
        support: &[f32],
        labels: &[usize],
        queries: &[f32],
        query_labels: &[usize],
    ) -> Result<GnnPass> {
        let mut graphs = self.check(support, labels, queries)?;
        if graphs.queries == 0 || query_labels.len() != graphs.queries {
            return Err(ModelError::WrongLength {
                what: "labels of queries",
                expected: format!("one for each of {} queries, at least one", graphs.queries),
                got: query_labels.len(),
            });
        }
        self.check_labels(query_labels)?;

        let mut features = vec![self.samples(support, labels, queries)];
        let mut tapes: Vec<BlockTape> = Vec::with_capacity(self.blocks.len());
        let TrainableTensors { parameters, gradients, buffers } = &mut self.tensors;
        let (mut params, mut running) = (parameters.values(), buffers.values_mut());
        for block in &self.blocks {
            let input = &features[tapes.len()];
            let (now, later) = running.split_at_mut(block.statistic_count());
            let (result, tape) = block.train(params, now, graphs, input);
            features.push(result);
            tapes.push(tape);
            (params, running) = (&params[block.parameter_count()..], later);
            graphs.shared = false;
        }

        let logits = features.pop().unwrap_or_default();
        let mut grads = vec![0.0; logits.len()];
        let loss = linear::cross_entropy(&logits, query_labels, self.way, &mut grads)?;
        let mut end = gradients.len();
        for (block, (features, tape)) in self.blocks.iter().zip(features.iter().zip(&tapes)).rev() {
            let range = end - block.parameter_count()..end;
            let params = &parameters.values()[range.clone()];
            end = range.start;
            grads = block.backward(params, tape, features, &grads, &mut gradients[range]);
        }
        let embedding_grads = |rows: &[f32]| -> Vec<f32> {
            rows.chunks_exact(self.dim + self.way).flat_map(|row| &row[..self.dim]).copied().collect()
        };
        let (of_support, of_queries) = grads.split_at(graphs.support * (self.dim + self.way));
        Ok(GnnPass {
            loss,
            logits,
            grad_support: embedding_grads(of_support),
            grad_queries: embedding_grads(of_queries),
        })
    }

    /// Features of all samples before the first block, support first: embedding and label field.
    fn samples(&self, support: &[f32], labels: &[usize], queries: &[f32]) -> Vec<f32> {
        let width = self.dim + self.way;
        let embeddings = support.chunks_exact(self.dim).chain(queries.chunks_exact(self.dim));
        let mut samples = Vec::with_capacity((support.len() + queries.len()) / self.dim * width);
        for (index, embedding) in embeddings.enumerate() {
            samples.extend(embedding);
            match labels.get(index) {
                Some(&label) => samples.extend((0..self.way).map(|class| f32::from(class == label))),
                None => samples.extend(std::iter::repeat_n(1.0 / self.way as f32, self.way)),
            }
        }
        samples
    }

    /// The graphs of the first block.
    fn check(&self, support: &[f32], labels: &[usize], queries: &[f32]) -> Result<Graphs> {
        if labels.is_empty() || support.len() != labels.len() * self.dim {
            return Err(ModelError::WrongLength {
                what: "support",
                expected: format!("{} labels x {}, at least one", labels.len(), self.dim),
                got: support.len(),
            });
        }
        if !queries.len().is_multiple_of(self.dim) {
            return Err(ModelError::WrongLength {
                what: "queries",
                expected: format!("a multiple of {}", self.dim),
                got: queries.len(),
            });
        }
        self.check_labels(labels)?;
        Ok(Graphs {
            support: labels.len(),
            queries: queries.len() / self.dim,
            shared: true,
            query_pairs_only: false,
        })
    }

    fn check_labels(&self, labels: &[usize]) -> Result<()> {
        match labels.iter().position(|&label| label >= self.way) {
            Some(sample) => Err(ModelError::BeyondWay { sample, label: labels[sample], way: self.way }),
            None => Ok(()),
        }
    }
}

impl Trainable for Gnn {
    fn title(&self) -> String {
        "the graph neural network".into()
    }

    fn tensors(&self) -> &TrainableTensors {
        &self.tensors
    }

    fn tensors_mut(&mut self) -> &mut TrainableTensors {
        &mut self.tensors
    }
}

fn blocks(config: GnnConfig, dim: usize, way: usize) -> Vec<Block> {
    let grown = config.hidden / 2;
    let block = |index| {
        let inputs = dim + way + index * grown;
        if index + 1 < config.blocks {
            Block::new(Role::Inner, inputs, grown, config.hidden)
        } else {
            Block::new(Role::Last, inputs, way, config.hidden)
        }
    };
    (0..config.blocks).map(block).collect()
}
