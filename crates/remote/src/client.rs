//! A connection to a bucket or a server.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use opscope_store::remote::{ServerLogin, login_of};
use percent_encoding::percent_decode_str;

use crate::location::{Location, Service};
use crate::{credentials, failure, lock};

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long one request may take, with all that it brings.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Requests that failed by the server's or the network's fault are made again this often, unless
/// `OPSCOPE_REMOTE_RETRIES` says otherwise.
const N_RETRIES_MAX: usize = 12;
/// The environment variable of that number.
const RETRIES_VARIABLE: &str = "OPSCOPE_REMOTE_RETRIES";

/// One bucket, container or server.
pub(crate) struct Client {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Who asks, in words.
    pub(crate) login: String,
    /// Whether parts of files can be asked for, as far as is known.
    has_ranges: AtomicBool,
}

impl Client {
    pub(crate) fn has_ranges(&self) -> bool {
        self.has_ranges.load(Ordering::Relaxed)
    }

    /// The server has answered a request for a part with the whole.
    pub(crate) fn note_no_ranges(&self) {
        self.has_ranges.store(false, Ordering::Relaxed);
    }
}

/// The clients of this process.
#[derive(Default)]
pub(crate) struct Clients {
    known: Mutex<HashMap<(Service, String), Arc<Client>>>,
}

impl Clients {
    /// The client of a URL's bucket or server.
    ///
    /// # Errors
    /// Without credentials, with what was looked for; with settings that contradict each other.
    pub(crate) fn of_place(&self, location: &Location) -> io::Result<Arc<Client>> {
        let key = (location.service, location.place.clone());
        if let Some(client) = lock(&self.known).get(&key) {
            return Ok(client.clone());
        }
        let client = Arc::new(connect(location)?);
        lock(&self.known).insert(key, client.clone());
        Ok(client)
    }
}

fn connect(location: &Location) -> io::Result<Client> {
    let (store, login) = match location.service {
        Service::S3 => credentials::s3(&location.place)?,
        Service::Gcs => credentials::gcs(&location.place)?,
        Service::Azure => credentials::azure(&location.place)?,
        Service::Http => http(&location.place)?,
    };
    Ok(Client {
        store,
        login,
        has_ranges: AtomicBool::new(true),
    })
}

/// A store, and who asks it.
pub(crate) type NamedStore = (Arc<dyn ObjectStore>, String);

fn http(place: &str) -> io::Result<NamedStore> {
    let (scheme, server) = place.split_once("://").unwrap_or(("", place));
    let login = login_of(server);
    let mut options = options(scheme == "http");
    if let Some(login) = &login {
        options = options.with_default_headers(basic(login)?);
    }
    let builder = HttpBuilder::new()
        .with_url(place)
        .with_client_options(options)
        .with_retry(retry());
    let store = builder.build().map_err(|error| settings(place, &error))?;
    let login = match login {
        Some(login) => format!("the user `{}`", login.user),
        None => "requests without a login".to_owned(),
    };
    Ok((Arc::new(store), login))
}

/// The header of a login, whose parts are encoded in URLs.
fn basic(login: &ServerLogin) -> io::Result<HeaderMap> {
    let [user, password] =
        [&login.user, &login.password].map(|text| percent_decode_str(text).collect::<Vec<u8>>());
    let text = BASE64_STANDARD.encode([&user[..], b":", &password].concat());
    // The error would repeat the value.
    let mut value = HeaderValue::from_str(&format!("Basic {text}"))
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
}

/// Settings that a store cannot be made of.
pub(crate) fn settings(place: &str, error: &object_store::Error) -> io::Error {
    let reason = failure::masked(&failure::chain(error));
    io::Error::new(io::ErrorKind::InvalidInput, format!("`{place}`: {reason}"))
}

pub(crate) fn options(allows_http: bool) -> ClientOptions {
    ClientOptions::new()
        .with_allow_http(allows_http)
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_timeout(REQUEST_TIMEOUT)
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
