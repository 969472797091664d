//! From a source's leaves and a taxonomy to the graph that a benchmark divides.

use gpn_taxonomy::{Checked, Finding, Node, Taxonomy, TaxonomyBuilder, TaxonomyError, Warning, check_fit};
use serde::{Deserialize, Serialize};

use super::build::BuildConfig;
use super::split::{Generator, SplitConfig};
use crate::error::DataError;
use crate::source::Leaf;

/// A rule that keeps only part of a taxonomy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaxonomyCut {
    /// WordNet as ImageNet's fall 2011 release cuts it at the top.
    ImagenetFall2011,
}

/// A published benchmark, rebuilt with its own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// tieredImageNet-Close and -Far of the paper.
    TieredImagenet,
    /// tinyImageNet-Close and -Far: the same procedure on the 200 classes of Tiny-ImageNet.
    TinyImagenet,
}

impl Preset {
    /// The name that a user gives.
    pub fn name(self) -> &'static str {
        match self {
            Self::TieredImagenet => "tiered-imagenet",
            Self::TinyImagenet => "tiny-imagenet",
        }
    }

    /// The settings that make the published benchmark.
    pub fn config(self) -> BuildConfig {
        let reference = |min_distance| SplitConfig {
            seed: 111,
            generator: Generator::Reference,
            min_distance,
            ..SplitConfig::default()
        };
        let general = BuildConfig { preset: Some(self.name().into()), ..BuildConfig::default() };
        match self {
            Self::TieredImagenet => BuildConfig {
                split: reference(3),
                size: 84,
                cut: Some(TaxonomyCut::ImagenetFall2011),
                // The published splits look classes up by name, and "crane" is a bird and a machine: the bird's
                // images are listed under the machine's id.
                renamed_leaves: vec![("n02012849".into(), "n03126707".into())],
                ..general
            },
            Self::TinyImagenet => BuildConfig { split: reference(4), size: 64, ..general },
        }
    }
}

/// The graph of a benchmark, before it is divided.
pub(super) struct Ingredients {
    /// All classes with samples below them.
    pub(super) taxonomy: Taxonomy,
    /// The top class.
    pub(super) root: Node,
    /// The node of each leaf of the source.
    pub(super) leaf_nodes: Vec<Node>,
    /// What a user should know.
    pub(super) warnings: Vec<Warning>,
    /// Ids of the classes left out because they have no samples, sorted.
    pub(super) without_samples: Vec<String>,
}

impl Ingredients {
    /// Finds the source's leaves in `taxonomy` and keeps them and their ancestors.
    pub(super) fn prepare(
        leaves: &[Leaf],
        taxonomy: &Taxonomy,
        config: &BuildConfig,
    ) -> Result<Self, DataError> {
        let (ids, mut warnings) = leaf_ids(leaves, taxonomy, config)?;
        let kept = match config.cut {
            None => gpn_taxonomy::ancestors(taxonomy, &ids)?,
            Some(TaxonomyCut::ImagenetFall2011) => gpn_taxonomy::imagenet_fall2011(taxonomy, &ids)?,
        };
        let without_samples = absent_from(&kept, taxonomy);
        let checked = Checked { taxonomy: kept, warnings: Vec::new() }.with_single_root("root")?;
        let mut taxonomy = checked.taxonomy;
        warnings.extend(checked.warnings);
        if config.collapse_chains {
            taxonomy = collapsed(&taxonomy, &ids)?;
        }
        if let Some(id) = &config.root_id {
            taxonomy = with_root_id(&taxonomy, id)?;
        }
        // invariant: a graph without cycles has a root, and with_single_root leaves just one.
        let root = taxonomy.roots().next().unwrap();
        let leaf_nodes = taxonomy.find_all(&ids)?;
        Ok(Self { taxonomy, root, leaf_nodes, warnings, without_samples })
    }

