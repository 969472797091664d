//! Batches for training, made ahead of time on background threads.
//!
//! A plan says which samples batch `i` consists of; the workers read them from the mapped store, augment and
//! normalise them. Batch `i` is the same whatever the number of workers.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use crate::benchmark::{Benchmark, Store};
use crate::error::DataError;
use crate::rng::{Purpose, Stream};
use crate::transform::{CropConfig, EvalTransform, ImageView, TrainTransform, normalise};

/// Batches that each worker prepares in advance.
const AHEAD: usize = 4;

/// How stored images become network inputs.
#[derive(Clone, Debug)]
pub enum View {
    /// The training transform: random crops and mirroring.
    Train(CropConfig),
    /// The test transform: resized and cropped at the centre.
    Eval,
}

/// How a loader prepares samples.
#[derive(Clone, Debug)]
pub struct LoaderConfig {
    /// Height and width of the inputs; of no effect on embeddings.
    pub size: u32,
    /// The transform of images.
    pub view: View,
    /// Seed of crops and mirroring.
    pub seed: u64,
    /// Background threads.
    pub workers: usize,
}

/// What one batch consists of.
#[derive(Clone, Debug)]
pub struct Plan<T> {
    /// Its samples, in order.
    pub samples: Vec<u32>,
    /// What the consumer needs to know about them: a task, labels, ...
    pub tag: T,
}

/// A batch ready for the network.
#[derive(Clone, Debug)]
pub struct Batch<T> {
    /// Its number.
    pub index: u64,
    /// The plan's tag.
    pub tag: T,
    /// How many samples it has.
    pub len: usize,
    /// The inputs: images `[len, 3, size, size]` normalised, or embeddings `[len, dim]`.
    pub inputs: Vec<f32>,
    /// The worker that made it.
    worker: usize,
}

/// Turns stored samples into network inputs on the calling thread.
pub struct Inputs {
    size: u32,
    view: Transform,
    pixels: Vec<u8>,
}

enum Transform {
    Train(Box<TrainTransform>),
    Eval(Box<EvalTransform>),
}

impl Inputs {
    /// Prepares the transforms of `view` for inputs of `size`.
    pub fn new(size: u32, view: &View) -> Result<Self, DataError> {
        let view = match view {
            View::Train(crop) => Transform::Train(Box::new(TrainTransform::new(size, crop.clone())?)),
            View::Eval => Transform::Eval(Box::new(EvalTransform::new(size)?)),
        };
        Ok(Self { size, view, pixels: vec![0; (size * size * 3) as usize] })
    }

    /// Length of one sample's input from `store`.
    pub fn len_in(&self, store: &Store) -> usize {
        match store {
            Store::Images { .. } => self.pixels.len(),
            Store::Embeddings { dim, .. } => *dim as usize,
            Store::Empty => 0,
        }
    }

    /// Writes the input of each sample, one after the other, into `out`, which becomes just as long as they are.
    ///
    /// Samples are below the store's length. `stream` is drawn from only by the training view.
    pub fn fill(
        &mut self,
        store: &Store,
        samples: &[u32],
        stream: &mut Stream,
        out: &mut Vec<f32>,
    ) -> Result<(), DataError> {
        let len = self.len_in(store);
        out.resize(samples.len() * len, 0.0);
        for (&sample, input) in samples.iter().zip(out.chunks_exact_mut(len.max(1))) {
            match store {
                Store::Images { size, array } => {
                    let image = ImageView::new(*size, *size, array.row(sample as usize))?;
                    self.image(image, stream, input)?;
                }
                Store::Embeddings { array, .. } => {
                    let (values, _) = array.row(sample as usize).as_chunks::<4>();
                    for (input, value) in input.iter_mut().zip(values) {
                        *input = f32::from_le_bytes(*value);
                    }
                }
                Store::Empty => {}
            }
        }
        Ok(())
    }

    /// Writes the input of one image, `[3, size, size]`.
    pub fn image(
        &mut self,
        image: ImageView<'_>,
        stream: &mut Stream,
        out: &mut [f32],
    ) -> Result<(), DataError> {
        match &mut self.view {
            Transform::Train(transform) => {
                transform.apply(image, stream, &mut self.pixels)?;
            }
            Transform::Eval(transform) => transform.apply(image, &mut self.pixels)?,
        }
        Ok(normalise(&self.pixels, out)?)
    }

    /// Height and width of the inputs.
    pub fn size(&self) -> u32 {
        self.size
    }
}

