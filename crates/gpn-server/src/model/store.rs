//! The database of a model: every change, every taught sample, and what the changes add up to.
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `about` | word | text: the format, the digest of the model file |
//! | `history` | number | a change, JSON |
//! | `history_of_class` | id, number | - |
//! | `classes` | id | what is kept of the class now, JSON |
//! | `samples` | number | name, time, digest, JSON |
//! | `embeddings` | number of a sample | float32, little endian |
//! | `images` | number of a sample | the bytes of the file |
//!
//! One transaction for each change, forced to the disk before it returns.

use std::path::{Path, PathBuf};

use gpn::ErrorKind;
use redb::{
    Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, TableDefinition, WriteTransaction,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::change::{Change, What};
use super::kept::{Kept, States};
use crate::error::ServeError;

const ABOUT: TableDefinition<'_, &str, &str> = TableDefinition::new("about");
const HISTORY: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("history");
const HISTORY_OF_CLASS: TableDefinition<'_, (&str, u64), ()> = TableDefinition::new("history_of_class");
const CLASSES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("classes");
const SAMPLES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("samples");
const EMBEDDINGS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("embeddings");
const IMAGES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("images");

const FORMAT: &str = "gpn-server 1";
/// Memory for pages of the database.
const CACHE: usize = 64 << 20;

type Result<T, E = redb::Error> = std::result::Result<T, E>;

/// A sample that a class was taught with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptSample {
    /// The name of its file, as the caller gave it.
    pub(crate) name: String,
    /// Milliseconds since 1970.
    pub(crate) at: u64,
    /// Digest of its embedding: recognises a sample that is given twice.
    pub(crate) digest: String,
    /// Whether its image is kept.
    pub(crate) image: bool,
}

/// A sample to be kept.
#[derive(Clone, Debug)]
pub(crate) struct NewSample {
    pub(crate) about: KeptSample,
    pub(crate) embedding: Vec<f32>,
    pub(crate) image: Option<bytes::Bytes>,
}

/// The database of one model.
pub(crate) struct Store {
    database: Database,
    path: PathBuf,
}

impl Store {
    /// Opens the database at a path, or makes it; `model` is the digest of the model file that it belongs to.
    pub(crate) fn open(path: &Path, model: &str) -> Result<Self, ServeError> {
        let failed = |reason: String, kind| ServeError::Store { path: path.to_owned(), reason, kind };
        let database =
            Database::builder().set_cache_size(CACHE).create(path).map_err(|error| match error {
                DatabaseError::DatabaseAlreadyOpen => {
                    failed("another process serves this model; stop it first".into(), ErrorKind::Conflict)
                }
                error => {
                    let error = redb::Error::from(error);
                    failed(format!("cannot open the database: {error}"), kind(&error))
                }
            })?;
        let store = Self { database, path: path.to_owned() };
        let found = store.about(model).map_err(|error| store.failed(&error))?;
        match found {
            (format, _) if format != FORMAT => Err(failed(
                format!("it is a database of `{format}`, and this program reads `{FORMAT}`"),
                ErrorKind::BadInput,
            )),
            (_, digest) if digest != model => Err(failed(
                "it belongs to another model file than the one given; give that one, or move the database away to begin anew"
                    .into(),
                ErrorKind::Conflict,
            )),
            _ => Ok(store),
        }
    }

    /// The format and the model's digest that the database notes; a new one notes them now.
    fn about(&self, model: &str) -> Result<(String, String)> {
        let transaction = self.database.begin_write()?;
        let found = {
            let mut about = transaction.open_table(ABOUT)?;
            for (word, text) in [("format", FORMAT), ("model", model)] {
                if about.get(word)?.is_none() {
                    about.insert(word, text)?;
                }
            }
            let text = |word| -> Result<String> {
                Ok(about.get(word)?.map_or_else(String::new, |text| text.value().to_owned()))
            };
            (text("format")?, text("model")?)
        };
        transaction.open_table(HISTORY)?;
        transaction.open_table(HISTORY_OF_CLASS)?;
        transaction.open_table(CLASSES)?;
        transaction.open_table(SAMPLES)?;
        transaction.open_table(EMBEDDINGS)?;
        transaction.open_table(IMAGES)?;
        transaction.commit()?;
        Ok(found)
    }

    /// An error of the database, as a server reports it.
    pub(crate) fn failed(&self, error: &redb::Error) -> ServeError {
        let reason = format!("the database failed: {error}");
        ServeError::Store { path: self.path.clone(), reason, kind: kind(error) }
    }

    /// Everything that is kept of classes.
    pub(crate) fn states(&self) -> Result<States> {
        let transaction = self.database.begin_read()?;
        let table = transaction.open_table(CLASSES)?;
        let mut states = States::new();
        for entry in table.iter()? {
            let (id, kept) = entry?;
            states.insert(id.value().to_owned(), parsed(kept.value())?);
        }
        Ok(states)
    }

    /// What is kept of a class.
    pub(crate) fn kept(&self, id: &str) -> Result<Option<Kept>> {
        let transaction = self.database.begin_read()?;
        let table = transaction.open_table(CLASSES)?;
        table.get(id)?.map(|kept| parsed(kept.value())).transpose()
    }

