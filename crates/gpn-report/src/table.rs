//! Tables of results: rows of methods, columns of settings, cells that are estimates with their intervals.

mod csv;
mod html;
mod json;
mod latex;
mod markdown;

pub use csv::to_csv;
pub use html::to_html;
pub use json::to_json;
pub use latex::to_latex;
pub use markdown::to_markdown;

use crate::ReportError;
use serde::Serialize;

/// A titled table.
///
/// The first column holds the names of the rows; its header is [`Table::stub`]. Neighbouring columns of the
/// same group share a header above their own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// Title, shown above the table.
    pub title: String,
    /// Header of the column of row names.
    pub stub: String,
    /// The columns right of the row names.
    pub columns: Vec<Column>,
    /// The rows, from top to bottom.
    pub rows: Vec<Row>,
    /// Notes under the table.
    pub notes: Vec<String>,
}

/// Writes a table in one format.
type WriteTable = fn(&Table) -> String;

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// Header shared with neighbouring columns of the same group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Header of this column.
    pub name: String,
    /// Which values are good.
    pub better: Better,
    /// Digits after the point (default 2).
    pub decimals: usize,
    /// Whether positive numbers carry a plus, as differences do.
    pub signed: bool,
}

/// Which values of a column are good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The column is not compared.
    #[default]
    Neither,
    /// High values, as for accuracies.
    Higher,
    /// Low values, as for losses and times.
    Lower,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the row.
    pub name: String,
    /// One cell for each column.
    pub cells: Vec<Cell>,
    /// Whether a line is drawn above the row, to part it from the rows before.
    pub rule_above: bool,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cell {
    /// What the cell says.
    #[serde(flatten)]
    pub value: Value,
    /// How it compares within its column.
    pub mark: Mark,
    /// Where the number comes from: a run, relative to the file or as web address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// What a cell says.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Value {
    /// Nothing.
    #[default]
    Empty,
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A number, and how far it may be off.
    Estimate {
        /// The number.
        mean: f64,
        /// Half the width of its 95% confidence interval.
        #[serde(skip_serializing_if = "Option::is_none")]
        half_width: Option<f64>,
    },
}

/// How a cell compares within its column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// Not marked.
    #[default]
    None,
    /// The best of its column; written bold.
    Best,
    /// Its interval overlaps that of the best; written in italics.
    NearBest,
}

impl Column {
    /// A column that is not compared.
    pub fn new(name: impl Into<String>) -> Self {
        Self { group: None, name: name.into(), better: Better::Neither, decimals: 2, signed: false }
    }

    /// Puts the column under a shared header.
    #[must_use]
    pub fn under(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// High values are good.
    #[must_use]
    pub fn higher_is_better(mut self) -> Self {
        self.better = Better::Higher;
        self
    }

    /// Low values are good.
    #[must_use]
    pub fn lower_is_better(mut self) -> Self {
        self.better = Better::Lower;
        self
    }

    /// Digits after the point.
    #[must_use]
    pub fn decimals(mut self, decimals: usize) -> Self {
        self.decimals = decimals;
        self
    }

    /// Positive numbers carry a plus.
    #[must_use]
    pub fn signed(mut self) -> Self {
        self.signed = true;
        self
    }
}

impl Cell {
    /// A cell of words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { value: Value::Text { text: text.into() }, ..Self::default() }
    }

    /// A number with its 95% confidence interval `mean - half_width .. mean + half_width`.
    pub fn estimate(mean: f64, half_width: f64) -> Self {
        Self { value: Value::Estimate { mean, half_width: Some(half_width) }, ..Self::default() }
    }

    /// A number without interval.
    pub fn number(mean: f64) -> Self {
        Self { value: Value::Estimate { mean, half_width: None }, ..Self::default() }
    }

    /// An empty cell.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Links the cell to where its value comes from.
    #[must_use]
    pub fn linked(mut self, address: impl Into<String>) -> Self {
        self.link = Some(address.into());
        self
    }
}

impl Table {
    /// The formats of table files: the extension, and what writes one. HTML is for pages, not for files of its own.
    pub const FORMATS: [(&str, WriteTable); 4] =
        [("md", to_markdown), ("csv", to_csv), ("json", to_json), ("tex", to_latex)];

