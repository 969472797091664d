//! One step of Algorithm 1: the tasks or the batch of an episode, shard by shard.

use std::sync::Arc;
use std::time::Instant;

use gpn_data::loader::{Loader, LoaderConfig, Plan};
use gpn_data::rng::{Purpose, Stream};
use gpn_data::task::{Task, TaskSampler};
use gpn_model::Neighbourhood;
use gpn_model::methods::{EpisodeShape, LearnsFrom};
use gpn_taxonomy::{Choose, HopSearch, Node};

use super::trainer::Trainer;
use crate::distributed::contribution::Buckets;
use crate::distributed::overlap::Exchange;
use crate::distributed::shards::Shards;
use crate::error::TrainError;
use crate::learn::network::{Learned, Optimiser, StepPass, StepResult, StepTask};
use crate::learn::schedule::StepKind;
use crate::settings::Config;

/// The fewest samples of an auxiliary batch that a shard may have: batch norm needs some to compare.
const FEWEST_SAMPLES: usize = 2;

/// What the batch of a shard is for.
pub(super) enum Tag {
    /// A part of the auxiliary batch, with its labels.
    Auxiliary(Vec<usize>),
    /// Some of the step's tasks, with their numbers.
    FewShot(Vec<(u64, Task)>),
}

/// Refuses more shards than the auxiliary batch can be divided into.
pub(super) fn check_shards(
    config: &Config,
    samples: usize,
    learns_from: LearnsFrom,
) -> Result<(), TrainError> {
    let has_batches = match learns_from {
        LearnsFrom::Tasks => config.schedule.auxiliary,
        LearnsFrom::Batches => true,
        LearnsFrom::Nothing => false,
    };
    let (shards, batch) = (config.train.shards, config.train.auxiliary_batch.min(samples));
    if has_batches && shards > 1 && batch < FEWEST_SAMPLES * shards {
        return Err(TrainError::Setting {
            key: "train.shards".into(),
            reason: format!(
                "an auxiliary batch of {batch} samples cannot be divided into {shards}, each of at least {FEWEST_SAMPLES}; \
                 give fewer shards or a larger train.auxiliary_batch"
            ),
        });
    }
    Ok(())
}

impl Trainer {
    /// Learns from the shards of this process, puts them together with those of all others, and takes the optimiser's step.
    pub(super) fn step(
        &mut self,
        loader: &mut Loader<Tag>,
        search: &mut HopSearch,
    ) -> Result<StepKind, TrainError> {
        let t = self.position.episode;
        let (kind, learned, result) = if self.config.train.shards == 1 {
            self.whole(loader, search)?
        } else {
            self.by_shards(loader, search)?
        };
        let rate = self.schedule.rate(t, self.position.few_shot);
        let adam = self.optimisers.of(kind);
        self.network.step(learned, Optimiser { adam, rate, episode: t })?;
        match kind {
            StepKind::Auxiliary => self.position.means.auxiliary.add(&result),
            StepKind::FewShot => self.position.means.few_shot.add(&result),
        }
        Ok(kind)
    }

    /// The gradients of a step that is not divided.
    fn whole(
        &mut self,
        loader: &mut Loader<Tag>,
        search: &mut HopSearch,
    ) -> Result<(StepKind, Learned, StepResult), TrainError> {
        let (kind, pass) = self.learn(loader, search)?;
        // invariant: such a step has a task.
        let Some(pass) = pass else { return Ok((kind, Learned::Method, StepResult::default())) };
        self.network.backward(&pass, &mut |_, _| {})?;
        Ok((kind, pass.learned, pass.result))
    }

