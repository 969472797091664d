//! The embeddings that a catalogue is fitted to: read from where they lie, and those that choose held in memory.

use gpn_data::rng::{Purpose, Stream};
use gpn_taxonomy::Node;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::watch::{Event, Watch};

/// Values of the samples held in memory, at most.
const VALUES: usize = 100_000_000;
/// Samples that measure, at most; fewer where there are many classes.
const QUERIES: usize = 20_000;
/// Scores of the samples that measure, at most.
const SCORES: usize = 20_000_000;
/// One of so many samples of a class measures.
pub(super) const PARTS: usize = 5;
/// Rows that are read at a time.
const CHUNK: usize = 4096;

/// Embeddings with the number of their class, read row by row from any thread.
pub(super) trait Rows: Sync {
    /// Length of an embedding.
    fn dim(&self) -> usize;
    /// The class of each row.
    fn labels(&self) -> &[Node];
    /// Writes a row.
    fn read(&self, row: usize, out: &mut [f32]) -> Result<()>;
}

/// The samples of each class that choose, in an order that depends on the samples and the seed alone.
pub(super) struct Chosen {
    pub(super) dim: usize,
    /// `[n, dim]` for each class.
    pub(super) classes: Vec<Vec<f32>>,
    /// The rows they are, for each class.
    pub(super) rows: Vec<Vec<u32>>,
}

impl Chosen {
    /// Draws and reads the samples: all of them, or as many of each class as there is room for.
    pub(super) fn read(rows: &dyn Rows, classes: usize, seed: u64) -> Result<Self> {
        let dim = rows.dim();
        let mut of_class: Vec<Vec<u32>> = vec![Vec::new(); classes];
        for (row, &class) in rows.labels().iter().enumerate() {
            of_class[class as usize].push(row as u32);
        }
        let most = most_of_each(&of_class, VALUES / dim);
        let draw = |(class, all): (usize, &Vec<u32>)| -> Result<(Vec<u32>, Vec<f32>)> {
            let mut stream = Stream::new(seed, Purpose::HeldOut, class as u64);
            let own = if all.len() > most { stream.choose(all, most) } else { all.clone() };
            let mut values = vec![0.0; own.len() * dim];
            for (&row, out) in own.iter().zip(values.chunks_exact_mut(dim)) {
                rows.read(row as usize, out)?;
            }
            // By what they hold: the order in which samples were given does not matter.
            let row = |at: u32| &values[at as usize * dim..][..dim];
            let mut sorted: Vec<u32> = (0..own.len() as u32).collect();
            sorted.sort_by(|&a, &b| {
                let mut orders = row(a).iter().zip(row(b)).map(|(a, b)| a.total_cmp(b));
                orders.find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
            });
            let order = stream.choose(&sorted, sorted.len());
            let drawn = order.iter().map(|&at| own[at as usize]).collect();
            Ok((drawn, order.iter().flat_map(|&at| row(at)).copied().collect()))
        };
        let drawn = of_class.par_iter().enumerate().map(draw).collect::<Result<Vec<_>>>()?;
        let (rows, classes) = drawn.into_iter().unzip();
        Ok(Self { dim, classes, rows })
    }

    /// The samples of part `part`, of which each class keeps at least one to be fitted to; and all others.
    pub(super) fn fold(&self, part: usize) -> Fold {
        let (mut train, mut held) = (Vec::with_capacity(self.classes.len()), Vec::new());
        for (class, values) in self.classes.iter().enumerate() {
            let count = values.len() / self.dim;
            let mut kept = Vec::with_capacity(values.len());
            for (at, row) in values.chunks_exact(self.dim).enumerate() {
                if count > 1 && at % PARTS == part {
                    held.push((class as Node, at));
                } else {
                    kept.extend_from_slice(row);
                }
            }
            train.push(kept);
        }
        // Every so-manieth of them is enough.
        let most = QUERIES.min(SCORES / self.classes.len().max(1)).max(100);
        let step = held.len().div_ceil(most).max(1);
        let held: Vec<(Node, usize)> = held.into_iter().step_by(step).collect();
        Fold {
            train,
            queries: held.iter().flat_map(|&(class, at)| self.row(class, at)).copied().collect(),
            right: held.iter().map(|&(class, _)| class).collect(),
            rows: held.iter().map(|&(class, at)| self.rows[class as usize][at]).collect(),
        }
    }

    fn row(&self, class: Node, at: usize) -> &[f32] {
        &self.classes[class as usize][at * self.dim..][..self.dim]
    }

    /// Number of samples.
    pub(super) fn len(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }

    /// Whether any class has two samples, without which nothing can be measured.
    pub(super) fn can_measure(&self) -> bool {
        self.rows.iter().any(|rows| rows.len() > 1)
    }
}

