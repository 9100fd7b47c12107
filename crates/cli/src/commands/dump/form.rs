//! The form of a dump without a configuration.

use std::path::Path;

use clap::ValueEnum;
use opscope_capture::Plan;
use opscope_config::ConfigEnvironment;
use opscope_config::dialect::acl::AclContent;
use opscope_config::dialect::mindspore;
use opscope_dump::{DumpForm, DumpRequest, NativeContent, NativeOptions, dump_times};
use opscope_store::atomic_file::PermissionModes;
use serde_json::json;

use super::RunArguments;
use super::request::{ConfigSource, refused};
use crate::commands::mindspore_target::MindSporeTarget;
use crate::exit::{CommandFailure, CommandResult, USAGE};

/// The form of a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormChoice {
    /// A table for each step, and a few files with the elements of all tensors, each content once
    #[default]
    Native,
    /// AscendCL's: a file for each operator
    Acl,
    /// MindSpore's, of its CPU target: a file for each tensor
    Mindspore,
}

impl RunArguments {
    /// The request that dumps everything below `out`, or writes no files.
    pub(super) fn request_of_form(
        &self,
        plan: Plan,
        env: &ConfigEnvironment,
    ) -> CommandResult<DumpRequest> {
        let out = self.out.as_deref().map(|out| env.expanded(out));
        let form = match (self.form, &out) {
            (FormChoice::Mindspore, Some(out)) => return self.mindspore_request_for(out),
            (FormChoice::Native, Some(out)) => DumpForm::Native(NativeOptions {
                places: vec![out.clone()],
                content: NativeContent::Tensors,
                rank: self.rank,
            }),
            (_, out) => DumpForm::Acl {
                places: out.iter().cloned().collect(),
                content: AclContent::Tensors,
            },
        };
        Ok(DumpRequest::new(plan, form))
    }

    fn mindspore_request_for(&self, out: &Path) -> CommandResult<DumpRequest> {
        let text = everything_for_mindspore(out, self.device)?;
        self.request_of_text(&ConfigSource::file(Path::new("--form mindspore"), &text))
    }
}

/// A MindSpore configuration that requests everything.
fn everything_for_mindspore(out: &Path, device: u32) -> CommandResult<String> {
    // MindSpore refuses relative paths.
    let absolute = std::path::absolute(out);
    let path = absolute.map_err(|error| CommandFailure::new(USAGE, error))?;
    let config = json!({
        "common_dump_settings": {
            "dump_mode": 0,
            "path": path,
            "net_name": "net",
            "iteration": "all",
            "saved_data": "tensor",
            "input_output": 0,
            "kernels": [],
            "support_device": [device],
        },
        "e2e_dump_settings": { "enable": true, "trans_flag": true },
    });
    Ok(config.to_string())
}

impl FormChoice {
    /// The request for a dump below `out` that is converted from another dump.
    pub(crate) fn request_for(
        self,
        out: &Path,
        modes: PermissionModes,
    ) -> CommandResult<DumpRequest> {
        let form = match self {
            FormChoice::Native => DumpForm::Native(NativeOptions {
                places: vec![out.to_owned()],
                content: NativeContent::Tensors,
                rank: 0,
            }),
            FormChoice::Acl => DumpForm::Acl {
                places: vec![out.to_owned()],
                content: AclContent::Tensors,
            },
            // MindSpore's reader checks the settings and fills in defaults, as for a user's file.
            FormChoice::Mindspore => {
                let text = everything_for_mindspore(out, 0)?;
                let env = crate::commands::environment()?;
                let config = mindspore::load(&text, MindSporeTarget::Cpu.into(), &env);
                let config =
                    config.map_err(|issues| refused(Path::new("--form mindspore"), &issues))?;
                let time = dump_times().next().unwrap_or_default();
                let request = config
                    .dump
                    .map(|dump| DumpRequest::from_mindspore(dump, 0, modes, time));
                let request = request.transpose();
                let request = request.map_err(|error| CommandFailure::new(USAGE, error))?;
                return Ok(request.unwrap_or_else(DumpRequest::nothing));
            }
        };
        Ok(DumpRequest::new(Plan::everything(), form))
    }
}
