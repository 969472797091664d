//! `imagefolder`: one folder per class.
//!
//! The folder that holds an image names its class, however deep it lies: `photos/birds/crane/1.jpg` is a
//! `crane`. Folders of one name are one class, so `train/crane` and `val/crane` are joined. Images outside
//! any folder have no class and are left out.

use std::path::Path;

use super::image_files::ImageFiles;
use crate::DataError;
use crate::format::archive::Archive;

pub(super) fn open(path: &Path) -> Result<ImageFiles, DataError> {
    let expected = "one folder of images per class";
    ImageFiles::collect(
        "imagefolder",
        Archive::open(path)?,
        |name| Some((class_folder(name)?, name)),
        expected,
    )
}

/// The last folder of a path.
fn class_folder(name: &str) -> Option<&str> {
    let (folders, _) = name.rsplit_once('/')?;
    Some(folders.rsplit_once('/').map_or(folders, |(_, last)| last))
}
