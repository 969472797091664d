//! A server: its models, its routes, its life.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use gpn::Device;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::error::ServeError;
use crate::http::metrics::Metrics;
use crate::http::problem::Problem;
use crate::http::{connections, guard};
use crate::model::Model;
use crate::settings::{Settings, check_name};
use crate::{api, page, v2};

/// Everything that handlers share.
pub(crate) struct App {
    pub(crate) settings: Settings,
    pub(crate) metrics: Arc<Metrics>,
    /// Places for requests at work.
    pub(crate) places: Semaphore,
    /// Memory for bodies, in units of 1 KiB.
    pub(crate) memory: Arc<Semaphore>,
    /// Whether new work is welcome: not before all models are there, and not while the server ends.
    pub(crate) ready: AtomicBool,
    device: Device,
    models: RwLock<BTreeMap<String, Arc<Model>>>,
}

impl App {
    /// A model by name, or the first one.
    pub(crate) fn model(&self, name: Option<&str>) -> Result<Arc<Model>, Problem> {
        let name = name.unwrap_or(&self.settings.models[0].0);
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        models.get(name).cloned().ok_or_else(|| {
            let names: Vec<&str> = models.keys().map(String::as_str).collect();
            let names = if names.is_empty() { "none".into() } else { names.join(", ") };
            Problem::not_found(&format!("model `{}` is not loaded; there are: {names}", shown(name)))
        })
    }

    /// All models, by name.
    pub(crate) fn models(&self) -> Vec<Arc<Model>> {
        self.models.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The names of the model files that may be loaded, with their files.
    pub(crate) fn loadable(&self) -> Vec<(String, std::path::PathBuf)> {
        let mut found: Vec<_> = self.settings.models.clone();
        let entries = self.settings.folder.iter().filter_map(|folder| folder.read_dir().ok()).flatten();
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            let is_model = path.extension().is_some_and(|extension| extension == "safetensors");
            if is_model && check_name(&name).is_ok() && found.iter().all(|(other, _)| *other != name) {
                found.push((name, path));
            }
        }
        found.sort();
        found
    }

    /// Loads a model that may be loaded. A name of a request is compared with names that are there, and never becomes a path.
    pub(crate) fn load(&self, name: &str) -> Result<Arc<Model>, Problem> {
        let found = self.loadable().into_iter().find(|(other, _)| other == name);
        let (name, path) = found.ok_or_else(|| {
            Problem::not_found(&format!("there is no model file `{}` that may be loaded", shown(name)))
        })?;
        if self.model(Some(&name)).is_ok() {
            return Err(Problem::conflict(&format!("model `{name}` is loaded already")));
        }
        let model = self.open(&name, &path)?;
        self.models.write().unwrap_or_else(PoisonError::into_inner).insert(name, Arc::clone(&model));
        Ok(model)
    }

    fn open(&self, name: &str, path: &Path) -> Result<Arc<Model>, ServeError> {
        let state = self.settings.state.as_deref();
        let model = Model::open(name, path, state, &self.device, &self.settings.limits, &self.metrics)?;
        Ok(Arc::new(model))
    }

    /// Drops a model; its files stay.
    pub(crate) fn drop_model(&self, name: &str) -> Result<(), Problem> {
        let model = self.model(Some(name))?;
        self.models.write().unwrap_or_else(PoisonError::into_inner).remove(&model.name);
        Ok(())
    }
}

/// A name of a request in a message.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

/// A server with its models, ready to run.
pub struct Server {
    app: Arc<App>,
    tls: Option<tokio_rustls::TlsAcceptor>,
}

