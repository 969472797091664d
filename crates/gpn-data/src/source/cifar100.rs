//! `cifar100`: the binary version of CIFAR-100, as a directory or as the archive it is published in.
//!
//! `train.bin` and `test.bin` hold records of 3074 bytes: coarse label, fine label, and the planes of a 32x32
//! image. The fine labels are the leaves, the coarse ones a taxonomy that comes along.

use std::path::{Path, PathBuf};

use gpn_taxonomy::{Checked, TaxonomyBuilder, TaxonomyError};

use super::labels::index_labels;
use super::{Leaf, SampleInfo, SampleKind, Source};
use crate::DataError;
use crate::format::archive::{Archive, Held};
use crate::format::image::RgbImage;
use crate::progress::Watch;

const SIDE: usize = 32;
const PLANE: usize = SIDE * SIDE;
const RECORD: usize = 2 + 3 * PLANE;

pub(super) struct Cifar100 {
    path: PathBuf,
    leaves: Vec<Leaf>,
    samples: Vec<SampleInfo>,
    /// Name and records of each part that is present.
    parts: Vec<(&'static str, Held)>,
    edges: Option<Vec<(String, String)>>,
}

pub(super) fn open(path: &Path, watch: &Watch<'_>) -> Result<Cifar100, DataError> {
    let archive = Archive::open_watched(path, watch)?;
    let file = path.display().to_string();
    let train = archive.names().iter().find(|name| name.rsplit('/').next() == Some("train.bin"));
    let Some(root) = train.and_then(|name| name.strip_suffix("train.bin")).map(str::to_owned) else {
        let reason = "train.bin is missing; cifar100 expects the files of cifar-100-binary";
        return Err(DataError::unfit(file, reason));
    };
    let names = |name: &str| -> Result<Option<Vec<String>>, DataError> {
        let text = archive.text(&format!("{root}{name}"))?;
        Ok(text.map(|text| text.split_whitespace().map(str::to_owned).collect()))
    };
    let fine = names("fine_label_names.txt")?
        .ok_or_else(|| DataError::unfit(&file, format!("{root}fine_label_names.txt is missing")))?;
    let coarse = names("coarse_label_names.txt")?;

    let (mut parts, mut labels, mut files) = (Vec::new(), Vec::new(), Vec::new());
    let mut coarse_of: Vec<Option<u8>> = vec![None; fine.len()];
    for part in ["train.bin", "test.bin"] {
        let Some(index) = archive.position(&format!("{root}{part}")) else { continue };
        let (held, label) = (archive.hold(index)?, archive.label(index));
        let (records, rest) = held.bytes().as_chunks::<RECORD>();
        if !rest.is_empty() || records.is_empty() {
            let reason =
                format!("its {} bytes are no whole number of records of {RECORD}", held.bytes().len());
            return Err(DataError::malformed(label, reason));
        }
        for (row, record) in records.iter().enumerate() {
            let (above, class) = (record[0], usize::from(record[1]));
            let wrong = |reason: String| DataError::malformed(&label, format!("record {row}: {reason}"));
            let name = fine
                .get(class)
                .ok_or_else(|| wrong(format!("label {class}, but there are {} names", fine.len())))?;
            if *coarse_of[class].get_or_insert(above) != above {
                return Err(wrong(format!("class {name} stands below two coarse labels")));
            }
            labels.push(name.as_str());
            files.push(format!("{part}[{row}]"));
        }
        parts.push((part, held));
    }
    let (leaves, leaf_of) = index_labels(labels.iter().copied());
    let samples = leaf_of.into_iter().zip(files).map(|(leaf, file)| SampleInfo { leaf, file }).collect();
    let edges = coarse.map(|coarse| {
        let parent = |above: u8| coarse.get(usize::from(above)).cloned();
        let known =
            fine.iter().zip(coarse_of).filter_map(|(name, above)| Some((name.clone(), parent(above?)?)));
        known.collect()
    });
    Ok(Cifar100 { path: path.to_owned(), leaves, samples, parts, edges })
}

impl Source for Cifar100 {
    fn describe(&self) -> String {
        format!("cifar100:{}", self.path.display())
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
        for (_, held) in &self.parts {
            let records = held.bytes().as_chunks::<RECORD>().0;
            if let Some(record) = records.get(row) {
                let planes = &record[2..];
                let pixels =
                    (0..PLANE).flat_map(|at| [planes[at], planes[PLANE + at], planes[2 * PLANE + at]]);
                let image = RgbImage::new(SIDE as u32, SIDE as u32, pixels.collect());
                return image.ok_or_else(|| self.no_sample(index, "image"));
            }
            row -= records.len();
        }
        Err(self.no_sample(index, "image"))
    }

    fn taxonomy(&self) -> Option<Result<Checked, TaxonomyError>> {
        let mut builder = TaxonomyBuilder::new();
        for (child, parent) in self.edges.as_ref()? {
            let [child, parent] = [child, parent].map(|id| builder.add_class(id));
            builder.add_edge(parent, child, None);
        }
        Some(builder.build())
    }
}
