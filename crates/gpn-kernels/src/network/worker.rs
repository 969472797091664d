//! The work space of one thread.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::plan::{Plan, Shortcut, Source};
use crate::ahead::Ahead;
use crate::buffer::Buffer;
use crate::conv::PackWeights;
use crate::geometry::{ConvShape, Map};
use crate::reservation;
use crate::winograd::{self, Workspace};

/// Tiles that a group of small images should have together, to fill the matrix products, and most images of a
/// group.
const GROUP: (usize, usize) = (16, 8);
/// The same where the weights are many, and worth reading only for many tiles.
const WIDE_GROUP: (usize, usize) = (72, 18);
/// Most values of a group's largest map in inference, unless a single image has more.
const MOST_GROUP_VALUES: usize = 1 << 22;

/// Least number of images that are convolved together, for one of the maps of a convolution.
pub(crate) fn group_size(shape: &ConvShape, map: Map) -> usize {
    let (rows, columns) = map.tiles();
    let (tiles, most) = if shape.is_wide() { WIDE_GROUP } else { GROUP };
    (tiles / (rows * columns)).clamp(1, most)
}

/// Cuts a part of a batch into groups of at least `size` images and less than twice as many.
pub(crate) fn groups(part: &Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let (start, len) = (part.start, part.len());
    let count = (len / size).max(1);
    (0..count).map(move |group| start + group * len / count..start + (group + 1) * len / count)
}

/// Values of the largest outputs that inference holds dense: of layers whose output waits for its shortcut or
/// for pooling, and of shortcuts whose output waits for pooling.
fn dense_lens(plan: &Plan) -> [usize; 2] {
    let mut lens = [0; 2];
    for layer in &plan.layers {
        let Source::Layer { shortcut, pool, .. } = plan.activations[layer.output].source else { continue };
        let is_projection = layer.projection.is_some();
        let waits = matches!(shortcut, Shortcut::Projected(_)) && !is_projection;
        if waits || pool.is_some() {
            let len = &mut lens[usize::from(is_projection)];
            *len = layer.shape.output.len().max(*len);
        }
    }
    lens
}

/// Work space of one thread, allocated once.
pub(crate) struct Worker {
    /// Padded groups, `[pad][map]` as [`PadIndex`] numbers maps; empty where nothing needs one. Their borders
    /// stay zero.
    pub(crate) pads: Vec<Vec<Buffer>>,
    /// Transformed tiles of inputs and outputs.
    pub(crate) tiles: [Buffer; 2],
    /// Sums of a weight gradient.
    pub(crate) gradient: Buffer,
    /// Short sums of channels: of a layer and of a shortcut.
    pub(crate) short: [Vec<f32>; 2],
    /// Dense outputs of a group in inference, as [`dense_lens`] says. The first also holds the gradient of
    /// the last map.
    pub(crate) dense: [Buffer; 2],
}

/// The sizes of map a network has, each once.
pub(crate) struct PadIndex {
    maps: Vec<Map>,
    /// Most images that each pad of each size holds: `[pad][map]`.
    images: Vec<Vec<usize>>,
    /// Images that inference takes through the network together: what suits the smallest map, or fewer where
    /// the largest map of so many would be too large.
    inference_group: usize,
}

impl PadIndex {
    pub(crate) fn new(plan: &Plan) -> PadIndex {
        let shapes = || plan.layers.iter().map(|l| &l.shape);
        let groups = shapes().flat_map(|s| [s.input, s.output].map(|map| group_size(s, map)));
        let padded = plan.activations.iter().map(|a| a.map.padded_len());
        let largest = padded.chain(dense_lens(plan)).max().unwrap_or(1);
        let inference_group = groups.max().unwrap_or(1).min((MOST_GROUP_VALUES / largest).max(1));
        let mut maps = Vec::new();
        let used = shapes().flat_map(|s| [s.input, s.output]).chain(plan.activations.iter().map(|a| a.map));
        for map in used {
            if !maps.contains(&map) {
                maps.push(map);
            }
        }
        let most = |pad: usize, map: Map| {
            // Training has inputs in the first pads and gradients of outputs in the second.
            let users = shapes().filter(|s| match pad {
                0 => s.input == map,
                1 => s.output == map,
                _ => false,
            });
            // A group has less than twice the least number of images, which the layer's input decides.
            let in_training = users.map(|s| 2 * group_size(s, s.input) - 1).max().unwrap_or(0);
            let for_tail = usize::from(pad == 0 && map == plan.last().map);
            let is_held = plan.activations.iter().any(|a| a.pad == pad && a.map == map);
            let in_inference = if is_held { inference_group } else { 0 };
            in_training.max(for_tail).max(in_inference)
        };
        let pads = 1 + plan.activations.iter().map(|a| a.pad).max().unwrap_or(0);
        let of_pad = |pad| maps.iter().map(|&map| most(pad, map)).collect::<Vec<usize>>();
        let images = (0..pads.max(2)).map(of_pad).collect();
        PadIndex { maps, images, inference_group }
    }

