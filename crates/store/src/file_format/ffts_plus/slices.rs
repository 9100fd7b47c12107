//! The parts of tensors that one FFTS+ thread worked on.

use thiserror::Error;

use super::FftsPlus;
use crate::FormatError;
use crate::file_format::dump_data::DumpHeader;
use crate::record::SlotSide;

/// Why the parts are unknown.
#[derive(Debug, Error)]
pub enum SliceError {
    /// The second last field of the file's name is not a number.
    #[error("there is no thread id in the name `{0}`")]
    Name(String),
    /// The attribute has no part for the thread.
    #[error("there is no slice of thread {0}")]
    Thread(usize),
    /// The attribute describes another number of tensors.
    #[error("there are {n_tensors} {side}s, but slices of {n_slices}")]
    Count {
        /// `input` or `output`.
        side: &'static str,
        /// Tensors in the file.
        n_tensors: usize,
        /// Tensors in the attribute.
        n_slices: usize,
    },
    /// The attribute contradicts itself.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl From<SliceError> for FormatError {
    /// The attribute is somewhere in the header, which begins behind the length.
    fn from(error: SliceError) -> FormatError {
        match error {
            SliceError::Format(error) => error,
            SliceError::Name(name) => FormatError::new(
                8,
                "a thread id as second last field of the name",
                format!("`{name}`"),
            ),
            SliceError::Thread(thread) => {
                FormatError::new(8, format!("a slice of thread {thread}"), "none")
            }
            SliceError::Count {
                side,
                n_tensors,
                n_slices,
            } => FormatError::new(
                8,
                format!("slices of {n_tensors} {side}s"),
                n_slices.to_string(),
            ),
        }
    }
}

/// The thread that wrote a file: the second last field of its name.
///
/// # Errors
/// [`SliceError::Name`] if that is not a number.
pub fn thread_in_name(file_name: &str) -> Result<usize, SliceError> {
    // msaccucmp counts from the end as well, so the number of fields before it does not matter.
    let field = file_name.rsplit('.').nth(1);
    let thread = field.and_then(|field| field.parse().ok());
    thread.ok_or_else(|| SliceError::Name(file_name.to_owned()))
}

/// Sets the shape of each tensor of one side to that of the part that `thread` worked on.
///
/// # Errors
/// [`SliceError`] if the attribute does not describe these tensors.
pub fn apply_slices(
    header: &mut DumpHeader,
    attribute: &FftsPlus,
    side: SlotSide,
    thread: usize,
) -> Result<(), SliceError> {
    let shapes = attribute.shapes(side, thread)?;
    let shapes = shapes.ok_or(SliceError::Thread(thread))?;
    let entries = match side {
        SlotSide::Input => &mut header.inputs,
        SlotSide::Output => &mut header.outputs,
    };
    // Zipping lists of different lengths would leave some tensors with the shape of the whole.
    if entries.len() != shapes.len() {
        return Err(SliceError::Count {
            side: side.name(),
            n_tensors: entries.len(),
            n_slices: shapes.len(),
        });
    }
    for (entry, shape) in entries.iter_mut().zip(shapes) {
        entry.shape = Some(shape);
    }
    Ok(())
}

/// [`apply_slices`] of the header's own first attribute; another attribute means nothing.
pub(crate) fn apply_own_slices(header: &mut DumpHeader, file_name: &str) -> Result<(), SliceError> {
    let text = header.attrs.first().map(|attr| attr.value.as_str());
    // msaccucmp stops at any other attribute. The tensors are complete without it, so they are
    // read.
    let Some(Ok(attribute)) = text.map(FftsPlus::parse) else {
        return Ok(());
    };
    if !attribute.is_auto_threaded {
        return Ok(());
    }
    let thread = thread_in_name(file_name)?;
    for (side, slices) in [
        (SlotSide::Input, &attribute.input_slices),
        (SlotSide::Output, &attribute.output_slices),
    ] {
        // A list that is absent is empty, and looking for a thread in it would be an error.
        if !slices.is_empty() {
            apply_slices(header, &attribute, side, thread)?;
        }
    }
    Ok(())
}
