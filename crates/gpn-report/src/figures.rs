//! The figures of experiments and of tests: each is plain data and a function that draws them.

mod accuracy_by_distance;
mod accuracy_by_samples;
mod confusion_matrix;
mod hedge_figure;
mod layers;
mod learning_curves;
mod message_graph;
mod prototype_map;
mod score_figure;
mod task_prototypes;

pub use accuracy_by_distance::{AccuracyByDistance, DistancePoint, DistanceSeries};
pub use accuracy_by_samples::{AccuracyBySamples, SampleGroup};
pub use confusion_matrix::{ConfusionClass, ConfusionMatrix};
pub use hedge_figure::{HedgeFigure, HedgeFigurePoint};
pub use learning_curves::{Curve, LearningCurves};
pub use message_graph::{GraphNode, Message, MessageGraph};
pub use prototype_map::PrototypeMap;
pub use score_figure::ScoreFigure;
pub use task_prototypes::{TaskClass, TaskMap, TaskPrototypes};
