//! The fields of Parquet's headers (parquet.thrift).

use Kind::{Bool, Byte, Double, Int, List, Structure, Text};

/// What a field holds.
pub(super) enum Kind {
    Bool,
    Byte,
    /// Any number of variable length: an enumeration too.
    Int,
    Double,
    Text,
    List(&'static Kind),
    Structure(Fields),
}

/// Numbers and kinds of the fields of a structure, or of the choices of a union.
pub(super) type Fields = &'static [(i16, Kind)];

const EMPTY: Kind = Structure(&[]);

pub(super) const FILE_METADATA: Fields = &[
    (1, Int),
    (2, List(&Structure(SCHEMA_ELEMENT))),
    (3, Int),
    (4, List(&Structure(ROW_GROUP))),
    (5, List(&Structure(KEY_VALUE))),
    (6, Text),
    (7, List(&Structure(COLUMN_ORDER))),
];

pub(super) const PAGE_HEADER: Fields = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Int),
    (5, Structure(DATA_PAGE)),
    (6, EMPTY),
    (7, Structure(DICTIONARY_PAGE)),
    (8, Structure(DATA_PAGE_2)),
];

const SCHEMA_ELEMENT: Fields = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Text),
    (5, Int),
    (6, Int),
    (7, Int),
    (8, Int),
    (9, Int),
    (10, Structure(LOGICAL_TYPE)),
];

const LOGICAL_TYPE: Fields = &[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Structure(&[(1, Int), (2, Int)])),
    (6, EMPTY),
    (7, Structure(TIME)),
    (8, Structure(TIME)),
    (10, Structure(&[(1, Byte), (2, Bool)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Structure(&[(1, Byte)])),
    (17, Structure(&[(1, Text)])),
    (18, Structure(&[(1, Text), (2, Int)])),
    (19, EMPTY),
];

const TIME: Fields = &[(1, Bool), (2, Structure(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))];

const ROW_GROUP: Fields = &[
    (1, List(&Structure(COLUMN_CHUNK))),
    (2, Int),
    (3, Int),
    (4, List(&Structure(&[(1, Int), (2, Bool), (3, Bool)]))),
    (5, Int),
    (6, Int),
    (7, Int),
];

const COLUMN_CHUNK: Fields =
    &[(1, Text), (2, Int), (3, Structure(COLUMN)), (4, Int), (5, Int), (6, Int), (7, Int)];

const COLUMN: Fields = &[
    (1, Int),
    (2, List(&Int)),
    (3, List(&Text)),
    (4, Int),
    (5, Int),
    (6, Int),
    (7, Int),
    (8, List(&Structure(KEY_VALUE))),
    (9, Int),
    (10, Int),
    (11, Int),
    (12, Structure(STATISTICS)),
    (13, List(&Structure(&[(1, Int), (2, Int), (3, Int)]))),
    (14, Int),
    (15, Int),
    (16, Structure(&[(1, Int), (2, List(&Int)), (3, List(&Int))])),
    (17, Structure(&[(1, Structure(BOUNDING_BOX)), (2, List(&Int))])),
];

const BOUNDING_BOX: Fields =
    &[(1, Double), (2, Double), (3, Double), (4, Double), (5, Double), (6, Double), (7, Double), (8, Double)];

const KEY_VALUE: Fields = &[(1, Text), (2, Text)];

const COLUMN_ORDER: Fields = &[(1, EMPTY), (2, EMPTY), (3, EMPTY)];

const STATISTICS: Fields =
    &[(1, Text), (2, Text), (3, Int), (4, Int), (5, Text), (6, Text), (7, Bool), (8, Bool), (9, Int)];

const DATA_PAGE: Fields = &[(1, Int), (2, Int), (3, Int), (4, Int), (5, Structure(STATISTICS))];

const DICTIONARY_PAGE: Fields = &[(1, Int), (2, Int), (3, Bool)];

const DATA_PAGE_2: Fields =
    &[(1, Int), (2, Int), (3, Int), (4, Int), (5, Int), (6, Int), (7, Bool), (8, Structure(STATISTICS))];
