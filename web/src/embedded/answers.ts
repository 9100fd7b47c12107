/** Answers to the page's requests from the contents of a report. */

import type {
  DumpEvent,
  EventDetail,
  Graph,
  Operator,
  Row,
  Scalars,
  Side,
  Tensor,
  Values,
} from "../api";
import { t } from "../texts";
import type { Contents, EmbeddedTensor, Layout } from "./contents";
import { acceptedRows, operatorsAnswer } from "./operators";
import { stepsAnswer } from "./steps";
import { traceAnswer } from "./trace";

/** The answer to `path`, as the server returns it: JSON, or the bytes of a slice. */
export function embeddedAnswer(contents: Contents, path: string): unknown {
  const [question, ...rest] = path.split("?");
  const query = new URLSearchParams(rest.join("?"));
  const [word, id] = question.split("/");
  switch (word) {
    case "info":
      return contents.info;
    case "coverage":
      return contents.coverage;
    case "operators":
      return operatorsAnswer(contents.rows, contents.info.n_operators, query);
    case "operator":
      return operatorOf(contents, Number(id));
    case "trace":
      return traceOf(contents, query);
    case "steps":
      return stepsOf(contents, query);
    case "scalars":
      return scalarsOf(contents, query);
    case "events":
      return contents.events;
    case "event":
      return eventOf(contents, Number(id));
    case "graph":
      return graphOf(contents, query);
    case "tensor":
      return tensorOf(contents, query);
    case "slice":
      return sliceOf(contents, query);
    case "values":
      return valuesOf(contents, query);
    default:
      throw new Error(t.report_no_answer);
  }
}

function rowOf(contents: Contents, id: number): Row | undefined {
  // Rows are indexed by id unless some were omitted.
  const row = contents.rows[id];
  return row?.id === id ? row : contents.rows.find((other) => other.id === id);
}

/** For an operator without details, the content of its row. */
function operatorOf(contents: Contents, id: number): Operator {
  const operator = contents.details[id];
  if (operator) return operator;
  const row = rowOf(contents, id);
  if (!row) throw new Error(t.report_no_operator(id));
  const { op_type, op_name } = row;
  return {
    ...row,
    lacks_details: true,
    module: null,
    source: [],
    target: [{ op_type, op_name }],
    golden: [],
    slots: [],
    attributes: [],
    how: "",
    producers: [],
    consumers: [],
    chain: [],
    suspects: [],
    events: [],
  };
}

function traceOf(contents: Contents, query: URLSearchParams) {
  const filter = query.get("q") ?? "";
  if (filter.trim() === "") return contents.trace;
  const rows = acceptedRows(contents.rows, filter);
  return traceAnswer(rows, contents.trace, Number(query.get("columns") ?? 1024));
}

function stepsOf(contents: Contents, query: URLSearchParams) {
  const filter = query.get("q") ?? "";
  const by = query.get("by") === "rank" ? "rank" : "step";
  const is_whole = !query.has("rank") && !query.has("step") && by === "step";
  if (contents.steps && filter.trim() === "" && is_whole) return contents.steps;
  const accepted = acceptedRows(contents.rows, filter);
  return stepsAnswer(contents.rows, accepted, contents.info.golden !== null, {
    rows: Number(query.get("rows") ?? 400),
    columns: Number(query.get("columns") ?? 400),
    rank: query.has("rank") ? Number(query.get("rank")) : null,
    step: query.has("step") ? Number(query.get("step")) : null,
    by,
  });
}

/** The scalar output of all operators, if requested with a column for each step. */
function scalarsOf(contents: Contents, query: URLSearchParams): Scalars {
  const { scalars } = contents;
  const n_columns = scalars?.columns.length ?? 0;
  const is_asked =
    Number(query.get("columns") ?? 400) >= n_columns &&
    (query.get("q") ?? "").trim() === "" &&
    !query.has("rank") &&
    !query.has("scalar");
  if (scalars && is_asked) {
    const choices = scalars.choices.filter(({ id }) => id === scalars.chosen);
    return { ...scalars, choices, total: choices.length };
  }
  return { total: 0, choices: [], chosen: null, columns: [], target: null, golden: null };
}

/** An event without the bytes that it changed, which are only in the dump. */
function eventOf(contents: Contents, id: number): EventDetail {
  const event = contents.events.events.find((one: DumpEvent) => one.id === id);
  if (!event) throw new Error(t.report_no_answer);
  return { ...event, bytes: null };
}

