//! The layers of an architecture: sizes, names and what each layer reads.

use crate::error::KernelError;
use crate::geometry::{ConvShape, IMAGE_CHANNELS, Map, padded_channels};
use crate::prologue::AVERAGE_POOL;

/// A backbone. Every convolution is 3x3 without bias and is followed by batch norm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Architecture {
    /// The CIFAR-style residual network: a convolution to 16 channels, then three stages of basic blocks of
    /// 16, 32 and 64 channels; the second and third stage start with stride 2 and a shortcut that takes
    /// every second pixel and fills the new channels with zeros; average pooling of 8x8 windows at the end.
    /// One block per stage is ResNet-08, three are ResNet-20.
    ResNet {
        /// Blocks in each of the three stages.
        blocks_per_stage: usize,
    },
    /// Four times: convolution, batch norm, ReLU, 2x2 max pooling. Width 64 is the field's standard.
    Conv4 {
        /// Channels of every layer.
        width: usize,
    },
}

/// Name and shape of a tensor, as PyTorch has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorInfo {
    /// PyTorch's name, for example `stage_1.0.conv_a.weight`.
    pub name: String,
    /// Sizes from the slowest to the fastest axis.
    pub shape: Vec<usize>,
}

impl TensorInfo {
    /// Number of values.
    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }
}

const STAGE_WIDTHS: [usize; 3] = [16, 32, 64];

/// The map that an identity shortcut starts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// ReLU of the normalised output of the first layer.
    Stem,
    /// A block output that was kept.
    Kept(usize),
}

/// How the input of a layer, or of the pooling after the last one, is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// The image.
    Image,
    /// ReLU of the normalised output of the layer before.
    Activated,
    /// The same with a shortcut added before the ReLU; kept for the shortcuts to come if it has a number.
    Block { kept: Option<usize>, origin: Origin, stride: usize },
    /// The same as `Activated`, and then 2x2 max pooling.
    Pooled,
}

/// One convolution with its batch norm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    pub(crate) shape: ConvShape,
    pub(crate) source: Source,
    /// Stride of the shortcut that leaves from this layer's input, if one does; it rejoins at the output of
    /// the next layer.
    pub(crate) shortcut_from_input: Option<usize>,
}

/// How the embedding is read from the last map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tail {
    AveragePool,
    Flatten,
}

/// An architecture at an image size.
pub(crate) struct Plan {
    pub(crate) layers: Vec<Layer>,
    /// Maps of the block outputs that are kept.
    pub(crate) kept: Vec<Map>,
    pub(crate) tail_source: Source,
    pub(crate) tail: Tail,
    /// The map the tail reads, and its real channels.
    pub(crate) tail_map: Map,
    pub(crate) tail_channels: usize,
    /// Of layer `l`: convolution, gamma, beta at `3 * l`.
    pub(crate) parameters: Vec<TensorInfo>,
    /// Of layer `l`: running mean, running variance at `2 * l`.
    pub(crate) buffers: Vec<TensorInfo>,
}

impl Plan {
    pub(crate) fn new(architecture: Architecture, h: usize, w: usize) -> Result<Plan, KernelError> {
        match architecture {
            Architecture::ResNet { blocks_per_stage: 0 } => {
                Err(KernelError::EmptyArchitecture { what: "blocks_per_stage" })
            }
            Architecture::Conv4 { width: 0 } => Err(KernelError::EmptyArchitecture { what: "width" }),
            Architecture::ResNet { blocks_per_stage } => {
                // Two strides of 2 (rounding up) must leave one window.
                at_least("ResNet", 4 * (AVERAGE_POOL - 1) + 1, h, w)?;
                Ok(resnet(blocks_per_stage, h, w))
            }
            Architecture::Conv4 { width } => {
                at_least("Conv4", 16, h, w)?;
                Ok(conv4(width, h, w))
            }
        }
    }

    fn empty(tail: Tail, h: usize, w: usize) -> Plan {
        Plan {
            layers: Vec::new(),
            kept: Vec::new(),
            tail_source: Source::Image,
            tail,
            tail_map: Map { h, w, c: IMAGE_CHANNELS },
            tail_channels: IMAGE_CHANNELS,
            parameters: Vec::new(),
            buffers: Vec::new(),
        }
    }

