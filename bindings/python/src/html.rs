//! How notebooks show things.

use std::fmt::Write as _;

use gpn::taxonomy::{Node, Taxonomy};
use gpn::train::Estimate;
use gpn::{Evaluation, Prediction, Relation};

/// Classes shown of a graph.
const SHOWN_CLASSES: usize = 200;
/// Shares shown of an explanation.
const SHOWN_SHARES: usize = 8;

pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// The graph as a tree that folds; a class with several parents stands below each.
pub(crate) fn taxonomy(graph: &Taxonomy) -> String {
    let mut text = format!("<div><b>{} classes, {} edges</b>", graph.len(), graph.edge_count());
    // Entering a class (its depth), or leaving one.
    let mut open: Vec<Option<(Node, usize)>> = graph.roots().map(|root| Some((root, 0))).collect();
    open.reverse();
    let mut shown = 0;
    text.push_str("<ul>");
    while let Some(next) = open.pop() {
        let Some((node, depth)) = next else {
            text.push_str("</ul></details></li>");
            continue;
        };
        shown += 1;
        if shown > SHOWN_CLASSES {
            continue;
        }
        let label = match graph.own_name(node) {
            Some(name) if name != graph.id(node) => {
                format!("{} <small>{}</small>", escaped(name), escaped(graph.id(node)))
            }
            _ => escaped(graph.id(node)),
        };
        if graph.children(node).is_empty() {
            let _ = write!(text, "<li>{label}</li>");
            continue;
        }
        let fold = if depth < 2 { " open" } else { "" };
        let _ = write!(text, "<li><details{fold}><summary>{label}</summary><ul>");
        open.push(None);
        open.extend(graph.children(node).iter().rev().map(|&child| Some((child, depth + 1))));
    }
    text.push_str("</ul>");
    if shown > SHOWN_CLASSES {
        let _ = write!(text, "<i>the first {SHOWN_CLASSES} places are shown</i>");
    }
    text + "</div>"
}

/// A prediction with bars, and what shaped the likeliest class.
pub(crate) fn prediction(prediction: &Prediction) -> String {
    let mut text = format!("<table><caption>{}</caption>", escaped(&prediction.file));
    for class in &prediction.classes {
        let _ = write!(
            text,
            "<tr><td style=\"text-align:left\">{}</td><td>{:.1}%</td><td>{}</td></tr>",
            escaped(&class.name),
            100.0 * class.probability,
            bar(class.probability, "#4c78a8")
        );
    }
    text.push_str("</table>");
    if let (Some(shares), Some(best)) = (&prediction.shaped_by, prediction.classes.first()) {
        let _ = write!(text, "<table><caption>what shaped {}</caption>", escaped(&best.name));
        for share in shares.iter().take(SHOWN_SHARES) {
            let relation = match share.relation {
                Relation::Own => "its own samples",
                Relation::Parent => "above it",
                Relation::Child => "below it",
                Relation::Nearest => "near it",
                Relation::Further => "further away",
                Relation::All => "",
            };
            let _ = write!(
                text,
                "<tr><td style=\"text-align:left\">{}</td><td>{relation}</td><td>{:.1}%</td><td>{}</td></tr>",
                escaped(&share.class.name),
                100.0 * share.share,
                bar(share.share, "#f58518")
            );
        }
        text.push_str("</table>");
    }
    text
}

fn bar(share: f64, colour: &str) -> String {
    format!(
        "<div style=\"background:{colour};height:0.8em;width:{:.0}px\"></div>",
        200.0 * share.clamp(0.0, 1.0)
    )
}

/// The accuracies of an evaluation.
pub(crate) fn evaluation(evaluation: &Evaluation) -> String {
    let mut text = String::from(
        "<table><tr><th style=\"text-align:left\">accuracy on tasks, %</th><th>mean</th><th>&plusmn;</th></tr>",
    );
    for (name, Estimate { mean, half_width }) in rows(evaluation) {
        let _ = write!(
            text,
            "<tr><td style=\"text-align:left\">{}</td><td>{mean:.2}</td><td>{half_width:.2}</td></tr>",
            escaped(&name)
        );
    }
    let _ =
        write!(text, "</table><small>{} tasks; {}</small>", evaluation.tasks, escaped(&evaluation.interval));
    text
}

/// The rows that the command line prints.
pub(crate) fn rows(evaluation: &Evaluation) -> Vec<(String, Estimate)> {
    let mut rows = vec![
        ("nearest mean of its embeddings".to_owned(), evaluation.base),
        (evaluation.title.clone(), evaluation.method),
        (format!("before and after propagation mixed, lambda {}", evaluation.lambda), evaluation.mixed),
        ("gain over the nearest mean, task by task".to_owned(), evaluation.gain),
    ];
    rows.extend(evaluation.against.map(|other| ("against the other run, task by task".to_owned(), other)));
    rows
}
