/** One operator over the steps: a line on a log axis, with gaps for missing numbers. */

import { useCanvas, font, textWidth } from "../canvas";
import type { Colours } from "../colours";
import { formatCount, formatNumber, formatPower } from "../numbers";
import { t } from "../texts";
import { roundStep } from "./layout";
import type { CellKind } from "./grid";

export interface HistoryPoint {
  /** First and last step. */
  steps: [number, number];
  value: number | null;
  kind: CellKind;
}

interface HistoryProps {
  points: HistoryPoint[];
  label: string;
  /** A dashed line: the dtype's maximum, or the error limit. */
  edge: { at: number; words: string } | null;
  selected: number | null;
  first_bad: number | null;
  onSelect: (point: number) => void;
}

const LEFT = 48;
const RIGHT = 12;
const TOP = 16;
const FOOT = 22;

export function HistoryChart(props: HistoryProps) {
  const { points, label, selected, first_bad, edge, onSelect } = props;
  const canvas = useCanvas(
    (context, width, height, colours) => drawHistory(context, width, height, colours, props),
    [points, selected, first_bad, edge?.at, edge?.words],
  );
  const finite = numbersOf(points);
  const range =
    finite.length === 0
      ? ""
      : t.history_words(formatNumber(Math.min(...finite)), formatNumber(Math.max(...finite)));
  const select = (event: MouseEvent) => {
    const { left, width } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const share = (event.clientX - left - LEFT) / (width - LEFT - RIGHT);
    const i = Math.floor(share * points.length);
    if (points[i]) onSelect(i);
  };
  return (
    <canvas
      ref={canvas}
      class="history"
      role="img"
      aria-label={`${label}. ${range}`}
      onClick={select}
    />
  );
}

function drawHistory(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  colours: Colours,
  { points, edge, selected, first_bad }: HistoryProps,
): void {
  if (points.length === 0) return;
  const bottom = height - FOOT;
  const { low, high, has_edge } = axisOf(points, edge?.at ?? null);
  const step = (width - LEFT - RIGHT) / points.length;
  const xOf = (i: number) => LEFT + (i + 0.5) * step;
  const yOf = (value: number) => {
    const power = value > 0 ? Math.log10(value) : low;
    const share = (Math.min(high, Math.max(low, power)) - low) / (high - low);
    return bottom - share * (bottom - TOP);
  };
  drawAxes(context, colours, points, { width, bottom, low, high, step });
  drawStates(context, colours, points, step);
  if (edge && has_edge) drawEdge(context, colours, yOf(edge.at), width, edge.words);
  if (first_bad !== null) {
    context.fillStyle = colours.of(points[first_bad].kind === "finite" ? "text2" : "fail");
    context.fillRect(xOf(first_bad) - 0.75, 4, 1.5, bottom - 4);
  }
  drawLine(context, colours, points, xOf, yOf);
  if (selected === null || !points[selected]) return;
  const value = points[selected].value;
  const y = value !== null && Number.isFinite(value) ? yOf(value) : TOP - 6;
  const is_bad = points[selected].kind !== "finite";
  context.fillStyle = colours.of("surface");
  context.strokeStyle = colours.of(is_bad ? "fail" : "accent");
  context.lineWidth = 2;
  context.beginPath();
  context.arc(xOf(selected), y, 4, 0, 2 * Math.PI);
  context.fill();
  context.stroke();
}

function drawAxes(
  context: CanvasRenderingContext2D,
  colours: Colours,
  points: HistoryPoint[],
  frame: { width: number; bottom: number; low: number; high: number; step: number },
): void {
  const { width, bottom, low, high, step } = frame;
  context.font = font(11, 500);
  context.textBaseline = "middle";
  context.textAlign = "right";
  const every = roundStep((high - low) / 4);
  for (let power = low; power <= high; power += every) {
    const y = Math.round(bottom - ((power - low) / (high - low)) * (bottom - TOP)) + 0.5;
    context.fillStyle = colours.of("line");
    context.fillRect(LEFT, y, width - LEFT - RIGHT, 1);
    context.fillStyle = colours.of("text3");
    context.fillText(formatPower(power), LEFT - 8, y);
  }
  context.textBaseline = "top";
  context.textAlign = "center";
  const widest = textWidth(formatCount(points[points.length - 1].steps[1]), font(11, 500)) + 16;
  const apart = roundStep(widest / step);
  for (let i = 0; i < points.length; i += apart) {
    context.fillText(formatCount(points[i].steps[0]), LEFT + (i + 0.5) * step, bottom + 6);
  }
}

