//! The work space of one thread.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::plan::Plan;
use crate::ahead::Ahead;
use crate::buffer::Buffer;
use crate::conv::PackWeights;
use crate::geometry::Map;
use crate::reservation;
use crate::winograd::{self, Workspace};

/// Tiles that a group of small images should have together, to fill the matrix products.
const TILES_PER_GROUP: usize = 16;
const MOST_IMAGES_PER_GROUP: usize = 8;

/// Least number of images of a map that are convolved together.
pub(crate) fn group_size(map: Map) -> usize {
    let (rows, columns) = map.tiles();
    (TILES_PER_GROUP / (rows * columns)).clamp(1, MOST_IMAGES_PER_GROUP)
}

/// Cuts a part of a batch into groups of at least `size` images and less than twice as many.
pub(crate) fn groups(part: &Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let (start, len) = (part.start, part.len());
    let count = (len / size).max(1);
    (0..count).map(move |group| start + group * len / count..start + (group + 1) * len / count)
}

/// Work space of one thread, allocated once.
pub(crate) struct Worker {
    /// Two padded groups for every size of map, numbered by [`PadIndex`]. Their borders stay zero.
    pub(crate) pads: [Vec<Buffer>; 2],
    /// Transformed tiles of inputs and outputs.
    pub(crate) tiles: [Buffer; 2],
    /// Sums of a weight gradient.
    pub(crate) gradient: Buffer,
    /// Short sums of channels.
    pub(crate) short: Vec<f32>,
    /// Dense group of the largest map.
    pub(crate) dense: Buffer,
}

/// The sizes of map a network has, each once.
pub(crate) struct PadIndex(Vec<Map>);

impl PadIndex {
    pub(crate) fn new(plan: &Plan) -> PadIndex {
        let mut maps = Vec::new();
        let used = plan.layers.iter().flat_map(|l| [l.shape.input, l.shape.output]).chain([plan.tail_map]);
        for map in used {
            if !maps.contains(&map) {
                maps.push(map);
            }
        }
        PadIndex(maps)
    }

    /// Number of a map's pads.
    pub(crate) fn of(&self, map: Map) -> usize {
        // invariant: `new` listed every map of the plan.
        self.0.iter().position(|&m| m == map).expect("a map of the plan")
    }

    /// Images that inference takes through the network together: what suits the smallest map.
    pub(crate) fn inference_group(&self) -> usize {
        self.0.iter().map(|&m| group_size(m)).max().unwrap_or(1)
    }
}

impl Worker {
    pub(crate) fn new(plan: &Plan, index: &PadIndex) -> Worker {
        let group = index.inference_group();
        let channels = index.0.iter().map(|m| m.c).max().unwrap_or(0);
        let gradient = plan.layers.iter().map(|l| PackWeights::len(&l.shape)).max().unwrap_or(0);
        let dense = plan.layers.iter().map(|l| l.shape.output.len()).max().unwrap_or(0);
        let pad = |m: &Map| Buffer::zeroed(group.max(2 * group_size(*m) - 1) * m.padded_len());
        let workspace =
            plan.layers.iter().map(|l| winograd::workspace_len(l.shape.input.c.max(l.shape.output.c)));
        let workspace = workspace.max().unwrap_or(0);
        Worker {
            pads: [index.0.iter().map(pad).collect(), index.0.iter().map(pad).collect()],
            tiles: [Buffer::zeroed(workspace), Buffer::zeroed(workspace)],
            gradient: Buffer::zeroed(gradient),
            short: vec![0.0; 2 * channels],
            dense: Buffer::zeroed(group * dense),
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

    /// Keeps workers for later passes, but no more than can work at once. A pass that panicked does not come here: its
    /// workers may lack a buffer.
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
