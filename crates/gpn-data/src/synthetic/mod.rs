//! The built-in data set: 120 leaf classes of drawn things under a taxonomy of up to five levels, without a file.
//!
//! Looks are inherited: a realm decides how a thing meets the light, a family the mark it carries (eyes,
//! stems, wheels), a shape its silhouette, a kind its texture, a leaf its palette and perhaps a part (a rim,
//! spikes, a band). Within a class everything else varies: pose, size, place, surroundings, light, occlusion,
//! blur and grain, so that a single sample says little and relatives are of help.
//!
//! A sample depends on (seed, leaf, sample) alone and is drawn in arithmetic that gives the same bits on
//! every platform.
//!
//! ```
//! use gpn_data::synthetic::{SyntheticConfig, draw, edges, leaves};
//!
//! # fn main() -> Result<(), gpn_data::synthetic::SyntheticError> {
//! let config = SyntheticConfig::default();
//! assert_eq!(leaves()[0].class.name, "scarlet striped fish");
//! assert!(edges().iter().any(|edge| edge.parent == "striped-fish" && edge.child == leaves()[0].class.id));
//!
//! let mut pixels = vec![0u8; 32 * 32 * 3];
//! draw(&config, 0, 7, &mut pixels)?;
//! # Ok(())
//! # }
//! ```

mod geometry;
mod palette;
mod scene;
mod shape;
mod sheet;
mod taxonomy;
mod texture;

use gpn_files::ErrorKind;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

pub use sheet::{Sheet, contact_sheet};
pub use taxonomy::{Class, Edge, Leaf, ROOT, classes, edges, leaves};

/// Settings of the data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntheticConfig {
    /// Rows and columns of an image, 8 to 1024. Default 32.
    pub size: u32,
    /// Samples of each leaf class. Default 200: a leaf belongs to up to eight classes (itself and its
    /// ancestors), and each can have 20 samples of it that no other has, with some to spare.
    pub per_leaf: u32,
    /// Seed of all samples. Default 0.
    pub seed: u64,
}

impl Default for SyntheticConfig {
    fn default() -> Self {
        Self { size: 32, per_leaf: 200, seed: 0 }
    }
}

/// Why a sample cannot be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyntheticError {
    /// A size at which nothing can be seen, or no memory suffices.
    #[error("synthetic images of {0}x{0} pixels: the size must be between 8 and 1024")]
    Size(u32),
    /// No such leaf.
    #[error("the synthetic set has leaf classes 0 to {last}, not {0}", last = leaves().len() - 1)]
    Leaf(usize),
    /// No such sample of a leaf.
    #[error("each synthetic leaf class has samples 0 to {}, not {sample}", i64::from(*per_leaf) - 1)]
    Sample {
        /// The sample asked for.
        sample: usize,
        /// Samples there are.
        per_leaf: u32,
    },
    /// The caller's buffer has the wrong length.
    #[error("the output buffer has {got} bytes, {expected} are needed")]
    OutputLength {
        /// Bytes needed.
        expected: usize,
        /// Bytes given.
        got: usize,
    },
}

impl SyntheticError {
    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Size(_) => ErrorKind::BadInput,
            Self::Leaf(_) | Self::Sample { .. } => ErrorKind::NotFound,
            Self::OutputLength { .. } => ErrorKind::Bug,
        }
    }
}

/// Draws one sample of a leaf into `out`: `size * size * 3` bytes, rows of RGB pixels.
pub fn draw(
    config: &SyntheticConfig,
    leaf: usize,
    sample: usize,
    out: &mut [u8],
) -> Result<(), SyntheticError> {
    if !(8..=1024).contains(&config.size) {
        return Err(SyntheticError::Size(config.size));
    }
    let look = leaves().get(leaf).ok_or(SyntheticError::Leaf(leaf))?.look;
    if sample >= config.per_leaf as usize {
        return Err(SyntheticError::Sample { sample, per_leaf: config.per_leaf });
    }
    let expected = config.size as usize * config.size as usize * 3;
    if out.len() != expected {
        return Err(SyntheticError::OutputLength { expected, got: out.len() });
    }
    let mut rng = ChaCha8Rng::seed_from_u64(config.seed);
    rng.set_stream(((leaf as u64) << 32) | sample as u64);
    scene::paint(look, config.size, &mut rng, out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(config: &SyntheticConfig, leaf: usize, sample: usize) -> Vec<u8> {
        let mut out = vec![0u8; (config.size * config.size * 3) as usize];
        draw(config, leaf, sample, &mut out).unwrap();
        out
    }

    #[test]
    fn a_sample_depends_on_seed_leaf_and_sample_alone() {
        let config = SyntheticConfig::default();
        let first = drawn(&config, 3, 5);
        assert_ne!(first, drawn(&config, 3, 6));
        assert_ne!(first, drawn(&config, 4, 5));
        assert_ne!(first, drawn(&SyntheticConfig { seed: 1, ..config.clone() }, 3, 5));
        assert_eq!(first, drawn(&SyntheticConfig { per_leaf: 6, ..config }, 3, 5));
    }

    /// A changed number means changed data: every published figure on this set changes with it.
    #[test]
    fn samples_keep_their_bits() {
        let config = SyntheticConfig::default();
        let mut sum = 0xCBF2_9CE4_8422_2325u64;
        for leaf in 0..leaves().len() {
            for byte in drawn(&config, leaf, leaf % 7) {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
            }
        }
        assert_eq!(sum, 6_884_819_179_246_692_108);
    }

    #[test]
    fn every_leaf_draws_at_small_and_large_sizes() {
        for size in [8, 33] {
            let config = SyntheticConfig { size, ..SyntheticConfig::default() };
            for leaf in 0..leaves().len() {
                let pixels = drawn(&config, leaf, 0);
                assert!(pixels.iter().max() > pixels.iter().min(), "leaf {leaf} at {size}");
            }
        }
    }

    #[test]
    fn wrong_requests_are_refused_by_name() {
        let config = SyntheticConfig::default();
        let mut out = vec![0u8; 32 * 32 * 3];
        let error = |result: Result<(), SyntheticError>| result.unwrap_err().to_string();
        assert!(error(draw(&config, 120, 0, &mut out)).contains("0 to 119, not 120"));
        assert!(error(draw(&config, 0, 200, &mut out)).contains("0 to 199, not 200"));
        assert!(error(draw(&config, 0, 0, &mut out[1..])).contains("3071 bytes"));
        let tiny = SyntheticConfig { size: 1, ..config };
        assert!(error(draw(&tiny, 0, 0, &mut out)).contains("between 8 and 1024"));
    }
}
