/** The top bar: the dumps, the views, search, language and theme. */

import { useState } from "preact/hooks";
import { go, VIEWS, type Address, type Theme, type View } from "./address";
import type { Info, Place } from "./api";
import { base, is_report } from "./connection";
import { Mark, MORE_PATH, SEARCH_PATH, Swatch, Tool } from "./glyph";
import { visible } from "./names";
import { formatCount } from "./numbers";
import { t } from "./texts";

interface TopBarProps {
  info: Info | null;
  address: Address;
  theme: Theme;
  onSearch: () => void;
}

export function TopBar({ info, address, theme, onSearch }: TopBarProps) {
  const [has_more, setHasMore] = useState(false);
  return (
    <header class="topbar">
      <span class="brand">
        <Mark />
        <span class="word">{is_report ? t.report_title : "Opscope"}</span>
      </span>
      {info && <Sides info={info} address={address} />}
      {info && <Tabs info={info} address={address} />}
      <span class="grow" />
      <button
        type="button"
        class="quiet search"
        onClick={onSearch}
        aria-keyshortcuts="Control+K"
        aria-label={`${t.search} Ctrl K`}
      >
        <span class="word">{t.search}</span> <kbd>Ctrl K</kbd>
        <span class="tool">
          <Tool path={SEARCH_PATH} />
        </span>
      </button>
      <button
        type="button"
        class="quiet more"
        aria-expanded={has_more}
        aria-label={t.more}
        onClick={() => setHasMore(!has_more)}
      >
        <Tool path={MORE_PATH} />
      </button>
      <span class={`settings ${has_more ? "is-open" : ""}`} onClick={() => setHasMore(false)}>
        {!is_report && (
          <a class="outlined send" download href={`${base}api/report`}>
            {t.send}
          </a>
        )}
        <Settings theme={theme} />
      </span>
    </header>
  );
}

/** Language and colours. */
export function Settings({ theme }: { theme: Theme }) {
  const other = t.language_name === "English" ? "zh" : "en";
  return (
    <>
      <button type="button" class="quiet" lang={other} onClick={() => go({ lang: other })}>
        {t.other_language}
      </button>
      <button
        type="button"
        class="quiet"
        title={theme === "dark" ? t.to_light : t.to_dark}
        aria-label={theme === "dark" ? t.to_light : t.to_dark}
        onClick={() => go({ theme: theme === "dark" ? "light" : "dark" })}
      >
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" stroke-width="1.5" />
          <path d="M8 1.8a6.2 6.2 0 0 1 0 12.4z" fill="currentColor" />
        </svg>
        <span class="only-narrow">{theme === "dark" ? t.to_light : t.to_dark}</span>
      </button>
    </>
  );
}

/** The tabs at the bottom of narrow pages. */
export function TabBar({ info, address }: { info: Info; address: Address }) {
  return (
    <div class="tabbar">
      <Tabs info={info} address={address} />
    </div>
  );
}

function Tabs({ info, address }: { info: Info; address: Address }) {
  const views = info.views.filter((v) => (VIEWS as readonly string[]).includes(v)) as View[];
  const move = (event: KeyboardEvent, i: number) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const next = (i + step + views.length) % views.length;
    ((event.currentTarget as HTMLElement).parentElement!.children[next] as HTMLElement).focus();
    go({ view: views[next] });
  };
  return (
    <nav class="tabs" role="tablist" aria-label={t.views.overview}>
      {views.map((view, i) => (
        <button
          type="button"
          role="tab"
          key={view}
          aria-selected={view === address.view}
          tabIndex={view === address.view ? 0 : -1}
          onClick={() => go({ view })}
          onKeyDown={(event) => move(event, i)}
        >
          {t.views[view]}
          {view === "events" && info.n_events > 0 && (
            <b class="badge" aria-label={t.n_events(info.n_events)}>
              {formatCount(info.n_events)}
            </b>
          )}
        </button>
      ))}
    </nav>
  );
}

export function Sides({ info, address }: { info: Info; address: Address }) {
  return (
    <span class="sides">
      <span class="side" title={visible(info.target.path)}>
        <Swatch side="target" /> <bdi>{visible(info.target.name)}</bdi>
      </span>
      {info.golden && <span class="against">{t.against}</span>}
      {info.golden && (
        <span class="side" title={visible(info.golden.path)}>
          <Swatch side="golden" /> <bdi>{visible(info.golden.name)}</bdi>
        </span>
      )}
      {info.reference && (
        <span class="side" title={visible(info.reference.path)}>
          <Swatch side="reference" /> <bdi>{visible(info.reference.name)}</bdi>
        </span>
      )}
      {info.places.length > 1 && <PlaceChoice info={info} address={address} />}
    </span>
  );
}

const PLACES_MAX = 2000;

function PlaceChoice({ info, address }: { info: Info; address: Address }) {
  const current = info.places.findIndex((place) =>
    address.step !== null || address.rank !== null
      ? place.step === address.step && place.rank === address.rank
      : false,
  );
  const choose = (i: number) => {
    const place = info.places[i];
    if (!place) go({ step: null, rank: null });
    else go({ step: place.step, rank: place.rank, op: place.first });
  };
  return (
    <select
      class="places"
      aria-label={t.place}
      value={String(current)}
      onChange={(event) => choose(Number(event.currentTarget.value))}
    >
      <option value="-1">{t.all_places}</option>
      {info.places.slice(0, PLACES_MAX).map((place, i) => (
        <option value={String(i)} key={i}>
          {placeWords(place)}
        </option>
      ))}
    </select>
  );
}

function placeWords(place: Place): string {
  const parts = [
    place.model === null ? null : visible(place.model),
    place.step === null ? null : t.step(place.step),
    place.rank === null ? null : t.rank(place.rank),
  ];
  return parts.filter((part) => part !== null).join(" · ") || "–";
}
