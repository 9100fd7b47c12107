/** The trace of some operators, reduced to columns like the server's. */

import type { Num, Row, Status, Trace } from "../api";
import { toFloat } from "../numbers";

const COLUMNS_MAX = 8192;
const LABELS_MAX = 64;
/** By severity, ascending. */
const SEVERITY: Status[] = ["skip", "pass", "warn", "fail"];

/** Whether a number is larger; NaN is larger than any other. */
export function isMore(value: Num, than: Num): boolean {
  const [a, b] = [toFloat(value), toFloat(than)];
  if (a === null || b === null) return a !== null;
  return !Number.isNaN(b) && (Number.isNaN(a) || a > b);
}

interface Column {
  value: Num;
  added: Num;
  status: Status;
  has_non_finite: boolean;
  /** The operator selected with the column: the worst. */
  first: Row;
  fault: number | null;
}

/** `whole` is the trace of all operators, whose limit applies to a part as well. */
export function traceAnswer(rows: Row[], whole: Trace, most: number): Trace {
  const n_columns = Math.min(rows.length, Math.min(Math.max(1, most), COLUMNS_MAX));
  const is_pair = whole.added !== null;
  const columns: Column[] = [];
  for (let at = 0; at < n_columns; at += 1) {
    const start = Math.floor((at * rows.length) / n_columns);
    const end = Math.floor(((at + 1) * rows.length) / n_columns);
    columns.push(columnOf(rows.slice(start, end), is_pair));
  }
  return {
    n: rows.length,
    columns: n_columns,
    value: columns.map((column) => column.value),
    added: is_pair ? columns.map((column) => column.added) : null,
    status: columns.map((column) => column.status[0]).join(""),
    nan: columns.map((column) => (column.has_non_finite ? "1" : "0")).join(""),
    first: columns.map((column) => column.first.id),
    faults: columns.flatMap(({ fault }, at): [number, number][] =>
      fault === null ? [] : [[at, fault]],
    ),
    limit: whole.limit,
    labels: labelsOf(columns),
  };
}

function columnOf(rows: Row[], is_pair: boolean): Column {
  const column: Column = {
    value: null,
    added: null,
    status: rows[0].status,
    has_non_finite: false,
    first: rows[0],
    fault: null,
  };
  for (const row of rows) {
    const value = is_pair ? row.error : row.max_abs;
    const is_worse = isMore(value, column.value);
    if (column.fault === null && (row.at_fault || is_worse)) column.first = row;
    if (is_worse) column.value = value;
    if (isMore(row.added, column.added)) column.added = row.added;
    const [more, than] = [row.status, column.status].map((status) => SEVERITY.indexOf(status));
    if (more > than) column.status = row.status;
    column.has_non_finite ||= (row.n_nan ?? 0) > 0 || (row.n_inf ?? 0) > 0;
    if (row.at_fault) column.fault ??= row.id;
  }
  return column;
}

/** The outermost scope of names, at each position where it changes. */
function labelsOf(columns: Column[]): Trace["labels"] {
  const labels: Trace["labels"] = [];
  let last = "";
  columns.forEach(({ first }, at) => {
    const scope = first.op_name.replace(/^\/+/, "").split(/[/.]/)[0];
    if (scope === last || labels.length >= LABELS_MAX) return;
    labels.push({ at, text: scope });
    last = scope;
  });
  return labels;
}
