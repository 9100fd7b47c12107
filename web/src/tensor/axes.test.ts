import { expect, test } from "vitest";
import {
  axesInForce,
  axesThrough,
  defaultAxes,
  differenceWords,
  indexAt,
   onlyRow,
  placeOf,
  withRole,
} from "./axes";

test.each([
  [[], false, []],
  [[7], false, ["c"]],
  [[3, 4], true, ["r", "c"]],
  [[2, 128, 12, 12], false, ["1", "r", "c", "c"]],
  [[128, 64, 3, 3], true, ["r", "c", "2", "2"]],
])("the first picture of %j", (shape, is_parameter, axes) => {
  expect(defaultAxes(shape, is_parameter, [1, 37, 2, 2])).toEqual(axes);
});

test("exchanged axes are rows and columns, so that both arrangements can be seen", () => {
  expect(defaultAxes([32, 16, 3, 3], true, [2, 3, 1, 2], [0, 1, 3, 2])).toEqual(["2", "3", "r", "c"]);
  expect(defaultAxes([32, 16, 3, 3], true, [2, 3, 1, 2], [1, 2, 0, 3])).toEqual(["r", "c", "1", "2"]);
});

test("a box is named only where it is smaller than the tensor", () => {
  const difference = (ranges: [number, number][], n_differing: number) => ({
    n_equal: 12 - n_differing,
    n_differing,
    n_elements: 12,
    max_abs: 1,
    ranges,
    powers: { first: 0, counts: [] },
    limit: null,
    worst: [],
  });
  expect(differenceWords(difference([[0, 2], [0, 3]], 9), [3, 4])).toBe("9 of 12 elements differ.");
  expect(differenceWords(difference([[1, 1], [0, 3]], 4), [3, 4])).toContain("[1, :]");
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
