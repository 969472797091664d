//! Messages between classes: attention and gates on the graph of one task.

use super::layers::{Layers, layers};
use crate::ReportError;
use crate::colour::Colour;
use crate::figure::Figure;
use crate::font::{Weight, fit, text_width};
use crate::labels::{Area, Labels, first_name};
use crate::legend::{self, Entry};
use crate::scene::{Anchor, Drawn, Paint, Path, Scene, Shape, Step, Stroke, Text};

/// The messages of one propagation step on the graph of one task.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageGraph {
    /// Title.
    pub title: String,
    /// The classes of the graph.
    pub nodes: Vec<GraphNode>,
    /// Edges of the class graph from parent to child, as positions in `nodes`.
    pub edges: Vec<(usize, usize)>,
    /// Messages along the edges, in either direction; what a class tells itself is left to its gate.
    pub messages: Vec<Message>,
}

/// A class of the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphNode {
    /// Name of the class.
    pub name: String,
    /// Whether the task asks for this class; other classes lend their prototypes from memory.
    pub target: bool,
    /// The gate: the share of the new prototype that comes from the class itself, the rest comes from its
    /// neighbours. None where the class has no neighbours.
    pub gate: Option<f32>,
}

/// A message from a class to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub from: usize,
    /// Who listens.
    pub to: usize,
    /// Attention the listener pays; negative where cosines are used as they are.
    pub attention: f32,
}

const NAME_SIZE: f32 = 13.0;
const NODE_WIDTH: f32 = 176.0;
const NODE_HEIGHT: f32 = 40.0;
/// Height a node grows by for each line that ends at one of its sides.
const PORT: f32 = 11.0;
const BETWEEN: f32 = 148.0;
const GAP: f32 = 14.0;
const MARGIN: f32 = 18.0;
const DOWN: Colour = Colour::Series(0);
const UP: Colour = Colour::Series(1);

impl MessageGraph {
    /// Draws the graph from its roots on the left to its leaves on the right. The width of an arrow is the
    /// attention, its colour the direction; the bar of a class is its gate.
    pub fn figure(&self) -> Result<Figure, ReportError> {
        let n = self.nodes.len();
        let fail = |what: String| ReportError::Figure { figure: self.title.clone(), what };
        if let Some(&(a, b)) = self.edges.iter().find(|&&(a, b)| a >= n || b >= n) {
            return Err(fail(format!("edge {a} to {b} leads out of the {n} classes")));
        }
        let mut lines = Vec::new();
        for message in self.messages.iter().filter(|m| m.from != m.to) {
            let edge = self.edges.iter().position(|&(a, b)| {
                (a, b) == (message.from, message.to) || (b, a) == (message.from, message.to)
            });
            let Some(edge) = edge else {
                let what = format!("message from {} to {} without an edge", message.from, message.to);
                return Err(fail(what));
            };
            if !message.attention.is_finite() {
                return Err(fail(format!("attention of {} to {} is no number", message.to, message.from)));
            }
            lines.push(Line { edge, down: self.edges[edge].0 == message.from, message: *message });
        }
        let heights: Vec<f32> = (0..n)
            .map(|c| {
                let right = lines.iter().filter(|l| self.edges[l.edge].0 == c).count();
                let left = lines.iter().filter(|l| self.edges[l.edge].1 == c).count();
                (right.max(left) as f32 * PORT + 8.0).max(NODE_HEIGHT)
            })
            .collect();
        let laid =
            layers(&heights, &self.edges, GAP).ok_or_else(|| fail("its edges run in a circle".to_owned()))?;
        Ok(self.draw(&laid, &heights, &lines))
    }

