//! Settings of an encoder as people write them: in options, in a TOML file beside the model, in the model's metadata.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{EncodeError, Result};

/// Longest TOML file that is read.
const MAX_TOML_BYTES: u64 = 1 << 20;
/// What the keys of settings in a model's metadata begin with.
const METADATA_PREFIX: &str = "gpn.";

/// Settings of an encoder. What is `None` comes from the next place: these options, then the TOML file beside the model
/// (`model.toml` beside `model.onnx`), then the model's metadata (`gpn.size`, ...), then the model's declared input and the
/// defaults.
///
/// ```
/// use gpn_encode::{EncoderConfig, Layout};
///
/// let config: EncoderConfig = toml::from_str("size = 224\nlayout = \"nhwc\"\nmean = [127, 127, 127]")?;
/// assert_eq!((config.size, config.layout), (Some(224), Some(Layout::Nhwc)));
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderConfig {
    /// Images: height and width of the input in pixels. Default: as the model declares it, else 224.
    pub size: Option<u32>,
    /// Images: order of the input's axes. Default: where the model declares three channels, else `nchw`.
    pub layout: Option<Layout>,
    /// Images: range of pixel values before `mean` and `std` are applied. Default: `0..1`.
    pub range: Option<ValueRange>,
    /// Images: subtracted from red, green and blue. Default: that of ImageNet.
    pub mean: Option<[f32; 3]>,
    /// Images: divides red, green and blue, after `mean`. Default: that of ImageNet.
    pub std: Option<[f32; 3]>,
    /// Images: how a photo becomes a square. Default: `crop`.
    pub resize: Option<Resize>,
    /// Images: length of a photo's shorter side before the centre is cut out. Default: `size` / 0.875.
    pub shorter_side: Option<u32>,
    /// Images: how pixels are resampled. Default: `bilinear`.
    pub interpolation: Option<Interpolation>,
    /// Name of the model's output to take. Default: the only one.
    pub output: Option<String>,
    /// Text: how the vectors of tokens become one. Default: as `1_Pooling/config.json` says, else `mean`.
    pub pooling: Option<Pooling>,
    /// Whether embeddings are scaled to length 1. Default: as `modules.json` says for text, else no.
    pub normalise: Option<bool>,
    /// Text: most tokens of a text; the rest is cut off. Default: as the files beside the model say, else 512.
    pub max_tokens: Option<usize>,
    /// What runs the model. Default: `tract`.
    pub runtime: Option<Runtime>,
    /// The shared library of ONNX Runtime, for `runtime = "onnxruntime"`.
    pub onnxruntime_library: Option<PathBuf>,
}

/// Order of an image's axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Channels before rows and columns: `[1, 3, height, width]`.
    Nchw,
    /// Channels last: `[1, height, width, 3]`.
    Nhwc,
}

/// Range of pixel values before they are normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValueRange {
    /// 0 to 1.
    #[serde(rename = "0..1")]
    Unit,
    /// 0 to 255.
    #[serde(rename = "0..255")]
    Byte,
}

/// How a photo becomes a square.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resize {
    /// The whole photo, whatever its shape.
    Squash,
    /// The shorter side is resized and the centre cut out.
    Crop,
}

/// How pixels are resampled, as Pillow does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interpolation {
    /// A triangle filter.
    Bilinear,
    /// A cubic filter.
    Bicubic,
}

/// How the vectors of tokens become the vector of their text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// The first one.
    Cls,
}

/// What runs a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    /// tract, a part of this program.
    #[default]
    Tract,
    /// An installed ONNX Runtime (cargo feature `ort`).
    OnnxRuntime,
}

