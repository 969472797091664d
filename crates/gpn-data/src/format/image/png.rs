//! PNG, by the crate `png`.

use std::io::Cursor;

use png::{BitDepth, ColorType, Decoder, Limits, Transformations};

use super::{Decoded, MAX_ALLOCATION, OTHER_PIXELS, check_size};

/// Decodes a file; of an animation, the picture that viewers without animation show.
pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, String> {
    let limits = Limits { bytes: MAX_ALLOCATION as usize };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    // Palettes become colours, fewer bits than eight become eight; sixteen are rounded below.
    decoder.set_transformations(Transformations::EXPAND);
    let info = decoder.read_header_info().map_err(|e| e.to_string())?;
    let (width, height) = (info.width, info.height);
    check_size(u64::from(width), u64::from(height), bytes.len(), OTHER_PIXELS)?;
    let mut reader = decoder.read_info().map_err(|e| e.to_string())?;
    let size = reader.output_buffer_size().filter(|&size| size as u64 <= MAX_ALLOCATION);
    let size = size.ok_or_else(|| format!("its pixels take more than {MAX_ALLOCATION} bytes"))?;
    let mut samples = vec![0; size];
    reader.next_frame(&mut samples).map_err(|e| e.to_string())?;
    let (colour, depth) = reader.output_color_type();
    if depth == BitDepth::Sixteen {
        samples = samples.as_chunks().0.iter().map(|&pair| rounded(u16::from_be_bytes(pair))).collect();
    }
    let pixels = match colour {
        ColorType::Rgb => samples,
        ColorType::Rgba => samples.as_chunks().0.iter().flat_map(|&[r, g, b, _]| [r, g, b]).collect(),
        ColorType::Grayscale => samples.iter().flat_map(|&grey| [grey; 3]).collect(),
        ColorType::GrayscaleAlpha => samples.as_chunks().0.iter().flat_map(|&[grey, _]| [grey; 3]).collect(),
        ColorType::Indexed => return Err("its palette is missing".into()),
    };
    let exif = reader.info().exif_metadata.as_ref().map(|exif| exif.to_vec());
    Ok(Decoded { width, height, pixels, exif })
}

/// The nearest of the 256 values that 8 bits tell apart.
fn rounded(sample: u16) -> u8 {
    ((u32::from(sample) + 128) / 257) as u8
}
