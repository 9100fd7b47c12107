//! Assigns code to dtypes.

use std::marker::PhantomData;

use float::{FloatFormat, FloatPattern};
use integer::IntegerFormat;

use super::block::{BLOCK, StatsBlock};
use super::{codes, float, integer};
use crate::DType;
use crate::convert::dtype::{CodeValues, code_values};
use crate::cpu::LaneMachine;
use crate::pieces::{PieceReader, read_pieces};

/// Dtypes that share code.
#[derive(Clone, Copy, Debug)]
pub(super) enum StatsKind {
    F16,
    BF16,
    F32,
    F64,
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    /// At most eight bits, each pattern with a value from a table.
    Codes(CodeValues),
}

/// A dtype whose elements are whole bytes, processed a block at a time.
pub(super) trait ElementReader {
    /// Bytes in an element.
    const WIDTH: usize;
    /// The statistics of at most one block. The reader receives its pieces.
    fn block<M: LaneMachine>(m: M, bytes: &[u8], beside: &mut impl PieceReader) -> StatsBlock;
    /// The values of [`crate::cpu::LANES`] elements.
    fn reals<M: LaneMachine>(m: M, bytes: &[u8]) -> M::Reals;
    /// The value of one element.
    fn value(bytes: &[u8]) -> f64;
}

/// Elements of a float dtype.
pub(super) struct FloatReader<F>(PhantomData<F>);

impl<F: FloatFormat> ElementReader for FloatReader<F> {
    const WIDTH: usize = F::WIDTH;
    #[inline(always)]
    fn block<M: LaneMachine>(m: M, bytes: &[u8], beside: &mut impl PieceReader) -> StatsBlock {
        float::block::<M, F>(m, bytes, beside)
    }
    #[inline(always)]
    fn reals<M: LaneMachine>(m: M, bytes: &[u8]) -> M::Reals {
        F::reals(m, bytes)
    }
    #[inline(always)]
    fn value(bytes: &[u8]) -> f64 {
        F::value(F::Bits::read(bytes))
    }
}

/// Elements of an integer dtype.
pub(super) struct IntegerReader<I>(PhantomData<I>);

impl<I: IntegerFormat> ElementReader for IntegerReader<I> {
    const WIDTH: usize = I::WIDTH;
    #[inline(always)]
    fn block<M: LaneMachine>(m: M, bytes: &[u8], beside: &mut impl PieceReader) -> StatsBlock {
        read_pieces(m, bytes, beside);
        integer::block::<M, I>(m, bytes)
    }
    #[inline(always)]
    fn reals<M: LaneMachine>(m: M, bytes: &[u8]) -> M::Reals {
        I::reals(m, bytes)
    }
    #[inline(always)]
    fn value(bytes: &[u8]) -> f64 {
        I::real(I::read(bytes))
    }
}

/// Evaluates an expression for the [`ElementReader`] type of a kind, or for the values of its
/// codes.
macro_rules! by_kind {
    ($kind:expr, $elements:ident => $if_elements:expr, $values:ident => $if_codes:expr) => {{
        macro_rules! of {
            ($group:ident, $module:ident, $t:ident) => {{
                type $elements = $crate::stats::kind::$group<$crate::stats::$module::$t>;
                $if_elements
            }};
        }
        match $kind {
            StatsKind::F16 => of!(FloatReader, float, F16),
            StatsKind::BF16 => of!(FloatReader, float, BF16),
            StatsKind::F32 => of!(FloatReader, float, F32),
            StatsKind::F64 => of!(FloatReader, float, F64),
            StatsKind::Bool => of!(IntegerReader, integer, Bool),
            StatsKind::I8 => of!(IntegerReader, integer, I8),
            StatsKind::U8 => of!(IntegerReader, integer, U8),
            StatsKind::I16 => of!(IntegerReader, integer, I16),
            StatsKind::U16 => of!(IntegerReader, integer, U16),
            StatsKind::I32 => of!(IntegerReader, integer, I32),
            StatsKind::U32 => of!(IntegerReader, integer, U32),
            StatsKind::I64 => of!(IntegerReader, integer, I64),
            StatsKind::U64 => of!(IntegerReader, integer, U64),
            StatsKind::Codes($values) => $if_codes,
        }
    }};
}
pub(super) use by_kind;

impl StatsKind {
    /// The kind of a dtype, if its elements have an order.
    pub(super) fn for_dtype(dtype: DType) -> Option<StatsKind> {
        use DType::*;
        Some(match dtype {
            F16 => StatsKind::F16,
            BF16 => StatsKind::BF16,
            F32 => StatsKind::F32,
            F64 => StatsKind::F64,
            Bool => StatsKind::Bool,
            I8 | QI8 | DualSubI8 => StatsKind::I8,
            U8 | QU8 | DualSubU8 => StatsKind::U8,
            I16 | QI16 => StatsKind::I16,
            U16 | QU16 => StatsKind::U16,
            I32 | QI32 => StatsKind::I32,
            U32 => StatsKind::U32,
            I64 => StatsKind::I64,
            U64 => StatsKind::U64,
            Undefined | String | C64 | C128 | Resource | StringRef | Dual | Variant | I4 | U1
            | I2 | U2 | C32 | HiF8 | F8E5M2 | F8E4M3FN | F8E8M0 | F6E3M2 | F6E2M3 | F4E2M1
            | F4E1M2 | HiF4 | HiF4Scale | U4 | F8E4M3FNUZ | F8E5M2FNUZ => {
                StatsKind::Codes(code_values(dtype)?)
            }
        })
    }

    /// Width of an element.
    pub(super) fn bits(self) -> usize {
        by_kind!(self, E => E::WIDTH * 8, values => values.n_bits)
    }

    /// Processes a chunk and passes its blocks on, in order. Codes make one block of a chunk. The
    /// reader receives each piece first.
    #[inline(always)]
    pub(super) fn blocks<M: LaneMachine>(
        self,
        m: M,
        bytes: &[u8],
        n_elements: usize,
        beside: &mut impl PieceReader,
        push: &mut impl FnMut(&StatsBlock),
    ) {
        // [`BLOCK`] is a multiple of eight, so that packed elements end at a whole byte.
        let n_block_bytes = BLOCK / 8 * self.bits();
        let blocks = bytes.chunks(n_block_bytes);
        by_kind!(self,
        E => for bytes in blocks {
            push(&E::block(m, bytes, beside));
        },
        values => {
            read_pieces(m, bytes, beside);
            push(&codes::block(&values, n_elements, bytes));
        });
    }

    /// Visits the values of elements, in order.
    #[inline(always)]
    pub(super) fn each(self, n_elements: usize, bytes: &[u8], mut visit: impl FnMut(f64)) {
        by_kind!(self,
            E => bytes.chunks_exact(E::WIDTH).for_each(|b| visit(E::value(b))),
            values => codes::each(&values, n_elements, bytes, |code| visit((values.value)(code))));
    }
}
