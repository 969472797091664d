//! The few-shot graph neural network of Garcia and Bruna: each query on a graph with all labelled samples.

use super::{Episode, EpisodePass, Method, MethodKind, Needs, TestTask, highest_of_rows};
use crate::error::Result;
use crate::gnn::Gnn;
use crate::memory::accuracy;
use crate::optim::Update;
use crate::tensors::TensorList;
use crate::trainable::Trainable;
use crate::weights::Weights;

pub(super) const KIND: MethodKind = MethodKind {
    name: "gnn",
    title: "GNN",
    about: "a graph network over labelled samples and query, with a learned adjacency; no class graph",
    tunes_lambda: false,
    needs: Needs::NOTHING,
    values: |settings, dim| Gnn::value_count(settings.gnn, dim, settings.answers),
    make: |settings, dim, _| {
        let gnn = Gnn::new(settings.gnn, dim, settings.answers, settings.seed)?;
        Ok(Box::new(GraphNetwork { gnn }))
    },
};

struct GraphNetwork {
    gnn: Gnn,
}

impl Method for GraphNetwork {
    /// Every query is a graph of its own, so one query of each class is looked at: with five labelled samples of each class,
    /// all of them would cost five times as much.
    fn learn(&mut self, episode: &Episode<'_>) -> Result<EpisodePass> {
        let (dim, answers) = (episode.dim, episode.answers());
        let each = episode.labels.len() / answers;
        let queries: Vec<f32> = episode
            .queries
            .chunks_exact(each * dim)
            .flat_map(|of_answer| &of_answer[..dim])
            .copied()
            .collect();
        let labels: Vec<usize> = (0..answers).collect();
        let pass =
            self.gnn.forward_backward(episode.support, &episode.support_labels(), &queries, &labels)?;
        let mut grad_queries = vec![0.0; episode.queries.len()];
        for (of_answer, grad) in
            grad_queries.chunks_exact_mut(each * dim).zip(pass.grad_queries.chunks_exact(dim))
        {
            of_answer[..dim].copy_from_slice(grad);
        }
        Ok(EpisodePass {
            loss: pass.loss,
            accuracy: accuracy(&pass.logits, &labels),
            grad_support: pass.grad_support,
            grad_queries,
        })
    }

    fn answers_by_prototypes(&self) -> bool {
        false
    }

    fn answer(&self, task: &TestTask<'_>, lambdas: &[f32]) -> Result<Vec<Vec<usize>>> {
        let logits = self.gnn.forward(&task.support, &task.support_labels(), &task.queries)?;
        // Tasks of fewer classes than it was made for leave the last answers unused.
        Ok(vec![highest_of_rows(&logits, self.gnn.way(), task.shots.len()); lambdas.len()])
    }

    fn state(&self) -> TensorList {
        self.gnn.state().collect()
    }

    fn load(&mut self, weights: &Weights) -> Result<()> {
        self.gnn.load(weights)
    }

    fn updates(&mut self) -> Vec<Update<'_>> {
        self.gnn.updates()
    }

    fn averaged(&mut self) -> Vec<&mut [f32]> {
        self.gnn.averaged()
    }
}
