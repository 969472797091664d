//! Which files there are.

use std::path::{Path, PathBuf};

use crate::case::{Case, JsonCase};

/// The npz files whose name starts so: fixtures, then those of the golden folder, each in order of name.
///
/// # Panics
/// If no fixture starts so. A comparison with nothing must not pass.
pub fn npz_cases(prefix: &str) -> Vec<Case> {
    paths(prefix, "npz").iter().map(|path| Case::read(path)).collect()
}

/// The same for JSON files.
///
/// # Panics
/// As [`npz_cases`].
pub fn json_cases(prefix: &str) -> Vec<JsonCase> {
    paths(prefix, "json").iter().map(|path| JsonCase::read(path)).collect()
}

/// The npz files of the golden folder alone whose name starts so: for a layout that no fixture has.
pub fn further_npz_cases(prefix: &str) -> Vec<Case> {
    let further = golden_folder().map_or_else(Vec::new, |folder| files(&folder, prefix, "npz"));
    further.iter().map(|path| Case::read(path)).collect()
}

/// The folder of further golden vectors, where there is one: `GPN_GOLDEN_DIR`, else `../shared/golden`.
pub fn golden_folder() -> Option<PathBuf> {
    folder("GPN_GOLDEN_DIR", "golden")
}

/// The folder of published data, where there is one: `GPN_DATA_DIR`, else `../shared/data`.
pub fn data_folder() -> Option<PathBuf> {
    folder("GPN_DATA_DIR", "data")
}

fn folder(variable: &str, name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    let folder = std::env::var_os(variable).map_or_else(beside, PathBuf::from);
    if !folder.is_dir() {
        eprintln!("no folder {} (set {variable}): its cases are not run", folder.display());
        return None;
    }
    Some(folder)
}

fn paths(prefix: &str, ending: &str) -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut paths = files(&fixtures, prefix, ending);
    assert!(
        !paths.is_empty(),
        "no fixture {prefix}*.{ending} in {}: restore it from the repository, or run `just golden`",
        fixtures.display()
    );
    if let Some(folder) = golden_folder() {
        paths.extend(files(&folder, prefix, ending));
    }
    paths
}

fn files(folder: &Path, prefix: &str, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.retain(|path| {
        path.extension().is_some_and(|extension| extension == ending)
            && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
    });
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_fixture_is_a_failure() {
        let failed = std::panic::catch_unwind(|| npz_cases("z_nothing")).unwrap_err();
        let message = failed.downcast_ref::<String>().unwrap();
        assert!(message.contains("no fixture z_nothing*.npz"), "{message}");
        assert!(std::panic::catch_unwind(|| json_cases("d_resnet08_")).is_err());
    }

    #[test]
    fn every_fixture_can_be_read_and_all_are_small() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let (mut count, mut bytes) = (0, 0);
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            bytes += path.metadata().unwrap().len();
            count += 1;
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("npz") => assert!(!Case::read(&path).arrays.is_empty(), "{}", path.display()),
                Some("json") => {
                    let document = JsonCase::read(&path).document;
                    let is_empty = document.as_array().is_some_and(Vec::is_empty);
                    assert!(!is_empty && (document.is_object() || document.is_array()), "{}", path.display());
                }
                _ => panic!("{}: neither npz nor JSON", path.display()),
            }
        }
        assert!(count > 15 && bytes <= 2_000_000, "{count} fixtures, {bytes} bytes");
    }
}
