/** The table of operators: of any length, but only visible rows are in the page. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { go } from "../address";
import { useMedia } from "../media";
import { several, type Page } from "../page";
import { formatCount } from "../numbers";
import type { RowSource } from "../rows";
import { t } from "../texts";
import { columnsToShow, shownColumns, type Column } from "./columns";
import { OperatorRow, type RowProps } from "./row";
import { useScroll, type View } from "./table-scroll";
import { setTableWindow } from "./table-window";

interface TableProps {
  page: Page;
  source: RowSource;
  /** On narrow pages the whole page scrolls, including the table. */
  scroller: { current: HTMLElement | null };
  is_narrow: boolean;
}

const ROW_HEIGHT = 26;
const NARROW_ROW_HEIGHT = 56;
const SPARE_ROWS = 4;
/** Width of the sign and the paddings next to number and name. */
const FIXED_WIDTH = 24 + 16;

export function OperatorTable({ page, source, scroller, is_narrow }: TableProps) {
  const own = useRef<HTMLDivElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const is_wide = useMedia("(min-width: 1680px)");
  const is_pair = page.info.golden !== null;
  const cols = page.address.cols?.join(",") ?? "";
  const columns = useMemo(
    () => columnsToShow(shownColumns(page.address.cols, is_pair, is_wide), is_pair),
    [cols, is_pair, is_wide],
  );
  const n = source.matching ?? 0;
  const row_height = is_narrow ? NARROW_ROW_HEIGHT : ROW_HEIGHT;
  const scrolls = () => (is_narrow ? scroller.current : own.current);
  const view = useScroll(scrolls, body, n, row_height, is_narrow);
  const columns_width = columns.reduce((sum, column) => sum + column.width, 0);
  const id_width = Math.max(40, 16 + 8 * formatCount(page.info.n_operators).length);
  const name_width = is_narrow
    ? view.width - FIXED_WIDTH - id_width - 100
    : Math.max(120, view.width - FIXED_WIDTH - id_width - columns_width);
  const template = is_narrow
    ? `${id_width}px 24px minmax(0,1fr) 92px`
    : `${id_width}px 24px minmax(120px,1fr) ${columns.map((c) => `${c.width}px`).join(" ")}`;
  useEffect(() => {
    setTableWindow({
      first: view.first,
      last: Math.min(n, view.first + view.n_visible),
      total: n,
      is_in_order: page.address.sort === "order",
    });
  }, [view.first, view.n_visible, n, page.address.sort]);
  useSelectionInView(page, source, view, is_narrow);
  const shared = useShared(page, columns, template, name_width, is_narrow);
  return (
    <div class="table-wrap">
      <div
        class="table"
        role="grid"
        aria-rowcount={n + 1}
        aria-label={t.operators_table}
        aria-colcount={3 + columns.length}
        ref={own}
      >
        {!is_narrow && <Heads columns={columns} page={page} template={template} />}
        <div class="rows" ref={body} style={{ height: `${view.height}px` }}>
          <Rows view={view} source={source} page={page} shared={shared} n={n} />
        </div>
        <TableWords source={source} />
      </div>
      <FaultRow page={page} source={source} view={view} shared={shared} />
    </div>
  );
}

type Shared = Omit<RowProps, "row" | "short" | "place" | "top" | "is_selected" | "is_stop">;

function useShared(
  page: Page,
  columns: Column[],
  template: string,
  name_width: number,
  is_narrow: boolean,
): Shared {
  const { info } = page;
  const is_pair = info.golden !== null;
  return useMemo(
    () => ({
      columns,
      template,
      name_width,
      is_narrow,
      is_pair,
      several: several(page),
      limit: info.metric.limit,
      onSelect: (id: number) =>
        go(matchMedia("(max-width: 759px)").matches ? { op: id, view: "tensor" } : { op: id }),
      onOpen: (id: number) => go({ op: id, view: "tensor" }),
    }),
    [columns, template, name_width, is_narrow, info, page.address.step, page.address.rank],
  );
}

interface RowsProps {
  view: View;
  source: RowSource;
  page: Page;
  shared: Shared;
  n: number;
}

function Rows({ view, source, page, shared, n }: RowsProps) {
  const from = Math.max(0, view.first - SPARE_ROWS);
  const to = Math.min(n, view.first + view.n_visible + SPARE_ROWS);
  const shown = [];
  const has_selected = Array.from({ length: Math.max(0, to - from) }, (_, i) =>
    source.row(from + i),
  ).some((row) => row !== undefined && row.id === page.selected);
  for (let place = from; place < to; place += 1) {
    const row = source.row(place);
    const top = view.topOf(place);
    shown.push(
      row ? (
        <OperatorRow
          key={place}
          row={row}
          short={source.name(place)}
          place={place}
          top={top}
          is_selected={row.id === page.selected}
          {...shared}
          is_stop={has_selected ? row.id === page.selected : place === view.first}
        />
      ) : (
        <SkeletonRow key={place} top={top} place={place} template={shared.template} />
      ),
    );
  }
  return <>{shown}</>;
}

function SkeletonRow({ top, place, template }: { top: number; place: number; template: string }) {
  return (
    <div
      class="row"
      role="row"
      aria-rowindex={place + 2}
      style={{ transform: `translateY(${top}px)`, gridTemplateColumns: template }}
    >
      <span class="skeleton" />
      <span class="skeleton" />
      <span class="skeleton" />
      <span class="skeleton" />
    </div>
  );
}

