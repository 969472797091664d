//! The coded data of a file with one scan: unit by unit, block by block, to planes of values.

use super::Plane;
use super::header::{Component, Header, ZIGZAG};
use super::huffman::{Bits, Table};
use super::idct::{Block, Inverse};

/// A component with its tables and the plane it fills.
struct Channel<'a> {
    quantisation: &'a [i32; 64],
    dc: &'a Table,
    ac: &'a Table,
    /// The last block's first coefficient.
    previous: i32,
    blocks: (usize, usize),
    plane: Plane,
    inverse: Inverse,
    /// Values across and down that a block gives.
    side: usize,
}

/// The planes of all components; `None` if anything in the data is not as it should be.
pub(super) fn decode(header: &Header<'_>, by: usize) -> Option<Vec<Plane>> {
    let unit = header.unit();
    let units = (header.width.div_ceil(8 * unit.0), header.height.div_ceil(8 * unit.1));
    let mut channels = header
        .components
        .iter()
        .map(|component| Channel::new(header, component, unit, units, by))
        .collect::<Option<Vec<_>>>()?;
    let mut bits = Bits::new(header.data);
    let mut block = Block::default();
    for index in 0..units.0 * units.1 {
        if header.restart_interval > 0 && index > 0 && index % header.restart_interval == 0 {
            bits.restart((index / header.restart_interval - 1) as u8 & 7)?;
            for channel in &mut channels {
                channel.previous = 0;
            }
        }
        let (column, row) = (index % units.0, index / units.0);
        for channel in &mut channels {
            let (across, down) = channel.blocks;
            let (inverse, side) = (channel.inverse, channel.side);
            for y in row * down..(row + 1) * down {
                for x in column * across..(column + 1) * across {
                    let stride = channel.plane.stride;
                    let single = channel.read(&mut bits, &mut block)?;
                    let out = &mut channel.plane.values[y * side * stride + x * side..];
                    if single {
                        inverse.flat_block(block.0[0], out, stride);
                    } else {
                        inverse.block(&block, out, stride);
                        block = Block::default();
                    }
                }
            }
        }
    }
    (!bits.ran_out()).then(|| channels.into_iter().map(|channel| channel.plane).collect())
}

impl<'a> Channel<'a> {
    fn new(
        header: &'a Header<'_>,
        component: &Component,
        unit: (usize, usize),
        units: (usize, usize),
        by: usize,
    ) -> Option<Self> {
        let blocks = component.blocks;
        let spread = (unit.0 / blocks.0, unit.1 / blocks.1);
        let (plane, by) = Plane::new(header, spread, (units.0 * blocks.0, units.1 * blocks.1), by);
        Some(Self {
            quantisation: header.quantisation(component)?,
            dc: header.dc(component)?,
            ac: header.ac(component)?,
            previous: 0,
            blocks,
            plane,
            inverse: Inverse::detect(by),
            side: 8 / by,
        })
    }

    /// Reads the coefficients of a block, times their quantisation, into `block`, which holds zeros beyond the first;
    /// whether the first is the only one.
    #[inline]
    fn read(&mut self, bits: &mut Bits<'_>, block: &mut Block) -> Option<bool> {
        let size = bits.symbol(self.dc)?;
        self.previous = self.previous.wrapping_add(bits.value(u32::from(size)));
        block.0[0] = i32::from(self.previous as i16) * self.quantisation[0];
        let (mut at, mut single) = (1, true);
        while at < 64 {
            let symbol = bits.symbol(self.ac)?;
            let (zeros, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
            if size == 0 {
                // Sixteen zeros, or none but zeros to the end.
                if zeros < 15 {
                    break;
                }
                at += 16;
                continue;
            }
            at += zeros;
            let (&place, &quantisation) = (ZIGZAG.get(at)?, self.quantisation.get(at)?);
            block.0[usize::from(place) & 63] = bits.value(size) * quantisation;
            single = false;
            at += 1;
        }
        Some(single)
    }
}
