//! Readers, one format per file, and the way a taxonomy is named on a command line.

mod edges;
mod imagenet_xml;
mod json;
mod obo;
mod wordnet;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::{Place, TaxonomyError};
use crate::graph::Checked;
use crate::nearest::nearest_name;

pub use edges::read_edges;
pub use imagenet_xml::read_imagenet_xml;
pub use json::read_json;
pub use obo::read_obo;
pub use wordnet::{find_wordnet, read_wordnet};

/// The formats a taxonomy can be read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaxonomyKind {
    /// `edges`: a list of edges, see [`read_edges`].
    Edges,
    /// `wordnet`: the dictionary folder of WordNet, see [`read_wordnet`].
    WordNet,
    /// `imagenet-xml`: ImageNet's `structure_released.xml`, see [`read_imagenet_xml`].
    ImageNetXml,
    /// `json`: nested or flat JSON, see [`read_json`].
    Json,
    /// `obo`: an ontology in OBO format, see [`read_obo`].
    Obo,
}

impl TaxonomyKind {
    const ALL: [Self; 5] = [Self::Edges, Self::WordNet, Self::ImageNetXml, Self::Json, Self::Obo];

    /// The word that stands for the format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Edges => "edges",
            Self::WordNet => "wordnet",
            Self::ImageNetXml => "imagenet-xml",
            Self::Json => "json",
            Self::Obo => "obo",
        }
    }
}

impl fmt::Display for TaxonomyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A taxonomy named as `KIND:PATH`; for `wordnet` the path may be left out.
///
/// ```
/// use gpn_taxonomy::{TaxonomyKind, TaxonomySpec};
///
/// let spec: TaxonomySpec = "edges:animals.csv".parse()?;
/// assert_eq!(spec.kind, TaxonomyKind::Edges);
/// assert_eq!(spec.to_string(), "edges:animals.csv");
///
/// let error = "edge:animals.csv".parse::<TaxonomySpec>().unwrap_err();
/// assert!(error.to_string().contains("did you mean `edges`?"));
/// # Ok::<(), gpn_taxonomy::TaxonomyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaxonomySpec {
    /// The format.
    pub kind: TaxonomyKind,
    /// The file, or for WordNet the folder; absent for the installed WordNet.
    pub path: Option<PathBuf>,
}

impl FromStr for TaxonomySpec {
    type Err = TaxonomyError;

    fn from_str(given: &str) -> Result<Self, TaxonomyError> {
        let fail = |message: String| TaxonomyError::Spec { given: given.to_owned(), message };
        let (word, path) = match given.split_once(':') {
            Some((word, path)) => (word, Some(path).filter(|path| !path.is_empty())),
            None => (given, None),
        };
        let words = TaxonomyKind::ALL.map(TaxonomyKind::as_str);
        let Some(kind) = TaxonomyKind::ALL.into_iter().find(|kind| kind.as_str() == word) else {
            let hint = match nearest_name(word, words) {
                Some(kind) => format!("did you mean `{kind}`?"),
                None => format!("use KIND:PATH with one of the kinds {}", words.join(", ")),
            };
            return Err(fail(format!("unknown kind `{word}`; {hint}")));
        };
        if path.is_none() && kind != TaxonomyKind::WordNet {
            return Err(fail(format!("the file is missing; use {kind}:FILE")));
        }
        Ok(Self { kind, path: path.map(PathBuf::from) })
    }
}

impl fmt::Display for TaxonomySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}:{}", self.kind, path.display()),
            None => write!(f, "{}", self.kind),
        }
    }
}

/// Reads and checks the taxonomy that `spec` names.
pub fn read(spec: &TaxonomySpec) -> Result<Checked, TaxonomyError> {
    let installed;
    let path = if let Some(path) = &spec.path {
        path
    } else {
        installed = find_wordnet()?;
        &installed
    };
    match spec.kind {
        TaxonomyKind::Edges => read_edges(path),
        TaxonomyKind::WordNet => read_wordnet(path),
        TaxonomyKind::ImageNetXml => read_imagenet_xml(path),
        TaxonomyKind::Json => read_json(path),
        TaxonomyKind::Obo => read_obo(path),
    }
}

/// The content of a file as text without byte order mark; an error names the first line that is not UTF-8
/// or holds a zero byte.
fn read_text(path: &Path) -> Result<String, TaxonomyError> {
    let mut bytes =
        std::fs::read(path).map_err(|source| TaxonomyError::Read { path: path.to_path_buf(), source })?;
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        bytes.drain(..3);
    }
    let line_of = |bytes: &[u8], at: usize| bytes[..at].split(|&byte| byte == b'\n').count() as u64;
    if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
        let line = line_of(&bytes, at);
        return Err(malformed(path, Some(line), "holds a zero byte; a text file in UTF-8 is expected"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = line_of(error.as_bytes(), error.utf8_error().valid_up_to());
        malformed(path, Some(line), "is not UTF-8; convert the file to UTF-8")
    })
}

fn malformed(path: &Path, line: Option<u64>, message: impl Into<String>) -> TaxonomyError {
    TaxonomyError::Malformed { place: Place::new(path, line), message: message.into() }
}

/// A graph without a single class is a wrong file rather than a taxonomy.
fn some_class(checked: Checked, path: &Path) -> Result<Checked, TaxonomyError> {
    if checked.taxonomy.is_empty() {
        return Err(malformed(path, None, "holds no class; is it the right file and kind?"));
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_that_are_wrong_say_what_is_right() {
        let message = |given: &str| given.parse::<TaxonomySpec>().unwrap_err().to_string();
        assert_eq!(message("json"), "taxonomy `json`: the file is missing; use json:FILE");
        assert!(message("animals.csv").contains("edges, wordnet, imagenet-xml, json, obo"));
        assert!(message("Wordnet:x").contains("did you mean `wordnet`?"));
        assert_eq!("wordnet".parse::<TaxonomySpec>().unwrap().path, None);
        assert_eq!("obo:a:b".parse::<TaxonomySpec>().unwrap().path, Some("a:b".into()));
    }

    #[test]
    fn every_kind_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("edges", "child,parent\ncat,animal\n"),
            ("json", r#"{"cat":["animal"]}"#),
            ("imagenet-xml", r#"<s><synset wnid="animal"><synset wnid="cat"/></synset></s>"#),
            ("obo", "[Term]\nid: animal\n\n[Term]\nid: cat\nis_a: animal\n"),
        ];
        for (kind, text) in files {
            let path = folder.path().join(kind);
            std::fs::write(&path, text).unwrap();
            let spec: TaxonomySpec = format!("{kind}:{}", path.display()).parse().unwrap();
            let graph = read(&spec).unwrap().taxonomy;
            let (cat, animal) = (graph.find("cat").unwrap(), graph.find("animal").unwrap());
            assert_eq!(graph.parents(cat), [animal], "{kind}");
        }
    }

    #[test]
    fn a_file_that_is_not_utf8_is_named_with_the_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"child,parent\na,b\nc,\xFF\n").unwrap();
        let message = read_text(file.path()).unwrap_err().to_string();
        assert_eq!(message, format!("{}:3: is not UTF-8; convert the file to UTF-8", file.path().display()));
        let missing = read_text(Path::new("no/such/file")).unwrap_err().to_string();
        assert!(missing.starts_with("no/such/file: cannot read: "), "{missing}");
    }
}
