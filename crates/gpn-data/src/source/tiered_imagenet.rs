//! `tiered-imagenet`: the published files of tieredImageNet.
//!
//! Each part (train, val, test) has `{part}_images_png.pkl`, a pickled list of PNG files as byte arrays, or
//! `{part}_images.npz`, the same images unpacked; and `{part}_labels.pkl`, a pickled dict with the class of
//! each image (`label_specific`) and the names of the classes (`label_specific_str`). `class_names.txt` and
//! `synsets.txt` give the WordNet id of each name. The pickles are parsed as data and never run.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::labels::index_labels;
use super::{Leaf, SampleInfo, SampleKind, Source};
use crate::DataError;
use crate::format::archive::{Archive, Held};
use crate::format::element::Element;
use crate::format::image::{MAX_PIXELS, RgbImage, decode};
use crate::format::npy::Npy;
use crate::format::pickle::{Pickle, latin1_bytes};
use crate::progress::Watch;

const PARTS: [&str; 3] = ["train", "val", "test"];

/// Names that two ImageNet classes share, with the one that is in tieredImageNet.
const SHARED_NAMES: [(&str, &str); 2] = [("crane", "n02012849"), ("maillot", "n03710721")];

pub(super) struct TieredImagenet {
    path: PathBuf,
    leaves: Vec<Leaf>,
    samples: Vec<SampleInfo>,
    parts: Vec<Images>,
}

/// The images of one part.
enum Images {
    /// PNG files inside a pickle; the flag marks bytes that are written as text.
    Encoded { held: Held, places: Vec<(Range<usize>, bool)> },
    /// Pixels `[N, H, W, 3]`, blue first: OpenCV's order, in which they are published.
    Raw(Npy),
}

impl Images {
    fn len(&self) -> usize {
        match self {
            Self::Encoded { places, .. } => places.len(),
            Self::Raw(npy) => npy.header().shape[0],
        }
    }
}

