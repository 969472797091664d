//! Text files as people have them: UTF-8, or what a spreadsheet makes of it.

use std::io;
use std::path::Path;

use super::malformed;
use crate::error::TaxonomyError;

/// The content of a file as text without byte order mark. UTF-16 with its mark is read, too; what is no text is named, as
/// is the first line that is not UTF-8.
pub(super) fn read_text(path: &Path) -> Result<String, TaxonomyError> {
    let bytes = std::fs::read(path).map_err(|source| unreadable(path, source))?;
    match &bytes[..] {
        [0xef, 0xbb, 0xbf, text @ ..] => utf8(text.to_vec(), path),
        [0xff, 0xfe, text @ ..] => utf16(text, u16::from_le_bytes, path),
        [0xfe, 0xff, text @ ..] => utf16(text, u16::from_be_bytes, path),
        _ => match no_text(&bytes) {
            Some(what) => Err(malformed(path, None, what)),
            None => utf8(bytes, path),
        },
    }
}

/// The error for a file that cannot be read; a folder is named as such.
pub(super) fn unreadable(path: &Path, source: io::Error) -> TaxonomyError {
    if path.is_dir() {
        return malformed(path, None, "is a folder; name the file with the classes in it");
    }
    TaxonomyError::Read { path: path.to_path_buf(), source }
}

/// What a file is that begins like this, if it is one of those that are taken for text files by mistake.
fn no_text(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [b'P', b'K', 3, 4, ..] if holds(bytes, b"xl/") => {
            "is an Excel workbook; save it as CSV (UTF-8) and name that file"
        }
        [b'P', b'K', 3, 4, ..] if holds(bytes, b"opendocument.spreadsheet") => {
            "is an OpenDocument spreadsheet; save it as CSV (UTF-8) and name that file"
        }
        [b'P', b'K', 3, 4, ..] => "is a zip archive; unpack it and name the file with the classes",
        [0xd0, 0xcf, 0x11, 0xe0, ..] => {
            "is a document of an old Office; save it as CSV (UTF-8) and name that file"
        }
        [0x1f, 0x8b, ..] => "is compressed with gzip; unpack it first",
        [b'%', b'P', b'D', b'F', ..] => "is a PDF; a list of classes is expected, for instance as CSV",
        [b'P', b'A', b'R', b'1', ..] => "is a Parquet table; save it as CSV and name that file",
        _ => return None,
    })
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).take(1 << 20).any(|window| window == part)
}

fn utf8(bytes: Vec<u8>, path: &Path) -> Result<String, TaxonomyError> {
    let line_of = |bytes: &[u8], at: usize| bytes[..at].split(|&byte| byte == b'\n').count() as u64;
    if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
        let line = line_of(&bytes, at);
        let message = "holds a zero byte; a text file in UTF-8 is expected (is it UTF-16 without its mark?)";
        return Err(malformed(path, Some(line), message));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = line_of(error.as_bytes(), error.utf8_error().valid_up_to());
        malformed(
            path,
            Some(line),
            "is not UTF-8; convert the file to UTF-8 (a spreadsheet: save as CSV UTF-8)",
        )
    })
}

fn utf16(bytes: &[u8], order: fn([u8; 2]) -> u16, path: &Path) -> Result<String, TaxonomyError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let text = char::decode_utf16(pairs.iter().map(|&pair| order(pair))).collect::<Result<String, _>>();
    match text {
        Ok(text) if rest.is_empty() && !text.contains('\0') => Ok(text),
        _ => Err(malformed(path, None, "begins like UTF-16 but is not; convert the file to UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<String, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let place = format!("{}", file.path().display());
        read_text(file.path()).map_err(|error| error.to_string().replace(&place, "F"))
    }

    #[test]
    fn every_encoding_with_a_mark_is_read() {
        let text = "child,parent\nCafé,Getränk\n";
        let wide = |order: fn(u16) -> [u8; 2]| -> Vec<u8> {
            std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(order).collect()
        };
        let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
        for bytes in [text.as_bytes(), &marked, &wide(u16::to_le_bytes), &wide(u16::to_be_bytes)] {
            assert_eq!(read(bytes).unwrap(), text);
        }
    }

    #[test]
    fn a_file_that_is_not_utf8_is_named_with_the_line() {
        let message = read(b"child,parent\na,b\nc,\xFF\n").unwrap_err();
        assert!(message.starts_with("F:3: is not UTF-8; convert the file to UTF-8"), "{message}");
        assert!(read(b"\xff\xfea").unwrap_err().contains("begins like UTF-16"));
        assert!(read(b"a\0b\0").unwrap_err().starts_with("F:1: holds a zero byte"));
        let missing = read_text(Path::new("no/such/file")).unwrap_err().to_string();
        assert!(missing.starts_with("no/such/file: cannot read: "), "{missing}");
    }
}
