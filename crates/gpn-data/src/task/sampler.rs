//! Drawing tasks: at random, or by snowball over the class graph.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use gpn_files::ErrorKind;
use gpn_taxonomy::{HopSearch, Node, Taxonomy};
use serde::{Deserialize, Serialize};

use super::Task;
use super::pool::{LeftOut, TaskPool};
use super::rest::Outsiders;
use crate::rng::{Purpose, Stream};

/// How the classes of a task are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampling {
    /// Any classes.
    Random,
    /// Each next class is near one already chosen.
    Snowball,
    /// Either of the two with probability 1/2, anew for each task.
    #[default]
    Both,
}

/// How snowball sampling chooses among the neighbours of the classes it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SnowballRule {
    /// Every class near the chosen ones is equally likely.
    #[default]
    Union,
    /// A class near several chosen ones is likelier, and a task that draws a class twice is drawn anew.
    Joined,
}

/// The shape of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskConfig {
    /// Classes to tell apart.
    pub way: usize,
    /// Labelled samples of each class.
    pub shot: usize,
    /// Where larger than `shot`: each task draws their number, from `shot` to this, as far as its classes have samples.
    #[serde(default)]
    pub most_shot: usize,
    /// Samples to classify of each class.
    pub queries: usize,
    /// How classes are chosen.
    pub sampling: Sampling,
    /// Hops within which snowball sampling finds the next class.
    pub hops: usize,
    /// How snowball sampling weighs candidates.
    pub snowball: SnowballRule,
    /// Labelled samples of the answer "other", from classes outside the task; 0 for no such answer.
    pub rest: usize,
}

impl Default for TaskConfig {
    fn default() -> Self {
        Self {
            way: 5,
            shot: 1,
            most_shot: 0,
            queries: 1,
            sampling: Sampling::default(),
            hops: 5,
            snowball: SnowballRule::default(),
            rest: 0,
        }
    }
}

/// Why no task can be drawn.
#[derive(Debug, thiserror::Error)]
pub enum SamplerError {
    /// Not enough classes with enough samples.
    #[error(
        "a {way}-way task with {needed} samples per class is not possible: of {total} {description}, {usable} have \
         that many{}; lower way, shot or queries",
        shortest(left_out)
    )]
    TooFewClasses {
        /// Classes asked for.
        way: usize,
        /// Samples needed of each class: shot + queries.
        needed: usize,
        /// Classes there are.
        total: usize,
        /// Which classes these are.
        description: String,
        /// Classes with enough samples.
        usable: usize,
        /// Classes with too few samples.
        left_out: Vec<LeftOut>,
    },
    /// The graph has no group of classes large enough.
    #[error(
        "snowball sampling found no {way} {description} linked within {hops} hops after {TRIES} tries; raise the \
         hops, lower way, or use random sampling"
    )]
    NoSnowball {
        /// Classes asked for.
        way: usize,
        /// Which classes these are.
        description: String,
        /// Hops allowed.
        hops: usize,
    },
    /// A setting that makes no task.
    #[error(
        "a task needs way >= 2, shot >= 1 and queries >= 1, not way {way}, shot {shot}, queries {queries}"
    )]
    BadShape {
        /// Classes asked for.
        way: usize,
        /// Labelled samples asked for.
        shot: usize,
        /// Queries asked for.
        queries: usize,
    },
}

impl SamplerError {
    /// What kind of failure it is: always bad input, as every task that fits the data can be drawn.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::BadInput
    }
}

fn shortest(left_out: &[LeftOut]) -> String {
    let mut short: Vec<&LeftOut> = left_out.iter().collect();
    short.sort_by_key(|class| class.samples);
    let named: Vec<String> =
        short.iter().take(3).map(|class| format!("{} has {}", class.id, class.samples)).collect();
    if named.is_empty() { String::new() } else { format!(" ({}, ...)", named.join(", ")) }
}

/// Attempts before a task is reported as impossible.
const TRIES: usize = 1000;
/// Pools of up to this many classes get a table of all neighbours in advance.
const TABLE_LIMIT: usize = 5_000;

