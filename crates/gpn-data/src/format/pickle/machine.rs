//! The stack machine: instructions that build data, and nothing else.

use super::numpy::Function;
use super::opcode::refused_name;
use super::{Chars, Pickle, Value};
use crate::DataError;

/// Most values a pickle may build; tieredImageNet's largest builds 12 million.
const MAX_VALUES: usize = 1 << 26;
/// Longest line of text in an instruction that is no string.
const MAX_LINE: usize = 1 << 12;

/// Runs a pickle's instructions until it stops.
pub(super) fn run<'a>(bytes: &'a [u8], file: &'a str) -> Result<Pickle<'a>, DataError> {
    let pickle = Pickle {
        bytes,
        file,
        root: Value::None,
        cells: Vec::new(),
        lists: Vec::new(),
        dicts: Vec::new(),
        arrays: Vec::new(),
        dtypes: Vec::new(),
        unescaped: Vec::new(),
    };
    let mut machine = Machine {
        pickle,
        at: 0,
        opcode_at: 0,
        built: 0,
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Vec::new(),
    };
    while !machine.step()? {}
    Ok(machine.pickle)
}

pub(super) struct Machine<'a> {
    pub(super) pickle: Pickle<'a>,
    at: usize,
    opcode_at: usize,
    built: usize,
    stack: Vec<Value>,
    /// Heights of the stack at each open mark.
    marks: Vec<usize>,
    memo: Vec<Option<Value>>,
}

impl<'a> Machine<'a> {
    pub(super) fn malformed(&self, reason: impl std::fmt::Display) -> DataError {
        DataError::malformed(self.pickle.file, format!("damaged pickle at byte {}: {reason}", self.opcode_at))
    }

    fn refused(&self, what: String) -> DataError {
        DataError::PickleRefused { file: self.pickle.file.to_owned(), what, at: self.opcode_at }
    }

