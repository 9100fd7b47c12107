/** Number formatting, identical in both languages. */

import type { Num } from "./api";

const MINUS = "−";

/** The value as a float; the server sends numbers that JSON lacks as text. `null` stays unknown. */
export function toFloat(value: Num | undefined): number | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "number") return value;
  return value === "nan" ? NaN : value === "inf" ? Infinity : -Infinity;
}

/** Four significant digits: `0.08498`, `65,056`, `9.56e−4`, `NaN`, and `–` if unknown. */
export function formatNumber(value: Num | undefined): string {
  const x = toFloat(value);
  if (x === null) return "–";
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "Inf" : `${MINUS}Inf`;
  if (x === 0) return "0";
  const size = Math.abs(x);
  const sign = x < 0 ? MINUS : "";
  if (size < 0.001 || size >= 1e6) return sign + scientific(size, 2);
  if (Number.isInteger(size) || size >= 9999.5) return sign + formatCount(Math.round(size));
  const rounded = size.toPrecision(4);
  // Rounding may reach the next power of ten, as for 999.96.
  return sign + (rounded.includes("e") ? formatCount(Number(rounded)) : group(rounded));
}

/** A limit or a tick with only its significant digits: `0.001`, `5e−4`, `65,504`. */
export function formatLimit(value: Num | undefined): string {
  const x = toFloat(value);
  if (x === null || !Number.isFinite(x) || x === 0) return formatNumber(value);
  const size = Math.abs(x);
  const sign = x < 0 ? MINUS : "";
  if (size >= 1e6 || size < 0.001) {
    const [digits, exponent] = size.toExponential(2).split("e");
    return `${sign}${Number(digits)}e${trueMinus(exponent)}`;
  }
  return sign + group(String(Number(size.toPrecision(5))));
}

/** A power of ten on an axis: `1e−8`, `1`, `1,000`. */
export function formatPower(exponent: number): string {
  if (exponent >= -1 && exponent < 4) return formatLimit(10 ** exponent);
  return `1e${trueMinus(String(exponent))}`;
}

export function formatCount(n: number | null | undefined): string {
  if (n === null || n === undefined) return "–";
  return group(String(Math.round(n)));
}

/** `67×`: two digits, integers from 10 on. */
export function formatFactor(factor: number): string {
  if (!Number.isFinite(factor)) return Number.isNaN(factor) ? "NaN" : "Inf";
  if (factor >= 1e6) return `${scientific(factor, 1)}×`;
  if (factor >= 10) return `${formatCount(factor)}×`;
  return `${factor >= 0.95 ? factor.toFixed(1) : Number(factor.toPrecision(2))}×`;
}

/** A signed difference; `=` if there is none. */
export function formatDifference(target: Num | undefined, golden: Num | undefined): string {
  const a = toFloat(target);
  const b = toFloat(golden);
  if (a === null || b === null) return "–";
  if (Object.is(a, b) || a === b) return "=";
  const text = formatNumber(a - b);
  return a - b > 0 && text !== "Inf" ? `+${text}` : text;
}

/** Bytes in powers of ten: `1.90 GB`. */
export function formatBytes(n: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  let size = n;
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return unit === 0 ? `${formatCount(n)} B` : `${Number(size.toPrecision(3))} ${units[unit]}`;
}

export function formatShare(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

export function formatShape(shape: number[] | null | undefined): string {
  if (!shape) return "–";
  return shape.length === 0 ? "scalar" : shape.join("×");
}

export function formatIndex(index: number[]): string {
  return `[${index.join(", ")}]`;
}

/** The bounding box of differing elements in array notation: `[37, :, 0:4]`. */
export function formatRanges(ranges: [number, number][], shape: number[] | null): string {
  const parts = ranges.map(([first, last], axis) => {
    if (first === last && shape?.[axis] !== 1) return String(first);
    if (shape && first === 0 && last === shape[axis] - 1) return ":";
    return `${first}:${last + 1}`;
  });
  return `[${parts.join(", ")}]`;
}

/** Whether a bounding box leaves out any of `n_elements` elements. */
export function isPart(ranges: [number, number][], n_elements: number): boolean {
  const n = ranges.reduce((product, [first, last]) => product * (last + 1 - first), 1);
  return n < n_elements;
}

/** Plain ASCII with all digits, for the clipboard. */
export function plainNumber(value: Num | undefined): string {
  return value === null || value === undefined ? "" : String(value);
}

/** The position of a size on the axis 1e−8 … 1, from 0 to 1; zero and less map to 0. */
export function logShare(value: number, low = -8, high = 0): number {
  if (Number.isNaN(value)) return 1;
  if (!(value > 0)) return 0;
  return Math.min(1, Math.max(0, (Math.log10(value) - low) / (high - low)));
}

function scientific(size: number, decimals: number): string {
  const [digits, exponent] = size.toExponential(decimals).split("e");
  return `${digits}e${trueMinus(exponent)}`;
}

function trueMinus(exponent: string): string {
  return exponent.replace("+", "").replace("-", MINUS);
}

function group(digits: string): string {
  const [whole, rest] = digits.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}
