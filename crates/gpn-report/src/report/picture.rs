//! Pictures of a task: its support, its queries, and what was answered.

use super::data_uri::data_uri;
use crate::ReportError;
use crate::escape::xml;
use std::fmt::Write as _;

/// Groups of pictures with a caption, as of one task: support, then queries with answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PictureStrip {
    /// The groups, from top to bottom.
    pub groups: Vec<PictureGroup>,
    /// What is seen.
    pub caption: String,
}

/// Pictures under one heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PictureGroup {
    /// Heading, as `Support` or `Queries`.
    pub title: String,
    /// The pictures, from left to right.
    pub pictures: Vec<Picture>,
}

/// A picture and the words under it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// The file: PNG or JPEG.
    pub bytes: Vec<u8>,
    /// What it shows, for readers who cannot see it; also the first, strong line under it.
    pub name: String,
    /// What was answered, as before and after propagation; a line each.
    pub answers: Vec<Answer>,
}

/// An answer under a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Short label, as `before`.
    pub label: String,
    /// The answer: the name of a class.
    pub text: String,
    /// Whether the answer is right.
    pub verdict: Verdict,
}

/// Whether an answer is right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Not judged.
    #[default]
    None,
    /// Right.
    Right,
    /// Wrong.
    Wrong,
}

impl Verdict {
    /// The class of the style sheet, and a sign beside the colour for readers who cannot tell green from red.
    pub(super) fn sign(self) -> (&'static str, &'static str) {
        match self {
            Verdict::None => ("", ""),
            Verdict::Right => (" class=\"right\"", "✓\u{a0}"),
            Verdict::Wrong => (" class=\"wrong\"", "✗\u{a0}"),
        }
    }
}

impl PictureStrip {
    pub(super) fn to_html(&self) -> Result<String, ReportError> {
        let mut out = String::from("<figure class=\"pictures\">\n");
        for group in &self.groups {
            let _ = writeln!(out, "<h3>{}</h3>\n<div class=\"strip\">", xml(&group.title));
            for picture in &group.pictures {
                let source = data_uri(&picture.bytes, &picture.name)?;
                let name = xml(&picture.name);
                let _ = write!(
                    out,
                    "<div class=\"picture\"><img src=\"{source}\" alt=\"{name}\" loading=\"lazy\">\
                     <strong>{name}</strong>"
                );
                for answer in &picture.answers {
                    let (class, sign) = answer.verdict.sign();
                    let _ = write!(
                        out,
                        "<span class=\"said\"><small>{}</small><span{class}>{sign}{}</span></span>",
                        xml(&answer.label),
                        xml(&answer.text)
                    );
                }
                out.push_str("</div>\n");
            }
            out.push_str("</div>\n");
        }
        if !self.caption.is_empty() {
            let _ = writeln!(out, "<figcaption>{}</figcaption>", xml(&self.caption));
        }
        out.push_str("</figure>\n");
        Ok(out)
    }
}
