/** The answers of `opscope view`'s server. Names in them are raw text. */

export type Num = number | "inf" | "-inf" | "nan" | null;
export type Status = "pass" | "warn" | "fail" | "skip";
export type Cause = "own" | "outside" | "inherited" | "gradual" | "unknown";
export type Entry = "weight" | "bias" | "input";
export type Side = "target" | "golden";
/** The sides that have pictures of tensors. */
export type PicturedSide = Side | "reference";
export type Note = "near_edge" | "makes_inf" | "makes_nan" | "inf_to_nan" | "hands_on" | "may_be_mask" | "overflowed";
export type VerdictKind =
  | "own"
  | "weight"
  | "bias"
  | "input"
  | "model_input"
  | "gradual"
  | "inherited"
  | "unknown"
  | "agree"
  | "nothing"
  | "contract"
  | "finding"
  | "inside"
  | "hidden_weight"
  | "makes_nan"
  | "makes_inf"
  | "overflows"
  | "has_nan"
  | "has_inf"
  | "may_be_mask"
  | "overflow_recorded"
  | "overwritten"
  | "finite"
  | "no_statistics"
  | "unreadable"
  | "waiting"
  | "reading";
/** First and last index of each axis, inclusive. */
export type Ranges = [number, number][];

export interface SideInfo {
  name: string;
  path: string;
  form: string;
  n_operators: number;
  n_slots: number;
}

export interface Place {
  rank: number | null;
  model: string | null;
  step: number | null;
  first: number;
  n: number;
}

export interface Verdict {
  status: Status;
  kind: VerdictKind;
  op: number | null;
  op_type: string;
  op_name: string;
  slot: string | null;
  parameter: string | null;
  rank: number | null;
  step: number | null;
  n_bad: number | null;
  n_elements: number | null;
  dtype: string | null;
  metric: { name: string; value: Num; limit: Num } | null;
  box: {
    n_differing: number;
    n_elements: number;
    ranges: Ranges;
    /** The ranges in array notation, `[37, :, :, :]`. */
    region?: string;
  } | null;
  n_after: number;
  /** Of a result that overflowed: the dtype's largest number, and the one that golden has. */
  limit?: { largest: Num; needed: Num | null } | null;
  /** The largest magnitude of finite outputs, with its operator. */
  largest?: { value: Num; op: number; op_type: string; op_name: string } | null;
  /** The overflow record of the operator. */
  overflow: Overflow | null;
  /** First and last byte of the overwritten range. */
  bytes?: Ranges;
  /** The effect on the model's outputs, in English, if the sentence is about an operator. */
  finding?: string;
  text: string;
}

/** One unit of a device that overflowed. */
export interface OverflowUnit {
  unit: string;
  /** `0x400`, or a list of four. */
  status: string;
  words: string[];
  causes: string[];
  /** The documented bits, for units that have any. */
  bits: { bit: number; is_set: boolean }[] | null;
  other_bits: string[];
  task: number;
  stream: number;
  context: number | null;
  thread: number | null;
}

export interface Overflow {
  units: OverflowUnit[];
}

/** A watched value whose contents changed. */
export interface Overwrite {
  watched_type: string;
  watched: string;
  slot: string;
  /** Start and end in bytes, excluding the end. */
  ranges: [number, number][];
  n_ranges: number;
  n_bytes: number;
  first_element: number | null;
  before: string;
  after: string;
  how: string | null;
  seen_before: string | null;
  seen_before_type: string | null;
  source: string | null;
  watched_source: string | null;
}

/** The first NaN or infinity of a capture. */
export interface NonFinite {
  slot: string | null;
  element: number | null;
  value: string;
  origin: string;
  n_nan: number;
  n_pos_inf: number;
  n_neg_inf: number;
  module: string;
  source: string;
}

export type EventKind = "overflow" | "overwrite" | "non_finite" | "finding";

export interface DumpEvent {
  id: number;
  kind: EventKind;
  op: number | null;
  op_type: string;
  op_name: string;
  rank: number | null;
  step: number | null;
  /** Microseconds since 1970-01-01 UTC. */
  time_us: number | null;
  task: number | null;
  stream: number | null;
  file: string;
  overflow: Overflow | null;
  overwrite: Overwrite | null;
  non_finite: NonFinite | null;
  /** The sentence of a finding. */
  text?: string;
}

export interface Events {
  total: number;
  /** Overwritten values that were counted but not listed. */
  n_unlisted: number;
  events: DumpEvent[];
  problems: string[];
}

