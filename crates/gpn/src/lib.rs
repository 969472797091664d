//! Few-shot classification that knows how classes are related: everything a person can do, as one call each.
//!
//! **In** come samples (images or embeddings, in files or as arrays in memory), a class graph, and requests: plain structs whose
//! fields have defaults. **Out** come values that serialise to a stable JSON form ([`Evaluation`], [`Prediction`], [`ClassEntry`],
//! [`Taught`]) and files that are complete or not there. Nothing is printed: long work tells a [`Watch`] about its progress,
//! and the same `Watch` stops it within a second. An [`Error`] says what happened, where and what to do; its
//! [`kind`](Error::kind) is what a front end maps to an HTTP status, an exception or an exit code.
//!
//! | room | what it does |
//! |---|---|
//! | `build` | [`build()`] makes a benchmark directory from what people have; [`Benchmark::from_source`] makes one in memory |
//! | `run` | [`Run`] starts, resumes, extends, completes and evaluates a training run in its directory |
//! | `distributed` | [`Run::lead`] and [`Follower`] train a run by several processes |
//! | `evaluation` | [`TestTasks`] are drawn from held-out classes; [`evaluate_model`] gives an [`Evaluation`] on them |
//! | `classifier` | [`Classifier`] puts a trained model to use: teach, forget, predict, explain, save; shared by threads |
//! | [`measure`] | how good answers to labelled samples are: accuracy, per class, confusion, in the class graph |
//! | `embed` | [`embed()`] writes tables of embeddings, by a frozen encoder or a trained model |
//! | `bulk` | [`predict_shard`] and [`embed_shard`]: millions of samples by many processes, from Parquet or lists to Parquet |
//! | `sample` | [`Sample`]: an image file, the bytes of one, or an embedding |
//! | [`experiment`] | tables, ablation and figures of the paper, from many runs |
//! | [`demo`] | the whole method on built-in data, with a page that shows it |
//! | `watch` | [`Watch`] and [`Event`]: progress, warnings, stopping |
//! | `error` | [`Error`] and its [`ErrorKind`] |
//! | [`output`] | what may be overwritten |
//!
//! The crates below are here under short names, so that one dependency is enough: [`data`], [`encode`], [`files`], [`model`],
//! [`taxonomy`], [`train`].
//! A few-shot method of one's own needs nothing else: implement [`model::methods::Method`] and register its
//! [`MethodKind`](model::methods::MethodKind), as `examples/own_method.rs` does.
//!
//! # The whole journey
//! ```
//! use gpn::{ArraySource, Benchmark, BuildConfig, Classifier, Config, Device, EvaluationRequest, IfTaught, NewClass};
//! use gpn::{Parents, PredictRequest, Run, Sample, StartRequest, Watch};
//! # use gpn::data::source::{Source, SyntheticSource};
//! # let drawn = SyntheticSource::new(gpn::data::synthetic::SyntheticConfig { per_leaf: 40, ..Default::default() });
//! # let size = drawn.image(0)?.width() as usize;
//! # let samples = drawn.samples().iter().enumerate();
//! # let pixels: Vec<u8> = samples.clone().flat_map(|(row, _)| drawn.image(row).unwrap().pixels().to_vec()).collect();
//! # let labels: Vec<&str> = samples.map(|(_, sample)| drawn.leaves()[sample.leaf as usize].id.as_str()).collect();
//! # let taxonomy = drawn.taxonomy().unwrap()?.taxonomy;
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! # let photo = |row: usize| {
//! #     let mut bytes = Vec::new();
//! #     let mut encoder = png::Encoder::new(&mut bytes, size as u32, size as u32);
//! #     encoder.set_color(png::ColorType::Rgb);
//! #     encoder.write_header()?.write_image_data(drawn.image(row).unwrap().pixels())?;
//! #     Ok::<_, png::EncodingError>(bytes)
//! # };
//!
//! // pixels: Vec<u8> of shape [N, size, size, 3]; labels: N ids of classes; taxonomy: the graph that these classes are in.
//! let source = ArraySource::images(&pixels[..], [labels.len(), size, size, 3], &labels)?;
//! let mut settings = BuildConfig { size: 32, ..BuildConfig::default() };
//! settings.assign.per_leaf = 4;
//! let (benchmark, _report) = Benchmark::from_source(&source, &taxonomy, &settings, &())?;
//!
//! // Train in a run directory, from which training can be resumed.
//! let (device, watch) = (Device::cpu(), Watch::default());
//! let config = Config::default().with_setting("train.episodes=12")?.with_setting("validation.tasks=0")?;
//! let mut run = Run::start(&folder.join("run"), benchmark, &StartRequest::new(&config, &device), &watch)?;
//! run.train(&watch)?;
//!
//! // Evaluate on classes that training has not seen.
//! let evaluation = run.evaluate(&EvaluationRequest { tasks: 10, ..EvaluationRequest::default() }, &watch)?;
//! println!("{} on {} tasks", evaluation.method, evaluation.tasks);
//!
//! // Teach a new class from two image files, ask about a third, keep the model.
//! let classifier = Classifier::new(run.model()?)?;
//! let samples = vec![Sample::image("1.png", photo(0)?), Sample::image("2.png", photo(1)?)];
//! let mine = NewClass { class: "mine".into(), parents: Parents::Unknown, samples };
//! classifier.teach(&[mine], IfTaught::Refuse, &watch)?;
//! for prediction in classifier.predict(&[Sample::image("3.png", photo(2)?)], &PredictRequest::default(), &watch)? {
//!     let best = &prediction?.classes[0];
//!     println!("{} {:.0} %", best.name, 100.0 * best.probability);
//! }
//! classifier.save(&folder.join("taught.safetensors"))?;
//! # assert_eq!(evaluation.per_task.len(), 10);
//! # assert!(Classifier::open(&folder.join("taught.safetensors"), &device)?.search("mine")?[0].samples == 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod bulk;
mod catalogue;
mod classifier;
pub mod demo;
mod distributed;
mod drawings;
mod embed;
mod encoder;
mod error;
mod evaluation;
pub mod experiment;
mod fit;
pub mod measure;
pub mod output;
mod pages;
mod run;
mod sample;
mod testing;
mod texts;
mod watch;

