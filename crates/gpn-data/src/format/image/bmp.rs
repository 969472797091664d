//! BMP: palettes, 16 to 32 bits with or without masks, and run lengths; headers of OS/2 1 and of Windows 3 to 98.

use super::{Decoded, MAX_PIXELS, OTHER_PIXELS, check_size};

const FILE_HEADER: usize = 14;
/// The largest width and height that are believed.
const MAX_SIDE: u32 = 0xffff;
const CUT_SHORT: &str = "the file is cut short";

/// How the pixels are stored.
enum Coding {
    /// Indices of 1, 2, 4 or 8 bits into a palette.
    Indices(Box<Palette>),
    /// Run lengths of indices of 4 or 8 bits.
    Runs(Box<Palette>),
    /// Words of 16, 24 or 32 bits with a part for each of red, green and blue.
    Words([Part; 3]),
}

/// Colours by index; those that the file does not tell are black.
type Palette = [[u8; 3]; 256];

/// The bits of a word that hold one colour.
#[derive(Clone, Copy)]
struct Part {
    shift: u32,
    /// The largest value, at most 255.
    most: u32,
}

impl Part {
    const fn new(shift: u32, length: u32) -> Self {
        Self { shift, most: (1 << length) - 1 }
    }

    /// Reads a mask; of more than eight bits the upper eight count.
    fn of_mask(mask: u32, bits: u32) -> Result<Self, String> {
        let (length, shift) = (mask.count_ones(), mask.trailing_zeros());
        if mask == 0 || mask >> shift != u32::MAX >> (32 - length) || shift + length > bits {
            return Err(format!("its colour mask {mask:#x} is not a row of bits"));
        }
        let kept = length.min(8);
        Ok(Self::new(shift + length - kept, kept))
    }

    /// The colour in a word, spread over 0 to 255.
    fn of(self, word: u32) -> u8 {
        (((word >> self.shift & self.most) * 255 + self.most / 2) / self.most) as u8
    }
}

struct Header {
    width: usize,
    height: usize,
    downwards: bool,
    bits: usize,
    coding: Coding,
    /// Where the pixels begin.
    start: usize,
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let size = u32_at(bytes, FILE_HEADER)?;
        let start = u32_at(bytes, 10)? as usize;
        let is_core = size == 12;
        let (width, height, planes_at) = match size {
            12 => (u32::from(u16_at(bytes, 18)?), i32::from(u16_at(bytes, 20)?), 22),
            40 | 52 | 56 | 108 | 124 => (u32_at(bytes, 18)?, u32_at(bytes, 22)? as i32, 26),
            _ => return Err(format!("its header of {size} bytes is of an unknown kind")),
        };
        let (downwards, height) = (height < 0, height.unsigned_abs());
        if width > MAX_SIDE || height > MAX_SIDE {
            return Err(format!("its size is {width}x{height}; a side has at most {MAX_SIDE} pixels"));
        }
        if u16_at(bytes, planes_at)? != 1 {
            return Err("it has more than one plane".into());
        }
        let bits = usize::from(u16_at(bytes, planes_at + 2)?);
        let (compression, colours) =
            if is_core { (0, 0) } else { (u32_at(bytes, 30)?, u32_at(bytes, 46)? as usize) };
        if downwards && !matches!(compression, 0 | 3) {
            return Err("its rows are compressed and run downwards, which cannot be".into());
        }
        let palette = || palette(bytes, FILE_HEADER + size as usize, bits, colours, is_core);
        let coding = match (compression, bits) {
            (0, 1 | 4 | 8) => Coding::Indices(palette()?),
            (0, 2) if !is_core => Coding::Indices(palette()?),
            (0, 16) if !is_core => Coding::Words([Part::new(10, 5), Part::new(5, 5), Part::new(0, 5)]),
            (0, 32) if !is_core => Coding::Words([Part::new(16, 8), Part::new(8, 8), Part::new(0, 8)]),
            (0, 24) => Coding::Words([Part::new(16, 8), Part::new(8, 8), Part::new(0, 8)]),
            (1, 8) | (2, 4) => Coding::Runs(palette()?),
            (3, 16 | 32) => {
                let part = |at| Part::of_mask(u32_at(bytes, at)?, bits as u32);
                Coding::Words([part(54)?, part(58)?, part(62)?])
            }
            _ => return Err(format!("its {bits} bits with compression {compression} are not read")),
        };
        Ok(Self { width: width as usize, height: height as usize, downwards, bits, coding, start })
    }
}