    fn draw(&self, laid: &Layers, heights: &[f32], lines: &[Line]) -> Figure {
        let columns = laid.column.iter().max().map_or(1, |c| c + 1);
        let mut widths = vec![90.0f32; columns];
        for (node, &column) in self.nodes.iter().zip(&laid.column) {
            let width = text_width(first_name(&node.name), NAME_SIZE, weight(node)) + 24.0;
            widths[column] = widths[column].max(width.min(NODE_WIDTH));
        }
        let mut lefts = Vec::with_capacity(columns);
        let mut x = MARGIN;
        for width in &widths {
            lefts.push(x);
            x += width + BETWEEN;
        }
        let width = (x - BETWEEN + MARGIN).max(640.0);
        let shift = (width - (x - BETWEEN + MARGIN)) / 2.0;
        for left in &mut lefts {
            *left += shift;
        }
        let entries = legend_entries(lines, self.nodes.iter().any(|node| node.gate.is_some()));
        let top = MARGIN + 6.0 + legend::height(&entries, MARGIN, width - MARGIN);
        let mut scene = Scene::new(width, top + laid.height + MARGIN);
        legend::draw(&mut scene, &entries, MARGIN, width - MARGIN, 10.0);

        let boxes: Vec<Area> = (0..self.nodes.len())
            .map(|c| {
                let left = lefts[laid.column[c]];
                let middle = top + laid.y[c];
                Area {
                    left,
                    top: middle - heights[c] / 2.0,
                    right: left + widths[laid.column[c]],
                    bottom: middle + heights[c] / 2.0,
                }
            })
            .collect();
        let ports = self.ports(laid, lines, &boxes);
        let strongest = lines.iter().map(|l| l.message.attention.abs()).fold(1e-6, f32::max);
        let mut labels = Labels::new(Area { left: 0.0, top: 0.0, right: width, bottom: scene.height });
        for area in &boxes {
            labels.keep_off(*area);
        }
        let mut numbers = Vec::new();
        // Weak messages first, so that strong ones lie on top.
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.sort_by(|&a, &b| lines[a].message.attention.abs().total_cmp(&lines[b].message.attention.abs()));
        for &l in &order {
            let line = &lines[l];
            let (parent, child) = self.edges[line.edge];
            let mut route = vec![[boxes[parent].right, ports[l].0]];
            for (i, &y) in laid.passes[line.edge].iter().enumerate() {
                let column = laid.column[parent] + 1 + i;
                let y = y + top + if line.down { -3.0 } else { 3.0 };
                route.push([lefts[column], y]);
                route.push([lefts[column] + widths[column], y]);
            }
            route.push([boxes[child].left, ports[l].1]);
            if !line.down {
                route.reverse();
            }
            self.draw_message(&mut scene, line, &route, strongest);
            numbers.push((l, route));
        }
        for (l, route) in numbers.iter().rev() {
            draw_number(&mut scene, &mut labels, &lines[*l], route);
        }
        for (node, area) in self.nodes.iter().zip(&boxes) {
            draw_node(&mut scene, node, area);
        }
        Figure {
            title: self.title.clone(),
            caption: "Messages between the classes of one task. An arrow is as wide as the attention its \
                      receiver pays to its sender, written where it is not 1.00 and there is room; the bar of a class is its gate, the share of its own \
                      prototype that it keeps. Classes with a strong outline are those of the task, the others \
                      lend their prototypes from memory."
                .to_owned(),
            scene,
        }
    }

    /// Where each line touches its parent and its child: the lines of a side share its height, in the order of
    /// their other ends.
    fn ports(&self, laid: &Layers, lines: &[Line], boxes: &[Area]) -> Vec<(f32, f32)> {
        let mut ports = vec![(0.0, 0.0); lines.len()];
        for (class, area) in boxes.iter().enumerate() {
            for of_parent in [true, false] {
                let mut own: Vec<usize> = (0..lines.len())
                    .filter(|&l| {
                        let (parent, child) = self.edges[lines[l].edge];
                        class == if of_parent { parent } else { child }
                    })
                    .collect();
                let far = |l: usize| {
                    let (parent, child) = self.edges[lines[l].edge];
                    let passes = &laid.passes[lines[l].edge];
                    if of_parent {
                        passes.first().copied().unwrap_or(laid.y[child])
                    } else {
                        passes.last().copied().unwrap_or(laid.y[parent])
                    }
                };
                own.sort_by(|&a, &b| {
                    far(a).total_cmp(&far(b)).then((!lines[a].down).cmp(&!lines[b].down)).then(a.cmp(&b))
                });
                let middle = f32::midpoint(area.top, area.bottom);
                let first = middle - (own.len() as f32 - 1.0) * PORT / 2.0;
                for (i, &l) in own.iter().enumerate() {
                    let y = first + i as f32 * PORT;
                    if of_parent { ports[l].0 = y } else { ports[l].1 = y }
                }
            }
        }
        ports
    }

