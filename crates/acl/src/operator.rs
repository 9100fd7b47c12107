//! Operators that run on their own.

mod execute;

use std::sync::Mutex;

use opscope_engine::TakenEngine;
use opscope_engine::single_operator::{Attribute, SoleOperator};

use crate::data::TensorDesc;
use crate::handle::Handle;
use crate::process::lock;
use crate::status::INVALID_PARAM;
use crate::{Answer, Process};

/// A value of an operator's attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// A boolean.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A number.
    Float(f32),
    /// Text.
    String(String),
    /// A number of `aclDataType`.
    DataType(i32),
    /// Booleans.
    Bools(Vec<bool>),
    /// Numbers.
    Ints(Vec<i64>),
    /// Numbers.
    Floats(Vec<f32>),
    /// Texts.
    Strings(Vec<String>),
    /// Numbers of `aclDataType`.
    DataTypes(Vec<i32>),
    /// Lists of numbers, which no operator of ONNX has.
    IntLists(Vec<Vec<i64>>),
}

/// Attributes by name, in the order in which they were set first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes(Vec<(String, AttributeValue)>);

impl Attributes {
    fn set(&mut self, name: &str, value: AttributeValue) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// The attributes as an engine takes them; the name of one that it cannot take otherwise.
    fn lower(&self) -> Result<Vec<(String, Attribute)>, String> {
        let whole = |numbers: &[i32]| numbers.iter().map(|&n| n.into()).collect();
        let lower = |(name, value): &(String, AttributeValue)| {
            let value = match value.clone() {
                AttributeValue::Bool(is) => Attribute::Int(is.into()),
                AttributeValue::Int(n) => Attribute::Int(n),
                AttributeValue::Float(n) => Attribute::Float(n),
                AttributeValue::String(text) => Attribute::Text(text),
                AttributeValue::DataType(n) => Attribute::Int(n.into()),
                AttributeValue::Bools(list) => {
                    Attribute::Ints(list.into_iter().map(i64::from).collect())
                }
                AttributeValue::Ints(list) => Attribute::Ints(list),
                AttributeValue::Floats(list) => Attribute::Floats(list),
                AttributeValue::Strings(list) => Attribute::Texts(list),
                AttributeValue::DataTypes(list) => Attribute::Ints(whole(&list)),
                AttributeValue::IntLists(_) => return Err(name.clone()),
            };
            Ok((name.clone(), value))
        };
        self.0.iter().map(lower).collect()
    }
}

/// An operator that is ready to run.
pub(crate) struct Prepared {
    /// The program's name of its type.
    op_type: String,
    inputs: Vec<TensorDesc>,
    outputs: Vec<TensorDesc>,
    /// Whether the engine has axes in another order than the descriptions.
    is_changed: bool,
    /// The engine that runs it, if it is another one than the process has chosen.
    taken: Option<TakenEngine>,
    operator: Mutex<SoleOperator>,
}

impl Process {
    /// `aclopCreateAttr`.
    pub fn create_op_attr(&self) -> Handle {
        let handle = self.handles.next();
        self.objects()
            .op_attributes
            .insert(handle, Attributes::default())
    }

    /// `aclopDestroyAttr`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null and for what are no attributes, or no longer.
    pub fn destroy_op_attr(&self, attributes: Handle) -> Answer {
        let removed = self.objects().op_attributes.remove(attributes);
        removed.map(drop).ok_or(INVALID_PARAM)
    }

    /// `aclopSetAttrBool` and its like.
    ///
    /// # Errors
    /// `INVALID_PARAM` for what are no attributes, and for an empty name.
    pub fn set_op_attr(&self, attributes: Handle, name: &str, value: AttributeValue) -> Answer {
        if name.is_empty() {
            return Err(INVALID_PARAM);
        }
        let mut objects = self.objects();
        let known = objects
            .op_attributes
            .get_mut(attributes)
            .ok_or(INVALID_PARAM)?;
        known.set(name, value);
        Ok(())
    }

    /// `aclopCompile`: checks that the operator can run. Nothing is kept.
    ///
    /// # Errors
    /// As for [`Process::execute_op`].
    pub fn compile_op(
        &self,
        op_type: &str,
        inputs: &[Handle],
        outputs: &[Handle],
        attributes: Handle,
    ) -> Answer {
        self.prepare(op_type, inputs, outputs, attributes).map(drop)
    }

