/** Operators over steps or ranks as cells: their values, their growth, and the first bad one. */

import type { ColumnAxis, Steps } from "../api";
import { logShare, toFloat } from "../numbers";

/** `first_nan` is the run's first NaN if there is no culprit; `none`: not run or unknown. */
export type CellKind = "fault" | "first_nan" | "nan" | "inf" | "finite" | "none";

export interface StepGrid {
  by: ColumnAxis;
  n_rows: number;
  n_columns: number;
  rows: Steps["rows"];
  columns: Steps["columns"];
  values: (number | null)[];
  kinds: CellKind[];
  ids: number[];
  /** Whether the cell has an operator to select. */
  has_run: boolean[];
  /** Each row's median over the first third of the steps, or over all ranks; null if unknown. */
  baselines: (number | null)[];
  /** The folded column of several all-NaN steps, if any. */
  folded: number | null;
}

export type ScaleKind = "growth" | "absolute";

export interface StepScale {
  kind: ScaleKind;
  /** Powers of ten at the two ends. */
  low: number;
  high: number;
}

/** Growth is drawn from 1× to 10,000×. */
const GROWTH_POWERS = 4;
/** Up to this many equal steps at the end are not folded. */
const TAIL_COLUMNS = 5;

export function stepGrid(answer: Steps): StepGrid {
  // Ranks are not a sequence.
  const folded = answer.by === "step" ? foldTail(answer) : { answer, column: null };
  const { rows, columns, ids, marks } = folded.answer;
  const values = folded.answer.values.map(toFloat);
  const kinds = values.map((value, i) => kindOf(marks[i] ?? "-", value));
  const [n_rows, n_columns] = [rows.length, columns.length];
  if (answer.by === "step" && !kinds.includes("fault")) {
    const first = firstWhere(n_rows, n_columns, (i) => kinds[i] === "nan");
    if (first !== null) kinds[first] = "first_nan";
  }
  const baseline = answer.by === "step" ? baselineOf : medianOfFinite;
  return {
    by: answer.by,
    n_rows,
    n_columns,
    rows,
    columns,
    values,
    kinds,
    ids,
    has_run: ids.map((id, i) => id !== 0 || marks[i] !== "-"),
    baselines: rows.map((_, row) =>
      baseline(values.slice(row * n_columns, (row + 1) * n_columns)),
    ),
    folded: folded.column,
  };
}

/**
 * The median over the first third. A row that begins with zeros, or late, uses all its known
 * values; otherwise a first value after zeros would count as infinite growth.
 */
export function baselineOf(values: (number | null)[]): number | null {
  const start = values.slice(0, Math.ceil(values.length / 3));
  const early = medianOf(start.filter((x): x is number => x !== null && Number.isFinite(x)));
  if (early !== null && early > 0) return early;
  return medianOf(values.filter((x): x is number => x !== null && x > 0 && x < Infinity));
}

/** The median over all ranks, which have no order. */
function medianOfFinite(values: (number | null)[]): number | null {
  return medianOf(values.filter((x): x is number => x !== null && x > 0 && x < Infinity));
}

/** `value` relative to the row's median; null if either is not a number. */
export function growthOf(value: number | null, baseline: number | null): number | null {
  if (value === null || baseline === null || !Number.isFinite(value)) return null;
  return value / baseline;
}