    fn draw_message(&self, scene: &mut Scene, line: &Line, route: &[[f32; 2]], strongest: f32) {
        let colour = if line.down { DOWN } else { UP };
        let width = line_width(line.message.attention, strongest);
        let head = (width * 1.1 + 4.5).min(9.5);
        let last = route.len() - 1;
        let ahead = if route[last][0] > route[last - 1][0] { 1.0 } else { -1.0 };
        let tip = [route[last][0] - ahead * 1.5, route[last][1]];
        let mut route = route.to_vec();
        route[last] = [tip[0] - ahead * head * 0.8, tip[1]];
        let mut steps = vec![Step::Move(route[0])];
        for (i, pair) in route.windows(2).enumerate() {
            // A pass through a column is straight, everything between columns is a curve.
            if i % 2 == 1 {
                steps.push(Step::Line(pair[1]));
            } else {
                let bend = (pair[1][0] - pair[0][0]) * 0.5;
                let ends = [[pair[0][0] + bend, pair[0][1]], [pair[1][0] - bend, pair[1][1]]];
                steps.push(Step::Curve(ends[0], ends[1], pair[1]));
            }
        }
        let paint = colour.at(0.35 + 0.5 * (line.message.attention.abs() / strongest));
        let mut stroke = Stroke::new(paint, width);
        if line.message.attention < 0.0 {
            stroke = stroke.dashed(5.0, 3.0);
        }
        let back = tip[0] - ahead * head;
        let half = head * 0.5;
        let arrow = Path::polygon(&[tip, [back, tip[1] - half], [back, tip[1] + half]]);
        let words = format!(
            "{} to {}: attention {:.3}",
            self.nodes[line.message.from].name, self.nodes[line.message.to].name, line.message.attention
        );
        scene.tipped(
            words,
            vec![
                Drawn::Shape(Shape { path: Path(steps), fill: None, stroke: Some(stroke) }),
                Drawn::Shape(Shape { path: arrow, fill: Some(colour.into()), stroke: None }),
            ],
        );
    }
}

/// A message and the edge it runs along.
struct Line {
    edge: usize,
    /// From parent to child.
    down: bool,
    message: Message,
}

fn line_width(attention: f32, strongest: f32) -> f32 {
    0.8 + 5.2 * attention.abs() / strongest
}

fn weight(node: &GraphNode) -> Weight {
    if node.target { Weight::Bold } else { Weight::Regular }
}

/// Writes the attention on its line, nearer to the receiver, if there is room. All of it needs no number.
fn draw_number(scene: &mut Scene, labels: &mut Labels, line: &Line, route: &[[f32; 2]]) {
    let [from, to] = [route[route.len() - 2], route[route.len() - 1]];
    let text = format!("{:.2}", line.message.attention).replace('-', "−");
    if text == "1.00" {
        return;
    }
    let half = text_width(&text, 10.5, Weight::Regular) / 2.0 + 1.5;
    for t in [0.7, 0.6, 0.78, 0.5, 0.4, 0.3] {
        let at = on_curve(from, to, t);
        let area = Area { left: at[0] - half, top: at[1] - 5.6, right: at[0] + half, bottom: at[1] + 5.6 };
        if labels.take(area) {
            let colour = if line.down { DOWN } else { UP };
            let text = Text::new(text, [at[0], at[1] + 3.8], 10.5).anchor(Anchor::Middle);
            let (width, height) = (area.right - area.left, area.bottom - area.top);
            scene.fill(Path::rectangle(area.left, area.top, width, height, 4.0), Colour::Paper.at(0.92));
            scene.text(text.paint(colour));
            return;
        }
    }
}

/// A point of the curve between two columns.
fn on_curve(from: [f32; 2], to: [f32; 2], t: f32) -> [f32; 2] {
    let bend = (to[0] - from[0]) * 0.5;
    let s = 1.0 - t;
    let mix = |a: f32, b: f32, c: f32, d: f32| {
        s * s * s * a + 3.0 * s * s * t * b + 3.0 * s * t * t * c + t * t * t * d
    };
    [mix(from[0], from[0] + bend, to[0] - bend, to[0]), mix(from[1], from[1], to[1], to[1])]
}

