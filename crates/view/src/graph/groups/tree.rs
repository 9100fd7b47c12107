//! The tree of groups.

use std::collections::{HashMap, HashSet};

use super::OperatorNode;

/// The root group.
pub(super) const ROOT: u32 = 0;
const DEPTH_MAX: usize = 32;

/// A member of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Child {
    Operator(u32),
    Group(u32),
}

/// The innermost open group that contains an edge, with the children at its ends.
pub(super) struct Meeting {
    pub(super) group: u32,
    pub(super) from: Child,
    pub(super) to: Child,
}

struct Group {
    name: String,
    parent: u32,
    n_operators: u32,
    first_operator: u32,
    is_open: bool,
    children: Vec<Child>,
}

/// Groups with at least two operators.
pub(super) struct GroupTree {
    groups: Vec<Group>,
    group_of: Vec<u32>,
}

impl GroupTree {
    pub(super) fn new(operators: &[OperatorNode], edges: &[(u32, u32)], open: &[String]) -> Self {
        let mut tree = Self {
            groups: vec![Group::new("", ROOT)],
            group_of: Vec::new(),
        };
        tree.groups[0].is_open = true;
        // Keyed by parent and name: `conv1` is in many groups.
        let mut known: HashMap<(u32, &str), u32> = HashMap::new();
        for operator in operators {
            let mut group = ROOT;
            for scope in operator.scopes.iter().take(DEPTH_MAX) {
                let n = tree.groups.len() as u32;
                let inner = *known.entry((group, scope)).or_insert(n);
                if inner == n {
                    tree.groups.push(Group::new(scope, group));
                }
                group = inner;
                tree.groups[group as usize].n_operators += 1;
            }
            tree.group_of.push(group);
        }
        // A group with a single operator adds nothing.
        for group in &mut tree.group_of {
            while *group != ROOT && tree.groups[*group as usize].n_operators < 2 {
                *group = tree.groups[*group as usize].parent;
            }
        }
        tree.join_consumers(operators, edges);
        tree.list_children();
        tree.open_groups(open);
        tree
    }

    /// Moves operators without scopes into the group of their only consumer.
    fn join_consumers(&mut self, operators: &[OperatorNode], edges: &[(u32, u32)]) {
        let n = operators.len();
        let mut only: Vec<Option<u32>> = vec![None; n];
        let mut has_several = vec![false; n];
        for &(from, to) in edges {
            let from = from as usize;
            has_several[from] |= only[from].is_some_and(|known| known != to);
            only[from] = Some(to);
        }
        let mut is_over: Vec<bool> = operators
            .iter()
            .map(|node| !node.scopes.is_empty())
            .collect();
        let mut path: Vec<usize> = Vec::new();
        for start in 0..n {
            let mut node = start;
            // Marking a node before its consumer is resolved makes cycles end here.
            while !is_over[node] {
                is_over[node] = true;
                path.push(node);
                match only[node] {
                    Some(consumer) if !has_several[node] => node = consumer as usize,
                    _ => break,
                }
            }
            // Everything on the path joins the group at its end.
            let group = self.group_of[node];
            for joined in path.drain(..) {
                self.group_of[joined] = group;
            }
        }
    }

    fn list_children(&mut self) {
        for idx in 0..self.group_of.len() {
            let operator = idx as u32;
            let group = self.group_of[idx];
            self.groups[group as usize]
                .children
                .push(Child::Operator(operator));
            let mut around = group;
            loop {
                let group = &mut self.groups[around as usize];
                group.first_operator = group.first_operator.min(operator);
                if around == ROOT {
                    break;
                }
                around = group.parent;
            }
        }
        for idx in 1..self.groups.len() {
            let group = &self.groups[idx];
            if group.n_operators >= 2 {
                let parent = group.parent;
                self.groups[parent as usize]
                    .children
                    .push(Child::Group(idx as u32));
            }
        }
        for idx in 0..self.groups.len() {
            let mut children = std::mem::take(&mut self.groups[idx].children);
            // Execution order, whether a group is open or not.
            children.sort_by_key(|child| match *child {
                Child::Operator(operator) => operator,
                Child::Group(group) => self.groups[group as usize].first_operator,
            });
            self.groups[idx].children = children;
        }
    }

    fn open_groups(&mut self, open: &[String]) {
        let open: HashSet<&str> = open.iter().map(String::as_str).collect();
        if open.is_empty() {
            return;
        }
        for idx in 1..self.groups.len() as u32 {
            self.groups[idx as usize].is_open = open.contains(self.path(idx).as_str());
        }
    }

    pub(super) fn is_open(&self, group: u32) -> bool {
        self.groups[group as usize].is_open
    }

    /// Returns the members of a group, ordered by their first operators.
    pub(super) fn children(&self, group: u32) -> &[Child] {
        &self.groups[group as usize].children
    }

    /// Returns the groups around an operator, root first.
    pub(super) fn around(&self, operator: u32) -> Vec<u32> {
        let mut group = self.group_of[operator as usize];
        let mut around = vec![group];
        while group != ROOT {
            group = self.groups[group as usize].parent;
            around.push(group);
        }
        around.reverse();
        around
    }

    /// Finds the innermost group around both operators; `None` if a closed group hides the edge.
    pub(super) fn meeting(&self, from: u32, to: u32) -> Option<Meeting> {
        let (from_groups, to_groups) = (self.around(from), self.around(to));
        let pairs = from_groups.iter().zip(&to_groups);
        let n_common = pairs.take_while(|(left, right)| left == right).count();
        let common = &from_groups[..n_common];
        let group = *common.last()?;
        // The outermost group that contains only one of them, or the operator itself.
        let ends = [(&from_groups, from), (&to_groups, to)];
        let [from, to] = ends.map(|(groups, operator)| match groups.get(n_common) {
            Some(group) => Child::Group(*group),
            None => Child::Operator(operator),
        });
        common
            .iter()
            .all(|group| self.is_open(*group))
            .then_some(Meeting { group, from, to })
    }

    /// Returns the scopes of a group, joined by `/`.
    pub(super) fn path(&self, group: u32) -> String {
        let mut parts = Vec::new();
        let mut group = group;
        while group != ROOT {
            parts.push(self.groups[group as usize].name.as_str());
            group = self.groups[group as usize].parent;
        }
        parts.reverse();
        parts.join("/")
    }

    /// Returns the last scope, prefixed by its parent if it is just a number.
    pub(super) fn label(&self, group: u32) -> String {
        let group = &self.groups[group as usize];
        let parent = &self.groups[group.parent as usize].name;
        if group.name.bytes().all(|byte| byte.is_ascii_digit()) && !parent.is_empty() {
            return format!("{parent}.{}", group.name);
        }
        group.name.clone()
    }

    /// Returns all operators inside a group, in order.
    pub(super) fn operators(&self, group: u32) -> Vec<u32> {
        let mut operators = Vec::new();
        let mut waiting = vec![group];
        while let Some(group) = waiting.pop() {
            for child in self.children(group) {
                match *child {
                    Child::Operator(operator) => operators.push(operator),
                    Child::Group(inner) => waiting.push(inner),
                }
            }
        }
        operators.sort_unstable();
        operators
    }
}

impl Group {
    fn new(name: &str, parent: u32) -> Self {
        Self {
            name: name.to_owned(),
            parent,
            n_operators: 0,
            first_operator: u32::MAX,
            is_open: false,
            children: Vec::new(),
        }
    }
}
