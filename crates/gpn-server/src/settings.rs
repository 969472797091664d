//! What a server is started with.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use crate::error::ServeError;
use crate::limits::Limits;
use crate::tokens::Tokens;

/// What a server is started with. [`new`](Self::new) gives the defaults: loopback, port 8080, no tokens, no TLS.
#[derive(Clone)]
pub struct Settings {
    /// Models by name; the first is the one that `/api/...` without a name means.
    pub models: Vec<(String, PathBuf)>,
    /// Where databases lie; by default beside each model.
    pub state: Option<PathBuf>,
    /// Model files in this folder may be loaded by name over the API. By default none may.
    pub folder: Option<PathBuf>,
    /// Whether the images that a class is taught with are kept.
    pub keep_images: bool,
    /// Where to listen.
    pub address: SocketAddr,
    /// Who may read and write.
    pub tokens: Tokens,
    /// Certificate and key, for https.
    pub tls: Option<Tls>,
    /// Origins of other pages that may use the API from a browser, such as `https://example.org`.
    pub origins: Vec<String>,
    /// Limits.
    pub limits: Limits,
    /// Where to compute: `cpu`, or another device that was built in.
    pub device: String,
}

/// Files for https.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Certificates, PEM, the server's own first.
    pub certificates: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
}

impl Settings {
    /// The defaults for these models.
    pub fn new(models: impl IntoIterator<Item = (String, PathBuf)>) -> Self {
        Self {
            models: models.into_iter().collect(),
            state: None,
            folder: None,
            keep_images: false,
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080),
            tokens: Tokens::none(),
            tls: None,
            origins: Vec::new(),
            limits: Limits::default(),
            device: "cpu".into(),
        }
    }

    /// Refuses what is not safe or not possible.
    pub(crate) fn check(&self) -> Result<(), ServeError> {
        let wrong = |reason: String| Err(ServeError::Settings(reason));
        if self.models.is_empty() {
            return wrong("there is no model to serve".into());
        }
        for (position, (name, _)) in self.models.iter().enumerate() {
            check_name(name).map_err(ServeError::Settings)?;
            if self.models[..position].iter().any(|(other, _)| other == name) {
                return wrong(format!("two models are called `{name}`; name one of them otherwise"));
            }
        }
        if !self.address.ip().is_loopback() && self.tokens.is_empty() {
            return Err(ServeError::TokenMissing { address: self.address });
        }
        for origin in &self.origins {
            let plain = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
            let is_origin =
                plain.is_some_and(|host| !host.is_empty() && !host.contains(['/', '*', ' ', '?', '#']));
            if !is_origin {
                return wrong(format!(
                    "origin `{origin}`: write it as browsers do, such as https://example.org"
                ));
            }
        }
        Ok(())
    }
}

/// Names appear in addresses and in names of files.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(fits) || name.starts_with('.') {
        return Err(format!(
            "model `{name}`: a name has up to 64 letters, digits, `-`, `_` and `.`, and does not begin with `.`"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Access;

    fn settings() -> Settings {
        Settings::new([("birds".to_owned(), "birds.safetensors".into())])
    }

    #[test]
    fn another_address_than_loopback_needs_a_token() {
        let mut settings = settings();
        settings.check().unwrap();
        settings.address = "0.0.0.0:8080".parse().unwrap();
        assert!(matches!(settings.check(), Err(ServeError::TokenMissing { .. })));
        settings.tokens.add("0123456789abcdef", Access::Write).unwrap();
        settings.check().unwrap();
    }

    #[test]
    fn names_and_origins_are_checked() {
        for name in ["", "..", "a/b", "ü", ".hidden", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        let mut twice = settings();
        twice.models.push(("birds".into(), "other".into()));
        assert!(twice.check().is_err());
        for (origin, fits) in
            [("https://example.org", true), ("http://[::1]:80", true), ("*", false), ("https://a/b", false)]
        {
            let settings = Settings { origins: vec![origin.into()], ..settings() };
            assert_eq!(settings.check().is_ok(), fits, "{origin}");
        }
    }
}