/// Samples to fit to and others to measure with.
pub(super) struct Fold {
    /// `[n, dim]` for each class.
    pub(super) train: Vec<Vec<f32>>,
    /// `[queries, dim]`
    pub(super) queries: Vec<f32>,
    /// The class of each query.
    pub(super) right: Vec<Node>,
    /// The row of each query.
    pub(super) rows: Vec<u32>,
}

/// How many samples of each class there is room for, where `room` are wanted in all.
fn most_of_each(of_class: &[Vec<u32>], room: usize) -> usize {
    let fits = |most: usize| of_class.iter().map(|rows| rows.len().min(most)).sum::<usize>() <= room;
    let (mut low, mut high) = (1, of_class.iter().map(Vec::len).max().unwrap_or(1));
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

/// Sums of all rows of each class after a map, `[classes, dim]`, and their counts: one pass over the data.
pub(super) fn sum_rows(
    rows: &dyn Rows,
    classes: usize,
    map: impl Fn(&[f32]) -> Result<Vec<f32>> + Sync,
    watch: &Watch<'_>,
) -> Result<(Vec<f64>, Vec<u32>)> {
    let (dim, labels) = (rows.dim(), rows.labels());
    let (mut sums, mut counts) = (vec![0.0; classes * dim], vec![0_u32; classes]);
    let threads = rayon::current_num_threads().max(1);
    for (first, some) in (0..).step_by(CHUNK * threads).zip(labels.chunks(CHUNK * threads)) {
        if watch.tell(&Event::Stored { done: first, total: labels.len() }).is_break() {
            return Err(Error::interrupted());
        }
        let mapped: Vec<Vec<f32>> = some
            .par_chunks(CHUNK)
            .enumerate()
            .map(|(part, labels)| {
                let mut values = vec![0.0; labels.len() * dim];
                for (at, out) in values.chunks_exact_mut(dim).enumerate() {
                    rows.read(first + part * CHUNK + at, out)?;
                }
                map(&values)
            })
            .collect::<Result<_>>()?;
        // In the order of the rows, so that the sums are the same with any number of threads.
        for (row, &class) in mapped.iter().flat_map(|part| part.chunks_exact(dim)).zip(some) {
            let sum = &mut sums[class as usize * dim..][..dim];
            sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
            counts[class as usize] += 1;
        }
    }
    Ok((sums, counts))
}

/// Rows in memory.
pub(super) struct InMemory {
    pub(super) dim: usize,
    pub(super) values: Vec<f32>,
    pub(super) labels: Vec<Node>,
}

impl Rows for InMemory {
    fn dim(&self) -> usize {
        self.dim
    }

    fn labels(&self) -> &[Node] {
        &self.labels
    }

    fn read(&self, row: usize, out: &mut [f32]) -> Result<()> {
        out.copy_from_slice(&self.values[row * self.dim..][..self.dim]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_keeps_a_sample_and_each_measures_once() {
        let labels: Vec<Node> = [0, 1, 1, 2, 2, 2, 2, 2, 2, 2].to_vec();
        let values = (0..labels.len()).map(|row| row as f32).collect();
        let chosen = Chosen::read(&InMemory { dim: 1, values, labels }, 3, 5).unwrap();
        let mut asked = Vec::new();
        for part in 0..PARTS {
            let fold = chosen.fold(part);
            assert!(fold.train.iter().all(|class| !class.is_empty()));
            assert_eq!(fold.train.iter().map(Vec::len).sum::<usize>() + fold.rows.len(), 10);
            assert!(fold.queries.iter().zip(&fold.rows).all(|(&x, &row)| x as u32 == row));
            asked.extend(fold.rows);
        }
        asked.sort_unstable();
        assert_eq!(asked, (1..10).collect::<Vec<_>>(), "the only sample of a class never measures");
    }

    #[test]
    fn the_order_of_samples_does_not_matter() {
        let (labels, values) = (vec![0, 1, 1, 0, 1, 0], vec![5.0, 1.0, -1.0, 3.0, 0.0, 4.0]);
        let turned = InMemory {
            dim: 1,
            values: values.iter().rev().copied().collect(),
            labels: labels.iter().rev().copied().collect(),
        };
        let given = Chosen::read(&InMemory { dim: 1, values, labels }, 2, 7).unwrap();
        let turned = Chosen::read(&turned, 2, 7).unwrap();
        assert_eq!(given.classes, turned.classes);
        assert!(given.rows.iter().flatten().zip(turned.rows.iter().flatten()).all(|(a, b)| a + b == 5));
    }

    #[test]
    fn what_does_not_fit_is_taken_evenly() {
        let classes: Vec<Vec<u32>> = [3, 100, 50].iter().map(|&n| (0..n).collect()).collect();
        assert_eq!(most_of_each(&classes, 1000), 100);
        assert_eq!(most_of_each(&classes, 43), 20);
        assert_eq!(most_of_each(&classes, 1), 1);
    }
}
