//! Errors as `opscope` exceptions.

use std::io;
use std::path::PathBuf;

use opscope_analysis::compare::report::json::ReadError;
use opscope_analysis::convert::ConvertError;
use opscope_analysis::elements::ElementsError;
use opscope_store::file_format::npy::TextArrayError;
use opscope_store::{FormatError, StoreError};
use opscope_tensor::convert::dtype::DecodeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The contents of an exception.
pub(super) struct ExceptionContent {
    code: &'static str,
    message: String,
    path: Option<PathBuf>,
    place: Option<FormatError>,
    errno: Option<i32>,
}

impl ExceptionContent {
    fn new(code: &'static str, error: &dyn std::error::Error) -> ExceptionContent {
        ExceptionContent {
            code,
            message: chain(error),
            path: None,
            place: None,
            errno: None,
        }
    }

    /// Damaged or unexpected content.
    pub(super) fn damaged(error: &dyn std::error::Error) -> ExceptionContent {
        ExceptionContent::new("damaged", error)
    }

    /// A mistake by the caller.
    pub(super) fn usage(message: impl Into<String>) -> ExceptionContent {
        ExceptionContent {
            code: "usage",
            message: message.into(),
            path: None,
            place: None,
            errno: None,
        }
    }

    /// A missing file or directory.
    pub(super) fn nothing(message: String, path: PathBuf) -> ExceptionContent {
        ExceptionContent {
            code: "nothing",
            message,
            path: Some(path),
            place: None,
            errno: None,
        }
    }

    /// A file that already exists.
    pub(super) fn exists(path: PathBuf) -> ExceptionContent {
        ExceptionContent {
            code: "exists",
            message: format!("`{}` exists already", path.display()),
            path: Some(path),
            place: None,
            errno: None,
        }
    }

    /// Why a model could not be read; `source` is the operating system error, if any.
    pub(super) fn of_model(
        error: &dyn std::error::Error,
        source: Option<&io::Error>,
        path: PathBuf,
    ) -> ExceptionContent {
        ExceptionContent {
            errno: source.and_then(io::Error::raw_os_error),
            path: Some(path),
            ..ExceptionContent::new(source.map_or("damaged", code_of), error)
        }
    }

    /// Why a saved result could not be read.
    pub(super) fn of_result(error: &ReadError, path: PathBuf) -> ExceptionContent {
        let (code, errno) = match error {
            ReadError::Io(source) => (code_of(source), source.raw_os_error()),
            _ => ("damaged", None),
        };
        let described = ExceptionContent {
            errno,
            ..ExceptionContent::new(code, error)
        };
        described.in_file(path)
    }

    /// Adds the file, unless the message names it.
    pub(super) fn in_file(self, path: PathBuf) -> ExceptionContent {
        if self.path.is_some() {
            return self;
        }
        ExceptionContent {
            message: format!("`{}`: {}", path.display(), self.message),
            path: Some(path),
            ..self
        }
    }

    /// The exception.
    pub(super) fn raise(self, py: Python<'_>) -> PyErr {
        match self.exception(py) {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    }

    fn exception(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let make = py.import("opscope._errors")?.getattr("of_native")?;
        let details = PyDict::new(py);
        details.set_item("path", self.path.as_ref().map(|path| path.as_os_str()))?;
        details.set_item("errno", self.errno)?;
        if let Some(place) = &self.place {
            details.set_item("offset", place.offset)?;
            details.set_item("expected", &place.expected)?;
            details.set_item("found", &place.found)?;
        }
        make.call((self.code, self.message), Some(&details))
    }
}

impl From<&StoreError> for ExceptionContent {
    fn from(error: &StoreError) -> ExceptionContent {
        match error {
            StoreError::Io { path, source, .. } => ExceptionContent {
                path: Some(path.clone()),
                errno: source.raw_os_error(),
                ..ExceptionContent::new(code_of(source), error)
            },
            StoreError::Corrupt { path, source, .. } => ExceptionContent {
                path: Some(path.clone()),
                place: Some(source.clone()),
                ..ExceptionContent::new("damaged", error)
            },
        }
    }
}

impl From<&ElementsError> for ExceptionContent {
    fn from(error: &ElementsError) -> ExceptionContent {
        let code = match error {
            ElementsError::Store(error) => return ExceptionContent::from(error),
            ElementsError::NoElements => "no_elements",
            ElementsError::Stats(_) => "no_statistics",
            ElementsError::UnknownDtype { .. } | ElementsError::OtherKind { .. } => "unknown_dtype",
            ElementsError::Decode {
                source: DecodeError::NoValue(_),
                ..
            }
            | ElementsError::Text {
                source: TextArrayError::TooLarge { .. },
                ..
            } => "no_value",
            ElementsError::Text { .. }
            | ElementsError::Decode { .. }
            | ElementsError::Shape { .. } => "size",
            ElementsError::Relayout { .. } => "layout",
            ElementsError::NoSlot { .. } => "no_slot",
        };
        ExceptionContent::new(code, error)
    }
}

impl From<&ConvertError> for ExceptionContent {
    fn from(error: &ConvertError) -> ExceptionContent {
        let code = match error {
            ConvertError::Store(error) => return ExceptionContent::from(error),
            ConvertError::Elements(error) => return ExceptionContent::from(error),
            ConvertError::Record { .. } => "damaged",
            ConvertError::Safetensors(_) => "safetensors",
            ConvertError::Exists(_) => "exists",
        };
        ExceptionContent {
            path: match error {
                ConvertError::Exists(path) => Some(path.clone()),
                _ => None,
            },
            place: error.format_error().cloned(),
            ..ExceptionContent::new(code, error)
        }
    }
}

fn code_of(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "not_found",
        io::ErrorKind::PermissionDenied => "no_permission",
        _ => "io",
    }
}

/// An error with its causes on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let causes: Vec<_> = causes.map(ToString::to_string).collect();
    causes.join(": ")
}
