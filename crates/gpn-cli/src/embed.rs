//! `gpn embed`.

use std::path::PathBuf;

use clap::Args;
use gpn::{EmbedRequest, Shard, ShardRequest};

use crate::encoder::EncoderArguments;
use crate::shard;
use crate::terminal::{self, counted, first_few, grouped};
use crate::watching::watched;

#[derive(Args)]
pub(crate) struct EmbedArguments {
    /// An encoder (an .onnx file, or the folder of a text encoder), or a model of gpn.
    encoder: PathBuf,
    /// Photos, or folders and archives of them; for a text encoder, files with one text a line, or CSV files.
    #[arg(required = true, value_name = "FILES")]
    inputs: Vec<PathBuf>,
    /// The file to write: .npy, .npz or .parquet; with --shard, the folder for the files of all shards.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Do part I of N only, counted from 0: one process for each, on any machine. Reads Parquet tables, lists of files (.txt), images and
    /// folders; writes one Parquet file into the folder --out. A finished shard is not done again.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// The column of a CSV file that holds the texts.
    #[arg(long, value_name = "NAME", default_value = "text", conflicts_with = "shard")]
    text_column: String,
    /// Replace files that are there already.
    #[arg(long)]
    force: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: EncoderArguments,
}

pub(crate) fn run(arguments: &EmbedArguments) -> anyhow::Result<()> {
    if let Some(shard) = arguments.shard {
        return run_shard(arguments, shard);
    }
    let cache = arguments.settings.cache();
    let request = EmbedRequest {
        encoder: &arguments.encoder,
        config: arguments.settings.config(),
        cache: cache.as_ref(),
        inputs: &arguments.inputs,
        text_column: &arguments.text_column,
        out: &arguments.out,
        replace: arguments.force,
    };
    let embedded = watched(|watch| gpn::embed(&request, watch))??;
    if !embedded.failed.is_empty() {
        let (count, named) = (embedded.failed.len(), first_few(embedded.failed.iter()));
        terminal::warn(&format!("{} left out: {named}", counted(count, "sample is", "samples are")));
    }
    if arguments.json {
        return terminal::print_json(&format!("{:#}\n", serde_json::to_value(&embedded)?));
    }
    let files: Vec<String> = embedded.files.iter().map(|file| file.display().to_string()).collect();
    let cached = match embedded.from_cache {
        0 => String::new(),
        count => format!(", {} from the cache", grouped(count)),
    };
    let classes = if embedded.labelled { " with classes" } else { "" };
    terminal::print_text(&format!(
        "{}: {} of {} values{classes}{cached}\n",
        files.join(", "),
        counted(embedded.embeddings, "embedding", "embeddings"),
        embedded.dim
    ))
}

fn run_shard(arguments: &EmbedArguments, shard: Shard) -> anyhow::Result<()> {
    let EmbedArguments { encoder, inputs, out, settings, .. } = arguments;
    let request = ShardRequest { inputs, shard, out, replace: arguments.force };
    let (config, cache) = (settings.config(), settings.cache());
    let done = watched(|watch| gpn::embed_shard_by(encoder, &config, cache, &request, watch))??;
    shard::told(&done, arguments.json)
}
