/** The graph beside the table of the overview. */

import { useState } from "preact/hooks";
import { go } from "../address";
import type { Graph } from "../api";
import { visible } from "../names";
import type { Page } from "../page";
import { t } from "../texts";
import type { Camera } from "./camera";
import { boxOf, GraphCanvas } from "./canvas";
import type { Selection } from "./draw";
import { useGraph } from "./open";

export function GraphPane({ page }: { page: Page }) {
  const answer = useGraph(page);
  const [camera, setCamera] = useState<Camera | null>(null);
  const graph = answer.data;
  const selection = selectionOf(page);
  return (
    <section class="pane graph-pane" data-pane="graph" aria-label={t.graph}>
      <header class="pane-head">
        <h2>{t.graph}</h2>
        {graph && <Crumbs graph={graph} selection={selection} />}
        <span class="grow" />
        <button type="button" class="quiet" onClick={() => setCamera(null)}>
          {t.whole_graph}
        </button>
        <button
          type="button"
          class="quiet"
          onClick={() => go({ view: "graph", op: page.selected })}
        >
          {t.open}
        </button>
      </header>
      <GraphBody
        page={page}
        graph={graph}
        error={answer.error}
        camera={camera}
        onCamera={setCamera}
      />
    </section>
  );
}

interface GraphBodyProps {
  page: Page;
  graph: Graph | null;
  error: string | null;
  camera: Camera | null;
  onCamera: (camera: Camera) => void;
}

export function GraphBody({ page, graph, error, camera, onCamera }: GraphBodyProps) {
  if (error)
    return (
      <p class="trouble">
        {t.cannot_show}: {error}
      </p>
    );
  if (!graph) {
    return (
      <div class="skeletons is-centred" aria-label={t.loading}>
        {[60, 60, 60, 60, 60, 60].map((width) => (
          <span class="skeleton is-box" style={{ width: `${width}%` }} />
        ))}
      </div>
    );
  }
  if (graph.boxes.length === 0) return <p class="empty">{t.graph_empty}</p>;
  // A camera of null asks for a fit: a new canvas finds none and makes it.
  return (
    <GraphCanvas
      key={camera === null ? "new" : "placed"}
      page={page}
      graph={graph}
      camera={camera}
      selection={selectionOf(page)}
      onCamera={onCamera}
    />
  );
}

export function selectionOf(page: Page): Selection {
  return { op: page.selected, key: null };
}

export function Crumbs({ graph, selection }: { graph: Graph; selection: Selection }) {
  const boxes = new Map(graph.boxes.map((box) => [box.key, box]));
  const labels = [];
  let parent = boxOf(graph, selection)?.parent ?? null;
  while (parent !== null && labels.length < 16) {
    const box = boxes.get(parent);
    if (!box) break;
    labels.unshift(visible(box.label));
    parent = box.parent;
  }
  return (
    <span class="crumbs">
      <bdi>{labels.join(" › ")}</bdi>
    </span>
  );
}
