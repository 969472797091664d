//! Measures how inference scales when several threads call `embed` on one embedder.
//!
//! `cargo run --release -p gpn-model --example shared_inference -- [seconds per measurement] [image size]`
//!
//! One caller and two callers take turns, and the best round of each counts, because other work on the machine slows
//! some rounds down. `own pool` means that each caller runs in a rayon pool of one thread.

use std::time::{Duration, Instant};

use gpn_model::{BackboneKind, Device, Embedder, InputShape, ModelError};

const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().map_or(Ok(3.0), |argument| argument.parse())?;
    let size: usize = arguments.next().map_or(Ok(64), |argument| argument.parse())?;
    let input = InputShape::Image { height: size, width: size };
    let embedder = Embedder::new(&BackboneKind::ResNet08.config(), input, &Device::cpu(), 1)?;
    let images: Vec<f32> =
        (0..64 * input.len()).map(|i| ((i * 7919 % 1009) as f32 - 504.0) / 300.0).collect();
    let round = Duration::from_secs_f64(seconds / ROUNDS as f64);
    for n in [1, 64] {
        let batch = &images[..n * input.len()];
        for has_own_pool in [true, false] {
            let mut best = [0.0_f64; 2];
            for _ in 0..ROUNDS {
                for (callers, best) in (1..).zip(&mut best) {
                    *best = best.max(images_per_second(&embedder, batch, n, callers, has_own_pool, round)?);
                }
            }
            let pool = if has_own_pool { "own pool" } else { "global pool" };
            let [one, two] = best;
            println!(
                "{n:2} images a call, {pool:11}: one caller {one:6.0} images/s ({:.0} us a call), two {two:6.0}, {:.2} times",
                n as f64 / one * 1e6,
                two / one
            );
        }
    }
    Ok(())
}

/// Images per second of `callers` threads together, each of which embeds `batch` over and over.
fn images_per_second(
    embedder: &Embedder,
    batch: &[f32],
    n: usize,
    callers: usize,
    has_own_pool: bool,
    round: Duration,
) -> Result<f64, Box<dyn std::error::Error>> {
    let pools = (0..callers).map(|_| rayon::ThreadPoolBuilder::new().num_threads(1).build());
    let pools: Vec<rayon::ThreadPool> = pools.collect::<Result<_, _>>()?;
    let start = Instant::now();
    let calls = || -> Result<usize, ModelError> {
        let mut calls = 0;
        while start.elapsed() < round {
            std::hint::black_box(embedder.embed(batch)?);
            calls += 1;
        }
        Ok(calls)
    };
    let calls: Vec<Result<usize, ModelError>> = std::thread::scope(|scope| {
        let spawn = |pool| {
            let calls = &calls;
            scope.spawn(move || match pool {
                Some(pool) => rayon::ThreadPool::install(pool, calls),
                None => calls(),
            })
        };
        let threads: Vec<_> = pools.iter().map(|pool| spawn(has_own_pool.then_some(pool))).collect();
        // invariant: a caller returns its errors and does not panic.
        threads.into_iter().map(|thread| thread.join().expect("no caller panics")).collect()
    });
    let elapsed = start.elapsed().as_secs_f64();
    let mut total = 0;
    for calls in calls {
        total += calls? * n;
    }
    Ok(total as f64 / elapsed)
}
