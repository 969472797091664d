//! How NumPy writes arrays into pickles: calls of a few functions, which are recognised by name and taken as
//! notes about the data.

use super::machine::Machine;
use super::{Array, Chars, Element, Value, latin1_bytes};
use crate::DataError;

/// The functions and classes that may be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    /// `numpy.ndarray`, an argument of `_reconstruct`.
    NdArray,
    /// `numpy.dtype(code, align, copy)`.
    Dtype,
    /// `_reconstruct(ndarray, shape, code)`, an empty array that BUILD fills.
    Reconstruct,
    /// `scalar(dtype, bytes)`, one number.
    Scalar,
    /// `_frombuffer(bytes, dtype, shape, order)`, protocol 5.
    FromBuffer,
    /// `_codecs.encode(text, "latin1")`, bytes written as text.
    Encode,
}

impl Function {
    /// The function of that name, if it is one of those that describe data.
    pub(super) fn named(module: &str, name: &str) -> Option<Self> {
        Some(match (module, name) {
            ("numpy", "ndarray") => Self::NdArray,
            ("numpy", "dtype") => Self::Dtype,
            ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => Self::Reconstruct,
            ("numpy.core.multiarray" | "numpy._core.multiarray", "scalar") => Self::Scalar,
            ("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer") => Self::FromBuffer,
            ("_codecs", "encode") => Self::Encode,
            _ => return None,
        })
    }
}

impl Machine<'_> {
    /// The value that a call stands for.
    pub(super) fn call(&mut self, function: Value, arguments: Value) -> Result<Value, DataError> {
        let Value::Function(function) = function else {
            return Err(self.malformed("a call of something that is no function"));
        };
        let arguments: Vec<Value> =
            self.pickle.items(arguments).unwrap_or_default().iter().take(5).copied().collect();
        let value = match (function, arguments.as_slice()) {
            (Function::Reconstruct, [Value::Function(Function::NdArray), _, _]) => self.new_array(None),
            (Function::Dtype, [code, ..]) => self.dtype(*code),
            (Function::Encode, [Value::Text(text), coding]) => {
                let latin1 =
                    self.pickle.text(*coding).is_some_and(|name| name == "latin1" || name == "latin-1");
                self.encode(*text).filter(|_| latin1)
            }
            (Function::Scalar, [Value::Dtype(id), data]) => {
                self.scalar(self.pickle.dtypes[*id as usize], *data)
            }
            (Function::FromBuffer, [data @ Value::Bytes(_), Value::Dtype(id), shape, _order]) => {
                let element = self.pickle.dtypes[*id as usize];
                self.new_array(Some(Array { element, shape: *shape, data: *data }))
            }
            _ => None,
        };
        value.ok_or_else(|| self.malformed(format!("a call of {function:?} with unexpected arguments")))
    }

    /// Fills in what a call has left open.
    pub(super) fn build(&mut self, target: Value, state: Value) -> Result<(), DataError> {
        let state: Vec<Value> =
            self.pickle.items(state).unwrap_or_default().iter().take(10).copied().collect();
        match (target, state.as_slice()) {
            (Value::Array(id), [Value::Int(_), shape, Value::Dtype(dtype), Value::Bool(_fortran), data]) => {
                let element = self.pickle.dtypes[*dtype as usize];
                let array = Array { element, shape: *shape, data: *data };
                self.pickle.arrays[id as usize] = Some(array);
                Ok(())
            }
            (Value::Dtype(id), [Value::Int(_), order, ..]) => {
                let big_endian = self.pickle.text(*order).is_some_and(|order| order == ">");
                self.pickle.dtypes[id as usize].big_endian = big_endian;
                Ok(())
            }
            _ => Err(self.malformed("a state that belongs to no array")),
        }
    }

    fn new_array(&mut self, array: Option<Array>) -> Option<Value> {
        let id = u32::try_from(self.pickle.arrays.len()).ok()?;
        self.pickle.arrays.push(array);
        Some(Value::Array(id))
    }

    fn dtype(&mut self, code: Value) -> Option<Value> {
        let element = Element::parse(&self.pickle.text(code)?)?;
        let id = u32::try_from(self.pickle.dtypes.len()).ok()?;
        self.pickle.dtypes.push(element);
        Some(Value::Dtype(id))
    }

    fn encode(&mut self, text: Chars) -> Option<Value> {
        Some(Value::Bytes(match text {
            Chars::File { start, len } => Chars::Latin1 { start, len },
            other => {
                let bytes = latin1_bytes(&self.pickle.chars(Value::Text(other))?)?;
                self.keep(bytes)
            }
        }))
    }

    fn scalar(&self, element: Element, data: Value) -> Option<Value> {
        let bytes = self.pickle.chars(data)?;
        match element.integer(&bytes) {
            Some(number) => Some(Value::Int(number)),
            None => element.float(&bytes).map(Value::Float),
        }
    }
}
