//! A connection to a bucket or a server.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use object_store::ObjectStore;
use object_store::http::HttpBuilder;
use opscope_store::remote::{ServerLogin, login_of};
use percent_encoding::percent_decode_str;

use crate::http_client::Connector;
use crate::location::{Location, Service};
use crate::settings::{NamedStore, options, retry, wrong};
use crate::{credentials, lock};

/// One bucket, container or server.
pub(crate) struct Client {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Description of the credentials.
    pub(crate) login: String,
    /// Whether the server supports range requests, as far as is known.
    has_ranges: AtomicBool,
}

impl Client {
    pub(crate) fn has_ranges(&self) -> bool {
        self.has_ranges.load(Ordering::Relaxed)
    }

    /// Notes that the server answered a range request with the whole file.
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
    /// Missing credentials, with the places that were searched; contradictory settings.
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

fn http(place: &str) -> io::Result<NamedStore> {
    let (scheme, server) = place.split_once("://").unwrap_or(("", place));
    let login = login_of(server);
    let mut options = options(scheme == "http");
    if let Some(login) = &login {
        options = options.with_default_headers(basic(login)?);
    }
    let builder = HttpBuilder::new()
        .with_url(place)
        .with_http_connector(Connector)
        .with_client_options(options)
        .with_retry(retry());
    let store = builder.build().map_err(|error| wrong(place, &error))?;
    let login = match login {
        Some(login) => format!("the user `{}`", login.user),
        None => "requests without credentials".to_owned(),
    };
    Ok((Arc::new(store), login))
}

/// The header of a login, which URLs percent-encode.
fn basic(login: &ServerLogin) -> io::Result<HeaderMap> {
    let [user, password] =
        [&login.user, &login.password].map(|text| percent_decode_str(text).collect::<Vec<u8>>());
    let text = BASE64_STANDARD.encode([&user[..], b":", &password].concat());
    // The original error would repeat the value.
    let mut value = HeaderValue::from_str(&format!("Basic {text}"))
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
}
