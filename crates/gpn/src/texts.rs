//! Embeddings of class texts, from a table of class ids and embeddings.

use std::collections::BTreeMap;
use std::path::Path;

use gpn_data::SampleKind;
use gpn_data::benchmark::{Benchmark, DataSet};
use gpn_data::source::{SourceKind, SourceSpec};
use gpn_model::prior::TextRows;
use gpn_taxonomy::Taxonomy;

use crate::error::{Error, Result};

/// Embeddings of class texts by class id.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassTexts {
    dim: usize,
    rows: BTreeMap<String, Vec<f32>>,
}

impl ClassTexts {
    /// Reads a table of embeddings whose labels are class ids (`.npz`, `.npy` with labels beside it, `.parquet`).
    pub fn read(path: &Path) -> Result<Self> {
        let table = gpn_data::open(&SourceSpec { kind: SourceKind::Embeddings, path: path.to_owned() })?;
        let SampleKind::Embeddings { dim } = table.kind() else {
            return Err(Error::input(path.display(), "it holds no embeddings"));
        };
        let mut rows = BTreeMap::new();
        let mut values = vec![0.0; dim];
        for (row, sample) in table.samples().iter().enumerate() {
            table.embedding(row, &mut values)?;
            let id = table.leaves()[sample.leaf as usize].id.clone();
            if rows.insert(id.clone(), values.clone()).is_some() {
                return Err(Error::input(
                    path.display(),
                    format!("class `{id}` has two rows; give one for each class"),
                ));
            }
        }
        Ok(Self { dim, rows })
    }

    /// Texts from memory: for each class id an embedding of `dim` values.
    pub fn new(dim: usize, rows: impl IntoIterator<Item = (String, Vec<f32>)>) -> Result<Self> {
        let rows: BTreeMap<String, Vec<f32>> = rows.into_iter().collect();
        if let Some((id, row)) = rows.iter().find(|(_, row)| dim == 0 || row.len() != dim) {
            let reason = format!("that of `{id}` has {} values, where {dim} are expected", row.len());
            return Err(Error::input("class texts", reason));
        }
        Ok(Self { dim, rows })
    }

    /// The texts of the classes of a graph, by node.
    pub(crate) fn of_graph(&self, graph: &Taxonomy) -> Result<TextRows> {
        let rows = graph.nodes().map(|node| self.rows.get(graph.id(node)).cloned());
        self.table(rows.collect(), "no class has a row; label the rows with class ids")
    }

    /// The text of each class of a data set, by its number there.
    pub(crate) fn of(&self, benchmark: &Benchmark, data_set: &DataSet) -> Vec<Option<Vec<f32>>> {
        let text = |&row: &usize| self.rows.get(&benchmark.classes()[row].id).cloned();
        data_set.rows.iter().map(text).collect()
    }

    /// The texts of the training classes.
    pub(crate) fn of_training(&self, benchmark: &Benchmark, data_set: &DataSet) -> Result<TextRows> {
        let reason = "no training class has a row; label the rows with class ids";
        self.table(self.of(benchmark, data_set), reason)
    }

    /// A row for each class; an error with `reason` where no class has a text.
    fn table(&self, rows: Vec<Option<Vec<f32>>>, reason: &str) -> Result<TextRows> {
        if rows.iter().all(Option::is_none) {
            return Err(Error::input("class texts", reason));
        }
        let table: Vec<f32> =
            rows.into_iter().flat_map(|row| row.unwrap_or_else(|| vec![0.0; self.dim])).collect();
        Ok(TextRows::new(self.dim, &table)?)
    }
}
