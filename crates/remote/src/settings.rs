//! Settings of all clients.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use crate::failure;
use crate::http_client::REQUEST_TIMEOUT;

/// Number of retries after an error of the server or the network, unless `OPSCOPE_REMOTE_RETRIES`
/// sets another.
const N_RETRIES_MAX: usize = 12;
/// The environment variable for that number.
const RETRIES_VARIABLE: &str = "OPSCOPE_REMOTE_RETRIES";

/// A store, and a description of its credentials.
pub(crate) type NamedStore = (Arc<dyn ObjectStore>, String);

/// The error of settings that are not usable for a store.
pub(crate) fn wrong(place: &str, error: &object_store::Error) -> io::Error {
    let reason = failure::masked(&failure::chain(error));
    io::Error::new(io::ErrorKind::InvalidInput, format!("`{place}`: {reason}"))
}

pub(crate) fn options(allows_http: bool) -> ClientOptions {
    ClientOptions::new().with_allow_http(allows_http)
}

pub(crate) fn retry() -> RetryConfig {
    let given = std::env::var(RETRIES_VARIABLE).ok();
    let given = given.and_then(|text| text.trim().parse().ok());
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(10),
            base: 2.0,
        },
        max_retries: given.unwrap_or(N_RETRIES_MAX),
        retry_timeout: REQUEST_TIMEOUT,
    }
}
