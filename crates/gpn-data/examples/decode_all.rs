//! Decodes every sample of a source and prints one line: samples, broken ones, seconds, sum of all pixels.
//!
//! `cargo run --release -p gpn-data --example decode_all -- tiny-imagenet:tiny-imagenet-200.tar [THREADS]`

use std::error::Error;
use std::time::Instant;

use rayon::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let spec = arguments.next().ok_or("usage: decode_all KIND:PATH [THREADS]")?;
    let threads: usize = arguments.next().map_or(Ok(2), |number| number.parse())?;
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;

    let start = Instant::now();
    let source = gpn_data::open(&spec.parse()?)?;
    let opened = start.elapsed().as_secs_f64();
    let (sum, broken) = (0..source.samples().len())
        .into_par_iter()
        .map(|index| match source.image(index) {
            Ok(image) => (image.pixels().iter().map(|&value| u64::from(value)).sum::<u64>(), 0),
            Err(error) => {
                eprintln!("{error}");
                (0, 1)
            }
        })
        .reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "samples {} broken {broken} opened {opened:.3} s total {seconds:.3} s sum {sum}",
        source.samples().len()
    );
    Ok(())
}
