//! First values of parameters and buffers, the same for every engine and device.
//!
//! | tensor | first values |
//! |---|---|
//! | convolution weight `[out, in, k, k]` | normal, variance `2 / (k * k * out)` |
//! | linear weight `[out, in]` | uniform in `±1 / sqrt(in)`, or what [`HeadInit`](crate::HeadInit) says for a head |
//! | batch-norm weight and running variance | 1 |
//! | everything else (biases, running mean) | 0 |

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::tensors::TensorInfo;

/// Random streams of this crate start here, so that they meet no stream of another purpose with the same seed.
const STREAM: u64 = 0x6d6f_6465_6c00_0000;

/// First values of the tensor that is number `index` of its network. Depends on `seed`, `index` and shape alone.
pub(crate) fn first_values(info: &TensorInfo, index: usize, seed: u64) -> Vec<f32> {
    let mut rng = stream(index, seed);
    match info.shape[..] {
        [out, _, kernel_height, kernel_width] => {
            let deviation = (2.0 / (kernel_height * kernel_width * out) as f64).sqrt();
            normal(&mut rng, info.numel(), deviation)
        }
        [_, inputs] => {
            let bound = 1.0 / (inputs as f64).sqrt();
            (0..info.numel()).map(|_| ((2.0 * unit(&mut rng) - 1.0) * bound) as f32).collect()
        }
        _ if info.name.ends_with("weight") || info.name.ends_with("running_var") => vec![1.0; info.numel()],
        _ => vec![0.0; info.numel()],
    }
}

/// Normal first values of a stated deviation.
pub(crate) fn normal_values(info: &TensorInfo, index: usize, seed: u64, deviation: f64) -> Vec<f32> {
    normal(&mut stream(index, seed), info.numel(), deviation)
}

fn stream(index: usize, seed: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM + index as u64);
    rng
}

/// A number in `(0, 1]` with 53 random bits.
fn unit(rng: &mut ChaCha8Rng) -> f64 {
    ((rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// Normal numbers of mean 0 by the Box-Muller transform.
fn normal(rng: &mut ChaCha8Rng, len: usize, deviation: f64) -> Vec<f32> {
    let mut values = Vec::with_capacity(len + 1);
    while values.len() < len {
        let radius = deviation * (-2.0 * libm::log(unit(rng))).sqrt();
        let (sine, cosine) = libm::sincos(std::f64::consts::TAU * unit(rng));
        values.extend([(radius * cosine) as f32, (radius * sine) as f32]);
    }
    values.truncate(len);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensors::tensor_info;

    #[test]
    fn convolutions_have_the_stated_variance() {
        let values = first_values(&tensor_info("conv.weight", [64, 64, 3, 3]), 3, 7);
        let n = values.len() as f64;
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let variance = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / n;
        assert!(mean.abs() < 2e-3, "{mean}");
        assert!((variance * 9.0 * 64.0 / 2.0 - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn seeds_and_indices_are_streams_of_their_own() {
        let info = tensor_info("conv.weight", [2, 2, 3, 3]);
        assert_eq!(first_values(&info, 0, 1), first_values(&info, 0, 1));
        assert_ne!(first_values(&info, 0, 1), first_values(&info, 1, 1));
        assert_ne!(first_values(&info, 0, 1), first_values(&info, 0, 2));
    }

    #[test]
    fn batch_norm_starts_as_identity() {
        assert_eq!(first_values(&tensor_info("bn.weight", [2]), 0, 1), [1.0, 1.0]);
        assert_eq!(first_values(&tensor_info("bn.running_var", [2]), 0, 1), [1.0, 1.0]);
        assert_eq!(first_values(&tensor_info("bn.bias", [2]), 0, 1), [0.0, 0.0]);
    }
}
