//! Pictures inside the page itself.

use crate::ReportError;

/// A picture as an address that holds its bytes. The kind is read from the bytes.
pub(super) fn data_uri(bytes: &[u8], name: &str) -> Result<String, ReportError> {
    let kind = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        "image/png"
    } else if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        "image/jpeg"
    } else {
        return Err(ReportError::PictureFormat(name.to_owned()));
    };
    Ok(format!("data:{kind};base64,{}", base64(bytes)))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let part = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = part(0) << 16 | part(1) << 8 | part(2);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= three.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_known_words() {
        let known = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (plain, coded) in known {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfb]), "//77");
    }

    #[test]
    fn kinds_are_read_from_the_bytes() {
        assert!(data_uri(&[0xff, 0xd8, 0xff, 0xe0], "cat").unwrap().starts_with("data:image/jpeg;base64,"));
        let message = data_uri(b"GIF89a", "cat").unwrap_err().to_string();
        assert_eq!(message, "picture \"cat\" is neither PNG nor JPEG: encode it as one of the two");
    }
}
