import { expect, test } from "vitest";
import type { Num, Steps } from "../api";
import {
  baselineOf,
  cellOf,
  firstBad,
  growthOf,
  neighbourOf,
  scaleOf,
  shareOf,
  stepGrid,
} from "./grid";

function answerOf(values: Num[][], marks: string[], ids?: number[]): Steps {
  const n = values[0]?.length ?? 0;
  return {
    n_operators: values.length,
    by: "step",
    n_columns: n,
    steps: Array.from({ length: n }, (_, i) => i),
    ranks: [0],
    rows: values.map((_, i) => ({ op_type: "Linear", op_name: `op${i}`, n: 1 })),
    columns: Array.from({ length: n }, (_, i) => [i, i]),
    values: values.flat(),
    marks: marks.join(""),
    ids: ids ?? values.flatMap((row, r) => row.map((_, c) => c * values.length + r)),
  };
}

test.each([
  // The first third of six steps is two.
  [[2, 4, 100, 100, 100, 100], 3],
  [[5], 5],
  // Unknown and non-finite values are ignored.
  [[null, 4, NaN, 100, 100, 100], 4],
  [[Infinity, NaN, NaN], null],
  // A series that begins with zeros is measured by all its known values.
  [[0, 0, 0, 0, 6, 8], 7],
  [[null, null, 3], 3],
  [[0, 0, 0], null],
  [[], null],
])("the baseline of %j is %s", (values, expected) => {
  expect(baselineOf(values)).toBe(expected);
});

test.each([
  [6, 3, 2],
  [0, 3, 0],
  [NaN, 3, null],
  [Infinity, 3, null],
  [null, 3, null],
  [6, null, null],
])("%s over %s grew by %s", (value, baseline, expected) => {
  expect(growthOf(value, baseline)).toBe(expected);
});

test("colour is growth over the own median, whatever the size", () => {
  const values = [
    [1e-3, 1e-3, 1e-3, 1e-3, 1e-1, 1e1],
    [1e5, 1e5, 1e5, 1e5, 1e5, 1e4],
  ];
  const grid = stepGrid(answerOf(values, ["000000", "000000"]));
  const scale = scaleOf(grid, "growth", false);
  const shares = values.flat().map((_, i) => Number(shareOf(grid, i, scale).toFixed(6)));
  expect(shares).toEqual([0, 0, 0, 0, 0.5, 1, 0, 0, 0, 0, 0, 0]);
});

test.each([
  [true, { low: -8, high: 0 }],
  [false, { low: -3, high: 2 }],
])("absolute scale of two sides: %s", (is_pair, ends) => {
  const grid = stepGrid(answerOf([[2e-3, 0, "nan", "inf", 80, null]], ["00ni0-"]));
  expect(scaleOf(grid, "absolute", is_pair)).toEqual({ kind: "absolute", ...ends });
});

test("errors lie on the axis of errors", () => {
  const grid = stepGrid(answerOf([[0, 1e-8, 1e-4, 1, 50]], ["00000"]));
  const scale = scaleOf(grid, "absolute", true);
  expect(grid.values.map((_, i) => shareOf(grid, i, scale))).toEqual([0, 0, 0.5, 1, 1]);
});

test.each([
  // The server's letters take precedence over the number.
  ["x", 5, "fault"],
  ["i", 5, "inf"],
  ["-", null, "none"],
  ["0", 5, "finite"],
  ["0", "inf", "inf"],
  ["0", null, "none"],
  ["n", null, "first_nan"],
] as [string, Num, string][])("mark %s with %s is %s", (mark, value, kind) => {
  expect(stepGrid(answerOf([[value]], [mark])).kinds).toEqual([kind]);
});

test("with a culprit no NaN is the first", () => {
  const grid = stepGrid(answerOf([[1, null], [1, null]], ["0x", "0n"]));
  expect(grid.kinds).toEqual(["finite", "fault", "finite", "nan"]);
});

test("the first bad cell is found by step, and in its step the culprit", () => {
  const marks = ["000n", "00nn", "00xn"];
  const values = [1, 2, 3].map(() => [1, 1, 1, 1]);
  expect(firstBad(stepGrid(answerOf(values, marks)), null)).toBe(10);
  const pair = answerOf([[1e-8, 1e-8, 0.2]], ["000"]);
  expect(firstBad(stepGrid(pair), 1e-3)).toBe(2);
  expect(firstBad(stepGrid(pair), null)).toBe(null);
});

test("steps that are NaN throughout fold at the end", () => {
  const n = 20;
  const row = Array.from({ length: n }, (): Num => 1);
  const marks = `${"0".repeat(8)}${"n".repeat(12)}`;
  const grid = stepGrid(answerOf([row, row], [marks, marks]));
  expect(grid.n_columns).toBe(13);
  expect(grid.folded).toBe(12);
  expect(grid.columns[12]).toEqual([12, 19]);
  expect(grid.ids).toHaveLength(26);
  // A short tail stays as it is.
  const short = `${"0".repeat(15)}${"n".repeat(5)}`;
  expect(stepGrid(answerOf([row, row], [short, short])).folded).toBe(null);
});

test("an operator is found by id, and else by name and step", () => {
  const grid = stepGrid(answerOf([[1, 1], [1, 1]], ["00", "00"]));
  expect(cellOf(grid, 3, null)).toBe(3);
  const owner = { id: 77, op_type: "Linear", op_name: "op1", step: 0, rank: 0 };
  expect(cellOf(grid, 77, owner)).toBe(2);
  expect(cellOf(grid, 77, null)).toBe(null);
  expect(cellOf(grid, 77, { ...owner, step: 9, rank: 0 })).toBe(null);
});

test("moving passes over cells where nothing ran", () => {
  const grid = stepGrid(answerOf([[1, null, 1]], ["0-0"], [5, 0, 7]));
  expect(neighbourOf(grid, 0, 0, 1)).toBe(2);
  expect(neighbourOf(grid, 2, 0, 1)).toBe(null);
  expect(neighbourOf(grid, 0, 1, 0)).toBe(null);
});

test("nothing at all is a grid without cells", () => {
  const grid = stepGrid(answerOf([], []));
  expect([grid.n_rows, grid.n_columns, firstBad(grid, 1)]).toEqual([0, 0, null]);
});

test("ranks are measured by all of them, and none is the first", () => {
  const answer = { ...answerOf([[1, 1, 50, 1], [NaN, 1, 1, 1]], ["0000", "n000"]), by: "rank" as const };
  const grid = stepGrid(answer);
  expect(grid.baselines[0]).toBe(1);
  expect(growthOf(grid.values[2], grid.baselines[0])).toBe(50);
  expect(grid.kinds[4]).toBe("nan");
  expect(firstBad(grid, null)).toBeNull();
  const owner = { id: 99, op_type: "Linear", op_name: "op1", step: 7, rank: 2 };
  expect(cellOf(grid, 99, owner)).toBe(6);
});
