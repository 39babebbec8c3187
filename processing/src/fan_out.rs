use kstate_api::{Error, ErrorKind, Result};

/// How much one branch of a fan-out has to say about the whole (clause A2).
///
/// ```
/// use kstate_processing::{FanOut, Role};
///
/// // Stored for certain, in one of two indexes at least, and reported if it works out.
/// let roles = FanOut::new([Role::Required, Role::AnyOf, Role::AnyOf, Role::Ignored]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It must succeed: if it fails, the whole fails.
    Required,
    /// Of all branches with this role one must succeed: if every one fails, the whole fails.
    AnyOf,
    /// It may do as it likes.
    Ignored,
}

/// What becomes of a record for which no branch has a say: there is none, or all are [`Role::Ignored`].
///
/// ```
/// use kstate_processing::{DeadEnd, FanOut};
///
/// let errors_without_consumer = FanOut::new([]).unwrap().with_dead_end(DeadEnd::Fail);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeadEnd {
    /// It is done: somebody chose to drop it.
    #[default]
    Ack,
    /// It is not done: it went where nobody takes care of it.
    Fail,
}

/// The branches along which one edge of the topology sends each record, made once.
///
/// ```
/// use kstate_processing::{FanOut, Role};
///
/// let edge = FanOut::new([Role::Required, Role::Ignored]).unwrap();
/// assert_eq!(edge.roles().len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FanOut {
    roles: Box<[Role]>,
    pub(crate) required: u16,
    pub(crate) any_of: u16,
    pub(crate) dead_end: DeadEnd,
}

impl FanOut {
    /// A fan-out with a branch for each of `roles`, and [`DeadEnd::Ack`].
    ///
    /// # Errors
    /// `Config` for more than 65 535 branches: nest them.
    ///
    /// ```
    /// # use kstate_processing::{FanOut, Role};
    /// assert!(FanOut::new([Role::Required; 4]).is_ok());
    /// assert!(FanOut::new([Role::Required; 70_000]).is_err());
    /// ```
    pub fn new(roles: impl IntoIterator<Item = Role>) -> Result<Self> {
        let roles: Box<[Role]> = roles.into_iter().collect();
        let count = |role| u16::try_from(roles.iter().filter(|other| **other == role).count());
        let (Ok(required), Ok(any_of)) = (count(Role::Required), count(Role::AnyOf)) else {
            let message = format!("a fan-out has at most 65535 branches of a role, not {}: nest them", roles.len());
            return Err(Error::new(ErrorKind::Config, message));
        };
        Ok(Self { roles, required, any_of, dead_end: DeadEnd::default() })
    }

    /// The same fan-out with another policy for records for which no branch has a say.
    ///
    /// ```
    /// # use kstate_processing::{DeadEnd, FanOut};
    /// let edge = FanOut::new([]).unwrap().with_dead_end(DeadEnd::Fail);
    /// ```
    #[must_use]
    pub fn with_dead_end(self, dead_end: DeadEnd) -> Self {
        Self { dead_end, ..self }
    }

    /// The roles of the branches, in their order.
    ///
    /// ```
    /// # use kstate_processing::{FanOut, Role};
    /// assert_eq!(FanOut::new([Role::AnyOf]).unwrap().roles(), [Role::AnyOf]);
    /// ```
    #[must_use]
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }

    pub(crate) const fn is_dead_end(&self) -> bool {
        self.required == 0 && self.any_of == 0
    }
}
