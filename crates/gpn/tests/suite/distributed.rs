//! A run that several processes train: here threads of one, each with a pool of its own.

use std::path::Path;
use std::sync::Arc;

use gpn::{Check, Config, Device, FollowRequest, Follower, Group, Run, StartRequest, Trained, Watch};
use gpn_train::ThreadGroup;

use crate::fixture::{benchmark, config};

/// Starts a run with so many ranks; followers look for the benchmark at `data`. Returns what the first rank says.
fn train(config: &Config, ranks: usize, run: &Path, data: &Path) -> Result<(), String> {
    std::thread::scope(|scope| {
        let ranks: Vec<_> = ThreadGroup::of(ranks)
            .into_iter()
            .map(|group| {
                scope.spawn(move || {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
                    pool.install(|| one(config, &(Arc::new(group) as Arc<dyn Group>), run, data))
                })
            })
            .collect();
        let mut told: Vec<_> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
        let first = told.remove(0);
        assert!(told.iter().all(|other| other.is_ok() == first.is_ok()), "{told:?}");
        first
    })
}

fn one(config: &Config, group: &Arc<dyn Group>, run: &Path, data: &Path) -> Result<(), String> {
    let (device, watch) = (Device::cpu(), Watch::default());
    if group.rank() == 0 {
        let own = benchmark();
        let folder = own.folder().unwrap().to_owned();
        let request = StartRequest { data: &folder, ..StartRequest::new(config, &device) };
        let started = Run::start(run, own, &request, &watch).unwrap();
        let mut run = started.lead(group, &watch).map_err(|error| error.to_string())?;
        assert!(matches!(run.train(&watch).unwrap(), Trained::Finished(_)));
        return Ok(());
    }
    let request = FollowRequest {
        data: Some(data).filter(|data| !data.as_os_str().is_empty()),
        check: Check::Sampled,
        device: &device,
    };
    match Follower::join(group, &request, &watch).unwrap() {
        Some(mut follower) => follower.train().map_err(|error| error.to_string()),
        None => Err("called off".into()),
    }
}

#[test]
fn followers_make_the_run_of_one_process() {
    let scratch = tempfile::tempdir().unwrap();
    let settings = ["train.shards=3", "train.tasks_per_step=3"];
    let config = settings.iter().fold(config(), |config, setting| config.with_setting(setting).unwrap());
    let run = |name: &str| scratch.path().join(name);
    for ranks in [1, 3] {
        train(&config, ranks, &run(&ranks.to_string()), Path::new("")).unwrap();
    }
    for name in ["model.safetensors", "last.safetensors", "config.toml"] {
        let read = |ranks: &str| std::fs::read(run(ranks).join(name)).unwrap();
        assert!(read("1") == read("3"), "{name}");
    }
}

#[test]
fn a_follower_without_the_benchmark_ends_all_with_one_message() {
    let scratch = tempfile::tempdir().unwrap();
    let (run, nowhere) = (scratch.path().join("run"), scratch.path().join("nowhere"));
    let config = config().with_setting("train.shards=2").unwrap();
    let told = train(&config, 2, &run, &nowhere).unwrap_err();
    assert!(told.starts_with("rank 1: ") && told.contains("nowhere"), "{told}");
    assert!(!run.exists(), "a run that did not begin leaves nothing behind");
    let told = train(&config, 3, &run, Path::new("")).unwrap_err();
    assert!(told.contains("setting `train.shards`") && told.contains("there are 3 processes"), "{told}");
    assert!(!run.exists());
}

#[test]
fn a_first_rank_that_cannot_invite_ends_all_and_leaves_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("run");
    let config = config().with_setting("train.shards=2").unwrap();
    let mut ranks = ThreadGroup::of(2).into_iter().map(|group| Arc::new(group) as Arc<dyn Group>);
    let (first, second) = (ranks.next().unwrap(), ranks.next().unwrap());
    let (device, watch) = (Device::cpu(), Watch::default());
    let follower = std::thread::spawn(move || {
        let (device, watch) = (Device::cpu(), Watch::default());
        let request = FollowRequest { data: None, check: Check::Sampled, device: &device };
        Follower::join(&second, &request, &watch).unwrap().is_none()
    });
    let own = benchmark();
    let data = own.folder().unwrap().to_owned();
    let request = StartRequest { data: &data, ..StartRequest::new(&config, &device) };
    let run = Run::start(&folder, own, &request, &watch).unwrap();
    std::fs::remove_file(folder.join("run.json")).unwrap();
    let told = run.lead(&first, &watch).err().unwrap().to_string();
    assert!(told.contains("run.json"), "{told}");
    assert!(follower.join().unwrap(), "the other rank is told that there is no training");
    assert!(!folder.exists(), "a run that did not begin leaves nothing behind");
}
