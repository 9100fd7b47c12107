//! Making and checking a model's inputs.

mod random;
mod room;

use std::collections::BTreeMap;

use opscope_tensor::{Shape, Tensor};

use crate::{DeclaredDim, InputError, ModelSignature, ValueInfo};

pub use random::RandomNumbers;
pub use room::room;

/// Puts named tensors into the model's order and checks them against what it declares.
///
/// # Errors
/// [`InputError`] if one is missing, unknown, or of another dtype or shape.
pub fn arrange(
    signature: &ModelSignature,
    mut given: BTreeMap<String, Tensor>,
) -> Result<Vec<Tensor>, InputError> {
    // A misspelt name is both unknown and missing; the unknown one is more helpful.
    if let Some(name) = given.keys().find(|name| find(signature, name).is_none()) {
        return Err(unknown(signature, name));
    }
    let mut arranged = Vec::with_capacity(signature.inputs.len());
    for value in &signature.inputs {
        let tensor = given
            .remove(&value.name)
            .ok_or_else(|| InputError::Missing {
                name: value.name.clone(),
                dtype: value.dtype,
                shape: value.shape_text(),
            })?;
        check(value, &tensor)?;
        arranged.push(tensor);
    }
    Ok(arranged)
}

/// The model's input of this name.
pub fn find<'a>(signature: &'a ModelSignature, name: &str) -> Option<&'a ValueInfo> {
    signature.inputs.iter().find(|value| value.name == name)
}

/// The error for a name that is no input of the model.
pub fn unknown(signature: &ModelSignature, name: &str) -> InputError {
    if signature
        .initialised_inputs
        .iter()
        .any(|input| input == name)
    {
        return InputError::Initialised(name.to_owned());
    }
    let known: Vec<String> = signature
        .inputs
        .iter()
        .map(|value| format!("`{}` ({} {})", value.name, value.dtype, value.shape_text()))
        .collect();
    let known = if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    };
    InputError::Unknown {
        name: name.to_owned(),
        known,
    }
}

/// The shape to use for `value`: `wanted` if any, else the declared one if every dimension is
/// known.
///
/// # Errors
/// [`InputError::Shape`] if `wanted` contradicts the declaration, [`InputError::Dynamic`] if the
/// declaration has dynamic dimensions and `wanted` is `None`.
pub fn resolve_shape(value: &ValueInfo, wanted: Option<&Shape>) -> Result<Shape, InputError> {
    if let Some(wanted) = wanted {
        if !value.admits(wanted) {
            return Err(shape_error(value, wanted));
        }
        return Ok(wanted.clone());
    }
    let fixed = value.dims.as_ref().and_then(|dims| {
        let fixed = dims.iter().map(|dim| {
            if let DeclaredDim::Fixed(n) = dim {
                Some(*n)
            } else {
                None
            }
        });
        fixed.collect::<Option<Vec<usize>>>()
    });
    let name = value.name.clone();
    let Some(dims) = fixed else {
        return Err(InputError::Dynamic {
            name,
            shape: value.shape_text(),
        });
    };
    Shape::new(dims).map_err(|source| InputError::TooLarge { name, source })
}

/// Whether an input fits what the model declares.
pub(crate) fn check(value: &ValueInfo, tensor: &Tensor) -> Result<(), InputError> {
    // Types are never converted: the run would no longer be that of the values that were given.
    if value.dtype != tensor.dtype() {
        return Err(InputError::Dtype {
            name: value.name.clone(),
            expected: value.dtype,
            found: tensor.dtype(),
        });
    }
    check_shape(value, tensor.shape())
}

/// Whether the dimensions of an input match the model's declaration.
///
/// # Errors
/// [`InputError::Shape`] if they do not.
pub fn check_shape(value: &ValueInfo, shape: &Shape) -> Result<(), InputError> {
    if value.admits(shape) {
        Ok(())
    } else {
        Err(shape_error(value, shape))
    }
}

fn shape_error(value: &ValueInfo, found: &Shape) -> InputError {
    InputError::Shape {
        name: value.name.clone(),
        expected: value.shape_text(),
        found: found.clone(),
    }
}

#[cfg(test)]
mod tests {
    use opscope_tensor::DType;

    use super::*;

    fn value(dtype: DType, dims: Option<Vec<DeclaredDim>>) -> ValueInfo {
        ValueInfo {
            name: "x".into(),
            dtype,
            dims,
        }
    }

    fn signature() -> ModelSignature {
        let dims = vec![DeclaredDim::Named("batch".into()), DeclaredDim::Fixed(3)];
        ModelSignature {
            inputs: vec![value(DType::F32, Some(dims))],
            initialised_inputs: vec!["w".into()],
            ..ModelSignature::default()
        }
    }

    #[test]
    fn inputs_must_fit() {
        let tensor = |dtype: DType, dims: &[usize]| {
            let shape = Shape::new(dims).unwrap();
            let n_bytes = shape.n_bytes(dtype).unwrap();
            Tensor::from_vec(dtype, shape, vec![0; n_bytes]).unwrap()
        };
        let cases = [
            (vec![("x", tensor(DType::F32, &[7, 3]))], None),
            (vec![], Some("input `x` (float32 [batch,3]) was not given")),
            (
                vec![("y", tensor(DType::F32, &[7, 3]))],
                Some("the model has no input `y`; its inputs are `x` (float32 [batch,3])"),
            ),
            (
                vec![("w", tensor(DType::F32, &[1]))],
                Some("input `w` has its value inside the model file and cannot be set"),
            ),
            (
                vec![("x", tensor(DType::F64, &[7, 3]))],
                Some("input `x` takes float32, found float64"),
            ),
            (
                vec![("x", tensor(DType::F32, &[3]))],
                Some("input `x` takes shape [batch,3], found [3]"),
            ),
        ];
        for (given, expected) in cases {
            let given = given
                .into_iter()
                .map(|(name, t)| (name.to_owned(), t))
                .collect();
            let error = arrange(&signature(), given)
                .err()
                .map(|error| error.to_string());
            assert_eq!(error.as_deref(), expected);
        }
    }

    #[test]
    fn shapes_come_from_the_option_or_the_model() {
        let fixed = value(
            DType::F32,
            Some(vec![DeclaredDim::Fixed(2), DeclaredDim::Fixed(3)]),
        );
        assert_eq!(resolve_shape(&fixed, None).unwrap().dims(), [2, 3]);
        let open = value(DType::F32, None);
        assert!(resolve_shape(&open, None).is_err());
        let wanted = Shape::new([4]).unwrap();
        assert_eq!(resolve_shape(&open, Some(&wanted)).unwrap(), wanted);
        assert!(resolve_shape(&fixed, Some(&wanted)).is_err());
    }
}
