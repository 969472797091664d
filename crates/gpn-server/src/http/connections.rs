//! The accept loop: TLS, time for heads, and an orderly end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::metrics::Metrics;
use crate::error::ServeError;
use crate::limits::Limits;
use crate::settings::Tls;

/// Bytes of the head of a request: more is 431.
const HEAD: usize = 32 << 10;
/// Headers of a request: more is 431.
const HEADERS: usize = 100;
/// Pause after an error of the system, such as no room for another connection.
const PAUSE: Duration = Duration::from_millis(50);

/// Reads certificate and key.
pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, ServeError> {
    let wrong = |path: &std::path::Path, reason: &dyn std::fmt::Display| {
        ServeError::Settings(format!("{}: {reason}", path.display()))
    };
    let certificates = CertificateDer::pem_file_iter(&tls.certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(&tls.certificates, &error))?;
    if certificates.is_empty() {
        return Err(wrong(&tls.certificates, &"there is no certificate in it"));
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| wrong(&tls.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|error| wrong(&tls.certificates, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Lets this process have as many open files as the system permits: every connection is one.
pub(crate) fn raise_file_limit() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // Where this is refused, fewer connections are open at once.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// Accepts connections until `stop` is done, then gives those under way some time to end.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: &Limits,
    metrics: Arc<Metrics>,
    stop: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(limits.connections));
    let head_time = limits.head_time;
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let Ok((stream, _, place)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Answers are small and complete: they need not wait for more.
        let _ = stream.set_nodelay(true);
        let (router, tls, metrics) = (router.clone(), tls.clone(), Arc::clone(&metrics));
        let watcher = graceful.watcher();
        tokio::spawn(async move {
            let _place = place;
            let _open = metrics.connection();
            match tls {
                None => talk(stream, router, head_time, watcher).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(head_time, tls.accept(stream)).await {
                        talk(stream, router, head_time, watcher).await;
                    }
                }
            }
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(limits.shutdown, graceful.shutdown()).await;
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(tokio::net::TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, place))
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    router: Router,
    head_time: Duration,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_time)
        .max_buf_size(HEAD)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // Whatever ends a connection early is the other side's affair.
    let _ = watcher.watch(connection).await;
}
