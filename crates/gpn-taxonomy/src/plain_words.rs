//! What a parser says about a value, in words that a person understands.

/// The message of a parser (TOML, JSON) without the words of this program's inside.
///
/// ```
/// use gpn_taxonomy::plain_words;
///
/// let message = plain_words("invalid type: string \"many\", expected usize");
/// assert_eq!(message, "expected a whole number, not \"many\"");
/// assert_eq!(plain_words("missing field `id`"), "`id` is missing");
/// ```
pub fn plain_words(message: &str) -> String {
    let lines: Vec<String> = message.trim_end().lines().map(line).collect();
    lines.join("\n")
}

fn line(line: &str) -> String {
    // JSON adds the place to its sentence.
    let (sentence, place) = match line.rfind(" at line ") {
        Some(at) if line[at..].contains(" column ") => line.split_at(at),
        _ => (line, ""),
    };
    let told = about_value(sentence).or_else(|| about_name(sentence)).unwrap_or_else(|| sentence.to_owned());
    format!("{told}{place}")
}

/// A value of the wrong kind or size.
fn about_value(sentence: &str) -> Option<String> {
    let rest =
        sentence.strip_prefix("invalid type: ").or_else(|| sentence.strip_prefix("invalid value: "))?;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    let number = quoted(found).and_then(|text| text.parse::<i128>().ok());
    Some(format!("expected {}, not {}", kind(expected, number), value(found)))
}

/// A name that does not exist, or one that is missing.
fn about_name(sentence: &str) -> Option<String> {
    if let Some(name) = sentence.strip_prefix("missing field ") {
        return Some(format!("{name} is missing"));
    }
    if let Some(rest) = sentence.strip_prefix("unknown variant ") {
        let (name, known) = rest.split_once(", expected ")?;
        return Some(format!("there is no {name}; write {}", known.replace("one of ", "one of these: ")));
    }
    let (name, known) = sentence.strip_prefix("unknown field ")?.split_once(", expected ")?;
    Some(format!("there is no {name} here; write {}", known.replace("one of ", "one of these: ")))
}

/// What was expected; `found` is the number that was found instead, if it was a whole one.
fn kind(expected: &str, found: Option<i128>) -> String {
    let largest: Option<u64> = match expected {
        "u8" => Some(u8::MAX.into()),
        "u16" => Some(u16::MAX.into()),
        "u32" => Some(u32::MAX.into()),
        "usize" | "u64" => Some(u64::MAX),
        _ => None,
    };
    match (expected, largest, found) {
        (_, Some(_), Some(found)) if found < 0 => "a whole number of at least 0".into(),
        (_, Some(largest), Some(_)) => format!("a whole number up to {largest}"),
        (_, Some(_), None) | ("i8" | "i16" | "i32" | "i64" | "isize", ..) => "a whole number".into(),
        ("f32" | "f64", ..) => "a number".into(),
        ("a boolean", ..) => "true or false".into(),
        ("a string" | "a borrowed string", ..) => "text in quotes".into(),
        ("a sequence", ..) => "a list".into(),
        ("a map", ..) => "names with values".into(),
        (other, ..) if other.starts_with("struct ") => "names with values".into(),
        (other, ..) => match other.strip_prefix("a tuple of size ") {
            Some(size) => format!("a list of {size} entries"),
            None => other.to_owned(),
        },
    }
}

/// What was found.
fn value(found: &str) -> &str {
    match found {
        "sequence" => "a list",
        "map" => "names with values",
        "null" | "unit value" => "nothing",
        _ => match found.strip_prefix("string ") {
            Some(text) => text,
            None => quoted(found).unwrap_or(found),
        },
    }
}

/// The number in ``integer `5` ``.
fn quoted(found: &str) -> Option<&str> {
    found.split_once(" `")?.1.strip_suffix('`')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_parser_are_translated() {
        for (parser, person) in [
            ("invalid type: floating point `1.5`, expected usize", "expected a whole number, not 1.5"),
            ("invalid value: integer `-1`, expected u64", "expected a whole number of at least 0, not -1"),
            (
                "invalid value: integer `9999999999`, expected u32",
                "expected a whole number up to 4294967295, not 9999999999",
            ),
            (
                "invalid type: string \"a, expected b\", expected f32",
                "expected a number, not \"a, expected b\"",
            ),
            ("invalid type: integer `1`, expected a boolean", "expected true or false, not 1"),
            (
                "invalid type: map, expected a sequence at line 1 column 0",
                "expected a list, not names with values at line 1 column 0",
            ),
            (
                "unknown variant `fixde`, expected `fixed` or `learned`",
                "there is no `fixde`; write `fixed` or `learned`",
            ),
            (
                "unknown variant `x`, expected one of `a`, `b`",
                "there is no `x`; write one of these: `a`, `b`",
            ),
            ("EOF while parsing a list at line 3 column 7", "EOF while parsing a list at line 3 column 7"),
        ] {
            assert_eq!(plain_words(parser), person);
        }
        let toml = "TOML parse error at line 1, column 5\n  |\n1 | a = -\ninvalid type: string \"x\", expected i64\n";
        assert!(plain_words(toml).ends_with("1 | a = -\nexpected a whole number, not \"x\""));
    }
}
