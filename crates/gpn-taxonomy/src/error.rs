//! What can go wrong with a taxonomy, and what is only worth a warning.

use std::fmt;
use std::path::{Path, PathBuf};

use gpn_files::ErrorKind;

use crate::fit::{Finding, NearMiss};

/// A place in an input: a file and a line, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The file, absent for a taxonomy made in memory.
    pub file: Option<PathBuf>,
    /// The line, counted from 1.
    pub line: Option<u64>,
}

impl Place {
    /// A line of a file.
    pub fn new(file: &Path, line: Option<u64>) -> Self {
        Self { file: Some(file.to_path_buf()), line }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}", file.display()),
            (Some(file), None) => write!(f, "{}", file.display()),
            (None, Some(line)) => write!(f, "line {line}"),
            (None, None) => f.write_str("taxonomy"),
        }
    }
}

/// Input as a message shows it: on one line, and cut where it is long.
pub(crate) fn excerpt(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut shown: String = text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

/// One edge of a cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CycleEdge {
    /// Id of the parent.
    pub parent: String,
    /// Id of the child.
    pub child: String,
    /// Line that states the edge.
    pub line: Option<u64>,
}

/// Edges shown of a cycle before the rest is left out: a message stays readable whatever the input.
const CYCLE_EDGES_SHOWN: usize = 12;

struct CycleText<'a>(&'a [CycleEdge]);

impl fmt::Display for CycleText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let edges = self.0;
        let shown = edges.len().min(CYCLE_EDGES_SHOWN);
        for edge in &edges[..shown] {
            write!(f, "{} -> ", excerpt(&edge.parent))?;
        }
        if shown < edges.len() {
            write!(f, "... {} more ... -> ", edges.len() - shown)?;
        }
        if let Some(last) = edges.last() {
            f.write_str(&excerpt(&last.child))?;
        }
        let lines: Vec<String> =
            edges[..shown].iter().filter_map(|edge| edge.line).map(|l| l.to_string()).collect();
        if !lines.is_empty() {
            write!(f, " (lines {}{})", lines.join(", "), if shown < edges.len() { ", ..." } else { "" })?;
        }
        Ok(())
    }
}

/// A class that was asked for and does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownClass {
    /// The id that was asked for.
    pub id: String,
    /// The existing id most like it.
    pub nearest: Option<String>,
}

struct UnknownText<'a>(&'a [UnknownClass]);

impl fmt::Display for UnknownText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        for (i, class) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}`{}`", if i == 0 { "" } else { ", " }, excerpt(&class.id))?;
            if let Some(nearest) = &class.nearest {
                write!(f, " (did you mean `{}`?)", excerpt(nearest))?;
            }
        }
        if self.0.len() > SHOWN {
            write!(f, " and {} more", self.0.len() - SHOWN)?;
        }
        Ok(())
    }
}

/// Why a taxonomy cannot be read, checked, changed or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaxonomyError {
    /// A class is its own ancestor.
    #[error("{place}: the class graph has a cycle: {}; remove one of these edges", CycleText(.edges))]
    Cycle {
        /// The file.
        place: Place,
        /// The edges of the cycle, each starting where the one before ends.
        edges: Vec<CycleEdge>,
    },
    /// An edge names a class by a position that there is none at.
    #[error(
        "{place}: an edge joins class number {class}, but there are {classes} different classes, counted from 0; is one listed twice?"
    )]
    EdgeBeyondClasses {
        /// The file and line of the edge.
        place: Place,
        /// The position.
        class: u32,
        /// Number of classes.
        classes: usize,
    },
    /// A class is its own parent.
    #[error("{place}: class `{}` is its own parent; remove this edge", excerpt(.id))]
    SelfLoop {
        /// Where the edge is stated.
        place: Place,
        /// The class.
        id: String,
    },
    /// Classes that were asked for do not exist.
    #[error("unknown class: {}; use ids of the taxonomy", UnknownText(.0))]
    UnknownClasses(Vec<UnknownClass>),
    /// A taxonomy does not fit the classes of the samples.
    #[error("{0}")]
    Unfit(Finding),
    /// A class that is to be added exists.
    #[error("class `{}` exists already; {hint}", excerpt(.id))]
    ClassExists {
        /// The class.
        id: String,
        /// What to do.
        hint: &'static str,
    },
    /// A class has no id.
    #[error("{place}: a class has an empty id; give every class a name")]
    EmptyId {
        /// Where it is.
        place: Place,
    },
    /// More classes than positions.
    #[error("{place}: more than {} classes; split the taxonomy", u32::MAX - 1)]
    TooManyClasses {
        /// The file.
        place: Place,
    },
    /// The content of a file is not what its format asks for.
    #[error("{place}: {message}")]
    Malformed {
        /// Where it is.
        place: Place,
        /// What is wrong and what is expected.
        message: String,
    },
    /// A file cannot be opened or read.
    #[error("{}: cannot read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("{}: cannot write: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A taxonomy was named in a way that is not understood.
    #[error("taxonomy `{given}`: {message}")]
    Spec {
        /// What was given.
        given: String,
        /// What is wrong and what is expected.
        message: String,
    },
}

impl TaxonomyError {
    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Cycle { .. }
            | Self::EdgeBeyondClasses { .. }
            | Self::SelfLoop { .. }
            | Self::EmptyId { .. }
            | Self::TooManyClasses { .. }
            | Self::Malformed { .. }
            | Self::Unfit(_)
            | Self::Spec { .. } => ErrorKind::BadInput,
            Self::UnknownClasses(_) => ErrorKind::NotFound,
            Self::ClassExists { .. } => ErrorKind::Conflict,
            Self::Read { source, .. } | Self::Write { source, .. } => ErrorKind::of_io(source),
        }
    }
}

/// Something in a taxonomy that was repaired or deserves a look.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// An edge is stated more than once; one is kept.
    DuplicateEdge {
        /// The place of the repetition.
        place: Place,
        /// Id of the parent.
        parent: String,
        /// Id of the child.
        child: String,
    },
    /// The graph had several roots; a root above them was added, or one of them was put above the rest.
    VirtualRoot {
        /// Id of the root that is now the only one.
        id: String,
        /// Ids of the roots now below it.
        below: Vec<String>,
    },
    /// Labels differ from classes in letter case, `_`, `-` and blanks alone, and are taken for them.
    Respelled(Vec<NearMiss>),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateEdge { place, parent, child } => {
                let (parent, child) = (excerpt(parent), excerpt(child));
                write!(f, "{place}: edge {parent} -> {child} is stated again; it counts once")
            }
            Self::Respelled(misses) => Finding::Respelled(misses.clone()).fmt(f),
            Self::VirtualRoot { id, below } => {
                const SHOWN: usize = 5;
                write!(f, "{} roots joined below `{}`: ", below.len(), excerpt(id))?;
                let shown: Vec<String> = below.iter().take(SHOWN).map(|id| excerpt(id)).collect();
                f.write_str(&shown.join(", "))?;
                if below.len() > SHOWN {
                    write!(f, " and {} more", below.len() - SHOWN)?;
                }
                Ok(())
            }
        }
    }
}
