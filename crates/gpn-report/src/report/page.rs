//! From a report to its page.

use super::class_pictures::pairs_to_html;
use super::{Block, Card, Fact, Report};
use crate::ReportError;
use crate::colour::dark_rules;
use crate::escape::xml;
use crate::figure::Figure;
use crate::table::to_html as table_to_html;
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");
/// With fewer sections a list of them is in the way.
const SECTIONS_WORTH_A_LIST: usize = 4;

pub(super) fn to_html(report: &Report) -> Result<String, ReportError> {
    let title = xml(&report.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}\
         @media (prefers-color-scheme: dark) {{\n{}}}\n</style>\n</head>\n<body>\n<main>\n",
        dark_rules()
    );
    let _ = writeln!(out, "<header>\n<h1>{title}</h1>");
    if !report.lead.is_empty() {
        let _ = writeln!(out, "<p class=\"lead\">{}</p>", prose(&report.lead));
    }
    out.push_str("</header>\n");
    push_cards(&mut out, &report.cards);
    if report.sections.len() >= SECTIONS_WORTH_A_LIST {
        out.push_str("<nav><ul>\n");
        for (i, section) in report.sections.iter().enumerate() {
            let _ = writeln!(out, "<li><a href=\"#s{}\">{}</a></li>", i + 1, xml(&section.title));
        }
        out.push_str("</ul></nav>\n");
    }
    for (i, section) in report.sections.iter().enumerate() {
        let _ = writeln!(out, "<section id=\"s{}\">\n<h2>{}</h2>", i + 1, xml(&section.title));
        for block in &section.blocks {
            push_block(&mut out, block)?;
        }
        out.push_str("</section>\n");
    }
    if !report.environment.is_empty() {
        out.push_str("<footer><dl>\n");
        for (name, value) in &report.environment {
            let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", xml(name), prose(value));
        }
        out.push_str("</dl></footer>\n");
    }
    out.push_str("</main>\n</body>\n</html>\n");
    Ok(out)
}

fn push_cards(out: &mut String, cards: &[Card]) {
    if cards.is_empty() {
        return;
    }
    out.push_str("<div class=\"cards\">\n");
    for card in cards {
        let class = if card.accent { "card accent" } else { "card" };
        let _ = write!(
            out,
            "<div class=\"{class}\"><span class=\"label\">{}</span><span class=\"value\">{}</span>",
            xml(&card.label),
            xml(&card.value)
        );
        if !card.detail.is_empty() {
            let _ = write!(out, "<span class=\"detail\">{}</span>", xml(&card.detail));
        }
        out.push_str("</div>\n");
    }
    out.push_str("</div>\n");
}

fn push_block(out: &mut String, block: &Block) -> Result<(), ReportError> {
    match block {
        Block::Text(text) => {
            let _ = writeln!(out, "<p>{}</p>", prose(text));
        }
        Block::Note(text) => {
            let _ = writeln!(out, "<p class=\"callout\">{}</p>", prose(text));
        }
        Block::Code(text) => {
            let _ = writeln!(out, "<pre><code>{}</code></pre>", xml(text));
        }
        Block::Table(table) => out.push_str(&table_to_html(table)),
        Block::Figure(figure) => push_figure(out, figure),
        Block::Pictures(strip) => out.push_str(&strip.to_html()?),
        Block::Class(class) => out.push_str(&class.to_html()?),
        Block::Alike(pairs) => out.push_str(&pairs_to_html(pairs)?),
        Block::Facts(facts) => push_facts(out, facts),
        Block::Details { summary, blocks } => {
            let _ = writeln!(out, "<details>\n<summary>{}</summary>", prose(summary));
            for block in blocks {
                push_block(out, block)?;
            }
            out.push_str("</details>\n");
        }
    }
    Ok(())
}

fn push_facts(out: &mut String, facts: &[Fact]) {
    out.push_str("<ul class=\"facts\">\n");
    for fact in facts {
        let _ = writeln!(
            out,
            "<li><strong>{}</strong><span>{}</span></li>",
            xml(&fact.value),
            prose(&fact.sentence)
        );
    }
    out.push_str("</ul>\n");
}

fn push_figure(out: &mut String, figure: &Figure) {
    // On a narrow screen a figure keeps a width at which its words can be read, and scrolls.
    let least = figure.scene.width * 0.85;
    let most = figure.scene.width * 1.2;
    let _ = writeln!(
        out,
        "<figure class=\"drawing\"><div class=\"scroll\" tabindex=\"0\" style=\"--least:{least}px;--most:{most}px\">{}</div>\n\
         <figcaption><strong>{}.</strong> {}</figcaption></figure>",
        figure.to_svg(),
        xml(figure.title.trim_end_matches('.')),
        xml(&figure.caption)
    );
}

/// Escaped text with parts between backticks set as code.
fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd number of backticks leaves the last one as it is.
    let paired = (parts.len() - 1) / 2 * 2;
    let mut out = String::new();
    for (i, part) in parts.iter().enumerate() {
        let part = xml(part);
        let _ = match i {
            i if i > paired => write!(out, "`{part}"),
            i if i % 2 == 1 => write!(out, "<code>{part}</code>"),
            _ => write!(out, "{part}"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_set_code_and_everything_is_escaped() {
        assert_eq!(prose("run `gpn <x>` & see"), "run <code>gpn &lt;x&gt;</code> &amp; see");
        assert_eq!(prose("a ` b"), "a ` b");
        assert_eq!(prose("`a` ` b"), "<code>a</code> ` b");
    }

    #[test]
    fn no_text_becomes_markup() {
        let evil = "<script>alert('x')</script>";
        let mut report = Report::new(evil, evil);
        report.card(Card::new(evil, evil).detail(evil)).environment(evil, evil);
        let blocks = vec![
            Block::Text(evil.to_owned()),
            Block::Note(evil.to_owned()),
            Block::Code(evil.to_owned()),
            Block::Details { summary: evil.to_owned(), blocks: vec![] },
        ];
        report.section(evil, blocks);
        let html = report.to_html().unwrap();
        assert!(!html.contains("<script"));
        assert_eq!(html.matches("&lt;script&gt;").count(), 13);
    }
}
