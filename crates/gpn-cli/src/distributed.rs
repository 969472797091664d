//! `gpn train --distributed`: one of the processes that mpirun or srun has started.

use std::sync::Arc;
use std::time::Duration;

use gpn::{Device, FollowRequest, Follower, Group};

use crate::args::TrainArguments;
use crate::watching::{unwatched, watched_as_first};
use crate::{terminal, train};

/// How long a process that fails waits for the first to fail with the same error and to end all: one message is enough.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is said when mpirun ends all processes.
const ON_SIGNAL: &str = "stopping: mpirun was stopped, or another rank has ended (then it says which, below); what was trained \
                         since the last checkpoint may be lost; go on with `gpn train --resume RUN`, with any number of ranks";

pub(crate) fn run(arguments: &TrainArguments, device: &Device) -> anyhow::Result<()> {
    let group = gpn::mpi_group()?;
    let _guard = AbortOnPanic(group.as_ref());
    if group.rank() == 0 { lead(arguments, device, &group) } else { follow(arguments, device, &group) }
}

/// Ends all processes where this one panics: the others would wait for it forever.
struct AbortOnPanic<'a>(&'a dyn Group);

impl Drop for AbortOnPanic<'_> {
    fn drop(&mut self) {
        // The hook has said what happened.
        if std::thread::panicking() && self.0.size() > 1 {
            self.0.abort();
        }
    }
}

fn lead(arguments: &TrainArguments, device: &Device, group: &Arc<dyn Group>) -> anyhow::Result<()> {
    watched_as_first(ON_SIGNAL, |watch| {
        let run = match train::open(arguments, device, watch) {
            Ok(run) => run,
            Err(error) => {
                gpn::call_off(group.as_ref())?;
                return Err(error);
            }
        };
        let run = run.lead(group, watch)?;
        train::carry_out(run, watch).inspect_err(|error| {
            if group.size() > 1 {
                terminal::print_error(error);
                group.abort();
            }
        })
    })?
}

fn follow(arguments: &TrainArguments, device: &Device, group: &Arc<dyn Group>) -> anyhow::Result<()> {
    let request = FollowRequest { data: arguments.data.as_deref(), check: arguments.check(), device };
    let trained = unwatched(|watch| match Follower::join(group, &request, watch)? {
        Some(mut follower) => follower.train().map(|()| true),
        None => Ok(false),
    })?;
    match trained {
        Ok(true) => Ok(()),
        // The first process says why.
        Ok(false) => Err(anyhow::Error::new(Untold)),
        Err(error) => {
            std::thread::sleep(PATIENCE);
            terminal::print_error(&anyhow::Error::new(error).context(format!("rank {}", group.rank())));
            group.abort();
        }
    }
}

/// A failure that another process tells.
#[derive(Debug)]
pub(crate) struct Untold;

impl std::fmt::Display for Untold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("rank 0 has failed")
    }
}

impl std::error::Error for Untold {}
