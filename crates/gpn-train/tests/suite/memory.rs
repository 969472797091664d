//! What the memory is computed from.

use gpn_data::benchmark::{Benchmark, Part, Split};
use gpn_data::loader::View;
use gpn_data::transform::CropConfig;
use gpn_model::{BackboneKind, Device, Embedder, InputShape};
use gpn_train::{MemoryConfig, MemoryNorm, MemoryView, Refresh, StopHandle};

use crate::fixture::benchmark;

fn prototypes(benchmark: &Benchmark, config: &MemoryConfig, refresh: u64) -> Vec<f32> {
    let input = InputShape::Image { height: 32, width: 32 };
    let backbone = BackboneKind::default().config();
    let mut embedder = Embedder::new(&backbone, input, &Device::cpu(), 1).unwrap();
    let rows = benchmark.data_set(Split::Train).rows;
    let samples: Vec<Vec<u32>> =
        rows.iter().map(|&row| benchmark.samples(row, Part::Train).to_vec()).collect();
    let crops = View::Train(CropConfig::default());
    let refresh = Refresh {
        store: benchmark.store(),
        samples_of: &samples,
        config,
        augmented: &crops,
        seed: 7,
        number: refresh,
    };
    let memory = refresh.run(&mut embedder, &StopHandle::default()).unwrap();
    assert_eq!(memory.classes(), samples.len());
    memory.prototypes().to_vec()
}

#[test]
fn crops_are_drawn_anew_at_each_refresh_and_the_test_transform_draws_nothing() {
    let benchmark = benchmark();
    for norm in [MemoryNorm::Evaluation, MemoryNorm::Training] {
        let with = |view| MemoryConfig { norm, view, ..MemoryConfig::default() };
        let test = prototypes(&benchmark, &with(MemoryView::Test), 0);
        assert_eq!(prototypes(&benchmark, &with(MemoryView::Test), 1), test, "{norm:?}");
        let crops = prototypes(&benchmark, &with(MemoryView::Training), 0);
        assert_eq!(prototypes(&benchmark, &with(MemoryView::Training), 0), crops, "{norm:?}");
        assert_ne!(prototypes(&benchmark, &with(MemoryView::Training), 1), crops, "{norm:?}");
        assert_ne!(crops, test, "{norm:?}");
    }
}
