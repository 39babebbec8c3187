use std::collections::BTreeMap;

use kstate_api::{Error, ErrorKind, Result};
use kstate_processing::Role;

use super::Guarantee;

/// How much each output topic has to say about the records that are sent to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roles(BTreeMap<String, Role>);

impl Roles {
    pub(crate) fn set(&mut self, topic: String, role: Role) {
        self.0.insert(topic, role);
    }

    pub(crate) fn of(&self, topic: &str) -> Role {
        self.0.get(topic).copied().unwrap_or(Role::Required)
    }

    /// # Errors
    /// `Config` for what `guarantee` cannot have.
    pub(crate) fn check(&self, guarantee: Guarantee) -> Result<()> {
        let Some((topic, role)) = self.0.iter().find(|(_, role)| **role != Role::Required) else { return Ok(()) };
        match guarantee {
            Guarantee::AtLeastOnce => Ok(()),
            Guarantee::ExactlyOnce => {
                let message = format!(
                    "output {topic} is {role:?}, but exactly once: a transaction is aborted if any of its records is \
                     not delivered. Let every output be required, or have at least once"
                );
                Err(Error::new(ErrorKind::Config, message))
            }
        }
    }
}
