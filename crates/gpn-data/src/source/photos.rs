//! `photos`: folders of photos at any depth, where the folders are the taxonomy.
//!
//! `Fruit/Apple/Golden-Delicious/1.jpg` is a Golden-Delicious, which is an Apple, which is a Fruit; leaves may lie at
//! unequal depths. Two folders of one name in different places are two classes. Photos beside the folders of narrower
//! classes belong to the wider class itself. A folder around everything, as archives have it, is no class, nor are `train`,
//! `val` and `test` at the top. A text file named like a class, wherever it lies, describes it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use gpn_taxonomy::{Checked, PathTree, TaxonomyError};

use super::foreign_files::ForeignFiles;
use super::image_files::ImageFiles;
use super::labels::index_labels;
use super::note::{SourceNote, first_few};
use super::{Leaf, SampleInfo, SampleKind, Source};
use crate::DataError;
use crate::format::archive::Archive;
use crate::format::image::{RgbImage, is_image_name};
use crate::progress::Watch;

/// Folders that are parts of a data set.
const PARTS: [&str; 8] = ["train", "training", "val", "valid", "validation", "dev", "test", "testing"];
/// Longest description that is taken from a text file.
const MAX_DESCRIPTION: usize = 64 << 10;

pub(super) struct Photos {
    files: ImageFiles,
    tree: PathTree,
    /// Of each class of the tree.
    ids: Vec<String>,
    descriptions: BTreeMap<usize, String>,
}

pub(super) fn open(path: &Path, watch: &Watch<'_>) -> Result<Photos, DataError> {
    let archive = Archive::open_watched(path, watch)?;
    let foreign = ForeignFiles::find(&archive, watch)?;
    let mut notes = foreign.notes();
    let is_photo = |entry: &u32| {
        is_image_name(archive.name(*entry as usize)) || foreign.images.binary_search(entry).is_ok()
    };
    let photos: Vec<u32> = (0..archive.len() as u32).filter(is_photo).collect();
    if photos.is_empty() {
        return Err(no_photos(&archive, &notes));
    }
    let names: Vec<&str> = photos.iter().map(|&entry| archive.name(entry as usize)).collect();
    let folders = Folders::of(&names);
    notes.extend(folders.joined());

    let mut tree = PathTree::new();
    let (mut entries, mut classes, mut outside) = (Vec::new(), Vec::new(), Vec::new());
    for &entry in &photos {
        let name = archive.name(entry as usize);
        let parts = folders.class_of(name);
        if parts.is_empty() {
            outside.push(name);
        } else {
            entries.push(entry);
            classes.push(tree.insert(parts));
        }
    }
    if entries.is_empty() {
        return Err(no_folders(&archive, outside.len()));
    }
    if !outside.is_empty() {
        notes.push(SourceNote::OutsideFolders { photos: outside.len(), first: first_few(&outside) });
    }
    let ids = tree.ids();
    notes.extend(between_folders(&tree, &ids, &classes));
    let descriptions = read_descriptions(&archive, &tree)?;

    let (mut leaves, leaf_of) = index_labels(classes.iter().map(|&class| ids[class].as_str()));
    for (&class, &leaf) in classes.iter().zip(&leaf_of) {
        let leaf: &mut Leaf = &mut leaves[leaf as usize];
        leaf.name = Some(tree.name(class)).filter(|name| *name != leaf.id).map(str::to_owned);
    }
    let sample = |(&entry, leaf)| SampleInfo { leaf, file: archive.name(entry as usize).to_owned() };
    let samples = entries.iter().zip(leaf_of).map(sample).collect();
    let files = ImageFiles::new("photos", archive, leaves, samples, entries).with_notes(notes);
    Ok(Photos { files, tree, ids, descriptions })
}

/// How the folders of a source become classes.
struct Folders {
    /// How many folders around everything are no classes.
    around: usize,
    /// Photos in each part of the data set, where the folders within the outer ones are parts.
    parts: Option<BTreeMap<String, usize>>,
}

impl Folders {
    fn of(names: &[&str]) -> Self {
        let paths = || names.iter().map(|name| split_folders(name).collect::<Vec<_>>());
        let mut around = 0;
        // A folder is around everything if all photos lie in folders within it.
        while let Some(first) = paths().next().and_then(|path| path.get(around).copied()) {
            if !paths().all(|path| path.get(around) == Some(&first) && path.len() > around + 1) {
                break;
            }
            around += 1;
        }
        let mut parts: BTreeMap<String, usize> = BTreeMap::new();
        for path in paths() {
            let part = path.get(around).filter(|_| path.len() > around + 1);
            match part.filter(|part| PARTS.contains(&part.to_ascii_lowercase().as_str())) {
                Some(part) => *parts.entry((*part).to_owned()).or_default() += 1,
                None => return Self { around, parts: None },
            }
        }
        Self { around, parts: Some(parts).filter(|parts| parts.len() > 1) }
    }

