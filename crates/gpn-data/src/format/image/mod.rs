//! Encoded images to RGB pixels.
//!
//! JPEG is decoded by [`jpeg`], pixel by pixel as libjpeg does it; what that declines (rare kinds, damage) goes to
//! `zune-jpeg`. PNG, GIF (its first frame) and WebP have a crate each, BMP is read by [`bmp`].
//! Whatever the file holds (grey, palette, CMYK, YCCK, 16 bits), RGB with 8 bits comes out. Transparency is
//! dropped, not blended: the stored colours count, as with Pillow's `convert("RGB")`. The orientation noted
//! in Exif data is applied. JPEG and PNG of more than [`MAX_PIXELS`] are reduced while they are decoded, in memory
//! that does not grow with them; all others keep their pixels. What is of another format is named ([`ForeignFormat`]).

mod bmp;
mod foreign;
mod gif;
mod orientation;
mod png;
mod webp;

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

pub use self::foreign::{ForeignFormat, HEAD_BYTES};
use self::orientation::Orientation;
use super::jpeg;
use crate::DataError;
use crate::contain::contain;

/// Images with more pixels are reduced (JPEG and PNG) or refused before memory is taken.
pub const MAX_PIXELS: u64 = 100_000_000;
/// Images with more pixels are refused in any case.
pub const MAX_REDUCED_PIXELS: u64 = 1_000_000_000;
/// Most pixels of an image that was reduced, where 1/8 of its sides is enough for that.
const REDUCED_TO: u64 = 36_000_000;
/// Most bytes a decoder may take: 100 megapixels of four channels, and scratch space.
const MAX_ALLOCATION: u64 = 512 << 20;
/// Most pixels that a file of some bytes can hold, as (for any file, for each byte). A byte of JPEG holds 512
/// at most (one bit per 8x8 block); a byte of PNG holds 8256 (deflate at its best, one bit per pixel).
const JPEG_PIXELS: (u64, u64) = (1 << 20, 512);
const OTHER_PIXELS: (u64, u64) = (1 << 22, 8256);

/// An image of 8-bit RGB pixels, row by row: `pixels[(y * width + x) * 3 + channel]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RgbImage {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl RgbImage {
    /// Wraps pixels of shape `[height, width, 3]`; `None` if their number is another.
    pub fn new(width: u32, height: u32, pixels: Vec<u8>) -> Option<Self> {
        let expected = u64::from(width) * u64::from(height) * 3;
        (pixels.len() as u64 == expected).then_some(Self { width, height, pixels })
    }

    /// Width in pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The pixels, shape `[height, width, 3]`.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The pixels by value, shape `[height, width, 3]`.
    pub fn into_pixels(self) -> Vec<u8> {
        self.pixels
    }
}