/// Draws tasks; task `i` of a seed is always the same.
///
/// Snowball costs O(neighbours within the hops) a task, random O(way).
#[derive(Debug)]
pub struct TaskSampler {
    config: TaskConfig,
    seed: u64,
    description: String,
    classes: Vec<Candidate>,
    left_out: Vec<LeftOut>,
    reach: Option<Reach>,
    outsiders: Option<Outsiders>,
}

#[derive(Debug)]
pub(super) struct Candidate {
    index: u32,
    pub(super) node: Node,
    pub(super) samples: Vec<u32>,
}

/// Which candidates are near which.
#[derive(Debug)]
enum Reach {
    Table(Vec<Vec<u32>>),
    Search(Box<Search>),
}

/// Looks for near candidates when asked, in graphs too large for a table.
#[derive(Debug)]
struct Search {
    graph: Taxonomy,
    candidate_at: Vec<Option<u32>>,
    /// Memory of searches that are not under way.
    idle: Mutex<Vec<HopSearch>>,
}

impl TaskSampler {
    /// A sampler over the classes of `pool` with enough samples; the others are listed by [`Self::left_out`].
    pub fn new(pool: &TaskPool, config: TaskConfig, seed: u64) -> Result<Self, SamplerError> {
        Self::with_table_limit(pool, config, seed, TABLE_LIMIT)
    }

    fn with_table_limit(
        pool: &TaskPool,
        config: TaskConfig,
        seed: u64,
        table_limit: usize,
    ) -> Result<Self, SamplerError> {
        let TaskConfig { way, shot, queries, .. } = config;
        if way < 2 || shot < 1 || queries < 1 {
            return Err(SamplerError::BadShape { way, shot, queries });
        }
        let needed = shot + queries;
        let (usable, left_out) = pool.with_samples(needed);
        // The answer "other" needs a class outside the task.
        let classes_needed = way + usize::from(config.rest > 0);
        if usable.len() < classes_needed {
            return Err(SamplerError::TooFewClasses {
                way: classes_needed,
                needed,
                total: pool.classes.len(),
                description: pool.description.clone(),
                usable: usable.len(),
                left_out,
            });
        }
        let classes: Vec<Candidate> = usable
            .into_iter()
            .map(|class| Candidate { index: class.index, node: class.node, samples: class.samples.clone() })
            .collect();
        let reach = (config.sampling != Sampling::Random)
            .then(|| Reach::new(pool, &classes, config.hops, table_limit));
        let outsiders = (config.rest > 0).then(|| Outsiders::new(&pool.graph));
        let description = pool.description.clone();
        let sampler = Self { config, seed, description, classes, left_out, reach, outsiders };
        sampler.task(0)?;
        Ok(sampler)
    }

    /// The shape of the tasks.
    pub fn config(&self) -> &TaskConfig {
        &self.config
    }

    /// Classes that never occur because they have too few samples.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Task number `index`.
    pub fn task(&self, index: u64) -> Result<Task, SamplerError> {
        let mut stream = Stream::new(self.seed, Purpose::Task, index);
        let chosen = self.classes_of(&mut stream)?;
        let TaskConfig { shot, most_shot, queries, rest, .. } = self.config;
        let shot = if most_shot > shot {
            let fewest = chosen.iter().map(|&class| self.classes[class as usize].samples.len()).min();
            // invariant: every class has `shot + queries` samples at least.
            (shot + stream.below(most_shot - shot + 1)).min(fewest.unwrap_or(0) - queries)
        } else {
            shot
        };
        let mut task = Task {
            classes: Vec::with_capacity(chosen.len()),
            support: Vec::with_capacity(chosen.len()),
            query: Vec::with_capacity(chosen.len()),
        };
        for &class in &chosen {
            let class = &self.classes[class as usize];
            let mut support = stream.choose(&class.samples, shot + queries);
            let query = support.split_off(shot);
            task.classes.push(class.index);
            task.support.push(support);
            task.query.push(query);
        }
        if let Some(outsiders) = &self.outsiders {
            let mut support = outsiders.draw(&self.classes, &chosen, rest + queries, &mut stream);
            let query = support.split_off(rest);
            task.support.push(support);
            task.query.push(query);
        }
        Ok(task)
    }

