//! From `aclInit` to `aclFinalize`.

use std::path::Path;

use opscope_config::dialect::acl::ReportScope;

use super::configuration::{ConfigText, InitConfig};
use super::dump_run::EndedDumps;
use crate::lock::lock;
use crate::process::LifeCycle;
use crate::status::{
    DUMP_NOT_RUN, INVALID_PARAM, REPEAT_FINALIZE, REPEAT_INITIALIZE, UNINITIALIZE,
};
use crate::{AclProcess, Answer};

impl AclProcess {
    /// `aclInit`. Without a path, or with an empty one, nothing is configured.
    ///
    /// # Errors
    /// In the order of the checks: `REPEAT_INITIALIZE` if the process is initialised, which counts
    /// as one more user; `INVALID_FILE`; `INVALID_PARAM` if the text differs from that of the first
    /// successful call; `PARSE_FILE`; `INVALID_PARAM` for `err_msg_mode`; `INVALID_DUMP_CONFIG`.
    /// After any but the first the process is not initialised.
    pub fn init(&self, config: Option<&Path>) -> Answer {
        let mut life = lock(&self.life);
        if life.n_inits > 0 {
            // Programs are advised to ignore this code, so nothing is reported.
            life.n_inits += 1;
            return Err(REPEAT_INITIALIZE);
        }
        let mut text = None;
        if let Some(path) = config.filter(|path| !path.as_os_str().is_empty()) {
            let read = ConfigText::read(self, path, "configPath", life.first_text.as_deref())?;
            self.apply(read.accept_init()?)?;
            text = Some(read.into_bytes());
        }
        // No file counts as an empty text, so a file in a later call differs from it.
        life.first_text.get_or_insert(text.unwrap_or_default());
        life.n_inits = 1;
        life.is_finalized = false;
        Ok(())
    }

    fn apply(&self, accepted: InitConfig) -> Answer {
        if let Some(dump) = accepted.dump {
            // If this is refused the process is not initialised, and reports stay where they were.
            self.configure_dump(dump)?;
        }
        let is_common = accepted.report_scope == ReportScope::Process;
        self.reports.share(is_common);
        Ok(())
    }

    /// `aclFinalize`: finalises the process for all users. The dump that `aclInit` or
    /// [`AclProcess::set_dump`] configured is switched off; models stay loaded and do not run until
    /// the next [`AclProcess::init`].
    ///
    /// # Errors
    /// `REPEAT_FINALIZE` if it was called before and [`AclProcess::init`] was not called since.
    pub fn finalize(&self) -> Answer {
        let mut life = lock(&self.life);
        if life.is_finalized {
            let reason = "the process is already finalised";
            return Err(self.refuse(REPEAT_FINALIZE, "EP0008", &["aclFinalize", reason]));
        }
        let registered = self.end(&mut life);
        // Waiting for executions may take long; other threads may query the life cycle meanwhile.
        drop(life);
        self.end_dumps(&registered);
        Ok(())
    }

    /// `aclFinalizeReference`: undoes one [`AclProcess::init`], the last one like
    /// [`AclProcess::finalize`]. Also returns the number of remaining ones.
    ///
    /// # Errors
    /// `REPEAT_FINALIZE` if there is none to undo.
    pub fn finalize_reference(&self) -> (u64, Answer) {
        let mut life = lock(&self.life);
        match life.n_inits {
            0 => {
                let placeholders = ["aclFinalizeReference", "the process is not initialised"];
                (
                    0,
                    Err(self.refuse(REPEAT_FINALIZE, "EP0008", &placeholders)),
                )
            }
            1 => {
                let registered = self.end(&mut life);
                drop(life);
                self.end_dumps(&registered);
                (0, Ok(()))
            }
            _ => {
                life.n_inits -= 1;
                (life.n_inits, Ok(()))
            }
        }
    }

    fn end(&self, life: &mut LifeCycle) -> EndedDumps {
        life.n_inits = 0;
        life.is_finalized = true;
        self.switch_dump_off()
    }

    /// Whether models may be loaded and run.
    pub(crate) fn is_initialized(&self) -> bool {
        lock(&self.life).n_inits > 0
    }

    /// `aclmdlInitDump`: allows [`AclProcess::set_dump`]. A dump configured by `aclInit` stays in
    /// force.
    ///
    /// # Errors
    /// `UNINITIALIZE` before [`AclProcess::init`], `REPEAT_INITIALIZE` if it was called before.
    pub fn init_dump(&self) -> Answer {
        const NAME: &str = "aclmdlInitDump";
        let mut life = lock(&self.life);
        self.check_initialized(&life, NAME)?;
        if life.is_dump_begun {
            let reason = "it was called before, without aclmdlFinalizeDump since";
            return Err(self.refuse(REPEAT_INITIALIZE, "EP0008", &[NAME, reason]));
        }
        life.is_dump_begun = true;
        Ok(())
    }

    /// `aclmdlSetDump`: configures the dump of models loaded from now on, and of those dumped by an
    /// earlier configuration. An empty or refused configuration leaves the previous one in force.
    ///
    /// # Errors
    /// In the order of the checks: `UNINITIALIZE`, `DUMP_NOT_RUN` without
    /// [`AclProcess::init_dump`], `INVALID_PARAM` for a null path, `INVALID_FILE`, `PARSE_FILE` if
    /// it is nested too deeply, `INVALID_DUMP_CONFIG` for anything else in the file.
    pub fn set_dump(&self, config: Option<&Path>) -> Answer {
        const NAME: &str = "aclmdlSetDump";
        // The life cycle stays locked, so that no thread ends the dumps while this one is put in
        // force.
        let life = lock(&self.life);
        self.check_dump_begun(&life, NAME)?;
        let Some(path) = config else {
            return Err(self.refuse(INVALID_PARAM, "EP0007", &[NAME, "dumpCfgPath"]));
        };
        match ConfigText::read(self, path, "dumpCfgPath", None)?.accept_set_dump()? {
            Some(dump) => self.configure_dump(dump),
            None => Ok(()),
        }
    }

    /// `aclmdlFinalizeDump`: switches every dump off. All files are complete: executions wait for
    /// their files.
    ///
    /// # Errors
    /// `UNINITIALIZE` before [`AclProcess::init`], `DUMP_NOT_RUN` without
    /// [`AclProcess::init_dump`].
    pub fn finalize_dump(&self) -> Answer {
        let mut life = lock(&self.life);
        self.check_dump_begun(&life, "aclmdlFinalizeDump")?;
        let registered = self.switch_dump_off();
        life.is_dump_begun = false;
        drop(life);
        self.end_dumps(&registered);
        Ok(())
    }

    fn check_initialized(&self, life: &LifeCycle, name: &str) -> Answer {
        if life.n_inits > 0 {
            return Ok(());
        }
        let reason = "aclInit was not called, or failed";
        Err(self.refuse(UNINITIALIZE, "EP0008", &[name, reason]))
    }

    fn check_dump_begun(&self, life: &LifeCycle, name: &str) -> Answer {
        self.check_initialized(life, name)?;
        if life.is_dump_begun {
            return Ok(());
        }
        Err(self.refuse(
            DUMP_NOT_RUN,
            "EP0008",
            &[name, "aclmdlInitDump was not called"],
        ))
    }
}
