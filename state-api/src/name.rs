use crate::{Error, ErrorKind, Result};

/// The longest name of a store or topic, in bytes: Kafka's limit for a topic.
///
/// ```
/// assert!(kstate_api::validate_name("topic", &"x".repeat(kstate_api::MAX_NAME_LEN)).is_ok());
/// ```
pub const MAX_NAME_LEN: usize = 249;

/// Checks a store's or a topic's name (clause D1): letters, digits, `.`, `_` and `-`, at most [`MAX_NAME_LEN`] bytes,
/// neither `.` nor `..`, so that it is a legal topic name and a legal directory name at once.
///
/// # Errors
/// `InvalidArgument`, naming `what` was checked and the character or the length that is wrong.
///
/// ```
/// assert!(kstate_api::validate_name("store", "ok.name-1_x").is_ok());
/// let error = kstate_api::validate_name("store", "my store").unwrap_err();
/// assert!(error.to_string().contains("' '"));
/// ```
pub fn validate(what: &str, name: &str) -> Result<()> {
    let refuse = |why: String| Err(Error::new(ErrorKind::InvalidArgument, format!("{what} name `{name}` {why}")));
    if name.is_empty() || name == "." || name == ".." {
        return refuse("is not a name".into());
    }
    if let Some(bad) = name.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))) {
        return refuse(format!("has the character {bad:?}; letters, digits, `.`, `_` and `-` are allowed"));
    }
    if name.len() > MAX_NAME_LEN {
        return refuse(format!("has {} bytes; {MAX_NAME_LEN} are allowed", name.len()));
    }
    Ok(())
}
