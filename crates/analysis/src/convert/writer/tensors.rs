//! Writes tensors in each file format.

use std::io::{BufWriter, Write};
use std::path::Path;

use opscope_store::file_format::npy::encode_header;
use opscope_store::file_format::safetensors::{self, NamedTensor};
use opscope_store::file_format::{npy_zst, torch_save, zstd};
use opscope_store::reader::{DumpTerm, OpenedTensor, StoredTensor};
use opscope_tensor::{DType, Shape};

use super::{ConvertedFile, OpenedSource, ResultWriter, texts};
use crate::convert::names::OutputName;
use crate::convert::{ConvertError, ConvertedForm, text};
use crate::elements::{DumpElements, ElementsError};
use crate::{ElementValue, names};

/// Bytes of text that are written at a time.
const TEXT_BUFFER_BYTES: usize = 1 << 18;

impl ResultWriter<'_> {
    /// Writes one tensor to a separate file and returns the file's size.
    pub(super) fn write_tensor(
        &self,
        opened: &OpenedSource<'_>,
        stored: &StoredTensor,
        elements: DumpElements<'_>,
    ) -> Result<u64, ConvertError> {
        let slot = opened.file.slot_of(stored);
        let layout = elements.layout_name();
        // PyTorch has bfloat16, so it stays; NumPy would need float32.
        let is_torch = self.options.kind == ConvertedForm::Pt && elements.dtype == DType::BF16;
        let is_text = elements.dtype == DType::String && texts::can_hold(self.options.kind);
        let elements = if is_text {
            elements
        } else if is_torch {
            checked(elements, &slot)?
        } else {
            decoded(elements, &slot)?
        };
        let (dims, bytes) = (elements.shape.dims(), &*elements.bytes);
        let in_name = if opened.repeated_names.contains(&stored.index) {
            format!("{slot}.{}", stored.index)
        } else {
            slot.clone()
        };
        let name = self.tensor_name(opened, &in_name, &layout, &elements);
        let dir = &opened.dir;
        // The result may have the same name as the source array, and must not overwrite it.
        if opened.source.names_its_tensor
            && is_same_file(&dir.join(&name.name), &opened.source.path)
        {
            return Err(ConvertError::Exists(dir.join(&name.name)));
        }
        if is_text {
            return self.put_text(opened, &name, &slot, &elements);
        }
        match self.options.kind {
            ConvertedForm::Bin => self.put(dir, &name, &[bytes]),
            ConvertedForm::Txt => {
                let mut n_bytes = 0;
                self.put_with(dir, &name, |file| {
                    let mut out = BufWriter::with_capacity(TEXT_BUFFER_BYTES, &mut *file);
                    text::write(&mut out, ElementValue::all(elements.dtype, bytes))?;
                    out.flush()?;
                    drop(out);
                    n_bytes = file.metadata()?.len();
                    Ok(())
                })?;
                Ok(n_bytes)
            }
            ConvertedForm::Pt => {
                let mut n_bytes = 0;
                self.put_with(dir, &name, |file| {
                    torch_save::write(&mut *file, elements.dtype, dims, bytes)?;
                    n_bytes = file.metadata()?.len();
                    Ok(())
                })?;
                Ok(n_bytes)
            }
            ConvertedForm::Npy | ConvertedForm::MsNpy | ConvertedForm::Safetensors => {
                // `decode` only returns dtypes that NumPy has.
                let header = encode_header(elements.dtype, &elements.shape).unwrap_or_default();
                match self.options.compression {
                    None => self.put(dir, &name, &[&header, bytes]),
                    Some(level) => {
                        let mut n_bytes = 0;
                        self.put_with(dir, &name, |file| {
                            n_bytes = zstd::write(file, &[&header, bytes], level)?;
                            Ok(())
                        })?;
                        Ok(n_bytes)
                    }
                }
            }
        }
    }

    /// The vendor's names: with the shape if the layout was changed, and for raw elements with
    /// dtype and shape, so that they can be read back.
    fn tensor_name(
        &self,
        opened: &OpenedSource<'_>,
        slot: &str,
        layout: &str,
        elements: &DumpElements<'_>,
    ) -> OutputName {
        let dims = elements.shape.dims();
        let is_changed = self.options.relayout.is_some();
        let with_dims = |separator: &str| match dims {
            [] => String::new(),
            _ => format!(".{}", names::join(dims, separator)),
        };
        let suffix = match self.options.kind {
            ConvertedForm::Npy | ConvertedForm::MsNpy | ConvertedForm::Safetensors => {
                match self.options.compression {
                    None => npy_zst::PLAIN_SUFFIX,
                    Some(_) => npy_zst::SUFFIX,
                }
            }
            ConvertedForm::Bin => ".bin",
            ConvertedForm::Txt => ".txt",
            ConvertedForm::Pt => ".pt",
        };
        // The name already contains the slot.
        let slot = if opened.source.names_its_tensor {
            String::new()
        } else {
            format!(".{slot}")
        };
        let tail = match self.options.kind {
            ConvertedForm::Bin => {
                let extents = if is_changed {
                    with_dims("_")
                } else {
                    format!(".{}", elements.shape.n_elements())
                };
                format!("{slot}{extents}.{}.{layout}", elements.dtype)
            }
            ConvertedForm::MsNpy => {
                let op_name = &opened.file.facts().op_name;
                let file_name = names::mindspore(&opened.source.file_name, op_name);
                let real_name = opened.source.real_name.as_deref();
                let real_name = real_name.map(|name| names::mindspore(name, op_name));
                let tail = if opened.source.names_its_tensor {
                    String::new()
                } else {
                    format!("{slot}.{layout}")
                };
                return OutputName::from_stem(&file_name, real_name.as_deref(), &tail, suffix);
            }
            _ if is_changed => format!("{slot}{}", with_dims("x")),
            _ => slot,
        };
        OutputName::new(opened.source, &tail, suffix)
    }

    /// Writes all tensors of a file to one safetensors file. A tensor that cannot be converted is
    /// left out and reported.
    pub(super) fn convert_together(
        &self,
        opened: &OpenedSource<'_>,
        converted: &mut ConvertedFile,
    ) {
        let tensors = self.picked(&opened.file, converted).into_iter();
        let read: Vec<_> = tensors
            .filter_map(|stored| match opened.file.elements(stored) {
                Ok(part) => Some((stored, part)),
                Err(error) => {
                    converted.errors.push(error.into());
                    None
                }
            })
            .collect();
        let mut kept = Vec::new();
        let mut metadata = vec![("op_name".to_owned(), opened.file.facts().op_name.clone())];
        for (stored, part) in &read {
            let slot = opened.file.slot_of(stored);
            let bytes = part.as_ref();
            let elements = self.elements(OpenedTensor { stored, bytes });
            match elements.and_then(|elements| storable(elements, &slot)) {
                Ok(elements) => {
                    metadata.push((format!("{slot}.layout"), elements.layout_name()));
                    let dtype = &stored.dtype;
                    // safetensors lacks some dtypes; the metadata record the dump's dtype.
                    if *dtype != DumpTerm::Known(elements.dtype) {
                        metadata.push((format!("{slot}.dtype"), dtype.to_string()));
                    }
                    kept.push((slot, elements));
                }
                Err(error) => converted.errors.push(error.into()),
            }
        }
        // A file without tensors becomes an empty archive; a file whose tensors all failed becomes
        // nothing.
        if kept.is_empty() && !converted.errors.is_empty() {
            return;
        }
        match self.put_together(opened, &metadata, &kept) {
            Ok(n_bytes) => {
                converted.n_arrays += kept.len() as u64;
                converted.n_bytes += n_bytes;
            }
            Err(error) => converted.errors.push(error),
        }
    }

    fn put_together(
        &self,
        opened: &OpenedSource<'_>,
        metadata: &[(String, String)],
        kept: &[(String, DumpElements<'_>)],
    ) -> Result<u64, ConvertError> {
        let tensors: Vec<NamedTensor<'_>> = kept
            .iter()
            .map(|(slot, elements)| NamedTensor {
                name: slot.clone(),
                dtype: elements.dtype,
                shape: elements.shape.clone(),
                bytes: &elements.bytes,
            })
            .collect();
        let (header, data) = safetensors::encode(metadata, &tensors)?;
        let parts: Vec<&[u8]> = std::iter::once(&header[..]).chain(data).collect();
        let name = OutputName::new(opened.source, "", ".safetensors");
        self.put(&opened.dir, &name, &parts)
    }
}

/// Whether both paths name the same file.
fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

fn decoded<'a>(elements: DumpElements<'a>, slot: &str) -> Result<DumpElements<'a>, ElementsError> {
    elements.decode().map_err(|source| ElementsError::Decode {
        slot: slot.to_owned(),
        source,
    })
}

/// Returns the elements unchanged if dtype, shape and byte count match.
fn checked<'a>(elements: DumpElements<'a>, slot: &str) -> Result<DumpElements<'a>, ElementsError> {
    elements
        .check_size()
        .map_err(|source| ElementsError::Decode {
            slot: slot.to_owned(),
            source,
        })
}

/// The elements in a dtype that safetensors has: the stored dtype, else NumPy's. `complex128`
/// becomes pairs of `float64` along a new last axis.
fn storable<'a>(elements: DumpElements<'a>, slot: &str) -> Result<DumpElements<'a>, ElementsError> {
    if safetensors::dtype_name(elements.dtype).is_some() {
        return checked(elements, slot);
    }
    let elements = decoded(elements, slot)?;
    if elements.dtype != DType::C128 {
        return Ok(elements);
    }
    let mut dims = elements.shape.dims().to_vec();
    dims.push(2);
    let shape = Shape::new(dims).map_err(|source| ElementsError::Shape {
        slot: slot.to_owned(),
        source,
    })?;
    Ok(DumpElements {
        dtype: DType::F64,
        shape,
        ..elements
    })
}
