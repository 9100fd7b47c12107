/** One tensor: its slices, values, distributions, worst elements, and code to copy. */

import { useState } from "preact/hooks";
import { go } from "../address";
import type { Operator, Slot, Tensor } from "../api";
import { base, is_report, useAnswer } from "../connection";
import { Glyph, signOf } from "../glyph";
import { useKeys } from "../keys";
import { shortName, visible } from "../names";
import { formatCount, formatShape } from "../numbers";
import { SlotTabs, Why } from "../overview/inspector";
import { Chain } from "../overview/chain";
import type { Page } from "../page";
import { t } from "../texts";
import { indexAt, placeOf } from "./axes";
import { Distributions } from "./distributions";
import { CopyLines, WorstElements } from "./elements";
import { Percentiles } from "./percentiles";
import { SlicePanes } from "./slice-panes";
import { shownAxes } from "./slices";
import { StatisticsTable } from "./statistics";

const SETTLE_MS = 40;

export function TensorView({ page }: { page: Page }) {
  const operator = page.operator.data;
  const { slot } = page;
  const path =
    operator && slot && operator.id === page.selected
      ? `tensor?op=${operator.id}&slot=${slot.id}`
      : null;
  const answer = useAnswer<Tensor>(path, SETTLE_MS);
  if (page.selected === null)
    return (
      <main class="centred">
        <p>{t.no_tensor}</p>
      </main>
    );
  if (page.operator.error) {
    return (
      <main class="centred">
        <p class="trouble">
          {t.cannot_show}: {page.operator.error}
        </p>
      </main>
    );
  }
  const tensor =
    answer.data && answer.data.op === page.selected && answer.data.slot === slot?.id
      ? answer.data
      : null;
  return (
    <main class="tensor-view">
      {operator && <Head page={page} operator={operator} tensor={tensor} />}
      <div class="tensor-panes">
        <div class="tensor-left">
          {answer.error && <p class="trouble">{answer.error}</p>}
          {slot && <Pictures page={page} slot={slot} tensor={tensor} />}
          <Distributions tensor={tensor} />
        </div>
        <aside class="tensor-right">
          {operator && slot && <Why slot={slot} operator={operator} page={page} />}
          <section class="part">
            <StatisticsTable tensor={tensor} is_short={false} is_fault={operator?.at_fault} />
          </section>
          {tensor && tensor.percentiles.length > 0 && (
            <section class="part">
              <Percentiles percentiles={tensor.percentiles} />
            </section>
          )}
          {tensor && <WorstElements page={page} tensor={tensor} />}
          {tensor && <CopyLines tensor={tensor} />}
          {page.info.golden === null && <Chain page={page} />}
        </aside>
      </div>
    </main>
  );
}

interface HeadProps {
  page: Page;
  operator: Operator;
  tensor: Tensor | null;
}

function Head({ page, operator, tensor }: HeadProps) {
  const { path, last } = shortName(operator.op_name, operator.op_type);
  const side = tensor?.sides.target ?? tensor?.sides.golden ?? null;
  const name = tensor?.sides.target ? "target" : "golden";
  return (
    <header class="tensor-head">
      <button type="button" class="quiet only-narrow" onClick={() => go({ view: "overview" })}>
        ‹ {t.back}
      </button>
      <Glyph sign={signOf(operator)} size={16} />
      <h1 title={visible(operator.op_name)}>
        <bdi>
          <span class="crumbs">{path}</span>
          {last}
        </bdi>
      </h1>
      <span class="dim">
        <bdi>{visible(operator.op_type)}</bdi> · #{formatCount(operator.id)}
      </span>
      <SlotTabs page={page} operator={operator} />
      {side && (
        <code class="dim">
          {side.dtype} {formatShape(side.shape)} {side.layout ?? ""}
        </code>
      )}
      <span class="grow" />
      {side && tensor && is_report && (
        <button type="button" class="outlined" disabled title={t.report_no_file}>
          {t.download}
        </button>
      )}
      {side && tensor && !is_report && (
        <a
          class="outlined"
          download
          href={`${base}api/npy?op=${tensor.op}&slot=${tensor.slot}&side=${name}`}
        >
          {t.download}
        </a>
      )}
      <span class="dim keys-hint">
        <kbd>[</kbd> <kbd>]</kbd> {t.slots}
      </span>
    </header>
  );
}

interface PicturesProps {
  page: Page;
  slot: Slot;
  tensor: Tensor | null;
}

function Pictures({ page, slot, tensor }: PicturesProps) {
  const [is_swapped, setSwapped] = useState(false);
  const side = tensor?.sides.target ?? tensor?.sides.golden ?? null;
  const shape = side?.shape ?? [];
  const asked = page.address.at;
  const at =
    asked && asked.length === shape.length && asked.every((i, k) => i < shape[k])
      ? asked
      : (tensor?.difference?.worst[0]?.index ?? shape.map(() => 0));
  const axes = shownAxes(tensor, page.address.ax, shape, slot, at);
  const place = placeOf(axes, shape, at);
  useKeys((key) => {
    if (key === " ") {
      setSwapped(!is_swapped);
      return true;
    }
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[
      key
    ];
    if (!step || !place || !side) return false;
    const row = place.row + step[0];
    const column = place.column + step[1];
    const size = (role: string) =>
      shape.filter((_, axis) => axes[axis] === role).reduce((a, b) => a * b, 1);
    if (row < 0 || column < 0 || row >= size("r") || column >= size("c")) return true;
    go({
      op: page.selected,
      slot: slot.id,
      at: indexAt(axes, shape, row, column),
      ax: page.address.ax,
    });
    return true;
  });
  return (
    <SlicePanes
      page={page}
      slot={slot}
      tensor={tensor}
      side={side}
      axes={axes}
      at={at}
      place={place}
      is_swapped={is_swapped}
    />
  );
}
