//! `gpn.Taxonomy`: the class graph.

use std::path::PathBuf;
use std::sync::Arc;

use gpn::taxonomy::{
    Checked, HopSearch, Node, Taxonomy, TaxonomyError, UNREACHED, ancestors, hop_distances, leaves_below,
    levels, read, write_csv, write_dot, write_dot_to, write_json,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::convert::Columns;
use crate::errors::{Fault, Outcome, bad_input, raised};
use crate::from_python::{graph_of, named};
use crate::html;
use crate::watch::unlocked;

/// How classes are related: a directed acyclic graph, edges from parent to child.
///
/// `source` is one of
///
/// - pairs `(parent, child)`,
/// - a nested dict: `{"animal": {"cat": {}, "dog": ["beagle"]}}`,
/// - a DataFrame (pandas or polars) or a dict of columns: `child` and `parent`, perhaps `name` and `description`; or, without
///   those two, one column for each level from the root down,
/// - a networkx `DiGraph` with edges from parent to child,
/// - a file whose kind is guessed, or `KIND:PATH` as the command line takes it.
///
/// >>> import gpn
/// >>> taxonomy = gpn.Taxonomy({"animal": {"cat": {}, "dog": ["beagle", "boxer"]}})
/// >>> taxonomy.parents("beagle"), taxonomy.distance("beagle", "cat")
/// (['dog'], 3)
/// >>> taxonomy.neighbours("cat", hops=2)
/// ['animal', 'dog']
/// >>> taxonomy.path("boxer")
/// ['animal', 'dog', 'boxer']
#[pyclass(name = "Taxonomy", module = "gpn", frozen)]
pub(crate) struct PyTaxonomy {
    pub(crate) graph: Arc<Taxonomy>,
    warnings: Vec<String>,
}

impl PyTaxonomy {
    pub(crate) fn of(checked: Checked) -> Self {
        let warnings = checked.warnings.iter().map(ToString::to_string).collect();
        Self { graph: Arc::new(checked.taxonomy), warnings }
    }

    pub(crate) fn shared(graph: Arc<Taxonomy>) -> Self {
        Self { graph, warnings: Vec::new() }
    }

    pub(crate) fn find(&self, class: &Bound<'_, PyAny>) -> PyResult<Node> {
        let id = named(class)?;
        let found = self.graph.find_all(&[id]).map_err(Fault::from)?;
        Ok(found[0])
    }

    fn ids_of(&self, nodes: impl IntoIterator<Item = Node>) -> Vec<String> {
        nodes.into_iter().map(|node| self.graph.id(node).to_owned()).collect()
    }
}

#[pymethods]
impl PyTaxonomy {
    #[new]
    fn new(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(other) = source.cast::<Self>() {
            let other = other.get();
            return Ok(Self { graph: Arc::clone(&other.graph), warnings: other.warnings.clone() });
        }
        if let Some(spec) = file_of(source)? {
            let is_missing =
                !spec.contains(':') && spec != "wordnet" && !std::path::Path::new(&spec).exists();
            let parsed = spec.parse().map_err(|error: TaxonomyError| {
                if is_missing {
                    raised("NotFoundError", &error.to_string())
                } else {
                    Fault::from(error).into()
                }
            })?;
            let checked = unlocked(py, || Ok(read(&parsed)?))?;
            return Ok(Self::of(checked));
        }
        Ok(Self::of(graph_of(source)?))
    }

    /// Every class by id, in the order of the graph.
    #[getter]
    fn ids(&self) -> Vec<String> {
        self.ids_of(self.graph.nodes())
    }

    /// Every edge as (parent, child).
    #[getter]
    fn edges(&self) -> Vec<(String, String)> {
        let id = |node| self.graph.id(node).to_owned();
        self.graph.edges().map(|(parent, child)| (id(parent), id(child))).collect()
    }

    /// Classes without parents.
    #[getter]
    fn roots(&self) -> Vec<String> {
        self.ids_of(self.graph.roots())
    }

    /// Classes without children.
    #[getter]
    fn leaves(&self) -> Vec<String> {
        self.ids_of(self.graph.leaves())
    }

    /// What was repaired when the graph was read, one sentence each.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// The name of a class for people; its id where it has none.
    fn name(&self, class_: &Bound<'_, PyAny>) -> PyResult<String> {
        Ok(self.graph.name(self.find(class_)?).to_owned())
    }

    /// What a class is, in a sentence, where the graph says so.
    fn description(&self, class_: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        Ok(self.graph.description(self.find(class_)?).map(str::to_owned))
    }

    /// The parents of a class.
    fn parents(&self, class_: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        Ok(self.ids_of(self.graph.parents(self.find(class_)?).iter().copied()))
    }

    /// The children of a class.
    fn children(&self, class_: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        Ok(self.ids_of(self.graph.children(self.find(class_)?).iter().copied()))
    }

    /// The classes at 1 to `hops` hops from a class, nearest first; an edge counts the same up and down.
    #[pyo3(signature = (class_, hops = 1))]
    fn neighbours(&self, class_: &Bound<'_, PyAny>, hops: usize) -> PyResult<Vec<String>> {
        let node = self.find(class_)?;
        Ok(self.ids_of(HopSearch::new(&self.graph).neighbours(&self.graph, node, hops).iter().copied()))
    }

    /// All classes above a class, every parent before its children.
    fn ancestors(&self, class_: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        let node = self.find(class_)?;
        let mut above = vec![false; self.graph.len()];
        let mut open = self.graph.parents(node).to_vec();
        while let Some(next) = open.pop() {
            if !std::mem::replace(&mut above[next as usize], true) {
                open.extend_from_slice(self.graph.parents(next));
            }
        }
        let order = self.graph.topological_order().iter().copied();
        Ok(self.ids_of(order.filter(|&next| above[next as usize])))
    }

    /// All classes below a class, every parent before its children.
    fn descendants(&self, class_: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        let node = self.find(class_)?;
        let mut below = vec![false; self.graph.len()];
        below[node as usize] = true;
        let mut found = Vec::new();
        for &next in self.graph.topological_order() {
            if self.graph.parents(next).iter().any(|&parent| below[parent as usize]) {
                below[next as usize] = true;
                found.push(next);
            }
        }
        Ok(self.ids_of(found))
    }

    /// The leaves below a class; a leaf has itself.
    fn leaves_below(&self, class_: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        Ok(self.ids_of(leaves_below(&self.graph, self.find(class_)?)))
    }

    /// The classes from a root down to a class. Of several parents the first one counts.
    fn path(&self, class_: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        let mut path = vec![self.find(class_)?];
        while let Some(&parent) = self.graph.parents(path[path.len() - 1]).first() {
            path.push(parent);
        }
        path.reverse();
        Ok(self.ids_of(path))
    }

    /// Hops between two classes; None where no path joins them.
    fn distance(&self, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        let (a, b) = (self.find(a)?, self.find(b)?);
        let hops = hop_distances(&self.graph, &[a])[b as usize];
        Ok(Some(hops).filter(|&hops| hops != UNREACHED))
    }

    /// Hops from every class to the nearest of the given ones, in the order of `ids`; -1 where there is no path.
    fn distances<'py>(
        &self,
        py: Python<'py>,
        classes: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, numpy::PyArray1<i64>>> {
        let sources: Vec<Node> = match classes.extract::<String>() {
            Ok(_) => vec![self.find(classes)?],
            Err(_) => classes.try_iter()?.map(|class| self.find(&class?)).collect::<PyResult<_>>()?,
        };
        let hops = py.detach(|| hop_distances(&self.graph, &sources));
        let hops = hops.into_iter().map(|hops| if hops == UNREACHED { -1 } else { i64::from(hops) });
        Ok(numpy::PyArray1::from_vec(py, hops.collect()))
    }

    /// The part of the graph that some classes need: these and all above them.
    fn subgraph(&self, classes: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        let ids = classes.iter().map(named).collect::<PyResult<Vec<_>>>()?;
        let part = ancestors(&self.graph, &ids).map_err(Fault::from)?;
        Ok(Self::shared(Arc::new(part)))
    }

    /// A table of all classes: id, name, level, parents, children, leaf.
    fn table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let graph = &self.graph;
        let nodes = || graph.nodes();
        let level = levels(graph).longest.into_iter().map(i64::from).collect::<Vec<_>>();
        Ok(Columns::new(py)
            .objects("id", self.ids())?
            .objects("name", nodes().map(|node| graph.name(node).to_owned()).collect())?
            .numbers("level", level)?
            .objects(
                "parents",
                nodes().map(|node| self.ids_of(graph.parents(node).iter().copied())).collect(),
            )?
            .numbers("children", nodes().map(|node| graph.children(node).len() as i64).collect())?
            .numbers("leaf", nodes().map(|node| graph.children(node).is_empty()).collect())?
            .done())
    }

    /// The graph in the language of Graphviz.
    fn to_dot(&self) -> PyResult<String> {
        let mut text = Vec::new();
        // invariant: writing to memory does not fail, and ids and names are valid text.
        write_dot_to(&self.graph, &mut text).unwrap();
        Ok(String::from_utf8(text).unwrap())
    }

    /// The graph as a networkx `DiGraph`, edges from parent to child; names and descriptions are attributes.
    fn to_networkx<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let graph = py.import("networkx")?.call_method0("DiGraph")?;
        for node in self.graph.nodes() {
            let attributes = PyDict::new(py);
            if let Some(name) = self.graph.own_name(node) {
                attributes.set_item("name", name)?;
            }
            if let Some(description) = self.graph.description(node) {
                attributes.set_item("description", description)?;
            }
            graph.call_method("add_node", (self.graph.id(node),), Some(&attributes))?;
        }
        graph.call_method1("add_edges_from", (self.edges(),))?;
        Ok(graph)
    }

    /// Writes the graph: `.csv` (edges), `.json` (with names and descriptions) or `.dot`.
    #[pyo3(signature = (path, *, replace = false))]
    fn save(&self, py: Python<'_>, path: PathBuf, replace: bool) -> PyResult<()> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let write = match extension {
            "csv" => write_csv,
            "json" => write_json,
            "dot" => write_dot,
            _ => return Err(bad_input(format!("{}: name a file .csv, .json or .dot", path.display()))),
        };
        unlocked(py, || {
            gpn::output::may_write(&path, replace)?;
            Ok(write(&self.graph, &path)?)
        })
    }

    fn __len__(&self) -> usize {
        self.graph.len()
    }

    fn __contains__(&self, class_: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.graph.find(&named(class_)?).is_some())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| {
            let (a, b) = (&self.graph, &other.get().graph);
            Arc::ptr_eq(a, b) || self.parts() == other.get().parts()
        })
    }

    fn __hash__(&self) -> usize {
        self.graph.len() ^ self.graph.edge_count() << 20
    }

    fn __repr__(&self) -> String {
        let roots: Vec<&str> = self.graph.roots().take(3).map(|node| self.graph.id(node)).collect();
        let more = if self.graph.roots().count() > 3 { ", ..." } else { "" };
        let (classes, edges) = (self.graph.len(), self.graph.edge_count());
        format!("Taxonomy({classes} classes, {edges} edges, below {}{more})", roots.join(", "))
    }

    fn _repr_html_(&self) -> String {
        html::taxonomy(&self.graph)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Parts,))> {
        Ok((slf.get_type().getattr("_from_parts")?, (slf.get().parts(),)))
    }

    #[classmethod]
    fn _from_parts(_class: &Bound<'_, PyType>, parts: Parts) -> PyResult<Self> {
        let outcome: Outcome<Self> = from_parts(parts);
        Ok(outcome?)
    }
}

