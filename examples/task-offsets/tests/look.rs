//! The program beside an application that runs, over stores of which some are broken.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use kstate_api::{
    ChangelogOffsets, ErrorKind, KeyValueStore, KeyValueStoreSupplier, Offset, StagedSupplier, StateStore, TaskId,
    TopicPartition,
};
use kstate_kafka::{
    EmbeddedCluster,
    rdkafka::{
        ClientConfig,
        producer::{BaseProducer, BaseRecord, Producer as _},
    },
};
use kstate_offset_cache::StateDirectory;
use kstate_store_redb::{RedbBackends, RedbOptions};
use serde_json::{Value, json};

fn run(arguments: &[&str], state: &Path) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_task-offsets")).args(arguments).arg(state).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn store(directory: &StateDirectory, task: TaskId, name: &str) -> std::sync::Arc<dyn KeyValueStore> {
    let supplier = StagedSupplier::new(name, RedbBackends::new(RedbOptions::new())).unwrap();
    let topic = if name == "table" { "input".to_owned() } else { format!("app-{name}-changelog") };
    let changelog = TopicPartition::new(topic, i32::try_from(task.partition()).unwrap());
    supplier.open(&directory.lock(task).unwrap().store_directory(name).unwrap(), &[changelog]).unwrap()
}

fn commit(store: &dyn KeyValueStore, offset: i64) {
    let changelog = store.changelog_partitions()[0].clone();
    store.put(b"k", b"v").unwrap();
    store.commit(&ChangelogOffsets::new().with(changelog, Offset::new(offset).unwrap())).unwrap();
}

fn contents(directory: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contents(&path, into);
        } else {
            into.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
}

#[test]
fn it_tells_what_is_there_and_changes_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = StateDirectory::open(temporary.path(), "app").unwrap();
    for (task, name, offset) in [
        (TaskId::new(0, 0), "counts", Some(41)),
        (TaskId::new(0, 1), "counts", Some(42)),
        (TaskId::new(0, 2), "counts", None),
        (TaskId::new(1, 0), "table", Some(7)),
    ] {
        let store = store(&directory, task, name);
        if let Some(offset) = offset {
            commit(&*store, offset);
        }
        store.close().unwrap();
    }
    let application = directory.layout().application_directory().to_owned();
    fs::write(application.join("0_1/counts/store.redb"), vec![0xA5; 100_000]).unwrap();
    fs::create_dir_all(application.join("0_5/counts")).unwrap();
    fs::create_dir_all(application.join("0_6/other")).unwrap();
    fs::write(application.join("0_6/other/data"), "of an engine of someone's own").unwrap();
    fs::write(application.join("notes.txt"), "mine").unwrap();
    let open = store(&directory, TaskId::new(0, 3), "counts");
    commit(&*open, 9);

    let mut before = BTreeMap::new();
    contents(temporary.path(), &mut before);
    let (succeeded, output, errors) = run(&["--format", "json", "--changelog", "table=input"], temporary.path());
    assert!(succeeded && errors.is_empty(), "{errors}");
    let report: Value = serde_json::from_str(&output).unwrap();
    let application = &report["applications"][0];
    assert_eq!((&application["application"], &application["in_use"]), (&json!("app"), &json!(true)));
    assert_eq!(application["empty"], json!(["0_5"]));
    assert!(application["unfamiliar"][0].as_str().unwrap().ends_with("notes.txt"));
    let stores: Vec<_> = application["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|task| task["stores"].as_array().unwrap().iter().map(move |store| (task["task"].clone(), store)))
        .map(|(task, store)| json!([task, store["store"], store["changelog"], store["committed"], store["status"]]))
        .collect();
    let expected = [
        json!(["0_0", "counts", "app-counts-changelog-0", 41, "ok"]),
        json!(["0_1", "counts", "app-counts-changelog-1", null, "corrupted"]),
        json!(["0_2", "counts", "app-counts-changelog-2", null, "nothing_committed"]),
        json!(["0_3", "counts", "app-counts-changelog-3", null, "locked"]),
        json!(["0_6", "other", "app-other-changelog-6", null, "unreadable"]),
        json!(["1_0", "table", "input-0", 7, "ok"]),
    ];
    assert_eq!(stores, expected);

    let (succeeded, output, errors) = run(&["--application", "app"], temporary.path());
    assert!(succeeded && errors.is_empty(), "{errors}");
    assert!(output.starts_with("app: in use by a process\n"), "{output}");
    for line in ["  0_0   counts  app-counts-changelog-0         41    -    -  ok", "  no state: 0_5", "0_3   counts"] {
        assert!(output.contains(line), "{output}");
    }
    let mut after = BTreeMap::new();
    contents(temporary.path(), &mut after);
    // The engine of the open store may write to its file meanwhile, as it likes.
    before.retain(|path, _| !path.contains("0_3"));
    after.retain(|path, _| !path.contains("0_3"));
    assert!(before == after, "something was changed");

    drop((open, directory));
    let (_, output, _) = run(&[], temporary.path());
    assert!(output.starts_with("app: not in use\n") && output.contains("         9    -    -  ok"), "{output}");
}

