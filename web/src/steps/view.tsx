/**
 * Operators over steps or ranks: the verdict in one line, the heat map, and the selected operator.
 */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { go } from "../address";
import type { ColumnAxis, Steps } from "../api";
import { currentColours } from "../colours";
import { useAnswer } from "../connection";
import { VerdictLine } from "../graph/view";
import { distinctNames, shortName, visible } from "../names";
import { formatLimit, formatPower } from "../numbers";
import type { Page } from "../page";
import { scaleCss } from "../tensor/slice";
import { Choice } from "../tensor/slice-panes";
import { t } from "../texts";
import {
  cellOf,
  firstBad,
  scaleOf,
  stepGrid,
  type ScaleKind,
  type StepGrid,
  type StepScale,
} from "./grid";
import { cellWords, HeatMap } from "./heat-map";
import { columnWords, rowWords, type RowName } from "./layout";
import {
  hasRanks,
  selectAxis,
  selectCell,
  selectRank,
  stepsPath,
  unscoped,
  useMatchingPlace,
  useStepKeys,
  type PaneSize,
} from "./moves";
import { ScalarChoice, useScalar } from "./scalar";
import { ScalarChart } from "./scalar-chart";
import { StepsSide } from "./side";
import { StepsTable } from "./steps-table";

const SETTLE_MS = 150;

export function StepsView({ page }: { page: Page }) {
  const [box, size] = useBoxSize();
  const path = size === null ? null : stepsPath(page, size);
  const answer = useAnswer<Steps>(path, SETTLE_MS);
  const grid = useMemo(() => (answer.data ? stepGrid(answer.data) : null), [answer.data]);
  return (
    <main class="steps-view">
      <VerdictLine page={unscoped(page)} />
      <div class="steps-panes" ref={box}>
        {answer.error && (
          <p class="trouble">
            {t.cannot_show}: {answer.error}
          </p>
        )}
        {!answer.error && (!answer.data || !grid) && <StepsSkeleton />}
        {answer.data && grid && !answer.error && (
          <Body page={page} answer={answer.data} grid={grid} size={size} />
        )}
      </div>
    </main>
  );
}

interface BodyProps {
  page: Page;
  answer: Steps;
  grid: StepGrid;
  size: PaneSize | null;
}

