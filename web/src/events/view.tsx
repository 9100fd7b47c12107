/**
 * Overflows, overwritten memory and first NaN in one list by time, with the selected event next to
 * it.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { go } from "../address";
import type { DumpEvent, EventKind, Events } from "../api";
import { useAnswer } from "../connection";
import { Glyph } from "../glyph";
import { VerdictLine } from "../graph/view";
import { useKeys } from "../keys";
import { useMedia } from "../media";
import { Name } from "../name";
import { distinctNames, visible } from "../names";
import { formatCount } from "../numbers";
import type { Page } from "../page";
import { Choice } from "../tensor/slice-panes";
import { t } from "../texts";
import { EventPane } from "./detail";
import { isoTime, taskWords, timeOfDay, whatWords } from "./words";

/** Rows added at a time. */
const N_AT_ONCE = 200;
const N_MAX = 1000;

export function EventsView({ page }: { page: Page }) {
  const [limit, setLimit] = useState(N_AT_ONCE);
  const { address } = page;
  // A link may lead to an event beyond the initially shown ones.
  const wanted = Math.min(N_MAX, Math.max(limit, (address.event ?? 0) + 1));
  const answer = useAnswer<Events>(`events?offset=0&limit=${wanted}`);
  const events = answer.data;
  return (
    <main class="events-view">
      <VerdictLine page={page} />
      <div class="events-panes">
        {answer.error && (
          <p class="trouble">
            {t.cannot_show}: {answer.error}
          </p>
        )}
        {!events && !answer.error && (
          <div class="skeletons" role="status" aria-label={t.loading}>
            {[80, 70, 90, 60].map((width) => (
              <span class="skeleton" style={{ width: `${width}%` }} />
            ))}
          </div>
        )}
        {events && (
          <Body page={page} answer={events} onMore={() => setLimit(wanted + N_AT_ONCE)} />
        )}
      </div>
    </main>
  );
}

type KindChoice = EventKind | "every";

interface BodyProps {
  page: Page;
  answer: Events;
  onMore: () => void;
}

function Body({ page, answer, onMore }: BodyProps) {
  const [kind, setKind] = useState<KindChoice>("every");
  const kinds = (["finding", "overflow", "overwrite", "non_finite"] as const).filter((one) =>
    answer.events.some((event) => event.kind === one),
  );
  const shown = answer.events.filter((event) => kind === "every" || event.kind === kind);
  const selected = selectedEvent(page, shown);
  useKeys((key) => {
    const step = key === "j" || key === "ArrowDown" ? 1 : key === "k" || key === "ArrowUp" ? -1 : 0;
    if (step === 0) return false;
    const at = selected === null ? -1 : shown.indexOf(selected);
    const next = shown[at < 0 ? 0 : at + step];
    if (next) selectEvent(next);
    return true;
  });
  const { event: asked } = page.address;
  const is_missing = asked !== null && asked >= answer.total;
  const n_left = Math.min(answer.total, N_MAX) - answer.events.length;
  return (
    <>
      <section class="pane events-pane" aria-label={t.views.events}>
        <header class="pane-head">
          <h2>{t.views.events}</h2>
          <span class="dim">{formatCount(answer.total)}</span>
          <span class="grow" />
          {kinds.length > 1 && (
            <Choice<KindChoice>
              value={kind}
              values={["every", ...kinds]}
              words={{ every: t.every_kind, ...t.event_kind }}
              onChange={setKind}
            />
          )}
        </header>
        {is_missing && <p class="trouble">{t.no_such_event(asked)}</p>}
        <EventList events={shown} selected={selected} label={t.events_words(shown.length)} />
        {answer.events.length === 0 && <p class="empty">{t.events_none}</p>}
        {n_left > 0 && (
          <button type="button" class="outlined more-events" onClick={onMore}>
            {t.show_more(Math.min(n_left, N_AT_ONCE))}
          </button>
        )}
        {answer.total > N_MAX && n_left <= 0 && (
          <p class="note">{t.not_listed(answer.total - N_MAX)}</p>
        )}
        {answer.n_unlisted > 0 && <p class="note">{t.events_left(answer.n_unlisted)}</p>}
        {answer.problems.map((problem, i) => (
          <p key={i} class="note">
            <Glyph sign="warn" /> <bdi>{visible(problem)}</bdi>
          </p>
        ))}
        <p class="spoken" aria-live="polite">
          {selected && `${t.event_kind[selected.kind]}, ${whatWords(selected)}`}
        </p>
      </section>
      <section class="pane inspector-pane event-pane" aria-label={t.event_column.what}>
        {selected && <EventPane page={page} id={selected.id} />}
      </section>
    </>
  );
}

