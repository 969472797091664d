//! The classes of the synthetic set and how they are related: plain data.
//!
//! Realm > family > shape > kind (a shape with a texture, in warm, cool or earthy colours) > leaf (a palette,
//! perhaps a part). Some shapes have
//! no kinds: their leaves differ in texture too. Some kinds have a second parent, the class of all things with
//! their texture.

use std::sync::LazyLock;

use super::palette::Palette;
use super::shape::Shape;
use super::texture::{Part, Texture};

/// A class of the taxonomy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Unique id: letters, digits and hyphens.
    pub id: String,
    /// Name for people.
    pub name: String,
}

/// A relation of the taxonomy, by class ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// Id of the more general class.
    pub parent: String,
    /// Id of the more special class.
    pub child: String,
}

/// A class that has samples of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Its id and name.
    pub class: Class,
    pub(super) look: Look,
}

/// What a leaf inherits and adds: all that is common to its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) shape: Shape,
    pub(super) texture: Texture,
    pub(super) palette: Palette,
    pub(super) part: Part,
}

/// Id of the root class.
pub const ROOT: &str = "thing";

const FAMILIES: [(&str, &str, &[Shape]); 8] = [
    ("natural-thing", "creature", &[Shape::Fish, Shape::Bird, Shape::Beetle]),
    ("natural-thing", "plant", &[Shape::Flower, Shape::Tree, Shape::Mushroom]),
    ("made-thing", "vessel", &[Shape::Vase, Shape::Mug, Shape::Bottle]),
    ("made-thing", "building", &[Shape::House, Shape::Tower]),
    ("made-thing", "vehicle", &[Shape::Car, Shape::Boat, Shape::Plane]),
    ("made-thing", "tool", &[Shape::Key, Shape::Hammer]),
    ("sign", "symbol", &[Shape::Star, Shape::Heart, Shape::Arrow]),
    ("sign", "badge", &[Shape::Shield, Shape::Ring]),
];

/// The textures that are classes of their own.
const PATTERNED: [Texture; 3] = [Texture::Striped, Texture::Spotted, Texture::Chequered];

/// Kinds that are also children of their texture's class.
const TWO_PARENTS: [(Shape, Texture); 9] = [
    (Shape::Fish, Texture::Striped),
    (Shape::Vase, Texture::Striped),
    (Shape::House, Texture::Striped),
    (Shape::Beetle, Texture::Spotted),
    (Shape::Mushroom, Texture::Spotted),
    (Shape::Mug, Texture::Spotted),
    (Shape::Tower, Texture::Chequered),
    (Shape::Car, Texture::Chequered),
    (Shape::Shield, Texture::Chequered),
];

/// What the leaves of a kind add, one each.
type KindLeaves = &'static [(Palette, Part)];

/// What leaves right below a shape add, one each.
type ShapeLeaves = &'static [(Texture, Palette, Part)];

