//! Search among the names and ids of all classes.

use gpn::taxonomy::{Node, Taxonomy};
use memchr::memmem::Finder;

/// The ids and names of all classes in lower case, one after the other, to be looked through at the speed of memory.
///
/// Takes as much memory as the names. A search is O(length of all names).
pub(crate) struct SearchIndex {
    /// For each class `name`, [`END`], `id`, [`END`].
    text: String,
    /// Where each class begins; one more than classes.
    starts: Vec<u32>,
}

/// Stands between texts; queries do not contain it.
const END: char = '\n';

/// How well a class fits a query; the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// The id or name is the query.
    Whole,
    /// The name or id begins with it.
    Start,
    /// A word begins with it.
    Word,
    /// It is somewhere inside.
    Inside,
}

impl SearchIndex {
    /// The index of a graph.
    pub(crate) fn new(graph: &Taxonomy) -> Self {
        let mut text = String::new();
        let mut starts = Vec::with_capacity(graph.len() + 1);
        for node in graph.nodes() {
            starts.push(text.len() as u32);
            for part in [graph.name(node), graph.id(node)] {
                for letter in part.chars() {
                    if letter.is_ascii() {
                        text.push(if letter.is_ascii_control() { ' ' } else { letter.to_ascii_lowercase() });
                    } else {
                        text.extend(letter.to_lowercase());
                    }
                }
                text.push(END);
            }
        }
        starts.push(text.len() as u32);
        Self { text, starts }
    }

    /// The classes whose id or name contains `query`, letter case ignored, that `wanted` accepts: how many there are, and those
    /// from `offset` on, `limit` at most. The best fit comes first, then shorter names, then the order of the graph.
    pub(crate) fn find(
        &self,
        query: &str,
        wanted: impl Fn(Node) -> bool,
        offset: usize,
        limit: usize,
    ) -> (usize, Vec<Node>) {
        let query = query.trim().to_lowercase();
        if query.contains(END) {
            return (0, Vec::new());
        }
        let mut found: Vec<(Fit, u32, Node)> = Vec::new();
        if query.is_empty() {
            let all = (0..self.starts.len() as Node - 1).filter(|&node| wanted(node));
            found.extend(all.map(|node| (Fit::Whole, 0, node)));
        } else {
            let finder = Finder::new(query.as_bytes());
            let bytes = self.text.as_bytes();
            let mut from = 0;
            while let Some(place) = finder.find(&bytes[from..]) {
                let node = self.starts.partition_point(|&start| start as usize <= from + place) - 1;
                let end = self.starts[node + 1] as usize;
                if wanted(node as Node) {
                    let entry = &self.text[self.starts[node] as usize..end];
                    let length = entry.find(END).unwrap_or(entry.len()) as u32;
                    found.push((fit(entry, &query), length, node as Node));
                }
                from = end;
            }
        }
        let count = found.len();
        let end = offset.saturating_add(limit).min(count);
        if end < count {
            found.select_nth_unstable(end);
            found.truncate(end);
        }
        found.sort_unstable();
        (count, found.into_iter().skip(offset).map(|(_, _, node)| node).collect())
    }
}

fn fit(entry: &str, query: &str) -> Fit {
    let mut best = Fit::Inside;
    for text in entry.split_terminator(END) {
        for (place, _) in text.match_indices(query) {
            let before = text[..place].chars().next_back();
            best = best.min(match before {
                None if text.len() == query.len() => Fit::Whole,
                None => Fit::Start,
                Some(letter) if !letter.is_alphanumeric() => Fit::Word,
                Some(_) => Fit::Inside,
            });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use gpn::taxonomy::TaxonomyBuilder;

    use super::*;

    #[test]
    fn the_best_fit_comes_first() {
        let mut builder = TaxonomyBuilder::new();
        for (id, name) in
            [("n1", "Bobcat"), ("n2", "wild cat"), ("n3", "Cat"), ("cat-4", "Catfish"), ("n5", "Ärger")]
        {
            let node = builder.add_class(id);
            builder.set_name(node, name);
        }
        let index = SearchIndex::new(&builder.build().unwrap().taxonomy);
        let all = |_| true;
        assert_eq!(index.find("CAT", all, 0, 10), (4, vec![2, 3, 1, 0]));
        assert_eq!(index.find("cat", all, 1, 2), (4, vec![3, 1]));
        assert_eq!(index.find("cat", |node| node != 2, 0, 1), (3, vec![3]));
        assert_eq!(index.find("ärg", all, 0, 10), (1, vec![4]));
        assert_eq!(index.find("n2", all, 0, 10), (1, vec![1]));
        assert_eq!(index.find("", all, 3, 10), (5, vec![3, 4]));
        // The end of one text and the beginning of the next are no match.
        assert_eq!(index.find("bobcat\nn1", all, 0, 10), (0, vec![]));
        assert_eq!(index.find("", all, 100, 10), (5, vec![]));
    }
}