    /// The folders of a file that are classes.
    fn class_of<'n>(&self, name: &'n str) -> Vec<&'n str> {
        split_folders(name).skip(self.around + usize::from(self.parts.is_some())).collect()
    }

    fn joined(&self) -> Option<SourceNote> {
        let parts = self.parts.as_ref()?;
        Some(SourceNote::PartsJoined { parts: parts.iter().map(|(part, &n)| (part.clone(), n)).collect() })
    }
}

/// The folders of a path, the outermost first. Names of blanks alone are none.
fn split_folders(name: &str) -> impl Iterator<Item = &str> {
    let folders = name.rsplit_once('/').map_or("", |(folders, _)| folders);
    folders.split('/').filter(|part| !part.trim().is_empty())
}

/// The note on classes that have photos of their own and classes below them.
fn between_folders(tree: &PathTree, ids: &[String], classes: &[usize]) -> Option<SourceNote> {
    let mut has_below = vec![false; tree.len()];
    for class in 0..tree.len() {
        if let Some(parent) = tree.parent(class) {
            has_below[parent] = true;
        }
    }
    let between: Vec<usize> = classes.iter().copied().filter(|&class| has_below[class]).collect();
    let mut distinct = between.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let classes = distinct.iter().map(|&class| ids[class].clone()).collect();
    (!between.is_empty()).then_some(SourceNote::BetweenFolders { photos: between.len(), classes })
}

/// The texts of files named like a class. Where several classes have the name, the folders of the file tell which.
fn read_descriptions(archive: &Archive, tree: &PathTree) -> Result<BTreeMap<usize, String>, DataError> {
    let mut called: HashMap<&str, Vec<usize>> = HashMap::new();
    for class in 0..tree.len() {
        called.entry(tree.name(class)).or_default().push(class);
    }
    let mut descriptions = BTreeMap::new();
    for (entry, file) in archive.names().iter().enumerate() {
        let Some(stem) = file.strip_suffix(".txt") else { continue };
        let name = stem.rsplit('/').next().unwrap_or_default();
        let class = match called.get(name).map(Vec::as_slice) {
            Some([only]) => *only,
            Some(several) => {
                let lies_there = |class: &usize| {
                    let path = tree.path(*class);
                    stem == path || stem.ends_with(&format!("/{path}"))
                };
                // The longest path is the surest.
                let fitting = several.iter().copied().filter(lies_there);
                let Some(class) = fitting.max_by_key(|&class| tree.path(class).len()) else { continue };
                class
            }
            None => continue,
        };
        let bytes = archive.head(entry, MAX_DESCRIPTION)?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_start_matches('\u{feff}').trim();
        if !text.is_empty() {
            descriptions.insert(class, text.to_owned());
        }
    }
    Ok(descriptions)
}

fn no_photos(archive: &Archive, notes: &[SourceNote]) -> DataError {
    let reason = match (notes, archive.len()) {
        ([], 0) => "it is empty; one folder of photos per class is expected".to_owned(),
        ([], files) => {
            let files = if files == 1 {
                "its one file is none".into()
            } else {
                format!("none of its {files} files is")
            };
            format!(
                "no photos found: {files} a JPEG, PNG, WebP, BMP or GIF; one folder of photos per class is expected"
            )
        }
        (notes, _) => {
            let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
            format!("no photo can be read: {}", notes.join("; "))
        }
    };
    DataError::unfit(archive.path().display().to_string(), reason)
}

fn no_folders(archive: &Archive, photos: usize) -> DataError {
    let lie = if photos == 1 { "its one photo lies".into() } else { format!("its {photos} photos lie") };
    let reason = format!(
        "{lie} in no folder, and a folder says which class a photo is of; put the photos of each class into a folder named like it"
    );
    DataError::unfit(archive.path().display().to_string(), reason)
}

impl Source for Photos {
    fn describe(&self) -> String {
        self.files.describe()
    }

    fn kind(&self) -> SampleKind {
        SampleKind::Images
    }

    fn leaves(&self) -> &[Leaf] {
        self.files.leaves()
    }

    fn samples(&self) -> &[SampleInfo] {
        self.files.samples()
    }

    fn image(&self, index: usize) -> Result<RgbImage, DataError> {
        self.files.image(index)
    }

    fn taxonomy(&self) -> Option<Result<Checked, TaxonomyError>> {
        Some(self.tree.taxonomy(&self.ids, |class| self.descriptions.get(&class).cloned()))
    }

    fn notes(&self) -> Vec<SourceNote> {
        self.files.notes()
    }
}
