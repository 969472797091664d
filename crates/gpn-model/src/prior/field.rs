//! How the known classes of a graph surround a class.
//!
//! Class means are a Gaussian field on the graph: the means of two classes that share an edge differ by unit variance, and
//! every mean is tied to the grand mean by a weak [`TIE`]. Given the means of the known classes, the mean of any other class
//! is normal; its expectation is a weighted sum of the known classes around it. This is what Gaussian belief propagation
//! computes on a tree, solved directly, so that it is exact on graphs with several parents, too.

use gpn_taxonomy::{Node, Taxonomy};
use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

use super::statistics::ClassStatistics;

/// How strongly each class is tied to the grand mean, where an edge counts 1.
pub(super) const TIE: f64 = 0.05;
/// Classes without samples that are solved for together, the nearest ones. What is further away changes little.
pub(super) const REACH: usize = 64;
/// The same where several classes are solved for at once.
const REACH_TOGETHER: usize = 128;
/// Sums over more neighbours than these are kept.
const MANY: usize = 64;

/// Where a known class stands to another class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Reached by going up.
    Above,
    /// Reached by going down.
    Below,
    /// Reached by going up and down, such as a sibling.
    Beside,
}

/// The known classes of a graph, prepared for questions about the others.
///
/// Made in O(classes + edges), and O(edges * dim) where classes have many neighbours.
#[derive(Clone, Debug)]
pub struct KnownClasses<'a> {
    graph: &'a Taxonomy,
    statistics: &'a ClassStatistics,
    known: Vec<bool>,
    /// Number of known neighbours of each class.
    known_neighbours: Vec<u32>,
    /// Sum of the means of the known neighbours of classes that have many, ascending by class.
    sums: Vec<(Node, Vec<f64>)>,
}

impl<'a> KnownClasses<'a> {
    /// The classes with samples in `statistics`, whose class `i` is node `i` of `graph`.
    pub fn new(graph: &'a Taxonomy, statistics: &'a ClassStatistics) -> Self {
        Self::without(graph, statistics, &[])
    }

    /// The same without some classes, which count as not known.
    pub fn without(graph: &'a Taxonomy, statistics: &'a ClassStatistics, hidden: &[Node]) -> Self {
        let mut known: Vec<bool> = graph.nodes().map(|class| statistics.is_known(class)).collect();
        for &class in hidden {
            known[class as usize] = false;
        }
        let count = |class| graph.adjacent(class).filter(|&near| known[near as usize]).count() as u32;
        let known_neighbours: Vec<u32> = graph.nodes().map(count).collect();
        let mut this = Self { graph, statistics, known, known_neighbours, sums: Vec::new() };
        let many: Vec<Node> =
            graph.nodes().filter(|&class| this.known_neighbours[class as usize] > MANY as u32).collect();
        this.sums = many.into_iter().map(|class| (class, this.sum_of_neighbours(class))).collect();
        this
    }

