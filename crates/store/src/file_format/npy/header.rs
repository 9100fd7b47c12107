//! The header of an npy file: a Python dictionary in a line of text.

use opscope_tensor::{DType, Shape};

use super::items::ItemForm;
use super::{HEADER_BYTES_MAX, descr};
use crate::FormatError;
use crate::file_parts::FileParts;

pub(super) const MAGIC: &[u8] = b"\x93NUMPY";
/// Upper bound of the start of the data: magic, version and length precede the header.
const START_BYTES_MAX: usize = HEADER_BYTES_MAX + 12;
/// The data begin at a multiple of this.
const ALIGN: usize = 64;
/// `MindSpore`'s name for bfloat16, which numpy does not have.
pub(super) const BFLOAT16_DESCR: &str = "<E2";
/// The package `ml_dtypes`'s name for `float8_e5m2`; its other types are void.
const FLOAT8_DESCR: &str = "f1";
/// numpy reserves space for this many digits of the first dimension.
const GROWTH_DIGITS: usize = 21;

/// Content of an npy header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyHeader {
    /// Type of the elements: [`DType::String`] of text.
    pub dtype: DType,
    /// Form in which the file stores each of them.
    pub items: ItemForm,
    /// Whether elements are stored with the most significant byte first.
    pub is_big_endian: bool,
    /// Whether the first axis varies fastest.
    pub is_fortran_order: bool,
    /// Dimensions.
    pub shape: Shape,
}

/// Magic, version, length and dictionary for an array in C order, or `None` if numpy has no such
/// dtype. The bytes equal those of numpy's own writer.
pub fn encode_header(dtype: DType, shape: &Shape) -> Option<Vec<u8>> {
    NpyHeader {
        dtype,
        items: ItemForm::Numbers,
        is_big_endian: false,
        is_fortran_order: false,
        shape: shape.clone(),
    }
    .encode()
}

