import { expect, test } from "vitest";
import type { Row } from "../api";
import cases from "./filter-cases.json";
import { parseFilter } from "./filter";

const rows = cases.rows as unknown as Row[];

test.each(cases.accepted)("$filter accepts what it says", ({ filter, ids }) => {
  const accepts = parseFilter(filter);
  if (typeof accepts !== "function") throw new Error(accepts.message);
  expect(rows.filter(accepts).map((row) => row.id)).toEqual(ids);
});

test.each(cases.mistakes)("$filter is a mistake", ({ filter, ...mistake }) => {
  expect(parseFilter(filter)).toEqual(mistake);
});

test("a filter has no more than 64 conditions", () => {
  expect(parseFilter("a ".repeat(64))).toBeTypeOf("function");
  expect(parseFilter("a ".repeat(65))).toMatchObject({ message: "more than 64 conditions" });
});
