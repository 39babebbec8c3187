//! The broker a test holds.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::java;
use crate::ports::Ports;
use crate::process::Process;
use crate::readiness;
use crate::settings::server_properties;
use crate::tools::Tools;

/// Five seconds on an idle machine; a machine that compiles at the same time needs more.
const PATIENCE_TO_START: Duration = Duration::from_secs(120);
const PATIENCE_TO_STOP: Duration = Duration::from_secs(20);
/// A port found free can be taken before the broker binds it: then it starts again on others.
const TRIES: u32 = 3;

/// A Kafka broker on loopback ports, with its data in a temporary directory. Dropping it kills it and removes the data.
#[derive(Debug)]
pub struct Broker {
    // Before `directory`: it must be gone when its files are removed.
    process: Option<Process>,
    tools: Tools,
    distribution: Distribution,
    ports: Ports,
    bootstrap_servers: String,
    starts: u32,
    directory: TempDir,
}

impl Broker {
    /// Starts a broker with no topics and waits until it serves, which takes about five seconds, and half a minute more
    /// the first time on a machine, when its jars are fetched.
    ///
    /// # Errors
    /// When Java or Maven is missing, the jars cannot be fetched, or the broker is not ready within two minutes; then
    /// the message ends with the last lines of its log.
    ///
    /// ```no_run
    /// let broker = kstate_test_broker::Broker::start()?;
    /// # Ok::<(), kstate_test_broker::Error>(())
    /// ```
    pub fn start() -> Result<Self> {
        let tools = Tools::find()?;
        let distribution = Distribution::obtain(&tools)?;
        let mut tries_left = TRIES;
        loop {
            tries_left -= 1;
            match Self::start_on(Ports::free()?, tools.clone(), distribution.clone()) {
                Err(error) if error.is_port_taken() && tries_left > 0 => {}
                outcome => return outcome,
            }
        }
    }

    fn start_on(ports: Ports, tools: Tools, distribution: Distribution) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("kstate-broker-")
            .tempdir()
            .map_err(|error| Error::io("cannot make a temporary directory for the broker", error))?;
        let data = directory.path().join("data");
        distribution.lay_storage(&data)?;
        fs::write(directory.path().join("server.properties"), server_properties(ports, &data))
            .map_err(|error| Error::io("cannot write the broker's settings", error))?;
        let mut broker = Self {
            process: None,
            tools,
            distribution,
            ports,
            bootstrap_servers: format!("127.0.0.1:{}", ports.broker),
            starts: 0,
            directory,
        };
        broker.launch()?;
        Ok(broker)
    }

    /// The address for a client's `bootstrap.servers`. It stays the same over [`restart`](Self::restart).
    ///
    /// ```no_run
    /// # let broker = kstate_test_broker::Broker::start()?;
    /// assert!(broker.bootstrap_servers().starts_with("127.0.0.1:"));
    /// # Ok::<(), kstate_test_broker::Error>(())
    /// ```
    #[must_use]
    pub fn bootstrap_servers(&self) -> &str {
        &self.bootstrap_servers
    }

    /// The broker's process id, or `None` while it is stopped or killed.
    ///
    /// ```no_run
    /// # let mut broker = kstate_test_broker::Broker::start()?;
    /// broker.kill()?;
    /// assert_eq!(broker.process_id(), None);
    /// # Ok::<(), kstate_test_broker::Error>(())
    /// ```
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().filter(|process| !process.has_ended()).map(Process::id)
    }

    /// Asks the broker to shut down, as an operator would, and waits for its end; SIGKILL after 20 seconds.
    ///
    /// # Errors
    /// When it was not running.
    ///
    /// ```no_run
    /// # let mut broker = kstate_test_broker::Broker::start()?;
    /// broker.stop()?;
    /// # Ok::<(), kstate_test_broker::Error>(())
    /// ```
    pub fn stop(&mut self) -> Result<()> {
        self.running()?.terminate(PATIENCE_TO_STOP);
        self.process = None;
        Ok(())
    }

    /// Sends SIGKILL, as a crash would, and returns when the process is gone.
    ///
    /// # Errors
    /// When it was not running.
    ///
    /// ```no_run
    /// # let mut broker = kstate_test_broker::Broker::start()?;
    /// broker.kill()?;
    /// broker.restart()?;
    /// # Ok::<(), kstate_test_broker::Error>(())
    /// ```
    pub fn kill(&mut self) -> Result<()> {
        self.running()?.kill();
        self.process = None;
        Ok(())
    }

    /// Starts the broker again on the same ports and data, after it stopped or was killed; one that runs is stopped
    /// first. Returns when it serves. After a kill that takes up to three seconds longer: the controller first waits
    /// for the end of the killed broker's session.
    ///
    /// # Errors
    /// When the broker is not ready within two minutes; the message ends with the last lines of its log.
    ///
    /// ```no_run
    /// # let mut broker = kstate_test_broker::Broker::start()?;
    /// broker.restart()?;
    /// # Ok::<(), kstate_test_broker::Error>(())
    /// ```
    pub fn restart(&mut self) -> Result<()> {
        if self.process_id().is_some() {
            self.stop()?;
        }
        self.launch()
    }

    fn running(&mut self) -> Result<&mut Process> {
        let process = self.process.as_mut().filter(|process| !process.has_ended());
        process.ok_or_else(|| Error::new("the Kafka broker is not running"))
    }

    fn launch(&mut self) -> Result<()> {
        self.starts += 1;
        let log = self.log();
        let io = |error| Error::io("cannot start the Kafka broker", error);
        let output = File::create(&log).map_err(io)?;
        let mut command = java::broker(&self.tools, &self.distribution.jars());
        command.arg(self.directory.path().join("server.properties"));
        command.current_dir(self.directory.path()).stderr(output.try_clone().map_err(io)?).stdout(output);
        let process = Process::spawn(command).map_err(io)?;
        readiness::wait(&process, &log, self.ports.broker, PATIENCE_TO_START)?;
        self.process = Some(process);
        Ok(())
    }

    /// One file for each start: the line that tells of readiness must be of this one.
    fn log(&self) -> PathBuf {
        self.directory.path().join(format!("broker-{}.log", self.starts))
    }
}
