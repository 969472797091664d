//! The report: one HTML page that needs nothing else, neither network nor scripts.

mod class_pictures;
mod data_uri;
mod page;
mod picture;

pub use class_pictures::{AlikePair, ClassPictures};
pub use picture::{Answer, Picture, PictureGroup, PictureStrip, Verdict};

use crate::{Figure, ReportError, Table, write_file};
use std::path::Path;

/// A page of results.
///
/// Every text is plain text and is escaped; a part between two backticks is set as code.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Headline.
    pub title: String,
    /// What the page is about, in a sentence or two under the headline.
    pub lead: String,
    /// The few numbers a reader should take home.
    pub cards: Vec<Card>,
    /// The body.
    pub sections: Vec<Section>,
    /// Name and value of what made the results: version, seed, machine, command.
    pub environment: Vec<(String, String)>,
}

/// A big number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Card {
    /// What is measured.
    pub label: String,
    /// The number with its unit.
    pub value: String,
    /// A short remark: an interval, a comparison.
    pub detail: String,
    /// Whether this is the number the page is about.
    pub accent: bool,
}

impl Card {
    /// A card without remark.
    pub fn new(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self { label: label.into(), value: value.into(), ..Self::default() }
    }

    /// Adds a short remark.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Makes the card stand out.
    #[must_use]
    pub fn accent(mut self) -> Self {
        self.accent = true;
        self
    }
}

/// A part of the page under its own heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// What it holds, from top to bottom.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section from its heading and blocks.
    pub fn new(title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { title: title.into(), blocks }
    }
}

/// A piece of the page.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// A remark that should not be missed: a limit, a warning.
    Note(String),
    /// Commands or settings, line by line.
    Code(String),
    /// A table.
    Table(Table),
    /// A figure with its caption.
    Figure(Figure),
    /// Pictures of a task.
    Pictures(PictureStrip),
    /// A class with pictures of its samples and what was answered.
    Class(ClassPictures),
    /// Classes that look alike, side by side.
    Alike(Vec<AlikePair>),
    /// Findings, each a number and a sentence.
    Facts(Vec<Fact>),
    /// Something to open: what it is, and what it holds.
    Details {
        /// The line that is always seen.
        summary: String,
        /// What it holds.
        blocks: Vec<Block>,
    },
}

/// A number and the sentence that says what it means.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fact {
    /// The number with its unit.
    pub value: String,
    /// What it means.
    pub sentence: String,
}

impl Fact {
    /// A fact from its number and its sentence.
    pub fn new(value: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self { value: value.into(), sentence: sentence.into() }
    }
}

impl Report {
    /// An empty page.
    pub fn new(title: impl Into<String>, lead: impl Into<String>) -> Self {
        Self { title: title.into(), lead: lead.into(), ..Self::default() }
    }

    /// Adds a big number.
    pub fn card(&mut self, card: Card) -> &mut Self {
        self.cards.push(card);
        self
    }

    /// Adds a section.
    pub fn section(&mut self, title: impl Into<String>, blocks: Vec<Block>) -> &mut Self {
        self.sections.push(Section::new(title, blocks));
        self
    }

    /// Adds a line to the foot of the page.
    pub fn environment(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The page.
    pub fn to_html(&self) -> Result<String, ReportError> {
        page::to_html(self)
    }

    /// Writes the page to a file.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), ReportError> {
        write_file(path, self.to_html()?)
    }
}
