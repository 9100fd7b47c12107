import { describe, expect, it, vi } from "vitest";

vi.mock("../canvas", () => ({}));
const { columnWidth, evenAxis } = await import("./trace-draw");

describe("the trace", () => {
  it("has ticks at equal distances", () => {
    for (const [low, high] of [[-2, 1], [26, 39], [-1, 9], [-8, 0]]) {
      const { ticks } = evenAxis(low, high);
      expect(ticks[1] - ticks[0]).toBe(ticks[2] - ticks[1]);
      expect(ticks.every(Number.isInteger)).toBe(true);
      expect(ticks[0]).toBeLessThanOrEqual(low);
    }
  });

  it("has columns of a limited width", () => {
    expect([300, 30, 5, 1, 0.2].map(columnWidth)).toEqual([36, 28, 4, 1, 1]);
  });
});
