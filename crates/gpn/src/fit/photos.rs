//! Fitting to photos: by a frozen encoder, or by a small network that is trained on them.

use std::fs;

use gpn_data::benchmark::{Benchmark, BuildConfig, Part};
use gpn_data::source::{Leaf, SampleKind, Source};
use gpn_encode::EncoderConfig;
use gpn_model::Device;
use gpn_taxonomy::{Node, Taxonomy, TaxonomyBuilder};
use gpn_train::{Config, Embeddings};

use super::classes::Classes;
use super::rows::PARTS;
use super::unseen::{Row, measure_unseen};
use super::{FitRequest, Fitted, FittedOn, fit, fit_embedded};
use crate::encoder::SampleEncoder;
use crate::error::{Error, Result};
use crate::run::{Run, StartRequest};
use crate::watch::Watch;

/// What turns photos into embeddings.
pub enum By<'a> {
    /// A frozen encoder, with the settings it was opened with.
    Encoder(&'a SampleEncoder, &'a EncoderConfig),
    /// A network trained on the photos for so many steps.
    Training {
        /// Steps.
        episodes: u64,
    },
}

/// [`fit`] for samples of any kind: embeddings as they are, photos by what is given for them.
pub fn fit_samples(
    source: &dyn Source,
    taxonomy: Option<&Taxonomy>,
    by: &By<'_>,
    request: &FitRequest,
    watch: &Watch<'_>,
) -> Result<Fitted> {
    for note in source.notes() {
        watch.warn(&note.to_string());
    }
    if let SampleKind::Embeddings { .. } = source.kind() {
        if let By::Encoder(..) = by {
            let reason = "it holds embeddings already, which need no encoder; leave out the encoder";
            return Err(Error::input(source.describe(), reason));
        }
        return fit(source, taxonomy, request, watch);
    }
    let own = match taxonomy {
        Some(_) => None,
        None => source.taxonomy().transpose()?,
    };
    let taxonomy = taxonomy.or(own.as_ref().map(|own| &own.taxonomy));
    match by {
        By::Encoder(encoder, config) => by_encoder(source, taxonomy, encoder, config, request, watch),
        By::Training { episodes } => by_training(source, taxonomy, *episodes, request, watch),
    }
}

