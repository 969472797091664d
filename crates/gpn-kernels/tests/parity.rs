//! The networks against golden vectors, on every instruction set.

use gpn_golden::{Array, Case, npz_cases, relative_difference};
use gpn_kernels::linear::{self, Adam};
use gpn_kernels::{Architecture, Mode, Network, Simd, TensorInfo};

const OUTPUTS: f32 = 1e-4;
const GRADIENTS: f32 = 1e-3;

fn network(architecture: Architecture, x: &Array, simd: Simd) -> Network {
    let [_, 3, h, w] = x.shape[..] else { panic!("x is no batch of images: {:?}", x.shape) };
    Network::with_simd(architecture, h, w, simd).unwrap()
}

fn state(case: &Case, infos: &[TensorInfo]) -> Vec<Vec<f32>> {
    let tensors = infos.iter().map(|info| {
        let array = case.array(&format!("state/{}", info.name));
        assert_eq!(array.shape, info.shape, "{}", info.name);
        array.values.clone()
    });
    tensors.collect()
}

fn views(tensors: &[Vec<f32>]) -> Vec<&[f32]> {
    tensors.iter().map(Vec::as_slice).collect()
}

/// Compares with the array `name`, relative to its largest value.
fn check(case: &Case, how: &str, name: &str, got: &[f32], tolerance: f32) {
    case.assert_gradient(how, name, got, tolerance);
}

/// Every instruction set, with the order of summation that PyTorch has; where no value is near a kink, with the faster
/// one of large batches as well.
fn ways(case: &Case, images: usize) -> Vec<(Simd, usize)> {
    let exact = Simd::available().into_iter().map(|simd| (simd, images));
    let fast = Simd::available().into_iter().map(|simd| (simd, 0)).filter(|_| case.is_far_from_kinks());
    exact.chain(fast).collect()
}

/// Output, gradients of sum(out^2) / 1000 and buffers in both modes.
fn check_backbone(case: &Case, architecture: Architecture) {
    let x = case.array("x");
    let n = x.shape[0];
    for (simd, exact_batch) in ways(case, n) {
        let mut net = network(architecture, x, simd);
        net.set_exact_batch(exact_batch);
        let how = format!("{}, exact batch {exact_batch}", simd.name());
        let params = state(case, net.parameters());
        for (mode, tag) in [(Mode::Train, "train"), (Mode::Eval, "eval")] {
            let mut buffers = state(case, net.buffers());
            let before = buffers.clone();
            let mut out = vec![0.0; n * net.embedding_len()];
            net.forward(mode, &views(&params), &mut buffers, &x.values, n, &mut out).unwrap();
            check(case, &how, &format!("{tag}/out"), &out, OUTPUTS);

            let grad_out: Vec<f32> = out.iter().map(|v| v / 500.0).collect();
            let mut grads: Vec<Vec<f32>> = params.iter().map(|p| vec![0.0; p.len()]).collect();
            let mut grad_x = vec![0.0; x.values.len()];
            net.backward(&views(&params), &grad_out, &mut grads, Some(&mut grad_x)).unwrap();
            for (info, grad) in net.parameters().iter().zip(&grads) {
                check(case, &how, &format!("{tag}/grad/{}", info.name), grad, GRADIENTS);
            }
            if case.get(&format!("{tag}/grad_x")).is_some() {
                check(case, &how, &format!("{tag}/grad_x"), &grad_x, GRADIENTS);
            }
            if mode == Mode::Eval {
                assert_eq!(buffers, before, "evaluation changes no buffer");
                let mut inferred = vec![0.0; out.len()];
                net.infer(&net.pack(&views(&params), &buffers).unwrap(), &x.values, n, &mut inferred)
                    .unwrap();
                check(case, &how, "eval/out", &inferred, OUTPUTS);
            } else {
                for (info, buffer) in net.buffers().iter().zip(&buffers) {
                    check(case, &how, &format!("train/buffers_after/{}", info.name), buffer, OUTPUTS);
                }
            }
        }
    }
}

fn is_classifier(case: &Case) -> bool {
    case.name.ends_with("_classifier")
}

#[test]
fn parity_resnet08_outputs_gradients_and_buffers() {
    for case in npz_cases("d_resnet08_").iter().filter(|case| !is_classifier(case)) {
        check_backbone(case, Architecture::ResNet { blocks_per_stage: 1 });
    }
}

#[test]
fn parity_resnet20_outputs_gradients_and_buffers() {
    for case in npz_cases("d_resnet20_") {
        check_backbone(&case, Architecture::ResNet { blocks_per_stage: 3 });
    }
}

