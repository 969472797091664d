//! A benchmark, read from its directory or made in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpn_taxonomy::{Node, Taxonomy, TaxonomyBuilder, contract};
use serde::{Deserialize, Serialize};

use super::assign::Part;
use super::build::{BuildConfig, BuildReport};
use super::integrity::{Check, verify};
use super::manifest::{Manifest, StoreInfo};
use super::plan::Plan;
use super::split::Split;
use super::store::Store;
use crate::error::DataError;
use crate::progress::{Progress, Watch};
use crate::source::Source;
use crate::task::{PoolClass, TaskPool};

pub(super) const TAXONOMY: &str = "taxonomy.csv";
pub(super) const CLASSES: &str = "classes.csv";
pub(super) const SAMPLES: &str = "samples.csv";
pub(super) const ASSIGNMENTS: &str = "assignments.csv";

/// What the manifest calls a taxonomy that was given as a value.
const IN_MEMORY: &str = "in memory";

/// A row of `classes.csv`. Rows come training classes first (the root at the top), then Close, Far and unused
/// ones, each group sorted by id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// Its id in the taxonomy.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The side it is on.
    pub split: Split,
    /// Whether samples of the source carry this very class.
    pub leaf: bool,
    /// Samples assigned to it (the root's test samples are not counted).
    pub samples: usize,
    /// Hops to the nearest training class.
    pub distance: u32,
    /// What it is, in a sentence, where the taxonomy says so. `classes.csv` has the column where any class has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A row of `samples.csv`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleRow {
    /// Position in the store.
    pub index: u32,
    /// Id of the class the sample carries in the source.
    pub leaf: String,
    /// Its file in the source.
    pub file: String,
}

/// A row of `assignments.csv`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AssignmentRow<'a> {
    pub(super) class: &'a str,
    pub(super) sample: u32,
    pub(super) part: Part,
}

/// The classes of training and one test side, numbered from 0 as task files number them.
#[derive(Clone, Debug)]
pub struct DataSet {
    /// The row of each class in `classes.csv`: training classes, then those of the side.
    pub rows: Vec<usize>,
    /// How many of them are training classes.
    pub training: usize,
    /// The graph of these classes, all others contracted away; node i is class i.
    pub graph: Taxonomy,
    /// The graph of the training classes alone; node i is class i.
    pub training_graph: Taxonomy,
    /// The graph of all classes of the benchmark with nothing contracted away: node i is class i, then come the others.
    pub whole_graph: Taxonomy,
}

/// Where the rows of `samples.csv` are.
#[derive(Clone, Debug)]
enum Origin {
    Folder(PathBuf),
    Memory(Vec<SampleRow>),
}

/// A benchmark: a directory, opened, or one made in memory. Clones share the samples.
#[derive(Clone, Debug)]
pub struct Benchmark {
    origin: Origin,
    manifest: Manifest,
    classes: Vec<Class>,
    taxonomy: Taxonomy,
    root: usize,
    assigned: Vec<[Vec<u32>; 3]>,
    store: Arc<Store>,
}

impl Benchmark {
    /// Opens the directory and checks that its files are as built ([`Check::Sampled`]) and fit together. Samples stay on
    /// disk, mapped.
    pub fn open(folder: &Path) -> Result<Self, DataError> {
        Self::open_with(folder, Check::Sampled)
    }

    /// The same with a closer look, or none.
    pub fn open_with(folder: &Path, check: Check) -> Result<Self, DataError> {
        let manifest = Manifest::read(folder)?;
        verify(folder, &manifest, check)?;
        let classes: Vec<Class> = read_rows(&folder.join(CLASSES))?;
        let taxonomy = read_taxonomy(folder, &classes)?;
        let root = taxonomy.find(&manifest.root).ok_or_else(|| DataError::Malformed {
            file: folder.join(CLASSES).display().to_string(),
            reason: format!("the root class {} of the manifest is not in it", manifest.root),
        })? as usize;
        let store = Arc::new(Store::open(folder, &manifest.store, manifest.counts.samples)?);
        let assigned = match manifest.store {
            StoreInfo::ClassesOnly => Vec::new(),
            _ => read_assignments(&folder.join(ASSIGNMENTS), &taxonomy, manifest.counts.samples)?,
        };
        let origin = Origin::Folder(folder.to_owned());
        Ok(Self { origin, manifest, classes, taxonomy, root, assigned, store })
    }

