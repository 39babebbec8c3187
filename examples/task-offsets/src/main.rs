//! Shows how far each task in a state directory has come: its stores, their changelog offsets, what is in use and what
//! is broken. It only looks.

mod any_engine;
mod cli;
mod report;
mod survey;
mod table;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Parser as _;

use crate::{
    cli::{Cli, Format},
    report::Report,
    table::Table,
};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match survey::survey(&cli) {
        Ok(report) => match print(&report, cli.format) {
            // Whoever reads it has seen enough.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => fail(&format!("cannot print: {error}")),
            _ => ExitCode::SUCCESS,
        },
        Err(error) => fail(&error.to_string()),
    }
}

fn fail(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::FAILURE
}

fn print(report: &Report, format: Format) -> io::Result<()> {
    let mut output = io::stdout().lock();
    match format {
        Format::Text => write!(output, "{}", Table(report))?,
        Format::Json => {
            serde_json::to_writer_pretty(&mut output, report)?;
            writeln!(output)?;
        }
    }
    output.flush()
}
