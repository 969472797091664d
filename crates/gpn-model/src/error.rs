//! What can go wrong in this crate, each message with what to do about it.

use std::path::PathBuf;

use gpn_files::ErrorKind;

/// Errors of backbones, engines, optimiser and weight files.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A backbone name that does not exist.
    #[error("unknown backbone `{name}`: {hint} (known: {known})")]
    UnknownBackbone {
        /// The name as given.
        name: String,
        /// "did you mean ..." or a general hint.
        hint: String,
        /// All names, separated by commas.
        known: String,
    },

    /// A method name that does not exist.
    #[error("unknown method `{name}`: {hint} (known: {known})")]
    UnknownMethod {
        /// The name as given.
        name: String,
        /// "did you mean ..." or a general hint.
        hint: String,
        /// All names, separated by commas.
        known: String,
    },

    /// A method of this name is known already.
    #[error("there is a method `{name}` already; give yours another name")]
    MethodExists {
        /// The name.
        name: &'static str,
    },

    /// The class graph.
    #[error(transparent)]
    Taxonomy(#[from] gpn_taxonomy::TaxonomyError),

    /// A device name that does not exist.
    #[error("unknown device `{name}`: {hint} (known: cpu, cuda, rocm, wgpu)")]
    UnknownDevice {
        /// The name as given.
        name: String,
        /// "did you mean ..." or a general hint.
        hint: String,
    },

    /// A device whose back end is not part of this build.
    #[error(
        "device `{device}` is not part of this build: build again with `cargo build --release --features {device}`, or use `cpu`"
    )]
    DeviceNotBuilt {
        /// Name of the device, which is also the name of the cargo feature.
        device: &'static str,
    },

    /// The back end is built in, but finds no hardware (or no driver).
    #[error("no `{device}` device found on this machine: check its driver, or use `cpu`")]
    DeviceNotFound {
        /// Name of the device.
        device: &'static str,
    },

    /// The device reported a failure while it computed.
    #[error("device failed during {operation}: {reason}")]
    DeviceFailed {
        /// What was being computed.
        operation: &'static str,
        /// The back end's own words.
        reason: String,
    },

    /// The kernels compute on the processor only.
    #[error("the CPU kernels do not compute backbone `{backbone}` on `{device}`: use the burn engine for it")]
    NoKernels {
        /// Name of the backbone.
        backbone: String,
        /// Name of the device.
        device: &'static str,
    },

    /// An image backbone was given embeddings, or the other way round.
    #[error("backbone `{backbone}` takes {takes}, but the samples are {given}")]
    WrongInput {
        /// Name of the backbone.
        backbone: String,
        /// What the backbone takes.
        takes: &'static str,
        /// What the samples are.
        given: String,
    },

    /// Images smaller than the backbone can reduce.
    #[error("backbone `{backbone}` needs images of at least {least}x{least}, got {height}x{width}")]
    ImageTooSmall {
        /// Name of the backbone.
        backbone: String,
        /// Smallest height and width.
        least: usize,
        /// Height given.
        height: usize,
        /// Width given.
        width: usize,
    },

    /// A setting of a backbone or head that cannot be.
    #[error("{what} must be at least 1")]
    Zero {
        /// The setting.
        what: &'static str,
    },

    /// A slice whose length does not fit.
    #[error("{what}: expected {expected}, got {got} values")]
    WrongLength {
        /// Which argument.
        what: &'static str,
        /// What would fit, in words.
        expected: String,
        /// Length given.
        got: usize,
    },

    /// A label outside the classes of the head.
    #[error("label {label} of sample {sample} is outside the {classes} classes of the classifier")]
    LabelOutOfRange {
        /// Index of the sample in the batch.
        sample: usize,
        /// The label.
        label: usize,
        /// Number of classes.
        classes: usize,
    },

    /// A label outside the classes that a network was made for.
    #[error(
        "label {label} of sample {sample}: the network was made for {way} classes, so labels are below {way}; train one for tasks of more classes"
    )]
    BeyondWay {
        /// Index of the sample among those labelled.
        sample: usize,
        /// The label.
        label: usize,
        /// Number of classes of a task.
        way: usize,
    },

    /// A setting that only makes sense above zero.
    #[error("{what} must be a positive number, got {value}")]
    NotPositive {
        /// The setting.
        what: &'static str,
        /// Its value.
        value: f32,
    },

    /// A setting outside of its range.
    #[error("{what} must be in {range}, got {value}")]
    OutOfRange {
        /// The setting.
        what: &'static str,
        /// "0 to 1" and the like.
        range: &'static str,
        /// Its value.
        value: f64,
    },

    /// NaN or infinity where a number is needed.
    #[error("{what}: value {element} is {value}; look for broken samples")]
    NotANumber {
        /// Which argument.
        what: &'static str,
        /// First value that is not finite.
        element: usize,
        /// That value.
        value: f32,
    },

    /// No class has two samples that differ, so nothing says how far samples are from the mean of their class.
    #[error("samples do not scatter within any class: at least one class needs two samples that differ")]
    NoScatter,

    /// Too few classes to learn from how classes differ.
    #[error("{got} classes with samples: the graph prior needs at least {least} to learn how classes differ")]
    TooFewClasses {
        /// The least number.
        least: usize,
        /// Number of classes with samples.
        got: usize,
    },

    /// A method that must be fitted to training classes first.
    #[error("method `{method}` is not fitted to the training classes yet")]
    NotFitted {
        /// Name of the method.
        method: &'static str,
    },

    /// A backward pass that has no forward pass to belong to.
    #[error("backward pass without a forward pass: call `forward` once before each `backward`")]
    NoForward,

    /// NaN or infinity in a gradient: the step is not taken.
    #[error(
        "gradient of `{tensor}` is {value} at element {element} in episode {episode}: lower `rate.initial`, or look for broken samples"
    )]
    BadGradient {
        /// Name of the parameter.
        tensor: String,
        /// First element that is not finite.
        element: usize,
        /// Its value.
        value: f32,
        /// Episode number as given by the training loop.
        episode: u64,
    },

    /// The CPU kernels refuse a call.
    #[error(transparent)]
    Kernels(#[from] gpn_kernels::KernelError),

    /// A file that cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// "read" or "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Reason given by the system.
        source: std::io::Error,
    },

    /// A file that is not safetensors, or a broken one.
    #[error(
        "{} is not a readable safetensors file, or a damaged one: {reason}",
        path.display()
    )]
    NotSafetensors {
        /// The file.
        path: PathBuf,
        /// What the parser says.
        reason: String,
    },

    /// A file that is not as it was written.
    #[error("{} is damaged: {reason}; take a copy of it, or make it anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What shows it.
        reason: String,
    },

    /// A file with a value that no network can have.
    #[error(
        "{}: tensor `{tensor}` is {value} at element {element}; weights must be finite: take another file, or train anew",
        path.display()
    )]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// Name of the tensor.
        tensor: String,
        /// First element that is not finite.
        element: usize,
        /// Its value.
        value: f32,
    },

    /// Tensors that do not fit the network; all of them are listed.
    #[error("weights in {place} do not fit the network ({} problems):\n  {}", problems.len(), problems.join("\n  "))]
    WeightsDoNotFit {
        /// File or other source.
        place: String,
        /// One line per missing, extra or mis-shaped tensor.
        problems: Vec<String>,
    },
}

