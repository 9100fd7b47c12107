/** Operators over steps or ranks, reduced to cells like the server's. */

import type { ColumnAxis, Num, Row, Steps } from "../api";
import { isMore } from "./trace";

const CELLS_MAX = 1 << 17;
const SIDE_MAX = 2048;

interface Cell {
  value: Num;
  has_run: boolean;
  has_nan: boolean;
  has_inf: boolean;
  is_at_fault: boolean;
  /** The execution selected with the cell. */
  id: number;
}

interface Size {
  rows: number;
  columns: number;
  rank: number | null;
  step: number | null;
  by: ColumnAxis;
}

/** `all` are the rows of every rank, `accepted` those that pass the filter. */
export function stepsAnswer(all: Row[], accepted: Row[], is_pair: boolean, size: Size): Steps {
  const names = new Map<string, number>();
  const rows: { op_type: string; op_name: string }[] = [];
  const entries: { row: number; place: number; execution: Row }[] = [];
  for (const execution of accepted) {
    const { op_type, op_name } = execution;
    const place = execution[size.by];
    if (place === null || (size.rank !== null && execution.rank !== size.rank)) continue;
    if (size.step !== null && execution.step !== size.step) continue;
    const name = JSON.stringify([op_type, op_name]);
    if (!names.has(name)) names.set(name, rows.push({ op_type, op_name }) - 1);
    entries.push({ row: names.get(name)!, place, execution });
  }
  const places = ascending(entries.map((entry) => entry.place));
  const n_columns = Math.min(places.length, clamped(size.columns));
  // Rows are reduced first, so that each step or rank keeps its column.
  const most_rows = Math.floor(CELLS_MAX / Math.max(1, n_columns));
  const n_rows = Math.min(rows.length, clamped(size.rows), most_rows);
  const cells = Array.from({ length: n_rows * n_columns }, emptyCell);
  const column_of = new Map(places.map((place, at) => [place, at]));
  for (const { row, place, execution } of entries) {
    const at = Math.floor((row * n_rows) / rows.length) * n_columns;
    const column = Math.floor((column_of.get(place)! * n_columns) / places.length);
    add(cells[at + column], execution, is_pair);
  }
  // The first of those that share a row or column.
  const first = (at: number, n: number, of: number) => Math.ceil((at * of) / n);
  return {
    n_operators: rows.length,
    by: size.by,
    n_columns: places.length,
    steps: ascending(all.flatMap(({ step }) => (step === null ? [] : [step]))).slice(0, SIDE_MAX),
    ranks: ranksOf(all),
    rows: Array.from({ length: n_rows }, (_, row) => {
      const [start, end] = [row, row + 1].map((at) => first(at, n_rows, rows.length));
      return { ...rows[start], n: end - start };
    }),
    columns: Array.from({ length: n_columns }, (_, column): [number, number] => {
      const [start, end] = [column, column + 1].map((at) => first(at, n_columns, places.length));
      return [places[start], places[end - 1]];
    }),
    values: cells.map((cell) => cell.value),
    marks: cells.map(markOf).join(""),
    ids: cells.map((cell) => cell.id),
  };
}

function ascending(numbers: number[]): number[] {
  return [...new Set(numbers)].sort((a, b) => a - b);
}

function ranksOf(rows: Row[]): (number | null)[] {
  const ranks = [...new Set(rows.map((row) => row.rank))];
  return ranks.sort((a, b) => (a ?? -1) - (b ?? -1));
}

function clamped(n: number): number {
  return Math.min(SIDE_MAX, Math.max(1, n));
}

function emptyCell(): Cell {
  return {
    value: null,
    has_run: false,
    has_nan: false,
    has_inf: false,
    is_at_fault: false,
    id: 0,
  };
}

function add(cell: Cell, row: Row, is_pair: boolean): void {
  const value = is_pair ? row.error : row.max_abs;
  const is_more = isMore(value, cell.value);
  // A faulty execution takes precedence over the largest value.
  if (!cell.has_run || (!cell.is_at_fault && (row.at_fault || is_more))) cell.id = row.id;
  if (is_more) cell.value = value;
  cell.has_run = true;
  cell.has_nan ||= (row.n_nan ?? 0) > 0;
  cell.has_inf ||= (row.n_inf ?? 0) > 0;
  cell.is_at_fault ||= row.at_fault;
}

function markOf(cell: Cell): string {
  if (!cell.has_run) return "-";
  if (cell.is_at_fault) return "x";
  if (cell.has_nan) return "n";
  if (cell.has_inf) return "i";
  return cell.value === null ? "-" : "0";
}
