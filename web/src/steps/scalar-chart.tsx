/** The curve of a scalar output above the heat map, on the same x axis. */

import { go } from "../address";
import { font, textWidth, useCanvas } from "../canvas";
import type { Colours } from "../colours";
import { fitName } from "../names";
import { formatLimit, formatNumber } from "../numbers";
import { t } from "../texts";
import type { StepGrid } from "./grid";
import { columnWords, roundStep, stepLayout, type RowName, type StepLayout } from "./layout";
import { scalarText, type ScalarCurve, type ScalarPoint } from "./scalar";

interface ScalarChartProps {
  grid: StepGrid;
  names: RowName[];
  scalar: ScalarCurve;
  first_bad: number | null;
}

const TOP = 22;
const FOOT = 8;
/** Ratio of maximum to minimum from which the axis is logarithmic. */
const LOG_FROM = 30;

interface Axis {
  is_log: boolean;
  low: number;
  high: number;
  ticks: number[];
}

export function ScalarChart(props: ScalarChartProps) {
  const { grid, names, scalar, first_bad } = props;
  const canvas = useCanvas(
    (context, width, height, colours) => drawScalar(context, width, height, colours, props),
    [scalar, names, first_bad],
  );
  const select = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const layout = stepLayout(box.width, box.height, grid, names);
    const column = Math.floor((event.clientX - box.left - layout.left) / layout.cell_width);
    const id = scalar.points[column]?.id ?? null;
    const [first, last] = grid.columns[column] ?? [0, 1];
    if (id !== null) go({ op: id, step: first === last ? first : null });
  };
  return (
    <canvas
      ref={canvas}
      class="scalar-canvas"
      role="img"
      aria-label={curveWords(scalar, grid)}
      onClick={select}
    />
  );
}

/** The range of the curve, and the step from which it is not a number. */
export function curveWords(scalar: ScalarCurve, grid: StepGrid): string {
  const finite = numbersOf(scalar.points);
  const range =
    finite.length === 0
      ? t.scalar_no_number(scalar.name)
      : t.scalar_words(
          scalar.name,
          formatNumber(Math.min(...finite)),
          formatNumber(Math.max(...finite)),
        );
  const bad = badWords(scalar.points, grid);
  const points =
    scalar.points.length <= 60
      ? scalar.points.map((point, i) => `${columnWords(grid, i)}: ${scalarText(point)}`).join("; ")
      : "";
  return [range, bad, points].filter(Boolean).join(" ");
}

/** `NaN from step 42`, or `NaN in step 42` if numbers follow. */
export function badWords(points: ScalarPoint[], grid: StepGrid): string {
  const first = points.findIndex(({ bad }) => bad !== null);
  if (first < 0) return "";
  const what = points[first].bad === "nan" ? "NaN" : "Inf";
  const rest = points.slice(first);
  const is_rest = rest.length > 1 && rest.every(({ bad }) => bad === points[first].bad);
  const step = t.step(grid.columns[first][0]);
  return is_rest ? t.scalar_bad_from(what, step) : t.scalar_bad_in(what, step);
}

function drawScalar(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  colours: Colours,
  { grid, names, scalar, first_bad }: ScalarChartProps,
): void {
  const layout = stepLayout(width, height, grid, names);
  const axis = axisOf(scalar.points);
  const bottom = height - FOOT;
  const yOf = (value: number) => {
    const place = axis.is_log ? Math.log10(value) : value;
    return bottom - ((place - axis.low) / (axis.high - axis.low)) * (bottom - TOP);
  };
  const xOf = (column: number) => layout.left + (column + 0.5) * layout.cell_width;
  drawName(context, layout, colours, scalar.name);
  drawTicks(context, layout, colours, axis, yOf);
  if (scalar.has_golden) drawGolden(context, colours, scalar.points, xOf, yOf, bottom);
  drawCurve(context, colours, scalar.points, xOf, yOf);
  scalar.points.forEach(({ bad }, i) => {
    if (bad === "nan") drawCross(context, colours, xOf(i), 10, layout.cell_width);
    if (bad === "inf") drawHatch(context, colours, xOf(i), 10, layout.cell_width);
  });
  drawBadWords(context, layout, colours, scalar.points, grid);
  if (first_bad === null) return;
  const x = Math.round(layout.left + (first_bad % grid.n_columns) * layout.cell_width) - 1;
  const is_accused = grid.kinds.includes("fault") || grid.kinds.includes("first_nan");
  context.fillStyle = colours.of(is_accused ? "fail" : "text2");
  context.fillRect(x, 4, 1.5, height - 4);
}

const measure = (text: string) => textWidth(text, font(12, 600));

function drawName(
  context: CanvasRenderingContext2D,
  layout: StepLayout,
  colours: Colours,
  name: string,
): void {
  const { path, last } = fitName({ path: "", last: name }, "", layout.left - 18, measure);
  context.font = font(12, 600);
  context.fillStyle = colours.of("text");
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillText(path + last, 8, 10);
}

function drawTicks(
  context: CanvasRenderingContext2D,
  layout: StepLayout,
  colours: Colours,
  axis: Axis,
  yOf: (value: number) => number,
): void {
  context.font = font(11, 500);
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const tick of axis.ticks) {
    const y = Math.round(yOf(tick)) + 0.5;
    context.fillStyle = colours.of("line");
    context.fillRect(layout.left, y, layout.width, 1);
    context.fillStyle = colours.of("text3");
    context.fillText(formatLimit(tick), layout.left - 8, y);
  }
}

