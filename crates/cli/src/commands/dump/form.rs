//! The form of a dump that no configuration asks for.

use std::path::Path;

use clap::ValueEnum;
use opscope_config::ConfigEnvironment;
use opscope_config::dialect::acl::AclContent;
use opscope_dump::{DumpForm, DumpRequest, NativeContent, NativeOptions};
use serde_json::json;

use super::RunArguments;
use super::request::ConfigSource;
use crate::exit::{CommandFailure, USAGE};

/// The form of a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormChoice {
    /// A table for each step, and few files with the elements of all tensors, each content once
    #[default]
    Native,
    /// AscendCL's: a file for each operator
    Acl,
    /// MindSpore's, of its CPU target: a file for each tensor
    Mindspore,
}

impl RunArguments {
    /// The request for everything below `out`, or for no files.
    pub(super) fn request_of_form(
        &self,
        plan: opscope_capture::Plan,
        env: &ConfigEnvironment,
    ) -> Result<DumpRequest, CommandFailure> {
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

    /// A configuration of MindSpore's that asks for everything, as a user would write it.
    fn mindspore_request_for(&self, out: &Path) -> Result<DumpRequest, CommandFailure> {
        let absolute = std::path::absolute(out);
        let path = absolute.map_err(|error| CommandFailure::new(USAGE, error))?;
        let text = json!({
            "common_dump_settings": {
                "dump_mode": 0,
                "path": path,
                "net_name": "net",
                "iteration": "all",
                "saved_data": "tensor",
                "input_output": 0,
                "kernels": [],
                "support_device": [self.device],
            },
            "e2e_dump_settings": { "enable": true, "trans_flag": true },
        });
        let text = text.to_string();
        self.request_of_text(&ConfigSource::file(Path::new("--form mindspore"), &text))
    }
}
