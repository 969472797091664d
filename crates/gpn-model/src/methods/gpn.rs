//! The Gated Propagation Network: prototypes of related classes, weighed by attention and gated.

use super::propagating::Propagating;
use super::{MethodKind, Needs};

pub(super) const KIND: MethodKind = MethodKind {
    name: "gpn",
    title: "GPN",
    about: "gated propagation of prototypes over the class graph, several steps and heads",
    tunes_lambda: true,
    needs: Needs::NOTHING,
    values: |settings, dim| settings.propagation.value_count(dim),
    make: |settings, dim, _| {
        let tree = settings.spanning_tree;
        Ok(Box::new(Propagating::new(settings, settings.propagation.clone(), dim, move |around, nodes| {
            around.thinned(tree, nodes)
        })?))
    },
};
