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
    /// Where the name of each class ends.
    name_ends: Vec<u32>,
    /// A bit for each byte of the text: whether a word begins there. The first word of a name or id has none.
    words: Vec<u64>,
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
        let mut index = Self {
            text: String::new(),
            starts: Vec::with_capacity(graph.len() + 1),
            name_ends: Vec::with_capacity(graph.len()),
            words: Vec::new(),
        };
        for node in graph.nodes() {
            index.starts.push(index.text.len() as u32);
            index.push(graph.name(node));
            index.name_ends.push(index.text.len() as u32 - 1);
            index.push(graph.id(node));
        }
        index.starts.push(index.text.len() as u32);
        index
    }

    /// Adds a text in lower case on one line, and its end.
    fn push(&mut self, part: &str) {
        let mut in_word = true;
        for letter in part.chars().flat_map(char::to_lowercase) {
            if !in_word {
                let place = self.text.len();
                self.words.resize(place / 64 + 1, 0);
                self.words[place / 64] |= 1 << (place % 64);
            }
            self.text.push(if letter.is_ascii_control() { ' ' } else { letter });
            in_word = letter.is_alphanumeric();
        }
        self.text.push(END);
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
        let wanted = |node: usize| wanted(node as Node);
        let classes = self.name_ends.len();
        if query.is_empty() {
            let count = (0..classes).filter(|&node| wanted(node)).count();
            let page = (0..classes).filter(|&node| wanted(node)).skip(offset).take(limit);
            return (count, page.map(|node| node as Node).collect());
        }
        // A letter is in nearly all names: what cannot be among the first `keep` is not looked at further.
        let keep = offset.saturating_add(limit).max(1);
        let room = keep.saturating_mul(2).max(1024);
        let mut best: Vec<(Fit, u32, Node)> = Vec::new();
        let mut worst = (Fit::Inside, u32::MAX, Node::MAX);
        let finder = Finder::new(&query);
        let (mut count, mut node, mut from) = (0, 0, 0);
        while let Some(place) = finder.find(&self.text.as_bytes()[from..]) {
            node = self.class_at(from + place, node);
            from = self.starts[node + 1] as usize;
            if wanted(node) {
                count += 1;
                let length = self.name_ends[node] - self.starts[node];
                let start = self.fit_at_start(node, &query);
                let found = |fit| (fit, length, node as Node);
                if found(start.unwrap_or(Fit::Word)) < worst {
                    let found = found(start.unwrap_or_else(|| self.fit_inside(node, &query)));
                    if found < worst {
                        best.push(found);
                    }
                }
                if best.len() >= room {
                    worst = *best.select_nth_unstable(keep - 1).1;
                    best.truncate(keep);
                }
            }
            node += 1;
        }
        // Only the page asked for is put in order.
        if best.len() > keep {
            best.select_nth_unstable(keep);
            best.truncate(keep);
        }
        if offset >= best.len() {
            return (count, Vec::new());
        }
        best.select_nth_unstable(offset);
        let page = &mut best[offset..];
        page.sort_unstable();
        (count, page.iter().take(limit).map(|&(_, _, node)| node).collect())
    }

    /// The class whose texts a place is in; `first` or one after it. O(log of the way there).
    fn class_at(&self, place: usize, first: usize) -> usize {
        let mut step = 1;
        while self.starts.get(first + step).is_some_and(|&start| start as usize <= place) {
            step *= 2;
        }
        let (low, high) = (first + step / 2, (first + step).min(self.starts.len()));
        low + self.starts[low..high].partition_point(|&start| start as usize <= place) - 1
    }

    /// How the name or id of a class begins with the query, if one of them does.
    fn fit_at_start(&self, node: usize, query: &str) -> Option<Fit> {
        let [start, middle, end] = [self.starts[node], self.name_ends[node], self.starts[node + 1]];
        let texts = [start..middle, middle + 1..end - 1]
            .map(|part| &self.text.as_bytes()[part.start as usize..part.end as usize]);
        let query = query.as_bytes();
        if texts.contains(&query) {
            Some(Fit::Whole)
        } else {
            texts.iter().any(|text| text.starts_with(query)).then_some(Fit::Start)
        }
    }

    /// Whether a word of a class begins with the query; that no text of it does is known.
    fn fit_inside(&self, node: usize, query: &str) -> Fit {
        let (start, end) = (self.starts[node] as usize, self.starts[node + 1] as usize);
        for at in start / 64..end.div_ceil(64).min(self.words.len()) {
            let mut words = self.words[at];
            while words != 0 {
                let place = at * 64 + words.trailing_zeros() as usize;
                words &= words - 1;
                // A query has no end of a text in it, so that what fits lies in one.
                if (start..end).contains(&place)
                    && self.text.as_bytes()[place..].starts_with(query.as_bytes())
                {
                    return Fit::Word;
                }
            }
        }
        Fit::Inside
    }
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

    /// The same by looking at every class on its own.
    fn plain(names: &[(String, String)], query: &str) -> Vec<Node> {
        let fit = |text: &str| {
            let fits = text.match_indices(query).map(|(place, _)| match text[..place].chars().next_back() {
                None if text == query => Fit::Whole,
                None => Fit::Start,
                Some(letter) if !letter.is_alphanumeric() => Fit::Word,
                Some(_) => Fit::Inside,
            });
            fits.min()
        };
        let mut found: Vec<(Fit, usize, Node)> = Vec::new();
        for (node, (id, name)) in names.iter().enumerate() {
            if let Some(fit) = [id, name].into_iter().filter_map(|text| fit(text)).min() {
                found.push((fit, name.len(), node as Node));
            }
        }
        found.sort_unstable();
        found.into_iter().map(|(_, _, node)| node).collect()
    }

    #[test]
    fn pages_are_those_of_the_whole_order() {
        let mut builder = TaxonomyBuilder::new();
        let mut names = Vec::new();
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for number in 0..3000 {
            let name: String = (0..=draw(7)).map(|_| ['a', 'b', ' ', 'ä'][draw(4) as usize]).collect();
            // The builder takes no name of spaces alone.
            let (id, name) = (format!("c{number}"), format!("b{name}a"));
            let node = builder.add_class(&id);
            builder.set_name(node, &name);
            names.push((id, name));
        }
        let index = SearchIndex::new(&builder.build().unwrap().taxonomy);
        for query in ["a", "b", "c", "ä", "ab", "aa", "ba", "c1", "a b", "bä", "c2999", "99", "ba a", "x"] {
            let right = plain(&names, query);
            for (offset, limit) in [(0, 1), (0, 10), (5, 10), (0, 5000), (1000, 7), (2990, 20), (9000, 5)] {
                let page: Vec<Node> = right.iter().copied().skip(offset).take(limit).collect();
                assert_eq!(
                    index.find(query, |_| true, offset, limit),
                    (right.len(), page),
                    "{query} {offset}"
                );
            }
            let even: Vec<Node> = right.iter().copied().filter(|node| node % 2 == 0).collect();
            let page = even.iter().copied().take(10).collect();
            assert_eq!(index.find(query, |node| node % 2 == 0, 0, 10), (even.len(), page), "{query}");
        }
    }
}
