//! The page's read-only server: on a loopback address by default, for clients with the token in the
//! address.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::answers::{Answer, AnswerError, answer};
use crate::page::{INDEX, VIEWS, asset};
use crate::shown::{PageNews, PageState, ShownRuns};
use crate::viewed::{ViewError, ViewedRuns};

/// Nothing loads from elsewhere, and the page's only script is its own file.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";
/// Pages that may embed this one in a frame for notebooks: those of this machine.
const NOTEBOOKS: &str =
    "frame-ancestors http://localhost:* http://127.0.0.1:* http://[::1]:* vscode-webview:";
/// Time after which an idle connection gets an empty line.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// Time limit for a request's head; the connection is then closed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause before accepting connections again after running out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Ranks from which a page opens on their map.
const N_RANKS_ON_MAP: usize = 64;
/// Bytes of the token.
const N_TOKEN_BYTES: usize = 16;

type Request = hyper::Request<Incoming>;
type Response = hyper::Response<Body>;
type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Where the page is served.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Name or address of the interface.
    pub host: String,
    /// The port; 0 means any free port.
    pub port: u16,
    /// Number of answering threads.
    pub n_threads: usize,
    /// Whether a notebook on this machine may embed the page in a frame.
    pub may_be_framed: bool,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            host: "127.0.0.1".to_owned(),
            port: 0,
            n_threads: 2,
            may_be_framed: false,
        }
    }
}

/// A server bound to a port, not yet running.
pub struct PageServer {
    runtime: Runtime,
    listener: TcpListener,
    shared: Arc<Shared>,
    address: String,
}

struct Shared {
    runs: ShownRuns,
    token: String,
    /// The host name from the user, which browsers may send as well.
    host: String,
    may_be_framed: bool,
}

