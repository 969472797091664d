//! Files with the pixels that libjpeg makes of them, and the same files damaged.

use std::path::Path;

use gpn_golden::Case;

use super::*;

/// A file of the fixture.
struct File {
    name: String,
    bytes: Vec<u8>,
    /// `[height, width, 3]`.
    shape: Vec<usize>,
    pixels: Vec<u8>,
}

/// Files of one scan in grey or YCbCr, chroma halved or not.
fn files() -> Vec<File> {
    files_of("jpeg.npz")
}

/// Files of several scans, other colours and other sampling.
fn other_files() -> Vec<File> {
    files_of("jpeg_other.npz")
}

fn files_of(name: &str) -> Vec<File> {
    let path = format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let case = Case::read(Path::new(&path));
    let names = case.arrays.keys().filter_map(|name| name.strip_suffix("/file"));
    names
        .map(|name| {
            let bytes = case.array(&format!("{name}/file")).bytes();
            let expected = case.array(&format!("{name}/pixels"));
            File { name: name.to_owned(), bytes, shape: expected.shape.clone(), pixels: expected.bytes() }
        })
        .collect()
}

#[test]
fn pixels_are_those_of_libjpeg() {
    let files = files();
    assert_eq!(files.len(), 18);
    for File { name, bytes, shape, pixels } in files {
        let decoded = decode(&bytes, |_, _| Some(1)).unwrap_or_else(|| panic!("{name} is not decoded"));
        assert_eq!([decoded.height, decoded.width, 3], shape[..], "{name}");
        assert!(decoded.pixels == pixels, "{name}: other pixels");
    }
}

#[test]
fn pixels_of_progressive_and_rarer_files_are_those_of_libjpeg() {
    let files = other_files();
    assert_eq!(files.len(), 32);
    for File { name, bytes, shape, pixels } in files {
        let decoded = decode(&bytes, |_, _| Some(1)).unwrap_or_else(|| panic!("{name} is not decoded"));
        assert_eq!([decoded.height, decoded.width, 3], shape[..], "{name}");
        let most = decoded.pixels.iter().zip(&pixels).map(|(a, b)| a.abs_diff(*b)).max();
        assert_eq!(most, Some(0), "{name}");
    }
}

#[test]
fn narrow_vectors_give_the_same_pixels() {
    for File { name, bytes, shape, pixels } in files() {
        let header = Header::parse(&bytes).unwrap();
        let planes = scan::decode(&header, 1).unwrap();
        let mut narrow = vec![0; pixels.len()];
        colour::fill(&planes, header.colour, shape[1], &mut narrow);
        assert!(narrow == pixels, "{name}");
    }
}

#[test]
fn reduced_planes_have_the_means_of_their_squares() {
    let planes = |bytes: &[u8], by: usize| {
        let header = Header::parse(bytes).unwrap();
        if header.is_one_scan() { scan::decode(&header, by) } else { coefficients::decode(header, by) }
            .unwrap()
    };
    for File { name, bytes, shape, .. } in files().into_iter().chain(other_files()) {
        let whole = planes(&bytes, 1);
        for by in [2, 4, 8] {
            let decoded = decode(&bytes, |_, _| Some(by)).unwrap();
            let size = (shape[1].div_ceil(by), shape[0].div_ceil(by));
            assert_eq!((decoded.width, decoded.height), size, "{name}");
            assert_eq!(decoded.pixels.len(), size.0 * size.1 * 3, "{name}");
            for (reduced, whole) in planes(&bytes, by).iter().zip(&whole) {
                // A plane that is halved already is reduced by half as much.
                let by = by * reduced.spread.0 / whole.spread.0;
                assert_eq!(reduced.stride * by, whole.stride, "{name}");
                for (at, &value) in reduced.values.iter().enumerate() {
                    let (y, x) = (at / reduced.stride, at % reduced.stride);
                    let square = (0..by * by)
                        .map(|i| whole.values[(y * by + i / by) * whole.stride + x * by + i % by]);
                    let mean = square.map(f64::from).sum::<f64>() / (by * by) as f64;
                    assert!((f64::from(value) - mean).abs() <= 0.5, "{name} by {by}: {value} for {mean}");
                }
            }
        }
    }
}

#[test]
fn damaged_files_are_declined_or_decoded() {
    let mut state = 7_u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    // Sizes grow at most to what a file of some thousand bytes may hold.
    let accept = |width: usize, height: usize| (width * height <= 1 << 20).then_some(1 << (width % 4));
    for File { name, bytes, .. } in files().into_iter().chain(other_files()) {
        for kept in 0..bytes.len() {
            // Of the end-of-image marker a scan at the end has no need.
            let scan_is_cut = kept + 3 < bytes.len();
            assert!(!scan_is_cut || decode(&bytes[..kept], accept).is_none(), "{name} cut to {kept} bytes");
        }
        for round in 0..200 {
            let mut copy = bytes.clone();
            for _ in 0..=round % 6 {
                let at = random(copy.len());
                copy[at] = [copy[at] ^ (1 << random(8)), 0xff, 0, random(256) as u8][random(4)];
            }
            if let Some(decoded) = decode(&copy, accept) {
                assert_eq!(decoded.pixels.len(), decoded.width * decoded.height * 3, "{name}");
            }
        }
    }
}

#[test]
fn other_kinds_of_jpeg_are_declined() {
    let frame = |bytes: &[u8]| bytes.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    // A file of one component has no sampling to be wrong.
    let has_colour = |file: &File| file.bytes[frame(&file.bytes) + 9] == 3;
    let File { bytes, .. } = files().into_iter().find(has_colour).unwrap();
    let frame = frame(&bytes);
    let changed = |at: usize, to: u8| {
        let mut copy = bytes.clone();
        copy[frame + at] = to;
        decode(&copy, |_, _| Some(1)).is_some()
    };
    assert!(changed(1, 0xc0) && changed(1, 0xc1));
    assert!(!changed(1, 0xc9), "arithmetic coding");
    assert!(!changed(4, 12), "12 bits");
    assert!(!changed(11, 0) && !changed(11, 0x15), "sampling by nothing or fifths");
    assert!(!changed(11, 0x44), "units of more than ten blocks");
    let mut thirds = bytes.clone();
    (thirds[frame + 11], thirds[frame + 14]) = (0x31, 0x21);
    assert!(decode(&thirds, |_, _| Some(1)).is_none(), "sampling by two thirds");
    assert!(decode(&bytes, |_, _| None).is_none(), "a size that is not accepted");
}
