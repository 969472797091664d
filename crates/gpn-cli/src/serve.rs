//! `gpn serve`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use gpn_server::{Access, Server, Settings, Tls, Tokens};

use crate::args::at_least_one;
use crate::terminal;

const HELP: &str = "The API is at /api, its description at /api/docs; the Open Inference Protocol is at /v2, health at /healthz and \
/readyz, metrics at /metrics. What is taught is kept in MODEL.redb beside the model, which is never changed itself. Tokens also \
come from the environment: GPN_READ_TOKEN, GPN_WRITE_TOKEN.";

#[derive(Args)]
#[command(after_help = HELP)]
pub(crate) struct ServeArguments {
    /// Model files or run directories, as FILE or NAME=FILE; the first is the one that addresses without a name mean.
    #[arg(required = true, value_name = "[NAME=]MODEL")]
    models: Vec<String>,
    /// Where to listen. Any other address than loopback needs a token.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    addr: SocketAddr,
    /// Write a plain model file of the first model with everything it was taught, and serve nothing.
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Keep databases in this folder instead of beside the models.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Model files in this folder may be loaded by name over the API.
    #[arg(long, value_name = "DIR")]
    models_dir: Option<PathBuf>,
    /// Keep the images that classes are taught with.
    #[arg(long)]
    keep_images: bool,
    /// A file of tokens that may read: one a line, or NAME TOKEN.
    #[arg(long, value_name = "FILE")]
    read_token_file: Vec<PathBuf>,
    /// A file of tokens that may read and write: one a line, or NAME TOKEN.
    #[arg(long, value_name = "FILE")]
    write_token_file: Vec<PathBuf>,
    /// Certificates for https, PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key for https, PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// An origin whose pages may use the API from a browser; may be given several times.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Most bytes of a request's body.
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20, value_parser = at_least_one)]
    max_body: u64,
    /// Most bytes of all bodies that are worked on at once.
    #[arg(long, value_name = "BYTES", default_value_t = 512 << 20, value_parser = at_least_one)]
    max_memory: u64,
    /// Most images or embeddings of a request.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = at_least_one)]
    max_samples: u64,
    /// Most pixels of an image.
    #[arg(long, value_name = "N", default_value_t = 40_000_000, value_parser = at_least_one)]
    max_pixels: u64,
    /// Most requests at work at once.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = at_least_one)]
    max_requests: u64,
    /// Most open connections.
    #[arg(long, value_name = "N", default_value_t = 8192, value_parser = at_least_one)]
    max_connections: u64,
    /// Longest time for the head of a request to arrive.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = at_least_one)]
    head_timeout: u64,
    /// Longest time for the body of a request to arrive.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = at_least_one)]
    body_timeout: u64,
    /// Longest time for an answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = at_least_one)]
    timeout: u64,
    /// Longest time for requests under way when the server is told to stop.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = at_least_one)]
    shutdown_timeout: u64,
    /// Most samples that are embedded at once.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_one)]
    batch: u64,
    /// How long a request may wait for others to be embedded with.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 2)]
    gather: u64,
    /// Where to compute: cpu, or cuda, rocm, wgpu where built in.
    #[arg(long, default_value = "cpu")]
    device: String,
}

pub(crate) fn run(arguments: &ServeArguments) -> anyhow::Result<()> {
    let settings = settings(arguments)?;
    if let Some(file) = &arguments.export {
        return Ok(gpn_server::export(&settings, file)?);
    }
    if !settings.address.ip().is_loopback() && settings.tls.is_none() {
        terminal::warn(
            "tokens and images travel in the clear; give --tls-cert and --tls-key, or put a proxy with TLS before it",
        );
    }
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let server = Server::open(settings)?;
    server.run(|address| terminal::say(&format!("serving on {scheme}://{address}/")))?;
    terminal::say("stopped");
    Ok(())
}

fn settings(arguments: &ServeArguments) -> anyhow::Result<Settings> {
    let mut settings = Settings::new(arguments.models.iter().map(|model| named(model)));
    settings.address = arguments.addr;
    settings.state.clone_from(&arguments.state);
    settings.folder.clone_from(&arguments.models_dir);
    settings.keep_images = arguments.keep_images;
    settings.tokens = tokens(arguments)?;
    settings.origins.clone_from(&arguments.allow_origin);
    settings.device.clone_from(&arguments.device);
    if let (Some(certificates), Some(key)) = (&arguments.tls_cert, &arguments.tls_key) {
        settings.tls = Some(Tls { certificates: certificates.clone(), key: key.clone() });
    }
    let limits = &mut settings.limits;
    limits.body = arguments.max_body as usize;
    limits.bodies = arguments.max_memory.max(arguments.max_body) as usize;
    limits.samples = arguments.max_samples as usize;
    limits.pixels = arguments.max_pixels;
    limits.requests = arguments.max_requests as usize;
    limits.connections = arguments.max_connections as usize;
    limits.head_time = Duration::from_secs(arguments.head_timeout);
    limits.body_time = Duration::from_secs(arguments.body_timeout);
    limits.answer_time = Duration::from_secs(arguments.timeout);
    limits.shutdown = Duration::from_secs(arguments.shutdown_timeout);
    limits.batch = arguments.batch as usize;
    limits.gather = Duration::from_millis(arguments.gather);
    Ok(settings)
}

/// `NAME=FILE`, or a file whose name says how the model is called: that of its folder, where it is the model of a run.
fn named(text: &str) -> (String, PathBuf) {
    if let Some((name, path)) = text.split_once('=')
        && !name.contains(['/', '\\'])
    {
        return (name.to_owned(), path.into());
    }
    let path = Path::new(text);
    let of = |path: &Path| path.file_stem().and_then(|name| name.to_str()).map(str::to_owned);
    let name = match of(path).as_deref() {
        Some("model" | "last") => {
            path.parent().and_then(of).filter(|name| !name.is_empty()).or_else(|| of(path))
        }
        _ => of(path),
    };
    // What else may be in the name of a file has no place in an address.
    let plain = |name: String| -> String {
        name.chars()
            .map(|letter| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '-' })
            .collect()
    };
    (name.map_or_else(|| "model".into(), plain), path.to_owned())
}

fn tokens(arguments: &ServeArguments) -> anyhow::Result<Tokens> {
    let mut tokens = Tokens::none();
    for (files, variable, access) in [
        (&arguments.read_token_file, "GPN_READ_TOKEN", Access::Read),
        (&arguments.write_token_file, "GPN_WRITE_TOKEN", Access::Write),
    ] {
        for file in files {
            tokens.add_file(file, access)?;
        }
        if let Ok(token) = std::env::var(variable)
            && !token.is_empty()
        {
            tokens.add(&token, access).map_err(|reason| anyhow::anyhow!("{variable}: {reason}"))?;
        }
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_have_names() {
        for (text, name, path) in [
            ("birds.safetensors", "birds", "birds.safetensors"),
            ("runs/birds", "birds", "runs/birds"),
            ("runs/birds/model.safetensors", "birds", "runs/birds/model.safetensors"),
            ("model.safetensors", "model", "model.safetensors"),
            ("b=runs/birds", "b", "runs/birds"),
            ("a b.safetensors", "a-b", "a b.safetensors"),
        ] {
            assert_eq!(named(text), (name.to_owned(), path.into()), "{text}");
        }
    }
}
