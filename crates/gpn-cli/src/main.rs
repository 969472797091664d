//! The command `gpn`.
//!
//! Results go to standard output, everything else to standard error. Exit code 0: done; 1: failed, with one message
//! that says what, where and what to do; 2: wrong usage; 101: a fault of the program itself.

// Everything that is printed goes through `terminal`, which makes it fit to be shown.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod bench;
mod change;
mod classes;
mod data_build;
mod data_info;
mod demo;
mod distributed;
mod embed;
mod encoder;
mod eval;
mod experiment;
mod fit;
mod hints;
mod open;
mod predict;
mod printable;
#[cfg(feature = "server")]
mod serve;
mod shard;
mod table;
mod teach;
mod terminal;
mod test;
mod train;
mod watching;

use std::process::ExitCode;
use std::thread::Result as Caught;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};

use args::{Arguments, Command, DataCommand};

const DONE: u8 = 0;
const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;
/// Not the user's fault: what Rust programs that panic end with.
const FAULT: u8 = 101;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        if !gpn::data::panic_is_contained() {
            terminal::print_fault(panic);
        }
    }));
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // Wrong words, which may hold anything; help and version go their own way.
        Err(error)
            if error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand =>
        {
            terminal::print_usage_error(&error);
            return ExitCode::from(WRONG_USAGE);
        }
        Err(error) => error.exit(),
    };
    ExitCode::from(exit_code(&std::panic::catch_unwind(|| run(arguments.command))))
}

/// Ends a command: prints its error, if any.
fn exit_code(outcome: &Caught<anyhow::Result<()>>) -> u8 {
    match outcome {
        Ok(Ok(())) => DONE,
        Ok(Err(error)) if terminal::is_closed_pipe(error) => DONE,
        Ok(Err(error)) if error.is::<distributed::Untold>() => FAILED,
        Ok(Err(error)) => {
            terminal::print_error(error);
            FAILED
        }
        // The hook has said what happened.
        Err(_) => FAULT,
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Data(DataCommand::Build(arguments)) => data_build::run(&arguments),
        Command::Data(DataCommand::Info(arguments)) => data_info::run(&arguments),
        Command::Fit(arguments) => fit::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Forget(arguments) => change::forget(&arguments),
        Command::Move(arguments) => change::move_class(&arguments),
        Command::Rename(arguments) => change::rename(&arguments),
        Command::Train(arguments) => train::run(&arguments),
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Experiment(command) => experiment::run(&command),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Teach(arguments) => teach::run(&arguments),
        Command::Predict(arguments) => predict::run(&arguments),
        Command::Embed(arguments) => embed::run(&arguments),
        Command::Classes(arguments) => classes::run(&arguments),
        #[cfg(feature = "server")]
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "gpn", &mut script);
            terminal::print_data(&String::from_utf8_lossy(&script))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_the_program_has_its_own_exit_code() {
        let caught = std::panic::catch_unwind(|| -> anyhow::Result<()> { panic!("a fault") });
        assert_eq!(exit_code(&caught), 101);
        assert_eq!(exit_code(&Ok(Err(anyhow::anyhow!("a failure")))), 1);
        let closed = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert_eq!(exit_code(&Ok(Err(closed.into()))), 0);
    }
}
