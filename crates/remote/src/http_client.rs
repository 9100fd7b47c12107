//! HTTP for the clients of all services: `ureq`, whose calls block, on threads that may block.
//!
//! Redirects are followed only within the same server: a dump's URL names the only server that may
//! be contacted.

use std::env;
use std::fmt;
use std::io::{self, Read};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::LOCATION;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body::{Body, Frame};
use object_store::client::{
    ClientConfigKey, ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind,
    HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use opscope_store::regular_file;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use url::Url;

use crate::lock;

/// Time-out for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time-out for a request, including its body.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of redirects of a request.
const N_REDIRECTS_MAX: usize = 5;
/// Bytes of an answer that are passed on at once.
const CHUNK_BYTES: usize = 256 << 10;
/// Maximum size of a listing, which is buffered whole: a million objects take half of it.
const LISTING_BYTES_MAX: u64 = 512 << 20;
/// Query parameters of listings: of S3 and Google Cloud Storage, and of Azure.
const LISTING_QUERIES: [&str; 2] = ["list-type=", "comp=list"];
/// Chunks buffered for the reader.
const N_CHUNKS_WAITING: usize = 4;
/// Maximum size of a file of certificates; usual files have 250 kB.
const CERTIFICATES_BYTES_MAX: u64 = 64 << 20;

/// Where systems store the certificates that they trust: Debian, Red Hat, SUSE, Alpine and macOS.
const SYSTEM_CERTIFICATES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Makes the HTTP clients of stores.
#[derive(Debug)]
pub(crate) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .root_certs(root_certificates())
            .build();
        let config = ureq::Agent::config_builder()
            .https_only(allows_http.as_deref() != Some("true"))
            .tls_config(tls)
            // `object_store` itself interprets statuses, and `ask` follows redirects.
            .http_status_as_error(false)
            .max_redirects(0)
            // WebDAV lists a directory with `PROPFIND`.
            .allow_non_standard_methods(true)
            .user_agent(concat!("opscope/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(REQUEST_TIMEOUT))
            .build();
        Ok(HttpClient::new(Service {
            config,
            headers: options.get_default_headers().cloned().unwrap_or_default(),
            agent: Mutex::new(None),
        }))
    }
}

/// The certificates that this machine trusts: those of `SSL_CERT_FILE`, else the system's file.
/// Without such a file every TLS connection fails.
fn root_certificates() -> RootCerts {
    let named = env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let places = SYSTEM_CERTIFICATES.map(PathBuf::from);
    let text = named
        .into_iter()
        .chain(places)
        .find_map(|path| regular_file::read(&path, CERTIFICATES_BYTES_MAX).ok());
    let items = parse_pem(text.as_deref().unwrap_or_default());
    let certificates = items.filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    RootCerts::from(certificates)
}

struct Service {
    config: ureq::config::Config,
    headers: HeaderMap,
    /// With the ID of the process that created it: a forked child shares its connections with the
    /// parent, and answers could go to either.
    agent: Mutex<Option<(u32, ureq::Agent)>>,
}

impl fmt::Debug for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may hold a password.
        formatter.write_str("Service")
    }
}

impl Service {
    fn agent(&self) -> ureq::Agent {
        let mut known = lock(&self.agent);
        let process = std::process::id();
        match &*known {
            Some((owner, agent)) if *owner == process => agent.clone(),
            _ => {
                let agent = self.config.new_agent();
                *known = Some((process, agent.clone()));
                agent
            }
        }
    }
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (mut parts, body) = request.into_parts();
        for (name, value) in &self.headers {
            parts.headers.entry(name).or_insert_with(|| value.clone());
        }
        let body = body.as_bytes().cloned().unwrap_or_default();
        let is_listing = is_listing(&parts.method, &parts.uri);
        let agent = self.agent();
        let answer = task::spawn_blocking(move || ask(&agent, parts, &body));
        let answer = answer.await.map_err(|error| {
            HttpError::new(HttpErrorKind::Unknown, io::Error::other(error.to_string()))
        })?;
        let (parts, body) = answer.map_err(http_error)?.into_parts();
        let (sender, chunks) = mpsc::channel(N_CHUNKS_WAITING);
        let size = body.content_length();
        let reader = body.into_reader();
        let n_bytes_max = if is_listing {
            LISTING_BYTES_MAX
        } else {
            u64::MAX
        };
        Handle::current().spawn_blocking(move || hand_on(reader, n_bytes_max, &sender));
        let body = HttpResponseBody::new(ChunkedBody { chunks, size });
        Ok(Response::from_parts(parts, body))
    }
}

