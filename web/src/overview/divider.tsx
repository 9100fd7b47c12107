/** Draggable lines between panes; this browser stores the widths. */

import { useState } from "preact/hooks";

type PaneName = "graph" | "inspector";

export interface PaneWidths {
  graph: number | null;
  inspector: number | null;
  style: Record<string, string>;
}

interface DividerProps {
  pane: PaneName;
  widths: PaneWidths;
  onChange: (pane: PaneName, width: number | null) => void;
}

const KEY = "opscope-panes";
const LEAST: Record<PaneName, number> = { graph: 240, inspector: 320 };

export function usePaneWidths(
  is_pair: boolean,
): [PaneWidths, (pane: PaneName, width: number | null) => void] {
  const key = `${KEY}-${is_pair ? "pair" : "one"}`;
  const [kept, setKept] = useState(() => readWidths(key));
  const change = (pane: PaneName, width: number | null) => {
    const next = { ...kept, [pane]: width };
    setKept(next);
    // A browser may refuse storage; the widths then last as long as the page.
    try {
      localStorage.setItem(key, JSON.stringify(next));
    } catch {
      /* only the widths are lost */
    }
  };
  const style: Record<string, string> = {};
  if (kept.graph) style["--graph-width"] = `${kept.graph}px`;
  if (kept.inspector) style["--inspector-width"] = `${kept.inspector}px`;
  return [{ ...kept, style }, change];
}

export function Divider({ pane, onChange }: DividerProps) {
  const start = (event: PointerEvent) => {
    const grip = event.currentTarget as HTMLElement;
    const neighbour = grip.nextElementSibling as HTMLElement;
    const from = event.clientX;
    const width = neighbour.getBoundingClientRect().width;
    const most = innerWidth * 0.6;
    grip.setPointerCapture(event.pointerId);
    const move = (e: PointerEvent) =>
      onChange(pane, Math.round(Math.max(LEAST[pane], Math.min(most, width + from - e.clientX))));
    grip.addEventListener("pointermove", move);
    grip.addEventListener("pointerup", () => grip.removeEventListener("pointermove", move), {
      once: true,
    });
  };
  return (
    <div
      class="divider"
      role="separator"
      aria-orientation="vertical"
      onPointerDown={start}
      onDblClick={() => onChange(pane, null)}
    />
  );
}

function readWidths(key: string): { graph: number | null; inspector: number | null } {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? "{}") as Record<string, unknown>;
    const width = (value: unknown) => (typeof value === "number" && value > 0 ? value : null);
    return { graph: width(kept.graph), inspector: width(kept.inspector) };
  } catch {
    return { graph: null, inspector: null };
  }
}