    /// The class graph.
    pub fn graph(&self) -> &'a Taxonomy {
        self.graph
    }

    /// The statistics of the classes.
    pub fn statistics(&self) -> &'a ClassStatistics {
        self.statistics
    }

    /// Whether a class is known.
    pub fn is_known(&self, class: Node) -> bool {
        self.known[class as usize]
    }

    /// Solves for the mean of `class`, whose own samples, if there are any, are left out.
    pub(super) fn around(&self, class: Node) -> Around {
        let (nodes, edges) = self.reach(&[class], REACH);
        let factor = self.factor(&nodes, &edges, class);
        self.solved(&factor, &nodes, 0).0
    }

    /// Solves for the means of several classes at once, and for how they vary together, `[classes, classes]`. `None` where one
    /// of them is known or given twice, or where there are too many.
    pub(super) fn around_all(&self, classes: &[Node]) -> Option<(Vec<Around>, DMatrix<f64>)> {
        let is_new = |at: usize| !self.is_known(classes[at]) && !classes[..at].contains(&classes[at]);
        if 2 * classes.len() > REACH_TOGETHER || !(0..classes.len()).all(is_new) {
            return None;
        }
        let (nodes, edges) = self.reach(classes, REACH_TOGETHER);
        let factor = self.factor(&nodes, &edges, *classes.first()?);
        let solved: Vec<_> = (0..classes.len()).map(|at| self.solved(&factor, &nodes, at)).collect();
        // Both halves come from the same numbers: the matrix is symmetric to the last bit.
        let covariance = DMatrix::from_fn(classes.len(), classes.len(), |i, j| solved[i.min(j)].1[i.max(j)]);
        Some((solved.into_iter().map(|(around, _)| around).collect(), covariance))
    }

    /// The precision of classes without samples, as a triangular factor; `class`, if it is known, counts as not known.
    fn factor(&self, nodes: &Reached, edges: &[(usize, usize)], class: Node) -> Cholesky<f64, Dyn> {
        let mut precision = DMatrix::<f64>::zeros(nodes.len(), nodes.len());
        for (i, &(node, _)) in nodes.iter().enumerate() {
            precision[(i, i)] = TIE + f64::from(self.known_neighbours_but(node, class));
        }
        for &(i, j) in edges {
            precision[(i, i)] += 1.0;
            precision[(j, j)] += 1.0;
            precision[(i, j)] = -1.0;
            precision[(j, i)] = -1.0;
        }
        let Some(factor) = precision.cholesky() else {
            unreachable!("invariant: each diagonal value exceeds the sum of its row by the tie")
        };
        factor
    }

    /// What surrounds the class at a place of `nodes`, and its covariance with each of them.
    fn solved(&self, factor: &Cholesky<f64, Dyn>, nodes: &Reached, at: usize) -> (Around, DVector<f64>) {
        let (class, mut unit) = (nodes[at].0, DVector::<f64>::zeros(nodes.len()));
        unit[at] = 1.0;
        let gains = factor.solve(&unit);
        let local = |(&(node, direction), &gain)| LocalClass { node, direction, gain };
        let nodes: Vec<_> = nodes.iter().zip(gains.iter()).map(local).collect();
        // Classes that only others are connected with have no gain.
        let is_related =
            nodes.iter().any(|local| local.gain > 0.0 && self.known_neighbours_but(local.node, class) > 0);
        (Around { class, nodes, variance: gains[at], is_related }, gains)
    }

    /// The expected deviation of the class from the grand mean, `[dim]`.
    pub(super) fn deviation(&self, around: &Around, grand: &[f64]) -> Vec<f64> {
        let mut deviation = vec![0.0; grand.len()];
        for local in &around.nodes {
            let count = f64::from(self.known_neighbours_but(local.node, around.class));
            if count == 0.0 {
                continue;
            }
            let own = around.class;
            let mut sum = match self.sums.binary_search_by_key(&local.node, |kept| kept.0) {
                Ok(at) => self.sums[at].1.clone(),
                Err(_) => self.sum_of_neighbours(local.node),
            };
            if self.is_known(own) && self.graph.adjacent(local.node).any(|near| near == own) {
                sum.iter_mut().zip(self.statistics.mean(own)).for_each(|(sum, &x)| *sum -= f64::from(x));
            }
            for ((deviation, sum), grand) in deviation.iter_mut().zip(&sum).zip(grand) {
                *deviation += local.gain * (sum - count * grand);
            }
        }
        deviation
    }

    /// Each known class around, with its direction and weight. The weights add up to less than 1; the grand mean has the rest.
    pub(super) fn weights(&self, around: &Around) -> Vec<(Node, Direction, f64)> {
        let mut weights: Vec<(Node, Direction, f64)> = Vec::new();
        for local in &around.nodes {
            let (up, down) = (self.graph.parents(local.node), self.graph.children(local.node));
            let steps =
                up.iter().map(|n| (n, Direction::Above)).chain(down.iter().map(|n| (n, Direction::Below)));
            for (&near, step) in steps {
                if self.is_known(near) && near != around.class {
                    weights.push((near, onward(local.direction, step), local.gain));
                }
            }
        }
        // A class met several times counts once, by the way that is shortest: the sort keeps the order of ways.
        weights.sort_by_key(|&(class, ..)| class);
        weights.dedup_by(|next, first| {
            let same = next.0 == first.0;
            if same {
                first.2 += next.2;
            }
            same
        });
        weights
    }

    fn known_neighbours_but(&self, node: Node, class: Node) -> u32 {
        let all = self.known_neighbours[node as usize];
        // The class itself counts as not known.
        if self.is_known(class) && self.graph.adjacent(class).any(|near| near == node) {
            all - 1
        } else {
            all
        }
    }

    fn sum_of_neighbours(&self, class: Node) -> Vec<f64> {
        let mut sum = vec![0.0; self.statistics.dim()];
        for near in self.graph.adjacent(class).filter(|&near| self.is_known(near)) {
            sum.iter_mut().zip(self.statistics.mean(near)).for_each(|(sum, &x)| *sum += f64::from(x));
        }
        sum
    }

    /// The classes and the nearest ones without samples that can be reached through such, `room` in all, and the edges among
    /// them. The classes themselves come first.
    fn reach(&self, classes: &[Node], room: usize) -> (Reached, Vec<(usize, usize)>) {
        let mut nodes: Reached = classes.iter().map(|&class| (class, None)).collect();
        let mut edges = Vec::new();
        let mut at = 0;
        while at < nodes.len() {
            let (node, direction) = nodes[at];
            let (up, down) = (self.graph.parents(node), self.graph.children(node));
            let steps =
                up.iter().map(|n| (n, Direction::Above)).chain(down.iter().map(|n| (n, Direction::Below)));
            let unknown = steps.filter(|&(&near, _)| classes.contains(&near) || !self.is_known(near));
            // Of a class with thousands of children some are enough; each of the others finds it from its own side.
            for (&near, step) in unknown.take(REACH) {
                let place = nodes.iter().position(|&(node, _)| node == near).or_else(|| {
                    let is_room = nodes.len() < room;
                    is_room.then(|| {
                        nodes.push((near, Some(onward(direction, step))));
                        nodes.len() - 1
                    })
                });
                if let Some(place) = place {
                    let edge = (at.min(place), at.max(place));
                    if !edges.contains(&edge) {
                        edges.push(edge);
                    }
                }
            }
            at += 1;
        }
        (nodes, edges)
    }
}