/** The event of the address, or else the first one of the selected operator. */
function selectedEvent(page: Page, events: DumpEvent[]): DumpEvent | null {
  const { event } = page.address;
  const asked = event === null ? undefined : events.find(({ id }) => id === event);
  const of_operator = events.find(({ op }) => op !== null && op === page.selected);
  return asked ?? of_operator ?? events[0] ?? null;
}

/** Selecting an event also selects its operator, in every view. */
function selectEvent(event: DumpEvent): void {
  go(event.op === null ? { event: event.id } : { event: event.id, op: event.op });
}

interface ListProps {
  events: DumpEvent[];
  selected: DumpEvent | null;
  label: string;
}

function EventList({ events, selected, label }: ListProps) {
  const is_narrow = useMedia("(max-width: 759px)");
  const has_rank = new Set(events.map(({ rank }) => rank)).size > 1;
  const names = distinctNames(events);
  if (events.length === 0) return null;
  return (
    <div
      class={`event-grid ${has_rank ? "has-rank" : ""}`}
      role="grid"
      aria-label={label}
      aria-rowcount={events.length + 1}
    >
      <div role="row" class="event-head" aria-rowindex={1}>
        <span role="columnheader">{t.event_column.place}</span>
        <span role="columnheader">{t.event_column.time}</span>
        {has_rank && <span role="columnheader">rank</span>}
        <span role="columnheader">{t.event_column.operator}</span>
        <span role="columnheader">{t.event_column.task}</span>
        <span role="columnheader">{t.event_column.what}</span>
      </div>
      {events.map((event, i) => (
        <EventRow
          key={event.id}
          event={event}
          index={i}
          name={names[i]}
          has_rank={has_rank}
          is_narrow={is_narrow}
          is_selected={event === selected}
        />
      ))}
    </div>
  );
}

interface RowProps {
  event: DumpEvent;
  index: number;
  name: { path: string; last: string };
  has_rank: boolean;
  is_narrow: boolean;
  is_selected: boolean;
}

function EventRow({ event, index, name, has_rank, is_narrow, is_selected }: RowProps) {
  const row = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (is_selected) row.current?.scrollIntoView({ block: "nearest" });
  }, [is_selected]);
  const is_named = event.op_name !== "" || event.op_type !== "";
  return (
    <div
      ref={row}
      role="row"
      class={`event-row e-${event.kind}`}
      aria-rowindex={index + 2}
      aria-selected={is_selected}
      tabIndex={is_selected ? 0 : -1}
      onClick={() => selectEvent(event)}
    >
      <span role="gridcell" class="num" data-label={t.event_column.place}>
        {event.step === null ? "–" : formatCount(event.step)}
      </span>
      <span
        role="gridcell"
        class="num time"
        title={event.time_us === null ? undefined : `${isoTime(event.time_us)} UTC`}
      >
        {timeOfDay(event.time_us)}
      </span>
      {has_rank && (
        <span role="gridcell" class="num" data-label="rank">
          {event.rank ?? "–"}
        </span>
      )}
      <span role="gridcell" class="who">
        <Glyph sign="fail" label={t.event_kind[event.kind]} />
        {is_named ? (
          <Name
            name={event.op_name}
            type={event.op_type}
            short={name}
            width={is_narrow ? 300 : has_rank ? 220 : undefined}
          />
        ) : (
          <span class="dim">{t.nameless}</span>
        )}
      </span>
      <span role="gridcell" class="num dim task" data-label={t.event_column.task}>
        {taskWords(event)}
      </span>
      <span role="gridcell" class="what">
        <b>{t.event_kind[event.kind]}</b> <bdi>{whatWords(event)}</bdi>
      </span>
    </div>
  );
}
