//! The command `gpn` as a user meets it, in one binary because each would link everything anew.

mod cli;
mod command;
mod docs;
mod embed;
mod experiment;
mod fuzz_corpus;
mod instruction_sets;
mod outputs;
mod printing;
mod serve;
mod shards;
mod teach;
mod train;
mod two_writers;
mod world;
mod wrong_inputs;