fn draw_node(scene: &mut Scene, node: &GraphNode, area: &Area) {
    let (width, middle) = (area.right - area.left, f32::midpoint(area.top, area.bottom));
    let outline = if node.target { Stroke::new(Colour::Ink, 1.8) } else { Stroke::new(Colour::Faint, 1.0) };
    let mut marks = vec![Drawn::Shape(Shape {
        path: Path::rectangle(area.left, area.top, width, area.bottom - area.top, 7.0),
        fill: Some(Colour::Paper.into()),
        stroke: Some(outline),
    })];
    let name = fit(first_name(&node.name), NAME_SIZE, weight(node), width - 18.0);
    let base = if node.gate.is_some() { middle - 2.0 } else { middle + 4.6 };
    let mut text = Text::new(name, [area.left + 11.0, base], NAME_SIZE);
    text.weight = weight(node);
    marks.push(Drawn::Text(text));
    let mut words = node.name.clone();
    if let Some(gate) = node.gate {
        let gate = gate.clamp(0.0, 1.0);
        let long = width - 22.0 - 36.0;
        let bar = |share: f32, paint: Paint| {
            let path = Path::rectangle(area.left + 11.0, middle + 6.0, long * share, 5.0, 2.5);
            Drawn::Shape(Shape { path, fill: Some(paint), stroke: None })
        };
        marks.push(bar(1.0, Colour::Grid.into()));
        marks.push(bar(gate, GATE.into()));
        let number = Text::new(format!("{gate:.2}"), [area.right - 11.0, middle + 12.4], 11.0);
        marks.push(Drawn::Text(number.anchor(Anchor::End).paint(Colour::Muted)));
        words = format!("{words}: keeps {:.1} % of its own prototype", gate * 100.0);
    }
    scene.tipped(words, marks);
}

const GATE: Colour = Colour::Series(2);

fn legend_entries(lines: &[Line], gates: bool) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (down, colour, name) in [(true, DOWN, "from parent to child"), (false, UP, "from child to parent")] {
        if lines.iter().any(|line| line.down == down) {
            entries.push(Entry::new(28.0, name, move |[x, y]| {
                let line = Path::line(&[[x - 14.0, y], [x + 7.0, y]]);
                let head = Path::polygon(&[[x + 14.0, y], [x + 6.0, y - 4.5], [x + 6.0, y + 4.5]]);
                vec![
                    Drawn::Shape(Shape {
                        path: line,
                        fill: None,
                        stroke: Some(Stroke::new(colour.at(0.85), 3.0)),
                    }),
                    Drawn::Shape(Shape { path: head, fill: Some(colour.into()), stroke: None }),
                ]
            }));
        }
    }
    let strongest = lines.iter().map(|l| l.message.attention.abs()).fold(0.0, f32::max);
    if strongest > 0.0 {
        let width = line_width(strongest, strongest);
        entries.push(Entry::new(22.0, format!("attention {strongest:.2}"), move |[x, y]| {
            let path = Path::line(&[[x - 9.0, y], [x + 9.0, y]]);
            let stroke = Some(Stroke::new(Colour::Muted, width));
            vec![Drawn::Shape(Shape { path, fill: None, stroke })]
        }));
    }
    if gates {
        entries.push(Entry::new(34.0, "gate: share kept of the own prototype", |[x, y]| {
            let bar = |width: f32, paint: Colour| {
                let path = Path::rectangle(x - 17.0, y - 2.5, width, 5.0, 2.5);
                Drawn::Shape(Shape { path, fill: Some(paint.into()), stroke: None })
            };
            vec![bar(34.0, Colour::Grid), bar(20.0, GATE)]
        }));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> MessageGraph {
        let node =
            |name: &str, target| GraphNode { name: name.to_owned(), target, gate: target.then_some(0.4) };
        MessageGraph {
            title: "Messages".to_owned(),
            nodes: vec![node("mammal", false), node("cat", true), node("dog", true)],
            edges: vec![(0, 1), (0, 2)],
            messages: vec![
                Message { from: 0, to: 1, attention: 1.0 },
                Message { from: 1, to: 0, attention: 0.25 },
                Message { from: 2, to: 0, attention: -0.75 },
            ],
        }
    }

    #[test]
    fn messages_and_gates_are_said_in_words() {
        let svg = small().figure().unwrap().to_svg();
        assert!(svg.contains("<title>mammal to cat: attention 1.000</title>"));
        assert!(svg.contains("<title>dog to mammal: attention -0.750</title>"));
        assert!(svg.contains("<title>cat: keeps 40.0 % of its own prototype</title>"));
        assert!(svg.contains(">−0.75</text>"));
        assert!(svg.contains("stroke-dasharray"));
    }

    #[test]
    fn contradictions_are_refused() {
        let mut graph = small();
        graph.messages.push(Message { from: 1, to: 2, attention: 0.1 });
        let message = graph.figure().unwrap_err().to_string();
        assert!(message.ends_with("message from 1 to 2 without an edge"), "{message}");
        let mut graph = small();
        graph.edges.push((1, 0));
        assert!(graph.figure().unwrap_err().to_string().ends_with("its edges run in a circle"));
    }
}
