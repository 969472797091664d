//! "Did you mean": what to say about a mistyped name.

/// A hint for an unknown `name`: the nearest of `known` where one is near, otherwise a request to choose.
pub(crate) fn hint(name: &str, known: &[&str]) -> String {
    match gpn_taxonomy::nearest_name(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "choose one of the known names".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_proposed_and_far_ones_are_not() {
        assert_eq!(hint("ResNet8", &["resnet08", "conv4"]), "did you mean `resnet08`?");
        assert_eq!(hint("transformer", &["mlp", "conv4"]), "choose one of the known names");
    }
}
