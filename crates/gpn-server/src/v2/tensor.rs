//! Tensors of the protocol: as JSON, or as bytes behind the JSON.

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::http::problem::Problem;

/// An input as its JSON describes it.
#[derive(Deserialize)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) datatype: String,
    #[serde(default)]
    pub(crate) parameters: Map<String, Value>,
    pub(crate) data: Option<Value>,
}

/// The values of an input.
#[derive(Debug, PartialEq)]
pub(crate) enum Values {
    /// Float32.
    Fp32(Vec<f32>),
    /// Bytes as numbers.
    Uint8(Vec<u8>),
    /// Texts or files.
    Bytes(Vec<Vec<u8>>),
}

impl Input {
    fn wrong(&self, reason: &str) -> Problem {
        Problem::bad_input(&format!("input `{}`: {reason}", self.name.chars().take(64).collect::<String>()))
    }

    /// How many values the shape tells.
    fn count(&self) -> Result<usize, Problem> {
        let count = self.shape.iter().try_fold(1_u64, |count, &side| count.checked_mul(side));
        count
            .and_then(|count| usize::try_from(count).ok())
            .filter(|_| !self.shape.is_empty())
            .ok_or_else(|| self.wrong("its shape cannot be"))
    }

    /// Bytes that stand behind the JSON for this input.
    pub(crate) fn binary_size(&self) -> Result<Option<usize>, Problem> {
        match self.parameters.get("binary_data_size") {
            None => Ok(None),
            Some(size) => {
                let size = size.as_u64().and_then(|size| usize::try_from(size).ok());
                size.map(Some).ok_or_else(|| self.wrong("`binary_data_size` is a number of bytes"))
            }
        }
    }

    /// The values: those in the JSON, or these bytes.
    pub(crate) fn values(&self, binary: Option<&[u8]>) -> Result<Values, Problem> {
        let count = self.count()?;
        let (values, found) = match (self.datatype.as_str(), binary) {
            ("FP32", Some(bytes)) => {
                let (chunks, rest) = bytes.as_chunks::<4>();
                if !rest.is_empty() {
                    return Err(self.wrong("its bytes are no whole number of float32"));
                }
                let values: Vec<f32> = chunks.iter().map(|&chunk| f32::from_le_bytes(chunk)).collect();
                let found = values.len();
                (Values::Fp32(values), found)
            }
            ("UINT8", Some(bytes)) => (Values::Uint8(bytes.to_vec()), bytes.len()),
            ("BYTES", Some(bytes)) => {
                let values = self.texts(bytes)?;
                let found = values.len();
                (Values::Bytes(values), found)
            }
            ("FP32" | "UINT8" | "BYTES", None) => {
                let data = self.data.as_ref().ok_or_else(|| self.wrong("it has no `data`"))?;
                let mut flat = Vec::new();
                flatten(data, &mut flat);
                let found = flat.len();
                (self.parsed(&flat)?, found)
            }
            (other, _) => {
                let other: String = other.chars().take(16).collect();
                return Err(self.wrong(&format!("its datatype is {other}; it can be FP32, UINT8 or BYTES")));
            }
        };
        if found != count {
            return Err(self.wrong(&format!("its shape tells {count} values, and there are {found}")));
        }
        Ok(values)
    }

    fn parsed(&self, flat: &[&Value]) -> Result<Values, Problem> {
        let number = || self.wrong("a value does not fit the datatype");
        Ok(match self.datatype.as_str() {
            "FP32" => {
                let value = |value: &&Value| value.as_f64().map(|value| value as f32).ok_or_else(number);
                Values::Fp32(flat.iter().map(value).collect::<Result<_, _>>()?)
            }
            "UINT8" => {
                let value = |value: &&Value| {
                    value.as_u64().and_then(|value| u8::try_from(value).ok()).ok_or_else(number)
                };
                Values::Uint8(flat.iter().map(value).collect::<Result<_, _>>()?)
            }
            _ => {
                // Files are no text: in JSON they are base64.
                let decode = |value: &&Value| {
                    let text = value.as_str().ok_or_else(number)?;
                    let decoded = base64::engine::general_purpose::STANDARD.decode(text);
                    decoded.map_err(|_| self.wrong("files in JSON are written in base64"))
                };
                Values::Bytes(flat.iter().map(decode).collect::<Result<_, _>>()?)
            }
        })
    }

    /// Texts of the binary form: each has its length before it.
    fn texts(&self, mut bytes: &[u8]) -> Result<Vec<Vec<u8>>, Problem> {
        let mut texts = Vec::new();
        while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*length) as usize;
            let (text, rest) =
                rest.split_at_checked(length).ok_or_else(|| self.wrong("an element ends beyond the data"))?;
            texts.push(text.to_vec());
            bytes = rest;
        }
        if bytes.is_empty() { Ok(texts) } else { Err(self.wrong("an element ends beyond the data")) }
    }
}

