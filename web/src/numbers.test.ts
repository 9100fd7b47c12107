import { expect, test } from "vitest";
import {
  formatBytes,
  formatCount,
  formatDifference,
  formatFactor,
  formatLimit,
  formatNumber,
  formatPower,
  formatRanges,
  logShare,
} from "./numbers";
import type { Num } from "./api";

test.each<[Num, string]>([
  [0, "0"],
  [-0, "0"],
  [0.08498, "0.08498"],
  [0.00162, "0.001620"],
  [0.001, "0.001000"],
  [0.000956, "9.56e−4"],
  [-0.0000033, "−3.30e−6"],
  [106.6, "106.6"],
  [999.96, "1,000"],
  [65056, "65,056"],
  [924, "924"],
  [12345.6, "12,346"],
  [1e6, "1.00e6"],
  [-2.5e-310, "−2.50e−310"],
  ["nan", "NaN"],
  ["inf", "Inf"],
  ["-inf", "−Inf"],
  [null, "–"],
])("%j reads %s", (value, text) => expect(formatNumber(value)).toBe(text));

test.each<[Num, string]>([
  [0.001, "0.001"],
  [5e-4, "5e−4"],
  [65504, "65,504"],
  [3.4e38, "3.4e38"],
])("limit %j reads %s", (value, text) => expect(formatLimit(value)).toBe(text));

test("the small formats", () => {
  expect(formatPower(-8)).toBe("1e−8");
  expect(formatPower(0)).toBe("1");
  expect(formatCount(10412)).toBe("10,412");
  expect([67.1, 1200.4, 1.04, 0.31, Infinity].map(formatFactor)).toEqual([
    "67×",
    "1,200×",
    "1.0×",
    "0.31×",
    "Inf",
  ]);
  expect(formatDifference(1, 1)).toBe("=");
  expect(formatDifference("nan", "nan")).toBe("=");
  expect(formatDifference(0.2773, 0.1617)).toBe("+0.1156");
  expect(formatDifference(null, 1)).toBe("–");
  expect([512, 1000, 1.9e9].map(formatBytes)).toEqual(["512 B", "1 kB", "1.9 GB"]);
  expect(
    formatRanges(
      [
        [37, 37],
        [0, 127],
        [0, 1],
      ],
      [128, 128, 3],
    ),
  ).toBe("[37, :, 0:2]");
  expect([0, 1e-8, 1e-4, 7, NaN].map((x) => logShare(x))).toEqual([0, 0, 0.5, 1, 1]);
});
