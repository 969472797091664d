//! Class graphs as Python people have them: pairs, nested dicts, tables, networkx.

use gpn::taxonomy::{Checked, Node, TaxonomyBuilder};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};

use crate::errors::{Fault, bad_input};

/// The id of a class that is given as a label: a text, a number, anything that `str` tells apart.
pub(crate) fn named(label: &Bound<'_, PyAny>) -> PyResult<String> {
    match label.cast::<PyString>() {
        Ok(text) => Ok(text.to_str()?.to_owned()),
        Err(_) => Ok(label.str()?.to_str()?.to_owned()),
    }
}

/// The graph that an object describes.
pub(crate) fn graph_of(source: &Bound<'_, PyAny>) -> PyResult<Checked> {
    let mut graph = TaxonomyBuilder::new();
    if source.hasattr("nodes")? && source.hasattr("edges")? {
        networkx(source, &mut graph)?;
    } else if source.hasattr("columns")? {
        let names: Vec<String> =
            source.getattr("columns")?.try_iter()?.map(|name| named(&name?)).collect::<PyResult<_>>()?;
        table(source, &names, &mut graph)?;
    } else if let Ok(dict) = source.cast::<PyDict>() {
        if dict.contains("child")?
            && dict.contains("parent")?
            && !dict.get_item("child")?.is_none_or(|c| c.is_instance_of::<PyDict>())
        {
            let names: Vec<String> = dict.keys().iter().map(|name| named(&name)).collect::<PyResult<_>>()?;
            table(source, &names, &mut graph)?;
        } else {
            nested(source, &mut graph)?;
        }
    } else {
        pairs(source, &mut graph)?;
    }
    if graph.is_empty() {
        return Err(bad_input("taxonomy: there is no class in it"));
    }
    Ok(graph.build().map_err(Fault::from)?)
}

fn pairs(source: &Bound<'_, PyAny>, graph: &mut TaxonomyBuilder) -> PyResult<()> {
    let wrong = |at: usize| {
        bad_input(format!(
            "taxonomy: entry {at} is no pair (parent, child); give pairs, a nested dict, a table or a file"
        ))
    };
    for (at, pair) in source.try_iter().map_err(|_| wrong(0))?.enumerate() {
        let pair = pair?;
        if pair.is_instance_of::<PyString>() {
            return Err(wrong(at));
        }
        let ends: Vec<Bound<'_, PyAny>> = match pair.try_iter() {
            Ok(ends) => ends.collect::<PyResult<_>>()?,
            Err(_) => return Err(wrong(at)),
        };
        let [parent, child] = &ends[..] else { return Err(wrong(at)) };
        let (parent, child) = (graph.add_class(&named(parent)?), graph.add_class(&named(child)?));
        graph.add_edge(parent, child, None);
    }
    Ok(())
}

