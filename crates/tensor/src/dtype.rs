//! Element types.
//!
//! The set is the union of what ONNX, PyTorch and the Ascend `DumpData` message can name. Numbers
//! that files use for a dtype live with the file format in `opscope-store`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The kind of value that the elements of a dtype represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    /// Floating-point numbers, NaN and often infinities, with this many digits after the first one.
    Float(u32),
    /// Floating-point numbers without NaN and infinities, with this many digits after the first
    /// one.
    FiniteFloat(u32),
    /// Integers in two's complement.
    Signed,
    /// Integers of at least zero.
    Unsigned,
    /// True or false.
    Truth,
    /// Complex numbers; real and imaginary part are of this dtype.
    Complex(DType),
    /// Text.
    Text,
    /// Bytes or handles without a numeric value.
    Opaque,
}

macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident => $name:literal, $bits:expr, $kind:expr;)*) => {
        /// The type of a tensor's elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DType {
            $($(#[$doc])* $variant,)*
        }

        impl DType {
            /// Every dtype, in declaration order.
            pub const ALL: &'static [DType] = &[$(DType::$variant,)*];

            /// The name used in tables, JSON and error messages, such as `float32`.
            pub fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// Width of one element in bits, or `None` where elements have no fixed width.
            ///
            /// Types narrower than a byte (`int4`, `uint1`, …) are stored packed.
            pub fn bits(self) -> Option<u32> {
                match self { $(DType::$variant => $bits,)* }
            }

            /// The kind of value that the elements represent.
            pub fn kind(self) -> ElementKind {
                use ElementKind::*;
                match self { $(DType::$variant => $kind,)* }
            }
        }
    };
}

dtypes! {
    /// Type unknown; the bytes are opaque.
    Undefined => "undefined", None, Opaque;
    /// IEEE 754 binary32.
    F32 => "float32", Some(32), Float(23);
    /// IEEE 754 binary16.
    F16 => "float16", Some(16), Float(10);
    /// Two's complement, 8 bits.
    I8 => "int8", Some(8), Signed;
    /// Unsigned, 8 bits.
    U8 => "uint8", Some(8), Unsigned;
    /// Two's complement, 16 bits.
    I16 => "int16", Some(16), Signed;
    /// Unsigned, 16 bits.
    U16 => "uint16", Some(16), Unsigned;
    /// Two's complement, 32 bits.
    I32 => "int32", Some(32), Signed;
    /// Two's complement, 64 bits.
    I64 => "int64", Some(64), Signed;
    /// Unsigned, 32 bits.
    U32 => "uint32", Some(32), Unsigned;
    /// Unsigned, 64 bits.
    U64 => "uint64", Some(64), Unsigned;
    /// One byte, zero or one.
    Bool => "bool", Some(8), Truth;
    /// IEEE 754 binary64.
    F64 => "float64", Some(64), Float(52);
    /// Text of any length.
    String => "string", None, Text;
    /// Ascend: signed half of a dual-output operator.
    DualSubI8 => "dual_sub_int8", Some(8), Signed;
    /// Ascend: unsigned half of a dual-output operator.
    DualSubU8 => "dual_sub_uint8", Some(8), Unsigned;
    /// Real and imaginary binary32.
    C64 => "complex64", Some(64), Complex(DType::F32);
    /// Real and imaginary binary64.
    C128 => "complex128", Some(128), Complex(DType::F64);
    /// Quantised `int8`.
    QI8 => "qint8", Some(8), Signed;
    /// Quantised `int16`.
    QI16 => "qint16", Some(16), Signed;
    /// Quantised `int32`.
    QI32 => "qint32", Some(32), Signed;
    /// Quantised `uint8`.
    QU8 => "quint8", Some(8), Unsigned;
    /// Quantised `uint16`.
    QU16 => "quint16", Some(16), Unsigned;
    /// A handle to a resource on the device.
    Resource => "resource", Some(64), Opaque;
    /// A reference to text.
    StringRef => "string_ref", None, Opaque;
    /// Ascend: two outputs in one.
    Dual => "dual", None, Opaque;
    /// A value whose type is known only at run time.
    Variant => "variant", None, Opaque;
    /// The upper half of a binary32: 8 exponent bits, 7 mantissa bits.
    BF16 => "bfloat16", Some(16), Float(7);
    /// Two's complement, 4 bits, two in a byte.
    I4 => "int4", Some(4), Signed;
    /// One bit, eight in a byte.
    U1 => "uint1", Some(1), Unsigned;
    /// Two's complement, 2 bits, four in a byte.
    I2 => "int2", Some(2), Signed;
    /// Unsigned, 2 bits, four in a byte.
    U2 => "uint2", Some(2), Unsigned;
    /// Real and imaginary binary16.
    C32 => "complex32", Some(32), Complex(DType::F16);
    /// Ascend's 8-bit float with a variable exponent width.
    HiF8 => "hifloat8", Some(8), Float(3);
    /// OCP 8-bit float, 5 exponent and 2 mantissa bits, with infinities.
    F8E5M2 => "float8_e5m2", Some(8), Float(2);
    /// OCP 8-bit float, 4 exponent and 3 mantissa bits, NaN but no infinities.
    F8E4M3FN => "float8_e4m3fn", Some(8), Float(3);
    /// OCP 8-bit power-of-two scale.
    F8E8M0 => "float8_e8m0", Some(8), Float(0);
    /// OCP 6-bit float, 3 exponent and 2 mantissa bits.
    F6E3M2 => "float6_e3m2", Some(6), FiniteFloat(2);
    /// OCP 6-bit float, 2 exponent and 3 mantissa bits.
    F6E2M3 => "float6_e2m3", Some(6), FiniteFloat(3);
    /// OCP 4-bit float, 2 exponent bits and 1 mantissa bit.
    F4E2M1 => "float4_e2m1", Some(4), FiniteFloat(1);
    /// 4-bit float, 1 exponent bit and 2 mantissa bits.
    F4E1M2 => "float4_e1m2", Some(4), FiniteFloat(2);
    /// Ascend's 4-bit block float.
    HiF4 => "hifloat4", Some(4), FiniteFloat(2);
    /// Scale of an Ascend 4-bit block float.
    HiF4Scale => "hifloat4_scale", None, Opaque;
    /// Unsigned, 4 bits, two in a byte.
    U4 => "uint4", Some(4), Unsigned;
    /// 8-bit float, 4 exponent and 3 mantissa bits, one NaN, no infinities, no negative zero.
    F8E4M3FNUZ => "float8_e4m3fnuz", Some(8), Float(3);
    /// 8-bit float, 5 exponent and 2 mantissa bits, one NaN, no infinities, no negative zero.
    F8E5M2FNUZ => "float8_e5m2fnuz", Some(8), Float(2);
}

