//! `imagefolder`: one folder per class.
//!
//! The folder that holds an image names its class, however deep it lies: `photos/birds/crane/1.jpg` is a
//! `crane`. Folders of one name are one class, so `train/crane` and `val/crane` are joined. Images outside
//! any folder have no class and are left out. `photos` reads folders in folders as a taxonomy instead.

use std::path::Path;

use super::foreign_files::ForeignFiles;
use super::image_files::ImageFiles;
use crate::DataError;
use crate::format::archive::Archive;
use crate::progress::Watch;

pub(super) fn open(path: &Path, watch: &Watch<'_>) -> Result<ImageFiles, DataError> {
    let expected = "one folder of images per class";
    let archive = Archive::open_watched(path, watch)?;
    let foreign = ForeignFiles::find(&archive, watch)?;
    let files =
        ImageFiles::collect("imagefolder", archive, |name| Some((class_folder(name)?, name)), expected)?;
    Ok(files.with_notes(foreign.notes()))
}

/// The last folder of a path.
fn class_folder(name: &str) -> Option<&str> {
    let (folders, _) = name.rsplit_once('/')?;
    Some(folders.rsplit_once('/').map_or(folders, |(_, last)| last))
}
