//! Names beside a target, and the folder that holds them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const PARTIAL: &str = ".partial";

/// The folder that a file lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The last part of a path; an error where there is none, as in `..`.
pub(crate) fn name_of(path: &Path) -> io::Result<&OsStr> {
    path.file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path ends without a name"))
}

/// Where a path leads: what a link points to, so that the link stays.
pub(crate) fn behind_links(path: &Path) -> PathBuf {
    let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    if is_link { fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()) } else { path.to_owned() }
}

/// `.NAME` and an ending.
pub(crate) fn hidden(name: &OsStr, ending: &str) -> OsString {
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(ending);
    hidden
}

/// Names for what is being written: `.NAME.RANDOM.partial`. Permissions are those of an ordinary new file or folder.
pub(crate) fn with_partial_name<T>(
    name: &OsStr,
    mode: u32,
    make: impl FnOnce(&tempfile::Builder<'_, '_>) -> io::Result<T>,
) -> io::Result<T> {
    let prefix = hidden(name, ".");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(PARTIAL);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // The user's mask takes off what it always does.
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    #[cfg(not(unix))]
    let _ = mode;
    make(&builder)
}

/// Everything in a folder that is a part of some writing, in order.
pub(crate) fn partials_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if name.starts_with(b".") && name.ends_with(PARTIAL.as_bytes()) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Everything in the folder of `target` that is a part of some writing of it.
pub(crate) fn partials_of(target: &Path) -> io::Result<Vec<PathBuf>> {
    let prefix = hidden(name_of(target)?, ".");
    let mut found = partials_in(folder_of(target))?;
    found.retain(|path| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let random = name
            .strip_prefix(prefix.as_encoded_bytes())
            .and_then(|rest| rest.strip_suffix(PARTIAL.as_bytes()));
        // A dot would make it a part of another file, such as `.a.b.RANDOM.partial` beside `a`.
        random.is_some_and(|random| !random.is_empty() && !random.contains(&b'.'))
    });
    Ok(found)
}

/// Forces the entries of a folder to the disk: a name that was given or changed stays so after a power cut.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened as a file.
    #[cfg(unix)]
    match fs::File::open(folder)?.sync_all() {
        // A file system that cannot do it has nothing more to offer.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {}
        result => return result,
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}