impl NpyHeader {
    /// The bytes that numpy writes before the data, or `None` if numpy has no such dtype.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let descr = self.items.descr(self.dtype)?;
        let dims: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        let tuple = match &dims[..] {
            // Without the comma Python takes it for a number in parentheses.
            [one] => format!("({one},)"),
            _ => format!("({})", dims.join(", ")),
        };
        let order = if self.is_fortran_order {
            "True"
        } else {
            "False"
        };
        let mut text =
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {tuple}, }}");
        let growing = if self.is_fortran_order {
            dims.last()
        } else {
            dims.first()
        };
        // numpy reserves space so that an array can grow in place along its outermost axis.
        if let Some(extent) = growing {
            text.push_str(&" ".repeat(GROWTH_DIGITS.saturating_sub(extent.len())));
        }
        let n_fixed = MAGIC.len() + 4;
        // The newline belongs to the padded length, and it is the last byte before the data.
        let n_padded = (n_fixed + text.len() + 1).next_multiple_of(ALIGN);
        text.push_str(&" ".repeat(n_padded - n_fixed - text.len() - 1));
        text.push('\n');
        // `Shape` allows at most 64 axes, so the text is far below the limit of version 1.0.
        let length = u16::try_from(text.len()).ok()?;
        Some([MAGIC, &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat())
    }

    /// Reads the header at the beginning of `bytes`; also returns the position of the data.
    ///
    /// # Errors
    /// [`FormatError`] if there is no header, or one of a dtype that has no counterpart here. Void
    /// dtypes have none: their meaning is not in the file.
    pub fn decode(bytes: &[u8]) -> Result<(NpyHeader, usize), FormatError> {
        let (header, end) = NpyHeader::decode_any(bytes)?;
        header.items.check_known()?;
        Ok((header, end))
    }

    /// [`NpyHeader::decode`] of a file.
    ///
    /// # Errors
    /// As for [`NpyHeader::decode`]; also if the file cannot be read.
    pub(crate) fn read(file: &FileParts) -> Result<(NpyHeader, usize), FormatError> {
        let n_max = file.n_bytes().min(START_BYTES_MAX);
        match NpyHeader::decode(file.start()) {
            Err(_) if file.start().len() < n_max => {
                let start = file.part(0..n_max).map_err(FormatError::unreadable)?;
                NpyHeader::decode(start.as_ref())
            }
            header => header,
        }
    }

    /// [`NpyHeader::decode`], of void dtypes too: they are [`DType::Undefined`].
    pub(crate) fn decode_any(bytes: &[u8]) -> Result<(NpyHeader, usize), FormatError> {
        let (text_start, n_text) = frame(bytes)?;
        let end = text_start + n_text;
        let Some(text) = bytes.get(text_start..end) else {
            let found = (bytes.len() - text_start).to_string();
            return Err(FormatError::new(
                text_start as u64,
                format!("{n_text} bytes of header"),
                found,
            ));
        };
        // Versions 1 and 2 are Latin-1 and version 3 is UTF-8. Only field names of records differ
        // in the two, and records are refused anyway.
        let text = str::from_utf8(text).map_err(|error| {
            let at = text_start + error.valid_up_to();
            FormatError::new(at as u64, "header text", "bytes that are not")
        })?;
        let header = HeaderDictionary {
            text,
            pos: 0,
            base: text_start,
        }
        .parse()?;
        Ok((header, end))
    }

    /// Bytes of the data; `None` if memory cannot hold as many.
    pub fn n_data_bytes(&self) -> Option<usize> {
        let n_item_bytes = self.items.n_bytes(self.dtype);
        let n_bytes = self.shape.n_elements().checked_mul(n_item_bytes);
        n_bytes.filter(|&n| isize::try_from(n).is_ok())
    }

    /// Bytes that are reversed together in a big-endian array.
    pub(super) fn swap_width(&self) -> usize {
        match (self.items, self.dtype) {
            (ItemForm::Bytes(_) | ItemForm::Void(_), _) => 1,
            (ItemForm::Characters(_), _) => 4,
            // Of a complex number each part is reversed.
            (ItemForm::Numbers, dtype) => dtype.parts().0.bytes().unwrap_or(1),
        }
    }
}

/// Start and length of the dictionary text.
fn frame(bytes: &[u8]) -> Result<(usize, usize), FormatError> {
    if !bytes.starts_with(MAGIC) {
        let n = bytes.len().min(MAGIC.len());
        return Err(FormatError::new(
            0,
            "the npy magic",
            format!("{:02x?}", &bytes[..n]),
        ));
    }
    let short = || FormatError::new(6, "version and header length", "the end of the file");
    let (start, n_text) = match bytes.get(6).ok_or_else(short)? {
        // Version 1 has a length of two bytes, later ones of four; the text follows it.
        1 => (
            10,
            usize::from(u16::from_le_bytes(bytes_at(bytes, 8).ok_or_else(short)?)),
        ),
        2 | 3 => (
            12,
            u32::from_le_bytes(bytes_at(bytes, 8).ok_or_else(short)?) as usize,
        ),
        other => {
            return Err(FormatError::new(
                6,
                "npy version 1, 2 or 3",
                format!("version {other}"),
            ));
        }
    };
    // Versions 2 and 3 allow headers of 4 GiB, which a damaged length would make us read as text.
    if n_text > HEADER_BYTES_MAX {
        let expected = format!("a header of at most {HEADER_BYTES_MAX} bytes");
        return Err(FormatError::new(8, expected, n_text.to_string()));
    }
    Ok((start, n_text))
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}

/// Content of `descr`.
struct DescrContent {
    dtype: DType,
    items: ItemForm,
    is_big_endian: bool,
}

impl DescrContent {
    fn numbers(dtype: DType, is_big_endian: bool) -> DescrContent {
        DescrContent {
            dtype,
            items: ItemForm::Numbers,
            is_big_endian,
        }
    }
}

