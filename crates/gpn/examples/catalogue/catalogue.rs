//! The embeddings, the class graph and the divisions; a prior fitted to some leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;

use gpn_data::source::{SourceKind, SourceSpec};
use gpn_model::prior::{ClassPrior, KnownClasses, PriorConfig, PriorModel, TextRows, TrainingSamples};
use gpn_taxonomy::{Node, Taxonomy, leaves_below, read_edges};
use serde::Deserialize;

/// Rows of leaves.
pub(crate) type Rows = BTreeMap<String, Vec<usize>>;

/// A division of the leaves, as `bench/catalogue.py` draws it.
#[derive(Deserialize)]
pub(crate) struct Division {
    pub(crate) known: Vec<String>,
    pub(crate) new: Vec<String>,
    pub(crate) train: Vec<usize>,
    pub(crate) support: Rows,
    pub(crate) query: Vec<usize>,
    pub(crate) tasks: Vec<Task>,
}

/// A task of new leaves.
#[derive(Deserialize)]
pub(crate) struct Task {
    pub(crate) classes: Vec<String>,
    pub(crate) support: Vec<Vec<usize>>,
    pub(crate) query: Vec<Vec<usize>>,
}

/// Frozen embeddings with labels, and the class graph.
pub(crate) struct Catalogue {
    pub(crate) dim: usize,
    values: Vec<f32>,
    labels: Vec<String>,
    taxonomy: Taxonomy,
    texts: BTreeMap<String, Vec<f32>>,
    /// Whether classes above leaves have the samples of the leaves below them; else they have none.
    pub(crate) is_inner_sampled: bool,
}

/// Values `[n, dim]`, their labels, and `dim`.
type Table = (Vec<f32>, Vec<String>, usize);

fn read_table(path: &Path) -> Result<Table, Box<dyn Error>> {
    let table = gpn_data::open(&SourceSpec { kind: SourceKind::Embeddings, path: path.to_owned() })?;
    let gpn_data::SampleKind::Embeddings { dim } = table.kind() else {
        return Err(format!("{} holds no embeddings", path.display()).into());
    };
    let mut values = vec![0.0; table.samples().len() * dim];
    for (row, out) in values.chunks_exact_mut(dim).enumerate() {
        table.embedding(row, out)?;
    }
    let label = |sample: &gpn_data::SampleInfo| table.leaves()[sample.leaf as usize].id.clone();
    Ok((values, table.samples().iter().map(label).collect(), dim))
}

impl Catalogue {
    pub(crate) fn read(
        embeddings: &Path,
        taxonomy: &Path,
        texts: Option<&Path>,
    ) -> Result<Self, Box<dyn Error>> {
        let (values, labels, dim) = read_table(embeddings)?;
        let taxonomy = read_edges(taxonomy)?.taxonomy;
        let mut by_class = BTreeMap::new();
        if let Some(path) = texts {
            let (values, labels, dim) = read_table(path)?;
            by_class = labels.into_iter().zip(values.chunks_exact(dim).map(<[f32]>::to_vec)).collect();
        }
        Ok(Self { dim, values, labels, taxonomy, texts: by_class, is_inner_sampled: false })
    }

    pub(crate) fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.dim..][..self.dim]
    }

    /// Some rows, `[n, dim]`.
    pub(crate) fn gather(&self, rows: &[usize]) -> Vec<f32> {
        rows.iter().flat_map(|&row| self.row(row)).copied().collect()
    }

    /// Rows with the leaves that they belong to.
    pub(crate) fn labelled(&self, rows: &[usize]) -> Vec<(usize, &str)> {
        rows.iter().map(|&row| (row, self.labels[row].as_str())).collect()
    }

    pub(crate) fn rows_by_leaf(&self, leaves: &[String], rows: &[usize]) -> Result<Rows, Box<dyn Error>> {
        let mut by_leaf: Rows = leaves.iter().map(|leaf| (leaf.clone(), Vec::new())).collect();
        for &row in rows {
            let label = &self.labels[row];
            by_leaf.get_mut(label).ok_or_else(|| format!("row {row} is of `{label}`"))?.push(row);
        }
        Ok(by_leaf)
    }

    pub(crate) fn text(&self, class: &str) -> Option<&[f32]> {
        self.texts.get(class).map(Vec::as_slice)
    }
}

/// A prior fitted to some leaves and the classes above them.
pub(crate) struct Fitted {
    pub(crate) model: PriorModel,
    /// The whole class graph, with the classes that have samples first.
    graph: Taxonomy,
}

impl Fitted {
    /// Fits the prior to the rows of known leaves.
    pub(crate) fn new(
        catalogue: &Catalogue,
        known: &Rows,
        config: &PriorConfig,
    ) -> Result<Self, Box<dyn Error>> {
        let taxonomy = &catalogue.taxonomy;
        let of_class = |class: Node| -> Vec<usize> {
            let below = leaves_below(taxonomy, class);
            if !(catalogue.is_inner_sampled || below == [class]) {
                return Vec::new();
            }
            below.iter().filter_map(|&leaf| known.get(taxonomy.id(leaf))).flatten().copied().collect()
        };
        let (with, without): (Vec<Node>, Vec<Node>) =
            taxonomy.nodes().partition(|&class| !of_class(class).is_empty());
        let rows: Vec<Vec<f32>> = with.iter().map(|&class| catalogue.gather(&of_class(class))).collect();
        let graph = taxonomy.induced(&[&with[..], &without].concat());
        // The fit does not hear of leaves that are not known.
        let is_inner = |class: &Node| !taxonomy.children(*class).is_empty();
        let inner: Vec<Node> = without.iter().copied().filter(is_inner).collect();
        let known_graph = taxonomy.induced(&[&with[..], &inner].concat());
        let texts = match catalogue.texts.values().next() {
            Some(first) => {
                let text = |&class: &Node| {
                    catalogue.text(taxonomy.id(class)).map_or_else(|| vec![0.0; first.len()], <[f32]>::to_vec)
                };
                Some(TextRows::new(first.len(), &with.iter().flat_map(text).collect::<Vec<f32>>())?)
            }
            None => None,
        };
        let training = TrainingSamples {
            dim: catalogue.dim,
            rows: &rows,
            held_out: &[],
            graph: &known_graph,
            texts: texts.as_ref(),
            seed: 0,
        };
        Ok(Self { model: PriorModel::fit(&training, config)?, graph })
    }

    pub(crate) fn known(&self) -> KnownClasses<'_> {
        self.model.known(&self.graph)
    }

    /// The prior of a leaf by its place, and by its text where there is one.
    pub(crate) fn prior_of(
        &self,
        catalogue: &Catalogue,
        known: &KnownClasses<'_>,
        leaf: &str,
    ) -> Result<ClassPrior, Box<dyn Error>> {
        let class = self.graph.find(leaf).ok_or_else(|| format!("`{leaf}` is not in the taxonomy"))?;
        Ok(self.model.prior_of(Some((known, class)), catalogue.text(leaf))?)
    }
}

/// The leaves without the hidden ones.
pub(crate) fn without(rows: &Rows, hidden: &BTreeSet<&str>) -> Rows {
    rows.iter()
        .filter(|(leaf, _)| !hidden.contains(leaf.as_str()))
        .map(|(leaf, rows)| (leaf.clone(), rows.clone()))
        .collect()
}
