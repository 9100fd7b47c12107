/** Histograms with common bins: golden as an area, target as an outline. */

import type { Difference, Histogram, Tensor } from "../api";
import { font, useCanvas } from "../canvas";
import type { Colours } from "../colours";
import { dtypeEnd } from "../dtypes";
import { formatCount, formatLimit, formatNumber, formatPower, toFloat } from "../numbers";
import { t } from "../texts";

interface HistogramProps {
  histogram: Histogram;
  n_elements: number;
  /** The target's, whose largest value is drawn if elements come near it. */
  dtype: string | null;
  is_log: boolean;
  has_axis: boolean;
}

export function dtypeOf(tensor: Tensor | null): string | null {
  return tensor?.sides.target?.dtype ?? null;
}

/** Elements within this factor of the dtype's largest value are near it. */
const NEAR = 16;

/** The axis of a histogram: its bins and, if elements come near them, the ends of the dtype. */
export function valueAxis({ low, high }: Histogram, dtype: string | null) {
  const end = dtypeEnd(dtype);
  const ends = [
    ...(end !== null && high >= end / NEAR ? [end] : []),
    ...(end !== null && low <= -end / NEAR ? [-end] : []),
  ];
  return { low: Math.min(low, ...ends), high: Math.max(high, ...ends), ends };
}

export function HistogramChart(props: HistogramProps) {
  const { histogram, n_elements, dtype, is_log, has_axis } = props;
  const canvas = useCanvas(
    (context, width, height, colours) => {
      drawHistogram(context, width, height, colours, props);
    },
    [histogram, dtype, is_log, has_axis],
  );
  const words = t.histogram_words(
    n_elements,
    formatNumber(histogram.low),
    formatNumber(histogram.high),
  );
  return <canvas ref={canvas} class="histogram" role="img" aria-label={words} />;
}

interface Frame {
  x: number;
  width: number;
  bottom: number;
  height: number;
}

function drawHistogram(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  colours: Colours,
  { histogram, dtype, is_log, has_axis }: HistogramProps,
): void {
  const frame: Frame = {
    x: has_axis ? 48 : 2,
    width: width - (has_axis ? 56 : 4),
    bottom: height - 20,
    height: height - 30,
  };
  const { target, golden } = histogram;
  const axis = valueAxis(histogram, dtype);
  const xOf = (value: number) =>
    frame.x + (frame.width * (value - axis.low)) / (axis.high - axis.low || 1);
  const left = xOf(histogram.low);
  // The bins have the part of the frame that their values have on the axis.
  const bins = axis.ends.length > 0 ? { ...frame, x: left, width: xOf(histogram.high) - left } : frame;
  const most = Math.max(1, ...(target ?? []), ...(golden ?? []));
  // A bin with one element is visible above the axis.
  const size = (n: number) => {
    if (n === 0) return 0;
    return is_log ? (Math.log10(n) + 0.3) / (Math.log10(most) + 0.3) : n / most;
  };
  const y = (n: number) => frame.bottom - size(n) * frame.height;
  if (has_axis) drawCountAxis(context, colours, frame, most, is_log, y);
  if (golden) {
    tracePath(context, bins, golden, y, true);
    context.fillStyle = colours.of("goldfill");
    context.fill();
    tracePath(context, bins, golden, y, false);
    context.strokeStyle = colours.of("goldmark");
    context.lineWidth = 1;
    context.stroke();
  }
  if (target) {
    tracePath(context, bins, target, y, false);
    context.strokeStyle = colours.of("text");
    context.lineWidth = 1.5;
    context.stroke();
  }
  drawValueAxis(context, colours, frame, axis);
  for (const end of axis.ends) {
    drawLimitLine(context, colours, frame, xOf(end), t.trace_end(dtype ?? "", formatLimit(end)));
  }
}

function tracePath(
  context: CanvasRenderingContext2D,
  frame: Frame,
  counts: number[],
  y: (n: number) => number,
  is_closed: boolean,
): void {
  const step = frame.width / counts.length;
  context.beginPath();
  context.moveTo(frame.x, frame.bottom);
  counts.forEach((n, i) => {
    context.lineTo(frame.x + i * step, y(n));
    context.lineTo(frame.x + (i + 1) * step, y(n));
  });
  context.lineTo(frame.x + frame.width, frame.bottom);
  if (is_closed) context.closePath();
}

function drawCountAxis(
  context: CanvasRenderingContext2D,
  colours: Colours,
  frame: Frame,
  most: number,
  is_log: boolean,
  y: (n: number) => number,
): void {
  context.font = font(11, 500);
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const tick of countTicks(most, is_log)) {
    const at = Math.round(y(tick)) + 0.5;
    context.strokeStyle = colours.of("line");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(frame.x, at);
    context.lineTo(frame.x + frame.width, at);
    context.stroke();
    context.fillStyle = colours.of("text3");
    context.fillText(tick >= 1e6 ? formatNumber(tick) : formatCount(tick), frame.x - 6, at);
  }
}