    /// Number of a map's pads.
    pub(crate) fn of(&self, map: Map) -> usize {
        // invariant: `new` listed every map of the plan.
        self.maps.iter().position(|&m| m == map).expect("a map of the plan")
    }

    /// Images that inference takes through the network together.
    pub(crate) fn inference_group(&self) -> usize {
        self.inference_group
    }
}

impl Worker {
    pub(crate) fn new(plan: &Plan, index: &PadIndex) -> Worker {
        let channels = index.maps.iter().map(|m| m.c).max().unwrap_or(0);
        let shapes = || plan.layers.iter().map(|l| &l.shape);
        let gradient =
            shapes().map(|s| PackWeights::len(s).max(PackWeights::block_len(s))).max().unwrap_or(0);
        let [main, past] = dense_lens(plan).map(|len| len * index.inference_group);
        let workspace =
            shapes().map(|s| winograd::workspace_len(s.input.c.max(s.output.c))).max().unwrap_or(0);
        let pads = index.images.iter().map(|images| {
            let sizes = index.maps.iter().zip(images);
            sizes.map(|(map, images)| Buffer::zeroed(images * map.padded_len())).collect()
        });
        Worker {
            pads: pads.collect(),
            tiles: [Buffer::zeroed(workspace), Buffer::zeroed(workspace)],
            gradient: Buffer::zeroed(gradient),
            short: [vec![0.0; 2 * channels], vec![0.0; 2 * channels]],
            dense: [Buffer::zeroed(main.max(plan.last().map.len())), Buffer::zeroed(past)],
        }
    }
}

/// The workers of a network that no pass uses. A pass takes one for each of its threads and puts them back.
#[derive(Default)]
pub(crate) struct IdleWorkers(Mutex<Vec<Mutex<Worker>>>);

impl IdleWorkers {
    /// `count` workers: idle ones, and new ones where there are not enough.
    pub(crate) fn take(&self, count: usize, new: impl FnMut() -> Worker) -> Vec<Mutex<Worker>> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = idle.len().saturating_sub(count);
        let mut workers = idle.split_off(left);
        drop(idle);
        let missing = count - workers.len();
        workers.extend(std::iter::repeat_with(new).take(missing).map(Mutex::new));
        workers
    }

    /// Keeps workers for later passes, but no more than can work at once. A pass that panicked does not come
    /// here: its workers may lack a buffer.
    pub(crate) fn put(&self, workers: Vec<Mutex<Worker>>) {
        let most = reservation::capacity();
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = most.saturating_sub(idle.len());
        idle.extend(workers.into_iter().take(room));
    }
}

/// The tile buffers as the kernels take them, with the memory to fetch `ahead`.
pub(crate) fn workspace<'a>(tiles: &'a mut [Buffer; 2], ahead: Ahead<'a>) -> Workspace<'a> {
    let [first, second] = tiles;
    Workspace { first, second, ahead }
}

#[cfg(test)]
mod tests {
    use super::super::Architecture;
    use super::*;

    #[test]
    fn large_images_take_little_work_space() {
        let plan = Plan::new(Architecture::ResNet18 { channels: [64, 128, 256, 512] }, 224, 224).unwrap();
        let index = PadIndex::new(&plan);
        let worker = Worker::new(&plan, &index);
        let values = worker.pads.iter().flatten().chain(&worker.dense).map(|buffer| buffer.len());
        assert!(index.inference_group() > 1);
        assert!(values.sum::<usize>() < 5 * MOST_GROUP_VALUES);
    }
}
