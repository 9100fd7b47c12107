/** The graph view: verdict in one line, outline, canvas, and the selection. */

import { useMemo, useState } from "preact/hooks";
import { go, type SideChoice } from "../address";
import type { Graph, GraphBox, Operators } from "../api";
import { is_report, useAnswer } from "../connection";
import { Glyph } from "../glyph";
import { useKeys } from "../keys";
import { visible } from "../names";
import { Inspector } from "../overview/inspector";
import { Sentence, VerdictDisc } from "../overview/verdict";
import type { Page } from "../page";
import { faultsPath, selectFault } from "../selection";
import { LETTERS_FEW, sideName } from "../sides";
import { useMedia } from "../media";
import { t } from "../texts";
import { zoomAt, type Camera } from "./camera";
import { boxOf, type HandMarks } from "./draw";
import { clashes, memberOf, usePairs, type HandPair } from "./hand";
import { HandPairs } from "./hand-pairs";
import { defaultSide, sideShown, useGraph } from "./open";
import { Outline } from "./outline";
import { PairCounts } from "./pair-counts";
import { PairingBar, usePairing, type PairingState } from "./pairing";
import { Crumbs, GraphBody, pickBox } from "./pane";
import { Partners } from "./partners";

export function GraphView({ page }: { page: Page }) {
  const is_narrow = useMedia("(max-width: 759px)");
  const side = sideShown(page, is_narrow);
  const answer = useGraph(page, side);
  const [camera, setCamera] = useState<Camera | null>(null);
  const [picked, setPicked] = useState<{ key: string; op: number | null } | null>(null);
  const is_wide = useMedia("(min-width: 1240px)");
  const pairing = usePairing();
  const pairs = usePairs();
  // The other side's answer may still be present while the new one is loading.
  const graph = answer.data?.side === side ? answer.data : null;
  const key = picked !== null && picked.op === page.selected ? picked.key : null;
  const selection = { op: page.selected, key };
  const box = graph && boxOf(graph, selection);
  const pick = (target: GraphBox) => {
    if (!graph || pairing.toggle(target)) return;
    if (target.kind === "op") {
      setPicked({ key: target.key, op: target.id ?? target.inside ?? page.selected });
    }
    pickBox(page, graph, target);
  };
  useKeys((pressed) => {
    if (pressed !== "P" || !graph?.step || !box) return false;
    pairing.begin(box);
    return true;
  });
  const marks = useMarks(graph, pairs, pairing);
  const other = pairing.current && (pairing.current.from.side === "target" ? "golden" : "target");
  const mapping = graph?.step?.mapping ?? null;
  const hand = page.info.golden && <HandPairs page={page} mapping={mapping} />;
  return (
    <main class="graph-view">
      <VerdictLine page={page} />
      <div class="graph-panes">
        {!is_narrow &&
          (graph ? (
            <Outline page={page} graph={graph} selection={selection} side={other} onPick={pick}>
              {graph.step && <PairCounts counts={graph.step.pairs} n_new={pairs.length} />}
            </Outline>
          ) : (
            <section class="pane" />
          ))}
        <section class="pane graph-pane" aria-label={t.graph}>
          <header class="pane-head">
            <h2>{t.graph}</h2>
            {graph && <Crumbs graph={graph} selection={selection} />}
            <Legend is_pair={page.info.golden !== null} />
            {page.info.golden && !is_report && (
              <Sides side={side} is_narrow={is_narrow} onSide={() => setCamera(null)} />
            )}
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
            selection={selection}
            marks={marks}
            camera={camera}
            onCamera={setCamera}
            onPick={pick}
          />
          <PairingBar pairing={pairing} />
          {!is_wide && hand}
        </section>
        {is_wide && (
          <section class="pane inspector-pane">
            <Selected page={page} graph={graph} box={box} pairing={pairing} />
            {hand}
          </section>
        )}
      </div>
    </main>
  );
}

interface SelectedProps {
  page: Page;
  graph: Graph | null;
  box: GraphBox | null;
  pairing: PairingState;
}

/** The inspector of the selected pair, or the facts of an unmatched operator. */
function Selected({ page, graph, box, pairing }: SelectedProps) {
  const is_pair = graph !== null && box !== null && page.info.golden !== null;
  const partners = is_pair && box.kind === "op" && (
    <Partners page={page} graph={graph} box={box} pairing={pairing} />
  );
  if (is_pair && box.kind === "op" && box.id === null) {
    return (
      <div class="inspector">
        <header class="pane-head">
          <Glyph sign="skip" size={16} />
          <h2 title={visible(box.op_name ?? box.label)}>
            <bdi>{visible(box.label)}</bdi>
          </h2>
          <bdi class="type">{visible(box.op_type)}</bdi>
          <code class="full-name" title={visible(box.op_name ?? "")}>
            <bdi>{visible(box.op_name ?? "")}</bdi>
          </code>
        </header>
        {partners}
      </div>
    );
  }
  return <Inspector page={page} partners={partners || undefined} />;
}

/** Keys of boxes that are paired by hand or being paired. */
function useMarks(graph: Graph | null, pairs: HandPair[], pairing: PairingState): HandMarks {
  const { current } = pairing;
  return useMemo(() => {
    const members = pairs.flatMap((pair) => [...pair.target, ...pair.golden]);
    const is_paired = (b: GraphBox) => {
      const member = members.length > 0 ? memberOf(b) : null;
      return member !== null && members.some((m) => clashes(m, member));
    };
    const paired = (graph?.boxes ?? []).filter(is_paired).map((b) => b.key);
    const chosen = current ? [current.from, ...current.chosen].map((b) => b.key) : [];
    return { paired: new Set(paired), chosen: new Set(chosen) };
  }, [graph, pairs, current]);
}

function Legend({ is_pair }: { is_pair: boolean }) {
  return (
    <span class="legend-ways">
      <span class="legend-way">
        <i class="way" />
        {t.way_to_output}
      </span>
      {is_pair && (
        <span class="legend-way">
          <i class="alone" />
          {t.no_partner}
        </span>
      )}
    </span>
  );
}

interface SidesProps {
  side: SideChoice;
  is_narrow: boolean;
  onSide: () => void;
}

function Sides({ side, is_narrow, onSide }: SidesProps) {
  const choose = (next: SideChoice) => {
    // Another picture: the old position is meaningless.
    onSide();
    go({ side: next === defaultSide(is_narrow) ? null : next });
  };
  return (
    <span class="segments" role="group" aria-label={t.side_shown}>
      {(["target", "golden", "both"] as const).map((one) => (
        <button type="button" key={one} aria-pressed={one === side} onClick={() => choose(one)}>
          {one === "both" ? t.both_in_step : <bdi>{sideName(one, LETTERS_FEW)}</bdi>}
        </button>
      ))}
    </span>
  );
}

/** The verdict in one line, with links to the other faulty operators. */
export function VerdictLine({ page }: { page: Page }) {
  const answer = useAnswer<Operators>(faultsPath(page));
  const ids = (answer.data?.rows ?? []).map((row) => row.id);
  const at = page.selected === null ? -1 : ids.indexOf(page.selected);
  return (
    <section class="verdict-line">
      <span class="small-disc">
        <VerdictDisc page={page} />
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
