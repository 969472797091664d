//! Taxonomies in JSON: nested, flat, or parents by class.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{malformed, read_text, some_class};
use crate::builder::TaxonomyBuilder;
use crate::error::{TaxonomyError, excerpt};
use crate::graph::{Checked, Node};
use crate::plain_words::plain_words;

/// Reads JSON in one of three forms:
///
/// * nested: `{"id": "animal", "name": "Animal", "children": [{"id": "cat"}, "dog"]}`, or a list of such;
/// * flat: `{"classes": [{"id": "cat", "name": "Cat", "description": "...", "parents": ["animal"]}]}`;
/// * parents by class: `{"cat": ["animal"], "dog": "animal", "animal": []}`.
///
/// An object without `id` is known by its `name`; fields other than those shown are ignored. A class may occur
/// several times. Objects nest at most 60 deep, as the JSON parser limits recursion; deeper graphs need one of
/// the other forms. O(size of the file).
pub fn read_json(path: &Path) -> Result<Checked, TaxonomyError> {
    let text = read_text(path)?;
    let document: Document = serde_json::from_str(&text).map_err(|error| {
        let hint = if error.to_string().starts_with("recursion limit") {
            "; use the flat form {\"classes\": [{\"id\", \"parents\"}]} for deep graphs"
        } else {
            ""
        };
        let line = u64::try_from(error.line()).ok().filter(|&line| line > 0);
        malformed(
            path,
            line,
            format!("is not a taxonomy in JSON: {}{hint}", excerpt(&plain_words(&error.to_string()))),
        )
    })?;
    drop(text);
    let mut graph = TaxonomyBuilder::for_file(path);
    let nameless = || malformed(path, None, "an object has neither `id` nor `name`");
    match document {
        Document::Classes(classes) => {
            for class in classes {
                add(&mut graph, class).ok_or_else(nameless)?;
            }
        }
        Document::Parents(entries) => {
            for (child, parents) in entries {
                let child = graph.add_class(&child);
                for parent in parents {
                    let parent = graph.add_class(&parent);
                    graph.add_edge(parent, child, None);
                }
            }
        }
    }
    graph.drop_repeated_edges();
    some_class(graph.build()?, path)
}

/// Adds a class and all below it; `None` if one has no id. Recursion is bounded by the parser.
fn add(graph: &mut TaxonomyBuilder, item: Item) -> Option<Node> {
    let class = match item {
        Item::Text(id) => return Some(graph.add_class(&id)),
        Item::Class(class) => class,
    };
    let node = graph.add_class(class.id.as_deref().or(class.name.as_deref())?);
    if let Some(name) = &class.name {
        graph.set_name(node, name);
    }
    if let Some(description) = class.description.as_ref().or(class.gloss.as_ref()) {
        graph.set_description(node, description);
    }
    for parent in class.parents {
        let parent = graph.add_class(&parent);
        graph.add_edge(parent, node, None);
    }
    for child in class.children {
        let child = add(graph, child)?;
        graph.add_edge(node, child, None);
    }
    Some(node)
}

#[derive(Default, Deserialize)]
struct Class {
    id: Option<String>,
    name: Option<String>,
    description: Option<String>,
    /// What descriptions were called before.
    gloss: Option<String>,
    #[serde(default)]
    parents: Vec<String>,
    #[serde(default)]
    children: Vec<Item>,
}

enum Item {
    Text(String),
    Class(Box<Class>),
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ItemVisitor;
        impl<'de> Visitor<'de> for ItemVisitor {
            type Value = Item;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a class: its id, or an object with `id`")
            }

            fn visit_str<E>(self, text: &str) -> Result<Item, E> {
                Ok(Item::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Item, A::Error> {
                let class = Class::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(Item::Class(Box::new(class)))
            }
        }
        deserializer.deserialize_any(ItemVisitor)
    }
}

/// The value of a field at the top of a document.
enum Value {
    Null,
    Text(String),
    Items(Vec<Item>),
    /// Numbers, booleans and objects, which mean nothing here.
    Other,
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;
        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
                Ok(Value::Other)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Value, E> {
                Ok(Value::Other)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Value, E> {
                Ok(Value::Other)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
                Ok(Value::Other)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Value::Other)
            }

            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }

            fn visit_str<E>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Value, A::Error> {
                Vec::deserialize(serde::de::value::SeqAccessDeserializer::new(seq)).map(Value::Items)
            }
        }
        deserializer.deserialize_any(ValueVisitor)
    }
}

