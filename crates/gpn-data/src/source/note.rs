//! What a person should know of the files of a source.

use std::fmt;

use serde::Serialize;

use crate::DataError;
use crate::format::image::ForeignFormat;

/// Names that are told before the rest is counted.
const SHOWN: usize = 3;

/// Files of a source that were left out, or taken otherwise than one may expect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "note", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SourceNote {
    /// Photos lie beside the folders of narrower classes; they belong to the wider class itself.
    BetweenFolders {
        /// How many.
        photos: usize,
        /// Ids of these classes.
        classes: Vec<String>,
    },
    /// Photos lie outside of all folders, have no class and are left out.
    OutsideFolders {
        /// How many.
        photos: usize,
        /// The first of them.
        first: Vec<String>,
    },
    /// Folders such as `train` and `test` are parts of a data set and no classes; their photos are joined.
    PartsJoined {
        /// The folders with their numbers of photos.
        parts: Vec<(String, usize)>,
    },
    /// Files of a format that is not read are left out.
    NotRead {
        /// Which format.
        format: ForeignFormat,
        /// How many.
        files: usize,
        /// The first of them.
        first: Vec<String>,
    },
}

impl SourceNote {
    /// The note about files of a format that is not read.
    pub(super) fn not_read(format: ForeignFormat, names: &[&str]) -> Self {
        Self::NotRead { format, files: names.len(), first: first_few(names) }
    }
}

/// The first names of a list.
pub(super) fn first_few(names: &[&str]) -> Vec<String> {
    names.iter().take(SHOWN).map(|&name| name.to_owned()).collect()
}

impl fmt::Display for SourceNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BetweenFolders { photos, classes } => {
                let shown: Vec<&str> = classes.iter().take(SHOWN).map(String::as_str).collect();
                let (lie, belong) =
                    if *photos == 1 { ("photo lies", "belongs") } else { ("photos lie", "belong") };
                write!(
                    f,
                    "{photos} {lie} beside the folders of narrower classes and {belong} to the wider class itself: {}",
                    counted(&shown, classes.len())
                )
            }
            Self::OutsideFolders { photos, first } => {
                let (lie, are) = if *photos == 1 {
                    ("photo lies", "has no class and is")
                } else {
                    ("photos lie", "have no class and are")
                };
                let first: Vec<&str> = first.iter().map(String::as_str).collect();
                write!(
                    f,
                    "{photos} {lie} outside of all folders, {are} left out: {}; \
                     put photos into a folder named like their class",
                    counted(&first, *photos)
                )
            }
            Self::PartsJoined { parts } => {
                let parts: Vec<String> =
                    parts.iter().map(|(part, photos)| format!("{part} ({photos})")).collect();
                write!(
                    f,
                    "the folders {} are parts of a data set and no classes; their photos are joined: \
                     name one of the folders to use that part alone",
                    parts.join(", ")
                )
            }
            Self::NotRead { format, files, first } => {
                let first: Vec<&str> = first.iter().map(String::as_str).collect();
                let (what, are) = if *files == 1 { (format.one(), "is") } else { (format.many(), "are") };
                let count = if *files == 1 { String::new() } else { format!("{files} ") };
                write!(
                    f,
                    "{count}{what} {are} not read and left out: {}; {}",
                    counted(&first, *files),
                    format.advice()
                )
            }
        }
    }
}

fn counted(shown: &[&str], all: usize) -> String {
    let more = if all > shown.len() { format!(" and {} more", all - shown.len()) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// One sentence for each kind of failure among the errors of single samples, with a count and the first names.
///
/// ```
/// use gpn_data::decode;
/// use gpn_data::source::left_out;
///
/// let heic = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic";
/// let errors = ["a.jpg", "b.jpg"].map(|name| decode(heic, name).unwrap_err());
/// assert_eq!(
///     left_out(&errors),
///     ["2 HEIC photos (iPhone) are not read and left out: a.jpg, b.jpg; \
///       convert to JPEG, e.g. `heif-convert photo.heic photo.jpg`"]
/// );
/// ```
pub fn left_out(errors: &[DataError]) -> Vec<String> {
    let mut foreign: Vec<(ForeignFormat, Vec<&str>)> = Vec::new();
    let mut broken = Vec::new();
    for error in errors {
        match error {
            DataError::ForeignImage { file, format } => {
                match foreign.iter_mut().find(|(known, _)| known == format) {
                    Some((_, files)) => files.push(file),
                    None => foreign.push((*format, vec![file])),
                }
            }
            other => broken.push(other.to_string()),
        }
    }
    let mut sentences: Vec<String> =
        foreign.iter().map(|(format, files)| SourceNote::not_read(*format, files).to_string()).collect();
    match &broken[..] {
        [] => {}
        [only] => sentences.push(format!("left out {only}")),
        _ => {
            let shown: Vec<&str> = broken.iter().take(SHOWN).map(String::as_str).collect();
            let all = broken.len();
            let shown = if all > SHOWN {
                format!("{}, and {} more", shown.join(", "), all - SHOWN)
            } else {
                shown.join(", ")
            };
            sentences.push(format!("{all} images could not be read and were left out: {shown}"));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_sentences() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let between = SourceNote::BetweenFolders { photos: 4, classes: names(&["Fruit", "Nut"]) };
        assert_eq!(
            between.to_string(),
            "4 photos lie beside the folders of narrower classes and belong to the wider class itself: Fruit, Nut"
        );
        let outside = SourceNote::OutsideFolders { photos: 5, first: names(&["a.jpg", "b.jpg", "c.jpg"]) };
        assert!(
            outside
                .to_string()
                .contains("have no class and are left out: a.jpg, b.jpg, c.jpg and 2 more; put")
        );
        let one = SourceNote::not_read(ForeignFormat::Tiff, &["a.tif"]);
        assert!(
            one.to_string().starts_with("a TIFF image is not read and left out: a.tif; convert"),
            "{one}"
        );
        let parts = SourceNote::PartsJoined { parts: vec![("test".into(), 3), ("train".into(), 9)] };
        assert!(parts.to_string().starts_with("the folders test (3), train (9) are parts of a data set"));
    }

    #[test]
    fn failures_are_told_by_kind() {
        let broken = |file: &str| DataError::BrokenImage { file: file.into(), reason: "cut".into() };
        let foreign = |file: &str| DataError::ForeignImage { file: file.into(), format: ForeignFormat::Avif };
        let told = left_out(&[broken("a"), foreign("b"), broken("c"), broken("d"), broken("e")]);
        assert!(told[0].starts_with("an AVIF image is not read and left out: b"), "{told:?}");
        assert!(
            told[1].starts_with("4 images could not be read and were left out: a: broken image: cut, "),
            "{told:?}"
        );
        assert!(told[1].ends_with("and 1 more"), "{told:?}");
        assert_eq!(left_out(&[broken("a")]), ["left out a: broken image: cut"]);
    }
}
