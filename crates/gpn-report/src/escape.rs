//! Text made safe for the format it is written into.

/// Text for XML and HTML, good between tags and inside quoted attributes. Control characters, which XML
/// cannot carry, become spaces.
pub(crate) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Text for LaTeX outside math mode; signs that every figure or table here uses become their commands.
pub(crate) fn latex(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("$<$"),
            '>' => out.push_str("$>$"),
            '±' => out.push_str("$\\pm$"),
            '→' => out.push_str("$\\rightarrow$"),
            '−' => out.push_str("$-$"),
            '×' => out.push_str("$\\times$"),
            '✓' => out.push_str("$\\checkmark$"),
            'λ' => out.push_str("$\\lambda$"),
            '–' => out.push_str("--"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Text for a cell of a Markdown table: one line, nothing read as markup.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '~' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// The address of a link in Markdown: characters that would end it are written as percent codes.
pub(crate) fn markdown_address(address: &str) -> String {
    let mut out = String::with_capacity(address.len());
    for c in address.chars() {
        match c {
            '(' => out.push_str("%28"),
            ')' => out.push_str("%29"),
            '<' => out.push_str("%3C"),
            '>' => out.push_str("%3E"),
            '|' => out.push_str("%7C"),
            '\\' => out.push_str("%5C"),
            c if c.is_control() || c == ' ' => out.push_str("%20"),
            c => out.push(c),
        }
    }
    out
}

/// A field of a CSV file, quoted where it must be.
pub(crate) fn csv(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) || text.starts_with(' ') || text.ends_with(' ') {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Whether an address may become a link: a path within the report's folder or a plain web address, never a
/// script.
pub(crate) fn is_safe_address(address: &str) -> bool {
    let head = address.split(['/', '?', '#']).next().unwrap_or_default();
    match head.split_once(':') {
        Some((scheme, _)) => matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https" | "file"),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(xml("<b a=\"1\">'&'\u{0}"), "&lt;b a=&quot;1&quot;&gt;&#39;&amp;&#39; ");
        assert_eq!(latex("50% of a_b \\ N→C"), "50\\% of a\\_b \\textbackslash{} N$\\rightarrow$C");
        assert_eq!(markdown("a|b *c* <i>\n"), "a\\|b \\*c\\* &lt;i&gt; ");
        assert_eq!(csv("plain"), "plain");
        assert_eq!(csv("a,\"b\""), "\"a,\"\"b\"\"\"");
    }

    #[test]
    fn scripts_are_no_links() {
        assert!(is_safe_address("runs/gpn-5w1s/report.html"));
        assert!(is_safe_address("https://example.org/a:b"));
        assert!(is_safe_address("runs/a:b"));
        assert!(!is_safe_address("javascript:alert(1)"));
        assert!(!is_safe_address("JavaScript:alert(1)"));
        assert!(!is_safe_address("data:text/html,x"));
    }

    proptest! {
        #[test]
        fn escaped_text_reads_back_from_xml(text in "\\PC*") {
            let document = format!("<t a=\"{0}\">{0}</t>", xml(&text));
            let mut reader = quick_xml::Reader::from_str(&document);
            let mut read = String::new();
            loop {
                match reader.read_event().unwrap() {
                    quick_xml::events::Event::Text(t) => read.push_str(&t),
                    quick_xml::events::Event::GeneralRef(r) => {
                        let entity = format!("&{};", &*r);
                        read.push_str(&quick_xml::escape::unescape(&entity).unwrap());
                    }
                    quick_xml::events::Event::Eof => break,
                    _ => {}
                }
            }
            prop_assert_eq!(read, text);
        }
    }
}
