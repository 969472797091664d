//! Checksums put right, so that what stands behind them is reached: the fuzzer cannot guess them.

/// CRC-32 as in zip and PNG.
pub(super) fn crc32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    !bytes.into_iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ (0xedb8_8320 * (crc & 1)))
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize)
}

/// The CRC of every chunk of a PNG.
pub(super) fn mend_png(bytes: &mut [u8]) {
    let mut at = 8;
    while let Some(length) = bytes.get(at..at + 4) {
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let Some(chunk) = bytes.get(at + 4..at + 8 + length) else { return };
        let crc = crc32(chunk.iter().copied());
        at += 12 + length;
        let Some(place) = bytes.get_mut(at - 4..at) else { return };
        place.copy_from_slice(&crc.to_be_bytes());
    }
}

/// The sum of every header of a tar.
pub(super) fn mend_tar(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(header) = bytes.get_mut(at..at + 512) {
        if header.iter().all(|&byte| byte == 0) {
            return;
        }
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let digits = header[124..136].iter().take_while(|byte| (b'0'..=b'7').contains(*byte));
        let size = digits.fold(0_usize, |size, digit| size * 8 + usize::from(digit - b'0'));
        at += 512 + size.next_multiple_of(512);
    }
}

/// The CRC of every entry of a zip that is stored as it is.
pub(super) fn mend_zip(bytes: &mut [u8]) {
    let _ = mend_zip_entries(bytes);
}

fn mend_zip_entries(bytes: &mut [u8]) -> Option<()> {
    let end = bytes.windows(22).rposition(|window| window.starts_with(b"PK\x05\x06"))?;
    let mut at = u32_at(bytes, end + 16)?;
    for _ in 0..u16_at(bytes, end + 10)? {
        bytes.get(at..at + 46)?;
        let (size, local) = (u32_at(bytes, at + 20)?, u32_at(bytes, at + 42)?);
        if u16_at(bytes, at + 10)? == 0 {
            let start = local + 30 + u16_at(bytes, local + 26)? + u16_at(bytes, local + 28)?;
            let crc = crc32(bytes.get(start..start + size)?.iter().copied());
            bytes[at + 16..at + 20].copy_from_slice(&crc.to_le_bytes());
        }
        at += 46 + u16_at(bytes, at + 28)? + u16_at(bytes, at + 30)? + u16_at(bytes, at + 32)?;
    }
    Some(())
}