/** An event with the bytes that it changed, if the dump has them. */
export interface EventDetail extends DumpEvent {
  bytes: {
    dtype: string;
    before: number | null;
    after: number | null;
    /** Bytes as hexadecimal digits, at most 64 of each range. */
    ranges: { start: number; end: number; before: string; after: string }[];
    /** Floats as numbers, others as text. */
    elements: { index: number; before: Num | string; after: Num | string }[];
  } | null;
}

export interface Info {
  program: string;
  target: SideInfo;
  golden: SideInfo | null;
  /** A third dump, whose tensors are shown next to the pair's. */
  reference?: SideInfo | null;
  n_operators: number;
  /** The scopes that nearly all names of operators begin with, such as `node_`; may be empty. */
  prefix: string;
  places: Place[];
  metric: { name: string; limit: number | null };
  views: string[];
  verdict: Verdict;
  counts: Record<Status, number>;
  slots: { compared: number; total: number } | null;
  first_non_finite: number | null;
  near_edge: number;
  n_events: number;
  first_overflow: {
    op: number | null;
    op_type: string;
    op_name: string;
    step: number | null;
    task: number | null;
  } | null;
  n_problems: number;
}

export interface Row {
  id: number;
  op_type: string;
  op_name: string;
  rank: number | null;
  step: number | null;
  call: number | null;
  status: Status;
  at_fault: boolean;
  cause: Cause | null;
  error: Num;
  added: Num;
  inputs: Num;
  entry: Entry | null;
  golden: string | null;
  n_target: number;
  n_golden: number;
  max_abs: Num;
  headroom: number | null;
  n_nan: number | null;
  n_inf: number | null;
  note: Note | null;
  dtype: string | null;
  shape: number[] | null;
}

export interface FilterError {
  start: number;
  end: number;
  message: string;
  suggestion: string | null;
}

export interface Operators {
  total: number;
  matching: number;
  find: number | null;
  rows: Row[];
  error: FilterError | null;
}

export interface Trace {
  n: number;
  columns: number;
  value: Num[];
  added: Num[] | null;
  status: string;
  nan: string;
  first: number[];
  faults: [number, number][];
  limit: Num;
  labels: { at: number; text: string }[];
}

/** The dimension along the columns. */
export type ColumnAxis = "step" | "rank";

/** Operators over steps or ranks, reduced to the requested cells. */
export interface Steps {
  n_operators: number;
  by: ColumnAxis;
  /** Steps or ranks; `columns` may be fewer. */
  n_columns: number;
  steps: number[];
  ranks: (number | null)[];
  /** `n` operators share the row; the first of them names it. */
  rows: { op_type: string; op_name: string; n: number }[];
  /** First and last step or rank of each column. */
  columns: [number, number][];
  /** Row by row: size or error of outputs. */
  values: Num[];
  /** `x` faulty, `n` NaN, `i` Inf, `0` finite, `-` not run or unknown. */
  marks: string;
  ids: number[];
}

/** Numbers by column: the minimum and maximum over its steps. */
export interface ScalarSeries {
  low: Num[];
  high: Num[];
  /** `n` NaN, `i` Inf, `0` finite only, `-` unknown. */
  marks: string;
  ids: (number | null)[];
}

/** A scalar output over the columns of `Steps`. */
export interface Scalars {
  total: number;
  choices: { id: number; op_type: string; op_name: string; slot: string; dtype: string }[];
  chosen: number | null;
  columns: [number, number][];
  target: ScalarSeries | null;
  golden: ScalarSeries | null;
}

export interface WhyRule {
  metric: string;
  value: Num;
  limit: Num;
  level: Status;
}

export interface Slot {
  id: string;
  golden: string | null;
  status: Status;
  dtype: (string | null)[];
  shape: (number[] | null)[];
  parameter: string | null;
  /** The compared data: elements, or only `statistics` or a `digest` of them. */
  evidence: string | null;
  why: WhyRule[];
  metrics: [string, Num][];
  n_nan: number | null;
  n_inf: number | null;
  max_abs: Num;
  /** The change of golden's tensor, if one operation explains the difference. */
  change?: {
    words: string | null;
    /** Golden's axes in the order in which the target has them. */
    order: number[] | null;
  } | null;
}

export interface ChainLink {
  id: number;
  op_type: string;
  op_name: string;
  role: "before" | "makes" | "hands_on" | "changes";
  n_nan: number | null;
  n_inf: number | null;
  n_elements: number | null;
  max_abs: Num;
}

