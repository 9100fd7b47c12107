/** Controls next to the filter: the table's columns and, on narrow pages, its order. */

import { useState } from "preact/hooks";
import { go } from "../address";
import { useMedia } from "../media";
import type { Page } from "../page";
import { t } from "../texts";
import { COLUMNS, shownColumns } from "./columns";

export function OrderChoice({ page }: { page: Page }) {
  return (
    <select
      class="order"
      aria-label={t.order}
      value={page.address.sort}
      onChange={(event) => go({ sort: event.currentTarget.value })}
    >
      <option value="order">{t.order}</option>
      {page.info.golden && <option value="guilt">{t.by_guilt}</option>}
      <option value={page.info.golden ? "-error" : "-max_abs"}>
        {page.info.golden ? t.column.error : t.column.max_abs}
      </option>
      <option value="name">{t.column.operator}</option>
    </select>
  );
}

export function ColumnChoice({ page }: { page: Page }) {
  const [is_open, setOpen] = useState(false);
  const is_wide = useMedia("(min-width: 1680px)");
  const is_pair = page.info.golden !== null;
  const shown = shownColumns(page.address.cols, is_pair, is_wide);
  const toggle = (id: string) => {
    const next = shown.includes(id) ? shown.filter((c) => c !== id) : [...shown, id];
    go({ cols: COLUMNS.map((c) => c.id).filter((c) => next.includes(c)) });
  };
  const close = (event: FocusEvent) => {
    const to = event.relatedTarget as Node | null;
    if (!(event.currentTarget as HTMLElement).contains(to)) setOpen(false);
  };
  return (
    <span
      class="menu"
      onFocusOut={close}
      onKeyDown={(event) => event.key === "Escape" && setOpen(false)}
    >
      <button type="button" class="quiet" aria-expanded={is_open} onClick={() => setOpen(!is_open)}>
        {t.columns}
      </button>
      {is_open && (
        <span class="menu-list" tabIndex={-1}>
          {COLUMNS.filter((column) => column.for_pair === null || column.for_pair === is_pair).map(
            (column) => (
              <label key={column.id}>
                <input
                  type="checkbox"
                  checked={shown.includes(column.id)}
                  onChange={() => toggle(column.id)}
                />
                {t.column[column.id] || t.column.cause}
              </label>
            ),
          )}
          {is_pair && (
            <button type="button" class="quiet" onClick={() => go({ sort: "guilt" })}>
              {t.order}: {t.by_guilt}
            </button>
          )}
        </span>
      )}
    </span>
  );
}
