//! Python pickles, parsed as data.
//!
//! A pickle is a program for a small stack machine that may name any Python function. This reader knows only
//! the instructions that build numbers, text, bytes, tuples, lists, dicts and NumPy arrays (protocols 0 to
//! 5); every other instruction and every other function is refused by name. Nothing is ever run, memory is
//! bounded by the size of the file, and byte strings stay where they are, as ranges of the file, so that a
//! pickle of ten gigabytes is read with some hundred megabytes.

mod machine;
mod numpy;
mod opcode;

use std::borrow::Cow;
use std::ops::Range;

use super::element::{Element, Kind};
use crate::DataError;

/// Names a list, dict or array of a [`Pickle`].
type Id = u32;

/// A value; containers are named by their place in the [`Pickle`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Bytes(Chars),
    Text(Chars),
    Tuple { start: u32, len: u32 },
    List(Id),
    Dict(Id),
    Array(Id),
    Dtype(Id),
    Function(numpy::Function),
}

/// Where the bytes of a string stand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Chars {
    /// In the file as they are.
    File { start: usize, len: usize },
    /// In the file, as the UTF-8 of text whose characters are the bytes: how Python 3 writes bytes for
    /// protocols below 3.
    Latin1 { start: usize, len: usize },
    /// Unescaped, in [`Pickle::unescaped`].
    Unescaped(Id),
}

/// A NumPy array.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Array {
    element: Element,
    shape: Value,
    data: Value,
}

/// A parsed pickle.
#[derive(Debug)]
pub(crate) struct Pickle<'a> {
    bytes: &'a [u8],
    file: &'a str,
    root: Value,
    cells: Vec<Value>,
    lists: Vec<Vec<Value>>,
    dicts: Vec<Vec<(Value, Value)>>,
    arrays: Vec<Option<Array>>,
    dtypes: Vec<Element>,
    unescaped: Vec<Vec<u8>>,
}

impl<'a> Pickle<'a> {
    /// Parses a whole pickle; `file` is used in messages.
    pub(crate) fn parse(bytes: &'a [u8], file: &'a str) -> Result<Self, DataError> {
        machine::run(bytes, file)
    }

    /// The value that the pickle holds.
    pub(crate) fn root(&self) -> Value {
        self.root
    }

    /// An error about the content.
    pub(crate) fn malformed(&self, reason: impl Into<String>) -> DataError {
        DataError::malformed(self.file, reason)
    }

    /// The value of a dict under a text key.
    pub(crate) fn get(&self, dict: Value, key: &str) -> Option<Value> {
        let Value::Dict(id) = dict else { return None };
        let is_key = |value: Value| self.chars(value).is_some_and(|found| *found == *key.as_bytes());
        self.dicts[id as usize].iter().rev().find(|(found, _)| is_key(*found)).map(|(_, value)| *value)
    }

    /// The items of a list, a tuple, or an array of objects.
    pub(crate) fn items(&self, value: Value) -> Option<&[Value]> {
        match value {
            Value::List(id) => Some(&self.lists[id as usize]),
            Value::Tuple { start, len } => Some(&self.cells[start as usize..][..len as usize]),
            Value::Array(id) => match self.arrays[id as usize] {
                Some(Array {
                    element: Element { kind: Kind::Object, .. }, data: Value::List(id), ..
                }) => Some(&self.lists[id as usize]),
                _ => None,
            },
            _ => None,
        }
    }

    /// The bytes of a text or byte string.
    pub(crate) fn chars(&self, value: Value) -> Option<Cow<'_, [u8]>> {
        let (Value::Bytes(chars) | Value::Text(chars)) = value else { return None };
        match chars {
            Chars::File { start, len } => Some(Cow::Borrowed(&self.bytes[start..start + len])),
            Chars::Latin1 { start, len } => latin1_bytes(&self.bytes[start..start + len]).map(Cow::Owned),
            Chars::Unescaped(id) => Some(Cow::Borrowed(&self.unescaped[id as usize])),
        }
    }

    /// Text of a text or byte string; Latin-1 where it is not UTF-8.
    pub(crate) fn text(&self, value: Value) -> Option<String> {
        let bytes = self.chars(value)?;
        Some(match std::str::from_utf8(&bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
        })
    }

    /// A list or one-dimensional array of integers.
    pub(crate) fn integers(&self, value: Value) -> Option<Vec<i64>> {
        if let Some(items) = self.items(value) {
            let integer = |item: &Value| match item {
                Value::Int(number) => Some(*number),
                _ => None,
            };
            return items.iter().map(integer).collect();
        }
        let (element, data) = self.flat_array(value)?;
        data.chunks_exact(element.size).map(|bytes| element.integer(bytes)).collect()
    }

    /// A list or one-dimensional array of text.
    pub(crate) fn texts(&self, value: Value) -> Option<Vec<String>> {
        if let Some(items) = self.items(value) {
            return items.iter().map(|item| self.text(*item)).collect();
        }
        let (element, data) = self.flat_array(value)?;
        let textual = matches!(element.kind, Kind::Unicode | Kind::Bytes);
        data.chunks_exact(element.size).map(|bytes| element.text(bytes).filter(|_| textual)).collect()
    }

    /// Where the bytes of a `uint8` array or of a byte string stand in the file, and whether they are written
    /// as text (see [`latin1_bytes`]).
    pub(crate) fn byte_range(&self, value: Value) -> Option<(Range<usize>, bool)> {
        let data = match value {
            Value::Array(id) => self.arrays[id as usize].filter(|array| array.element.size == 1)?.data,
            other => other,
        };
        match data {
            Value::Bytes(Chars::File { start, len }) => Some((start..start + len, false)),
            Value::Bytes(Chars::Latin1 { start, len }) => Some((start..start + len, true)),
            _ => None,
        }
    }

    /// Element type and bytes of a one-dimensional array whose size agrees with its shape.
    fn flat_array(&self, value: Value) -> Option<(Element, Cow<'_, [u8]>)> {
        let Value::Array(id) = value else { return None };
        let Array { element, shape, data, .. } = self.arrays[id as usize]?;
        let [Value::Int(length)] = *self.items(shape)? else { return None };
        let data = self.chars(data)?;
        let size = usize::try_from(length).ok()?.checked_mul(element.size)?;
        (element.size > 0 && size == data.len()).then_some((element, data))
    }
}

/// Bytes that are written as UTF-8 text of the characters 0 to 255.
pub(crate) fn latin1_bytes(text: &[u8]) -> Option<Vec<u8>> {
    std::str::from_utf8(text).ok()?.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

#[cfg(test)]
mod tests;