impl PageServer {
    /// Binds a port.
    ///
    /// # Errors
    ///
    /// [`ViewError::Serve`] if the interface does not exist or the port is in use.
    pub fn bind(
        runs: Arc<ViewedRuns>,
        state: PageState,
        options: &ServerOptions,
    ) -> Result<PageServer, ViewError> {
        let asked = format!("{}:{}", options.host, options.port);
        let failed = |source: io::Error| ViewError::Serve {
            address: asked.clone(),
            source,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            // Separate threads compute answers; this one only listens.
            .worker_threads(1)
            .max_blocking_threads(options.n_threads.max(1))
            .enable_all()
            .build()
            .map_err(failed)?;
        // Resolves names, and binds the first available address.
        let place = (options.host.as_str(), options.port);
        let listener = runtime.block_on(TcpListener::bind(place)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let token = token().map_err(failed)?;
        // A server on all interfaces is reachable by the loopback address.
        let host = match options.host.parse::<IpAddr>() {
            Ok(ip) if ip.is_unspecified() => "127.0.0.1".to_owned(),
            Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
            _ => options.host.clone(),
        };
        Ok(PageServer {
            runtime,
            listener,
            address: format!("http://{host}:{port}/{token}/{}", first_view(&runs)),
            shared: Arc::new(Shared {
                runs: ShownRuns::new(runs, state),
                token,
                host: options.host.clone(),
                may_be_framed: options.may_be_framed,
            }),
        })
    }

    /// The address of the page, with its token.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The dumps on display, which can be replaced.
    pub fn runs(&self) -> ShownRuns {
        self.shared.runs.clone()
    }

    /// Answers until the process is interrupted or terminated, or [`ShownRuns::end`] is called.
    pub fn run(self) {
        let shown = self.runs();
        let mut news = shown.news();
        // Before the first answer, as a client may send a signal right after it.
        let signals = {
            let _inside = self.runtime.enter();
            [SignalKind::interrupt(), SignalKind::terminate()].map(signal)
        };
        self.serve(async move {
            let [interrupted, terminated] = signals.map(received);
            tokio::select! {
                () = interrupted => {}
                () = terminated => {}
                _ = news.wait_for(|news| news.is_ending) => {}
            }
            // Pages wait for news on a separate connection, which would delay the end.
            shown.end();
        });
    }

    /// Answers on a new thread until it is stopped. Signals remain the caller's.
    ///
    /// # Errors
    ///
    /// [`ViewError::Serve`] if the thread cannot be started.
    pub fn start(self) -> Result<RunningPage, ViewError> {
        let (shown, address) = (self.runs(), self.address.clone());
        let mut news = shown.news();
        // A name distinguishes the thread from those of the caller's program.
        let thread = thread::Builder::new()
            .name("page".to_owned())
            .spawn(move || {
                self.serve(async move {
                    let ending = news.wait_for(|news| news.is_ending).await;
                    // Without a sender the server could not be stopped later.
                    drop(ending);
                });
            });
        match thread {
            Ok(thread) => Ok(RunningPage {
                shown,
                address,
                thread: Some(thread),
            }),
            Err(source) => Err(ViewError::Serve { address, source }),
        }
    }

    fn serve(self, end: impl Future<Output = ()>) {
        let connections = GracefulShutdown::new();
        self.runtime.block_on(async {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(REQUEST_TIMEOUT);
            let mut end = pin!(end);
            loop {
                let accepted = tokio::select! {
                    () = &mut end => break,
                    accepted = self.listener.accept() => accepted,
                };
                let Ok((stream, _)) = accepted else {
                    // The client disconnected, or file descriptors are short until another client
                    // does.
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let shared = Arc::clone(&self.shared);
                let answer = service_fn(move |request| {
                    let shared = Arc::clone(&shared);
                    async { Ok::<_, Infallible>(respond(shared, request).await) }
                });
                let connection = http.serve_connection(TokioIo::new(stream), answer);
                // A broken connection only affects the browser.
                tokio::spawn(connections.watch(connection));
            }
            drop(self.listener);
            // Connections in progress are answered first.
            connections.shutdown().await;
        });
        // A browser keeps its connection open; shutdown does not wait for it.
        self.runtime.shutdown_background();
    }
}

/// The view that a page opens on: findings of a command, or of many ranks the map, which has all of
/// them at once.
fn first_view(runs: &ViewedRuns) -> &'static str {
    if runs.target.findings().next().is_some() {
        return "events?event=0";
    }
    // Ranks of the operators on display, which a selection may have reduced.
    let ids = 0..runs.n_operators();
    let ranks = ids.filter_map(|id| runs.facts(id)?.rank);
    let ranks: HashSet<u32> = ranks.collect();
    if ranks.len() >= N_RANKS_ON_MAP {
        "steps?by=rank"
    } else {
        "overview"
    }
}

/// A page served on a separate thread until this is dropped.
pub struct RunningPage {
    shown: ShownRuns,
    address: String,
    thread: Option<JoinHandle<()>>,
}

impl RunningPage {
    /// The address of the page, with its token.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The dumps on display, which can be replaced.
    pub fn runs(&self) -> &ShownRuns {
        &self.shown
    }

    /// Stops it after answering the requests in progress.
    pub fn stop(mut self) {
        self.shown.end();
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for RunningPage {
    fn drop(&mut self) {
        self.shown.end();
    }
}

/// Waits for a signal, forever if it cannot be handled.
async fn received(signal: io::Result<Signal>) {
    match signal {
        Ok(mut signal) => {
            signal.recv().await;
        }
        Err(_) => std::future::pending().await,
    }
}

/// Random digits that cannot be guessed.
fn token() -> io::Result<String> {
    let mut bytes = [0; N_TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

async fn respond(shared: Arc<Shared>, request: Request) -> Response {
    if let Err((status, text)) = check(&shared, request.method(), request.headers()) {
        return failure(status, text);
    }
    // Not decoded: tokens, views and files have no characters that need it.
    let path = request.uri().path().trim_start_matches('/').to_owned();
    let (given, path) = path.split_once('/').unwrap_or((&path, ""));
    if !is_same(given, &shared.token) {
        return failure(StatusCode::NOT_FOUND, "unknown address");
    }
    if let Some(name) = path.strip_prefix("assets/") {
        return match asset(name) {
            Some(file) => reply(StatusCode::OK, file.content_type, file.bytes),
            None => failure(StatusCode::NOT_FOUND, "there is no such file"),
        };
    }
    let Some(question) = path.strip_prefix("api/") else {
        return if path.is_empty() || VIEWS.contains(&path) {
            document(shared.may_be_framed)
        } else {
            failure(StatusCode::NOT_FOUND, "there is no such view")
        };
    };
    // It is answered for as long as the page is open, and would block a thread.
    if question == "news" {
        return response(StatusCode::OK, "text/event-stream", news(&shared.runs));
    }
    let question = question.to_owned();
    let query = request.uri().query().unwrap_or_default();
    let query: HashMap<_, _> = form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    // Reading may wait for a disk, and must not delay other requests.
    match tokio::task::spawn_blocking(move || {
        let runs = shared.runs.current();
        // A bug here must not end the user's page.
        catch_unwind(AssertUnwindSafe(|| answer(&runs, &question, &query)))
    })
    .await
    {
        Ok(Ok(result)) => of_answer(result),
        _ => failure(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the answer could not be computed",
        ),
    }
}

/// The page itself.
fn document(may_be_framed: bool) -> Response {
    let mut response = reply(StatusCode::OK, INDEX.content_type, INDEX.bytes);
    if may_be_framed {
        let policy = POLICY.replace("frame-ancestors 'none'", NOTEBOOKS);
        // Visible ASCII, which is valid in headers.
        if let Ok(policy) = HeaderValue::from_str(&policy) {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
    }
    response
}

/// The state of the dumps, now and on every change, as server-sent events.
fn news(shown: &ShownRuns) -> Body {
    let mut receiver = shown.news();
    // The first event is the current state.
    receiver.mark_changed();
    let events = futures_util::stream::unfold(receiver, async |mut receiver| {
        let text = match tokio::time::timeout(SIGN_OF_LIFE, receiver.changed()).await {
            Ok(Ok(())) => {
                let news: PageNews = receiver.borrow_and_update().clone();
                if news.is_ending {
                    return None;
                }
                format!("data: {}\n\n", news.json())
            }
            // A comment line keeps the connection open.
            Err(_) => ":\n\n".to_owned(),
            Ok(Err(_)) => return None,
        };
        Some((Ok(Frame::data(text.into())), receiver))
    });
    StreamBody::new(events).boxed_unsync()
}

/// Refuses requests from elsewhere than the page: other methods, other host names (which a browser
/// sends when a foreign name resolves to this server), and scripts of other pages.
fn check(
    shared: &Shared,
    method: &Method,
    headers: &HeaderMap,
) -> Result<(), (StatusCode, &'static str)> {
    if method != Method::GET && method != Method::HEAD {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "the page is read-only"));
    }
    let [host, origin] = [header::HOST, header::ORIGIN]
        .map(|name| headers.get(name).map(|value| value.to_str().unwrap_or("")));
    let host = host.unwrap_or("");
    if !is_own_host(host, &shared.host) {
        return Err((StatusCode::FORBIDDEN, "the host name is not the server's"));
    }
    match origin {
        Some(origin) if origin != format!("http://{host}") => {
            Err((StatusCode::FORBIDDEN, "the request comes from another page"))
        }
        _ => Ok(()),
    }
}

/// Whether a `Host` header is an address, `localhost`, or the name from the user. Any other name
/// may resolve elsewhere later.
fn is_own_host(host: &str, given: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let name = bare.unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || name.eq_ignore_ascii_case(given)
        || name.parse::<IpAddr>().is_ok()
}

/// Compares two texts in constant time.
fn is_same(a: &str, b: &str) -> bool {
    // Stopping at the first difference would let a client guess the token letter by letter, by the
    // time of an answer. The length is not a secret.
    let pairs = a.bytes().zip(b.bytes());
    a.len() == b.len() && pairs.fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
}

fn of_answer(result: Result<Answer, AnswerError>) -> Response {
    match result {
        Ok(Answer::Json(value)) => reply(StatusCode::OK, "application/json", value.to_string()),
        Ok(Answer::Bytes(bytes)) => reply(StatusCode::OK, "application/octet-stream", bytes),
        Ok(Answer::File(name, bytes)) => {
            let mut response = reply(StatusCode::OK, "application/octet-stream", bytes);
            // Names consist of letters, digits and points, so they need no quoting.
            let place = format!("attachment; filename=\"{name}\"");
            if let Ok(place) = HeaderValue::from_str(&place) {
                response
                    .headers_mut()
                    .insert(header::CONTENT_DISPOSITION, place);
            }
            response
        }
        Err(AnswerError::Missing(text)) => failure(StatusCode::NOT_FOUND, &text),
        Err(AnswerError::Query(text)) => failure(StatusCode::BAD_REQUEST, &text),
        Err(AnswerError::Dump(text)) => failure(StatusCode::GONE, &text),
    }
}

fn failure(status: StatusCode, text: &str) -> Response {
    reply(
        status,
        "application/json",
        json!({ "error": text }).to_string(),
    )
}

fn reply(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response {
    let body = Full::new(body.into());
    response(status, content_type, body.boxed_unsync())
}

fn response(status: StatusCode, content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // Changed dumps are re-read, and browsers must not store them.
        (header::CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::{is_own_host, is_same};

    #[test]
    fn only_addresses_and_known_names_are_the_servers() {
        for host in [
            "127.0.0.1:80",
            "localhost",
            "LOCALHOST:8000",
            "[::1]:8000",
            "10.0.0.7:1",
            "box:1",
        ] {
            assert!(is_own_host(host, "box"), "{host}");
        }
        for host in [
            "",
            "evil.example:80",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "box:x",
        ] {
            assert!(!is_own_host(host, "box"), "{host}");
        }
    }

    #[test]
    fn tokens_are_compared_as_a_whole() {
        assert!(is_same("ab", "ab"));
        for (a, b) in [("ab", "ac"), ("ab", "abc"), ("", "a")] {
            assert!(!is_same(a, b));
        }
    }
}
