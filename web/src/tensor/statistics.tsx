/** The statistics of a tensor, target next to golden. */

import type { Num, Tensor, TensorSide } from "../api";
import { Swatch } from "../glyph";
import { formatCount, formatDifference, formatNumber, plainNumber, toFloat } from "../numbers";
import { LETTERS_FEW, sideName } from "../sides";
import { t } from "../texts";

interface StatisticsProps {
  tensor: Tensor | null;
  is_short: boolean;
  is_fault?: boolean;
}

/** Letters of a caption with three of them in a row. */
const LETTERS_FEWEST = 10;

interface Line {
  label: string;
  of: (side: TensorSide) => Num;
}

const LINES: (keyof typeof t.stat)[] = ["min", "max", "mean", "std", "l2", "n_zero"];

export function StatisticsTable({ tensor, is_short, is_fault = false }: StatisticsProps) {
  const { target, golden, reference = null } = tensor?.sides ?? { target: null, golden: null };
  // The narrow table of the inspector has no room for it.
  const third = is_short ? null : reference;
  const letters = third ? LETTERS_FEWEST : LETTERS_FEW;
  const has_both = target !== null && golden !== null;
  const keys = is_short ? LINES.filter((key) => key !== "std" && key !== "n_zero") : LINES;
  const lines: Line[] = keys.map((key) => ({
    label: t.stat[key],
    of: (side) => side.statistics[key as "min"],
  }));
  return (
    <table class={`numbers ${is_fault ? "is-fault" : ""}`}>
      <thead>
        <tr>
          <th scope="col">{is_short ? "" : t.statistics}</th>
          {target && (
            <th scope="col">
              <Swatch side="target" /> <bdi>{sideName("target", letters)}</bdi>
            </th>
          )}
          {golden && (
            <th scope="col">
              <Swatch side="golden" /> <bdi>{sideName("golden", letters)}</bdi>
            </th>
          )}
          {third && (
            <th scope="col">
              <Swatch side="reference" /> <bdi>{sideName("reference", letters)}</bdi>
            </th>
          )}
          {has_both && <th scope="col">{t.difference}</th>}
        </tr>
      </thead>
      <tbody>
        {lines.map((line) => (
          <tr key={line.label}>
            <th scope="row">{line.label}</th>
            {target && <NumberCell value={line.of(target)} />}
            {golden && <NumberCell value={line.of(golden)} />}
            {third && <NumberCell value={line.of(third)} />}
            {has_both && <DifferenceCell target={line.of(target)} golden={line.of(golden)} />}
          </tr>
        ))}
        <tr>
          <th scope="row">{t.stat.nan_inf}</th>
          {target && <td>{notFinite(target)}</td>}
          {golden && <td>{notFinite(golden)}</td>}
          {third && <td>{notFinite(third)}</td>}
          {has_both && <td class="dim">{notFinite(target) === notFinite(golden) ? "=" : "≠"}</td>}
        </tr>
      </tbody>
    </table>
  );
}

function NumberCell({ value }: { value: Num }) {
  const x = toFloat(value);
  const is_bad = x !== null && !Number.isFinite(x);
  return (
    <td class={is_bad ? "bad" : ""} title={plainNumber(value)}>
      {formatNumber(value)}
    </td>
  );
}

function DifferenceCell({ target, golden }: { target: Num; golden: Num }) {
  const words = formatDifference(target, golden);
  return <td class={words === "=" || words === "–" ? "dim" : "differs"}>{words}</td>;
}

function notFinite({ statistics }: TensorSide): string {
  const { n_nan, n_pos_inf, n_neg_inf } = statistics;
  if (n_nan === null) return "–";
  return `${formatCount(n_nan)} · ${formatCount((n_pos_inf ?? 0) + (n_neg_inf ?? 0))}`;
}
