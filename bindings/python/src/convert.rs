//! Values of the library as Python objects: plain ones, and tables as dicts of arrays.

use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList};
use serde::Serialize;
use serde_json::Value;

use crate::errors::{bad_input, bug};

/// A JSON value as a Python object.
pub(crate) fn to_py<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => value.into_bound_py_any(py)?,
        Value::String(text) => text.into_bound_py_any(py)?,
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_bound_py_any(py)?,
            (None, Some(number)) => number.into_bound_py_any(py)?,
            (None, None) => number.as_f64().into_bound_py_any(py)?,
        },
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(to_py(py, item)?)?;
            }
            list.into_any()
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            for (key, value) in fields {
                dict.set_item(key, to_py(py, value)?)?;
            }
            dict.into_any()
        }
    })
}

/// A plain Python object as a JSON value: what [`to_py`] makes, back again.
pub(crate) fn from_py(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(Value::Bool(truth.is_true()));
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        let entry =
            |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((key.extract()?, from_py(&value)?));
        return Ok(Value::Object(dict.iter().map(entry).collect::<PyResult<_>>()?));
    }
    if let Ok(list) = object.cast::<PyList>() {
        return Ok(Value::Array(list.iter().map(|item| from_py(&item)).collect::<PyResult<_>>()?));
    }
    if object.is_instance_of::<PyInt>() {
        return integer(object);
    }
    if object.is_instance_of::<PyFloat>() {
        return Ok(object.extract::<f64>()?.into());
    }
    Ok(Value::String(object.extract()?))
}

/// A Python integer as a JSON value: any of 64 bits, with a sign or without.
pub(crate) fn integer(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    match object.extract::<i64>() {
        Ok(number) => Ok(number.into()),
        Err(_) => Ok(object.extract::<u64>()?.into()),
    }
}

/// Anything that serialises as a Python object.
pub(crate) fn serialised<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    to_py(py, &json(value)?)
}

pub(crate) fn json(value: &impl Serialize) -> PyResult<Value> {
    serde_json::to_value(value).map_err(|error| bug(&error.to_string()))
}

/// One of the words of a type that is written as a word.
pub(crate) fn word<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> PyResult<T> {
    serde_json::from_value(Value::String(text.to_owned())).map_err(|error| {
        let reason = error.to_string().replace('`', "");
        bad_input(format!("{name}: {reason}"))
    })
}

/// A table: a dict of NumPy arrays, one for each column, which pandas and polars take as it is.
pub(crate) struct Columns<'py> {
    py: Python<'py>,
    columns: Bound<'py, PyDict>,
}

impl<'py> Columns<'py> {
    pub(crate) fn new(py: Python<'py>) -> Self {
        Self { py, columns: PyDict::new(py) }
    }

    /// A column of numbers or truths.
    pub(crate) fn numbers<T: numpy::Element>(self, name: &str, values: Vec<T>) -> PyResult<Self> {
        self.columns.set_item(name, numpy::PyArray1::from_vec(self.py, values))?;
        Ok(self)
    }

    /// A column of texts or other objects.
    pub(crate) fn objects<T: IntoPyObject<'py>>(self, name: &str, values: Vec<T>) -> PyResult<Self> {
        self.columns.set_item(name, objects(self.py, values)?)?;
        Ok(self)
    }

    pub(crate) fn done(self) -> Bound<'py, PyDict> {
        self.columns
    }
}

/// A NumPy array of objects.
pub(crate) fn objects<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    values: Vec<T>,
) -> PyResult<Bound<'py, numpy::PyArray1<Py<PyAny>>>> {
    let values = values.into_iter().map(|value| value.into_py_any(py)).collect::<PyResult<Vec<_>>>()?;
    Ok(numpy::PyArray1::from_vec(py, values))
}
