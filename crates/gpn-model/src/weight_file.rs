//! The bytes of a weight file: safetensors, with a checksum of its own content in the metadata.
//!
//! The header is written here and not by the `safetensors` crate, which writes metadata of several keys in random order.

use std::fmt::Write as _;

use safetensors::{Dtype, SafeTensorError, SafeTensors};

use crate::tensors::NamedTensor;

/// Metadata key of the text that goes with the tensors.
pub(crate) const TEXT_KEY: &str = "gpn";
/// Metadata key of the checksum.
const CHECKSUM_KEY: &str = "gpn.blake3";
/// The longest header that readers accept.
const LONGEST_HEADER: usize = 100_000_000;

/// What a weight file holds.
pub(crate) struct Content<'a> {
    /// The text that goes with the tensors.
    pub(crate) text: Option<String>,
    /// Whether there is a checksum and whether it fits.
    pub(crate) checksum: Checksum,
    /// The tensors in the order of the file.
    pub(crate) tensors: Vec<Raw<'a>>,
}

/// What the checksum of a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// The content is what was written.
    Fits,
    /// The content has changed since.
    Differs,
    /// There is none.
    Absent,
}

/// A tensor as it lies in a file.
pub(crate) struct Raw<'a> {
    pub(crate) name: String,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: &'a [u8],
}

/// Takes a file apart; sizes are checked against the file before anything is taken from it.
pub(crate) fn parse(bytes: &[u8]) -> Result<Content<'_>, SafeTensorError> {
    let file = SafeTensors::deserialize(bytes)?;
    let (_, header) = SafeTensors::read_metadata(bytes)?;
    let mut infos: Vec<_> = header.tensors().into_iter().collect();
    // Tensors without values may begin at the same place.
    infos.sort_by(|(a, left), (b, right)| left.data_offsets.cmp(&right.data_offsets).then(a.cmp(b)));
    let tensors = infos
        .into_iter()
        .map(|(name, info)| {
            let bytes = file.tensor(&name)?.data();
            Ok(Raw { name, dtype: info.dtype, shape: info.shape.clone(), bytes })
        })
        .collect::<Result<Vec<Raw<'_>>, SafeTensorError>>()?;
    let mut entries: Vec<(&str, &str)> = Vec::new();
    for (key, value) in header.metadata().iter().flatten() {
        entries.push((key, value));
    }
    entries.sort_unstable();
    let stated = entries.iter().position(|entry| entry.0 == CHECKSUM_KEY).map(|at| entries.remove(at).1);
    let checksum = match stated {
        None => Checksum::Absent,
        Some(stated) if stated == checksum(&entries, &tensors) => Checksum::Fits,
        Some(_) => Checksum::Differs,
    };
    let text = entries.iter().find(|entry| entry.0 == TEXT_KEY).map(|entry| entry.1.to_owned());
    Ok(Content { text, checksum, tensors })
}