    fn classes_of(&self, stream: &mut Stream) -> Result<Vec<u32>, SamplerError> {
        let snowball = match self.config.sampling {
            Sampling::Random => false,
            Sampling::Snowball => true,
            Sampling::Both => stream.below(2) == 1,
        };
        let Some(reach) = self.reach.as_ref().filter(|_| snowball) else {
            return Ok(self.random(stream));
        };
        (0..TRIES)
            .find_map(|_| match self.config.snowball {
                SnowballRule::Union => self.snowball_union(reach, stream),
                SnowballRule::Joined => self.snowball_joined(reach, stream),
            })
            .ok_or_else(|| SamplerError::NoSnowball {
                way: self.config.way,
                description: self.description.clone(),
                hops: self.config.hops,
            })
    }

    fn random(&self, stream: &mut Stream) -> Vec<u32> {
        let mut chosen = Vec::with_capacity(self.config.way);
        while chosen.len() < self.config.way {
            let class = stream.below(self.classes.len()) as u32;
            if !chosen.contains(&class) {
                chosen.push(class);
            }
        }
        chosen
    }

    fn snowball_union(&self, reach: &Reach, stream: &mut Stream) -> Option<Vec<u32>> {
        let mut chosen = vec![stream.below(self.classes.len()) as u32];
        let mut seen = SeenSet::new(reach, self.classes.len());
        seen.insert(chosen[0]);
        let mut candidates = Vec::new();
        while chosen.len() < self.config.way {
            let latest = chosen[chosen.len() - 1];
            reach.visit(&self.classes, latest, self.config.hops, |class| {
                if seen.insert(class) {
                    candidates.push(class);
                }
            });
            if candidates.is_empty() {
                return None;
            }
            chosen.push(candidates.swap_remove(stream.below(candidates.len())));
        }
        Some(chosen)
    }

    fn snowball_joined(&self, reach: &Reach, stream: &mut Stream) -> Option<Vec<u32>> {
        let mut chosen = vec![stream.below(self.classes.len()) as u32];
        let mut joined = Vec::new();
        while chosen.len() < self.config.way {
            let latest = chosen[chosen.len() - 1];
            reach.visit(&self.classes, latest, self.config.hops, |class| joined.push(class));
            if joined.is_empty() {
                return None;
            }
            let class = joined[stream.below(joined.len())];
            if chosen.contains(&class) {
                return None;
            }
            chosen.push(class);
        }
        Some(chosen)
    }
}

impl Reach {
    fn new(pool: &TaskPool, classes: &[Candidate], hops: usize, table_limit: usize) -> Self {
        let mut candidate_at = vec![None; pool.graph.len()];
        for (candidate, class) in classes.iter().enumerate() {
            candidate_at[class.node as usize] = Some(candidate as u32);
        }
        let search = Self::Search(Box::new(Search {
            graph: pool.graph.clone(),
            candidate_at,
            idle: Mutex::default(),
        }));
        if classes.len() > table_limit {
            return search;
        }
        let row = |candidate| {
            let mut row = Vec::new();
            search.visit(classes, candidate, hops, |class| row.push(class));
            row
        };
        Self::Table((0..classes.len() as u32).map(row).collect())
    }

    /// Calls `near` for each candidate within the hops of candidate `from`, itself excepted.
    fn visit(&self, classes: &[Candidate], from: u32, hops: usize, mut near: impl FnMut(u32)) {
        match self {
            Self::Table(rows) => rows[from as usize].iter().for_each(|&class| near(class)),
            Self::Search(search) => {
                let Search { graph, candidate_at, idle } = search.as_ref();
                let free = || idle.lock().unwrap_or_else(PoisonError::into_inner);
                let taken = free().pop();
                let mut search = taken.unwrap_or_else(|| HopSearch::new(graph));
                let mut reached = search.neighbours(graph, classes[from as usize].node, hops).to_vec();
                free().push(search);
                reached.sort_unstable();
                reached.iter().filter_map(|&node| candidate_at[node as usize]).for_each(near);
            }
        }
    }
}

/// Candidates met so far: bits where there are few candidates, a hash set where there are many.
enum SeenSet {
    Bits(Vec<u64>),
    Set(HashSet<u32>),
}

