import { beforeAll, expect, test, vi } from "vitest";
import type { HandMember } from "./hand";

let hand: typeof import("./hand");

beforeAll(async () => {
  vi.stubGlobal("location", { pathname: "/token/graph", search: "" });
  hand = await import("./hand");
});

const target = (name: string, run: number | null = null): HandMember => ({
  side: "target",
  name,
  run,
});
const golden = (name: string, run: number | null = null): HandMember => ({
  side: "golden",
  name,
  run,
});

test("a mapping has names, lists of names, and runs where a name has several", () => {
  const text = hand.mappingText([
    { target: [target("/a/Gemm")], golden: [golden("/a/MatMul"), golden("/a/Add")] },
    { target: [target("add", 1)], golden: [golden("add_5", 0)] },
    { target: [target("copy")], golden: [] },
  ]);
  expect(JSON.parse(text)).toEqual({
    operators: [
      { target: "/a/Gemm", golden: ["/a/MatMul", "/a/Add"] },
      { target: "add", golden: "add_5", target_run: 1, golden_run: 0 },
      { target: "copy", golden: [] },
    ],
  });
});

test("a new pair replaces those that share an operator with it", () => {
  const first = { target: [target("a")], golden: [golden("x")] };
  const second = { target: [target("b")], golden: [golden("y")] };
  const third = { target: [target("b")], golden: [golden("x")] };
  expect(hand.withPair([first, second], third)).toEqual([third]);
  // Names are compared as in mappings, and another execution is another operator.
  const dotted = { target: [target("n.a", 1)], golden: [golden("z")] };
  const slashed = { target: [target("n/a", 0)], golden: [golden("w")] };
  expect(hand.withPair([dotted], slashed)).toEqual([dotted, slashed]);
  expect(hand.pairOf([dotted], target("n/a", 1))).toBe(dotted);
  expect(hand.pairOf([dotted], target("n/a"))).toBe(dotted);
  expect(hand.pairOf([dotted], golden("n/a", 1))).toBeNull();
});

test("what a mapping cannot say is refused", () => {
  expect(hand.refusal({ target: [], golden: [] })).toBe("nothing");
  expect(hand.refusal({ target: [target("a"), target("a", 1)], golden: [] })).toBe("twice");
  expect(hand.refusal({ target: [target("a", 1), target("b")], golden: [] })).toBe("runs");
  expect(hand.refusal({ target: [target("a", 0), target("b")], golden: [] })).toBeNull();
  expect(hand.refusal({ target: [target("a")], golden: [golden("b")] })).toBeNull();
});

test("a path is no option", () => {
  expect(hand.compareCommand("-dump", "--golden")).toContain(" ./-dump ./--golden ");
});

test("the command can be pasted into a shell", () => {
  expect(hand.compareCommand("dumps/a", "it's b")).toBe(
    "opscope compare dumps/a 'it'\\''s b' --mapping mapping.json --view",
  );
});
