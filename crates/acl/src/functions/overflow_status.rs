//! The overflow status that programs read and reset, and the executions that set it.

use std::sync::Arc;

use opscope_capture::{
    ModelSelection, OperatorSelection, Plan, Purpose, Sink, SinkError, WrittenFiles,
};
use opscope_store::record::Record;

use crate::capture::ExecutionCapture;
use crate::handle::Handle;
use crate::lock::lock;
use crate::status::{INVALID_PARAM, RT_CONTEXT_NULL, RT_FEATURE_NOT_SUPPORT, RT_PARAM_INVALID};
use crate::{AclProcess, Answer};

/// Bytes of the status: a 32-bit number, 1 after an overflow, and zeros.
const N_STATUS_BYTES: usize = 64;
/// `ACL_RT_OVERFLOW_MODE_INFNAN`: overflows become infinite, as on a CPU.
const INFINITIES: i32 = 1;
/// `ACL_RT_OVERFLOW_MODE_SATURATION` and `ACL_RT_OVERFLOW_MODE_UNDEF`, the ends of the enumeration.
const OVERFLOW_MODES: std::ops::RangeInclusive<i32> = 0..=2;

impl AclProcess {
    /// `aclrtGetOverflowStatus`: writes 64 bytes, of which the first four are 1 if the arithmetic
    /// of an operator overflowed since the last reset. The first call enables the detection;
    /// earlier executions do not count.
    ///
    /// # Errors
    /// `INVALID_PARAM`, reported, for null, `RT_PARAM_INVALID` for less than 64 bytes and memory
    /// that is not writable, otherwise as for [`AclProcess::synchronize_stream`].
    pub fn store_overflow_status(&self, address: usize, size: usize, stream: Handle) -> Answer {
        if address == 0 {
            return Err(self.null_argument("aclrtGetOverflowStatus", "outputAddr"));
        }
        if size < N_STATUS_BYTES {
            let reason = "the status takes 64 bytes";
            let placeholders = [&size.to_string(), "outputSize", reason];
            return Err(self.refuse(RT_PARAM_INVALID, "EH0001", &placeholders));
        }
        self.check_stream(stream)?;
        // The first query enables detection: earlier executions can no longer be checked.
        self.overflow_status.watch();
        let mut status = [0; N_STATUS_BYTES];
        let flag = u32::from(self.overflow_status.has_overflowed());
        status[..4].copy_from_slice(&flag.to_ne_bytes());
        self.memory.write(address, &status).ok_or(RT_PARAM_INVALID)
    }

    /// `aclrtResetOverflowStatus`: clears the status, and enables the detection.
    ///
    /// # Errors
    /// As for [`AclProcess::synchronize_stream`].
    pub fn reset_overflow_status(&self, stream: Handle) -> Answer {
        self.check_stream(stream)?;
        self.overflow_status.watch();
        self.overflow_status.reset();
        Ok(())
    }

    /// `aclrtSetStreamOverflowSwitch`: 1 enables the detection for all streams. 0 is stored for
    /// [`AclProcess::stream_overflow_switch`] but disables nothing, because other streams may need
    /// it.
    ///
    /// # Errors
    /// `INVALID_PARAM` for another number, `RT_CONTEXT_NULL` for the default stream of a thread
    /// without a context, otherwise as for [`AclProcess::synchronize_stream`].
    pub fn set_stream_overflow_switch(&self, stream: Handle, switch: u32) -> Answer {
        if switch > 1 {
            return Err(INVALID_PARAM);
        }
        let mut state = lock(&self.runtime.state);
        let stream = state.find_stream(stream)?.ok_or(RT_CONTEXT_NULL)?;
        let known = state.streams.find_mut(stream)?;
        known.config.overflow_switch = switch;
        if switch == 1 {
            self.overflow_status.watch();
        }
        Ok(())
    }

    /// `aclrtGetStreamOverflowSwitch`.
    ///
    /// # Errors
    /// As for [`AclProcess::set_stream_overflow_switch`].
    pub fn stream_overflow_switch(&self, stream: Handle) -> Answer<u32> {
        let state = lock(&self.runtime.state);
        let stream = state.find_stream(stream)?.ok_or(RT_CONTEXT_NULL)?;
        Ok(state.streams.find(stream)?.config.overflow_switch)
    }

    /// `aclrtGetDeviceSatMode`: overflows become infinite.
    ///
    /// # Errors
    /// `RT_CONTEXT_NULL` for a thread that has set no device.
    pub fn overflow_mode(&self) -> Answer<i32> {
        self.device().map(|_| INFINITIES)
    }

    /// `aclrtSetDeviceSatMode`.
    ///
    /// # Errors
    /// `RT_FEATURE_NOT_SUPPORT`, reported, for saturation, which no CPU engine supports;
    /// `INVALID_PARAM` for an unknown mode; `RT_CONTEXT_NULL`.
    pub fn set_overflow_mode(&self, mode: i32) -> Answer {
        self.device()?;
        if !OVERFLOW_MODES.contains(&mode) {
            return Err(INVALID_PARAM);
        }
        if mode == INFINITIES {
            return Ok(());
        }
        // Accepting it would promise results that no engine computes.
        let text = "a CPU computes with infinities and NaN: results are not saturated. \
                    aclrtGetOverflowStatus tells of overflows in this mode too";
        Err(self.inner_error(RT_FEATURE_NOT_SUPPORT, text))
    }

    /// The capture that determines the status of an execution, if it can change.
    pub(super) fn overflow_status_capture(&self) -> Option<ExecutionCapture> {
        self.overflow_status.is_open().then(|| ExecutionCapture {
            plan: Plan {
                purpose: Purpose::Overflow,
                models: ModelSelection::Every(OperatorSelection::every()),
                // One overflow is enough.
                n_overflows_max: Some(1),
                ..Plan::everything()
            },
            sink: Arc::new(ForgetfulSink),
            run: None,
        })
    }
}

/// A sink for sessions that are only run for their findings.
struct ForgetfulSink;

impl Sink for ForgetfulSink {
    fn write(&self, _record: &Record) -> Result<WrittenFiles, SinkError> {
        Ok(WrittenFiles::default())
    }
}
