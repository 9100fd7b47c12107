//! Executes a model with options, none of which affects a CPU engine.

use crate::handle::Handle;
use crate::status::INVALID_PARAM;
use crate::{AclProcess, Answer};

impl AclProcess {
    /// `aclmdlCreateExecConfigHandle`.
    pub fn create_exec_config(&self) -> Handle {
        let handle = self.handles.next();
        self.objects().exec_configs.insert(handle);
        handle
    }

    /// `aclmdlDestroyExecConfigHandle`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null and for a handle that is not, or no longer, a set of options.
    pub fn destroy_exec_config(&self, options: Handle) -> Answer {
        if self.objects().exec_configs.remove(&options) {
            Ok(())
        } else {
            Err(INVALID_PARAM)
        }
    }

    /// Checks that a handle is a set of options; null means none.
    ///
    /// # Errors
    /// `INVALID_PARAM` for a handle that is not, or no longer, a set of options.
    pub fn check_exec_config(&self, options: Handle) -> Answer {
        if options == 0 || self.objects().exec_configs.contains(&options) {
            Ok(())
        } else {
            Err(INVALID_PARAM)
        }
    }

    /// `aclmdlExecuteV2`: executes a model and waits for the stream.
    ///
    /// # Errors
    /// As for [`AclProcess::check_exec_config`] and [`AclProcess::execute_async`].
    pub fn execute_with_options(
        &self,
        model_id: u32,
        inputs: Handle,
        outputs: Handle,
        stream: Handle,
        options: Handle,
    ) -> Answer {
        self.check_exec_config(options)?;
        // The stream only has to be valid, as it determines where the model runs.
        if stream == 0 {
            return self.execute(model_id, inputs, outputs);
        }
        self.execute_async(model_id, inputs, outputs, stream)?;
        self.synchronize_stream(stream)
    }

    /// `aclmdlExecuteAsyncV2`.
    ///
    /// # Errors
    /// As for [`AclProcess::check_exec_config`] and [`AclProcess::execute_async`].
    pub fn execute_async_with_options(
        &self,
        model_id: u32,
        inputs: Handle,
        outputs: Handle,
        stream: Handle,
        options: Handle,
    ) -> Answer {
        self.check_exec_config(options)?;
        self.execute_async(model_id, inputs, outputs, stream)
    }
}
