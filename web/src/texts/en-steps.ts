/** English texts of Steps and Events. */

import { formatCount } from "../numbers";
import { many } from "./many";

export const stepsTexts = {
  steps_title: "Operator × step",
  steps_words: (n: number, steps: number) =>
    `${many(n, "operator", "operators")} over ${many(steps, "step", "steps")}.`,
  ranks_title: "Operator × rank",
  ranks_words: (n: number, ranks: number) =>
    `${many(n, "operator", "operators")} over ${many(ranks, "rank", "ranks")}.`,
  by_step: "steps",
  by_rank: "ranks",
  all_steps: "all steps",
  rank_axis: "rank",
  ranks_from_to: (first: number, last: number) =>
    `ranks ${formatCount(first)} to ${formatCount(last)}`,
  over_rank_median: "over median of ranks",
  steps_first_bad: (step: string, name: string) => `First bad value: ${step}, ${name}.`,
  steps_none_bad: "No bad values.",
  steps_hint: "Click or use the arrow keys to select a cell.",
  over_median: "over own median",
  absolute: "absolute",
  colour_scale: "Colour",
  times_median: (factor: string) => `${factor} its median`,
  all_ranks: "all ranks",
  first_in: (step: string) => `first in ${step}`,
  steps_from_to: (first: number, last: number) =>
    `steps ${formatCount(first)} to ${formatCount(last)}`,
  folded: (first: number, last: number) =>
    `steps ${formatCount(first)} to ${formatCount(last)} are NaN throughout and folded`,
  step_axis: "step",
  cell: {
    fault: "culprit",
    first_nan: "first NaN",
    nan: "NaN",
    inf: "Inf",
    finite: "finite",
    none: "no data",
  },
  over_limit: "over the limit",
  over_steps: (what: string) => `${what} over steps`,
  history_words: (low: string, high: string) => `From ${low} to ${high}.`,
  bad_steps: "First bad steps",
  bad_steps_more: (n: number) => many(n, "more step", "more steps"),
  all_finite: "Finite in every step.",
  all_within: "Within the limit in every step.",
  growth_before: (step: string) => `Largest growth one step before, ${step}`,
  several_from: (n: number, name: string) =>
    `${many(n, "operator", "operators")} from ${name}, the largest value`,
  one_step: "This dump has one step.",
  one_step_left: "The filter leaves one step.",
  no_step: "This dump does not record which step its values belong to.",
  open_tensor: "Open tensor",
  table_part: (rows: string, columns: string) => `${rows}; ${columns}`,
  rows_of: (first: number, last: number, all: number) =>
    `operators ${formatCount(first)} to ${formatCount(last)} of ${formatCount(all)}`,

  n_events: (n: number) => many(n, "event", "events"),
  event_kind: {
    finding: "finding",
    overflow: "overflow",
    overwrite: "overwritten",
    non_finite: "first NaN or Inf",
  },
  event_column: {
    place: "Step",
    time: "Time (UTC)",
    operator: "Operator",
    task: "Task · stream",
    what: "What",
  },
  every_kind: "all",
  events_words: (n: number) =>
    `${many(n, "event", "events")} by step and time. The arrow keys move the selection.`,
  events_none: "No event could be read.",
  events_left: (n: number) =>
    `${many(n, "more overwritten value was", "more overwritten values were")} ` +
    "counted and not listed.",
  show_more: (n: number) => `Show ${formatCount(n)} more`,
  no_such_event: (id: number) => `There is no event ${formatCount(id)}.`,
  nameless: "an operator missing from the dump",
  not_in_dump: "The dump does not contain the tensors of this operator.",
  task: "task",
  stream: "stream",
  context: "context",
  thread: "thread",
  time: "time",
  file: "file",
  line: "line",
  status_word: (status: string) => `Status ${status}`,
  bit: {
    8: "negation",
    16: "integer",
    32: "float",
    128: "to unsigned",
    256: "to float16",
    1024: "accumulation",
  } as Record<number, string>,
  bit_meaning: {
    8: "negation of the smallest signed integer",
    16: "integer addition, subtraction or multiplication",
    32: "floating-point arithmetic",
    128: "conversion of a negative float to unsigned",
    256: "conversion of float32 or int32 to float16",
    1024: "accumulation in the cube unit",
  } as Record<number, string>,
  bit_set: "set",
  bit_unknown: "not documented",
  atomic_add: "an atomic addition overflowed",
  undocumented: "the meaning of this unit's bits is undocumented",
  watched_value: "Value",
  seen_after: "seen after",
  between: "between {after} and {before}",
  overwrite_how: {
    undeclared: "the operator writes to memory that it does not declare as written",
    view: "it writes to another tensor that shares the memory",
    out: "the value was passed to it as out=",
    unversioned: "it writes to the memory without incrementing the version counter",
    between: "it changed between two operators",
  } as Record<string, string | undefined>,
  bytes_changed: (n: number, ranges: number) =>
    `${many(n, "byte", "bytes")} in ${many(ranges, "range", "ranges")}`,
  bytes_from_to: (first: number, last: number) =>
    first === last
      ? `byte ${formatCount(first)}`
      : `bytes ${formatCount(first)} to ${formatCount(last)}`,
  and_more_ranges: (n: number) => ` and ${many(n, "more range", "more ranges")}`,
  first_element: (index: number) => `first: element ${formatCount(index)}`,
  before: "before",
  after: "after",
  bytes_title: "Bytes before and after",
  elements_title: "Elements before and after",
  n_more_bytes: (n: number) => `and ${many(n, "more byte", "more bytes")}`,
  no_bytes: "The dump does not contain the value both before and after.",
  origin: {
    computed: "computed from finite numbers",
    given: "already in an input that no dumped operator produced",
    constant: "a constant of the graph",
    unknown: "the dump does not show where it comes from",
  } as Record<string, string | undefined>,
  seen_at: (element: number) => `element ${formatCount(element)}`,
  said_by_capture: "The capture followed the graph and found the origin.",
  this_output: (first: number, last: number) =>
    `max |x| of this output, steps ${formatCount(first)} to ${formatCount(last)}`,
  log_scale: "log scale",
  scalar_choice: "Scalar output",
  scalar_words: (name: string, low: string, high: string) =>
    `${name} over steps, from ${low} to ${high}.`,
  scalar_no_number: (name: string) => `${name} over steps: no numbers.`,
  scalar_bad_from: (what: string, step: string) => `${what} from ${step}`,
  scalar_bad_in: (what: string, step: string) => `${what} in ${step}`,
  not_listed: (n: number) => `${many(n, "more is", "more are")} not listed`,

  stage: { seen: "Seen", dumped: "Dumped", paired: "Matched", compared: "Compared" },
  stages_hint: "Losses at each stage",
  skips: "Not compared, by reason",
  skips_none: "Every slot was compared.",
  unreadable: "Could not be read",
  passed_over: "Skipped",
};
