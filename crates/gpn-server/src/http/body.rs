//! Bodies of requests: read within limits, and what is in them.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;

use super::problem::Problem;
use crate::app::App;

/// The unit in which memory for bodies is counted.
const UNIT: usize = 1024;

/// A body that has been read. Its memory counts as taken until this is dropped.
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    pub(crate) content_type: Option<String>,
    _memory: OwnedSemaphorePermit,
}

/// A part of a `multipart/form-data` body.
pub(crate) struct Part {
    pub(crate) name: String,
    /// The name of the file; `None` for a plain field.
    pub(crate) file: Option<String>,
    pub(crate) bytes: Bytes,
}

/// Reads a whole body within the limits of size, time and memory.
pub(crate) async fn receive(app: &App, headers: &HeaderMap, body: Body) -> Result<Received, Problem> {
    let limit = app.settings.limits.body;
    let too_large =
        || Problem::too_large(&format!("the body has more than {limit} bytes, which is the limit"));
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok())
        .and_then(|length| length.parse::<usize>().ok());
    if declared.is_some_and(|declared| declared > limit) {
        return Err(too_large());
    }
    // What does not say how long it is may become as long as it may.
    let wanted = declared.unwrap_or(limit).div_ceil(UNIT).max(1) as u32;
    let memory = std::sync::Arc::clone(&app.memory)
        .try_acquire_many_owned(wanted)
        .map_err(|_| Problem::busy("the memory for bodies of requests is taken"))?;
    let read = async {
        let mut body = body;
        let mut bytes = BytesMut::with_capacity(declared.unwrap_or(0));
        while let Some(frame) = body.frame().await {
            let frame = frame
                .map_err(|_| Problem::bad_input("the body ends early, or is not sent as its head tells"))?;
            if let Ok(data) = frame.into_data() {
                if bytes.len() + data.len() > limit {
                    return Err(too_large());
                }
                bytes.extend_from_slice(&data);
            }
        }
        Ok(bytes.freeze())
    };
    let bytes = tokio::time::timeout(app.settings.limits.body_time, read).await.map_err(|_| {
        Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the body did not arrive in time")
    })??;
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(Received { bytes, content_type, _memory: memory })
}

impl Received {
    /// The type without its parameters, in lower case.
    pub(crate) fn media_type(&self) -> String {
        let text = self.content_type.as_deref().unwrap_or_default();
        text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// The body as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        json(&self.bytes, "the body")
    }

    /// The body as JSON, where nothing at all stands for all defaults.
    pub(crate) fn json_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, Problem> {
        if self.bytes.is_empty() { Ok(T::default()) } else { self.json() }
    }

    /// The parts of a `multipart/form-data` body; `limit` is how many files there may be.
    pub(crate) async fn parts(&self, limit: usize) -> Result<Vec<Part>, Problem> {
        let broken =
            |error: multer::Error| Problem::bad_input(&format!("the multipart body is broken: {error}"));
        let boundary =
            multer::parse_boundary(self.content_type.as_deref().unwrap_or_default()).map_err(broken)?;
        let body = stream::iter([Ok::<_, std::convert::Infallible>(self.bytes.clone())]);
        let mut multipart = multer::Multipart::new(body, boundary);
        let mut parts = Vec::new();
        while let Some(field) = multipart.next_field().await.map_err(broken)? {
            // Fields are few; files are what is limited.
            if parts.len() >= limit + 64 {
                return Err(Problem::too_large(&format!(
                    "there are more than {limit} files, which is the limit"
                )));
            }
            let name = field.name().unwrap_or_default().to_owned();
            let file = field.file_name().map(str::to_owned);
            parts.push(Part { name, file, bytes: field.bytes().await.map_err(broken)? });
        }
        if parts.iter().filter(|part| part.file.is_some()).count() > limit {
            return Err(Problem::too_large(&format!(
                "there are more than {limit} files, which is the limit"
            )));
        }
        Ok(parts)
    }
}

/// Reads JSON, or says where it is wrong.
pub(crate) fn json<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| Problem::bad_input(&format!("{what}: {error}")))
}

/// Refuses an image with too many pixels, before it is decoded.
pub(crate) fn check_pixels(bytes: &[u8], name: &str, limit: u64) -> Result<(), Problem> {
    // What has no size here is no image, or one that the decoder judges.
    let Ok(size) = imagesize::blob_size(bytes) else { return Ok(()) };
    let pixels = (size.width as u64).saturating_mul(size.height as u64);
    if pixels > limit {
        return Err(Problem::too_large(&format!(
            "{name}: it has {} x {} pixels, more than the limit of {limit}",
            size.width, size.height
        )));
    }
    Ok(())
}

/// Numbers that are sent as they lie in memory: float32, little endian, rows of `dim`.
pub(crate) fn raw_rows(bytes: &[u8], dim: usize) -> Result<Vec<Vec<f32>>, Problem> {
    let row = dim * 4;
    if bytes.is_empty() || !bytes.len().is_multiple_of(row) {
        return Err(Problem::bad_input(&format!(
            "the body has {} bytes; rows of {dim} float32 have {row} each",
            bytes.len()
        )));
    }
    let (values, _) = bytes.as_chunks::<4>();
    let values: Vec<f32> = values.iter().map(|&value| f32::from_le_bytes(value)).collect();
    Ok(values.chunks_exact(dim).map(<[f32]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_rows_must_be_whole() {
        let bytes: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(raw_rows(&bytes, 2).unwrap(), [[1.0, 2.0], [3.0, 4.0]]);
        assert!(raw_rows(&bytes, 3).is_err());
        assert!(raw_rows(&bytes[..15], 2).is_err());
        assert!(raw_rows(&[], 2).is_err());
    }

    #[test]
    fn a_bomb_is_refused_by_its_head() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend(60_000_u32.to_be_bytes());
        png.extend(60_000_u32.to_be_bytes());
        png.extend([8, 6, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(check_pixels(&png, "bomb.png", 1000).unwrap_err().status, 413);
        check_pixels(&png, "bomb.png", u64::MAX).unwrap();
        check_pixels(b"no image", "notes", 1).unwrap();
    }
}
