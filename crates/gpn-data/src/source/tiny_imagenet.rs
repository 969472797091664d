//! `tiny-imagenet`: the layout of Tiny-ImageNet-200, `train/<wnid>/images/*.JPEG`.
//!
//! The training images are the samples: those of `test` have no labels, those of `val` are few. `words.txt`
//! gives the names; a class that `wnids.txt` lists must have images, which tells an incomplete download.

use std::collections::HashMap;
use std::path::Path;

use super::Source;
use super::image_files::ImageFiles;
use crate::DataError;
use crate::format::archive::Archive;
use crate::progress::Watch;

pub(super) fn open(path: &Path, watch: &Watch<'_>) -> Result<ImageFiles, DataError> {
    let archive = Archive::open_watched(path, watch)?;
    let root = archive.names().iter().find_map(|name| root_of(name)).unwrap_or_default().to_owned();
    let expected = "train/<wnid>/images/*.JPEG, as in the published archive";
    let mut source =
        ImageFiles::collect("tiny-imagenet", archive, |name| train_class(name, &root), expected)?;
    check_wnids(&source, &root)?;
    if let Some(words) = source.archive().text(&format!("{root}words.txt"))? {
        let names: HashMap<&str, &str> = words.lines().filter_map(|line| line.split_once('\t')).collect();
        source.name_leaves(|id| names.get(id).map(|words| first_word(words)));
    }
    Ok(source)
}

/// The folder (with its `/`) in which `train/` lies, told by a training image.
fn root_of(name: &str) -> Option<&str> {
    let at = if name.starts_with("train/") { 0 } else { name.find("/train/")? + 1 };
    let root = &name[..at];
    train_class(name, root).map(|_| root)
}

/// The class of a training image, and its name below `root`.
fn train_class<'n>(name: &'n str, root: &str) -> Option<(&'n str, &'n str)> {
    let file = name.strip_prefix(root)?;
    let mut parts = file.split('/');
    match [parts.next(), parts.next(), parts.next(), parts.next(), parts.next()] {
        [Some("train"), Some(wnid), Some("images"), Some(_), None] => Some((wnid, file)),
        _ => None,
    }
}

fn check_wnids(source: &ImageFiles, root: &str) -> Result<(), DataError> {
    let Some(wnids) = source.archive().text(&format!("{root}wnids.txt"))? else { return Ok(()) };
    let known = |id: &str| source.leaves().iter().any(|leaf| leaf.id == id);
    match wnids.split_whitespace().find(|id| !known(id)) {
        None => Ok(()),
        Some(missing) => Err(DataError::unfit(
            source.archive().path().display().to_string(),
            format!(
                "class {missing} is listed in wnids.txt but train/{missing}/images has no images; \
                 the download is incomplete (or take the class out of wnids.txt)"
            ),
        )),
    }
}

/// The first of the synonyms in a line of `words.txt`.
fn first_word(words: &str) -> String {
    words.split(',').next().unwrap_or_default().trim().to_owned()
}
