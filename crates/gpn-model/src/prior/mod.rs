//! The graph prior: what a class is like before its samples are seen.
//!
//! **In** come embeddings of training classes' samples and the class graph; **out** comes, for any class, where its mean is
//! expected (its prior) and, with some samples of it, its prototype (the posterior mean). With more samples the prior fades
//! by itself. Everything is closed form: no gradient, no epochs.
//!
//! 1. A [`Metric`] is fitted to the samples; everything else happens in its space.
//! 2. A [`StatisticsBuilder`] takes the samples of each training class, in that space: [`ClassStatistics`].
//! 3. [`GraphPrior::fit`] learns from the training classes how well a class is predicted by those around it.
//! 4. [`KnownClasses`] holds the classes that have samples now; [`GraphPrior::of`] gives the prior of any class of the graph,
//!    [`GraphPrior::of_unknown_place`] that of a class without a place, [`TextPrior::of`] that of a class with a text; two of
//!    them make one by [`ClassPrior::join`].
//! 5. [`GraphPrior::posterior`] joins a prior and samples; [`GraphPrior::posteriors`] those of classes that vary together.
//!    Queries, in the space of the metric, go to the nearest prototype.
//!
//! A catalogue, whose classes have few samples or many, is fitted further: a [`Decision`] joins the posteriors of classes with few
//! samples and [`Borders`] between those with many.
//!
//! Results depend neither on the number of threads nor on the processor.

mod borders;
mod check;
mod choose;
mod decision;
mod field;
mod fit;
mod hiding;
mod join;
mod lesson;
mod limited_memory_bfgs;
mod metric;
mod metric_family;
mod model;
mod pooling;
mod posterior;
#[cfg(test)]
mod sample;
mod scatter;
mod scorer;
mod state;
mod statistics;
mod text;
mod together;
mod whitening;

pub use borders::Borders;
pub use decision::{Decision, UnknownScore, best_scale, log_loss, probabilities, unknown_score};
pub use field::{Direction, KnownClasses};
pub use fit::{FitConfig, GraphPrior};
pub use gpn_kernels::linear::{softmax, softmax_of, sum_of_exponentials};
pub use hiding::hide_classes;
pub use join::join_shares;
pub use lesson::{Lesson, LessonPass};
pub use metric::{Metric, MetricConfig};
pub use metric_family::MetricFamily;
pub use model::{LearnBy, MetricName, PriorConfig, PriorModel, TrainingSamples};
pub use posterior::{ClassPrior, Posterior, Share, Source};
pub use scorer::{ClassRule, Rule, Scorer};
pub use state::StateTensor;
pub use statistics::{ClassStatistics, StatisticsBuilder};
pub use text::{TextConfig, TextPrior, TextRows};
pub use together::JointPrior;
