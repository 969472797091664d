use super::*;

/// Deterministic numbers between -1 and 1.
fn numbers(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

/// Two targets, five other classes, one of them out of reach, target 1 without parents.
fn graph() -> PropagationGraph {
    PropagationGraph::new(
        7,
        2,
        vec![(0, 2), (0, 3), (2, 4), (4, 5), (5, 6)],
        vec![(1, 3), (3, 0), (2, 0), (4, 2)],
    )
}

fn parameters(propagation: &Propagation) -> Vec<Vec<f32>> {
    (1..)
        .zip(propagation.parameters())
        .map(|(seed, info)| numbers(seed, info.shape.iter().product()))
        .collect()
}

fn slices(params: &[Vec<f32>]) -> Vec<&[f32]> {
    params.iter().map(Vec::as_slice).collect()
}

/// All settings that change the computation, small enough for finite differences.
fn variants() -> Vec<PropagationConfig> {
    let base = PropagationConfig {
        heads: 2,
        hidden: 3,
        attention_temperature: 1.7,
        gate_temperature: 2.3,
        ..Default::default()
    };
    let mut variants = Vec::new();
    for attention in [
        Attention::Cosine,
        Attention::CosineRaw,
        Attention::Additive,
        Attention::AdditiveLinear,
        Attention::Uniform,
    ] {
        for gate in [Gate::Softmax, Gate::Ratio, Gate::Sigmoid, Gate::Learned, Gate::Fixed, Gate::Open] {
            // Weights that do not sum to 1 bring the ratio of cosines near its poles, where differences tell nothing.
            if attention != Attention::CosineRaw || !matches!(gate, Gate::Ratio | Gate::Sigmoid) {
                variants.push(PropagationConfig { attention, gate, ..base.clone() });
            }
        }
    }
    for order in [Order::Parents, Order::Children, Order::ForwardThenBackward, Order::Alternating] {
        variants.push(PropagationConfig { order, ..base.clone() });
    }
    variants
}

const DIM: usize = 5;

/// A loss whose gradient is known: the inner product with fixed numbers.
fn loss(propagation: &Propagation, params: &[Vec<f32>], prototypes: &[f32]) -> f64 {
    let graph = graph();
    let tape = propagation.forward(&slices(params), &graph, prototypes);
    let direction = numbers(99, 2 * DIM);
    tape.result(&graph).iter().zip(&direction).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

#[test]
fn gradients_match_finite_differences() {
    for config in variants() {
        let propagation = Propagation::new(config.clone(), DIM);
        let params = parameters(&propagation);
        // Positive features, as after a ReLU, keep the ratio gates away from their poles.
        let prototypes: Vec<f32> = numbers(7, 7 * DIM).into_iter().map(|x| x.abs() + 0.1).collect();
        let graph = graph();
        let tape = propagation.forward(&slices(&params), &graph, &prototypes);
        let mut grads: Vec<Vec<f32>> = params.iter().map(|p| vec![0.0; p.len()]).collect();
        let prototype_grads =
            propagation.backward(&slices(&params), &graph, &tape, &numbers(99, 2 * DIM), &mut grads);

        let h = 1e-2_f32;
        let check = |what: String, grad: f32, nudged: &dyn Fn(f32) -> f64| {
            // Two step sizes, extrapolated to none.
            let [wide, narrow] = [h, h / 2.0].map(|h| (nudged(h) - nudged(-h)) / (2.0 * f64::from(h)));
            let difference = (4.0 * narrow - wide) / 3.0;
            let error = (f64::from(grad) - difference).abs();
            assert!(error < 2e-3 + 2e-2 * difference.abs(), "{config:?} {what}: {grad} against {difference}");
        };
        for i in 0..prototypes.len() {
            check(format!("prototype value {i}"), prototype_grads[i], &|h| {
                let mut nudged = prototypes.clone();
                nudged[i] += h;
                loss(&propagation, &params, &nudged)
            });
        }
        for (tensor, info) in propagation.parameters().iter().enumerate() {
            for i in 0..params[tensor].len() {
                check(format!("{} {i}", info.name), grads[tensor][i], &|h| {
                    let mut nudged = params.clone();
                    nudged[tensor][i] += h;
                    loss(&propagation, &nudged, &prototypes)
                });
            }
        }
    }
}

#[test]
fn a_class_without_neighbours_keeps_its_prototype() {
    let propagation = Propagation::new(PropagationConfig::default(), DIM);
    let params = parameters(&propagation);
    let prototypes = numbers(3, 2 * DIM);
    let graph = PropagationGraph::new(2, 2, Vec::new(), Vec::new());
    let tape = propagation.forward(&slices(&params), &graph, &prototypes);
    assert_eq!(tape.result(&graph), prototypes);
}

#[test]
fn nodes_out_of_reach_change_nothing() {
    let propagation = Propagation::new(PropagationConfig::default(), DIM);
    let params = parameters(&propagation);
    let prototypes = numbers(5, 7 * DIM);
    let mut changed = prototypes.clone();
    changed[5 * DIM..].fill(9.0);
    let losses = [&prototypes, &changed].map(|prototypes| loss(&propagation, &params, prototypes).to_bits());
    assert_eq!(losses[0], losses[1]);
}

#[test]
fn influences_of_a_normalised_head_sum_to_one() {
    let propagation = Propagation::new(PropagationConfig::default(), DIM);
    let params = parameters(&propagation);
    let tape = propagation.forward(&slices(&params), &graph(), &numbers(5, 7 * DIM));
    let influences = tape.influences();
    assert_eq!(influences.len(), 2);
    for influence in influences.iter().flatten() {
        let sum = influence.own + influence.senders.iter().map(|(_, share)| share).sum::<f32>();
        assert!((sum - 1.0).abs() < 1e-5, "{influence:?}");
    }
}
