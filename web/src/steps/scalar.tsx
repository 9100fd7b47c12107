/** A scalar output over the columns of the heat map, and the choice of output. */

import { useMemo, useState } from "preact/hooks";
import type { Scalars, ScalarSeries } from "../api";
import { useAnswer } from "../connection";
import { distinctNames, shortName } from "../names";
import { formatNumber, toFloat } from "../numbers";
import type { Page } from "../page";
import { slotLabel, t } from "../texts";
import type { StepGrid } from "./grid";
import { scalarsPath, type PaneSize } from "./moves";

/** The numbers of a column: minimum and maximum over its steps. */
export interface ScalarPoint {
  low: number | null;
  high: number | null;
  bad: "nan" | "inf" | null;
  /** The operator's execution to select. */
  id: number | null;
  golden: number | null;
}

export interface ScalarCurve {
  name: string;
  points: ScalarPoint[];
  has_golden: boolean;
}

export interface ScalarState {
  answer: Scalars | null;
  scalar: ScalarCurve | null;
  choose: (id: number) => void;
}

export function useScalar(page: Page, grid: StepGrid, size: PaneSize | null): ScalarState {
  const [chosen, choose] = useState<number | null>(null);
  // Over ranks, a scalar is an ordinary row of the heat map.
  const path = size && grid.by === "step" ? scalarsPath(page, size, chosen) : null;
  const answer = useAnswer<Scalars>(path).data;
  const scalar = useMemo(() => (answer ? curveOf(answer, grid) : null), [answer, grid]);
  return { answer, scalar, choose };
}

/** The curve over the grid's columns, the last of which may be folded into one. */
export function curveOf(answer: Scalars, grid: StepGrid): ScalarCurve | null {
  const chosen = answer.choices.find(({ id }) => id === answer.chosen);
  if (!chosen || !answer.target) return null;
  const { target, golden } = answer;
  const points = grid.columns.map(([first, last]) => {
    const inside = answer.columns.flatMap(([start, end], i) =>
      first <= start && end <= last ? [i] : [],
    );
    return pointOf(inside, target, golden);
  });
  // An output without values in the dump is not shown.
  if (points.every(({ high, bad }) => high === null && bad === null)) return null;
  const { path, last } = shortName(chosen.op_name, chosen.op_type);
  return { name: `${path}${last}`, points, has_golden: golden !== null };
}

function pointOf(
  columns: number[],
  target: ScalarSeries,
  golden: ScalarSeries | null,
): ScalarPoint {
  const ends = (values: ScalarSeries["low"]) =>
    columns.map((i) => toFloat(values[i])).filter((x): x is number => x !== null);
  const lows = ends(target.low);
  const highs = ends(target.high);
  const bad = columns.find((i) => target.marks[i] === "n" || target.marks[i] === "i");
  const marks = columns.map((i) => target.marks[i]);
  const goldens = golden ? ends(golden.high) : [];
  return {
    low: lows.length > 0 ? Math.min(...lows) : null,
    high: highs.length > 0 ? Math.max(...highs) : null,
    bad: marks.includes("n") ? "nan" : marks.includes("i") ? "inf" : null,
    id: target.ids[bad ?? columns[0]] ?? null,
    golden: goldens.length > 0 ? Math.max(...goldens) : null,
  };
}

export function scalarText({ low, high, bad }: ScalarPoint): string {
  const numbers =
    high === null
      ? []
      : low === high
        ? [formatNumber(high)]
        : [`${formatNumber(low)} … ${formatNumber(high)}`];
  if (bad !== null) numbers.unshift(t.cell[bad]);
  return numbers.length > 0 ? numbers.join(", ") : "–";
}

/** The choice of output; hidden if there is only one. */
export function ScalarChoice({ scalars: { answer, choose } }: { scalars: ScalarState }) {
  if (!answer || answer.choices.length < 2) return null;
  const names = distinctNames(answer.choices);
  return (
    <select
      class="order scalar-choice"
      aria-label={t.scalar_choice}
      value={String(answer.chosen ?? "")}
      onChange={(event) => choose(Number(event.currentTarget.value))}
    >
      {answer.choices.map(({ id, slot }, i) => (
        <option key={id} value={String(id)}>
          {names[i].path}
          {names[i].last}
          {slot === "out0" ? "" : ` ${slotLabel(slot)}`}
        </option>
      ))}
    </select>
  );
}
