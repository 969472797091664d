//! Tables of text.

use crate::printable::cell;

/// Where the columns after the first stand; the first is always to the left.
#[derive(Clone, Copy, PartialEq)]
enum Align {
    Left,
    Right,
}

/// A table of text with a heading. Every cell is made fit to be shown, and long ones are shortened.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    align: Align,
}

impl Table {
    /// A table of figures: the columns after the first stand to the right.
    pub(crate) fn new<const N: usize>(header: [&str; N]) -> Self {
        Self { rows: vec![header.map(cell).into()], align: Align::Right }
    }

    /// A table of words: every column stands to the left.
    pub(crate) fn of_words<const N: usize>(header: [&str; N]) -> Self {
        Self { align: Align::Left, ..Self::new(header) }
    }

    /// Adds a row, of as many cells as the heading has.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into_iter().map(|text| cell(&text)).collect());
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let cell = match self.align {
                    Align::Right if column > 0 => format!("{cell:>width$}"),
                    _ => format!("{cell:<width$}"),
                };
                if column > 0 {
                    line.push_str("  ");
                }
                line.push_str(&cell);
            }
            writeln!(f, "{}", line.trim_end())?;
            if number == 0 {
                writeln!(f, "{}", "-".repeat(line.chars().count()))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align() {
        let mut table = Table::new(["", "n"]);
        table.row(["train".into(), "1,234".into()]);
        table.row(["far".into(), "7".into()]);
        assert_eq!(table.to_string(), "           n\n------------\ntrain  1,234\nfar        7\n");
        let mut table = Table::of_words(["id", "name"]);
        table.row(["a".into(), "first".into()]);
        assert_eq!(table.to_string(), "id  name \n---------\na   first\n".replace("name ", "name"));
    }

    #[test]
    fn names_of_any_length_and_content_stay_in_their_cells() {
        let mut table = Table::of_words(["id", "name"]);
        table.row(["x".repeat(70_000), "a\nb\x1b[2J\u{202e}".into()]);
        let text = table.to_string();
        assert_eq!(text.lines().count(), 3);
        assert!(text.ends_with("a\\nb\\x1b[2J\\u{202e}\n") && text.len() < 1_000, "{text}");
    }
}
