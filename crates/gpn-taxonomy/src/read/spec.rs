//! Taxonomies named by `KIND:PATH` or by their path alone.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::text_file::unreadable;
use crate::error::TaxonomyError;
use crate::nearest::nearest_name;

/// The formats a taxonomy can be read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaxonomyKind {
    /// `edges`: a list of edges, see [`read_edges`](crate::read_edges).
    Edges,
    /// `wordnet`: the dictionary folder of WordNet, see [`read_wordnet`](crate::read_wordnet).
    WordNet,
    /// `imagenet-xml`: ImageNet's `structure_released.xml`, see [`read_imagenet_xml`](crate::read_imagenet_xml).
    ImageNetXml,
    /// `json`: nested or flat JSON, see [`read_json`](crate::read_json).
    Json,
    /// `obo`: an ontology in OBO format, see [`read_obo`](crate::read_obo).
    Obo,
}

impl TaxonomyKind {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Edges, Self::WordNet, Self::ImageNetXml, Self::Json, Self::Obo];

    /// The name of the format.
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

/// A taxonomy as the user names it: `KIND:PATH`, or a path whose kind is guessed; for `wordnet` the path may be left out.
///
/// ```
/// use gpn_taxonomy::{TaxonomyKind, TaxonomySpec};
///
/// let spec: TaxonomySpec = "edges:animals.csv".parse()?;
/// assert_eq!(spec.kind, TaxonomyKind::Edges);
/// assert_eq!(spec.to_string(), "edges:animals.csv");
/// assert_eq!("wordnet".parse::<TaxonomySpec>()?.kind, TaxonomyKind::WordNet);
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

impl TaxonomySpec {
    /// Guesses the kind of a file or folder: by the ending of its name (`.csv`, `.tsv`, `.txt`, `.json`, `.obo`, `.xml`),
    /// else by how it begins. A folder is one of WordNet.
    pub fn guess(path: &Path) -> Result<Self, TaxonomyError> {
        let fail = |message: String| TaxonomyError::Spec { given: path.display().to_string(), message };
        let metadata = std::fs::metadata(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => fail(format!("there is no such file; {}", what_to_name())),
            _ => unreadable(path, source),
        })?;
        if metadata.is_dir() {
            let dictionary =
                [path.to_owned(), path.join("dict")].into_iter().find(|dir| dir.join("data.noun").is_file());
            return match dictionary {
                Some(dir) => Ok(Self { kind: TaxonomyKind::WordNet, path: Some(dir) }),
                None => Err(fail(
                    "it is a folder without WordNet's data.noun; name the file with the classes".into(),
                )),
            };
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let kind = match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("csv" | "tsv" | "tab") => TaxonomyKind::Edges,
            Some("json") => TaxonomyKind::Json,
            Some("obo") => TaxonomyKind::Obo,
            Some("xml") => TaxonomyKind::ImageNetXml,
            Some("noun") => TaxonomyKind::WordNet,
            _ => by_content(&beginning(path)?),
        };
        Ok(Self { kind, path: Some(path.to_owned()) })
    }
}

/// What can be given, for messages.
fn what_to_name() -> String {
    let words = TaxonomyKind::ALL.map(TaxonomyKind::as_str);
    format!(
        "name a file (.csv, .tsv, .json, .obo, .xml), `wordnet`, or KIND:PATH with one of the kinds {}",
        words.join(", ")
    )
}

fn beginning(path: &Path) -> Result<Vec<u8>, TaxonomyError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|source| unreadable(path, source))?;
    file.take(4096).read_to_end(&mut bytes).map_err(|source| unreadable(path, source))?;
    Ok(bytes)
}

/// The kind of a file that begins like this. What is nothing else is a list of edges.
fn by_content(bytes: &[u8]) -> TaxonomyKind {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with("format-version:") || text.lines().any(|line| line.trim() == "[Term]") {
        TaxonomyKind::Obo
    } else if text.starts_with(['{', '[']) {
        TaxonomyKind::Json
    } else if text.starts_with('<') {
        TaxonomyKind::ImageNetXml
    } else {
        TaxonomyKind::Edges
    }
}

impl FromStr for TaxonomySpec {
    type Err = TaxonomyError;

