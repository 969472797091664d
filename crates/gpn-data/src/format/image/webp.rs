//! WebP, by the crate `image-webp`.

use std::io::Cursor;

use image_webp::WebPDecoder;

use super::{Decoded, MAX_ALLOCATION, MAX_PIXELS, OTHER_PIXELS, check_size};

/// Decodes a file; of an animation, the first frame.
pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, String> {
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(|e| e.to_string())?;
    decoder.set_memory_limit(MAX_ALLOCATION as usize);
    let (width, height) = decoder.dimensions();
    check_size(u64::from(width), u64::from(height), bytes.len(), OTHER_PIXELS, MAX_PIXELS)?;
    let exif = decoder.exif_metadata().unwrap_or(None);
    let mut pixels = vec![0; decoder.output_buffer_size().ok_or("its size is absurd")?];
    decoder.read_image(&mut pixels).map_err(|e| e.to_string())?;
    if decoder.has_alpha() {
        pixels = pixels.as_chunks().0.iter().flat_map(|&[r, g, b, _]| [r, g, b]).collect();
    }
    Ok(Decoded { width, height, pixels, exif })
}