    /// Makes a benchmark without a directory from the samples of `source` and the classes of `taxonomy`. Its classes,
    /// samples and [fingerprint](Manifest::fingerprint) are those of the directory that [`build`](super::build()) makes
    /// from the same source and settings; what concerns the directory alone (`replace`) has no effect.
    ///
    /// Memory: the stored samples, once.
    ///
    /// ```
    /// use gpn_data::benchmark::{Benchmark, BuildConfig, Part, Split};
    /// use gpn_data::source::ArraySource;
    /// use gpn_taxonomy::TaxonomyBuilder;
    ///
    /// let mut graph = TaxonomyBuilder::new();
    /// let [animal, cat, dog] = ["animal", "cat", "dog"].map(|id| graph.add_class(id));
    /// graph.add_edge(animal, cat, None);
    /// graph.add_edge(animal, dog, None);
    /// let graph = graph.build()?.taxonomy;
    ///
    /// // 200 embeddings of 2 numbers, the first half of cats.
    /// let labels: Vec<&str> = (0..200).map(|row| if row < 100 { "cat" } else { "dog" }).collect();
    /// let source = ArraySource::embeddings(vec![0.5; 400], 2, &labels)?;
    /// let (benchmark, report) =
    ///     Benchmark::from_source(&source, &graph, &BuildConfig::default(), &())?;
    /// assert_eq!(benchmark.store().len(), 200);
    /// assert!(report.warnings.is_empty());
    /// # Ok::<(), gpn_data::DataError>(())
    /// ```
    pub fn from_source(
        source: &dyn Source,
        taxonomy: &Taxonomy,
        config: &BuildConfig,
        progress: &dyn Progress,
    ) -> Result<(Self, BuildReport), DataError> {
        let watch = Watch::new(progress, source.samples().len());
        let store = StoreInfo::of(source, config);
        let mut bytes = Vec::new();
        let mut write_rows = |rows: &[u8]| {
            bytes.extend_from_slice(rows);
            Ok(())
        };
        let mut plan =
            Plan::make(source, taxonomy, IN_MEMORY, config, store.clone(), &mut write_rows, &watch)?;
        let mut hashes = BTreeMap::new();
        for &name in plan.tables() {
            let mut hasher = blake3::Hasher::new();
            watch.check()?;
            // invariant: a hasher takes everything, and every row of a table can be written as CSV.
            plan.write_table(name, &mut hasher).unwrap();
            hashes.insert(name.to_owned(), hasher.finalize().to_hex().to_string());
        }
        let (store, hash) = Store::in_memory(&store, bytes, &watch)?;
        hashes.extend(hash);
        let manifest = Manifest { hashes, ..plan.manifest.clone() };
        let mut assigned: Vec<[Vec<u32>; 3]> = Vec::new();
        if manifest.store != StoreInfo::ClassesOnly {
            assigned.resize_with(plan.classes.len(), Default::default);
            for &(class, sample, part) in &plan.assigned {
                assigned[class as usize][part as usize].push(sample);
            }
        }
        let benchmark = Self {
            origin: Origin::Memory(std::mem::take(&mut plan.samples)),
            manifest: manifest.clone(),
            classes: std::mem::take(&mut plan.classes),
            taxonomy: plan.graph.clone(),
            root: plan.root as usize,
            assigned,
            store: Arc::new(store),
        };
        Ok((benchmark, plan.report(manifest)))
    }

    /// The directory, unless it was made in memory.
    pub fn folder(&self) -> Option<&Path> {
        match &self.origin {
            Origin::Folder(folder) => Some(folder),
            Origin::Memory(_) => None,
        }
    }

    /// What it was made from.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// All classes, in the order of `classes.csv`.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// The graph of all classes; node i is row i of `classes.csv`.
    pub fn taxonomy(&self) -> &Taxonomy {
        &self.taxonomy
    }

    /// The row of the top class.
    pub fn root(&self) -> usize {
        self.root
    }

    /// The samples themselves.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The samples of a class (a row of `classes.csv`) for a part, ascending.
    pub fn samples(&self, class: usize, part: Part) -> &[u32] {
        self.assigned.get(class).map_or(&[], |parts| &parts[part as usize])
    }

    /// How many samples a class has for a part; in a benchmark of classes only, how many it would have.
    pub fn sample_count(&self, class: usize, part: Part) -> usize {
        if self.manifest.store != StoreInfo::ClassesOnly {
            return self.samples(class, part).len();
        }
        let row = &self.classes[class];
        match (part, row.split) {
            (Part::Train, Split::Train) | (Part::Test, Split::Close | Split::Far) => row.samples,
            (Part::Test, Split::Train) if class == self.root => row.samples,
            _ => 0,
        }
    }

    /// The rows of `samples.csv`; of a directory they are read anew.
    pub fn sample_rows(&self) -> Result<Vec<SampleRow>, DataError> {
        match &self.origin {
            Origin::Folder(folder) => read_rows(&folder.join(SAMPLES)),
            Origin::Memory(rows) => Ok(rows.clone()),
        }
    }

    /// The rows of the classes on one side.
    pub fn rows_of(&self, split: Split) -> Vec<usize> {
        (0..self.classes.len()).filter(|&class| self.classes[class].split == split).collect()
    }

