//! Stores on the disk, and this test program once more as another process.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic, reason = "shared by tests")]

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::Arc,
};

use kstate_api::{
    ChangelogOffsets, KeyValueStore, KeyValueStoreSupplier, Offset, StagedSupplier, StateStore, TaskId, TopicPartition,
};
use kstate_offset_cache::{StateDirectory, TopologyStores};
use kstate_store_redb::{RedbBackends, RedbOptions};

pub const APPLICATION: &str = "app";
const DIRECTORY: &str = "KSTATE_TEST_DIRECTORY";

pub fn open(state_directory: &Path) -> StateDirectory {
    StateDirectory::open(state_directory, APPLICATION).unwrap()
}

pub fn offset(value: i64) -> Offset {
    Offset::new(value).unwrap()
}

pub fn supplier(name: &str) -> Arc<dyn KeyValueStoreSupplier> {
    let options = RedbOptions::new().cache_size(1 << 20);
    Arc::new(StagedSupplier::new(name, RedbBackends::new(options)).unwrap())
}

/// One store, `counts`, in sub-topology 0.
pub fn topology() -> TopologyStores {
    TopologyStores::new(APPLICATION).unwrap().with_logged(0, supplier("counts")).unwrap()
}

/// The changelog partition of the store `counts` of `task`.
pub fn changelog(task: TaskId) -> TopicPartition {
    TopicPartition::new("app-counts-changelog", i32::try_from(task.partition()).unwrap())
}

/// The store `counts` of `task` in its directory, which the caller owns.
pub fn store_in(directory: &Path, task: TaskId) -> Arc<dyn KeyValueStore> {
    supplier("counts").open(directory, &[changelog(task)]).unwrap()
}

pub fn commit(store: &dyn KeyValueStore, value: i64) {
    let partition = store.changelog_partitions()[0].clone();
    store.put(b"word", &value.to_be_bytes()).unwrap();
    store.commit(&ChangelogOffsets::new().with(partition, offset(value))).unwrap();
}

/// Makes the store `counts` of `task` with `value` committed, and releases the task.
pub fn make_store(directory: &StateDirectory, task: TaskId, value: i64) -> PathBuf {
    let lock = directory.lock(task).unwrap();
    let path = lock.store_directory("counts").unwrap();
    let store = store_in(&path, task);
    commit(&*store, value);
    store.close().unwrap();
    path
}

/// The ignored test `case` of this program, run in another process with `directory`.
pub struct OtherProcess {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl OtherProcess {
    /// Starts it and waits until it is [`ready`].
    pub fn start(case: &str, directory: &Path) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", case, "--ignored", "--nocapture"]).env(DIRECTORY, directory);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("ready") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "{case} ended");
        }
        Self { child, output }
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Lets it end in peace.
    pub fn end(mut self) {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        while self.output.read_line(&mut rest).unwrap() > 0 {}
        assert!(self.child.wait().unwrap().success(), "{rest}");
    }
}

/// In the other process: its directory.
pub fn directory_of_child() -> PathBuf {
    env::var_os(DIRECTORY).unwrap().into()
}

/// In the other process: tells the test, and waits until it is killed or may end.
pub fn ready() {
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

/// Runs the ignored test `case` of this program in a user and mount namespace of its own, after `script` there, with
/// `directory`. Where that is not allowed, it says so on standard error; `KSTATE_REQUIRE_TMPFS=1` makes that a failure.
#[cfg(target_os = "linux")]
pub fn run_in_namespace(script: &str, case: &str, directory: &Path) {
    use std::io::Write as _;

    let in_namespace = |script: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).env(DIRECTORY, directory);
        unshare
    };
    let allowed = in_namespace(script).output();
    if !allowed.as_ref().is_ok_and(|output| output.status.success()) {
        let why =
            allowed.map_or_else(|error| error.to_string(), |output| String::from_utf8_lossy(&output.stderr).into());
        assert!(env::var_os("KSTATE_REQUIRE_TMPFS").is_none(), "cannot make a namespace: {why}");
        // Not by a macro, which the test harness would swallow.
        let mut stderr = std::io::stderr();
        writeln!(stderr, "SKIPPED: {case}: cannot make a namespace: {}", why.trim()).unwrap();
        return;
    }
    let program = env::current_exe().unwrap();
    let script = format!("{script} && exec \"$0\" --exact {case} --ignored --nocapture");
    let run = in_namespace(&script).arg(program).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}
