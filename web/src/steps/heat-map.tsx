/** The heat map of operators over steps: colour shows growth, or optionally the value itself. */

import { useMemo, useRef, useState } from "preact/hooks";
import { useCanvas } from "../canvas";
import { currentColours } from "../colours";
import { formatFactor, formatNumber } from "../numbers";
import { t } from "../texts";
import { drawSteps, paintCells } from "./draw";
import { growthOf, isBad, type StepGrid, type StepScale } from "./grid";
import {
  cellAt,
  columnWords,
  rowWords,
  stepLayout,
  usefulHeight,
  type RowName,
  type StepLayout,
} from "./layout";

interface HeatMapProps {
  grid: StepGrid;
  names: RowName[];
  scale: StepScale;
  selected: number | null;
  first_bad: number | null;
  limit: number | null;
  label: string;
  onSelect: (cell: number) => void;
}

interface Hover {
  cell: number;
  x: number;
  y: number;
}

export function HeatMap(props: HeatMapProps) {
  const { grid, names, scale, selected, first_bad, limit, label, onSelect } = props;
  const [hover, setHover] = useState<Hover | null>(null);
  const layout = useRef<StepLayout | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const theme = document.documentElement.dataset.theme ?? "light";
  const image = useMemo(
    () => paintCells(grid, scale, currentColours()),
    [grid, scale.kind, scale.low, scale.high, theme],
  );
  const canvas = useCanvas(
    (context, width, height, colours) => {
      layout.current = stepLayout(width, height, grid, names);
      const picture = { grid, names, image, selected, first_bad };
      drawSteps(context, layout.current, colours, picture);
    },
    [image, names, selected, first_bad],
  );
  const placeOf = (event: PointerEvent): Hover | null => {
    const { left, top } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const cell = layout.current && cellAt(layout.current, grid, x, y);
    return cell === null ? null : { cell, x, y };
  };
  const select = (event: PointerEvent) => {
    const place = placeOf(event);
    if (place && grid.has_run[place.cell]) onSelect(place.cell);
  };
  // The number of columns may change under a resting pointer.
  const shown = hover !== null && hover.cell < grid.kinds.length ? hover : null;
  return (
    <div class="heat-box" ref={box} style={{ maxHeight: `${usefulHeight(grid)}px` }}>
      <canvas
        ref={canvas}
        class="heat-canvas"
        role="application"
        tabIndex={0}
        aria-label={label}
        onClick={(event) => select(event as unknown as PointerEvent)}
        onPointerMove={(event) => setHover(placeOf(event))}
        onPointerLeave={() => setHover(null)}
      />
      {shown && box.current && (
        <p class="hover" style={hoverStyle(shown, box.current)} aria-hidden="true">
          <bdi>{rowWords(grid, Math.floor(shown.cell / grid.n_columns))}</bdi>
          {" · "}
          {cellWords(grid, shown.cell, limit)}
        </p>
      )}
    </div>
  );
}

/** Step, value and growth of a cell. */
export function cellWords(grid: StepGrid, cell: number, limit: number | null): string {
  const row = Math.floor(cell / grid.n_columns);
  const kind = grid.kinds[cell];
  const value = grid.values[cell];
  const parts = [columnWords(grid, cell % grid.n_columns)];
  if (kind !== "finite") parts.push(t.cell[kind]);
  if (value !== null && Number.isFinite(value)) parts.push(formatNumber(value));
  const growth = growthOf(value, grid.baselines[row]);
  if (kind === "finite" && growth !== null && growth >= 1.05) {
    parts.push(t.times_median(formatFactor(growth)));
  }
  if (kind === "finite" && isBad(grid, cell, limit)) parts.push(t.over_limit);
  return parts.join(" · ");
}

function hoverStyle({ x, y }: Hover, box: HTMLElement): Record<string, string> {
  const top = `${y > box.clientHeight - 60 ? y - 34 : y + 14}px`;
  if (x > box.clientWidth / 2) return { top, right: `${box.clientWidth - x + 4}px` };
  return { top, left: `${x + 4}px` };
}