    /// Appends a layer that reads the current tail.
    fn push(&mut self, conv: &str, norm: &str, channels: usize, stride: usize) {
        let (map, before) = (self.tail_map, self.tail_channels);
        let is_image = self.tail_source == Source::Image;
        let shape = ConvShape::new(map.h, map.w, (before, channels), stride, is_image);
        self.layers.push(Layer { shape, source: self.tail_source, shortcut_from_input: None });
        self.tail_source = Source::Activated;
        self.tail_map = shape.output;
        self.tail_channels = channels;
        let mut parameter = |name: String, shape| self.parameters.push(TensorInfo { name, shape });
        parameter(format!("{conv}.weight"), vec![channels, before, 3, 3]);
        parameter(format!("{norm}.weight"), vec![channels]);
        parameter(format!("{norm}.bias"), vec![channels]);
        for name in ["running_mean", "running_var"] {
            self.buffers.push(TensorInfo { name: format!("{norm}.{name}"), shape: vec![channels] });
        }
    }

    pub(crate) fn embedding_len(&self) -> usize {
        let Map { h, w, .. } = self.tail_map;
        match self.tail {
            Tail::AveragePool => self.tail_channels * (h / AVERAGE_POOL) * (w / AVERAGE_POOL),
            Tail::Flatten => self.tail_channels * h * w,
        }
    }
}

fn at_least(architecture: &'static str, least: usize, h: usize, w: usize) -> Result<(), KernelError> {
    if h < least || w < least {
        return Err(KernelError::ImageTooSmall { architecture, least, height: h, width: w });
    }
    Ok(())
}

fn resnet(blocks: usize, h: usize, w: usize) -> Plan {
    let mut plan = Plan::empty(Tail::AveragePool, h, w);
    plan.push("conv_1_3x3", "bn_1", STAGE_WIDTHS[0], 1);
    let mut origin = Origin::Stem;
    for (stage, width) in STAGE_WIDTHS.into_iter().enumerate() {
        for block in 0..blocks {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let name = format!("stage_{}.{block}", stage + 1);
            let first = plan.layers.len();
            plan.push(&format!("{name}.conv_a"), &format!("{name}.bn_a"), width, stride);
            plan.layers[first].shortcut_from_input = Some(stride);
            plan.push(&format!("{name}.conv_b"), &format!("{name}.bn_b"), width, 1);
            // The last block's output goes to the pooling only.
            let is_last = stage + 1 == STAGE_WIDTHS.len() && block + 1 == blocks;
            let kept = (!is_last).then_some(plan.kept.len());
            plan.tail_source = Source::Block { kept, origin, stride };
            if let Some(number) = kept {
                plan.kept.push(plan.tail_map);
                origin = Origin::Kept(number);
            }
        }
    }
    plan
}

fn conv4(width: usize, h: usize, w: usize) -> Plan {
    let mut plan = Plan::empty(Tail::Flatten, h, w);
    for block in 1..=4 {
        plan.push(&format!("block_{block}.conv"), &format!("block_{block}.bn"), width, 1);
        plan.tail_source = Source::Pooled;
        let map = plan.tail_map;
        plan.tail_map = Map { h: map.h / 2, w: map.w / 2, c: padded_channels(width) };
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embeddings_have_the_lengths_of_the_original() {
        for (size, len) in [(32, 64), (64, 256), (84, 256), (112, 576)] {
            let plan = Plan::new(Architecture::ResNet { blocks_per_stage: 1 }, size, size);
            assert_eq!(plan.map(|p| p.embedding_len()), Ok(len));
        }
        let plan = Plan::new(Architecture::Conv4 { width: 64 }, 84, 84);
        assert_eq!(plan.map(|p| p.embedding_len()), Ok(1600));
    }

    #[test]
    fn small_images_and_empty_networks_are_refused() {
        let refused = |a, h, w| Plan::new(a, h, w).err();
        let resnet = Architecture::ResNet { blocks_per_stage: 1 };
        assert!(matches!(refused(resnet, 28, 64), Some(KernelError::ImageTooSmall { least: 29, .. })));
        assert!(refused(resnet, 29, 29).is_none());
        assert!(matches!(
            refused(Architecture::Conv4 { width: 8 }, 64, 15),
            Some(KernelError::ImageTooSmall { least: 16, .. })
        ));
        assert!(refused(Architecture::Conv4 { width: 0 }, 64, 64).is_some());
        assert!(refused(Architecture::ResNet { blocks_per_stage: 0 }, 64, 64).is_some());
    }

    #[test]
    fn resnet20_has_nineteen_convolutions() {
        let Ok(plan) = Plan::new(Architecture::ResNet { blocks_per_stage: 3 }, 32, 32) else { panic!() };
        assert_eq!(plan.layers.len(), 19);
        assert_eq!(plan.parameters[3 * 18].name, "stage_3.2.conv_b.weight");
    }
}