/// Makes a request, and follows redirects within the same server.
fn ask(
    agent: &ureq::Agent,
    mut parts: Parts,
    body: &Bytes,
) -> Result<Response<ureq::Body>, ureq::Error> {
    for _ in 0..=N_REDIRECTS_MAX {
        let answer = if body.is_empty() {
            agent.run(Request::from_parts(parts.clone(), ()))?
        } else {
            agent.run(Request::from_parts(parts.clone(), body.as_ref()))?
        };
        let location = answer.headers().get(LOCATION);
        let target = location.and_then(|location| location.to_str().ok());
        let (true, Some(target)) = (answer.status().is_redirection(), target) else {
            return Ok(answer);
        };
        parts.uri = redirected(&parts.uri, &parts.method, target)?;
    }
    Err(ureq::Error::TooManyRedirects)
}

/// The target of a redirect.
///
/// # Errors
/// If it is another server, or the request is not read-only.
fn redirected(from: &Uri, method: &Method, target: &str) -> Result<Uri, ureq::Error> {
    let base = Url::parse(&from.to_string()).map_err(|error| refuse(error.to_string()))?;
    let to = base
        .join(target)
        .map_err(|error| refuse(format!("the server redirects to `{target}`: {error}")))?;
    if to.origin() != base.origin() {
        let origin = to.origin().ascii_serialization();
        return Err(refuse(format!(
            "the server redirects to another server, `{origin}`, which is not contacted: if you trust \
             it, give its URL"
        )));
    }
    if *method == Method::POST || *method == Method::PUT {
        return Err(refuse(format!("the server redirects a {method}")));
    }
    let to = to.as_str().parse::<Uri>();
    to.map_err(|error| ureq::Error::Http(error.into()))
}

/// The error of a refused redirect.
fn refuse(reason: String) -> ureq::Error {
    ureq::Error::Other(reason.into())
}

/// Whether a request is for a listing rather than an object.
fn is_listing(method: &Method, uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    method.as_str() == "PROPFIND" || LISTING_QUERIES.iter().any(|word| query.contains(word))
}

/// Passes an answer on to its end, or until its reader is dropped. An answer of more than
/// `n_bytes_max` ends with an error.
fn hand_on(mut reader: impl Read, n_bytes_max: u64, sender: &Sender<Result<Bytes, HttpError>>) {
    let mut n_bytes: u64 = 0;
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let read = reader
            .by_ref()
            .take(CHUNK_BYTES as u64)
            .read_to_end(&mut chunk);
        n_bytes = n_bytes.saturating_add(chunk.len() as u64);
        if n_bytes > n_bytes_max {
            let reason = format!("expected at most {n_bytes_max} bytes of a listing, found more");
            let error = HttpError::new(HttpErrorKind::Decode, io::Error::other(reason));
            let _ = sender.blocking_send(Err(error));
            return;
        }
        if !chunk.is_empty() && sender.blocking_send(Ok(chunk.into())).is_err() {
            return;
        }
        match read {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                let error = HttpError::new(HttpErrorKind::Interrupted, BrokenOff(error));
                let _ = sender.blocking_send(Err(error));
                return;
            }
        }
    }
}

/// An answer that ended early.
#[derive(Debug, thiserror::Error)]
#[error("{BROKEN_OFF}: {0}")]
struct BrokenOff(#[source] io::Error);

const BROKEN_OFF: &str = "the answer broke off";

/// Whether a message reports an answer that broke off, so that a retry may return the rest.
pub(crate) fn is_broken_off(message: &str) -> bool {
    message.contains(BROKEN_OFF)
}

fn http_error(error: ureq::Error) -> HttpError {
    let kind = match &error {
        ureq::Error::Timeout(_) => HttpErrorKind::Timeout,
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => HttpErrorKind::Connect,
        ureq::Error::Protocol(_) => HttpErrorKind::Request,
        ureq::Error::Io(error) => match error.kind() {
            io::ErrorKind::TimedOut => HttpErrorKind::Timeout,
            io::ErrorKind::ConnectionRefused => HttpErrorKind::Connect,
            io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => HttpErrorKind::Interrupted,
            _ => HttpErrorKind::Unknown,
        },
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}

/// The chunks of an answer.
struct ChunkedBody {
    chunks: Receiver<Result<Bytes, HttpError>>,
    size: Option<u64>,
}

impl Body for ChunkedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let chunk = self.chunks.poll_recv(context);
        chunk.map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        let mut hint = http_body::SizeHint::new();
        if let Some(size) = self.size {
            hint.set_upper(size);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_on_the_server() {
        let from: Uri = "http://host:8080/a/run?x=1".parse().unwrap();
        let follow = |method: &Method, target: &str| redirected(&from, method, target);
        for (target, to) in [
            ("/a/run/", "http://host:8080/a/run/"),
            ("other", "http://host:8080/a/other"),
            ("http://host:8080/b", "http://host:8080/b"),
        ] {
            assert_eq!(follow(&Method::GET, target).unwrap(), to);
        }
        for target in [
            "http://127.0.0.1/a",
            "http://host/a/run",
            "https://host:8080/a",
            "//other/a",
            "file:///etc/passwd",
        ] {
            let error = follow(&Method::GET, target).unwrap_err().to_string();
            assert!(error.contains("another server"), "{target}: {error}");
        }
        assert!(follow(&Method::PUT, "/b").is_err());
    }
}
