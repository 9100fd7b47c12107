/** The visible part of the graph, and its scale. */

export interface Camera {
  /** The graph's point at the top left corner. */
  x: number;
  y: number;
  scale: number;
}

interface Size {
  width: number;
  height: number;
}

interface Box extends Size {
  x: number;
  y: number;
}

export const SCALE_LEAST = 0.02;
export const SCALE_MOST = 3;
const SCALE_READABLE = 0.75;
const MARGIN = 16;

/** Fits the width, at most at full size, with `focus` in the middle or the top in view. */
export function fitWidth(graph: Size, view: Size, focus: Box | null): Camera {
  const fitted = (view.width - 2 * MARGIN) / Math.max(1, graph.width);
  // Below this scale names are unreadable: a wider graph is shown in part.
  const scale = clampScale(Math.min(1, Math.max(SCALE_READABLE, fitted)));
  const middle = focus && fitted < SCALE_READABLE ? focus.x + focus.width / 2 : graph.width / 2;
  const span = view.width / scale;
  // A wide graph has no empty room at its ends while the rest is out of view.
  const free = graph.width + 2 * MARGIN - span;
  const x = free > 0 ? Math.max(-MARGIN, Math.min(middle - span / 2, free - MARGIN)) : (graph.width - span) / 2;
  const tall = graph.height > view.height / scale - 2 * MARGIN;
  const wish = focus ? focus.y + focus.height / 2 - view.height / scale / 2 : -MARGIN;
  const most = graph.height + MARGIN - view.height / scale;
  return { x, y: tall ? Math.max(-MARGIN, Math.min(wish, most)) : -MARGIN, scale };
}

/** Fits the whole graph. */
export function fitWhole(graph: Size, view: Size): Camera {
  const scale = clampScale(
    Math.min(
      1,
      (view.width - 2 * MARGIN) / Math.max(1, graph.width),
      (view.height - 2 * MARGIN) / Math.max(1, graph.height),
    ),
  );
  return {
    x: (graph.width - view.width / scale) / 2,
    y: (graph.height - view.height / scale) / 2,
    scale,
  };
}

/** Zooms by `factor` around the graph's point at (`x`, `y`) of the view. */
export function zoomAt(camera: Camera, factor: number, x: number, y: number): Camera {
  const scale = clampScale(camera.scale * factor);
  return {
    x: camera.x + x / camera.scale - x / scale,
    y: camera.y + y / camera.scale - y / scale,
    scale,
  };
}

/** Moves as little as needed to bring `box` into view. */
export function reveal(camera: Camera, view: Size, box: Box): Camera {
  const margin = MARGIN * 2;
  const nearest = (at: number, span: number, from: number, size: number) => {
    if (size + 2 * margin > span) return from - margin;
    if (from - margin < at) return from - margin;
    if (from + size + margin > at + span) return from + size + margin - span;
    return at;
  };
  return {
    x: nearest(camera.x, view.width / camera.scale, box.x, box.width),
    y: nearest(camera.y, view.height / camera.scale, box.y, box.height),
    scale: camera.scale,
  };
}

function clampScale(scale: number): number {
  return Math.min(SCALE_MOST, Math.max(SCALE_LEAST, scale));
}