impl SeenSet {
    fn new(reach: &Reach, candidates: usize) -> Self {
        match reach {
            Reach::Table(_) => Self::Bits(vec![0; candidates.div_ceil(64)]),
            Reach::Search(_) => Self::Set(HashSet::new()),
        }
    }

    /// Whether the candidate is met for the first time.
    fn insert(&mut self, candidate: u32) -> bool {
        match self {
            Self::Bits(words) => {
                let word = &mut words[candidate as usize / 64];
                let bit = 1 << (candidate % 64);
                let first = *word & bit == 0;
                *word |= bit;
                first
            }
            Self::Set(set) => set.insert(candidate),
        }
    }
}

#[cfg(test)]
mod tests {
    use gpn_taxonomy::TaxonomyBuilder;

    use super::super::PoolClass;
    use super::*;

    /// Two families of `size` classes below one root; class i has `samples(i)` samples.
    fn pool(size: u32, samples: impl Fn(u32) -> u32) -> TaskPool {
        let mut builder = TaxonomyBuilder::new();
        let root = builder.add_class("root");
        let mut classes = Vec::new();
        for family in 0..2 {
            let top = builder.add_class(&format!("family{family}"));
            builder.add_edge(root, top, None);
            for member in 0..size {
                let index = family * size + member;
                let node = builder.add_class(&format!("class{index}"));
                builder.add_edge(top, node, None);
                let samples = (0..samples(index)).map(|sample| index * 1000 + sample).collect();
                classes.push(PoolClass { index, node, samples });
            }
        }
        TaskPool { description: "test classes".into(), classes, graph: builder.build().unwrap().taxonomy }
    }

    fn config(sampling: Sampling) -> TaskConfig {
        TaskConfig { way: 4, shot: 2, queries: 3, sampling, hops: 2, ..TaskConfig::default() }
    }

    #[test]
    fn tasks_have_the_wished_shape_and_no_sample_twice() {
        let pool = pool(6, |_| 9);
        for sampling in [Sampling::Random, Sampling::Snowball, Sampling::Both] {
            let sampler = TaskSampler::new(&pool, config(sampling), 1).unwrap();
            for index in 0..200 {
                let task = sampler.task(index).unwrap();
                assert_eq!(task.classes.iter().collect::<HashSet<_>>().len(), 4);
                for ((class, support), query) in task.classes.iter().zip(&task.support).zip(&task.query) {
                    let samples: HashSet<u32> = support.iter().chain(query).copied().collect();
                    assert_eq!((support.len(), query.len(), samples.len()), (2, 3, 5));
                    assert!(samples.iter().all(|sample| sample / 1000 == *class));
                }
            }
        }
    }

    #[test]
    fn the_number_of_labelled_samples_is_drawn_as_far_as_classes_have_them() {
        // Two classes have but seven samples: four labelled ones beside three queries.
        let pool = pool(6, |index| if index < 2 { 7 } else { 20 });
        let drawn = TaskConfig { most_shot: 6, ..config(Sampling::Random) };
        let sampler = TaskSampler::new(&pool, drawn, 1).unwrap();
        let mut seen = HashSet::new();
        for index in 0..300 {
            let task = sampler.task(index).unwrap();
            let shot = task.support[0].len();
            assert!(task.support.iter().all(|support| support.len() == shot));
            assert!(task.query.iter().all(|query| query.len() == 3));
            assert!(shot <= 4 || task.classes.iter().all(|&class| class >= 2));
            seen.insert(shot);
        }
        assert_eq!(seen, HashSet::from([2, 3, 4, 5, 6]));
        // Not larger than `shot`, it changes nothing.
        let fixed = TaskConfig { most_shot: 2, ..config(Sampling::Random) };
        let tasks = |config| TaskSampler::new(&pool, config, 1).unwrap().task(5).unwrap();
        assert_eq!(tasks(fixed), tasks(config(Sampling::Random)));
    }