/// The direction of a way that goes on by a step.
fn onward(way: Option<Direction>, step: Direction) -> Direction {
    match way {
        None => step,
        Some(way) if way == step => step,
        Some(_) => Direction::Beside,
    }
}

/// Classes without samples, and the way to each from the class that was asked for.
type Reached = Vec<(Node, Option<Direction>)>;

/// What surrounds one class.
pub(super) struct Around {
    class: Node,
    /// The class and those without samples near it.
    nodes: Vec<LocalClass>,
    /// Variance of the class's mean, where an edge has 1.
    pub(super) variance: f64,
    /// Whether there is any known class around.
    pub(super) is_related: bool,
}

struct LocalClass {
    node: Node,
    /// The way to it; none to the class itself.
    direction: Option<Direction>,
    /// What each of its known neighbours adds to the mean of the class.
    gain: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prior::StatisticsBuilder;
    use crate::prior::sample::{graph_of, noise};

    fn statistics(known: &[Node], classes: usize, dim: usize) -> ClassStatistics {
        let mut values = noise(5);
        let mut builder = StatisticsBuilder::new(dim, classes).unwrap();
        for &class in known {
            let rows: Vec<f32> = (0..4 * dim).map(|_| values()).collect();
            builder.add(class, &rows).unwrap();
        }
        builder.finish().unwrap()
    }

