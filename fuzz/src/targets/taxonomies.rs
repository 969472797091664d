//! Class graphs.

use std::path::Path;

use gpn_taxonomy::{Checked, TaxonomyError};

use super::written;

fn read(data: &[u8], folder: &Path, reader: fn(&Path) -> Result<Checked, TaxonomyError>) -> bool {
    let Ok(checked) = reader(&written(folder, "taxonomy", data)) else { return false };
    let graph = checked.taxonomy;
    assert_eq!(graph.topological_order().len(), graph.len());
    for node in graph.nodes() {
        assert_eq!(graph.find(graph.id(node)), Some(node));
    }
    true
}

pub(super) fn edges(data: &[u8], folder: &Path) -> bool {
    read(data, folder, gpn_taxonomy::read_edges)
}

pub(super) fn json(data: &[u8], folder: &Path) -> bool {
    read(data, folder, gpn_taxonomy::read_json)
}

pub(super) fn obo(data: &[u8], folder: &Path) -> bool {
    read(data, folder, gpn_taxonomy::read_obo)
}

pub(super) fn wordnet(data: &[u8], folder: &Path) -> bool {
    read(data, folder, gpn_taxonomy::read_wordnet)
}

pub(super) fn xml(data: &[u8], folder: &Path) -> bool {
    read(data, folder, gpn_taxonomy::read_imagenet_xml)
}
