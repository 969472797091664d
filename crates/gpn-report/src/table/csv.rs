//! A table as CSV.

use super::{Table, Value};
use crate::escape::csv;

/// The table as CSV with one header line, numbers in full precision.
///
/// A column with intervals becomes two: `NAME` and `NAME, half-width`. Marks, links and notes are left to the
/// formats made for reading.
pub fn to_csv(table: &Table) -> String {
    let with_interval: Vec<bool> = (0..table.columns.len())
        .map(|c| {
            let is_interval = |v: &Value| matches!(v, Value::Estimate { half_width: Some(_), .. });
            table.rows.iter().any(|row| is_interval(&row.cells[c].value))
        })
        .collect();
    let mut out = String::new();
    let mut line = vec![csv(&table.stub)];
    for (c, &interval) in with_interval.iter().enumerate() {
        let name = table.full_name(c);
        line.push(csv(&name));
        if interval {
            line.push(csv(&format!("{name}, half-width")));
        }
    }
    push_line(&mut out, &line);
    for row in &table.rows {
        let mut line = vec![csv(&row.name)];
        for (cell, &interval) in row.cells.iter().zip(&with_interval) {
            let (value, half) = match &cell.value {
                Value::Empty => (String::new(), String::new()),
                Value::Text { text } => (csv(text), String::new()),
                Value::Estimate { mean, half_width } => {
                    (plain(*mean), half_width.map(plain).unwrap_or_default())
                }
            };
            line.push(value);
            if interval {
                line.push(half);
            }
        }
        push_line(&mut out, &line);
    }
    out
}

fn push_line(out: &mut String, line: &[String]) {
    out.push_str(&line.join(","));
    out.push('\n');
}

fn plain(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::sample;

    #[test]
    fn csv_reads_as_expected() {
        let expected = "\
Method,\"Close, 5-way 1-shot\",\"Close, 5-way 1-shot, half-width\",\"Close, 5-way 5-shot\",\"Close, 5-way 5-shot, half-width\",difference,uses graph
Prototypical_Net,42.87,1.67,62.68,0.99,,no
GPN+,50.54,1.67,63,1,-7.666,\"yes, <all>\"
";
        assert_eq!(to_csv(&sample()), expected);
    }
}
