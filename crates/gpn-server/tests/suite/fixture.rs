//! A small model of images and servers of it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread::JoinHandle;

use gpn::data::source::{Source as _, SyntheticSource};
use gpn::data::synthetic::SyntheticConfig;
use gpn::{Benchmark, BuildConfig, ClassKind, Classifier, Config, Device, Run, StartRequest, Watch};
use gpn_server::{ServeError, Server, Settings};
use tokio::sync::oneshot;

fn drawn() -> SyntheticSource {
    SyntheticSource::new(SyntheticConfig { per_leaf: 40, ..SyntheticConfig::default() })
}

/// A model of images that was trained for a moment, with classes held out; made once.
fn model() -> &'static Path {
    static MODEL: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let made = MODEL.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let source = drawn();
        let taxonomy = source.taxonomy().unwrap().unwrap().taxonomy;
        let mut settings = BuildConfig { size: 32, ..BuildConfig::default() };
        settings.assign.per_leaf = 4;
        let (benchmark, _) = Benchmark::from_source(&source, &taxonomy, &settings, &()).unwrap();
        let config = Config::default().with_setting("train.episodes=12").unwrap();
        let config = config.with_setting("validation.tasks=0").unwrap();
        let (device, watch) = (Device::cpu(), Watch::default());
        let request = StartRequest::new(&config, &device);
        let mut run = Run::start(&folder.path().join("run"), benchmark, &request, &watch).unwrap();
        run.train(&watch).unwrap();
        let path = folder.path().join("model.safetensors");
        Classifier::new(run.model().unwrap()).unwrap().save(&path).unwrap();
        (folder, path)
    });
    &made.1
}

/// A folder with a copy of the model, `model.safetensors`.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(model(), folder.path().join("model.safetensors")).unwrap();
    folder
}

/// The model, as the library opens it.
pub(crate) fn classifier() -> Classifier {
    Classifier::open(model(), &Device::cpu()).unwrap()
}

/// Ids of classes that the model knows the place of, but no sample.
pub(crate) fn untaught(count: usize) -> Vec<String> {
    let found = classifier().classes().into_iter().filter(|class| class.kind == ClassKind::Untaught);
    let found: Vec<String> = found.map(|class| class.id).take(count).collect();
    assert_eq!(found.len(), count, "the model holds out too few classes");
    found
}

/// An image file, the same for the same number.
pub(crate) fn image(number: usize) -> Vec<u8> {
    static IMAGES: OnceLock<SyntheticSource> = OnceLock::new();
    let source = IMAGES.get_or_init(drawn);
    let image = source.image(number * 13 % source.samples().len()).unwrap();
    bmp(image.width(), image.height(), image.pixels())
}

/// An uncompressed image file.
pub(crate) fn bmp(width: u32, height: u32, pixels: &[u8]) -> Vec<u8> {
    let row = (3 * width as usize).next_multiple_of(4);
    let mut file = b"BM".to_vec();
    for value in [54 + row as u32 * height, 0, 54, 40, width, height, 1 | 24 << 16, 0, 0, 0, 0, 0, 0] {
        file.extend(value.to_le_bytes());
    }
    for line in pixels.chunks_exact(3 * width as usize).rev() {
        let start = file.len();
        file.extend(line.chunks_exact(3).flat_map(|rgb| [rgb[2], rgb[1], rgb[0]]));
        file.resize(start + row, 0);
    }
    file
}

/// Settings for the model in a folder, on a port of the system's choice.
pub(crate) fn settings(folder: &Path) -> Settings {
    let mut settings = Settings::new([("birds".to_owned(), folder.join("model.safetensors"))]);
    settings.address = "127.0.0.1:0".parse().unwrap();
    settings
}

/// A server that runs until this is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

/// Starts a server.
pub(crate) fn start(settings: Settings) -> Running {
    let server = Server::open(settings).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let stop = async move { drop(stopped.await) };
        server.run_until(|address| tell.send(address).unwrap(), stop)
    });
    Running { address: told.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
}
