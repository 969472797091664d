//! Small graphs and numbers for the tests of this room.

use gpn_taxonomy::{Taxonomy, TaxonomyBuilder};

/// The graph of edges written as `parent>child`.
pub(super) fn graph_of(edges: &str) -> Taxonomy {
    let mut graph = TaxonomyBuilder::new();
    for edge in edges.split(' ') {
        let (parent, child) = edge.split_once('>').unwrap();
        let (parent, child) = (graph.add_class(parent), graph.add_class(child));
        graph.add_edge(parent, child, None);
    }
    graph.build().unwrap().taxonomy
}

/// Values that look like noise, about normal with deviation 1.
pub(super) fn noise(mut seed: u64) -> impl FnMut() -> f32 {
    move || {
        let mut uniform = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as f32 / (1 << 24) as f32
        };
        (0..12).map(|_| uniform()).sum::<f32>() - 6.0
    }
}
