use std::{
    env,
    process::{Child, Command},
};

/// A test of this program in a process of its own, which is killed at the end at the latest.
pub(crate) struct Process(Child);

impl Process {
    /// Runs the test `child_process` with the environment variable `variable`, which tells it what to do.
    pub(crate) fn start(variable: &str, told: &str) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "child_process", "--ignored", "--nocapture", "--test-threads=1"]).env(variable, told);
        Self(command.spawn().unwrap())
    }

    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that is stopped is killed all the same.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