impl DType {
    /// Width of one element in whole bytes; `None` for packed and unsized types.
    pub fn bytes(self) -> Option<usize> {
        match self.bits() {
            Some(bits) if bits % 8 == 0 => Some(bits as usize / 8),
            _ => None,
        }
    }

    /// Whether elements are real numbers that can be NaN or infinite.
    pub fn is_float(self) -> bool {
        matches!(self.kind(), ElementKind::Float(_))
    }

    /// Digits of the mantissa after the first one; `None` unless elements are real floating-point
    /// numbers.
    pub fn n_digits(self) -> Option<u32> {
        match self.kind() {
            ElementKind::Float(n) | ElementKind::FiniteFloat(n) => Some(n),
            ElementKind::Signed
            | ElementKind::Unsigned
            | ElementKind::Truth
            | ElementKind::Complex(_)
            | ElementKind::Text
            | ElementKind::Opaque => None,
        }
    }

    /// The dtype of the real numbers that elements consist of, and how many make one element: two
    /// of half the width in a complex number, otherwise the element itself.
    pub fn parts(self) -> (DType, usize) {
        if let ElementKind::Complex(part) = self.kind() {
            (part, 2)
        } else {
            (self, 1)
        }
    }
}

macro_rules! numpy_types {
    ($($variant:ident)*) => {
        /// The dtypes that numpy has. Every other one decodes to one of these, or has no numbers.
        #[allow(missing_docs, reason = "the variants are those of `DType`")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum NumpyType {
            $($variant,)*
        }

        impl DType {
            /// The same dtype as one of numpy's, if numpy has it.
            pub fn as_numpy(self) -> Option<NumpyType> {
                // A dtype that is added here later is none of numpy's, whose set has been the same
                // for decades: it decodes to one of these.
                match self {
                    $(DType::$variant => Some(NumpyType::$variant),)*
                    _ => None,
                }
            }
        }

        impl From<NumpyType> for DType {
            fn from(numpy: NumpyType) -> DType {
                match numpy { $(NumpyType::$variant => DType::$variant,)* }
            }
        }
    };
}

numpy_types! { Bool I8 U8 I16 U16 I32 U32 I64 U64 F16 F32 F64 C64 C128 }

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A dtype name that is not in [`DType::ALL`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown dtype `{0}`")]
pub struct ParseDTypeError(String);

impl FromStr for DType {
    type Err = ParseDTypeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        DType::ALL
            .iter()
            .copied()
            .find(|dtype| dtype.name() == text)
            .ok_or_else(|| ParseDTypeError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for &dtype in DType::ALL {
            assert_eq!(dtype.name().parse(), Ok(dtype));
        }
        assert!("float31".parse::<DType>().is_err());
    }

    #[test]
    fn widths_in_bytes() {
        let cases = [
            (DType::F32, Some(4)),
            (DType::C128, Some(16)),
            (DType::Bool, Some(1)),
            (DType::I4, None),
            (DType::String, None),
        ];
        for (dtype, bytes) in cases {
            assert_eq!(dtype.bytes(), bytes, "{dtype}");
        }
    }
}