/** The other run's values: a gold area, as everywhere. */
function drawGolden(
  context: CanvasRenderingContext2D,
  colours: Colours,
  points: ScalarPoint[],
  xOf: (i: number) => number,
  yOf: (value: number) => number,
  bottom: number,
): void {
  runsOf(points.map(({ golden }) => golden)).forEach((run) => {
    const line = run.map(({ i, value }) => [xOf(i), yOf(value)] as const);
    context.fillStyle = colours.of("goldfill");
    context.beginPath();
    context.moveTo(line[0][0], bottom);
    line.forEach(([x, y]) => context.lineTo(x, y));
    context.lineTo(line[line.length - 1][0], bottom);
    context.fill();
    context.strokeStyle = colours.of("goldmark");
    strokeLine(context, line);
  });
}

function drawCurve(
  context: CanvasRenderingContext2D,
  colours: Colours,
  points: ScalarPoint[],
  xOf: (i: number) => number,
  yOf: (value: number) => number,
): void {
  context.strokeStyle = colours.of("text");
  context.fillStyle = colours.of("text");
  points.forEach(({ low, high }, i) => {
    // Steps that share a column span a bar.
    if (low === null || high === null || low === high) return;
    context.fillRect(xOf(i) - 0.75, yOf(high), 1.5, Math.max(1.5, yOf(low) - yOf(high)));
  });
  runsOf(points.map(({ high }) => high)).forEach((run) => {
    const line = run.map(({ i, value }) => [xOf(i), yOf(value)] as const);
    if (line.length === 1) context.fillRect(line[0][0] - 1.5, line[0][1] - 1.5, 3, 3);
    else strokeLine(context, line);
  });
}

function strokeLine(
  context: CanvasRenderingContext2D,
  line: (readonly [number, number])[],
): void {
  context.lineWidth = 1.5;
  context.lineJoin = "round";
  context.beginPath();
  line.forEach(([x, y], i) => (i === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
  context.stroke();
}

/** Runs of consecutive numbers. */
function runsOf(values: (number | null)[]): { i: number; value: number }[][] {
  const runs: { i: number; value: number }[][] = [];
  values.forEach((value, i) => {
    if (value === null) return;
    if (i > 0 && values[i - 1] !== null) runs[runs.length - 1].push({ i, value });
    else runs.push([{ i, value }]);
  });
  return runs;
}

function drawCross(
  context: CanvasRenderingContext2D,
  colours: Colours,
  x: number,
  y: number,
  width: number,
): void {
  const arm = Math.min(3, Math.max(1, width / 2 - 1));
  context.strokeStyle = colours.of("fail");
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x - arm, y - arm);
  context.lineTo(x + arm, y + arm);
  context.moveTo(x + arm, y - arm);
  context.lineTo(x - arm, y + arm);
  context.stroke();
}

/** The amber hatch of infinities. */
function drawHatch(
  context: CanvasRenderingContext2D,
  colours: Colours,
  x: number,
  y: number,
  width: number,
): void {
  const half = Math.min(5, Math.max(1, width / 2 - 1));
  context.save();
  context.beginPath();
  context.rect(x - half, y - half, 2 * half, 2 * half);
  context.clip();
  context.fillStyle = colours.of("warnmark");
  context.fillRect(x - half, y - half, 2 * half, 2 * half);
  context.strokeStyle = colours.of("warnbg");
  context.lineWidth = 1.25;
  context.beginPath();
  for (let d = -2 * half; d < 2 * half; d += 3.5) {
    context.moveTo(x - half + d, y + half);
    context.lineTo(x + half + d, y - half);
  }
  context.stroke();
  context.restore();
}

function drawBadWords(
  context: CanvasRenderingContext2D,
  layout: StepLayout,
  colours: Colours,
  points: ScalarPoint[],
  grid: StepGrid,
): void {
  const words = badWords(points, grid);
  if (words === "") return;
  const first = points.findIndex(({ bad }) => bad !== null);
  const x = layout.left + first * layout.cell_width;
  const is_left = x - textWidth(words, font(11, 600)) - 10 > layout.left;
  context.font = font(11, 600);
  context.fillStyle = colours.of(points[first].bad === "nan" ? "fail" : "warn");
  context.textBaseline = "middle";
  context.textAlign = is_left ? "right" : "left";
  // Below the marks if there is no room next to them.
  context.fillText(words, is_left ? x - 8 : layout.left + 4, is_left ? 10 : TOP + 2);
}

function numbersOf(points: ScalarPoint[]): number[] {
  return points
    .flatMap(({ low, high, golden }) => [low, high, golden])
    .filter((x): x is number => x !== null && Number.isFinite(x));
}

/** A log axis for positive values over more than a power of ten, otherwise a linear one. */
export function axisOf(points: ScalarPoint[]): Axis {
  const finite = numbersOf(points);
  if (finite.length === 0) return { is_log: false, low: 0, high: 1, ticks: [] };
  const [least, most] = [Math.min(...finite), Math.max(...finite)];
  if (least > 0 && most / least >= LOG_FROM) {
    const low = Math.floor(Math.log10(least));
    const high = Math.max(low + 1, Math.ceil(Math.log10(most)));
    const every = roundStep((high - low) / 4);
    const ticks = [];
    for (let power = low; power <= high; power += every) ticks.push(10 ** power);
    return { is_log: true, low, high, ticks };
  }
  const span = most - least || Math.abs(most) || 1;
  // A round step of at most three ticks: 1, 2 or 5 times a power of ten.
  const power = 10 ** Math.floor(Math.log10(span / 2));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => span / n <= 3)!;
  const low = Math.floor(least / step) * step;
  const high = Math.max(low + step, Math.ceil(most / step) * step);
  const ticks = [];
  for (let i = 0; low + i * step <= high + step / 2; i += 1) ticks.push(low + i * step);
  return { is_log: false, low, high, ticks };
}
