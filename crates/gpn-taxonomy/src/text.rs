//! Many short strings in one allocation, and a table that finds a string's position.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

/// Strings stored end to end; the position of a string is the order in which it was pushed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    bytes: String,
    ends: Vec<usize>,
}

impl Texts {
    pub(crate) fn push(&mut self, text: &str) {
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }

    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

/// Distinct strings and the position of each. The hash is seeded at random, so that no input can force
/// collisions; positions depend on the order of insertion alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ids {
    texts: Texts,
    entries: HashTable<Entry>,
    hasher: RandomState,
}

/// The hash is kept, so that growing the table does not visit all strings again.
#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u64,
    at: u32,
}

impl Ids {
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(crate) fn get(&self, at: u32) -> &str {
        self.texts.get(at as usize)
    }

    pub(crate) fn find(&self, id: &str) -> Option<u32> {
        self.find_hashed(self.hasher.hash_one(id), id)
    }

    fn find_hashed(&self, hash: u64, id: &str) -> Option<u32> {
        let is_it = |entry: &Entry| entry.hash == hash && self.texts.get(entry.at as usize) == id;
        self.entries.find(hash, is_it).map(|entry| entry.at)
    }

    /// The position of `id`, which is added when it is new.
    pub(crate) fn insert(&mut self, id: &str) -> u32 {
        let hash = self.hasher.hash_one(id);
        if let Some(at) = self.find_hashed(hash, id) {
            return at;
        }
        let at = self.texts.len() as u32;
        self.texts.push(id);
        self.entries.insert_unique(hash, Entry { hash, at }, |entry| entry.hash);
        at
    }

    pub(crate) fn shrink(&mut self) {
        self.texts.shrink();
        self.entries.shrink_to_fit(|entry| entry.hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_keeps_its_first_position() {
        let mut ids = Ids::default();
        assert_eq!([ids.insert("a"), ids.insert(""), ids.insert("b"), ids.insert("a")], [0, 1, 2, 0]);
        ids.shrink();
        assert_eq!((ids.find("b"), ids.find("c"), ids.get(1), ids.len()), (Some(2), None, "", 3));
    }
}
