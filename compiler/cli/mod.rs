//! Floor 6: the command line. The only part of the compiler that reads files and writes to standard output and standard
//! error. [`main`] gives back the exit status, which `main.rs` passes on.

mod args;
mod commands;
mod compare;
mod dump;
mod explain;
mod explore;
mod input;
mod output;
mod process;
mod progress;
pub mod render;
mod tool_args;
mod tools;
mod views;

use std::ffi::OsString;

/// The exit status of `atlc`: 0 for success, 1 for errors in the source and for what cannot be written, 2 for wrong
/// usage. A program that `atlc run` runs has its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status(pub u8);

impl Status {
    const SUCCESS: Status = Status(0);
    const FAILURE: Status = Status(1);
    const USAGE: Status = Status(2);
}

/// Runs a command line.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Status {
    match args::read(arguments) {
        Ok(cli) => commands::run(cli),
        Err(args::NoCommand::Text(text)) => commands::print(&text),
        Err(args::NoCommand::Usage(text)) => {
            output::write_stderr(&text);
            Status::USAGE
        }
    }
}
