//! Samples as Python people have them: arrays, tensors, files, bytes, pictures of Pillow.

use std::path::PathBuf;

use gpn::{InputShape, Sample};
use numpy::{PyArrayDyn, PyArrayMethods as _, PyReadonlyArray2, PyUntypedArrayMethods as _};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors::{Fault, bad_input};

/// A table of 32-bit numbers in rows, without a copy where it is one already.
pub(crate) fn rows<'py>(values: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray2<'py, f32>> {
    if let Ok(rows) = values.extract::<PyReadonlyArray2<'py, f32>>()
        && rows.is_c_contiguous()
    {
        return Ok(rows);
    }
    let py = values.py();
    let values = detached(values)?;
    let array =
        py.import("numpy")?.call_method1("ascontiguousarray", (values, numpy::dtype::<f32>(py))).map_err(
            |error| bad_input(format!("the embeddings cannot be taken as numbers: {}", error.value(py))),
        )?;
    array.extract().map_err(|_| {
        let shape = array.getattr("shape").map(|shape| shape.to_string()).unwrap_or_default();
        bad_input(format!("embeddings must be of shape (samples, numbers), not {shape}"))
    })
}

/// A tensor of PyTorch that NumPy can take: off the graph and on the CPU.
fn detached<'py>(values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if values.hasattr("detach")? && values.hasattr("cpu")? {
        return values.call_method0("detach")?.call_method0("cpu")?.call_method0("float");
    }
    Ok(values.clone())
}

/// Samples for a model that takes `input`. `what` is an array or tensor of embeddings (one row or many), of images
/// `[N, H, W, 3]` (8 bits), a path or bytes of an image file, a picture of Pillow, or a list of such.
pub(crate) fn samples(what: &Bound<'_, PyAny>, input: InputShape) -> PyResult<Vec<Sample>> {
    let mut found = Vec::new();
    add(what, input, &mut found)?;
    if found.is_empty() {
        return Err(bad_input("there are no samples"));
    }
    Ok(found)
}

fn add(what: &Bound<'_, PyAny>, input: InputShape, found: &mut Vec<Sample>) -> PyResult<()> {
    if what.is_instance_of::<PyString>() || what.hasattr("__fspath__")? {
        let path: PathBuf = what.extract()?;
        found.extend(Sample::at(&path, input).map_err(Fault::from)?);
    } else if let Ok(bytes) = what.cast::<PyBytes>() {
        found.push(Sample::image(format!("image {}", found.len()), bytes.as_bytes().to_vec()));
    } else if let Ok(pixels) = what.cast::<PyArrayDyn<u8>>() {
        for file in files_of(pixels)? {
            found.push(Sample::image(format!("image {}", found.len()), file));
        }
    } else if what.hasattr("save")? && what.hasattr("mode")? {
        found.push(Sample::image(format!("image {}", found.len()), file_of(what)?));
    } else if what.hasattr("shape")? || holds_numbers(what)? {
        embeddings(what, found)?;
    } else {
        let wrong = |_| bad_input("samples are arrays, files, bytes or pictures, or a list of such");
        for sample in what.try_iter().map_err(wrong)? {
            add(&sample?, input, found)?;
        }
    }
    Ok(())
}

/// Whether it is a list of numbers, or a list of such lists.
fn holds_numbers(what: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Ok(mut items) = what.try_iter() else { return Ok(false) };
    let Some(first) = items.next() else { return Ok(false) };
    let first = first?;
    if first.extract::<f64>().is_ok() {
        return Ok(true);
    }
    if first.is_instance_of::<PyString>() || first.is_instance_of::<PyBytes>() || first.hasattr("shape")? {
        return Ok(false);
    }
    match first.try_iter() {
        Ok(mut inner) => {
            Ok(inner.next().is_some_and(|item| item.is_ok_and(|item| item.extract::<f64>().is_ok())))
        }
        Err(_) => Ok(false),
    }
}

fn embeddings(what: &Bound<'_, PyAny>, found: &mut Vec<Sample>) -> PyResult<()> {
    let numpy = what.py().import("numpy")?;
    let table = numpy.call_method1("atleast_2d", (detached(what)?,)).map_err(|error| {
        bad_input(format!("the embeddings cannot be taken as numbers: {}", error.value(what.py())))
    })?;
    let table = rows(&table)?;
    let width = table.shape()[1];
    let values = table.as_slice().map_err(|error| bad_input(error.to_string()))?;
    let first = found.len();
    let row =
        |(at, values): (usize, &[f32])| Sample::embedding(format!("row {}", first + at), values.to_vec());
    found.extend(values.chunks_exact(width.max(1)).enumerate().map(row));
    Ok(())
}

/// Each image of an array as a PNG file.
fn files_of(pixels: &Bound<'_, PyArrayDyn<u8>>) -> PyResult<Vec<Vec<u8>>> {
    let shape = pixels.shape().to_vec();
    let ([height, width, 3] | [_, height, width, 3]) = shape[..] else {
        return Err(bad_input(format!("images must be of shape (N, H, W, 3) or (H, W, 3), not {shape:?}")));
    };
    let values = pixels.readonly();
    let contiguous = values.as_array().as_standard_layout().into_owned();
    // invariant: an array in standard layout is a slice.
    let images = contiguous.as_slice().unwrap().chunks_exact((height * width * 3).max(1));
    images.map(|image| png(image, width, height)).collect()
}

fn png(pixels: &[u8], width: usize, height: usize) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::Fastest);
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(pixels))
        .map_err(|error| bad_input(format!("images of {width} x {height} pixels cannot be used: {error}")))?;
    Ok(bytes)
}

/// A picture of Pillow as a PNG file.
fn file_of(picture: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let buffer = picture.py().import("io")?.call_method0("BytesIO")?;
    picture.call_method1("convert", ("RGB",))?.call_method1("save", (&buffer, "PNG"))?;
    Ok(buffer.call_method0("getvalue")?.cast_into::<PyBytes>()?.as_bytes().to_vec())
}

/// A photo: a file, or the bytes of one.
pub(crate) struct Picture {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) bytes: Option<Vec<u8>>,
}

/// Photos: paths, bytes, arrays, pictures of Pillow, or a list of such.
pub(crate) fn pictures(what: &Bound<'_, PyAny>) -> PyResult<Vec<Picture>> {
    if what.is_instance_of::<PyString>() || what.hasattr("__fspath__")? {
        let path: PathBuf = what.extract()?;
        return Ok(vec![Picture { name: path.display().to_string(), path, bytes: None }]);
    }
    let encoded = |bytes: Vec<u8>, at: usize| Picture {
        name: format!("image {at}"),
        path: PathBuf::new(),
        bytes: Some(bytes),
    };
    if let Ok(bytes) = what.cast::<PyBytes>() {
        return Ok(vec![encoded(bytes.as_bytes().to_vec(), 0)]);
    }
    if let Ok(pixels) = what.cast::<PyArrayDyn<u8>>() {
        return Ok(files_of(pixels)?.into_iter().enumerate().map(|(at, bytes)| encoded(bytes, at)).collect());
    }
    if what.hasattr("save")? && what.hasattr("mode")? {
        return Ok(vec![encoded(file_of(what)?, 0)]);
    }
    let mut found = Vec::new();
    for one in what
        .try_iter()
        .map_err(|_| bad_input("photos are files, bytes, arrays or pictures, or a list of such"))?
    {
        found.extend(pictures(&one?)?);
    }
    Ok(found)
}
