//! Counting without kills, on the embedded cluster.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::{fs, path::Path};

use common::{STORES, assert_counts, count, run, text, word_count};

/// The Markdown files of this repository.
fn markdown(directory: &Path, found: &mut Vec<Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            markdown(&path, found);
        } else if path.is_file() && Path::new(name).extension().is_some_and(|extension| extension == "md") {
            found.push(fs::read(&path).unwrap());
        }
    }
}

#[test]
fn without_arguments_the_repository_is_counted() {
    let mut files = Vec::new();
    markdown(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), &mut files);
    let counts = count(&files.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let mut expected = counts.iter().map(|(word, count)| (*count, word.as_str())).collect::<Vec<_>>();
    expected.sort_by_key(|(count, word)| (u64::MAX - *count, *word));

    let ended = run(&mut word_count(&[]), b"");
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(ended.stderr, "", "no bar and no log where there is no terminal");
    let lines = ended.stdout.lines().collect::<Vec<_>>();
    for (line, (count, word)) in lines.iter().zip(&expected).take(20) {
        assert_eq!(line.trim_start(), format!("{count}  {word}"));
    }
    assert_eq!(lines[20], "");
    let totals = format!("{} words, {} different, in ", counts.values().sum::<u64>(), counts.len());
    assert!(lines[21].starts_with(&totals), "{totals}: {}", lines[21]);
    assert!(lines[21].contains(" words/s, ") && lines[21].ends_with(" MB/s"), "{}", lines[21]);
    assert_eq!(lines[22], "1 checkpoint; the last one committed");
    assert!(lines[23].starts_with("  task 0_0: source position "), "{}", lines[23]);
    assert!(lines[24].starts_with("  task 0_1: source position "), "{}", lines[24]);
    assert_eq!(lines.len(), 25);
}

#[test]
fn json_has_the_agreed_shape() {
    let ended = run(&mut word_count(&["--input", "-", "--format", "json", "--top", "2"]), b"b a B c, a b");
    let result = ended.json();
    assert_eq!(result["words"], 6);
    assert_eq!(result["distinct"], 3);
    assert_eq!(result["top"].to_string(), r#"[{"count":3,"word":"b"},{"count":2,"word":"a"}]"#);
    assert_eq!((&result["restarts"], &result["restored_records"]), (&0.into(), &0.into()));
    assert_eq!(result["checkpoints"], 1);
    assert!(result["seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(result.as_object().unwrap().len(), 7);
    assert_eq!(ended.stderr, "");
}

#[test]
fn every_store_and_number_of_partitions_counts_exactly() {
    let text = text(200_000, 20_000);
    let expected = count(&[text.as_bytes()]);
    for store in STORES {
        for (partitions, interval) in [("1", "5000"), ("5", "20")] {
            let arguments = [
                "--input",
                "-",
                "--format",
                "json",
                "--top",
                "0",
                "--store",
                store,
                "--partitions",
                partitions,
                "--commit-interval-ms",
                interval,
            ];
            let result = run(&mut word_count(&arguments), text.as_bytes()).json();
            assert_counts(&result, &expected);
            assert_eq!(result["checkpoints"].as_u64().unwrap() > 2, interval == "20", "{result:#}");
        }
    }
}

#[test]
fn threads_share_the_partitions() {
    let text = text(200_000, 20_000);
    let expected = count(&[text.as_bytes()]);
    // More than there are partitions are of no harm.
    for threads in ["2", "4"] {
        let arguments = ["--input", "-", "--format", "json", "--top", "0", "--partitions", "3", "--threads", threads];
        assert_counts(&run(&mut word_count(&arguments), text.as_bytes()).json(), &expected);
    }
}

/// Far more than the logs of the embedded cluster keep, of the source and of the changelog.
#[test]
fn an_input_larger_than_the_embedded_logs_is_counted_exactly() {
    let text = text(3_000_000, 20_000);
    assert!(text.len() > 20 << 20);
    let arguments = ["--input", "-", "--format", "json", "--top", "0", "--partitions", "1", "--store", "memory"];
    let result = run(&mut word_count(&arguments), text.as_bytes()).json();
    assert_counts(&result, &count(&[text.as_bytes()]));
}

#[test]
fn any_bytes_can_be_counted() {
    let directory = tempfile::tempdir().unwrap();
    let contents: [&[u8]; 6] =
        [b"", b"\xFF\xFEone\x80two", b"word", b"straddles no files", "ΟΔΟΣ οδος \u{FEFF}İ".as_bytes(), b"\xE2\x82"];
    let mut command = word_count(&["--format", "json", "--top", "0", "--input"]);
    for (number, content) in contents.iter().enumerate() {
        let path = directory.path().join(number.to_string());
        fs::write(&path, content).unwrap();
        command.arg(path);
    }
    assert_counts(&run(&mut command, b"").json(), &count(&contents));
}

#[test]
fn an_empty_input_has_no_words() {
    for extra in [[].as_slice(), &["--kill", "1"]] {
        let mut command = word_count(&["--input", "-", "--format", "json"]);
        let result = run(command.args(extra), b"").json();
        assert_eq!((&result["words"], &result["distinct"]), (&0.into(), &0.into()));
        assert_eq!(result["top"].to_string(), "[]");
    }
}

#[test]
fn a_state_directory_keeps_nothing_of_an_earlier_run() {
    let directory = tempfile::tempdir().unwrap();
    let state_dir = directory.path().join("state");
    for store in STORES {
        for text in ["an earlier run", "another run, another count"] {
            let mut command = word_count(&["--input", "-", "--format", "json", "--top", "0", "--store", store]);
            let result = run(command.arg("--state-dir").arg(&state_dir), text.as_bytes()).json();
            assert_counts(&result, &count(&[text.as_bytes()]));
        }
    }
    assert!(state_dir.join("word-count/process-1/0_0/counts").is_dir());
}

/// Reading a file of 50 MB and more takes no more memory than reading a small one.
#[cfg(target_os = "linux")]
#[test]
fn peak_memory_does_not_depend_on_the_size_of_the_input() {
    use std::{io::Write as _, thread};

    let text = text(7_000_000, 10_000);
    assert!(text.len() > 50_000_000, "{}", text.len());
    for store in STORES.iter().filter(|store| **store != "memory") {
        let mut child = common::start(&mut word_count(&["--input", "-", "--format", "json", "--store", store]));
        let mut stdin = child.stdin.take().unwrap();
        let status = format!("/proc/{}/status", child.id());
        let mut peak_kib = 0;
        thread::scope(|scope| {
            scope.spawn(|| {
                // A program that fails does not read it all; why it failed is asked below.
                let _ = stdin.write_all(text.as_bytes());
                drop(stdin);
            });
            while child.try_wait().unwrap().is_none() {
                let status = fs::read_to_string(&status).unwrap_or_default();
                let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
                peak_kib = peak.map_or(peak_kib, |peak| peak.parse::<u64>().unwrap());
                thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        assert_eq!(common::end(child).json()["words"], 7_000_000);
        println!("{store}: peak memory {} MiB", peak_kib >> 10);
        assert!((1..300_000).contains(&peak_kib), "{store}: {peak_kib} KiB");
    }
}
