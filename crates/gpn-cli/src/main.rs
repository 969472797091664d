//! The command `gpn`.
//!
//! Results go to standard output, everything else to standard error. Exit code 0: done; 1: failed, with one message
//! that says what, where and what to do; 2: wrong usage.

mod args;
mod bench;
mod classes;
mod data_build;
mod data_info;
mod demo;
mod demo_report;
mod drawings;
mod eval;
mod experiment;
mod predict;
mod teach;
mod terminal;
mod train;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use args::{Arguments, Command, DataCommand};

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        if !gpn_data::panic_is_contained() {
            terminal::print_fault(panic);
        }
    }));
    let arguments = Arguments::parse();
    match std::panic::catch_unwind(|| run(arguments.command)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) if terminal::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            terminal::print_error(&error);
            ExitCode::FAILURE
        }
        // The hook has said what happened.
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Data(DataCommand::Build(arguments)) => data_build::run(&arguments),
        Command::Data(DataCommand::Info(arguments)) => data_info::run(&arguments),
        Command::Train(arguments) => train::run(&arguments),
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Experiment(command) => experiment::run(&command),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Teach(arguments) => teach::run(&arguments),
        Command::Predict(arguments) => predict::run(&arguments),
        Command::Classes(arguments) => classes::run(&arguments),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "gpn", &mut script);
            terminal::print_result(&String::from_utf8_lossy(&script))
        }
    }
}
