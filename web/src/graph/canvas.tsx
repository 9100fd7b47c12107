/** The graph on a canvas: drag and wheel move it, a click selects or opens. */

import { useEffect, useRef, useState } from "preact/hooks";
import { go } from "../address";
import type { Graph, GraphBox } from "../api";
import { useCanvas } from "../canvas";
import { useKeys } from "../keys";
import type { Page } from "../page";
import { t } from "../texts";
import { fitWhole, fitWidth, reveal, zoomAt, type Camera } from "./camera";
import { boxOf, drawGraph, type HandMarks, type Selection } from "./draw";
import { Minimap } from "./minimap";
import { nextOpen, toggle } from "./open";

interface GraphCanvasProps {
  page: Page;
  graph: Graph;
  selection: Selection;
  marks: HandMarks;
  camera: Camera | null;
  onCamera: (camera: Camera) => void;
  onPick: (box: GraphBox) => void;
}

const CLICK_PIXELS = 4;
const SPINE_HALF = 52;

export function GraphCanvas({
  page,
  graph,
  selection,
  marks,
  camera,
  onCamera,
  onPick,
}: GraphCanvasProps) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ width: 0, height: 0 });
  const state = useRef({ camera, graph });
  state.current = { camera, graph };
  useViewSize(box, setView);
  const selected = boxOf(graph, selection);
  // The first operator is only selected because something must be.
  const has_focus = page.address.op !== null || page.info.verdict.op !== null;
  usePlacing(graph, selected, has_focus, view, camera, onCamera);
  useGraphKeys(page, graph, selected, view, camera, onCamera);
  const canvas = useCanvas(
    (context, width, height, colours) => {
      if (camera) drawGraph(context, width, height, colours, graph, camera, selection, marks);
    },
    [graph, camera, selection.op, selection.key, marks],
  );
  const drag = useDrag(
    state,
    onCamera,
    onPick,
    (target) => target.kind === "op" || nextOpen(page, graph, target) !== null,
  );
  const n_fail = graph.boxes.filter(
    (b) => b.status === "fail" && !b.is_open && (!graph.step || b.side === "target"),
  ).length;
  return (
    <div class="graph-box" ref={box}>
      <canvas
        ref={canvas}
        role="application"
        tabIndex={0}
        class="graph-canvas"
        aria-label={
          graph.step
            ? t.step_words(graph.step.marks.length, n_fail)
            : t.graph_words(graph.boxes.length, n_fail)
        }
        onPointerDown={drag.down}
        onWheel={drag.wheel}
        onPointerMove={drag.hover}
      />
      {camera && view.height > 0 && (
        <Minimap graph={graph} camera={camera} view={view} onCamera={onCamera} />
      )}
    </div>
  );
}

