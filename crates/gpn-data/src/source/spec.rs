//! `KIND:PATH`, as given on the command line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::DataError;

/// The kinds of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// One folder per class, in a directory or an archive.
    ImageFolder,
    /// The layout of Tiny-ImageNet-200, in a directory or an archive.
    TinyImagenet,
    /// The published files of tieredImageNet, in a directory.
    TieredImagenet,
    /// The binary version of CIFAR-100, in a directory or an archive.
    Cifar100,
    /// A table of embeddings with labels: `.npy`, `.npz` or Parquet.
    Embeddings,
    /// Lists of leaf classes without samples.
    Leaves,
    /// The built-in data set; it has no path.
    Synthetic,
}

impl SourceKind {
    /// Every kind with the word that names it.
    pub const ALL: [(Self, &str); 7] = [
        (Self::ImageFolder, "imagefolder"),
        (Self::TinyImagenet, "tiny-imagenet"),
        (Self::TieredImagenet, "tiered-imagenet"),
        (Self::Cifar100, "cifar100"),
        (Self::Embeddings, "embeddings"),
        (Self::Leaves, "leaves"),
        (Self::Synthetic, "synthetic"),
    ];

    /// The word that names this kind.
    pub fn word(self) -> &'static str {
        // invariant: ALL lists every kind
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }
}

/// A source as the user names it: `KIND:PATH`.
///
/// ```
/// use gpn_data::source::{SourceKind, SourceSpec};
/// let spec: SourceSpec = "imagefolder:photos/birds.zip".parse()?;
/// assert_eq!(spec.kind, SourceKind::ImageFolder);
///
/// let error = "imagefolders:photos".parse::<SourceSpec>().unwrap_err();
/// assert!(error.to_string().contains("did you mean `imagefolder`?"));
/// # Ok::<(), gpn_data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSpec {
    /// How the data is laid out.
    pub kind: SourceKind,
    /// Where it is.
    pub path: PathBuf,
}

impl fmt::Display for SourceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            SourceKind::Synthetic => f.write_str(self.kind.word()),
            _ => write!(f, "{}:{}", self.kind.word(), self.path.display()),
        }
    }
}

impl FromStr for SourceSpec {
    type Err = DataError;

    fn from_str(spec: &str) -> Result<Self, DataError> {
        let bad = |reason: String| DataError::BadSource { spec: spec.to_owned(), reason };
        let words: Vec<&str> = SourceKind::ALL.iter().map(|(_, word)| *word).collect();
        let (word, path) = spec.split_once(':').unwrap_or((spec, ""));
        let Some((kind, _)) = SourceKind::ALL.iter().find(|(_, known)| *known == word) else {
            let nearest = gpn_taxonomy::nearest_name(word, words.iter().copied());
            let hint = nearest.map_or(String::new(), |kind| format!(" (did you mean `{kind}`?)"));
            return Err(bad(format!(
                "unknown kind `{word}`{hint}; write KIND:PATH with one of {}",
                words.join(", ")
            )));
        };
        if *kind == SourceKind::Synthetic && !path.is_empty() {
            return Err(bad("the built-in data set has no path; write synthetic".into()));
        }
        if path.is_empty() && *kind != SourceKind::Synthetic {
            return Err(bad(format!("the path is missing; write {word}:PATH")));
        }
        Ok(Self { kind: *kind, path: path.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_kind_and_path_with_colons() {
        let spec: SourceSpec = "tiny-imagenet:C:/data/t.zip".parse().unwrap();
        assert_eq!(spec.kind, SourceKind::TinyImagenet);
        assert_eq!(spec.to_string(), "tiny-imagenet:C:/data/t.zip");
    }

    #[test]
    fn proposes_the_nearest_kind() {
        let error = "tinyimagenet:x".parse::<SourceSpec>().unwrap_err().to_string();
        assert!(error.contains("unknown kind `tinyimagenet` (did you mean `tiny-imagenet`?)"), "{error}");
        assert!(error.contains("imagefolder, tiny-imagenet"), "{error}");
        let error = "zzz".parse::<SourceSpec>().unwrap_err().to_string();
        assert!(error.contains("unknown kind `zzz`; write KIND:PATH with one of"), "{error}");
        let error = "imagefolder".parse::<SourceSpec>().unwrap_err().to_string();
        assert!(error.contains("write imagefolder:PATH"), "{error}");
    }
}