#[test]
fn parity_conv4_outputs_gradients_and_buffers() {
    for case in npz_cases("d_conv4_") {
        let width = case.array("state/block_1.conv.weight").shape[0];
        check_backbone(&case, Architecture::Conv4 { width });
    }
}

/// Channels of the four stages of a case.
fn channels(case: &Case) -> [usize; 4] {
    [1, 2, 3, 4].map(|stage| case.array(&format!("state/layer{stage}.0.conv1.weight")).shape[0])
}

#[test]
fn parity_resnet12_outputs_gradients_and_buffers() {
    for case in npz_cases("d_resnet12_") {
        check_backbone(&case, Architecture::ResNet12 { channels: channels(&case) });
    }
}

#[test]
fn parity_resnet18_outputs_gradients_and_buffers() {
    for case in npz_cases("d_resnet18_") {
        check_backbone(&case, Architecture::ResNet18 { channels: channels(&case) });
    }
}

/// The classifier files hold no images: they belong to the case of the same size.
#[test]
fn parity_resnet08_classifier() {
    let mut compared = 0;
    for case in npz_cases("d_resnet08_").iter().filter(|case| is_classifier(case)) {
        let images = Case::read(&case.path.with_file_name(case.name.replace("_classifier", ".npz")));
        let x = images.array("x");
        let labels: Vec<usize> = case.array("labels").whole().iter().map(|&label| label as usize).collect();
        let (weight, bias) = (case.values("fc_weight"), case.values("fc_bias"));
        let (n, classes) = (labels.len(), bias.len());
        for (simd, exact_batch) in ways(&images, n) {
            let how = format!("{}, exact batch {exact_batch}", simd.name());
            let mut net = network(Architecture::ResNet { blocks_per_stage: 1 }, x, simd);
            net.set_exact_batch(exact_batch);
            let params = state(case, net.parameters());
            let mut buffers = state(case, net.buffers());
            let dim = net.embedding_len();
            let mut embeddings = vec![0.0; n * dim];
            net.forward(Mode::Train, &views(&params), &mut buffers, &x.values, n, &mut embeddings).unwrap();
            let mut logits = vec![0.0; n * classes];
            linear::forward(&embeddings, weight, Some(bias), dim, &mut logits).unwrap();
            check(case, &how, "logits", &logits, OUTPUTS);
            let mut grad_logits = vec![0.0; logits.len()];
            let loss = linear::cross_entropy(&logits, &labels, classes, &mut grad_logits).unwrap();
            check(case, &how, "loss", &[loss], OUTPUTS);

            let mut grad_embeddings = vec![0.0; embeddings.len()];
            let (mut grad_weight, mut grad_bias) = (vec![0.0; weight.len()], vec![0.0; classes]);
            linear::backward(
                &embeddings,
                weight,
                &grad_logits,
                dim,
                &mut grad_weight,
                &mut grad_bias,
                Some(&mut grad_embeddings),
            )
            .unwrap();
            let mut grads: Vec<Vec<f32>> = params.iter().map(|p| vec![0.0; p.len()]).collect();
            net.backward(&views(&params), &grad_embeddings, &mut grads, None).unwrap();
            for (info, grad) in net.parameters().iter().zip(&grads) {
                check(case, &how, &format!("grad/{}", info.name), grad, GRADIENTS);
            }
            check(case, &how, "grad/fc_classifier.weight", &grad_weight, GRADIENTS);
            check(case, &how, "grad/fc_classifier.bias", &grad_bias, GRADIENTS);
            compared += 1;
        }
    }
    assert!(compared > 0, "no classifier case");
}

#[test]
fn parity_adam() {
    for case in npz_cases("f_adam") {
        let mut params = case.values("p0").to_vec();
        let (mut first, mut second) = (vec![0.0; params.len()], vec![0.0; params.len()]);
        let adam = Adam { learning_rate: 1e-3, weight_decay: 1e-5, ..Adam::default() };
        let mut step = 0;
        while let Some(grad) = case.get(&format!("grad{step}")) {
            step += 1;
            adam.step(step, &mut params, &grad.values, &mut first, &mut second).unwrap();
            let what = format!("{} step {step}", case.name);
            let d = relative_difference(&what, &params, case.values(&format!("p{step}")));
            assert!(d < 1e-6, "{what} differs by {d:e}");
        }
        assert!(step > 0, "{}: no gradients", case.name);
    }
}
