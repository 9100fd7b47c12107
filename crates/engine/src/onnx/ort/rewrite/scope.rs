//! Meanings of names at a place in a model, and who reads them last.

use std::collections::{BTreeMap, HashMap};

use crate::onnx::ort::site::{StaticValue, TapSite};

/// The meaning of a name.
pub(super) enum NameBinding {
    /// A value that the engine makes, by its number.
    Value(usize),
    /// A value that is known without the engine.
    Given(StaticValue),
    /// A value that cannot be shown.
    Hidden,
}

/// The names of one graph.
#[derive(Default)]
pub(super) struct ScopeFrame {
    pub(super) names: HashMap<String, NameBinding>,
    /// Values of this graph that were read since the last node was done with.
    read: Vec<usize>,
    /// The tap of the current node.
    site: Option<usize>,
    /// Which tap is behind the last node that reads a value, or has a body that does.
    last_reader: BTreeMap<usize, Option<usize>>,
}

/// The graphs around a place, the innermost last.
#[derive(Default)]
pub(super) struct ScopeStack(Vec<ScopeFrame>);

impl ScopeStack {
    pub(super) fn enter(&mut self) {
        self.0.push(ScopeFrame::default());
    }

    /// Defines a name of the innermost graph.
    pub(super) fn bind(&mut self, name: &str, binding: NameBinding) {
        if let Some(frame) = self.0.last_mut() {
            frame.names.insert(name.to_owned(), binding);
        }
    }

    /// Returns the meaning of a name, and how deep the graph lies that it belongs to.
    pub(super) fn find(&self, name: &str) -> Option<(usize, &NameBinding)> {
        let frames = self.0.iter().enumerate().rev();
        let mut found = frames.filter_map(|(depth, frame)| Some((depth, frame.names.get(name)?)));
        found.next()
    }

    /// Notes that the current node shows a value of the graph at this depth as something that is
    /// read.
    pub(super) fn note_read(&mut self, depth: usize, value: usize) {
        if let Some(frame) = self.0.get_mut(depth) {
            frame.read.push(value);
        }
    }

    /// Notes the tap of the current node.
    pub(super) fn note_site(&mut self, site: usize) {
        if let Some(frame) = self.0.last_mut() {
            frame.site = Some(site);
        }
    }

    /// Ends the current node of the innermost graph.
    pub(super) fn end_node(&mut self) {
        if let Some(frame) = self.0.last_mut() {
            let site = frame.site.take();
            let read = frame.read.drain(..).map(|value| (value, site));
            frame.last_reader.extend(read);
        }
    }

    /// Leaves the innermost graph; the last tap that shows a value lets go of it.
    pub(super) fn leave(&mut self, sites: &mut [TapSite]) {
        let frame = self.0.pop().unwrap_or_default();
        for (value, site) in frame.last_reader {
            if let Some(site) = site.and_then(|site| sites.get_mut(site)) {
                site.releases.push(value);
            }
        }
    }
}
