/** A miniature of the whole graph: faulty operators, and the visible part. */

import type { Graph, GraphBox, Status } from "../api";
import { useCanvas } from "../canvas";
import type { Colours } from "../colours";
import { t } from "../texts";
import type { Camera } from "./camera";

interface MinimapProps {
  graph: Graph;
  camera: Camera;
  view: { width: number; height: number };
  onCamera: (camera: Camera) => void;
}

export function Minimap({ graph, camera, view, onCamera }: MinimapProps) {
  const canvas = useCanvas(
    (context, width, height, colours) => {
      drawMinimap(context, width, height, colours, graph, camera, view);
    },
    [graph, camera, view],
  );
  const is_all_seen =
    graph.width * camera.scale <= view.width && graph.height * camera.scale <= view.height;
  if (is_all_seen) return null;
  const move = (event: PointerEvent) => {
    if (event.type === "pointermove" && event.buttons !== 1) return;
    const { left, top, width, height } = (
      event.currentTarget as HTMLElement
    ).getBoundingClientRect();
    const scale = minimapScale(graph, width, height);
    const x = (event.clientX - left - (width - graph.width * scale) / 2) / scale;
    const y = (event.clientY - top - 4) / scale;
    onCamera({
      ...camera,
      x: x - view.width / camera.scale / 2,
      y: y - view.height / camera.scale / 2,
    });
  };
  return (
    <canvas
      ref={canvas}
      class="minimap"
      role="img"
      aria-label={t.minimap}
      onPointerDown={move}
      onPointerMove={move}
    />
  );
}

function drawMinimap(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  colours: Colours,
  graph: Graph,
  camera: Camera,
  view: { width: number; height: number },
): void {
  const scale = minimapScale(graph, width, height);
  const left = (width - graph.width * scale) / 2;
  const paint = (box: GraphBox, colour: string, least: number) => {
    context.fillStyle = colour;
    context.fillRect(
      left + box.x * scale,
      4 + box.y * scale,
      Math.max(least, box.width * scale),
      Math.max(least, box.height * scale),
    );
  };
  const colour: Record<Status, string> = {
    fail: colours.of("failpale"),
    warn: colours.of("warnpale"),
    pass: colours.of("line2"),
    skip: colours.of("line"),
  };
  for (const box of graph.boxes) if (!box.is_open) paint(box, colour[box.status], 1);
  for (const box of graph.boxes)
    if (box.at_fault && !box.is_open) paint(box, colours.of("fail"), 3);
  context.strokeStyle = colours.of("accent");
  context.lineWidth = 1.5;
  const frame = {
    x: Math.max(1, left + camera.x * scale),
    y: Math.max(1, 4 + camera.y * scale),
    right: Math.min(width - 1, left + (camera.x + view.width / camera.scale) * scale),
    bottom: Math.min(height - 1, 4 + (camera.y + view.height / camera.scale) * scale),
  };
  context.beginPath();
  context.roundRect(
    frame.x,
    frame.y,
    Math.max(4, frame.right - frame.x),
    Math.max(4, frame.bottom - frame.y),
    3,
  );
  context.stroke();
}

function minimapScale(graph: Graph, width: number, height: number): number {
  return Math.min((width - 8) / Math.max(1, graph.width), (height - 8) / Math.max(1, graph.height));
}
