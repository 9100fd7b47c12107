//! Dumps of failing operators, and the program's callback for failures.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opscope_capture::FailureDetail;
use opscope_config::dialect::acl::{self, AclContent, AclDump, DumpMode};
use opscope_engine::EngineError;
use opscope_store::record::Operator;
use opscope_store::tree::acl::STREAM_ID;
use rustix::fs::{Access, access};

use crate::capture::ExecutionCapture;
use crate::exception::{ExceptionCallback, ExceptionDump, ExceptionInfo};
use crate::lock::lock;
use crate::status::{FAILURE, INTERNAL_ERROR, INVALID_PARAM, RT_AICPU_EXCEPTION};
use crate::{AclProcess, Answer};

impl AclProcess {
    /// Switches on the dump requested by the environment, if any.
    pub(crate) fn start_environment_dump(&self) {
        let accepted = self
            .environment()
            .ok()
            .and_then(|env| acl::from_environment(&env));
        let Some(accepted) = accepted else {
            return;
        };
        let mut dump = lock(&self.dump);
        // The error is reported to the first caller that queries it.
        let _ = self.configure_exception_dump(&mut dump.failures, accepted);
        if let Some(failures) = &mut dump.failures {
            failures.is_of_environment = true;
        }
    }

    /// Switches on a dump of failing operators. Directory, detail and selection are those of the
    /// process's first configuration, regardless of later ones.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` for full detail when a device is in use, and where no place is writable.
    pub(crate) fn configure_exception_dump(
        &self,
        known: &mut Option<ExceptionDump>,
        accepted: AclDump,
    ) -> Answer {
        if let Some(known) = known {
            known.is_on = true;
            return Ok(());
        }
        let DumpMode::Failures(detail) = accepted.mode else {
            return Ok(());
        };
        // Full detail takes the registers of a device, which the driver prepares when it is opened.
        if detail == FailureDetail::Full && self.has_device() {
            let text = "`aic_err_detail_dump` has to be configured before aclrtSetDevice";
            return Err(self.inner_error(INTERNAL_ERROR, text));
        }
        let place = accepted
            .places
            .iter()
            .find(|place| is_usable(place))
            .ok_or_else(|| {
                let places: Vec<String> = accepted
                    .places
                    .iter()
                    .map(|place| place.display().to_string())
                    .collect();
                let text = format!("no dump directory is writable: {}", places.join(", "));
                self.inner_error(INTERNAL_ERROR, &text)
            })?;
        *known = Some(ExceptionDump {
            place: place.clone(),
            plan: accepted.plan,
            detail,
            is_of_environment: false,
            is_on: true,
        });
        Ok(())
    }

    /// Returns the capture for the next execution, in case it fails.
    pub(crate) fn failure_capture(&self) -> Option<ExecutionCapture> {
        let dump = lock(&self.dump);
        let failures = dump.failures.as_ref().filter(|failures| failures.is_on)?;
        let (plan, place) = (failures.plan.clone(), failures.place.clone());
        drop(dump);
        let sink = self.sink(&place, "", &AclContent::Tensors, None)?;
        Some(ExecutionCapture {
            plan,
            sink,
            run: None,
        })
    }

    /// The directory of dumps of failing operators, including the device.
    pub(super) fn exception_dir(&self, name: &str) -> Answer<PathBuf> {
        let dump = lock(&self.dump);
        let failures = dump.failures.as_ref().filter(|failures| failures.is_on);
        let root = failures.map(ExceptionDump::root);
        drop(dump);
        root.map(|root| root.join("0")).ok_or_else(|| {
            let reason = "no dump of failing operators is configured";
            self.refuse(FAILURE, "EP0008", &[name, reason])
        })
    }

    /// `acldumpGetExceptionInfoPath`: the directory of dumps of failing operators, with the device
    /// and a trailing `/`. `size` is that of the buffer for it and a NUL. For a null buffer the
    /// binding calls [`AclProcess::null_pointer`] before.
    ///
    /// # Errors
    /// `INVALID_PARAM` if it does not fit, `FAILURE` if no such dump is on.
    pub fn exception_info_path(&self, size: usize) -> Answer<String> {
        const NAME: &str = "acldumpGetExceptionInfoPath";
        let too_small = |reason: &str| {
            let placeholders = [NAME, &size.to_string(), "maxLen", reason];
            self.refuse(INVALID_PARAM, "EP0006", &placeholders)
        };
        // Refused even without a dump, as in the vendor's library.
        if size <= 1 {
            return Err(too_small("it must be more than 1"));
        }
        let path = format!("{}/", self.exception_dir(NAME)?.display());
        if path.len() >= size {
            return Err(too_small(&format!("the path has {} bytes", path.len())));
        }
        Ok(path)
    }

    /// `aclrtSetExceptionInfoCallback`: called in the executing thread when an operator fails;
    /// `None` removes it.
    ///
    /// # Errors
    /// None today.
    pub fn set_exception_callback(&self, callback: Option<ExceptionCallback>) -> Answer {
        *lock(&self.exception_callback) = callback;
        Ok(())
    }

    pub(crate) fn call_exception_callback(&self, operators: &[Arc<Operator>], error: &EngineError) {
        let EngineError::Operator { op_name, .. } = error else {
            return;
        };
        // The callback runs without the lock: it may call the interface to replace itself.
        let Some(callback) = lock(&self.exception_callback).clone() else {
            return;
        };
        let failed = operators
            .iter()
            .find(|operator| operator.op_name == *op_name);
        callback(&ExceptionInfo {
            task_id: failed.map_or(0, |operator| operator.task_id),
            stream_id: STREAM_ID,
            thread_id: thread_id(),
            device_id: 0,
            error_code: RT_AICPU_EXCEPTION.0.cast_unsigned(),
        });
    }

    /// Creates `{place}/extra-info/data-dump/` and returns its resolved path.
    pub(super) fn create_exception_root(&self, dump: &ExceptionDump) -> Option<String> {
        if !dump.is_on {
            return None;
        }
        let root = dump.root();
        let created = std::fs::create_dir_all(&root).and_then(|()| root.canonicalize());
        match created {
            Ok(root) => Some(format!("{}/", root.display())),
            Err(error) => {
                self.dump_failed(&format!("`{}`: {error}", root.display()));
                None
            }
        }
    }
}

/// Whether a directory exists or can be created, and is readable and writable.
pub(super) fn is_usable(dir: &Path) -> bool {
    std::fs::create_dir_all(dir).is_ok() && access(dir, Access::READ_OK | Access::WRITE_OK).is_ok()
}

fn thread_id() -> u32 {
    // The link reads `{pid}/task/{tid}`.
    let link = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    let id = link
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok());
    id.unwrap_or(0)
}
