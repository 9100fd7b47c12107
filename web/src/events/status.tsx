/** A device's status after an overflow: one box per documented bit, filled if set. */

import type { Overflow, OverflowUnit } from "../api";
import { visible } from "../names";
import { t } from "../texts";

export function StatusParts({ overflow, place }: { overflow: Overflow; place: string }) {
  return (
    <>
      {overflow.units.map((unit, i) => (
        <section class="part status-part" key={i}>
          <h3>
            <span>
              {unit.unit === "AI Core" ? "" : `${unit.unit} · `}
              {t.status_word(unit.status)}
            </span>
            <span>{unitPlace(unit, place)}</span>
          </h3>
          {unit.bits ? <Bits unit={unit} /> : <p>{unitWords(unit)}</p>}
        </section>
      ))}
    </>
  );
}

function Bits({ unit }: { unit: OverflowUnit }) {
  const set = (unit.bits ?? []).filter(({ is_set }) => is_set);
  const more = unit.words.slice(1).filter((word) => word !== "0x0");
  return (
    <>
      <ul class="bits" aria-label={t.status_word(unit.status)}>
        {(unit.bits ?? []).map(({ bit, is_set }) => (
          <li key={bit} class={is_set ? "is-set" : ""} title={t.bit_meaning[bit]}>
            <b>{bitName(bit)}</b>
            <span>{t.bit[bit]}</span>
            {is_set && <span class="spoken">{t.bit_set}</span>}
          </li>
        ))}
        {[...unit.other_bits, ...more].map((word, i) => (
          <li key={`${word} ${i}`} class="is-set">
            <b>{word}</b>
            <span>{t.bit_unknown}</span>
            <span class="spoken">{t.bit_set}</span>
          </li>
        ))}
      </ul>
      {set.length > 0 && (
        <p class="dim">{set.map(({ bit }) => t.bit_meaning[bit]).join(" · ")}</p>
      )}
    </>
  );
}

/** `0x400, accumulation` for the last unit of a record, which is the one whose task it names. */
export function overflowWords(overflow: Overflow): { status: string; words: string } {
  const unit = overflow.units[overflow.units.length - 1];
  if (!unit) return { status: "–", words: "" };
  if (!unit.bits) return { status: unit.status, words: `${unit.unit}: ${unitWords(unit)}` };
  const known = unit.bits.filter(({ is_set }) => is_set).map(({ bit }) => t.bit[bit]);
  const more = unit.words.slice(1).filter((word) => word !== "0x0");
  const others = [...unit.other_bits, ...more].map((word) => `${word} ${t.bit_unknown}`);
  return { status: unit.status, words: [...known, ...others].join(" + ") };
}

/** `0x008`, as in the documentation. */
function bitName(bit: number): string {
  return `0x${bit.toString(16).padStart(3, "0")}`;
}

function unitWords(unit: OverflowUnit): string {
  if (unit.unit.endsWith("Atomic Add")) return t.atomic_add;
  if (unit.unit === "AICPU" || unit.unit === "SDMA") return t.undocumented;
  return unit.causes.map(visible).join(" + ");
}

function unitPlace(unit: OverflowUnit, place: string): string {
  const parts = [place, `${t.task} ${unit.task}`, `${t.stream} ${unit.stream}`];
  if (unit.context) parts.push(`${t.context} ${unit.context}`);
  if (unit.thread) parts.push(`${t.thread} ${unit.thread}`);
  return parts.filter(Boolean).join(" · ");
}
