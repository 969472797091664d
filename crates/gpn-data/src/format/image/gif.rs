//! GIF, its first frame, by the crate `gif`.

use gif::{ColorOutput, DecodeOptions};

use super::{Decoded, MAX_PIXELS, OTHER_PIXELS, check_size};

/// Decodes the first frame of a file; what it leaves free of the screen is black.
pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, String> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::RGBA);
    let mut reader = options.read_info(bytes).map_err(|e| e.to_string())?;
    let (width, height) = (usize::from(reader.width()), usize::from(reader.height()));
    check_size(width as u64, height as u64, bytes.len(), OTHER_PIXELS, MAX_PIXELS)?;
    let frame = reader.next_frame_info().map_err(|e| e.to_string())?.ok_or("it has no frame")?;
    let [left, top, frame_width, frame_height] =
        [frame.left, frame.top, frame.width, frame.height].map(usize::from);
    check_size(frame_width as u64, frame_height as u64, bytes.len(), OTHER_PIXELS, MAX_PIXELS)?;
    let mut colours = vec![0; reader.buffer_size()];
    reader.read_into_buffer(&mut colours).map_err(|e| e.to_string())?;
    let (colours, _) = colours.as_chunks::<4>();
    let mut pixels = vec![0; width * height * 3];
    // What lies outside of the screen is cut off.
    let screen_rows = pixels.chunks_exact_mut(width * 3).skip(top);
    for (out, colours) in screen_rows.zip(colours.chunks_exact(frame_width)) {
        let (out, _) = out.as_chunks_mut::<3>();
        for (pixel, &[r, g, b, _]) in out.iter_mut().skip(left).zip(colours) {
            *pixel = [r, g, b];
        }
    }
    Ok(Decoded { width: width as u32, height: height as u32, pixels, exif: None })
}
