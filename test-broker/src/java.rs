//! The command lines of the broker's Java programs.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::tools::Tools;

/// Small and quick to start, which a test wants more than peak throughput: one collector thread, and only the fast
/// compiler (the optimising one doubles the start-up time on two cores).
const OPTIONS: [&str; 7] = [
    "-Xms64m",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
];

/// Makes the storage directory a broker starts from.
pub(crate) fn storage_tool(tools: &Tools, jars: &Path) -> Command {
    let mut command = Command::new(&tools.java);
    command.args(OPTIONS).arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn");
    add_main_class(&mut command, jars, "kafka.tools.StorageTool");
    command
}

/// The broker itself. It dies with the thread that starts it where `setpriv` is there, at the latest with the process.
pub(crate) fn broker(tools: &Tools, jars: &Path) -> Command {
    let mut command = match &tools.setpriv {
        // setpriv replaces itself by Java, so the process id is the broker's.
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL"]).arg(&tools.java);
            command
        }
        None => Command::new(&tools.java),
    };
    command.args(OPTIONS).arg("-Dorg.slf4j.simpleLogger.showDateTime=true");
    // Hundreds of lines of settings at each start, and nothing to learn from them.
    command.arg("-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn");
    add_main_class(&mut command, jars, "kafka.Kafka");
    command
}

fn add_main_class(command: &mut Command, jars: &Path, class: &str) {
    command.arg("-cp").arg(jars.join("*")).arg(class).stdin(Stdio::null());
}
