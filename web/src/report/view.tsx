/** A report's first view: verdict, culprit, largest added errors, and everything else below. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { scopedFilter } from "../address";
import { embedded } from "../connection";
import { CoverageParts } from "../coverage";
import { GraphPane } from "../graph/pane";
import { useMedia } from "../media";
import { FilterBox } from "../overview/filter";
import { OperatorTable } from "../overview/table";
import { TraceChart } from "../overview/trace";
import { VerdictHeader } from "../overview/verdict";
import type { Page } from "../page";
import { useGoodFilter } from "../rows";
import { t } from "../texts";
import { Fault } from "./fault";
import { HowMade } from "./how-made";
import { Most } from "./most";
import { partId, showWantedPart, type PartName } from "./parts";
import { PrintedTable } from "./printed-table";

export function ReportView({ page, is_printing }: { page: Page; is_printing: boolean }) {
  const { address, info } = page;
  const { source, filter, wrong } = useGoodFilter(address);
  const is_narrow = useMedia("(max-width: 759px)");
  const scroller = useRef<HTMLElement | null>(null);
  // The table needs the scrolling element, which exists only after the first pass.
  const [, repaint] = useState(0);
  useEffect(() => {
    repaint(1);
    showWantedPart();
  }, []);
  return (
    <main class={`report ${info.golden ? "" : "one-side"}`} ref={scroller}>
      <Card name="verdict" label={t.part.verdict}>
        <VerdictHeader page={page} />
        <TraceChart page={page} filter={scopedFilter(address, filter)} />
      </Card>
      <Fault page={page} />
      <Most page={page} />
      <Card name="operators" label={t.operators_table}>
        <CardHead
          words={t.operators_table}
          aside={t.matching(source.matching ?? 0, info.n_operators)}
        />
        {is_printing && embedded ? (
          <PrintedTable page={page} contents={embedded} filter={scopedFilter(address, filter)} />
        ) : (
          <div class="report-table">
            <FilterBox page={page} source={source} wrong={wrong} />
            <OperatorTable page={page} source={source} scroller={scroller} is_narrow={is_narrow} />
          </div>
        )}
      </Card>
      <Card name="graph" label={t.graph}>
        <GraphPane page={page} />
      </Card>
      <Card name="coverage" label={t.part.coverage}>
        <CardHead words={t.part.coverage} />
        <div class="coverage">
          <CoverageParts />
        </div>
      </Card>
      <Card name="made" label={t.part.made}>
        <CardHead words={t.part.made} aside={info.program} />
        {embedded && <HowMade page={page} contents={embedded} />}
      </Card>
    </main>
  );
}

interface CardProps {
  name: PartName;
  label: string;
  children: ComponentChildren;
}

export function Card({ name, label, children }: CardProps) {
  return (
    <section class={`card card-${name}`} id={partId(name)} aria-label={label}>
      {children}
    </section>
  );
}

export function CardHead({ words, aside }: { words: string; aside?: ComponentChildren }) {
  return (
    <header class="card-head">
      <h2>{words}</h2>
      <span class="grow" />
      {aside && <span class="dim">{aside}</span>}
    </header>
  );
}
