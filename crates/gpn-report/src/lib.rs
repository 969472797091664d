//! What gpn shows: tables, figures and the report of an experiment.
//!
//! **In** come plain data: numbers with their intervals, names, edges, points. Nothing here trains, measures or
//! reads a model, and nothing reaches for the network, a font or a program on the machine.
//!
//! **Out** come
//! - tables ([`Table`]) in five formats, one file of code each: [`to_markdown`], [`to_csv`], [`to_json`],
//!   [`to_latex`], [`to_html`];
//! - figures ([`Figure`], drawn with the few things in [`scene`]) as SVG and PNG, in colours that colour-blind readers can tell apart: the class graph
//!   between prototypes ([`PrototypeMap`]), prototypes of several tasks before and after propagation
//!   ([`TaskMap`]), accuracy by distance to the training classes ([`AccuracyByDistance`]), messages between classes
//!   ([`MessageGraph`]), learning curves ([`LearningCurves`]), and of a test accuracy by number of samples
//!   ([`AccuracyBySamples`]), confusion between relatives ([`ConfusionMatrix`]), answers as deep as sure ([`HedgeFigure`])
//!   and scores of unknown samples ([`ScoreFigure`]);
//! - maps of points of many dimensions ([`tsne`](fn@tsne));
//! - one self-contained HTML page ([`Report`]), for light and dark, wide and narrow screens, and paper;
//! - the page of a test ([`TestPage`]): how good a model is, where it fails, which labels to look at;
//! - the numbers published with the method ([`published`]), to stand beside ours.
//!
//! The same data give the same bytes, at any number of threads.
//!
//! ```
//! use gpn_report::{AccuracyByDistance, Block, Card, Cell, Column, DistancePoint, DistanceSeries, Report, Table};
//! use gpn_report::{published, to_markdown};
//!
//! # fn main() -> Result<(), gpn_report::ReportError> {
//! let columns = vec![
//!     Column::new("ours").under("Close, 5-way 1-shot").higher_is_better(),
//!     Column::new("published").under("Close, 5-way 1-shot").higher_is_better(),
//! ];
//! let mut table = Table::new("Accuracy (%)", "Method", columns);
//! for (method, mean) in [("Prototypical Net", 43.1), ("GPN+", 49.8)] {
//!     let theirs =
//!         published::accuracy(published::Split::Close, published::Sampling::Random, method, 5, 1).unwrap();
//!     let cells = vec![
//!         Cell::estimate(mean, 0.9).linked(format!("runs/{method}")),
//!         Cell::estimate(theirs.mean, theirs.half_width),
//!     ];
//!     table.row(method, cells)?;
//! }
//! table.mark_best();
//! assert!(to_markdown(&table).contains("**50.54 ± 1.67**"));
//!
//! let point = |distance, accuracy| DistancePoint { distance, accuracy, half_width: 1.5 };
//! let figure = AccuracyByDistance {
//!     title: "Accuracy by distance".to_owned(),
//!     series: vec![DistanceSeries { name: "GPN+".to_owned(), points: vec![point(1.0, 52.0), point(2.0, 47.0)] }],
//! }
//! .figure();
//! assert!(figure.to_png(1.0)?.starts_with(b"\x89PNG"));
//!
//! let mut report = Report::new("Close and far", "Two methods on the same tasks.");
//! report.card(Card::new("GPN+ on Close", "49.8 %").detail("± 0.9").accent());
//! report.section("Results", vec![Block::Table(table), Block::Figure(figure)]);
//! report.environment("Command", "`gpn experiment tables --scale quick`");
//! let page = report.to_html()?;
//! assert!(page.contains("<svg") && !page.contains("<script"));
//! # Ok(())
//! # }
//! ```

mod axes;
mod colour;
mod error;
mod escape;
mod figure;
mod figures;
mod font;
mod labels;
mod legend;
mod marker;
mod pca;
pub mod published;
mod raster;
mod report;
pub mod scene;
mod svg;
mod table;
mod test_page;
mod tsne;
mod write;

pub use error::ReportError;
pub use figure::Figure;
pub use figures::{
    AccuracyByDistance, AccuracyBySamples, ConfusionClass, ConfusionMatrix, Curve, DistancePoint,
    DistanceSeries, GraphNode, HedgeFigure, HedgeFigurePoint, LearningCurves, Message, MessageGraph,
    PrototypeMap, SampleGroup, ScoreFigure, TaskClass, TaskMap, TaskPrototypes,
};
pub use report::{
    AlikePair, Answer, Block, Card, ClassPictures, Fact, Picture, PictureGroup, PictureStrip, Report,
    Section, Verdict,
};
pub use table::{
    Better, Cell, Column, Mark, Row, Table, Value, to_csv, to_html, to_json, to_latex, to_markdown,
};
pub use test_page::{ClassRow, Comparison, ConfusedRow, LevelRow, SuspiciousLabel, TestPage};
pub use tsne::{TsneSettings, tsne};
pub use write::write_file;
