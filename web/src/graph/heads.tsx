/** The names of both sides above their graphs. */

import type { Page } from "../page";
import { font, textWidth } from "../canvas";
import { Swatch } from "../glyph";
import { sideName } from "../sides";
import { t } from "../texts";
import type { Camera } from "./camera";

interface SideHeadsProps {
  page: Page;
  centers: [number, number];
  camera: Camera | null;
}

const SIDES = ["target", "golden"] as const;
const NAME = font(12, 600);
const COUNT = font(12);
/** The swatch and its space. */
const SWATCH_WIDTH = 16;
const GAP = 20;
const MARGIN = 8;

export function SideHeads({ page, centers, camera }: SideHeadsProps) {
  if (!camera) return <div class="side-heads" />;
  const heads = SIDES.map((side) => {
    const n = page.info[side]?.n_operators;
    return { side, name: sideName(side), count: n === undefined ? "" : `, ${t.n_ops(n)}` };
  });
  const widths = heads.map(
    ({ name, count }) => SWATCH_WIDTH + textWidth(name, NAME) + textWidth(count, COUNT),
  );
  const at = centers.map((center) => (center - camera.x) * camera.scale);
  const lefts = placeHeads(at as [number, number], widths as [number, number]);
  return (
    <div class="side-heads">
      {heads.map(({ side, name, count }, i) => (
        <span key={side} style={{ transform: `translateX(${Math.round(lefts[i])}px)` }}>
          <Swatch side={side} /> <b>{name}</b>
          {count}
        </span>
      ))}
    </div>
  );
}

/** The left ends of two heads, each over its graph's centre, but never one over the other. */
export function placeHeads(
  centers: [number, number],
  widths: [number, number],
): [number, number] {
  const middle = (centers[0] + centers[1]) / 2;
  const first = Math.min(centers[0] - widths[0] / 2, middle - GAP / 2 - widths[0]);
  const left = Math.max(MARGIN, first);
  const right = Math.max(centers[1] - widths[1] / 2, middle + GAP / 2, left + widths[0] + GAP);
  return [left, right];
}
