/** The path of NaN and Inf from origin to end, for one dump. */

import { go } from "../address";
import type { ChainLink } from "../api";
import { Glyph, type Sign } from "../glyph";
import { Name } from "../name";
import { formatCount, formatNumber } from "../numbers";
import type { Page } from "../page";
import { t } from "../texts";

const SHOWN_MAX = 7;

export function Chain({ page }: { page: Page }) {
  const chain = page.operator.data?.chain ?? [];
  if (chain.length === 0) return null;
  const start = chain.slice(0, chain.length > SHOWN_MAX ? SHOWN_MAX - 2 : SHOWN_MAX);
  const rest = chain.slice(start.length);
  const last = rest[rest.length - 1];
  return (
    <section class="chain" aria-label={t.chain}>
      <header class="pane-head">
        <h2>{chain.some((link) => link.role === "makes") ? t.chain : t.chain_from_here}</h2>
        <span class="grow" />
        <span class="dim">{t.of(Math.min(chain.length, SHOWN_MAX), chain.length)}</span>
      </header>
      <ol>
        {start.map((link) => (
          <Link key={link.id} link={link} page={page} />
        ))}
        {rest.length > 1 && (
          <li class="k-hands">
            <Glyph sign="fail" /> <b>{t.chain_more(rest.length - 1)}</b>
          </li>
        )}
        {last && <Link link={last} page={page} />}
      </ol>
    </section>
  );
}

function Link({ link, page }: { link: ChainLink; page: Page }) {
  const sign: Sign = link.role === "makes" ? "fault" : link.role === "before" ? "pass" : "fail";
  const is_selected = link.id === page.selected;
  return (
    <li class={`c-${link.role} ${is_selected ? "is-selected" : ""}`}>
      <Glyph sign={sign} />
      <button type="button" onClick={() => go({ op: link.id })} aria-current={is_selected}>
        <Name name={link.op_name} type={link.op_type} width={300} />
      </button>
      <p>{linkWords(link)}</p>
    </li>
  );
}

function linkWords(link: ChainLink): string {
  const n_inf = link.n_inf ?? 0;
  const n_nan = link.n_nan ?? 0;
  const share =
    link.n_elements === null ? formatCount(n_inf + n_nan) : t.of(n_inf + n_nan, link.n_elements);
  switch (link.role) {
    case "before":
      return t.chain_before(formatNumber(link.max_abs));
    case "makes":
      return t.chain_makes(n_nan > 0 ? "NaN" : "Inf", share);
    case "hands_on":
      return t.chain_hands_on(share);
    case "changes":
      return t.chain_changes(share);
  }
}
