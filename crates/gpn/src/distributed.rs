//! Training by several processes: the first has the run directory and writes, the others follow it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpn_data::benchmark::{Benchmark, Check};
use gpn_model::Device;
use gpn_train::{Config, Group, RunDirectory, TrainError, Trainer};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::run::Run;
use crate::watch::Watch;

/// What the first process tells the others of a run.
#[derive(Serialize, Deserialize)]
struct Invitation {
    /// The program.
    version: String,
    /// How it rounds.
    rounding: String,
    /// Where it has found the benchmark.
    data: PathBuf,
    /// The benchmark's fingerprint.
    benchmark: String,
    /// All settings.
    config: Config,
}

/// How a process follows the first.
pub struct FollowRequest<'a> {
    /// The benchmark directory, where it is not where the first process has it.
    pub data: Option<&'a Path>,
    /// How closely the benchmark is compared with its hashes.
    pub check: Check,
    /// Where to compute.
    pub device: &'a Device,
}

impl Run {
    /// Lets a group of processes train the run: the others call [`Follower::join`]. Needs no files on their machines but the
    /// benchmark.
    pub fn lead(mut self, group: &Arc<dyn Group>, watch: &Watch<'_>) -> Result<Self> {
        if let Err(error) = self.invite(group) {
            self.discard_if_new()?;
            return Err(error);
        }
        let train = &self.trainer.config().train;
        if train.tasks_per_step < train.shards {
            watch.warn(&format!(
                "steps on tasks have {} of them and {} shards: the other shards wait; raise train.tasks_per_step",
                train.tasks_per_step, train.shards
            ));
        }
        Ok(self)
    }

    /// Hands settings and state to the others, and hears whether all are ready.
    fn invite(&mut self, group: &Arc<dyn Group>) -> Result<()> {
        let (invitation, state) = match self.invitation() {
            Ok(made) => made,
            Err(error) => {
                // The others wait for an invitation.
                call_off(group.as_ref())?;
                return Err(error);
            }
        };
        group.of_first(&invitation)?;
        group.of_first(&state)?;
        let joined = self.trainer.join(group.clone());
        let agreed = agree(group.as_ref(), joined.as_ref().err().map(ToString::to_string));
        joined.map_err(Error::from).and(agreed)
    }

    /// The invitation and the state that the others begin with.
    fn invitation(&mut self) -> Result<(Vec<u8>, Vec<u8>)> {
        let (_, _, origin) = RunDirectory::open(&self.folder)?;
        let invitation = Invitation {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rounding: self.trainer.network().embedder.rounding().to_owned(),
            data: origin.data,
            benchmark: origin.benchmark,
            config: self.trainer.config().clone(),
        };
        // invariant: an invitation is plain data, which always serialises.
        Ok((serde_json::to_vec(&invitation).unwrap(), self.trainer.state()?))
    }
}

/// Tells the processes that wait in [`Follower::join`] that there will be no training.
pub fn call_off(group: &dyn Group) -> Result<()> {
    group.of_first(&[])?;
    Ok(())
}

/// A process that trains with the first and writes nothing.
pub struct Follower {
    trainer: Trainer,
}

impl Follower {
    /// Waits for the first process, and takes settings and state from it. `None` where the first has ended with an error, or
    /// is about to: it tells.
    pub fn join(
        group: &Arc<dyn Group>,
        request: &FollowRequest<'_>,
        watch: &Watch<'_>,
    ) -> Result<Option<Self>> {
        let invitation = group.of_first(&[])?;
        if invitation.is_empty() {
            return Ok(None);
        }
        let state = group.of_first(&[])?;
        let follower = Self::prepare(&invitation, &state, group.clone(), request, watch);
        let agreed = agree(group.as_ref(), follower.as_ref().err().map(ToString::to_string));
        Ok(follower.ok().filter(|_| agreed.is_ok()))
    }

    fn prepare(
        invitation: &[u8],
        state: &[u8],
        group: Arc<dyn Group>,
        request: &FollowRequest<'_>,
        watch: &Watch<'_>,
    ) -> Result<Self> {
        let other = |what: &str, there: &str, here: &str| {
            let reason = format!("it {what} {here}, and rank 0 {there}; they must be the same");
            Err(Error::input("ranks", reason))
        };
        let Ok(invitation) = serde_json::from_slice::<Invitation>(invitation) else {
            return other("is another version of gpn:", "another", env!("CARGO_PKG_VERSION"));
        };
        if invitation.version != env!("CARGO_PKG_VERSION") {
            return other("is version", &invitation.version, env!("CARGO_PKG_VERSION"));
        }
        let data = request.data.unwrap_or(&invitation.data);
        let benchmark = Benchmark::open_with(data, request.check)?;
        if benchmark.manifest().fingerprint() != invitation.benchmark {
            let reason = "it is another benchmark than rank 0 has".to_owned();
            return Err(Error::Conflict { what: data.display().to_string(), reason });
        }
        let mut trainer = Trainer::new(&invitation.config, benchmark, request.device)?;
        let rounding = trainer.network().embedder.rounding();
        if rounding != invitation.rounding {
            return other("rounds as", &invitation.rounding, rounding);
        }
        trainer.set_state(state)?;
        trainer.join(group)?;
        Ok(Self { trainer: trainer.with_stop(watch.stop_handle()) })
    }

    /// Trains until the first process has come to the end or all are stopped.
    pub fn train(&mut self) -> Result<()> {
        Ok(self.trainer.run(None, |_, _| std::ops::ControlFlow::Continue(()))?)
    }
}

/// Hears from all processes whether they are ready; an error names the first that is not.
fn agree(group: &dyn Group, trouble: Option<String>) -> Result<()> {
    let told = group.gather(trouble.unwrap_or_default().as_bytes())?;
    match told.iter().position(|trouble| !trouble.is_empty()) {
        None => Ok(()),
        Some(rank) => {
            let reason = String::from_utf8_lossy(&told[rank]).into_owned();
            Err(TrainError::Rank { rank, reason }.into())
        }
    }
}
