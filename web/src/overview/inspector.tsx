/** The selected operator: slots, why it fails, slices, distribution, statistics. */

import type { ComponentChildren } from "preact";
import { go } from "../address";
import type { Operator, Slot, Tensor } from "../api";
import { useAnswer } from "../connection";
import { Glyph, signOf, Swatch } from "../glyph";
import { shortName, visible } from "../names";
import {
  formatFactor,
  formatLimit,
  formatNumber,
  formatShape,
  toFloat,
} from "../numbers";
import type { Page } from "../page";
import { LETTERS_FEW, sideName } from "../sides";
import { axesWords, differenceWords, onlyRow } from "../tensor/axes";
import { dtypeOf, HistogramChart } from "../tensor/histogram";
import { Picture, ScaleBar } from "../tensor/picture";
import { shownAxes, useSlices } from "../tensor/slices";
import { StatisticsTable } from "../tensor/statistics";
import { filled, slotLabel, t } from "../texts";
import { OperatorFacts } from "./operator-facts";
import { plainText } from "./verdict";

const SLICE_PIXELS = 256;
const SETTLE_MS = 60;

interface InspectorProps {
  page: Page;
  /** In the graph view: content for the selection instead of the slots' tabs. */
  partners?: ComponentChildren;
}

export function Inspector({ page, partners }: InspectorProps) {
  const operator = page.operator.data;
  if (page.operator.error)
    return (
      <p class="trouble">
        {t.cannot_show}: {page.operator.error}
      </p>
    );
  if (!operator) return <InspectorSkeleton has_one={page.selected !== null} />;
  return (
    <div class="inspector">
      <Head operator={operator} />
      {partners ?? <SlotTabs page={page} operator={operator} />}
      {operator.lacks_details && (
        <section class="part">
          <p class="dim">{t.report_no_details}</p>
        </section>
      )}
      {page.slot && <Why slot={page.slot} operator={operator} page={page} />}
      {page.slot && <TensorParts page={page} slot={page.slot} />}
      <OperatorFacts operator={operator} has_partners={partners !== undefined} />
    </div>
  );
}

function InspectorSkeleton({ has_one }: { has_one: boolean }) {
  if (!has_one) return <p class="empty">{t.no_tensor}</p>;
  return (
    <div class="skeletons" role="status" aria-label={t.loading}>
      {[50, 90, 70, 80, 60].map((width) => (
        <span class="skeleton" style={{ width: `${width}%` }} />
      ))}
    </div>
  );
}

function Head({ operator }: { operator: Operator }) {
  const { last } = shortName(operator.op_name, operator.op_type);
  return (
    <header class="pane-head">
      <Glyph sign={signOf(operator)} size={16} />
      <h2 title={visible(operator.op_name)}>
        <bdi>{last}</bdi>
      </h2>
      <bdi class="type">{visible(operator.op_type)}</bdi>
      <code class="full-name" title={visible(operator.op_name)}>
        <bdi>{visible(operator.op_name)}</bdi>
      </code>
      <span class="grow" />
      <button type="button" class="quiet" onClick={() => go({ view: "tensor", op: operator.id })}>
        {t.open} <kbd>Enter</kbd>
      </button>
    </header>
  );
}

export function SlotTabs({ page, operator }: { page: Page; operator: Operator }) {
  const choose = (slot: Slot) => go({ op: operator.id, slot: slot.id });
  return (
    <div class="slots" role="tablist" aria-label={t.slots}>
      {operator.slots.map((slot) => {
        const is_entry =
          operator.at_fault &&
          (page.info.verdict.op === operator.id
            ? slot.id === page.info.verdict.slot
            : operator.cause === "outside" && slot.status === "fail" && slot.id.startsWith("in"));
        return (
          <button
            type="button"
            role="tab"
            key={slot.id}
            aria-selected={slot.id === page.slot?.id}
            title={slot.parameter ? visible(slot.parameter) : undefined}
            onClick={() => choose(slot)}
          >
            <span>
              <Glyph sign={is_entry ? "fault" : slot.status} />
              {slotLabel(slot.id)}
            </span>
            <small>{formatShape(slot.shape[0] ?? slot.shape[1])}</small>
          </button>
        );
      })}
    </div>
  );
}

