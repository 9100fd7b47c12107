//! Operators that several ranks carry out together.

use std::fmt;
use std::str::FromStr;

use super::{N_ENTRIES_MAX, ParallelTextError, call, number};

/// How the contributions of several ranks become one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// Their product.
    Product,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The bits that are set in all.
    And,
    /// The bits that are set in any.
    Or,
    /// The bits that are set in an odd number.
    Xor,
}

impl Reduction {
    const ALL: [(Reduction, &str); 8] = [
        (Reduction::Sum, "sum"),
        (Reduction::Mean, "avg"),
        (Reduction::Product, "product"),
        (Reduction::Min, "min"),
        (Reduction::Max, "max"),
        (Reduction::And, "band"),
        (Reduction::Or, "bor"),
        (Reduction::Xor, "bxor"),
    ];

    /// The name that PyTorch has for it: `sum`, `avg`, `product`, `min`, `max`, `band`, `bor` or
    /// `bxor`.
    pub fn name(self) -> &'static str {
        let entry = Reduction::ALL.iter().find(|(known, _)| *known == self);
        entry.map_or("", |(_, name)| name)
    }

    /// The reduction with a name.
    pub fn from_name(name: &str) -> Option<Reduction> {
        let entry = Reduction::ALL.iter().find(|(_, known)| *known == name);
        entry.map(|(reduction, _)| *reduction)
    }
}

/// The kinds of collectives. Ranks are global; unknown facts are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CollectiveKind {
    /// Every rank gets what becomes of all contributions.
    AllReduce(Option<Reduction>),
    /// One rank gets what becomes of all contributions.
    Reduce(Option<Reduction>, Option<u32>),
    /// Every rank gets all contributions.
    AllGather,
    /// One rank gets all contributions.
    Gather(Option<u32>),
    /// Every rank gets its part of what becomes of all contributions.
    ReduceScatter(Option<Reduction>),
    /// Every rank gets its part of what one rank has.
    Scatter(Option<u32>),
    /// Every rank gets its part of what each rank has.
    AllToAll,
    /// Every rank gets what one rank has.
    Broadcast(Option<u32>),
    /// To one rank.
    Send(Option<u32>),
    /// From one rank.
    Receive(Option<u32>),
}

impl CollectiveKind {
    /// Its name without reduction and rank, such as `all_reduce`.
    pub fn name(self) -> &'static str {
        match self {
            CollectiveKind::AllReduce(_) => "all_reduce",
            CollectiveKind::Reduce(..) => "reduce",
            CollectiveKind::AllGather => "all_gather",
            CollectiveKind::Gather(_) => "gather",
            CollectiveKind::ReduceScatter(_) => "reduce_scatter",
            CollectiveKind::Scatter(_) => "scatter",
            CollectiveKind::AllToAll => "all_to_all",
            CollectiveKind::Broadcast(_) => "broadcast",
            CollectiveKind::Send(_) => "send",
            CollectiveKind::Receive(_) => "recv",
        }
    }

    /// How contributions become one value, where they do.
    pub fn reduction(self) -> Option<Reduction> {
        match self {
            CollectiveKind::AllReduce(reduction)
            | CollectiveKind::Reduce(reduction, _)
            | CollectiveKind::ReduceScatter(reduction) => reduction,
            _ => None,
        }
    }

    /// The one rank that sends or receives; for `send` and `recv` the other one.
    pub fn root(self) -> Option<u32> {
        match self {
            CollectiveKind::Reduce(_, root)
            | CollectiveKind::Gather(root)
            | CollectiveKind::Scatter(root)
            | CollectiveKind::Broadcast(root)
            | CollectiveKind::Send(root)
            | CollectiveKind::Receive(root) => root,
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<CollectiveKind> {
        let (name, arguments) = call(text)?;
        let mut reduction = None;
        let mut root = None;
        for argument in arguments {
            match Reduction::from_name(argument) {
                Some(found) if reduction.is_none() => reduction = Some(found),
                None if root.is_none() => root = Some(number(argument)?),
                // A second one of a kind: ambiguous.
                _ => return None,
            }
        }
        let kind = match name {
            "all_reduce" => CollectiveKind::AllReduce(reduction),
            "reduce" => CollectiveKind::Reduce(reduction, root),
            "all_gather" => CollectiveKind::AllGather,
            "gather" => CollectiveKind::Gather(root),
            "reduce_scatter" => CollectiveKind::ReduceScatter(reduction),
            "scatter" => CollectiveKind::Scatter(root),
            "all_to_all" => CollectiveKind::AllToAll,
            "broadcast" => CollectiveKind::Broadcast(root),
            "send" => CollectiveKind::Send(root),
            "recv" => CollectiveKind::Receive(root),
            _ => return None,
        };
        // `all_gather(sum)` and `all_reduce(3)` have arguments that do not exist.
        (kind.reduction() == reduction && kind.root() == root).then_some(kind)
    }
}

impl fmt::Display for CollectiveKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match (self.reduction(), self.root()) {
            (None, None) => Ok(()),
            (Some(reduction), None) => write!(f, "({})", reduction.name()),
            (None, Some(root)) => write!(f, "({root})"),
            (Some(reduction), Some(root)) => write!(f, "({},{root})", reduction.name()),
        }
    }
}

