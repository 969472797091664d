//! Embeddings of class texts, from a table of class ids and embeddings.

use std::collections::BTreeMap;
use std::path::Path;

use gpn_data::SampleKind;
use gpn_data::benchmark::{Benchmark, DataSet};
use gpn_data::source::{SourceKind, SourceSpec};
use gpn_model::prior::TextRows;

use crate::error::{Error, Result};

/// Embeddings of class texts by class id.
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

    /// The text of each class of a data set, by its number there.
    pub(crate) fn of(&self, benchmark: &Benchmark, data_set: &DataSet) -> Vec<Option<Vec<f32>>> {
        let text = |&row: &usize| self.rows.get(&benchmark.classes()[row].id).cloned();
        data_set.rows.iter().map(text).collect()
    }

    /// The texts of the training classes.
    pub(crate) fn of_training(&self, benchmark: &Benchmark, data_set: &DataSet) -> Result<TextRows> {
        let rows = self.of(benchmark, data_set);
        if rows.iter().all(Option::is_none) {
            return Err(Error::input(
                "class texts",
                "no training class has a row; label the rows with class ids",
            ));
        }
        let table: Vec<f32> =
            rows.into_iter().flat_map(|row| row.unwrap_or_else(|| vec![0.0; self.dim])).collect();
        Ok(TextRows::new(self.dim, &table)?)
    }
}
