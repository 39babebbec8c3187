//! What cannot be done ends with one clear sentence, and harms nothing.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use common::{end, is_empty, run, start, wait_until, word_count};
use kstate_store_redb::redb;

/// Every file below `directory` with its content.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn inputs_that_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let (fine, missing) = (directory.path().join("fine"), directory.path().join("missing"));
    fs::write(&fine, "fine").unwrap();
    for (path, why) in [(missing.as_path(), "No such file"), (directory.path(), "is a directory")] {
        for kill in [[].as_slice(), &["--kill", "1"]] {
            let mut command = word_count(kill);
            let ended = run(command.arg("--input").arg(&fine).arg(path).env("TMPDIR", directory.path()), b"");
            let sentence = ended.sentence();
            assert!(sentence.contains(why) && sentence.contains(path.to_str().unwrap()), "{sentence}");
        }
    }
    assert_eq!(contents(directory.path()).len(), 1);
}

#[test]
fn a_word_that_is_too_long() {
    let word = "x".repeat((256 << 10) + 1);
    for kill in [[].as_slice(), &["--kill", "1"]] {
        let ended = run(word_count(&["--input", "-"]).args(kill), word.as_bytes());
        assert!(ended.sentence().contains("a word of more than 256 KiB"), "{}", ended.stderr);
    }
    let ended = run(&mut word_count(&["--input", "-", "--format", "json"]), &word.as_bytes()[1..]);
    assert_eq!(ended.json()["words"], 1);
}

#[test]
fn brokers_that_do_not_answer() {
    let started = Instant::now();
    let ended = run(&mut word_count(&["--brokers", "127.0.0.1:1", "--input", "-"]), b"");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(ended.sentence().contains("127.0.0.1:1"), "{}", ended.stderr);
}

#[cfg(not(feature = "rocksdb"))]
#[test]
fn a_store_that_was_not_built() {
    let ended = run(&mut word_count(&["--store", "rocksdb", "--input", "-"]), b"");
    assert!(ended.sentence().contains("--features rocksdb"), "{}", ended.stderr);
}

/// The embedded cluster would take a transaction and commit nothing.
#[test]
fn exactly_once_needs_a_broker() {
    for more in [[].as_slice(), &["--kill", "1"], &["--standby"]] {
        let ended = run(word_count(&["--guarantee", "exactly-once", "--input", "-"]).args(more), b"");
        assert!(ended.sentence().contains("--brokers"), "{}", ended.stderr);
    }
}

#[test]
fn a_state_directory_that_is_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "precious").unwrap();
    let ended = run(word_count(&["--input", "-", "--state-dir"]).arg(file.path()), b"");
    assert!(ended.sentence().contains(file.path().to_str().unwrap()), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(file.path()).unwrap(), "precious");
}

#[test]
fn a_state_directory_in_use() {
    for kill in [[].as_slice(), &["--kill", "0"], &["--standby"]] {
        let directory = tempfile::tempdir().unwrap();
        let mut first = start(word_count(&["--input", "-", "--state-dir"]).arg(directory.path()).args(kill));
        wait_until("the store is made", || {
            directory.path().join("word-count/process-1/0_1/counts/store.redb").exists()
        });

        let ended = run(word_count(&["--input", "-", "--state-dir"]).arg(directory.path()).args(kill), b"");
        assert!(ended.sentence().contains("is in use by another process"), "{}", ended.stderr);

        first.stdin.take().unwrap().write_all(b"goes on").unwrap();
        let ended = end(first);
        assert!(ended.status.success() && ended.stdout.contains("\n2 words, "), "{ended:?}");
    }
}

/// A store of a version that does not exist yet is left as it is, and so is the one beside it.
#[test]
fn a_state_directory_of_a_newer_version() {
    const META: redb::TableDefinition<'_, &[u8], &[u8]> = redb::TableDefinition::new("meta");
    let directory = tempfile::tempdir().unwrap();
    let count =
        |kill: &[&str]| run(word_count(&["--input", "-", "--state-dir"]).arg(directory.path()).args(kill), b"a");
    assert!(count(&[]).status.success());

    let newer = directory.path().join("word-count/process-1/0_1/counts");
    let database = redb::Database::open(newer.join("store.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut header = kstate_api::codec::encode_header("redb");
    header[0] += 1;
    let checked = header.len() - 4;
    let checksum = crc32fast::hash(&header[..checked]);
    header[checked..].copy_from_slice(&checksum.to_be_bytes());
    transaction.open_table(META).unwrap().insert(b"header".as_slice(), header.as_slice()).unwrap();
    transaction.commit().unwrap();
    drop(database);

    let before = contents(directory.path());
    for kill in [[].as_slice(), &["--kill", "1"]] {
        let ended = count(kill);
        let sentence = ended.sentence();
        assert!(sentence.contains("newer version") && sentence.contains(newer.to_str().unwrap()), "{sentence}");
        for (path, content) in contents(directory.path()) {
            assert!(before.get(&path) == Some(&content), "{} was changed", path.display());
        }
    }
}

#[cfg(unix)]
fn signal(signal: &str, process: u32) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn a_program_that_is_interrupted_leaves_nothing_behind() {
    for (kill, name) in [([].as_slice(), "-INT"), (&["--kill", "1"], "-TERM")] {
        let temporary = tempfile::tempdir().unwrap();
        let mut child = start(word_count(&["--input", "-"]).args(kill).env("TMPDIR", temporary.path()));
        let stdin = child.stdin.take();
        wait_until("there is a state directory", || !is_empty(temporary.path()));
        signal(name, child.id());
        let ended = end(child);
        drop(stdin);
        assert_eq!(ended.status.code(), Some(130), "{ended:?}");
        assert_eq!(ended.stderr, "error: stopped before the end\n");
        assert!(is_empty(temporary.path()));
    }
}

/// The child of `process`, once it has one.
#[cfg(target_os = "linux")]
fn child_of(process: u32) -> u32 {
    let mut child = None;
    wait_until("the counting process is there", || {
        let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap();
        child = children.split_whitespace().next().map(|id| id.parse().unwrap());
        child.is_some()
    });
    child.unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_counting_process_does_not_outlive_its_parent() {
    let temporary = tempfile::tempdir().unwrap();
    let mut parent = start(word_count(&["--input", "-", "--kill", "1", "--state-dir"]).arg(temporary.path()));
    let child = child_of(parent.id());
    parent.kill().unwrap();
    parent.wait().unwrap();
    // One that has ended may wait for somebody to take notice.
    let has_ended = || match fs::read_to_string(format!("/proc/{child}/stat")) {
        Ok(stat) => stat.rsplit_once(") ").unwrap().1.starts_with('Z'),
        Err(_) => true,
    };
    wait_until("the counting process has ended", has_ended);
}

#[cfg(target_os = "linux")]
#[test]
fn a_counting_process_that_ends_by_itself_is_a_failure() {
    let mut parent = start(&mut word_count(&["--input", "-", "--kill", "1"]));
    let stdin = parent.stdin.take();
    signal("-KILL", child_of(parent.id()));
    let ended = end(parent);
    drop(stdin);
    assert!(ended.sentence().starts_with("the counting process ended unexpectedly with signal: 9"), "{ended:?}");
}