/// Nested lists become one.
fn flatten<'a>(value: &'a Value, flat: &mut Vec<&'a Value>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| flatten(value, flat)),
        value => flat.push(value),
    }
}

/// An output.
pub(crate) struct Output {
    pub(crate) name: &'static str,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: OutputValues,
}

/// The values of an output.
pub(crate) enum OutputValues {
    Fp32(Vec<f32>),
    Texts(Vec<String>),
}

/// An output as its JSON describes it.
#[derive(Serialize)]
pub(crate) struct Described {
    name: &'static str,
    datatype: &'static str,
    shape: Vec<usize>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    parameters: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

impl Output {
    /// Describes the output; `binary` receives its values, where they are sent as bytes.
    pub(crate) fn describe(self, binary: Option<&mut Vec<u8>>) -> Described {
        let datatype = match self.values {
            OutputValues::Fp32(_) => "FP32",
            OutputValues::Texts(_) => "BYTES",
        };
        let mut described =
            Described { name: self.name, datatype, shape: self.shape, parameters: Map::new(), data: None };
        match (self.values, binary) {
            (OutputValues::Fp32(values), None) => described.data = Some(values.into()),
            (OutputValues::Texts(values), None) => described.data = Some(values.into()),
            (values, Some(binary)) => {
                let before = binary.len();
                match values {
                    OutputValues::Fp32(values) => {
                        binary.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                    }
                    OutputValues::Texts(values) => {
                        for text in values {
                            binary.extend((text.len() as u32).to_le_bytes());
                            binary.extend(text.as_bytes());
                        }
                    }
                }
                described.parameters.insert("binary_data_size".into(), (binary.len() - before).into());
            }
        }
        described
    }
}

/// Pixels `[height, width, 3]` as an uncompressed image file (BMP), which every model of images reads.
pub(crate) fn image_file(width: usize, height: usize, pixels: &[u8]) -> Vec<u8> {
    let row = (3 * width).next_multiple_of(4);
    let mut file = Vec::with_capacity(54 + row * height);
    file.extend(b"BM");
    let size = (54 + row * height) as u32;
    for value in [size, 0, 54, 40, width as u32, height as u32, 1 | 24 << 16, 0, 0, 0, 0, 0, 0] {
        file.extend(value.to_le_bytes());
    }
    for line in pixels.chunks_exact(3 * width).rev() {
        let start = file.len();
        file.extend(line.chunks_exact(3).flat_map(|rgb| [rgb[2], rgb[1], rgb[0]]));
        file.resize(start + row, 0);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(datatype: &str, shape: &[u64], data: Value) -> Input {
        Input {
            name: "x".into(),
            shape: shape.to_vec(),
            datatype: datatype.into(),
            parameters: Map::new(),
            data: Some(data),
        }
    }

    #[test]
    fn values_come_nested_flat_or_binary() {
        let nested = input("FP32", &[2, 2], serde_json::json!([[1, 2], [3, 4.5]]));
        let expected = Values::Fp32(vec![1.0, 2.0, 3.0, 4.5]);
        assert_eq!(nested.values(None).unwrap(), expected);
        let bytes: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.5].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(nested.values(Some(&bytes)).unwrap(), expected);
        assert!(nested.values(Some(&bytes[1..])).is_err());
        let files = input("BYTES", &[2], serde_json::json!(["YQ==", "YmM="]));
        let expected = Values::Bytes(vec![b"a".to_vec(), b"bc".to_vec()]);
        assert_eq!(files.values(None).unwrap(), expected);
        assert_eq!(files.values(Some(b"\x01\0\0\0a\x02\0\0\0bc")).unwrap(), expected);
        assert!(files.values(Some(b"\x01\0\0\0a\xff\xff\xff\xffbc")).is_err());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (datatype, shape, data) in [
            ("FP32", &[3][..], serde_json::json!([1, 2])),
            ("FP32", &[2], serde_json::json!([1, "a"])),
            ("UINT8", &[1], serde_json::json!([256])),
            ("BYTES", &[1], serde_json::json!(["no base64"])),
            ("INT64", &[1], serde_json::json!([1])),
            ("FP32", &[u64::MAX, 2], serde_json::json!([1])),
            ("FP32", &[], serde_json::json!(1)),
        ] {
            assert_eq!(input(datatype, shape, data).values(None).unwrap_err().status, 400);
        }
    }

    #[test]
    fn pixels_become_a_file_that_decodes() {
        let pixels: Vec<u8> = (0..3 * 5 * 2).collect();
        let decoded = gpn::data::decode(&image_file(5, 2, &pixels), "pixels").unwrap();
        assert_eq!((decoded.width(), decoded.height(), decoded.pixels()), (5, 2, &pixels[..]));
    }
}
