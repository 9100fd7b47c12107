//! Types and shapes of values that a file leaves out, from other parts of the graph.

use opscope_tensor::DType;

use super::{
    ANY_RANK, AttributeGroup, GraphDescription, InputOrigin, Literal, TensorType, ValueType,
};
use crate::file_format::ms_dtype;

/// The operator that holds values together, and the one that takes one of them.
const PACK: &str = "MakeTuple";
const UNPACK: &str = "TupleGetItem";
/// The attribute that names the dtype of what the operator makes.
const RESULT_DTYPE: &str = "dst_type";

impl GraphDescription {
    /// Infers the dimensions of values in tuples, from the values packed and unpacked, and the
    /// width of types of which only the family is known.
    #[must_use]
    pub fn completed(mut self) -> GraphDescription {
        self.complete_unpacked();
        for i in 0..self.nodes.len() {
            if self.nodes[i].op_type == PACK {
                let inputs = self.nodes[i].inputs.iter();
                let known: Vec<Option<ValueType>> =
                    inputs.map(|input| self.type_of(input)).collect();
                if let ValueType::Tuple(types) = &mut self.nodes[i].output {
                    let pairs = types.iter_mut().zip(known);
                    pairs.for_each(|(open, known)| complete(open, known.as_ref()));
                }
            }
        }
        for node in &mut self.nodes {
            let dtype = node.output.tensor().map(|tensor| tensor.dtype);
            for attribute in node
                .attributes
                .iter_mut()
                .filter(|a| a.name == RESULT_DTYPE)
            {
                let known = dtype
                    .filter(|dtype| match &attribute.value {
                        Literal::Name(name) => is_family(name, *dtype),
                        // Types that the message has no number for are left out of it.
                        Literal::Monad(_) => true,
                        _ => false,
                    })
                    .and_then(ms_dtype::short);
                if let Some(short) = known {
                    attribute.value = Literal::Name(short.to_owned());
                }
            }
        }
        self
    }

    /// Adopts what only the text of the same graph contains: which parameters are weights, the
    /// attributes of nodes and their origins, and the values of constant tensors. Returns whether
    /// `text` describes the same graph; nothing is taken over from another one.
    pub fn take_text(&mut self, text: &GraphDescription) -> bool {
        let nodes = self
            .nodes
            .iter()
            .map(|node| (&node.op_type, &node.full_name));
        let parameters = self.parameters.iter().map(|parameter| &parameter.name);
        if !nodes.eq(text
            .nodes
            .iter()
            .map(|node| (&node.op_type, &node.full_name)))
            || !parameters.eq(text.parameters.iter().map(|parameter| &parameter.name))
        {
            return false;
        }
        for (parameter, known) in self.parameters.iter_mut().zip(&text.parameters) {
            parameter.is_weight = known.is_weight;
        }
        for i in 0..self.nodes.len() {
            let known = &text.nodes[i];
            let others = known.attributes.iter();
            let others = others.filter(|attribute| attribute.group != AttributeGroup::Operator);
            self.nodes[i].attributes.extend(others.cloned());
            // The message leaves lines out that name a place once more.
            self.nodes[i].source.clone_from(&known.source);
            let inputs: Vec<_> = self.nodes[i].inputs.iter().zip(&known.inputs).collect();
            for (own, known) in inputs {
                if let (InputOrigin::Constant(own), InputOrigin::Constant(known)) = (own, known)
                    && let Some(known) = text.constants.get(*known)
                    && let Some(open) = self.constants.get_mut(*own)
                    && matches!(
                        (&open.value, &known.value),
                        (Literal::Tensor(..), Literal::Tensor(..))
                    )
                {
                    open.value = known.value.clone();
                }
            }
        }
        true
    }

    /// An operator that unpacks a tuple determines the type of the element.
    fn complete_unpacked(&mut self) {
        for i in 0..self.nodes.len() {
            let node = &self.nodes[i];
            let (UNPACK, [InputOrigin::Node(of), InputOrigin::Constant(nth)]) =
                (node.op_type.as_str(), &node.inputs[..])
            else {
                continue;
            };
            let nth = self
                .constants
                .get(*nth)
                .and_then(|constant| match constant.value {
                    Literal::Int(_, nth) => usize::try_from(nth).ok(),
                    _ => None,
                });
            let (of, known) = (*of, node.output.clone());
            if let (Some(nth), Some(from)) = (nth, self.nodes.get_mut(of))
                && let ValueType::Tuple(types) = &mut from.output
                && let Some(open) = types.get_mut(nth)
            {
                complete(open, Some(&known));
            }
        }
    }
}

fn complete(open: &mut ValueType, known: Option<&ValueType>) {
    match (open, known) {
        (ValueType::Tensor(open), Some(known)) if open.is_of_any_rank() => {
            if let Some(known) = known.tensor().filter(|known| known.dtype == open.dtype) {
                open.shape.clone_from(&known.shape);
            }
        }
        (ValueType::Tuple(open), Some(ValueType::Tuple(known))) => {
            let pairs = open.iter_mut().zip(known);
            pairs.for_each(|(open, known)| complete(open, Some(known)));
        }
        _ => {}
    }
}

impl TensorType {
    /// Whether its dimensions are unknown.
    pub fn is_of_any_rank(&self) -> bool {
        self.shape == [ANY_RANK]
    }
}

fn is_family(name: &str, dtype: DType) -> bool {
    match name {
        "Int" => matches!(
            dtype,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::I4
        ),
        "UInt" => matches!(dtype, DType::U8 | DType::U16 | DType::U32 | DType::U64),
        "Float" => dtype.is_float(),
        _ => false,
    }
}
