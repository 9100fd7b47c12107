import { beforeAll, expect, test, vi } from "vitest";
import type { DumpEvent, OverflowUnit } from "../api";

let words: typeof import("./words");
let status: typeof import("./status");

beforeAll(async () => {
  vi.stubGlobal("location", { pathname: "/token/events", search: "" });
  vi.stubGlobal("addEventListener", () => undefined);
  words = await import("./words");
  status = await import("./status");
});

const KNOWN = [0x8, 0x10, 0x20, 0x80, 0x100, 0x400];

function unit(name: string, registers: number[], more: Partial<OverflowUnit> = {}): OverflowUnit {
  const hex = registers.map((word) => `0x${word.toString(16)}`);
  return {
    unit: name,
    status: hex.length === 1 ? hex[0] : `[${hex.join(", ")}]`,
    words: hex,
    causes: [],
    bits: KNOWN.map((bit) => ({ bit, is_set: (registers[0] & bit) !== 0 })),
    other_bits: [],
    task: 7,
    stream: 0,
    context: null,
    thread: null,
    ...more,
  };
}

test.each([
  [unit("AI Core", [0x400]), "0x400", "accumulation"],
  [unit("AI Core", [0x110]), "0x110", "integer + to float16"],
  [unit("AIC", [0x22], { other_bits: ["0x2"] }), "0x22", "float + 0x2 not documented"],
  [unit("AIV", [0, 0, 6, 0]), "[0x0, 0x0, 0x6, 0x0]", "0x6 not documented"],
  [
    unit("L2 Atomic Add", [1], { bits: null }),
    "0x1",
    "L2 Atomic Add: an atomic addition overflowed",
  ],
])("the status of %j", (found, text, meaning) => {
  expect(status.overflowWords({ units: [found] })).toEqual({ status: text, words: meaning });
});

test("times are told to the microsecond", () => {
  expect(words.isoTime(1700000000000001)).toBe("2023-11-14 22:13:20.000001");
  expect(words.timeOfDay(1700000000999999)).toBe("22:13:20.999999");
  expect(words.timeOfDay(null)).toBe("–");
  expect(words.isoTime(1e18)).toBe("1000000000000000000");
});

test("ranges are inclusive, and the others are counted", () => {
  expect(words.rangesWords([[28, 36]], 1)).toBe("bytes 28 to 35");
  expect(words.rangesWords([[28, 29]], 3)).toBe("byte 28 and 2 more ranges");
  const overwrite = { watched: "x\u202e", slot: "out0", ranges: [[0, 4]], n_ranges: 1 };
  const event = { overflow: null, overwrite } as unknown as DumpEvent;
  expect(words.whatWords(event)).toBe("x⟨RLO⟩ output 0 · bytes 0 to 3");
});
