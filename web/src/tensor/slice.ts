/** A slice as the server sends it, and its picture. */

import { cssRgb, onScale, parseHex, type Colours, type Rgb } from "../colours";

export interface Slice {
  rows: number;
  columns: number;
  full_rows: number;
  full_columns: number;
  /** Range of the finite values shown. */
  low: number;
  high: number;
  values: Float32Array;
  /** The largest magnitude in each picture row. */
  row_maxima: Float32Array;
}

export interface Scale {
  kind: "diverging" | "sequential";
  low: number;
  high: number;
}

const HEAD_BYTES = 24;

export function decodeSlice(bytes: ArrayBuffer): Slice | null {
  if (bytes.byteLength < HEAD_BYTES) return null;
  const view = new DataView(bytes);
  const [rows, columns, full_rows, full_columns] = [0, 4, 8, 12].map((at) =>
    view.getUint32(at, true),
  );
  if (bytes.byteLength < HEAD_BYTES + 4 * (rows * columns + rows)) return null;
  return {
    rows,
    columns,
    full_rows,
    full_columns,
    low: view.getFloat32(16, true),
    high: view.getFloat32(20, true),
    values: new Float32Array(bytes, HEAD_BYTES, rows * columns),
    row_maxima: new Float32Array(bytes, HEAD_BYTES + 4 * rows * columns, rows),
  };
}

/** One scale for all `slices`: diverging scales are centred on zero. */
export function commonScale(slices: (Slice | null)[], kind: Scale["kind"]): Scale {
  const known = slices.filter((s) => s !== null && s.low <= s.high) as Slice[];
  if (known.length === 0) return { kind, low: -1, high: 1 };
  const low = Math.min(...known.map((s) => s.low));
  const high = Math.max(...known.map((s) => s.high));
  if (kind === "sequential") return { kind, low, high: high > low ? high : low + 1 };
  const reach = Math.max(Math.abs(low), Math.abs(high)) || 1;
  return { kind, low: -reach, high: reach };
}

export function colourOf(value: number, scale: Scale, colours: Colours): Rgb {
  const share = (value - scale.low) / (scale.high - scale.low);
  return onScale(colours[scale.kind], share);
}

const STEPS = 512;

/** The picture of a slice, one pixel per value. */
export function paintSlice(slice: Slice, scale: Scale, colours: Colours): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, slice.columns);
  canvas.height = Math.max(1, slice.rows);
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(canvas.width, canvas.height);
  const table = Array.from({ length: STEPS + 1 }, (_, i) =>
    onScale(colours[scale.kind], i / STEPS),
  );
  const nan = parseHex(colours.of("fail"));
  const amber = parseHex(colours.of("warnmark"));
  const hatch = parseHex(colours.of("warnbg"));
  const factor = STEPS / (scale.high - scale.low);
  for (let i = 0; i < slice.values.length; i += 1) {
    const value = slice.values[i];
    let rgb: Rgb;
    if (Number.isNaN(value)) rgb = nan;
    else if (!Number.isFinite(value)) {
      // The diagonal hatch of Inf, in the picture's own pixels.
      const place = Math.floor(i / slice.columns) + (i % slice.columns);
      rgb = place % 4 === 0 && slice.columns > 200 ? hatch : amber;
    } else {
      const step = Math.round((value - scale.low) * factor);
      rgb = table[step < 0 ? 0 : step > STEPS ? STEPS : step];
    }
    image.data.set([rgb[0], rgb[1], rgb[2], 255], i * 4);
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

export function scaleCss(scale: Scale, colours: Colours): string {
  const stops = colours[scale.kind].map(cssRgb).join(", ");
  return `linear-gradient(90deg, ${stops})`;
}