    /// The gradients of a step, summed over the shards of all processes. They are exchanged during the backward pass of the last
    /// shard of this process, each bucket as soon as it is final.
    fn by_shards(
        &mut self,
        loader: &mut Loader<Tag>,
        search: &mut HopSearch,
    ) -> Result<(StepKind, Learned, StepResult), TrainError> {
        let shards = Shards { count: self.config.train.shards };
        let own = shards.of_rank(self.group.rank(), self.group.size());
        // invariant: every process has a shard.
        let last = own.end - 1;
        let buckets = Buckets::of(&self.network);
        let mut sums = buckets.sums();
        let running = (own.len() > 1).then(|| self.network.running());
        for shard in own.start..last {
            let (_, pass) = self.learn(loader, search)?;
            let wants_stop = self.stop_is_wanted();
            let add = &mut |bucket: usize, values| sums[bucket].push(shard, values);
            buckets.take(&mut self.network, pass.as_ref(), wants_stop, add)?;
            if let Some(running) = &running {
                self.network.set_running(running);
            }
        }
        let (kind, pass) = self.learn(loader, search)?;
        // Shards that have nothing are those of tasks.
        let learned = pass.as_ref().map_or(Learned::Method, |pass| pass.learned);
        let lengths = buckets.lengths(&mut self.network, learned);
        let tasks = self.config.train.tasks_per_step;
        let has_work = |shard| kind == StepKind::Auxiliary || !shards.part(shard, tasks).is_empty();
        let wants_stop = self.stop_is_wanted();
        let exchange = Exchange { group: self.group.as_ref(), shards, has_work: &has_work };
        let network = &mut self.network;
        let mut computed = Instant::now();
        let sums = exchange.during(|hand_over| {
            buckets.take(network, pass.as_ref(), wants_stop, &mut |bucket, values| {
                let mut sum = std::mem::take(&mut sums[bucket]);
                sum.push(last, values);
                hand_over(sum, lengths[bucket]);
            })?;
            computed = Instant::now();
            Ok(())
        })?;
        let (result, is_stop_agreed) = buckets.put(&mut self.network, learned, &sums);
        self.is_stop_agreed = is_stop_agreed;
        // Alone, this is a part of the step.
        let is_alone = self.group.size() == 1;
        let time = if is_alone { &mut self.network.time.other } else { &mut self.time.exchange };
        *time += computed.elapsed();
        Ok((kind, learned, result))
    }

    /// Whether this process has been asked to stop. A shard without tasks cannot tell others; the first always has one.
    fn stop_is_wanted(&self) -> bool {
        self.wants_stop || self.stop.is_stopped()
    }

    /// Learns from the next shard's batch up to the backward pass of the backbone; `None` where it has no tasks.
    fn learn(
        &mut self,
        loader: &mut Loader<Tag>,
        search: &mut HopSearch,
    ) -> Result<(StepKind, Option<StepPass>), TrainError> {
        let started = Instant::now();
        // invariant: the loader has a batch for every shard of every episode that is left.
        let Some(batch) = loader.next_batch() else { return Ok((StepKind::FewShot, None)) };
        let batch = batch?;
        self.time.data += started.elapsed();
        let learned = match &batch.tag {
            Tag::Auxiliary(labels) => {
                let share = labels.len() as f32 / self.auxiliary_batch() as f32;
                (StepKind::Auxiliary, Some(self.network.learn_batch(&batch.inputs, labels, share)?))
            }
            Tag::FewShot(tasks) if tasks.is_empty() => (StepKind::FewShot, None),
            Tag::FewShot(tasks) => (StepKind::FewShot, Some(self.learn_tasks(&batch.inputs, tasks, search)?)),
        };
        loader.recycle(batch);
        Ok(learned)
    }

