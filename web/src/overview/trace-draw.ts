/** Draws the trace: axis, columns, limit, module names, and the culprit's flag. */

import type { Trace } from "../api";
import { fillLattice, font, textWidth } from "../canvas";
import type { Colours } from "../colours";
import { dtypeEnd } from "../dtypes";
import { dropPrefix, shortName, visible } from "../names";
import { formatCount, formatLimit, formatPower, toFloat } from "../numbers";
import type { Page } from "../page";
import { t } from "../texts";

/** The margin around the plot. */
export const LEFT = 60;
export const RIGHT = 16;
const TOP = 22;
const FOOT = 16;
/** Columns of a short run stay narrow, so that a few operators do not fill the picture. */
const COLUMN_MAX = 36;

interface Axis {
  low: number;
  high: number;
  ticks: number[];
}

/** The limit of errors or, for one dump, the maximum of the verdict's dtype. */
export function traceLimit(page: Page, trace: Trace): number | null {
  const limit = toFloat(trace.limit);
  return limit ?? (page.info.golden ? null : dtypeEnd(page.info.verdict.dtype));
}

export function traceAxis(page: Page, trace: Trace): Axis {
  if (page.info.golden) return { low: -8, high: 0, ticks: [-8, -4, 0] };
  const sizes = trace.value.map(toFloat).filter((x) => x !== null && x > 0 && x < Infinity);
  const limit = traceLimit(page, trace);
  const largest = sizes.reduce((a: number, b) => Math.max(a, b as number), 1);
  const smallest = sizes.reduce((a: number, b) => Math.min(a, b as number), 1);
  // float32's maximum is so large that it would flatten all values.
  const is_near = limit !== null && limit < Infinity && limit < largest * 1e6;
  const most = is_near ? Math.max(limit, largest) : largest;
  const least = Math.max(most * 1e-12, smallest);
  const high = Math.ceil(Math.log10(most));
  const low = Math.min(Math.floor(Math.log10(least)), high - 3);
  return evenAxis(low, high);
}

/** Three ticks at equal distances, all powers of ten. */
export function evenAxis(low: number, high: number): Axis {
  const even = (high - low) % 2 === 0 ? low : low - 1;
  return { low: even, high, ticks: [even, (even + high) / 2, high] };
}

/** The width of a column that may take up to `step` pixels. */
export function columnWidth(step: number): number {
  const gap = step > 6 ? 2 : step > 3 ? 1 : 0;
  return Math.max(1, Math.min(COLUMN_MAX, step - gap));
}

export function isOnAxis(value: number, axis: Axis): boolean {
  return value > 0 && Math.log10(value) <= axis.high;
}

export function drawTrace(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  colours: Colours,
  trace: Trace,
  page: Page,
): void {
  const axis = traceAxis(page, trace);
  const bottom = height - FOOT;
  const plot = { x: LEFT, width: width - LEFT - RIGHT, top: TOP, height: bottom - TOP };
  const yOf = (x: number) => {
    const share = x > 0 ? (Math.log10(x) - axis.low) / (axis.high - axis.low) : 0;
    return bottom - Math.min(1, Math.max(0, share)) * plot.height;
  };
  drawAxis(context, colours, axis, plot, yOf);
  drawColumns(context, colours, trace, page, plot, yOf);
  drawLimit(context, colours, trace, page, plot, yOf);
  drawLabels(context, colours, trace, plot, bottom);
  drawFaults(context, colours, trace, page, plot, yOf);
}

interface Plot {
  x: number;
  width: number;
  top: number;
  height: number;
}

type ToY = (x: number) => number;

function drawAxis(
  context: CanvasRenderingContext2D,
  colours: Colours,
  axis: Axis,
  plot: Plot,
  yOf: ToY,
): void {
  context.font = font(11, 500);
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const tick of axis.ticks) {
    const y = Math.round(yOf(10 ** tick)) + 0.5;
    context.strokeStyle = colours.of("line");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(plot.x, y);
    context.lineTo(plot.x + plot.width, y);
    context.stroke();
    context.fillStyle = colours.of("text3");
    context.fillText(formatPower(tick), plot.x - 8, y);
  }
}

function drawColumns(
  context: CanvasRenderingContext2D,
  colours: Colours,
  trace: Trace,
  page: Page,
  plot: Plot,
  yOf: ToY,
): void {
  const step = plot.width / Math.max(1, trace.columns);
  const w = columnWidth(step);
  const bottom = plot.top + plot.height;
  const is_pair = page.info.golden !== null;
  const pale: Record<string, string> = {
    f: colours.of("failpale"),
    w: colours.of("warnpale"),
    s: colours.of("line2"),
    p: is_pair ? colours.of("line2") : colours.of("size"),
  };
  const cap: Record<string, string> = {
    f: colours.of("fail"),
    w: colours.of("warnmark"),
    p: colours.of("skip"),
    s: colours.of("skip"),
  };
  for (let i = 0; i < trace.columns; i += 1) {
    const x = plot.x + i * step;
    if (trace.nan[i] === "1") {
      fillLattice(context, colours, x, plot.top, w, plot.height);
      continue;
    }
    const letter = trace.status[i] ?? "p";
    const value = toFloat(trace.value[i]);
    if (value === null) continue;
    const y = Math.min(bottom - 2, yOf(value));
    context.fillStyle = pale[letter];
    context.fillRect(x, y, w, bottom - y);
    if (value > 1 && is_pair) notch(context, colours, x, w, plot.top);
    const added = toFloat(trace.added?.[i]);
    // A cap shows an operator's added error if it is large enough to matter.
    if (added !== null && added > 1e-7 && letter !== "p") {
      context.fillStyle = cap[letter];
      context.fillRect(x, Math.min(bottom - 2.5, yOf(added) - 1.25), w, 2.5);
    }
  }
  drawSelected(context, colours, trace, page, plot, step);
}

