//! PNG, by the crate `png`.

use std::io::{BufRead, Cursor, Seek};

use png::{BitDepth, ColorType, Decoder, Limits, Reader, Transformations};

use super::{Decoded, MAX_ALLOCATION, MAX_PIXELS, MAX_REDUCED_PIXELS, OTHER_PIXELS, check_size, reduction};

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
    // The rows of an interlaced file do not come one after the other.
    let most = if info.interlaced { MAX_PIXELS } else { MAX_REDUCED_PIXELS };
    check_size(u64::from(width), u64::from(height), bytes.len(), OTHER_PIXELS, most)?;
    let mut reader = decoder.read_info().map_err(|e| e.to_string())?;
    let by = reduction(u64::from(width), u64::from(height));
    if by > 1 {
        let pixels = reduced(&mut reader, by)?;
        let exif = reader.info().exif_metadata.as_ref().map(|exif| exif.to_vec());
        return Ok(Decoded {
            width: width.div_ceil(by as u32),
            height: height.div_ceil(by as u32),
            pixels,
            exif,
        });
    }
    let size = reader.output_buffer_size().filter(|&size| size as u64 <= MAX_ALLOCATION);
    let size = size.ok_or_else(|| format!("its pixels take more than {MAX_ALLOCATION} bytes"))?;
    let mut samples = vec![0; size];
    reader.next_frame(&mut samples).map_err(|e| e.to_string())?;
    let pixels = rgb(samples, reader.output_color_type())?;
    let exif = reader.info().exif_metadata.as_ref().map(|exif| exif.to_vec());
    Ok(Decoded { width, height, pixels, exif })
}

/// RGB pixels of samples, row by row.
fn rgb(mut samples: Vec<u8>, (colour, depth): (ColorType, BitDepth)) -> Result<Vec<u8>, String> {
    if depth == BitDepth::Sixteen {
        samples = samples.as_chunks().0.iter().map(|&pair| rounded(u16::from_be_bytes(pair))).collect();
    }
    Ok(match colour {
        ColorType::Rgb => samples,
        ColorType::Rgba => samples.as_chunks().0.iter().flat_map(|&[r, g, b, _]| [r, g, b]).collect(),
        ColorType::Grayscale => samples.iter().flat_map(|&grey| [grey; 3]).collect(),
        ColorType::GrayscaleAlpha => samples.as_chunks().0.iter().flat_map(|&[grey, _]| [grey; 3]).collect(),
        ColorType::Indexed => return Err("its palette is missing".into()),
    })
}

/// The mean of each square of `by` pixels, read row by row.
fn reduced<R: BufRead + Seek>(reader: &mut Reader<R>, by: usize) -> Result<Vec<u8>, String> {
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    let kind = reader.output_color_type();
    let out_width = width.div_ceil(by);
    let mut pixels = Vec::with_capacity(out_width * height.div_ceil(by) * 3);
    let mut sums = vec![[0_u32; 3]; out_width];
    for y in 0..height {
        let row = reader.next_row().map_err(|e| e.to_string())?.ok_or("its rows end early")?;
        let row = rgb(row.data().to_vec(), kind)?;
        for (sum, square) in sums.iter_mut().zip(row.chunks(by * 3)) {
            for pixel in square.as_chunks::<3>().0 {
                for (sum, &value) in sum.iter_mut().zip(pixel) {
                    *sum += u32::from(value);
                }
            }
        }
        let rows = y % by + 1;
        if rows == by || y + 1 == height {
            for (column, sum) in sums.iter_mut().enumerate() {
                let count = (rows * by.min(width - column * by)) as u32;
                pixels.extend(sum.map(|sum| ((sum + count / 2) / count) as u8));
                *sum = [0; 3];
            }
        }
    }
    Ok(pixels)
}

/// The nearest of the 256 values that 8 bits tell apart.
fn rounded(sample: u16) -> u8 {
    ((u32::from(sample) + 128) / 257) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reduced_picture_has_the_means_of_its_squares() {
        // 5 x 3 pixels, of which the last column and row fill no square.
        let grey: Vec<u8> = vec![0, 4, 10, 20, 100, 8, 12, 30, 40, 50, 1, 3, 5, 7, 9];
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, 5, 3);
        encoder.set_color(ColorType::Grayscale);
        encoder.write_header().unwrap().write_image_data(&grey).unwrap();
        let mut reader = Decoder::new(Cursor::new(&bytes)).read_info().unwrap();
        let pixels = reduced(&mut reader, 2).unwrap();
        let means: Vec<u8> = pixels.chunks_exact(3).map(|pixel| pixel[1]).collect();
        assert_eq!(means, [6, 25, 75, 2, 6, 9]);
    }
}
