//! Pictures of classes: what a class was taken for, and classes that look alike.

use super::data_uri::data_uri;
use super::picture::{Answer, Picture};
use crate::ReportError;
use crate::escape::xml;
use std::fmt::Write as _;

/// Pictures of one class with what was answered, under the name of the class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassPictures {
    /// Name of the class.
    pub name: String,
    /// The classes above it, as `Fruit › Apple`.
    pub path: String,
    /// How it did, as `3 of 10 right, most often taken for Granny-Smith`.
    pub note: String,
    /// The pictures. May be none, as with embeddings.
    pub pictures: Vec<Picture>,
}

/// Two classes that are hard to tell apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlikePair {
    /// The classes.
    pub names: [String; 2],
    /// A picture of each, PNG or JPEG, where there is one.
    pub pictures: [Option<Vec<u8>>; 2],
    /// What says so, as `taken for one another 7 times`.
    pub note: String,
}

impl ClassPictures {
    pub(super) fn to_html(&self) -> Result<String, ReportError> {
        let mut out = format!("<div class=\"kind\">\n<h4>{}</h4>\n", xml(&self.name));
        if !self.path.is_empty() {
            let _ = writeln!(out, "<p class=\"path\">{}</p>", xml(&self.path));
        }
        if !self.note.is_empty() {
            let _ = writeln!(out, "<p class=\"how\">{}</p>", xml(&self.note));
        }
        if !self.pictures.is_empty() {
            out.push_str("<div class=\"strip\">\n");
            for picture in &self.pictures {
                out.push_str(&picture_html(picture)?);
            }
            out.push_str("</div>\n");
        }
        out.push_str("</div>\n");
        Ok(out)
    }
}

/// A photo, its name in small, and the answers.
fn picture_html(picture: &Picture) -> Result<String, ReportError> {
    let source = data_uri(&picture.bytes, &picture.name)?;
    let name = xml(&picture.name);
    // A long path would be cut before it says which file it is.
    let file = xml(picture.name.rsplit(['/', '\\']).next().unwrap_or(&picture.name));
    let mut out = format!(
        "<div class=\"picture photo\"><img src=\"{source}\" alt=\"{name}\" loading=\"lazy\"><small title=\"{name}\">{file}</small>"
    );
    for Answer { label, text, verdict } in &picture.answers {
        let (class, sign) = verdict.sign();
        if !label.is_empty() {
            let _ = write!(out, "<span class=\"asked\">{}</span>", xml(label));
        }
        let _ = write!(out, "<span{class}>{sign}{}</span>", xml(text));
    }
    out.push_str("</div>\n");
    Ok(out)
}

/// Pairs side by side.
pub(super) fn pairs_to_html(pairs: &[AlikePair]) -> Result<String, ReportError> {
    let mut out = String::from("<div class=\"pairs\">\n");
    for pair in pairs {
        out.push_str("<div class=\"pair\"><div class=\"two\">");
        for (name, bytes) in pair.names.iter().zip(&pair.pictures) {
            out.push_str("<div class=\"picture photo\">");
            if let Some(bytes) = bytes {
                let source = data_uri(bytes, name)?;
                let _ = write!(out, "<img src=\"{source}\" alt=\"\" loading=\"lazy\">");
            }
            let _ = write!(out, "<strong>{}</strong></div>", xml(name));
        }
        let _ = writeln!(out, "</div><p class=\"how\">{}</p></div>", xml(&pair.note));
    }
    out.push_str("</div>\n");
    Ok(out)
}
