//! Encoders end to end, on the small models of `fixtures/`.

mod cache;
mod hostile;
mod made;
mod parity;
mod tables;
