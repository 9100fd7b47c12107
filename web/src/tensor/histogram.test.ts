import { expect, it, vi } from "vitest";

vi.mock("../canvas", () => ({}));
const { valueAxis } = await import("./histogram");

it("draws the end of a dtype where elements come near it", () => {
  const axis = (low: number, high: number, dtype: string | null) => {
    const histogram = { low, high, target: [], golden: null };
    return valueAxis(histogram, dtype);
  };
  expect(axis(-1, 100_000, "float16")).toEqual({ low: -1, high: 100_000, ends: [65504] });
  expect(axis(-60_000, 9_000, "float16")).toEqual({
    low: -65504,
    high: 65504,
    ends: [65504, -65504],
  });
  expect(axis(-1, 3, "float16").ends).toEqual([]);
  expect(axis(-1, 3, null).ends).toEqual([]);
});