/// Reads the literal `{'descr': …, 'fortran_order': …, 'shape': …}` with any spacing and key order.
struct HeaderDictionary<'a> {
    text: &'a str,
    pos: usize,
    base: usize,
}

impl<'a> HeaderDictionary<'a> {
    fn parse(mut self) -> Result<NpyHeader, FormatError> {
        let (mut descr, mut is_fortran_order, mut shape) = (None, None, None);
        self.expect('{')?;
        // Keys come in any order, and other writers than numpy's use that freedom.
        while !self.eat('}') {
            let at = self.pos;
            match self.quoted()? {
                "descr" => {
                    self.expect(':')?;
                    descr = Some(self.descr()?);
                }
                "fortran_order" => {
                    self.expect(':')?;
                    is_fortran_order = Some(self.boolean()?);
                }
                "shape" => {
                    self.expect(':')?;
                    shape = Some(self.tuple()?);
                }
                other => {
                    let found = format!("`{other}`");
                    return Err(self.error_at(at, "`descr`, `fortran_order` or `shape`", found));
                }
            }
            if !self.eat(',') {
                self.expect('}')?;
                break;
            }
        }
        self.skip_space();
        if self.pos < self.text.len() {
            return Err(self.error("nothing after the dictionary"));
        }
        match (descr, is_fortran_order, shape) {
            (Some(descr), Some(is_fortran_order), Some(shape)) => Ok(NpyHeader {
                dtype: descr.dtype,
                items: descr.items,
                is_big_endian: descr.is_big_endian,
                is_fortran_order,
                shape,
            }),
            _ => Err(self.error_at(0, "`descr`, `fortran_order` and `shape`", "fewer keys")),
        }
    }

    fn descr(&mut self) -> Result<DescrContent, FormatError> {
        self.skip_space();
        let at = self.pos;
        // numpy writes a record as a list of its fields.
        if self.rest().starts_with('[') {
            return Err(self.error_at(at, "a plain dtype", "a record dtype"));
        }
        let text = self.quoted()?;
        // This name is checked before the order is cut off, because it looks like a byte order and
        // a code of numpy's.
        if text == BFLOAT16_DESCR {
            return Ok(DescrContent::numbers(DType::BF16, false));
        }
        let (order, code) = match text.chars().next() {
            // numpy's own writer always writes a byte order, but a dtype's code is valid without
            // one.
            Some(order @ ('<' | '>' | '|' | '=')) => (order, &text[1..]),
            _ => ('=', text),
        };
        let is_big_endian = order == '>';
        if code == FLOAT8_DESCR {
            return Ok(DescrContent::numbers(DType::F8E5M2, false));
        }
        if let Some(items) = ItemForm::of_code(code) {
            return Ok(DescrContent {
                dtype: items.dtype(),
                items,
                is_big_endian,
            });
        }
        // Descriptions of one-byte dtypes begin with `|`, so only what follows the order is
        // compared.
        let dtype = DType::ALL
            .iter()
            .copied()
            .find(|&dtype| descr(dtype).is_some_and(|known| &known[1..] == code));
        dtype
            .map(|dtype| DescrContent::numbers(dtype, is_big_endian))
            .ok_or_else(|| {
                let expected = "a dtype of numbers, booleans or text";
                self.error_at(at, expected, format!("`{text}`"))
            })
    }

    fn tuple(&mut self) -> Result<Shape, FormatError> {
        self.expect('(')?;
        let at = self.pos;
        let mut dims = Vec::new();
        while !self.eat(')') {
            dims.push(self.integer()?);
            // `Shape::new` refuses the excess below; going on would only collect what it refuses.
            if dims.len() > Shape::N_AXES_MAX {
                break;
            }
            if !self.eat(',') {
                self.expect(')')?;
                break;
            }
        }
        Shape::new(dims).map_err(|error| self.error_at(at, "a usable shape", error.to_string()))
    }

