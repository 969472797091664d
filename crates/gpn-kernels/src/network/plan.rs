//! The layers of an architecture: sizes, names, what each layer reads and where its gradients are kept.

use super::architecture::{self, Architecture};
use crate::error::KernelError;
use crate::geometry::{ConvShape, IMAGE_CHANNELS, Map};
use crate::pool::Window;
use crate::tail::AVERAGE_POOL;

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

/// One convolution with its batch norm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    pub(crate) shape: ConvShape,
    /// The activation it reads, and the one that is made from its output.
    pub(crate) input: usize,
    pub(crate) output: usize,
    /// Where it is the convolution of a shortcut: the buffer for the gradient of its input.
    pub(crate) projection: Option<usize>,
    /// Number of the kept activation that it reads first, and therefore makes.
    pub(crate) keeps: Option<usize>,
    /// The gradient that reaches its input by way of the shortcut.
    pub(crate) past: Option<Past>,
}

/// A gradient that a shortcut leads past some layers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past {
    /// Number of its buffer.
    pub(crate) buffer: usize,
    pub(crate) map: Map,
    /// Pixels of the input from one pixel of the gradient to the next.
    pub(crate) stride: usize,
}

/// What is added to the normalised output of a layer before the activation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shortcut {
    None,
    /// Every `stride`-th pixel of an earlier activation, in as many channels as it has.
    Identity {
        of: usize,
        stride: usize,
    },
    /// The normalised output of another layer.
    Projected(usize),
}

/// How a map that layers read is made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Source {
    /// It is the image.
    Image,
    /// The normalised output of layer `main` and the shortcut, activated (`slope` below zero) and pooled.
    Layer { main: usize, shortcut: Shortcut, slope: f32, pool: Option<Window> },
}

/// A map that layers, or the tail, read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activation {
    pub(crate) source: Source,
    pub(crate) map: Map,
    /// Channels without padding.
    pub(crate) channels: usize,
    /// Its number among the activations that are kept; others are made again where they are needed.
    pub(crate) kept: Option<usize>,
    /// Number of the buffer for the gradient before its activation (at pooled pixels).
    pub(crate) gradient: usize,
    /// Which of the pads of its size inference keeps it in.
    pub(crate) pad: usize,
}

impl Activation {
    /// Whether it is no more than the activated output of one layer.
    fn is_plain(&self) -> bool {
        matches!(self.source, Source::Layer { shortcut: Shortcut::None, pool: None, .. })
    }
}

/// How the embedding is read from the last map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tail {
    /// Means of 8x8 windows.
    AveragePool,
    /// All pixels.
    Flatten,
    /// The mean of all pixels.
    Mean,
}

/// An architecture at an image size.
pub(crate) struct Plan {
    pub(crate) layers: Vec<Layer>,
    /// The first is the image, the last is what the tail reads.
    pub(crate) activations: Vec<Activation>,
    /// Maps of the activations that are kept.
    pub(crate) kept: Vec<Map>,
    /// Number of gradient buffers.
    pub(crate) gradients: usize,
    pub(crate) tail: Tail,
    /// Of layer `l`: convolution, gamma, beta at `3 * l`.
    pub(crate) parameters: Vec<TensorInfo>,
    /// Of layer `l`: running mean, running variance at `2 * l`.
    pub(crate) buffers: Vec<TensorInfo>,
}

/// Number of the image among the activations.
pub(crate) const IMAGE: usize = 0;

impl Plan {
    pub(crate) fn new(architecture: Architecture, h: usize, w: usize) -> Result<Plan, KernelError> {
        let mut plan = architecture::plan(architecture, h, w)?;
        plan.choose_kept();
        plan.lead_past();
        plan.assign_gradients();
        plan.assign_pads();
        Ok(plan)
    }

    /// A plan without layers, for images around which kernels need `border` zeros.
    pub(super) fn of_image(tail: Tail, h: usize, w: usize, border: usize) -> Plan {
        let map = Map { h, w, c: IMAGE_CHANNELS, border };
        let image = Activation {
            source: Source::Image,
            map,
            channels: IMAGE_CHANNELS,
            kept: None,
            gradient: 0,
            pad: 0,
        };
        Plan {
            layers: Vec::new(),
            activations: vec![image],
            kept: Vec::new(),
            gradients: 0,
            tail,
            parameters: Vec::new(),
            buffers: Vec::new(),
        }
    }

