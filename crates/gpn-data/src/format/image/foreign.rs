//! Formats that people have photos in and that are not decoded here: named by their content, with advice.

use serde::Serialize;

/// How many bytes of a file are enough to tell its format.
pub const HEAD_BYTES: usize = 1024;

/// A format that is recognised but not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ForeignFormat {
    /// HEIC and HEIF, as phones write them.
    Heic,
    /// AVIF.
    Avif,
    /// TIFF, of scanners and microscopes.
    Tiff,
    /// The raw data of a camera: CR2, CR3, NEF, ARW, DNG and others.
    Raw,
    /// JPEG XL.
    JpegXl,
    /// JPEG 2000.
    Jpeg2000,
    /// Photoshop's PSD.
    Photoshop,
    /// SVG drawings.
    Svg,
    /// PDF documents.
    Pdf,
    /// Films: MP4, MOV, AVI, MKV and others.
    Video,
    /// A web page in place of a picture: a download that failed.
    WebPage,
    /// A pointer of Git LFS in place of a picture.
    LfsPointer,
}

/// What ends the names of such files.
const EXTENSIONS: [(ForeignFormat, &[&str]); 10] = [
    (ForeignFormat::Heic, &["heic", "heif", "hif"]),
    (ForeignFormat::Avif, &["avif"]),
    (ForeignFormat::Tiff, &["tif", "tiff"]),
    (
        ForeignFormat::Raw,
        &[
            "cr2", "cr3", "crw", "nef", "nrw", "arw", "sr2", "srf", "dng", "raf", "orf", "rw2", "pef", "srw",
            "x3f", "raw", "3fr", "iiq", "erf", "mrw",
        ],
    ),
    (ForeignFormat::JpegXl, &["jxl"]),
    (ForeignFormat::Jpeg2000, &["jp2", "j2k", "jpf", "jpx"]),
    (ForeignFormat::Photoshop, &["psd", "psb"]),
    (ForeignFormat::Svg, &["svg"]),
    (ForeignFormat::Pdf, &["pdf"]),
    (
        ForeignFormat::Video,
        &["mp4", "mov", "avi", "mkv", "m4v", "webm", "mpg", "mpeg", "wmv", "3gp", "mts", "flv"],
    ),
];

impl ForeignFormat {
    /// The format of a file that begins with `head`; `name` tells the kinds of TIFF apart.
    pub fn of(head: &[u8], name: &str) -> Option<Self> {
        Some(match head {
            [_, _, _, _, b'f', b't', b'y', b'p', rest @ ..] => return of_brands(head, rest),
            [b'I', b'I', 0x2a, 0, _, _, _, _, b'C', b'R', ..]
            | [b'I', b'I', b'R', b'O' | b'S', ..]
            | [b'M', b'M', b'O', b'R', ..]
            | [b'I', b'I', b'U', 0, ..]
            | [b'F', b'U', b'J', b'I', b'F', b'I', b'L', b'M', ..]
            | [b'F', b'O', b'V', b'b', ..] => Self::Raw,
            [b'I', b'I', 0x2a | 0x2b, 0, ..] | [b'M', b'M', 0, 0x2a | 0x2b, ..] => {
                // Most cameras write their raw data as a TIFF of another name.
                if Self::by_name(name) == Some(Self::Raw) { Self::Raw } else { Self::Tiff }
            }
            [0, 0, 0, 12, b'J', b'X', b'L', b' ', ..] | [0xff, 0x0a, ..] => Self::JpegXl,
            [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xff, 0x4f, 0xff, 0x51, ..] => Self::Jpeg2000,
            [b'8', b'B', b'P', b'S', ..] => Self::Photoshop,
            [b'%', b'P', b'D', b'F', ..] => Self::Pdf,
            [b'R', b'I', b'F', b'F', _, _, _, _, b'A', b'V', b'I', ..]
            | [0x1a, 0x45, 0xdf, 0xa3, ..]
            | [0, 0, 1, 0xba | 0xb3, ..]
            | [b'F', b'L', b'V', 1, ..]
            | [0x30, 0x26, 0xb2, 0x75, ..] => Self::Video,
            _ => return of_text(head),
        })
    }