#[test]
fn a_directory_that_is_not_there_is_an_error_and_is_not_made() {
    let temporary = tempfile::tempdir().unwrap();
    let missing = temporary.path().join("missing");
    let (succeeded, output, errors) = run(&[], &missing);
    assert!(!succeeded && output.is_empty());
    assert!(errors.starts_with("error: ") && errors.contains(missing.to_str().unwrap()), "{errors}");
    assert_eq!(errors.lines().count(), 1);
    assert!(!missing.exists());

    let (succeeded, output, _) = run(&[], temporary.path());
    assert!(succeeded && output == "There is no application's state.\n", "{output}");
    let (succeeded, _, errors) = run(&["--application", "../x"], temporary.path());
    assert!(!succeeded && errors.contains("../x"), "{errors}");
    assert_eq!(
        kstate_offset_cache::StateLayout::new(temporary.path(), "a b").unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}

#[test]
fn lags_are_counted_to_the_ends_that_a_broker_tells_and_a_vanished_topic_is_told() {
    let embedded = EmbeddedCluster::start().unwrap();
    let cluster = embedded.cluster();
    embedded.create_topic("app-counts-changelog", 2).unwrap();
    let producer: BaseProducer = ClientConfig::new().set("bootstrap.servers", cluster.brokers()).create().unwrap();
    for number in 0..50_u8 {
        let key = [number];
        producer.send(BaseRecord::to("app-counts-changelog").partition(0).key(&key).payload("v")).unwrap();
    }
    producer.flush(std::time::Duration::from_secs(30)).unwrap();

    let temporary = tempfile::tempdir().unwrap();
    let directory = StateDirectory::open(temporary.path(), "app").unwrap();
    for (task, name) in [(TaskId::new(0, 0), "counts"), (TaskId::new(0, 1), "counts"), (TaskId::new(1, 0), "gone")] {
        let store = store(&directory, task, name);
        commit(&*store, 41);
        store.close().unwrap();
    }
    let arguments = ["--brokers", cluster.brokers(), "--format", "json"];
    let (succeeded, output, errors) = run(&arguments, temporary.path());
    assert!(succeeded, "{errors}");
    let report: Value = serde_json::from_str(&output).unwrap();
    let tasks = &report["applications"][0]["tasks"];
    let log = |task: usize| &tasks[task]["stores"][0]["log"];
    // Records 42 to 49 are missing.
    assert_eq!((&tasks[0]["lag"], &log(0)["end"], &log(0)["lag"]), (&json!(8), &json!(50), &json!(8)));
    assert_eq!((&log(0)["diverged"], &log(0)["error"]), (&json!(false), &Value::Null));
    // Beyond the end of an empty log.
    assert_eq!((&log(1)["diverged"], &log(1)["end"], &log(1)["lag"]), (&json!(true), &json!(0), &json!(0)));
    // Unknown is not 0.
    assert_eq!((&tasks[2]["lag"], &log(2)["lag"]), (&Value::Null, &Value::Null));
    assert!(log(2)["error"].is_string(), "{output}");
    assert_eq!((&tasks[2]["stores"][0]["status"], &tasks[2]["stores"][0]["committed"]), (&json!("ok"), &json!(41)));
}
