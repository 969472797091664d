//! Samples assigned by the user instead of drawn: a CSV file with the columns class, sample and optionally part.

use std::path::Path;

use gpn_taxonomy::Taxonomy;
use serde::Deserialize;

use super::assign::{Claimant, Part, Row, hold_out};
use super::open::csv_fault;
use super::split::Split;
use crate::error::DataError;

#[derive(Deserialize)]
struct GivenRow<'a> {
    class: &'a str,
    sample: u32,
    part: Option<Part>,
}

/// Reads the rows of `path` for the classes of `graph`; node i is claimant i.
///
/// A row without a part is for testing. Of a training class it is for training, and `val_share` of such rows are held out.
pub(super) fn given_assignments(
    path: &Path,
    graph: &Taxonomy,
    claimants: &[Claimant],
    samples: usize,
    val_share: f64,
) -> Result<Vec<Row>, DataError> {
    let mut rows: Vec<Row> = Vec::new();
    let mut training: Vec<Vec<u32>> = vec![Vec::new(); claimants.len()];
    let mut reader = csv::Reader::from_path(path).map_err(|error| csv_fault(path, error))?;
    let header = reader.headers().map_err(|error| csv_fault(path, error))?.clone();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| csv_fault(path, error))? {
        let row: GivenRow<'_> = record.deserialize(Some(&header)).map_err(|error| csv_fault(path, error))?;
        let line = record.position().map_or(0, csv::Position::line);
        let fault =
            |reason: String| DataError::unfit(path.display().to_string(), format!("line {line}: {reason}"));
        let class = graph.find(row.class).ok_or_else(|| {
            let nearest = gpn_taxonomy::nearest_name(row.class, graph.nodes().map(|node| graph.id(node)));
            let hint = nearest.map_or(String::new(), |id| format!("; did you mean `{id}`?"));
            fault(format!("class `{}` is not in the taxonomy{hint}", row.class))
        })?;
        if row.sample as usize >= samples {
            return Err(fault(format!("sample {} does not exist: the source has {samples}", row.sample)));
        }
        match (row.part, claimants[class as usize].split) {
            (Some(part), _) => rows.push((class, row.sample, part)),
            (None, Split::Train) => training[class as usize].push(row.sample),
            (None, _) => rows.push((class, row.sample, Part::Test)),
        }
    }
    for (class, samples) in training.iter().enumerate() {
        let parts = hold_out(samples.len(), val_share);
        rows.extend(samples.iter().zip(parts).map(|(&sample, part)| (class as u32, sample, part)));
    }
    rows.sort_unstable();
    if let Some(pair) = rows.windows(2).find(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)) {
        let (class, sample, _) = pair[0];
        return Err(DataError::unfit(
            path.display().to_string(),
            format!("sample {sample} stands twice under class {}", graph.id(class)),
        ));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use gpn_taxonomy::TaxonomyBuilder;

    use super::*;

    fn read(text: &str) -> Result<Vec<Row>, String> {
        let mut builder = TaxonomyBuilder::new();
        let [root, bird, fish] = ["root", "bird", "fish"].map(|id| builder.add_class(id));
        builder.add_edge(root, bird, None);
        builder.add_edge(root, fish, None);
        let claimants = [Split::Train, Split::Train, Split::Close].map(|split| Claimant {
            split,
            is_root: false,
            leaves: Vec::new(),
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let graph = builder.build().unwrap().taxonomy;
        given_assignments(file.path(), &graph, &claimants, 10, 0.5).map_err(|error| error.to_string())
    }

    #[test]
    fn parts_are_taken_or_worked_out() {
        let rows = read("class,sample\nbird,3\nbird,1\nfish,3\n").unwrap();
        assert_eq!(rows, [(1, 1, Part::Val), (1, 3, Part::Train), (2, 3, Part::Test)]);
        let rows = read("class,sample,part\nbird,3,val\nroot,3,test\n").unwrap();
        assert_eq!(rows, [(0, 3, Part::Test), (1, 3, Part::Val)]);
    }

    #[test]
    fn faults_name_the_line() {
        assert!(read("class,sample\nbirb,3\n").unwrap_err().contains("line 2: class `birb`"));
        assert!(read("class,sample\nbirb,3\n").unwrap_err().contains("did you mean `bird`?"));
        assert!(read("class,sample\nbird,10\n").unwrap_err().contains("line 2: sample 10 does not exist"));
        assert!(read("class,sample\nbird,1\nbird,1\n").unwrap_err().contains("twice under class bird"));
        assert!(read("class,sample\nbird,x\n").unwrap_err().contains("line: 2"));
    }
}