impl EncoderConfig {
    /// Takes what is not set from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            size: self.size.or(other.size),
            layout: self.layout.or(other.layout),
            range: self.range.or(other.range),
            mean: self.mean.or(other.mean),
            std: self.std.or(other.std),
            resize: self.resize.or(other.resize),
            shorter_side: self.shorter_side.or(other.shorter_side),
            interpolation: self.interpolation.or(other.interpolation),
            output: self.output.or(other.output),
            pooling: self.pooling.or(other.pooling),
            normalise: self.normalise.or(other.normalise),
            max_tokens: self.max_tokens.or(other.max_tokens),
            runtime: self.runtime.or(other.runtime),
            onnxruntime_library: self.onnxruntime_library.or(other.onnxruntime_library),
        }
    }

    /// Reads the TOML file beside a model; the empty settings where there is none.
    pub(crate) fn beside(model: &Path) -> Result<Self> {
        let path = model.with_extension("toml");
        if !path.is_file() {
            return Ok(Self::default());
        }
        let bytes = gpn_data::format::archive::read_small_file(&path, MAX_TOML_BYTES)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| EncodeError::damaged(&path, "it is not UTF-8"))?;
        let mut config: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            let reason = error.message().replace('\n', " ");
            EncodeError::Unfit { file: format!("{}:{line}", path.display()), reason }
        })?;
        // A library is named from where the file lies.
        if let (Some(library), Some(folder)) = (&mut config.onnxruntime_library, path.parent()) {
            *library = folder.join(&*library);
        }
        Ok(config)
    }

    /// Reads the settings in a model's metadata: keys like `gpn.size`, values as in TOML; words need no quotes.
    pub(crate) fn of_metadata(model: &Path, metadata: &BTreeMap<String, String>) -> Result<Self> {
        let mut table = toml::Table::new();
        for (key, text) in metadata {
            let Some(field) = key.strip_prefix(METADATA_PREFIX) else { continue };
            let parsed = toml::from_str::<toml::Table>(&format!("value = {text}")).ok();
            let value = parsed.and_then(|mut table| table.remove("value"));
            table.insert(field.to_owned(), value.unwrap_or_else(|| toml::Value::String(text.clone())));
        }
        table.try_into().map_err(|error: toml::de::Error| {
            let reason = format!("the settings in its metadata: {}", error.message().replace('\n', " "));
            EncodeError::unfit(model, reason)
        })
    }

    /// Refuses settings that belong to the other kind of encoder.
    pub(crate) fn refuse_text_settings(&self, place: &Path) -> Result<()> {
        let set = [("pooling", self.pooling.is_some()), ("max_tokens", self.max_tokens.is_some())];
        refuse(place, &set, "is a setting of text encoders; this one is for images")
    }

    /// Refuses settings that belong to the other kind of encoder.
    pub(crate) fn refuse_image_settings(&self, place: &Path) -> Result<()> {
        let set = [
            ("size", self.size.is_some()),
            ("layout", self.layout.is_some()),
            ("range", self.range.is_some()),
            ("mean", self.mean.is_some()),
            ("std", self.std.is_some()),
            ("resize", self.resize.is_some()),
            ("shorter_side", self.shorter_side.is_some()),
            ("interpolation", self.interpolation.is_some()),
        ];
        refuse(place, &set, "is a setting of image encoders; this one is for text")
    }
}

fn refuse(place: &Path, set: &[(&'static str, bool)], reason: &str) -> Result<()> {
    match set.iter().find(|(_, is_set)| *is_set) {
        None => Ok(()),
        Some((field, _)) => {
            Err(EncodeError::Setting { place: place.display().to_string(), field, reason: reason.to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_before_the_file_and_the_file_before_metadata() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("m.onnx");
        std::fs::write(folder.path().join("m.toml"), "size = 96\nresize = \"squash\"\n").unwrap();
        let metadata =
            [("gpn.size", "32"), ("gpn.resize", "crop"), ("gpn.mean", "[1, 2, 3]"), ("author", "x")];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let options = EncoderConfig { size: Some(128), ..EncoderConfig::default() };
        let config = options
            .or(EncoderConfig::beside(&model).unwrap())
            .or(EncoderConfig::of_metadata(&model, &metadata).unwrap());
        assert_eq!((config.size, config.resize), (Some(128), Some(Resize::Squash)));
        assert_eq!((config.mean, config.std), (Some([1.0, 2.0, 3.0]), None));
    }

    #[test]
    fn a_wrong_field_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("m.onnx");
        for (text, expected) in [
            ("size = 96\nsise = 3\n", "m.toml:2: unknown field `sise`"),
            ("size = 96\nlayout = \"hwc\"\n", "m.toml:2: unknown variant `hwc`"),
            ("mean = [1, 2]\n", "m.toml:1: "),
        ] {
            std::fs::write(folder.path().join("m.toml"), text).unwrap();
            let message = EncoderConfig::beside(&model).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let metadata = [("gpn.size".to_owned(), "many".to_owned())].into();
        let message = EncoderConfig::of_metadata(&model, &metadata).unwrap_err().to_string();
        assert!(message.contains("the settings in its metadata: invalid type: string \"many\""), "{message}");
    }
}