fn by_encoder(
    source: &dyn Source,
    taxonomy: Option<&Taxonomy>,
    encoder: &SampleEncoder,
    config: &EncoderConfig,
    request: &FitRequest,
    watch: &Watch<'_>,
) -> Result<Fitted> {
    watch.step("encoding photos");
    let encoded = encoder.encode_images(source, watch)?;
    let (mut values, mut rows, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for (row, embedding) in encoded.into_iter().enumerate() {
        match embedding {
            Ok(embedding) => {
                values.extend(embedding);
                rows.push(row);
            }
            Err(error) => failed.push(error.to_string()),
        }
    }
    tell_failures(&failed, watch);
    // invariant: an encoder's record is plain data, which always serialises.
    let record = serde_json::to_value(encoder.record(config)).unwrap();
    let labels: Vec<Node> = rows.iter().map(|&row| source.samples()[row].leaf).collect();
    let (leaves, labels) = with_samples(source, &labels, watch)?;
    let embeddings = (values, encoder.id().dim);
    let mut fitted =
        fit_embedded(embeddings, labels, &leaves, taxonomy, request, FittedOn::Encoder(record), watch)?;
    fitted.report.name_rows(&rows);
    Ok(fitted)
}

/// The leaves that have samples left, and the labels among them.
fn with_samples(source: &dyn Source, labels: &[Node], watch: &Watch<'_>) -> Result<(Vec<Leaf>, Vec<Node>)> {
    let (leaves, samples) = (source.leaves(), source.describe());
    let mut number = vec![None; leaves.len()];
    for &label in labels {
        number[label as usize] = Some(0);
    }
    let mut kept = Vec::new();
    for (leaf, number) in leaves.iter().zip(&mut number) {
        if let Some(number) = number {
            *number = kept.len() as Node;
            kept.push(leaf.clone());
        } else {
            watch.warn(&format!("class `{}`: none of its samples can be read; it is left out", leaf.id));
        }
    }
    if kept.is_empty() {
        return Err(Error::input(samples, "none of its samples can be read"));
    }
    let labels = labels.iter().filter_map(|&label| number[label as usize]).collect();
    Ok((kept, labels))
}

fn tell_failures(failed: &[String], watch: &Watch<'_>) {
    match failed {
        [] => {}
        [one] => watch.warn(&format!("1 sample is left out: {one}")),
        [first, ..] => watch.warn(&format!("{} samples are left out, the first: {first}", failed.len())),
    }
}

/// Trains a small network to tell the leaves apart, then fits to its embeddings of all photos.
fn by_training(
    source: &dyn Source,
    taxonomy: Option<&Taxonomy>,
    episodes: u64,
    request: &FitRequest,
    watch: &Watch<'_>,
) -> Result<Fitted> {
    watch.note("no encoder is given, so a small network is trained on these photos; a frozen encoder that has seen millions of photos would tell most of them apart far better");
    let folder = tempfile::tempdir().map_err(|source| Error::Io {
        action: "make a folder for the training run in",
        path: std::env::temp_dir(),
        source,
    })?;
    // All classes below one root, each with all its samples.
    let mut flat = TaxonomyBuilder::new();
    let top = flat.add_class("the root of all classes");
    for leaf in source.leaves() {
        let node = flat.add_class(&leaf.id);
        flat.add_edge(top, node, None);
    }
    let flat = flat.build()?.taxonomy;
    let rows = folder.path().join("assignments.csv");
    let mut table = csv::Writer::from_writer(Vec::new());
    // invariant: writing into memory does not fail.
    table.write_record(["class", "sample", "part"]).unwrap();
    let mut of_class = vec![0; source.leaves().len()];
    for (row, sample) in source.samples().iter().enumerate() {
        let id = &source.leaves()[sample.leaf as usize].id;
        // One of five photos measures what the network makes of photos that it has not seen.
        let place = &mut of_class[sample.leaf as usize];
        *place += 1;
        let part = if *place % PARTS == 0 { "val" } else { "train" };
        table.write_record([id.as_str(), &row.to_string(), part]).unwrap();
    }
    let bytes = table.into_inner().unwrap();
    fs::write(&rows, bytes).map_err(|source| Error::Io { action: "write", path: rows.clone(), source })?;
    let mut build = BuildConfig { size: 64, assignments: Some(rows), ..BuildConfig::default() };
    build.split.train_share = 1.0;
    build.assign.val_share = 0.0;
    watch.step("reading photos");
    let stored = |done, total| watch.tell(&crate::watch::Event::Stored { done, total });
    let (benchmark, report) = Benchmark::from_source(source, &flat, &build, &stored)?;
    tell_failures(&report.broken, watch);
    let leaf_of: std::collections::HashMap<&str, Node> =
        source.leaves().iter().zip(0..).map(|(leaf, number)| (leaf.id.as_str(), number)).collect();
    let row_of: std::collections::HashMap<&str, usize> =
        source.samples().iter().enumerate().map(|(row, sample)| (sample.file.as_str(), row)).collect();
    let stored = benchmark.sample_rows()?;
    // Sample, class and row of the source, and whether the network is trained on it.
    let mut photos = Vec::new();
    for (row, class) in benchmark.classes().iter().enumerate() {
        let Some(&leaf) = leaf_of.get(class.id.as_str()) else { continue };
        for (part, is_seen) in [(Part::Train, true), (Part::Val, false)] {
            for &sample in benchmark.samples(row, part) {
                let file = stored[sample as usize].file.as_str();
                photos.push((sample, leaf, row_of.get(file).copied().unwrap_or(usize::MAX), is_seen));
            }
        }
    }
    let mut seen_of = vec![0; source.leaves().len()];
    for &(_, leaf, _, is_seen) in &photos {
        seen_of[leaf as usize] += usize::from(is_seen);
    }
    // A task needs a sample of each class to learn from and another to ask for.
    let able = seen_of.iter().filter(|&&seen| seen >= 2).count();
    if able < 2 {
        let reason = "too few photos to train a network on: two classes with two photos each are the least; an encoder needs no training";
        return Err(Error::input(source.describe(), reason));
    }
    let config = Config::default();
    let way = config.task.way.min(able);
    let config = config
        .with_setting(&format!("task.way={way}"))?
        .with_setting("train.method=prior")?
        .with_setting("validation.tasks=0")?
        .with_setting(&format!("train.episodes={episodes}"))?
        .with_setting(&format!("train.seed={}", request.seed))?;
    let device = Device::cpu();
    watch.step("training a network on the photos");
    let start = StartRequest::new(&config, &device);
    let mut run = Run::start(&folder.path().join("run"), benchmark, &start, watch)?;
    run.train(watch)?;
    let model = run.model()?;
    let store = run.benchmark().store();
    let samples: Vec<u32> = photos.iter().map(|photo| photo.0).collect();
    let labels: Vec<Node> = photos.iter().map(|photo| photo.1).collect();
    let embedded = Embeddings::of_samples(&model.network.embedder, store, samples.clone(), watch.stop())?;
    let values: Vec<f32> = samples.iter().flat_map(|&sample| embedded.of(sample)).copied().collect();
    let dim = model.network.embedder.embedding_len();
    let (leaves, labels) = with_samples(source, &labels, watch)?;
    let (mut seen, mut unseen) = (Vec::new(), Vec::new());
    for ((&(_, _, row, is_seen), values), &label) in photos.iter().zip(values.chunks_exact(dim)).zip(&labels)
    {
        if is_seen { &mut seen } else { &mut unseen }.push(Row { values, label, row });
    }
    let base = FittedOn::Network(Box::new(model));
    let mut fitted =
        fit_embedded((values.clone(), dim), labels.clone(), &leaves, taxonomy, request, base, watch)?;
    let classes = Classes::new(&leaves, taxonomy, &Watch::default())?;
    measure_unseen(&mut fitted.report, &seen, &unseen, &classes, request, &Watch::default())?;
    Ok(fitted)
}