    /// Appends a convolution of activation `input` with its batch norm. Returns the layer's number.
    pub(super) fn convolve(
        &mut self,
        (conv, norm): (String, String),
        input: usize,
        channels: usize,
        (kernel, stride): (usize, usize),
    ) -> usize {
        let Activation { map, channels: before, .. } = self.activations[input];
        let shape = ConvShape::new(map, (before, channels), kernel, stride);
        // `activate` says what it is a part of.
        self.layers.push(Layer { shape, input, output: IMAGE, projection: None, keeps: None, past: None });
        let mut parameter = |name: String, shape| self.parameters.push(TensorInfo { name, shape });
        parameter(format!("{conv}.weight"), vec![channels, before, kernel, kernel]);
        parameter(format!("{norm}.weight"), vec![channels]);
        parameter(format!("{norm}.bias"), vec![channels]);
        for name in ["running_mean", "running_var"] {
            self.buffers.push(TensorInfo { name: format!("{norm}.{name}"), shape: vec![channels] });
        }
        self.layers.len() - 1
    }

    /// Appends the activation of layer `main`. Returns its number.
    pub(super) fn activate(
        &mut self,
        main: usize,
        shortcut: Shortcut,
        slope: f32,
        pool: Option<Window>,
    ) -> usize {
        if let Shortcut::Identity { of, .. } = shortcut {
            assert!(pool.is_none(), "the sum with an identity is not pooled");
            let is_readable = match self.activations[of].source {
                Source::Image => false,
                // What is plain is not kept, and shortcuts make it again with ReLU.
                Source::Layer { slope, .. } => slope == 0.0 || !self.activations[of].is_plain(),
            };
            assert!(is_readable, "an identity leads from a map that is kept, or from a ReLU");
        }
        let number = self.activations.len();
        let ConvShape { output, out_channels: channels, .. } = self.layers[main].shape;
        let map = pool.map_or(output, |window| window.pooled(output));
        let source = Source::Layer { main, shortcut, slope, pool };
        self.activations.push(Activation { source, map, channels, kept: None, gradient: 0, pad: 0 });
        self.layers[main].output = number;
        if let Shortcut::Projected(layer) = shortcut {
            self.layers[layer].output = number;
            self.layers[layer].projection = Some(0);
        }
        number
    }

    /// What the tail reads.
    pub(crate) fn last(&self) -> &Activation {
        // invariant: a plan begins with the image.
        self.activations.last().expect("a plan has an activation")
    }

    /// The first layer that reads an activation.
    fn first_reader(&self, activation: usize) -> usize {
        // invariant: only the last activation has no reader, and nobody asks for it.
        self.layers.iter().position(|l| l.input == activation).expect("an activation that a layer reads")
    }

    fn readers(&self, activation: usize) -> impl Iterator<Item = usize> {
        self.layers.iter().enumerate().filter(move |(_, l)| l.input == activation).map(|(number, _)| number)
    }

    /// Keeps what two layers or a later shortcut read, unless it is as quickly made again.
    fn choose_kept(&mut self) {
        for number in IMAGE + 1..self.activations.len() {
            let starts_shortcut = self.activations.iter().any(|a| {
                matches!(a.source, Source::Layer { shortcut: Shortcut::Identity { of, .. }, .. } if of == number)
            });
            let is_read_twice = self.readers(number).count() > 1;
            if (starts_shortcut || is_read_twice) && !self.activations[number].is_plain() {
                let kept = Some(self.kept.len());
                self.kept.push(self.activations[number].map);
                self.activations[number].kept = kept;
                let first = self.first_reader(number);
                self.layers[first].keeps = kept;
            }
        }
    }