function countTicks(most: number, is_log: boolean): number[] {
  if (is_log) {
    const last = Math.floor(Math.log10(most));
    const step = last > 5 ? 2 : 1;
    return Array.from({ length: Math.floor(last / step) + 1 }, (_, i) => 10 ** (i * step));
  }
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough) ?? power;
  return [1, 2, 3].map((i) => i * step).filter((tick) => tick <= most);
}

function drawValueAxis(
  context: CanvasRenderingContext2D,
  colours: Colours,
  frame: Frame,
  { low, high }: { low: number; high: number },
): void {
  context.strokeStyle = colours.of("line2");
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(frame.x, frame.bottom + 0.5);
  context.lineTo(frame.x + frame.width, frame.bottom + 0.5);
  context.stroke();
  context.font = font(11, 500);
  context.fillStyle = colours.of("text3");
  context.textBaseline = "top";
  const y = frame.bottom + 6;
  context.textAlign = "left";
  context.fillText(formatNumber(low), frame.x, y);
  context.textAlign = "right";
  context.fillText(formatNumber(high), frame.x + frame.width, y);
  const zero = frame.x + (frame.width * -low) / (high - low || 1);
  const is_free = low < 0 && high > 0 && zero > frame.x + 60 && zero < frame.x + frame.width - 60;
  if (!is_free) return;
  context.textAlign = "center";
  context.fillText("0", zero, y);
}

/** Absolute differences by power of ten; those beyond the limit are red. */
export function PowersChart({ difference }: { difference: Difference }) {
  const canvas = useCanvas(
    (context, width, height, colours) => {
      drawPowers(context, width, height, colours, difference);
    },
    [difference],
  );
  const words = t.powers_words(difference.n_differing, formatNumber(difference.max_abs));
  return <canvas ref={canvas} class="histogram" role="img" aria-label={words} />;
}

function drawPowers(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  colours: Colours,
  difference: Difference,
): void {
  const { first, counts } = trimmedPowers(difference);
  const frame: Frame = { x: 48, width: width - 56, bottom: height - 20, height: height - 34 };
  const most = Math.max(1, ...counts);
  const y = (n: number) => frame.bottom - (n / most) * frame.height;
  drawCountAxis(context, colours, frame, most, false, y);
  const step = frame.width / Math.max(1, counts.length);
  const limit = toFloat(difference.limit);
  const limit_at = limit !== null && limit > 0 ? Math.log10(limit) - first : null;
  counts.forEach((n, i) => {
    if (n === 0) return;
    const is_past = limit_at !== null && i + 1 > limit_at;
    context.fillStyle = is_past ? colours.of("fail") : colours.of("line2");
    const top = Math.min(frame.bottom - 1.5, y(n));
    context.fillRect(frame.x + i * step + 1, top, Math.max(1, step - 2), frame.bottom - top);
  });
  context.strokeStyle = colours.of("line2");
  context.beginPath();
  context.moveTo(frame.x, frame.bottom + 0.5);
  context.lineTo(frame.x + frame.width, frame.bottom + 0.5);
  context.stroke();
  if (limit_at !== null && limit_at >= 0 && limit_at <= counts.length) {
    drawLimitLine(context, colours, frame, frame.x + limit_at * step, t.limit);
  }
  context.font = font(11, 500);
  context.fillStyle = colours.of("text3");
  context.textBaseline = "top";
  const every = Math.max(1, Math.ceil(counts.length / 5));
  for (let i = 0; i <= counts.length; i += every) {
    // The last label stays within the picture.
    context.textAlign = i === counts.length ? "right" : "center";
    context.fillText(formatPower(first + i), frame.x + i * step, frame.bottom + 6);
  }
}

/** The powers from the smallest difference to the largest, including the limit, and one more. */
export function trimmedPowers({ powers, limit }: Difference): Difference["powers"] {
  const used = powers.counts.flatMap((n, i) => (n > 0 ? [i] : []));
  const bound = toFloat(limit);
  if (bound !== null && bound > 0) used.push(Math.floor(Math.log10(bound)) - powers.first);
  if (used.length === 0) return powers;
  const start = Math.max(0, Math.min(...used) - 1);
  const end = Math.min(powers.counts.length, Math.max(...used, start + 4) + 2);
  return { first: powers.first + start, counts: powers.counts.slice(start, end) };
}

function drawLimitLine(
  context: CanvasRenderingContext2D,
  colours: Colours,
  frame: Frame,
  x: number,
  words: string,
): void {
  context.strokeStyle = colours.of("text2");
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(Math.round(x) + 0.5, frame.bottom - frame.height - 10);
  context.lineTo(Math.round(x) + 0.5, frame.bottom);
  context.stroke();
  context.setLineDash([]);
  context.font = font(11, 500);
  context.fillStyle = colours.of("text2");
  context.textBaseline = "top";
  const is_right = x > frame.x + frame.width / 2;
  context.textAlign = is_right ? "right" : "left";
  context.fillText(words, x + (is_right ? -5 : 5), frame.bottom - frame.height - 12);
}