/// Delivers batches in order while the next ones are being prepared.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use gpn_data::{benchmark::{Benchmark, Part, Split}, loader::*, task::*};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let benchmark = Arc::new(Benchmark::open("bench".as_ref())?);
/// let sampler = TaskSampler::new(&benchmark.task_pool(Split::Train, Part::Train), TaskConfig::default(), 0)?;
/// let config = LoaderConfig { size: 32, view: View::Train(Default::default()), seed: 0, workers: 2 };
/// let mut loader = Loader::start(benchmark, config, 0..1000, move |index| {
///     let task = sampler.task(index)?;
///     let samples = task.support.iter().chain(&task.query).flatten().copied().collect();
///     Ok(Plan { samples, tag: task })
/// });
/// while let Some(batch) = loader.next_batch() {
///     let batch = batch?;
///     // ... one training step ...
///     loader.recycle(batch);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Loader<T> {
    /// The numbers of the batches that are still to be delivered.
    remaining: Box<dyn Iterator<Item = u64> + Send>,
    /// The worker of the next one.
    next: usize,
    workers: Vec<Handle<T>>,
}

/// The consumer's ends of a worker's channels.
struct Handle<T> {
    ready: Receiver<Result<Batch<T>, DataError>>,
    used: Sender<Vec<f32>>,
}

impl<T: Send + 'static> Loader<T> {
    /// Starts the workers on the batches of these numbers, such as a range; `plan(i)` says what batch `i` consists of.
    ///
    /// Workers end by themselves when the loader is dropped.
    #[expect(clippy::needless_pass_by_value, reason = "the workers own both")]
    pub fn start<N, P>(benchmark: Arc<Benchmark>, config: LoaderConfig, numbers: N, plan: P) -> Self
    where
        N: Iterator<Item = u64> + Clone + Send + 'static,
        P: Fn(u64) -> Result<Plan<T>, DataError> + Send + Sync + 'static,
    {
        let count = config.workers.max(1);
        let plan = Arc::new(plan);
        let workers = (0..count)
            .map(|first| {
                let (to_consumer, ready) = sync_channel(AHEAD);
                let (used, from_consumer) = channel();
                let worker = Worker { benchmark: benchmark.clone(), config: config.clone(), from_consumer };
                // Worker w of n prepares every n-th batch, beginning with the one at place w.
                let indices = numbers.clone().skip(first).step_by(count);
                let plan = plan.clone();
                std::thread::spawn(move || worker.run(indices, plan.as_ref(), &to_consumer));
                Handle { ready, used }
            })
            .collect();
        Self { remaining: Box::new(numbers), next: 0, workers }
    }

    /// The next batch, or `None` after the last. An error ends the stream.
    pub fn next_batch(&mut self) -> Option<Result<Batch<T>, DataError>> {
        let index = self.remaining.next()?;
        let worker = self.next;
        self.next = (worker + 1) % self.workers.len();
        let batch =
            self.workers[worker].ready.recv().unwrap_or(Err(DataError::LoaderStopped { batch: index }));
        if batch.is_err() {
            self.remaining = Box::new(std::iter::empty());
        }
        Some(batch.map(|batch| Batch { worker, ..batch }))
    }

    /// Hands the memory of a batch back, to be filled anew.
    pub fn recycle(&self, batch: Batch<T>) {
        // A worker that has finished needs no memory: a closed channel is fine.
        let _ = self.workers[batch.worker].used.send(batch.inputs);
    }
}

struct Worker {
    benchmark: Arc<Benchmark>,
    config: LoaderConfig,
    from_consumer: Receiver<Vec<f32>>,
}

impl Worker {
    fn run<T>(
        &self,
        indices: impl Iterator<Item = u64>,
        plan: &dyn Fn(u64) -> Result<Plan<T>, DataError>,
        to_consumer: &SyncSender<Result<Batch<T>, DataError>>,
    ) {
        let mut inputs = match Inputs::new(self.config.size, &self.config.view) {
            Ok(inputs) => inputs,
            Err(error) => {
                let _ = to_consumer.send(Err(error));
                return;
            }
        };
        for index in indices {
            let batch = self.batch(index, plan, &mut inputs);
            let failed = batch.is_err();
            // A closed channel means that the consumer is gone.
            if to_consumer.send(batch).is_err() || failed {
                return;
            }
        }
    }

    fn batch<T>(
        &self,
        index: u64,
        plan: &dyn Fn(u64) -> Result<Plan<T>, DataError>,
        inputs: &mut Inputs,
    ) -> Result<Batch<T>, DataError> {
        let Plan { samples, tag } = plan(index)?;
        let mut stream = Stream::new(self.config.seed, Purpose::Augmentation, index);
        let mut values = self.from_consumer.try_recv().unwrap_or_default();
        inputs.fill(self.benchmark.store(), &samples, &mut stream, &mut values)?;
        Ok(Batch { index, tag, len: samples.len(), inputs: values, worker: 0 })
    }
}
