//! Which classes are hidden from a fit.

use gpn_taxonomy::Node;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use super::statistics::ClassStatistics;

/// Rounds of validation begin here.
const VALIDATION: u64 = 1 << 20;
/// Random streams of this room start here, so that they meet no stream of another purpose with the same seed.
const STREAM: u64 = 0x7072_696f_7200_0000;

/// A share (0 to 1) of the known classes, drawn at random: classes that a validation task may treat as new, with
/// [`KnownClasses::without`](super::KnownClasses::without) them. Depends on its arguments alone; each round is another draw.
pub fn hide_classes(statistics: &ClassStatistics, share: f64, seed: u64, round: u64) -> Vec<Node> {
    let known: Vec<Node> = statistics.known().collect();
    let count = (share.clamp(0.0, 1.0) * known.len() as f64) as usize;
    // The rounds of a fit come from the same streams: those of validation begin far behind them.
    hide(&known, count, seed, VALIDATION + round)
}

/// `count` of the classes, every ordered choice equally likely. Depends on its arguments alone.
pub(super) fn hide(classes: &[Node], count: usize, seed: u64, round: u64) -> Vec<Node> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM + round);
    let mut pool = classes.to_vec();
    let count = count.min(pool.len());
    for i in 0..count {
        let rest = (pool.len() - i) as u64;
        // The bias of this product is rest / 2^64.
        let at = ((u128::from(rng.next_u64()) * u128::from(rest)) >> 64) as usize;
        pool.swap(i, i + at);
    }
    pool.truncate(count);
    pool
}
