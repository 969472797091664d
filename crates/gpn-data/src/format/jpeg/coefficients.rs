//! Files with several scans, progressive ones first of all: the scans fill in the coefficients of all blocks, bit by bit,
//! then every block is transformed.

use super::Plane;
use super::header::{Component, Header, Scan, ZIGZAG};
use super::huffman::{Bits, Table};
use super::idct::{Block, Inverse};

/// More scans than any encoder writes. Each passes over the whole image: many in a small file would take forever.
const MAX_SCANS: usize = 100;
/// Most blocks of all components: 820 MB of coefficients, four components of 100 megapixels.
const MAX_BLOCKS: usize = 6_400_000;
/// Where libjpeg smooths blocks whose first coefficients are not known to the last bit, which is not done here.
const SMOOTHED: usize = 10;
/// For a coefficient that no scan has coded yet.
const UNKNOWN: u32 = u32::MAX;

/// The coefficients of a component.
struct Grid {
    /// Blocks of 64, in the order of [`ZIGZAG`], row by row; filled up to whole units.
    values: Vec<[i16; 64]>,
    /// Blocks across and down, filled up to whole units of the scan.
    padded: (usize, usize),
    /// Blocks across and down that hold a part of the image.
    blocks: (usize, usize),
    /// Blocks per unit of the scan.
    in_unit: (usize, usize),
    spread: (usize, usize),
    /// As it is at the component's first scan.
    quantisation: Option<[i32; 64]>,
    /// For each coefficient, the lowest bit that is known.
    known: [u32; 64],
}

/// The planes of all components; `None` if anything in the data is not as it should be, or not complete.
pub(super) fn decode(mut header: Header<'_>, by: usize) -> Option<Vec<Plane>> {
    let unit = header.unit();
    let units = (header.width.div_ceil(8 * unit.0), header.height.div_ceil(8 * unit.1));
    let blocks: usize = header.components.iter().map(|part| part.blocks.0 * part.blocks.1).sum();
    if units.0 * units.1 * blocks > MAX_BLOCKS {
        return None;
    }
    let mut grids: Vec<Grid> =
        header.components.iter().map(|component| Grid::new(&header, component, unit, units)).collect();
    for _ in 0..MAX_SCANS {
        let data = header.take_data()?;
        for &index in &header.scan.components {
            grids[index].begin(&header, &header.components[index])?;
        }
        let mut bits = Bits::new(data);
        Pass { header: &header, grids: &mut grids, units, ends_of_band: 0 }.run(&mut bits)?;
        if bits.ran_out() {
            return None;
        }
        if !header.next_scan()? {
            let planes = grids.into_iter().map(|grid| grid.transform(&header, by));
            return planes.collect();
        }
    }
    None
}

impl Grid {
    fn new(header: &Header<'_>, component: &Component, unit: (usize, usize), units: (usize, usize)) -> Self {
        let in_unit = component.blocks;
        let spread = (unit.0 / in_unit.0, unit.1 / in_unit.1);
        let padded = (units.0 * in_unit.0, units.1 * in_unit.1);
        let blocks = (header.width.div_ceil(8 * spread.0), header.height.div_ceil(8 * spread.1));
        Self {
            values: vec![[0; 64]; padded.0 * padded.1],
            padded,
            blocks,
            in_unit,
            spread,
            quantisation: None,
            known: [UNKNOWN; 64],
        }
    }

    /// Notes what a scan will tell; `None` if that does not follow from what is known.
    fn begin(&mut self, header: &Header<'_>, component: &Component) -> Option<()> {
        if self.quantisation.is_none() {
            self.quantisation = Some(*header.quantisation(component)?);
        }
        let Scan { band: (first, last), bits: (before, after), .. } = header.scan;
        let expected = if before == 0 { UNKNOWN } else { before };
        let band = &mut self.known[first..=last];
        if band.iter().any(|&known| known != expected) {
            return None;
        }
        band.fill(after);
        // The first coefficient comes first.
        (self.known[0] != UNKNOWN).then_some(())
    }

    /// All values; `None` where libjpeg would have to guess.
    fn transform(self, header: &Header<'_>, by: usize) -> Option<Plane> {
        if self.known[..SMOOTHED].iter().any(|&known| known != 0) {
            return None;
        }
        let quantisation = self.quantisation?;
        let (mut plane, by) = Plane::new(header, self.spread, self.padded, by);
        let (inverse, side) = (Inverse::detect(by), 8 / by);
        for (index, coefficients) in self.values.iter().enumerate() {
            let (x, y) = (index % self.padded.0, index / self.padded.0);
            let mut block = Block::default();
            for ((&place, &value), &step) in ZIGZAG.iter().zip(coefficients).zip(&quantisation) {
                block.0[usize::from(place) & 63] = i32::from(value) * step;
            }
            let stride = plane.stride;
            inverse.block(&block, &mut plane.values[y * side * stride + x * side..], stride);
        }
        Some(plane)
    }
}

/// One scan.
struct Pass<'h, 'g> {
    header: &'h Header<'h>,
    grids: &'g mut [Grid],
    units: (usize, usize),
    /// How many further blocks have nothing more in the band.
    ends_of_band: u32,
}

