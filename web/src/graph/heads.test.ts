import { describe, expect, it, vi } from "vitest";

vi.mock("../canvas", () => ({ font: () => "", textWidth: () => 0 }));
const { placeHeads } = await import("./heads");

describe("the heads of two graphs", () => {
  it("are over their graphs where both fit", () => {
    expect(placeHeads([200, 600], [100, 120])).toEqual([150, 540]);
  });

  it("never print over each other, however small the graphs are", () => {
    for (const centers of [[300, 310], [20, 24], [-50, -49], [5, 900]] as [number, number][]) {
      const widths: [number, number] = [150, 140];
      const [left, right] = placeHeads(centers, widths);
      expect(left).toBeGreaterThanOrEqual(0);
      expect(right - left).toBeGreaterThanOrEqual(widths[0] + 8);
    }
  });
});
