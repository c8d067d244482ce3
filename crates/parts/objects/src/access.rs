//! Credentials and the address of the store, from the usual environment variables.

use std::fmt;

use url::Url;

use crate::error::ObjectError;

/// Endpoint, region and credentials. Printing it shows none of the credentials.
#[derive(Clone)]
pub struct Access {
    pub(crate) endpoint: Option<Url>,
    pub(crate) region: String,
    pub(crate) key: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
}

impl Access {
    /// Reads AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION or
    /// AWS_DEFAULT_REGION (us-east-1 without them), AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL.
    /// Neither profiles nor the metadata service of a cloud machine are used.
    ///
    /// # Errors
    /// [`ObjectError::Missing`] without a key, [`ObjectError::Setting`] for an endpoint that is not
    /// a URL.
    pub fn from_environment() -> Result<Self, ObjectError> {
        Self::from_settings(|name| std::env::var(name).ok())
    }

    /// The same from `setting`, which returns the value of each variable. Empty ones count as not
    /// set.
    ///
    /// # Errors
    /// As [`Access::from_environment`].
    pub fn from_settings(
        setting: impl Fn(&'static str) -> Option<String>,
    ) -> Result<Self, ObjectError> {
        let get = |name| setting(name).filter(|value| !value.is_empty());
        let need = |name| get(name).ok_or(ObjectError::Missing { name });
        let endpoint = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]
            .into_iter()
            .find_map(|name| get(name).map(|value| (name, value)));
        let endpoint = endpoint
            .map(|(name, value)| address(name, &value))
            .transpose()?;
        let region = get("AWS_REGION").or_else(|| get("AWS_DEFAULT_REGION"));
        Ok(Self {
            endpoint,
            region: region.unwrap_or_else(|| "us-east-1".to_owned()),
            key: need("AWS_ACCESS_KEY_ID")?,
            secret: need("AWS_SECRET_ACCESS_KEY")?,
            token: get("AWS_SESSION_TOKEN"),
        })
    }

    /// Removes the secrets from a text of the store, which may repeat what it was sent.
    pub(crate) fn redact(&self, text: &str) -> String {
        let shown = text.replace(&self.secret, "***");
        match &self.token {
            Some(token) => shown.replace(token, "***"),
            None => shown,
        }
    }
}

/// Parses the address of an endpoint. Errors do not repeat it, because it may have a password in
/// it.
fn address(name: &'static str, value: &str) -> Result<Url, ObjectError> {
    let fail = |reason: String| ObjectError::Setting { name, reason };
    let url = Url::parse(value).map_err(|e| fail(format!("it is not an address: {e}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(fail(
            "it begins with neither http:// nor https://".to_owned(),
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(fail("it has a user or password in it".to_owned()));
    }
    Ok(url)
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("endpoint", &self.endpoint.as_ref().map(Url::as_str))
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(settings: &[(&str, &str)]) -> Result<Access, ObjectError> {
        let find = |name| settings.iter().find(|(known, _)| *known == name);
        Access::from_settings(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    const KEYS: [(&str, &str); 2] = [
        ("AWS_ACCESS_KEY_ID", "name"),
        ("AWS_SECRET_ACCESS_KEY", "hidden-one"),
    ];

    #[test]
    fn nothing_secret_is_shown() {
        let mut settings = KEYS.to_vec();
        settings.push(("AWS_SESSION_TOKEN", "hidden-two"));
        settings.push(("AWS_ENDPOINT_URL", "http://127.0.0.1:9000"));
        let Ok(access) = access(&settings) else {
            panic!("all is set");
        };
        let shown = format!("{access:?}");
        assert!(shown.contains("127.0.0.1:9000") && shown.contains("us-east-1"));
        assert!(!shown.contains("hidden"), "{shown}");
        assert_eq!(access.redact("a hidden-one b hidden-two"), "a *** b ***");
    }

    #[test]
    fn what_is_missing_or_useless_is_named() {
        let missing = access(&KEYS[..1]).map_err(|e| e.to_string());
        let text = "AWS_SECRET_ACCESS_KEY is not set, and an object store needs it";
        assert_eq!(missing.err().as_deref(), Some(text));
        for (value, reason) in [
            (
                "localhost:9000",
                "it begins with neither http:// nor https://",
            ),
            (
                "nothing",
                "it is not an address: relative URL without a base",
            ),
            ("http://u:hidden@h", "it has a user or password in it"),
        ] {
            let mut settings = KEYS.to_vec();
            settings.push(("AWS_ENDPOINT_URL", value));
            let text = format!("AWS_ENDPOINT_URL is of no use: {reason}");
            let useless = access(&settings).map_err(|e| e.to_string());
            assert_eq!(useless.err(), Some(text));
        }
    }
}
