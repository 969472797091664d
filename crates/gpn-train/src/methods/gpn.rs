//! The Gated Propagation Network: prototypes of related classes, weighed by attention and gated.

use super::MethodKind;
use super::propagating::Propagating;

pub(super) const KIND: MethodKind = MethodKind {
    name: "gpn",
    title: "GPN",
    about: "gated propagation of prototypes over the class graph, several steps and heads",
    tunes_lambda: true,
    adjust: |_| {},
    values: |config, dim| config.propagation.value_count(dim),
    make: |config, dim, _| {
        let tree = config.pathways.spanning_tree;
        Ok(Box::new(Propagating::new(config, config.propagation.clone(), dim, move |around, nodes| {
            around.thinned(tree, nodes)
        })?))
    },
};
