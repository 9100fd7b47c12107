import { beforeAll, expect, test, vi } from "vitest";
import type { Scalars, ScalarSeries } from "../api";
import type { StepGrid } from "./grid";

let scalar: typeof import("./scalar");
let chart: typeof import("./scalar-chart");

beforeAll(async () => {
  vi.stubGlobal("location", { pathname: "/token/steps", search: "" });
  vi.stubGlobal("addEventListener", () => undefined);
  vi.stubGlobal("document", { documentElement: {} });
  vi.stubGlobal("getComputedStyle", () => ({ getPropertyValue: () => "" }));
  scalar = await import("./scalar");
  chart = await import("./scalar-chart");
});

const gridOf = (columns: [number, number][]) => ({ columns, n_columns: columns.length }) as StepGrid;

function series(values: (number | null)[], marks: string): ScalarSeries {
  return { low: values, high: values, marks, ids: values.map((_, i) => 10 + i) };
}

function answer(target: ScalarSeries, golden: ScalarSeries | null = null): Scalars {
  return {
    total: 1,
    choices: [{ id: 0, op_type: "Mean", op_name: "head/loss", slot: "out0", dtype: "float32" }],
    chosen: 0,
    columns: target.low.map((_, i) => [i, i]),
    target,
    golden,
  };
}

test("a curve follows the columns of the grid, which may be folded", () => {
  const found = answer(series([4, 2, 8, null, null, null], "000nnn"));
  const grid = gridOf([
    [0, 0],
    [1, 1],
    [2, 2],
    [3, 5],
  ]);
  const curve = scalar.curveOf(found, grid)!;
  expect(curve.name).toBe("head/loss");
  expect(curve.points.map((point) => point.high)).toEqual([4, 2, 8, null]);
  expect(curve.points[3]).toMatchObject({ bad: "nan", id: 13 });
  expect(chart.badWords(curve.points, grid)).toBe("NaN in step 3");
  expect(chart.curveWords(curve, grid)).toContain("from 2.000 to 8.000".replace(/\.000/g, ""));
});

test("steps that share a column keep the least and the most", () => {
  const found = answer(series([4, 2, 8, 1], "00i0"));
  const curve = scalar.curveOf(found, gridOf([[0, 3]]))!;
  expect(curve.points).toEqual([{ low: 1, high: 8, bad: "inf", id: 12, golden: null }]);
  expect(scalar.scalarText(curve.points[0])).toBe("Inf, 1 … 8");
});

test("what is not known is no curve", () => {
  const grid = gridOf([[0, 0]]);
  expect(scalar.curveOf(answer(series([null], "-")), grid)).toBeNull();
  expect(scalar.curveOf({ ...answer(series([1], "0")), chosen: null }, grid)).toBeNull();
});

test("NaN to the end is told from NaN in between", () => {
  const grid = gridOf([
    [0, 0],
    [1, 1],
    [2, 2],
  ]);
  const words = (marks: string, values: (number | null)[]) =>
    chart.badWords(scalar.curveOf(answer(series(values, marks)), grid)!.points, grid);
  expect(words("0nn", [1, null, null])).toBe("NaN from step 1");
  expect(words("0n0", [1, null, 1])).toBe("NaN in step 1");
  expect(words("00i", [1, 2, null])).toBe("Inf in step 2");
  expect(words("000", [1, 2, 3])).toBe("");
});

test.each([
  [[1, 100], true, [1, 10, 100]],
  [[-1, 1], false, [-1, 0, 1]],
  [[4, 4], false, [4, 6]],
  [[0.2, 0.9], false, [0, 0.5, 1]],
])("the axis of %j", (values, is_log, ticks) => {
  const points = values.map((x) => ({ low: x, high: x, bad: null, id: 0, golden: null }));
  const axis = chart.axisOf(points);
  expect(axis.is_log).toBe(is_log);
  axis.ticks.forEach((tick, i) => expect(tick).toBeCloseTo(ticks[i], 9));
  expect(axis.ticks.length).toBe(ticks.length);
});
