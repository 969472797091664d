//! The figures of the experiments: each is plain data and a function that draws them.

mod accuracy_by_distance;
mod layers;
mod learning_curves;
mod message_graph;
mod prototype_map;
mod task_prototypes;

pub use accuracy_by_distance::{AccuracyByDistance, DistancePoint, DistanceSeries};
pub use learning_curves::{Curve, LearningCurves};
pub use message_graph::{GraphNode, Message, MessageGraph};
pub use prototype_map::PrototypeMap;
pub use task_prototypes::{TaskClass, TaskMap, TaskPrototypes};
