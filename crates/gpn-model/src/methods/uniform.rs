//! Uniform propagation: every class is averaged with the mean of its neighbours, with nothing learned. The honest measure of
//! what learned propagation adds to knowing the graph.

use super::by_prototypes::ByPrototypes;
use super::{Episode, EpisodePass, Method, MethodKind, Needs, Refined, TestTask, nearest_refined};
use crate::error::Result;
use crate::neighbourhood::Neighbourhood;
use crate::propagation::Influence;

pub(super) const KIND: MethodKind = MethodKind {
    name: "uniform",
    title: "Uniform propagation",
    about: "every class averaged with the mean of all its neighbours, twice; nothing of it is learned",
    tunes_lambda: false,
    needs: Needs::NOTHING,
    values: |_, _| Some(0),
    make: |settings, _, _| Ok(Box::new(Uniform { loss: settings.into() })),
};

/// Steps, and so hops.
const STEPS: usize = 2;

struct Uniform {
    loss: ByPrototypes,
}

impl Method for Uniform {
    fn hops(&self) -> Option<usize> {
        Some(STEPS)
    }

    fn learn(&mut self, episode: &Episode<'_>) -> Result<EpisodePass> {
        self.loss.learn(episode)
    }

    fn refine(&self, neighbourhood: &Neighbourhood, nodes: &[f32]) -> Option<Refined> {
        let (count, targets) = (neighbourhood.classes.len(), neighbourhood.targets());
        let dim = nodes.len() / count.max(1);
        let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); count];
        for &(parent, child) in neighbourhood.edges() {
            neighbours[parent as usize].push(child);
            neighbours[child as usize].push(parent);
        }
        let mut now = nodes.to_vec();
        let mut influences = Vec::with_capacity(STEPS);
        for _ in 0..STEPS {
            let mut next = now.clone();
            let mut step = Vec::new();
            for (receiver, near) in neighbours.iter().enumerate().filter(|(_, near)| !near.is_empty()) {
                let share = 0.5 / near.len() as f32;
                for at in 0..dim {
                    let sum: f32 = near.iter().map(|&sender| now[sender as usize * dim + at]).sum();
                    next[receiver * dim + at] = 0.5 * now[receiver * dim + at] + share * sum;
                }
                let senders = near.iter().map(|&sender| (sender, share)).collect();
                step.push(Influence { receiver: receiver as u32, own: 0.5, senders });
            }
            influences.push(step);
            now = next;
        }
        now.truncate(targets * dim);
        Some(Refined { prototypes: now, influences })
    }

    fn answer(&self, task: &TestTask<'_>, lambdas: &[f32]) -> Result<Vec<Vec<usize>>> {
        Ok(nearest_refined(self, task, lambdas))
    }
}

#[cfg(test)]
mod tests {
    use gpn_taxonomy::{HopSearch, TaxonomyBuilder};

    use super::*;
    use crate::methods::MethodSettings;

    /// dog and cat below animal: two steps of averaging, worked by hand.
    #[test]
    fn a_class_hears_all_its_neighbours_alike() {
        let mut builder = TaxonomyBuilder::new();
        let [animal, cat, dog] = ["animal", "cat", "dog"].map(|id| builder.add_class(id));
        builder.add_edge(animal, cat, None);
        builder.add_edge(animal, dog, None);
        let graph = builder.build().unwrap().taxonomy;
        let around = Neighbourhood::in_training(&graph, &[cat], STEPS, None, &mut HopSearch::new(&graph));
        assert_eq!(around.classes, [cat, animal, dog]);
        let uniform = (KIND.make)(&MethodSettings::default(), 1, 3).unwrap();
        // Step 1: cat (0 + 8) / 2 = 4, animal (8 + (0 + 4) / 2) / 2 = 5. Step 2: cat (4 + 5) / 2.
        let refined = uniform.refine(&around, &[0.0, 8.0, 4.0]).unwrap();
        assert_eq!(refined.prototypes, [4.5]);
        let of_cat = &refined.influences[0][0];
        assert_eq!((of_cat.receiver, of_cat.senders.as_slice()), (0, &[(1, 0.5)][..]));
    }
}