enum Document {
    Classes(Vec<Item>),
    Parents(Vec<(String, Vec<String>)>),
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DocumentVisitor;
        impl<'de> Visitor<'de> for DocumentVisitor {
            type Value = Document;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object or a list of classes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Document, A::Error> {
                Vec::deserialize(serde::de::value::SeqAccessDeserializer::new(seq)).map(Document::Classes)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry::<String, Value>()? {
                    fields.push(field);
                }
                document(fields).map_err(serde::de::Error::custom)
            }
        }
        deserializer.deserialize_any(DocumentVisitor)
    }
}

/// Tells the three forms apart by the fields of the outermost object.
fn document(fields: Vec<(String, Value)>) -> Result<Document, String> {
    let holds_classes = |(key, value): &(String, Value)| {
        key == "classes"
            && matches!(value, Value::Items(items) if items.iter().any(|i| matches!(i, Item::Class(_))))
    };
    if fields.iter().any(holds_classes) {
        let classes = fields.into_iter().find(holds_classes).map(|(_, value)| value);
        return Ok(Document::Classes(if let Some(Value::Items(items)) = classes {
            items
        } else {
            Vec::new()
        }));
    }
    let is_class = fields.iter().any(|(key, _)| key == "children")
        || fields.iter().any(|(key, value)| key == "id" && matches!(value, Value::Text(_)));
    if is_class {
        let mut class = Class::default();
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("id", Value::Text(text)) => class.id = Some(text),
                ("name", Value::Text(text)) => class.name = Some(text),
                ("description", Value::Text(text)) => class.description = Some(text),
                ("gloss", Value::Text(text)) => class.gloss = Some(text),
                ("children", Value::Items(items)) => class.children = items,
                ("parents", Value::Items(items)) => class.parents = texts(items, "parents")?,
                _ => {}
            }
        }
        return Ok(Document::Classes(vec![Item::Class(Box::new(class))]));
    }
    let mut entries = Vec::with_capacity(fields.len());
    for (child, value) in fields {
        let parents = match value {
            Value::Null => Vec::new(),
            Value::Text(parent) => vec![parent],
            Value::Items(items) => texts(items, &child)?,
            Value::Other => {
                return Err(format!("`{}` is to be a list of the ids of its parents", excerpt(&child)));
            }
        };
        entries.push((child, parents));
    }
    Ok(Document::Parents(entries))
}

fn texts(items: Vec<Item>, field: &str) -> Result<Vec<String>, String> {
    let text = |item| match item {
        Item::Text(text) => Ok(text),
        Item::Class(_) => Err(format!("`{}` is to be a list of the ids of its parents", excerpt(field))),
    };
    items.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Checked, TaxonomyError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read_json(file.path())
    }

    #[test]
    fn all_forms_give_the_same_graph() {
        for text in [
            r#"{"id": "animal", "size": 3, "name": "Animal", "children": [{"id": "cat", "name": "Cat"}, "dog"]}"#,
            r#"[{"id": "animal", "children": ["cat"]}, {"id": "dog", "parents": ["animal"]}]"#,
            r#"{"version": "1", "classes": [{"id": "cat", "parents": ["animal"]}, {"id": "dog", "parents": ["animal"]}]}"#,
            r#"{"cat": ["animal"], "dog": "animal", "animal": null}"#,
            r#"{"name": "animal", "children": [{"name": "cat"}, {"name": "dog", "children": []}]}"#,
        ] {
            let graph = read(text).unwrap().taxonomy;
            let mut edges: Vec<_> = graph.edges().map(|(p, c)| (graph.id(p), graph.id(c))).collect();
            edges.sort_unstable();
            assert_eq!(edges, [("animal", "cat"), ("animal", "dog")], "{text}");
        }
    }

    #[test]
    fn names_and_glosses_are_read() {
        let graph =
            read(r#"{"classes":[{"id":"a","name":"A","gloss":"first"},{"id":"b"}]}"#).unwrap().taxonomy;
        assert_eq!((graph.name(0), graph.description(0), graph.name(1)), ("A", Some("first"), "b"));
    }

    #[test]
    fn broken_files_are_errors_with_their_line() {
        let message = |text: &str| read(text).unwrap_err().to_string();
        assert!(message("{\"cat\":\n[\"animal\"").contains(":2: is not a taxonomy in JSON: EOF"));
        assert!(message("{\"cat\": 3}").contains("`cat` is to be a list of the ids of its parents"));
        assert!(message("[{\"size\": 3}]").contains("neither `id` nor `name`"));
        assert!(message("[]").contains("holds no class"));
        assert!(message("{\"a\": [\"b\"], \"b\": [\"a\"]}").contains("cycle"));
        assert!(message(&"{\"id\":\"a\",\"children\":[".repeat(1000)).contains("flat form"));
    }
}
