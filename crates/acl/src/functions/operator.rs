//! Single operators, and their attributes.

use crate::handle::Handle;
use crate::operator::{AttributeValue, OperatorAttributes};
use crate::status::INVALID_PARAM;
use crate::{AclProcess, Answer};

impl AclProcess {
    /// `aclopCreateAttr`.
    pub fn create_op_attr(&self) -> Handle {
        let handle = self.handles.next();
        self.objects()
            .op_attributes
            .insert(handle, OperatorAttributes::default())
    }

    /// `aclopDestroyAttr`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null and for a handle that is not, or no longer, a set of attributes.
    pub fn destroy_op_attr(&self, attributes: Handle) -> Answer {
        let ended = self.objects().op_attributes.take(attributes);
        ended.map(drop)
    }

    /// `aclopSetAttrBool` and so on.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not a set of attributes, and for an empty name.
    pub fn set_op_attr(&self, attributes: Handle, name: &str, value: AttributeValue) -> Answer {
        if name.is_empty() {
            return Err(INVALID_PARAM);
        }
        let mut objects = self.objects();
        let known = objects.op_attributes.find_mut(attributes)?;
        known.set(name, value);
        Ok(())
    }

    /// `aclopCompile`: checks that the operator can run. Nothing is stored.
    ///
    /// # Errors
    /// As for [`AclProcess::execute_op`].
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
    /// attributes do not affect it.
    ///
    /// # Errors
    /// As for [`AclProcess::execute_op`].
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
    /// `INVALID_PARAM` for null and for a handle that is not, or no longer, an operator.
    pub fn destroy_op_handle(&self, operator: Handle) -> Answer {
        let ended = self.objects().op_handles.take(operator);
        ended.map(drop)
    }

    /// `aclopExecWithHandle`: like [`AclProcess::execute_op`], with only the buffers as arguments.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not an operator, otherwise as for
    /// [`AclProcess::execute_op`].
    pub fn execute_op_handle(
        &self,
        operator: Handle,
        inputs: &[Handle],
        outputs: &[Handle],
        stream: Handle,
    ) -> Answer {
        self.check_stream(stream)?;
        let prepared = self.objects().op_handles.find(operator).cloned()?;
        self.run_prepared(&prepared, inputs, outputs)
    }

    /// `aclopExecuteV2`, `aclopCompileAndExecute`: runs one operator. Inputs and outputs are pairs
    /// of a tensor description and a data buffer; `attributes` may be null. The operator is
    /// complete on return, and dumped if the configuration in force includes operators outside
    /// models.
    ///
    /// # Errors
    /// `UNINITIALIZE` before [`AclProcess::init`], `INVALID_PARAM` for invalid handles and inputs
    /// without known shapes, `UNSUPPORTED_DATA_TYPE`, `OP_ATTR_NOT_MATCH` for attributes that ONNX
    /// lacks, `FORMAT_NOT_MATCH` for formats that contradict each other or are not plain,
    /// `OP_NOT_FOUND` and `OP_LOAD_FAILED` if the engine lacks the operator or refuses it,
    /// `GE_PARAM_INVALID` for short buffers, `RT_MODEL_EXECUTE` if it fails.
    pub fn execute_op(
        &self,
        op_type: &str,
        inputs: &[(Handle, Handle)],
        outputs: &[(Handle, Handle)],
        attributes: Handle,
        stream: Handle,
    ) -> Answer {
        self.check_stream(stream)?;
        let (input_descs, inputs): (Vec<_>, Vec<_>) = inputs.iter().copied().unzip();
        let (output_descs, outputs): (Vec<_>, Vec<_>) = outputs.iter().copied().unzip();
        let prepared = self.prepare(op_type, &input_descs, &output_descs, attributes)?;
        self.run_prepared(&prepared, &inputs, &outputs)
    }

    /// `aclopCast`: converts elements to the type of the second description. The engine decides how
    /// to round; `truncate` has no effect.
    ///
    /// # Errors
    /// As for [`AclProcess::execute_op`].
    pub fn cast(
        &self,
        from: (Handle, Handle),
        to: (Handle, Handle),
        _truncate: u8,
        stream: Handle,
    ) -> Answer {
        // ONNX's operator has the dtype as an attribute, where this function takes that of the
        // result.
        let number = self.tensor_desc_data_type(to.0);
        // Private attributes, which no other thread can change or destroy.
        let attributes = self.create_op_attr();
        let set = self.set_op_attr(attributes, "dst_type", AttributeValue::DataType(number));
        let answer = set.and_then(|()| self.execute_op("Cast", &[from], &[to], attributes, stream));
        self.destroy_op_attr(attributes)?;
        answer
    }
}
