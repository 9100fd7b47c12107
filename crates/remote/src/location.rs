//! A parsed URL.

use std::io;

use object_store::path::Path as ObjectPath;
use url::Url;

/// The kind of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Service {
    S3,
    Gcs,
    Azure,
    Http,
}

/// The location of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) service: Service,
    /// The bucket or container; for HTTP the scheme and the server, such as `http://host:8080`.
    pub(crate) place: String,
    /// The name of the object or directory in it.
    pub(crate) key: ObjectPath,
}

impl Location {
    /// Parses a URL.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] with the reason.
    pub(crate) fn parse(url: &str) -> io::Result<Location> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let service = match scheme {
            "s3" => Service::S3,
            "gs" => Service::Gcs,
            "az" => Service::Azure,
            "http" | "https" => Service::Http,
            other => return Err(wrong(format!("unknown scheme `{other}`"))),
        };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() {
            let noun = match service {
                Service::Http => "server",
                Service::Azure => "container",
                Service::S3 | Service::Gcs => "bucket",
            };
            return Err(wrong(format!("expected a {noun} after `{scheme}://`")));
        }
        if service != Service::Http && !host.chars().all(is_plain) {
            return Err(wrong(
                "the name of a bucket may contain only letters, digits, `-`, `_` and `.`".into(),
            ));
        }
        let path = path.trim_matches('/');
        if service == Service::Http {
            if path.contains(['?', '#']) {
                let reason = "URLs with a `?` or a `#` are not read: nothing can be asked for below \
                              them, and what follows is often a signature";
                return Err(wrong(reason.to_owned()));
            }
            let place = format!("{scheme}://{host}");
            Url::parse(&place).map_err(|error| wrong(error.to_string()))?;
            let key = ObjectPath::from_url_path(path).map_err(|error| wrong(error.to_string()))?;
            return Ok(Location {
                service,
                place,
                key,
            });
        }
        // Object names are used literally, not percent-encoded as in HTTP URLs.
        let key = ObjectPath::parse(path).map_err(|error| wrong(error.to_string()))?;
        Ok(Location {
            service,
            place: host.to_owned(),
            key,
        })
    }

    /// The place in words, such as ``bucket `runs` ``.
    pub(crate) fn place_name(&self) -> String {
        let place = &self.place;
        match self.service {
            Service::S3 | Service::Gcs => format!("bucket `{place}`"),
            Service::Azure => format!("container `{place}`"),
            Service::Http => format!("server `{place}`"),
        }
    }
}

/// Whether a character is allowed in the name of a bucket.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The error of an invalid URL.
fn wrong(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let parse = |url: &str| {
            let found = Location::parse(url).map_err(|error| error.to_string())?;
            Ok::<_, String>((found.service, found.place, found.key.to_string()))
        };
        let found = parse("s3://runs/a b/step-0").unwrap();
        assert_eq!(found, (Service::S3, "runs".into(), "a b/step-0".into()));
        assert_eq!(parse("gs://runs").unwrap().2, "");
        let found = parse("http://host:80/a%20b/").unwrap();
        assert_eq!(
            found,
            (Service::Http, "http://host:80".into(), "a b".into())
        );
        for (url, reason) in [
            ("s3://", "expected a bucket"),
            ("az:///x", "expected a container"),
            ("s3://runs/a/../b", ".."),
            ("s3://runs?x/a", "the name of a bucket"),
            ("https://host/a?sig=1", "are not read"),
        ] {
            let error = parse(url).unwrap_err();
            assert!(error.contains(reason), "{error}");
            assert!(!error.contains("sig="), "{error}");
        }
    }
}
