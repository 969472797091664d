//! What a path holds, where nobody says.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::embeddings::extension_of;
use super::spec::{SourceKind, SourceSpec, kinds};
use super::{embeddings, leaf_lists};
use crate::DataError;
use crate::format::archive::Archive;
use crate::format::image::{ForeignFormat, HEAD_BYTES, is_image_content};

/// Names in an archive or folder that are looked at.
const NAMES_SEEN: usize = 2000;
/// Bytes of a compressed archive that are inflated for a look at its first names.
const BYTES_SEEN: u64 = 8 << 20;

/// What is expected, for messages.
const EXPECTED: &str = "samples come from a folder or an archive (tar, tar.gz, zip) with one folder of photos per class, or from \
                        embeddings (.npy, .npz, .parquet)";

pub(super) fn guess(path: &Path) -> Result<SourceSpec, DataError> {
    let kind = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => of_folder(path)?,
        Ok(_) => of_file(path)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing(path)),
        Err(error) => return Err(DataError::io("open", path, error)),
    };
    Ok(SourceSpec { kind, path: path.to_owned() })
}

/// The error for a path that is not there, with the name beside it that is most like it.
fn missing(path: &Path) -> DataError {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut beside: Vec<String> = fs::read_dir(folder)
        .map(|entries| entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
        .unwrap_or_default();
    beside.sort_unstable();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let nearest = gpn_taxonomy::nearest_name(&name, beside.iter().map(String::as_str));
    let hint = nearest
        .map_or(String::new(), |near| format!(" (did you mean `{}`?)", path.with_file_name(near).display()));
    bad(
        path,
        format!(
            "there is no such file or folder{hint}; {EXPECTED}; KIND:PATH names the kind, one of {}",
            kinds()
        ),
    )
}

fn bad(path: &Path, reason: impl Into<String>) -> DataError {
    DataError::BadSource { spec: path.display().to_string(), reason: reason.into() }
}

fn of_folder(path: &Path) -> Result<SourceKind, DataError> {
    let mut names = Vec::new();
    list(path, "", 2, &mut names).map_err(|error| DataError::io("list", path, error))?;
    let holds = |file: &str| path.join(file).is_file();
    if holds("benchmark.toml") {
        return Err(bad(
            path,
            "it is a benchmark directory, which is built already and can be used as it is",
        ));
    }
    if let Some(kind) = of_names(&names) {
        return Ok(kind);
    }
    if ["train_images_png.pkl", "train_images.npz"].iter().any(|file| holds(file)) {
        return Ok(SourceKind::TieredImagenet);
    }
    if leaf_lists::alone_in(path) && !names.iter().any(|name| name.contains('/')) {
        return Ok(SourceKind::Leaves);
    }
    // Tables of embeddings are named themselves, not by their folder.
    let table = names.iter().find(|name| !name.contains('/') && embeddings::is_embeddings_name(name));
    match table {
        Some(table) if !names.iter().any(|name| name.contains('/')) => {
            let reason = format!(
                "it is a folder with a table of embeddings; name the table, {}",
                path.join(table).display()
            );
            Err(bad(path, reason))
        }
        _ => Ok(SourceKind::Photos),
    }
}

/// The files and folders at the top of a folder, `depth` levels down; folders end with `/`.
fn list(folder: &Path, above: &str, depth: usize, names: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || names.len() >= NAMES_SEEN {
            continue;
        }
        let is_folder = path.is_dir();
        let name = format!("{above}{name}{}", if is_folder { "/" } else { "" });
        names.push(name.clone());
        if is_folder && depth > 1 {
            list(&path, &name, depth - 1, names)?;
        }
    }
    Ok(())
}

/// The layouts of published data sets.
fn of_names(names: &[String]) -> Option<SourceKind> {
    let has = |file: &str| names.iter().any(|name| name.rsplit('/').next() == Some(file));
    let is_training_image = |name: &String| {
        let mut parts = name.rsplit('/').skip(1);
        parts.next() == Some("images") && parts.nth(1) == Some("train")
    };
    if has("wnids.txt") || names.iter().any(is_training_image) {
        Some(SourceKind::TinyImagenet)
    } else if has("train.bin") && has("fine_label_names.txt") {
        Some(SourceKind::Cifar100)
    } else {
        None
    }
}