/// Kinds and their leaves.
#[rustfmt::skip]
const KINDS: [(Shape, Texture, KindLeaves); 30] = {
    #[allow(clippy::enum_glob_use, reason = "a table reads best in plain words")]
    use {Palette::*, Part::*, Shape::*, Texture::*};
    [
        (Fish, Striped, &[(Scarlet, Bare), (Copper, Spiked), (Golden, Rimmed)]),
        (Fish, Plain, &[(Emerald, Bare), (Azure, Banded), (Teal, Spiked), (Violet, Bare)]),
        (Bird, Plain, &[(Violet, Bare), (Emerald, Rimmed), (Azure, Banded)]),
        (Bird, Speckled, &[(Copper, Bare), (Golden, Spiked), (Rose, Bare), (Scarlet, Rimmed)]),
        (Beetle, Spotted, &[(Scarlet, Bare), (Copper, Bare), (Golden, Rimmed)]),
        (Beetle, Halved, &[(Emerald, Bare), (Azure, Spiked), (Teal, Pierced)]),
        (Flower, Plain, &[(Golden, Bare), (Rose, Bare), (Scarlet, Rimmed), (Copper, Pierced)]),
        (Flower, Ringed, &[(Teal, Bare), (Violet, Spiked), (Emerald, Bare)]),
        (Mushroom, Spotted, &[(Azure, Bare), (Teal, Rimmed), (Violet, Bare), (Emerald, Bare)]),
        (Mushroom, Ringed, &[(Rose, Bare), (Scarlet, Rimmed), (Copper, Spiked)]),
        (Vase, Striped, &[(Golden, Bare), (Rose, Rimmed), (Scarlet, Spiked)]),
        (Vase, Zigzag, &[(Sand, Bare), (Olive, Banded), (Slate, Bare), (Umber, Pierced)]),
        (Mug, Plain, &[(Umber, Banded), (Sand, Bare), (Olive, Bare)]),
        (Mug, Spotted, &[(Emerald, Bare), (Azure, Rimmed), (Teal, Bare), (Violet, Spiked)]),
        (Bottle, Halved, &[(Violet, Bare), (Emerald, Banded), (Azure, Rimmed)]),
        (Bottle, Netted, &[(Sand, Bare), (Olive, Rimmed), (Slate, Bare)]),
        (House, Plain, &[(Scarlet, Bare), (Copper, Rimmed), (Golden, Pierced), (Rose, Bare)]),
        (House, Striped, &[(Emerald, Bare), (Azure, Bare), (Teal, Banded)]),
        (Tower, Chequered, &[(Violet, Bare), (Emerald, Rimmed), (Azure, Pierced)]),
        (Tower, Netted, &[(Sand, Bare), (Olive, Spiked), (Slate, Bare), (Umber, Banded)]),
        (Car, Plain, &[(Scarlet, Bare), (Copper, Banded), (Golden, Bare), (Rose, Rimmed)]),
        (Car, Chequered, &[(Emerald, Bare), (Azure, Banded), (Teal, Rimmed)]),
        (Boat, Halved, &[(Olive, Bare), (Slate, Rimmed), (Umber, Bare)]),
        (Boat, Zigzag, &[(Copper, Bare), (Golden, Spiked), (Rose, Bare), (Scarlet, Rimmed)]),
        (Star, Ringed, &[(Azure, Bare), (Teal, Pierced), (Violet, Bare)]),
        (Star, Speckled, &[(Rose, Bare), (Scarlet, Rimmed), (Copper, Pierced), (Golden, Bare)]),
        (Arrow, Zigzag, &[(Violet, Bare), (Emerald, Rimmed), (Azure, Bare)]),
        (Arrow, Netted, &[(Sand, Bare), (Olive, Banded), (Slate, Rimmed)]),
        (Shield, Chequered, &[(Scarlet, Bare), (Copper, Rimmed), (Golden, Bare), (Rose, Spiked)]),
        (Shield, Halved, &[(Slate, Bare), (Umber, Banded), (Sand, Spiked)]),
    ]
};

/// Leaves right below their shape.
#[rustfmt::skip]
const SHAPE_LEAVES: [(Shape, ShapeLeaves); 6] = {
    #[allow(clippy::enum_glob_use, reason = "a table reads best in plain words")]
    use {Palette::*, Part::*, Shape::*, Texture::*};
    [
        (Tree, &[(Plain, Emerald, Bare), (Speckled, Olive, Bare), (Striped, Teal, Spiked)]),
        (Plane, &[(Plain, Slate, Rimmed), (Striped, Azure, Bare), (Spotted, Teal, Bare)]),
        (Key, &[(Plain, Golden, Bare), (Ringed, Copper, Rimmed), (Netted, Sand, Spiked)]),
        (Hammer, &[(Plain, Slate, Bare), (Chequered, Azure, Bare), (Zigzag, Violet, Rimmed)]),
        (Heart, &[(Plain, Scarlet, Bare), (Spotted, Rose, Rimmed), (Striped, Copper, Pierced)]),
        (Ring, &[(Plain, Golden, Bare), (Chequered, Copper, Bare), (Speckled, Sand, Spiked)]),
    ]
};

/// Everything about the taxonomy, built once from the tables.
struct Tables {
    classes: Vec<Class>,
    edges: Vec<Edge>,
    leaves: Vec<Leaf>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let mut tables = Tables { classes: Vec::new(), edges: Vec::new(), leaves: Vec::new() };
    tables.classes.push(Class { id: ROOT.into(), name: ROOT.into() });
    for (realm, family, shapes) in FAMILIES {
        if !tables.classes.iter().any(|class| class.id == realm) {
            tables.add_class(realm, ROOT);
        }
        tables.add_class(family, realm);
        for &shape in shapes {
            tables.add_class(shape.name(), family);
            tables.add_below(shape);
        }
    }
    tables.add_class("patterned-thing", ROOT);
    for texture in PATTERNED {
        let pattern = format!("{}-thing", texture.name());
        tables.add_class(&pattern, "patterned-thing");
        for (shape, _) in TWO_PARENTS.iter().filter(|kind| kind.1 == texture) {
            let child = format!("{}-{}", texture.name(), shape.name());
            tables.edges.push(Edge { parent: pattern.clone(), child });
        }
    }
    tables
});

