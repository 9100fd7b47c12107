//! The device and its contexts.

use crate::handle::Handle;
use crate::lock::lock;
use crate::status::{
    INVALID_PARAM, RT_CONTEXT_NULL, RT_FEATURE_NOT_SUPPORT, RT_INVALID_DEVICEID, RT_INVALID_HANDLE,
};
use crate::{AclProcess, Answer};

/// The only device.
const CPU: i32 = 0;
/// `ACL_HOST`: the program runs on the host.
const RUN_MODE_HOST: i32 = 1;

/// `ACL_DEV_ATTR_AICPU_CORE_NUM`
const N_CPUS: i32 = 1;
/// `ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE`
const MEMORY_BYTES: i32 = 301;

fn check_device(device: i32) -> Answer {
    if device == CPU {
        Ok(())
    } else {
        Err(RT_INVALID_DEVICEID)
    }
}

impl AclProcess {
    /// `aclrtGetRunMode`: the host's.
    pub fn run_mode(&self) -> i32 {
        RUN_MODE_HOST
    }

    /// `aclrtGetSocName`.
    pub fn soc_name(&self) -> &'static str {
        "CPU"
    }

    /// `aclrtGetDeviceCount`: the CPU.
    pub fn n_devices(&self) -> u32 {
        1
    }

    /// Checks that a device exists.
    ///
    /// # Errors
    /// `RT_INVALID_DEVICEID` if it does not.
    pub fn check_device(&self, device: i32) -> Answer {
        check_device(device)
    }

    /// `aclrtGetDeviceInfo`: the number of CPUs that the process may use, or bytes of memory.
    ///
    /// # Errors
    /// `RT_INVALID_DEVICEID` for a device that does not exist, `RT_FEATURE_NOT_SUPPORT` for
    /// properties that a CPU does not have or report.
    pub fn device_info(&self, device: u32, attribute: i32) -> Answer<i64> {
        check_device(i32::try_from(device).unwrap_or(-1))?;
        let n = match attribute {
            N_CPUS => std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
            MEMORY_BYTES => opscope_store::memory_bytes(),
            _ => return Err(RT_FEATURE_NOT_SUPPORT),
        };
        i64::try_from(n).map_err(|_| RT_FEATURE_NOT_SUPPORT)
    }

    /// `aclrtSetDevice`: sets the calling thread's context to the device's, which all threads
    /// share.
    ///
    /// # Errors
    /// `RT_INVALID_DEVICEID` for a device that does not exist.
    pub fn set_device(&self, device: i32) -> Answer {
        check_device(device)?;
        let mut state = lock(&self.runtime.state);
        let context = match &mut state.primary {
            Some((context, n_users)) => {
                *n_users += 1;
                *context
            }
            None => {
                let context = state.add_context(&self.handles);
                state.primary = Some((context, 1));
                context
            }
        };
        state.make_current(context);
        Ok(())
    }

    /// Whether the program uses a device: by [`AclProcess::set_device`], or by a context.
    pub(crate) fn has_device(&self) -> bool {
        lock(&self.runtime.state).contexts.iter().next().is_some()
    }

    /// `aclrtResetDevice`: undoes one [`AclProcess::set_device`]; the last one destroys the
    /// context. Without one nothing happens.
    ///
    /// # Errors
    /// `RT_INVALID_DEVICEID` for a device that does not exist.
    pub fn reset_device(&self, device: i32) -> Answer {
        check_device(device)?;
        let mut state = lock(&self.runtime.state);
        let Some((context, n_users)) = &mut state.primary else {
            return Ok(());
        };
        *n_users -= 1;
        // Threads share the context, so it ends with the last one that has set the device.
        if *n_users == 0 {
            let context = *context;
            state.primary = None;
            state.remove_context(context);
        }
        drop(state);
        // Threads that wait for a stream of the context must notice its end.
        self.runtime.changed.notify_all();
        Ok(())
    }

    /// `aclrtGetDevice`: the device of the calling thread.
    ///
    /// # Errors
    /// `RT_CONTEXT_NULL` if it has none.
    pub fn device(&self) -> Answer<i32> {
        self.current_context().map(|_| CPU)
    }

    /// `aclrtSynchronizeDevice`: waits for the blocking callbacks of every stream.
    ///
    /// # Errors
    /// None today.
    pub fn synchronize_device(&self) -> Answer {
        let state = lock(&self.runtime.state);
        let state = self.runtime.changed.wait_while(state, |state| {
            state.streams.iter().any(|(_, stream)| stream.is_busy())
        });
        drop(state.unwrap_or_else(std::sync::PoisonError::into_inner));
        Ok(())
    }

    /// `aclrtCreateContext`: creates a context, which becomes that of the calling thread.
    ///
    /// # Errors
    /// `RT_INVALID_DEVICEID` for a device that does not exist.
    pub fn create_context(&self, device: i32) -> Answer<Handle> {
        check_device(device)?;
        let mut state = lock(&self.runtime.state);
        let context = state.add_context(&self.handles);
        state.make_current(context);
        Ok(context)
    }

    /// `aclrtDestroyContext`: destroys a context with its streams.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null, `RT_INVALID_HANDLE` for a handle that is not, or no longer, a
    /// context, or the one of [`AclProcess::set_device`].
    pub fn destroy_context(&self, context: Handle) -> Answer {
        if context == 0 {
            return Err(INVALID_PARAM);
        }
        let mut state = lock(&self.runtime.state);
        let is_primary = state.primary.is_some_and(|(primary, _)| primary == context);
        if is_primary || !state.remove_context(context) {
            return Err(RT_INVALID_HANDLE);
        }
        drop(state);
        self.runtime.changed.notify_all();
        Ok(())
    }

    /// `aclrtSetCurrentContext`.
    ///
    /// # Errors
    /// `INVALID_PARAM` for null, `RT_INVALID_HANDLE` for a handle that is not, or no longer, a
    /// context.
    pub fn set_current_context(&self, context: Handle) -> Answer {
        if context == 0 {
            return Err(INVALID_PARAM);
        }
        let mut state = lock(&self.runtime.state);
        state.contexts.get(context).ok_or(RT_INVALID_HANDLE)?;
        state.make_current(context);
        Ok(())
    }

    /// `aclrtGetCurrentContext`: the calling thread's.
    ///
    /// # Errors
    /// `RT_CONTEXT_NULL` if it has none.
    pub fn current_context(&self) -> Answer<Handle> {
        let state = lock(&self.runtime.state);
        state.current_context().ok_or(RT_CONTEXT_NULL)
    }
}