function Body({ page, answer, grid, size }: BodyProps) {
  const is_pair = page.info.golden !== null;
  const [kind, setKind] = useState<ScaleKind>(is_pair ? "absolute" : "growth");
  const [is_table, setTable] = useState(false);
  const scale = useMemo(() => scaleOf(grid, kind, is_pair), [grid, kind, is_pair]);
  const limit = is_pair ? page.info.metric.limit : null;
  const first_bad = useMemo(() => firstBad(grid, limit), [grid, limit]);
  const owner = page.operator.data;
  const selected = useMemo(
    () => (page.selected === null ? null : cellOf(grid, page.selected, owner)),
    [grid, page.selected, owner],
  );
  const names = useMemo(() => rowNames(grid, page, selected), [grid, page.info, owner, selected]);
  const scalars = useScalar(page, grid, size);
  useStepKeys(page, grid, selected ?? first_bad, size);
  useMatchingPlace(page, grid);
  const has_choice = hasRanks(page);
  if (answer.n_columns <= 1 && !has_choice) return <Empty page={page} n_columns={answer.n_columns} />;
  const select = (cell: number) => selectCell(grid, cell);
  const words = [
    grid.by === "step"
      ? t.steps_words(answer.n_operators, answer.n_columns)
      : t.ranks_words(answer.n_operators, answer.n_columns),
    first_bad === null
      ? t.steps_none_bad
      : t.steps_first_bad(
          columnWords(grid, first_bad % grid.n_columns),
          rowWords(grid, Math.floor(first_bad / grid.n_columns)),
        ),
    t.steps_hint,
  ].join(" ");
  const chart = { grid, names, selected, first_bad, limit, onSelect: select };
  const scalar = grid.by === "step" ? scalars.scalar : null;
  return (
    <>
      <section
        class="pane heat-pane"
        aria-label={grid.by === "step" ? t.steps_title : t.ranks_title}
      >
        <header class="pane-head">
          <h2>{grid.by === "step" ? t.steps_title : t.ranks_title}</h2>
          <span class="dim">{is_pair ? page.info.metric.name : "max |x|"}</span>
          <Choice<ScaleKind>
            value={kind}
            values={["growth", "absolute"]}
            words={{
              growth: grid.by === "step" ? t.over_median : t.over_rank_median,
              absolute: t.absolute,
            }}
            onChange={setKind}
          />
          {has_choice && (
            <Choice<ColumnAxis>
              value={grid.by}
              values={["step", "rank"]}
              words={{ step: t.by_step, rank: t.by_rank }}
              onChange={selectAxis}
            />
          )}
          {grid.by === "step" ? (
            <Ranks page={page} answer={answer} size={size} />
          ) : (
            <ChosenStep page={page} answer={answer} />
          )}
          <FilterChip page={page} />
          {grid.by === "step" && <ScalarChoice scalars={scalars} />}
          <button
            type="button"
            class="quiet"
            aria-pressed={is_table}
            onClick={() => setTable(!is_table)}
          >
            {is_table ? t.as_chart : t.as_table}
          </button>
          <span class="grow" />
          <Legend grid={grid} scale={scale} />
        </header>
        {is_table ? (
          <StepsTable {...chart} scalar={scalar} label={words} />
        ) : (
          <>
            {scalar && (
              <ScalarChart grid={grid} names={names} scalar={scalar} first_bad={first_bad} />
            )}
            <HeatMap {...chart} scale={scale} label={words} />
          </>
        )}
        <p class="spoken" aria-live="polite">
          {selected === null ? "" : cellWords(grid, selected, limit)}
        </p>
      </section>
      <section class="pane inspector-pane steps-side">
        <StepsSide
          page={page}
          grid={grid}
          cell={selected}
          first_bad={first_bad}
          limit={limit}
          onSelect={selectCell}
        />
      </section>
    </>
  );
}

const KEY_CLASSES = {
  inf: "k-hatch",
  fault: "k-solid",
  first_nan: "k-solid",
  nan: "k-lattice",
  none: "no-data",
};

/** Colours from minimum to maximum, and the patterns of non-finite values, if there are any. */
function Legend({ grid, scale }: { grid: StepGrid; scale: StepScale }) {
  const theme = document.documentElement.dataset.theme;
  const background = useMemo(
    () => scaleCss({ kind: "sequential", low: 0, high: 1 }, currentColours()),
    [theme],
  );
  const kinds = (["inf", "fault", "first_nan", "nan", "none"] as const).filter((kind) =>
    grid.kinds.includes(kind),
  );
  const middle = (scale.low + scale.high) / 2;
  const endWords = (power: number) =>
    scale.kind === "growth" ? `${formatLimit(10 ** power)}×` : formatPower(power);
  return (
    <span class="heat-legend">
      <span class="scale" role="img" aria-label={t.colour_scale}>
        <span class="scale-bar" style={{ background }} />
        <span>{endWords(scale.low)}</span>
        {Number.isInteger(middle) && <span>{endWords(middle)}</span>}
        <span>{endWords(scale.high)}</span>
      </span>
      {kinds.map((kind) => (
        <span key={kind} class="heat-key">
          <i class={`key ${KEY_CLASSES[kind]}`} />
          {t.cell[kind]}
        </span>
      ))}
    </span>
  );
}

