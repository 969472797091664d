//! Trained models over HTTP: teach, predict, explain, undo; durable and safe by default.
//!
//! **In** come [`Settings`]: model files by name, an address, limits, tokens. **Out** comes a server that answers under `/api`
//! (JSON, described by OpenAPI 3.1 at `/api/openapi.json`), under `/v2` (Open Inference Protocol), and serves a page. The crate
//! decides how requests are read, guarded, gathered and kept; what an answer is, the crate `gpn` decides, whose values are
//! passed on as they serialise.
//!
//! | room | what it does |
//! |---|---|
//! | `settings`, `limits`, `tokens` | what a server is started with |
//! | `http/` | connections, bodies, guards, errors as problem+json, metrics |
//! | `model/` | a served model: its versions, its database, search, and the gathering of requests into batches |
//! | `api/` | one file for each endpoint |
//! | `v2/` | the Open Inference Protocol |
//! | `page` | the built-in page |
//!
//! # What is kept
//! A model file is never written. Beside it lies a database (`MODEL.redb`) with every change and every taught sample. A change is
//! made on a copy of the current version, committed to the disk, and only then swapped in and answered: what was acknowledged
//! is there after a crash, what was not is there as a whole or not at all. Readers take the version that is current when they
//! arrive and never wait.
//!
//! ```no_run
//! use gpn_server::{Server, Settings};
//!
//! let settings = Settings::new([("birds".to_owned(), "birds.safetensors".into())]);
//! let server = Server::open(settings)?;
//! server.run(|address| println!("listening on {address}"))?;
//! # Ok::<(), gpn_server::ServeError>(())
//! ```

mod api;
mod app;
mod clock;
mod error;
mod http;
mod limits;
mod model;
mod page;
mod settings;
mod tokens;
mod v2;

pub use app::{Server, export};
pub use error::ServeError;
pub use limits::Limits;
pub use settings::{Settings, Tls};
pub use tokens::{Access, Tokens};

/// The OpenAPI document, as `/api/openapi.json` serves it.
pub fn openapi() -> String {
    api::openapi::document()
}
