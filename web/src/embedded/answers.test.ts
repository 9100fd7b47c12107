import { expect, test } from "vitest";
import type { Graph, Row, Steps, Trace } from "../api";
import { openable } from "./answers";
import type { Contents, Layout } from "./contents";
import { operatorsAnswer } from "./operators";
import { stepsAnswer } from "./steps";
import { traceAnswer } from "./trace";

function row(id: number, change: Partial<Row>): Row {
  return {
    id,
    op_type: "Add",
    op_name: `/a/${id}`,
    rank: null,
    step: null,
    call: 0,
    status: "pass",
    at_fault: false,
    cause: null,
    error: null,
    added: null,
    inputs: null,
    entry: null,
    golden: null,
    n_target: 1,
    n_golden: 1,
    max_abs: null,
    headroom: null,
    n_nan: null,
    n_inf: null,
    note: null,
    dtype: null,
    shape: null,
    ...change,
  };
}

const rows = [
  row(0, { error: 0.5, op_name: "b", status: "fail" }),
  row(1, { error: null, op_name: "a", status: "skip" }),
  row(2, { error: "nan", op_name: "\u{1f600}", status: "warn" }),
  row(3, { error: 0.25, op_name: "\uffff", status: "warn", at_fault: true }),
];

test.each([
  ["order", [0, 1, 2, 3]],
  ["-order", [3, 2, 1, 0]],
  // Unknown values come last in either direction, and NaN is larger than any other number.
  ["error", [3, 0, 2, 1]],
  ["-error", [2, 0, 3, 1]],
  // By characters; those beyond 16 bits come last.
  ["name", [1, 0, 3, 2]],
  ["guilt", [3, 0, 2, 1]],
])("operators are sorted by %s", (sort, ids) => {
  const answer = operatorsAnswer(rows, 9, new URLSearchParams({ sort, find: "3" }));
  expect(answer.rows.map(({ id }) => id)).toEqual(ids);
  expect(answer).toMatchObject({ total: 9, matching: 4, find: ids.indexOf(3), error: null });
});

test("operators are given by pages", () => {
  const query = new URLSearchParams({ offset: "1", limit: "2", q: "-status:skip", find: "1" });
  const answer = operatorsAnswer(rows, 4, query);
  expect(answer.rows.map(({ id }) => id)).toEqual([2, 3]);
  expect(answer).toMatchObject({ matching: 3, find: null });
  expect(rows.map(({ id }) => id)).toEqual([0, 1, 2, 3]);
});

test("columns of the trace show the worst, and the culprit", () => {
  const whole = { added: [], limit: 0.001 } as unknown as Trace;
  expect(traceAnswer(rows, whole, 2)).toEqual({
    n: 4,
    columns: 2,
    value: [0.5, "nan"],
    added: [null, null],
    status: "fw",
    nan: "00",
    first: [0, 3],
    faults: [[1, 3]],
    limit: 0.001,
    labels: [
      { at: 0, text: "b" },
      { at: 1, text: "\uffff" },
    ],
  });
});

test("cells of steps show the largest, and the culprit", () => {
  const executions = [0, 1, 2].flatMap((step) =>
    ["x", "y"].map((op_name, i) =>
      row(step * 2 + i, {
        op_name,
        step,
        max_abs: step + i,
        n_nan: i === 1 && step === 2 ? 3 : 0,
        at_fault: i === 0 && step === 1,
      }),
    ),
  );
  const size = { rows: 2, columns: 2, rank: null, step: null, by: "step" as const };
  const answer: Steps = stepsAnswer(executions, executions, false, size);
  expect(answer).toEqual({
    n_operators: 2,
    by: "step",
    n_columns: 3,
    steps: [0, 1, 2],
    ranks: [null],
    rows: [
      { op_type: "Add", op_name: "x", n: 1 },
      { op_type: "Add", op_name: "y", n: 1 },
    ],
    columns: [
      [0, 1],
      [2, 2],
    ],
    values: [1, 2, 2, 3],
    marks: "x00n",
    ids: [2, 4, 3, 5],
  });
});

test("operators over ranks have a column for each, of one step or all", () => {
  const executions = [0, 1].flatMap((step) =>
    [3, 5].map((rank, i) =>
      row(step * 2 + i, { op_name: "x", step, rank, max_abs: 10 * step + rank }),
    ),
  );
  const size = { rows: 9, columns: 9, rank: null, by: "rank" as const };
  const of_step = (step: number | null) =>
    stepsAnswer(executions, executions, false, { ...size, step });
  expect(of_step(null)).toMatchObject({
    by: "rank",
    n_columns: 2,
    steps: [0, 1],
    ranks: [3, 5],
    columns: [
      [3, 3],
      [5, 5],
    ],
    values: [13, 15],
    ids: [2, 3],
  });
  expect(of_step(0)).toMatchObject({ n_columns: 2, steps: [0, 1], values: [3, 5], ids: [0, 1] });
});

test("a group opens with all others, or alone, or not at all", () => {
  const layout = (...open: string[]): Layout => ({ rank: null, step: null, open, graph: {} as Graph });
  const contents = {
    rows,
    graphs: [layout("a", "a/b"), layout("a"), layout(), layout("c")],
  } as unknown as Contents;
  expect(openable(contents, 0, ["a", "a/b"], "a/b")).toEqual(["a", "a/b"]);
  // With `a` open too there is no layout.
  expect(openable(contents, 0, ["a", "c"], "c")).toEqual(["c"]);
  expect(openable(contents, 0, ["a", "d"], "d")).toBeNull();
  // Closed again, with its surroundings.
  expect(openable(contents, 0, ["a"], "a/b")).toEqual(["a"]);
  expect(openable(contents, 0, [], "a")).toEqual([]);
});
