/** How a report was made: from which dumps, by which program, and its contents. */

import type { ComponentChildren } from "preact";
import type { SideInfo } from "../api";
import type { Contents } from "../embedded/contents";
import { Swatch } from "../glyph";
import { visible } from "../names";
import { formatCount, formatLimit } from "../numbers";
import type { Page } from "../page";
import { t } from "../texts";

export function HowMade({ page, contents }: { page: Page; contents: Contents }) {
  const { info } = page;
  const { limit } = info.metric;
  const facts: [string, ComponentChildren][] = [
    [t.made_by, visible(info.program)],
    [t.made_at, t.report_made(new Date(contents.made * 1000))],
    [t.target, <Dump side="target" info={info.target} is_saved={contents.is_saved} />],
  ];
  if (info.golden) {
    facts.push([t.golden, <Dump side="golden" info={info.golden} is_saved={contents.is_saved} />]);
  }
  if (limit !== null) facts.push([t.made_limit(info.metric.name), formatLimit(limit)]);
  const n_details = Object.keys(contents.details).length;
  facts.push([t.made_rows, t.of(contents.rows.length, info.n_operators)]);
  facts.push([t.made_details, t.of(n_details, info.n_operators)]);
  facts.push([t.made_tensors, contents.is_saved ? t.report_saved : formatCount(contents.tensors.length)]);
  return (
    <dl class="made-facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface DumpProps {
  side: "target" | "golden";
  info: SideInfo;
  is_saved: boolean;
}

function Dump({ side, info, is_saved }: DumpProps) {
  return (
    <>
      <Swatch side={side} />{" "}
      <code>
        <bdi>{visible(info.path)}</bdi>
      </code>
      {!is_saved && <span class="dim"> {t.made_dump(info.n_operators, info.n_slots)}</span>}
    </>
  );
}
