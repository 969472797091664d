//! One step of Algorithm 1: the tasks or the batch of an episode, shard by shard.

use std::sync::Arc;
use std::time::Instant;

use gpn_data::loader::{Batch, Loader, LoaderConfig, Plan};
use gpn_data::rng::{Purpose, Stream};
use gpn_data::task::{Task, TaskSampler};
use gpn_model::Neighbourhood;
use gpn_model::methods::{EpisodeShape, LearnsFrom};
use gpn_taxonomy::{Choose, HopSearch, Node};

use super::trainer::Trainer;
use crate::distributed::contribution;
use crate::distributed::reduce::ShardSum;
use crate::distributed::shards::Shards;
use crate::error::TrainError;
use crate::learn::network::{Learned, Optimiser, StepResult, StepTask};
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
        let shards = Shards { count: self.config.train.shards };
        let own = shards.of_rank(self.group.rank(), self.group.size());
        let is_divided = shards.count > 1;
        let running = (own.len() > 1).then(|| self.network.running());
        let (mut sum, mut kind, mut learned) = (ShardSum::default(), StepKind::FewShot, None);
        for shard in own.clone() {
            let started = Instant::now();
            // invariant: the loader has a batch for every shard of every episode that is left.
            let Some(batch) = loader.next_batch() else { break };
            let batch = batch?;
            self.time.data += started.elapsed();
            kind = match batch.tag {
                Tag::Auxiliary(_) => StepKind::Auxiliary,
                Tag::FewShot(_) => StepKind::FewShot,
            };
            if let (Some(running), Some(_)) = (&running, &learned) {
                self.network.set_running(running);
            }
            let of_shard = self.learn(&batch, search)?;
            loader.recycle(batch);
            if is_divided {
                // A shard without tasks has no vector to ask with; the first process always has one.
                let wants_stop = self.wants_stop || self.stop.is_stopped();
                let vector = of_shard.as_ref().map(|(learned, result)| {
                    contribution::take(&mut self.network, *learned, result, wants_stop)
                });
                sum.push(shard, vector);
            }
            learned = of_shard.or(learned);
        }
        // A process whose shards have no task has only the method's part to hear of.
        let (learned, mut result) = learned.unwrap_or((Learned::Method, StepResult::default()));
        if is_divided {
            let started = Instant::now();
            let length = contribution::length(&mut self.network, learned);
            let tasks = self.config.train.tasks_per_step;
            let has_work = |shard| kind == StepKind::Auxiliary || !shards.part(shard, tasks).is_empty();
            let sum = sum.over(self.group.as_ref(), shards, length, has_work)?;
            (result, self.is_stop_agreed) = contribution::put(&mut self.network, learned, &sum);
            // Alone, this is a part of the step.
            let is_alone = self.group.size() == 1;
            let time = if is_alone { &mut self.network.time.other } else { &mut self.time.exchange };
            *time += started.elapsed();
        }
        let rate = self.schedule.rate(t, self.position.few_shot);
        let adam = self.optimisers.of(kind);
        self.network.step(learned, Optimiser { adam, rate, episode: t })?;
        match kind {
            StepKind::Auxiliary => self.position.means.auxiliary.add(&result),
            StepKind::FewShot => self.position.means.few_shot.add(&result),
        }
        Ok(kind)
    }

    /// Learns from the batch of a shard; `None` where it has no tasks.
    fn learn(
        &mut self,
        batch: &Batch<Tag>,
        search: &mut HopSearch,
    ) -> Result<Option<(Learned, StepResult)>, TrainError> {
        match &batch.tag {
            Tag::Auxiliary(labels) => {
                let share = labels.len() as f32 / self.auxiliary_batch() as f32;
                Ok(Some(self.network.batch_gradients(&batch.inputs, labels, share)?))
            }
            Tag::FewShot(tasks) if tasks.is_empty() => Ok(None),
            Tag::FewShot(tasks) => {
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
                let of = self.config.train.tasks_per_step;
                let result = self.network.task_gradients(&batch.inputs, &tasks, of, &self.memory)?;
                Ok(Some((Learned::Method, result)))
            }
        }
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
