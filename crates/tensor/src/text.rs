//! Tensors of text.
//!
//! Elements of [`DType::String`] are bytes of any number, UTF-8 by ONNX's rule. In memory, a tensor
//! of `n` of them begins with `n` heads of 16 bytes: two little-endian 64-bit integers, the offset
//! of the text from the tensor's first byte and its length in bytes. The texts follow, without
//! terminators. This is the form that CANN's kernels use.

use thiserror::Error;

use crate::{DType, Shape, TensorView};

/// Bytes of the head of one text.
pub const HEAD_BYTES: usize = 16;

/// Bytes that are not valid texts.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TextError {
    /// The elements are something else.
    #[error("elements of type `{0}` are no text")]
    Dtype(DType),
    /// Fewer bytes than the heads alone take.
    #[error("string tensor of shape {shape} takes {expected} bytes or more, found {found}")]
    Heads {
        /// Dimensions.
        shape: Shape,
        /// Bytes of all heads.
        expected: usize,
        /// Bytes that are there.
        found: usize,
    },
    /// A head names bytes that are not there, or those of heads.
    #[error(
        "element {index} of the string tensor is {length} bytes at {offset}; the texts are in bytes {start} to {end}"
    )]
    Place {
        /// Position of the element in memory order.
        index: usize,
        /// The offset of the text according to its head.
        offset: i64,
        /// The length of the text according to its head, in bytes.
        length: i64,
        /// Where the heads end.
        start: usize,
        /// Where the tensor ends.
        end: usize,
    },
}

/// The bytes of a tensor that holds `texts`.
pub fn encode<T: AsRef<[u8]>>(texts: &[T]) -> Vec<u8> {
    let n_text_bytes = texts.iter().map(|text| text.as_ref().len()).sum();
    let mut builder = TextBuilder::new(texts.len(), n_text_bytes);
    for text in texts {
        builder.push(text.as_ref());
    }
    builder.into_bytes()
}

/// All texts of a tensor in memory order, all of whose heads are checked first.
///
/// # Errors
/// [`TextError`].
pub fn iter<'a>(tensor: TensorView<'a>) -> Result<TextIter<'a>, TextError> {
    if tensor.dtype != DType::String {
        return Err(TextError::Dtype(tensor.dtype));
    }
    check(tensor.shape, tensor.bytes)?;
    Ok(TextIter {
        bytes: tensor.bytes,
        heads: heads(tensor.shape, tensor.bytes)?,
        next: 0,
    })
}

/// The text at position `index` in memory order; `None` after the last one. Other heads are not
/// read.
///
/// # Errors
/// [`TextError`].
pub fn get<'a>(tensor: TensorView<'a>, index: usize) -> Result<Option<&'a [u8]>, TextError> {
    if tensor.dtype != DType::String {
        return Err(TextError::Dtype(tensor.dtype));
    }
    let heads = heads(tensor.shape, tensor.bytes)?;
    let head = heads.get(index);
    head.map(|head| text(tensor.bytes, heads.len(), index, head))
        .transpose()
}

/// Whether bytes are a tensor of text of this shape.
pub(crate) fn check(shape: &Shape, bytes: &[u8]) -> Result<(), TextError> {
    let heads = heads(shape, bytes)?;
    for (index, head) in heads.iter().enumerate() {
        text(bytes, heads.len(), index, head)?;
    }
    Ok(())
}

/// Texts of a tensor whose heads were checked.
#[derive(Clone, Debug)]
pub struct TextIter<'a> {
    bytes: &'a [u8],
    heads: &'a [[u8; HEAD_BYTES]],
    next: usize,
}

impl<'a> Iterator for TextIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let head = self.heads.get(self.next)?;
        let found = text(self.bytes, self.heads.len(), self.next, head);
        self.next += 1;
        // `iter` has checked all heads, so that none is left out here.
        found.ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let n = self.heads.len() - self.next;
        (n, Some(n))
    }
}

