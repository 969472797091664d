//! Fitted priors as tensors, for a model file.

use super::fit::GraphPrior;
use super::text::{TextConfig, TextPrior};
use crate::error::{ModelError, Result};

/// A tensor of a fitted state: name, shape and values.
pub type StateTensor = (&'static str, Vec<usize>, Vec<f32>);

impl GraphPrior {
    /// The fitted state as tensors. `f32` holds the fit to seven digits; what is read back differs by no more.
    pub fn to_tensors(&self) -> Vec<StateTensor> {
        vec![
            row("prior.grand_mean", &self.grand),
            row("prior.within", &self.within),
            row("prior.between", &self.between),
            row("prior.slope", &self.slope),
            row("prior.weight_and_scale", &[self.weight, self.scale]),
        ]
    }

    /// The prior whose [`to_tensors`](Self::to_tensors) these are; `tensor` gives the values of a name.
    pub fn from_tensors<'a>(dim: usize, mut tensor: impl FnMut(&str) -> Option<&'a [f32]>) -> Result<Self> {
        let mut read = |name, len, positive| values(&mut tensor, name, len, positive);
        let (grand, within) = (read("prior.grand_mean", dim, false)?, read("prior.within", dim, true)?);
        let (between, slope) = (read("prior.between", dim, true)?, read("prior.slope", dim, true)?);
        let pair = read("prior.weight_and_scale", 2, false)?;
        Self { grand, within, between, weight: pair[0], slope, scale: 1.0 }.with_scale(pair[1])
    }
}

impl TextPrior {
    /// The fitted state as tensors; the settings are kept beside them ([`TextConfig`] can be serialised).
    pub fn to_tensors(&self) -> Vec<StateTensor> {
        vec![
            row("text_prior.grand_mean", &self.grand),
            row("text_prior.variance", &self.variance),
            row("text_prior.weight", &[self.weight]),
        ]
    }

    /// The prior whose [`to_tensors`](Self::to_tensors) these are; `tensor` gives the values of a name.
    pub fn from_tensors<'a>(
        config: TextConfig,
        dim: usize,
        mut tensor: impl FnMut(&str) -> Option<&'a [f32]>,
    ) -> Result<Self> {
        config.check()?;
        let mut read = |name, len, positive| values(&mut tensor, name, len, positive);
        let (grand, variance) =
            (read("text_prior.grand_mean", dim, false)?, read("text_prior.variance", dim, true)?);
        let weight = read("text_prior.weight", 1, false)?[0];
        Ok(Self { config, grand, weight, variance })
    }
}

fn row(name: &'static str, values: &[f64]) -> StateTensor {
    (name, vec![values.len()], values.iter().map(|&value| value as f32).collect())
}

fn values<'a>(
    tensor: &mut impl FnMut(&str) -> Option<&'a [f32]>,
    name: &'static str,
    len: usize,
    is_positive: bool,
) -> Result<Vec<f64>> {
    let values = tensor(name).unwrap_or_default();
    if values.len() != len || len == 0 {
        let expected = format!("{len}, at least one");
        return Err(ModelError::WrongLength { what: name, expected, got: values.len() });
    }
    let is_bad = |value: &f32| !value.is_finite() || (is_positive && *value <= 0.0);
    match values.iter().position(is_bad) {
        Some(element) => Err(ModelError::NotANumber { what: name, element, value: values[element] }),
        None => Ok(values.iter().map(|&value| f64::from(value)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prior::{FitConfig, StatisticsBuilder, TextRows};

    #[test]
    fn priors_come_back_from_their_tensors() {
        let mut builder = StatisticsBuilder::new(2, 5).unwrap();
        for class in 0..5 {
            let at = class as f32;
            builder.add(class, &[at, 1.0 - at, at + 0.5, 0.25]).unwrap();
        }
        let statistics = builder.finish().unwrap();
        let graph = crate::prior::sample::graph_of("a>b a>c b>d c>e");
        let prior =
            GraphPrior::fit(&graph, &statistics, FitConfig::default()).unwrap().with_scale(1.5).unwrap();
        let tensors = prior.to_tensors();
        let find = |name: &str| tensors.iter().find(|tensor| tensor.0 == name).map(|tensor| &tensor.2[..]);
        let back = GraphPrior::from_tensors(2, find).unwrap();
        assert_eq!(back.to_tensors(), tensors);
        assert!((back.slope()[0] - prior.slope()[0]).abs() < 1e-6 * prior.slope()[0]);
        assert!(GraphPrior::from_tensors(3, find).is_err());
        let zero = |name: &str| if name == "prior.within" { Some(&[0.0, 1.0][..]) } else { find(name) };
        assert!(GraphPrior::from_tensors(2, zero).unwrap_err().to_string().contains("prior.within"));

        let texts = TextRows::new(1, &[1.0, -1.0, 1.0, -1.0, 1.0]).unwrap();
        let (config, fit) = (TextConfig::default(), FitConfig::default());
        let tensors = TextPrior::fit(&texts, &statistics, config, fit).unwrap().to_tensors();
        let find = |name: &str| tensors.iter().find(|tensor| tensor.0 == name).map(|tensor| &tensor.2[..]);
        assert_eq!(TextPrior::from_tensors(config, 2, find).unwrap().to_tensors(), tensors);
        assert!(TextPrior::from_tensors(config, 2, |_| None).is_err());
    }
}