    /// The number of the last change; 0 before the first.
    pub(crate) fn last(&self) -> Result<u64> {
        let transaction = self.database.begin_read()?;
        let table = transaction.open_table(HISTORY)?;
        Ok(table.last()?.map_or(0, |(number, _)| number.value()))
    }

    /// The number that the next sample gets.
    pub(crate) fn next_sample(&self) -> Result<u64> {
        let transaction = self.database.begin_read()?;
        let table = transaction.open_table(SAMPLES)?;
        Ok(table.last()?.map_or(1, |(number, _)| number.value() + 1))
    }

    /// Samples by number.
    pub(crate) fn samples(&self, numbers: &[u64]) -> Result<Vec<KeptSample>> {
        let transaction = self.database.begin_read()?;
        let table = transaction.open_table(SAMPLES)?;
        numbers
            .iter()
            .map(|&number| {
                let found = table.get(number)?.ok_or_else(|| missing("sample", number))?;
                parsed(found.value())
            })
            .collect()
    }

    /// Embeddings of samples, one after the other.
    pub(crate) fn embeddings(&self) -> Result<impl FnMut(u64) -> Result<Vec<f32>> + use<>> {
        let transaction = self.database.begin_read()?;
        let table = transaction.open_table(EMBEDDINGS)?;
        Ok(move |number| {
            let found = table.get(number)?.ok_or_else(|| missing("embedding", number))?;
            let (values, _) = found.value().as_chunks::<4>();
            Ok(values.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
        })
    }

    /// The image of a sample, where it is kept.
    pub(crate) fn image(&self, number: u64) -> Result<Option<Vec<u8>>> {
        let transaction = self.database.begin_read()?;
        let table = transaction.open_table(IMAGES)?;
        Ok(table.get(number)?.map(|bytes| bytes.value().to_vec()))
    }

    /// Changes before a number, the newest first: at most `limit`, of one class or of all.
    pub(crate) fn history(&self, class: Option<&str>, before: u64, limit: usize) -> Result<Vec<Change>> {
        let transaction = self.database.begin_read()?;
        let table = transaction.open_table(HISTORY)?;
        let Some(class) = class else {
            return table.range(..before)?.rev().take(limit).map(|entry| parsed(entry?.1.value())).collect();
        };
        let of_class = transaction.open_table(HISTORY_OF_CLASS)?;
        let mut changes = Vec::new();
        for entry in of_class.range((class, 0)..(class, before))?.rev().take(limit) {
            let number = entry?.0.value().1;
            let found = table.get(number)?.ok_or_else(|| missing("change", number))?;
            changes.push(parsed(found.value())?);
        }
        Ok(changes)
    }

    /// Writes a change with its new samples, and forces it to the disk. Returns the change with its number.
    pub(crate) fn commit(&self, mut change: Change, samples: &[(u64, NewSample)]) -> Result<Change> {
        let transaction = self.database.begin_write()?;
        change.number = {
            let history = transaction.open_table(HISTORY)?;
            history.last()?.map_or(1, |(number, _)| number.value() + 1)
        };
        write_samples(&transaction, samples)?;
        {
            let mut classes = transaction.open_table(CLASSES)?;
            let mut of_class = transaction.open_table(HISTORY_OF_CLASS)?;
            for class in &change.classes {
                match &class.after {
                    Some(kept) => classes.insert(class.id.as_str(), &*json(kept))?.map(drop),
                    None => classes.remove(class.id.as_str())?.map(drop),
                };
                of_class.insert((class.id.as_str(), change.number), ())?;
            }
            let mut history = transaction.open_table(HISTORY)?;
            if let What::Undo { undone } = change.what {
                let mut other: Change = match history.get(undone)? {
                    Some(found) => parsed(found.value())?,
                    None => return Err(missing("change", undone)),
                };
                other.undone_by = Some(change.number);
                history.insert(undone, &*json(&other))?;
            }
            history.insert(change.number, &*json(&change))?;
        }
        transaction.commit()?;
        Ok(change)
    }
}

fn write_samples(transaction: &WriteTransaction, samples: &[(u64, NewSample)]) -> Result<()> {
    let mut abouts = transaction.open_table(SAMPLES)?;
    let mut embeddings = transaction.open_table(EMBEDDINGS)?;
    let mut images = transaction.open_table(IMAGES)?;
    for (number, sample) in samples {
        abouts.insert(number, &*json(&sample.about))?;
        let bytes: Vec<u8> = sample.embedding.iter().flat_map(|value| value.to_le_bytes()).collect();
        embeddings.insert(number, &*bytes)?;
        if let Some(image) = &sample.image {
            images.insert(number, &image[..])?;
        }
    }
    Ok(())
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // invariant: what is kept is plain data, which always serialises.
    serde_json::to_vec(value).unwrap()
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| redb::Error::Corrupted(error.to_string()))
}

fn missing(what: &str, number: u64) -> redb::Error {
    redb::Error::Corrupted(format!("{what} {number} is not there"))
}

/// What kind of failure an error of the database is.
pub(crate) fn kind(error: &redb::Error) -> ErrorKind {
    match error {
        redb::Error::Io(error) => ErrorKind::of_io(error),
        redb::Error::Corrupted(_) => ErrorKind::Damaged,
        redb::Error::PreviousIo => ErrorKind::NoRoom,
        _ => ErrorKind::Bug,
    }
}
