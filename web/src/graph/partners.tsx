/** The selected box: its matching operators on the other side, and its slots. */

import { go } from "../address";
import type { Graph, GraphBox, Operator, Slot } from "../api";
import { Glyph } from "../glyph";
import { Name } from "../name";
import { visible } from "../names";
import { formatNumber, toFloat } from "../numbers";
import type { Page } from "../page";
import { sideName } from "../sides";
import { slotLabel, t } from "../texts";
import { currentPairs, memberOf, pairOf, refusal, setPairs, usePairs, withPair } from "./hand";
import { partnersOf } from "./open";
import type { PairingState } from "./pairing";

interface PartnersProps {
  page: Page;
  graph: Graph;
  box: GraphBox;
  pairing: PairingState;
}

export function Partners({ page, graph, box, pairing }: PartnersProps) {
  const operator = page.operator.data;
  const is_pair = operator !== null && (box.id ?? box.inside) === operator.id;
  const others = partnersOf(graph, box);
  const side = box.side === "target" ? "golden" : "target";
  const named = is_pair ? operator[side] : [];
  const how = is_pair ? (t.how[operator.how] ?? operator.how) : null;
  return (
    <>
      <section class="part">
        <h3>
          <span>
            {others.length > 0 || named.length > 0
              ? t.partners_in(sideName(side), how ?? "")
              : t.no_partner_in(sideName(side))}
          </span>
        </h3>
        {others.length > 0
          ? others.map((b) => (
              <p key={b.key} class="partner">
                <Glyph sign={b.reason ? "skip" : b.status} />
                <Name name={b.op_name ?? b.label} type={b.op_type} />
                {b.reason && <span class="dim">{t.unpaired[b.reason] ?? b.reason}</span>}
              </p>
            ))
          : named.map((o, i) => (
              <p key={i} class="partner">
                <Name name={o.op_name} type={o.op_type} />
              </p>
            ))}
        {box.reason && <p class="dim">{t.unpaired_why[box.reason] ?? box.reason}</p>}
        <HandButtons graph={graph} box={box} pairing={pairing} others={others} />
      </section>
      {is_pair && operator.slots.length > 0 && <Slots page={page} operator={operator} />}
    </>
  );
}

interface HandButtonsProps {
  graph: Graph;
  box: GraphBox;
  pairing: PairingState;
  others: GraphBox[];
}

function HandButtons({ graph, box, pairing, others }: HandButtonsProps) {
  const all = usePairs();
  const member = memberOf(box);
  if (!member || !graph.step) return <p class="dim">{t.pair_in_step}</p>;
  const by_hand = pairOf(all, member);
  const unpair = () => {
    if (by_hand) {
      setPairs(currentPairs().filter((pair) => pair !== by_hand));
      return;
    }
    // Both sides are marked as unmatched; otherwise the next similar operator would be matched.
    for (const b of [box, ...others.filter((o) => !o.reason)]) {
      const one = memberOf(b);
      if (!one) continue;
      const alone = { target: [], golden: [], [one.side]: [one] };
      if (refusal(alone) === null) setPairs(withPair(currentPairs(), alone));
    }
  };
  return (
    <div class="buttons">
      <button
        type="button"
        class="outlined"
        aria-pressed={pairing.current !== null}
        onClick={() => pairing.begin(box)}
      >
        {t.pair_by_hand} <kbd>P</kbd>
      </button>
      <button
        type="button"
        class="quiet"
        disabled={!by_hand && others.length === 0}
        title={!by_hand && others.length === 0 ? t.nothing_to_unpair : undefined}
        onClick={unpair}
      >
        {by_hand ? t.take_back : t.unpair}
      </button>
    </div>
  );
}

function Slots({ page, operator }: { page: Page; operator: Operator }) {
  return (
    <section class="part">
      <h3>
        <span>{t.slots}</span>
        <span>rel_l2</span>
      </h3>
      <ul class="slot-list">
        {operator.slots.map((slot) => (
          <li key={slot.id}>
            <button
              type="button"
              class={`slot-row l-${slot.status} ${slot.id === page.slot?.id ? "is-selected" : ""}`}
              aria-pressed={slot.id === page.slot?.id}
              onClick={() => go({ op: operator.id, slot: slot.id })}
            >
              <Glyph sign={slot.status} />
              <span class="slot-words">
                {slotLabel(slot.id)}
                {slot.parameter && <bdi class="dim"> {visible(slot.parameter)}</bdi>}
              </span>
              <SlotError slot={slot} />
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** From 1e-8 to 1 on a log scale, as in the table of operators. */
function SlotError({ slot }: { slot: Slot }) {
  const value = slot.metrics.find(([name]) => name === "rel_l2")?.[1] ?? null;
  const size = toFloat(value);
  const share = size === null || size === 0 ? 0 : Math.min(1, 1 + Math.log10(size) / 8);
  return (
    <>
      <span class="bar">
        {share > 0 && <span class="fill" style={{ width: `${Math.max(2, share * 100)}%` }} />}
      </span>
      <b class="num">{slot.status === "skip" ? "–" : formatNumber(value)}</b>
    </>
  );
}
