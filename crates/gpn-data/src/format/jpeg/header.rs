//! The segments before the scan: sizes, tables, which component uses which.

use super::huffman::{Table, TableKind};

/// Where the coefficients of a block stand, in the order in which they are coded.
pub(super) const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7,
    14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39,
    46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// One of the components of an image: its sampling factors and tables.
#[derive(Clone, Copy, Default)]
pub(super) struct Component {
    id: u8,
    /// Blocks per unit of the scan, across and down.
    pub(super) blocks: (usize, usize),
    quantisation: usize,
    dc: usize,
    ac: usize,
}

/// All that precedes the coded data, and the data.
#[derive(Default)]
pub(super) struct Header<'a> {
    pub(super) width: usize,
    pub(super) height: usize,
    /// One or three.
    pub(super) components: Vec<Component>,
    /// Units of the scan between two restart markers; 0 for no markers.
    pub(super) restart_interval: usize,
    pub(super) exif: Option<&'a [u8]>,
    /// The coded data and all that follows.
    pub(super) scan: &'a [u8],
    /// In the order of [`ZIGZAG`].
    quantisation: [Option<[i32; 64]>; 4],
    dc: [Option<Box<Table>>; 4],
    ac: [Option<Box<Table>>; 4],
    jfif: bool,
    adobe_transform: Option<u8>,
}

impl<'a> Header<'a> {
    /// Reads all segments up to the first scan; `None` for a file that is not of the kind treated here.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut header = Self::default();
        let mut rest = bytes.strip_prefix(&[0xff, 0xd8])?;
        loop {
            while let [0xff, 0xff, ..] = rest {
                rest = &rest[1..];
            }
            let &[0xff, marker, high, low, ..] = rest else { return None };
            let length = usize::from(u16::from_be_bytes([high, low]));
            let body = rest.get(4..2 + length)?;
            rest = &rest[2 + length..];
            match marker {
                0xc0 | 0xc1 => header.frame(body)?,
                0xc4 => header.huffman_tables(body)?,
                0xda => {
                    header.scan = rest;
                    return header.start_of_scan(body).filter(|()| header.is_treated()).map(|()| header);
                }
                0xdb => header.quantisation_tables(body)?,
                0xdd => header.restart_interval = usize::from(u16::from_be_bytes(body.try_into().ok()?)),
                0xe0 => header.jfif |= body.starts_with(b"JFIF\0"),
                0xe1 => header.exif = body.strip_prefix(b"Exif\0\0").or(header.exif),
                0xee if body.starts_with(b"Adobe") => header.adobe_transform = Some(*body.get(11)?),
                0xe2..=0xef | 0xfe => {}
                _ => return None,
            }
        }
    }

    fn frame(&mut self, body: &[u8]) -> Option<()> {
        let (&[precision, h1, h0, w1, w0, count], list) = body.split_first_chunk()?;
        let known = precision == 8 && matches!(count, 1 | 3) && self.components.is_empty();
        if !known || list.len() != 3 * usize::from(count) {
            return None;
        }
        self.height = usize::from(u16::from_be_bytes([h1, h0]));
        self.width = usize::from(u16::from_be_bytes([w1, w0]));
        self.components = list
            .chunks_exact(3)
            .map(|c| Component {
                id: c[0],
                blocks: (usize::from(c[1] >> 4), usize::from(c[1] & 15)),
                quantisation: usize::from(c[2]),
                ..Component::default()
            })
            .collect();
        // The blocks of a single component are coded one by one, whatever its factors.
        if let [only] = &mut self.components[..] {
            only.blocks = (1, 1);
        }
        (self.width > 0 && self.height > 0).then_some(())
    }

    fn quantisation_tables(&mut self, mut body: &[u8]) -> Option<()> {
        while let Some((&which, rest)) = body.split_first() {
            let (values, rest) = rest.split_first_chunk::<64>()?;
            // The upper half of the byte tells of 16-bit values.
            *self.quantisation.get_mut(usize::from(which))? = Some(values.map(i32::from));
            body = rest;
        }
        Some(())
    }

    fn huffman_tables(&mut self, mut body: &[u8]) -> Option<()> {
        while let Some((&which, rest)) = body.split_first() {
            let (counts, rest) = rest.split_first_chunk::<16>()?;
            let (symbols, rest) = rest.split_at_checked(counts.iter().map(|&n| usize::from(n)).sum())?;
            let (tables, kind) = match which >> 4 {
                0 => (&mut self.dc, TableKind::Dc),
                1 => (&mut self.ac, TableKind::Ac),
                _ => return None,
            };
            *tables.get_mut(usize::from(which & 15))? = Some(Table::new(counts, symbols, kind)?);
            body = rest;
        }
        Some(())
    }

    fn start_of_scan(&mut self, body: &[u8]) -> Option<()> {
        let (&count, list) = body.split_first()?;
        let (list, &[first, last, approximation]) = list.split_last_chunk()?;
        let whole = usize::from(count) == self.components.len() && list.len() == 2 * self.components.len();
        if !whole || self.components.is_empty() || (first, last, approximation) != (0, 63, 0) {
            return None;
        }
        for (component, entry) in self.components.iter_mut().zip(list.chunks_exact(2)) {
            if entry[0] != component.id {
                return None;
            }
            (component.dc, component.ac) = (usize::from(entry[1] >> 4), usize::from(entry[1] & 15));
        }
        Some(())
    }

    /// Whether the components are grey or YCbCr, with values for one or two columns and rows each.
    fn is_treated(&self) -> bool {
        let (across, down) = self.unit();
        let is_one_or_two = |most: usize, blocks: usize| most == blocks || (most == 2 && blocks == 1);
        let sampled = self.components.iter().all(|component| {
            is_one_or_two(across, component.blocks.0) && is_one_or_two(down, component.blocks.1)
        });
        // Without the mark of JFIF, the colours are told by that of Adobe, or by the names of the components.
        let coloured = match (self.jfif, self.adobe_transform) {
            _ if self.components.len() == 1 => true,
            (true, _) | (false, Some(1)) => true,
            (false, Some(_)) => false,
            (false, None) => self.components.iter().map(|component| component.id).ne(*b"RGB"),
        };
        sampled && coloured && (1..=2).contains(&across) && (1..=2).contains(&down)
    }

    /// Size of a unit of the scan in blocks of the finest component, across and down.
    pub(super) fn unit(&self) -> (usize, usize) {
        let most = |of: fn(&Component) -> usize| self.components.iter().map(of).max().unwrap_or(0);
        (most(|component| component.blocks.0), most(|component| component.blocks.1))
    }

    /// The tables of a component: quantisation, first coefficient, other coefficients.
    pub(super) fn tables(&self, component: &Component) -> Option<(&[i32; 64], &Table, &Table)> {
        Some((
            self.quantisation.get(component.quantisation)?.as_ref()?,
            self.dc.get(component.dc)?.as_deref()?,
            self.ac.get(component.ac)?.as_deref()?,
        ))
    }
}
