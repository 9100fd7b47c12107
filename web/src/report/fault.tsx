/** The selected operator, initially the culprit: its slices, limits, worst elements. */

import { go } from "../address";
import { Glyph, signOf } from "../glyph";
import { shortName, visible } from "../names";
import { Chain } from "../overview/chain";
import { SlicePart, SlotTabs, useTensor, Why as WhyRules } from "../overview/inspector";
import { OperatorFacts } from "../overview/operator-facts";
import { Why as WhyTag } from "../overview/row";
import type { Page } from "../page";
import { StatisticsTable } from "../tensor/statistics";
import { WorstElements } from "../tensor/elements";
import { filled, t } from "../texts";
import { partId } from "./parts";

const WORST_SHOWN = 3;

export function Fault({ page }: { page: Page }) {
  const operator = page.operator.data;
  if (page.selected === null) return null;
  return (
    <section class="card card-fault" id={partId("fault")} aria-label={operator?.at_fault ? t.part.fault : t.part.selected}>
      {page.operator.error && <p class="trouble">{page.operator.error}</p>}
      {operator && <Head page={page} />}
      {operator && <Body page={page} />}
    </section>
  );
}

function Head({ page }: { page: Page }) {
  const operator = page.operator.data!;
  const { path, last } = shortName(operator.op_name, operator.op_type);
  const facts = [
    visible(operator.op_type),
    `#${t.of(operator.id, page.info.n_operators)}`,
    operator.rank === null ? null : t.rank(operator.rank),
    operator.step === null ? null : t.step(operator.step),
  ];
  return (
    <header class="card-head">
      <Glyph sign={signOf(operator)} size={16} />
      <h2 title={visible(operator.op_name)}>
        <bdi>
          <span class="crumbs">{path}</span>
          {last}
        </bdi>
      </h2>
      <bdi class="dim">{facts.filter((fact) => fact !== null).join(" · ")}</bdi>
      <span class="grow" />
      <WhyTag row={{ ...operator, golden: null }} is_pair={page.info.golden !== null} />
      <button
        type="button"
        class="quiet only-screen"
        onClick={() => go({ view: "tensor", op: operator.id })}
      >
        {t.open_tensor}
      </button>
    </header>
  );
}

function Body({ page }: { page: Page }) {
  const operator = page.operator.data!;
  const { slot } = page;
  const { tensor, lack, error } = useTensor(page, slot);
  const why = lack ?? error ?? tensor?.missing.target ?? tensor?.missing.golden ?? null;
  const has_picture = tensor !== null && (tensor.sides.target ?? tensor.sides.golden) !== null;
  return (
    <div class="fault-columns">
      <div class="fault-left">
        <SlotTabs page={page} operator={operator} />
        {operator.lacks_details && <p class="part dim">{t.report_no_details}</p>}
        {slot && has_picture && <SlicePart page={page} slot={slot} tensor={tensor} />}
        {slot && !has_picture && why && (
          <p class="part dim">{filled(t.no_slice, { why: visible(why) })}</p>
        )}
      </div>
      <div class="fault-right">
        {slot && <WhyRules slot={slot} operator={operator} page={page} />}
        {tensor && page.info.golden && (
          <WorstElements page={page} tensor={tensor} most={WORST_SHOWN} />
        )}
        {tensor && page.info.golden === null && has_picture && (
          <section class="part">
            <StatisticsTable tensor={tensor} is_short={true} is_fault={operator.at_fault} />
          </section>
        )}
        {page.info.golden === null && <Chain page={page} />}
        <OperatorFacts operator={operator} />
        <p class="part dim full">
          <code>
            <bdi>{visible(operator.op_name)}</bdi>
          </code>
        </p>
      </div>
    </div>
  );
}
