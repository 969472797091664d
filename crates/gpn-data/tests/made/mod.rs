//! Small valid data sets, written by code.
#![allow(dead_code, reason = "each test binary uses a part of these")]

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::DeflateDecoder;
use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, CrcReader};
use parquet::data_type::{ByteArray, ByteArrayType, FloatType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// A bundle of files by name.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

/// Sides of all images made here.
const SIDE: usize = 16;

/// The pixels of an image of one colour with a darker corner.
fn pixels(colour: [u8; 3]) -> impl DoubleEndedIterator<Item = [u8; 3]> {
    (0..SIDE * SIDE).map(move |at| {
        let corner = at % SIDE < SIDE / 2 && at / SIDE < SIDE / 2;
        if corner { colour.map(|c| c / 2) } else { colour }
    })
}

pub(crate) fn png(colour: [u8; 3]) -> Vec<u8> {
    let data: Vec<u8> = pixels(colour).flatten().collect();
    png_of(SIDE as u32, SIDE as u32, &data)
}

/// A PNG of any size from its RGB pixels.
pub(crate) fn png_of(width: u32, height: u32, pixels: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(pixels).unwrap();
    bytes
}

pub(crate) fn gif(colour: [u8; 3]) -> Vec<u8> {
    let palette = [colour, colour.map(|c| c / 2)].concat();
    let indices: Vec<u8> = pixels(colour).map(|pixel| u8::from(pixel != colour)).collect();
    let mut bytes = Vec::new();
    let side = SIDE as u16;
    let mut encoder = gif::Encoder::new(&mut bytes, side, side, &palette).unwrap();
    encoder.write_frame(&gif::Frame::from_indexed_pixels(side, side, indices, None)).unwrap();
    drop(encoder);
    bytes
}

pub(crate) fn webp(colour: [u8; 3]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let data: Vec<u8> = pixels(colour).flatten().collect();
    let encoder = image_webp::WebPEncoder::new(&mut bytes);
    encoder.encode(&data, SIDE as u32, SIDE as u32, image_webp::ColorType::Rgb8).unwrap();
    bytes
}

pub(crate) fn bmp(colour: [u8; 3]) -> Vec<u8> {
    let mut bytes = b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x10\0\0\0\x10\0\0\0\x01\0\x18\0".to_vec();
    bytes.resize(0x36, 0);
    let rows: Vec<[u8; 3]> = pixels(colour).collect();
    bytes.extend(rows.chunks(SIDE).rev().flatten().flat_map(|&[r, g, b]| [b, g, r]));
    bytes
}

/// The image as a JPEG of four even blocks: each holds nothing but its mean.
pub(crate) fn jpeg(colour: [u8; 3]) -> Vec<u8> {
    let mut bytes = vec![0xff, 0xd8];
    let mut segment = |marker: u8, body: &[u8]| {
        bytes.extend([0xff, marker, 0, body.len() as u8 + 2]);
        bytes.extend(body);
    };
    segment(0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
    // A mean is coded in steps of 4 / 8 of a grey level.
    segment(0xdb, &[&[0][..], &[4; 64]].concat());
    segment(0xc0, &[8, 0, SIDE as u8, 0, SIDE as u8, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
    // Means: the sizes 0 to 11 have codes of four bits. All else: one code, the end of the block.
    segment(0xc4, &[&[0, 0, 0, 0, 12][..], &[0; 12], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]].concat());
    segment(0xc4, &[&[0x10, 1][..], &[0; 15], &[0]].concat());
    segment(0xda, &[3, 1, 0, 2, 0, 3, 0, 0, 63, 0]);
    let (mut bits, mut before) = (String::new(), [0; 3]);
    for block in [colour.map(|c| c / 2), colour, colour, colour] {
        let [r, g, b] = block.map(f64::from);
        let mean = [
            0.299 * r + 0.587 * g + 0.114 * b - 128.0,
            -0.1687 * r - 0.3313 * g + 0.5 * b,
            0.5 * r - 0.4187 * g - 0.0813 * b,
        ];
        for (now, before) in mean.map(|mean| (mean * 2.0).round() as i32).into_iter().zip(&mut before) {
            let change = now - *before;
            let size = (32 - change.abs().leading_zeros()) as usize;
            write!(bits, "{size:04b}").unwrap();
            if size > 0 {
                let value = if change < 0 { change + (1 << size) - 1 } else { change };
                write!(bits, "{value:0size$b}").unwrap();
            }
            bits.push('0');
            *before = now;
        }
    }
    bits += &"1".repeat(7 - (bits.len() + 7) % 8);
    for byte in bits.as_bytes().chunks(8) {
        let byte = byte.iter().fold(0, |byte, &bit| byte << 1 | (bit & 1));
        bytes.push(byte);
        if byte == 0xff {
            bytes.push(0);
        }
    }
    bytes.extend([0xff, 0xd9]);
    bytes
}

/// Two classes of three images in the layout of Tiny-ImageNet.
pub(crate) fn tiny_imagenet() -> Files {
    let mut files = vec![
        ("tiny-imagenet-200/wnids.txt".to_owned(), b"n02\nn01\n".to_vec()),
        (
            "tiny-imagenet-200/words.txt".to_owned(),
            b"n01\tgoldfish, Carassius auratus\nn02\ttench\nn03\tx\n".to_vec(),
        ),
        ("tiny-imagenet-200/val/images/val_0.JPEG".to_owned(), jpeg([9, 9, 9])),
    ];
    for (wnid, red) in [("n02", 200), ("n01", 100)] {
        for number in [10u8, 2, 1] {
            let name = format!("tiny-imagenet-200/train/{wnid}/images/{wnid}_{number}.JPEG");
            files.push((name, jpeg([red + number, 50, 50])));
        }
        files.push((format!("tiny-imagenet-200/train/{wnid}/{wnid}_boxes.txt"), b"x\n".to_vec()));
    }
    files
}

pub(crate) fn directory(root: &Path, files: &Files) -> PathBuf {
    for (name, bytes) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    root.to_owned()
}

pub(crate) fn tar(files: &Files) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, bytes.as_slice()).unwrap();
    }
    builder.into_inner().unwrap()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// CRC-32 of what a zip entry holds.
fn content_crc(stored: &[u8], method: u16) -> u32 {
    let mut crc = CrcReader::new(if method == 8 {
        Box::new(DeflateDecoder::new(stored)) as Box<dyn Read>
    } else {
        Box::new(stored)
    });
    std::io::copy(&mut crc, &mut std::io::sink()).unwrap();
    crc.crc().sum()
}

/// A zip of entries given as (name, size to claim, bytes to store, method).
pub(crate) fn raw_zip(entries: &[(&[u8], u32, &[u8], u16)]) -> Vec<u8> {
    let (mut bytes, mut central) = (Vec::new(), Vec::new());
    for (name, size, stored, method) in entries {
        let mut shared = Vec::new();
        for word in [20, 0, *method, 0, 0] {
            shared.extend(word.to_le_bytes());
        }
        for number in [content_crc(stored, *method), stored.len() as u32, *size] {
            shared.extend(number.to_le_bytes());
        }
        shared.extend((name.len() as u16).to_le_bytes());
        shared.extend([0; 2]);
        central.extend(b"PK\x01\x02\x14\x00");
        central.extend(&shared);
        central.extend([0; 10]);
        central.extend((bytes.len() as u32).to_le_bytes());
        central.extend(*name);
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&shared);
        bytes.extend(*name);
        bytes.extend(*stored);
    }
    let start = bytes.len() as u32;
    bytes.extend(&central);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend((entries.len() as u16).to_le_bytes());
    bytes.extend((entries.len() as u16).to_le_bytes());
    bytes.extend((central.len() as u32).to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0; 2]);
    bytes
}