fn of_file(path: &Path) -> Result<SourceKind, DataError> {
    let mut head = Vec::new();
    let file = File::open(path).map_err(|e| DataError::io("open", path, e))?;
    file.take(HEAD_BYTES as u64).read_to_end(&mut head).map_err(|e| DataError::io("read", path, e))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let extension = extension_of(path);
    let fail = |what: &str| Err(bad(path, format!("it is {what}")));
    let other = |what: &str| fail(&format!("{what}; {EXPECTED}"));
    match &head[..] {
        [] => other("an empty file"),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] | [b'P', b'A', b'R', b'1', ..] => Ok(SourceKind::Embeddings),
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => {
            let names = Archive::open(path)?.names().to_vec();
            let any = |test: &dyn Fn(&str) -> bool| names.iter().any(|name| test(name));
            if extension == "npz" || any(&|name| extension_of(Path::new(name)) == "npy") {
                Ok(SourceKind::Embeddings)
            } else if any(&|name| name == "[Content_Types].xml" || name == "mimetype") {
                other("a document of an office program")
            } else if any(&|name| name.ends_with("data.pkl")) {
                fail("a file of PyTorch; save the arrays with numpy.savez(FILE, embeddings=..., labels=...)")
            } else {
                Ok(of_names(&names).unwrap_or(SourceKind::Photos))
            }
        }
        [0x1f, 0x8b, ..] => {
            let file = File::open(path).map_err(|e| DataError::io("open", path, e))?;
            let names = first_names(MultiGzDecoder::new(file).take(BYTES_SEEN));
            Ok(of_names(&names).unwrap_or(SourceKind::Photos))
        }
        _ if head.get(257..262) == Some(b"ustar") || extension == "tar" => {
            let file = File::open(path).map_err(|e| DataError::io("open", path, e))?;
            Ok(of_names(&first_names(file.take(BYTES_SEEN))).unwrap_or(SourceKind::Photos))
        }
        [b'R', b'a', b'r', b'!', ..] => fail("a RAR archive; unpack it and name the folder"),
        [b'7', b'z', 0xbc, 0xaf, ..] => fail("a 7z archive; unpack it and name the folder"),
        [b'B', b'Z', b'h', ..] | [0xfd, b'7', b'z', b'X', b'Z', ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            fail("packed with bzip2, xz or zstd; unpack it and name the folder, or pack it as tar.gz or zip")
        }
        [0x89, b'H', b'D', b'F', ..] => {
            fail("an HDF5 file; save the arrays with numpy.savez(FILE, embeddings=..., labels=...)")
        }
        [0x80, 2..=5, ..] => {
            fail("a pickle; save the arrays with numpy.savez(FILE, embeddings=..., labels=...)")
        }
        _ if is_image_content(&head) => {
            fail("a single image; name the folder that holds one folder of photos per class")
        }
        // Damaged tables are told by their reader.
        _ if embeddings::is_embeddings_name(&name) => Ok(SourceKind::Embeddings),
        _ => match ForeignFormat::of(&head, &name) {
            Some(format) => other(format.one()),
            None if extension == "csv" || extension == "tsv" => fail(
                "a text table; embeddings are read from .npy, .npz or .parquet: save them with numpy.savez(FILE, \
                 embeddings=..., labels=...)",
            ),
            None => other("a file of an unknown kind"),
        },
    }
}

/// The names of the first entries of a tar; damage ends the list, the source's reader tells of it.
fn first_names(tar: impl Read) -> Vec<String> {
    let mut archive = tar::Archive::new(tar);
    let Ok(entries) = archive.entries() else { return Vec::new() };
    let names = entries.map_while(Result::ok).take(NAMES_SEEN);
    names.map(|entry| String::from_utf8_lossy(&entry.path_bytes()).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_published_layouts() {
        let kind = |names: &[&str]| of_names(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(kind(&["t/wnids.txt"]), Some(SourceKind::TinyImagenet));
        assert_eq!(kind(&["t/train/n1/images/n1_0.JPEG"]), Some(SourceKind::TinyImagenet));
        assert_eq!(kind(&["c/train.bin", "c/fine_label_names.txt"]), Some(SourceKind::Cifar100));
        assert_eq!(kind(&["train/cat/1.jpg", "images/1.jpg"]), None);
    }
}
