//! Description of the model's graph that goes with the dump.

use std::io::{BufWriter, Write};

use opscope_store::file_format::graph_json::{self, GraphText};
use opscope_store::tree::own;

use super::{RunArguments, Sinks, Subject, input_names};
use crate::exit::{Failure, PARTIAL};

impl Sinks {
    /// Describes the graph of `subject` beside the dump, if there is a directory for it by now; says whether it is done.
    pub(super) fn describe(
        &self,
        subject: &Subject,
        arguments: &RunArguments,
    ) -> Result<bool, Failure> {
        // What is only tried leaves nothing behind.
        let place = self.place().filter(|_| !arguments.volume.dry_run);
        let Some(place) = place.filter(|place| place.root.is_dir()) else {
            return Ok(false);
        };
        let (model, id) = (&subject.model, &subject.id);
        let name = match id.file_stem.is_empty() {
            true => &id.graph_name,
            false => &id.file_stem,
        };
        let arguments = input_names(&**model);
        let graph = GraphText {
            name,
            graph_name: &id.graph_name,
            opsets: &model.description().opsets,
            arguments: &arguments,
            types: &model.description().value_types,
            operators: model.operators(),
        };
        let path = own::graph_file(&place.root, name);
        let written = self.creator().replace_with(&path, |file| {
            let mut out = BufWriter::new(file);
            graph_json::write(&mut out, &graph)?;
            out.flush()
        });
        written.map_err(|error| Failure::new(PARTIAL, error))?;
        Ok(true)
    }
}