/// Whether a file name has the extension of a format that [`decode`] reads.
pub fn is_image_name(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["jpg", "jpeg", "png", "webp", "bmp", "gif"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Whether a file that begins with `head` is of a format that [`decode`] reads.
pub fn is_image_content(head: &[u8]) -> bool {
    head.starts_with(&[0xff, 0xd8, 0xff]) || Other::of(head).is_some()
}

/// Decodes an image; `name` is used in messages only, the content decides the format.
///
/// An image of more than [`MAX_PIXELS`] comes at a half, a quarter or an eighth of its width and height.
///
/// ```
/// let error = gpn_data::decode(b"no image", "notes.jpg").unwrap_err();
/// assert!(error.to_string().starts_with("notes.jpg: broken image"));
/// ```
pub fn decode(bytes: &[u8], name: &str) -> Result<RgbImage, DataError> {
    let broken = |reason: String| DataError::BrokenImage { file: name.to_owned(), reason };
    if bytes.starts_with(&[0xff, 0xd8]) {
        return decode_jpeg(bytes).map_err(broken);
    }
    match (Other::of(bytes), ForeignFormat::of(bytes, name)) {
        (Some(format), _) => decode_other(bytes, format).map_err(broken),
        (None, Some(format)) => Err(DataError::ForeignImage { file: name.to_owned(), format }),
        (None, None) if bytes.is_empty() => Err(broken("the file is empty".into())),
        (None, None) => Err(broken("its content is none of JPEG, PNG, WebP, BMP, GIF".into())),
    }
}

/// Refuses sizes that are absurd, in themselves or for a file of `bytes` bytes, or beyond `most` pixels.
fn check_size(
    width: u64,
    height: u64,
    bytes: usize,
    (any_file, each_byte): (u64, u64),
    most: u64,
) -> Result<(), String> {
    let pixels = width.saturating_mul(height);
    if pixels == 0 {
        Err(format!("its size is {width}x{height}"))
    } else if pixels > MAX_REDUCED_PIXELS {
        let most = MAX_REDUCED_PIXELS;
        Err(format!("its size is {width}x{height}; at most {most} pixels are accepted: save it smaller"))
    } else if pixels > any_file + each_byte * bytes as u64 {
        Err(format!("its size is {width}x{height}, which {bytes} bytes cannot hold"))
    } else if pixels > most {
        Err(format!(
            "its size is {width}x{height}; of this kind of image at most {most} pixels are accepted: \
             save it smaller, or as a plain JPEG or PNG"
        ))
    } else {
        Ok(())
    }
}

/// By how much the sides of an image are divided while it is decoded: 1 up to [`MAX_PIXELS`], then 2, 4 or 8.
fn reduction(width: u64, height: u64) -> usize {
    if width * height <= MAX_PIXELS {
        return 1;
    }
    let fits = |by: &u64| width.div_ceil(*by) * height.div_ceil(*by) <= REDUCED_TO;
    [2, 4].into_iter().find(fits).unwrap_or(8) as usize
}

/// Runs a decoder of another crate. Some panic on damaged files.
fn contained<T>(decode: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    contain(decode).unwrap_or_else(|| Err("its data are damaged".into()))
}

fn decode_jpeg(bytes: &[u8]) -> Result<RgbImage, String> {
    let accept = |width, height| {
        let (width, height) = (width as u64, height as u64);
        let possible = check_size(width, height, bytes.len(), JPEG_PIXELS, MAX_REDUCED_PIXELS).is_ok();
        (possible && has_end_marker(bytes)).then(|| reduction(width, height))
    };
    match jpeg::decode(bytes, accept) {
        Some(found) => upright(found.width as u32, found.height as u32, found.pixels, found.exif),
        None => contained(|| decode_other_jpeg(bytes)),
    }
}

/// What a decoder of one format makes of a file.
struct Decoded {
    width: u32,
    height: u32,
    /// RGB, `[height, width, 3]`, as they stand in the file.
    pixels: Vec<u8>,
    /// The Exif data of the file.
    exif: Option<Vec<u8>>,
}

/// Turns decoded pixels as Exif data tells.
fn upright(width: u32, height: u32, pixels: Vec<u8>, exif: Option<&[u8]>) -> Result<RgbImage, String> {
    let image = RgbImage::new(width, height, pixels).ok_or("the decoder gave another size")?;
    Ok(match exif.and_then(Orientation::of_exif) {
        None => image,
        Some(orientation) => {
            let (width, height, pixels) = orientation.apply(width, height, image.pixels);
            RgbImage { width, height, pixels }
        }
    })
}

fn decode_other_jpeg(bytes: &[u8]) -> Result<RgbImage, String> {
    // The decoder fills what is missing with grey; a picture that is half grey is not the user's picture.
    if !has_end_marker(bytes) {
        return Err("the file is cut short (no end-of-image marker)".into());
    }
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|e| e.to_string())?;
    let (width, height) = decoder.dimensions().ok_or("its header has no size")?;
    check_size(width as u64, height as u64, bytes.len(), JPEG_PIXELS, MAX_PIXELS)?;
    let pixels = decoder.decode().map_err(|e| e.to_string())?;
    upright(width as u32, height as u32, pixels, decoder.exif().map(Vec::as_slice))
}

/// Whether an end-of-image marker follows the start of the first scan. Thumbnails inside header segments
/// have end markers of their own, so the segments are stepped over first.
fn has_end_marker(bytes: &[u8]) -> bool {
    let mut at = 2;
    while let Some(&[0xff, marker, high, low]) = bytes.get(at..at + 4) {
        match marker {
            0xff => at += 1,
            0xda => break,
            _ => at += 2 + usize::from(u16::from_be_bytes([high, low])),
        }
    }
    bytes.get(at..).is_some_and(|scans| scans.windows(2).rev().any(|pair| pair == [0xff, 0xd9]))
}

/// The formats besides JPEG.
#[derive(Clone, Copy)]
enum Other {
    Png,
    Gif,
    Webp,
    Bmp,
}

impl Other {
    /// The format of a file that begins with `head`.
    fn of(head: &[u8]) -> Option<Self> {
        Some(match head {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Self::Png,
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Self::Gif,
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Self::Webp,
            [b'B', b'M', ..] => Self::Bmp,
            _ => return None,
        })
    }
}

fn decode_other(bytes: &[u8], format: Other) -> Result<RgbImage, String> {
    let Decoded { width, height, pixels, exif } = match format {
        Other::Png => contained(|| png::decode(bytes))?,
        Other::Gif => contained(|| gif::decode(bytes))?,
        Other::Webp => contained(|| webp::decode(bytes))?,
        Other::Bmp => bmp::decode(bytes)?,
    };
    upright(width, height, pixels, exif.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> Vec<u8> {
        let path = format!("{}/tests/fixtures/images/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    #[test]
    fn every_format_and_mode_becomes_upright_rgb() {
        let list = String::from_utf8(fixture("images.csv")).unwrap();
        for line in list.lines().skip(1) {
            let (name, numbers) = line.split_once(',').unwrap();
            let expected: Vec<u32> = numbers.split(',').map(|number| number.parse().unwrap()).collect();
            let image = decode(&fixture(name), name).unwrap();
            assert_eq!([image.width(), image.height()], expected[..2], "{name}");
            let at = (image.height() / 4 * image.width() + image.width() / 4) as usize * 3;
            for (found, expected) in image.pixels()[at..at + 3].iter().zip(&expected[2..]) {
                assert!(
                    u32::from(*found).abs_diff(*expected) <= 4,
                    "{line}: {:?}",
                    &image.pixels()[at..at + 3]
                );
            }
        }
    }

    #[test]
    fn cut_images_are_broken() {
        for name in
            ["colour.jpg", "progressive.jpg", "turned_6.jpg", "colour.png", "colour.bmp", "lossless.webp"]
        {
            let bytes = fixture(name);
            for kept in [0, 1, 2, 10, bytes.len() / 2, bytes.len() - 30] {
                let error = decode(&bytes[..kept], name).unwrap_err().to_string();
                assert!(error.starts_with(&format!("{name}: broken image: ")), "{error}");
            }
        }
    }

    #[test]
    fn only_huge_images_are_reduced() {
        assert_eq!([reduction(10_000, 10_000), reduction(12_000, 9_000)], [1, 2]);
        assert_eq!([reduction(20_000, 20_000), reduction(30_000, 33_000)], [4, 8]);
    }

    #[test]
    fn other_formats_are_named_with_advice() {
        let error = decode(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "a/1.jpg").unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with("a/1.jpg: is a HEIC photo (iPhone), which is not read; convert to JPEG"),
            "{message}"
        );
        assert!(error.is_of_one_sample());
        assert!(decode(b"", "x").unwrap_err().to_string().contains("the file is empty"));
    }

    #[test]
    fn absurd_sizes_are_refused() {
        let mut jpeg = fixture("colour.jpg");
        let frame = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
        jpeg[frame + 5..frame + 9].copy_from_slice(&[0xff; 4]);
        assert!(decode(&jpeg, "x").unwrap_err().to_string().contains("65535x65535; at most"));
        jpeg[frame + 5..frame + 9].copy_from_slice(&[0x20, 0, 0x20, 0]);
        assert!(decode(&jpeg, "x").unwrap_err().to_string().contains("bytes cannot hold"));
    }
}
