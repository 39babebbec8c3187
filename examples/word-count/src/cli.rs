use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{Parser, ValueEnum, builder::NonEmptyStringValueParser, value_parser};
use serde::{Deserialize, Serialize};

/// Counts words on Kafka with a state store that survives kill -9.
///
/// The text goes through a Kafka topic, the counts live in one local store for each partition, and every change of them
/// is logged to a changelog topic. With --kill the counting process is killed again and again, and the counts are exact
/// all the same.
///
/// A word is a maximal run of characters that are alphabetic or numeric in Unicode, lower-cased; it may have 256 KiB.
#[derive(Debug, Parser)]
#[command(version, name = "word-count")]
pub(crate) struct Cli {
    /// Files to count; `-` is the standard input. Bytes that are not UTF-8 separate words
    /// [default: the Markdown files of this repository]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) input: Vec<PathBuf>,

    /// Where the counts live; `rocksdb` needs a build with `--features rocksdb`
    #[arg(long, value_enum, default_value_t = StoreKind::Redb)]
    pub(crate) store: StoreKind,

    /// The directory of the stores. What a former run left there is replaced
    /// [default: a temporary directory, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,

    /// A real Kafka cluster; the topics of this run are made there and deleted at the end
    /// [default: a small cluster embedded in this process]
    #[arg(long, value_name = "HOST:PORT,...", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) brokers: Option<String>,

    /// How many partitions the topics have; each has one task with one store
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(i32).range(1..=256))]
    pub(crate) partitions: i32,

    /// The longest time between two checkpoints, in milliseconds; many new counts cause one earlier
    /// [default: 5000, or 100 with --kill or --standby]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(crate) commit_interval_ms: Option<u32>,

    /// How each checkpoint is committed: the changelog first and the position in the text after it, or both in one
    /// transaction, for which the embedded cluster is no use
    #[arg(long, value_enum, default_value_t = GuaranteeKind::AtLeastOnce)]
    pub(crate) guarantee: GuaranteeKind,

    /// How many threads of a counting process share its partitions
    #[arg(long, value_name = "N", default_value = "1", value_parser = threads)]
    pub(crate) threads: NonZeroUsize,

    /// Count in two child processes, each of which keeps a copy of what the other one counts and takes over from it
    #[arg(long)]
    pub(crate) standby: bool,

    /// How many of the most frequent words to print; 0 prints all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,

    /// How to print the result on standard output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Count in a child process, SIGKILL it N times at random moments and start it again; then compare with a plain
    /// count of the input, word by word. With --standby the other child takes over before it is started again
    #[arg(long, value_name = "N")]
    pub(crate) kill: Option<u32>,
}

impl Cli {
    pub(crate) fn commit_interval(&self) -> Duration {
        let default = if self.kills().is_some() { 100 } else { 5000 };
        Duration::from_millis(self.commit_interval_ms.unwrap_or(default).into())
    }

    /// How often to kill a counting process; `None` if the counting is done in this one.
    pub(crate) fn kills(&self) -> Option<u32> {
        self.kill.or(self.standby.then_some(0))
    }
}

fn threads(argument: &str) -> Result<NonZeroUsize, String> {
    argument.parse().ok().filter(|threads: &NonZeroUsize| threads.get() <= 64).ok_or_else(|| "1 to 64".to_owned())
}

/// What keeps the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum StoreKind {
    /// In memory; restored from the changelog after each start.
    Memory,
    /// redb, a B-tree in pure Rust.
    Redb,
    /// `RocksDB`, an LSM tree.
    #[value(name = "rocksdb")]
    RocksDb,
}

/// How a checkpoint is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum GuaranteeKind {
    /// One after the other.
    AtLeastOnce,
    /// In one transaction.
    ExactlyOnce,
}

/// How the result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn defaults() {
        let cli = Cli::parse_from(["word-count"]);
        assert!(cli.input.is_empty() && cli.kill.is_none());
        assert_eq!((cli.store, cli.partitions, cli.top, cli.format), (StoreKind::Redb, 2, 20, Format::Text));
        assert_eq!(cli.commit_interval(), Duration::from_secs(5));
        assert_eq!((cli.guarantee, cli.threads.get(), cli.kills()), (GuaranteeKind::AtLeastOnce, 1, None));
        for (arguments, kills) in
            [(["--kill", "3"].as_slice(), 3), (&["--standby"], 0), (&["--standby", "--kill", "2"], 2)]
        {
            let cli = Cli::parse_from(["word-count"].iter().chain(arguments));
            assert_eq!((cli.kills(), cli.commit_interval()), (Some(kills), Duration::from_millis(100)));
        }
    }

    #[test]
    fn several_files_are_one_option() {
        let cli = Cli::parse_from(["word-count", "--input", "a", "-", "--store", "rocksdb", "--input", "b"]);
        assert_eq!(cli.input, ["a", "-", "b"].map(PathBuf::from));
        assert_eq!(cli.store, StoreKind::RocksDb);
    }

    #[test]
    fn bad_numbers_are_refused() {
        for (option, value) in [
            ("--partitions", "0"),
            ("--commit-interval-ms", "0"),
            ("--top", "-1"),
            ("--kill", "x"),
            ("--threads", "0"),
            ("--threads", "65"),
            ("--guarantee", "maybe"),
        ] {
            assert!(Cli::try_parse_from(["word-count", option, value]).is_err(), "{option} {value}");
        }
    }
}
