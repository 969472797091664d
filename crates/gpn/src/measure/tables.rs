//! Tables of a test, for files: a row a class, a row a sample.

use gpn_report::{Cell, Column, Table};

use super::{Answered, TestResult};

/// How each class did, a row for each.
///
/// `gpn_report::to_csv` and the other formats write it.
pub fn class_table(result: &TestResult) -> Table {
    let columns = [
        "name",
        "new",
        "samples",
        "right",
        "answered",
        "precision",
        "recall",
        "f1",
        "confused_with",
        "confused_count",
    ];
    let mut table =
        Table::new("Classes", "class", columns.map(|name| Column::new(name).decimals(3)).to_vec());
    for class in &result.classes {
        let with = class.confused_with.as_ref();
        let cells = vec![
            Cell::text(&class.name),
            yes_no(class.is_new),
            Cell::number(class.samples as f64),
            Cell::number(class.right as f64),
            Cell::number(class.answered as f64),
            class.precision.map_or_else(Cell::empty, Cell::number),
            class.recall.map_or_else(Cell::empty, Cell::number),
            Cell::number(class.f1),
            with.map_or_else(Cell::empty, |with| Cell::text(&with.id)),
            with.map_or_else(Cell::empty, |with| Cell::number(with.count as f64)),
        ];
        table.rows.push(gpn_report::Row { name: class.id.clone(), cells, rule_above: false });
    }
    table
}

/// Every sample with its label, its answer and how far the two are apart, a row for each.
pub fn sample_table(answered: &Answered<'_>) -> crate::Result<Table> {
    answered.check()?;
    let (graph, ancestry) = (answered.graph, answered.ancestry());
    let columns = ["truth", "answer", "probability", "right", "rank", "distance", "new", "unknown_score"];
    let mut table =
        Table::new("Samples", "sample", columns.map(|name| Column::new(name).decimals(3)).to_vec());
    for sample in &answered.samples {
        let (answer, probability) = sample.ranked[0];
        let is_right = |answer| ancestry.is_at_or_below(answer, sample.truth);
        let rank = sample.ranked.iter().position(|&(answer, _)| is_right(answer));
        let cells = vec![
            Cell::text(graph.id(sample.truth)),
            Cell::text(graph.id(answer)),
            Cell::number(probability),
            yes_no(is_right(answer)),
            rank.map_or_else(Cell::empty, |rank| Cell::number(rank as f64 + 1.0)),
            Cell::number(f64::from(ancestry.distance(sample.truth, answer))),
            yes_no(sample.is_new),
            sample.unknown_score.map_or_else(Cell::empty, Cell::number),
        ];
        table.rows.push(gpn_report::Row { name: sample.name.clone(), cells, rule_above: false });
    }
    Ok(table)
}

fn yes_no(yes: bool) -> Cell {
    Cell::text(if yes { "yes" } else { "no" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::measure;
    use crate::measure::sample::{answers, graph_of};
    use gpn_report::to_csv;

    #[test]
    fn tables_read_as_expected() {
        let graph = graph_of("r>a r>b a>x a>y");
        let answered = answers(&graph, "x:x,y b*:y,b");
        let classes = "\
class,name,new,samples,right,answered,precision,recall,f1,confused_with,confused_count
b,b,yes,1,0,0,,0,0,y,1
x,x,no,1,1,1,1,1,1,,
y,y,no,0,0,1,0,,0,,
";
        assert_eq!(to_csv(&class_table(&measure(&answered).unwrap())), classes);
        let samples = "\
sample,truth,answer,probability,right,rank,distance,new,unknown_score
0.png,x,x,0.5,yes,1,0,no,
1.png,b,y,0.5,no,2,2,yes,
";
        assert_eq!(to_csv(&sample_table(&answered).unwrap()), samples);
    }
}
