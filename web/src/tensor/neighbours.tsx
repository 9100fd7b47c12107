/** The values around the pointer, as numbers. */

import type { Num, Tensor, Values } from "../api";
import { useMedia } from "../media";
import { useAnswer } from "../connection";
import { cssRgb, currentColours, inkOn } from "../colours";
import { formatIndex, formatNumber, plainNumber, toFloat } from "../numbers";
import { sideName } from "../sides";
import { t } from "../texts";
import { colourOf, type Scale } from "./slice";

interface NeighboursProps {
  tensor: Tensor;
  axes: string[];
  place: { row: number; column: number };
  scale: Scale;
  difference_scale: Scale;
}

const SPAN = 7;
const NARROW_SPAN = 5;
const PAUSE_MS = 30;

export function useValues(
  tensor: Tensor | null,
  axes: string[],
  place: { row: number; column: number } | null,
): Values | null {
  const span = useMedia("(max-width: 759px)") ? NARROW_SPAN : SPAN;
  const path =
    tensor && place && axes.length > 0
      ? `values?op=${tensor.op}&slot=${tensor.slot}&axes=${axes.join(",")}` +
        `&row=${place.row}&column=${place.column}&n=${span}`
      : null;
  return useAnswer<Values>(path, PAUSE_MS).data;
}

export function Neighbours(props: NeighboursProps & { values: Values }) {
  const { values, place, scale, difference_scale } = props;
  const both = values.target !== null && values.golden !== null;
  const grid = both
    ? values.target!.map((line, r) => line.map((a, c) => minus(a, values.golden![r][c])))
    : (values.target ?? values.golden ?? []);
  const colours = currentColours();
  const used = both ? difference_scale : scale;
  return (
    <table class="neighbours">
      <caption>{both ? t.around_pointer : t.around_pointer_one}</caption>
      <thead>
        <tr>
          <th />
          {values.columns.map((column) => (
            <th scope="col" key={column}>
              {column}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {grid.map((line, r) => (
          <tr key={values.rows[r]}>
            <th scope="row">{values.rows[r]}</th>
            {line.map((value, c) => {
              const x = toFloat(value);
              const is_here = values.rows[r] === place.row && values.columns[c] === place.column;
              const rgb = x !== null && Number.isFinite(x) ? colourOf(x, used, colours) : null;
              const style = rgb ? { background: cssRgb(rgb), color: inkOn(rgb) } : undefined;
              return (
                <td
                  key={values.columns[c]}
                  style={style}
                  title={plainNumber(value)}
                  class={`${is_here ? "is-here" : ""} ${rgb ? "" : "not-finite"}`}
                >
                  {value === 0 && both ? "=" : formatNumber(value)}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface PointerWordsProps {
  values: Values;
  place: { row: number; column: number };
}

export function PointerWords({ values, place }: PointerWordsProps) {
  const r = values.rows.indexOf(place.row);
  const c = values.columns.indexOf(place.column);
  const target = values.target?.[r]?.[c];
  const golden = values.golden?.[r]?.[c];
  return (
    <p>
      {t.pointer}: <code>{formatIndex(values.index)}</code>{" "}
      {target !== undefined && (
        <>
          <bdi>{sideName("target")}</bdi> <b>{formatNumber(target)}</b>
        </>
      )}
      {golden !== undefined && (
        <>
          , <bdi>{sideName("golden")}</bdi> <b>{formatNumber(golden)}</b>
        </>
      )}
    </p>
  );
}

function minus(a: Num, b: Num): Num {
  const [x, y] = [toFloat(a), toFloat(b)];
  if (x === null || y === null) return null;
  if (x === y || (Number.isNaN(x) && Number.isNaN(y))) return 0;
  const d = x - y;
  return Number.isNaN(d) ? "nan" : d === Infinity ? "inf" : d === -Infinity ? "-inf" : d;
}
