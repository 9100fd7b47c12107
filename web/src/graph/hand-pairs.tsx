/** The manual pairs, their mapping file, and the command that compares with it. */

import { useState } from "preact/hooks";
import { copyText } from "../clipboard";
import { visible } from "../names";
import type { Page } from "../page";
import { t } from "../texts";
import {
  compareCommand,
  MAPPING_FILE,
  saveMapping,
  setPairs,
  usePairs,
  type HandMember,
  type HandPair,
} from "./hand";

export function HandPairs({ page, mapping }: { page: Page; mapping: string | null }) {
  const pairs = usePairs();
  const [is_copied, setCopied] = useState(false);
  const golden = page.info.golden;
  if (pairs.length === 0 || !golden) return null;
  const command = compareCommand(page.info.target.path, golden.path);
  return (
    <section class="part hand-pairs" aria-label={t.hand_pairs}>
      <h3>
        <span>{t.hand_pairs}</span>
      </h3>
      <ul>
        {pairs.map((pair, i) => (
          <li key={i}>
            <i class="dot" />
            <span class="pair-words">{pairWords(pair)}</span>
            <button
              type="button"
              class="quiet"
              aria-label={`${t.take_back}: ${pairText(pair)}`}
              onClick={() => setPairs(pairs.filter((other) => other !== pair))}
            >
              {t.take_back}
            </button>
          </li>
        ))}
      </ul>
      <p class="dim">{t.counts_once_compared(MAPPING_FILE)}</p>
      {mapping !== null && <p class="dim">{t.made_with_mapping(visible(mapping))}</p>}
      <pre class="command">
        <code>{visible(command)}</code>
      </pre>
      <div class="buttons">
        <button type="button" class="outlined" onClick={saveMapping}>
          {t.save_mapping}
        </button>
        <button
          type="button"
          class="quiet"
          onClick={() => void copyText(command).then(setCopied)}
        >
          {is_copied ? t.copied : t.copy_command}
        </button>
      </div>
    </section>
  );
}

function sideText(members: HandMember[]): string {
  if (members.length === 0) return t.no_one;
  return members
    .map((m) => visible(m.name) + (m.run === null ? "" : ` (${t.execution(m.run)})`))
    .join(" + ");
}

function pairText(pair: HandPair): string {
  return `${sideText(pair.target)} ← ${sideText(pair.golden)}`;
}

function pairWords(pair: HandPair) {
  return (
    <>
      <bdi>{sideText(pair.target)}</bdi> ← <bdi>{sideText(pair.golden)}</bdi>
    </>
  );
}
