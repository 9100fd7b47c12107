//! Why the elements of a tensor cannot be seen.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::element_type;

/// Why the elements of a tensor cannot be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UnseenReason {
    /// The value is of a type that is no plain tensor; its name.
    Type(String),
    /// Torch keeps the elements in another form, such as a sparse one; its name.
    Form(String),
    /// It is on a device whose memory the CPU cannot read.
    Device,
    /// The dtype has no counterpart; its name.
    ElementType(String),
    /// Extents or strides that memory cannot have.
    Shape,
    /// It has elements and no memory: a fake tensor, a meta tensor, or a storage that was resized
    /// to nothing.
    NoMemory,
    /// There is no memory for a copy.
    Copy,
    /// It is expanded, and with every element written out it is larger than all that may wait to be
    /// written.
    Expanded,
    /// The operator gave fewer results than its description has.
    Missing,
    /// The operator gave a tensor that its description does not have.
    Undescribed,
    /// The reason that the description of the graph gives, in its words.
    Known(String),
    /// The dump does not look at a value that it could look at; why.
    Refused(String),
}

impl UnseenReason {
    /// For memory that nothing was written to.
    pub(super) fn uninitialised() -> UnseenReason {
        UnseenReason::Known("uninitialised".to_owned())
    }

    /// For the result of a collective before it is there.
    pub(super) fn unfinished() -> UnseenReason {
        UnseenReason::Known("collective not finished".to_owned())
    }

    /// For a value of a device that failed.
    pub(super) fn lost() -> UnseenReason {
        UnseenReason::Refused("lost with its device".to_owned())
    }

    /// For a value of a device while there is no memory to copy it to.
    pub(super) fn behind() -> UnseenReason {
        UnseenReason::Refused("no room for copies from a device".to_owned())
    }

    /// For an object of a type that is no plain tensor.
    pub(super) fn of_type(found: &Bound<'_, PyType>) -> UnseenReason {
        let name = found.name().and_then(|name| name.extract());
        UnseenReason::Type(name.unwrap_or_else(|_| "unknown".to_owned()))
    }

    /// For a plain tensor whose dtype has no counterpart.
    pub(super) fn of_dtype(tensor: &Bound<'_, PyAny>) -> UnseenReason {
        let text = |tensor: &Bound<'_, PyAny>| -> PyResult<String> {
            tensor.getattr("dtype")?.str()?.extract()
        };
        let name = text(tensor).unwrap_or_else(|_| "unknown".to_owned());
        UnseenReason::ElementType(name.strip_prefix("torch.").unwrap_or(&name).to_owned())
    }

    /// For a plain tensor that torch does not describe.
    pub(super) fn of_refused(tensor: &Bound<'_, PyAny>) -> UnseenReason {
        let text = |name: &str| -> PyResult<String> { tensor.getattr(name)?.str()?.extract() };
        if let Ok(layout) = text("layout")
            && layout != "torch.strided"
        {
            let layout = layout.strip_prefix("torch.").unwrap_or(&layout);
            return UnseenReason::Form(layout.to_owned());
        }
        if text("device").is_ok_and(|device| device.starts_with("meta")) {
            return UnseenReason::NoMemory;
        }
        let is_quantized = |tensor: &Bound<'_, PyAny>| -> PyResult<bool> {
            tensor.getattr("is_quantized")?.extract()
        };
        match is_quantized(tensor) {
            Ok(true) => UnseenReason::Form("quantized".to_owned()),
            // Numbers that torch has only the bits of have no form, but a dtype that DLPack lacks.
            _ if text("dtype").is_ok_and(|dtype| element_type::from_torch(&dtype).is_none()) => {
                UnseenReason::of_dtype(tensor)
            }
            _ => UnseenReason::Form("opaque".to_owned()),
        }
    }

    /// A short name to count by.
    pub(super) fn name(&self) -> Cow<'static, str> {
        match self {
            UnseenReason::Type(name) => format!("type {name}").into(),
            UnseenReason::Form(name) => format!("form {name}").into(),
            UnseenReason::Device => "device".into(),
            UnseenReason::ElementType(name) => format!("dtype {name}").into(),
            UnseenReason::Shape => "shape".into(),
            UnseenReason::NoMemory => "no memory".into(),
            UnseenReason::Copy => "no memory for a copy".into(),
            UnseenReason::Expanded => "expanded too far".into(),
            UnseenReason::Missing => "missing result".into(),
            UnseenReason::Undescribed => "result not described".into(),
            UnseenReason::Known(text) | UnseenReason::Refused(text) => text.clone().into(),
        }
    }
}
