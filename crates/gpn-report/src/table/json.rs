//! A table as JSON.

use super::Table;

/// The table as JSON: its fields as they are named in [`Table`]; each cell has a `kind` (`empty`, `text` or
/// `estimate`). What is no finite number is `null`.
pub fn to_json(table: &Table) -> String {
    // invariant: a table holds strings, numbers and lists only, and writing them to memory cannot fail
    let mut text = serde_json::to_string_pretty(table).expect("tables are plain data");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::sample;

    #[test]
    fn json_keeps_every_number_and_mark() {
        let value: serde_json::Value = serde_json::from_str(&to_json(&sample())).unwrap();
        assert_eq!(value["title"], "Accuracy on A&B");
        assert_eq!(value["columns"][0]["group"], "Close");
        let cells = &value["rows"][0]["cells"];
        assert_eq!(cells[1]["kind"], "estimate");
        assert_eq!(cells[1]["mean"], 62.68);
        assert_eq!(cells[1]["half_width"], 0.99);
        assert_eq!(cells[1]["mark"], "nearbest");
        assert_eq!(cells[1]["link"], "runs/proto/5w5s");
        assert_eq!(cells[2]["kind"], "empty");
        assert_eq!(value["rows"][1]["rule_above"], true);
    }
}
