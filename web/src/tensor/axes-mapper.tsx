/** The role of each axis of a tensor: rows, columns, or a fixed index. */

import { go } from "../address";
import type { TensorSide } from "../api";
import { is_report } from "../connection";
import { formatCount } from "../numbers";
import type { Page } from "../page";
import { visible } from "../names";
import { t } from "../texts";
import { withRole } from "./axes";

interface AxesMapperProps {
  page: Page;
  side: TensorSide;
  axes: string[];
  at: number[];
}

export function AxesMapper({ page, side, axes, at }: AxesMapperProps) {
  const set = (axis: number, role: string) => {
    const next = withRole(axes, axis, role);
    // The pointer follows an index, so that it stays in the picture.
    const index = at.map((i, k) => (/^\d+$/.test(next[k]) ? Number(next[k]) : i));
    go({ op: page.selected, slot: page.slot?.id ?? null, ax: next, at: index });
  };
  return (
    <div
      class="axes"
      role="group"
      aria-label={t.axes}
      title={is_report ? t.report_one_slice : undefined}
    >
      {axes.map((role, axis) => {
        const size = side.shape[axis];
        const name = visible(side.axes[axis] ?? String(axis));
        const is_index = role !== "r" && role !== "c";
        return (
          <span class="axis" key={axis}>
            <b>{name}</b> <span class="dim">{formatCount(size)}</span>
            <select
              aria-label={`${t.axes} ${name}`}
              value={is_index ? "i" : role}
              disabled={is_report}
              onChange={(event) => {
                const chosen = event.currentTarget.value;
                set(axis, chosen === "i" ? String(at[axis] ?? 0) : chosen);
              }}
            >
              <option value="r">{t.axis_rows}</option>
              <option value="c">{t.axis_columns}</option>
              <option value="i">{t.index}</option>
            </select>
            {is_index && (
              <input
                type="number"
                min="0"
                max={size - 1}
                value={role}
                disabled={is_report}
                aria-label={`${t.index} ${name}`}
                onChange={(event) => {
                  const index = Math.floor(Number(event.currentTarget.value));
                  if (index >= 0 && index < size) set(axis, String(index));
                }}
              />
            )}
          </span>
        );
      })}
    </div>
  );
}
