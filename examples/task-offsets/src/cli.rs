use std::path::PathBuf;

use clap::{Parser, ValueEnum, builder::NonEmptyStringValueParser};

/// Shows how far each task in a state directory has come: its stores, their changelog offsets, what is in use and what
/// is broken.
///
/// It only looks: nothing is locked, made, changed or repaired, so it can run beside the application. A store whose
/// engine lets nobody else read while it is open is shown as locked.
#[derive(Debug, Parser)]
#[command(version, name = "task-offsets")]
pub(crate) struct Cli {
    /// The state directory, in which each application has a directory
    pub(crate) state_dir: PathBuf,

    /// Only this application [default: all that are there]
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) application: Option<String>,

    /// The changelog topic of a store, if it is not `APPLICATION-STORE-changelog`
    #[arg(long, value_name = "STORE=TOPIC", value_parser = changelog)]
    pub(crate) changelog: Vec<(String, String)>,

    /// A Kafka cluster to ask for the changelogs' ends: then lags are shown, too
    #[arg(long, value_name = "HOST:PORT,...", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) brokers: Option<String>,

    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people.
    Text,
    /// One JSON object.
    Json,
}

fn changelog(text: &str) -> Result<(String, String), String> {
    let (store, topic) = text.split_once('=').ok_or("it is not of the form STORE=TOPIC")?;
    Ok((store.to_owned(), topic.to_owned()))
}
