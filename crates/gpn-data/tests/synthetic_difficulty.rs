//! The built-in data set is no toy: pixels alone do not tell its classes apart, and relatives look related.

use gpn_data::rng::{Purpose, Stream};
use gpn_data::synthetic::{SyntheticConfig, draw, leaves};

fn pixels(leaf: usize, sample: usize) -> Vec<f32> {
    let config = SyntheticConfig::default();
    let mut bytes = vec![0; (config.size * config.size * 3) as usize];
    draw(&config, leaf, sample, &mut bytes).unwrap();
    bytes.into_iter().map(f32::from).collect()
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Share of queries whose nearest prototype in pixels, the mean of `shot` samples, is of the right of five classes.
fn accuracy_on_pixels(shot: usize) -> f64 {
    let all: Vec<usize> = (0..leaves().len()).collect();
    let (tasks, queries) = (150, 2);
    let mut right = 0;
    for task in 0..tasks {
        let classes = Stream::new(0, Purpose::Task, task).choose(&all, 5);
        let prototypes: Vec<Vec<f32>> = classes.iter().map(|&leaf| mean(leaf, shot)).collect();
        for (class, &leaf) in classes.iter().enumerate() {
            for query in 0..queries {
                let query = pixels(leaf, shot + query);
                let nearest = (0..5).min_by(|&a, &b| {
                    distance(&query, &prototypes[a]).total_cmp(&distance(&query, &prototypes[b]))
                });
                right += usize::from(nearest == Some(class));
            }
        }
    }
    right as f64 / (tasks as usize * 5 * queries) as f64
}

fn mean(leaf: usize, samples: usize) -> Vec<f32> {
    let mut sum = vec![0.0; pixels(leaf, 0).len()];
    for sample in 0..samples {
        sum.iter_mut().zip(pixels(leaf, sample)).for_each(|(sum, value)| *sum += value / samples as f32);
    }
    sum
}

#[test]
fn the_nearest_prototype_in_pixels_does_poorly() {
    let (one, five) = (accuracy_on_pixels(1), accuracy_on_pixels(5));
    println!("5-way accuracy on pixels: 1-shot {one:.3}, 5-shot {five:.3}");
    assert!(one < 0.35 && five < 0.45, "1-shot {one:.3}, 5-shot {five:.3}; chance is 0.2");
}

#[test]
fn classes_of_a_kind_look_more_alike_than_others() {
    // Leaves of a shape stand next to each other, and their ids end in its name.
    let shape = |leaf: usize| leaves()[leaf].class.id.rsplit('-').next().unwrap();
    let means: Vec<Vec<f32>> = (0..leaves().len()).map(|leaf| mean(leaf, 60)).collect();
    let (mut same, mut other) = ((0.0, 0.0), (0.0, 0.0));
    for a in 0..means.len() {
        for b in 0..a {
            let sum = if shape(a) == shape(b) { &mut same } else { &mut other };
            sum.0 += f64::from(distance(&means[a], &means[b]));
            sum.1 += 1.0;
        }
    }
    let ratio = (same.0 / same.1) / (other.0 / other.1);
    println!("distance of class means within a shape, relative to others: {ratio:.3}");
    assert!(ratio < 0.95, "{ratio:.3}");
}
