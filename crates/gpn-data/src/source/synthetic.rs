//! `synthetic`: the built-in data set as a source.

use gpn_taxonomy::{Checked, TaxonomyBuilder, TaxonomyError};

use super::{Leaf, SampleInfo, SampleKind, Source};
use crate::DataError;
use crate::format::image::RgbImage;
use crate::synthetic::{self, SyntheticConfig};

/// The built-in data set, drawn as it is read.
pub struct SyntheticSource {
    config: SyntheticConfig,
    leaves: Vec<Leaf>,
    samples: Vec<SampleInfo>,
}

impl SyntheticSource {
    /// The data set with the given size, samples and seed.
    pub fn new(config: SyntheticConfig) -> Self {
        let leaf =
            |leaf: &synthetic::Leaf| Leaf { id: leaf.class.id.clone(), name: Some(leaf.class.name.clone()) };
        let leaves: Vec<Leaf> = synthetic::leaves().iter().map(leaf).collect();
        let samples = leaves
            .iter()
            .zip(0..)
            .flat_map(|(class, leaf)| {
                (0..config.per_leaf)
                    .map(move |sample| SampleInfo { leaf, file: format!("{}/{sample:04}", class.id) })
            })
            .collect();
        Self { config, leaves, samples }
    }
}

impl Source for SyntheticSource {
    fn describe(&self) -> String {
        format!("synthetic (seed {})", self.config.seed)
    }

    fn kind(&self) -> SampleKind {
        SampleKind::Images
    }

    fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    fn samples(&self) -> &[SampleInfo] {
        &self.samples
    }

    fn image(&self, index: usize) -> Result<RgbImage, DataError> {
        let sample = self.samples.get(index).ok_or_else(|| self.no_sample(index, "image"))?;
        let size = self.config.size;
        let mut pixels = vec![0; (size * size * 3) as usize];
        let number = index % self.config.per_leaf as usize;
        synthetic::draw(&self.config, sample.leaf as usize, number, &mut pixels)?;
        RgbImage::new(size, size, pixels).ok_or_else(|| self.no_sample(index, "image"))
    }

    fn taxonomy(&self) -> Option<Result<Checked, TaxonomyError>> {
        let mut builder = TaxonomyBuilder::new();
        for class in synthetic::classes() {
            let node = builder.add_class(&class.id);
            builder.set_name(node, &class.name);
        }
        for edge in synthetic::edges() {
            let [parent, child] = [&edge.parent, &edge.child].map(|id| builder.add_class(id));
            builder.add_edge(parent, child, None);
        }
        Some(builder.build())
    }
}