export interface NamedOperator {
  op_type: string;
  op_name: string;
}

export interface Operator extends Omit<Row, "golden"> {
  /** Whether a report has only the operator's row. */
  lacks_details?: boolean;
  module: string | null;
  source: { text: string; is_user: boolean }[];
  target: NamedOperator[];
  golden: NamedOperator[];
  slots: Slot[];
  attributes: { name: string; target: string | null; golden: string | null }[];
  how: string;
  producers: { slot: string; id: number }[];
  consumers: { slot: string; id: number }[];
  chain: ChainLink[];
  events: DumpEvent[];
  suspects: { op_type: string; op_name: string; reason: string }[];
}

export interface TensorSide {
  dtype: string;
  shape: number[];
  layout: string | null;
  axes: string[];
  file: string;
  n_bytes: number;
  statistics: {
    min: Num;
    max: Num;
    mean: Num;
    std: Num;
    l2: Num;
    n_elements: number | null;
    n_zero: number | null;
    n_nan: number | null;
    n_pos_inf: number | null;
    n_neg_inf: number | null;
  };
  lines: { numpy: string | null; opscope: string | null };
}

export interface Histogram {
  low: number;
  high: number;
  target: number[] | null;
  golden: number[] | null;
}

export interface Difference {
  n_equal: number;
  n_differing: number;
  n_elements: number;
  max_abs: Num;
  ranges: Ranges | null;
  powers: { first: number; counts: number[] };
  limit: Num;
  worst: { index: number[]; target: Num; golden: Num; difference: Num }[];
}

export interface Percentile {
  p: number;
  target: Num;
  golden: Num;
}

export interface Tensor {
  op: number;
  slot: string;
  sides: Record<Side, TensorSide | null> & { reference?: TensorSide | null };
  missing: Record<Side, string | null>;
  histogram: Histogram | null;
  percentiles: Percentile[];
  difference: Difference | null;
}

export interface Values {
  rows: number[];
  columns: number[];
  index: number[];
  target: Num[][] | null;
  golden: Num[][] | null;
}

export interface GraphBox {
  key: string;
  side: Side;
  kind: "op" | "group";
  /** The number of a pair, or of an operator of one dump; null for unmatched operators. */
  id: number | null;
  label: string;
  op_type: string;
  path: string;
  parent: string | null;
  is_open: boolean;
  x: number;
  y: number;
  width: number;
  height: number;
  status: Status;
  at_fault: boolean;
  /** Number of this side's operators inside. */
  n: number;
  n_fail: number;
  entry: Entry | null;
  on_way: boolean;
  /** For two dumps, whether the other side has nothing of it. */
  only: boolean;
  /** Whether a mapping matched it. */
  by_hand: boolean;
  op_name?: string;
  /** The number among executions of its name; null if it runs once. */
  run?: number | null;
  /** Why it is unmatched, in the terms of coverage. */
  reason?: string | null;
  /** The pair that absorbed it. */
  inside?: number | null;
}

export interface GraphEdge {
  from: string;
  to: string;
  on_way: boolean;
  points: [number, number][];
}

/** The mark between both sides at one height: that of the worst box there. */
export interface StepMark {
  y: number;
  kind:
    | "agrees"
    | "differs"
    | "not_compared"
    | "target_only"
    | "golden_only"
    | "no_partner";
  status: Status;
  /** The output error, or that of `slot` if no output's is known. */
  value: Num;
  slot: string | null;
  at_fault: boolean;
  is_fused: boolean;
  n: [number, number];
  keys: [string | null, string | null];
  reason: string | null;
}

export interface PairCounts {
  same_name: number;
  fused: number;
  other: number;
  target_only: number;
  golden_only: number;
  inside_fusion: number;
  by_hand: number;
}

export interface Graph {
  side: Side | "both";
  width: number;
  height: number;
  boxes: GraphBox[];
  edges: GraphEdge[];
  /** Both sides in step. */
  step: {
    spine: number;
    centers: [number, number];
    marks: StepMark[];
    pairs: PairCounts;
    /** The mapping used by the comparison. */
    mapping: string | null;
  } | null;
}

export interface Coverage {
  stages: { stage: "seen" | "dumped" | "paired" | "compared"; n: number }[];
  groups: {
    reason: string;
    words: string;
    side: Side | "both" | null;
    n: number;
    examples: { op_type: string; op_name: string; slot: string | null; message: string }[];
  }[];
  problems: { side: Side; message: string }[];
  passed_over: { side: Side; path: string; reason: string }[];
}
