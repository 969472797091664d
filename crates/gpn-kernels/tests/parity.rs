//! The network against the numbers of the original implementation, on every instruction set.

mod golden;

use golden::{Golden, difference};
use gpn_kernels::linear::{self, Adam};
use gpn_kernels::{Architecture, Mode, Network, Simd, TensorInfo};

const OUTPUTS: f32 = 1e-4;
const GRADIENTS: f32 = 1e-3;

fn network(golden: &Golden, x: &golden::Array, simd: Simd) -> Network {
    let [_, 3, h, w] = x.shape[..] else { panic!("{}: x is no batch of images", golden.path.display()) };
    Network::with_simd(Architecture::ResNet { blocks_per_stage: 1 }, h, w, simd).unwrap()
}

fn state(golden: &Golden, infos: &[TensorInfo]) -> Vec<Vec<f32>> {
    let tensors = infos.iter().map(|info| {
        let array = golden.get(&format!("state/{}", info.name));
        assert_eq!(array.shape, info.shape, "{}", info.name);
        array.data.clone()
    });
    tensors.collect()
}

fn views(tensors: &[Vec<f32>]) -> Vec<&[f32]> {
    tensors.iter().map(Vec::as_slice).collect()
}

fn check(case: &str, simd: Simd, name: &str, got: &[f32], expected: &[f32], tolerance: f32) {
    let d = difference(got, expected, 1e-6);
    assert!(d <= tolerance, "{case} ({}): {name} differs by {d:e}", simd.name());
}

#[test]
fn parity_resnet08_outputs_gradients_and_buffers() {
    for golden in Golden::find("d_resnet08_", ".npz") {
        let Some(x) = golden.try_get("x") else { continue };
        let case = golden.path.display().to_string();
        for simd in Simd::available() {
            let mut net = network(&golden, x, simd);
            let n = x.shape[0];
            let params = state(&golden, net.parameters());
            for (mode, tag) in [(Mode::Train, "train"), (Mode::Eval, "eval")] {
                let mut buffers = state(&golden, net.buffers());
                let before = buffers.clone();
                let mut out = vec![0.0; n * net.embedding_len()];
                net.forward(mode, &views(&params), &mut buffers, &x.data, n, &mut out).unwrap();
                check(&case, simd, tag, &out, &golden.get(&format!("{tag}/out")).data, OUTPUTS);

                // The gradients are those of sum(out^2) / 1000.
                let grad_out: Vec<f32> = out.iter().map(|v| v / 500.0).collect();
                let mut grads: Vec<Vec<f32>> = params.iter().map(|p| vec![0.0; p.len()]).collect();
                let mut grad_x = vec![0.0; x.data.len()];
                net.backward(&views(&params), &grad_out, &mut grads, Some(&mut grad_x)).unwrap();
                for (info, grad) in net.parameters().iter().zip(&grads) {
                    let expected = golden.get(&format!("{tag}/grad/{}", info.name));
                    check(
                        &case,
                        simd,
                        &format!("{tag} gradient of {}", info.name),
                        grad,
                        &expected.data,
                        GRADIENTS,
                    );
                }
                if let Some(expected) = golden.try_get(&format!("{tag}/grad_x")) {
                    check(&case, simd, &format!("{tag} gradient of x"), &grad_x, &expected.data, GRADIENTS);
                }
                if mode == Mode::Eval {
                    assert_eq!(buffers, before, "evaluation changes no buffer");
                    let mut inferred = vec![0.0; out.len()];
                    net.infer(&views(&params), &buffers, &x.data, n, &mut inferred).unwrap();
                    check(&case, simd, "infer", &inferred, &golden.get("eval/out").data, OUTPUTS);
                } else {
                    for (info, buffer) in net.buffers().iter().zip(&buffers) {
                        let expected = golden.get(&format!("train/buffers_after/{}", info.name));
                        check(
                            &case,
                            simd,
                            &format!("{} after the step", info.name),
                            buffer,
                            &expected.data,
                            OUTPUTS,
                        );
                    }
                }
            }
        }
    }
}

/// The classifier files hold no images: they belong to the case of the same size.
#[test]
fn parity_resnet08_classifier() {
    for golden in Golden::find("d_resnet08_", "_classifier.npz") {
        let case = golden.path.display().to_string();
        let images = Golden::read(std::path::Path::new(&case.replace("_classifier", "")));
        let x = golden.try_get("x").unwrap_or_else(|| images.get("x"));
        let labels: Vec<usize> = golden.get("labels").data.iter().map(|&l| l as usize).collect();
        let (weight, bias) = (&golden.get("fc_weight").data, &golden.get("fc_bias").data);
        let (n, classes) = (labels.len(), bias.len());
        for simd in Simd::available() {
            let mut net = network(&golden, x, simd);
            let params = state(&golden, net.parameters());
            let mut buffers = state(&golden, net.buffers());
            let dim = net.embedding_len();
            let mut embeddings = vec![0.0; n * dim];
            net.forward(Mode::Train, &views(&params), &mut buffers, &x.data, n, &mut embeddings).unwrap();
            let mut logits = vec![0.0; n * classes];
            linear::forward(&embeddings, weight, Some(bias), dim, &mut logits).unwrap();
            check(&case, simd, "logits", &logits, &golden.get("logits").data, OUTPUTS);
            let mut grad_logits = vec![0.0; logits.len()];
            let loss = linear::cross_entropy(&logits, &labels, classes, &mut grad_logits).unwrap();
            check(&case, simd, "loss", &[loss], &golden.get("loss").data, OUTPUTS);

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
                let expected = golden.get(&format!("grad/{}", info.name));
                check(&case, simd, &info.name, grad, &expected.data, GRADIENTS);
            }
            check(
                &case,
                simd,
                "fc weight",
                &grad_weight,
                &golden.get("grad/fc_classifier.weight").data,
                GRADIENTS,
            );
            check(&case, simd, "fc bias", &grad_bias, &golden.get("grad/fc_classifier.bias").data, GRADIENTS);
        }
    }
}

#[test]
fn parity_adam() {
    for golden in Golden::find("f_adam", ".npz") {
        let mut params = golden.get("p0").data.clone();
        let (mut first, mut second) = (vec![0.0; params.len()], vec![0.0; params.len()]);
        let adam = Adam { learning_rate: 1e-3, weight_decay: 1e-5, ..Adam::default() };
        let mut step = 0;
        while let Some(grad) = golden.try_get(&format!("grad{step}")) {
            step += 1;
            adam.step(step, &mut params, &grad.data, &mut first, &mut second).unwrap();
            let d = difference(&params, &golden.get(&format!("p{step}")).data, 1e-6);
            assert!(d < 1e-6, "{}: step {step} differs by {d:e}", golden.path.display());
        }
        assert!(step > 0);
    }
}
