//! The backbones, layer by layer.

use super::plan::{IMAGE, Plan, Shortcut, Tail};
use crate::error::KernelError;
use crate::pool::Window;
use crate::tail::AVERAGE_POOL;

/// A backbone. Convolutions have no bias, and each is followed by batch norm.
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
    /// Four blocks of three 3x3 convolutions with leaky ReLU (slope 0.1), a 1x1 convolution as shortcut and 2x2 max
    /// pooling; the mean of all pixels at the end. The field's standard is 64, 160, 320 and 640 channels.
    ResNet12 {
        /// Channels of each block.
        channels: [usize; 4],
    },
    /// torchvision's ResNet-18 without its classifier: a 7x7 convolution of stride 2, 3x3 max pooling of stride 2,
    /// four stages of two basic blocks, of which the first of a stage (but not of the first stage) has stride 2 and a 1x1
    /// convolution as shortcut; the mean of all pixels at the end. The standard is 64, 128, 256 and 512 channels.
    ResNet18 {
        /// Channels of each stage; the first are also those of the 7x7 convolution.
        channels: [usize; 4],
    },
}

const STAGE_WIDTHS: [usize; 3] = [16, 32, 64];
/// Slope of the leaky ReLU of ResNet-12.
const LEAKY: f32 = 0.1;
const RELU: f32 = 0.0;
/// Least image of ResNet-18: five halvings leave one pixel.
const LEAST_RESNET18: usize = 32;

/// The layers of an architecture, without the places of their gradients.
pub(super) fn plan(architecture: Architecture, h: usize, w: usize) -> Result<Plan, KernelError> {
    match architecture {
        Architecture::ResNet { blocks_per_stage } => {
            at_least_one("blocks_per_stage", &[blocks_per_stage])?;
            // Two strides of 2 (rounding up) must leave one window.
            at_least("ResNet", 4 * (AVERAGE_POOL - 1) + 1, h, w)?;
            Ok(resnet(blocks_per_stage, h, w))
        }
        Architecture::Conv4 { width } => {
            at_least_one("width", &[width])?;
            at_least("Conv4", 16, h, w)?;
            Ok(conv4(width, h, w))
        }
        Architecture::ResNet12 { channels } => {
            at_least_one("channels", &channels)?;
            at_least("ResNet-12", 16, h, w)?;
            Ok(resnet12(channels, h, w))
        }
        Architecture::ResNet18 { channels } => {
            at_least_one("channels", &channels)?;
            at_least("ResNet-18", LEAST_RESNET18, h, w)?;
            Ok(resnet18(channels, h, w))
        }
    }
}

fn at_least_one(what: &'static str, values: &[usize]) -> Result<(), KernelError> {
    if values.contains(&0) { Err(KernelError::EmptyArchitecture { what }) } else { Ok(()) }
}

fn at_least(architecture: &'static str, least: usize, h: usize, w: usize) -> Result<(), KernelError> {
    if h < least || w < least {
        return Err(KernelError::ImageTooSmall { architecture, least, height: h, width: w });
    }
    Ok(())
}

fn resnet(blocks: usize, h: usize, w: usize) -> Plan {
    let mut plan = Plan::of_image(Tail::AveragePool, h, w, 1);
    let stem = plan.convolve(("conv_1_3x3".into(), "bn_1".into()), IMAGE, STAGE_WIDTHS[0], (3, 1));
    let mut x = plan.activate(stem, Shortcut::None, RELU, None);
    for (stage, width) in STAGE_WIDTHS.into_iter().enumerate() {
        for block in 0..blocks {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let names = |part: char| {
                let name = format!("stage_{}.{block}", stage + 1);
                (format!("{name}.conv_{part}"), format!("{name}.bn_{part}"))
            };
            let first = plan.convolve(names('a'), x, width, (3, stride));
            let inside = plan.activate(first, Shortcut::None, RELU, None);
            let second = plan.convolve(names('b'), inside, width, (3, 1));
            x = plan.activate(second, Shortcut::Identity { of: x, stride }, RELU, None);
        }
    }
    plan
}

fn conv4(width: usize, h: usize, w: usize) -> Plan {
    let mut plan = Plan::of_image(Tail::Flatten, h, w, 1);
    let mut x = IMAGE;
    for block in 1..=4 {
        let names = (format!("block_{block}.conv"), format!("block_{block}.bn"));
        let layer = plan.convolve(names, x, width, (3, 1));
        x = plan.activate(layer, Shortcut::None, RELU, Some(Window::Two));
    }
    plan
}

fn resnet12(channels: [usize; 4], h: usize, w: usize) -> Plan {
    let mut plan = Plan::of_image(Tail::Mean, h, w, 1);
    let mut x = IMAGE;
    for (block, width) in channels.into_iter().enumerate() {
        let name = format!("layer{}.0", block + 1);
        let (mut inside, mut last) = (x, 0);
        for part in 1..=3 {
            last = plan.convolve(
                (format!("{name}.conv{part}"), format!("{name}.bn{part}")),
                inside,
                width,
                (3, 1),
            );
            if part < 3 {
                inside = plan.activate(last, Shortcut::None, LEAKY, None);
            }
        }
        let shortcut = plan.convolve(downsample(&name), x, width, (1, 1));
        x = plan.activate(last, Shortcut::Projected(shortcut), LEAKY, Some(Window::Two));
    }
    plan
}

fn resnet18(channels: [usize; 4], h: usize, w: usize) -> Plan {
    let mut plan = Plan::of_image(Tail::Mean, h, w, 3);
    let stem = plan.convolve(("conv1".into(), "bn1".into()), IMAGE, channels[0], (7, 2));
    let mut x = plan.activate(stem, Shortcut::None, RELU, Some(Window::Three));
    for (stage, width) in channels.into_iter().enumerate() {
        for block in 0..2 {
            let name = format!("layer{}.{block}", stage + 1);
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let names = |part: usize| (format!("{name}.conv{part}"), format!("{name}.bn{part}"));
            let first = plan.convolve(names(1), x, width, (3, stride));
            let inside = plan.activate(first, Shortcut::None, RELU, None);
            let second = plan.convolve(names(2), inside, width, (3, 1));
            let shortcut = if stride == 1 {
                Shortcut::Identity { of: x, stride }
            } else {
                Shortcut::Projected(plan.convolve(downsample(&name), x, width, (1, stride)))
            };
            x = plan.activate(second, shortcut, RELU, None);
        }
    }
    plan
}

/// PyTorch's names of a shortcut's convolution and batch norm.
fn downsample(block: &str) -> (String, String) {
    (format!("{block}.downsample.0"), format!("{block}.downsample.1"))
}