/// A zip whose entries are stored and deflated in turn.
pub(crate) fn zip(files: &Files) -> Vec<u8> {
    let deflated: Vec<Vec<u8>> = files.iter().map(|(_, bytes)| deflate(bytes)).collect();
    let mut entries: Vec<(&[u8], u32, &[u8], u16)> = Vec::new();
    for (index, (name, bytes)) in files.iter().enumerate() {
        let (stored, method) = if index % 2 == 0 { (bytes, 0) } else { (&deflated[index], 8) };
        entries.push((name.as_bytes(), bytes.len() as u32, stored, method));
    }
    raw_zip(&entries)
}

/// An `.npy` file with any header text.
pub(crate) fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

pub(crate) fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(crate) fn unicode(texts: &[&str], length: usize) -> Vec<u8> {
    let padded = |text: &str| text.chars().chain(std::iter::repeat('\0')).take(length).collect::<Vec<_>>();
    texts.iter().flat_map(|text| padded(text)).flat_map(|c| u32::from(c).to_le_bytes()).collect()
}

/// CIFAR-100 of three fine and two coarse classes: two records per fine class in train, one in test.
pub(crate) fn cifar100() -> Files {
    let record = |coarse: u8, fine: u8| {
        let planes = [fine * 10, fine * 20, fine * 30].into_iter().flat_map(|value| [value; 1024]);
        [coarse, fine].into_iter().chain(planes).collect::<Vec<u8>>()
    };
    let all = [record(1, 0), record(0, 1), record(1, 2)];
    vec![
        ("cifar-100-binary/train.bin".into(), [all.concat(), all.concat()].concat()),
        ("cifar-100-binary/test.bin".into(), all.concat()),
        ("cifar-100-binary/fine_label_names.txt".into(), b"apple\nbear\ncup\n".to_vec()),
        ("cifar-100-binary/coarse_label_names.txt".into(), b"animals\nthings\n".to_vec()),
    ]
}

