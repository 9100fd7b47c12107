/** A few rows of the table of operators, without scrolling. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { go } from "../address";
import type { Row } from "../api";
import { useMedia, usePrinting } from "../media";
import { distinctNames } from "../names";
import { formatCount } from "../numbers";
import { columnsToShow } from "../overview/columns";
import { OperatorRow } from "../overview/row";
import { several, type Page } from "../page";
import { t } from "../texts";

interface PlainTableProps {
  page: Page;
  rows: Row[];
  columns: string[];
}

/**
 * A4 without its margins, in pixels of 1/96 inch: names are fitted before the paper size is known.
 */
const PAPER_WIDTH = 690;
const ROW_HEIGHT = 26;
const NARROW_ROW_HEIGHT = 56;
/** Width of the sign and the paddings next to number and name. */
const FIXED_WIDTH = 24 + 16;

export function PlainTable({ page, rows, columns }: PlainTableProps) {
  const is_pair = page.info.golden !== null;
  const is_printing = usePrinting();
  const is_narrow = useMedia("(max-width: 759px)") && !is_printing;
  const box = useRef<HTMLDivElement>(null);
  const [box_width, setWidth] = useState(1000);
  const width = is_printing ? Math.min(box_width, PAPER_WIDTH) : box_width;
  useLayoutEffect(() => {
    const read = () => box.current && setWidth(box.current.clientWidth);
    const observer = new ResizeObserver(read);
    observer.observe(box.current!);
    read();
    return () => observer.disconnect();
  }, []);
  const shown = columnsToShow(columns, is_pair);
  const id_width = Math.max(40, 16 + 8 * formatCount(page.info.n_operators).length);
  const taken = is_narrow ? 100 : shown.reduce((sum, column) => sum + column.width, 0);
  const template = is_narrow
    ? `${id_width}px 24px minmax(0,1fr) 92px`
    : `${id_width}px 24px minmax(120px,1fr) ${shown.map((c) => `${c.width}px`).join(" ")}`;
  const row_height = is_narrow ? NARROW_ROW_HEIGHT : ROW_HEIGHT;
  const names = distinctNames(rows);
  return (
    <div class="plain-table" role="grid" aria-rowcount={rows.length + 1} ref={box}>
      {!is_narrow && (
        <div class="row heads" role="row" style={{ gridTemplateColumns: template }}>
          <span role="columnheader" class="num">
            {t.column.id}
          </span>
          <span role="columnheader" aria-label={t.column.cause} />
          <span role="columnheader">{t.column.operator}</span>
          {shown.map(({ id, is_left }) => (
            <span role="columnheader" key={id} class={is_left || id === "error" ? "" : "num"}>
              {id === "error" ? t.error_of_outputs(page.info.metric.name) : t.column[id]}
            </span>
          ))}
        </div>
      )}
      <div class="rows" style={{ height: `${rows.length * row_height}px` }}>
        {rows.map((row, place) => (
          <OperatorRow
            key={row.id}
            row={row}
            short={names[place]}
            columns={shown}
            name_width={Math.max(120, width - FIXED_WIDTH - id_width - taken)}
            template={template}
            place={place}
            top={place * row_height}
            is_selected={row.id === page.selected}
            is_stop={place === 0}
            is_pair={is_pair}
            is_narrow={is_narrow}
            several={several(page)}
            limit={page.info.metric.limit}
            onSelect={(id) => go({ op: id })}
            onOpen={(id) => go({ op: id, view: "tensor" })}
          />
        ))}
      </div>
    </div>
  );
}
