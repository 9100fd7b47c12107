/** Pairing by hand: P on a box, clicks on boxes of the other side, Enter. */

import { useState } from "preact/hooks";
import type { GraphBox } from "../api";
import { useKeys } from "../keys";
import { visible } from "../names";
import { sideName } from "../sides";
import { t } from "../texts";
import {
  currentPairs,
  memberOf,
  refusal,
  setPairs,
  withPair,
  type HandMember,
  type HandPair,
} from "./hand";

export interface PairingState {
  /** The unfinished pair. */
  current: { from: GraphBox; chosen: GraphBox[] } | null;
  begin: (from: GraphBox) => void;
  /** Adds or removes a box of the other side. Returns whether it did either. */
  toggle: (box: GraphBox) => boolean;
  finish: () => void;
  cancel: () => void;
}

export function usePairing(): PairingState {
  const [current, setCurrent] = useState<PairingState["current"]>(null);
  return {
    current,
    begin: (from) => memberOf(from) && setCurrent({ from, chosen: [] }),
    toggle: (box) => {
      if (!current || box.kind !== "op") return false;
      if (box.side === current.from.side) return true;
      const others = current.chosen.filter((b) => b.key !== box.key);
      const is_new = others.length === current.chosen.length;
      setCurrent({ ...current, chosen: is_new ? [...others, box] : others });
      return true;
    },
    finish: () => {
      const pair = current && pairFrom(current.from, current.chosen);
      if (!pair || current.chosen.length === 0 || refusal(pair) !== null) return;
      setPairs(withPair(currentPairs(), pair));
      setCurrent(null);
    },
    cancel: () => setCurrent(null),
  };
}

export function pairFrom(from: GraphBox, chosen: GraphBox[]): HandPair {
  const members = [from, ...chosen].map(memberOf).filter((m): m is HandMember => m !== null);
  return {
    target: members.filter((m) => m.side === "target"),
    golden: members.filter((m) => m.side === "golden"),
  };
}

export function PairingBar({ pairing }: { pairing: PairingState }) {
  const { current } = pairing;
  if (!current) return null;
  const { from, chosen } = current;
  const why = refusal(pairFrom(from, chosen));
  const other = sideName(from.side === "target" ? "golden" : "target");
  return (
    <div class="pairing-bar" role="status">
      <PairingKeys pairing={pairing} />
      <span>
        {t.pairing} <bdi class="strong">{visible(from.label)}</bdi>{" "}
        {chosen.length === 0 ? t.pairing_hint(other) : "+ "}
        {chosen.map((b, i) => (
          <>
            {i > 0 && ", "}
            <bdi class="strong">{visible(b.label)}</bdi> <span class="dim">{visible(b.op_type)}</span>
          </>
        ))}
        {chosen.length > 0 && why !== null && <span class="bad"> {t.pair_refused[why]}</span>}
      </span>
      <span class="grow" />
      <button
        type="button"
        class="solid"
        disabled={chosen.length === 0 || why !== null}
        title={chosen.length === 0 ? t.pairing_hint(other) : undefined}
        onClick={pairing.finish}
      >
        {t.pair_these} <kbd>Enter</kbd>
      </button>
      <button type="button" class="quiet" onClick={pairing.cancel}>
        {t.cancel} <kbd>Esc</kbd>
      </button>
    </div>
  );
}

/** Mounted with the bar, so that these keys take precedence over the page's. */
function PairingKeys({ pairing }: { pairing: PairingState }) {
  useKeys((key) => {
    if (key === "Enter") pairing.finish();
    else if (key === "Escape") pairing.cancel();
    else return false;
    return true;
  });
  return null;
}
