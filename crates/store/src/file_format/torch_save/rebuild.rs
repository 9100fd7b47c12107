//! The tensors that calls of a pickle rebuild.

use std::ops::Range;

use opscope_tensor::{DType, Shape};

use super::archive::TorchArchive;
use super::known_names::{
    AROUND, DENSE, MODULES, NPU, OF_TYPE, PLAIN_CLASSES, QUANTISED, STORAGES, UNREAD, UNTYPED,
    dtype_of, is_storage,
};
use super::pickle::{Pickle, PickleCall, PickleName, PickleValue, ValueId, excerpt};
use super::{DenseElements, ElementChanges, TorchContent, TorchTensor};
use crate::FormatError;

/// Maximum nesting of calls that rebuild one tensor.
const N_LAYERS_MAX: usize = 8;
/// The data that tensors are rebuilt from.
#[derive(Clone, Copy)]
pub(super) struct TensorSource<'a> {
    pickle: &'a Pickle<'a>,
    archive: &'a TorchArchive,
}

/// A storage that a pickle names.
struct FoundStorage {
    /// Type of its elements; a word for one that is not read.
    dtype: Result<DType, String>,
    n_elements: usize,
    /// Where it is in the file; none if it never had elements.
    range: Option<Range<usize>>,
}

impl<'a> TensorSource<'a> {
    pub(super) fn new(pickle: &'a Pickle<'a>, archive: &'a TorchArchive) -> TensorSource<'a> {
        TensorSource { pickle, archive }
    }

    /// A storage by itself, as if it were a tensor with one axis.
    pub(super) fn storage(self, id: ValueId) -> Result<TorchTensor, FormatError> {
        let storage = self.find_storage(id, 0)?;
        let shape = Shape::new([storage.n_elements]).unwrap_or_default();
        self.dense(&storage, None, shape, vec![1], 0, 0)
    }

    /// The tensor that a call rebuilds.
    ///
    /// # Errors
    /// [`FormatError`] if the call is of something else, or its arguments are other ones.
    pub(super) fn tensor(self, call: &PickleCall<'_>) -> Result<TorchTensor, FormatError> {
        self.tensor_by(*call.name, call.args, call.at, 0)
    }

    fn tensor_by(
        self,
        name: PickleName<'_>,
        args: ValueId,
        at: u32,
        layer: usize,
    ) -> Result<TorchTensor, FormatError> {
        let wrong = |found: &str| {
            let found = format!("{found} of `{}.{}`", excerpt(name.0), excerpt(name.1));
            FormatError::new(at.into(), "a tensor that can be rebuilt", found)
        };
        let args = self.tuple(args).ok_or_else(|| wrong("arguments"))?;
        if name == NPU[0] {
            return self.dense_by(name.1, args, at);
        }
        if layer > N_LAYERS_MAX || !MODULES.contains(&name.0) {
            return Err(wrong("a call"));
        }
        if DENSE.contains(&name.1) || name.1 == QUANTISED {
            return self.dense_by(name.1, args, at);
        }
        if AROUND.contains(&name.1) {
            return match args.first().map(|&data| self.pickle.value(data)) {
                Some(PickleValue::Call(inner)) => {
                    self.tensor_by(*inner.name, inner.args, inner.at, layer + 1)
                }
                _ => Err(wrong("the first argument")),
            };
        }
        if name.1 == OF_TYPE {
            let &[function, class, inner, _] = args else {
                return Err(wrong("the arguments"));
            };
            let values = [function, class].map(|id| self.pickle.value(id));
            let [PickleValue::Name(function), PickleValue::Name(class)] = values else {
                return Err(wrong("the arguments"));
            };
            // Other classes say themselves what their elements mean.
            if !PLAIN_CLASSES.contains(class) {
                return Err(wrong("the class"));
            }
            return self.tensor_by(*function, inner, at, layer + 1);
        }
        let known = UNREAD.iter().find(|(function, ..)| *function == name.1);
        let &(_, word, extents) = known.ok_or_else(|| wrong("a call"))?;
        let shape = match extents {
            Some(position) => args.get(position).and_then(|&id| self.shape(id)),
            // A sparse tensor's layout, then its parts: two or three tensors, and its shape.
            None => args.get(1).and_then(|&parts| {
                let mut parts = self.tuple(parts)?.iter().skip(2);
                parts.find_map(|&part| self.shape(part))
            }),
        };
        Ok(unread(word, shape.unwrap_or_default()))
    }

    /// A tensor whose elements lie in a storage.
    fn dense_by(
        self,
        function: &str,
        args: &[ValueId],
        at: u32,
    ) -> Result<TorchTensor, FormatError> {
        let wrong = |found: &str| {
            let found = format!("{found} of `{function}`");
            FormatError::new(at.into(), "a tensor that can be rebuilt", found)
        };
        let &[storage, start, size, stride, ..] = args else {
            return Err(wrong("arguments"));
        };
        let PickleValue::Persistent(storage) = self.pickle.value(storage) else {
            return Err(wrong("the storage"));
        };
        let storage = self.find_storage(*storage, at)?;
        let shape = self.shape(size).ok_or_else(|| wrong("the shape"))?;
        let strides = self.integers(stride).ok_or_else(|| wrong("the strides"))?;
        let start = self
            .integer(start)
            .ok_or_else(|| wrong("the first element"))?;
        // The rest: requires_grad, hooks, in version 3 the dtype, and facts of the tensor.
        let (dtype, facts) = match function {
            "_rebuild_tensor_v3" => {
                let dtype = args.get(6).map(|&id| self.pickle.value(id));
                let Some(PickleValue::Name(PickleName("torch", dtype))) = dtype else {
                    return Err(wrong("the dtype"));
                };
                (Some(dtype_of(dtype)), args.get(7))
            }
            "_rebuild_tensor_v2" => (None, args.get(6)),
            _ => (None, None),
        };
        let tensor = self.dense(&storage, dtype, shape, strides, start, at)?;
        match facts {
            Some(&facts) => self.with_facts(tensor, facts),
            None => Ok(tensor),
        }
    }

    fn dense(
        self,
        storage: &FoundStorage,
        dtype: Option<Result<DType, String>>,
        shape: Shape,
        strides: Vec<isize>,
        start: usize,
        at: u32,
    ) -> Result<TorchTensor, FormatError> {
        // The dtype of a storage counts for tensors that do not say one.
        let dtype = dtype.unwrap_or_else(|| storage.dtype.clone());
        let dtype = match dtype {
            Ok(dtype) => dtype,
            Err(word) => return Ok(unread(&word, shape)),
        };
        let Some(range) = storage.range.clone() else {
            return Ok(unread("meta tensor", shape));
        };
        let elements = DenseElements::new(dtype, &shape, strides, start, range);
        let elements = elements
            .map_err(|found| FormatError::new(at.into(), "elements inside their storage", found))?;
        let changes = ElementChanges {
            is_swapped: self.archive.is_big_endian,
            ..ElementChanges::default()
        };
        Ok(TorchTensor {
            name: String::new(),
            shape,
            content: TorchContent::Dense(elements.with_changes(changes)),
        })
    }

    /// Facts about a tensor that say how to interpret its elements.
    fn with_facts(self, tensor: TorchTensor, facts: ValueId) -> Result<TorchTensor, FormatError> {
        let PickleValue::Dict(facts) = self.pickle.value(facts) else {
            return Ok(tensor);
        };
        let TorchContent::Dense(elements) = tensor.content else {
            return Ok(tensor);
        };
        // An ignored fact could mean other elements than those in the storage.
        let mut changes = elements.changes();
        for &(key, value) in facts {
            match [key, value].map(|id| self.pickle.value(id)) {
                [PickleValue::Text("conj"), PickleValue::Bool(is)] => changes.is_conjugate = *is,
                [PickleValue::Text("neg"), PickleValue::Bool(is)] => changes.is_negative = *is,
                [PickleValue::Text(other), _] => {
                    let word = format!("tensor with `{}`", excerpt(other));
                    return Ok(unread(&word, tensor.shape));
                }
                _ => return Ok(unread("tensor with facts", tensor.shape)),
            }
        }
        if !changes.fit(elements.dtype) {
            return Ok(unread("tensor that is seen otherwise", tensor.shape));
        }
        Ok(TorchTensor {
            content: TorchContent::Dense(elements.with_changes(changes)),
            ..tensor
        })
    }

    /// `("storage", class, key, place, n_elements)`.
    fn find_storage(self, id: ValueId, at: u32) -> Result<FoundStorage, FormatError> {
        let wrong = |found: String| FormatError::new(at.into(), "a storage of the file", found);
        let parts = self.tuple(id).unwrap_or_default();
        let &[kind, class, key, place, n_elements] = parts else {
            return Err(wrong(format!("{} parts of an id", parts.len())));
        };
        let values = [kind, class, key, place].map(|id| self.pickle.value(id));
        let [
            PickleValue::Text("storage"),
            PickleValue::Name(name),
            PickleValue::Text(key),
            PickleValue::Text(place),
        ] = values
        else {
            return Err(wrong("another id".to_owned()));
        };
        let n_elements = self.integer(n_elements).filter(|_| is_storage(*name));
        let n_elements = n_elements.ok_or_else(|| wrong("another id".to_owned()))?;
        let known = STORAGES.iter().find(|(class, _)| *class == name.1);
        let dtype = match known {
            Some((_, dtype)) => Ok(*dtype),
            None if name.1 == UNTYPED => Ok(DType::U8),
            None => Err(name.1.to_owned()),
        };
        // Storages on the meta device never had elements, and no member.
        let range = self.archive.storage(key);
        if range.is_none() && *place != "meta" {
            return Err(wrong(format!("no member `data/{}`", excerpt(key))));
        }
        let width = dtype.as_ref().ok().and_then(|dtype| dtype.bytes());
        let n_bytes = width.map(|width| n_elements.checked_mul(width));
        // `torch.load` reads as many bytes as the pickle says: another size is damage.
        if let (Some(n_bytes), Some(range)) = (n_bytes, &range)
            && n_bytes != Some(range.len())
        {
            let found = format!(
                "{} bytes for {n_elements} elements in `data/{}`",
                range.len(),
                excerpt(key)
            );
            return Err(wrong(found));
        }
        Ok(FoundStorage {
            dtype,
            n_elements,
            range,
        })
    }

    fn tuple(self, id: ValueId) -> Option<&'a [ValueId]> {
        match self.pickle.value(id) {
            PickleValue::Tuple(items) => Some(items),
            _ => None,
        }
    }