    /// `aclopCreateHandle`: an operator to run several times. Later changes of the descriptions and
    /// attributes do not reach it.
    ///
    /// # Errors
    /// As for [`Process::execute_op`].
    pub fn create_op_handle(
        &self,
        op_type: &str,
        inputs: &[Handle],
        outputs: &[Handle],
        attributes: Handle,
    ) -> Answer<Handle> {
        let prepared = self.prepare(op_type, inputs, outputs, attributes)?;
        let handle = self.handles.next();
        Ok(self.objects().op_handles.insert(handle, prepared.into()))
    }

    /// `aclopDestroyHandle`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null and for what is no operator, or no longer.
    pub fn destroy_op_handle(&self, operator: Handle) -> Answer {
        let removed = self.objects().op_handles.remove(operator);
        removed.map(drop).ok_or(INVALID_PARAM)
    }

    /// `aclopExecWithHandle`: as [`Process::execute_op`], with the buffers alone.
    ///
    /// # Errors
    /// `INVALID_PARAM` for what is no operator, otherwise as for [`Process::execute_op`].
    pub fn execute_op_handle(
        &self,
        operator: Handle,
        inputs: &[Handle],
        outputs: &[Handle],
        stream: Handle,
    ) -> Answer {
        self.check_stream(stream)?;
        let prepared = self
            .objects()
            .op_handles
            .get(operator)
            .cloned()
            .ok_or(INVALID_PARAM)?;
        self.run_prepared(&prepared, inputs, outputs)
    }

    /// `aclopExecuteV2`, `aclopCompileAndExecute`: runs one operator. Inputs and outputs are pairs of
    /// a tensor description and a data buffer; `attributes` may be null. It has run when the call
    /// returns, and was dumped if the configuration in force asks for operators outside models.
    ///
    /// # Errors
    /// `UNINITIALIZE` before [`Process::init`], `INVALID_PARAM` for handles that are not what they
    /// should be and inputs without known extents, `UNSUPPORTED_DATA_TYPE`, `OP_ATTR_NOT_MATCH` for
    /// attributes that ONNX cannot say, `FORMAT_NOT_MATCH` for formats that contradict each other or name no
    /// plain axes, `OP_NOT_FOUND` and `OP_LOAD_FAILED` if the engine lacks the
    /// operator or refuses it, `GE_PARAM_INVALID` for buffers that are too short, `RT_MODEL_EXECUTE`
    /// if it fails.
    pub fn execute_op(
        &self,
        op_type: &str,
        inputs: &[(Handle, Handle)],
        outputs: &[(Handle, Handle)],
        attributes: Handle,
        stream: Handle,
    ) -> Answer {
        self.check_stream(stream)?;
        let split = |pairs: &[(Handle, Handle)]| -> (Vec<Handle>, Vec<Handle>) {
            pairs.iter().copied().unzip()
        };
        let (input_descs, inputs) = split(inputs);
        let (output_descs, outputs) = split(outputs);
        let prepared = self.prepare(op_type, &input_descs, &output_descs, attributes)?;
        self.run_prepared(&prepared, &inputs, &outputs)
    }

    /// `aclopCast`: converts elements to the type of the second description. How numbers are rounded
    /// is the engine's; `truncate` has no effect.
    ///
    /// # Errors
    /// As for [`Process::execute_op`].
    pub fn cast(
        &self,
        from: (Handle, Handle),
        to: (Handle, Handle),
        _truncate: u8,
        stream: Handle,
    ) -> Answer {
        let number = self.tensor_desc_data_type(to.0);
        let attributes = self.create_op_attr();
        let set = self.set_op_attr(attributes, "dst_type", AttributeValue::DataType(number));
        let answer = set.and_then(|()| self.execute_op("Cast", &[from], &[to], attributes, stream));
        self.destroy_op_attr(attributes)?;
        answer
    }
}

/// Lets a prepared operator run.
impl Prepared {
    fn operator(&self) -> std::sync::MutexGuard<'_, SoleOperator> {
        lock(&self.operator)
    }
}
