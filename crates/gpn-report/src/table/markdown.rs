//! A table as Markdown.

use super::{Cell, Mark, Table, Value, half_width_text, number};
use crate::escape::{is_safe_address, markdown, markdown_address};
use std::fmt::Write as _;

/// The table in GitHub's Markdown: title, table with columns padded to equal width, notes.
///
/// Markdown has no headers over several columns; a column's group is written before its name.
pub fn to_markdown(table: &Table) -> String {
    let mut grid = vec![vec![markdown(&table.stub)]];
    for c in 0..table.columns.len() {
        grid[0].push(markdown(&table.full_name(c)));
    }
    for row in &table.rows {
        let mut line = vec![markdown(&row.name)];
        line.extend(row.cells.iter().enumerate().map(|(c, cell)| cell_text(table, c, cell)));
        grid.push(line);
    }
    let widths: Vec<usize> = (0..=table.columns.len())
        .map(|c| grid.iter().map(|line| line[c].chars().count()).max().unwrap_or(0).max(3))
        .collect();

    let mut out = format!("**{}**\n\n", markdown(&table.title));
    for (r, line) in grid.iter().enumerate() {
        out.push('|');
        for (c, text) in line.iter().enumerate() {
            let pad = " ".repeat(widths[c] - text.chars().count());
            let _ = if c == 0 { write!(out, " {text}{pad} |") } else { write!(out, " {pad}{text} |") };
        }
        out.push('\n');
        if r == 0 {
            out.push('|');
            for (c, &width) in widths.iter().enumerate() {
                let dashes = "-".repeat(width + 1);
                let _ = if c == 0 { write!(out, ":{dashes}|") } else { write!(out, "{dashes}:|") };
            }
            out.push('\n');
        }
    }
    for note in &table.notes {
        let _ = write!(out, "\n{}\n", markdown(note));
    }
    out
}

fn cell_text(table: &Table, column: usize, cell: &Cell) -> String {
    let column = &table.columns[column];
    let mut text = match &cell.value {
        Value::Empty => return String::new(),
        Value::Text { text } => markdown(text),
        Value::Estimate { mean, half_width: None } => number(column, *mean),
        Value::Estimate { mean, half_width: Some(half) } => {
            format!("{} ± {}", number(column, *mean), half_width_text(column, *half))
        }
    };
    text = match cell.mark {
        Mark::None => text,
        Mark::Best => format!("**{text}**"),
        Mark::NearBest => format!("*{text}*"),
    };
    match &cell.link {
        Some(link) if is_safe_address(link) => format!("[{text}]({})", markdown_address(link)),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::sample;

    #[test]
    fn markdown_reads_as_expected() {
        let expected = "\
**Accuracy on A&amp;B**

| Method            | Close, 5-way 1-shot |              Close, 5-way 5-shot | difference |       uses graph |
|:------------------|--------------------:|---------------------------------:|-----------:|-----------------:|
| Prototypical\\_Net |        42.87 ± 1.67 | [*62.68 ± 0.99*](runs/proto/5w5s) |            |               no |
| GPN+              |    **50.54 ± 1.67** |                 **63.00 ± 1.00** |      −7.67 | yes, &lt;all&gt; |

Bold: best of the column. Italic: 95% interval overlaps that of the best.
";
        let squeeze = |text: &str| text.replace("  ", " ").replace("--", "-");
        let shrink = |text: &str| (0..6).fold(text.to_owned(), |t, _| squeeze(&t));
        assert_eq!(shrink(&to_markdown(&sample())), shrink(expected));
    }
}
