/** Operators over steps or ranks, as the server reduces them: the largest wins, NaN over all numbers. */

import { parseFilter } from "./filter.mjs";

const N_CELLS_MAX = 1 << 17;

export function stepsOf(scene, query) {
  const filter = parseFilter(query.get("q") ?? "");
  const rank = query.has("rank") ? Number(query.get("rank")) : null;
  const step = query.has("step") ? Number(query.get("step")) : null;
  const by = query.get("by") ?? "step";
  const wanted = scene.rows.filter(
    (r) =>
      (filter.error || filter.keep(r)) &&
      (rank === null || r.rank === rank) &&
      (step === null || r.step === step),
  );
  const known = new Map();
  for (const r of wanted) {
    const { op_type, op_name } = r;
    const key = `${op_type}\n${op_name}`;
    if (!known.has(key)) known.set(key, { row: known.size, op_type, op_name });
  }
  const places = [...new Set(wanted.map((r) => r[by]))].sort((a, b) => a - b);
  const operators = [...known.values()];
  const n_columns = Math.min(places.length, Number(query.get("columns") ?? 400));
  const n_rows = Math.min(
    operators.length,
    Number(query.get("rows") ?? 400),
    Math.floor(N_CELLS_MAX / Math.max(1, n_columns)),
  );
  const nothing = () => ({ value: null, mark: "-", id: 0 });
  const cells = Array.from({ length: n_rows * n_columns }, nothing);
  const columnOf = new Map(places.map((p, i) => [p, Math.floor((i * n_columns) / places.length)]));
  for (const r of wanted) {
    const { row } = known.get(`${r.op_type}\n${r.op_name}`);
    const at = Math.floor((row * n_rows) / operators.length) * n_columns + columnOf.get(r[by]);
    addTo(cells[at], r, scene.info.golden ? r.error : r.max_abs);
  }
  const first = (at, n, of) => Math.ceil((at * of) / n);
  return {
    n_operators: operators.length,
    by,
    n_columns: places.length,
    steps: [...new Set(scene.rows.map((r) => r.step))],
    ranks: [...new Set(scene.rows.map((r) => r.rank))],
    rows: Array.from({ length: n_rows }, (_, i) => {
      const [start, end] = [i, i + 1].map((at) => first(at, n_rows, operators.length));
      const { op_type, op_name } = operators[start];
      return { op_type, op_name, n: end - start };
    }),
    columns: Array.from({ length: n_columns }, (_, i) => {
      const [start, end] = [i, i + 1].map((at) => first(at, n_columns, places.length));
      return [places[start], places[end - 1]];
    }),
    values: cells.map((c) => c.value),
    marks: cells.map((c) => c.mark).join(""),
    ids: cells.map((c) => c.id),
  };
}

const ORDER = "-0inx";

function addTo(cell, r, value) {
  const finite = value === null ? "-" : "0";
  const mark = r.at_fault ? "x" : r.n_nan > 0 ? "n" : r.n_inf > 0 ? "i" : finite;
  const is_more = value !== null && (cell.value === null || value > cell.value);
  if (cell.mark === "-" || (cell.mark !== "x" && (mark === "x" || is_more))) cell.id = r.id;
  if (is_more) cell.value = value;
  if (ORDER.indexOf(mark) > ORDER.indexOf(cell.mark)) cell.mark = mark;
}