    /// A table without rows.
    pub fn new(title: impl Into<String>, stub: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { title: title.into(), stub: stub.into(), columns, rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds a row; it must have a cell for each column.
    pub fn row(&mut self, name: impl Into<String>, cells: Vec<Cell>) -> Result<&mut Self, ReportError> {
        let name = name.into();
        if cells.len() != self.columns.len() {
            return Err(ReportError::RowLength {
                table: self.title.clone(),
                row: name,
                found: cells.len(),
                expected: self.columns.len(),
            });
        }
        self.rows.push(Row { name, cells, rule_above: false });
        Ok(self)
    }

    /// Draws a line above the row added last.
    pub fn rule(&mut self) -> &mut Self {
        if let Some(row) = self.rows.last_mut() {
            row.rule_above = true;
        }
        self
    }

    /// Adds a note under the table.
    pub fn note(&mut self, note: impl Into<String>) -> &mut Self {
        self.notes.push(note.into());
        self
    }

    /// Marks the best cell of each compared column, and those whose interval overlaps its interval, and says
    /// so in a note. Equal bests are all marked.
    ///
    /// Overlap is no test: two methods measured on the same tasks can differ for sure although their
    /// intervals overlap. It keeps a reader from taking a small lead for a result.
    pub fn mark_best(&mut self) -> &mut Self {
        let mut near = false;
        let mut any = false;
        for c in 0..self.columns.len() {
            let sign = match self.columns[c].better {
                Better::Neither => continue,
                Better::Higher => 1.0,
                Better::Lower => -1.0,
            };
            let estimate = |row: &Row| match row.cells[c].value {
                Value::Estimate { mean, half_width } if mean.is_finite() => {
                    Some((mean * sign, half_width.unwrap_or(0.0)))
                }
                _ => None,
            };
            let best = self.rows.iter().filter_map(estimate).max_by(|a, b| a.0.total_cmp(&b.0));
            let Some((best, half_width)) = best else { continue };
            for row in &mut self.rows {
                row.cells[c].mark = match estimate(row) {
                    Some((mean, _)) if mean >= best => Mark::Best,
                    Some((mean, half)) if mean + half >= best - half_width => Mark::NearBest,
                    _ => Mark::None,
                };
                any |= row.cells[c].mark == Mark::Best;
                near |= row.cells[c].mark == Mark::NearBest;
            }
        }
        if any {
            self.notes.push(
                if near {
                    "Bold: best of the column. Italic: 95% interval overlaps that of the best."
                } else {
                    "Bold: best of the column."
                }
                .to_owned(),
            );
        }
        self
    }

    /// Runs of neighbouring columns under one header: the header and how many columns it spans. Empty when no
    /// column has a group.
    pub(crate) fn groups(&self) -> Vec<(Option<&str>, usize)> {
        let mut groups: Vec<(Option<&str>, usize)> = Vec::new();
        if self.columns.iter().all(|c| c.group.is_none()) {
            return groups;
        }
        for column in &self.columns {
            match groups.last_mut() {
                Some((group, span)) if *group == column.group.as_deref() && group.is_some() => *span += 1,
                _ => groups.push((column.group.as_deref(), 1)),
            }
        }
        groups
    }

    /// Header of a column on one line, with its group.
    pub(crate) fn full_name(&self, column: usize) -> String {
        let column = &self.columns[column];
        match &column.group {
            Some(group) if column.name.is_empty() => group.clone(),
            Some(group) => format!("{group}, {}", column.name),
            None => column.name.clone(),
        }
    }
}

/// A number of a column as text, with the sign U+2212 for minus and `n/a` for what is no number.
pub(crate) fn number(column: &Column, value: f64) -> String {
    if !value.is_finite() {
        return "n/a".to_owned();
    }
    let text = format!("{:.*}", column.decimals, value.abs());
    let zero = text.bytes().all(|b| matches!(b, b'0' | b'.'));
    match (value < 0.0 && !zero, column.signed && !zero) {
        (true, _) => format!("−{text}"),
        (false, true) => format!("+{text}"),
        (false, false) => text,
    }
}

/// Half the width of an interval as text.
pub(crate) fn half_width_text(column: &Column, half: f64) -> String {
    if half.is_finite() { format!("{half:.*}", column.decimals) } else { "n/a".to_owned() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two methods and a rule, with everything a writer must handle.
    pub(crate) fn sample() -> Table {
        let mut table = Table::new(
            "Accuracy on A&B",
            "Method",
            vec![
                Column::new("5-way 1-shot").under("Close").higher_is_better(),
                Column::new("5-way 5-shot").under("Close").higher_is_better(),
                Column::new("difference").signed(),
                Column::new("uses graph"),
            ],
        );
        table
            .row(
                "Prototypical_Net",
                vec![
                    Cell::estimate(42.87, 1.67),
                    Cell::estimate(62.68, 0.99).linked("runs/proto/5w5s"),
                    Cell::empty(),
                    Cell::text("no"),
                ],
            )
            .unwrap();
        table
            .row(
                "GPN+",
                vec![
                    Cell::estimate(50.54, 1.67),
                    Cell::estimate(63.0, 1.0),
                    Cell::number(-7.666),
                    Cell::text("yes, <all>"),
                ],
            )
            .unwrap();
        table.rule().mark_best();
        table
    }

    #[test]
    fn best_and_overlapping_cells_are_marked() {
        let table = sample();
        let marks = |row: usize| table.rows[row].cells.iter().map(|c| c.mark).collect::<Vec<_>>();
        assert_eq!(marks(0), [Mark::None, Mark::NearBest, Mark::None, Mark::None]);
        assert_eq!(marks(1), [Mark::Best, Mark::Best, Mark::None, Mark::None]);
        assert_eq!(table.notes.len(), 1);
    }

    #[test]
    fn low_is_best_where_low_is_better() {
        let mut table = Table::new("t", "Method", vec![Column::new("loss").lower_is_better()]);
        for (name, loss) in [("a", 0.5), ("b", 0.25), ("c", f64::NAN), ("d", 0.25)] {
            table.row(name, vec![Cell::number(loss)]).unwrap();
        }
        table.mark_best();
        let marks: Vec<_> = table.rows.iter().map(|r| r.cells[0].mark).collect();
        assert_eq!(marks, [Mark::None, Mark::Best, Mark::None, Mark::Best]);
    }

    #[test]
    fn a_row_of_the_wrong_length_is_refused() {
        let mut table = Table::new("t", "Method", vec![Column::new("x")]);
        let message = table.row("GPN", vec![]).unwrap_err().to_string();
        assert_eq!(message, "table \"t\": row \"GPN\" has 0 cells for 1 columns");
    }

    #[test]
    fn numbers_carry_their_sign() {
        let plain = Column::new("x");
        let signed = Column::new("x").signed().decimals(1);
        assert_eq!(number(&plain, -7.666), "−7.67");
        assert_eq!(number(&plain, -0.001), "0.00");
        assert_eq!(number(&signed, 1.25), "+1.2");
        assert_eq!(number(&signed, 0.01), "0.0");
        assert_eq!(number(&plain, f64::NAN), "n/a");
    }
}