    /// Executes one instruction; true once the pickle is complete.
    fn step(&mut self) -> Result<bool, DataError> {
        self.opcode_at = self.at;
        let opcode = self.take(1)?[0];
        match opcode {
            // Frames of the protocol; they carry no data.
            0x80 => {
                let version = self.take(1)?[0];
                if version > 5 {
                    return Err(self.malformed(format!("protocol {version} is unknown")));
                }
            }
            0x95 => {
                self.take(8)?;
            }
            b'.' => {
                self.pickle.root = self.pop()?;
                return Ok(true);
            }
            // Constants and numbers.
            b'N' => self.push(Value::None)?,
            0x88 => self.push(Value::Bool(true))?,
            0x89 => self.push(Value::Bool(false))?,
            b'K' => self.push_number(1)?,
            b'M' => self.push_number(2)?,
            b'J' => {
                let number = self.unsigned(4)? as u32 as i32;
                self.push(Value::Int(i64::from(number)))?;
            }
            0x8a => self.push_long(1)?,
            0x8b => self.push_long(4)?,
            b'I' | b'L' => self.push_decimal()?,
            b'G' => {
                let bits = self.unsigned(8)?.swap_bytes();
                self.push(Value::Float(f64::from_bits(bits)))?;
            }
            b'F' => {
                let number = self.line()?.parse().map_err(|_| self.malformed("a float that is no number"))?;
                self.push(Value::Float(number))?;
            }
            // Text and bytes. Python 2 wrote `str` as STRING: bytes.
            b'T' | b'B' => self.push_bytes(4)?,
            b'U' | b'C' => self.push_bytes(1)?,
            0x8e | 0x96 => self.push_bytes(8)?,
            b'X' => self.push_text(4)?,
            0x8c => self.push_text(1)?,
            0x8d => self.push_text(8)?,
            b'S' => self.push_quoted()?,
            b'V' => self.push_escaped_text()?,
            // Containers.
            b')' => self.push_tuple(0)?,
            0x85 => self.push_tuple(1)?,
            0x86 => self.push_tuple(2)?,
            0x87 => self.push_tuple(3)?,
            b't' => {
                let count = self.marked()?;
                self.push_tuple(count)?;
            }
            b']' => self.push_list(0)?,
            b'l' => {
                let count = self.marked()?;
                self.push_list(count)?;
            }
            b'a' => self.append(1)?,
            b'e' => {
                let count = self.marked()?;
                self.append(count)?;
            }
            b'}' => self.push_dict(0)?,
            b'd' => {
                let count = self.marked()?;
                self.push_dict(count)?;
            }
            b's' => self.set_items(2)?,
            b'u' => {
                let count = self.marked()?;
                self.set_items(count)?;
            }
            // The stack and the memo.
            b'(' => self.mark()?,
            b'0' => {
                self.pop()?;
            }
            b'1' => {
                let count = self.marked()?;
                self.stack.truncate(self.stack.len() - count);
            }
            b'2' => {
                let top = self.top()?;
                self.push(top)?;
            }
            b'p' => {
                let index = self.line_index()?;
                self.remember(index)?;
            }
            b'q' => {
                let index = self.unsigned(1)?;
                self.remember(index)?;
            }
            b'r' => {
                let index = self.unsigned(4)?;
                self.remember(index)?;
            }
            0x94 => self.remember(self.memo.len() as u64)?,
            b'g' => {
                let index = self.line_index()?;
                self.recall(index)?;
            }
            b'h' => {
                let index = self.unsigned(1)?;
                self.recall(index)?;
            }
            b'j' => {
                let index = self.unsigned(4)?;
                self.recall(index)?;
            }
            // Functions: looked up among those that describe data, never run.
            b'c' => {
                let (module, name) = (self.line()?.to_owned(), self.line()?.to_owned());
                self.push_function(&module, &name)?;
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let [module, name] = [module, name].map(|part| self.pickle.text(part));
                let (Some(module), Some(name)) = (module, name) else {
                    return Err(self.malformed("a function without a name"));
                };
                self.push_function(&module, &name)?;
            }
            b'R' => {
                let (arguments, function) = (self.pop()?, self.pop()?);
                let value = self.call(function, arguments)?;
                self.push(value)?;
            }
            b'b' => {
                let (state, target) = (self.pop()?, self.top()?);
                self.build(target, state)?;
            }
            other => return Err(self.refused(refused_name(other))),
        }
        Ok(false)
    }

    /// The next `count` bytes.
    fn take(&mut self, count: usize) -> Result<&'a [u8], DataError> {
        let bytes: &'a [u8] = self.pickle.bytes;
        let end = self.at.checked_add(count).filter(|&end| end <= bytes.len());
        let end = end.ok_or_else(|| {
            let left = bytes.len() - self.at;
            self.malformed(format!(
                "{count} bytes should follow, {left} do; the file is cut short or damaged"
            ))
        })?;
        let taken = &bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn unsigned(&mut self, count: usize) -> Result<u64, DataError> {
        Ok(self.take(count)?.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
    }

    /// The bytes up to the end of the line, which is consumed.
    fn raw_line(&mut self, limit: usize) -> Result<&'a [u8], DataError> {
        let rest = &self.pickle.bytes[self.at..];
        let end = rest.iter().take(limit).position(|&byte| byte == b'\n');
        let end = end.ok_or_else(|| self.malformed("a line without end"))?;
        let line = self.take(end + 1)?;
        Ok(&line[..end])
    }

