//! Checks the description in a model file before anything is made from it.

use std::collections::HashSet;

use gpn_model::{BackboneConfig, InputShape, Memory, Weights};

use super::file::ModelInfo;
use super::taught::Placement;

/// Heights and widths of images that are accepted.
const SIZES: std::ops::RangeInclusive<usize> = 1..=4096;

impl ModelInfo {
    /// Refuses a description that cannot be true. Never takes more memory than the file itself.
    pub(crate) fn check(&self, memory: &Memory, weights: &Weights) -> Result<(), String> {
        self.check_settings()?;
        self.check_classes()?;
        self.check_taught()?;
        self.check_sizes(memory, weights)
    }

    fn check_settings(&self) -> Result<(), String> {
        self.config.check_numbers().map_err(|error| error.to_string())?;
        let InputShape::Image { height, width } = self.input else { return Ok(()) };
        if !SIZES.contains(&height) || !SIZES.contains(&width) {
            return Err(format!("it takes images of {height}x{width}"));
        }
        if !self.stored_size.is_some_and(|size| SIZES.contains(&(size as usize))) {
            return Err("it does not say at which size images are stored".into());
        }
        Ok(())
    }

    fn check_classes(&self) -> Result<(), String> {
        let classes = self.classes.len() + self.held_out.len();
        let mut ids = HashSet::with_capacity(classes);
        for class in self.classes.iter().chain(&self.held_out) {
            if class.id.is_empty() || class.id.trim() != class.id {
                return Err(format!("{:?} is no id of a class", class.id));
            }
            if !ids.insert(class.id.as_str()) {
                return Err(format!("class `{}` is listed twice", class.id));
            }
        }
        let outside = |&(parent, child): &(u32, u32)| parent.max(child) as usize >= classes;
        if self.edges.iter().any(outside) || self.root as usize >= classes {
            return Err(format!("its class graph names classes beyond its {classes}"));
        }
        self.graph().map(drop).map_err(|error| error.to_string())
    }

    fn check_taught(&self) -> Result<(), String> {
        let training: HashSet<&str> = self.classes.iter().map(|class| class.id.as_str()).collect();
        let held_out: HashSet<&str> = self.held_out.iter().map(|class| class.id.as_str()).collect();
        let taught: HashSet<&str> = self.taught.iter().map(|class| class.id.as_str()).collect();
        let added: HashSet<&str> = self.changes.added.keys().map(String::as_str).collect();
        let changed = [&self.changes.moved, &self.changes.added].into_iter().flatten();
        for (id, parents) in changed {
            let is_known =
                |id: &str| [&training, &held_out, &taught, &added].iter().any(|classes| classes.contains(id));
            if !is_known(id) || parents.is_empty() || !parents.iter().all(|parent| is_known(parent)) {
                return Err(format!("moved class `{id}` has no place among the others"));
            }
        }
        if !self.taught.is_sorted_by(|a, b| a.id < b.id) {
            return Err("its taught classes are out of order or listed twice".into());
        }
        for class in &self.taught {
            let id = class.id.as_str();
            let is_placed = match &class.place {
                Placement::InGraph => {
                    held_out.contains(id)
                        || (self.fit.is_some() && training.contains(id))
                        || added.contains(id)
                }
                Placement::Nearest => true,
                Placement::Below(parents) => {
                    let is_known = |parent: &String| {
                        let parent = parent.as_str();
                        [&training, &held_out, &taught, &added].iter().any(|classes| classes.contains(parent))
                    };
                    !parents.is_empty() && parents.iter().all(is_known)
                }
            };
            let is_trained = training.contains(id) && self.fit.is_none();
            if id.is_empty() || id.trim() != id || is_trained || !is_placed {
                return Err(format!("taught class `{id}` has no place among the others"));
            }
            if class.samples() == 0 || !class.has_distinct_samples() {
                return Err(format!("taught class `{id}` has no samples, or some of them twice"));
            }
        }
        Ok(())
    }

    /// The sizes that the settings ask for against those of the tensors.
    fn check_sizes(&self, memory: &Memory, weights: &Weights) -> Result<(), String> {
        let held = weights.value_count();
        let fits = |needed: Option<usize>, what: &str| match needed {
            Some(needed) if needed <= held => Ok(()),
            Some(needed) => Err(format!("{what} needs {needed} values, but it holds {held} in all")),
            None => Err(format!("{what} needs more values than can be counted")),
        };
        let backbone = self.config.model.backbone.config();
        if let (BackboneConfig::Mlp(mlp), InputShape::Embedding { len }) = (&backbone, self.input) {
            let first = mlp.layers.first().copied().unwrap_or(0);
            fits(first.checked_mul(len), "its backbone")?;
        }
        let dim = backbone.embedding_len(self.input).map_err(|error| error.to_string())?;
        let classes = self.classes.len();
        if classes == 0 || memory.classes() != classes || memory.dim != dim {
            return Err(format!(
                "its memory is {} x {}, its {classes} training classes with embeddings of length {dim} need another",
                memory.classes(),
                memory.dim,
            ));
        }
        // The classifier and all that belongs to one class are as large as the memory.
        fits((self.method().values)(&self.config.method_settings(), dim), "its method")
    }
}