function Heads({ columns, page, template }: { columns: Column[]; page: Page; template: string }) {
  const { sort } = page.address;
  const head = (id: string, key: string | null, is_left: boolean, label: string) => {
    const sorted =
      key === null || key === "order" ? 0 : sort === key ? 1 : sort === `-${key}` ? -1 : 0;
    // Numbers start in descending order, and a third click restores execution order.
    const starts_large = !["name", "order", "type"].includes(key ?? "");
    const turns = starts_large ? [`-${key}`, key, "order"] : [key, `-${key}`, "order"];
    const next = key === "order" ? "order" : turns[(turns.indexOf(sort) + 1) % turns.length]!;
    return (
      <span
        role="columnheader"
        key={id}
        class={is_left ? "" : "num"}
        aria-sort={sorted === 1 ? "ascending" : sorted === -1 ? "descending" : "none"}
      >
        {key === null ? (
          label
        ) : (
          <button type="button" onClick={() => go({ sort: next })}>
            {label}
            {sorted !== 0 && <i aria-hidden="true">{sorted > 0 ? " ↑" : " ↓"}</i>}
          </button>
        )}
      </span>
    );
  };
  return (
    <div class="row heads" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
      {head("id", "order", false, t.column.id)}
      <span role="columnheader" aria-label={t.column.cause} />
      {head("operator", "name", true, t.column.operator)}
      {columns.map((column) => {
        const has_bar = column.id === "error" || (column.id === "max_abs" && !page.info.golden);
        const label =
          column.id === "error"
            ? t.error_of_outputs(page.info.metric.name)
            : column.id === "max_abs" && !page.info.golden
              ? t.trace_size
              : t.column[column.id];
        return head(column.id, column.sort, column.is_left === true || has_bar, label);
      })}
    </div>
  );
}

function TableWords({ source }: { source: RowSource }) {
  if (source.failure)
    return (
      <p class="trouble">
        {t.cannot_show}: {source.failure}
      </p>
    );
  if (source.matching === null) {
    return (
      <div class="skeletons">
        {Array.from({ length: 12 }, (_, i) => (
          <span key={i} class="skeleton" style={{ width: `${50 + ((i * 37) % 40)}%` }} />
        ))}
      </div>
    );
  }
  if (source.matching > 0) return null;
  return (
    <div class="empty">
      <p>{source.total === 0 ? t.no_operators : t.nothing_matches}</p>
      {source.filter !== "" && (
        <button
          type="button"
          class="outlined"
          onClick={() => go({ q: "", step: null, rank: null })}
        >
          {t.clear_filter} <kbd>Esc</kbd>
        </button>
      )}
    </div>
  );
}

/** Keeps the selection in view when it was not moved by a click on its row. */
function useSelectionInView(page: Page, source: RowSource, view: View, is_narrow: boolean): void {
  const shown = useRef<{ selected: number | null; source: RowSource | null }>({
    selected: null,
    source: null,
  });
  useEffect(() => {
    const { selected } = page;
    if (selected === null || source.matching === null) return;
    const is_new_source = shown.current.source !== source;
    if (!is_new_source && shown.current.selected === selected) return;
    const is_first = shown.current.source === null;
    shown.current = { selected, source };
    // A narrow page begins with the verdict, which scrolls along with the table.
    if (is_first && is_narrow) return;
    let wanted = true;
    void source.find(selected).then((place) => {
      if (!wanted || place === null) return;
      view.reveal(place, is_new_source ? "middle" : "nearest");
      const from = document.activeElement;
      if (from instanceof HTMLElement && from.matches(".rows > .row")) {
        requestAnimationFrame(() =>
          document
            .querySelector<HTMLElement>(".rows > .is-selected")
            ?.focus({ preventScroll: true }),
        );
      }
    });
    return () => {
      wanted = false;
    };
  }, [page.selected, source, source.matching, view.height]);
}

interface FaultRowProps {
  page: Page;
  source: RowSource;
  view: View;
  shared: Shared;
}

/** When scrolled away, the culprit sticks to the nearer edge. */
function FaultRow({ page, source, view, shared }: FaultRowProps) {
  const { verdict } = page.info;
  const [place, setPlace] = useState<number | null>(null);
  useEffect(() => {
    setPlace(null);
    if (verdict.op === null) return;
    let wanted = true;
    void source.find(verdict.op).then((found) => {
      if (wanted) setPlace(found);
    });
    return () => {
      wanted = false;
    };
  }, [source, source.matching, verdict.op]);
  if (place === null || shared.is_narrow || (source.matching ?? 0) <= view.n_visible) return null;
  const is_above = place < view.first;
  const is_below = place >= view.first + view.n_visible - 1;
  if (!is_above && !is_below) return null;
  const row = source.row(place);
  if (!row?.at_fault) return null;
  return (
    <div
      class={`stuck ${is_above ? "at-top" : "at-bottom"}`}
      aria-hidden="true"
      title={t.go_to_fault}
      style={{ width: `${view.width}px` }}
    >
      <OperatorRow
        row={row}
        short={source.name(place)}
        place={place}
        top={0}
        is_selected={row.id === page.selected}
        is_stop={false}
        {...shared}
        onSelect={(id) => {
          shared.onSelect(id);
          view.reveal(place, "middle");
        }}
      />
    </div>
  );
}