impl Tables {
    fn add_class(&mut self, id: &str, parent: &str) {
        self.classes.push(Class { id: id.into(), name: id.replace('-', " ") });
        self.edges.push(Edge { parent: parent.into(), child: id.into() });
    }

    fn add_below(&mut self, shape: Shape) {
        for (_, texture, leaves) in KINDS.iter().filter(|kind| kind.0 == shape) {
            let kind = format!("{}-{}", texture.name(), shape.name());
            self.add_class(&kind, shape.name());
            for &(palette, part) in *leaves {
                self.add_leaf(&kind, Look { shape, texture: *texture, palette, part });
            }
        }
        for (_, leaves) in SHAPE_LEAVES.iter().filter(|of| of.0 == shape) {
            for &(texture, palette, part) in *leaves {
                self.add_leaf(shape.name(), Look { shape, texture, palette, part });
            }
        }
    }

    fn add_leaf(&mut self, parent: &str, look: Look) {
        let words = [look.part.name(), look.palette.name(), look.texture.name(), look.shape.name()];
        let id = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
        self.add_class(&id, parent);
        let class = Class { name: id.replace('-', " "), id };
        self.leaves.push(Leaf { class, look });
    }
}

/// All classes, the root first, parents before children.
pub fn classes() -> &'static [Class] {
    &TABLES.classes
}

/// All relations.
pub fn edges() -> &'static [Edge] {
    &TABLES.edges
}

/// The classes that have samples, relatives next to each other. A leaf's number is its place here.
pub fn leaves() -> &'static [Leaf] {
    &TABLES.leaves
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet, VecDeque};

    use super::*;

    fn hops_from(start: &str) -> BTreeMap<&'static str, usize> {
        let mut neighbours: BTreeMap<&str, Vec<&'static str>> = BTreeMap::new();
        for edge in edges() {
            neighbours.entry(&edge.parent).or_default().push(&edge.child);
            neighbours.entry(&edge.child).or_default().push(&edge.parent);
        }
        let start = classes().iter().find(|class| class.id == start).unwrap().id.as_str();
        let mut hops = BTreeMap::from([(start, 0)]);
        let mut queue = VecDeque::from([start]);
        while let Some(class) = queue.pop_front() {
            for &next in &neighbours[class] {
                if !hops.contains_key(next) {
                    hops.insert(next, hops[class] + 1);
                    queue.push_back(next);
                }
            }
        }
        hops
    }

    #[test]
    fn ids_are_unique_and_edges_name_known_classes() {
        let ids: BTreeSet<&str> = classes().iter().map(|class| class.id.as_str()).collect();
        assert_eq!(ids.len(), classes().len());
        assert!(edges().iter().all(|edge| ids.contains(&*edge.parent) && ids.contains(&*edge.child)));
        assert!(ids.iter().all(|id| id.chars().all(|c| c.is_ascii_lowercase() || c == '-')), "{ids:?}");
        assert_eq!(
            edges().iter().map(|e| (&e.parent, &e.child)).collect::<BTreeSet<_>>().len(),
            edges().len()
        );
    }

    #[test]
    fn leaves_are_the_classes_without_children() {
        let parents: BTreeSet<&str> = edges().iter().map(|edge| edge.parent.as_str()).collect();
        let childless: Vec<&str> =
            classes().iter().map(|class| class.id.as_str()).filter(|id| !parents.contains(id)).collect();
        assert_eq!(childless, leaves().iter().map(|leaf| leaf.class.id.as_str()).collect::<Vec<_>>());
    }

    #[test]
    fn the_graph_has_the_promised_size_and_reach() {
        assert_eq!((classes().len(), leaves().len()), (187, 120));
        let from_root = hops_from(ROOT);
        assert_eq!(from_root.len(), classes().len(), "every class hangs below the root");
        let depths: Vec<usize> = leaves().iter().map(|leaf| from_root[leaf.class.id.as_str()]).collect();
        assert!(depths.iter().all(|&depth| depth >= 4), "{depths:?}");
        let furthest = leaves().iter().filter_map(|leaf| hops_from(&leaf.class.id).into_values().max()).max();
        assert_eq!(furthest, Some(10));
        let mut parents: BTreeMap<&str, usize> = BTreeMap::new();
        for edge in edges() {
            *parents.entry(&edge.child).or_default() += 1;
        }
        assert_eq!(parents.values().filter(|&&count| count == 2).count(), TWO_PARENTS.len());
    }
}