    /// The classes of training and of one test side, as task files number them.
    pub fn data_set(&self, split: Split) -> DataSet {
        let mut rows = self.rows_of(Split::Train);
        let training = rows.len();
        let training_graph = contract(&self.taxonomy, &nodes(&rows));
        if split != Split::Train {
            rows.extend(self.rows_of(split));
        }
        let graph = contract(&self.taxonomy, &nodes(&rows));
        let mut is_of_data_set = vec![false; self.classes.len()];
        for &row in &rows {
            is_of_data_set[row] = true;
        }
        let others = (0..self.classes.len()).filter(|&row| !is_of_data_set[row]);
        let all: Vec<usize> = rows.iter().copied().chain(others).collect();
        let whole_graph = contract(&self.taxonomy, &nodes(&all));
        DataSet { rows, training, graph, training_graph, whole_graph }
    }

    /// The graph of one side's classes and the root, all others contracted away.
    pub fn side_graph(&self, split: Split) -> Taxonomy {
        contract(&self.taxonomy, &nodes(&self.with_root(split)))
    }

    /// The classes that tasks on `split` may ask for, with their samples of `part`.
    pub fn task_pool(&self, split: Split, part: Part) -> TaskPool {
        let with_root = self.with_root(split);
        let graph = contract(&self.taxonomy, &nodes(&with_root));
        let number_of_row: std::collections::HashMap<usize, u32> =
            self.data_set(split).rows.into_iter().zip(0..).collect();
        let classes = with_root
            .iter()
            .zip(0..)
            .filter(|&(&row, _)| row != self.root)
            .map(|(row, node)| PoolClass {
                index: number_of_row[row],
                node,
                samples: self.samples(*row, part).to_vec(),
            })
            .collect();
        TaskPool { description: format!("{} classes", split.name()), classes, graph }
    }

    fn with_root(&self, split: Split) -> Vec<usize> {
        let mut rows = self.rows_of(split);
        if !rows.contains(&self.root) {
            rows.insert(0, self.root);
        }
        rows
    }
}

fn nodes(rows: &[usize]) -> Vec<Node> {
    rows.iter().map(|&row| row as Node).collect()
}

/// Reads a CSV file with a header into rows; a fault names the file and the line.
pub(super) fn read_rows<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Vec<T>, DataError> {
    let mut reader = csv::Reader::from_path(path).map_err(|error| csv_fault(path, error))?;
    reader.deserialize().collect::<Result<_, _>>().map_err(|error| csv_fault(path, error))
}

pub(super) fn csv_fault(path: &Path, error: csv::Error) -> DataError {
    let reason = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(error) => DataError::io("read", path, error),
        _ => DataError::Malformed { file: path.display().to_string(), reason },
    }
}

/// The graph with node i for row i of `classes.csv`.
fn read_taxonomy(folder: &Path, classes: &[Class]) -> Result<Taxonomy, DataError> {
    let edges = gpn_taxonomy::read_edges(&folder.join(TAXONOMY))?.taxonomy;
    let mut builder = TaxonomyBuilder::new();
    for (number, class) in classes.iter().enumerate() {
        let node = builder.add_class(&class.id);
        if node as usize != number {
            return Err(DataError::Malformed {
                file: folder.join(CLASSES).display().to_string(),
                reason: format!("class {} is listed twice; build the benchmark anew", class.id),
            });
        }
        builder.set_name(node, &class.name);
        if let Some(description) = &class.description {
            builder.set_description(node, description);
        }
    }
    for (parent, child) in edges.edges() {
        let [parent, child] = [parent, child].map(|node| builder.add_class(edges.id(node)));
        builder.add_edge(parent, child, None);
    }
    if builder.len() != classes.len() {
        return Err(DataError::Malformed {
            file: folder.join(TAXONOMY).display().to_string(),
            reason: format!(
                "it names {} classes that are not in {CLASSES}; the two files do not belong together",
                builder.len() - classes.len()
            ),
        });
    }
    Ok(builder.build()?.taxonomy)
}

fn read_assignments(
    path: &Path,
    taxonomy: &Taxonomy,
    samples: usize,
) -> Result<Vec<[Vec<u32>; 3]>, DataError> {
    let mut assigned: Vec<[Vec<u32>; 3]> = vec![Default::default(); taxonomy.len()];
    let mut reader = csv::Reader::from_path(path).map_err(|error| csv_fault(path, error))?;
    let header = reader.headers().map_err(|error| csv_fault(path, error))?.clone();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| csv_fault(path, error))? {
        let row: AssignmentRow<'_> =
            record.deserialize(Some(&header)).map_err(|error| csv_fault(path, error))?;
        let fault = |reason: String| DataError::Malformed {
            file: path.display().to_string(),
            reason: format!("line {}: {reason}", record.position().map_or(0, csv::Position::line)),
        };
        let class = taxonomy
            .find(row.class)
            .ok_or_else(|| fault(format!("class {} is not in {CLASSES}", row.class)))?;
        if row.sample as usize >= samples {
            return Err(fault(format!("sample {} is not below the {samples} stored samples", row.sample)));
        }
        assigned[class as usize][row.part as usize].push(row.sample);
    }
    for samples in assigned.iter_mut().flatten() {
        samples.sort_unstable();
    }
    Ok(assigned)
}
