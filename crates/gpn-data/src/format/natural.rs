//! Natural order of paths: `image_2.jpg` comes before `image_10.jpg`.

use std::cmp::Ordering;

/// Compares two paths folder by folder, runs of digits by their value. Equal only for equal paths, so
/// sorting with it gives one order whatever the order of the input.
///
/// ```
/// use gpn_data::format::natural::compare;
/// let mut names = vec!["a/10.png", "a/9.png", "a-b/1.png", "a/09.png"];
/// names.sort_by(|x, y| compare(x, y));
/// assert_eq!(names, ["a/09.png", "a/9.png", "a/10.png", "a-b/1.png"]);
/// ```
pub fn compare(a: &str, b: &str) -> Ordering {
    let folders = |path: &str| path.matches('/').count();
    let (mut left, mut right) = (a.split('/'), b.split('/'));
    loop {
        match (left.next(), right.next()) {
            (Some(x), Some(y)) => match compare_names(x.as_bytes(), y.as_bytes()) {
                Ordering::Equal => {}
                order => return order,
            },
            _ => return folders(a).cmp(&folders(b)).then_with(|| a.cmp(b)),
        }
    }
}

/// Compares two names without separators; `01` and `1` are equal here and told apart by the caller.
fn compare_names(mut a: &[u8], mut b: &[u8]) -> Ordering {
    loop {
        match (a.first(), b.first()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let (number_a, rest_a) = split_number(a);
                let (number_b, rest_b) = split_number(b);
                let order = number_a.len().cmp(&number_b.len()).then_with(|| number_a.cmp(number_b));
                if order != Ordering::Equal {
                    return order;
                }
                (a, b) = (rest_a, rest_b);
            }
            (Some(x), Some(y)) => {
                if x != y {
                    return x.cmp(y);
                }
                (a, b) = (&a[1..], &b[1..]);
            }
        }
    }
}

/// Splits leading digits (without leading zeros) from the rest.
fn split_number(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|c| !c.is_ascii_digit()).unwrap_or(text.len());
    let zeros = text[..end].iter().take_while(|&&c| c == b'0').count();
    (&text[zeros..end], &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_value() {
        assert_eq!(compare("n1_2.JPEG", "n1_10.JPEG"), Ordering::Less);
        assert_eq!(compare("x007", "x7"), Ordering::Less);
        assert_eq!(compare("x7", "x007"), Ordering::Greater);
        assert_eq!(compare("x007a", "x7b"), Ordering::Less);
        assert_eq!(compare("99999999999999999999998", "99999999999999999999999"), Ordering::Less);
    }

    #[test]
    fn folders_are_compared_before_their_content() {
        assert_eq!(compare("a/z", "a b/a"), Ordering::Less);
        assert_eq!(compare("a", "a/b"), Ordering::Less);
        assert_eq!(compare("a/b", "a/b"), Ordering::Equal);
    }
}
