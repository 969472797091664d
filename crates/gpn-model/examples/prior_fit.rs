//! How long the graph prior takes to fit: `cargo run --release --example prior_fit -- [classes] [dim] [samples]`.
//! With `choose` after them, the choice of metric and scale is timed, too, as `gpn train --method prior` makes it.

use std::time::Instant;

use gpn_model::prior::{
    FitConfig, GraphPrior, KnownClasses, Metric, MetricConfig, PriorConfig, PriorModel, StatisticsBuilder,
    TrainingSamples,
};
use gpn_taxonomy::TaxonomyBuilder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let is_choosing = std::env::args().any(|word| word == "choose");
    let mut numbers =
        std::env::args().skip(1).filter(|word| word != "choose").map(|word| word.parse::<usize>());
    let mut next = |usual: usize| numbers.next().unwrap_or(Ok(usual));
    let (classes, dim, samples) = (next(100_000)?, next(512)?, next(4)?);

    // A tree with ten children below each class.
    let mut builder = TaxonomyBuilder::new();
    for class in 0..=classes {
        builder.add_class(&class.to_string());
    }
    for class in 1..=classes {
        builder.add_edge(((class - 1) / 10) as u32, class as u32, None);
    }
    let graph = builder.build()?.taxonomy;
    let mut state = 1_u64;
    let mut value = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let rows: Vec<f32> = (0..classes * samples * dim).map(|_| value()).collect();
    let rows_of = |class: usize| &rows[class * samples * dim..][..samples * dim];

    let start = Instant::now();
    let metric = Metric::fit(MetricConfig::unit_whitened(0.5), dim, (0..classes).map(rows_of))?;
    println!("metric: {:.2} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let mut statistics = StatisticsBuilder::new(dim, classes)?;
    for class in 0..classes {
        statistics.add(class as u32, &metric.apply(rows_of(class))?)?;
    }
    let statistics = statistics.finish()?;
    println!("statistics: {:.2} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let prior = GraphPrior::fit(&graph, &statistics, FitConfig::default())?;
    println!("prior: {:.2} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let known = KnownClasses::new(&graph, &statistics);
    println!("known classes: {:.3} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let way = 5;
    for class in 0..way {
        let of = prior.of(&known, (classes - class) as u32);
        prior.posterior(&of, &metric.apply(rows_of(class))?)?;
    }
    println!("a task of {way} classes: {:.3} ms", 1e3 * start.elapsed().as_secs_f64());
    // The same with every number of threads and every processor.
    let bits = prior.slope().iter().fold(0_u64, |bits, slope| bits.rotate_left(5) ^ slope.to_bits());
    println!("bits of the fit: {bits:016x}");
    if is_choosing {
        let rows: Vec<Vec<f32>> = (0..classes).map(|class| rows_of(class).to_vec()).collect();
        let start = Instant::now();
        let (graph, texts) = (&graph, None);
        let training = TrainingSamples { dim, rows: &rows, held_out: &[], graph, texts, seed: 0 };
        let model = PriorModel::fit(&training, &PriorConfig::default())?;
        println!("with choice of metric and scale: {:.2} s", start.elapsed().as_secs_f64());
        println!("temperature: {:08x}", model.temperature().to_bits());
    }
    Ok(())
}
