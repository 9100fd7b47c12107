/** The overview: verdict, trace, and the panes with table, graph and inspector. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { scopedFilter } from "../address";
import { GraphPane } from "../graph/pane";
import { useKeys } from "../keys";
import type { Page } from "../page";
import { useGoodFilter } from "../rows";
import { useMedia } from "../media";
import { t } from "../texts";
import { Chain } from "./chain";
import { OperatorEvents } from "./operator-events";
import { OperatorHistory } from "./operator-history";
import { Divider, usePaneWidths } from "./divider";
import { FilterBox } from "./filter";
import { Inspector } from "./inspector";
import { OperatorTable } from "./table";
import { TraceChart } from "./trace";
import { VerdictHeader } from "./verdict";

export function Overview({ page }: { page: Page }) {
  const { address, info } = page;
  const { source, filter, wrong } = useGoodFilter(address);
  const is_narrow = useMedia("(max-width: 759px)");
  const scroller = useRef<HTMLElement | null>(null);
  // The table needs the scrolling element, which exists only after the first pass.
  const [, repaint] = useState(0);
  useEffect(() => repaint(1), []);
  return (
    <main
      class={`overview ${info.golden ? "" : "one-side"}`}
      ref={(e) => {
        if (is_narrow) scroller.current = e;
      }}
    >
      <VerdictHeader page={page} />
      <TraceChart page={page} filter={scopedFilter(address, filter)} />
      <Panes page={page} is_narrow={is_narrow}>
        <FilterBox page={page} source={source} wrong={wrong} />
        <OperatorTable page={page} source={source} scroller={scroller} is_narrow={is_narrow} />
      </Panes>
    </main>
  );
}

interface PanesProps {
  page: Page;
  is_narrow: boolean;
  /** The content of the table's pane. */
  children: ComponentChildren;
}

function Panes({ page, is_narrow, children }: PanesProps) {
  const { info } = page;
  const is_wide = useMedia("(min-width: 1240px)");
  const has_graph = is_wide && info.views.includes("graph");
  const [widths, setWidths] = usePaneWidths(info.golden !== null);
  const [largest, setLargest] = useState<string | null>(null);
  useKeys((key) => {
    if (key !== "Escape" || largest === null) return false;
    setLargest(null);
    return true;
  });
  const onDblClick = (event: MouseEvent) => {
    const target = event.target as HTMLElement;
    const pane = target.closest<HTMLElement>("[data-pane]")?.dataset.pane ?? null;
    if (!target.closest(".pane-head") || target.closest("button")) return;
    setLargest(largest === pane ? null : pane);
  };
  const classes = `panes ${has_graph ? "has-graph" : ""} ${largest ? `only-${largest}` : ""}`;
  return (
    <div class={classes} style={widths.style} onDblClick={onDblClick}>
      <section class="pane table-pane" data-pane="table" aria-label={t.operators_table}>
        {children}
      </section>
      {has_graph && <Divider pane="graph" widths={widths} onChange={setWidths} />}
      {has_graph && <GraphPane page={page} />}
      {!is_narrow && <Divider pane="inspector" widths={widths} onChange={setWidths} />}
      {!is_narrow && (
        <section class="pane inspector-pane" data-pane="inspector">
          {info.golden === null && <Chain page={page} />}
          <OperatorEvents page={page} />
          {info.golden === null && <OperatorHistory page={page} />}
          <Inspector page={page} />
        </section>
      )}
    </div>
  );
}
