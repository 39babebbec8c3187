//! The programs a broker needs, as found on this machine.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::distribution;
use crate::error::{Error, Result};

/// What Kafka 4 asks of its server's Java.
const OLDEST_JAVA: u32 = 17;

/// The programs a broker needs: Java, Maven unless the jars are in the cache already, and `setpriv` where it is there.
#[derive(Debug, Clone)]
pub struct Tools {
    pub(crate) java: PathBuf,
    pub(crate) maven: Option<PathBuf>,
    pub(crate) setpriv: Option<PathBuf>,
}

impl Tools {
    /// Looks for the programs on this machine; starts no broker and fetches nothing.
    ///
    /// # Errors
    /// Names what is missing: Java of at least version 17, or Maven while the jars have not been fetched yet.
    ///
    /// ```
    /// match kstate_test_broker::Tools::find() {
    ///     Ok(_) => println!("a broker can be started here"),
    ///     Err(missing) => println!("no broker here: {missing}"),
    /// }
    /// ```
    pub fn find() -> Result<Self> {
        let java = find_java()?;
        let maven = on_path("mvn");
        if maven.is_none() && !distribution::is_cached() {
            return Err(Error::new("Maven (mvn) is not on the PATH, and the broker's jars have not been fetched yet"));
        }
        Ok(Self { java, maven, setpriv: on_path("setpriv").filter(|setpriv| ties_to_its_parent(setpriv)) })
    }
}

fn find_java() -> Result<PathBuf> {
    let at_home = env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin").join("java"));
    let java = at_home
        .filter(|java| java.is_file())
        .or_else(|| on_path("java"))
        .ok_or_else(|| Error::new("Java is neither in JAVA_HOME nor on the PATH"))?;
    let output = Command::new(&java)
        .arg("-version")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::io(format!("{} does not run", java.display()), error))?;
    // It tells its version on standard error, unless a wrapper sends it elsewhere.
    let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stdout));
    match major_version(&said) {
        Some(version) if version >= OLDEST_JAVA => Ok(java),
        Some(version) => {
            Err(Error::new(format!("Java {OLDEST_JAVA} or newer is needed, {} is {version}", java.display())))
        }
        None => Err(Error::new(format!("{} does not tell its version", java.display()))),
    }
}

/// The `17` of `openjdk version "17.0.15" 2025-04-15`, the `8` of `java version "1.8.0_442"`.
fn major_version(said: &str) -> Option<u32> {
    let quoted = said.split_once("version \"")?.1.split('"').next()?;
    let mut numbers = quoted.split(|character: char| !character.is_ascii_digit()).filter_map(|part| part.parse().ok());
    match numbers.next()? {
        1 => numbers.next(),
        major => Some(major),
    }
}

/// Busybox has a `setpriv` too, which cannot do this.
fn ties_to_its_parent(setpriv: &Path) -> bool {
    Command::new(setpriv)
        .args(["--pdeathsig", "KILL", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn on_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::major_version;

    #[test]
    fn reads_javas_version_in_its_old_and_new_spelling() {
        assert_eq!(major_version("openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime"), Some(17));
        assert_eq!(major_version("openjdk version \"25\" 2025-09-16"), Some(25));
        assert_eq!(major_version("openjdk version \"26-ea\" 2026-03-17"), Some(26));
        assert_eq!(major_version("java version \"1.8.0_442\""), Some(8));
        assert_eq!(major_version("command not found"), None);
    }
}
