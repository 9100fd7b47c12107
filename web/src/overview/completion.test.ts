import { expect, test } from "vitest";
import { completed, completionAt } from "./completion";

test.each<[string, string[]]>([
  ["st", ["status:", "step:"]],
  ["type:Conv re", ["rel_l2>"]],
  ["-sta", ["-status:"]],
  ["status:", ["status:fail", "status:warn", "status:pass", "status:skip"]],
  ["status:f", ["status:fail"]],
  ["fault:yes", []],
  ["conv", []],
  ["", []],
])("%j may go on with %j", (text, words) => {
  expect(completionAt(text, text.length, true)?.words ?? []).toEqual(words);
});

test("one dump has no errors to filter by", () => {
  expect(completionAt("rel", 3, false)).toBeNull();
});

test("a word takes the place of what was typed", () => {
  const at = (text: string) => completionAt(text, text.length, true)!;
  expect(completed("a sta", at("a sta"), "status:")).toBe("a status:");
  expect(completed("a status:f", at("a status:f"), "status:fail")).toBe("a status:fail ");
});
