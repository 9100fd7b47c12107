/**
 * Draws the heat map: cells, names at the left, steps below, and the line at the first bad step.
 */

import { font, textWidth } from "../canvas";
import { onScale, parseHex, type Colours } from "../colours";
import { fitName } from "../names";
import { formatCount } from "../numbers";
import { t } from "../texts";
import { shareOf, type CellKind, type StepGrid, type StepScale } from "./grid";
import {
  columnWords,
  cornerOf,
  lastOf,
  roundStep,
  type RowName,
  type StepLayout,
} from "./layout";

/** Minimum row height for a name on every row; below it, only rows with room get names. */
const NAME_HEIGHT = 13;
const LABEL_GAP = 14;

export interface StepPicture {
  grid: StepGrid;
  names: RowName[];
  image: HTMLCanvasElement;
  selected: number | null;
  first_bad: number | null;
}

/** One pixel per cell; non-finite cells get a plain colour here and their pattern later. */
export function paintCells(
  grid: StepGrid,
  scale: StepScale,
  colours: Colours,
): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, grid.n_columns);
  canvas.height = Math.max(1, grid.n_rows);
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(canvas.width, canvas.height);
  const plain: Record<Exclude<CellKind, "finite">, [number, number, number]> = {
    fault: parseHex(colours.of("fail")),
    first_nan: parseHex(colours.of("fail")),
    nan: parseHex(colours.of("failbg")),
    inf: parseHex(colours.of("warnmark")),
    none: parseHex(colours.of("sunken")),
  };
  // If cells are too small for the NaN lattice, its colour is more visible.
  if (grid.n_columns > 200) plain.nan = parseHex(colours.of("failpale"));
  grid.kinds.forEach((kind, i) => {
    const colour =
      kind === "finite" ? onScale(colours.sequential, shareOf(grid, i, scale)) : plain[kind];
    image.data.set([...colour, 255], i * 4);
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

export function drawSteps(
  context: CanvasRenderingContext2D,
  layout: StepLayout,
  colours: Colours,
  picture: StepPicture,
): void {
  const { grid } = picture;
  if (grid.kinds.length === 0) return;
  context.imageSmoothingEnabled = false;
  context.drawImage(picture.image, layout.left, layout.top, layout.width, layout.height);
  drawPatterns(context, layout, colours, grid);
  drawGaps(context, layout, colours, grid);
  drawCrosses(context, layout, colours, grid);
  drawNames(context, layout, colours, picture);
  drawAxis(context, layout, colours, picture);
  drawFirstBad(context, layout, colours, picture);
  drawSelected(context, layout, colours, picture);
}

function drawPatterns(
  context: CanvasRenderingContext2D,
  layout: StepLayout,
  colours: Colours,
  grid: StepGrid,
): void {
  const { cell_width: w, cell_height: h } = layout;
  if (w < 3 || h < 3) return;
  const cellsOf = (wanted: CellKind) => {
    context.beginPath();
    grid.kinds.forEach((kind, i) => {
      if (kind !== wanted) return;
      const [x, y] = cornerOf(layout, grid, i);
      context.rect(x, y, w, h);
    });
  };
  for (const kind of ["nan", "inf"] as const) {
    if (!grid.kinds.includes(kind)) continue;
    context.save();
    cellsOf(kind);
    context.clip();
    context.strokeStyle = colours.of(kind === "nan" ? "failpale" : "warnbg");
    context.lineWidth = kind === "nan" ? 1 : 1.5;
    context.beginPath();
    const end = layout.left + layout.width;
    const bottom = layout.top + layout.height;
    for (let d = layout.left - layout.height; d < end; d += 5) {
      context.moveTo(d, bottom);
      context.lineTo(d + layout.height, layout.top);
      if (kind === "inf") continue;
      context.moveTo(d, layout.top);
      context.lineTo(d + layout.height, bottom);
    }
    context.stroke();
    context.restore();
  }
  if (w < 6 || h < 6 || !grid.kinds.includes("none")) return;
  context.strokeStyle = colours.of("line2");
  context.lineWidth = 1;
  context.beginPath();
  grid.kinds.forEach((kind, i) => {
    if (kind !== "none") return;
    const [x, y] = cornerOf(layout, grid, i);
    context.moveTo(x, y + h);
    context.lineTo(x + w, y);
  });
  context.stroke();
}

function drawGaps(
  context: CanvasRenderingContext2D,
  layout: StepLayout,
  colours: Colours,
  grid: StepGrid,
): void {
  context.fillStyle = colours.of("surface");
  if (layout.cell_width >= 8) {
    for (let column = 1; column < grid.n_columns; column += 1) {
      const x = layout.left + column * layout.cell_width;
      context.fillRect(x - 1, layout.top, 1, layout.height);
    }
  }
  if (layout.cell_height >= 8) {
    for (let row = 1; row < grid.n_rows; row += 1) {
      context.fillRect(layout.left, layout.top + row * layout.cell_height - 1, layout.width, 1);
    }
  }
}

/** Faulty cells have a shape in addition to the colour, visible even in the smallest cells. */
function drawCrosses(
  context: CanvasRenderingContext2D,
  layout: StepLayout,
  colours: Colours,
  grid: StepGrid,
): void {
  const { cell_width: w, cell_height: h } = layout;
  grid.kinds.forEach((kind, i) => {
    if (kind !== "fault" && kind !== "first_nan") return;
    const [x, y] = cornerOf(layout, grid, i);
    const [wide, high] = [Math.max(4, w), Math.max(4, h)];
    if (w < 4 || h < 4) {
      context.fillStyle = colours.of("fail");
      context.fillRect(x + (w - wide) / 2, y + (h - high) / 2, wide, high);
    }
    if (w < 9 || h < 9) return;
    const arm = Math.min(4, Math.min(w, h) / 2 - 3);
    const [cx, cy] = [x + (w - 1) / 2, y + (h - 1) / 2];
    context.strokeStyle = colours.of("onfail");
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(cx - arm, cy - arm);
    context.lineTo(cx + arm, cy + arm);
    context.moveTo(cx + arm, cy - arm);
    context.lineTo(cx - arm, cy + arm);
    context.stroke();
  });
}

const measure = (text: string) => textWidth(text, font(12, 600));

function drawNames(
  context: CanvasRenderingContext2D,
  layout: StepLayout,
  colours: Colours,
  { grid, names, selected, first_bad }: StepPicture,
): void {
  const rowOf = (cell: number | null) => (cell === null ? -1 : Math.floor(cell / grid.n_columns));
  const [bad_row, selected_row] = [rowOf(first_bad), rowOf(selected)];
  const faults = new Set<number>();
  grid.kinds.forEach((kind, i) => kind === "fault" && faults.add(rowOf(i)));
  const every =
    layout.cell_height >= NAME_HEIGHT ? 1 : Math.ceil(LABEL_GAP / layout.cell_height);
  const rows = [bad_row, selected_row, ...faults];
  for (let row = 0; row < grid.n_rows; row += every) rows.push(row);
  const taken: number[] = [];
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const row of rows) {
    if (row < 0) continue;
    const y = layout.top + (row + 0.5) * layout.cell_height;
    const room = every === 1 ? 1 : NAME_HEIGHT;
    if (taken.some((other) => Math.abs(other - y) < room)) continue;
    taken.push(y);
    const name = { path: names[row].path, last: lastOf(names[row]) };
    const fitted = fitName(name, "", layout.left - 18, measure);
    // A red name must be that of the culprit itself.
    const is_fault = faults.has(row) && names[row].is_exact;
    const is_selected = row === selected_row;
    const x = layout.left - 8;
    context.font = font(12, is_fault || is_selected ? 600 : 500);
    context.fillStyle = colours.of(is_fault ? "fail" : "text");
    context.fillText(fitted.last, x, y);
    const last_width = context.measureText(fitted.last).width;
    context.font = font(12, is_fault ? 600 : 400);
    context.fillStyle = colours.of(is_fault ? "fail" : "text3");
    context.fillText(fitted.path, x - last_width, y);
  }
}

function drawAxis(
  context: CanvasRenderingContext2D,
  layout: StepLayout,
  colours: Colours,
  { grid, first_bad }: StepPicture,
): void {
  const y = layout.top + layout.height + 6;
  const label_font = font(11, 500);
  const middle = (column: number) => layout.left + (column + 0.5) * layout.cell_width;
  const labelOf = (column: number) => formatCount(grid.columns[column][0]);
  const widest = Math.max(52, textWidth(labelOf(grid.n_columns - 1), label_font) + 18);
  const every = roundStep(widest / layout.cell_width);
  const marked = first_bad === null ? null : first_bad % grid.n_columns;
  context.textBaseline = "top";
  context.textAlign = "center";
  context.font = label_font;
  context.fillStyle = colours.of("text3");
  for (let column = 0; column < grid.n_columns; column += every) {
    const is_near = marked !== null && Math.abs(middle(column) - middle(marked)) < widest / 2;
    if (!is_near) context.fillText(labelOf(column), middle(column), y);
  }
  if (marked !== null) {
    context.font = font(11, 600);
    context.fillStyle = colours.of(accuses(grid) ? "fail" : "text");
    context.fillText(labelOf(marked), middle(marked), y);
  }
  context.font = label_font;
  context.fillStyle = colours.of("text3");
  const words = grid.folded === null ? "" : t.folded(...grid.columns[grid.folded]);
  const end = layout.left + layout.width;
  const start = end - textWidth(words, label_font);
  context.textAlign = "left";
  // Words too long for the plot extend below the names, and include "step".
  context.fillText(words, Math.max(4, start), y + 15);
  const axis = grid.by === "step" ? t.step_axis : t.rank_axis;
  const free = start - layout.left - textWidth(axis, label_font);
  if (free > 16) context.fillText(axis, layout.left, y + 15);
}

function drawFirstBad(
  context: CanvasRenderingContext2D,
  layout: StepLayout,
  colours: Colours,
  { grid, first_bad }: StepPicture,
): void {
  if (first_bad === null) return;
  const column = first_bad % grid.n_columns;
  const x = Math.round(layout.left + column * layout.cell_width) - 1;
  const colour = colours.of(accuses(grid) ? "fail" : "text2");
  context.fillStyle = colour;
  context.fillRect(x, 4, 1.5, layout.top - 4 + layout.height + 4);
  // Ranks run in parallel, so the faulty one is not the first.
  const place = columnWords(grid, column);
  const words = grid.by === "step" ? t.first_in(place) : place;
  context.font = font(11, 600);
  context.textBaseline = "middle";
  // To the left like a flag, unless the picture begins there.
  const is_left = x - textWidth(words, font(11, 600)) - 8 > 4;
  context.textAlign = is_left ? "right" : "left";
  context.fillText(words, is_left ? x - 6 : x + 8, 12);
}

/** Without a culprit, nothing is drawn in full red. */
function accuses(grid: StepGrid): boolean {
  return grid.kinds.includes("fault") || grid.kinds.includes("first_nan");
}

function drawSelected(
  context: CanvasRenderingContext2D,
  layout: StepLayout,
  colours: Colours,
  { grid, selected }: StepPicture,
): void {
  if (selected === null) return;
  const [x, y] = cornerOf(layout, grid, selected);
  const w = Math.max(6, layout.cell_width - (layout.cell_width >= 8 ? 1 : 0));
  const h = Math.max(6, layout.cell_height - (layout.cell_height >= 8 ? 1 : 0));
  const left = x - Math.max(0, (w - layout.cell_width) / 2);
  const top = y - Math.max(0, (h - layout.cell_height) / 2);
  context.lineWidth = 1;
  context.strokeStyle = colours.of("surface");
  context.strokeRect(left + 0.5, top + 0.5, w - 1, h - 1);
  context.lineWidth = 2;
  context.strokeStyle = colours.of("accent");
  context.strokeRect(left - 1, top - 1, w + 2, h + 2);
}
