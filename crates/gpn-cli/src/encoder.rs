//! Options of encoders, shared by the commands that take one.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gpn::encode::{
    EmbeddingCache, EncoderConfig, Interpolation, Layout, Pooling, Resize, Runtime, ValueRange,
};

/// How samples are prepared for an encoder. What is not given comes from the TOML file beside the model, then from its metadata.
#[derive(Args)]
#[command(next_help_heading = "Encoder")]
pub(crate) struct EncoderArguments {
    /// Height and width of the encoder's input.
    #[arg(long, value_name = "PIXELS")]
    pub(crate) encoder_size: Option<u32>,
    /// Order of its axes.
    #[arg(long, value_name = "ORDER")]
    pub(crate) encoder_layout: Option<LayoutName>,
    /// Range of pixel values before mean and std: 0..1 or 0..255.
    #[arg(long, value_name = "RANGE", value_parser = value_range)]
    pub(crate) encoder_range: Option<ValueRange>,
    /// Mean of red, green and blue, such as 0.485,0.456,0.406.
    #[arg(long, value_name = "R,G,B", value_parser = three_numbers, allow_hyphen_values = true)]
    pub(crate) encoder_mean: Option<[f32; 3]>,
    /// Standard deviation of red, green and blue.
    #[arg(long, value_name = "R,G,B", value_parser = three_numbers)]
    pub(crate) encoder_std: Option<[f32; 3]>,
    /// How a photo becomes a square.
    #[arg(long, value_name = "RULE")]
    pub(crate) encoder_resize: Option<ResizeName>,
    /// Length of the shorter side before the centre is cut out.
    #[arg(long, value_name = "PIXELS")]
    pub(crate) encoder_shorter_side: Option<u32>,
    /// How pixels are resampled.
    #[arg(long, value_name = "FILTER")]
    pub(crate) encoder_interpolation: Option<InterpolationName>,
    /// The output to take, of an encoder with several.
    #[arg(long, value_name = "NAME")]
    pub(crate) encoder_output: Option<String>,
    /// How the tokens of a text become one vector.
    #[arg(long, value_name = "WAY")]
    pub(crate) encoder_pooling: Option<PoolingName>,
    /// Whether embeddings are scaled to length 1.
    #[arg(long, value_name = "YES")]
    pub(crate) encoder_normalise: Option<bool>,
    /// Most tokens of a text; the rest is cut off.
    #[arg(long, value_name = "N")]
    pub(crate) encoder_max_tokens: Option<usize>,
    /// Run encoders by the ONNX Runtime of this shared library (in a program built with the feature `ort`).
    #[arg(long, value_name = "FILE")]
    pub(crate) onnxruntime: Option<PathBuf>,
    /// Where embeddings are kept, so that nothing is encoded twice [$XDG_CACHE_HOME/gpn or ~/.cache/gpn].
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Keep no embeddings, and look for none.
    #[arg(long, conflicts_with = "cache")]
    pub(crate) no_cache: bool,
}

impl EncoderArguments {
    /// The settings of the encoder.
    pub(crate) fn config(&self) -> EncoderConfig {
        let library = self.onnxruntime.clone();
        EncoderConfig {
            size: self.encoder_size,
            layout: self.encoder_layout.map(Into::into),
            range: self.encoder_range,
            mean: self.encoder_mean,
            std: self.encoder_std,
            resize: self.encoder_resize.map(Into::into),
            shorter_side: self.encoder_shorter_side,
            interpolation: self.encoder_interpolation.map(Into::into),
            output: self.encoder_output.clone(),
            pooling: self.encoder_pooling.map(Into::into),
            normalise: self.encoder_normalise,
            max_tokens: self.encoder_max_tokens,
            runtime: library.as_ref().map(|_| Runtime::OnnxRuntime),
            onnxruntime_library: library.or_else(|| std::env::var_os("ORT_DYLIB_PATH").map(PathBuf::from)),
        }
    }

    /// The cache to use; none where there is no place for it.
    pub(crate) fn cache(&self) -> Option<EmbeddingCache> {
        if self.no_cache {
            return None;
        }
        let folder = self.cache.clone().or_else(|| {
            let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
            let below_home = || absolute("HOME").map(|home| home.join(".cache"));
            absolute("XDG_CACHE_HOME").or_else(below_home).map(|folder| folder.join("gpn"))
        });
        folder.map(|folder| EmbeddingCache::new(&folder))
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum LayoutName {
    /// Channels, rows, columns.
    Nchw,
    /// Rows, columns, channels.
    Nhwc,
}

impl From<LayoutName> for Layout {
    fn from(name: LayoutName) -> Self {
        match name {
            LayoutName::Nchw => Self::Nchw,
            LayoutName::Nhwc => Self::Nhwc,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ResizeName {
    /// The whole photo, whatever its shape.
    Squash,
    /// The shorter side is resized and the centre cut out.
    Crop,
}

impl From<ResizeName> for Resize {
    fn from(name: ResizeName) -> Self {
        match name {
            ResizeName::Squash => Self::Squash,
            ResizeName::Crop => Self::Crop,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum InterpolationName {
    /// A triangle filter.
    Bilinear,
    /// A cubic filter.
    Bicubic,
}

impl From<InterpolationName> for Interpolation {
    fn from(name: InterpolationName) -> Self {
        match name {
            InterpolationName::Bilinear => Self::Bilinear,
            InterpolationName::Bicubic => Self::Bicubic,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum PoolingName {
    /// Their mean.
    Mean,
    /// The first token.
    Cls,
}

impl From<PoolingName> for Pooling {
    fn from(name: PoolingName) -> Self {
        match name {
            PoolingName::Mean => Self::Mean,
            PoolingName::Cls => Self::Cls,
        }
    }
}

fn value_range(text: &str) -> Result<ValueRange, String> {
    match text {
        "0..1" => Ok(ValueRange::Unit),
        "0..255" => Ok(ValueRange::Byte),
        _ => Err("give 0..1 or 0..255".into()),
    }
}

fn three_numbers(text: &str) -> Result<[f32; 3], String> {
    let numbers: Result<Vec<f32>, _> = text.split(',').map(|number| number.trim().parse()).collect();
    let three = numbers.ok().and_then(|numbers| numbers.try_into().ok());
    three.ok_or_else(|| "give three numbers, such as 0.485,0.456,0.406".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_read() {
        assert_eq!(three_numbers("1, -2.5,3"), Ok([1.0, -2.5, 3.0]));
        assert!(three_numbers("1,2").is_err() && three_numbers("a,b,c").is_err());
        assert_eq!(value_range("0..255"), Ok(ValueRange::Byte));
        assert!(value_range("0..2").is_err());
    }
}