export function Why({ slot, operator, page }: { slot: Slot; operator: Operator; page: Page }) {
  if (page.info.golden === null) return null;
  if (slot.status === "skip")
    return (
      <section class="part">
        <p class="dim">{t.not_compared}</p>
      </section>
    );
  const fails = slot.why.length > 0;
  const is_solid = operator.at_fault;
  return (
    <section class="part">
      <h3>
        <span>{fails ? t.why_fails : t.why_passes}</span>
        {fails && <span>{t.value_limit}</span>}
      </h3>
      {slot.change?.words && <p class="change">{changeWords(slot.change)}</p>}
      {slot.why.map((rule) => {
        const value = toFloat(rule.value);
        const limit = toFloat(rule.limit);
        const factor = value !== null && limit !== null && limit > 0 ? value / limit : null;
        // Some metrics, such as the cosine, must not fall below their limit.
        const is_below = factor !== null && factor < 1;
        const excess = is_below ? Math.abs(1 / factor) : factor;
        return (
          <div class={`rule l-${rule.level} ${is_solid ? "is-solid" : ""}`} key={rule.metric}>
            <span>{rule.metric}</span>
            <b class="num">{formatNumber(rule.value)}</b>
            <span class="num dim">/ {formatLimit(rule.limit)}</span>
            <span class="bar">
              <span class="fill" style={{ width: `${ruleShare(excess) * 100}%` }} />
              <span class="tick third" />
            </span>
            <b class="num factor">
              {factor === null ? "–" : is_below ? t.below : formatFactor(factor)}
            </b>
          </div>
        );
      })}
      {!fails && (
        <dl class="metrics">
          {slot.metrics.slice(0, 6).map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{formatNumber(value)}</dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

/** The change in words; exchanged axes in the page's language. */
function changeWords({ words, order }: NonNullable<Slot["change"]>): ComponentChildren {
  const moved = (order ?? []).flatMap((axis, k) => (axis === k ? [] : [k]));
  const [a, b] = moved;
  return moved.length === 2 ? t.axes_exchanged(a, b) : plainText(words ?? "");
}

/** The limit at a third, the rest for a factor of a hundred, on a log scale. */
function ruleShare(factor: number | null): number {
  if (factor === null) return 0;
  if (Number.isNaN(factor)) return 1;
  if (factor <= 1) return Math.max(0.02, factor / 3);
  return Math.min(1, 1 / 3 + Math.log10(factor) / 3);
}

/** The tensor of a slot, or why it is unavailable. */
export function useTensor(page: Page, slot: Slot | null) {
  // Elements that were not dumped are not requested.
  const lack = t.evidence[slot?.evidence ?? ""] ?? null;
  const path = slot && lack === null ? `tensor?op=${page.selected}&slot=${slot.id}` : null;
  const answer = useAnswer<Tensor>(path, SETTLE_MS);
  const is_this = answer.data?.op === page.selected && answer.data?.slot === slot?.id;
  return { tensor: is_this ? answer.data : null, lack, error: answer.error };
}

function TensorParts({ page, slot }: { page: Page; slot: Slot }) {
  const { tensor, lack, error } = useTensor(page, slot);
  if (lack !== null) {
    return (
      <section class="part">
        <p class="dim">{lack}</p>
      </section>
    );
  }
  const why = tensor?.missing.target ?? tensor?.missing.golden;
  if (tensor && !tensor.sides.target && !tensor.sides.golden) {
    return (
      <section class="part">
        <p class="dim">{filled(t.no_slice, { why: visible(why ?? "–") })}</p>
      </section>
    );
  }
  if (error)
    return (
      <section class="part">
        <p class="trouble">{error}</p>
      </section>
    );
  return (
    <>
      <SlicePart page={page} slot={slot} tensor={tensor} />
      <DistributionPart tensor={tensor} />
      <section class="part">
        <StatisticsTable tensor={tensor} is_short={true} is_fault={page.operator.data?.at_fault} />
      </section>
    </>
  );
}

interface PartProps {
  page: Page;
  slot: Slot;
  tensor: Tensor | null;
}

export function SlicePart({ page, slot, tensor }: PartProps) {
  const shape = (tensor?.sides.target ?? tensor?.sides.golden)?.shape ?? [];
  const at = page.address.at ?? tensor?.difference?.worst[0]?.index ?? null;
  const axes = shownAxes(tensor, page.address.ax, shape, slot, at);
  const slices = useSlices(tensor, axes, SLICE_PIXELS, "diverging");
  const theme = document.documentElement.dataset.theme ?? "light";
  const is_pair = page.info.golden !== null;
  const row = onlyRow(axes, shape, tensor?.difference?.ranges ?? null);
  const why = tensor?.missing.target ?? tensor?.missing.golden ?? slices.error;
  if (tensor && shape.includes(0)) {
    return (
      <section class="part">
        <p class="dim">{t.no_elements}</p>
      </section>
    );
  }
  const names = {
    target: sideName("target", LETTERS_FEW),
    golden: sideName("golden", LETTERS_FEW),
    difference: t.difference,
  };
  return (
    <section class="part slice-part">
      <h3>
        <span>
          {t.slice}{" "}
          {shape.length > 0 && (
            <button
              type="button"
              class="outlined small"
              onClick={() => go({ view: "tensor", op: page.selected, slot: slot.id })}
            >
              {axesWords(axes, t.axis_rows, t.axis_columns)}
            </button>
          )}
        </span>
        {is_pair && <span>{t.own_scale}</span>}
      </h3>
      {why && <p class="dim">{filled(t.no_slice, { why: visible(why) })}</p>}
      {!why && slices.note && <p class="dim">{slices.note}</p>}
      <div class={`pictures ${is_pair ? "of-three" : "of-one"}`}>
        {(["target", "golden", "difference"] as const).map((side) => {
          if (!is_pair && side !== "target") return null;
          const slice = slices[side];
          return (
            <figure key={side}>
              <figcaption>
                {side !== "difference" && <Swatch side={side} />} <bdi>{names[side]}</bdi>
                {side === "difference" && row !== null && <b class="only">{t.only_row(row)}</b>}
              </figcaption>
              {slice ? (
                <Picture
                  slice={slice}
                  theme={theme}
                  label={names[side]}
                  scale={side === "difference" ? slices.difference_scale : slices.scale}
                  has_margin={side === "difference"}
                />
              ) : (
                <div
                  class={tensor && !slices.is_loading ? "picture no-data" : "picture skeleton"}
                />
              )}
            </figure>
          );
        })}
      </div>
      {slices.target !== null && (
        <div class="scales">
          <ScaleBar scale={slices.scale} theme={theme} />
          {slices.difference && slices.difference.low < slices.difference.high && (
            <ScaleBar scale={slices.difference_scale} theme={theme} />
          )}
        </div>
      )}
      {tensor?.difference && <p class="dim">{differenceWords(tensor.difference, shape)}</p>}
    </section>
  );
}

function DistributionPart({ tensor }: { tensor: Tensor | null }) {
  const n =
    tensor?.sides.target?.statistics.n_elements ?? tensor?.sides.golden?.statistics.n_elements ?? 0;
  const histogram = tensor?.histogram;
  return (
    <section class="part">
      <h3>
        <span>{t.distribution(n)}</span>
        {tensor?.sides.golden && (
          <span class="sides-key">
            <span>
              <i class="key k-ink" />
              <bdi>{sideName("target", LETTERS_FEW)}</bdi>
            </span>
            <span>
              <Swatch side="golden" /> <bdi>{sideName("golden", LETTERS_FEW)}</bdi>
            </span>
          </span>
        )}
      </h3>
      <div class="small-histogram">
        {histogram && (
          <HistogramChart
            histogram={histogram}
            n_elements={n}
            dtype={dtypeOf(tensor)}
            is_log={true}
            has_axis={false}
          />
        )}
      </div>
    </section>
  );
}