    #[test]
    fn the_answer_other_has_samples_of_no_target() {
        let mut pool = pool(6, |_| 9);
        // A coarse class above the first family.
        let node = pool.graph.find("family0").unwrap();
        pool.classes.push(PoolClass { index: 12, node, samples: (12_000..12_009).collect() });
        let sampler = TaskSampler::new(&pool, TaskConfig { rest: 4, ..config(Sampling::Random) }, 1).unwrap();
        for index in 0..100 {
            let task = sampler.task(index).unwrap();
            assert!(task.has_rest() && task.support.len() == 5 && task.query.len() == 5);
            let others: HashSet<u32> = task.support[4].iter().chain(&task.query[4]).copied().collect();
            assert_eq!(others.len(), 7, "no sample twice");
            for class in others.iter().map(|sample| sample / 1000) {
                assert!(!task.classes.contains(&class));
                let above_a_target = class == 12 && task.classes.iter().any(|&target| target < 6);
                let below_a_target = task.classes.contains(&12) && class < 6;
                assert!(!above_a_target && !below_a_target, "{class} in {:?}", task.classes);
            }
        }
    }

    #[test]
    fn snowball_stays_within_its_hops() {
        let pool = pool(6, |_| 9);
        for snowball in [SnowballRule::Union, SnowballRule::Joined] {
            let config = TaskConfig { snowball, ..config(Sampling::Snowball) };
            let sampler = TaskSampler::new(&pool, config, 1).unwrap();
            for index in 0..100 {
                let families: HashSet<u32> =
                    sampler.task(index).unwrap().classes.iter().map(|class| class / 6).collect();
                assert_eq!(families.len(), 1, "siblings are two hops apart, cousins four");
            }
        }
    }

    #[test]
    fn union_draws_every_class_equally_often() {
        let pool = pool(6, |_| 9);
        let sampler = TaskSampler::new(&pool, config(Sampling::Snowball), 5).unwrap();
        let mut counts = [0_i32; 12];
        for index in 0..6_000 {
            for class in sampler.task(index).unwrap().classes {
                counts[class as usize] += 1;
            }
        }
        assert!(counts.iter().all(|count| (count - 2_000).abs() < 200), "{counts:?}");
    }

    #[test]
    fn task_i_is_the_same_whatever_was_drawn_before() {
        let pool = pool(6, |_| 9);
        let sampler = || TaskSampler::new(&pool, config(Sampling::Both), 3).unwrap();
        let in_order: Vec<Task> = (0..20).map(|i| sampler().task(i).unwrap()).collect();
        let one = sampler();
        for i in (0..20).rev() {
            assert_eq!(one.task(i).unwrap(), in_order[i as usize]);
        }
    }

    #[test]
    fn table_and_search_give_the_same_tasks() {
        let pool = pool(70, |_| 9);
        for snowball in [SnowballRule::Union, SnowballRule::Joined] {
            let config = TaskConfig { snowball, ..config(Sampling::Snowball) };
            let by_table = TaskSampler::new(&pool, config.clone(), 1).unwrap();
            let by_search = TaskSampler::with_table_limit(&pool, config, 1, 0).unwrap();
            let Some(Reach::Table(rows)) = &by_table.reach else { panic!("a small pool has a table") };
            assert_eq!(rows[2][..4], [0, 1, 3, 4]);
            assert_eq!(rows[71].len(), 69);
            assert!(matches!(by_search.reach, Some(Reach::Search(_))));
            for index in 0..200 {
                assert_eq!(by_table.task(index).unwrap(), by_search.task(index).unwrap());
            }
        }
    }

    #[test]
    fn too_little_data_is_said() {
        let short = pool(3, |index| if index < 3 { 9 } else { 4 });
        let message = TaskSampler::new(&short, config(Sampling::Random), 0).unwrap_err().to_string();
        assert!(message.contains("of 6 test classes, 3 have that many (class3 has 4"), "{message}");
        let apart = pool(3, |_| 9);
        let message = TaskSampler::new(&apart, config(Sampling::Snowball), 0).unwrap_err().to_string();
        assert!(message.contains("no 4 test classes linked within 2 hops"), "{message}");
        let shape = TaskConfig { shot: 0, ..config(Sampling::Random) };
        assert!(TaskSampler::new(&apart, shape, 0).is_err());
    }
}
