//! A drawing as SVG.

use crate::colour::hex;
use crate::escape::xml;
use crate::font::Weight;
use crate::scene::{Anchor, Drawn, Paint, Path, Scene, Shape, Step, Text};
use std::fmt::Write as _;

/// The typeface the figure is laid out with, and where it is missing, others that need no more room.
const FAMILY: &str = "'Noto Sans', 'Segoe UI', 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif";

/// Writes a drawing as one `svg` element with a label and a description for readers who cannot see it. (A title
/// element would follow the pointer everywhere; only what has words of its own shows them.)
///
/// Colours stand in attributes, so any program can draw the file, and roles in classes, so a page's style sheet
/// can give them other values. There are no ids, so a page can hold many drawings.
pub(crate) fn to_svg(scene: &Scene, title: &str, description: &str) -> String {
    let (w, h) = (scene.width, scene.height);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" \
         role=\"img\" aria-label=\"{}\" font-family=\"{FAMILY}\">",
        xml(title)
    );
    if !description.is_empty() {
        let _ = writeln!(out, "<desc>{}</desc>", xml(description));
    }
    let _ = writeln!(out, "<rect class=\"f-paper\" width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>");
    for item in &scene.items {
        if let Some(tip) = &item.tip {
            let _ = writeln!(out, "<g class=\"tip\"><title>{}</title>", xml(tip));
        }
        for mark in &item.marks {
            match mark {
                Drawn::Shape(shape) => push_shape(&mut out, shape),
                Drawn::Text(text) => push_text(&mut out, text),
            }
        }
        if item.tip.is_some() {
            out.push_str("</g>\n");
        }
    }
    out.push_str("</svg>\n");
    out
}

fn push_shape(out: &mut String, shape: &Shape) {
    let mut classes = Vec::new();
    let mut style = String::new();
    match shape.fill {
        Some(paint) => {
            classes.push(format!("f-{}", paint.colour.role()));
            push_paint(&mut style, "fill", paint);
        }
        None => style.push_str(" fill=\"none\""),
    }
    if let Some(stroke) = shape.stroke {
        classes.push(format!("l-{}", stroke.paint.colour.role()));
        push_paint(&mut style, "stroke", stroke.paint);
        let _ = write!(style, " stroke-width=\"{}\"", short(stroke.width));
        style.push_str(" stroke-linejoin=\"round\"");
        match stroke.dash {
            Some([dash, gap]) => {
                let _ = write!(style, " stroke-dasharray=\"{} {}\"", short(dash), short(gap));
            }
            None => style.push_str(" stroke-linecap=\"round\""),
        }
    }
    let _ = writeln!(out, "<path class=\"{}\" d=\"{}\"{style}/>", classes.join(" "), path_data(&shape.path));
}

fn push_text(out: &mut String, text: &Text) {
    let [x, y] = text.at;
    let mut classes = format!("f-{}", text.paint.colour.role());
    let mut style = String::new();
    push_paint(&mut style, "fill", text.paint);
    match text.anchor {
        Anchor::Start => {}
        Anchor::Middle => style.push_str(" text-anchor=\"middle\""),
        Anchor::End => style.push_str(" text-anchor=\"end\""),
    }
    if text.weight == Weight::Bold {
        style.push_str(" font-weight=\"700\"");
    }
    if text.halo {
        classes.push_str(" l-paper");
        let _ = write!(
            style,
            " stroke=\"#ffffff\" stroke-width=\"{}\" stroke-linejoin=\"round\" paint-order=\"stroke\"",
            short(HALO)
        );
    }
    if text.upright {
        let _ = write!(style, " transform=\"rotate(-90 {} {})\"", short(x), short(y));
    }
    let _ = writeln!(
        out,
        "<text class=\"{classes}\" x=\"{}\" y=\"{}\" font-size=\"{}\"{style}>{}</text>",
        short(x),
        short(y),
        short(text.size),
        xml(&text.text)
    );
}

/// Width of the rim of paper around a text, half of it hidden by the text.
pub(crate) const HALO: f32 = 3.5;

fn push_paint(out: &mut String, what: &str, paint: Paint) {
    let _ = write!(out, " {what}=\"{}\"", hex(paint.colour.rgb()));
    if paint.opacity < 1.0 {
        let _ = write!(out, " {what}-opacity=\"{}\"", short(paint.opacity));
    }
}

fn path_data(path: &Path) -> String {
    let mut out = String::new();
    for step in &path.0 {
        let (letter, points): (char, &[[f32; 2]]) = match step {
            Step::Move(p) => ('M', &[*p]),
            Step::Line(p) => ('L', &[*p]),
            Step::Curve(a, b, c) => ('C', &[*a, *b, *c]),
            Step::Close => ('Z', &[]),
        };
        out.push(letter);
        for (i, [x, y]) in points.iter().enumerate() {
            let gap = if i == 0 { "" } else { " " };
            let _ = write!(out, "{gap}{} {}", short(*x), short(*y));
        }
    }
    out
}

/// A length with at most two digits after the point.
fn short(value: f32) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colour::Colour;
    use crate::scene::Stroke;

    #[test]
    fn a_small_drawing_reads_as_expected() {
        let mut scene = Scene::new(20.0, 10.0);
        scene.stroke(
            Path::line(&[[0.0, 0.5], [20.0, 1.256]]),
            Stroke::new(Colour::Grid, 1.0).dashed(2.0, 1.5),
        );
        let dot = Shape {
            path: Path::polygon(&[[1.0, 1.0], [2.0, 1.0], [2.0, 2.0]]),
            fill: Some(Colour::Series(1).at(0.5)),
            stroke: None,
        };
        scene.tipped("cats & dogs", vec![Drawn::Shape(dot)]);
        let expected = "\
<rect class=\"f-paper\" width=\"20\" height=\"10\" fill=\"#ffffff\"/>
<path class=\"l-grid\" d=\"M0 0.5L20 1.26\" fill=\"none\" stroke=\"#e3e6ea\" stroke-width=\"1\" stroke-linejoin=\"round\" stroke-dasharray=\"2 1.5\"/>
<g class=\"tip\"><title>cats &amp; dogs</title>
<path class=\"f-s1\" d=\"M1 1L2 1L2 2Z\" fill=\"#d55e00\" fill-opacity=\"0.5\"/>
</g>
</svg>
";
        let svg = to_svg(&scene, "a < b", "");
        let (head, body) = svg.split_once(">\n").unwrap();
        assert!(head.contains("aria-label=\"a &lt; b\""), "{head}");
        assert_eq!(body, expected);
    }
}
