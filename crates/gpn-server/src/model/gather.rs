//! Requests are gathered: samples that arrive at the same time are embedded in one batch, by one thread for each model.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Instant;

use gpn::{Classifier, Sample, Watch};
use tokio::sync::oneshot;

use crate::http::metrics::Metrics;
use crate::http::problem::Problem;
use crate::limits::Limits;

/// The embeddings of the samples of a job; a sample that cannot be read is an error in its place.
type Embedded = Vec<gpn::Result<Vec<f32>>>;

struct Job {
    samples: Vec<Sample>,
    answer: oneshot::Sender<Result<Embedded, Problem>>,
}

/// The queue of a model. Its thread ends when the queue is dropped.
pub(crate) struct Gather {
    sender: SyncSender<Job>,
    arriving: Arc<AtomicUsize>,
}

/// A request that is being read and will have samples soon: worth waiting for.
pub(crate) struct Arriving(Arc<AtomicUsize>);

impl Drop for Arriving {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Gather {
    /// Starts the thread that embeds with this classifier's network.
    pub(crate) fn start(
        classifier: Classifier,
        limits: &Limits,
        metrics: Arc<Metrics>,
    ) -> std::io::Result<Self> {
        let (sender, jobs) = sync_channel(limits.queue);
        let arriving = Arc::new(AtomicUsize::new(0));
        let worker =
            Worker { classifier, jobs, arriving: Arc::clone(&arriving), limits: limits.clone(), metrics };
        std::thread::Builder::new().name("embed".into()).spawn(move || worker.run())?;
        Ok(Self { sender, arriving })
    }

    /// Announces a request, until the guard is dropped.
    pub(crate) fn arriving(&self) -> Arriving {
        self.arriving.fetch_add(1, Ordering::Relaxed);
        Arriving(Arc::clone(&self.arriving))
    }

    /// Embeds samples together with those of other requests. `arriving` is the announcement of this one, which ends here.
    pub(crate) async fn embed(
        &self,
        samples: Vec<Sample>,
        arriving: Option<Arriving>,
    ) -> Result<Embedded, Problem> {
        if samples.is_empty() {
            return Ok(Vec::new());
        }
        drop(arriving);
        let (answer, answered) = oneshot::channel();
        self.sender.try_send(Job { samples, answer }).map_err(|error| match error {
            TrySendError::Full(_) => Problem::busy("too many requests wait to be embedded"),
            TrySendError::Disconnected(_) => Problem::bug("the thread that embeds has ended"),
        })?;
        answered.await.map_err(|_| Problem::bug("the thread that embeds has ended"))?
    }
}

struct Worker {
    classifier: Classifier,
    jobs: Receiver<Job>,
    arriving: Arc<AtomicUsize>,
    limits: Limits,
    metrics: Arc<Metrics>,
}

impl Worker {
    fn run(self) {
        while let Ok(first) = self.jobs.recv() {
            self.embed(self.gathered(first));
        }
    }

    /// A job with those that wait behind it, and those that arrive within a few milliseconds.
    fn gathered(&self, first: Job) -> Vec<Job> {
        let until = Instant::now() + self.limits.gather;
        let mut samples = first.samples.len();
        let mut jobs = vec![first];
        while samples < self.limits.batch {
            let next = match self.jobs.try_recv() {
                Ok(job) => job,
                // Nobody is on the way: waiting would gain nothing.
                Err(_) if self.arriving.load(Ordering::Relaxed) == 0 => break,
                Err(_) => match self.jobs.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(job) => job,
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                },
            };
            samples += next.samples.len();
            jobs.push(next);
        }
        jobs
    }

    fn embed(&self, mut jobs: Vec<Job>) {
        // Whoever has gone away needs no answer.
        jobs.retain(|job| !job.answer.is_closed());
        let counts: Vec<usize> = jobs.iter().map(|job| job.samples.len()).collect();
        let mut samples = Vec::with_capacity(counts.iter().sum());
        for job in &mut jobs {
            samples.append(&mut job.samples);
        }
        if samples.is_empty() {
            return;
        }
        self.metrics.batch(samples.len());
        let work = AssertUnwindSafe(|| self.classifier.embed(&samples, &Watch::default()));
        let mut results = match std::panic::catch_unwind(work) {
            Ok(Ok(embedded)) => embedded.into_iter(),
            failed => {
                let reason = match failed {
                    Ok(Err(error)) => error.to_string(),
                    _ => "embedding failed".into(),
                };
                for job in jobs {
                    let _ = job.answer.send(Err(Problem::bug(&reason)));
                }
                return;
            }
        };
        for (job, count) in jobs.into_iter().zip(counts) {
            let _ = job.answer.send(Ok(results.by_ref().take(count).collect()));
        }
    }
}