function Ranks({ page, answer, size }: { page: Page; answer: Steps; size: PaneSize | null }) {
  const ranks = answer.ranks.filter((rank): rank is number => rank !== null);
  if (ranks.length < 2) return null;
  return (
    <select
      class="order"
      aria-label={t.rank(page.address.rank ?? ranks[0])}
      value={String(page.address.rank ?? "")}
      onChange={(event) => {
        const { value } = event.currentTarget;
        void selectRank(page, value === "" ? null : Number(value), size);
      }}
    >
      <option value="">{t.all_ranks}</option>
      {ranks.map((rank) => (
        <option key={rank} value={String(rank)}>
          {t.rank(rank)}
        </option>
      ))}
    </select>
  );
}

/** The step whose ranks are shown, or all steps, showing the maximum. */
function ChosenStep({ page, answer }: { page: Page; answer: Steps }) {
  if (answer.steps.length < 2) return null;
  const { step } = page.address;
  return (
    <select
      class="order"
      aria-label={step === null ? t.all_steps : t.step(step)}
      value={String(step ?? "")}
      onChange={(event) => {
        const { value } = event.currentTarget;
        go({ step: value === "" ? null : Number(value) });
      }}
    >
      <option value="">{t.all_steps}</option>
      {answer.steps.map((one) => (
        <option key={one} value={String(one)}>
          {t.step(one)}
        </option>
      ))}
    </select>
  );
}

function FilterChip({ page }: { page: Page }) {
  const { q } = page.address;
  if (q.trim() === "") return null;
  return (
    <button
      type="button"
      class="outlined small"
      title={t.clear_filter}
      onClick={() => go({ q: "" })}
    >
      <bdi>{visible(q)}</bdi> ×
    </button>
  );
}

function Empty({ page, n_columns }: { page: Page; n_columns: number }) {
  const has_filter = page.address.q.trim() !== "" || page.address.rank !== null;
  const words =
    n_columns === 1
      ? has_filter
        ? t.one_step_left
        : t.one_step
      : page.info.n_operators === 0
        ? t.no_operators
        : has_filter
          ? t.nothing_matches
          : t.no_step;
  return (
    <div class="empty">
      <p>{words}</p>
      {has_filter && (
        <button type="button" class="outlined" onClick={() => go({ q: "", rank: null })}>
          {t.clear_filter}
        </button>
      )}
    </div>
  );
}

function StepsSkeleton() {
  return (
    <div class="skeletons" role="status" aria-label={t.loading}>
      {[70, 90, 80, 60, 85, 75].map((width) => (
        <span class="skeleton" style={{ width: `${width}%` }} />
      ))}
    </div>
  );
}

/** Among operators that share a row, the faulty or selected one names it instead of the first. */
function rowNames(grid: StepGrid, page: Page, selected: number | null): RowName[] {
  const { verdict } = page.info;
  const operator = page.operator.data;
  const names = distinctNames(grid.rows, false).map((name, row) => {
    const { n } = grid.rows[row];
    return { ...name, is_exact: n === 1, n_others: n - 1 };
  });
  const rename = (cell: number, { op_name, op_type }: { op_name: string; op_type: string }) => {
    const row = Math.floor(cell / grid.n_columns);
    if (!names[row].is_exact) {
      names[row] = { ...names[row], ...shortName(op_name, op_type), is_exact: true };
    }
  };
  const fault = grid.kinds.findIndex((kind, i) => kind === "fault" && grid.ids[i] === verdict.op);
  if (fault >= 0) rename(fault, verdict);
  if (selected !== null && operator?.id === page.selected) rename(selected, operator);
  return names;
}

/** The size of the heat map's box, updated with it. */
function useBoxSize() {
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState<PaneSize | null>(null);
  useEffect(() => {
    const measure = () => {
      // The observer may report once more during unmounting.
      if (!box.current) return;
      const { clientWidth, clientHeight } = box.current;
      const side = clientWidth >= 760 ? 360 : 0;
      setSize([clientWidth - side, clientHeight]);
    };
    const observer = new ResizeObserver(measure);
    observer.observe(box.current!);
    measure();
    return () => observer.disconnect();
  }, []);
  return [box, size] as const;
}