    fn line(&mut self) -> Result<&'a str, DataError> {
        let line = self.raw_line(MAX_LINE)?;
        std::str::from_utf8(line).map(str::trim_end).map_err(|_| self.malformed("a line that is not text"))
    }

    fn line_index(&mut self) -> Result<u64, DataError> {
        self.line()?.parse().map_err(|_| self.malformed("a memo index that is no number"))
    }

    fn push(&mut self, value: Value) -> Result<(), DataError> {
        self.built += 1;
        if self.built > MAX_VALUES {
            return Err(self.malformed(format!("more than {MAX_VALUES} values")));
        }
        self.stack.push(value);
        Ok(())
    }

    /// Pops a value that stands above the last mark.
    fn pop(&mut self) -> Result<Value, DataError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.pop() {
            Some(value) if self.stack.len() >= floor => Ok(value),
            _ => Err(self.malformed("a value is missing")),
        }
    }

    fn top(&self) -> Result<Value, DataError> {
        self.stack.last().copied().ok_or_else(|| self.malformed("a value is missing"))
    }

    fn mark(&mut self) -> Result<(), DataError> {
        self.built += 1;
        if self.built > MAX_VALUES {
            return Err(self.malformed(format!("more than {MAX_VALUES} values")));
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    /// Closes the last mark; the number of values above it.
    fn marked(&mut self) -> Result<usize, DataError> {
        let mark = self.marks.pop().ok_or_else(|| self.malformed("a mark is missing"))?;
        // invariant: `pop` never goes below the last mark
        Ok(self.stack.len() - mark)
    }

    /// The top `count` values, removed from the stack.
    fn pop_many(&mut self, count: usize) -> Result<Vec<Value>, DataError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len().checked_sub(count) {
            Some(from) if from >= floor => Ok(self.stack.split_off(from)),
            _ => Err(self.malformed("a value is missing")),
        }
    }

    fn push_number(&mut self, size: usize) -> Result<(), DataError> {
        let number = self.unsigned(size)?;
        self.push(Value::Int(number as i64))
    }

    fn push_long(&mut self, size: usize) -> Result<(), DataError> {
        let length = self.unsigned(size)?;
        if length > 8 {
            return Err(self.malformed(format!("an integer of {length} bytes; at most 8 are read")));
        }
        let bytes = self.take(length as usize)?;
        let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let fill = if negative { -1 } else { 0 };
        let number = bytes.iter().rev().fold(fill, |word: i64, &byte| word << 8 | i64::from(byte));
        self.push(Value::Int(number))
    }

    /// INT and LONG of protocol 0; INT `00` and `01` are the booleans.
    fn push_decimal(&mut self) -> Result<(), DataError> {
        let value = match self.line()? {
            "00" => Value::Bool(false),
            "01" => Value::Bool(true),
            digits => match digits.trim_end_matches('L').parse() {
                Ok(number) => Value::Int(number),
                Err(_) => return Err(self.malformed("an integer that is no number of 64 bits")),
            },
        };
        self.push(value)
    }

    fn file_chars(&mut self, length_size: usize) -> Result<Chars, DataError> {
        let len =
            usize::try_from(self.unsigned(length_size)?).map_err(|_| self.malformed("an absurd length"))?;
        let start = self.at;
        self.take(len)?;
        Ok(Chars::File { start, len })
    }

    fn push_bytes(&mut self, length_size: usize) -> Result<(), DataError> {
        let chars = self.file_chars(length_size)?;
        self.push(Value::Bytes(chars))
    }

    fn push_text(&mut self, length_size: usize) -> Result<(), DataError> {
        let chars = self.file_chars(length_size)?;
        self.push(Value::Text(chars))
    }

    /// STRING of protocol 0: a quoted Python literal.
    fn push_quoted(&mut self) -> Result<(), DataError> {
        let line = self.raw_line(usize::MAX)?.trim_ascii_end();
        let ([b'\'', inside @ .., b'\''] | [b'"', inside @ .., b'"']) = line else {
            return Err(self.malformed("a string without quotes"));
        };
        let bytes = unescape(inside).ok_or_else(|| self.malformed("an unknown escape in a string"))?;
        let chars = self.keep(bytes);
        self.push(Value::Bytes(chars))
    }

    /// UNICODE of protocol 0: Latin-1 with `\uXXXX` escapes.
    fn push_escaped_text(&mut self) -> Result<(), DataError> {
        let line = self.raw_line(usize::MAX)?;
        let text = unescape_unicode(line).ok_or_else(|| self.malformed("an unknown escape in a text"))?;
        let chars = self.keep(text.into_bytes());
        self.push(Value::Text(chars))
    }

    pub(super) fn keep(&mut self, bytes: Vec<u8>) -> Chars {
        self.pickle.unescaped.push(bytes);
        Chars::Unescaped(self.pickle.unescaped.len() as u32 - 1)
    }

    fn push_tuple(&mut self, count: usize) -> Result<(), DataError> {
        let items = self.pop_many(count)?;
        let start = self.pickle.cells.len() as u32;
        self.pickle.cells.extend(items);
        self.push(Value::Tuple { start, len: count as u32 })
    }

    fn push_list(&mut self, count: usize) -> Result<(), DataError> {
        let items = self.pop_many(count)?;
        self.pickle.lists.push(items);
        self.push(Value::List(self.pickle.lists.len() as u32 - 1))
    }

    fn append(&mut self, count: usize) -> Result<(), DataError> {
        let items = self.pop_many(count)?;
        let Value::List(id) = self.top()? else {
            return Err(self.malformed("an item for something that is no list"));
        };
        self.pickle.lists[id as usize].extend(items);
        Ok(())
    }

    fn push_dict(&mut self, count: usize) -> Result<(), DataError> {
        self.pickle.dicts.push(Vec::new());
        let items = self.pop_many(count)?;
        self.push(Value::Dict(self.pickle.dicts.len() as u32 - 1))?;
        self.insert(&items)
    }

    fn set_items(&mut self, count: usize) -> Result<(), DataError> {
        let items = self.pop_many(count)?;
        self.insert(&items)
    }

    fn insert(&mut self, items: &[Value]) -> Result<(), DataError> {
        let Value::Dict(id) = self.top()? else {
            return Err(self.malformed("a key for something that is no dict"));
        };
        let (pairs, rest) = items.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(self.malformed("a key without a value"));
        }
        self.pickle.dicts[id as usize].extend(pairs.iter().map(|[key, value]| (*key, *value)));
        Ok(())
    }

    fn remember(&mut self, index: u64) -> Result<(), DataError> {
        // Each memo entry belongs to a value built before: a larger index is a lie that must not take memory.
        if index > self.built as u64 {
            return Err(self.malformed(format!("the memo index {index} is absurd")));
        }
        let (index, top) = (index as usize, self.top()?);
        if index >= self.memo.len() {
            self.memo.resize(index + 1, None);
        }
        self.memo[index] = Some(top);
        Ok(())
    }

    fn recall(&mut self, index: u64) -> Result<(), DataError> {
        let found = usize::try_from(index).ok().and_then(|index| self.memo.get(index).copied().flatten());
        match found {
            Some(value) => self.push(value),
            None => Err(self.malformed(format!("the memo has no entry {index}"))),
        }
    }

    fn push_function(&mut self, module: &str, name: &str) -> Result<(), DataError> {
        let Some(function) = Function::named(module, name) else {
            let full: String = format!("{module}.{name}").chars().take(100).collect();
            return Err(self.refused(format!("`{}`", full.escape_debug())));
        };
        self.push(Value::Function(function))
    }
}

/// The bytes of a Python 2 string literal without its quotes.
fn unescape(literal: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(literal.len());
    let mut rest = literal;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'\\' {
            bytes.push(first);
            continue;
        }
        let (&escaped, after) = rest.split_first()?;
        rest = after;
        bytes.push(match escaped {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'\\' | b'\'' | b'"' => escaped,
            b'x' => {
                let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
                rest = &rest[2..];
                u8::from_str_radix(digits, 16).ok()?
            }
            _ => return None,
        });
    }
    Some(bytes)
}

/// The text of Python's `raw-unicode-escape`.
fn unescape_unicode(literal: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(literal.len());
    let mut rest = literal;
    while let Some((&first, after)) = rest.split_first() {
        let digits = match rest.get(..2) {
            Some(b"\\u") => 4,
            Some(b"\\U") => 8,
            _ => {
                text.push(char::from(first));
                rest = after;
                continue;
            }
        };
        let code = std::str::from_utf8(rest.get(2..2 + digits)?).ok()?;
        text.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
        rest = &rest[2 + digits..];
    }
    Some(text)
}
