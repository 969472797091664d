//! Errors of the library as Python exceptions, one for each kind.

use gpn::taxonomy::TaxonomyError;
use gpn::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::PyType;

/// An error on its way to Python.
pub(crate) struct Fault(Error);

impl<E: Into<Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl From<Fault> for PyErr {
    fn from(Fault(error): Fault) -> Self {
        raised(class_of(&error), &error.to_string())
    }
}

/// The result of a call that Python makes.
pub(crate) type Outcome<T> = std::result::Result<T, Fault>;

fn class_of(error: &Error) -> &'static str {
    let is_class = matches!(
        error,
        Error::NoSuchClass { .. }
            | Error::NothingToChoose
            | Error::Taxonomy(TaxonomyError::UnknownClasses(_))
    );
    match error.kind() {
        ErrorKind::BadInput => "InputError",
        ErrorKind::NotFound if is_class => "ClassNotFoundError",
        ErrorKind::NotFound => "NotFoundError",
        ErrorKind::Conflict => "ConflictError",
        ErrorKind::Damaged => "DamagedFileError",
        ErrorKind::NoRoom => "NoRoomError",
        ErrorKind::Interrupted => "Stopped",
        ErrorKind::Bug => "BugError",
    }
}

/// An exception of `gpn._errors`.
pub(crate) fn raised(class: &str, message: &str) -> PyErr {
    Python::attach(|py| {
        let class = py
            .import("gpn._errors")
            .and_then(|module| module.getattr(class))
            .and_then(|class| Ok(class.cast_into::<PyType>()?));
        match class {
            Ok(class) => PyErr::from_type(class, (message.to_owned(),)),
            Err(error) => error,
        }
    })
}

/// What was given cannot be used.
pub(crate) fn bad_input(message: impl AsRef<str>) -> PyErr {
    raised("InputError", message.as_ref())
}

/// A fault of this program.
pub(crate) fn bug(message: &str) -> PyErr {
    raised("BugError", &format!("gpn has a fault: {message}; please report it"))
}
