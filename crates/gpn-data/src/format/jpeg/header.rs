//! The segments before the scans: sizes, tables, which component uses which.

use super::huffman::{Table, TableKind};

/// Where the coefficients of a block stand, in the order in which they are coded.
pub(super) const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7,
    14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39,
    46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// The standard's limit for the blocks of a unit.
const MAX_BLOCKS_OF_UNIT: usize = 10;

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

/// What the components are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Colour {
    #[default]
    Grey,
    YCbCr,
    Rgb,
    /// Cyan, magenta, yellow, black; inverted, as all programs write them.
    Cmyk,
    /// As YCbCr for the complements of cyan, magenta and yellow, and black.
    Ycck,
}

/// Which part of which coefficients a scan codes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// The components, in the order of their blocks.
    pub(super) components: Vec<usize>,
    /// The first and last coefficient.
    pub(super) band: (usize, usize),
    /// The lowest bit that is known before, and the one that is known after the scan. 0 before says that nothing is.
    pub(super) bits: (u32, u32),
}

/// All that precedes the coded data, and the data.
#[derive(Default)]
pub(super) struct Header<'a> {
    pub(super) width: usize,
    pub(super) height: usize,
    /// One, three or four.
    pub(super) components: Vec<Component>,
    pub(super) colour: Colour,
    /// Whether scans may hold a part of the coefficients.
    pub(super) progressive: bool,
    /// Units of the scan between two restart markers; 0 for no markers.
    pub(super) restart_interval: usize,
    pub(super) exif: Option<&'a [u8]>,
    /// The scan that comes next.
    pub(super) scan: Scan,
    /// The coded data of that scan and all that follows.
    pub(super) data: &'a [u8],
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
        let mut header = Self { data: bytes.strip_prefix(&[0xff, 0xd8])?, ..Self::default() };
        if !header.next_scan()? || !header.sampling_is_treated() {
            return None;
        }
        header.colour = header.find_colour();
        Some(header)
    }

    /// Whether the whole image is coded in one sequential scan.
    pub(super) fn is_one_scan(&self) -> bool {
        !self.progressive && self.scan.components.len() == self.components.len()
    }

    /// Steps over the coded data and reads all segments up to the next scan; whether there is one before the end of the
    /// image. `None` for what is not of the kind treated here.
    pub(super) fn next_scan(&mut self) -> Option<bool> {
        let mut rest = self.data;
        loop {
            while let [0xff, 0xff, ..] = rest {
                rest = &rest[1..];
            }
            if let [0xff, 0xd9, ..] = rest {
                return Some(false);
            }
            let &[0xff, marker, high, low, ..] = rest else { return None };
            let length = usize::from(u16::from_be_bytes([high, low]));
            let body = rest.get(4..2 + length)?;
            rest = &rest[2 + length..];
            match marker {
                0xc0..=0xc2 => self.frame(body, marker == 0xc2)?,
                0xc4 => self.huffman_tables(body)?,
                0xda => {
                    self.data = rest;
                    return self.start_of_scan(body).map(|()| true);
                }
                0xdb => self.quantisation_tables(body)?,
                0xdd => self.restart_interval = usize::from(u16::from_be_bytes(body.try_into().ok()?)),
                0xe0 => self.jfif |= body.starts_with(b"JFIF\0"),
                0xe1 => self.exif = body.strip_prefix(b"Exif\0\0").or(self.exif),
                0xee if body.starts_with(b"Adobe") => self.adobe_transform = Some(*body.get(11)?),
                0xe2..=0xef | 0xfe => {}
                _ => return None,
            }
        }
    }

    /// Takes the coded data of the scan that comes next, up to the marker that ends it.
    pub(super) fn take_data(&mut self) -> Option<&'a [u8]> {
        let is_marker = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0 | 0xd0..=0xd7 | 0xff);
        let end = self.data.windows(2).position(is_marker)?;
        let (taken, rest) = self.data.split_at(end);
        self.data = rest;
        Some(taken)
    }

    fn frame(&mut self, body: &[u8], progressive: bool) -> Option<()> {
        let (&[precision, h1, h0, w1, w0, count], list) = body.split_first_chunk()?;
        let known = precision == 8 && matches!(count, 1 | 3 | 4) && self.components.is_empty();
        if !known || list.len() != 3 * usize::from(count) {
            return None;
        }
        self.progressive = progressive;
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
            let table = self.quantisation.get_mut(usize::from(which & 15))?;
            // Values of 8 bits, or of 16 in files of low quality.
            body = match which >> 4 {
                0 => {
                    let (values, rest) = rest.split_first_chunk::<64>()?;
                    *table = Some(values.map(i32::from));
                    rest
                }
                1 => {
                    let (values, rest) = rest.split_first_chunk::<128>()?;
                    let (values, _) = values.as_chunks::<2>();
                    *table = Some(std::array::from_fn(|at| i32::from(u16::from_be_bytes(values[at]))));
                    rest
                }
                _ => return None,
            };
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
        let (list, &[first, last, bits]) = list.split_last_chunk()?;
        if count == 0 || list.len() != 2 * usize::from(count) {
            return None;
        }
        let (before, after) = (u32::from(bits >> 4), u32::from(bits & 15));
        let mut scan =
            Scan { components: Vec::new(), band: (first.into(), last.into()), bits: (before, after) };
        for entry in list.chunks_exact(2) {
            // Components stand in the order of the frame.
            let from = scan.components.last().map_or(0, |&last| last + 1);
            let place = self.components.get(from..)?.iter().position(|component| component.id == entry[0])?;
            let component = &mut self.components[from + place];
            (component.dc, component.ac) = (usize::from(entry[1] >> 4), usize::from(entry[1] & 15));
            scan.components.push(from + place);
        }
        let whole = scan.band == (0, 63) && bits == 0;
        let band_is_possible = match scan.band {
            (0, 0) => true,
            (first, last) => 0 < first && first <= last && last < 64 && count == 1,
        };
        let bits_are_possible = after <= 13 && (before == 0 || before == after + 1);
        let possible = if self.progressive { band_is_possible && bits_are_possible } else { whole };
        self.scan = scan;
        possible.then_some(())
    }

    /// Whether the values of every component stand for whole columns and rows of the image.
    fn sampling_is_treated(&self) -> bool {
        let (across, down) = self.unit();
        let divides = |most: usize, blocks: usize| (1..=4).contains(&blocks) && most.is_multiple_of(blocks);
        let of_unit: usize =
            self.components.iter().map(|component| component.blocks.0 * component.blocks.1).sum();
        of_unit <= MAX_BLOCKS_OF_UNIT
            && self.components.iter().all(|c| divides(across, c.blocks.0) && divides(down, c.blocks.1))
    }

    /// Without the mark of JFIF, the colours are told by that of Adobe, or by the names of the components.
    fn find_colour(&self) -> Colour {
        match (self.components.len(), self.jfif, self.adobe_transform) {
            (1, ..) => Colour::Grey,
            (4, _, None | Some(0)) => Colour::Cmyk,
            (4, ..) => Colour::Ycck,
            (_, false, Some(0)) => Colour::Rgb,
            (_, false, None) if self.components.iter().map(|component| component.id).eq(*b"RGB") => {
                Colour::Rgb
            }
            _ => Colour::YCbCr,
        }
    }

    /// Size of a unit of the scan in blocks of the finest component, across and down.
    pub(super) fn unit(&self) -> (usize, usize) {
        let most = |of: fn(&Component) -> usize| self.components.iter().map(of).max().unwrap_or(0);
        (most(|component| component.blocks.0), most(|component| component.blocks.1))
    }

    pub(super) fn quantisation(&self, component: &Component) -> Option<&[i32; 64]> {
        self.quantisation.get(component.quantisation)?.as_ref()
    }

    /// The codes of a component's first coefficients.
    pub(super) fn dc(&self, component: &Component) -> Option<&Table> {
        self.dc.get(component.dc)?.as_deref()
    }

    /// The codes of a component's other coefficients.
    pub(super) fn ac(&self, component: &Component) -> Option<&Table> {
        self.ac.get(component.ac)?.as_deref()
    }
}
