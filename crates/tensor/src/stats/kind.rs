//! Which code looks at which dtype.

use std::marker::PhantomData;

use super::block::{BLOCK, Block};
use super::{codes, float, integer};
use crate::DType;
use crate::convert::dtype::{CodeValues, code_values};
use crate::cpu::Machine;

use float::{Bits, Float};
use integer::Integer;

/// Dtypes that are looked at in the same way.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
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

/// A dtype whose elements are whole bytes, looked at a block at a time.
pub(super) trait Elements {
    /// Bytes in an element.
    const WIDTH: usize;
    /// The statistics of at most a block.
    fn block<M: Machine>(m: M, bytes: &[u8]) -> Block;
    /// The values of [`crate::cpu::LANES`] elements.
    fn reals<M: Machine>(m: M, bytes: &[u8]) -> M::Reals;
    /// The value of one element.
    fn value(bytes: &[u8]) -> f64;
}

/// Elements of a float dtype.
pub(super) struct Floats<F>(PhantomData<F>);

impl<F: Float> Elements for Floats<F> {
    const WIDTH: usize = F::WIDTH;
    #[inline(always)]
    fn block<M: Machine>(m: M, bytes: &[u8]) -> Block {
        float::block::<M, F>(m, bytes)
    }
    #[inline(always)]
    fn reals<M: Machine>(m: M, bytes: &[u8]) -> M::Reals {
        F::reals(m, bytes)
    }
    #[inline(always)]
    fn value(bytes: &[u8]) -> f64 {
        F::value(F::Bits::read(bytes))
    }
}

/// Elements of an integer dtype.
pub(super) struct Integers<I>(PhantomData<I>);

impl<I: Integer> Elements for Integers<I> {
    const WIDTH: usize = I::WIDTH;
    #[inline(always)]
    fn block<M: Machine>(m: M, bytes: &[u8]) -> Block {
        integer::block::<M, I>(m, bytes)
    }
    #[inline(always)]
    fn reals<M: Machine>(m: M, bytes: &[u8]) -> M::Reals {
        I::reals(m, bytes)
    }
    #[inline(always)]
    fn value(bytes: &[u8]) -> f64 {
        I::real(I::read(bytes))
    }
}

/// Evaluates an expression for the type of [`Elements`] that stands for a kind, or for the values of
/// its codes.
macro_rules! by_kind {
    ($kind:expr, $elements:ident => $if_elements:expr, $values:ident => $if_codes:expr) => {{
        macro_rules! of {
            ($group:ident, $module:ident, $t:ident) => {{
                type $elements = $crate::stats::kind::$group<$crate::stats::$module::$t>;
                $if_elements
            }};
        }
        match $kind {
            Kind::F16 => of!(Floats, float, F16),
            Kind::BF16 => of!(Floats, float, BF16),
            Kind::F32 => of!(Floats, float, F32),
            Kind::F64 => of!(Floats, float, F64),
            Kind::Bool => of!(Integers, integer, Bool),
            Kind::I8 => of!(Integers, integer, I8),
            Kind::U8 => of!(Integers, integer, U8),
            Kind::I16 => of!(Integers, integer, I16),
            Kind::U16 => of!(Integers, integer, U16),
            Kind::I32 => of!(Integers, integer, I32),
            Kind::U32 => of!(Integers, integer, U32),
            Kind::I64 => of!(Integers, integer, I64),
            Kind::U64 => of!(Integers, integer, U64),
            Kind::Codes($values) => $if_codes,
        }
    }};
}
pub(super) use by_kind;

impl Kind {
    /// The kind of a dtype, if its elements have an order.
    pub(super) fn of(dtype: DType) -> Option<Kind> {
        use DType::*;
        Some(match dtype {
            F16 => Kind::F16,
            BF16 => Kind::BF16,
            F32 => Kind::F32,
            F64 => Kind::F64,
            Bool => Kind::Bool,
            I8 | QI8 | DualSubI8 => Kind::I8,
            U8 | QU8 | DualSubU8 => Kind::U8,
            I16 | QI16 => Kind::I16,
            U16 | QU16 => Kind::U16,
            I32 | QI32 => Kind::I32,
            U32 => Kind::U32,
            I64 => Kind::I64,
            U64 => Kind::U64,
            Undefined | String | C64 | C128 | Resource | StringRef | Dual | Variant | I4 | U1
            | I2 | U2 | C32 | HiF8 | F8E5M2 | F8E4M3FN | F8E8M0 | F6E3M2 | F6E2M3 | F4E2M1
            | F4E1M2 | HiF4 | HiF4Scale | U4 | F8E4M3FNUZ | F8E5M2FNUZ => {
                Kind::Codes(code_values(dtype)?)
            }
        })
    }

    /// Width of an element.
    pub(super) fn bits(self) -> usize {
        by_kind!(self, E => E::WIDTH * 8, values => values.n_bits)
    }

    /// Looks at a chunk and hands over its blocks, in order. Codes make one block of a chunk.
    #[inline(always)]
    pub(super) fn blocks<M: Machine>(
        self,
        m: M,
        bytes: &[u8],
        n_elements: usize,
        push: &mut impl FnMut(&Block),
    ) {
        // [`BLOCK`] is a multiple of eight, so that packed elements end at a whole byte.
        let n_block_bytes = BLOCK / 8 * self.bits();
        let blocks = bytes.chunks(n_block_bytes);
        by_kind!(self,
            E => for bytes in blocks {
                push(&E::block(m, bytes));
            },
            values => push(&codes::block(&values, n_elements, bytes)));
    }

    /// Visits the values of elements, in order.
    #[inline(always)]
    pub(super) fn each(self, n_elements: usize, bytes: &[u8], mut visit: impl FnMut(f64)) {
        by_kind!(self,
            E => bytes.chunks_exact(E::WIDTH).for_each(|b| visit(E::value(b))),
            values => codes::each(&values, n_elements, bytes, |code| visit((values.value)(code))));
    }
}