/// A Parquet table; rows are (embedding, class name).
pub(crate) fn parquet(rows: &[(Vec<f32>, &str)]) -> Vec<u8> {
    let schema = "message table {
        optional group embedding (LIST) { repeated group list { optional float element; } }
        optional binary class_name (UTF8);
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let values: Vec<f32> = rows.iter().flat_map(|(row, _)| row.clone()).collect();
    let repetitions: Vec<i16> =
        rows.iter().flat_map(|(row, _)| (0..row.len()).map(|column| i16::from(column > 0))).collect();
    let mut column = group.next_column().unwrap().unwrap();
    let levels = vec![3; values.len()];
    column.typed::<FloatType>().write_batch(&values, Some(&levels), Some(&repetitions)).unwrap();
    column.close().unwrap();
    let names: Vec<ByteArray> = rows.iter().map(|(_, name)| ByteArray::from(*name)).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&names, Some(&vec![1; names.len()]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

/// A pickled list of byte arrays as NumPy writes them in Python 2 with protocol 2.
pub(crate) fn pickled_arrays(arrays: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"\x80\x02]q\x00(".to_vec();
    for array in arrays {
        let length = (array.len() as u32).to_le_bytes();
        bytes.extend(b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01J");
        bytes.extend(length);
        bytes.extend(b"\x85cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T");
        bytes.extend(length);
        bytes.extend(array);
        bytes.extend(b"tb");
    }
    bytes.extend(b"e.");
    bytes
}

/// A pickled dict of labels as Python 2 writes it.
pub(crate) fn pickled_labels(classes: &[u8], names: &[&str]) -> Vec<u8> {
    let mut bytes = b"\x80\x02}(U\x0elabel_specific](".to_vec();
    bytes.extend(classes.iter().flat_map(|class| [b'K', *class]));
    bytes.extend(b"eU\x12label_specific_str](");
    for name in names {
        bytes.extend([b'U', name.len() as u8]);
        bytes.extend(name.as_bytes());
    }
    bytes.extend(b"eu.");
    bytes
}

/// tieredImageNet with two training and one test image.
pub(crate) fn tiered_imagenet() -> Files {
    vec![
        ("train_images_png.pkl".into(), pickled_arrays(&[png([200, 10, 20]), png([10, 200, 20])])),
        ("train_labels.pkl".into(), pickled_labels(&[1, 0], &["crane", "tench"])),
        ("test_images_png.pkl".into(), pickled_arrays(&[png([10, 20, 200])])),
        ("test_labels.pkl".into(), pickled_labels(&[0], &["cup"])),
        ("class_names.txt".into(), b"crane\ntench\ncup\ncrane\n".to_vec()),
        ("synsets.txt".into(), b"n02012849\nn01440764\nn07930864\nn03126707\n".to_vec()),
    ]
}