pub use build::{BuildRequest, build, build_synthetic};
pub use bulk::{Shard, ShardDone, ShardRequest, embed_shard, embed_shard_by, encode_shard, predict_shard};
pub use catalogue::{CatalogueAccuracy, CatalogueEvaluation, evaluate_all};
pub use classifier::{
    Among, Candidates, ClassEntry, ClassKind, ClassName, Classifier, IfTaught, Level, Likely, NewClass,
    Parents, PredictRequest, Prediction, Predictor, Ranked, Relation, Share, Strange, Sure, Taught,
    classes_at,
};
pub use distributed::{FollowRequest, Follower, call_off};
pub use embed::{EmbedRequest, Embedded, embed};
pub use encoder::SampleEncoder;
pub use error::{Error, Result};
pub use evaluation::{Evaluation, EvaluationRequest, TestTasks, evaluate_embeddings, evaluate_model};
pub use fit::{By, FitReport, FitRequest, Fitted, HeldOutAnswer, NewClassAccuracy, Recipe, fit, fit_samples};
pub use gpn_data::benchmark::{Benchmark, BuildConfig, Check};
pub use gpn_data::source::ArraySource;
pub use gpn_files::ErrorKind;
pub use gpn_model::{Device, InputShape};
pub use gpn_train::{Config, Group, StopHandle, TrainedModel, mpi_group};
pub use pages::{fit_page, test_page};
pub use run::{
    ResumeRequest, Run, StartRequest, Trained, TrainingReport, newest_model, reached, time_shares,
};
pub use sample::Sample;
pub use testing::{Tested, test};
pub use texts::ClassTexts;
pub use watch::{Event, Watch};
pub use {
    gpn_data as data, gpn_encode as encode, gpn_files as files, gpn_model as model, gpn_report as report,
    gpn_taxonomy as taxonomy, gpn_train as train,
};
