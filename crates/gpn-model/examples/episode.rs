//! Times the parts of a training episode: 5-way-1-shot at 32x32, propagation among 42 classes, Adam.
//!
//! `cargo run --release --example episode -- [repetitions] [pool]`; with `pool` the episodes run on a thread of rayon's
//! pool, which spares the steps that use several threads the way there.

use std::time::Instant;

use gpn_model::{
    Adam, BackboneKind, Device, Embedder, InputShape, ModelError, PropagationConfig, PropagationGraph,
    Propagator, Trainable, distance_loss,
};

const WAY: usize = 5;
const CLASSES: usize = 42;
const PARTS: [&str; 5] = ["forward", "propagation", "loss", "backward", "Adam"];

/// Each target has a parent and three children, and so has each of them.
fn graph() -> PropagationGraph {
    let parent = |node: usize| (node as u32, (WAY + (node * 3 + 2) % (CLASSES - WAY)) as u32);
    let (mut from_parents, mut from_children) = (Vec::new(), Vec::new());
    for node in 0..CLASSES {
        from_parents.push(parent(node));
        for child in 1..4 {
            from_children.push((node as u32, ((node * 7 + child * 11) % (CLASSES - WAY) + WAY) as u32));
        }
    }
    PropagationGraph::new(CLASSES, WAY, from_parents, from_children)
}

fn main() -> Result<(), ModelError> {
    let repetitions = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(300);
    if std::env::args().nth(2).is_some_and(|a| a == "pool") {
        return rayon::scope(|_| run(repetitions));
    }
    run(repetitions)
}

fn run(repetitions: u64) -> Result<(), ModelError> {
    let input = InputShape::Image { height: 32, width: 32 };
    let mut embedder = Embedder::new(&BackboneKind::ResNet08.config(), input, &Device::cpu(), 1)?;
    let dim = embedder.embedding_len();
    let mut propagator = Propagator::new(PropagationConfig::default(), dim, 1)?;
    let mut adam = Adam::default();
    let images: Vec<f32> =
        (0..2 * WAY * input.len()).map(|i| ((i * 7919 % 1009) as f32 - 504.0) / 300.0).collect();
    let memory: Vec<f32> = (0..(CLASSES - WAY) * dim).map(|i| (i * 31 % 101) as f32 / 100.0).collect();
    let labels: Vec<usize> = (0..WAY).collect();
    let graph = graph();

    let mut times: [Vec<f64>; 6] = Default::default();
    for episode in 1..=repetitions {
        let mut laps = vec![Instant::now()];
        let embeddings = embedder.forward_train(&images)?;
        laps.push(Instant::now());
        let (support, queries) = embeddings.split_at(WAY * dim);
        let prototypes = [support, &memory].concat();
        let tape = propagator.forward(&graph, &prototypes);
        let forward_done = Instant::now();
        let pass = distance_loss(queries, tape.result(&graph), &labels, dim)?;
        let loss_done = Instant::now();
        let grads = propagator.backward(&graph, &tape, &pass.grad_prototypes);
        let propagated = forward_done + loss_done.elapsed();
        laps.push(propagated);
        laps.push(propagated + (loss_done - forward_done));
        let grads = [&grads[..WAY * dim], &pass.grad_queries].concat();
        embedder.backward(&grads)?;
        laps.push(Instant::now());
        let mut updates = embedder.updates();
        updates.extend(propagator.updates());
        adam.step(&mut updates, 1e-3, episode)?;
        laps.push(Instant::now());
        for (times, lap) in times.iter_mut().zip(laps.windows(2)) {
            times.push((lap[1] - lap[0]).as_secs_f64() * 1e3);
        }
        times[5].push((laps[5] - laps[0]).as_secs_f64() * 1e3);
    }
    for (name, times) in PARTS.iter().chain(&["all"]).zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!("{name:12} {:7.3} ms (fastest {:.3})", times[times.len() / 2], times[0]);
    }
    Ok(())
}
