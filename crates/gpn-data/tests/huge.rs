//! Pictures of more than 100 megapixels are reduced while they are decoded; others keep their pixels.

use gpn_data::decode;

const WIDTH: usize = 12_000;
const HEIGHT: usize = 9_000;

/// A grey JPEG whose left half is dark and whose right half is bright, in one scan or, for the same picture, two.
fn jpeg(width: usize, height: usize, progressive: bool) -> Vec<u8> {
    let mut bytes = vec![0xff, 0xd8];
    let mut segment = |marker: u8, body: &[u8]| {
        bytes.extend([0xff, marker, 0, body.len() as u8 + 2]);
        bytes.extend(body);
    };
    segment(0xdb, &[&[0][..], &[8; 64]].concat());
    let [h, w] = [height, width].map(|side| (side as u16).to_be_bytes());
    segment(if progressive { 0xc2 } else { 0xc0 }, &[8, h[0], h[1], w[0], w[1], 1, 1, 0x11, 0]);
    // Means: no change is `0`, a change of seven bits is `10`. All else: one code, the end of the block.
    segment(0xc4, &[&[0, 1, 1][..], &[0; 14], &[0, 7]].concat());
    segment(0xc4, &[&[0x10, 1][..], &[0; 15], &[0]].concat());
    segment(0xda, &[1, 1, 0, 0, if progressive { 0 } else { 63 }, 0]);
    let mut writer = Bits::default();
    let (columns, rows) = (width.div_ceil(8), height.div_ceil(8));
    for column in (0..rows).flat_map(|_| 0..columns) {
        // A step of the mean is one grey level: 128 - 64 and 128 + 63, after the first row of blocks from one to the other.
        let change = match column {
            0 => Some(-64),
            _ if column == columns / 2 => Some(127),
            _ => None,
        };
        let first_of_row = column == 0 && writer.after_first;
        match change.map(|change| if first_of_row { -127 } else { change }) {
            Some(change) => {
                writer.put(0b10, 2);
                writer.put(if change < 0 { change + 127 } else { change } as u32, 7);
            }
            None => writer.put(0, 1),
        }
        writer.after_first = true;
        if !progressive {
            writer.put(0, 1);
        }
    }
    bytes.extend(writer.finish());
    if progressive {
        // The other coefficients, all zero: a code for each block says so.
        bytes.extend([0xff, 0xda, 0, 8, 1, 1, 0, 1, 63, 0]);
        let mut writer = Bits::default();
        (0..columns * rows).for_each(|_| writer.put(0, 1));
        bytes.extend(writer.finish());
    }
    bytes.extend([0xff, 0xd9]);
    bytes
}

#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    waiting: u32,
    count: u32,
    after_first: bool,
}

impl Bits {
    fn put(&mut self, value: u32, bits: u32) {
        for bit in (0..bits).rev() {
            self.waiting = self.waiting << 1 | (value >> bit & 1);
            self.count += 1;
            if self.count == 8 {
                self.bytes.push(self.waiting as u8);
                if self.waiting == 0xff {
                    self.bytes.push(0);
                }
                (self.waiting, self.count) = (0, 0);
            }
        }
    }

    fn finish(mut self) -> Vec<u8> {
        while self.count > 0 {
            self.put(1, 1);
        }
        self.bytes
    }
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::One);
    let row: Vec<u8> = (0..width.div_ceil(8)).map(|byte| if byte >= width / 16 { 0xff } else { 0 }).collect();
    encoder.write_header().unwrap().write_image_data(&row.repeat(height as usize)).unwrap();
    bytes
}

#[test]
fn a_jpeg_of_108_megapixels_is_read_at_half_its_size() {
    for progressive in [false, true] {
        let image = decode(&jpeg(WIDTH, HEIGHT, progressive), "phone.jpg").unwrap();
        assert_eq!((image.width(), image.height()), (6_000, 4_500));
        let pixel = |x: usize, y: usize| image.pixels()[(y * 6_000 + x) * 3];
        for y in [0, 2_000, 4_499] {
            assert_eq!([pixel(0, y), pixel(2_900, y), pixel(3_100, y), pixel(5_999, y)], [64, 64, 191, 191]);
        }
        let small = decode(&jpeg(1_200, 900, progressive), "small.jpg").unwrap();
        assert_eq!((small.width(), small.height()), (1_200, 900));
    }
}

#[test]
fn a_huge_png_is_read_row_by_row() {
    let image = decode(&png(WIDTH as u32, HEIGHT as u32), "scan.png").unwrap();
    assert_eq!((image.width(), image.height()), (6_000, 4_500));
    let pixel = |x: usize, y: usize| image.pixels()[(y * 6_000 + x) * 3 + 2];
    for y in [0, 4_499] {
        assert_eq!([pixel(0, y), pixel(2_999, y), pixel(3_000, y), pixel(5_999, y)], [0, 0, 255, 255]);
    }
}

#[test]
fn beyond_a_gigapixel_the_size_is_told() {
    let mut bytes = jpeg(16, 16, false);
    let frame = bytes.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    bytes[frame + 5..frame + 9].copy_from_slice(&[0x3e, 0x80, 0xff, 0xf8]);
    let message = decode(&bytes, "x.jpg").unwrap_err().to_string();
    assert!(
        message.contains("65528x16000; at most 1000000000 pixels are accepted: save it smaller"),
        "{message}"
    );
}
