//! Why the elements of a tensor cannot be observed.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::element_type;

/// Why the elements of a tensor cannot be observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UnseenReason {
    /// The type is not a plain tensor; its name.
    Type(String),
    /// Torch uses another layout, such as a sparse one; its name.
    Form(String),
    /// It is on a device whose memory the CPU cannot read.
    Device,
    /// The dtype is unsupported; its name.
    ElementType(String),
    /// Impossible shape or strides.
    Shape,
    /// It has elements but no memory: a fake tensor, a meta tensor, or a storage that was resized
    /// to zero.
    NoMemory,
    /// There is no memory for a copy.
    Copy,
    /// It is expanded, and with every element written out it would exceed the queue.
    Expanded,
    /// The operator returned fewer results than described.
    Missing,
    /// The operator returned a tensor that its description lacks.
    Undescribed,
    /// The reason in the graph's description, in its words.
    Known(String),
    /// The dump skips a readable value; the reason.
    Refused(String),
}

/// The text of an attribute of a tensor.
pub(super) fn attribute_text(tensor: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    tensor.getattr(name)?.str()?.extract()
}

impl UnseenReason {
    /// For uninitialised memory.
    pub(super) fn uninitialised() -> UnseenReason {
        UnseenReason::Known("uninitialised".to_owned())
    }

    /// For the result of a collective before it is ready.
    pub(super) fn unfinished() -> UnseenReason {
        UnseenReason::Known("collective not finished".to_owned())
    }

    /// For a value of a failed device.
    pub(super) fn lost() -> UnseenReason {
        UnseenReason::Refused("lost with its device".to_owned())
    }

    /// For a device value while there is no memory to copy it to.
    pub(super) fn behind() -> UnseenReason {
        UnseenReason::Refused("no room for copies from a device".to_owned())
    }

    /// For an object that is not a plain tensor.
    pub(super) fn of_type(found: &Bound<'_, PyType>) -> UnseenReason {
        let name = found.name().and_then(|name| name.extract());
        UnseenReason::Type(name.unwrap_or_else(|_| "unknown".to_owned()))
    }

    /// For a plain tensor with an unsupported dtype.
    pub(super) fn of_dtype(tensor: &Bound<'_, PyAny>) -> UnseenReason {
        let name = attribute_text(tensor, "dtype").unwrap_or_else(|_| "unknown".to_owned());
        UnseenReason::ElementType(name.strip_prefix("torch.").unwrap_or(&name).to_owned())
    }

    /// For a plain tensor that torch does not describe.
    pub(super) fn of_refused(tensor: &Bound<'_, PyAny>) -> UnseenReason {
        if let Ok(layout) = attribute_text(tensor, "layout")
            && layout != "torch.strided"
        {
            let layout = layout.strip_prefix("torch.").unwrap_or(&layout);
            return UnseenReason::Form(layout.to_owned());
        }
        if attribute_text(tensor, "device").is_ok_and(|device| device.starts_with("meta")) {
            return UnseenReason::NoMemory;
        }
        let is_quantized = tensor.getattr("is_quantized");
        if is_quantized.is_ok_and(|flag| flag.extract().unwrap_or(false)) {
            return UnseenReason::Form("quantized".to_owned());
        }
        match attribute_text(tensor, "dtype") {
            // Dtypes that torch only stores as bits have no layout problem, but a dtype that DLPack
            // lacks.
            Ok(dtype) if element_type::from_torch(&dtype).is_none() => {
                UnseenReason::of_dtype(tensor)
            }
            _ => UnseenReason::Form("opaque".to_owned()),
        }
    }

    /// A short name for counting.
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
