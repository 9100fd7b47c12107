/** The roles of a tensor's axes in its picture: rows, columns, or a fixed index. */

import type { Difference } from "../api";
import { formatRanges, isPart } from "../numbers";
import { t } from "../texts";

/** `r`, `c`, or an index; one for each axis. */
export type AxisRole = string;

/** The initial view of a tensor: all of it, if that makes a readable picture. */
export function defaultAxes(
  shape: number[],
  is_parameter: boolean,
  at: number[] | null,
  order: number[] | null = null,
): AxisRole[] {
  const index = (axis: number) => String(Math.min(at?.[axis] ?? 0, Math.max(0, shape[axis] - 1)));
  const n = shape.length;
  if (n === 0) return [];
  if (n === 1) return ["c"];
  if (n === 2) return ["r", "c"];
  // Exchanged axes side by side: one side's picture is then the other's, mirrored at its diagonal.
  const moved = order?.length === n ? shape.flatMap((_, k) => (order[k] === k ? [] : [k])) : [];
  if (moved.length === 2)
    return shape.map((_, axis) =>
      axis === moved[0] ? "r" : axis === moved[1] ? "c" : index(axis),
    );
  if (is_parameter)
    return shape.map((_, axis) => (axis === 0 ? "r" : axis === 1 ? "c" : index(axis)));
  if (n === 3) return [index(0), "r", "c"];
  // For an N C H W activation, channels are rows, and positions are columns.
  return shape.map((_, axis) => (axis < n - 3 ? index(axis) : axis === n - 3 ? "r" : "c"));
}

/** The axes of the address if they fit the tensor, otherwise the default. */
export function axesInForce(
  asked: AxisRole[] | null,
  shape: number[],
  is_parameter: boolean,
  at: number[] | null,
  order: number[] | null = null,
): AxisRole[] {
  const fits =
    asked !== null &&
    asked.length === shape.length &&
    (asked.includes("c") || shape.length === 0) &&
    asked.every((role, axis) => role === "r" || role === "c" || Number(role) < shape[axis]);
  return fits ? asked : defaultAxes(shape, is_parameter, at, order);
}

/** Sets one axis to a role, keeping at least one axis for columns. */
export function withRole(axes: AxisRole[], axis: number, role: AxisRole): AxisRole[] {
  const next = axes.map((old, i) => (i === axis ? role : old));
  if (next.includes("c")) return next;
  const rows = next.lastIndexOf("r");
  if (rows >= 0 && rows !== axis) return next.map((old, i) => (i === rows ? "c" : old));
  return axes;
}

/** The index of the element in row `row` and column `column` of the whole picture. */
export function indexAt(axes: AxisRole[], shape: number[], row: number, column: number): number[] {
  const index = axes.map((role) => (role === "r" || role === "c" ? 0 : Number(role)));
  for (const [role, place] of [
    ["r", row],
    ["c", column],
  ] as const) {
    let rest = place;
    for (let axis = axes.length - 1; axis >= 0; axis -= 1) {
      if (axes[axis] !== role) continue;
      index[axis] = rest % shape[axis];
      rest = Math.floor(rest / shape[axis]);
    }
  }
  return index;
}

/** The row and column of an element, or null if the picture shows another index. */
export function placeOf(
  axes: AxisRole[],
  shape: number[],
  index: number[],
): { row: number; column: number } | null {
  const place = { row: 0, column: 0 };
  for (let axis = 0; axis < axes.length; axis += 1) {
    if (axes[axis] === "r") place.row = place.row * shape[axis] + index[axis];
    else if (axes[axis] === "c") place.column = place.column * shape[axis] + index[axis];
    else if (Number(axes[axis]) !== index[axis]) return null;
  }
  return place;
}

/** Moves the fixed axes to the position of `index`. */
export function axesThrough(axes: AxisRole[], index: number[]): AxisRole[] {
  return axes.map((role, axis) => (role === "r" || role === "c" ? role : String(index[axis])));
}

/** `[rows 0, cols 1, 1, 1]` in array notation. */
export function axesWords(axes: AxisRole[], rows: string, columns: string): string {
  const words = axes.map((role) => (role === "r" ? rows : role === "c" ? columns : role));
  return `[${words.join(", ")}]`;
}

/** The one row of the picture that contains all differences, if so. */
export function onlyRow(
  axes: AxisRole[],
  shape: number[],
  ranges: [number, number][] | null,
): number | null {
  const rows = axes.flatMap((role, axis) => (role === "r" ? [axis] : []));
  if (!ranges || rows.length !== 1) return null;
  const [first, last] = ranges[rows[0]] ?? [0, 1];
  return first === last && shape[rows[0]] > 2 ? first : null;
}

/** How many elements differ, and where, if not everywhere. */
export function differenceWords(difference: Difference, shape: number[] | null): string {
  const { n_differing, n_elements, ranges } = difference;
  if (n_differing === 0) return t.all_equal;
  return ranges !== null && isPart(ranges, n_elements)
    ? t.all_differ_in(n_differing, formatRanges(ranges, shape))
    : t.n_differ(n_differing, n_elements);
}
