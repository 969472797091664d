//! What people change about the classes of a model after it was made.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Changes to classes by id; taught classes are not among them, these are changed themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Changes {
    /// Classes whose samples are forgotten. They keep their place.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub forgotten: BTreeSet<String>,
    /// Classes with other parents.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub moved: BTreeMap<String, Vec<String>>,
    /// Classes with other names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub renamed: BTreeMap<String, String>,
    /// Classes that were added as places for others: their parents.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub added: BTreeMap<String, Vec<String>>,
}

impl Changes {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
