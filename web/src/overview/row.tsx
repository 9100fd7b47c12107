/** One operator in the table: number, sign, name, bars and numbers, cause. */

import { memo } from "../memo";
import type { Row } from "../api";
import { dtypeEnd } from "../dtypes";
import { Glyph, signOf } from "../glyph";
import { Name } from "../name";
import { visible, type ShortName } from "../names";
import { formatCount, formatNumber, formatShape, logShare, plainNumber, toFloat } from "../numbers";
import { causeWord, executionWords, type Several } from "../page";
import { t } from "../texts";
import type { Column } from "./columns";

export interface RowProps {
  row: Row;
  short: ShortName | undefined;
  columns: Column[];
  name_width: number;
  template: string;
  place: number;
  top: number;
  is_selected: boolean;
  /** The one row in the tab order. */
  is_stop: boolean;
  is_pair: boolean;
  is_narrow: boolean;
  several: Several;
  limit: number | null;
  onSelect: (id: number) => void;
  onOpen: (id: number) => void;
}

export const OperatorRow = memo(function OperatorRow(props: RowProps) {
  const { row, place, is_selected, is_narrow } = props;
  const is_plain =
    is_narrow &&
    !row.at_fault &&
    (row.cause ?? row.note) === null &&
    !toFloat(props.is_pair ? row.error : row.max_abs);
  const classes = `row r-${signOf(row)} ${is_selected ? "is-selected" : ""} ${
    is_plain ? "is-plain" : ""
  }`;
  return (
    <div
      class={classes}
      role="row"
      aria-rowindex={place + 2}
      aria-selected={is_selected}
      tabIndex={props.is_stop ? 0 : -1}
      data-place={place}
      style={{ transform: `translateY(${props.top}px)`, gridTemplateColumns: props.template }}
      onClick={() => props.onSelect(row.id)}
      onDblClick={() => props.onOpen(row.id)}
    >
      <span role="gridcell" class="num dim">
        {formatCount(row.id)}
      </span>
      <span role="gridcell" class="sign">
        <Glyph sign={signOf(row)} />
      </span>
      <span
        role="gridcell"
        class="op"
        aria-description={`${visible(row.op_type)} ${visible(row.op_name)}`}
      >
        <Name
          name={row.op_name}
          type={row.op_type}
          short={props.short}
          width={props.name_width}
          note={executionWords(row, props.several)}
        />
      </span>
      {is_narrow ? (
        <NarrowCells {...props} />
      ) : (
        props.columns.map((column) => <Cell key={column.id} {...props} column={column} />)
      )}
    </div>
  );
});

function NarrowCells(props: RowProps) {
  const { row, is_pair } = props;
  const value = is_pair ? row.error : row.max_abs;
  return (
    <>
      <span role="gridcell" class="num main">
        {formatNumber(value)}
      </span>
      <span role="gridcell" class="wide-bar">
        <Bar {...props} />
      </span>
      <span role="gridcell" class="why">
        <Why row={row} is_pair={is_pair} />
      </span>
    </>
  );
}

function Cell(props: RowProps & { column: Column }) {
  const { row, column, is_pair } = props;
  switch (column.id) {
    case "error":
      return <BarCell {...props} value={row.error} />;
    case "max_abs":
      return is_pair ? (
        <NumberCell value={row.max_abs} />
      ) : (
        <BarCell {...props} value={row.max_abs} />
      );
    case "added":
      return <NumberCell value={row.added} />;
    case "inputs":
      return <NumberCell value={row.inputs} />;
    case "n_inf":
      return <NumberCell value={row.n_inf} is_bad={row.note === "makes_inf"} />;
    case "n_nan":
      return (
        <NumberCell
          value={row.n_nan}
          is_bad={row.note === "makes_nan" || row.note === "inf_to_nan"}
        />
      );
    case "headroom":
      return <Headroom row={row} />;
    case "dtype":
      return (
        <span role="gridcell" class="num plain">
          {row.dtype ?? "–"}
        </span>
      );
    case "shape":
      return (
        <span role="gridcell" class="num plain" title={formatShape(row.shape)}>
          {formatShape(row.shape)}
        </span>
      );
    default:
      return (
        <span role="gridcell" class="why">
          <Why row={row} is_pair={is_pair} />
        </span>
      );
  }
}

function BarCell(props: RowProps & { value: Row["error"] }) {
  return (
    <span role="gridcell" class="bar-cell">
      <Bar {...props} />
      <NumberText value={props.value} />
    </span>
  );
}

/** Sizes are relative to the limit of their dtype, errors to the comparison's limit. */
function barAxis({ row, is_pair, limit }: RowProps) {
  if (is_pair) return { low: -8, high: 0, tick: limit };
  const end = dtypeEnd(row.dtype);
  // Relative to float32's limit every bar would be a dot, because ordinary values are far below.
  if (end !== null && end > 1e30) return { low: -2, high: 8, tick: null };
  return { low: -2, high: Math.log10(end ?? 1e6) + (end === null ? 0 : 0.1), tick: end };
}

function Bar(props: RowProps) {
  const { row, is_pair } = props;
  const value = toFloat(is_pair ? row.error : row.max_abs);
  const not_finite = (row.n_nan ?? 0) + (row.n_inf ?? 0) > 0;
  if (!is_pair && not_finite && !row.at_fault) return <span class="bar lattice" />;
  if (value === null || value === 0) return <span class="bar is-empty" />;
  const { low, high, tick } = barAxis(props);
  const share = logShare(value, low, high);
  return (
    <span class="bar">
      <span class="fill" style={{ width: `${share * 100}%` }} />
      {tick !== null && tick > 0 && (
        <span class="tick" style={{ left: `${logShare(tick, low, high) * 100}%` }} />
      )}
    </span>
  );
}

function NumberCell({ value, is_bad = false }: { value: Row["error"]; is_bad?: boolean }) {
  return (
    <span role="gridcell" class={is_bad ? "num bad" : "num"}>
      <NumberText value={value} />
    </span>
  );
}

function NumberText({ value }: { value: Row["error"] }) {
  return (
    <span class={value === 0 || value === null ? "n dim" : "n"} title={plainNumber(value)}>
      {formatNumber(value)}
    </span>
  );
}

function Headroom({ row }: { row: Row }) {
  const is_over = row.headroom !== null && row.headroom <= 0 && (row.n_inf ?? 0) > 0;
  if (is_over)
    return (
      <span role="gridcell" class={row.at_fault ? "num bad" : "num"}>
        {t.over}
      </span>
    );
  if (row.headroom === null)
    return (
      <span role="gridcell" class="num dim">
        –
      </span>
    );
  return (
    <span role="gridcell" class="num" aria-description={`2^${row.headroom}`}>
      2<sup>{row.headroom}</sup>
    </span>
  );
}

export function Why({ row, is_pair }: { row: Row; is_pair: boolean }) {
  const cause = causeWord(row);
  const words = is_pair
    ? cause
      ? t.cause[cause]
      : row.status === "skip"
        ? t.status.skip
        : ""
    : row.note
      ? t.note[row.note]
      : "";
  if (words === "") return null;
  const is_near = row.note === "near_edge" && !is_pair;
  const look = row.at_fault ? "tag t-fault" : is_near ? "tag t-warn" : "quiet-word";
  return (
    <span class={look}>
      {words}
      {row.n_golden + row.n_target > 2 && ` ${t.fused(row.n_target, row.n_golden)}`}
    </span>
  );
}
