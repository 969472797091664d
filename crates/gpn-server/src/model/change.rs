//! A change of a model, as the database keeps it and as history tells it.

use gpn::IfTaught;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::kept::Kept;
use crate::clock::rfc3339;

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub(crate) enum What {
    /// Classes were taught.
    Teach {
        /// What was to be done with a class that had been taught before.
        if_taught: IfTaught,
    },
    /// A class was forgotten.
    Forget,
    /// A class got other parents.
    Move,
    /// A class got another name.
    Rename,
    /// A change was undone.
    Undo {
        /// Its number.
        undone: u64,
    },
}

/// A class before and after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClassChange {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) before: Option<Kept>,
    pub(crate) after: Option<Kept>,
}

/// One change. Changes are numbered from 1; the number of the last one is the version of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    #[serde(default)]
    pub(crate) number: u64,
    /// Milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) who: String,
    #[serde(flatten)]
    pub(crate) what: What,
    pub(crate) classes: Vec<ClassChange>,
    /// The change that undid this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undone_by: Option<u64>,
}

impl Change {
    /// Whether it can still be undone.
    pub(crate) fn stands(&self) -> bool {
        self.undone_by.is_none() && !matches!(self.what, What::Undo { .. })
    }

    /// The change as history tells it.
    pub(crate) fn entry(&self) -> HistoryEntry {
        let (what, undone) = match &self.what {
            What::Teach { .. } => ("teach", None),
            What::Forget => ("forget", None),
            What::Move => ("move", None),
            What::Rename => ("rename", None),
            What::Undo { undone } => ("undo", Some(*undone)),
        };
        HistoryEntry {
            number: self.number,
            at: rfc3339(self.at),
            who: self.who.clone(),
            what: what.to_owned(),
            undone,
            undone_by: self.undone_by,
            classes: self
                .classes
                .iter()
                .map(|class| ChangedClass {
                    id: class.id.clone(),
                    name: class.name.clone(),
                    samples_before: class.before.as_ref().map_or(0, |kept| kept.numbers().len()),
                    samples_after: class.after.as_ref().map_or(0, |kept| kept.numbers().len()),
                })
                .collect(),
        }
    }
}

/// A change of the model.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct HistoryEntry {
    /// Its number; the model's version after it.
    pub(crate) number: u64,
    /// When, RFC 3339 in UTC.
    pub(crate) at: String,
    /// The name of the token that was used; `local` where no token is asked for.
    pub(crate) who: String,
    /// `teach`, `forget`, `move`, `rename` or `undo`.
    pub(crate) what: String,
    /// The change that this one undid.
    pub(crate) undone: Option<u64>,
    /// The change by which this one was undone.
    pub(crate) undone_by: Option<u64>,
    /// The classes that it changed.
    pub(crate) classes: Vec<ChangedClass>,
}

/// A class in a change.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ChangedClass {
    /// Its id.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// Samples that the database had of it before.
    pub(crate) samples_before: usize,
    /// Samples that the database had of it afterwards.
    pub(crate) samples_after: usize,
}
