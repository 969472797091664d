//! A picture of the data set: samples side by side, one line per class, relatives together.

use super::shape::Shape;
use super::{SyntheticConfig, SyntheticError, draw, leaves};

/// An RGB picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Rows of RGB bytes.
    pub pixels: Vec<u8>,
}

/// Pixels between images, and between shapes.
const GAP: u32 = 2;
const GROUP_GAP: u32 = 8;

/// A sheet of `samples` images of each leaf in `blocks` side-by-side blocks. A leaf is one line; the leaves of
/// a shape stay together, set apart from the next shape by a wider gap.
pub fn contact_sheet(config: &SyntheticConfig, samples: u32, blocks: u32) -> Result<Sheet, SyntheticError> {
    let samples = samples.min(config.per_leaf);
    let cell = config.size + GAP;
    let mut groups: Vec<(Shape, Vec<usize>)> = Vec::new();
    for (index, leaf) in leaves().iter().enumerate() {
        match groups.last_mut() {
            Some((shape, members)) if *shape == leaf.look.shape => members.push(index),
            _ => groups.push((leaf.look.shape, vec![index])),
        }
    }
    let group_height = |members: &[usize]| members.len() as u32 * cell + GROUP_GAP;
    let total: u32 = groups.iter().map(|(_, members)| group_height(members)).sum();
    let target = total.div_ceil(blocks.max(1));

    let (mut block, mut y, mut height) = (0, GAP, 0);
    let mut places = Vec::new();
    for (_, members) in &groups {
        if y + group_height(members) / 2 > target && block + 1 < blocks {
            (block, y) = (block + 1, GAP);
        }
        for &leaf in members {
            places.push((leaf, block, y));
            y += cell;
        }
        height = height.max(y);
        y += GROUP_GAP;
    }

    let block_width = samples * cell + GROUP_GAP;
    let width = GAP + (block + 1) * block_width - GROUP_GAP;
    let mut sheet = Sheet { width, height, pixels: vec![255; (width * height * 3) as usize] };
    let row_bytes = config.size as usize * 3;
    let mut image = vec![0u8; config.size as usize * row_bytes];
    for (leaf, block, top) in places {
        for sample in 0..samples {
            draw(config, leaf, sample as usize, &mut image)?;
            let left = GAP + block * block_width + sample * cell;
            for (row, line) in image.chunks_exact(row_bytes).enumerate() {
                let start = ((top as usize + row) * width as usize + left as usize) * 3;
                sheet.pixels[start..start + row_bytes].copy_from_slice(line);
            }
        }
    }
    Ok(sheet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sheet_shows_each_leaf_in_order() -> Result<(), SyntheticError> {
        let config = SyntheticConfig { size: 8, ..SyntheticConfig::default() };
        let sheet = contact_sheet(&config, 3, 4)?;
        assert_eq!(sheet.pixels.len(), (sheet.width * sheet.height * 3) as usize);
        let mut first = vec![0u8; 8 * 8 * 3];
        draw(&config, 0, 0, &mut first)?;
        let start = ((GAP * sheet.width + GAP) * 3) as usize;
        assert_eq!(sheet.pixels[start..start + 24], first[..24]);
        Ok(())
    }
}
