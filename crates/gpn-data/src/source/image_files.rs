//! Encoded images in a directory or archive, each with its class.

use std::borrow::Cow;

use super::labels::index_labels;
use super::note::SourceNote;
use super::{Leaf, SampleInfo, SampleKind, Source};
use crate::DataError;
use crate::format::archive::Archive;
use crate::format::image::{RgbImage, decode, is_image_name};

/// A source whose samples are image files.
pub(super) struct ImageFiles {
    word: &'static str,
    archive: Archive,
    leaves: Vec<Leaf>,
    samples: Vec<SampleInfo>,
    /// Entry of the archive that holds each sample.
    entries: Vec<u32>,
    notes: Vec<SourceNote>,
}

impl ImageFiles {
    /// Collects the image files of `archive` for which `class_of` gives a class and a name to report, in the
    /// archive's order. An archive without any is an error that says what was `expected`.
    pub(super) fn collect(
        word: &'static str,
        archive: Archive,
        class_of: impl for<'n> Fn(&'n str) -> Option<(&'n str, &'n str)>,
        expected: &str,
    ) -> Result<Self, DataError> {
        let found: Vec<(u32, &str, &str)> = archive
            .names()
            .iter()
            .enumerate()
            .filter(|(_, name)| is_image_name(name))
            .filter_map(|(entry, name)| class_of(name).map(|(class, file)| (entry as u32, class, file)))
            .collect();
        if found.is_empty() {
            let reason = format!("no images found; {word} expects {expected}");
            return Err(DataError::unfit(archive.path().display().to_string(), reason));
        }
        let (leaves, leaf_of) = index_labels(found.iter().map(|(_, class, _)| *class));
        let files = found.iter().map(|(_, _, file)| (*file).to_owned());
        let samples = leaf_of.into_iter().zip(files).map(|(leaf, file)| SampleInfo { leaf, file }).collect();
        let entries = found.iter().map(|(entry, ..)| *entry).collect();
        Ok(Self::new(word, archive, leaves, samples, entries))
    }

    /// A source of these samples, `entries` being their places in the archive.
    pub(super) fn new(
        word: &'static str,
        archive: Archive,
        leaves: Vec<Leaf>,
        samples: Vec<SampleInfo>,
        entries: Vec<u32>,
    ) -> Self {
        Self { word, archive, leaves, samples, entries, notes: Vec::new() }
    }

    /// Adds what a person should know of the files.
    pub(super) fn with_notes(mut self, notes: Vec<SourceNote>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// The archive with everything else in it.
    pub(super) fn archive(&self) -> &Archive {
        &self.archive
    }

    /// The file of a sample. A damaged entry of an archive is one broken image; the others may be fine.
    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>, DataError> {
        let entry = *self.entries.get(index).ok_or_else(|| self.no_sample(index, "image"))?;
        let broken =
            |reason: String| DataError::BrokenImage { file: self.samples[index].file.clone(), reason };
        self.archive.read(entry as usize).map_err(|error| match error {
            DataError::Malformed { reason, .. } => broken(reason),
            DataError::TooLarge { what, size, limit, .. } => {
                broken(format!("{what} takes {size} bytes, more than the limit of {limit}"))
            }
            other => other,
        })
    }

    /// Gives each leaf the name that `name_of` knows for its id.
    pub(super) fn name_leaves(&mut self, name_of: impl Fn(&str) -> Option<String>) {
        for leaf in &mut self.leaves {
            leaf.name = name_of(&leaf.id);
        }
    }
}

impl Source for ImageFiles {
    fn describe(&self) -> String {
        format!("{}:{}", self.word, self.archive.path().display())
    }

    fn kind(&self) -> SampleKind {
        SampleKind::Images
    }

    fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    fn samples(&self) -> &[SampleInfo] {
        &self.samples
    }

    fn notes(&self) -> Vec<SourceNote> {
        self.notes.clone()
    }

    fn image(&self, index: usize) -> Result<RgbImage, DataError> {
        decode(&self.bytes(index)?, &self.samples[index].file)
    }

    fn encoded_image(&self, index: usize) -> Option<Result<Cow<'_, [u8]>, DataError>> {
        Some(self.bytes(index))
    }
}
