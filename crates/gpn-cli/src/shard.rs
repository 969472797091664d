//! What `gpn predict` and `gpn embed` share where many processes divide the work.

use std::path::{Path, PathBuf};

use clap::Args;
use gpn::{Shard, ShardDone, ShardRequest};

use crate::terminal::{self, counted};

#[derive(Args)]
pub(crate) struct ShardArguments {
    /// Do part I of N only, counted from 0: one process for each, on any machine.
    #[arg(long, value_name = "I/N", requires = "out")]
    pub(crate) shard: Option<Shard>,
    /// Write a Parquet table into this folder, one file for each shard; a finished shard is not done again.
    #[arg(long, value_name = "FOLDER", conflicts_with = "format")]
    pub(crate) out: Option<PathBuf>,
    /// Replace a table that was made from something else.
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
}

impl ShardArguments {
    pub(crate) fn request<'a>(&self, inputs: &'a [PathBuf], out: &'a Path) -> ShardRequest<'a> {
        ShardRequest { inputs, shard: self.shard.unwrap_or(Shard::WHOLE), out, replace: self.force }
    }
}

/// Says what became of a shard.
pub(crate) fn told(done: &ShardDone, as_json: bool) -> anyhow::Result<()> {
    if done.failed > 0 {
        let first =
            done.first_error.as_ref().map_or_else(String::new, |error| format!(", the first: {error}"));
        let rows = counted(done.failed, "row", "rows");
        terminal::warn(&format!("{rows} could not be read; the column `error` says why{first}"));
    }
    if as_json {
        return terminal::print_json(&format!("{:#}\n", serde_json::to_value(done)?));
    }
    let before = if done.was_done { ", done before" } else { "" };
    terminal::print_text(&format!("{}: {}{before}\n", done.file.display(), counted(done.rows, "row", "rows")))
}
