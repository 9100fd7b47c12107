//! Rotary position embeddings.

use opscope_engine::single_operator::OperatorAttribute;
use opscope_tensor::{DType, Shape, Tensor};

use super::activation::{SMALL_FLOATS, is_small_float};
use super::attention_masks::expect_broadcast;
use crate::aclnn::call::{Composed, OperatorCall, Refusal, refuse_if};
use crate::aclnn::parameter::TensorArgument;
use crate::aclnn::row::operator_rows;

/// Calls a macro with the rows of rotary positions.
#[macro_export]
macro_rules! aclnn_rotary {
    ($rows:ident) => {
        $rows! { "rotary positions";
            ApplyRotaryPosEmb("aclnn_apply_rotary_pos_emb.h", "x * cos + the halves of x, exchanged and the first negated, * sin, for query and key") by rotate_query_and_key():
                aclnnApplyRotaryPosEmb(queryRef: Inplace, keyRef: Inplace, cos: Tensor, sin: Tensor, layout: Int);
            RotaryPositionEmbedding("aclnn_rotary_position_embedding.h", "x * cos + x rotated * sin; mode 0 exchanges halves, 1 neighbours, 2 quarters, and 3 halves after the even places were moved in front") by rotate():
                aclnnRotaryPositionEmbedding(x: Tensor, cos: Tensor, sin: Tensor, mode: Int, out: Out);
        }
    };
}
aclnn_rotary!(operator_rows);

/// The indices for a rotated row: of each element, of its partner for the sine term, and whether
/// the partner is negated.
struct Rotation {
    plain: Vec<usize>,
    turned: Vec<usize>,
    is_negated: Vec<bool>,
}

impl Rotation {
    /// `None` if the mode is unknown, or the width is not divisible.
    fn new(mode: i64, width: usize) -> Option<Rotation> {
        let parts = if mode == 2 { 4 } else { 2 };
        let step = width / parts;
        if !width.is_multiple_of(parts) || width == 0 || !(0..=3).contains(&mode) {
            return None;
        }
        // An element and its partner are `step` apart, or adjacent.
        let pairs: Vec<(usize, usize, bool)> = (0..width)
            .map(|at| match mode {
                1 => (at, at ^ 1, at % 2 == 0),
                3 if at < step => (2 * at, 2 * at + 1, true),
                3 => (2 * (at - step) + 1, 2 * (at - step), false),
                _ if (at / step).is_multiple_of(2) => (at, at + step, true),
                _ => (at, at - step, false),
            })
            .collect();
        Some(Rotation {
            plain: pairs.iter().map(|pair| pair.0).collect(),
            turned: pairs.iter().map(|pair| pair.1).collect(),
            is_negated: pairs.iter().map(|pair| pair.2).collect(),
        })
    }
}

/// Stores `x · cos + rotated x · sin`.
fn write_rotated(
    call: &OperatorCall<'_>,
    x: &TensorArgument,
    [cos, sin]: [&TensorArgument; 2],
    mode: i64,
    out: &TensorArgument,
) -> Composed {
    for tensor in [x, cos, sin] {
        call.expect_dtype(tensor, is_small_float, SMALL_FLOATS)?;
    }
    let &[_, _, _, width] = x.dims() else {
        let (name, n) = (call.name(x), x.n_axes());
        let text = format!("`{name}` has {n} axes; expected 4");
        return Err(Refusal::invalid(text));
    };
    call.expect_like(out, x)?;
    call.expect_shape(sin, cos.dims())?;
    expect_broadcast(call, cos, cos.dims(), x.dims())?;
    let rotation = Rotation::new(mode, width).ok_or_else(|| {
        Refusal::invalid(format!(
            "rows of {width} elements cannot be rotated in mode {mode}; expected modes 0 to 3 and \
             rows of an even number, of a multiple of 4 for mode 2"
        ))
    })?;
    // Both are gathered, because in one mode the plain element moves too.
    let value = call.read(x, DType::F32)?;
    let last = vec![("axis", OperatorAttribute::Int(-1))];
    let places = call.constant_dims(&rotation.plain);
    let plain = call.node_with("Gather", &[&value, &places], last.clone(), DType::F32);
    let places = call.constant_dims(&rotation.turned);
    let turned = call.node_with("Gather", &[&value, &places], last, DType::F32);
    // Half of the partners are negated; a sign for each position covers every mode.
    let signs = rotation
        .is_negated
        .iter()
        .map(|&is_negated| if is_negated { -1.0_f32 } else { 1.0 });
    let bytes = signs.flat_map(f32::to_le_bytes).collect();
    let shape = Shape::new(vec![width]).ok();
    let signs = shape.and_then(|shape| Tensor::from_vec(DType::F32, shape, bytes).ok());
    let signs = signs.ok_or_else(|| Refusal::invalid("a row is too long"))?;
    let signs = call.tensor_value(signs);
    let (cos, sin) = (call.read(cos, DType::F32)?, call.read(sin, DType::F32)?);
    call.write(out, &plain * &cos + &turned * &signs * &sin, x.dtype)
}

fn rotate(call: &OperatorCall<'_>) -> Composed {
    let (x, out) = (call.tensor("x")?, call.tensor("out")?);
    let (cos, sin) = (call.tensor("cos")?, call.tensor("sin")?);
    write_rotated(call, x, [cos, sin], call.int("mode")?, out)
}

fn rotate_query_and_key(call: &OperatorCall<'_>) -> Composed {
    let (query, key) = (call.tensor("queryRef")?, call.tensor("keyRef")?);
    let (cos, sin) = (call.tensor("cos")?, call.tensor("sin")?);
    refuse_if!(
        call.int("layout")? != 1,
        "`layout` is not 1; expected 1 (BSND)"
    );
    for x in [query, key] {
        write_rotated(call, x, [cos, sin], 0, x)?;
    }
    Ok(())
}
