//! The Prototype Propagation Network: one message from the parents, weighed by attention, averaged with the own prototype.

use super::propagating::Propagating;
use super::{MethodKind, MethodSettings, Needs};
use crate::neighbourhood::Neighbourhood;
use crate::propagation::{Attention, Gate, Order, PropagationConfig, PropagationGraph};

pub(super) const KIND: MethodKind = MethodKind {
    name: "ppn",
    title: "PPN",
    about: "one step from the parents, softmax of cosines as attention, averaged with the own prototype",
    tunes_lambda: false,
    // The message is averaged with the prototype already, so nothing is mixed afterwards.
    needs: Needs { lambda: Some(0.0), ..Needs::NOTHING },
    values: |settings, dim| one_step(settings).value_count(dim),
    make: |settings, dim, _| {
        Ok(Box::new(Propagating::new(settings, one_step(settings), dim, |around, _| parents(around))?))
    },
};

fn one_step(settings: &MethodSettings) -> PropagationConfig {
    PropagationConfig {
        steps: 1,
        heads: 1,
        attention: Attention::Cosine,
        gate: Gate::Fixed,
        keep: 0.5,
        order: Order::Parents,
        ..settings.propagation.clone()
    }
}

/// The parents of each target; where the place of a class is not known it has none, and hears the classes it is linked to.
fn parents(neighbourhood: &Neighbourhood) -> PropagationGraph {
    let targets = neighbourhood.targets();
    let edges = neighbourhood.edges();
    let mut heard: Vec<(u32, u32)> = Vec::new();
    for target in 0..targets as u32 {
        let before = heard.len();
        heard.extend(edges.iter().filter(|edge| edge.1 == target).map(|&(parent, _)| (target, parent)));
        if heard.len() == before {
            heard.extend(edges.iter().filter(|edge| edge.0 == target).map(|&(_, linked)| (target, linked)));
        }
    }
    PropagationGraph::new(neighbourhood.classes.len(), targets, heard, Vec::new())
}

#[cfg(test)]
mod tests {
    use gpn_taxonomy::{HopSearch, TaxonomyBuilder};

    use super::*;

    /// cat below pet and animal: three classes, worked by hand. With projections of no effect both parents weigh alike.
    #[test]
    fn a_hand_worked_example_of_three_classes() {
        let mut builder = TaxonomyBuilder::new();
        let [cat, pet, animal] = ["cat", "pet", "animal"].map(|id| builder.add_class(id));
        builder.add_edge(pet, cat, None);
        builder.add_edge(animal, cat, None);
        let graph = builder.build().unwrap().taxonomy;
        let around = Neighbourhood::in_training(&graph, &[cat], 1, None, &mut HopSearch::new(&graph));
        assert_eq!(around.classes, [cat, pet, animal]);
        let mut settings = MethodSettings::default();
        settings.propagation.hidden = 2;
        let mut ppn = (KIND.make)(&settings, 2, 3).unwrap();
        for update in ppn.updates() {
            // Both projections are the identity, so that attention compares the prototypes themselves.
            update.parameter.copy_from_slice(&[1.0, 0.0, 0.0, 1.0]);
        }
        // Cosines with cat (1, 0): pet (2, 0) has 1, animal (0, 3) has 0. Softmax: e / (e + 1) = 0.731059 and 0.268941.
        // Message: (2 * 0.731059, 3 * 0.268941) = (1.462117, 0.806824). Averaged with (1, 0): (1.231059, 0.403412).
        let refined = ppn.refine(&around, &[1.0, 0.0, 2.0, 0.0, 0.0, 3.0]).unwrap();
        let expected = [1.231_059, 0.403_412];
        for (got, expected) in refined.prototypes.iter().zip(expected) {
            assert!((got - expected).abs() < 1e-5, "{:?}", refined.prototypes);
        }
        assert_eq!(refined.prototypes.len(), 2);
    }

    #[test]
    fn a_class_without_a_place_hears_those_it_is_linked_to() {
        let mut builder = TaxonomyBuilder::new();
        let [cat, dog] = ["cat", "dog"].map(|id| builder.add_class(id));
        builder.add_edge(cat, dog, None);
        let graph = builder.build().unwrap().taxonomy;
        let around = Neighbourhood::unknown(&graph, &[7], &[vec![dog]], 1).unwrap();
        let heard = parents(&around);
        let dog = around.classes.iter().position(|&class| class == dog).unwrap() as u32;
        assert_eq!(heard.senders(crate::propagation::Direction::FromParents).to(0), [dog]);
    }
}
