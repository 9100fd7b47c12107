//! The order of a graph's taps.

use super::own_node::PREFIX;
use crate::onnx::ort::site::TapSite;
use crate::onnx::schema::{
    DimValue, DimensionProto, NodeProto, OnnxDataType, TensorShapeProto, TensorTypeProto,
    TypeProto, TypeValue, ValueInfoProto,
};

/// How many taps have a turn together. More of them are ready at once, fewer give each other more
/// to read.
const N_TAPS_PER_TURN: usize = 32;
/// The output shape of a tap that ends a turn. The library reuses memory of a known shape; it has
/// no reuse for scalars.
pub(crate) const TURN_SHAPE: [i64; 1] = [1];

/// The taps of a graph so far, in the order of their operators, with the numbers of their sites.
///
/// Turns run one after the other: the last tap of a turn produces a value that all taps of the next
/// one read. The value only enforces the order.
pub(super) struct TapTurns {
    n_taps_per_turn: usize,
    turns: Vec<Vec<(usize, NodeProto)>>,
    /// The value that the taps of the current turn read.
    begun_by: Option<String>,
    /// The values that the taps of earlier turns give.
    values: Vec<ValueInfoProto>,
}

impl TapTurns {
    /// For the taps of the model's own graph.
    pub(super) fn in_main_graph() -> TapTurns {
        TapTurns::with_length(N_TAPS_PER_TURN)
    }

    /// For the taps of a body. They share one turn: the library sorts the nodes of the main graph,
    /// and refuses a body in which a node reads the output of a later one.
    pub(super) fn in_body() -> TapTurns {
        TapTurns::with_length(usize::MAX)
    }

    fn with_length(n_taps_per_turn: usize) -> TapTurns {
        TapTurns {
            n_taps_per_turn,
            turns: Vec::new(),
            begun_by: None,
            values: Vec::new(),
        }
    }

    /// Returns the value that the next tap has to read to have its turn, and begins a turn if the
    /// current one is full.
    pub(super) fn begin_next(&mut self, sites: &mut [TapSite]) -> Option<String> {
        let current = self.turns.last_mut();
        if current
            .as_ref()
            .is_some_and(|turn| turn.len() < self.n_taps_per_turn)
        {
            return self.begun_by.clone();
        }
        // The turn is full: its last tap gets an output for the next turn to wait for.
        if let Some((number, last)) = current.and_then(|turn| turn.last_mut()) {
            let name = format!("{PREFIX}turn:{number}");
            last.output.push(name.clone());
            if let Some(site) = sites.get_mut(*number) {
                site.ends_turn = true;
            }
            self.values.push(value(name.clone()));
            self.begun_by = Some(name);
        }
        self.turns.push(Vec::new());
        self.begun_by.clone()
    }

    /// Adds the tap of this number to the turn that was begun.
    pub(super) fn push(&mut self, number: usize, tap: NodeProto) {
        if let Some(turn) = self.turns.last_mut() {
            turn.push((number, tap));
        }
    }

    /// Puts the taps at the end of a graph's nodes, the last one first.
    ///
    /// A tap that ends its turn comes after the others of the turn: where the library sorts by
    /// position in the file, they are done before the next turn begins. It still runs after them,
    /// as the first tap of the next turn requests it.
    pub(super) fn append_to(self, nodes: &mut Vec<NodeProto>, values: &mut Vec<ValueInfoProto>) {
        // The library walks back from the last node, so the first tap to run comes last.
        for mut turn in self.turns.into_iter().rev() {
            turn.reverse();
            if turn.first().is_some_and(|(_, tap)| !tap.output.is_empty()) {
                turn.rotate_left(1);
            }
            nodes.extend(turn.into_iter().map(|(_, tap)| tap));
        }
        values.extend(self.values);
    }
}

/// The value that ends a turn.
fn value(name: String) -> ValueInfoProto {
    let dim = TURN_SHAPE.map(|extent| DimensionProto {
        value: Some(DimValue::DimValue(extent)),
        denotation: None,
    });
    let tensor = TensorTypeProto {
        elem_type: Some(OnnxDataType::Int64 as i32),
        shape: Some(TensorShapeProto { dim: dim.to_vec() }),
    };
    ValueInfoProto {
        name,
        r#type: Some(TypeProto {
            value: Some(TypeValue::TensorType(tensor)),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    }
}