impl FromStr for CollectiveKind {
    type Err = ParallelTextError;

    fn from_str(text: &str) -> Result<CollectiveKind, ParallelTextError> {
        let expected = "collective, such as all_reduce(sum) or broadcast(0)";
        CollectiveKind::parse(text).ok_or_else(|| ParallelTextError::new(text, expected))
    }
}

/// An operator that several ranks carry out together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Collective {
    /// Its kind.
    pub kind: CollectiveKind,
    /// The global ranks that take part, in their order in the group. Empty if unknown.
    pub ranks: Vec<u32>,
}

impl Collective {
    /// The ranks as text: `0-3`, `0,2,4`, and `1,0` where that is the order of the group.
    pub fn ranks_text(&self) -> String {
        Collective::text_of(&self.ranks)
    }

    /// Ranks as text, in their order.
    pub fn text_of(ranks: &[u32]) -> String {
        let mut parts: Vec<(u32, u32)> = Vec::new();
        for &rank in ranks {
            // Runs of up to 4,096 ranks appear in each row of a collective.
            match parts.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(rank) => *last = rank,
                _ => parts.push((rank, rank)),
            }
        }
        // Of two ranks the list is as short, and reads better.
        let texts = parts.iter().map(|&(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        });
        texts.collect::<Vec<_>>().join(",")
    }

    /// The ranks of such a text.
    ///
    /// # Errors
    /// [`ParallelTextError`] if it is none, names a rank twice, or more than 1,048,576.
    pub fn parse_ranks(text: &str) -> Result<Vec<u32>, ParallelTextError> {
        let ranks = unique_ranks(text);
        ranks.ok_or_else(|| ParallelTextError::new(text, "list of ranks, such as 0-3 or 0,2"))
    }
}

fn unique_ranks(text: &str) -> Option<Vec<u32>> {
    let mut ranks = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (number(first)?, number(last)?);
        // Checked before memory is taken for them.
        let n = (u64::from(last) + 1).saturating_sub(first.into());
        if n == 0 || n > (N_ENTRIES_MAX - ranks.len()) as u64 {
            return None;
        }
        ranks.extend(first..=last);
    }
    // A group has each rank once; contributions would be counted twice.
    let mut sorted = ranks.clone();
    sorted.sort_unstable();
    let is_unique = sorted.windows(2).all(|pair| pair[0] != pair[1]);
    is_unique.then_some(ranks)
}

#[cfg(test)]
mod tests {
    use super::{Collective, CollectiveKind, Reduction};

    #[test]
    fn texts_give_the_same_again() {
        for text in [
            "all_reduce(sum)",
            "all_reduce",
            "reduce(avg,3)",
            "all_gather",
            "gather(0)",
            "reduce_scatter(max)",
            "scatter",
            "all_to_all",
            "broadcast(7)",
            "send(1)",
            "recv(4294967295)",
        ] {
            let kind: CollectiveKind = text.parse().unwrap();
            assert_eq!(kind.to_string(), text);
        }
        let kind: CollectiveKind = "reduce(avg,3)".parse().unwrap();
        assert_eq!(kind, CollectiveKind::Reduce(Some(Reduction::Mean), Some(3)));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "allreduce",
            "all_reduce(",
            "all_reduce()",
            "all_reduce(3)",
            "all_gather(sum)",
            "all_reduce(sum,sum)",
            "broadcast(-1)",
            "broadcast(4294967296)",
            "send(1,2)",
        ] {
            assert!(text.parse::<CollectiveKind>().is_err(), "{text}");
        }
    }

    #[test]
    fn ranks_keep_their_order() {
        for (text, ranks) in [
            ("", vec![]),
            ("0-3", vec![0, 1, 2, 3]),
            ("0,1", vec![0, 1]),
            ("1,0", vec![1, 0]),
            ("0,2,4-6", vec![0, 2, 4, 5, 6]),
        ] {
            assert_eq!(Collective::parse_ranks(text).unwrap(), ranks);
            let kind = CollectiveKind::AllGather;
            assert_eq!(Collective { kind, ranks }.ranks_text(), text);
        }
        for text in ["0-", "3-1", "0,0", "0-4294967295", "a", "0,,1", "+1"] {
            assert!(Collective::parse_ranks(text).is_err(), "{text}");
        }
    }
}