/// Ids, names, descriptions and edges: all that a graph is.
type Parts = (Vec<String>, Vec<Option<String>>, Vec<Option<String>>, Vec<(Node, Node)>);

impl PyTaxonomy {
    fn parts(&self) -> Parts {
        let graph = &self.graph;
        (
            self.ids_of(graph.nodes()),
            graph.nodes().map(|node| graph.own_name(node).map(str::to_owned)).collect(),
            graph.nodes().map(|node| graph.description(node).map(str::to_owned)).collect(),
            graph.edges().collect(),
        )
    }
}

fn from_parts((ids, names, descriptions, edges): Parts) -> Outcome<PyTaxonomy> {
    let mut builder = gpn::taxonomy::TaxonomyBuilder::new();
    for ((id, name), description) in ids.iter().zip(names).zip(descriptions) {
        let node = builder.add_class(id);
        if let Some(name) = name {
            builder.set_name(node, &name);
        }
        if let Some(description) = description {
            builder.set_description(node, &description);
        }
    }
    for (parent, child) in edges {
        builder.add_edge(parent, child, None);
    }
    Ok(PyTaxonomy::of(builder.build()?))
}

/// The file that is meant; None for anything that is no path.
fn file_of(source: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if source.is_instance_of::<pyo3::types::PyString>() || source.hasattr("__fspath__")? {
        let path: PathBuf = source.extract()?;
        return Ok(Some(path.display().to_string()));
    }
    Ok(None)
}
