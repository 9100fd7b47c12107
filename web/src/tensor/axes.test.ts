import { expect, test } from "vitest";
import { axesInForce, axesThrough, defaultAxes, indexAt, onlyRow, placeOf, withRole } from "./axes";

test.each([
  [[], false, []],
  [[7], false, ["c"]],
  [[3, 4], true, ["r", "c"]],
  [[2, 128, 12, 12], false, ["1", "r", "c", "c"]],
  [[128, 64, 3, 3], true, ["r", "c", "2", "2"]],
])("the first picture of %j", (shape, is_parameter, axes) => {
  expect(defaultAxes(shape, is_parameter, [1, 37, 2, 2])).toEqual(axes);
});

test("an element and its place are each other's inverse", () => {
  const shape = [2, 5, 3, 4];
  const axes = ["1", "r", "c", "c"];
  expect(indexAt(axes, shape, 4, 11)).toEqual([1, 4, 2, 3]);
  expect(placeOf(axes, shape, [1, 4, 2, 3])).toEqual({ row: 4, column: 11 });
  expect(placeOf(axes, shape, [0, 4, 2, 3])).toBeNull();
  expect(axesThrough(axes, [0, 4, 2, 3])).toEqual(["0", "r", "c", "c"]);
});

test("axes that do not fit give way to the default", () => {
  expect(axesInForce(["r", "9"], [3, 4], false, null)).toEqual(["r", "c"]);
  expect(axesInForce(["c", "r"], [3, 4], false, null)).toEqual(["c", "r"]);
});

test("a picture keeps its columns", () => {
  expect(withRole(["r", "c"], 1, "0")).toEqual(["c", "0"]);
  expect(withRole(["c"], 0, "0")).toEqual(["c"]);
});

test("a row is named only if the box of differences is one row thin", () => {
  const box: [number, number][] = [
    [37, 37],
    [0, 9],
  ];
  expect(onlyRow(["r", "c"], [64, 10], box)).toBe(37);
  expect(onlyRow(["c", "r"], [64, 10], box)).toBeNull();
  expect(onlyRow(["r", "r"], [64, 10], box)).toBeNull();
  expect(onlyRow(["r", "c"], [64, 10], null)).toBeNull();
});
