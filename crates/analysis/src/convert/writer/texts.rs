//! Writes text tensors to files.

use std::io::{BufWriter, Write};

use opscope_store::file_format::npy::text_array;
use opscope_store::file_format::zstd;
use opscope_tensor::{TensorView, text};

use super::{OpenedSource, ResultWriter};
use crate::convert::names::OutputName;
use crate::convert::{ConvertError, ConvertedForm};
use crate::element;
use crate::elements::{DumpElements, ElementsError};

/// Whether a format can hold text.
pub(super) fn can_hold(kind: ConvertedForm) -> bool {
    match kind {
        ConvertedForm::Npy | ConvertedForm::MsNpy | ConvertedForm::Txt | ConvertedForm::Bin => true,
        ConvertedForm::Pt | ConvertedForm::Safetensors => false,
    }
}

impl ResultWriter<'_> {
    /// Writes a text tensor in a format that [`can_hold`] it: an array, lines, or raw bytes.
    /// Returns the file's size.
    pub(super) fn put_text(
        &self,
        opened: &OpenedSource<'_>,
        name: &OutputName,
        slot: &str,
        elements: &DumpElements<'_>,
    ) -> Result<u64, ConvertError> {
        let failed = |source| ElementsError::Text {
            slot: slot.to_owned(),
            source,
        };
        let view = TensorView::new(elements.dtype, &elements.shape, &elements.bytes);
        let dir = &opened.dir;
        let mut n_bytes = 0;
        match self.options.kind {
            ConvertedForm::Txt => {
                let mut texts = text::iter(view).map_err(|error| failed(error.into()))?;
                self.put_with(dir, name, |file| {
                    let mut out = BufWriter::new(&mut *file);
                    texts.try_for_each(|text| writeln!(out, "{}", element::escaped(text)))?;
                    out.flush()?;
                    drop(out);
                    n_bytes = file.metadata()?.len();
                    Ok(())
                })?;
            }
            ConvertedForm::Bin => {
                // Damaged text is an error, although these bytes could be written as they are.
                text::iter(view).map_err(|error| failed(error.into()))?;
                n_bytes = self.put(dir, name, &[view.bytes])?;
            }
            _ => {
                let (header, data) = text_array(view).map_err(failed)?;
                match self.options.compression {
                    None => n_bytes = self.put(dir, name, &[&header, &data])?,
                    Some(level) => self.put_with(dir, name, |file| {
                        n_bytes = zstd::write(file, &[&header, &data], level)?;
                        Ok(())
                    })?,
                }
            }
        }
        Ok(n_bytes)
    }
}
