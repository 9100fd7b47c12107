//! Recognizes collectives by operator type, for dumps without notes about them.

use opscope_store::record::parallel::CollectiveKind;

/// Prefixes of a collective's name (libraries and namespaces), in lower case without punctuation.
const BEFORE: [&str; 11] = [
    "c10dfunctional",
    "c10d",
    "torchdistributed",
    "distributed",
    "mindsporemint",
    "collective",
    "hcom",
    "hccl",
    "lccl",
    "nccl",
    "gloo",
];
/// Suffixes: variants of how tensors are passed.
const BEHIND: [&str; 16] = [
    "",
    "d",
    "v",
    "vc",
    "base",
    "coalesced",
    "single",
    "default",
    "tensor",
    "tensordefault",
    "singledefault",
    "intotensor",
    "intotensordefault",
    "intotensorcoalesced",
    "coalesceddefault",
    "out",
];
/// Names with their collectives. A longer name comes before its prefixes.
const NAMES: [(&str, CollectiveKind); 11] = [
    ("allreduce", CollectiveKind::AllReduce(None)),
    ("allgather", CollectiveKind::AllGather),
    ("reducescatter", CollectiveKind::ReduceScatter(None)),
    ("alltoall", CollectiveKind::AllToAll),
    ("broadcast", CollectiveKind::Broadcast(None)),
    ("send", CollectiveKind::Send(None)),
    ("isend", CollectiveKind::Send(None)),
    ("recv", CollectiveKind::Receive(None)),
    ("irecv", CollectiveKind::Receive(None)),
    ("receive", CollectiveKind::Receive(None)),
    ("reduce", CollectiveKind::Reduce(None, None)),
];
/// Names that other operators share. They only count after a library's name.
const NAMES_OF_LIBRARIES: [(&str, CollectiveKind); 2] = [
    ("gather", CollectiveKind::Gather(None)),
    ("scatter", CollectiveKind::Scatter(None)),
];

/// The collective that a type names: `HcomAllReduce`, `c10d.allreduce_`,
/// `_c10d_functional.all_gather_into_tensor.default`, `Distributed.all_reduce`. Reduction and ranks
/// stay unknown.
///
/// `BroadcastTo`, `ReduceSum` and `Gather` are not collectives.
pub fn kind_of_type(op_type: &str) -> Option<CollectiveKind> {
    let plain: String = op_type
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    // Vendors prefix the library's name, PyTorch a namespace; the rest is the same word.
    let of_library = BEFORE.iter().find_map(|word| plain.strip_prefix(word));
    let name = of_library.unwrap_or(&plain);
    let is_variant = |known: &str| {
        let rest = name.strip_prefix(known);
        rest.is_some_and(|rest| BEHIND.contains(&rest))
    };
    let mut names = NAMES.iter();
    let found = names.find(|(known, kind)| {
        // `Reduce` without a prefix is an operator family elsewhere.
        let is_common = matches!(kind, CollectiveKind::Reduce(..));
        is_variant(known) && (!is_common || of_library.is_some())
    });
    // `Gather` and `Scatter` of ONNX and ATen index elements on one rank.
    let mut more = NAMES_OF_LIBRARIES.iter();
    let found = found.or_else(|| {
        let found = more.find(|(known, _)| is_variant(known));
        found.filter(|_| of_library.is_some())
    });
    found.map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::kind_of_type;

    #[test]
    fn types_of_several_libraries() {
        for (op_type, expected) in [
            ("AllReduce", Some("all_reduce")),
            ("HcomAllReduce", Some("all_reduce")),
            ("c10d.allreduce_.default", Some("all_reduce")),
            ("c10d_allreduce_", Some("all_reduce")),
            ("_c10d_functional.all_reduce.default", Some("all_reduce")),
            (
                "_c10d_functional_all_gather_into_tensor_default",
                Some("all_gather"),
            ),
            ("Distributed.all_gather_into_tensor", Some("all_gather")),
            ("HcomReduceScatter", Some("reduce_scatter")),
            (
                "_c10d_functional.reduce_scatter_tensor.default",
                Some("reduce_scatter"),
            ),
            ("AlltoAllV", Some("all_to_all")),
            ("HcomReceive", Some("recv")),
            ("Distributed.irecv", Some("recv")),
            ("Broadcast", Some("broadcast")),
            ("c10d.gather_", Some("gather")),
            ("HcomReduce", Some("reduce")),
            ("BroadcastTo", None),
            ("aten.broadcast_tensors.default", None),
            ("ReduceSum", None),
            ("Reduce", None),
            ("Gather", None),
            ("Scatter", None),
            ("aten.scatter.src", None),
            ("_c10d_functional.wait_tensor.default", None),
            ("", None),
        ] {
            let kind = kind_of_type(op_type);
            assert_eq!(kind.map(|kind| kind.name()), expected, "{op_type}");
        }
    }
}
