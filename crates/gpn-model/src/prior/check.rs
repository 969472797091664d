//! What comes from outside is looked at once.

use crate::error::{ModelError, Result};

/// The number of rows of a table `[n, dim]`.
pub(super) fn rows_of(what: &'static str, values: &[f32], dim: usize) -> Result<usize> {
    if dim == 0 || !values.len().is_multiple_of(dim) {
        return Err(ModelError::WrongLength {
            what,
            expected: format!("whole rows of {dim}"),
            got: values.len(),
        });
    }
    Ok(values.len() / dim)
}

/// One NaN would spread over all classes.
pub(super) fn finite(what: &'static str, values: &[f32]) -> Result<()> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(element) => Err(ModelError::NotANumber { what, element, value: values[element] }),
        None => Ok(()),
    }
}
