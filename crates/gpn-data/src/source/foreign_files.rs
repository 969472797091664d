//! Files whose name is none of an image that is read, and what they turn out to be.

use crate::DataError;
use crate::format::archive::Archive;
use crate::format::image::{ForeignFormat, HEAD_BYTES, is_image_content, is_image_name};
use crate::progress::Watch;

use super::note::SourceNote;

/// What was found among the files that are not named like images.
#[derive(Default)]
pub(super) struct ForeignFiles {
    /// Entries that are images after all, ascending.
    pub(super) images: Vec<u32>,
    /// Formats that are not read, with the names of their files, in the order of the formats.
    found: Vec<(ForeignFormat, Vec<String>)>,
}

impl ForeignFiles {
    /// Looks into files that are named like a photo of another format, and into those whose name has no ending. A name
    /// may be wrong, so the content decides.
    pub(super) fn find(archive: &Archive, watch: &Watch<'_>) -> Result<Self, DataError> {
        let mut files = Self::default();
        for (entry, name) in archive.names().iter().enumerate() {
            let named = ForeignFormat::by_name(name);
            let bare = !name.rsplit('/').next().unwrap_or_default().contains('.');
            if is_image_name(name) || (named.is_none() && !bare) {
                continue;
            }
            watch.check()?;
            // What cannot be read is not left out in silence, if its name says that it is a photo.
            let head = archive.head(entry, HEAD_BYTES).unwrap_or_default();
            match ForeignFormat::of(&head, name).or(named) {
                _ if is_image_content(&head) => files.images.push(entry as u32),
                Some(format) => files.add(format, name),
                None => {}
            }
        }
        files.found.sort_by_key(|(format, _)| *format);
        Ok(files)
    }

    fn add(&mut self, format: ForeignFormat, name: &str) {
        match self.found.iter_mut().find(|(known, _)| *known == format) {
            Some((_, names)) => names.push(name.to_owned()),
            None => self.found.push((format, vec![name.to_owned()])),
        }
    }

    /// One note for each format.
    pub(super) fn notes(&self) -> Vec<SourceNote> {
        let note = |(format, names): &(ForeignFormat, Vec<String>)| {
            SourceNote::not_read(*format, &names.iter().map(String::as_str).collect::<Vec<_>>())
        };
        self.found.iter().map(note).collect()
    }
}