    /// Reads `KIND:PATH`; anything else is a path whose kind is [guessed](Self::guess).
    fn from_str(given: &str) -> Result<Self, TaxonomyError> {
        let fail = |message: String| TaxonomyError::Spec { given: given.to_owned(), message };
        let (word, path) = match given.split_once(':') {
            Some((word, path)) => (word, Some(path).filter(|path| !path.is_empty())),
            None => (given, None),
        };
        let whole = Path::new(given);
        let kind = TaxonomyKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        if let Some(kind) = kind {
            // A file may be called like a kind, or like a kind with a path.
            let other_file = whole.exists() && path.is_none_or(|path| !Path::new(path).exists());
            return match path {
                None if kind == TaxonomyKind::WordNet => Ok(Self { kind, path: None }),
                _ if other_file => Self::guess(whole),
                None => Err(fail(format!("the file is missing; use {kind}:FILE"))),
                Some(path) => Ok(Self { kind, path: Some(path.into()) }),
            };
        }
        if given.is_empty() {
            return Err(fail(format!("it is empty; {}", what_to_name())));
        }
        // A single letter before a colon is a drive.
        let names_a_kind =
            path.is_some() && word.chars().nth(1).is_some() && !word.contains(['/', '\\', '.']);
        if whole.exists() || (!names_a_kind && path.is_some()) {
            return Self::guess(whole);
        }
        let nearest = nearest_name(word, TaxonomyKind::ALL.map(TaxonomyKind::as_str));
        match nearest {
            Some(kind) => Err(fail(format!("unknown kind `{word}`; did you mean `{kind}`?"))),
            None if names_a_kind => Err(fail(format!("unknown kind `{word}`; {}", what_to_name()))),
            None => Self::guess(whole),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_that_are_wrong_say_what_is_right() {
        let message = |given: &str| given.parse::<TaxonomySpec>().unwrap_err().to_string();
        assert_eq!(message("json"), "taxonomy `json`: the file is missing; use json:FILE");
        assert!(message("animals.csv").contains("there is no such file"));
        assert!(message("animals.csv").contains("edges, wordnet, imagenet-xml, json, obo"));
        assert!(message("Wordnet:x").contains("did you mean `wordnet`?"));
        assert!(message("spreadsheet:x.csv").contains("unknown kind `spreadsheet`"));
        assert!(message("C:/kinds.csv").contains("`C:/kinds.csv`: there is no such file"));
        assert!(message("").contains("it is empty"));
        assert_eq!("wordnet".parse::<TaxonomySpec>().unwrap().path, None);
        assert_eq!("obo:a:b".parse::<TaxonomySpec>().unwrap().path, Some("a:b".into()));
    }

    #[test]
    fn the_kind_of_a_path_is_guessed() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text, kind) in [
            ("kinds.csv", "", TaxonomyKind::Edges),
            ("kinds.TSV", "", TaxonomyKind::Edges),
            ("a.json", "", TaxonomyKind::Json),
            ("go.obo", "", TaxonomyKind::Obo),
            ("s.xml", "", TaxonomyKind::ImageNetXml),
            ("data.noun", "", TaxonomyKind::WordNet),
            ("list", "animal cat\n", TaxonomyKind::Edges),
            ("list.txt", " {\"cat\": 1}", TaxonomyKind::Json),
            ("x.owl", "\u{feff}<?xml?>", TaxonomyKind::ImageNetXml),
            ("terms", "[Term]\nid: x\n", TaxonomyKind::Obo),
            ("with:colon", "a,b\n", TaxonomyKind::Edges),
            ("json", "a,b\n", TaxonomyKind::Edges),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            let spec: TaxonomySpec = path.to_str().unwrap().parse().unwrap();
            assert_eq!((spec.kind, spec.path), (kind, Some(path)), "{name}");
        }
        let spec: TaxonomySpec = folder.path().to_str().unwrap().parse().unwrap();
        assert_eq!(spec.kind, TaxonomyKind::WordNet);
        std::fs::remove_file(folder.path().join("data.noun")).unwrap();
        let message = TaxonomySpec::guess(folder.path()).unwrap_err().to_string();
        assert!(message.contains("a folder without WordNet's data.noun"), "{message}");
    }
}