impl Server {
    /// Checks the settings and opens all models with their databases.
    pub fn open(settings: Settings) -> Result<Self, ServeError> {
        settings.check()?;
        let tls = settings.tls.as_ref().map(connections::acceptor).transpose()?;
        if let Some(folder) = &settings.state {
            std::fs::create_dir_all(folder)
                .map_err(|source| ServeError::System { action: "make the folder for databases", source })?;
        }
        let app = App {
            metrics: Arc::default(),
            places: Semaphore::new(settings.limits.requests),
            memory: Arc::new(Semaphore::new(settings.limits.bodies / 1024)),
            ready: AtomicBool::new(false),
            device: device(&settings)?,
            models: RwLock::default(),
            settings,
        };
        for (name, path) in &app.settings.models {
            let model = app.open(name, path)?;
            app.models.write().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), model);
        }
        Ok(Self { app: Arc::new(app), tls })
    }

    /// Serves until the process is told to stop (SIGTERM, Ctrl-C). `on_listen` is told the address once connections are
    /// accepted.
    pub fn run(self, on_listen: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
        self.run_until(on_listen, told_to_stop())
    }

    /// Serves until `stop` is done.
    pub fn run_until(
        self,
        on_listen: impl FnOnce(SocketAddr),
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|source| ServeError::System { action: "start threads", source })?;
        runtime.block_on(async {
            let address = self.app.settings.address;
            let failed = |source| ServeError::Listen { address, source };
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            let address = listener.local_addr().map_err(failed)?;
            let app = Arc::clone(&self.app);
            connections::raise_file_limit();
            app.ready.store(true, Ordering::Relaxed);
            on_listen(address);
            let stop = async {
                stop.await;
                app.ready.store(false, Ordering::Relaxed);
            };
            let (limits, metrics) = (&self.app.settings.limits, Arc::clone(&self.app.metrics));
            connections::serve(listener, self.tls, router(&self.app), limits, metrics, stop).await;
            Ok::<_, ServeError>(())
        })?;
        // A change that is being committed is waited for; what else goes on in the background ends with the process.
        runtime.shutdown_timeout(self.app.settings.limits.shutdown);
        Ok(())
    }
}

/// Writes a plain model file: the model with everything its database has. Nobody else may serve the model meanwhile.
pub fn export(settings: &Settings, out: &Path) -> Result<(), ServeError> {
    settings.check()?;
    gpn::output::may_write(out, false)?;
    let (name, path) = &settings.models[0];
    Model::export(name, path, settings.state.as_deref(), &device(settings)?, out)
}

fn device(settings: &Settings) -> Result<Device, ServeError> {
    let opened = settings.device.parse().and_then(Device::open);
    opened.map_err(|error| ServeError::Model(error.into()))
}

async fn told_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// All routes with everything that stands before them.
fn router(app: &Arc<App>) -> Router {
    let state = || Arc::clone(app);
    let read = from_fn_with_state(state(), guard::may_read);
    let write = from_fn_with_state(state(), guard::may_write);
    let read_metrics = read.clone();
    let (api_read, api_write) = api::of_a_model();
    let api = api_read.0.route_layer(read.clone()).merge(api_write.0.route_layer(write.clone()));
    let (all_read, all_write) = api::of_the_server();
    let work = Router::new()
        .nest("/api", api.clone())
        .nest("/api/models/{model}", api)
        .nest("/api", all_read.0.route_layer(read.clone()).merge(all_write.0.route_layer(write)))
        .nest("/v2", v2::routes().route_layer(read))
        .layer(from_fn_with_state(state(), guard::bounded));
    let mut router = Router::new()
        .merge(work)
        .merge(v2::health())
        .merge(api::metrics().route_layer(read_metrics))
        .merge(api::open())
        .merge(page::routes())
        .fallback(page::fallback)
        .method_not_allowed_fallback(not_allowed)
        .layer(from_fn_with_state(state(), guard::same_origin));
    if !app.settings.origins.is_empty() {
        router = router.layer(cors(&app.settings.origins));
    }
    router
        .layer(CatchPanicLayer::custom(|_| -> Response {
            Problem::bug("a fault of the server; please report what you asked").into_response()
        }))
        .layer(from_fn_with_state(state(), guard::observed))
        .with_state(state())
}

async fn not_allowed() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "bad_input", "the address does not take this method")
}

/// Pages of these origins may use the API. They send tokens in headers; cookies there are none.
fn cors(origins: &[String]) -> CorsLayer {
    let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| origin.parse().ok()).collect();
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            HeaderName::from_static("inference-header-content-length"),
        ])
}
