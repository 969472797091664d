//! "Did you mean": the known name most like a mistyped one.

/// The candidate with the smallest edit distance to `query`, letter case ignored and two exchanged letters one edit, or `None` where even
/// that one differs in more than a third of its letters. Ties go to the first candidate.
///
/// O(total length of the candidates × length of the query), less where lengths differ much.
///
/// ```
/// use gpn_taxonomy::nearest_name;
///
/// assert_eq!(nearest_name("mastif", ["cat", "mastiff"]), Some("mastiff"));
/// assert_eq!(nearest_name("vehicle", ["cat", "mastiff"]), None);
/// ```
pub fn nearest_name<'a>(query: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer ids are not typed by hand, and their table would be slow to fill.
    const LONGEST: usize = 100;
    let query: Vec<char> = query.chars().take(LONGEST + 1).flat_map(char::to_lowercase).collect();
    if query.len() > LONGEST {
        return None;
    }
    let mut limit = (query.len() / 3).max(1);
    let mut nearest = None;
    let mut letters = Vec::new();
    let mut rows = Default::default();
    for candidate in candidates {
        if candidate.len() > 4 * LONGEST {
            continue;
        }
        letters.clear();
        letters.extend(candidate.chars().flat_map(char::to_lowercase));
        if letters.len().abs_diff(query.len()) > limit {
            continue;
        }
        let distance = edit_distance(&query, &letters, &mut rows);
        if distance <= limit {
            nearest = Some(candidate);
            if distance == 0 {
                break;
            }
            limit = distance - 1;
        }
    }
    nearest
}

/// Least number of letters to insert, delete or replace, or of neighbours to exchange. `rows` is reused between calls.
fn edit_distance(a: &[char], b: &[char], rows: &mut [Vec<usize>; 3]) -> usize {
    let [before, last, row] = rows;
    last.clear();
    last.extend(0..=b.len());
    for (i, x) in a.iter().enumerate() {
        row.clear();
        row.push(i + 1);
        for (j, y) in b.iter().enumerate() {
            let replace = last[j] + usize::from(x != y);
            let mut least = replace.min(row[j] + 1).min(last[j + 1] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        std::mem::swap(before, last);
        std::mem::swap(last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_wins_and_ties_go_to_the_first() {
        assert_eq!(nearest_name("n0201284", ["n02012840", "n02012849", "n0201284x"]), Some("n02012840"));
        assert_eq!(nearest_name("DOG", ["dig", "dog"]), Some("dog"));
    }

    #[test]
    fn nothing_near_is_none() {
        assert_eq!(nearest_name("crane", ["n03126707", ""]), None);
        assert_eq!(nearest_name("x", std::iter::empty()), None);
        assert_eq!(nearest_name(&"x".repeat(5000), ["x"]), None);
    }

    #[test]
    fn distances_are_those_of_levenshtein_and_neighbours_may_be_exchanged() {
        let d = |a: &str, b: &str| {
            edit_distance(
                &a.chars().collect::<Vec<_>>(),
                &b.chars().collect::<Vec<_>>(),
                &mut Default::default(),
            )
        };
        assert_eq!([d("kitten", "sitting"), d("", "ab"), d("ab", ""), d("flaw", "lawn")], [3, 2, 2, 2]);
        assert_eq!([d("dgo", "dog"), d("paer", "pear"), d("abc", "cab"), d("", "")], [1, 1, 2, 0]);
        assert_eq!(nearest_name("dgo", ["cat", "dog"]), Some("dog"));
    }
}