impl Pass<'_, '_> {
    fn run(&mut self, bits: &mut Bits<'_>) -> Option<()> {
        let header = self.header;
        let interval = header.restart_interval;
        // A component alone is coded block by block, without those that fill up a unit.
        let alone = match header.scan.components[..] {
            [index] => Some(index),
            _ => None,
        };
        let (across, down) = alone.map_or(self.units, |index| self.grids[index].blocks);
        let mut previous = [0; 4];
        for index in 0..across * down {
            if interval > 0 && index > 0 && index % interval == 0 {
                bits.restart((index / interval - 1) as u8 & 7)?;
                (previous, self.ends_of_band) = ([0; 4], 0);
            }
            let (column, row) = (index % across, index / across);
            for (&component, previous) in header.scan.components.iter().zip(&mut previous) {
                let (wide, high) = if alone.is_some() { (1, 1) } else { self.grids[component].in_unit };
                for y in row * high..(row + 1) * high {
                    for x in column * wide..(column + 1) * wide {
                        self.block(bits, component, (x, y), previous)?;
                    }
                }
            }
        }
        Some(())
    }

    #[inline]
    fn block(
        &mut self,
        bits: &mut Bits<'_>,
        component: usize,
        (x, y): (usize, usize),
        previous: &mut i32,
    ) -> Option<()> {
        let header = self.header;
        let tables = &header.components[component];
        let grid = &mut self.grids[component];
        let block = &mut grid.values[y * grid.padded.0 + x];
        let Scan { band: (first, last), bits: (before, after), .. } = header.scan;
        match (first, before) {
            (0, 0) => {
                let size = bits.symbol(header.dc(tables)?)?;
                *previous = previous.wrapping_add(bits.value(u32::from(size)));
                block[0] = (*previous << after) as i16;
                if !header.progressive {
                    sequential_rest(bits, header.ac(tables)?, block)?;
                }
            }
            (0, _) => block[0] |= (bits.number(1) << after) as i16,
            (_, 0) => {
                self.ends_of_band = if self.ends_of_band > 0 {
                    self.ends_of_band - 1
                } else {
                    first_bits(bits, header.ac(tables)?, &mut block[first..=last], after)?
                }
            }
            _ => {
                let band = &mut block[first..=last];
                self.ends_of_band = next_bit(bits, header.ac(tables)?, band, after, self.ends_of_band)?;
            }
        }
        Some(())
    }
}

/// The coefficients after the first of a block that is coded whole.
fn sequential_rest(bits: &mut Bits<'_>, table: &Table, block: &mut [i16; 64]) -> Option<()> {
    let mut at = 1;
    while at < 64 {
        let symbol = bits.symbol(table)?;
        let (zeros, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
        if size == 0 {
            if zeros < 15 {
                break;
            }
            at += 16;
            continue;
        }
        at += zeros;
        *block.get_mut(at)? = bits.value(size) as i16;
        at += 1;
    }
    Some(())
}

/// The upper bits of a band. How many blocks after this one have nothing in the band.
fn first_bits(bits: &mut Bits<'_>, table: &Table, band: &mut [i16], low: u32) -> Option<u32> {
    let mut at = 0;
    while at < band.len() {
        let symbol = bits.symbol(table)?;
        let (zeros, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
        if size > 0 {
            at += zeros;
            *band.get_mut(at)? = (bits.value(size) << low) as i16;
            at += 1;
        } else if zeros == 15 {
            at += 16;
        } else {
            return Some((1 << zeros) - 1 + bits.number(zeros as u32));
        }
    }
    Some(0)
}

/// One more bit for the coefficients of a band that are not zero, and new ones of that size. How many blocks after this
/// one have nothing new in the band.
fn next_bit(
    bits: &mut Bits<'_>,
    table: &Table,
    band: &mut [i16],
    low: u32,
    mut ends_of_band: u32,
) -> Option<u32> {
    let one = 1_i16 << low;
    let mut at = 0;
    while ends_of_band == 0 && at < band.len() {
        let symbol = bits.symbol(table)?;
        let mut zeros = u32::from(symbol >> 4);
        let new = match symbol & 15 {
            0 if zeros < 15 => {
                // This block is one of them.
                ends_of_band = (1 << zeros) + bits.number(zeros);
                break;
            }
            0 => 0,
            // A new coefficient is one or minus one.
            1 => {
                if bits.number(1) == 1 {
                    one
                } else {
                    -one
                }
            }
            _ => return None,
        };
        loop {
            let value = band.get_mut(at)?;
            at += 1;
            if *value != 0 {
                refine(bits, value, one);
            } else if zeros > 0 {
                zeros -= 1;
            } else {
                *value = new;
                break;
            }
            if at == band.len() && new == 0 {
                break;
            }
        }
    }
    if ends_of_band > 0 {
        for value in band[at..].iter_mut().filter(|value| **value != 0) {
            refine(bits, value, one);
        }
        ends_of_band -= 1;
    }
    Some(ends_of_band)
}

/// Adds a bit to a coefficient, away from zero.
#[inline]
fn refine(bits: &mut Bits<'_>, value: &mut i16, one: i16) {
    if bits.number(1) == 1 && *value & one == 0 {
        *value = if *value > 0 { value.wrapping_add(one) } else { value.wrapping_sub(one) };
    }
}
