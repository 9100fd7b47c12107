/** A canvas that follows its box, the pixel density and the theme. */

import type { Ref } from "preact";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { currentColours, type Colours } from "./colours";

export type Draw = (
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  colours: Colours,
) => void;

export const THEME_EVENT = "opscope-theme";

export const SANS =
  getComputedStyle(document.documentElement).getPropertyValue("--sans").trim() ||
  "system-ui, sans-serif";

export function font(size: number, weight = 400): string {
  return `${weight} ${size}px ${SANS}`;
}

/** Draws at once when `deps` change, and later when size or theme do. */
export function useCanvas(draw: Draw, deps: unknown[]): Ref<HTMLCanvasElement> {
  const canvas = useRef<HTMLCanvasElement | null>(null);
  const latest = useRef(draw);
  latest.current = draw;
  const paint = useCallback(() => {
    if (canvas.current) paintCanvas(canvas.current, latest.current);
  }, []);
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const observer = new ResizeObserver(paint);
    observer.observe(element);
    addEventListener(THEME_EVENT, paint);
    return () => {
      observer.disconnect();
      removeEventListener(THEME_EVENT, paint);
    };
  }, []);
  useEffect(paint, deps);
  return canvas;
}

function paintCanvas(canvas: HTMLCanvasElement, draw: Draw): void {
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (width === 0 || height === 0) return;
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  const context = canvas.getContext("2d")!;
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, width, height);
  draw(context, width, height, currentColours());
}

let ruler: CanvasRenderingContext2D | null = null;
const widths = new Map<string, number>();

/** The width of `text` in `css_font`, cached. */
export function textWidth(text: string, css_font: string): number {
  const key = `${css_font}\n${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    ruler ??= document.createElement("canvas").getContext("2d")!;
    ruler.font = css_font;
    width = ruler.measureText(text).width;
    if (widths.size > 20_000) widths.clear();
    widths.set(key, width);
  }
  return width;
}

/** Fills a rectangle with the lattice that marks NaN. */
export function fillLattice(
  context: CanvasRenderingContext2D,
  colours: Colours,
  x: number,
  y: number,
  width: number,
  height: number,
): void {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.fillStyle = colours.of("failbg");
  context.fillRect(x, y, width, height);
  context.strokeStyle = colours.of("failpale");
  context.lineWidth = 1;
  context.beginPath();
  for (let d = Math.floor((x - height) / 5) * 5; d < x + width + height; d += 5) {
    context.moveTo(d, y);
    context.lineTo(d + height, y + height);
    context.moveTo(d, y + height);
    context.lineTo(d + height, y);
  }
  context.stroke();
  context.restore();
}
