/** The graph as a view of its own: verdict in a line, outline, canvas, and what is selected. */

import { useState } from "preact/hooks";
import { go } from "../address";
import type { Operators } from "../api";
import { useAnswer } from "../connection";
import { Disc } from "../glyph";
import { Inspector } from "../overview/inspector";
import { discSign, Sentence } from "../overview/verdict";
import type { Page } from "../page";
import { faultsPath, selectFault } from "../selection";
import { useMedia } from "../media";
import { t } from "../texts";
import { zoomAt, type Camera } from "./camera";
import { useGraph } from "./open";
import { Outline } from "./outline";
import { Crumbs, GraphBody, selectionOf } from "./pane";

export function GraphView({ page }: { page: Page }) {
  const answer = useGraph(page);
  const [camera, setCamera] = useState<Camera | null>(null);
  const is_wide = useMedia("(min-width: 1240px)");
  const is_narrow = useMedia("(max-width: 759px)");
  const graph = answer.data;
  return (
    <main class="graph-view">
      <VerdictLine page={page} />
      <div class="graph-panes">
        {!is_narrow && (graph ? <Outline page={page} graph={graph} /> : <section class="pane" />)}
        <section class="pane graph-pane" aria-label={t.graph}>
          <header class="pane-head">
            <h2>{t.graph}</h2>
            {graph && <Crumbs graph={graph} selection={selectionOf(page)} />}
            <span class="grow" />
            <span class="legend-way">
              <i class="way" />
              {t.way_to_output}
            </span>
            <Zoom camera={camera} onCamera={setCamera} />
            <button
              type="button"
              class="quiet"
              onClick={() => go({ open: null })}
              title={t.collapse}
            >
              <kbd>x</kbd>
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
        {is_wide && (
          <section class="pane inspector-pane">
            <Inspector page={page} />
          </section>
        )}
      </div>
    </main>
  );
}

/** The verdict in one line, with the way to the others at fault. */
export function VerdictLine({ page }: { page: Page }) {
  const answer = useAnswer<Operators>(faultsPath(page));
  const ids = (answer.data?.rows ?? []).map((row) => row.id);
  const at = page.selected === null ? -1 : ids.indexOf(page.selected);
  return (
    <section class="verdict-line">
      <span class="small-disc">
        <Disc sign={discSign(page.info.verdict)} />
      </span>
      <h1>
        <Sentence page={page} is_link={false} />
      </h1>
      <span class="grow" />
      {ids.length > 0 && (
        <>
          <button type="button" class="quiet" onClick={() => void selectFault(page, -1)}>
            ‹ <kbd>p</kbd>
          </button>
          <span class="dim">
            {at >= 0 ? t.of_at_fault(at + 1, ids.length) : t.at_fault_count(ids.length)}
          </span>
          <button type="button" class="quiet" onClick={() => void selectFault(page, 1)}>
            <kbd>n</kbd> ›
          </button>
        </>
      )}
    </section>
  );
}

interface ZoomProps {
  camera: Camera | null;
  onCamera: (camera: Camera | null) => void;
}

function Zoom({ camera, onCamera }: ZoomProps) {
  const zoom = (factor: number) => camera && onCamera(zoomAt(camera, factor, 300, 300));
  return (
    <span class="segments">
      <button type="button" aria-label={t.zoom_out} onClick={() => zoom(0.8)}>
        −
      </button>
      <button type="button" title={t.whole_graph} onClick={() => onCamera(null)}>
        {camera ? `${Math.round(camera.scale * 100)} %` : t.whole_graph}
      </button>
      <button type="button" aria-label={t.zoom_in} onClick={() => zoom(1.25)}>
        +
      </button>
    </span>
  );
}