/** Cuts off an error beyond the axis, with a notch as a sign. */
function notch(
  context: CanvasRenderingContext2D,
  colours: Colours,
  x: number,
  w: number,
  top: number,
): void {
  context.fillStyle = colours.of("surface");
  context.fillRect(x, top + 3, w, 2);
}

function drawSelected(
  context: CanvasRenderingContext2D,
  colours: Colours,
  trace: Trace,
  page: Page,
  plot: Plot,
  step: number,
): void {
  const i = page.selected === null ? -1 : columnOf(trace, page.selected);
  if (i < 0) return;
  const x = plot.x + i * step + columnWidth(step) / 2;
  const y = plot.top + plot.height + 1;
  context.fillStyle = colours.of("accent");
  context.beginPath();
  // No taller than the room above the labels.
  context.moveTo(x - 4, y + 3.5);
  context.lineTo(x + 4, y + 3.5);
  context.lineTo(x, y);
  context.fill();
}

/** The column of an operator: exact if each has its own, otherwise the nearest. */
function columnOf(trace: Trace, id: number): number {
  const exact = trace.first.indexOf(id);
  if (exact >= 0 || trace.columns === trace.n) return exact;
  return trace.first.findIndex((first) => first >= id);
}

function drawLimit(
  context: CanvasRenderingContext2D,
  colours: Colours,
  trace: Trace,
  page: Page,
  plot: Plot,
  yOf: ToY,
): void {
  const limit = traceLimit(page, trace);
  if (limit === null || !isOnAxis(limit, traceAxis(page, trace))) return;
  const y = Math.round(yOf(limit)) + 0.5;
  context.strokeStyle = colours.of("text2");
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(plot.x, y);
  context.lineTo(plot.x + plot.width, y);
  context.stroke();
  context.setLineDash([]);
  if (!page.info.golden) return;
  const words = t.trace_limit(formatLimit(limit));
  context.font = font(11, 500);
  context.textAlign = "right";
  context.textBaseline = "alphabetic";
  const words_width = textWidth(words, font(11, 500));
  context.globalAlpha = 0.7;
  context.fillStyle = colours.of("surface");
  context.fillRect(plot.x + plot.width - words_width - 3, Math.max(4, y - 14), words_width + 3, 12);
  context.globalAlpha = 1;
  context.fillStyle = colours.of("text2");
  // Above the line if there is room, so that it never covers a taller column.
  context.fillText(words, plot.x + plot.width, Math.max(14, y - 4));
}

function drawLabels(
  context: CanvasRenderingContext2D,
  colours: Colours,
  trace: Trace,
  plot: Plot,
  bottom: number,
): void {
  context.font = font(11, 500);
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  context.fillStyle = colours.of("text3");
  const step = plot.width / Math.max(1, trace.columns);
  let free_from = -Infinity;
  for (const label of trace.labels) {
    const text = visible(dropPrefix(label.text));
    const text_width = textWidth(text, font(11, 500));
    let x = plot.x + label.at * step;
    // The last label may move left of its start rather than be dropped.
    if (x + text_width > plot.x + plot.width) x = plot.x + plot.width - text_width;
    if (x < free_from) continue;
    context.fillText(text, x, bottom + 13);
    free_from = x + text_width + 10;
  }
}

function drawFaults(
  context: CanvasRenderingContext2D,
  colours: Colours,
  trace: Trace,
  page: Page,
  plot: Plot,
  yOf: ToY,
): void {
  const step = plot.width / Math.max(1, trace.columns);
  const bottom = plot.top + plot.height;
  const w = Math.max(2, columnWidth(step));
  for (const [column] of trace.faults) {
    const value = toFloat(trace.value[column]);
    const is_full = value === null || trace.nan[column] === "1" || !Number.isFinite(value);
    const y = is_full ? plot.top : Math.min(bottom - 2, yOf(value));
    context.fillStyle = colours.of("fail");
    context.fillRect(plot.x + column * step, y, w, bottom - y);
  }
  const { verdict } = page.info;
  const flag = trace.faults.find(([, id]) => id === verdict.op);
  if (flag) drawFlag(context, colours, plot, plot.x + flag[0] * step, flagWords(page));
}

function flagWords(page: Page): string {
  const { verdict } = page.info;
  const { path, last } = shortName(verdict.op_name, verdict.op_type);
  return `#${formatCount(verdict.op)} ${path}${last}`;
}

function drawFlag(
  context: CanvasRenderingContext2D,
  colours: Colours,
  plot: Plot,
  x: number,
  words: string,
): void {
  context.font = font(11, 600);
  const text = words.length > 40 ? `${words.slice(0, 16)}…${words.slice(-20)}` : words;
  const flag_width = textWidth(text, font(11, 600)) + 14;
  const end = plot.x + plot.width;
  const left = x + flag_width > end ? Math.max(plot.x, x + 2 - flag_width) : x;
  context.fillStyle = colours.of("fail");
  context.fillRect(x, 4, 2, plot.top);
  context.beginPath();
  context.roundRect(left, 3, flag_width, 17, 4);
  context.fill();
  context.fillStyle = colours.of("onfail");
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillText(text, left + 7, 12);
}
