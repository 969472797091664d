//! libFuzzer over the target that the variable `FUZZ_TARGET` names. Use `fuzz/run`.
#![no_main]

mod memory;
mod targets;

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;

use crate::targets::{TARGETS, Target};

/// The target, and the folder in which it may write files.
static CHOSEN: OnceLock<(Target, tempfile::TempDir)> = OnceLock::new();

/// The most processor time an execution may take. libFuzzer's own limit is on the clock, which tells little on a busy
/// machine; it remains for what never ends.
const LIMIT: Duration = Duration::from_secs(1);

/// The processor time of this process.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the structure it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn choose() -> (Target, tempfile::TempDir) {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let Some((_, target)) = TARGETS.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        eprintln!("FUZZ_TARGET is `{name}`; set it to one of {}", known.join(", "));
        std::process::exit(2);
    };
    // Files in memory, where the system has such a place.
    let place = Path::new("/dev/shm");
    let folder = if place.is_dir() { tempfile::tempdir_in(place) } else { tempfile::tempdir() };
    (*target, folder.expect("a folder for files"))
}

fuzz_target!(
    init: {
        std::panic::set_hook(Box::new(|panic| {
            // Panics that a reader turns into errors are no faults.
            if !gpn_data::panic_is_contained() {
                eprintln!("{panic}\n{}", std::backtrace::Backtrace::force_capture());
                std::process::abort();
            }
        }));
        CHOSEN.get_or_init(choose);
    },
    |data: &[u8]| {
        let (target, folder) = CHOSEN.get_or_init(choose);
        let began = processor_time();
        let _ = target(data, folder.path());
        let took = processor_time() - began;
        assert!(took <= LIMIT, "took {took:?} of processor time");
    }
);
