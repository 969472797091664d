//! The training prototypes on a map, with the class graph drawn between them.

use crate::ReportError;
use crate::axes::Range;
use crate::colour::Colour;
use crate::figure::Figure;
use crate::labels::{Area, Labels};
use crate::legend::{self, Entry};
use crate::scene::{Drawn, Paint, Path, Scene, Shape, Stroke, Text};
use std::collections::VecDeque;

/// Prototypes on a map and the edges of the class graph between them.
#[derive(Clone, Debug, PartialEq)]
pub struct PrototypeMap {
    /// Title.
    pub title: String,
    /// Name of each class.
    pub names: Vec<String>,
    /// Place of each prototype, as [`tsne`](crate::tsne()) gives it.
    pub positions: Vec<[f32; 2]>,
    /// Edges from parent to child, as positions in `names`.
    pub edges: Vec<(usize, usize)>,
    /// The class whose descendants stand out; all classes do if there is none.
    pub subtree: Option<usize>,
}

const WIDTH: f32 = 760.0;
const HEIGHT: f32 = 560.0;
const MARGIN: f32 = 26.0;
/// More names than this make a map no clearer; the others show on hover.
const NAMES: usize = 48;

/// How a class relates to the subtree.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Standing {
    depth: usize,
    /// Which child of the root it is or descends from.
    branch: Option<usize>,
}

impl PrototypeMap {
    /// Draws the map: classes of the subtree coloured by branch and named where there is room, all others pale.
    pub fn figure(&self) -> Result<Figure, ReportError> {
        self.check()?;
        let standing = self.standings();
        let branches = self.branches(&standing);
        let colour = |class: usize| match standing[class] {
            None => Colour::Faint,
            Some(Standing { branch: None, .. }) => Colour::Ink,
            Some(Standing { branch: Some(branch), .. }) => {
                branches.iter().position(|&b| b == branch).map_or(Colour::Muted, Colour::Series)
            }
        };
        let entries: Vec<Entry> = branches
            .iter()
            .map(|&branch| {
                let paint = colour(branch);
                Entry::new(11.0, self.names[branch].clone(), move |at| vec![dot(at, 5.0, paint)])
            })
            .collect();
        let head = 10.0 + legend::height(&entries, MARGIN, WIDTH - MARGIN);
        let mut scene = Scene::new(WIDTH, head + HEIGHT);
        legend::draw(&mut scene, &entries, MARGIN, WIDTH - MARGIN, 10.0);
        let places = fitted(
            &self.positions,
            Area { left: MARGIN, top: head + MARGIN, right: WIDTH - MARGIN, bottom: head + HEIGHT - MARGIN },
        );

        let inside =
            |&&(parent, child): &&(usize, usize)| standing[parent].is_some() && standing[child].is_some();
        for &(parent, child) in self.edges.iter().filter(|e| !inside(e)) {
            let line = Path::line(&[places[parent], places[child]]);
            scene.stroke(line, Stroke::new(Colour::Grid, 0.8));
        }
        for (class, &at) in places.iter().enumerate().filter(|(c, _)| standing[*c].is_none()) {
            scene.tipped(self.names[class].clone(), vec![dot(at, 2.3, Colour::Faint.at(0.55))]);
        }
        for &(parent, child) in self.edges.iter().filter(inside) {
            let line = Path::line(&[places[parent], places[child]]);
            scene.stroke(line, Stroke::new(colour(child).at(0.55), 1.3));
        }
        // Deep classes first, so that the few classes near the root lie on top.
        let mut order: Vec<(usize, usize)> =
            standing.iter().enumerate().filter_map(|(c, s)| s.map(|s| (s.depth, c))).collect();
        order.sort_by_key(|&(depth, class)| (depth, class));
        for &(depth, class) in order.iter().rev() {
            let mark = dot(places[class], radius(depth), colour(class));
            scene.tipped(self.tip(class), vec![mark]);
        }
        self.draw_names(&mut scene, &places, &order, head);
        Ok(Figure { title: self.title.clone(), caption: self.caption(), scene })
    }

