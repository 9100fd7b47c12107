/** The names of both sides above their graphs. */

import type { Page } from "../page";
import { Swatch } from "../glyph";
import { visible } from "../names";
import { t } from "../texts";
import type { Camera } from "./camera";

interface SideHeadsProps {
  page: Page;
  centers: [number, number];
  camera: Camera | null;
}

export function SideHeads({ page, centers, camera }: SideHeadsProps) {
  const sides = [
    { side: "target" as const, info: page.info.target },
    { side: "golden" as const, info: page.info.golden },
  ];
  return (
    <div class="side-heads">
      {camera &&
        sides.map(({ side, info }, i) => (
          <span
            key={side}
            style={{ transform: `translateX(${(centers[i] - camera.x) * camera.scale}px)` }}
          >
            <span>
              <Swatch side={side} /> <b>{t[side]}</b> <bdi>{visible(info?.name ?? "")}</bdi>
              {info && `, ${t.n_ops(info.n_operators)}`}
            </span>
          </span>
        ))}
    </div>
  );
}
