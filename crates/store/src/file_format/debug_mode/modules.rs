//! The modules that calls are made in, from the indentation of a log's lines.

/// Between the namespace and the name of an operator of the dispatcher.
const NAMESPACE: &str = "::";

/// The modules that are running.
#[derive(Default)]
pub(super) struct ModuleStack(Vec<(i64, String)>);

impl ModuleStack {
    /// Notes that a module begins.
    pub(super) fn enter(&mut self, depth: i64, path: &str) {
        // No line marks the end of a module: the next line is just less indented.
        self.leave_from(depth);
        self.0.push((depth, path.to_owned()));
    }

    /// The path of the module that a call is made in.
    pub(super) fn module_of(&mut self, depth: i64, name: &str) -> String {
        // Functions are indented like the module that they are called in, operators below it.
        let is_function = !name.contains(NAMESPACE) && name.contains(['.', '<']);
        self.leave_from(if is_function { depth + 1 } else { depth });
        self.0
            .last()
            .map_or_else(String::new, |(_, path)| path.clone())
    }

    /// Notes a line that is not a call but is indented like a function.
    pub(super) fn pass(&mut self, depth: i64) {
        self.leave_from(depth + 1);
    }

    fn leave_from(&mut self, depth: i64) {
        while self.0.last().is_some_and(|(own, _)| *own >= depth) {
            self.0.pop();
        }
    }
}
