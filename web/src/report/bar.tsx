/** The head of a report: time, dumps, and links to its parts. */

import { go, type Address, type Theme } from "../address";
import type { Info } from "../api";
import { embedded } from "../connection";
import { Mark } from "../glyph";
import { formatCount } from "../numbers";
import { t } from "../texts";
import { Settings, Sides } from "../topbar";
import { goToPart, type PartName } from "./parts";

interface ReportBarProps {
  info: Info;
  address: Address;
  theme: Theme;
  onSearch: () => void;
}

export function ReportBar({ info, address, theme, onSearch }: ReportBarProps) {
  const made = new Date((embedded?.made ?? 0) * 1000);
  return (
    <header class="report-bar">
      <div class="report-head">
        <span class="brand">
          <Mark />
          <span class="report-title">{t.report_title}</span>
        </span>
        <time class="made" dateTime={made.toISOString()}>
          {t.report_made(made)}
        </time>
        <span class="grow" />
        <Sides info={info} address={address} />
        <button type="button" class="outlined only-screen" onClick={() => print()}>
          {t.print}
        </button>
        <span class="report-settings only-screen">
          <Settings theme={theme} />
        </span>
      </div>
      <Parts info={info} address={address} onSearch={onSearch} />
    </header>
  );
}

interface Entry {
  words: string;
  /** Number of items. */
  n: string | null;
  is_bad?: boolean;
  is_current: boolean;
  act: () => void;
}

function Parts({ info, address, onSearch }: Omit<ReportBarProps, "theme">) {
  const part = (name: PartName, words: string, n: number | null = null, is_bad = false): Entry => ({
    words,
    n: n === null ? null : formatCount(n),
    is_bad,
    is_current: name === "verdict" && address.view === "overview",
    act: () => goToPart(name),
  });
  const n_at_fault = embedded?.rows.filter((row) => row.at_fault).length ?? 0;
  const n_tensors = embedded?.tensors.length ?? 0;
  const entries: Entry[] = [
    part("verdict", t.part.verdict),
    ...(n_at_fault > 0 ? [part("fault", t.part.fault, n_at_fault, true)] : []),
    part("operators", t.part.operators, info.n_operators),
    part("graph", t.part.graph),
    {
      words: t.part.tensors,
      n: n_tensors > 0 ? t.n_worst(n_tensors) : null,
      is_current: address.view === "tensor",
      act: () => go({ view: "tensor" }),
    },
    ...(info.views.includes("steps")
      ? [
          {
            words: t.views.steps,
            n: null,
            is_current: address.view === "steps",
            act: () => go({ view: "steps" }),
          },
        ]
      : []),
    ...(info.views.includes("events")
      ? [
          {
            words: t.views.events,
            n: embedded ? formatCount(embedded.events.total) : null,
            is_current: address.view === "events",
            act: () => go({ view: "events" }),
          },
        ]
      : []),
    part("coverage", t.part.coverage),
    part("made", t.part.made),
  ];
  return (
    <nav class="report-parts only-screen" aria-label={t.report_title}>
      {entries.map(({ words, n, is_bad, is_current, act }) => (
        <button
          type="button"
          key={words}
          aria-current={is_current ? "page" : undefined}
          onClick={act}
        >
          {words} {n !== null && <small class={is_bad ? "is-bad" : ""}>{n}</small>}
        </button>
      ))}
      <span class="grow" />
      <button type="button" aria-keyshortcuts="Control+K" onClick={onSearch}>
        {t.search} <kbd>Ctrl K</kbd>
      </button>
    </nav>
  );
}
