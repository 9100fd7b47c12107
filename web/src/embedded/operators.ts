/** The table of operators, filtered and sorted like the server's. */

import type { Operators, Row } from "../api";
import { toFloat } from "../numbers";
import { parseFilter } from "./filter";

const ROWS_MAX = 1000;
const LEVELS = ["fail", "warn", "skip", "pass"];
const NUMBERS: Record<string, (row: Row) => number | null> = {
  error: (row) => toFloat(row.error),
  added: (row) => toFloat(row.added),
  max_abs: (row) => toFloat(row.max_abs),
  headroom: (row) => row.headroom,
  n_nan: (row) => row.n_nan,
  n_inf: (row) => row.n_inf,
};

/** The rows that a filter accepts; none if the filter is invalid, which the table reports. */
export function acceptedRows(rows: Row[], filter: string): Row[] {
  const accepts = parseFilter(filter);
  return typeof accepts === "function" ? rows.filter(accepts) : rows;
}

/** `rows` are in execution order; `total` also counts missing ones. */
export function operatorsAnswer(rows: Row[], total: number, query: URLSearchParams): Operators {
  const accepts = parseFilter(query.get("q") ?? "");
  if (typeof accepts !== "function") {
    return { total, matching: 0, find: null, rows: [], error: accepts };
  }
  const sorted = sortedRows(rows.filter(accepts), query.get("sort") ?? "order");
  const offset = Number(query.get("offset") ?? 0);
  const limit = Math.min(ROWS_MAX, Number(query.get("limit") ?? 200));
  const find = query.has("find") ? Number(query.get("find")) : null;
  const place = find === null ? -1 : sorted.findIndex((row) => row.id === find);
  return {
    total,
    matching: sorted.length,
    find: place < 0 ? null : place,
    rows: sorted.slice(offset, offset + limit),
    error: null,
  };
}

/** Equal rows stay in execution order. */
function sortedRows(rows: Row[], sort: string): Row[] {
  const is_descending = sort.startsWith("-");
  const key = is_descending ? sort.slice(1) : sort;
  const number = Object.hasOwn(NUMBERS, key) ? NUMBERS[key] : null;
  // Not reversed afterwards, so that unknown values stay last.
  if (number) return rows.sort((a, b) => inOrder(number(a), number(b), is_descending));
  if (key === "name") rows.sort((a, b) => inCodeOrder(a.op_name, b.op_name));
  else if (key === "type") rows.sort((a, b) => inCodeOrder(a.op_type, b.op_type));
  else if (key === "guilt") rows.sort((a, b) => guiltOf(a) - guiltOf(b));
  else if (key !== "order") throw new Error(`there is no order ${key}`);
  return is_descending ? rows.reverse() : rows;
}

/** NaN is larger than any other number, and unknown values come last in either direction. */
function inOrder(a: number | null, b: number | null, is_descending: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const order = Number(Number.isNaN(a)) - Number(Number.isNaN(b)) || (a < b ? -1 : a > b ? 1 : 0);
  return is_descending ? -order : order;
}

/** Order by code point; JavaScript orders by 16-bit units. */
function inCodeOrder(a: string, b: string): number {
  const [x, y] = [Array.from(a), Array.from(b)];
  const i = x.findIndex((letter, k) => letter !== y[k]);
  if (i < 0 || i >= y.length) return x.length - y.length;
  return x[i].codePointAt(0)! - y[i].codePointAt(0)!;
}

function guiltOf(row: Row): number {
  return LEVELS.indexOf(row.status) + (row.at_fault ? 0 : LEVELS.length);
}