/// Decodes a file.
pub(super) fn decode(bytes: &[u8]) -> Result<Decoded, String> {
    let Header { width, height, downwards, bits, coding, start } = Header::parse(bytes)?;
    check_size(width as u64, height as u64, bytes.len(), OTHER_PIXELS, MAX_PIXELS)?;
    let data = bytes.get(start..).ok_or(CUT_SHORT)?;
    // Rows are filled up to whole words of four bytes.
    let stride = (bits * width).div_ceil(32) * 4;
    if !matches!(coding, Coding::Runs(_)) && data.len() < stride * height {
        return Err(CUT_SHORT.into());
    }
    let mut pixels = vec![0; width * height * 3];
    match coding {
        Coding::Runs(palette) => runs(data, bits, &palette, width, height, &mut pixels)?,
        Coding::Indices(palette) => {
            for (row, out) in data.chunks_exact(stride).zip(pixels.chunks_exact_mut(width * 3)) {
                for (x, pixel) in out.as_chunks_mut().0.iter_mut().enumerate() {
                    let byte = row[x * bits / 8];
                    let index = byte >> (8 - bits - x * bits % 8) & (0xff >> (8 - bits));
                    *pixel = palette[usize::from(index)];
                }
            }
        }
        Coding::Words(parts) => {
            for (row, out) in data.chunks_exact(stride).zip(pixels.chunks_exact_mut(width * 3)) {
                for (word, pixel) in row.chunks_exact(bits / 8).zip(out.as_chunks_mut().0) {
                    let word = word.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
                    *pixel = parts.map(|part| part.of(word));
                }
            }
        }
    }
    if !downwards {
        flip(&mut pixels, width * 3);
    }
    Ok(Decoded { width: width as u32, height: height as u32, pixels, exif: None })
}

/// Puts the last row first.
fn flip(pixels: &mut [u8], stride: usize) {
    let half = pixels.len() / stride / 2 * stride;
    let (upper, rest) = pixels.split_at_mut(half);
    for (above, below) in upper.chunks_exact_mut(stride).zip(rest.rchunks_exact_mut(stride)) {
        above.swap_with_slice(below);
    }
}

fn palette(
    bytes: &[u8],
    at: usize,
    bits: usize,
    colours: usize,
    is_core: bool,
) -> Result<Box<Palette>, String> {
    let most = 1 << bits;
    if colours > most {
        return Err(format!("its palette has {colours} colours, more than {bits} bits can tell apart"));
    }
    let count = if colours == 0 { most } else { colours };
    let size = if is_core { 3 } else { 4 };
    let entries = bytes.get(at..at + count * size).ok_or(CUT_SHORT)?;
    let mut palette = Box::new([[0; 3]; 256]);
    for (colour, entry) in palette.iter_mut().zip(entries.chunks_exact(size)) {
        *colour = [entry[2], entry[1], entry[0]];
    }
    Ok(palette)
}

/// Fills rows from the bottom, the first row of `pixels` being the lowest. Pixels that are jumped over stay black.
fn runs(
    mut data: &[u8],
    bits: usize,
    palette: &Palette,
    width: usize,
    height: usize,
    pixels: &mut [u8],
) -> Result<(), String> {
    const OUTSIDE: &str = "its run lengths lead out of the picture";
    let (pixels, _) = pixels.as_chunks_mut::<3>();
    // The colour at place `n` of a run or list: a byte holds one index of 8 bits or two of 4, the upper first.
    let index = |byte: u8, n: usize| match (bits, n % 2) {
        (8, _) => byte,
        (_, 0) => byte >> 4,
        _ => byte & 15,
    };
    let mut take = |count: usize| -> Result<&[u8], String> {
        let (taken, rest) = data.split_at_checked(count).ok_or(CUT_SHORT)?;
        data = rest;
        Ok(taken)
    };
    let (mut x, mut y) = (0, 0);
    while y < height {
        let row = y * width;
        match *take(2)? {
            [0, 0] => (x, y) = (0, y + 1),
            [0, 1] => break,
            [0, 2] => {
                let jump = take(2)?;
                (x, y) = (x + usize::from(jump[0]), y + usize::from(jump[1]));
                if x > width || y >= height {
                    return Err(OUTSIDE.into());
                }
            }
            [0, count] => {
                let count = usize::from(count);
                let list = take((count * bits).div_ceil(16) * 2)?;
                if x + count > width {
                    return Err(OUTSIDE.into());
                }
                for (n, pixel) in pixels[row + x..row + x + count].iter_mut().enumerate() {
                    *pixel = palette[usize::from(index(list[n * bits / 8], n))];
                }
                x += count;
            }
            [count, byte] => {
                // Some programs write runs that are longer than the row.
                let end = (x + usize::from(count)).min(width);
                for (n, pixel) in pixels[row + x..row + end].iter_mut().enumerate() {
                    *pixel = palette[usize::from(index(byte, n))];
                }
                x = end;
            }
            // invariant: `take(2)` gives two bytes
            _ => break,
        }
    }
    Ok(())
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, String> {
    match bytes.get(at..at + 2) {
        Some(&[low, high]) => Ok(u16::from_le_bytes([low, high])),
        _ => Err(CUT_SHORT.into()),
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, String> {
    Ok(u32::from(u16_at(bytes, at)?) | u32::from(u16_at(bytes, at + 2)?) << 16)
}
