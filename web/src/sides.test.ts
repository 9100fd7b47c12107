import { describe, expect, it } from "vitest";
import { distinctSides } from "./sides";

const side = (path: string) => ({ path, name: path.split("/").pop()! });

describe("captions of two dumps", () => {
  it("are their names, or the ends of their paths if the names are equal", () => {
    const cases: [string, string, [string, string] | null][] = [
      ["/a/npu", "/a/cpu", ["npu", "cpu"]],
      ["/a/npu/dump", "/a/cpu/dump", ["npu/dump", "cpu/dump"]],
      ["/a/x/1/dump", "/b/x/1/dump", ["a/x/1/dump", "b/x/1/dump"]],
      ["/a/dump", "/a/dump", null],
      ["dump", "/a/dump", null],
    ];
    for (const [a, b, expected] of cases) expect(distinctSides(side(a), side(b))).toEqual(expected);
  });
});
