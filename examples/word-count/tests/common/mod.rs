//! Runs the program and counts words for comparison.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::Write as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// The stores that this build has.
pub(crate) const STORES: &[&str] =
    if cfg!(feature = "rocksdb") { &["memory", "redb", "rocksdb"] } else { &["memory", "redb"] };

/// How a run ended and what it wrote.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The program, with `arguments`.
pub(crate) fn word_count(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_word-count"));
    command.args(arguments).env_remove("RUST_LOG");
    command
}

/// Starts `command` with pipes.
pub(crate) fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs `command` to its end with `input` on its standard input.
pub(crate) fn run(command: &mut Command, input: &[u8]) -> Ended {
    let mut child = start(command);
    let mut stdin = child.stdin.take().unwrap();
    thread::scope(|scope| {
        // A program that fails early does not read it all.
        scope.spawn(move || drop(stdin.write_all(input)));
        end(child)
    })
}

/// Waits for the end of a program.
pub(crate) fn end(child: Child) -> Ended {
    let output = child.wait_with_output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    Ended { status: output.status, stdout, stderr }
}

impl Ended {
    /// The only line on standard output, which is one JSON object.
    pub(crate) fn json(&self) -> Value {
        assert!(self.status.success(), "{self:?}");
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// The one sentence of a run that failed and printed no result.
    pub(crate) fn sentence(&self) -> &str {
        assert_eq!(self.status.code(), Some(1), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        self.stderr.strip_prefix("error: ").unwrap()
    }
}

/// How often each word of `texts` comes, counted in the simplest way.
pub(crate) fn count(texts: &[&[u8]]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for text in texts {
        for word in String::from_utf8_lossy(text).split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
        {
            *counts.entry(word.to_lowercase()).or_default() += 1;
        }
    }
    counts
}

/// Asserts that `result` of a run with `--top 0` has exactly `expected`.
pub(crate) fn assert_counts(result: &Value, expected: &BTreeMap<String, u64>) {
    let words = |entry: &Value| (entry["word"].as_str().unwrap().to_owned(), entry["count"].as_u64().unwrap());
    let top = result["top"].as_array().unwrap();
    let found = top.iter().map(words).collect::<BTreeMap<_, _>>();
    if found != *expected {
        let differs = expected.iter().find(|(word, count)| found.get(*word) != Some(count));
        panic!("{} words found, {} expected; so {differs:?}", found.len(), expected.len());
    }
    assert_eq!(top.len(), expected.len(), "a word comes twice");
    assert_eq!(result["words"], expected.values().sum::<u64>());
    assert_eq!(result["distinct"], expected.len() as u64);
}

/// Asserts what a run without a standby says of each of its `kills`.
pub(crate) fn assert_restarts(ended: &Ended, kills: usize, partitions: usize) {
    assert_kills(ended, kills);
    for number in 1..=kills {
        let restored = lines(ended, &format!("restart {number}: the store of task "));
        assert_eq!(restored.len(), partitions, "{}", ended.stderr);
    }
}

/// Asserts what a run with a standby says of each of its `kills`, and of its end.
pub(crate) fn assert_taken_over(ended: &Ended, kills: usize) {
    assert_kills(ended, kills);
    for number in 1..=kills {
        let taken_over = lines(ended, &format!("takeover {number}: the copy of task "));
        assert!(!taken_over.is_empty(), "{number}: {}", ended.stderr);
    }
    // A kill may come before anything was committed, the end does not.
    let taken_over = lines(ended, "end: the copy of task ");
    assert!(!taken_over.is_empty(), "{}", ended.stderr);
    assert!(taken_over.iter().all(|line| !line.contains(" held nothing; ")), "{}", ended.stderr);
}

fn assert_kills(ended: &Ended, kills: usize) {
    for number in 1..=kills {
        assert_eq!(lines(ended, &format!("kill {number} of {kills}: ")).len(), 1, "{}", ended.stderr);
    }
    assert_eq!(ended.json()["restarts"], kills as u64);
    assert_eq!(
        ended.stderr.lines().filter(|line| line.ends_with("equal, word by word")).count(),
        1,
        "{}",
        ended.stderr
    );
}

fn lines<'e>(ended: &'e Ended, start: &str) -> Vec<&'e str> {
    ended.stderr.lines().filter(|line| line.starts_with(start)).collect()
}

/// A text of `words` words out of about `vocabulary`, some much more frequent than others, the same each time.
pub(crate) fn text(words: u64, vocabulary: u64) -> String {
    const SCRIPTS: [&str; 4] = ["Ärger", "Σίσυφος", "日本", "naïve"];
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut text = String::new();
    for number in 0..words {
        // The smaller of two is small more often.
        let word = random(vocabulary).min(random(vocabulary)).wrapping_mul(0x9E37_79B9);
        match number % 16 {
            0 => text.push_str(SCRIPTS[usize::try_from(random(4)).unwrap()]),
            1 => write!(text, "{word:X}").unwrap(),
            _ => write!(text, "{word:x}").unwrap(),
        }
        text.push_str(if number % 12 == 11 { ".\n" } else { " " });
    }
    text
}

/// A text of `words` words, all different.
pub(crate) fn distinct_words(words: u64) -> String {
    (0..words).fold(String::new(), |mut text, number| {
        write!(text, "{:x} ", number.wrapping_mul(0x9E37_79B9_7F4A_7C15)).unwrap();
        text
    })
}

/// Waits until `done` is true.
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "waited too long until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whether `directory` has anything in it.
pub(crate) fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}
