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
    /// `Config` for what `guarantee` cannot have, and for dead letters that may be lost.
    pub(crate) fn check(&self, guarantee: Guarantee, dead_letters: Option<&str>) -> Result<()> {
        if let Some(topic) = dead_letters
            && self.of(topic) != Role::Required
        {
            let message = format!(
                "dead letters go to {topic}, which is {:?}: a record whose letter is lost would be lost with it. Let the \
                 topic be required, or send them to another",
                self.of(topic)
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
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
