//! A small benchmark and settings for a short run. The tests of crate `gpn` use this file, too.

use std::sync::OnceLock;

use gpn_data::benchmark::{Benchmark, BuildConfig, build};
use gpn_data::source::{Source as _, SyntheticSource};
use gpn_data::synthetic::SyntheticConfig;
use gpn_train::Config;

/// A small benchmark of drawn images, built once.
pub(crate) fn benchmark() -> Benchmark {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let source = SyntheticSource::new(SyntheticConfig { per_leaf: 60, ..SyntheticConfig::default() });
        let taxonomy = source.taxonomy().unwrap().unwrap().taxonomy;
        let mut config = BuildConfig { size: 32, ..BuildConfig::default() };
        config.assign.per_leaf = 6;
        build(&source, &taxonomy, "built in", &config, &folder.path().join("data"), &()).unwrap();
        folder
    });
    Benchmark::open(&folder.path().join("data")).unwrap()
}

/// Every kind of episode, refresh, validation and checkpoint in 24 episodes.
pub(crate) fn config() -> Config {
    let mut config = Config::default();
    for setting in [
        "train.episodes=24",
        "train.checkpoint_every=10",
        "train.auxiliary_batch=16",
        "memory.refresh_every=8",
        "memory.samples=3",
        "memory.refresh_from=2",
        "memory.view=training",
        "train.workers=2",
        "pathways.halve_lists=true",
        "validation.tasks=5",
        "validation.every=12",
        "task.rest=2",
    ] {
        config = config.with_setting(setting).unwrap();
    }
    config
}