function graphOf(contents: Contents, query: URLSearchParams): Graph {
  const op = Number(query.get("op") ?? contents.info.verdict.op ?? 0);
  const open = query.get("open");
  const paths = open === null ? null : pathsOf(open);
  const layout = paths === null ? layoutAround(contents, op) : layoutOf(contents, op, paths);
  if (layout) return layout.graph;
  // A layout of another operator with the same rank and step shows the same operators, closed.
  const same_place = layoutsBeside(contents, op)[0];
  if (!same_place) throw new Error(t.report_no_graph);
  return same_place.graph;
}

function pathsOf(open: string): string[] {
  return open
    .split(",")
    .filter(Boolean)
    .map((path) => path.replace(/%2C/g, ","));
}

function layoutsBeside(contents: Contents, op: number): Layout[] {
  const row = rowOf(contents, op);
  return contents.graphs.filter(({ rank, step }) => row?.rank === rank && row?.step === step);
}

function layoutAround(contents: Contents, op: number): Layout | undefined {
  const at = contents.graph_of[op];
  return at === undefined ? undefined : contents.graphs[at];
}

function layoutOf(contents: Contents, op: number, open: string[]): Layout | undefined {
  const wanted = new Set(open);
  return layoutsBeside(contents, op).find(
    (layout) => layout.open.length === wanted.size && layout.open.every((path) => wanted.has(path)),
  );
}

/**
 * The paths to open so that the group `path` is open or closed as in `wanted`: `wanted` itself if
 * the file has its layout, otherwise those of the most similar layout; null if there is none.
 */
export function openable(
  contents: Contents,
  op: number,
  wanted: string[],
  path: string,
): string[] | null {
  if (layoutOf(contents, op, wanted)) return wanted;
  const likeness = ({ open }: Layout) =>
    open.reduce((sum, shown) => sum + (wanted.includes(shown) ? 1 : -1), 0);
  const is_open = wanted.includes(path);
  const as_asked = layoutsBeside(contents, op).filter(({ open }) => open.includes(path) === is_open);
  const best = as_asked.sort((a, b) => likeness(b) - likeness(a))[0];
  return best?.open ?? null;
}

function embeddedTensor(contents: Contents, query: URLSearchParams): EmbeddedTensor | undefined {
  const [op, slot] = [Number(query.get("op")), query.get("slot")];
  return contents.tensors.find(({ tensor }) => tensor.op === op && tensor.slot === slot);
}

/** For a tensor that is not in the file, the reason. */
function tensorOf(contents: Contents, query: URLSearchParams): Tensor {
  const found = embeddedTensor(contents, query);
  if (found) return found.tensor;
  const why = contents.is_saved ? t.report_saved : t.report_no_tensor(contents.tensors.length);
  return {
    op: Number(query.get("op")),
    slot: query.get("slot") ?? "",
    sides: { target: null, golden: null },
    missing: { target: why, golden: contents.info.golden ? why : null },
    histogram: null,
    percentiles: [],
    difference: null,
  };
}

/** The axes of the slice of a tensor that is in the file. */
export function embeddedAxes(contents: Contents, op: number, slot: string): string[] | null {
  const found = contents.tensors.find(({ tensor }) => tensor.op === op && tensor.slot === slot);
  return found?.axes ?? null;
}

function sliceOf(contents: Contents, query: URLSearchParams): ArrayBuffer {
  const found = embeddedTensor(contents, query);
  const picture = found?.pictures[query.get("side") as Side | "difference"];
  if (!found || picture === undefined || query.get("axes") !== found.axes?.join(",")) {
    throw new Error(t.report_no_slice);
  }
  if (typeof picture !== "string") throw new Error(picture.error);
  return Uint8Array.from(atob(picture), (letter) => letter.charCodeAt(0)).buffer;
}

function valuesOf(contents: Contents, query: URLSearchParams): Values {
  const found = embeddedTensor(contents, query);
  const [row, column] = [Number(query.get("row")), Number(query.get("column"))];
  const around = found?.values.find((place) => place.row === row && place.column === column);
  if (!around || query.get("axes") !== found?.axes?.join(",")) throw new Error(t.report_no_values);
  return narrowed(around.values, row, column, Number(query.get("n") ?? 5));
}

/** At most `n` rows and columns around a position. */
function narrowed(values: Values, row: number, column: number, n: number): Values {
  const [rows, columns] = [cut(values.rows, row, n), cut(values.columns, column, n)];
  const grid = (lines: Values["target"]) =>
    lines && lines.slice(...rows).map((line) => line.slice(...columns));
  return {
    rows: values.rows.slice(...rows),
    columns: values.columns.slice(...columns),
    index: values.index,
    target: grid(values.target),
    golden: grid(values.golden),
  };
}

function cut(places: number[], at: number, n: number): [number, number] {
  const most = Math.max(0, places.length - n);
  const start = Math.min(most, Math.max(0, places.indexOf(at) - Math.floor(n / 2)));
  return [start, start + n];
}