    /// The source leaves at or below each class, ascending, by node.
    pub(super) fn leaves_below(&self) -> Vec<Vec<u32>> {
        let mut below: Vec<Vec<u32>> = vec![Vec::new(); self.taxonomy.len()];
        for (leaf, &node) in self.leaf_nodes.iter().enumerate() {
            below[node as usize].push(leaf as u32);
        }
        for &node in self.taxonomy.topological_order().iter().rev() {
            let mut own = std::mem::take(&mut below[node as usize]);
            own.sort_unstable();
            own.dedup();
            for &parent in self.taxonomy.parents(node) {
                below[parent as usize].extend(&own);
            }
            below[node as usize] = own;
        }
        below
    }

    /// Classes sorted by id, the root last: the order in which they are drawn.
    pub(super) fn sorted(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> = self.taxonomy.nodes().collect();
        nodes.sort_by(|&a, &b| {
            (a == self.root, self.taxonomy.id(a)).cmp(&(b == self.root, self.taxonomy.id(b)))
        });
        nodes
    }
}

/// The ids of `all` that are not in `kept`, sorted.
fn absent_from(kept: &Taxonomy, all: &Taxonomy) -> Vec<String> {
    let mut ids: Vec<String> = all
        .nodes()
        .map(|node| all.id(node))
        .filter(|id| kept.find(id).is_none())
        .map(str::to_owned)
        .collect();
    ids.sort_unstable();
    ids
}

/// The id in `taxonomy` of each leaf, as [`check_fit`] finds it, and what a user should know of that.
fn leaf_ids(
    leaves: &[Leaf],
    taxonomy: &Taxonomy,
    config: &BuildConfig,
) -> Result<(Vec<String>, Vec<Warning>), DataError> {
    let label = |leaf: &Leaf| {
        let renamed = config.renamed_leaves.iter().find(|(from, _)| *from == leaf.id);
        renamed.map_or(leaf.id.clone(), |(_, to)| to.clone())
    };
    let labels: Vec<String> = leaves.iter().map(label).collect();
    let fit = check_fit(taxonomy, &labels);
    let respelled = |finding: &Finding| match finding {
        Finding::Respelled(misses) => Some(Warning::Respelled(misses.clone())),
        _ => None,
    };
    let warnings = fit.warnings().filter_map(respelled).collect();
    let ids: Vec<String> = fit.into_nodes()?.into_iter().map(|node| taxonomy.id(node).to_owned()).collect();
    let mut sorted: Vec<&String> = ids.iter().collect();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(TaxonomyError::ClassExists {
            id: pair[0].clone(),
            hint: "two classes of the source are the same class of the taxonomy: give them different ids",
        }
        .into());
    }
    Ok((ids, warnings))
}

/// Merges chains, unless that would merge away a class that has samples of its own.
fn collapsed(taxonomy: &Taxonomy, ids: &[String]) -> Result<Taxonomy, DataError> {
    let collapsed = gpn_taxonomy::collapse_chains(taxonomy);
    match ids.iter().find(|id| collapsed.find(id).is_none()) {
        None => Ok(collapsed),
        Some(id) => Err(TaxonomyError::ClassExists {
            id: id.clone(),
            hint: "it has samples of its own and the same leaves as a class below it: chains cannot be collapsed here",
        }
        .into()),
    }
}

/// The same graph with another id for its root.
fn with_root_id(taxonomy: &Taxonomy, id: &str) -> Result<Taxonomy, DataError> {
    let mut builder = TaxonomyBuilder::new();
    for node in taxonomy.nodes() {
        let own = if taxonomy.parents(node).is_empty() { id } else { taxonomy.id(node) };
        let added = builder.add_class(own);
        builder.set_name(added, taxonomy.name(node));
        builder.set_description(added, taxonomy.description(node).unwrap_or_default());
    }
    for (parent, child) in taxonomy.edges() {
        builder.add_edge(parent, child, None);
    }
    Ok(builder.build()?.taxonomy)
}