    fn learn_tasks(
        &mut self,
        inputs: &[f32],
        tasks: &[(u64, Task)],
        search: &mut HopSearch,
    ) -> Result<StepPass, TrainError> {
        let started = Instant::now();
        let hops = self.network.method.hops();
        let around: Vec<Option<Neighbourhood>> = tasks
            .iter()
            .map(|(number, task)| hops.map(|hops| self.neighbourhood(task, hops, *number, search)))
            .collect();
        self.network.time.method += started.elapsed();
        let lambda = self.schedule.lambda(self.position.episode);
        let tasks: Vec<StepTask<'_>> = tasks
            .iter()
            .zip(&around)
            .map(|((_, task), around)| StepTask {
                shape: EpisodeShape {
                    way: task.classes.len(),
                    shot: task.support[0].len(),
                    rest: if task.has_rest() { task.support[task.classes.len()].len() } else { 0 },
                    lambda,
                },
                samples: task.samples().count(),
                neighbourhood: around.as_ref(),
            })
            .collect();
        self.network.learn_tasks(inputs, &tasks, self.config.train.tasks_per_step, &self.memory)
    }

    /// The classes around the targets of the task with this number.
    fn neighbourhood(&self, task: &Task, hops: usize, number: u64, search: &mut HopSearch) -> Neighbourhood {
        let mut stream = Stream::new(self.config.train.seed, Purpose::HalvedLists, number);
        let mut choose = |list: &[Node], count: usize, chosen: &mut Vec<Node>| {
            chosen.extend(stream.choose(list, count));
        };
        let halve = self.config.pathways.halve_lists.then_some(&mut choose as &mut Choose<'_>);
        Neighbourhood::in_training(&self.graph, &task.classes, hops, halve, search)
    }

    /// Samples of an auxiliary batch.
    fn auxiliary_batch(&self) -> usize {
        self.config.train.auxiliary_batch.min(self.samples_of.iter().map(Vec::len).sum())
    }

    /// Batches from where the run stands to its end: for each episode, one for each shard of this process.
    ///
    /// The batch of shard s of episode t has number `t * shards + s`, and task i of the episode `t * tasks_per_step + i`: what
    /// is drawn for it depends on nothing else.
    pub(super) fn loader(&self, sampler: Arc<TaskSampler>) -> Loader<Tag> {
        let train = &self.config.train;
        let (seed, tasks) = (train.seed, train.tasks_per_step);
        let labelled: Vec<(u32, usize)> = self
            .samples_of
            .iter()
            .enumerate()
            .flat_map(|(class, samples)| samples.iter().map(move |&sample| (sample, class)))
            .collect();
        let (schedule, batch) = (self.schedule.clone(), self.auxiliary_batch());
        let learns_from = self.network.method.learns_from();
        let kind = move |t| match learns_from {
            LearnsFrom::Batches => StepKind::Auxiliary,
            LearnsFrom::Tasks | LearnsFrom::Nothing => schedule.kind(t),
        };
        let shards = Shards { count: train.shards };
        let own = shards.of_rank(self.group.rank(), self.group.size());
        let plan =
            move |number: u64| {
                let (t, shard) = (number / shards.count as u64, (number % shards.count as u64) as usize);
                match kind(t) {
                    StepKind::Auxiliary => {
                        let chosen = Stream::new(seed, Purpose::AuxiliaryBatch, t).choose(&labelled, batch);
                        let (samples, labels) = chosen[shards.part(shard, batch)].iter().copied().unzip();
                        Ok(Plan { samples, tag: Tag::Auxiliary(labels) })
                    }
                    StepKind::FewShot => {
                        let numbers = shards.part(shard, tasks).map(|task| t * tasks as u64 + task as u64);
                        let tasks = numbers
                            .map(|number| Ok((number, sampler.task(number)?)))
                            .collect::<Result<Vec<(u64, Task)>, gpn_data::DataError>>()?;
                        let samples = tasks.iter().flat_map(|(_, task)| task.samples()).collect();
                        Ok(Plan { samples, tag: Tag::FewShot(tasks) })
                    }
                }
            };
        let config = LoaderConfig {
            size: self.config.model.image_size,
            view: self.config.augment.view(),
            seed,
            workers: train.workers,
        };
        let numbers = (self.position.episode..train.episodes)
            .flat_map(move |t| own.clone().map(move |shard| t * shards.count as u64 + shard as u64));
        Loader::start(self.benchmark.clone(), config, numbers, plan)
    }
}
