//! Where the network runs: `cpu`, or a GPU back end of burn where it is built in.

use std::fmt;
use std::str::FromStr;

use crate::error::{ModelError, Result};
use crate::nearest_name;

/// A kind of device, by the name a user gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// The processor: gpn-kernels; for a backbone that they do not cover, burn's `flex` back end (cargo feature
    /// `burn`). The default.
    #[default]
    Cpu,
    /// NVIDIA GPUs; cargo feature `cuda`.
    Cuda,
    /// AMD GPUs; cargo feature `rocm`.
    Rocm,
    /// Any GPU with a Vulkan, Metal or DirectX driver; cargo feature `wgpu`.
    Wgpu,
}

impl DeviceKind {
    /// The name on the command line, which is also the name of the cargo feature.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Rocm => "rocm",
            Self::Wgpu => "wgpu",
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DeviceKind {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self> {
        let all = [Self::Cpu, Self::Cuda, Self::Rocm, Self::Wgpu];
        all.into_iter().find(|kind| kind.name() == name).ok_or_else(|| ModelError::UnknownDevice {
            name: name.into(),
            hint: nearest_name::hint(name, &all.map(Self::name)),
        })
    }
}

/// A device that is there and ready to compute.
#[derive(Clone, Debug)]
pub struct Device {
    kind: DeviceKind,
    #[cfg(feature = "burn")]
    burn: burn::tensor::Device,
}

impl Device {
    /// The processor.
    pub fn cpu() -> Self {
        Self {
            kind: DeviceKind::Cpu,
            #[cfg(feature = "burn")]
            burn: burn::tensor::Device::flex(),
        }
    }

    /// Opens the first device of a kind.
    ///
    /// Fails where the kind is not part of this build (the message names the cargo feature) or where no such
    /// device is found.
    ///
    /// ```
    /// use gpn_model::{Device, DeviceKind};
    /// let device = Device::open("cpu".parse::<DeviceKind>()?)?;
    /// assert_eq!(device.kind(), DeviceKind::Cpu);
    /// # Ok::<(), gpn_model::ModelError>(())
    /// ```
    pub fn open(kind: DeviceKind) -> Result<Self> {
        match kind {
            DeviceKind::Cpu => Ok(Self::cpu()),
            DeviceKind::Cuda => gpu::cuda(),
            DeviceKind::Rocm => gpu::rocm(),
            DeviceKind::Wgpu => gpu::wgpu(),
        }
    }

    /// What kind of device this is.
    pub fn kind(&self) -> DeviceKind {
        self.kind
    }

    /// The device as burn knows it, without autodiff.
    #[cfg(feature = "burn")]
    pub(crate) fn burn(&self) -> &burn::tensor::Device {
        &self.burn
    }
}

/// One function per GPU back end; where it is not built, an error that says how to build it.
mod gpu {
    use super::{Device, DeviceKind, ModelError, Result};

    macro_rules! back_end {
        ($feature:literal, $open:ident, $kind:ident) => {
            #[cfg(feature = $feature)]
            pub(super) fn $open() -> Result<Device> {
                first(DeviceKind::$kind, burn::tensor::DeviceType::$kind)
            }

            #[cfg(not(feature = $feature))]
            pub(super) fn $open() -> Result<Device> {
                Err(ModelError::DeviceNotBuilt { device: DeviceKind::$kind.name() })
            }
        };
    }
    back_end!("cuda", cuda, Cuda);
    back_end!("rocm", rocm, Rocm);
    back_end!("wgpu", wgpu, Wgpu);

    /// The first device a back end lists. A back end without driver panics while it lists; that is "not found".
    #[cfg(any(feature = "cuda", feature = "rocm", feature = "wgpu"))]
    fn first(kind: DeviceKind, filter: burn::tensor::DeviceType) -> Result<Device> {
        let listed = std::panic::catch_unwind(|| {
            let devices: Vec<_> = burn::tensor::Device::enumerate(filter).into_iter().collect();
            devices.into_iter().next()
        });
        match listed {
            Ok(Some(burn)) => Ok(Device { kind, burn }),
            Ok(None) | Err(_) => Err(ModelError::DeviceNotFound { device: kind.name() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_typos_get_a_hint() {
        for kind in [DeviceKind::Cpu, DeviceKind::Cuda, DeviceKind::Rocm, DeviceKind::Wgpu] {
            assert_eq!(kind.to_string().parse::<DeviceKind>().unwrap(), kind);
        }
        let message = "cud".parse::<DeviceKind>().unwrap_err().to_string();
        assert!(message.contains("did you mean `cuda`?"), "{message}");
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn a_device_that_is_not_built_names_its_feature() {
        let message = Device::open(DeviceKind::Cuda).unwrap_err().to_string();
        assert!(message.contains("--features cuda"), "{message}");
    }
}