pub(super) fn open(folder: &Path, watch: &Watch<'_>) -> Result<TieredImagenet, DataError> {
    let (mut parts, mut labels, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for part in PARTS {
        watch.check()?;
        let pickled = folder.join(format!("{part}_images_png.pkl"));
        let unpacked = folder.join(format!("{part}_images.npz"));
        let (file, images) = if pickled.is_file() {
            (&pickled, encoded_images(&pickled)?)
        } else if unpacked.is_file() {
            (&unpacked, raw_images(&unpacked)?)
        } else {
            continue;
        };
        let label_file = folder.join(format!("{part}_labels.pkl"));
        let part_labels = read_labels(&label_file)?;
        if part_labels.len() != images.len() {
            let reason = format!("has {} labels, but there are {} images", part_labels.len(), images.len());
            return Err(DataError::unfit(label_file.display().to_string(), reason));
        }
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        files.extend((0..images.len()).map(|index| format!("{name}[{index}]")));
        labels.extend(part_labels);
        parts.push(images);
    }
    if parts.is_empty() {
        let reason = "none of {train,val,test}_images_png.pkl or {train,val,test}_images.npz is here";
        return Err(DataError::unfit(folder.display().to_string(), reason));
    }
    let ids = read_ids(folder)?;
    let id_of = |name: &String| match &ids {
        None => Ok(name.clone()),
        Some(ids) => ids.get(name).cloned().ok_or_else(|| {
            let reason = format!("the class `{}` of the labels is missing", name.escape_debug());
            DataError::unfit(folder.join("class_names.txt").display().to_string(), reason)
        }),
    };
    let mut name_of = HashMap::new();
    let mut label_ids = Vec::with_capacity(labels.len());
    for name in &labels {
        let id = id_of(name)?;
        name_of.entry(id.clone()).or_insert(name);
        label_ids.push(id);
    }
    let (mut leaves, leaf_of) = index_labels(label_ids.iter().map(String::as_str));
    for leaf in &mut leaves {
        leaf.name = name_of.get(&leaf.id).map(|name| (*name).clone());
    }
    let samples = leaf_of.into_iter().zip(files).map(|(leaf, file)| SampleInfo { leaf, file }).collect();
    Ok(TieredImagenet { path: folder.to_owned(), leaves, samples, parts })
}

fn encoded_images(file: &Path) -> Result<Images, DataError> {
    let (held, label) = (Held::file(file)?, file.display().to_string());
    let pickle = Pickle::parse(held.bytes(), &label)?;
    let items =
        pickle.items(pickle.root()).ok_or_else(|| pickle.malformed("is no pickled list of images"))?;
    let place = |(index, item)| {
        let place = pickle.byte_range(item);
        place.ok_or_else(|| pickle.malformed(format!("item {index} is no array of bytes")))
    };
    let places = items.iter().copied().enumerate().map(place).collect::<Result<_, _>>()?;
    Ok(Images::Encoded { held, places })
}

fn raw_images(file: &Path) -> Result<Images, DataError> {
    let archive = Archive::open(file)?;
    let Some(index) = archive.position("images.npy") else {
        return Err(DataError::unfit(file.display().to_string(), "has no array `images`"));
    };
    let npy = Npy::from_held(archive.hold(index)?, archive.label(index))?;
    match (npy.header().shape.as_slice(), npy.header().element) {
        ([_, height, width, 3], Element::U8)
            if height.checked_mul(*width).is_some_and(|pixels| pixels as u64 <= MAX_PIXELS) =>
        {
            Ok(Images::Raw(npy))
        }
        (shape, element) => {
            let reason =
                format!("images must be uint8 of shape [N, H, W, 3], not {} of {shape:?}", element.descr());
            Err(DataError::unfit(npy.file(), reason))
        }
    }
}

/// The class name of each image of a part.
fn read_labels(file: &Path) -> Result<Vec<String>, DataError> {
    let (held, label) = (Held::file(file)?, file.display().to_string());
    let pickle = Pickle::parse(held.bytes(), &label)?;
    let field = |key: &str| {
        let value = pickle.get(pickle.root(), key);
        value.ok_or_else(|| pickle.malformed(format!("is no pickled dict with `{key}`")))
    };
    let classes = pickle
        .integers(field("label_specific")?)
        .ok_or_else(|| pickle.malformed("`label_specific` is no list or array of integers"))?;
    let names = pickle
        .texts(field("label_specific_str")?)
        .ok_or_else(|| pickle.malformed("`label_specific_str` is no list of names"))?;
    let name_of = |(index, class): (usize, i64)| {
        let name = usize::try_from(class).ok().and_then(|class| names.get(class));
        let missing = || format!("image {index} has class {class}, but there are {} names", names.len());
        name.map(|name| name.trim().to_owned()).ok_or_else(|| pickle.malformed(missing()))
    };
    classes.into_iter().enumerate().map(name_of).collect()
}

/// The WordNet id of each class name; `None` where the lists are absent and names must serve as ids.
fn read_ids(folder: &Path) -> Result<Option<HashMap<String, String>>, DataError> {
    let [names, synsets] = ["class_names.txt", "synsets.txt"].map(|name| folder.join(name));
    if !names.is_file() && !synsets.is_file() {
        return Ok(None);
    }
    let lines = |file: &Path| -> Result<Vec<String>, DataError> {
        let text = String::from_utf8_lossy(Held::file(file)?.bytes()).into_owned();
        let text = text.trim_start_matches('\u{feff}').trim_end();
        Ok(text.lines().map(|line| line.trim().to_owned()).collect())
    };
    let (name_lines, synset_lines) = (lines(&names)?, lines(&synsets)?);
    if name_lines.len() != synset_lines.len() {
        let reason = format!("has {} lines, synsets.txt has {}", name_lines.len(), synset_lines.len());
        return Err(DataError::unfit(names.display().to_string(), reason));
    }
    let mut ids: HashMap<String, String> = HashMap::new();
    for (name, id) in name_lines.into_iter().zip(synset_lines) {
        let chosen = SHARED_NAMES.iter().find(|(shared, _)| *shared == name);
        if chosen.is_none_or(|(_, wanted)| *wanted == id) || !ids.contains_key(&name) {
            ids.insert(name, id);
        }
    }
    Ok(Some(ids))
}

impl Source for TieredImagenet {
    fn describe(&self) -> String {
        format!("tiered-imagenet:{}", self.path.display())
    }

    fn kind(&self) -> SampleKind {
        SampleKind::Images
    }

    fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    fn samples(&self) -> &[SampleInfo] {
        &self.samples
    }

    fn image(&self, index: usize) -> Result<RgbImage, DataError> {
        let mut row = index;
        for images in &self.parts {
            if row >= images.len() {
                row -= images.len();
                continue;
            }
            let file = &self.samples[index].file;
            let broken =
                |reason: &str| DataError::BrokenImage { file: file.clone(), reason: reason.to_owned() };
            return match images {
                Images::Encoded { held, places } => {
                    let (range, latin1) = places[row].clone();
                    let bytes = &held.bytes()[range];
                    if latin1 {
                        decode(
                            &latin1_bytes(bytes).ok_or_else(|| broken("its bytes are no Latin-1 text"))?,
                            file,
                        )
                    } else {
                        decode(bytes, file)
                    }
                }
                Images::Raw(npy) => {
                    let [height, width] = [1, 2].map(|axis| npy.header().shape[axis] as u32);
                    let pixels = npy.row(row).as_chunks::<3>().0.iter().flat_map(|[b, g, r]| [*r, *g, *b]);
                    RgbImage::new(width, height, pixels.collect())
                        .ok_or_else(|| broken("it has another size"))
                }
            };
        }
        Err(self.no_sample(index, "image"))
    }
}