/** A strip at the top marks NaN or Inf. */
function drawStates(
  context: CanvasRenderingContext2D,
  colours: Colours,
  points: HistoryPoint[],
  step: number,
): void {
  points.forEach(({ kind }, i) => {
    if (kind === "finite" || kind === "none") return;
    const is_solid = kind === "fault" || kind === "first_nan";
    context.fillStyle = colours.of(is_solid ? "fail" : kind === "inf" ? "warnmark" : "failpale");
    context.fillRect(LEFT + i * step, 4, Math.max(1.5, step - (step > 4 ? 1 : 0)), 5);
  });
}

function drawEdge(
  context: CanvasRenderingContext2D,
  colours: Colours,
  y: number,
  width: number,
  words: string,
): void {
  context.strokeStyle = colours.of("text2");
  context.lineWidth = 1;
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(LEFT, Math.round(y) + 0.5);
  context.lineTo(width - RIGHT, Math.round(y) + 0.5);
  context.stroke();
  context.setLineDash([]);
  context.font = font(11, 500);
  context.textAlign = "left";
  context.textBaseline = "top";
  const words_width = textWidth(words, font(11, 500));
  context.fillStyle = colours.of("surface");
  // Above the line, unless the strip of states is there.
  const top = y > TOP + 24 ? y - 16 : y + 4;
  context.globalAlpha = 0.7;
  context.fillRect(LEFT + 2, top - 1, words_width + 6, 14);
  context.globalAlpha = 1;
  context.fillStyle = colours.of("text2");
  context.fillText(words, LEFT + 5, top);
}

function drawLine(
  context: CanvasRenderingContext2D,
  colours: Colours,
  points: HistoryPoint[],
  xOf: (i: number) => number,
  yOf: (value: number) => number,
): void {
  const isNumber = (i: number) => {
    const value = points[i]?.value ?? null;
    return value !== null && Number.isFinite(value);
  };
  context.strokeStyle = colours.of("text");
  context.fillStyle = colours.of("text");
  context.lineWidth = 1.5;
  context.lineJoin = "round";
  context.beginPath();
  points.forEach(({ value }, i) => {
    if (!isNumber(i)) return;
    if (isNumber(i - 1)) context.lineTo(xOf(i), yOf(value!));
    else context.moveTo(xOf(i), yOf(value!));
  });
  context.stroke();
  // An isolated number would draw no line.
  points.forEach(({ value }, i) => {
    if (!isNumber(i) || isNumber(i - 1) || isNumber(i + 1)) return;
    context.fillRect(xOf(i) - 1.5, yOf(value!) - 1.5, 3, 3);
  });
}

function axisOf(
  points: HistoryPoint[],
  edge: number | null,
): { low: number; high: number; has_edge: boolean } {
  const sizes = numbersOf(points).filter((x) => x > 0);
  const largest = sizes.length > 0 ? Math.max(...sizes) : 1;
  // float32's maximum is so large that it would flatten all values.
  const has_edge = edge !== null && edge > 0 && edge < largest * 1e6 && edge > largest * 1e-9;
  const most = has_edge ? Math.max(edge, largest) : largest;
  const least = Math.max(most * 1e-12, Math.min(...sizes, has_edge ? edge * 0.5 : most));
  const high = Math.ceil(Math.log10(most) + 0.02);
  return { low: Math.min(Math.floor(Math.log10(least)), high - 2), high, has_edge };
}

function numbersOf(points: HistoryPoint[]): number[] {
  return points.map((p) => p.value).filter((x): x is number => x !== null && Number.isFinite(x));
}