    fn draw_names(&self, scene: &mut Scene, places: &[[f32; 2]], order: &[(usize, usize)], head: f32) {
        let bounds = Area { left: 4.0, top: head, right: WIDTH - 4.0, bottom: head + HEIGHT - 4.0 };
        let mut labels = Labels::new(bounds);
        for &(depth, class) in order {
            labels.keep_off(Area::around(places[class], radius(depth)));
        }
        let mut named = 0;
        for &(depth, class) in order {
            if named == NAMES {
                break;
            }
            let mut text =
                Text::new(short_name(&self.names[class]), [0.0, 0.0], if depth < 2 { 12.5 } else { 11.0 });
            text = if depth < 2 { text.bold() } else { text.paint(Colour::Muted) };
            if let Some(at) = labels.beside(places[class], radius(depth), text.width(), text.size) {
                text.at = at;
                scene.text(text.halo());
                named += 1;
            }
        }
    }

    fn tip(&self, class: usize) -> String {
        let parents: Vec<&str> = self
            .edges
            .iter()
            .filter(|&&(_, child)| child == class)
            .map(|&(parent, _)| self.names[parent].as_str())
            .collect();
        match parents.as_slice() {
            [] => self.names[class].clone(),
            parents => format!("{} (a kind of {})", self.names[class], parents.join(", ")),
        }
    }

    fn caption(&self) -> String {
        let what = match self.subtree {
            Some(root) => format!(
                "Prototypes of the training classes, those below \"{}\" in colour by branch.",
                self.names[root]
            ),
            None => "Prototypes of the training classes, in colour by branch.".to_owned(),
        };
        format!(
            "{what} Places by t-SNE; lines are the edges of the class graph. Pointing at a class names it."
        )
    }

    fn check(&self) -> Result<(), ReportError> {
        let fail = |what: String| Err(ReportError::Figure { figure: self.title.clone(), what });
        let n = self.names.len();
        if self.positions.len() != n {
            return fail(format!("{n} names for {} positions", self.positions.len()));
        }
        if let Some(class) = self.positions.iter().position(|p| !p.iter().all(|x| x.is_finite())) {
            return fail(format!("the position of class \"{}\" is no number", self.names[class]));
        }
        if let Some(&(a, b)) = self.edges.iter().find(|&&(a, b)| a >= n || b >= n) {
            return fail(format!("edge {a} to {b} leads out of the {n} classes"));
        }
        match self.subtree {
            Some(root) if root >= n => fail(format!("subtree {root} is not one of the {n} classes")),
            _ => Ok(()),
        }
    }

    /// Depth and branch of each class of the subtree, breadth first; a class reached twice keeps the first.
    fn standings(&self) -> Vec<Option<Standing>> {
        let n = self.names.len();
        let mut children = vec![Vec::new(); n];
        let mut has_parent = vec![false; n];
        for &(parent, child) in &self.edges {
            children[parent].push(child);
            has_parent[child] = true;
        }
        let roots: Vec<usize> = match self.subtree {
            Some(root) => vec![root],
            None => (0..n).filter(|&c| !has_parent[c]).collect(),
        };
        let mut standing = vec![None; n];
        let mut queue = VecDeque::new();
        // Several roots are the branches of a root that is not drawn.
        let alone = roots.len() == 1;
        for &root in &roots {
            let branch = (!alone).then_some(root);
            standing[root] = Some(Standing { depth: usize::from(!alone), branch });
            queue.push_back(root);
        }
        while let Some(class) = queue.pop_front() {
            let Some(Standing { depth, branch }) = standing[class] else { continue };
            for &child in &children[class] {
                if standing[child].is_none() {
                    let branch = Some(branch.unwrap_or(child));
                    standing[child] = Some(Standing { depth: depth + 1, branch });
                    queue.push_back(child);
                }
            }
        }
        standing
    }

