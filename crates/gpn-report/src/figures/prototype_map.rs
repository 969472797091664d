//! The training prototypes on a map, with the class graph drawn between them.

use crate::ReportError;
use crate::axes::Range;
use crate::colour::Colour;
use crate::figure::Figure;
use crate::font::{Weight, fit};
use crate::labels::{Area, Labels, first_name};
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
const HEIGHT: f32 = 540.0;
const MARGIN: f32 = 16.0;
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
    /// Draws the map: classes of the subtree coloured by branch and named where there is room, the part of the
    /// map around them, and where a corner is free, the whole map in small.
    pub fn figure(&self) -> Result<Figure, ReportError> {
        self.check()?;
        let standing = self.standings();
        let branches = self.branches(&standing);
        let colours: Vec<Colour> = standing
            .iter()
            .map(|standing| match standing {
                None => Colour::Faint,
                Some(Standing { branch: None, .. }) => Colour::Ink,
                // Where no branch divides, one colour is enough for all.
                Some(_) if branches.is_empty() => Colour::Series(0),
                Some(Standing { branch: Some(branch), .. }) => {
                    branches.iter().position(|b| b == branch).map_or(Colour::Muted, Colour::Series)
                }
            })
            .collect();
        let entries: Vec<Entry> = branches
            .iter()
            .map(|&branch| {
                let paint = colours[branch];
                let name = first_name(&self.names[branch]);
                Entry::new(11.0, name, move |at| vec![dot(at, 5.0, paint)])
            })
            .collect();
        let head = 14.0 + legend::height(&entries, MARGIN, WIDTH - MARGIN);
        let mut scene = Scene::new(WIDTH, head + HEIGHT + MARGIN);
        legend::draw(&mut scene, &entries, MARGIN, WIDTH - MARGIN, 8.0);
        let window = Area { left: MARGIN, top: head, right: WIDTH - MARGIN, bottom: head + HEIGHT };
        let seen: Vec<[f32; 2]> =
            (0..standing.len()).filter(|&c| standing[c].is_some()).map(|c| self.positions[c]).collect();
        let view = View::of(&seen, window.shrunk(34.0));
        let places: Vec<[f32; 2]> = self.positions.iter().map(|&p| view.place(p)).collect();

        let is_inside =
            |(parent, child): (usize, usize)| standing[parent].is_some() && standing[child].is_some();
        for &(parent, child) in self.edges.iter().filter(|&&edge| !is_inside(edge)) {
            if let Some(line) = window.clip(places[parent], places[child]) {
                scene.stroke(Path::line(&line), Stroke::new(Colour::Grid, 0.8));
            }
        }
        for (class, &at) in places.iter().enumerate() {
            if standing[class].is_none() && Area::around(at, 3.0).inside(&window) {
                scene.tipped(self.tip(class), vec![dot(at, 2.4, Colour::Faint.at(0.6))]);
            }
        }
        for &(parent, child) in self.edges.iter().filter(|&&edge| is_inside(edge)) {
            let line = Path::line(&[places[parent], places[child]]);
            scene.stroke(line, Stroke::new(colours[child].at(0.5), 1.3));
        }
        // Classes near the root first when names are given, last when dots are drawn: few and important.
        let mut leaf = vec![true; standing.len()];
        for edge in &self.edges {
            leaf[edge.0] = false;
        }
        let mut order: Vec<(usize, usize)> =
            standing.iter().enumerate().filter_map(|(c, s)| s.map(|s| (s.depth, c))).collect();
        order.sort_by_key(|&(depth, class)| (depth, leaf[class], class));
        for &(depth, class) in order.iter().rev() {
            let mark = dot(places[class], radius(depth), colours[class]);
            scene.tipped(self.tip(class), vec![mark]);
        }
        let mut labels = Labels::new(window.shrunk(4.0));
        for &(depth, class) in &order {
            labels.keep_off(Area::around(places[class], radius(depth)));
        }
        if self.subtree.is_some() {
            self.draw_overview(&mut scene, &mut labels, &colours, &view, window);
        } else {
            order.retain(|&(_, class)| !leaf[class]);
        }
        self.draw_names(&mut scene, &mut labels, &places, &order, &leaf);
        scene.stroke(
            Path::rectangle(MARGIN, head, WIDTH - 2.0 * MARGIN, HEIGHT, 6.0),
            Stroke::new(Colour::Grid, 1.2),
        );
        Ok(Figure { title: self.title.clone(), caption: self.caption(), scene })
    }

    /// The whole map in a free corner, with a frame around the part that is drawn large.
    fn draw_overview(
        &self,
        scene: &mut Scene,
        labels: &mut Labels,
        colours: &[Colour],
        view: &View,
        window: Area,
    ) {
        const INSET: [f32; 2] = [138.0, 104.0];
        let inner = window.shrunk(8.0);
        let corners = [
            [inner.right - INSET[0], inner.top],
            [inner.right - INSET[0], inner.bottom - INSET[1]],
            [inner.left, inner.bottom - INSET[1]],
            [inner.left, inner.top],
        ];
        let free = corners
            .map(|[left, top]| Area { left, top, right: left + INSET[0], bottom: top + INSET[1] })
            .into_iter()
            .find(|&corner| labels.take(corner));
        let Some(corner) = free else { return };
        let small = View::of(&self.positions, corner.shrunk(8.0));
        let shown =
            [[window.left, window.top], [window.right, window.bottom]].map(|p| small.place(view.back(p)));
        let outer = corner.shrunk(2.0);
        let [left, top] = [shown[0][0].max(outer.left), shown[0][1].max(outer.top)];
        let [right, bottom] = [shown[1][0].min(outer.right), shown[1][1].min(outer.bottom)];
        scene.shape(Shape {
            path: Path::rectangle(corner.left, corner.top, INSET[0], INSET[1], 5.0),
            fill: Some(Colour::Paper.into()),
            stroke: Some(Stroke::new(Colour::Faint, 1.0)),
        });
        for (&position, &colour) in self.positions.iter().zip(colours) {
            let (size, paint) =
                if colour == Colour::Faint { (1.0, colour.at(0.7)) } else { (1.6, colour.into()) };
            scene.fill(Path::circle(small.place(position), size), paint);
        }
        let frame = Path::rectangle(left, top, right - left, bottom - top, 1.5);
        scene.stroke(frame, Stroke::new(Colour::Ink, 1.0));
    }

    fn draw_names(
        &self,
        scene: &mut Scene,
        labels: &mut Labels,
        places: &[[f32; 2]],
        order: &[(usize, usize)],
        leaf: &[bool],
    ) {
        let mut named = 0;
        for &(depth, class) in order {
            if named == NAMES {
                break;
            }
            let strong = depth == 0 || depth == 1 && !leaf[class];
            let size = if strong { 13.0 } else { 11.5 };
            let name = fit(first_name(&self.names[class]), size, Weight::Regular, 150.0);
            let mut text = Text::new(name, [0.0, 0.0], size);
            text = if strong { text.bold() } else { text.paint(Colour::Muted) };
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

    /// The branches that get a colour: the largest of those with more than one class, as many as there are
    /// colours.
    fn branches(&self, standing: &[Option<Standing>]) -> Vec<usize> {
        let mut sizes = vec![0usize; self.names.len()];
        for branch in standing.iter().flatten().filter_map(|s| s.branch) {
            sizes[branch] += 1;
        }
        let mut branches: Vec<usize> = (0..sizes.len()).filter(|&b| sizes[b] > 1).collect();
        branches.sort_by_key(|&b| (std::cmp::Reverse(sizes[b]), b));
        branches.truncate(Colour::SERIES);
        branches
    }
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

/// From places on the map to places on the drawing, the same scale in both directions, y upwards.
pub(crate) struct View {
    scale: f32,
    /// Middle on the map.
    centre: [f32; 2],
    /// Middle on the drawing.
    middle: [f32; 2],
}

impl View {
    /// The view that fills an area with points.
    pub(crate) fn of(points: &[[f32; 2]], area: Area) -> Self {
        let (x, y) = (Range::of(points.iter().map(|p| p[0])), Range::of(points.iter().map(|p| p[1])));
        let (width, height) = (area.right - area.left, area.bottom - area.top);
        Self {
            scale: (width / (x.high - x.low)).min(height / (y.high - y.low)),
            centre: [f32::midpoint(x.low, x.high), f32::midpoint(y.low, y.high)],
            middle: [f32::midpoint(area.left, area.right), f32::midpoint(area.top, area.bottom)],
        }
    }

    pub(crate) fn place(&self, p: [f32; 2]) -> [f32; 2] {
        let [x, y] = [p[0] - self.centre[0], p[1] - self.centre[1]];
        [self.middle[0] + x * self.scale, self.middle[1] - y * self.scale]
    }

    /// The place on the map of a place on the drawing.
    fn back(&self, p: [f32; 2]) -> [f32; 2] {
        let [x, y] = [p[0] - self.middle[0], p[1] - self.middle[1]];
        [self.centre[0] + x / self.scale, self.centre[1] - y / self.scale]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn animals() -> PrototypeMap {
        PrototypeMap {
            title: "Animals".to_owned(),
            names: ["animal", "mammal", "bird", "cat", "dog", "owl", "rock"].map(str::to_owned).to_vec(),
            positions: (0..7).map(|i| [(i * 3 % 7) as f32, (i * i % 5) as f32]).collect(),
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
    fn a_subtree_of_leaves_has_one_colour() {
        let map = PrototypeMap { subtree: Some(1), ..animals() };
        assert!(map.branches(&map.standings()).is_empty());
        let svg = map.figure().unwrap().to_svg();
        assert!(svg.contains("f-s0") && !svg.contains("f-s1"));
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