impl ExactSizeIterator for TextIter<'_> {}

/// Concatenates texts.
#[derive(Clone, Debug)]
pub struct TextBuilder {
    bytes: Vec<u8>,
    n_texts: usize,
    n_pushed: usize,
}

impl TextBuilder {
    /// Room for `n_texts` texts, of `n_text_bytes` bytes together if that is known. Texts that are
    /// not pushed are empty.
    pub fn new(n_texts: usize, n_text_bytes: usize) -> TextBuilder {
        let n_head_bytes = n_texts * HEAD_BYTES;
        let mut bytes = Vec::with_capacity(n_head_bytes + n_text_bytes);
        bytes.resize(n_head_bytes, 0);
        TextBuilder {
            bytes,
            n_texts,
            n_pushed: 0,
        }
    }

    /// Adds the next text. Those beyond the number of texts are ignored.
    pub fn push(&mut self, text: &[u8]) {
        if self.n_pushed == self.n_texts {
            return;
        }
        let offset = self.bytes.len() as u64;
        let at = self.n_pushed * HEAD_BYTES;
        self.bytes[at..at + 8].copy_from_slice(&offset.to_le_bytes());
        self.bytes[at + 8..at + HEAD_BYTES].copy_from_slice(&(text.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(text);
        self.n_pushed += 1;
    }

    /// The tensor's bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

fn heads<'a>(shape: &Shape, bytes: &'a [u8]) -> Result<&'a [[u8; HEAD_BYTES]], TextError> {
    // `Shape` allows no more elements than fit the address space at 16 bytes each.
    let expected = shape.n_elements() * HEAD_BYTES;
    match bytes.get(..expected) {
        Some(heads) => Ok(heads.as_chunks().0),
        None => Err(TextError::Heads {
            shape: shape.clone(),
            expected,
            found: bytes.len(),
        }),
    }
}

fn text<'a>(
    bytes: &'a [u8],
    n_heads: usize,
    index: usize,
    head: &[u8; HEAD_BYTES],
) -> Result<&'a [u8], TextError> {
    let [offset, length] = [0, 8].map(|at| {
        let mut number = [0; 8];
        number.copy_from_slice(&head[at..at + 8]);
        i64::from_le_bytes(number)
    });
    let start = n_heads * HEAD_BYTES;
    let place = usize::try_from(offset)
        .ok()
        .zip(usize::try_from(length).ok());
    // An empty text may be anywhere.
    let place = place.filter(|(begin, length)| *begin >= start || *length == 0);
    let text = place.and_then(|(begin, length)| bytes.get(begin..begin.checked_add(length)?));
    text.ok_or(TextError::Place {
        index,
        offset,
        length,
        start,
        end: bytes.len(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Tensor, TensorError};

    fn view<'a>(shape: &'a Shape, bytes: &'a [u8]) -> TensorView<'a> {
        TensorView::new(DType::String, shape, bytes)
    }

    fn head(offset: i64, length: i64) -> Vec<u8> {
        [offset.to_le_bytes(), length.to_le_bytes()].concat()
    }

    #[test]
    fn heads_are_those_of_the_kernels() {
        let bytes = encode(&["ab", "", "ä"]);
        let heads = [head(48, 2), head(50, 0), head(50, 2)].concat();
        assert_eq!(bytes, [&heads[..], "abä".as_bytes()].concat());
        assert_eq!(encode::<&str>(&[]), []);
    }

    #[test]
    fn a_tensor_must_have_whole_heads() {
        let shape = Shape::new([2]).unwrap();
        let good = encode(&["x", "yz"]);
        assert!(Tensor::from_vec(DType::String, shape.clone(), good.clone()).is_ok());
        for n in [0, 16, 31] {
            let error = Tensor::from_vec(DType::String, shape.clone(), good[..n].to_vec());
            assert_eq!(
                error.unwrap_err().to_string(),
                format!("string tensor of shape [2] takes 32 bytes or more, found {n}")
            );
        }
        let error = Tensor::from_vec(DType::String, shape.clone(), good[..34].to_vec());
        assert_eq!(
            error.unwrap_err().to_string(),
            "element 1 of the string tensor is 2 bytes at 33; the texts are in bytes 32 to 34"
        );
        assert_eq!(get(view(&shape, &good), 1), Ok(Some(&b"yz"[..])));
        assert_eq!(get(view(&shape, &good), 2), Ok(None));
        // Only the requested head counts.
        assert_eq!(get(view(&shape, &good[..34]), 0), Ok(Some(&b"x"[..])));
        assert!(get(view(&shape, &good[..34]), 1).is_err());
    }

    #[test]
    fn damaged_heads_are_refused() {
        let shape = Shape::scalar();
        let damaged = [
            (-1, 1),
            (16, -1),
            (16, 5),
            (20, 1),
            (15, 1),
            (0, 4),
            (21, 0),
            (i64::MAX, i64::MAX),
            (i64::MIN, 0),
            (i64::MAX, 0),
        ];
        for (offset, length) in damaged {
            let bytes = [&head(offset, length)[..], b"text"].concat();
            let expected = TextError::Place {
                index: 0,
                offset,
                length,
                start: 16,
                end: 20,
            };
            assert_eq!(iter(view(&shape, &bytes)).unwrap_err(), expected);
            assert_eq!(
                Tensor::from_vec(DType::String, shape.clone(), bytes).unwrap_err(),
                TensorError::Text(expected)
            );
        }
        for (offset, length) in [(16, 4), (19, 1), (20, 0), (0, 0)] {
            let bytes = [&head(offset, length)[..], b"text"].concat();
            assert!(view(&shape, &bytes).check().is_ok(), "{offset} {length}");
        }
    }

    #[test]
    fn other_dtypes_are_no_text() {
        let shape = Shape::scalar();
        let view = TensorView {
            dtype: DType::I8,
            ..view(&shape, &[1])
        };
        let message = "elements of type `int8` are no text";
        assert_eq!(iter(view).unwrap_err().to_string(), message);
        assert_eq!(get(view, 0).unwrap_err().to_string(), message);
    }

    proptest! {
        #[test]
        fn texts_come_back(texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..20)) {
            let bytes = encode(&texts);
            let shape = Shape::new([texts.len()]).unwrap();
            let view = view(&shape, &bytes);
            prop_assert!(view.check().is_ok());
            let found: Vec<&[u8]> = iter(view).unwrap().collect();
            prop_assert_eq!(&found, &texts);
            for (i, text) in texts.iter().enumerate() {
                prop_assert_eq!(get(view, i), Ok(Some(&text[..])));
            }
        }

        /// Any bytes decode to texts that all lie within them, or give an error.
        #[test]
        fn any_bytes(n in 0_usize..4, bytes in prop::collection::vec(0_u8..40, 0..90)) {
            let shape = Shape::new([n]).unwrap();
            let view = view(&shape, &bytes);
            let found = iter(view);
            prop_assert_eq!(found.is_ok(), view.check().is_ok());
            if let Ok(texts) = found {
                prop_assert_eq!(texts.count(), n);
            }
        }

        /// Small numbers in heads, so that many are valid.
        #[test]
        fn any_heads(heads in prop::collection::vec((0_i64..60, 0_i64..12), 1..4), n_more in 0_usize..16) {
            let mut bytes: Vec<u8> = heads.iter().flat_map(|(o, l)| head(*o, *l)).collect();
            let start = bytes.len() as i64;
            bytes.resize(bytes.len() + n_more, b'x');
            let end = bytes.len() as i64;
            let shape = Shape::new([heads.len()]).unwrap();
            prop_assert_eq!(view(&shape, &bytes).check().is_ok(), heads.iter().all(|(offset, length)| {
                offset + length <= end && (*length == 0 || *offset >= start)
            }));
        }
    }
}
