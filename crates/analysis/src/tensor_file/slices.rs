//! The parts of tensors that one FFTS+ thread worked on.

use opscope_store::FormatError;
use opscope_store::file_format::ffts_plus::FftsPlus;
use opscope_store::record::Side;
use thiserror::Error;

use super::TensorFile;

/// Why the parts cannot be told.
#[derive(Debug, Error)]
pub enum SliceError {
    /// The second last field of the file's name is no number.
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

impl TensorFile {
    /// The thread that wrote the file: the second last field of its name.
    ///
    /// # Errors
    ///
    /// [`SliceError::Name`] if that field is no number.
    pub fn thread(&self) -> Result<usize, SliceError> {
        let field = self.file_name.rsplit('.').nth(1);
        let thread = field.and_then(|field| field.parse().ok());
        thread.ok_or_else(|| SliceError::Name(self.file_name.clone()))
    }

    /// Gives each tensor of one side the shape of the part that `thread` worked on.
    ///
    /// # Errors
    ///
    /// See [`SliceError`]; the shapes are unchanged then.
    pub fn apply_slices(
        &mut self,
        attribute: &FftsPlus,
        side: Side,
        thread: usize,
    ) -> Result<(), SliceError> {
        let shapes = attribute.shapes(side, thread)?;
        let shapes = shapes.ok_or(SliceError::Thread(thread))?;
        let entries = match side {
            Side::Input => &mut self.header.inputs,
            Side::Output => &mut self.header.outputs,
        };
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
}
