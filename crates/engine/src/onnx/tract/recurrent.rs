//! `GRU`, `LSTM` and `RNN` with checked shapes, initial states of any type, and either layout.
//!
//! tract multiplies as many columns as both factors have where the input is wider than its weights.
//! States that are not given are float32 to it, and those of an `LSTM` one and the same constant.
//! With the batch in front it joins two directions along the wrong axis.

use tract_onnx::model::ParsingContext;
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::change_axes::AxisOp;
use tract_onnx::tract_hir::internal::*;

use super::composition::{Composition, EnginePart, ResultShape, ResultType};
use super::wiring::{NodeWiring, WiredOutlets};

/// Positions among the inputs of the ONNX operator.
const X: usize = 0;
const W: usize = 1;
const R: usize = 2;
const B: usize = 3;
const INITIAL_H: usize = 5;
const INITIAL_C: usize = 6;
const P: usize = 7;
/// Positions among its outputs.
const Y_H: usize = 1;
const Y_C: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct RecurrentComposition {
    op_type: &'static str,
    /// Rows of weights for each hidden value.
    n_gates: usize,
    /// For each input of the ONNX operator, whether it is there.
    has_input: Vec<bool>,
    /// For each output, likewise.
    has_output: Vec<bool>,
    /// Whether the batch is the first axis, and not the sequence or the direction.
    is_batch_first: bool,
    /// The engine's operator, sequence first, with all states given.
    part: EnginePart,
    /// Another one for the states of the cells alone, behind the outputs of the first.
    cells: Option<EnginePart>,
}

/// The inputs that have an initial state.
fn states(op_type: &str) -> &'static [usize] {
    if op_type == "LSTM" {
        &[INITIAL_H, INITIAL_C]
    } else {
        &[INITIAL_H]
    }
}

fn has_name(names: &[String], at: usize) -> bool {
    names.get(at).is_some_and(|name| !name.is_empty())
}

impl Composition for RecurrentComposition {
    const RESULT_TYPE: ResultType = ResultType::EachOfFirstInput;
    const RESULT_SHAPE: ResultShape = ResultShape::Open;

    fn from_node(context: &ParsingContext<'_>, node: &NodeProto) -> TractResult<Self> {
        let (op_type, n_gates) = match node.op_type.as_str() {
            "GRU" => ("GRU", 3),
            "LSTM" => ("LSTM", 4),
            "RNN" => ("RNN", 1),
            other => bail!("`{other}` is no recurrent operator"),
        };
        let mut given = node.clone();
        // The axes are moved here, because tract joins directions along the wrong one with the
        // batch in front.
        given.attribute.retain(|attr| attr.name != "layout");
        for &state in states(op_type) {
            if given.input.len() <= state {
                given.input.resize(state + 1, String::new());
            }
            // tract would make a float32 state, and one constant for both states of an `LSTM`.
            if given.input[state].is_empty() {
                given.input[state] = format!("initial-{state}");
            }
        }
        // tract's optimiser confuses both states of an `LSTM` if they begin with constants and both
        // are outputs.
        let are_constant = !states(op_type).iter().all(|&at| has_name(&node.input, at));
        let is_split = are_constant && has_name(&node.output, Y_H) && has_name(&node.output, Y_C);
        let cells = if is_split {
            let mut alone = given.clone();
            alone.output[..Y_C].fill(String::new());
            given.output[Y_C].clear();
            Some(EnginePart::new(context, &alone)?)
        } else {
            None
        };
        Ok(RecurrentComposition {
            op_type,
            n_gates,
            has_input: node.input.iter().map(|name| !name.is_empty()).collect(),
            has_output: node.output.iter().map(|name| !name.is_empty()).collect(),
            is_batch_first: node.get_attr_opt::<i64>("layout")?.unwrap_or(0) == 1,
            part: EnginePart::new(context, &given)?,
            cells,
        })
    }

    fn op_type(&self) -> StaticName {
        self.op_type.into()
    }

    fn n_outputs(&self) -> usize {
        self.has_output.iter().filter(|&&is_there| is_there).count()
    }

    fn wire(&self, wiring: &mut NodeWiring<'_>, inputs: &[OutletId]) -> WiredOutlets {
        let mut present = inputs.iter().copied();
        let mut wires: Vec<Option<OutletId>> = Vec::new();
        for &is_there in &self.has_input {
            wires.push(if is_there { present.next() } else { None });
        }
        // Optional inputs at the end may be left out of the file.
        wires.resize(wires.len().max(P + 1), None);
        if self.is_batch_first {
            for at in [X, INITIAL_H, INITIAL_C] {
                if let Some(wire) = &mut wires[at] {
                    *wire = wiring.wire_as_is(AxisOp::Move(0, 1), &[*wire])?;
                }
            }
        }
        // tract multiplies as far as both factors reach, so that a wrong shape would give wrong
        // numbers and no error.
        let state = self.check(wiring, &wires)?;
        for &at in states(self.op_type) {
            if wires[at].is_none() {
                let x = wires[X].context("`X` is missing")?;
                let zeros = Tensor::zero_dt(wiring.datum_type(x)?, &state)?;
                wires[at] = Some(wiring.constant(zeros)?);
            }
        }
        let wires: TVec<OutletId> = wires.into_iter().flatten().collect();
        let mut outputs = self.part.wire(wiring, &wires)?;
        if let Some(cells) = &self.cells {
            outputs.extend(cells.wire(wiring, &wires)?);
        }
        if self.is_batch_first {
            // `Y` has the batch after sequence and direction, the states after the direction.
            let is_y = self.has_output.first().copied().unwrap_or(false);
            for (i, output) in outputs.iter_mut().enumerate() {
                let from = if is_y && i == 0 { 2 } else { 1 };
                *output = wiring.wire_as_is(AxisOp::Move(from, 0), &[*output])?;
            }
        }
        Ok(outputs)
    }
}

impl RecurrentComposition {
    /// Fails unless all shapes fit each other; returns that of an initial state.
    fn check(
        &self,
        wiring: &NodeWiring<'_>,
        wires: &[Option<OutletId>],
    ) -> TractResult<[usize; 3]> {
        let dims = |at: usize| wires[at].map(|wire| wiring.dims(wire)).transpose();
        let (Some(x), Some(w), Some(r)) = (dims(X)?, dims(W)?, dims(R)?) else {
            bail!("`X`, `W` or `R` is missing");
        };
        ensure!(
            x.len() == 3 && w.len() == 3 && r.len() == 3,
            "`X` is {x:?}, `W` {w:?} and `R` {r:?}, expected three axes each"
        );
        let (batch, width) = (x[1], x[2]);
        let (n_directions, hidden) = (r[0], r[2]);
        let n_rows = self.n_gates * hidden;
        let state = [n_directions, batch, hidden];
        let expected: [(&str, usize, &[usize]); 6] = [
            ("W", W, &[n_directions, n_rows, width]),
            ("R", R, &[n_directions, n_rows, hidden]),
            // One bias for the input and one for the state.
            ("B", B, &[n_directions, 2 * n_rows]),
            ("initial_h", INITIAL_H, &state),
            ("initial_c", INITIAL_C, &state),
            // Peepholes connect the cell to three of the gates.
            ("P", P, &[n_directions, 3 * hidden]),
        ];
        for (name, at, wanted) in expected {
            if let Some(found) = dims(at)? {
                ensure!(
                    found[..] == *wanted,
                    "`{name}` is {found:?}, expected {wanted:?} for `X` of {x:?} and `R` of {r:?}"
                );
            }
        }
        Ok(state)
    }
}