    /// The format that the name of a file tells.
    pub fn by_name(name: &str) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        let known =
            |(_, endings): &&(Self, &[&str])| endings.iter().any(|end| extension.eq_ignore_ascii_case(end));
        EXTENSIONS.iter().find(known).map(|(format, _)| *format)
    }

    /// One file of this format, for messages: `a HEIC photo (iPhone)`.
    pub fn one(self) -> &'static str {
        match self {
            Self::Heic => "a HEIC photo (iPhone)",
            Self::Avif => "an AVIF image",
            Self::Tiff => "a TIFF image",
            Self::Raw => "a camera's raw file",
            Self::JpegXl => "a JPEG XL image",
            Self::Jpeg2000 => "a JPEG 2000 image",
            Self::Photoshop => "a Photoshop file",
            Self::Svg => "an SVG drawing",
            Self::Pdf => "a PDF document",
            Self::Video => "a video",
            Self::WebPage => "a web page",
            Self::LfsPointer => "a pointer of Git LFS",
        }
    }

    /// Several files of this format, for messages.
    pub fn many(self) -> &'static str {
        match self {
            Self::Heic => "HEIC photos (iPhone)",
            Self::Avif => "AVIF images",
            Self::Tiff => "TIFF images",
            Self::Raw => "raw files of a camera",
            Self::JpegXl => "JPEG XL images",
            Self::Jpeg2000 => "JPEG 2000 images",
            Self::Photoshop => "Photoshop files",
            Self::Svg => "SVG drawings",
            Self::Pdf => "PDF documents",
            Self::Video => "videos",
            Self::WebPage => "web pages",
            Self::LfsPointer => "pointers of Git LFS",
        }
    }

    /// What to do with such files.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Heic => "convert to JPEG, e.g. `heif-convert photo.heic photo.jpg`",
            Self::Avif => "convert to JPEG or PNG, e.g. `avifdec photo.avif photo.png`",
            Self::Tiff => "convert to PNG, e.g. `magick photo.tif photo.png`",
            Self::Raw => "export as JPEG from the camera's program, e.g. darktable",
            Self::JpegXl => "convert to JPEG or PNG, e.g. `djxl photo.jxl photo.png`",
            Self::Jpeg2000 => "convert to JPEG or PNG, e.g. `magick photo.jp2 photo.png`",
            Self::Photoshop => "export as JPEG or PNG",
            Self::Svg => "draw as PNG, e.g. `rsvg-convert drawing.svg -o drawing.png`",
            Self::Pdf => "take the pages out as images, e.g. `pdftoppm -png document.pdf page`",
            Self::Video => "take frames out as images, e.g. `ffmpeg -i film.mp4 -r 1 frame-%d.jpg`",
            Self::WebPage => "the download failed: fetch the picture again",
            Self::LfsPointer => "fetch the pictures with `git lfs pull`",
        }
    }
}

/// The family of HEIC, AVIF and films, told by the brands of the first box.
fn of_brands(head: &[u8], rest: &[u8]) -> Option<ForeignFormat> {
    // invariant: the caller has seen more than four bytes
    let size = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let major = rest.get(..4)?;
    let others = rest.get(8..size.saturating_sub(8).min(rest.len())).unwrap_or_default();
    let brands = || std::iter::once(major).chain(others.chunks_exact(4));
    let has = |known: &[&[u8; 4]]| brands().any(|brand| known.iter().any(|known| brand == *known));
    Some(if major == b"crx " {
        ForeignFormat::Raw
    } else if has(&[b"avif", b"avis"]) {
        ForeignFormat::Avif
    } else if has(&[b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"]) {
        ForeignFormat::Heic
    } else {
        ForeignFormat::Video
    })
}

fn of_text(head: &[u8]) -> Option<ForeignFormat> {
    let head = &head[..head.len().min(HEAD_BYTES)];
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    if head.starts_with(b"version https://git-lfs") {
        return Some(ForeignFormat::LfsPointer);
    }
    if head.first() != Some(&b'<') {
        return None;
    }
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    if text.contains("<svg") {
        Some(ForeignFormat::Svg)
    } else if text.starts_with("<!doctype html") || text.contains("<html") {
        Some(ForeignFormat::WebPage)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_tells_the_format_whatever_the_name() {
        for (head, name, format) in [
            (&b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"[..], "a.jpg", ForeignFormat::Heic),
            (b"\0\0\0\x1cftypmif1\0\0\0\0mif1heic", "a.heif", ForeignFormat::Heic),
            (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avif", "a.jpg", ForeignFormat::Avif),
            (b"\0\0\0\x18ftypcrx \0\0\0\x01crx isom", "a.cr3", ForeignFormat::Raw),
            (b"\0\0\0\x14ftypqt  \0\0\0\0qt  ", "a.jpg", ForeignFormat::Video),
            (b"\xff\xff\xff\xffftypisom", "a.mp4", ForeignFormat::Video),
            (b"II\x2a\0\x08\0\0\0", "a.tif", ForeignFormat::Tiff),
            (b"MM\0\x2a\0\0\0\x08", "a.NEF", ForeignFormat::Raw),
            (b"II\x2a\0\x10\0\0\0CR\x02\0", "a.jpg", ForeignFormat::Raw),
            (b"%PDF-1.7", "a.png", ForeignFormat::Pdf),
            (b"\xef\xbb\xbf<?xml version='1.0'?>\n<svg>", "a.png", ForeignFormat::Svg),
            (b"<!DOCTYPE html><title>404", "a.jpg", ForeignFormat::WebPage),
            (b"version https://git-lfs.github.com/spec/v1\n", "a.jpg", ForeignFormat::LfsPointer),
        ] {
            assert_eq!(ForeignFormat::of(head, name), Some(format), "{name}");
            for kept in 0..head.len() {
                // Cut files may be anything but a reason to panic.
                let _ = ForeignFormat::of(&head[..kept], name);
            }
        }
        for head in [&b"\xff\xd8\xff\xe0"[..], b"\x89PNG", b"", b"<note>", b"hello"] {
            assert_eq!(ForeignFormat::of(head, "a.heic"), None);
        }
    }

    #[test]
    fn names_tell_a_format() {
        assert_eq!(ForeignFormat::by_name("b/IMG_1.HEIC"), Some(ForeignFormat::Heic));
        assert_eq!(ForeignFormat::by_name("x.dng"), Some(ForeignFormat::Raw));
        assert_eq!(ForeignFormat::by_name("x.jpg"), None);
        assert_eq!(ForeignFormat::by_name("tiff"), None);
    }
}