/** Errors use a fixed scale, 1e−8 to 1; sizes range from the smallest to the largest. */
export function scaleOf(grid: StepGrid, kind: ScaleKind, is_pair: boolean): StepScale {
  if (kind === "growth") return { kind, low: 0, high: GROWTH_POWERS };
  if (is_pair) return { kind, low: -8, high: 0 };
  let [least, most] = [Infinity, 0];
  for (const value of grid.values) {
    if (value === null || !(value > 0) || value === Infinity) continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  if (most === 0) return { kind, low: -1, high: 0 };
  const high = Math.ceil(Math.log10(most));
  // Vanishing values would compress all others into the dark end.
  const low = Math.max(Math.floor(Math.log10(least)), high - 12);
  return { kind, low: Math.min(low, high - 1), high };
}

/** The position of a cell's colour on its scale, from 0 to 1; only for kind `finite`. */
export function shareOf(grid: StepGrid, cell: number, scale: StepScale): number {
  const value = grid.values[cell];
  if (value === null) return 0;
  if (scale.kind === "absolute") return logShare(value, scale.low, scale.high);
  const growth = growthOf(value, grid.baselines[Math.floor(cell / grid.n_columns)]);
  return growth === null ? 0 : logShare(growth, scale.low, scale.high);
}

/** Whether a cell belongs in the list of bad steps. */
export function isBad(grid: StepGrid, cell: number, limit: number | null): boolean {
  const kind = grid.kinds[cell];
  if (kind === "none") return false;
  if (kind !== "finite") return true;
  const value = grid.values[cell];
  return limit !== null && value !== null && value > limit;
}

/**
 * The first bad cell by step and then by execution order. Ranks run in parallel, so only a faulty
 * one can be the first among them.
 */
export function firstBad(grid: StepGrid, limit: number | null): number | null {
  const { n_rows, n_columns } = grid;
  if (grid.by === "rank") {
    const fault = grid.kinds.indexOf("fault");
    return fault < 0 ? null : fault;
  }
  const bad = firstWhere(n_rows, n_columns, (i) => isBad(grid, i, limit));
  if (bad === null) return null;
  // Within its step, the culprit is more informative than an earlier operator.
  const column = bad % n_columns;
  for (let i = column; i < n_rows * n_columns; i += n_columns) {
    if (grid.kinds[i] === "fault") return i;
  }
  return bad;
}

export interface CellOwner {
  id: number;
  op_type: string;
  op_name: string;
  step: number | null;
  rank: number | null;
}

/** The cell of an operator: by its id, or else by its name and its step or rank. */
export function cellOf(grid: StepGrid, id: number, owner: CellOwner | null): number | null {
  const exact = grid.ids.findIndex((known, i) => known === id && grid.has_run[i]);
  if (exact >= 0) return exact;
  const place = owner?.[grid.by] ?? null;
  if (owner === null || owner.id !== id || place === null) return null;
  const column = grid.columns.findIndex(([first, last]) => first <= place && place <= last);
  if (column < 0) return null;
  let row = grid.rows.findIndex((r) => r.op_name === owner.op_name && r.op_type === owner.op_type);
  if (row < 0 && grid.rows.some((r) => r.n > 1)) {
    // It shares a row with others: ids ascend within a step and rank.
    for (let r = 0; r < grid.n_rows; r += 1) {
      const i = r * grid.n_columns + column;
      if (grid.has_run[i] && grid.ids[i] <= id) row = r;
    }
  }
  return row < 0 ? null : row * grid.n_columns + column;
}

/** The next cell in a direction with an operator; null at the edge. */
export function neighbourOf(
  grid: StepGrid,
  cell: number,
  rows: number,
  columns: number,
): number | null {
  let row = Math.floor(cell / grid.n_columns);
  let column = cell % grid.n_columns;
  for (;;) {
    row += rows;
    column += columns;
    if (row < 0 || row >= grid.n_rows || column < 0 || column >= grid.n_columns) return null;
    const next = row * grid.n_columns + column;
    if (grid.has_run[next]) return next;
  }
}

function kindOf(mark: string, value: number | null): CellKind {
  if (mark === "x") return "fault";
  if (mark === "n") return "nan";
  if (mark === "i") return "inf";
  if (mark === "-" || value === null) return "none";
  if (Number.isNaN(value)) return "nan";
  return Number.isFinite(value) ? "finite" : "inf";
}

function firstWhere(
  n_rows: number,
  n_columns: number,
  holds: (cell: number) => boolean,
): number | null {
  for (let column = 0; column < n_columns; column += 1) {
    for (let row = 0; row < n_rows; row += 1) {
      if (holds(row * n_columns + column)) return row * n_columns + column;
    }
  }
  return null;
}

/** Folds the last columns into one if every operator is NaN, because they would look the same. */
function foldTail(answer: Steps): { answer: Steps; column: number | null } {
  const n = answer.columns.length;
  let first = n;
  while (first > 0 && isAllNan(answer, first - 1)) first -= 1;
  const column = first + TAIL_COLUMNS - 1;
  if (answer.rows.length === 0 || n - first <= TAIL_COLUMNS + 1) return { answer, column: null };
  const kept = (i: number) => i % n <= column;
  const columns = answer.columns.slice(0, column + 1);
  columns[column] = [answer.columns[column][0], answer.columns[n - 1][1]];
  return {
    answer: {
      ...answer,
      columns,
      values: answer.values.filter((_, i) => kept(i)),
      ids: answer.ids.filter((_, i) => kept(i)),
      marks: Array.from(answer.marks)
        .filter((_, i) => kept(i))
        .join(""),
    },
    column,
  };
}

function isAllNan(answer: Steps, column: number): boolean {
  const n = answer.columns.length;
  return answer.rows.every((_, row) => answer.marks[row * n + column] === "n");
}

function medianOf(values: number[]): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
