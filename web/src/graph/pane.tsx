/** The graph next to the overview's table. */

import { useState } from "preact/hooks";
import { go } from "../address";
import type { Graph, GraphBox } from "../api";
import { visible } from "../names";
import type { Page } from "../page";
import { t } from "../texts";
import type { Camera } from "./camera";
import { GraphCanvas } from "./canvas";
import { boxOf, NO_MARKS, type HandMarks, type Selection } from "./draw";
import { SideHeads } from "./heads";
import { toggle, useGraph } from "./open";

export function GraphPane({ page }: { page: Page }) {
  const answer = useGraph(page);
  const [camera, setCamera] = useState<Camera | null>(null);
  const graph = answer.data;
  const selection = { op: page.selected, key: null };
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
        selection={selection}
        camera={camera}
        onCamera={setCamera}
        onPick={(box) => graph && pickBox(page, graph, box)}
      />
    </section>
  );
}

interface GraphBodyProps {
  page: Page;
  graph: Graph | null;
  error: string | null;
  selection: Selection;
  marks?: HandMarks;
  camera: Camera | null;
  onCamera: (camera: Camera) => void;
  onPick: (box: GraphBox) => void;
}

export function GraphBody({
  page,
  graph,
  error,
  selection,
  marks = NO_MARKS,
  camera,
  onCamera,
  onPick,
}: GraphBodyProps) {
  if (error)
    return (
      <p class="trouble">
        {t.cannot_show}: {error}
      </p>
    );
  if (!graph) {
    return (
      <div class="skeletons is-centred" role="status" aria-label={t.loading}>
        {[60, 60, 60, 60, 60, 60].map((width) => (
          <span class="skeleton is-box" style={{ width: `${width}%` }} />
        ))}
      </div>
    );
  }
  if (graph.boxes.length === 0) return <p class="empty">{t.graph_empty}</p>;
  // A null camera requests a fit, which a new canvas performs.
  return (
    <>
      {graph.step && <SideHeads page={page} centers={graph.step.centers} camera={camera} />}
      <GraphCanvas
        key={camera === null ? "new" : "placed"}
        page={page}
        graph={graph}
        camera={camera}
        selection={selection}
        marks={marks}
        onCamera={onCamera}
        onPick={onPick}
      />
    </>
  );
}

/** Selects the operator or pair of a box, or toggles a group. */
export function pickBox(page: Page, graph: Graph, box: GraphBox): void {
  const id = box.id ?? box.inside ?? null;
  if (box.kind === "group") toggle(page, graph, box);
  else if (id !== null) go({ op: id });
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
