/** Positions of the heat map's cells, and names of its rows and columns. */

import { font, textWidth } from "../canvas";
import { plainName } from "../name";
import type { ShortName } from "../names";
import { formatCount } from "../numbers";
import { t } from "../texts";
import type { StepGrid } from "./grid";

const TOP = 22;
const FOOT = 38;
const RIGHT = 14;
const CELL_HEIGHT_MAX = 26;
const CELL_WIDTH_MAX = 110;

export interface StepLayout {
  left: number;
  top: number;
  cell_width: number;
  cell_height: number;
  width: number;
  height: number;
}

export interface RowName extends ShortName {
  /** Whether it is the name of the selected or faulty operator rather than just the row's first. */
  is_exact: boolean;
  /** Number of other operators in the row. */
  n_others: number;
}

export function stepLayout(
  width: number,
  height: number,
  grid: StepGrid,
  names: RowName[],
): StepLayout {
  // Faulty operators are bold.
  const name_font = font(12, 600);
  const widest = names.reduce((w, n) => Math.max(w, textWidth(n.path + lastOf(n), name_font)), 0);
  const left = Math.round(Math.min(Math.max(70, widest + 22), Math.max(150, width * 0.26)));
  const whole = (size: number) => (size >= 8 ? Math.floor(size) : size);
  const free_width = width - left - RIGHT;
  const free_height = height - TOP - FOOT;
  const cell_width = whole(Math.min(CELL_WIDTH_MAX, free_width / Math.max(1, grid.n_columns)));
  const cell_height = whole(Math.min(CELL_HEIGHT_MAX, free_height / Math.max(1, grid.n_rows)));
  return {
    left,
    top: TOP,
    cell_width,
    cell_height,
    width: cell_width * grid.n_columns,
    height: cell_height * grid.n_rows,
  };
}

/** Maximum number of distinguishable rows and columns: two pixels each. */
export function shownMost(width: number, height: number): { rows: number; columns: number } {
  // Rounded to steps, so that resizing the window does not send a request for every pixel.
  const most = (size: number) => Math.min(2048, Math.max(32, Math.floor(size / 64) * 32));
  return { rows: most(height - TOP - FOOT), columns: most(width * 0.74 - RIGHT) };
}

/** The height that the content can use. */
export function usefulHeight(grid: StepGrid): number {
  return TOP + FOOT + grid.n_rows * CELL_HEIGHT_MAX;
}

export function cellAt(layout: StepLayout, grid: StepGrid, x: number, y: number): number | null {
  const column = Math.floor((x - layout.left) / layout.cell_width);
  const row = Math.floor((y - layout.top) / layout.cell_height);
  if (column < 0 || column >= grid.n_columns || row < 0 || row >= grid.n_rows) return null;
  return row * grid.n_columns + column;
}

/** The operator of a row, or the number of operators and the first. */
export function rowWords(grid: StepGrid, row: number): string {
  const { n } = grid.rows[row];
  const name = plainName(grid.rows[row]);
  return n > 1 ? t.several_from(n, name) : name;
}

export function columnWords(grid: StepGrid, column: number): string {
  const [first, last] = grid.columns[column];
  if (grid.by === "rank") return first === last ? t.rank(first) : t.ranks_from_to(first, last);
  return first === last ? t.step(first) : t.steps_from_to(first, last);
}

/** 1, 2, 5, 10, 20, …: the first at least `least`. */
export function roundStep(least: number): number {
  let power = 1;
  for (;;) {
    for (const digit of [1, 2, 5]) if (digit * power >= least) return digit * power;
    power *= 10;
  }
}

export function lastOf(name: RowName): string {
  return name.n_others > 0 ? `${name.last} +${formatCount(name.n_others)}` : name.last;
}

export function cornerOf(layout: StepLayout, grid: StepGrid, cell: number): [number, number] {
  return [
    layout.left + (cell % grid.n_columns) * layout.cell_width,
    layout.top + Math.floor(cell / grid.n_columns) * layout.cell_height,
  ];
}