function useViewSize(
  box: { current: HTMLElement | null },
  setView: (view: { width: number; height: number }) => void,
): void {
  useEffect(() => {
    const element = box.current!;
    const read = () => setView({ width: element.clientWidth, height: element.clientHeight });
    read();
    const observer = new ResizeObserver(read);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
}

/** Fits a graph when it is first shown, and later keeps the selection in view. */
function usePlacing(
  graph: Graph,
  selected: GraphBox | null,
  has_focus: boolean,
  view: { width: number; height: number },
  camera: Camera | null,
  onCamera: (camera: Camera) => void,
): void {
  const before = useRef<GraphBox | null>(null);
  const width_before = useRef(0);
  useEffect(() => {
    if (view.width === 0) return;
    if (camera === null) {
      const focus = has_focus ? focusOf(graph, selected, view.width) : mainColumn(graph);
      onCamera(fitWidth(graph, view, focus));
    } else {
      const last = before.current;
      let next = camera;
      // The centre stays when the pane's width changes.
      const wider = width_before.current === 0 ? 0 : view.width - width_before.current;
      if (wider !== 0) next = { ...next, x: next.x - wider / 2 / next.scale };
      // A group that opens above moves the selection; the view follows.
      if (selected && last?.key === selected.key) {
        next = { ...next, x: next.x + selected.x - last.x, y: next.y + selected.y - last.y };
      }
      if (selected && has_focus) next = reveal(next, view, selected);
      if (next.x !== camera.x || next.y !== camera.y) onCamera(next);
    }
    before.current = selected;
    width_before.current = view.width;
  }, [graph, selected?.key, view.width, view.height]);
}

/** The top of the column that most boxes share. */
function mainColumn(graph: Graph): { x: number; y: number; width: number; height: number } | null {
  const centers = graph.boxes.map((box) => box.x + box.width / 2).sort((a, b) => a - b);
  const x = centers[Math.floor(centers.length / 2)];
  return x === undefined ? null : { x, y: 0, width: 0, height: 0 };
}

/** The box to keep in view: in step, both sides, or on a small screen one side and the marks. */
function focusOf(graph: Graph, selected: GraphBox | null, width: number): GraphBox | null {
  if (!graph.step || !selected) return selected;
  if (width >= 0.6 * graph.width) return { ...selected, x: 0, width: graph.width };
  const left = Math.min(selected.x, graph.step.spine - SPINE_HALF);
  const right = Math.max(selected.x + selected.width, graph.step.spine + SPINE_HALF);
  return { ...selected, x: left, width: right - left };
}

function useGraphKeys(
  page: Page,
  graph: Graph,
  selected: GraphBox | null,
  view: { width: number; height: number },
  camera: Camera | null,
  onCamera: (camera: Camera) => void,
): void {
  useKeys((key) => {
    if (!camera) return false;
    const zoom = (factor: number) =>
      onCamera(zoomAt(camera, factor, view.width / 2, view.height / 2));
    switch (key) {
      case "+":
      case "=":
        zoom(1.25);
        return true;
      case "-":
      case "−":
        zoom(0.8);
        return true;
      case "0":
        zoom(1 / camera.scale);
        return true;
      case "f":
        onCamera(fitWhole(graph, view));
        return true;
      case "x":
        go({ open: null });
        return true;
      case " ": {
        const group =
          selected?.kind === "group"
            ? selected
            : graph.boxes.find((b) => b.key === selected?.parent);
        if (group) toggle(page, graph, group);
        return group !== undefined;
      }
      default:
        return false;
    }
  });
}

function useDrag(
  state: { current: { camera: Camera | null; graph: Graph } },
  onCamera: (camera: Camera) => void,
  onSelect: (box: GraphBox) => void,
  canSelect: (box: GraphBox) => boolean,
) {
  const hit = (event: MouseEvent) => {
    const { camera, graph } = state.current;
    if (!camera) return null;
    const { left, top } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return boxAt(
      graph,
      camera.x + (event.clientX - left) / camera.scale,
      camera.y + (event.clientY - top) / camera.scale,
    );
  };
  return {
    down: (event: PointerEvent) => {
      const { camera } = state.current;
      if (!camera || event.button !== 0) return;
      const canvas = event.currentTarget as HTMLElement;
      canvas.setPointerCapture(event.pointerId);
      const pressed = hit(event);
      let drags = false;
      const move = (e: PointerEvent) => {
        const [dx, dy] = [e.clientX - event.clientX, e.clientY - event.clientY];
        drags ||= Math.abs(dx) + Math.abs(dy) > CLICK_PIXELS;
        if (drags) {
          onCamera({ ...camera, x: camera.x - dx / camera.scale, y: camera.y - dy / camera.scale });
        }
      };
      canvas.addEventListener("pointermove", move);
      const end = () => {
        canvas.removeEventListener("pointermove", move);
        if (!drags && pressed) onSelect(pressed);
      };
      canvas.addEventListener("pointerup", end, { once: true });
    },
    hover: (event: PointerEvent) => {
      const over = event.buttons === 0 ? hit(event) : null;
      const canvas = event.currentTarget as HTMLElement;
      const is_closed_for_good = over !== null && !canSelect(over);
      canvas.style.cursor = is_closed_for_good ? "not-allowed" : over ? "pointer" : "grab";
      canvas.title = is_closed_for_good ? t.report_no_group : "";
    },
    wheel: (event: WheelEvent) => {
      const { camera } = state.current;
      const canvas = event.currentTarget as HTMLElement;
      // On a scrolling page, the wheel scrolls the page unless a modifier is held.
      const is_page_wheel = canvas.closest(".report") && !event.ctrlKey && !event.metaKey;
      if (!camera || is_page_wheel) return;
      event.preventDefault();
      const { left, top } = canvas.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey) {
        onCamera(
          zoomAt(camera, Math.exp(-event.deltaY / 300), event.clientX - left, event.clientY - top),
        );
      } else {
        onCamera({
          ...camera,
          x: camera.x + event.deltaX / camera.scale,
          y: camera.y + event.deltaY / camera.scale,
        });
      }
    },
  };
}

/** The smallest box at a point; of an open group, only its head counts. */
function boxAt(graph: Graph, x: number, y: number): GraphBox | null {
  let best: GraphBox | null = null;
  for (const box of graph.boxes) {
    const height = box.is_open ? 26 : box.height;
    if (x < box.x || x > box.x + box.width || y < box.y || y > box.y + height) continue;
    if (!best || box.width * height < best.width * best.height) best = box;
  }
  return best;
}
