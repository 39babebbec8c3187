use std::{error::Error, fmt, io, path::PathBuf};

use crate::words::MAX_WORD_BYTES;

/// Why the program cannot go on. Each displays as one sentence for the person who started it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An input cannot be read.
    Input { name: String, source: io::Error },
    /// An input is a directory.
    InputIsDirectory(String),
    /// Standard input was named more than once.
    StdinTwice,
    /// No input was named, and there are no Markdown files where this repository was.
    NoMarkdown(PathBuf),
    /// An input has a word that is too long to be a key.
    WordTooLong { input: String },
    /// The state directory cannot be made or locked.
    StateDir { path: PathBuf, source: kstate_api::Error },
    /// Another process uses the state directory.
    StateDirInUse(PathBuf),
    /// A store in the state directory cannot be opened.
    StoreOpen { path: PathBuf, source: kstate_api::Error },
    /// The program was built without that store.
    StoreNotBuilt,
    /// The embedded cluster has no transactions.
    ExactlyOnceEmbedded,
    /// The brokers do not answer.
    Brokers(kstate_api::Error),
    /// The embedded cluster's log has lost what a store needs.
    EmbeddedLogTooShort { source: kstate_api::Error },
    /// A store, the changelog or the client failed.
    State(kstate_api::Error),
    /// The counting process ended by itself, not by our kill.
    ChildEnded { status: String, last_words: String },
    /// The counting process said this before it ended.
    Child(String),
    /// The operating system refused a process, a thread or a signal handler.
    System { what: &'static str, source: io::Error },
    /// A thread of this program panicked; it has said why.
    Panicked(&'static str),
    /// The result could not be written.
    Output(io::Error),
    /// The plain count could not use its temporary files.
    PlainCount(io::Error),
    /// The counts on Kafka are not those of the plain count.
    CountsDiffer { word: String, counted: u64, plain: u64 },
    /// Someone asked the program to stop, or another part of it failed.
    Stopped,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input { name, source } => write!(f, "cannot read the input {name}: {source}"),
            Self::InputIsDirectory(name) => write!(f, "the input {name} is a directory, not a file"),
            Self::StdinTwice => f.write_str("standard input can be read only once, so name `-` only once"),
            Self::NoMarkdown(root) => write!(
                f,
                "there are no Markdown files of this repository in {}: name files to count with --input",
                root.display()
            ),
            Self::WordTooLong { input } => write!(
                f,
                "the input {input} has a word of more than {} KiB, which is too long to be a key of the store",
                MAX_WORD_BYTES >> 10
            ),
            Self::StateDir { path, source } => write!(f, "cannot use the state directory {}: {source}", path.display()),
            Self::StateDirInUse(path) => {
                write!(f, "the state directory {} is in use by another process", path.display())
            }
            Self::StoreOpen { path, source } => write_store_open(f, path, source),
            Self::StoreNotBuilt => f.write_str(
                "this program was built without RocksDB: build it with `--features rocksdb`, or choose another --store",
            ),
            Self::ExactlyOnceEmbedded => f.write_str(
                "the embedded cluster has no transactions, so exactly-once needs a real broker: name one with --brokers",
            ),
            Self::Brokers(source) => write!(f, "cannot reach a Kafka broker: {source}"),
            Self::EmbeddedLogTooShort { source } => write!(
                f,
                "the embedded cluster keeps only the newest 5 MiB of a changelog, too little to rebuild this state: \
                 use a real broker with --brokers ({source})"
            ),
            Self::State(error) => error.fmt(f),
            Self::ChildEnded { status, last_words } if last_words.is_empty() => {
                write!(f, "the counting process ended unexpectedly with {status}")
            }
            Self::ChildEnded { status, last_words } => {
                write!(f, "the counting process ended unexpectedly with {status}, its last words: {last_words}")
            }
            Self::Child(sentence) => f.write_str(sentence),
            Self::System { what, source } => write!(f, "{what}: {source}"),
            Self::Panicked(thread) => write!(f, "the {thread} thread ended unexpectedly"),
            Self::Output(source) => write!(f, "cannot write the result: {source}"),
            Self::PlainCount(source) => write!(f, "the plain count cannot use a temporary file: {source}"),
            Self::CountsDiffer { word, counted, plain } => write!(
                f,
                "the counts differ: `{word}` was counted {counted} times on Kafka, {plain} times by the plain count"
            ),
            Self::Stopped => f.write_str("stopped before the end"),
        }
    }
}

fn write_store_open(f: &mut fmt::Formatter<'_>, path: &std::path::Path, source: &kstate_api::Error) -> fmt::Result {
    let path = path.display();
    match source.kind() {
        kstate_api::ErrorKind::Locked => write!(f, "the state in {path} is in use by another process"),
        kstate_api::ErrorKind::NewerFormat => {
            write!(f, "the state in {path} was written by a newer version and is left as it is: {source}")
        }
        _ => write!(f, "cannot open the state in {path}: {source}"),
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Input { source, .. }
            | Self::System { source, .. }
            | Self::Output(source)
            | Self::PlainCount(source) => Some(source),
            Self::StateDir { source, .. }
            | Self::StoreOpen { source, .. }
            | Self::EmbeddedLogTooShort { source }
            | Self::Brokers(source)
            | Self::State(source) => Some(source),
            _ => None,
        }
    }
}

impl From<kstate_api::Error> for Failure {
    fn from(error: kstate_api::Error) -> Self {
        Self::State(error)
    }
}
