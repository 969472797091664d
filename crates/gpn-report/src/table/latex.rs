//! A table as LaTeX.

use super::{Cell, Mark, Table, Value, half_width_text, number};
use crate::escape::latex;
use std::fmt::Write as _;

/// The table as a LaTeX `table` environment; needs the package `booktabs`, and `amssymb` for check marks.
/// Links are left out.
pub fn to_latex(table: &Table) -> String {
    let columns = table.columns.len();
    let mut out = String::from("\\begin{table}[t]\n\\centering\n");
    let _ = writeln!(out, "\\caption{{{}}}", latex(&table.title));
    let _ = writeln!(out, "\\begin{{tabular}}{{l{}}}\n\\toprule", "c".repeat(columns));
    let groups = table.groups();
    if !groups.is_empty() {
        let mut rules = String::new();
        let mut first = 2;
        for (group, span) in groups {
            match group {
                Some(group) => {
                    let _ = write!(out, " & \\multicolumn{{{span}}}{{c}}{{{}}}", latex(group));
                    let _ = write!(rules, "\\cmidrule(lr){{{first}-{}}}", first + span - 1);
                }
                None => out.push_str(" & "),
            }
            first += span;
        }
        let _ = writeln!(out, " \\\\\n{rules}");
    }
    out.push_str(&latex(&table.stub));
    for column in &table.columns {
        let _ = write!(out, " & {}", latex(&column.name));
    }
    out.push_str(" \\\\\n\\midrule\n");
    for (r, row) in table.rows.iter().enumerate() {
        if row.rule_above && r > 0 {
            out.push_str("\\midrule\n");
        }
        out.push_str(&latex(&row.name));
        for (c, cell) in row.cells.iter().enumerate() {
            let _ = write!(out, " & {}", cell_text(table, c, cell));
        }
        out.push_str(" \\\\\n");
    }
    out.push_str("\\bottomrule\n\\end{tabular}\n");
    if !table.notes.is_empty() {
        let notes: Vec<String> = table.notes.iter().map(|note| latex(note)).collect();
        let _ = writeln!(out, "\n\\smallskip\n{{\\footnotesize {}}}", notes.join(" "));
    }
    out.push_str("\\end{table}\n");
    out
}

fn cell_text(table: &Table, column: usize, cell: &Cell) -> String {
    let column = &table.columns[column];
    let (text, math) = match &cell.value {
        Value::Empty => return String::new(),
        Value::Text { text } => (latex(text), false),
        Value::Estimate { mean, .. } if !mean.is_finite() => ("n/a".to_owned(), false),
        Value::Estimate { mean, half_width } => {
            let mut text = number(column, *mean).replace('−', "-");
            if let Some(half) = half_width.filter(|half| half.is_finite()) {
                let _ = write!(text, "\\pm{}", half_width_text(column, half));
            }
            (text, true)
        }
    };
    match (cell.mark, math) {
        (Mark::None, true) => format!("${text}$"),
        (Mark::None, false) => text,
        (Mark::Best, true) => format!("$\\mathbf{{{text}}}$"),
        (Mark::Best, false) => format!("\\textbf{{{text}}}"),
        (Mark::NearBest, true) => format!("$\\mathit{{{text}}}$"),
        (Mark::NearBest, false) => format!("\\textit{{{text}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::sample;

    #[test]
    fn latex_reads_as_expected() {
        let expected = r"\begin{table}[t]
\centering
\caption{Accuracy on A\&B}
\begin{tabular}{lcccc}
\toprule
 & \multicolumn{2}{c}{Close} &  &  \\
\cmidrule(lr){2-3}
Method & 5-way 1-shot & 5-way 5-shot & difference & uses graph \\
\midrule
Prototypical\_Net & $42.87\pm1.67$ & $\mathit{62.68\pm0.99}$ &  & no \\
\midrule
GPN+ & $\mathbf{50.54\pm1.67}$ & $\mathbf{63.00\pm1.00}$ & $-7.67$ & yes, $<$all$>$ \\
\bottomrule
\end{tabular}

\smallskip
{\footnotesize Bold: best of the column. Italic: 95\% interval overlaps that of the best.}
\end{table}
";
        assert_eq!(to_latex(&sample()), expected);
    }
}
