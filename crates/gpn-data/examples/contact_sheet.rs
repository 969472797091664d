//! Writes a picture of the built-in data set: `contact_sheet OUT.png [SAMPLES [BLOCKS [SIZE]]]`.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;

use gpn_data::synthetic::{SyntheticConfig, contact_sheet};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let out = arguments.next().ok_or("usage: contact_sheet OUT.png [SAMPLES [BLOCKS [SIZE]]]")?;
    let mut number = |default| arguments.next().map_or(Ok(default), |text| text.parse::<u32>());
    let (samples, blocks) = (number(10)?, number(3)?);
    let config = SyntheticConfig { size: number(32)?, ..SyntheticConfig::default() };
    let sheet = contact_sheet(&config, samples, blocks)?;
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(&out)?), sheet.width, sheet.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(&sheet.pixels)?;
    println!("{out}: {}x{} pixels", sheet.width, sheet.height);
    Ok(())
}
