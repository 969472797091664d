//! Who may read and who may write.

use std::path::Path;

use subtle::ConstantTimeEq as _;

use crate::error::ServeError;

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Ask: everything that changes nothing.
    Read,
    /// Teach, forget, undo, load and drop models; and read.
    Write,
}

/// The fewest characters of a token: shorter ones can be guessed.
const SHORTEST: usize = 16;

/// The tokens that a server accepts, kept as digests.
#[derive(Clone, Default)]
pub struct Tokens {
    known: Vec<Known>,
}

#[derive(Clone)]
struct Known {
    name: String,
    access: Access,
    digest: [u8; 32],
}

impl Tokens {
    /// No tokens: everybody who reaches the server may do everything.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether no token is asked for.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Reads the tokens of a file: one a line, or a name, a space and a token. The name is what the history calls the
    /// caller. Empty lines and those that begin with `#` are left out.
    pub fn add_file(&mut self, path: &Path, access: Access) -> Result<(), ServeError> {
        let wrong = |reason: String| ServeError::Settings(format!("{}: {reason}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(format!("cannot read: {error}")))?;
        let before = self.known.len();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            self.add(line, access).map_err(|reason| wrong(format!("line {}: {reason}", number + 1)))?;
        }
        if self.known.len() == before {
            return Err(wrong("there is no token in it".into()));
        }
        Ok(())
    }

    /// Adds `TOKEN` or `NAME TOKEN`.
    pub fn add(&mut self, text: &str, access: Access) -> Result<(), String> {
        let default = match access {
            Access::Read => "reader",
            Access::Write => "writer",
        };
        let (name, token) = match text.split_whitespace().collect::<Vec<_>>()[..] {
            [token] => (default, token),
            [name, token] => (name, token),
            _ => return Err("write a token, or a name and a token".into()),
        };
        if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("a token has at least {SHORTEST} visible ASCII characters"));
        }
        self.known.push(Known { name: name.to_owned(), access, digest: digest(token.as_bytes()) });
        Ok(())
    }

    /// The name and the access of whoever has this token. All known tokens are compared, each in constant time.
    pub(crate) fn find(&self, token: &[u8]) -> Option<(&str, Access)> {
        let given = digest(token);
        let mut found = None;
        for known in &self.known {
            if bool::from(known.digest.ct_eq(&given)) {
                found = Some((known.name.as_str(), known.access));
            }
        }
        found
    }
}

/// Digests have one length, so that comparing them tells nothing about the length of a token.
fn digest(token: &[u8]) -> [u8; 32] {
    *blake3::hash(token).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_names_and_access() {
        let mut tokens = Tokens::none();
        tokens.add("0123456789abcdef", Access::Read).unwrap();
        tokens.add("ada fedcba9876543210", Access::Write).unwrap();
        assert_eq!(tokens.find(b"0123456789abcdef"), Some(("reader", Access::Read)));
        assert_eq!(tokens.find(b"fedcba9876543210"), Some(("ada", Access::Write)));
        assert_eq!(tokens.find(b"fedcba987654321"), None);
        assert_eq!(tokens.find(b""), None);
        assert!(tokens.add("short", Access::Read).is_err());
        assert!(tokens.add("a b c", Access::Read).is_err());
    }

    #[test]
    fn a_file_names_the_line_that_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        std::fs::write(&path, "# ours\n\nada 0123456789abcdef\nbob short\n").unwrap();
        let error = Tokens::none().add_file(&path, Access::Write).unwrap_err().to_string();
        assert!(error.contains("line 4: a token has at least"), "{error}");
        std::fs::write(&path, "# none\n").unwrap();
        assert!(Tokens::none().add_file(&path, Access::Write).is_err());
    }
}
