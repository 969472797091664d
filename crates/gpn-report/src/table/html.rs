//! A table as a piece of HTML.

use super::{Cell, Mark, Table, Value, half_width_text, number};
use crate::escape::{is_safe_address, xml};
use std::fmt::Write as _;

/// The table as an HTML fragment: a `figure` with caption, table and notes, to be styled by the page.
pub fn to_html(table: &Table) -> String {
    let mut out = String::from("<figure class=\"table\">\n");
    let _ = writeln!(out, "<figcaption>{}</figcaption>", xml(&table.title));
    out.push_str("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead>\n");
    let groups = table.groups();
    if groups.is_empty() {
        let _ = write!(out, "<tr><th scope=\"col\">{}</th>", xml(&table.stub));
    } else {
        let _ = write!(out, "<tr><th scope=\"col\" rowspan=\"2\">{}</th>", xml(&table.stub));
        let mut first = 0;
        for (group, span) in groups {
            let _ = if let Some(group) = group {
                let group = xml(group);
                write!(out, "<th scope=\"colgroup\" colspan=\"{span}\" class=\"group\">{group}</th>")
            } else {
                let (name, class) = (xml(&table.columns[first].name), header_class(table, first));
                write!(out, "<th scope=\"col\" rowspan=\"2\"{class}>{name}</th>")
            };
            first += span;
        }
        out.push_str("</tr>\n<tr>");
    }
    let grouped = table.columns.iter().any(|c| c.group.is_some());
    for (c, column) in table.columns.iter().enumerate().filter(|(_, c)| !grouped || c.group.is_some()) {
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", header_class(table, c), xml(&column.name));
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    for row in &table.rows {
        let class = if row.rule_above { " class=\"rule\"" } else { "" };
        let _ = write!(out, "<tr{class}><th scope=\"row\">{}</th>", xml(&row.name));
        for (c, cell) in row.cells.iter().enumerate() {
            out.push_str(&cell_html(table, c, cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    for note in &table.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", xml(note));
    }
    out.push_str("</figure>\n");
    out
}

/// Words stand in the middle of their column, and so does its header.
fn header_class(table: &Table, column: usize) -> &'static str {
    let is_number = |value: &Value| matches!(value, Value::Estimate { .. });
    let words = !table.rows.iter().any(|row| is_number(&row.cells[column].value));
    if words { " class=\"text\"" } else { "" }
}

fn cell_html(table: &Table, column: usize, cell: &Cell) -> String {
    let column = &table.columns[column];
    let (class, mut text) = match &cell.value {
        Value::Empty => return "<td></td>".to_owned(),
        Value::Text { text } => ("text", xml(text)),
        Value::Estimate { mean, half_width: None } => ("number", number(column, *mean)),
        Value::Estimate { mean, half_width: Some(half) } => (
            "number",
            format!(
                "{}<span class=\"pm\"> ± {}</span>",
                number(column, *mean),
                half_width_text(column, *half)
            ),
        ),
    };
    text = match cell.mark {
        Mark::None => text,
        Mark::Best => format!("<strong>{text}</strong>"),
        Mark::NearBest => format!("<em>{text}</em>"),
    };
    if let Some(link) = cell.link.as_deref().filter(|link| is_safe_address(link)) {
        text = format!("<a href=\"{}\">{text}</a>", xml(link));
    }
    format!("<td class=\"{class}\">{text}</td>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::sample;

    #[test]
    fn html_reads_as_expected() {
        let html = to_html(&sample());
        assert!(html.contains("<figcaption>Accuracy on A&amp;B</figcaption>"));
        assert!(html.contains("<th scope=\"colgroup\" colspan=\"2\" class=\"group\">Close</th>"));
        assert!(html.contains("<th scope=\"col\" rowspan=\"2\">difference</th>"));
        assert!(html.contains("<tr class=\"rule\"><th scope=\"row\">GPN+</th>"));
        assert!(
            html.contains(
                "<td class=\"number\"><strong>50.54<span class=\"pm\"> ± 1.67</span></strong></td>"
            )
        );
        assert!(html.contains("<a href=\"runs/proto/5w5s\"><em>62.68"));
        assert!(html.contains("<td class=\"text\">yes, &lt;all&gt;</td>"));
        assert_eq!(html.matches("<td").count(), 8);
    }
}
