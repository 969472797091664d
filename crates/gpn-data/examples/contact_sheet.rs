//! Writes a picture of the built-in data set: `contact_sheet OUT.png [SAMPLES [BLOCKS [SIZE]]]`.

use std::error::Error;

use gpn_data::synthetic::{SyntheticConfig, contact_sheet};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let out = arguments.next().ok_or("usage: contact_sheet OUT.png [SAMPLES [BLOCKS [SIZE]]]")?;
    let mut number = |default| arguments.next().map_or(Ok(default), |text| text.parse::<u32>());
    let (samples, blocks) = (number(10)?, number(3)?);
    let config = SyntheticConfig { size: number(32)?, ..SyntheticConfig::default() };
    let sheet = contact_sheet(&config, samples, blocks)?;
    image::save_buffer(&out, &sheet.pixels, sheet.width, sheet.height, image::ColorType::Rgb8)?;
    println!("{out}: {}x{} pixels", sheet.width, sheet.height);
    Ok(())
}
