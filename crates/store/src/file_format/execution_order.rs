//! `MindSpore`'s lists of operators and of iterations.
//!
//! The list of operators has a header and then one full name on each line, in execution order. The
//! list of iterations has one number on each line and no header; runs append to it.

use super::byte_order_mark;

/// First line of a list of operators.
pub const HEADER: &str = "NodeExecutionOrder-FullNameWithScope";

/// The list of a graph's operators.
pub fn encode<'a>(full_names: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = format!("{HEADER}\n");
    for name in full_names {
        text.push_str(name);
        text.push('\n');
    }
    text
}

/// The full names of a list of operators, in order.
pub fn parse(text: &str) -> Vec<&str> {
    let lines = byte_order_mark::behind(text)
        .lines()
        .map(|line| line.trim_end_matches('\r'));
    lines
        .filter(|line| !line.is_empty() && *line != HEADER)
        .collect()
}

/// Which lines go to the list of iterations: in one process equal numbers that follow each other
/// are written once, whichever graphs they belong to.
#[derive(Clone, Copy, Debug, Default)]
pub struct IterationList {
    last: Option<u64>,
}

impl IterationList {
    /// The line to append when an operator runs in this iteration, if any.
    pub fn line(&mut self, iteration: u64) -> Option<String> {
        // MindSpore compares with the last number alone, so an iteration that comes back after
        // another one is listed again.
        let is_new = self.last.replace(iteration) != Some(iteration);
        is_new.then(|| format!("{iteration}\n"))
    }
}

/// The numbers in a list of iterations. Lines without a number are skipped.
pub fn parse_iterations(text: &str) -> Vec<u64> {
    let lines = byte_order_mark::behind(text).lines();
    lines.filter_map(|line| line.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_back() {
        let names = ["Default/Mul-op0", "Default/Add-op0"];
        let text = encode(names);
        assert_eq!(
            text,
            "NodeExecutionOrder-FullNameWithScope\nDefault/Mul-op0\nDefault/Add-op0\n"
        );
        assert_eq!(parse(&text), names);
        assert!(parse(&encode([])).is_empty());
    }

    #[test]
    fn an_iteration_is_written_when_it_begins() {
        let mut list = IterationList::default();
        let text: String = [0, 0, 1, 0, 0]
            .into_iter()
            .filter_map(|i| list.line(i))
            .collect();
        assert_eq!(text, "0\n1\n0\n");
        assert_eq!(parse_iterations("0\n1\nx\r\n0\r\n"), [0, 1, 0]);
    }
}