/// The bytes of a file; same tensors and text, same bytes.
pub(crate) fn serialise<'a>(
    tensors: impl IntoIterator<Item = NamedTensor<'a>>,
    text: Option<&str>,
) -> std::io::Result<Vec<u8>> {
    let mut tensors: Vec<NamedTensor<'_>> = tensors.into_iter().collect();
    tensors.sort_by_key(|tensor| tensor.name);
    let data: Vec<u8> =
        tensors.iter().flat_map(|tensor| tensor.values).flat_map(|value| value.to_le_bytes()).collect();
    let mut rest = &data[..];
    let raw: Vec<Raw<'_>> = tensors
        .iter()
        .map(|tensor| {
            let bytes;
            (bytes, rest) = rest.split_at(4 * tensor.values.len());
            Raw { name: tensor.name.into(), dtype: Dtype::F32, shape: tensor.shape.to_vec(), bytes }
        })
        .collect();
    let mut entries: Vec<(&str, &str)> = text.map(|text| (TEXT_KEY, text)).into_iter().collect();
    let checksum = checksum(&entries, &raw);
    entries.push((CHECKSUM_KEY, &checksum));

    let mut header = String::from("{\"__metadata__\":{");
    for (number, (key, value)) in entries.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        // invariant: writing to a string does not fail, here and below.
        write!(header, "{comma}{}:{}", serde_json::to_string(key)?, serde_json::to_string(value)?).unwrap();
    }
    header.push('}');
    let mut start = 0;
    for tensor in &raw {
        let end = start + tensor.bytes.len();
        let (name, shape) = (serde_json::to_string(&tensor.name)?, serde_json::to_string(&tensor.shape)?);
        let dtype = tensor.dtype;
        write!(
            header,
            ",{name}:{{\"dtype\":\"{dtype}\",\"shape\":{shape},\"data_offsets\":[{start},{end}]}}"
        )
        .unwrap();
        start = end;
    }
    header.push('}');
    // The values begin at a multiple of eight bytes.
    let padding = header.len().next_multiple_of(8) - header.len();
    header.extend(std::iter::repeat_n(' ', padding));
    if header.len() > LONGEST_HEADER {
        let reason = format!("its names and classes take {} bytes, more than {LONGEST_HEADER}", header.len());
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, reason));
    }
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(&data);
    Ok(bytes)
}

/// BLAKE3 of all metadata but the checksum, and of name, type, shape and values of all tensors.
fn checksum(entries: &[(&str, &str)], tensors: &[Raw<'_>]) -> String {
    let mut hasher = blake3::Hasher::new();
    // Lengths go before contents, so that no two files read alike.
    let number = |hasher: &mut blake3::Hasher, value: usize| {
        hasher.update(&(value as u64).to_le_bytes());
    };
    let field = |hasher: &mut blake3::Hasher, bytes: &[u8]| {
        number(hasher, bytes.len());
        hasher.update(bytes);
    };
    number(&mut hasher, entries.len());
    for (key, value) in entries {
        field(&mut hasher, key.as_bytes());
        field(&mut hasher, value.as_bytes());
    }
    number(&mut hasher, tensors.len());
    for tensor in tensors {
        field(&mut hasher, tensor.name.as_bytes());
        field(&mut hasher, tensor.dtype.to_string().as_bytes());
        number(&mut hasher, tensor.shape.len());
        tensor.shape.iter().for_each(|&length| number(&mut hasher, length));
        field(&mut hasher, tensor.bytes);
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_that_of_safetensors() {
        let tensor = |name, values| NamedTensor { name, shape: &[2], values };
        let bytes =
            serialise([tensor("b\"", &[3.0, 4.0]), tensor("a", &[1.0, 2.0])], Some("{\"way\":5}")).unwrap();
        let read = SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(read.tensor("a").unwrap().data(), [1_f32.to_le_bytes(), 2_f32.to_le_bytes()].concat());
        assert_eq!(read.tensor("b\"").unwrap().shape(), [2]);
        let content = parse(&bytes).unwrap();
        assert_eq!((content.checksum, content.text.as_deref()), (Checksum::Fits, Some("{\"way\":5}")));
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        assert!(header.is_multiple_of(8));
        // Files are compared by their bytes: the checksum must not change from one version to the next unnoticed.
        let text = String::from_utf8_lossy(&bytes[8..]);
        let stated = text.split("\"gpn.blake3\":\"").nth(1).unwrap();
        assert_eq!(&stated[..16], "38c4233efceaae45", "{stated}");
    }

    #[test]
    fn empty_tensors_are_read_in_one_order() {
        let empty = |name| NamedTensor { name, shape: &[0, 3], values: &[] };
        let bytes = serialise(["d", "a", "c", "b"].map(empty), None).unwrap();
        for _ in 0..20 {
            assert_eq!(parse(&bytes).unwrap().checksum, Checksum::Fits);
        }
    }
}