    /// The branches that get a colour: the largest, as many as there are colours.
    fn branches(&self, standing: &[Option<Standing>]) -> Vec<usize> {
        let mut sizes = vec![0usize; self.names.len()];
        for branch in standing.iter().flatten().filter_map(|s| s.branch) {
            sizes[branch] += 1;
        }
        let mut branches: Vec<usize> = (0..sizes.len()).filter(|&b| sizes[b] > 0).collect();
        branches.sort_by_key(|&b| (std::cmp::Reverse(sizes[b]), b));
        branches.truncate(Colour::SERIES);
        branches
    }
}

/// The first of several names of a class, as WordNet lists them.
fn short_name(name: &str) -> String {
    let first = name.split(',').next().unwrap_or(name).trim();
    crate::font::fit(first, 12.0, crate::font::Weight::Regular, 130.0)
}

fn radius(depth: usize) -> f32 {
    match depth {
        0 => 7.5,
        1 => 6.0,
        2 => 4.6,
        _ => 3.8,
    }
}

fn dot(at: [f32; 2], radius: f32, paint: impl Into<Paint>) -> Drawn {
    let stroke = Some(Stroke::new(Colour::Paper, 0.8));
    Drawn::Shape(Shape { path: Path::circle(at, radius), fill: Some(paint.into()), stroke })
}

/// Points moved and scaled, alike in both directions, to fill an area.
pub(crate) fn fitted(points: &[[f32; 2]], area: Area) -> Vec<[f32; 2]> {
    let (x, y) = (Range::of(points.iter().map(|p| p[0])), Range::of(points.iter().map(|p| p[1])));
    let (width, height) = (area.right - area.left, area.bottom - area.top);
    let scale = (width / (x.high - x.low)).min(height / (y.high - y.low));
    let middle = [f32::midpoint(area.left, area.right), f32::midpoint(area.top, area.bottom)];
    let centre = [f32::midpoint(x.low, x.high), f32::midpoint(y.low, y.high)];
    points
        .iter()
        .map(|p| [middle[0] + (p[0] - centre[0]) * scale, middle[1] - (p[1] - centre[1]) * scale])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn animals() -> PrototypeMap {
        PrototypeMap {
            title: "Animals".to_owned(),
            names: ["animal", "mammal", "bird", "cat", "dog", "owl", "rock"].map(str::to_owned).to_vec(),
            positions: (0..7).map(|i| [i as f32, (i * i % 5) as f32]).collect(),
            edges: vec![(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)],
            subtree: Some(0),
        }
    }

    #[test]
    fn branches_are_coloured_and_others_pale() {
        let map = animals();
        let standing = map.standings();
        assert_eq!(standing[4], Some(Standing { depth: 2, branch: Some(1) }));
        assert_eq!(standing[0], Some(Standing { depth: 0, branch: None }));
        assert_eq!(standing[6], None);
        assert_eq!(map.branches(&standing), [1, 2]);
        let svg = map.figure().unwrap().to_svg();
        assert!(svg.contains("<title>dog (a kind of mammal)</title>"));
        assert!(svg.contains("<title>rock</title>"));
    }

    #[test]
    fn data_that_do_not_fit_are_refused() {
        let mut map = animals();
        map.edges.push((0, 9));
        let message = map.figure().unwrap_err().to_string();
        assert_eq!(message, "figure \"Animals\": edge 0 to 9 leads out of the 7 classes");
        let mut map = animals();
        map.positions[3][1] = f32::NAN;
        assert!(map.figure().unwrap_err().to_string().contains("\"cat\""));
    }

    #[test]
    fn no_classes_make_an_empty_map() {
        let map = PrototypeMap {
            title: String::new(),
            names: vec![],
            positions: vec![],
            edges: vec![],
            subtree: None,
        };
        assert!(map.figure().is_ok());
    }
}