    /// Notes where the gradients of shortcuts come back. Buffers are assigned later.
    fn lead_past(&mut self) {
        for number in IMAGE + 1..self.activations.len() {
            let Activation { source, map, .. } = self.activations[number];
            let Source::Layer { shortcut, .. } = source else { continue };
            let (start, map, stride) = match shortcut {
                Shortcut::None => continue,
                Shortcut::Identity { of, stride } => (of, map, stride),
                Shortcut::Projected(layer) => {
                    let Layer { shape, input, .. } = self.layers[layer];
                    (input, shape.input_gradient(), shape.stride)
                }
            };
            let first = self.first_reader(start);
            self.layers[first].past = Some(Past { buffer: 0, map, stride });
        }
    }

    /// Gives every gradient a buffer that no other needs at the same time.
    fn assign_gradients(&mut self) {
        // The layer, going back, that is the last to need what is in each buffer.
        let mut needed_until: Vec<usize> = Vec::new();
        let mut assign = |now: usize, until: usize| {
            let free = needed_until.iter().position(|&until| until > now).unwrap_or(needed_until.len());
            if free == needed_until.len() {
                needed_until.push(until);
            }
            needed_until[free] = until;
            free
        };
        let last = self.activations.len() - 1;
        self.activations[last].gradient = assign(self.layers.len(), self.gradient_needed_until(last));
        for l in (0..self.layers.len()).rev() {
            let Layer { input, projection, .. } = self.layers[l];
            let first = self.first_reader(input);
            if projection.is_some() {
                let buffer = assign(l, first);
                self.layers[l].projection = Some(buffer);
                if let Some(past) = &mut self.layers[first].past {
                    past.buffer = buffer;
                }
            } else if input != IMAGE && l == first {
                self.activations[input].gradient = assign(l, self.gradient_needed_until(input));
            }
        }
        self.gradients = needed_until.len();
        for number in IMAGE + 1..self.activations.len() {
            let Activation { source, gradient, .. } = self.activations[number];
            if let Source::Layer { shortcut: Shortcut::Identity { of, .. }, .. } = source {
                let first = self.first_reader(of);
                if let Some(past) = &mut self.layers[first].past {
                    past.buffer = gradient;
                }
            }
        }
    }

    /// The first layer that the gradient of an activation goes through or past.
    fn gradient_needed_until(&self, activation: usize) -> usize {
        let Source::Layer { main, shortcut, .. } = self.activations[activation].source else { return 0 };
        match shortcut {
            Shortcut::None => main,
            Shortcut::Identity { of, .. } => main.min(self.first_reader(of)),
            Shortcut::Projected(layer) => main.min(layer),
        }
    }

    /// Gives every activation a pad that no other of its size needs at the same time. What a shortcut leads
    /// to takes the place of what it came from.
    fn assign_pads(&mut self) {
        for number in IMAGE + 1..self.activations.len() {
            let Activation { source, map, .. } = self.activations[number];
            let Source::Layer { main, shortcut, .. } = source else { continue };
            let made = match shortcut {
                Shortcut::Projected(layer) => main.max(layer),
                _ => main,
            };
            self.activations[number].pad = if let Shortcut::Identity { of, stride: 1 } = shortcut {
                self.activations[of].pad
            } else {
                let is_taken = |pad: usize| {
                    self.activations[..number]
                        .iter()
                        .enumerate()
                        .any(|(other, a)| a.map == map && a.pad == pad && self.needed_until(other) >= made)
                };
                // invariant: fewer are taken than there are activations before this one.
                (0..=number).find(|&pad| !is_taken(pad)).unwrap_or(number)
            };
        }
    }

    /// The last layer that inference needs an activation for.
    fn needed_until(&self, activation: usize) -> usize {
        let by_shortcuts = self.activations.iter().filter_map(|a| match a.source {
            Source::Layer { main, shortcut: Shortcut::Identity { of, .. }, .. } if of == activation => {
                Some(main)
            }
            _ => None,
        });
        self.readers(activation).chain(by_shortcuts).max().unwrap_or(usize::MAX)
    }

    pub(crate) fn embedding_len(&self) -> usize {
        let Activation { map: Map { h, w, .. }, channels, .. } = *self.last();
        match self.tail {
            Tail::AveragePool => channels * (h / AVERAGE_POOL) * (w / AVERAGE_POOL),
            Tail::Flatten => channels * h * w,
            Tail::Mean => channels,
        }
    }
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
