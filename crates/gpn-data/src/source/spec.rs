//! A source named by `KIND:PATH`, or by its path alone.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::guess;
use crate::DataError;

/// The kinds of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// Folders of photos at any depth that are the taxonomy, in a directory or an archive.
    Photos,
    /// One folder per class, in a directory or an archive; folders of one name are one class, wherever they lie.
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
    pub const ALL: [(Self, &str); 8] = [
        (Self::Photos, "photos"),
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

/// All kinds, for messages.
pub(super) fn kinds() -> String {
    SourceKind::ALL.map(|(_, word)| word).join(", ")
}

/// A source as the user names it: `KIND:PATH`, or a path whose kind is guessed.
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

impl SourceSpec {
    /// Guesses what a path holds, by names and content: a folder or an archive of photos, a table of embeddings, or one of
    /// the published data sets.
    ///
    /// ```
    /// use gpn_data::source::{SourceKind, SourceSpec};
    /// # let folder = tempfile::tempdir()?;
    /// # let photos = folder.path().join("photos");
    /// # std::fs::create_dir_all(photos.join("cat"))?;
    /// # std::fs::write(photos.join("cat/1.jpg"), "")?;
    /// assert_eq!(SourceSpec::guess(&photos)?.kind, SourceKind::Photos);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn guess(path: &Path) -> Result<Self, DataError> {
        guess::guess(path)
    }
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

    /// Reads `KIND:PATH`; anything else is a path whose kind is [guessed](Self::guess).
    fn from_str(spec: &str) -> Result<Self, DataError> {
        let bad = |reason: String| DataError::BadSource { spec: spec.to_owned(), reason };
        let whole = Path::new(spec);
        let (word, path) = spec.split_once(':').unwrap_or((spec, ""));
        if let Some(&(kind, _)) = SourceKind::ALL.iter().find(|(_, known)| *known == word) {
            // A folder may be called like a kind, or like a kind with a path.
            let is_other_path = whole.exists() && (path.is_empty() || !Path::new(path).exists());
            return match kind {
                SourceKind::Synthetic if path.is_empty() => Ok(Self { kind, path: PathBuf::new() }),
                SourceKind::Synthetic => {
                    Err(bad("the built-in data set has no path; write synthetic".into()))
                }
                _ if is_other_path => Self::guess(whole),
                _ if path.is_empty() => Err(bad(format!("the path is missing; write {word}:PATH"))),
                _ => Ok(Self { kind, path: path.into() }),
            };
        }
        if spec.is_empty() {
            return Err(bad(format!("it is empty; write a path, or KIND:PATH with one of {}", kinds())));
        }
        // A single letter before a colon is a drive.
        let names_a_kind =
            spec.contains(':') && word.chars().nth(1).is_some() && !word.contains(['/', '\\', '.']);
        let nearest = gpn_taxonomy::nearest_name(word, SourceKind::ALL.map(|(_, word)| word));
        if whole.exists() || (!names_a_kind && (nearest.is_none() || spec.contains(':'))) {
            return Self::guess(whole);
        }
        let hint = nearest.map_or(String::new(), |kind| format!(" (did you mean `{kind}`?)"));
        Err(bad(format!("unknown kind `{word}`{hint}; write KIND:PATH with one of {}", kinds())))
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
        let error = "zzz:x".parse::<SourceSpec>().unwrap_err().to_string();
        assert!(error.contains("unknown kind `zzz`; write KIND:PATH with one of"), "{error}");
        let error = "no/such/thing".parse::<SourceSpec>().unwrap_err().to_string();
        assert!(error.contains("source `no/such/thing`: there is no such file or folder"), "{error}");
        let error = "C:/no/such".parse::<SourceSpec>().unwrap_err().to_string();
        assert!(error.contains("source `C:/no/such`: there is no such file or folder"), "{error}");
        let error = "imagefolder".parse::<SourceSpec>().unwrap_err().to_string();
        assert!(error.contains("write imagefolder:PATH"), "{error}");
    }
}