    fn integer(self, id: ValueId) -> Option<usize> {
        match self.pickle.value(id) {
            PickleValue::Int(value) => usize::try_from(*value).ok(),
            _ => None,
        }
    }

    /// A tuple of integers, or what `torch.Size` makes of one.
    fn integers(self, id: ValueId) -> Option<Vec<isize>> {
        let id = match self.pickle.value(id) {
            PickleValue::Call(call) if *call.name == PickleName("torch", "Size") => {
                *self.tuple(call.args)?.first()?
            }
            _ => id,
        };
        let items = self.tuple(id)?;
        // A tuple can be shared by many tensors, so that each copy has to be short.
        if items.len() > Shape::N_AXES_MAX {
            return None;
        }
        let integers = items.iter().map(|&item| {
            let value = self.integer(item)?;
            isize::try_from(value).ok()
        });
        integers.collect()
    }

    fn shape(self, id: ValueId) -> Option<Shape> {
        let dims = self.integers(id)?.into_iter().map(isize::unsigned_abs);
        Shape::new(dims.collect::<Vec<usize>>()).ok()
    }
}

fn unread(word: &str, shape: Shape) -> TorchTensor {
    TorchTensor {
        name: String::new(),
        shape,
        content: TorchContent::Unread(word.to_owned()),
    }
}
