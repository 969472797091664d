//! The burn engine on a real `wgpu` device (a software Vulkan driver will do), against the processor.

use gpn_golden::assert_close_relative;
use gpn_model::{
    BackboneConfig, BackboneKind, Conv4Config, Device, DeviceKind, Embedder, EngineChoice, InputShape,
    ModelError, ResNet12Config, Trainable,
};

/// One step and one embedding on both devices.
fn agree(device: &Device, config: &BackboneConfig) {
    let input = InputShape::Image { height: 32, width: 32 };
    let build = |device| Embedder::with_engine(config, input, device, 3, EngineChoice::Burn).unwrap();
    let (mut cpu, mut gpu) = (build(&Device::cpu()), build(device));
    let images: Vec<f32> = (0..3 * input.len()).map(|i| ((i * 7919 % 1009) as f32 - 504.0) / 300.0).collect();
    let expected = cpu.forward_train(&images).unwrap();
    assert_close_relative("forward", &gpu.forward_train(&images).unwrap(), &expected, 1e-4);
    let grad: Vec<f32> = expected.iter().map(|value| value / 100.0).collect();
    cpu.backward(&grad).unwrap();
    gpu.backward(&grad).unwrap();
    for (expected, got) in cpu.gradients().zip(gpu.gradients()) {
        assert_close_relative(expected.name, got.values, expected.values, 1e-3);
    }
    for (expected, got) in cpu.buffers().iter().zip(gpu.buffers().iter()) {
        assert_close_relative(expected.name, got.values, expected.values, 1e-4);
    }
    let expected = cpu.embed(&images).unwrap();
    assert_close_relative("embed", &gpu.embed(&images).unwrap(), &expected, 1e-4);
}

#[test]
fn wgpu_agrees_with_the_processor() {
    let device = match Device::open(DeviceKind::Wgpu) {
        Ok(device) => device,
        Err(ModelError::DeviceNotFound { .. }) => {
            eprintln!("skipped: no wgpu device (install a Vulkan driver, for example mesa-vulkan-drivers)");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    agree(&device, &BackboneKind::ResNet08.config());
    agree(&device, &BackboneConfig::Conv4(Conv4Config { width: 8 }));
    agree(&device, &BackboneConfig::ResNet12(ResNet12Config { channels: [4, 8, 8, 16] }));
}