impl ModelError {
    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownBackbone { .. }
            | Self::UnknownMethod { .. }
            | Self::UnknownDevice { .. }
            | Self::DeviceNotBuilt { .. }
            | Self::DeviceNotFound { .. } => ErrorKind::NotFound,
            Self::MethodExists { .. } => ErrorKind::Conflict,
            Self::Taxonomy(error) => error.kind(),
            Self::File { source, .. } => ErrorKind::of_io(source),
            Self::NotSafetensors { .. } | Self::Damaged { .. } | Self::NotFinite { .. } => ErrorKind::Damaged,
            Self::DeviceFailed { .. } | Self::NoForward | Self::NotFitted { .. } => ErrorKind::Bug,
            Self::NoKernels { .. }
            | Self::WrongInput { .. }
            | Self::ImageTooSmall { .. }
            | Self::Zero { .. }
            | Self::WrongLength { .. }
            | Self::LabelOutOfRange { .. }
            | Self::BeyondWay { .. }
            | Self::NotPositive { .. }
            | Self::OutOfRange { .. }
            | Self::NotANumber { .. }
            | Self::NoScatter
            | Self::TooFewClasses { .. }
            | Self::BadGradient { .. }
            | Self::Kernels(_)
            | Self::WeightsDoNotFit { .. } => ErrorKind::BadInput,
        }
    }
}

/// Result of this crate.
pub type Result<T, E = ModelError> = std::result::Result<T, E>;
