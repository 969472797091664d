//! "Did you mean": the known name nearest to a mistyped one.

/// A hint for an unknown `name`: the nearest of `known` where one is near, otherwise a request to choose.
pub(crate) fn hint(name: &str, known: &[&str]) -> String {
    let name = name.to_lowercase();
    known
        .iter()
        .map(|candidate| (edit_distance(&name, candidate), candidate))
        .min_by_key(|&(distance, _)| distance)
        .filter(|&(distance, candidate)| distance <= candidate.len().div_ceil(2))
        .map_or_else(|| "choose one of the known names".into(), |(_, near)| format!("did you mean `{near}`?"))
}

/// Levenshtein distance in `O(a * b)`.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &cb) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("resnet8", "resnet08"), 1);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }

    #[test]
    fn near_names_are_proposed_and_far_ones_are_not() {
        assert_eq!(hint("ResNet8", &["resnet08", "conv4"]), "did you mean `resnet08`?");
        assert_eq!(hint("transformer", &["mlp", "conv4"]), "choose one of the known names");
    }
}