    /// Expected deviation and variance of a class by the inverse of the whole precision matrix.
    fn dense(graph: &Taxonomy, statistics: &ClassStatistics, class: Node, grand: &[f64]) -> (Vec<f64>, f64) {
        let is_known = |n: Node| n != class && statistics.is_known(n);
        let unknown: Vec<Node> = graph.nodes().filter(|&n| !is_known(n)).collect();
        let place = |n: Node| unknown.iter().position(|&u| u == n);
        let mut precision = DMatrix::<f64>::identity(unknown.len(), unknown.len()) * TIE;
        let mut right = DMatrix::<f64>::zeros(unknown.len(), grand.len());
        for (a, b) in graph.edges() {
            for (n, other) in [(a, b), (b, a)] {
                let Some(i) = place(n) else { continue };
                precision[(i, i)] += 1.0;
                match place(other) {
                    Some(j) => precision[(i, j)] -= 1.0,
                    None => {
                        for d in 0..grand.len() {
                            right[(i, d)] += f64::from(statistics.mean(other)[d]) - grand[d];
                        }
                    }
                }
            }
        }
        let inverse = precision.try_inverse().unwrap();
        let at = place(class).unwrap();
        ((0..grand.len()).map(|d| (inverse.row(at) * right.column(d))[0]).collect(), inverse[(at, at)])
    }

    #[test]
    fn a_tree_and_a_graph_with_cycles_are_solved_exactly() {
        let tree = "r>a r>b a>c a>d b>e b>f c>g c>h e>i i>j j>k f>l";
        let cycles = "r>a r>b a>c b>c c>d b>e d>f e>f f>g a>g q>e";
        for edges in [tree, cycles] {
            let graph = graph_of(edges);
            let known: Vec<Node> = graph.nodes().filter(|n| n % 3 == 0).collect();
            let statistics = statistics(&known, graph.len(), 3);
            let (grand, prepared) = (statistics.grand_mean(), KnownClasses::new(&graph, &statistics));
            for class in graph.nodes() {
                let around = prepared.around(class);
                let (expected, variance) = dense(&graph, &statistics, class, &grand);
                assert!((around.variance - variance).abs() < 1e-12);
                let got = prepared.deviation(&around, &grand);
                assert!(got.iter().zip(&expected).all(|(got, expected)| (got - expected).abs() < 1e-12));
                // The weights say the same.
                let weights = prepared.weights(&around);
                assert!(weights.is_sorted_by(|a, b| a.0 < b.0));
                let sum = weights.iter().map(|&(n, _, w)| w * (f64::from(statistics.mean(n)[0]) - grand[0]));
                assert!((sum.sum::<f64>() - expected[0]).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn directions_are_those_of_the_shortest_way() {
        let graph = graph_of("r>a r>b a>c c>d");
        let at = |id: &str| graph.find(id).unwrap();
        let statistics = statistics(&[at("r"), at("b"), at("d")], graph.len(), 2);
        let prepared = KnownClasses::new(&graph, &statistics);
        let weights = prepared.weights(&prepared.around(at("c")));
        let direction = |id: &str| weights.iter().find(|weight| weight.0 == at(id)).map(|weight| weight.1);
        assert_eq!(direction("r"), Some(Direction::Above));
        assert_eq!(direction("d"), Some(Direction::Below));
        assert_eq!(direction("b"), None, "what is known hides what is behind it");
        let hidden = KnownClasses::without(&graph, &statistics, &[at("r")]);
        let weights = hidden.weights(&hidden.around(at("c")));
        assert!(weights.contains(&(
            at("b"),
            Direction::Beside,
            weights.iter().find(|w| w.0 == at("b")).unwrap().2
        )));
    }

    #[test]
    fn a_class_with_a_thousand_children_is_no_trouble() {
        let edges: Vec<String> = (0..1000).map(|child| format!("root>c{child}")).collect();
        let graph = graph_of(&edges.join(" "));
        let known: Vec<Node> = graph.nodes().filter(|&n| n > 0 && n % 2 == 0).collect();
        let statistics = statistics(&known, graph.len(), 2);
        let (grand, prepared) = (statistics.grand_mean(), KnownClasses::new(&graph, &statistics));
        let around = prepared.around(1);
        assert_eq!(around.nodes.len(), REACH);
        // The root is the mean of its known children, and the class is there.
        let got = prepared.deviation(&around, &grand);
        assert!(got.iter().all(|d| d.abs() < 0.01), "{got:?}");
        assert!((around.variance - 1.0).abs() < 0.1);
    }
}
