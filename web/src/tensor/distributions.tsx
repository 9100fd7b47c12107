/** The two histograms of a tensor: of its values, and of differences by power of ten. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Difference, Histogram, Side, Tensor } from "../api";
import { formatCount, formatNumber, formatPower } from "../numbers";
import { sideName } from "../sides";
import { t } from "../texts";
import { dtypeOf, HistogramChart, PowersChart, trimmedPowers } from "./histogram";
import { Choice } from "./slice-panes";

export function Distributions({ tensor }: { tensor: Tensor | null }) {
  const [scale, setScale] = useState<"linear" | "log">("log");
  const n =
    tensor?.sides.target?.statistics.n_elements ?? tensor?.sides.golden?.statistics.n_elements ?? 0;
  const histogram = tensor?.histogram;
  const difference = tensor?.difference;
  return (
    <div class="distributions">
      <ChartOrTable
        title={t.values_of(n)}
        note={
          <Choice
            value={scale}
            values={["linear", "log"]}
            words={{ linear: t.linear, log: t.log }}
            onChange={setScale}
          />
        }
        chart={
          histogram && (
            <HistogramChart
              histogram={histogram}
              n_elements={n}
              dtype={dtypeOf(tensor)}
              is_log={scale === "log"}
              has_axis={true}
            />
          )
        }
        table={histogram && <BinsTable histogram={histogram} />}
      />
      {difference && (
        <ChartOrTable
          title={t.by_power}
          note={<span class="dim">{t.n_equal(difference.n_equal)}</span>}
          chart={<PowersChart difference={difference} />}
          table={<PowersTable difference={difference} />}
        />
      )}
    </div>
  );
}

interface ChartOrTableProps {
  title: string;
  note: ComponentChildren;
  chart: ComponentChildren;
  table: ComponentChildren;
}

function ChartOrTable({ title, note, chart, table }: ChartOrTableProps) {
  const [is_table, setTable] = useState(false);
  return (
    <section class="distribution">
      <h3>
        <span>{title}</span>
        <span class="grow" />
        {note}
        <button
          type="button"
          class="quiet"
          aria-pressed={is_table}
          onClick={() => setTable(!is_table)}
        >
          {is_table ? t.as_chart : t.as_table}
        </button>
      </h3>
      <div class={is_table ? "as-table" : "as-chart"}>{is_table ? table : chart}</div>
    </section>
  );
}

function BinsTable({ histogram }: { histogram: Histogram }) {
  const { low, high, target, golden } = histogram;
  const n = (target ?? golden ?? []).length;
  const edge = (i: number) => low + ((high - low) * i) / n;
  return (
    <table class="numbers">
      <thead>
        <tr>
          <th scope="col">≥</th>
          {target && <SideHead side="target" />}
          {golden && <SideHead side="golden" />}
        </tr>
      </thead>
      <tbody>
        {Array.from({ length: n }, (_, i) => (
          <tr key={i}>
            <th scope="row">{formatNumber(edge(i))}</th>
            {target && <td>{formatCount(target[i])}</td>}
            {golden && <td>{formatCount(golden[i])}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function SideHead({ side }: { side: Side }) {
  return (
    <th scope="col">
      <bdi>{sideName(side)}</bdi>
    </th>
  );
}

function PowersTable({ difference }: { difference: Difference }) {
  const { first, counts } = trimmedPowers(difference);
  return (
    <table class="numbers">
      <tbody>
        <tr>
          <th scope="row">=</th>
          <td>{formatCount(difference.n_equal)}</td>
        </tr>
        {counts.map((n, i) => (
          <tr key={i}>
            <th scope="row">≥ {formatPower(first + i)}</th>
            <td>{formatCount(n)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