    fn integer(&mut self) -> Result<usize, FormatError> {
        self.skip_space();
        let rest = self.rest();
        let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        match rest[..n_digits].parse() {
            Ok(value) => {
                self.pos += n_digits;
                // Python 2 marked long integers.
                if self.rest().starts_with('L') {
                    self.pos += 1;
                }
                Ok(value)
            }
            Err(_) => Err(self.error("a dimension")),
        }
    }

    fn boolean(&mut self) -> Result<bool, FormatError> {
        self.skip_space();
        for (word, value) in [("True", true), ("False", false)] {
            if self.rest().starts_with(word) {
                self.pos += word.len();
                return Ok(value);
            }
        }
        Err(self.error("`True` or `False`"))
    }

    fn quoted(&mut self) -> Result<&'a str, FormatError> {
        self.skip_space();
        let rest = self.rest();
        let quote = match rest.chars().next() {
            Some(quote @ ('\'' | '"')) => quote,
            _ => return Err(self.error("a quoted name")),
        };
        match rest[1..].find(quote) {
            Some(n) => {
                self.pos += n + 2;
                Ok(&rest[1..=n])
            }
            None => Err(self.error("a closing quote")),
        }
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(wanted);
        if found {
            self.pos += wanted.len_utf8();
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), FormatError> {
        if self.eat(wanted) {
            Ok(())
        } else {
            Err(self.error(&format!("`{wanted}`")))
        }
    }

    fn skip_space(&mut self) {
        self.pos += self.rest().len() - self.rest().trim_start().len();
    }

    fn rest(&self) -> &'a str {
        &self.text[self.pos..]
    }

    fn error(&self, expected: &str) -> FormatError {
        let found: String = self.rest().chars().take(20).collect();
        self.error_at(self.pos, expected, format!("`{}`", found.escape_debug()))
    }

    fn error_at(&self, pos: usize, expected: &str, found: impl Into<String>) -> FormatError {
        FormatError::new((self.base + pos) as u64, expected, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_equal_numpys() {
        // Recorded with numpy 2.4.
        let cases: [(&[usize], &str); 3] = [
            (
                &[2, 3],
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
            ),
            (
                &[5],
                "{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }",
            ),
            (
                &[],
                "{'descr': '<f4', 'fortran_order': False, 'shape': (), }",
            ),
        ];
        for (dims, text) in cases {
            let bytes = encode_header(DType::F32, &Shape::new(dims).unwrap()).unwrap();
            assert_eq!(bytes.len(), 128, "{dims:?}");
            assert!(bytes[10..].starts_with(text.as_bytes()));
            assert_eq!(bytes.last(), Some(&b'\n'));
        }
    }

    #[test]
    fn headers_that_are_refused() {
        let cases = [
            ("", "`{`"),
            ("{'descr': '<f4'}", "fewer keys"),
            (
                "{'descr': '|O', 'fortran_order': False, 'shape': ()}",
                "`|O`",
            ),
            ("{'descr': [('a', '<f4')], 'shape': ()}", "a record dtype"),
            (
                "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}",
                "`True` or `False`",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
                "a dimension",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
                "a dimension",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999, 9999999999)}",
                "more elements",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': ()} x",
                "nothing after",
            ),
            ("{'other': 1}", "`other`"),
        ];
        for (text, part) in cases {
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
            let error = NpyHeader::decode(&bytes).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn every_version_is_read() {
        let text = b"{\"shape\": (2L, 1), 'fortran_order' :True,'descr':'>i4'}";
        for version in [2_u8, 3] {
            let mut bytes = b"\x93NUMPY".to_vec();
            bytes.extend_from_slice(&[version, 0]);
            bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
            bytes.extend_from_slice(text);
            let (header, start) = NpyHeader::decode(&bytes).unwrap();
            assert_eq!(start, 12 + text.len());
            assert!(header.is_big_endian && header.is_fortran_order);
            assert_eq!(
                (header.dtype, header.shape.dims()),
                (DType::I32, &[2, 1][..])
            );
        }
        assert!(NpyHeader::decode(b"\x93NUMPY\x04\x00\x00\x00").is_err());
    }
}
