/** The picture of one side of a slice, with the pointer and the maxima of its rows. */

import { useMemo } from "preact/hooks";
import { useCanvas } from "../canvas";
import { currentColours } from "../colours";
import { formatNumber } from "../numbers";
import { t } from "../texts";
import { paintSlice, scaleCss, type Scale, type Slice } from "./slice";

interface PictureProps {
  slice: Slice;
  scale: Scale;
  label: string;
  theme: string;
  /** Row and column of the whole slice under the pointer. */
  pointer?: { row: number; column: number } | null;
  onPoint?: (row: number, column: number) => void;
  has_margin?: boolean;
  is_whole?: boolean;
}

const MARGIN = 12;

export function Picture(props: PictureProps) {
  const { slice, scale, label, theme, pointer, onPoint, has_margin = false, is_whole } = props;
  const image = useMemo(
    () => paintSlice(slice, scale, currentColours()),
    [slice, scale.kind, scale.low, scale.high, theme],
  );
  const has_infinity = useMemo(
    () => slice.values.some((value) => Math.abs(value) === Infinity),
    [slice],
  );
  const canvas = useCanvas(
    (context, width, height, colours) => {
      const picture_width = width - (has_margin ? MARGIN : 0);
      context.imageSmoothingEnabled = false;
      context.drawImage(image, 0, 0, picture_width, height);
      if (has_infinity) drawHatch(context, slice, picture_width, height, colours.of("warnbg"));
      context.strokeStyle = colours.of("line");
      context.lineWidth = 1;
      context.strokeRect(0.5, 0.5, picture_width - 1, height - 1);
      if (has_margin) drawMargin(context, slice, picture_width + 3, height, colours.of("fail"));
      if (pointer)
        drawPointer(context, slice, pointer, picture_width, height, colours.of("accent"));
    },
    [image, pointer?.row, pointer?.column, has_margin],
  );
  const words = t.picture_words(
    label,
    slice.full_rows,
    slice.full_columns,
    formatNumber(slice.low),
    formatNumber(slice.high),
  );
  const point = (event: PointerEvent) => {
    const { left, top, width, height } = (
      event.currentTarget as HTMLElement
    ).getBoundingClientRect();
    const x = (event.clientX - left) / (width - (has_margin ? MARGIN : 0));
    const y = (event.clientY - top) / height;
    if (x >= 1) return;
    onPoint?.(Math.floor(y * slice.full_rows), Math.floor(x * slice.full_columns));
  };
  const style = is_whole
    ? { width: `${slice.columns + (has_margin ? MARGIN : 0)}px`, height: `${slice.rows}px` }
    : undefined;
  return (
    <canvas
      ref={canvas}
      class={`picture ${onPoint ? "is-pointed" : ""}`}
      role="img"
      style={style}
      aria-label={words}
      onPointerDown={onPoint ? point : undefined}
      onPointerMove={(event) => onPoint && event.buttons === 1 && point(event)}
    />
  );
}

const HATCHED_CELLS_MAX = 20_000;

/** On screen, infinities in large cells are hatched, because the scale also contains their hue. */
function drawHatch(
  context: CanvasRenderingContext2D,
  slice: Slice,
  width: number,
  height: number,
  colour: string,
): void {
  const [w, h] = [width / slice.columns, height / slice.rows];
  if (w < 2 || h < 2 || slice.values.length > HATCHED_CELLS_MAX) return;
  context.save();
  context.beginPath();
  slice.values.forEach((value, i) => {
    if (Math.abs(value) !== Infinity) return;
    context.rect((i % slice.columns) * w, Math.floor(i / slice.columns) * h, w, h);
  });
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  for (let d = -height; d < width; d += 4) {
    context.moveTo(d, height);
    context.lineTo(d + height, 0);
  }
  context.stroke();
  context.restore();
}

function drawMargin(
  context: CanvasRenderingContext2D,
  slice: Slice,
  x: number,
  height: number,
  colour: string,
): void {
  let most = 0;
  for (const size of slice.row_maxima) if (Number.isFinite(size)) most = Math.max(most, size);
  context.fillStyle = colour;
  for (let row = 0; row < slice.rows; row += 1) {
    const size = slice.row_maxima[row];
    if (size === 0) continue;
    const share = Number.isFinite(size) ? size / (most || 1) : 1;
    const y = (row * height) / slice.rows;
    // A differing row is visible however thin it is.
    const h = Math.max(2, height / slice.rows);
    context.fillRect(
      x,
      Math.min(height - h, y - (h > height / slice.rows ? 0.5 : 0)),
      Math.max(1.5, share * (MARGIN - 3)),
      h,
    );
  }
}

function drawPointer(
  context: CanvasRenderingContext2D,
  slice: Slice,
  at: { row: number; column: number },
  width: number,
  height: number,
  colour: string,
): void {
  const x = ((at.column + 0.5) * width) / slice.full_columns;
  const y = ((at.row + 0.5) * height) / slice.full_rows;
  context.strokeStyle = colour;
  context.globalAlpha = 0.55;
  context.beginPath();
  context.moveTo(0, y);
  context.lineTo(width, y);
  context.moveTo(x, 0);
  context.lineTo(x, height);
  context.stroke();
  context.globalAlpha = 1;
  const w = Math.max(6, width / slice.full_columns);
  const h = Math.max(6, height / slice.full_rows);
  context.lineWidth = 2;
  context.strokeRect(x - w / 2, y - h / 2, w, h);
}

/** The colours of a scale with its ends and middle. */
export function ScaleBar({ scale, theme }: { scale: Scale; theme: string }) {
  const style = useMemo(
    () => ({ background: scaleCss(scale, currentColours()) }),
    [scale.kind, theme],
  );
  return (
    <div class="scale">
      <div class="scale-bar" style={style} />
      <span>{formatNumber(scale.low)}</span>
      {scale.kind === "diverging" && <span>0</span>}
      <span>{formatNumber(scale.high)}</span>
    </div>
  );
}
