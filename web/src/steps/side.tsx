/**
 * Next to the heat map: the selected operator over steps, its first bad steps, and the largest
 * growth.
 */

import { go } from "../address";
import { dtypeEnd } from "../dtypes";
import { Glyph, signOf } from "../glyph";
import { Name } from "../name";
import { shortName, visible } from "../names";
import { formatFactor, formatLimit, formatNumber, formatShape } from "../numbers";
import { Chain } from "../overview/chain";
import type { Page } from "../page";
import { t } from "../texts";
import { columnWords } from "./layout";
import { growthOf, isBad, type StepGrid } from "./grid";
import { HistoryChart } from "./history";
import { useOwnSteps } from "./own";

const BAD_STEPS_MAX = 8;
const GROWN_MAX = 3;

interface SideProps {
  page: Page;
  grid: StepGrid;
  cell: number | null;
  first_bad: number | null;
  limit: number | null;
  onSelect: (grid: StepGrid, cell: number) => void;
}

export function StepsSide({ page, grid, cell, first_bad, limit, onSelect }: SideProps) {
  const operator = page.operator.data;
  if (!operator || page.selected === null) return <p class="empty">{t.no_tensor}</p>;
  const row = cell === null ? null : Math.floor(cell / grid.n_columns);
  const { last } = shortName(operator.op_name, operator.op_type);
  const facts = [
    operator.step === null ? null : t.step(operator.step),
    operator.rank === null ? null : t.rank(operator.rank),
    [operator.dtype, operator.shape && formatShape(operator.shape)].filter(Boolean).join(" "),
  ];
  return (
    <>
      <header class="pane-head">
        <Glyph sign={signOf(operator)} size={16} />
        <h2 title={visible(operator.op_name)}>
          <bdi>{last}</bdi>
        </h2>
        <bdi class="type">{visible(operator.op_type)}</bdi>
        <span class="grow" />
        <button
          type="button"
          class="quiet"
          onClick={() => go({ view: "tensor", op: operator.id })}
        >
          {t.open_tensor} <kbd>Enter</kbd>
        </button>
      </header>
      <p class="side-facts">{facts.filter(Boolean).join(" · ")}</p>
      {row !== null && (
        <History page={page} grid={grid} row={row} limit={limit} onSelect={onSelect} />
      )}
      {page.info.golden === null && <Chain page={page} />}
      {first_bad !== null && grid.by === "step" && (
        <Grown grid={grid} column={(first_bad % grid.n_columns) - 1} onSelect={onSelect} />
      )}
    </>
  );
}

interface HistoryPartProps {
  page: Page;
  grid: StepGrid;
  row: number;
  limit: number | null;
  onSelect: (grid: StepGrid, cell: number) => void;
}

function History({ page, grid, row, limit, onSelect }: HistoryPartProps) {
  const operator = page.operator.data!;
  // A shared row shows the largest value; this requests the operator's own.
  const is_shared = grid.rows[row].n > 1 || hasWideColumns(grid) || grid.by === "rank";
  const rank = grid.by === "rank" ? operator.rank : page.address.rank;
  const own = useOwnSteps(is_shared ? operator : null, rank);
  // Cells of ranks are not steps.
  if (own === null && grid.by === "rank") return null;
  const [shown, at] = own ?? [grid, row];
  const cells = Array.from({ length: shown.n_columns }, (_, i) => at * shown.n_columns + i);
  const points = cells.map((i) => ({
    steps: shown.columns[i % shown.n_columns],
    value: shown.values[i],
    kind: shown.kinds[i],
  }));
  const bad = cells.filter((i) => isBad(shown, i, limit));
  const step = operator.step;
  const selected = shown.columns.findIndex(
    ([first, last]) => step !== null && first <= step && step <= last,
  );
  const is_pair = page.info.golden !== null;
  const what = is_pair ? page.info.metric.name : "max |x|";
  const end = dtypeEnd(operator.dtype);
  const edge = is_pair
    ? limit === null
      ? null
      : { at: limit, words: t.trace_limit(formatLimit(limit)) }
    : end === null
      ? null
      : { at: end, words: t.trace_end(operator.dtype!, formatLimit(end)) };
  return (
    <>
      <section class="part">
        <h3>
          <span>{t.over_steps(what)}</span>
        </h3>
        <HistoryChart
          points={points}
          label={t.over_steps(what)}
          edge={edge}
          selected={selected < 0 ? null : selected}
          first_bad={bad.length > 0 ? bad[0] % shown.n_columns : null}
          onSelect={(i) => shown.has_run[cells[i]] && onSelect(shown, cells[i])}
        />
      </section>
      <section class="part">
        <h3>
          <span>{t.bad_steps}</span>
          {bad.length > 0 && <span>{what}</span>}
        </h3>
        {bad.length === 0 && <p class="dim">{is_pair ? t.all_within : t.all_finite}</p>}
        <ol class="bad-steps">
          {bad.slice(0, BAD_STEPS_MAX).map((i) => (
            <li key={i}>
              <Glyph sign={shown.kinds[i] === "fault" ? "fault" : "fail"} />
              <button type="button" onClick={() => onSelect(shown, i)}>
                {columnWords(shown, i % shown.n_columns)}
              </button>
              <span class="dim">
                {shown.kinds[i] === "finite" ? t.over_limit : t.cell[shown.kinds[i]]}
              </span>
              <span class="num">{formatNumber(shown.values[i])}</span>
            </li>
          ))}
        </ol>
        {bad.length > BAD_STEPS_MAX && (
          <p class="dim">{t.bad_steps_more(bad.length - BAD_STEPS_MAX)}</p>
        )}
      </section>
    </>
  );
}

function hasWideColumns(grid: StepGrid): boolean {
  return grid.columns.some(([first, last], i) => first !== last && i !== grid.folded);
}

interface GrownProps {
  grid: StepGrid;
  column: number;
  onSelect: (grid: StepGrid, cell: number) => void;
}

/** The operators that grew most in the step before the first bad one. */
function Grown({ grid, column, onSelect }: GrownProps) {
  if (column < 0) return null;
  const grown = grid.rows
    .map((row, i) => {
      const cell = i * grid.n_columns + column;
      const is_finite = grid.kinds[cell] === "finite";
      const growth = is_finite ? growthOf(grid.values[cell], grid.baselines[i]) : null;
      return { row, cell, growth };
    })
    .filter((g): g is typeof g & { growth: number } => g.growth !== null && g.growth >= 1.5)
    .sort((a, b) => b.growth - a.growth)
    .slice(0, GROWN_MAX);
  if (grown.length === 0) return null;
  return (
    <section class="part">
      <h3>
        <span>{t.growth_before(columnWords(grid, column))}</span>
      </h3>
      <ol class="bad-steps">
        {grown.map(({ row, cell, growth }) => (
          <li key={cell} class="is-grown">
            <button type="button" onClick={() => onSelect(grid, cell)}>
              <Name name={row.op_name} type={row.op_type} width={190} has_type={false} />
            </button>
            <b class="num">{formatFactor(growth)}</b>
            <span class="num dim">{formatNumber(grid.values[cell])}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
