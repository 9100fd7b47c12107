/** English texts of the graph. */

import { formatCount } from "../numbers";
import { many } from "./many";

export const graphTexts = {
  graph: "Graph",
  graph_words: (n: number, fail: number) =>
    `Graph: ${many(n, "box", "boxes")} shown, ${formatCount(fail)} fail. ` +
    "The outline lists the same.",
  outline: "Outline",
  find_in_graph: "Find in the outline",
  n_ops: (n: number) => many(n, "op", "ops"),
  n_of_fail: (n: number, all: number) => `${formatCount(n)} of ${formatCount(all)} fail`,
  way_to_output: "path to the output",
  minimap: "Minimap",
  zoom_in: "Zoom in",
  zoom_out: "Zoom out",
  whole_graph: "Fit",
  collapse: "Collapse all but the path",
  of_at_fault: (i: number, n: number) => `${i} of ${many(n, "culprit", "culprits")}`,
  at_fault_count: (n: number) => many(n, "culprit", "culprits"),
  step_words: (n: number, fail: number) =>
    `Both graphs in step: ${many(n, "row", "rows")}, ${formatCount(fail)} boxes of the target fail. ` +
    "The outline lists the same.",
  side_shown: "Graph shown",
  both_in_step: "both, in step",
  no_partner: "no match",
  target_only: "target only",
  golden_only: "golden only",
  /** Shown instead of the side if an operator is unmatched for another reason. */
  unpaired: {
    inside_fusion: "inside a fusion",
    left_out: "excluded",
    ambiguous: "two candidates",
    damaged: "damaged",
  } as Record<string, string | undefined>,
  unpaired_why: {
    missing: "The other side has no such operator.",
    missing_place: "The other side has no such rank, model or step.",
    missing_repeat: "The other side ran it fewer times.",
    other_type: "The operator of this name on the other side has another type.",
    ambiguous: "Two operators of the other side are almost equally similar.",
    inside_fusion: "A fused operator replaces it, so there is nothing to compare it with.",
    left_out: "A mapping or a selection excludes it.",
    damaged: "It cannot be read.",
  } as Record<string, string | undefined>,
  partners_in: (side: string, how: string) => `Matches in ${side}${how === "" ? "" : `, ${how}`}`,
  no_partner_in: (side: string) => `No match in ${side}`,
  how: {
    name: "by name",
    value: "by equal values",
    origin: "by module or line",
    order: "by order",
    fusion: "by fusion",
    mapping: "by hand",
    fuzzy: "by similarity",
  } as Record<string, string | undefined>,
  pairs: {
    title: "Pairs",
    same_name: "same name",
    fused: "fused",
    other: "other",
    target_only: "target only",
    golden_only: "golden only",
    inside_fusion: "inside a fusion",
    by_hand: "by hand",
    here: "by hand, not yet compared",
  },
  pair_by_hand: "Pair by hand",
  unpair: "Unpair",
  take_back: "Undo",
  nothing_to_unpair: "It has no match.",
  pair_in_step: "Operators can be paired by hand when both graphs are shown in step.",
  pairing: "Pairing",
  pairing_hint: (side: string) => `with: click operators of ${side}, or press space on them in the outline`,
  pair_these: "Pair",
  cancel: "Cancel",
  pair_refused: {
    nothing: "Nothing is selected.",
    twice: "A mapping can name an operator only once.",
    runs: "A mapping cannot join different executions in one pair.",
  },
  hand_pairs: "Paired by hand",
  no_one: "none",
  execution: (run: number) => `execution ${formatCount(run + 1)}`,
  counts_once_compared: (file: string) =>
    `These take effect when the comparison is repeated with the file ${file}:`,
  made_with_mapping: (path: string) =>
    `This comparison used ${path}. The saved file has only the pairs of this page; ` +
    "add any others that should stay.",
  save_mapping: "Save mapping",
  copy_command: "Copy command",
  graph_empty: "The dump has no edges between operators.",
};