/// Parents as keys, children as keys of the values, or as lists where they have no children themselves.
fn nested(source: &Bound<'_, PyAny>, graph: &mut TaxonomyBuilder) -> PyResult<()> {
    // Not by recursion: a dict may be deeper than the stack.
    let mut open: Vec<(Option<Node>, Bound<'_, PyAny>)> = vec![(None, source.clone())];
    while let Some((parent, below)) = open.pop() {
        let mut children: Vec<(Bound<'_, PyAny>, Option<Bound<'_, PyAny>>)> = Vec::new();
        if below.is_none() {
            continue;
        }
        if let Ok(dict) = below.cast::<PyMapping>() {
            for item in dict.items()?.iter() {
                let (child, below): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
                children.push((child, Some(below)));
            }
        } else if below.is_instance_of::<PyString>() {
            return Err(bad_input(format!(
                "taxonomy: `{}` stands where children are expected; write a list or a dict of children, or pairs (parent, child)",
                named(&below)?
            )));
        } else {
            for child in below.try_iter()? {
                children.push((child?, None));
            }
        }
        for (child, below) in children {
            let node = graph.add_class(&named(&child)?);
            if let Some(parent) = parent {
                graph.add_edge(parent, node, None);
            }
            if let Some(below) = below {
                open.push((Some(node), below));
            }
        }
    }
    Ok(())
}

/// Columns `child` and `parent`, or one column for each level from the root down.
fn table(source: &Bound<'_, PyAny>, names: &[String], graph: &mut TaxonomyBuilder) -> PyResult<()> {
    let column = |name: &str| -> PyResult<Vec<Option<String>>> {
        source.get_item(name)?.try_iter()?.map(|value| present(&value?)).collect()
    };
    let has = |name: &str| names.iter().any(|column| column == name);
    if !(has("child") && has("parent")) {
        let levels: Vec<Vec<Option<String>>> =
            names.iter().map(|name| column(name)).collect::<PyResult<_>>()?;
        return paths(&levels, graph);
    }
    let (children, parents) = (column("child")?, column("parent")?);
    let texts = |name: &str| if has(name) { column(name) } else { Ok(vec![None; children.len()]) };
    let (class_names, descriptions) = (texts("name")?, texts("description")?);
    for (row, child) in children.iter().enumerate() {
        let Some(child) = child else {
            return Err(bad_input(format!("taxonomy: row {row} has no child; give every class a name")));
        };
        let child = graph.add_class(child);
        if let Some(name) = &class_names[row] {
            graph.set_name(child, name);
        }
        if let Some(description) = &descriptions[row] {
            graph.set_description(child, description);
        }
        if let Some(parent) = parents.get(row).and_then(Option::as_ref) {
            let parent = graph.add_class(parent);
            graph.add_edge(parent, child, None);
        }
    }
    Ok(())
}

/// One path for each row; empty cells are left out. An edge that several rows state counts once.
fn paths(levels: &[Vec<Option<String>>], graph: &mut TaxonomyBuilder) -> PyResult<()> {
    let rows = levels.first().map_or(0, Vec::len);
    let mut seen = std::collections::BTreeSet::new();
    for row in 0..rows {
        let mut parent = None;
        for id in levels.iter().filter_map(|level| level.get(row).and_then(Option::as_ref)) {
            let node = graph.add_class(id);
            if let Some(parent) = parent.filter(|&parent| parent != node && seen.insert((parent, node))) {
                graph.add_edge(parent, node, None);
            }
            parent = Some(node);
        }
    }
    Ok(())
}

fn networkx(source: &Bound<'_, PyAny>, graph: &mut TaxonomyBuilder) -> PyResult<()> {
    if source.hasattr("is_directed")? && !source.call_method0("is_directed")?.is_truthy()? {
        return Err(bad_input(
            "taxonomy: the networkx graph is not directed; use a DiGraph with edges from parent to child",
        ));
    }
    for entry in source.getattr("nodes")?.call_method1("items", ())?.try_iter()? {
        let (class, attributes): (Bound<'_, PyAny>, Bound<'_, PyAny>) = entry?.extract()?;
        let node = graph.add_class(&named(&class)?);
        let text =
            |key: &str| -> PyResult<Option<String>> { present(&attributes.call_method1("get", (key,))?) };
        if let Some(name) = text("name")? {
            graph.set_name(node, &name);
        }
        if let Some(description) = text("description")? {
            graph.set_description(node, &description);
        }
    }
    for edge in source.getattr("edges")?.try_iter()? {
        let edge = edge?;
        let (parent, child) = (edge.get_item(0)?, edge.get_item(1)?);
        let (parent, child) = (graph.add_class(&named(&parent)?), graph.add_class(&named(&child)?));
        graph.add_edge(parent, child, None);
    }
    Ok(())
}

/// A cell that is neither empty nor missing.
fn present(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if value.is_none() || value.ne(value).unwrap_or(true) {
        // Missing values of NumPy and pandas do not equal themselves.
        return Ok(None);
    }
    Ok(Some(named(value)?).filter(|text| !text.is_empty()))
}
